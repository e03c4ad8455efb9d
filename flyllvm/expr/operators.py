"""The operators of numbers, installed on ``Numeric``."""

from __future__ import annotations

import _operator as operator

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .divide import ceil_division, float_division, floor_division, shift_amount
from .fastmath import emit_float
from .numeric import Boolean, Float32, Float64, Int32, Int64, Numeric, as_numeric, in_range, promote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_INDEX_TYPES = (Int32, Int64)


def _pair(a: Numeric, other: Any) -> tuple[Numeric, Numeric] | None:
    if not isinstance(other, (int, float, Numeric, Value)):
        return None
    return a, as_numeric(other, type(a) if type(a) is not Boolean else None)


def _arith(
    python: Callable[[Any, Any], Any], int_name: str, float_name: str, index_name: str | None
) -> Callable[[Numeric, Numeric], Any]:
    def run(x: Numeric, y: Numeric) -> Any:
        cls = promote(type(x), type(y))
        if x.is_static and y.is_static:
            return cls.wrap(in_range(python(cls(x)._v, cls(y)._v), cls))
        if cls.signed is None:
            return cls.wrap(emit_float(float_name, cls(x).ir_value(), cls(y).ir_value()))
        b = Builder.current()
        if index_name is not None and cls in _INDEX_TYPES:
            return _of_index(cls, getattr(b, index_name)(_operand(cls(x)), _operand(cls(y))))
        return cls.wrap(b.binary(int_name, cls(x).ir_value(), cls(y).ir_value()))

    return run


def _of_index(cls: type[Numeric], made: Any) -> Any:
    """The result of index arithmetic: gathered constants may have left the type, which wraps."""
    if isinstance(made, int):
        return cls.wrap(in_range(made, cls))
    return cls.wrap(made if made.type == cls.ir else Builder.current().cast("arith.trunci", made, cls.ir))


def _operand(x: Numeric) -> Any:
    # A typed constant must not lose its width inside index arithmetic, which widens to the widest value.
    return x._v if isinstance(x, Int32) or isinstance(x._v, int) else x.ir_value()


def nonneg(x: Numeric) -> bool:
    """Whether a number is known not to be negative."""
    v = x._v
    rng = v.range if isinstance(v, Value) else (v, v)
    return x.signed is False or (rng is not None and rng[0] >= 0)


def refuse_negative(cls: type[Numeric], *numbers: Any) -> None:
    """Refuses a negative constant beside an unsigned run-time number, where its bits would count as a large one.

    Raises:
        TraceError: There is one.  Sums, products and bitwise operators take it: their bits are those of the sign.
    """
    if cls.signed is False and any(isinstance(x._v, Value) for x in numbers):
        for x in numbers:
            if not isinstance(x._v, Value) and x._v < 0:
                raise TraceError(
                    f"{x._v} beside a {cls}, which is never negative",
                    Builder.current().location(),
                    "convert the number to a wider signed type first: .to(fx.Int64)",
                )


def signed_side(cls: type[Numeric], x: type[Numeric], y: type[Numeric]) -> int | None:
    """Which operand of an unsigned common type may be negative: 0, 1 or none."""
    if cls.signed is not False or cls.width == 1 or x.signed == y.signed or t.I1 in (x.ir, y.ir):
        return None
    return 0 if x.signed else 1


def refuse_mixed(what: str, cls: type[Numeric], x: type[Numeric], y: type[Numeric]) -> None:
    """Refuses an operation in an unsigned common type that a negative number has no place in.

    Raises:
        TraceError: Always.
    """
    wide = f"fx.Int{min(2 * cls.width, 128)}"
    raise TraceError(
        f"{what} of {x} and {y}: as {cls}, a negative number would count as a large one",
        Builder.current().location(),
        f"convert both with .to({wide}) to compute with their values, or the signed one with .to(fx.{cls}) where it is "
        "never negative",
    )


def _divided_in(x: Numeric, y: Numeric, what: str) -> type[Numeric]:
    """The common type of a division.

    Raises:
        TraceError: It is unsigned, and an operand may be negative.
    """
    cls = promote(type(x), type(y))
    refuse_negative(cls, x, y)
    side = signed_side(cls, type(x), type(y))
    if side is not None and not nonneg((x, y)[side]):
        refuse_mixed(what, cls, type(x), type(y))
    return cls


def _division(x: Numeric, y: Numeric, remainder: bool) -> Any:
    cls = _divided_in(x, y, "a remainder" if remainder else "a quotient")
    x, y = cls(x), cls(y)
    if cls.signed is None:
        return _float_division(x, y, cls, remainder)
    if y.is_static and y._v == 0:
        raise TraceError("division by zero", Builder.current().location(), "divide by a number that is not zero")
    if x.is_static and y.is_static:
        return cls.wrap(in_range(operator.mod(x._v, y._v) if remainder else operator.floordiv(x._v, y._v), cls))
    b = Builder.current()
    if cls in _INDEX_TYPES and nonneg(x) and nonneg(y):
        if remainder:
            return _of_index(cls, b.index_rem(_operand(x), _operand(y)))
        return _of_index(cls, b.index_div(_operand(x), _operand(y), exact=True))
    a, d = x.ir_value(), y.ir_value()
    if cls.signed is False:
        return cls.wrap(b.binary("arith.remui" if remainder else "arith.divui", a, d))
    return cls.wrap(floor_division(b, a, d, remainder))


def ceil_div(x: Numeric, y: Numeric) -> Any:
    """The quotient rounded up, of any two integers; ``None`` where index arithmetic gives it as well."""
    cls, known = _divided_in(x, y, "a quotient"), y.static_value()
    if cls.signed is None or (x.is_static and y.is_static):
        return None
    if known == 0:
        raise TraceError("division by zero", Builder.current().location(), "divide by a number that is not zero")
    x, y = cls(x), cls(y)
    top = x._v.range[1] if isinstance(x._v, Value) and x._v.range is not None else None
    small = top is not None and isinstance(known, int) and top + known < 1 << (cls.width - 1)
    if small and cls in _INDEX_TYPES and nonneg(x) and nonneg(y):
        return None
    return cls.wrap(ceil_division(Builder.current(), x.ir_value(), y.ir_value(), bool(cls.signed)))


def _float_division(x: Numeric, y: Numeric, cls: type[Numeric], remainder: bool) -> Any:
    """Python's ``//`` and ``%``: the remainder has the sign of the divisor, and is exact."""
    if x.is_static and y.is_static and y._v != 0:
        return cls.wrap(in_range(operator.mod(x._v, y._v) if remainder else operator.floordiv(x._v, y._v), cls))
    return cls.wrap(float_division(x.ir_value(), y.ir_value(), remainder))


def _true_division(x: Numeric, y: Numeric) -> Any:
    cls = promote(type(x), type(y))
    if cls.signed is not None:
        cls = Float32 if cls.width <= 32 else Float64
    if x.is_static and y.is_static and cls(y)._v != 0:
        return cls.wrap(in_range(float(cls(x)) / float(cls(y)), cls))
    return cls.wrap(emit_float("arith.divf", cls(x).ir_value(), cls(y).ir_value()))


def _bitwise(python: Callable[[Any, Any], Any], name: str, index_name: str | None) -> Callable[[Numeric, Numeric], Any]:
    def run(x: Numeric, y: Numeric) -> Any:
        cls = Boolean if type(x) is type(y) is Boolean else promote(type(x), type(y))
        if cls.signed is None:
            raise TraceError(
                f"bitwise operator on {type(x)} and {type(y)}",
                Builder.current().location(),
                "use integers, or .bitcast",
            )
        if x.is_static and y.is_static:
            return cls.wrap(in_range(python(cls(x)._v, cls(y)._v), cls))
        b = Builder.current()
        if index_name is not None and cls in _INDEX_TYPES:
            return _of_index(cls, getattr(b, index_name)(_operand(cls(x)), _operand(cls(y))))
        return cls.wrap(b.binary(name, cls(x).ir_value(), cls(y).ir_value()))

    return run


def _shift(left: bool) -> Callable[[Numeric, Numeric], Any]:
    def run(x: Numeric, y: Numeric) -> Any:
        cls = Int32 if type(x) is Boolean else type(x)
        if cls.signed is None or type(y).signed is None:
            raise TraceError(f"shift of {type(x)} by {type(y)}", Builder.current().location(), "use integers")
        x, b = cls(x), Builder.active()
        count = y.static_value()
        if count is not None and not 0 <= count < cls.width:
            raise TraceError(f"shift of {cls} by {count}", b and b.location(), f"shift by 0 to {cls.width - 1} bits")
        if x.is_static and y.is_static:
            return cls.wrap(in_range((operator.lshift if left else operator.rshift)(x._v, y._v), cls))
        b = Builder.current()
        if cls is Int32 and isinstance(count, int) and isinstance(x._v, Value) and nonneg(x):
            # A left shift multiplies; a right shift of a non-negative value divides.
            return _of_index(cls, (b.index_shl if left else b.index_shr)(x._v, count))
        name = "arith.shli" if left else "arith.shrsi" if cls.signed else "arith.shrui"
        amount = cls(y).ir_value() if y.is_static else _widened(y, cls)
        return cls.wrap(b.binary(name, x.ir_value(), amount))

    return run


def _widened(y: Numeric, cls: type[Numeric]) -> Value:
    """A run-time shift amount in the type of what is shifted."""
    return cls(y).ir_value() if y.width <= cls.width else shift_amount(Builder.current(), y.ir_value(), cls.ir)


FLOAT_PREDICATES = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}


def _range_answer(kind: str, x: Numeric, y: Numeric) -> bool | None:
    """The result of an integer comparison where the known ranges decide it."""
    rx, ry = (v._v.range if isinstance(v._v, Value) else (v._v, v._v) for v in (x, y))
    if rx is None or ry is None or (type(x).signed is False and x.width > 1):
        return None
    below, above = rx[1] < ry[0], rx[0] > ry[1]
    if kind in ("lt", "ge") and (below or rx[0] >= ry[1]):
        return below if kind == "lt" else not below
    if kind in ("gt", "le") and (above or rx[1] <= ry[0]):
        return above if kind == "gt" else not above
    if kind in ("eq", "ne") and (below or above):
        return kind == "ne"
    return None


def _compare(kind: str) -> Callable[[Numeric, Numeric], Any]:
    def run(x: Numeric, y: Numeric) -> Any:
        cls = Boolean if type(x) is type(y) is Boolean else promote(type(x), type(y))
        refuse_negative(cls, x, y)
        side = signed_side(cls, type(x), type(y))
        if side is not None and nonneg((x, y)[side]):
            side = None
        if x.is_static and y.is_static and cls.signed is not None:
            return Boolean(getattr(operator, kind)(x._v, y._v))
        x, y = cls(x), cls(y)
        if x.is_static and y.is_static:
            return Boolean(getattr(operator, kind)(x._v, y._v))
        b = Builder.current()
        if cls.signed is None:
            return Boolean.wrap(b.cmpf(FLOAT_PREDICATES[kind], x.ir_value(), y.ir_value()))
        known = _range_answer(kind, x, y)
        if known is not None:
            return Boolean(known)
        sign = "" if kind in ("eq", "ne") else "s" if cls.signed else "u"
        made = b.cmpi(sign + kind, x.ir_value(), y.ir_value())
        return Boolean.wrap(made if side is None else by_value(kind, side, (x, y)[side].ir_value(), made))

    return run


def by_value(kind: str, side: int, signed: Value, as_unsigned: Value) -> Value:
    """An unsigned comparison put right for a signed operand, which is less than the other where it is negative.

    Args:
        kind: The comparison.
        side: Which operand is the signed one: 0 or 1.
        signed: Its bits in the common type, sign-extended.
        as_unsigned: The comparison of both as unsigned numbers.
    """
    b = Builder.current()
    negative = b.cmpi("slt", signed, b.constant(0, signed.type))
    if kind == "ne" or kind in (("lt", "le") if side == 0 else ("gt", "ge")):
        return b.binary("arith.ori", negative, as_unsigned)
    ones = b.constant(1, negative.type)
    return b.binary("arith.andi", b.binary("arith.xori", negative, ones), as_unsigned)


#: What Python would call different from any number, in silence.
_NO_NUMBERS = (str, bytes, list, tuple, dict, set, complex)


def _install(name: str, run: Callable[[Numeric, Numeric], Any], reflected: bool = True) -> None:
    def method(self: Numeric, other: Any) -> Any:
        pair = _pair(self, other)
        if pair is None and name in ("eq", "ne") and isinstance(other, _NO_NUMBERS):
            b = Builder.active()
            raise TraceError(
                f"{type(self)} is compared with {other!r:.60}", b and b.location(), "compare it with a number"
            )
        return NotImplemented if pair is None else run(*pair)

    def swapped(self: Numeric, other: Any) -> Any:
        pair = _pair(self, other)
        return NotImplemented if pair is None else run(pair[1], pair[0])

    setattr(Numeric, f"__{name}__", method)
    if reflected:
        setattr(Numeric, f"__r{name}__", swapped)


#: Larger whole exponents go through logarithms: the error of repeated multiplication grows with the exponent.
LARGEST_POWER = 16


def _power(x: Numeric, y: Numeric) -> Any:
    from .math import powf, powi

    cls, exponent = promote(type(x), type(y)), y.static_value()
    x = cls(x)
    # A literal exponent has taken the type of a float base, but still multiplies.
    if (
        exponent is not None
        and int(exponent) == exponent
        and (cls.signed is not None or abs(exponent) <= LARGEST_POWER)
    ):
        return powi(x, int(exponent))
    return powf(x, y)


def _neg(self: Numeric) -> Any:
    cls = Int32 if type(self) is Boolean else type(self)
    if cls.signed is not None:
        return cls(0) - self
    if isinstance(self._v, Value):
        promote(cls, cls)
        return cls.wrap(emit_float("arith.negf", self._v))
    return cls.wrap(-self._v)


def _abs(self: Numeric) -> Any:
    from .math import absf, absi

    return absf(self) if self.signed is None else absi(self)


def _invert(self: Numeric) -> Any:
    cls = type(self)
    if cls.signed is None:
        raise TraceError(f"~ on {cls}", Builder.current().location(), "use an integer or Boolean")
    v = self._v
    if not isinstance(v, Value):
        return cls.wrap(1 - v) if cls is Boolean else cls(~int(v))
    b = Builder.current()
    ones = b.constant(1 if cls is Boolean else -1, self.ir)
    return cls.wrap(b.binary("arith.xori", v, ones))


_install("add", _arith(operator.add, "arith.addi", "arith.addf", "index_add"))
_install("sub", _arith(operator.sub, "arith.subi", "arith.subf", "index_sub"))
_install("mul", _arith(operator.mul, "arith.muli", "arith.mulf", "index_mul"))
_install("floordiv", lambda x, y: _division(x, y, False))
_install("mod", lambda x, y: _division(x, y, True))
_install("truediv", _true_division)
_install("pow", _power)
_install("and", _bitwise(operator.and_, "arith.andi", "index_and"))
_install("or", _bitwise(operator.or_, "arith.ori", None))
_install("xor", _bitwise(operator.xor, "arith.xori", "index_xor"))
_install("lshift", _shift(True))
_install("rshift", _shift(False))
for _kind in ("lt", "le", "gt", "ge", "eq", "ne"):
    _install(_kind, _compare(_kind), reflected=False)
_UNARY: dict[str, Callable[[Numeric], Any]] = {
    "__neg__": _neg, "__pos__": lambda x: x, "__abs__": _abs, "__invert__": _invert
}  # fmt: skip
for _name, _method in _UNARY.items():
    setattr(Numeric, _name, _method)
