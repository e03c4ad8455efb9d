"""Atoms and tiled views of the authoring language."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import layout as L
from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..layout import tiled_copy, tiled_mma, tv
from ..layout.tuples import slice_and_offset
from .leaves import to_leaves
from .numeric import Numeric
from .tensor import CoordTensor, Tensor, compact_basis, make_rmem_tensor

if TYPE_CHECKING:
    from ..ir.core import Value


def _state_value(atom: Any, field: str, value: Any) -> Value:
    from ..ir.atom_state import state_of

    v = value.ir_value() if hasattr(value, "ir_value") else value
    if not isinstance(v, (int, float)):
        return v  # type: ignore[no-any-return]
    return Builder.current().constant(v, state_of(atom.type).field(field).type)


class _Atom:
    """An atom value with its type; setting state gives a new atom."""

    __slots__ = ("_v",)

    def __init__(self, value: Value) -> None:
        self._v = value

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    @property
    def op(self) -> Any:
        """The copy or mma operation."""
        return self._v.type.op  # type: ignore[attr-defined]

    @property
    def thr_layout(self) -> L.Layout:
        """Lanes that execute the instruction together."""
        return self.op.thr_layout  # type: ignore[no-any-return]

    def set_value(self, field: Any, value: Any = None) -> Any:
        """The atom with one state field changed, or several from a mapping.

        Raises:
            StateError: The atom has no such field, or the value has the wrong type.
        """
        v = self._v
        for name, x in field.items() if isinstance(field, dict) else ((field, value),):
            v = Builder.current().set_value(v, name, _state_value(v, name, x))
        return type(self)(v)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.op})"


class CopyAtom(_Atom):
    """One copy instruction seen as values of ``val_bits`` bits."""

    __slots__ = ()

    @property
    def type(self) -> t.CopyAtomType:
        """The IR type."""
        return self._v.type  # type: ignore[return-value]

    @property
    def val_bits(self) -> int:
        """Bits of one value."""
        return self.type.val_bits

    def _tv(self, bits: L.Layout) -> L.Layout:
        return L.recast_layout(self.val_bits, 1, bits)  # type: ignore[no-any-return]

    @property
    def layout_src_tv(self) -> L.Layout:
        """(thread, value) of the source."""
        return self._tv(self.op.bit_layout_src)

    @property
    def layout_dst_tv(self) -> L.Layout:
        """(thread, value) of the destination."""
        return self._tv(self.op.bit_layout_dst)

    @property
    def layout_ref_tv(self) -> L.Layout:
        """(thread, value) that partitioning goes by."""
        return self._tv(self.op.bit_layout_ref)


class MmaAtom(_Atom):
    """One matrix instruction."""

    __slots__ = ()

    @property
    def type(self) -> t.MmaAtomType:
        """The IR type."""
        return self._v.type  # type: ignore[return-value]

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """(M, N, K)."""
        return self.op.shape_mnk  # type: ignore[no-any-return]

    def layout_tv(self, operand: str) -> L.Layout:
        """(thread, value) of operand a, b or c."""
        return {"a": self.op.layout_a, "b": self.op.layout_b}.get(operand, self.op.layout_c)

    layout_A_tv = property(lambda self: self.op.layout_a)
    layout_B_tv = property(lambda self: self.op.layout_b)
    layout_C_tv = property(lambda self: self.op.layout_c)


def make_copy_atom(op: Any, elem_type_or_bits: Any) -> CopyAtom:
    """A copy atom over values of a type or of a width in bits.

    Raises:
        AtomError: The instruction does not exist on the target, or the width does not divide it.
    """
    bits = elem_type_or_bits if isinstance(elem_type_or_bits, int) else elem_type_or_bits.width
    if bits < 1 or (op.bit_size and op.bit_size % bits):
        raise TraceError(
            f"make_copy_atom({op}, {bits}): {op.bit_size} bits are no whole number of {bits}-bit values",
            Builder.current().location(),
            "use an element width that divides the atom",
        )
    return CopyAtom(Builder.current().make_copy_atom(t.CopyAtomType(op, bits)))


def make_mma_atom(op: Any) -> MmaAtom:
    """An mma atom.

    Raises:
        AtomError: The instruction does not exist on the target.
    """
    return MmaAtom(Builder.current().make_mma_atom(t.MmaAtomType(op)))


def atom_set_value(atom: Any, field: str, value: Any) -> Any:
    """The atom with one state field changed."""
    return atom.set_value(field, value)


def _thread_slice(partition: Any, tensor: Any, tid: Any) -> Any:
    """Mode 0 of a partition at one thread."""
    outer = partition.outer if isinstance(partition, L.ComposedLayout) else partition
    coord = (to_leaves(tid), *(None,) * (L.rank(outer) - 1))
    kept, offset = slice_and_offset(to_leaves(coord), partition)
    return tensor.at(offset, kept)


class TiledCopy:
    """A copy atom laid over a tile of a tensor's first modes."""

    __slots__ = ("_v", "atom")

    def __init__(self, value: Value, atom: CopyAtom) -> None:
        self._v = value
        self.atom = atom

    @property
    def type(self) -> t.TiledCopyType:
        """The IR type."""
        return self._v.type  # type: ignore[return-value]

    @property
    def layout_tv_tiled(self) -> L.Layout:
        """(thread, value) to an index of the tile."""
        return self.type.layout_tv

    @property
    def tile_mn(self) -> Any:
        """The tile."""
        return self.type.tile

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    def get_slice(self, tid: Any) -> ThrCopy:
        """What one thread copies."""
        return ThrCopy(self, tid)

    thr_slice = get_slice


class ThrCopy:
    """One thread's part of a tiled copy."""

    __slots__ = ("copy", "tid")

    def __init__(self, copy: TiledCopy, tid: Any) -> None:
        self.copy, self.tid = copy, tid

    def _partition(self, tensor: Any, side: L.Layout) -> Any:
        type_, ref = self.copy.type, self.copy.atom.layout_ref_tv
        part = tiled_copy.tiled_copy_partition(tensor.layout, type_.layout_tv, type_.tile, ref, side)
        return _thread_slice(part, tensor, self.tid)

    def partition_S(self, tensor: Any) -> Any:
        """This thread's source elements: ((atom values, rest), rest M, rest N, ...)."""
        return self._partition(tensor, self.copy.atom.layout_src_tv)

    def partition_D(self, tensor: Any) -> Any:
        """This thread's destination elements."""
        return self._partition(tensor, self.copy.atom.layout_dst_tv)

    def retile(self, fragment: Tensor) -> Tensor:
        """A fragment partitioned for an mma in the order this copy walks it; no data moves."""
        type_ = self.copy.type
        values = L.size(self.copy.atom.layout_ref_tv[1])
        return fragment.with_layout(tiled_copy.tiled_copy_retile(fragment.layout, type_.layout_tv, type_.tile, values))


class TiledMma:
    """An mma atom repeated over (M, N, K)."""

    __slots__ = ("_v", "mma_atom")

    def __init__(self, value: Value, atom: MmaAtom) -> None:
        self._v = value
        self.mma_atom = atom

    @property
    def type(self) -> t.TiledMmaType:
        """The IR type."""
        return self._v.type  # type: ignore[return-value]

    @property
    def atom_layout(self) -> L.Layout:
        """How atoms are laid over (M, N, K)."""
        return self.type.atom_layout

    @property
    def permutation_mnk(self) -> Any:
        """Permutation tile."""
        return self.type.permutation

    @property
    def tile_size_mnk(self) -> tuple[Any, ...]:
        """Extents (M, N, K) that all threads compute together."""
        tile = tiled_mma.mma_tile(self.mma_atom.shape_mnk, self.atom_layout, self.permutation_mnk)
        return tuple(L.size(m) if isinstance(m, L.Layout) else m for m in tile)

    @property
    def thr_layout_vmnk(self) -> L.Layout:
        """Thread layout over (V, M, N, K)."""
        return tiled_mma.mma_thread_layout(self.mma_atom.thr_layout, self.atom_layout)

    def tv_layout_tiled(self, operand: str) -> tuple[Any, L.Layout]:
        """(extents, (thread, value) layout) of an operand over the tile."""
        atom = self.mma_atom
        return tiled_mma.tiled_mma_tv(
            operand, atom.layout_tv(operand), atom.shape_mnk, self.atom_layout, atom.thr_layout, self.permutation_mnk
        )

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    def get_slice(self, tid: Any) -> ThrMma:
        """What one thread holds."""
        return ThrMma(self, tid)

    thr_slice = get_slice

    def _layout(self, operand: str, layout: Any) -> Any:
        atom = self.mma_atom
        own = atom.layout_tv(operand)
        return tiled_mma.tiled_mma_partition(
            operand, layout, own, atom.shape_mnk, self.atom_layout, self.permutation_mnk
        )

    def _fragment(self, operand: str, tensor: Any, dtype: type[Numeric] | None, stages: int | None) -> Tensor:
        from .numeric import BY_IR

        index = "abcd".index(operand)
        kind = dtype or BY_IR[self.mma_atom.op.types[index].text]
        layout = tensor.layout.outer if isinstance(tensor.layout, L.ComposedLayout) else tensor.layout
        mine, _ = tiled_mma.tiled_mma_slice(operand, self._layout(operand, compact_basis(layout)), (0, 0, 0, 0))
        return make_rmem_tensor(tiled_mma.fragment_layout(mine, stages), kind)

    def make_fragment_A(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of A: (V, M, K)."""
        return self._fragment("a", tensor, None, stages)

    def make_fragment_B(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of B: (V, N, K)."""
        return self._fragment("b", tensor, None, stages)

    def make_fragment_C(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of C: (V, M, N)."""
        return self._fragment("c", tensor, None, stages)


class ThrMma:
    """One thread's part of a tiled mma."""

    __slots__ = ("mma", "tid")

    def __init__(self, mma: TiledMma, tid: Any) -> None:
        self.mma, self.tid = mma, tid

    def _partition(self, operand: str, tensor: Any) -> Any:
        part = self.mma._layout(operand, tensor.layout)
        coord = tiled_mma.mma_thread_coord(self.mma.thr_layout_vmnk, to_leaves(self.tid))
        if isinstance(part, L.ComposedLayout):
            mine, offset = tiled_mma.tiled_mma_slice(operand, part.outer, coord)
            moved = L.ComposedLayout(part.inner, L.int_tuple_add(part.offset, offset), mine)
            return tensor.with_layout(moved)
        mine, offset = tiled_mma.tiled_mma_slice(operand, part, coord)
        return tensor.at(offset, mine)

    def partition_A(self, tensor: Any) -> Any:
        """This thread's part of A: (V, M, K)."""
        return self._partition("a", tensor)

    def partition_B(self, tensor: Any) -> Any:
        """This thread's part of B: (V, N, K)."""
        return self._partition("b", tensor)

    def partition_C(self, tensor: Any) -> Any:
        """This thread's part of C or D: (V, M, N)."""
        return self._partition("c", tensor)


def make_tiled_copy(atom: CopyAtom, layout_tv: L.Layout, tile_mn: Any) -> TiledCopy:
    """A copy atom laid over a tile: ``layout_tv`` maps (thread, value) to a column-major index of it."""
    tile = tile_mn if isinstance(tile_mn, L.Tile) else L.Tile(*to_leaves(tile_mn))
    tv.check_thread_value(layout_tv, tile)
    return TiledCopy(Builder.current().make_tiled_copy(atom.ir_value(), layout_tv, tile), atom)


def make_tiled_copy_tv(atom: CopyAtom, thr: L.Layout, val: L.Layout) -> TiledCopy:
    """A tiled copy from a thread and a value layout."""
    extents, layout_tv = tv.make_layout_tv(thr, val)
    return make_tiled_copy(atom, layout_tv, extents)


def make_tiled_mma(atom: MmaAtom, atom_layout: L.Layout, permutation: Any = None) -> TiledMma:
    """An mma atom repeated over (M, N, K) by ``atom_layout``."""
    tile = permutation if isinstance(permutation, L.Tile) else L.Tile(*(permutation or (None, None, None)))
    return TiledMma(Builder.current().make_tiled_mma(atom.ir_value(), atom_layout, tile), atom)


def _copy_for(operand: str, atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    extents, layout_tv = mma.tv_layout_tiled(operand)
    return make_tiled_copy(atom, layout_tv, extents)


def make_tiled_copy_A(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """A tiled copy that fills A fragments."""
    return _copy_for("a", atom, mma)


def make_tiled_copy_B(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """A tiled copy that fills B fragments."""
    return _copy_for("b", atom, mma)


def make_tiled_copy_C(atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    """A tiled copy that moves C fragments."""
    return _copy_for("c", atom, mma)


def with_state(atom: Any, state: dict[str, Any]) -> Any:
    """The atom (or tiled view) with state fields set."""
    if not state:
        return atom
    if isinstance(atom, TiledCopy):
        b = Builder.current()
        changed = atom.atom.set_value(state)
        return TiledCopy(b.make_tiled_copy(changed.ir_value(), atom.type.layout_tv, atom.type.tile), changed)
    if isinstance(atom, TiledMma):
        b = Builder.current()
        changed = atom.mma_atom.set_value(state)
        made = b.make_tiled_mma(changed.ir_value(), atom.type.atom_layout, atom.type.permutation)
        return TiledMma(made, changed)
    return atom.set_value(state)


def _memref(x: Any) -> Value:
    if not isinstance(x, Tensor):
        what = "a coordinate tensor" if isinstance(x, CoordTensor) else repr(x)
        raise TraceError(f"{what} is no memory", Builder.current().location(), "pass a tensor with a pointer")
    return x.ir_value()


def copy(atom: Any, src: Tensor, dst: Tensor, *, pred: Any = None, **state: Any) -> None:
    """Copies a partitioned source to a destination of equal shape; keywords set atom state first.

    Args:
        atom: A copy atom or tiled copy.
        src: Source; mode 0 holds the values of atom calls.
        dst: Destination.
        pred: A Boolean, or register memory of Booleans, one per atom call; false lanes keep the destination.
        state: State fields of the atom, e.g. ``soffset`` (elements).
    """
    operands = [with_state(atom, state).ir_value(), _memref(src), _memref(dst)]
    if pred is not None:
        operands.append(pred.ir_value())
    Builder.current().emit("fly.copy", operands)


def gemm(
    atom: Any,
    d: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    *,
    traversal_order: str | None = None,
    traversal_layout: Any = None,
    **state: Any,
) -> None:
    """``d = a * b + c`` over fragments (V,M,K), (V,N,K), (V,M,N).

    Args:
        traversal_order: Order of the atom calls, first letter innermost; default ``NMK``.
        traversal_layout: A static layout whose entries are column-major (m, n, k) indices.
    """
    attrs: dict[str, Any] = {}
    if traversal_order is not None:
        attrs["traversal_order"] = traversal_order
    if traversal_layout is not None:
        attrs["traversal_layout"] = traversal_layout
    operands = [with_state(atom, state).ir_value(), *(_memref(x) for x in (d, a, b, c))]
    Builder.current().emit("fly.gemm", operands, (), attrs or None)


def copy_atom_call(atom: CopyAtom, src: Tensor, dst: Tensor, *, pred: Any = None) -> None:
    """One copy instruction."""
    operands = [atom.ir_value(), _memref(src), _memref(dst)]
    Builder.current().emit("fly.copy_atom_call", operands + ([] if pred is None else [pred.ir_value()]))


def mma_atom_call(atom: MmaAtom, d: Tensor, a: Tensor, b: Tensor, c: Tensor) -> None:
    """One matrix instruction."""
    Builder.current().emit("fly.mma_atom_call", [atom.ir_value(), *(_memref(x) for x in (d, a, b, c))])
