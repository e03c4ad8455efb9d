"""Tiled copies and tiled mmas of the authoring language, and one thread's part of them."""

from __future__ import annotations

from .. import layout as L
from ..atoms import wrappers
from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from .atoms import CopyAtom, MmaAtom, located, refuse_no_thread, thread_slice
from .layouts import compact_basis, make_layout_tv, plain_layout, raw_layout
from .leaves import from_leaves, to_leaves
from .numeric import BY_IR
from .reach import thread_coord
from .tensor import Tensor, make_rmem_tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Value


class TiledCopy:
    """A copy atom laid over a tile of a tensor's first modes.

    Attributes:
        atom: The copy atom.
        desc: Its layouts.
    """

    __slots__ = ("_v", "atom", "desc")

    def __init__(self, value: Value, atom: CopyAtom, desc: wrappers.TiledCopy | None = None) -> None:
        self._v = value
        self.atom = atom
        self.desc = wrappers.TiledCopy.of(value.type) if desc is None else desc  # type: ignore[arg-type]

    @property
    def type(self) -> t.TiledCopyType:
        """The IR type."""
        return self.desc.type

    @property
    def layout_tv_tiled(self) -> Any:
        """(thread, value) to an index of the tile."""
        return from_leaves(self.desc.layout_tv)

    @property
    def layout_src_tv_tiled(self) -> Any:
        """(thread, (atom value, rest value)) of the source into the tile."""
        return from_leaves(self.desc.layout_tiled("src"))

    @property
    def layout_dst_tv_tiled(self) -> Any:
        """(thread, (atom value, rest value)) of the destination into the tile."""
        return from_leaves(self.desc.layout_tiled("dst"))

    @property
    def tile_mn(self) -> L.Tile:
        """The tile."""
        return self.desc.tile

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    def set_value(self, field: Any, value: Any = None) -> TiledCopy:
        """The tiled copy with state of its atom changed."""
        atom = self.atom.set_value(field, value)
        made = Builder.current().make_tiled_copy(atom.ir_value(), self.type.layout_tv, self.type.tile)
        return TiledCopy(made, atom, self.desc)

    def get_slice(self, tid: Any) -> ThrCopy:
        """What one thread copies."""
        return ThrCopy(self, tid)

    thr_slice = get_slice

    def partition(self, side: str, tensor: Any, tid: Any) -> Any:
        """One thread's elements of a tensor, on side ``src`` or ``dst``."""
        part = located(lambda: self.desc.partition(side, tensor.raw_layout))
        return thread_slice(part, tensor, tid)

    def retile(self, fragment: Any) -> Any:
        """A fragment in the order this copy walks it; no data moves."""
        return fragment.with_layout(located(lambda: self.desc.retile(fragment.raw_layout)))

    def __repr__(self) -> str:
        return f"TiledCopy({self.type})"


class ThrCopy:
    """One thread's part of a tiled copy."""

    __slots__ = ("copy", "tid")

    def __init__(self, copy: TiledCopy, tid: Any) -> None:
        self.copy, self.tid = copy, tid

    def partition_S(self, tensor: Any) -> Any:
        """This thread's source elements: ((atom values, rest), rest M, rest N, ...)."""
        return self.copy.partition("src", tensor, self.tid)

    def partition_D(self, tensor: Any) -> Any:
        """This thread's destination elements."""
        return self.copy.partition("dst", tensor, self.tid)

    def retile(self, fragment: Any) -> Any:
        """A fragment partitioned for an mma in the order this copy walks it; no data moves."""
        return self.copy.retile(fragment)


class TiledMma:
    """An mma atom repeated over (M, N, K).

    Attributes:
        mma_atom: The mma atom.
        desc: Its layouts.
    """

    __slots__ = ("_v", "desc", "mma_atom")

    def __init__(self, value: Value, atom: MmaAtom, desc: wrappers.TiledMma | None = None) -> None:
        self._v = value
        self.mma_atom = atom
        self.desc = wrappers.TiledMma.of(value.type) if desc is None else desc  # type: ignore[arg-type]

    @property
    def type(self) -> t.TiledMmaType:
        """The IR type."""
        return self.desc.type

    @property
    def atom_layout(self) -> Any:
        """How atoms are laid over (M, N, K)."""
        return from_leaves(self.desc.atom_layout)

    @property
    def permutation_mnk(self) -> L.Tile:
        """Permutation tile."""
        return self.desc.permutation

    @property
    def tile_size_mnk(self) -> tuple[int, int, int]:
        """Extents (M, N, K) that all threads compute together."""
        return self.desc.tile_size_mnk

    @property
    def thr_layout_vmnk(self) -> Any:
        """Thread layout over (V, M, N, K)."""
        return from_leaves(self.desc.thr_layout_vmnk)

    @property
    def tv_layout_A_tiled(self) -> Any:
        """(thread, value) of A over the tile (M, K)."""
        return from_leaves(self.desc.layout_tiled("a")[1])

    @property
    def tv_layout_B_tiled(self) -> Any:
        """(thread, value) of B over the tile (N, K)."""
        return from_leaves(self.desc.layout_tiled("b")[1])

    @property
    def tv_layout_C_tiled(self) -> Any:
        """(thread, value) of C over the tile (M, N)."""
        return from_leaves(self.desc.layout_tiled("c")[1])

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    def set_value(self, field: Any, value: Any = None) -> TiledMma:
        """The tiled mma with state of its atom changed."""
        atom = self.mma_atom.set_value(field, value)
        made = Builder.current().make_tiled_mma(atom.ir_value(), self.type.atom_layout, self.type.permutation)
        return TiledMma(made, atom, self.desc)

    def get_slice(self, tid: Any) -> ThrMma:
        """What one thread holds."""
        return ThrMma(self, tid)

    thr_slice = get_slice

    def partition(self, operand: str, tensor: Any, coord: Any) -> Any:
        """An operand's elements at the (V, M, N, K) coordinate of a thread, or at a thread index."""
        desc, at = self.desc, to_leaves(coord)
        refuse_no_thread(at, desc.thr_layout_vmnk.shape)
        where = at if isinstance(at, tuple) else desc.thread_coord(at)
        part = located(lambda: desc.partition(operand, tensor.raw_layout))
        where = thread_coord(where, plain_layout(part)[0], tensor)
        if isinstance(part, L.ComposedLayout):
            mine, offset = L.tiled_mma_slice(operand, plain_layout(part.outer), where)
            return tensor.with_layout(L.ComposedLayout(part.inner, L.int_tuple_add(part.offset, offset), mine))
        mine, offset = L.tiled_mma_slice(operand, part, where)
        return tensor.at(offset, mine)

    def make_fragment(self, operand: str, x: Any, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of an operand; ``stages`` adds a last mode.

        Args:
            operand: ``a``, ``b``, ``c`` or ``d``, in either case.
            x: A tensor of the whole tile, in memory or of coordinates, or a layout.
            stages: Copies of the fragment, for software pipelines.
        """
        name = operand.lower()
        if name not in wrappers.OPERANDS:
            raise TraceError(f"make_fragment({operand!r})", Builder.current().location(), "use A, B, C or D")
        raw = raw_layout(x)
        plain = compact_basis(plain_layout(raw))
        kind = BY_IR[self.desc.atom.types[wrappers.OPERANDS.index(name)].text]
        mine = located(lambda: L.tiled_mma_slice(name, self.desc.partition(name, plain), (0, 0, 0, 0))[0])
        return make_rmem_tensor(L.fragment_layout(mine, stages), kind)

    def make_fragment_A(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of A: (V, M, K[, stages])."""
        return self.make_fragment("a", tensor, stages)

    def make_fragment_B(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of B: (V, N, K[, stages])."""
        return self.make_fragment("b", tensor, stages)

    def make_fragment_C(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for one thread's part of C: (V, M, N[, stages])."""
        return self.make_fragment("c", tensor, stages)

    def __repr__(self) -> str:
        return f"TiledMma({self.type})"


class ThrMma:
    """One thread's part of a tiled mma."""

    __slots__ = ("mma", "tid")

    def __init__(self, mma: TiledMma, tid: Any) -> None:
        self.mma, self.tid = mma, tid

    def partition_A(self, tensor: Any) -> Any:
        """This thread's part of A: (V, M, K)."""
        return self.mma.partition("a", tensor, self.tid)

    def partition_B(self, tensor: Any) -> Any:
        """This thread's part of B: (V, N, K)."""
        return self.mma.partition("b", tensor, self.tid)

    def partition_C(self, tensor: Any) -> Any:
        """This thread's part of C or D: (V, M, N)."""
        return self.mma.partition("c", tensor, self.tid)

    def make_fragment_A(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for this thread's part of A, given the whole tile: (V, M, K[, stages])."""
        return self.mma.make_fragment("a", tensor, stages)

    def make_fragment_B(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for this thread's part of B, given the whole tile: (V, N, K[, stages])."""
        return self.mma.make_fragment("b", tensor, stages)

    def make_fragment_C(self, tensor: Any, *, stages: int | None = None) -> Tensor:
        """Registers for this thread's part of C, given the whole tile: (V, M, N[, stages])."""
        return self.mma.make_fragment("c", tensor, stages)


# --- making them ---------------------------------------------------------------------------------


def make_tiled_copy(atom: CopyAtom, layout_tv: Any, tile_mn: Any) -> TiledCopy:
    """A copy atom laid over a tile: ``layout_tv`` maps (thread, value) to a column-major index of it."""
    tile = to_leaves(tile_mn)
    raw = to_leaves(layout_tv)
    modes = tile if isinstance(tile, tuple) else (tile,)
    desc = located(lambda: wrappers.TiledCopy(atom.desc, raw, tile if isinstance(tile, L.Tile) else L.Tile(*modes)))
    return TiledCopy(Builder.current().make_tiled_copy(atom.ir_value(), desc.layout_tv, desc.tile), atom, desc)


def make_tiled_copy_tv(atom: CopyAtom, thr: Any, val: Any) -> TiledCopy:
    """A tiled copy from a thread and a value layout."""
    extents, layout_tv = located(lambda: make_layout_tv(thr, val))
    return make_tiled_copy(atom, layout_tv, extents)


def make_tiled_mma(atom: MmaAtom, atom_layout: Any, permutation: Any = None) -> TiledMma:
    """An mma atom repeated over (M, N, K) by ``atom_layout``, with a permutation tile over (M, N, K)."""
    tile = to_leaves(permutation) if permutation is not None else None
    tile = L.Tile(*tile) if isinstance(tile, tuple) else tile
    desc = located(lambda: wrappers.TiledMma(atom.desc, to_leaves(atom_layout), tile))
    made = Builder.current().make_tiled_mma(atom.ir_value(), desc.atom_layout, desc.permutation)
    return TiledMma(made, atom, desc)


def _copy_for(operand: str, atom: CopyAtom, mma: TiledMma) -> TiledCopy:
    extents, layout_tv = mma.desc.layout_tiled(operand)
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


# --- the same by function ------------------------------------------------------------------------


def tiled_copy_partition_src(tiled: TiledCopy, tensor: Any, thr: Any) -> Any:
    """One thread's source elements of a tensor."""
    return tiled.partition("src", tensor, thr)


def tiled_copy_partition_dst(tiled: TiledCopy, tensor: Any, thr: Any) -> Any:
    """One thread's destination elements of a tensor."""
    return tiled.partition("dst", tensor, thr)


def tiled_copy_retile(tiled: TiledCopy, fragment: Any) -> Any:
    """A fragment in the order a tiled copy walks it."""
    return tiled.retile(fragment)


def tiled_mma_partition(operand: str, tiled: TiledMma, tensor: Any, coord: Any) -> Any:
    """An operand's elements at the (V, M, N, K) coordinate of a thread, or at a thread index."""
    return tiled.partition(operand.lower(), tensor, coord)


def tiled_mma_partition_shape(operand: str, tiled: TiledMma, shape: Any) -> Any:
    """The shape (V, M, N), (V, M, K) or (V, N, K) of one thread's part of a tile of a static shape."""
    name, whole = operand.lower(), compact_basis(L.make_identity_layout(to_leaves(shape)))
    part = located(lambda: tiled.desc.partition(name, whole))
    return from_leaves(L.tiled_mma_slice(name, part, (0, 0, 0, 0))[0].shape)


def mma_make_fragment(operand: str, tiled: TiledMma, x: Any, *, stages: int | None = None) -> Tensor:
    """Registers for one thread's part of an operand."""
    return tiled.make_fragment(operand, x, stages)


__all__ = [
    "ThrCopy", "ThrMma", "TiledCopy", "TiledMma", "make_tiled_copy", "make_tiled_copy_A",
    "make_tiled_copy_B", "make_tiled_copy_C", "make_tiled_copy_tv", "make_tiled_mma", "mma_make_fragment",
    "tiled_copy_partition_dst", "tiled_copy_partition_src", "tiled_copy_retile", "tiled_mma_partition",
    "tiled_mma_partition_shape",
]  # fmt: skip
