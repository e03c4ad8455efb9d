"""The operators of vectors, installed on ``Vector``."""

from __future__ import annotations

from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.core import Value
from .divide import float_division, floor_division, shift_amount
from .fastmath import emit_float
from .math import powf, powi
from .numeric import Boolean, Float32, Float64, Int32, Numeric, as_numeric, promote
from .operators import (
    FLOAT_PREDICATES,
    LARGEST_POWER,
    by_value,
    nonneg,
    refuse_mixed,
    refuse_negative,
    signed_side,
)
from .vector import Vector, broadcast, flat_shape

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .vector import Shape


def joined(a: Any, b: Any, arithmetic: bool = True) -> tuple[Vector, Vector]:
    """Two operands, at least one a vector, as vectors of one type and shape."""
    if not isinstance(a, Vector):
        y, x = joined(b, a, arithmetic)
        return x, y
    if isinstance(b, Vector):
        cls = a.dtype if a.dtype is b.dtype and not arithmetic else promote(a.dtype, b.dtype, arithmetic)
        shape = _common_shape(a.shape, b.shape)
        return _shaped(a.to(cls), shape), _shaped(b.to(cls), shape)
    scalar = as_numeric(b, a.dtype)
    cls = promote(a.dtype, type(scalar), arithmetic)
    return a.to(cls), Vector.filled(a.shape, scalar, cls)


def _common_shape(a: Shape, b: Shape) -> Shape:
    fa, fb = flat_shape(a), flat_shape(b)
    if fa == fb:
        return a
    n = max(len(fa), len(fb))
    pa, pb = fa + (1,) * (n - len(fa)), fb + (1,) * (n - len(fb))
    out = tuple(max(x, y) for x, y in zip(pa, pb, strict=True))
    if any(x not in (1, m) or y not in (1, m) for x, y, m in zip(pa, pb, out, strict=True)):
        raise TraceError(
            f"vectors of shapes {a} and {b}",
            Builder.current().location(),
            "make the extents equal or 1, mode by mode from the first (reshape changes them)",
        )
    return a if pa == out else b if pb == out else out


def _shaped(v: Vector, shape: Shape) -> Vector:
    if v.shape == shape:
        return v
    same = flat_shape(v.shape) == flat_shape(shape)
    return Vector(v.ir_value(), v.dtype, shape) if same else broadcast(v, shape)


def _arith(int_name: str, float_name: str) -> Callable[[Vector, Vector], Vector]:
    def run(x: Vector, y: Vector) -> Vector:
        if x.dtype.signed is None:
            return x.like(emit_float(float_name, x.ir_value(), y.ir_value()))
        return x.like(Builder.current().binary(int_name, x.ir_value(), y.ir_value()))

    return run


def _true_division(x: Vector, y: Vector) -> Vector:
    if x.dtype.signed is not None:
        cls = Float32 if x.dtype.width <= 32 else Float64
        x, y = x.to(cls), y.to(cls)
    return x.like(emit_float("arith.divf", x.ir_value(), y.ir_value()))


def _division(remainder: bool) -> Callable[..., Vector]:
    def run(x: Vector, y: Vector, side: int | None, kinds: list[type[Numeric]]) -> Vector:
        if side is not None:
            refuse_mixed("a remainder" if remainder else "a quotient", x.dtype, *kinds)
        b, a, d = Builder.current(), x.ir_value(), y.ir_value()
        if x.dtype.signed is None:
            return x.like(float_division(a, d, remainder))
        if x.dtype.signed:
            return x.like(floor_division(b, a, d, remainder))
        return x.like(b.binary("arith.remui" if remainder else "arith.divui", a, d))

    return run


def _power(x: Vector, y: Vector) -> Vector:
    made: Vector = powf(x, y)
    return made


def _power_of(self: Vector, other: Any) -> Any:
    if type(other) is int and abs(other) <= LARGEST_POWER:
        return powi(self, other)
    return _power(*joined(self, other)) if _operand(other) else NotImplemented


def _bitwise(name: str) -> Callable[[Vector, Vector], Vector]:
    def run(x: Vector, y: Vector) -> Vector:
        if x.dtype.signed is None:
            raise TraceError(
                f"bitwise operator on {x.dtype}", Builder.current().location(), "use integers, or .bitcast"
            )
        return x.like(Builder.current().binary(name, x.ir_value(), y.ir_value()))

    return run


def _shift(left: bool) -> Callable[[Vector, Vector], Vector]:
    def run(x: Vector, y: Vector) -> Vector:
        if x.dtype.signed is None:
            raise TraceError(f"shift of {x.dtype}", Builder.current().location(), "use integers")
        name = "arith.shli" if left else "arith.shrsi" if x.dtype.signed else "arith.shrui"
        return x.like(Builder.current().binary(name, x.ir_value(), y.ir_value()))

    return run


def _compare(kind: str) -> Callable[..., Vector]:
    def run(x: Vector, y: Vector, side: int | None, kinds: list[type[Numeric]]) -> Vector:
        b = Builder.current()
        if x.dtype.signed is None:
            return x.like(b.cmpf(FLOAT_PREDICATES[kind], x.ir_value(), y.ir_value()), Boolean)
        sign = "" if kind in ("eq", "ne") else "s" if x.dtype.signed else "u"
        made = b.cmpi(sign + kind, x.ir_value(), y.ir_value())
        return x.like(made if side is None else by_value(kind, side, (x, y)[side].ir_value(), made), Boolean)

    return run


def _sides(cls: type[Numeric], a: Any, b: Any) -> tuple[int | None, list[type[Numeric]]]:
    """Which of two operands may be negative beside an unsigned one, and the types of both."""
    known = [x if isinstance(x, Vector) else as_numeric(x, cls) for x in (a, b)]
    kinds = [x.dtype for x in known]
    refuse_negative(cls, *[x for x in known if isinstance(x, Numeric)], *[x for x in (a, b) if isinstance(x, Vector)])
    side = signed_side(cls, kinds[0], kinds[1])
    signed = None if side is None else known[side]
    if isinstance(signed, Numeric) and nonneg(signed):
        side = None
    return side, kinds


def _operand(x: Any) -> bool:
    return isinstance(x, (int, float, Numeric, Value, Vector)) or (
        callable(getattr(x, "item", None)) and not getattr(x, "shape", ())
    )


def _shift_pair(a: Any, b: Any) -> tuple[Vector, Vector]:
    """The result of a shift has the type of what is shifted."""
    x = a if isinstance(a, Vector) else Vector.filled(b.shape, a)
    y = b if isinstance(b, Vector) else Vector.filled(x.shape, b)
    if y.dtype.signed is None:
        raise TraceError(f"shift by {y.dtype}", Builder.current().location(), "use integers")
    cls = Int32 if x.dtype is Boolean else x.dtype
    shape = _common_shape(x.shape, y.shape)
    if y.dtype.width <= cls.width:
        return _shaped(x.to(cls), shape), _shaped(y.to(cls), shape)
    amount = shift_amount(Builder.current(), y.ir_value(), cls.ir)
    return _shaped(x.to(cls), shape), _shaped(y.like(amount, cls), shape)


def _install(
    name: str,
    run: Callable[..., Vector],
    reflected: bool = True,
    bits: bool = False,
    shift: bool = False,
    sides: bool = False,
) -> None:
    def pair(a: Any, b: Any) -> tuple[Vector, Vector]:
        if shift:
            return _shift_pair(a, b)
        # Bitwise operators keep Booleans; shifts and arithmetic make integers of them.
        both = [x.dtype for x in (a, b) if isinstance(x, (Vector, Numeric))]
        keep = bits and all(d is Boolean for d in both) and not any(type(x) is int for x in (a, b))
        return joined(a, b, arithmetic=not keep)

    def apply(a: Any, b: Any) -> Vector:
        x, y = pair(a, b)
        return run(x, y, *_sides(x.dtype, a, b)) if sides else run(x, y)

    def method(self: Vector, other: Any) -> Any:
        return apply(self, other) if _operand(other) else NotImplemented

    def swapped(self: Vector, other: Any) -> Any:
        return apply(other, self) if _operand(other) else NotImplemented

    setattr(Vector, f"__{name}__", method)
    if reflected:
        setattr(Vector, f"__r{name}__", swapped)


def _neg(self: Vector) -> Vector:
    if self.dtype.signed is None:
        promote(self.dtype, self.dtype)
        return self.like(emit_float("arith.negf", self.ir_value()))
    cls = Int32 if self.dtype is Boolean else self.dtype
    return Vector.filled(self.shape, 0, cls) - self


def _invert(self: Vector) -> Vector:
    return self ^ (True if self.dtype is Boolean else -1)


def _abs(self: Vector) -> Vector:
    from .math import absf, absi

    made: Vector = absf(self) if self.dtype.signed is None else absi(self)
    return made


_install("add", _arith("arith.addi", "arith.addf"))
_install("sub", _arith("arith.subi", "arith.subf"))
_install("mul", _arith("arith.muli", "arith.mulf"))
_install("truediv", _true_division)
_install("floordiv", _division(False), sides=True)
_install("mod", _division(True), sides=True)
_install("and", _bitwise("arith.andi"), bits=True)
_install("or", _bitwise("arith.ori"), bits=True)
_install("xor", _bitwise("arith.xori"), bits=True)
_install("lshift", _shift(True), shift=True)
_install("rshift", _shift(False), shift=True)
for _kind in ("lt", "le", "gt", "ge", "eq", "ne"):
    _install(_kind, _compare(_kind), reflected=False, bits=True, sides=True)
_MORE: dict[str, Callable[..., Any]] = {
    "__neg__": _neg, "__abs__": _abs, "__invert__": _invert, "__pow__": _power_of,
    "__rpow__": lambda self, other: _power(*joined(other, self)),
}  # fmt: skip
for _name, _method in _MORE.items():
    setattr(Vector, _name, _method)
