"""Vectors in registers, with elementwise arithmetic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .fastmath import current_flags
from .numeric import Boolean, Float32, Int32, Numeric, as_numeric, of_ir, promote

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class Vector:
    """A vector of numbers; element 0 sits in the low bits.

    Attributes:
        dtype: Element type.
        shape: Logical shape, first mode fastest; ``count`` elements in all.
    """

    __slots__ = ("_v", "dtype", "shape")

    def __init__(self, value: Value, dtype: type[Numeric] | None = None, shape: tuple[int, ...] | None = None) -> None:
        if not isinstance(value, Value) or not isinstance(value.type, t.VectorType):
            raise TraceError(f"Vector({value!r})", fix="pass a vector value, or use Vector.from_elements")
        self._v = value
        self.dtype = dtype if dtype is not None else type(of_ir(_first(value)))
        self.shape = shape if shape is not None else (value.type.count,)

    @property
    def count(self) -> int:
        """Number of elements."""
        return t.count_of(self._v.type)

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    def like(self, value: Value, dtype: type[Numeric] | None = None) -> Vector:
        """A vector of this shape around another value."""
        return Vector(value, dtype or self.dtype, self.shape)

    @staticmethod
    def from_elements(elements: Sequence[Any], dtype: type[Numeric] | None = None) -> Vector:
        """A vector of the given numbers."""
        if not elements:
            raise TraceError("a vector of no elements", fix="give at least one")
        cls = dtype or type(as_numeric(elements[0]))
        b = Builder.current()
        values = [cls(e).ir_value() for e in elements]
        return Vector(b.concat(values) if len(values) > 1 else b.broadcast(values[0], 1), cls)

    @staticmethod
    def filled(count: int, value: Any, dtype: type[Numeric]) -> Vector:
        """``count`` copies of one number."""
        b = Builder.current()
        x = dtype(value)
        if x.is_static:
            return Vector(b.constant(x._v, t.VectorType(count, dtype.ir)), dtype)
        return Vector(b.broadcast(x.ir_value(), count), dtype)

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: Any) -> Any:
        b = Builder.current()
        if isinstance(index, slice):
            start, stop, step = index.indices(self.count)
            if step != 1:
                raise TraceError(f"slice with step {step}", b.location(), "use step 1, or shuffle")
            part = b.vector_slice(self._v, start, stop - start)
            return Vector(part, self.dtype) if isinstance(part.type, t.VectorType) else self.dtype.wrap(part)
        if isinstance(index, int):
            if not -self.count <= index < self.count:
                raise TraceError(f"element {index} of a vector of {self.count}", b.location(), "stay inside the vector")
            return self.dtype.wrap(b.extract(self._v, index % self.count))
        return self.dtype.wrap(b.extract(self._v, Int32(index).ir_value()))

    def to(self, dtype: type[Numeric]) -> Vector:
        """Elements converted to another type."""
        from .numeric import _cast

        if dtype is self.dtype:
            return self
        b = Builder.current()
        v = self._v
        if dtype is Boolean:
            raise TraceError("Vector.to(Boolean)", b.location(), "compare with zero instead")
        source, target = self.dtype, dtype
        if source.signed is None and target.signed is None and source.width == target.width:
            v = b.cast("arith.extf", v, t.F32)
            source = Float32
        return self.like(_cast(v, source, target), dtype)

    def bitcast(self, dtype: type[Numeric]) -> Vector:
        """The same bits as elements of another type."""
        bits = self.count * self.dtype.width
        if bits % dtype.width:
            raise TraceError(f"{bits} bits as {dtype}", Builder.current().location(), "use a width that divides them")
        return Vector(Builder.current().bitcast(self._v, t.VectorType(bits // dtype.width, dtype.ir)), dtype)

    def reduce(self, op: str, init: Any = None) -> Any:
        """All elements joined by ``op``: add, mul, max, min, and, or, xor."""
        b = Builder.current()
        is_float, signed = self.dtype.signed is None, self.dtype.signed
        extreme = "numf" if is_float else "si" if signed else "ui"
        kind = op + extreme if op in ("max", "min") else op
        flags = current_flags()
        attrs: dict[str, Any] = {"kind": kind}
        if flags and is_float:
            attrs["fastmath"] = flags
        made = self.dtype.wrap(b.emit("vector.reduction", [self._v], [self.dtype.ir], attrs).results[0])
        if init is None:
            return made
        start = self.dtype(init)
        if op in ("add", "mul", "and", "or", "xor"):
            join: dict[str, Callable[[Any, Any], Any]] = {
                "add": lambda x, y: x + y, "mul": lambda x, y: x * y, "and": lambda x, y: x & y,
                "or": lambda x, y: x | y, "xor": lambda x, y: x ^ y,
            }  # fmt: skip
            return join[op](start, made)
        from .numeric import select

        return select(start > made if op == "max" else start < made, start, made)

    def __iter__(self) -> Any:
        return (self[i] for i in range(self.count))

    def __repr__(self) -> str:
        return f"Vector({self.count} x {self.dtype})"


def _first(value: Value) -> Value:
    return Builder.current().extract(value, 0)


def _binary(int_name: str, float_name: str, reflected: bool) -> Callable[[Vector, Any], Any]:
    def run(self: Vector, other: Any) -> Any:
        b = Builder.current()
        if isinstance(other, Vector):
            if other.count != self.count:
                raise TraceError(
                    f"vectors of {self.count} and {other.count} elements", b.location(), "make the counts equal"
                )
            cls = promote(self.dtype, other.dtype)
            x, y = self.to(cls)._v, other.to(cls)._v
        elif isinstance(other, (int, float, Numeric, Value)):
            scalar = as_numeric(other, self.dtype)
            cls = promote(self.dtype, type(scalar))
            x, y = self.to(cls)._v, Vector.filled(self.count, scalar, cls)._v
        else:
            return NotImplemented
        if reflected:
            x, y = y, x
        if cls.signed is None:
            flags = current_flags()
            return self.like(b.binary(float_name, x, y, **({"fastmath": flags} if flags else {})), cls)
        if not int_name:
            raise TraceError(f"'/' on vectors of {cls}", b.location(), "convert them to a float type first")
        return self.like(b.binary(int_name, x, y), cls)

    return run


for _name, _int, _float in (
    ("add", "arith.addi", "arith.addf"), ("sub", "arith.subi", "arith.subf"), ("mul", "arith.muli", "arith.mulf"),
    ("truediv", "", "arith.divf"),
):  # fmt: skip
    setattr(Vector, f"__{_name}__", _binary(_int, _float, False))
    setattr(Vector, f"__r{_name}__", _binary(_int, _float, True))


def _neg(self: Vector) -> Vector:
    if self.dtype.signed is None:
        return self.like(Builder.current().unary("arith.negf", self._v))
    made: Vector = Vector.filled(self.count, 0, self.dtype) - self  # type: ignore[operator]
    return made


Vector.__neg__ = _neg  # type: ignore[attr-defined]
