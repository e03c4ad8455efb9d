"""The ``fly`` operations on atoms: making them, their calls, whole copies and gemms.

Copy and mma calls exist in memory form (operands are memrefs) and in SSA form (``*_ssa``: register
operands are values).
"""

from __future__ import annotations

from ..errors import FlyError
from . import types as t
from .core import ANY, Op, Value, op
from .ops_fly import memref_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .protocols import CopyOp


@op
class MakeCopyAtom(Op):
    """``fly.make_copy_atom``: attr ``valBits``; the operation is in the result type."""

    __slots__ = ()
    name = "fly.make_copy_atom"
    pure = True
    arity = (0, 0, 1, 0)
    attr_names = ("valBits",)

    def verify(self) -> None:
        r = self.results[0].type
        if not isinstance(r, t.CopyAtomType) or r.val_bits != self.attrs.get("valBits"):
            raise self.fail(f"valBits {self.attrs.get('valBits')} for {r}", "use the width of the type, in bits")
        if r.val_bits < 1 or r.op.bit_size % r.val_bits:
            what = f"{r}: {r.op.bit_size} bits are no whole number of values of {r.val_bits} bits"
            raise self.fail(what, "use the width of an element, or a divisor of the atom's")


@op
class MakeMmaAtom(Op):
    """``fly.make_mma_atom``: the operation is in the result type."""

    __slots__ = ()
    name = "fly.make_mma_atom"
    pure = True
    arity = (0, 0, 1, 0)

    def verify(self) -> None:
        if not isinstance(self.results[0].type, t.MmaAtomType):
            raise self.fail(f"result {self.results[0].type}", "the result is an mma atom")


@op
class AtomSetValue(Op):
    """``fly.atom.set_value``: operands (atom, value); attr ``field``; gives the atom with that state field changed."""

    __slots__ = ()
    name = "fly.atom.set_value"
    pure = True
    arity = (2, 2, 1, 0)
    attr_names = ("field",)

    def verify(self) -> None:
        from .atom_state import state_of

        atom = self.operands[0].type
        if self.results[0].type != atom:
            raise self.fail(f"{atom} becomes {self.results[0].type}", "the atom keeps its type")
        try:
            state_of(atom).check_value(str(self.attrs.get("field")), self.operands[1].type)
        except FlyError as e:
            raise e.at(self.loc) from None


def copy_payload(o: Op, index: int = 0) -> CopyOp:
    """The copy operation of an atom operand."""
    type_ = o.operands[index].type
    if isinstance(type_, t.TiledCopyType):
        type_ = type_.atom
    if not isinstance(type_, t.CopyAtomType):
        raise o.fail(f"operand {index} is {type_}", "pass a copy atom")
    return type_.op


def mma_payload(o: Op, index: int = 0) -> t.MmaAtomType:
    """The mma atom type of an atom operand."""
    type_ = o.operands[index].type
    if isinstance(type_, t.TiledMmaType):
        type_ = type_.atom
    if not isinstance(type_, t.MmaAtomType):
        raise o.fail(f"operand {index} is {type_}", "pass an mma atom")
    return type_


def operand_ptr(type_: t.Type) -> t.PtrType | None:
    """The pointer type of a memref operand, ``None`` for a value in registers."""
    return type_.ptr if isinstance(type_, t.MemRefType) else None


@op
class CopyAtomCall(Op):
    """``fly.copy_atom_call``: operands (atom, src, dst[, pred]); pred is an i1 or a register memref of i1."""

    __slots__ = ()
    name = "fly.copy_atom_call"
    arity = (3, 4, 0, 0)

    def verify(self) -> None:
        if len(self.operands) not in (3, 4):
            raise self.fail(f"{len(self.operands)} operands", "pass atom, source, destination and at most a predicate")
        src, dst = memref_of(self, 1), memref_of(self, 2)
        _check_pred(self, 3)
        _check_one_pred(self)
        _check_sides(self, src, dst)


def _check_sides(o: Op, src: t.MemRefType, dst: t.MemRefType) -> None:
    """Checks source and destination of an atom call against each other and against the atom."""
    payload = copy_payload(o)
    if src.elem != dst.elem:
        raise o.fail(f"copies {src.elem} to {dst.elem}", "use equal element types (fx.recast_iter views them)")
    try:
        payload.check_operands(src.ptr, dst.ptr)
    except FlyError as e:
        raise e.at(o.loc) from None
    _check_atom_count(o, payload, src, "source")
    _check_atom_count(o, payload, dst, "destination")


def _check_atom_count(o: Op, payload: CopyOp, m: t.MemRefType, what: str) -> None:
    from ..layout import size

    if payload.bit_size == 0:
        return
    count = size(m.layout)
    if not isinstance(count, int):
        raise o.fail(f"the {what} {m} has a run-time number of elements", "an atom moves a static number of them")
    if count * m.elem.bits != payload.bit_size:
        raise o.fail(
            f"the {what} {m} holds {count * m.elem.bits} bits, the atom {payload} moves {payload.bit_size}",
            f"give it {payload.bit_size // m.elem.bits} elements of {m.elem}",
        )


def _check_pred(o: Op, index: int) -> None:
    if len(o.operands) > index:
        p = o.operands[index].type
        if p != t.I1 and not (isinstance(p, t.MemRefType) and p.elem == t.I1 and p.space == "register"):
            raise o.fail(f"predicate of type {p}", "pass an i1, or register memory of i1")


def _check_one_pred(o: CopyAtomCall) -> None:
    from ..layout import size

    p = o.operands[3].type if len(o.operands) > 3 else None
    if isinstance(p, t.MemRefType) and size(p.layout) != 1:
        raise o.fail(f"the predicate {p} has {size(p.layout)} entries", "give one atom call one entry")


@op
class CopyAtomCallSSA(Op):
    """``fly.copy_atom_call_ssa``: register operands are values.

    Attr ``segments`` counts (src, dst, pred, old) operands after the atom.  Without a dst the copied
    value is the result; with a predicate ``old`` is the value false lanes keep.
    """

    __slots__ = ()
    name = "fly.copy_atom_call_ssa"
    arity = (2, 5, ANY, 0)
    attr_names = ("segments",)

    def parts(self) -> tuple[Value, Value | None, Value | None, Value | None]:
        """(src, dst, pred, old), absent ones ``None``."""
        rest = list(self.operands[1:])
        out: list[Value | None] = [rest.pop(0) if n else None for n in self.attrs["segments"]]
        src = out[0]
        if src is None:
            raise self.fail("no source", "segments start with 1")
        return src, out[1], out[2], out[3]

    def verify(self) -> None:
        segments = self.attrs.get("segments")
        good = isinstance(segments, tuple) and len(segments) == 4 and all(n in (0, 1) for n in segments)
        if not good or not isinstance(segments, tuple) or 1 + sum(segments) != len(self.operands):
            raise self.fail(f"segments {segments!r}", "count src, dst, pred and old operands")
        src, dst, pred, old = self.parts()
        if pred is not None and pred.type != t.I1:
            raise self.fail(f"predicate of type {pred.type}", "the SSA form takes one i1")
        if (dst is None) != (len(self.results) == 1):
            raise self.fail("needs either a destination or a result", "a copy into registers has a result")
        if dst is None and pred is not None and (old is None or old.type != self.results[0].type):
            raise self.fail("a predicated copy into registers has no old value", "pass what false lanes keep")
        if old is not None and (dst is not None or pred is None):
            raise self.fail("an old value that no lane keeps", "pass one to a predicated copy into registers only")
        to = self.results[0].type if dst is None else dst.type
        _check_sides(self, _memory_of(self, src.type, "source"), _memory_of(self, to, "destination"))


def _memory_of(o: Op, type_: t.Type, what: str) -> t.MemRefType:
    """The memref that an operand in SSA form stands for: itself, or the registers of a value."""
    from ..layout import Layout

    if isinstance(type_, t.MemRefType):
        return type_
    if not isinstance(type_, (t.ScalarType, t.VectorType)):
        raise o.fail(f"the {what} is {type_}", "pass a memref, a number or a vector")
    return t.MemRefType(t.PtrType(t.scalar_of(type_), "register"), Layout(t.count_of(type_), 1))


def _check_mma_operand(o: Op, what: str, elem: t.ScalarType, want: t.ScalarType) -> None:
    if elem != want:
        raise o.fail(f"operand {what} holds {elem}", f"the atom takes {want}")


@op
class MmaAtomCall(Op):
    """``fly.mma_atom_call``: operands (atom, d, a, b, c), memrefs."""

    __slots__ = ()
    name = "fly.mma_atom_call"
    arity = (5, 5, 0, 0)

    def verify(self) -> None:
        from ..layout import size

        if len(self.operands) != 5:
            raise self.fail(f"{len(self.operands)} operands", "pass atom, d, a, b, c")
        payload = mma_payload(self).op
        ta, tb, tc, td = payload.types
        layouts = (payload.layout_c, payload.layout_a, payload.layout_b, payload.layout_c)
        for i, (what, want, layout) in enumerate(zip("dabc", (td, ta, tb, tc), layouts, strict=True), 1):
            m = memref_of(self, i)
            _check_mma_operand(self, what, m.elem, want)
            count, need = size(m.layout), size(layout.shape[1])
            if count != need:
                raise self.fail(f"operand {what} has {count} elements", f"the atom takes {need} per lane")


@op
class MmaAtomCallSSA(Op):
    """``fly.mma_atom_call_ssa``: operands (atom, a, b, c), values; the result is d."""

    __slots__ = ()
    name = "fly.mma_atom_call_ssa"
    pure = True
    arity = (4, 4, 1, 0)

    def verify(self) -> None:
        from ..layout import size

        payload = mma_payload(self).op
        ta, tb, tc, td = payload.types
        layouts = (payload.layout_a, payload.layout_b, payload.layout_c, payload.layout_c)
        values = [*(v.type for v in self.operands[1:]), self.results[0].type]
        if len(values) != 4:
            raise self.fail(f"{len(self.operands)} operands", "pass atom, a, b, c")
        for what, got, elem, layout in zip("abcd", values, (ta, tb, tc, td), layouts, strict=True):
            want = t.value_type(int(size(layout.shape[1])), elem)
            if got != want:
                raise self.fail(f"operand {what} is {got}", f"the atom takes {want}")


@op
class MakeTiledCopy(Op):
    """``fly.make_tiled_copy``: operand the atom; layout and tile are in the result type."""

    __slots__ = ()
    name = "fly.make_tiled_copy"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        r = self.results[0].type
        if not isinstance(r, t.TiledCopyType) or self.operands[0].type != r.atom:
            raise self.fail(f"{self.operands[0].type} gives {r}", "the result is a tiled copy of the atom")


@op
class MakeTiledMma(Op):
    """``fly.make_tiled_mma``: operand the atom; atom layout and permutation are in the result type."""

    __slots__ = ()
    name = "fly.make_tiled_mma"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        r = self.results[0].type
        if not isinstance(r, t.TiledMmaType) or self.operands[0].type != r.atom:
            raise self.fail(f"{self.operands[0].type} gives {r}", "the result is a tiled mma of the atom")


@op
class Copy(Op):
    """``fly.copy``: operands (atom or tiled copy, src, dst[, pred]); expanded into atom calls."""

    __slots__ = ()
    name = "fly.copy"
    arity = (3, 4, 0, 0)

    def verify(self) -> None:
        copy_payload(self)
        src, dst = memref_of(self, 1), memref_of(self, 2)
        if src.elem != dst.elem:
            raise self.fail(f"copies {src.elem} to {dst.elem}", "use equal element types")
        _check_pred(self, 3)


@op
class Gemm(Op):
    """``fly.gemm``: operands (atom or tiled mma, d, a, b, c); attrs ``traversal_order`` / ``traversal_layout``."""

    __slots__ = ()
    name = "fly.gemm"
    arity = (5, 5, 0, 0)
    attr_names = ("traversal_order", "traversal_layout")

    def verify(self) -> None:
        ta, tb, tc, td = mma_payload(self).op.types
        for i, (what, want) in enumerate(zip("dabc", (td, ta, tb, tc), strict=True), 1):
            _check_mma_operand(self, what, memref_of(self, i).elem, want)
        if self.attrs.get("traversal_order") is not None and self.attrs.get("traversal_layout") is not None:
            raise self.fail("both a traversal order and a layout", "give one of them")
