"""The ``fly`` operations on layouts, pointers and views.

A layout operand carries its run-time leaves; its type shows them as ``?``.
"""

from __future__ import annotations

from . import types as t
from .core import ANY, Op, Value, op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Alignment of the LDS that is given at launch, in bytes.  Source: FlyDSL's contract for get_dyn_shared.
DYNAMIC_LDS_ALIGN = 1024


def pointer_of(o: Op, index: int) -> t.PtrType:
    """The pointer type of an operand."""
    type_ = o.operands[index].type
    if not isinstance(type_, t.PtrType):
        raise o.fail(f"operand {index} is {type_}", "pass a pointer (fly.get_iter of a memref)")
    return type_


def memref_of(o: Op, index: int) -> t.MemRefType:
    """The memref type of an operand."""
    type_ = o.operands[index].type
    if not isinstance(type_, t.MemRefType):
        raise o.fail(f"operand {index} is {type_}", "pass a memref")
    return type_


def is_offset(value: Value) -> bool:
    """Whether a value counts elements."""
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
        from ..layout import Basis, get_leaves, is_static
        from ..layout.leaf import leaf_width

        r = self.results[0].type
        if not isinstance(r, t.IntTupleType):
            raise self.fail(f"result {r}", "the result is an int tuple")
        leaves = [x.value if isinstance(x, Basis) else x for x in get_leaves(r.value) if not is_static(x)]
        if len(leaves) != len(self.operands):
            raise self.fail(f"{len(self.operands)} operands for {r}", f"pass its {len(leaves)} run-time leaves")
        for v, leaf in zip(self.operands, leaves, strict=True):
            if v.type not in (t.I32, t.I64) or leaf_width(v) != leaf_width(leaf):
                raise self.fail(f"the leaf {leaf} of {r} is given as {v.type}", f"pass an i{leaf_width(leaf)}")


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
        value = _layout_result(self, "Layout")
        _check_parts(self, (value.shape, value.stride))


def _layout_result(o: Op, kind: str) -> Any:
    r = o.results[0].type
    if not isinstance(r, t.LayoutType) or type(r.value).__name__ != kind:
        raise o.fail(f"result {r}", f"the result is a {kind}")
    return r.value


def _check_parts(o: Op, parts: tuple[object, ...]) -> None:
    """The type of a layout says what its operands say; passes read the one or the other."""
    from ..layout.int_tuple import show

    for v, part in zip(o.operands, parts, strict=True):
        if not _same_form(v.type.value, part):  # type: ignore[attr-defined]
            raise o.fail(f"{v.type} as {show(part)} of {o.results[0].type}", "the result is made of the operands")


def _same_form(a: Any, b: Any) -> bool:
    """Whether two int tuples or layouts are equal but for what their run-time leaves are known to be divided by."""
    from ..layout import Basis, is_static
    from ..layout.leaf import leaf_width

    if a is b:
        return True
    if isinstance(a, tuple) or isinstance(b, tuple):
        both = isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)
        return both and all(_same_form(x, y) for x, y in zip(a, b, strict=True))
    if is_static(a) or is_static(b):
        return str(a) == str(b)
    if type(a) is not type(b):
        return False
    if isinstance(a, Basis):
        return a.path == b.path and _same_form(a.value, b.value)
    names = {"Layout": ("shape", "stride"), "ComposedLayout": ("inner", "offset", "outer")}.get(type(a).__name__)
    if names is not None:
        return all(_same_form(getattr(a, name), getattr(b, name)) for name in names)
    return bool(leaf_width(a) == leaf_width(b))


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
        value = _layout_result(self, "ComposedLayout")
        _check_parts(self, (value.inner, value.offset, value.outer))


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
        m = memref_of(self, 0)
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
            if r.align > align:
                raise self.fail(f"{r} for an allocation aligned to {align} bytes", "raise allocAlign, or promise less")
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
        if r.align > DYNAMIC_LDS_ALIGN:
            what = f"{r}: the LDS given at launch is aligned to {DYNAMIC_LDS_ALIGN} bytes"
            raise self.fail(what, "promise no more than that")


@op
class AddOffset(Op):
    """``fly.add_offset``: pointer plus an offset in elements (i32 / i64, or a leaf int tuple)."""

    __slots__ = ()
    name = "fly.add_offset"
    pure = True
    arity = (2, 2, 1, 0)

    def verify(self) -> None:
        p, r = pointer_of(self, 0), self.results[0].type
        if not is_offset(self.operands[1]):
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
        p, r = pointer_of(self, 0), self.results[0].type
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
        p, r = pointer_of(self, 0), self.results[0].type
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
        p = pointer_of(self, 0)
        if p.space in ("buffer_desc", "register"):
            raise self.fail(f"{p} has no address as a number", "use a generic, global or shared pointer")
        want = t.I32 if p.space == "shared" else t.I64
        if self.results[0].type != want:
            raise self.fail(f"{p} to {self.results[0].type}", f"use {want}")


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
