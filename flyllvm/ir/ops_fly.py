"""The ``fly`` operations: pointers, views, register memory, atoms, copy and gemm.

A layout operand carries its run-time leaves; its type shows them as ``?``.  Copy and mma operations
exist in memory form (operands are memrefs) and in SSA form (``*_ssa``: register operands are values).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import FlyError
from . import types as t
from .core import ANY, Op, Value, op

if TYPE_CHECKING:
    from .protocols import CopyOp


def _ptr(o: Op, index: int) -> t.PtrType:
    type_ = o.operands[index].type
    if not isinstance(type_, t.PtrType):
        raise o.fail(f"operand {index} is {type_}", "pass a pointer (fly.get_iter of a memref)")
    return type_


def _memref(o: Op, index: int) -> t.MemRefType:
    type_ = o.operands[index].type
    if not isinstance(type_, t.MemRefType):
        raise o.fail(f"operand {index} is {type_}", "pass a memref")
    return type_


def _offset_ok(value: Value) -> bool:
    return value.type in (t.I32, t.I64) or isinstance(value.type, t.IntTupleType)


# --- layouts as values ----------------------------------------------------------------------------


@op
class Static(Op):
    """``fly.static``: a value whose type says it all (a static layout, tile, int tuple, stateless atom)."""

    __slots__ = ()
    name = "fly.static"
    pure = True
    arity = (0, 0, 1, 0)

    def verify(self) -> None:
        from ..layout import is_static
        from .protocols import StatefulOp

        r = self.results[0].type
        op = r.op if isinstance(r, (t.CopyAtomType, t.MmaAtomType)) else None
        if isinstance(r, (t.LayoutType, t.IntTupleType)):
            if not is_static(r.value):
                raise self.fail(f"{r} has run-time leaves", "make it with fly.make_layout or fly.make_int_tuple")
        elif op is None or isinstance(op, StatefulOp):
            raise self.fail(f"result {r}", "only layouts, tiles, int tuples and atoms without state are static")


@op
class MakeIntTuple(Op):
    """``fly.make_int_tuple``: operands are the run-time leaves in order."""

    __slots__ = ()
    name = "fly.make_int_tuple"
    pure = True
    arity = (0, ANY, 1, 0)

    def verify(self) -> None:
        from ..layout import get_leaves, is_static

        r = self.results[0].type
        if not isinstance(r, t.IntTupleType):
            raise self.fail(f"result {r}", "the result is an int tuple")
        wanted = sum(not is_static(leaf) for leaf in get_leaves(r.value))
        if wanted != len(self.operands):
            raise self.fail(f"{len(self.operands)} operands for {r}", f"pass its {wanted} run-time leaves")


@op
class MakeLayout(Op):
    """``fly.make_layout``: operands (shape, stride)."""

    __slots__ = ()
    name = "fly.make_layout"
    pure = True
    arity = (2, 2, 1, 0)

    def verify(self) -> None:
        if len(self.operands) != 2 or any(not isinstance(o.type, t.IntTupleType) for o in self.operands):
            raise self.fail(f"operands {[str(o.type) for o in self.operands]}", "pass a shape and a stride int tuple")
        _check_layout_result(self, "Layout")


def _check_layout_result(o: Op, kind: str) -> None:
    r = o.results[0].type
    if not isinstance(r, t.LayoutType) or type(r.value).__name__ != kind:
        raise o.fail(f"result {r}", f"the result is a {kind}")


@op
class MakeComposedLayout(Op):
    """``fly.make_composed_layout``: operands (inner, offset, outer)."""

    __slots__ = ()
    name = "fly.make_composed_layout"
    pure = True
    arity = (3, 3, 1, 0)

    def verify(self) -> None:
        inner, offset, outer = (v.type for v in self.operands)
        if not isinstance(inner, t.LayoutType) or not isinstance(outer, t.LayoutType):
            raise self.fail(f"operands {inner} and {outer}", "pass an inner and an outer layout")
        if not isinstance(offset, t.IntTupleType):
            raise self.fail(f"offset {offset}", "pass an int tuple")
        _check_layout_result(self, "ComposedLayout")


@op
class MakeView(Op):
    """``fly.make_view``: pointer and layout give a memref; int tuple and layout give a coordinate tensor."""

    __slots__ = ()
    name = "fly.make_view"
    pure = True
    arity = (2, 2, 1, 0)

    def verify(self) -> None:
        r = self.results[0].type
        if isinstance(r, t.MemRefType):
            if self.operands[0].type != r.ptr:
                raise self.fail(f"pointer {self.operands[0].type} for {r}", "use the pointer type of the result")
        elif not isinstance(r, t.CoordTensorType):
            raise self.fail(f"result {r}", "the result is a memref or a coordinate tensor")
        layout = self.operands[1].type
        same = isinstance(layout, t.LayoutType) and (layout.value is r.layout or str(layout.value) == str(r.layout))
        if not same:
            raise self.fail(f"layout {layout} for {r}", f"pass a layout operand of {r.layout}")


@op
class GetIter(Op):
    """``fly.get_iter``: the pointer of a memref."""

    __slots__ = ()
    name = "fly.get_iter"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        m = _memref(self, 0)
        if self.results[0].type != m.ptr:
            raise self.fail(f"{m} gives {self.results[0].type}", f"the result is {m.ptr}")


# --- pointers -------------------------------------------------------------------------------------


@op
class MakePtr(Op):
    """``fly.make_ptr``: a new pointer.

    Shared: attrs ``allocBytes``, ``allocAlign`` (bytes) and ``symbol`` make one LDS allocation.
    Buffer descriptor: operands (global pointer, i16 stride, i64 num_records, i32 flags).
    """

    __slots__ = ()
    name = "fly.make_ptr"
    arity = (0, 4, 1, 0)
    attr_names = ("allocBytes", "allocAlign", "symbol")

    def verify(self) -> None:
        r = self.results[0].type
        if not isinstance(r, t.PtrType):
            raise self.fail(f"result {r}", "the result is a pointer")
        if r.space == "shared":
            size, align = self.attrs.get("allocBytes"), self.attrs.get("allocAlign")
            if not isinstance(size, int) or size < 1:
                raise self.fail(f"allocBytes {size!r}", "allocate at least one byte")
            if not isinstance(align, int) or align < 1 or align & (align - 1):
                raise self.fail(f"allocAlign {align!r}", "use a power of two, in bytes")
            if self.operands or not isinstance(self.attrs.get("symbol", ""), str):
                raise self.fail(f"symbol {self.attrs.get('symbol')!r}", "give the allocation a name, and no operands")
        elif r.space == "buffer_desc":
            kinds = [v.type for v in self.operands]
            if any(self.attrs.get(name) is not None for name in self.attr_names):
                raise self.fail("a buffer descriptor allocates nothing", "leave allocBytes, allocAlign and symbol out")
            if len(kinds) != 4 or not isinstance(kinds[0], t.PtrType) or kinds[0].space != "global":
                raise self.fail(f"operands {[str(k) for k in kinds]}", "pass a global pointer, i16, i64, i32")
            if kinds[1:] != [t.I16, t.I64, t.I32]:
                raise self.fail(
                    f"operands {[str(k) for k in kinds[1:]]}", "pass i16 stride, i64 num_records, i32 flags"
                )
        else:
            raise self.fail(f"cannot make a {r.space} pointer", "make_ptr makes shared and buffer_desc pointers")


@op
class GetDynShared(Op):
    """``fly.get_dyn_shared``: the LDS given at launch, one base for all requests of a kernel."""

    __slots__ = ()
    name = "fly.get_dyn_shared"
    arity = (0, 0, 1, 0)

    def verify(self) -> None:
        r = self.results[0].type
        if not isinstance(r, t.PtrType) or r.space != "shared":
            raise self.fail(f"result {r}", "the result is a shared pointer")


@op
class AddOffset(Op):
    """``fly.add_offset``: pointer plus an offset in elements (i32 / i64, or a leaf int tuple)."""

    __slots__ = ()
    name = "fly.add_offset"
    pure = True
    arity = (2, 2, 1, 0)

    def verify(self) -> None:
        p, r = _ptr(self, 0), self.results[0].type
        if not _offset_ok(self.operands[1]):
            raise self.fail(f"offset of type {self.operands[1].type}", "use an i32 or i64 number of elements")
        if not isinstance(r, t.PtrType) or (r.elem, r.space, r.swizzle) != (p.elem, p.space, p.swizzle):
            raise self.fail(f"{p} gives {r}", "only the alignment may change")


@op
class ApplySwizzle(Op):
    """``fly.apply_swizzle``: the pointer with a swizzle of its byte address."""

    __slots__ = ()
    name = "fly.apply_swizzle"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        p, r = _ptr(self, 0), self.results[0].type
        if p.swizzle is not None:
            raise self.fail(f"{p} is swizzled already", "apply one swizzle")
        if not isinstance(r, t.PtrType) or r.swizzle is None or r.with_(swizzle=None) != p:
            raise self.fail(f"{p} gives {r}", "the result is the same pointer with the swizzle")


@op
class RecastIter(Op):
    """``fly.recast_iter``: the same address seen with another element type; the offset is rescaled."""

    __slots__ = ()
    name = "fly.recast_iter"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        p, r = _ptr(self, 0), self.results[0].type
        if not isinstance(r, t.PtrType) or (r.space, r.swizzle) != (p.space, p.swizzle):
            raise self.fail(f"{p} as {r}", "only the element type and alignment may change")


@op
class IntToPtr(Op):
    """``fly.inttoptr``: i32 for shared, i64 otherwise."""

    __slots__ = ()
    name = "fly.inttoptr"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        r = self.results[0].type
        if not isinstance(r, t.PtrType) or r.space in ("buffer_desc", "register"):
            raise self.fail(f"result {r}", "the result is a generic, global or shared pointer")
        want = t.I32 if r.space == "shared" else t.I64
        if self.operands[0].type != want:
            raise self.fail(f"{self.operands[0].type} to {r}", f"use {want}")


@op
class PtrToInt(Op):
    """``fly.ptrtoint``: i32 for shared, i64 otherwise."""

    __slots__ = ()
    name = "fly.ptrtoint"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        p = _ptr(self, 0)
        if p.space in ("buffer_desc", "register"):
            raise self.fail(f"{p} has no address as a number", "use a generic, global or shared pointer")
        want = t.I32 if p.space == "shared" else t.I64
        if self.results[0].type != want:
            raise self.fail(f"{p} to {self.results[0].type}", f"use {want}")


@op
class PtrLoad(Op):
    """``fly.ptr.load``: a scalar or vector at a pointer."""

    __slots__ = ()
    name = "fly.ptr.load"
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        _check_access(self, _ptr(self, 0), self.results[0].type)


@op
class PtrStore(Op):
    """``fly.ptr.store``: operands (value, pointer)."""

    __slots__ = ()
    name = "fly.ptr.store"
    arity = (2, 2, 0, 0)

    def verify(self) -> None:
        _check_access(self, _ptr(self, 1), self.operands[0].type)


def _check_access(o: Op, p: t.PtrType, value: t.Type) -> None:
    if t.scalar_of(value) != p.elem:
        raise o.fail(f"{value} at {p}", "use the pointer's element type (fly.recast_iter changes it)")
    bits = p.elem.bits * t.count_of(value)
    if bits % 8 and value != t.I1:
        raise o.fail(f"{value} is {bits} bits", "access whole bytes")
    if p.swizzle is not None and bits > 8 << p.swizzle.base:
        raise o.fail(
            f"{value} ({bits // 8} bytes) through {p.swizzle}",
            f"the swizzle keeps runs of {1 << p.swizzle.base} bytes; use narrower accesses or a larger base",
        )


# --- memrefs --------------------------------------------------------------------------------------


@op
class Alloca(Op):
    """``fly.memref.alloca``: register memory of a static layout."""

    __slots__ = ()
    name = "fly.memref.alloca"
    arity = (0, 0, 1, 0)

    def verify(self) -> None:
        from ..layout import is_static

        r = self.results[0].type
        if not isinstance(r, t.MemRefType) or r.space != "register":
            raise self.fail(f"result {r}", "register memory is a memref in space 'register'")
        if not is_static(r.layout):
            raise self.fail(f"layout {r.layout} has run-time leaves", "register memory has a static layout")


@op
class MemRefLoad(Op):
    """``fly.memref.load``: operands (memref, index); the index is an int tuple or a number."""

    __slots__ = ()
    name = "fly.memref.load"
    arity = (2, 2, 1, 0)

    def verify(self) -> None:
        if self.results[0].type != _memref(self, 0).elem:
            raise self.fail(f"{self.results[0].type} from {self.operands[0].type}", "load the element type")
        _check_index(self, 1)


@op
class MemRefStore(Op):
    """``fly.memref.store``: operands (value, memref, index)."""

    __slots__ = ()
    name = "fly.memref.store"
    arity = (3, 3, 0, 0)

    def verify(self) -> None:
        if self.operands[0].type != _memref(self, 1).elem:
            raise self.fail(f"{self.operands[0].type} into {self.operands[1].type}", "store the element type")
        _check_index(self, 2)


def _check_index(o: Op, at: int) -> None:
    if not _offset_ok(o.operands[at]):
        raise o.fail(f"index of type {o.operands[at].type}", "use an i32, an i64 or an int tuple")


@op
class MemRefLoadVec(Op):
    """``fly.memref.load_vec``: all elements as one vector, in column-major value order."""

    __slots__ = ()
    name = "fly.memref.load_vec"
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        from ..layout import size

        m, r = _memref(self, 0), self.results[0].type
        if r != t.VectorType(_static_size(self, size(m.layout)), m.elem):
            raise self.fail(f"{m} as {r}", "the vector holds every element of the memref")


@op
class MemRefStoreVec(Op):
    """``fly.memref.store_vec``: operands (vector, memref)."""

    __slots__ = ()
    name = "fly.memref.store_vec"
    arity = (2, 2, 0, 0)

    def verify(self) -> None:
        from ..layout import size

        m, v = _memref(self, 1), self.operands[0].type
        if v != t.VectorType(_static_size(self, size(m.layout)), m.elem):
            raise self.fail(f"{v} into {m}", "the vector holds every element of the memref")


def _static_size(o: Op, size: object) -> int:
    if not isinstance(size, int):
        raise o.fail(f"the size {size} is known at run time only", "use a memref with a static shape")
    return size


# --- atoms ----------------------------------------------------------------------------------------


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
        payload, src, dst = copy_payload(self), _memref(self, 1), _memref(self, 2)
        if src.elem != dst.elem:
            raise self.fail(f"copies {src.elem} to {dst.elem}", "use equal element types (fx.recast_iter views them)")
        _check_pred(self, 3)
        try:
            payload.check_operands(src.ptr, dst.ptr)
        except FlyError as e:
            raise e.at(self.loc) from None
        _check_atom_count(self, payload, src, "source")
        _check_atom_count(self, payload, dst, "destination")


def _check_atom_count(o: Op, payload: CopyOp, m: t.MemRefType, what: str) -> None:
    from ..layout import size

    count = size(m.layout)
    if not isinstance(count, int) or payload.bit_size == 0:
        return
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
        copy_payload(self)
        _, dst, pred, old = self.parts()
        if pred is not None and pred.type != t.I1:
            raise self.fail(f"predicate of type {pred.type}", "the SSA form takes one i1")
        if (dst is None) != (len(self.results) == 1):
            raise self.fail("needs either a destination or a result", "a copy into registers has a result")
        if dst is None and pred is not None and (old is None or old.type != self.results[0].type):
            raise self.fail("a predicated copy into registers has no old value", "pass what false lanes keep")


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
            m = _memref(self, i)
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
        src, dst = _memref(self, 1), _memref(self, 2)
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
            _check_mma_operand(self, what, _memref(self, i).elem, want)
        if self.attrs.get("traversal_order") is not None and self.attrs.get("traversal_layout") is not None:
            raise self.fail("both a traversal order and a layout", "give one of them")


@op
class Assume(Op):
    """``fly.assume``: operand an integer; attr ``divisibility``; the result is the value, known to be a multiple."""

    __slots__ = ()
    name = "fly.assume"
    pure = True
    arity = (1, 1, 1, 0)
    attr_names = ("divisibility",)

    def verify(self) -> None:
        div, v = self.attrs.get("divisibility"), self.operands[0].type
        if not isinstance(v, t.IntType) or self.results[0].type != v:
            raise self.fail(f"{v} gives {self.results[0].type}", "assume takes an integer and gives the same type")
        if type(div) is not int or div < 1:
            raise self.fail(f"divisibility {div!r}", "give a positive integer")
