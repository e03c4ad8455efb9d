"""Operations on the elements of vectors: the ``vector`` dialect.  Names, operand order and meaning are MLIR's."""

from __future__ import annotations

from . import types as t
from .core import ANY, Op, op
from .ops_arith import check_fastmath


@op
class Broadcast(Op):
    """``vector.broadcast``: a scalar into every element."""

    __slots__ = ()
    name = "vector.broadcast"
    pure = True
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        r = self.results[0].type
        if not isinstance(r, t.VectorType) or r.elem != self.operands[0].type:
            raise self.fail(f"{self.operands[0].type} into {r}", "broadcast a scalar into a vector of its type")


@op
class Extract(Op):
    """``vector.extract``: one element; attr ``position``, or a second i32 operand for a run-time index."""

    __slots__ = ()
    name = "vector.extract"
    pure = True
    arity = (1, 2, 1, 0)
    attr_names = ("position",)

    def verify(self) -> None:
        v = self.operands[0].type
        if not isinstance(v, t.VectorType) or v.elem != self.results[0].type:
            raise self.fail(f"{self.results[0].type} out of {v}", "extract the element type of a vector")
        _check_position(self, 1, v)


@op
class Insert(Op):
    """``vector.insert``: operands (element, vector[, i32 index]); attr ``position`` otherwise."""

    __slots__ = ()
    name = "vector.insert"
    pure = True
    arity = (2, 3, 1, 0)
    attr_names = ("position",)

    def verify(self) -> None:
        e, v = self.operands[0].type, self.operands[1].type
        if not isinstance(v, t.VectorType) or v.elem != e or self.results[0].type != v:
            raise self.fail(f"{e} into {v}", "insert an element of the vector's type; the result is the vector type")
        _check_position(self, 2, v)


def _check_position(o: Op, first: int, v: t.VectorType) -> None:
    position = o.attrs.get("position")
    if len(o.operands) == first + 1 and position is None:
        if o.operands[first].type != t.I32:
            raise o.fail(f"index of type {o.operands[first].type}", "use an i32 index")
    elif len(o.operands) != first or not isinstance(position, int) or not 0 <= position < v.count:
        raise o.fail(f"position {position!r} in {v}", f"use a position from 0 to {v.count - 1}")


@op
class Slice(Op):
    """``vector.extract_strided_slice``: attrs ``offset`` and ``size``, in elements; stride 1."""

    __slots__ = ()
    name = "vector.extract_strided_slice"
    pure = True
    arity = (1, 1, 1, 0)
    attr_names = ("offset", "size")

    def verify(self) -> None:
        v, r = self.operands[0].type, self.results[0].type
        offset, size = self.attrs.get("offset"), self.attrs.get("size")
        if not isinstance(offset, int) or not isinstance(size, int) or offset < 0 or size < 1:
            raise self.fail(f"offset {offset!r}, size {size!r}", "use non-negative integers")
        if not isinstance(v, t.VectorType) or offset + size > v.count or r != t.VectorType(size, v.elem):
            raise self.fail(f"elements {offset} to {offset + size} of {v} as {r}", "stay inside the vector")


@op
class InsertSlice(Op):
    """``vector.insert_strided_slice``: operands (part, vector); attr ``offset`` in elements; stride 1."""

    __slots__ = ()
    name = "vector.insert_strided_slice"
    pure = True
    arity = (2, 2, 1, 0)
    attr_names = ("offset",)

    def verify(self) -> None:
        p, v = self.operands[0].type, self.operands[1].type
        offset = self.attrs.get("offset")
        if not isinstance(v, t.VectorType) or not isinstance(p, t.VectorType) or p.elem != v.elem:
            raise self.fail(f"{p} into {v}", "insert a vector into a longer one of the same element type")
        if not isinstance(offset, int) or not 0 <= offset <= v.count - p.count or self.results[0].type != v:
            raise self.fail(f"{p} at {offset!r} of {v}", "stay inside the vector")


@op
class Concat(Op):
    """``vector.concat``: scalars and vectors of one element type, joined in order (ours, not MLIR's)."""

    __slots__ = ()
    name = "vector.concat"
    pure = True
    arity = (1, ANY, 1, 0)

    def verify(self) -> None:
        r = self.results[0].type
        total = sum(t.count_of(o.type) for o in self.operands)
        if not isinstance(r, t.VectorType) or any(t.scalar_of(o.type) != r.elem for o in self.operands):
            raise self.fail(f"{[str(o.type) for o in self.operands]} into {r}", "join parts of one element type")
        if total != r.count:
            raise self.fail(f"parts hold {total} elements, result {r.count}", "make the counts equal")


@op
class Shuffle(Op):
    """``vector.shuffle``: two vectors of one type; attr ``mask``, indices into their concatenation."""

    __slots__ = ()
    name = "vector.shuffle"
    pure = True
    arity = (2, 2, 1, 0)
    attr_names = ("mask",)

    def verify(self) -> None:
        a, b, r = self.operands[0].type, self.operands[1].type, self.results[0].type
        mask = self.attrs.get("mask")
        if not isinstance(a, t.VectorType) or a != b or not isinstance(mask, tuple):
            raise self.fail(f"shuffle of {a} and {b}", "use two vectors of one type and a tuple mask")
        if any(not isinstance(i, int) or not 0 <= i < 2 * a.count for i in mask):
            raise self.fail(f"mask {mask}", f"use indices from 0 to {2 * a.count - 1}")
        if r != t.value_type(len(mask), a.elem):
            raise self.fail(f"mask of {len(mask)} gives {r}", "one result element per index")


@op
class Reduction(Op):
    """``vector.reduction``: attr ``kind`` (add, mul, and, or, xor, minsi, maxsi, minui, maxui, minnumf, ...)."""

    __slots__ = ()
    name = "vector.reduction"
    pure = True
    arity = (1, 1, 1, 0)
    attr_names = ("kind", "fastmath")
    kinds = ("add", "mul", "and", "or", "xor", "minsi", "maxsi", "minui", "maxui", "minnumf", "maxnumf", "minimumf",
             "maximumf")  # fmt: skip

    def verify(self) -> None:
        v = self.operands[0].type
        if self.attrs.get("kind") not in self.kinds:
            raise self.fail(f"kind {self.attrs.get('kind')!r}", f"use: {', '.join(self.kinds)}")
        if not isinstance(v, t.VectorType) or self.results[0].type != v.elem:
            raise self.fail(f"{v} to {self.results[0].type}", "reduce a vector to its element type")
        check_fastmath(self)
