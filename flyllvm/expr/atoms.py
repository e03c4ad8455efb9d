"""Atoms of the authoring language: an atom's value with its description, and one thread's view of it."""

from __future__ import annotations

from .. import layout as L
from ..atoms import wrappers
from ..errors import FlyError, TraceError
from ..ir import types as t
from ..ir.builder import Builder
from .layouts import plain_layout
from .leaves import from_leaves, to_leaves
from .numeric import Numeric
from .pointer import elem_ir
from .reach import thread_coord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..ir.core import Value


def _state_value(atom: Any, field: str, value: Any) -> Value:
    from ..ir.atom_state import state_of

    wanted = state_of(atom.type).field(field).type
    if isinstance(value, Numeric) and isinstance(wanted, t.IntType) and value.signed is not None:
        from .numeric import BY_IR, integer

        value = integer(value, f"{field} of the atom", BY_IR[wanted.text]).ir_value()
    v = value.ir_value() if hasattr(value, "ir_value") else value
    if not isinstance(v, (int, float)):
        return v  # type: ignore[no-any-return]
    return Builder.current().constant(v, wanted)


def located(make: Callable[[], Any]) -> Any:
    """What ``make`` returns; its errors get the author's line."""
    try:
        return make()
    except FlyError as e:
        b = Builder.active()
        raise (e if b is None else e.at(b.location())) from None


class Atom:
    """Base of atoms: an IR value with the description of its type; setting state gives a new atom."""

    __slots__ = ("_v", "desc")

    desc: Any

    def __init__(self, value: Value, desc: Any = None) -> None:
        self._v = value
        self.desc = self._describe(value) if desc is None else desc

    @staticmethod
    def _describe(value: Value) -> Any:
        raise TraceError(f"{value} is no atom", fix="use fx.make_copy_atom or fx.make_mma_atom")

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    @property
    def op(self) -> Any:
        """The copy or mma operation."""
        return self.desc.op

    @property
    def thr_layout(self) -> Any:
        """Lanes that execute the instruction together."""
        return from_leaves(self.desc.thr_layout)

    def set_value(self, field: Any, value: Any = None) -> Any:
        """The atom with one state field changed, or several from a mapping.

        Raises:
            StateError: The atom has no such field, or the value has the wrong type.
        """
        v, b = self._v, Builder.current()
        for name, x in field.items() if isinstance(field, dict) else ((field, value),):
            v = b.set_value(v, name, located(lambda v=v, name=name, x=x: _state_value(v, name, x)))  # type: ignore[misc]
        return type(self)(v, self.desc)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.desc.type})"


class CopyAtom(Atom):
    """One copy instruction seen as values of ``val_bits`` bits."""

    __slots__ = ()

    desc: wrappers.CopyAtom

    @staticmethod
    def _describe(value: Value) -> wrappers.CopyAtom:
        return wrappers.CopyAtom(value.type)  # type: ignore[arg-type]

    @property
    def type(self) -> t.CopyAtomType:
        """The IR type."""
        return self.desc.type

    @property
    def val_bits(self) -> int:
        """Bits of one value."""
        return self.desc.val_bits

    @property
    def layout_src_tv(self) -> Any:
        """(thread, value) of the source."""
        return from_leaves(self.desc.layout_tv("src"))

    @property
    def layout_dst_tv(self) -> Any:
        """(thread, value) of the destination."""
        return from_leaves(self.desc.layout_tv("dst"))

    @property
    def layout_ref_tv(self) -> Any:
        """(thread, value) that partitioning goes by."""
        return from_leaves(self.desc.layout_tv("ref"))


class MmaAtom(Atom):
    """One matrix instruction."""

    __slots__ = ()

    desc: wrappers.MmaAtom

    @staticmethod
    def _describe(value: Value) -> wrappers.MmaAtom:
        return wrappers.MmaAtom(value.type)  # type: ignore[arg-type]

    @property
    def type(self) -> t.MmaAtomType:
        """The IR type."""
        return self.desc.type

    @property
    def shape_mnk(self) -> tuple[int, int, int]:
        """(M, N, K)."""
        return self.desc.shape_mnk

    @property
    def layout_A_tv(self) -> Any:
        """(thread, value) of A, into the column-major index of (M, K)."""
        return from_leaves(self.desc.layout_tv("a"))

    @property
    def layout_B_tv(self) -> Any:
        """(thread, value) of B, into the column-major index of (N, K)."""
        return from_leaves(self.desc.layout_tv("b"))

    @property
    def layout_C_tv(self) -> Any:
        """(thread, value) of C and D, into the column-major index of (M, N)."""
        return from_leaves(self.desc.layout_tv("c"))


def make_copy_atom(op: Any, elem_type_or_bits: Any) -> CopyAtom:
    """A copy atom over values of a type or of a width in bits.

    Raises:
        AtomError: The instruction does not exist on the target, or the width does not divide it.
    """
    bits = elem_type_or_bits if isinstance(elem_type_or_bits, int) else elem_ir(elem_type_or_bits).bits
    desc = located(lambda: wrappers.CopyAtom(op, bits))
    return CopyAtom(Builder.current().make_copy_atom(desc.type), desc)


def make_mma_atom(op: Any) -> MmaAtom:
    """An mma atom.

    Raises:
        AtomError: The instruction does not exist on the target.
    """
    desc = located(lambda: wrappers.MmaAtom(op))
    return MmaAtom(Builder.current().make_mma_atom(desc.type), desc)


def atom_set_value(atom: Any, field: Any, value: Any = None) -> Any:
    """The atom with one state field changed, or several from a mapping."""
    return atom.set_value(field, value)


def refuse_no_thread(at: Any, shape: Any) -> None:
    """Refuses what is no thread of a partition.

    Raises:
        TraceError: It is none, or a known index outside of the threads.
    """
    from .coord_tensor import refuse_outside

    if at is L.STAR:
        where = Builder.current().location()
        raise TraceError("the thread None of a partition", where, "give the thread's index: fx.thread_idx.x")
    refuse_outside(at, shape)


def thread_slice(partition: Any, tensor: Any, tid: Any) -> Any:
    """Mode 0 of a partition at one thread."""
    outer = partition.outer if isinstance(partition, L.ComposedLayout) else partition
    at = to_leaves(tid)
    refuse_no_thread(at, plain_layout(outer)[0].shape)
    mine = thread_coord(at, plain_layout(outer)[0], tensor)
    coord = (mine, *(L.STAR,) * (L.rank(outer) - 1))
    kept, offset = L.slice_and_offset(coord, partition)
    return tensor.at(offset, kept)
