"""Vectors in registers, with elementwise arithmetic.

Elements are in column-major order of the shape: the first mode is the fastest.  Arithmetic keeps the shape.
"""

from __future__ import annotations

from math import prod

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .casts import cast
from .fastmath import emit_float
from .numeric import (
    BY_IR,
    Boolean,
    Numeric,
    NumericMeta,
    as_numeric,
    choose,
    count_of,
    integer,
    refuse_too_large,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    Shape = tuple[Any, ...]


class Vector:
    """A vector of numbers; element 0 sits in the low bits.

    Attributes:
        dtype: Element type.
        shape: Extents, nested like the tensor it was loaded from; the first mode is the fastest.
    """

    __slots__ = ("_v", "dtype", "shape")
    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    def __init__(self, value: Value, dtype: type[Numeric] | None = None, shape: Shape | None = None) -> None:
        if not isinstance(value, Value) or not isinstance(value.type, t.VectorType):
            raise TraceError(f"Vector({value!r})", fix="pass a vector value, or use Vector.from_elements")
        self._v = value
        self.dtype = dtype if dtype is not None else BY_IR[value.type.elem.text]
        self.shape = shape if shape is not None else (value.type.count,)

    @property
    def count(self) -> int:
        """Number of elements."""
        return t.count_of(self._v.type)

    @property
    def element_type(self) -> type[Numeric]:
        """Element type."""
        return self.dtype

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    def like(self, value: Value, dtype: type[Numeric] | None = None) -> Vector:
        """A vector of this shape around another value."""
        return Vector(value, dtype or self.dtype, self.shape)

    # --- making vectors --------------------------------------------------------------------------

    @staticmethod
    def from_elements(elements: Sequence[Any], dtype: type[Numeric] | None = None) -> Vector:
        """A vector of the given numbers."""
        if not elements:
            raise TraceError("a vector of no elements", fix="give at least one")
        cls = dtype or type(as_numeric(elements[0]))
        b = Builder.current()
        made = [cls(e) for e in elements]
        if all(e.is_static for e in made):
            return Vector(b.constant(tuple(e._v for e in made), t.VectorType(len(made), cls.ir)), cls)  # type: ignore[misc]
        values = [e.ir_value() for e in made]
        return Vector(b.concat(values) if len(values) > 1 else b.broadcast(values[0], 1), cls)

    @staticmethod
    def filled(count: Any, value: Any, dtype: type[Numeric] | None = None) -> Vector:
        """A vector of one number; ``count`` is its number of elements or its shape."""
        shape = tuple(count) if isinstance(count, (tuple, list)) else (count,)
        b, n = Builder.current(), prod(flat_shape(shape))
        if not shape:
            raise TraceError("a vector of no extents", b.location(), "give its number of elements, or a shape")
        if dtype is not None:
            refuse_too_large(value, dtype)
        x = as_numeric(value) if dtype is None else dtype(value)
        if isinstance(x._v, Value):
            return Vector(b.broadcast(x._v, n), type(x), shape)
        return Vector(b.constant(x._v, t.VectorType(n, x.ir)), type(x), shape)

    # --- elements --------------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.count

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(self.count))

    def __getitem__(self, index: Any) -> Any:
        """An element by its position, or by a coordinate of the shape; a slice gives a vector."""
        b = Builder.current()
        if isinstance(index, tuple):
            from ..layout import crd2idx, make_ordered_layout
            from .leaves import to_leaves

            order = tuple(range(len(self.shape)))
            index = crd2idx(to_leaves(index), make_ordered_layout(self.shape, order))
        if isinstance(index, slice):
            start, stop, step = index.indices(self.count)
            if step != 1 or stop <= start:
                raise TraceError(f"slice {start}:{stop}:{step} of a vector", b.location(), "use step 1, or shuffle")
            part = b.vector_slice(self._v, start, stop - start)
            return Vector(part, self.dtype) if isinstance(part.type, t.VectorType) else self.dtype.wrap(part)
        number = integer(index, "the index of a vector")
        known = number.static_value()
        if known is None:
            return self.dtype.wrap(b.extract(self._v, number.ir_value()))
        position = int(known)
        if not -self.count <= position < self.count:
            raise TraceError(f"element {position} of a vector of {self.count}", b.location(), "stay inside the vector")
        return self.dtype.wrap(b.extract(self._v, position % self.count))

    def with_element(self, index: Any, value: Any) -> Vector:
        """The vector with one element replaced."""
        number = integer(index, "the index of a vector")
        known = number.static_value()
        at: Any = number.ir_value() if known is None else int(known)
        if known is not None and not 0 <= known < self.count:
            where = Builder.current().location()
            raise TraceError(f"element {known} of a vector of {self.count}", where, "stay inside the vector")
        return self.like(Builder.current().insert(self.dtype(value).ir_value(), self._v, at))

    # --- shape and type --------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Vector:
        """The same elements in another shape of equal size."""
        made = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        if prod(flat_shape(made)) != self.count:
            raise TraceError(f"reshape of {self.shape} to {made}", fix=f"use a shape of {self.count} elements")
        return Vector(self._v, self.dtype, made)

    def broadcast_to(self, *shape: Any) -> Vector:
        """Modes of extent 1 repeated; a shorter shape gets modes of extent 1 at its end, where modes are slow."""
        made = tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape
        return broadcast(self, made)

    def to(self, dtype: type[Numeric], *, saturate: bool = False) -> Vector:
        """Elements converted to another type, as ``Numeric.to`` does."""
        if not isinstance(dtype, NumericMeta):
            raise TraceError(f"to({dtype!r})", fix="pass a number type such as fx.Float32")
        if dtype is self.dtype:
            return self
        return self.like(cast(self._v, self.dtype, dtype, saturate), dtype)

    def bitcast(self, dtype: type[Numeric]) -> Vector:
        """The same bits as elements of another type; the first mode grows or shrinks with the width."""
        bits = self.count * self.dtype.width
        if bits % dtype.width:
            raise TraceError(f"{bits} bits as {dtype}", Builder.current().location(), "use a width that divides them")
        if dtype.ir == self.dtype.ir:
            return self.like(self._v, dtype)
        count = bits // dtype.width
        return Vector(
            Builder.current().bitcast(self._v, t.VectorType(count, dtype.ir)),
            dtype,
            self.shape if count == self.count else None,
        )

    def shuffle(self, other: Any, mask: Sequence[int]) -> Vector:
        """Elements picked by index from this vector followed by ``other``."""
        b = Builder.current()
        second = self if other is None else other
        if not isinstance(second, Vector) or second.count != self.count or second.dtype is not self.dtype:
            raise TraceError(f"shuffle of {self} with {other}", b.location(), "use two vectors of one type and size")
        return shuffled(self, second, tuple(int(i) for i in mask))

    def select(self, a: Any, b: Any) -> Vector:
        """Per element ``a`` where this Boolean vector is true, else ``b``."""
        made: Vector = where(self, a, b)
        return made

    # --- reduction -------------------------------------------------------------------------------

    def reduce(self, op: str, init: Any = None) -> Any:
        """All elements joined by ``op``: add, mul, max, min, and, or, xor.

        Floats are added in order unless fast-math allows another order.
        """
        from .math import max as larger, min as smaller

        b = Builder.current()
        signed = self.dtype.signed
        joins: dict[str, Callable[[Any, Any], Any]] = {
            "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "and": lambda x, y: x & y, "or": lambda x, y: x | y,
            "xor": lambda x, y: x ^ y, "max": larger, "min": smaller,
        }  # fmt: skip
        if op not in joins or (signed is None and op in ("and", "or", "xor")):
            raise TraceError(f"reduce({op!r}) of {self.dtype}", b.location(), f"use one of: {', '.join(joins)}")
        extreme = "numf" if signed is None else "si" if signed else "ui"
        kind = op + extreme if op in ("max", "min") else op
        if signed is None:
            made = self.dtype.wrap(emit_float("vector.reduction", self._v, result=self.dtype.ir, kind=kind))
        else:
            made = self.dtype.wrap(b.emit("vector.reduction", [self._v], [self.dtype.ir], {"kind": kind}).results[0])
        return made if init is None else joins[op](as_numeric(init, self.dtype), made)

    def __bool__(self) -> bool:
        raise TraceError("a vector has no truth value", fix="reduce it first: v.reduce('and') or v.reduce('or')")

    def __hash__(self) -> int:
        return id(self)

    def __repr__(self) -> str:
        return f"Vector({self.dtype}, {self.shape})"

    if TYPE_CHECKING:
        # Put on the class by vector_ops.py.
        def __add__(self, other: Any) -> Vector: ...
        def __radd__(self, other: Any) -> Vector: ...
        def __sub__(self, other: Any) -> Vector: ...
        def __rsub__(self, other: Any) -> Vector: ...
        def __mul__(self, other: Any) -> Vector: ...
        def __rmul__(self, other: Any) -> Vector: ...
        def __truediv__(self, other: Any) -> Vector: ...
        def __rtruediv__(self, other: Any) -> Vector: ...
        def __floordiv__(self, other: Any) -> Vector: ...
        def __mod__(self, other: Any) -> Vector: ...
        def __pow__(self, other: Any) -> Vector: ...
        def __and__(self, other: Any) -> Vector: ...
        def __or__(self, other: Any) -> Vector: ...
        def __xor__(self, other: Any) -> Vector: ...
        def __lshift__(self, other: Any) -> Vector: ...
        def __rshift__(self, other: Any) -> Vector: ...
        def __lt__(self, other: Any) -> Vector: ...
        def __le__(self, other: Any) -> Vector: ...
        def __gt__(self, other: Any) -> Vector: ...
        def __ge__(self, other: Any) -> Vector: ...
        def __eq__(self, other: object) -> Vector: ...  # type: ignore[override]
        def __ne__(self, other: object) -> Vector: ...  # type: ignore[override]
        def __neg__(self) -> Vector: ...
        def __abs__(self) -> Vector: ...
        def __invert__(self) -> Vector: ...


def flat_shape(shape: Any) -> tuple[int, ...]:
    """The extents of a nested shape in order."""
    if isinstance(shape, (tuple, list)):
        return tuple(n for s in shape for n in flat_shape(s))
    return (count_of(shape, "an extent of a vector's shape", 1),)


def shuffled(a: Vector, b: Vector, mask: tuple[int, ...], shape: Shape | None = None) -> Vector:
    """``vector.shuffle`` of two vectors."""
    type_ = t.value_type(len(mask), a.dtype.ir)
    builder = Builder.current()
    made = builder.emit("vector.shuffle", [a._v, b._v], [type_], {"mask": mask}).results[0]
    if not isinstance(type_, t.VectorType):
        made = builder.broadcast(made, 1)
    return Vector(made, a.dtype, shape)


def broadcast(v: Vector, shape: Shape) -> Vector:
    """The vector repeated along modes of extent 1."""
    target = flat_shape(shape)
    source = flat_shape(v.shape)
    source += (1,) * (len(target) - len(source))
    if len(source) != len(target) or any(s not in (1, n) for s, n in zip(source, target, strict=True)):
        raise TraceError(
            f"a vector of shape {v.shape} does not broadcast to {shape}",
            fix="extents are equal or 1, mode by mode from the first; reshape it",
        )
    if source == target:
        return Vector(v._v, v.dtype, shape)
    if v.count == 1:
        return Vector(Builder.current().broadcast(v[0].ir_value(), prod(target)), v.dtype, shape)
    mask = []
    for i in range(prod(target)):
        index, step, rest = 0, 1, i
        for s, n in zip(source, target, strict=True):
            index += (rest % n if s > 1 else 0) * step
            rest, step = rest // n, step * s
        mask.append(index)
    return shuffled(v, v, tuple(mask), shape)


def where(cond: Any, a: Any, b: Any) -> Any:
    """Per element ``a`` where ``cond``, else ``b``; numbers and vectors mix."""
    if not any(isinstance(x, Vector) for x in (cond, a, b)):
        return choose(cond, a, b)
    from .vector_ops import joined

    if isinstance(a, Vector) or isinstance(b, Vector):
        x, y = joined(a, b, arithmetic=False)
    else:
        cls = type(choose(True, a, b))
        x, y = (Vector.filled(cond.shape, v, cls) for v in (a, b))
    if isinstance(cond, Vector):
        flag = cond.to(Boolean)
        if flag.count != x.count:
            shape = flag.shape if flag.count > x.count else x.shape
            flag, x, y = (broadcast(v, shape) for v in (flag, x, y))
        return x.like(Builder.current().select(flag._v, x._v, y._v))
    known = as_numeric(cond).static_value()
    if known is not None:
        return x if known else y
    return x.like(Builder.current().select(Boolean(cond).ir_value(), x._v, y._v))


def full(shape: Any, value: Any, dtype: type[Numeric] | None = None) -> Vector:
    """A vector of one number."""
    return Vector.filled(shape, value, dtype)


def full_like(v: Any, value: Any, dtype: type[Numeric] | None = None) -> Vector:
    """A vector of one number with the shape (and type) of another vector or of a tensor."""
    return Vector.filled(v.shape, value, dtype or v.dtype)


def zeros_like(v: Any, dtype: type[Numeric] | None = None) -> Vector:
    """Zeros with the shape of another vector or of a tensor."""
    return full_like(v, 0, dtype)


def ones_like(v: Any, dtype: type[Numeric] | None = None) -> Vector:
    """Ones with the shape of another vector or of a tensor."""
    return full_like(v, 1, dtype)


def empty_like(v: Any, dtype: type[Numeric] | None = None) -> Vector:
    """A vector to be overwritten.  Its elements are zero: nothing undefined can leak from it."""
    return full_like(v, 0, dtype)
