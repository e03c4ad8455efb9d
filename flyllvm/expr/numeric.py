"""Numbers of the authoring language: the types, their promotion, and selection.

Promotion follows FlyDSL's rules: float with integer gives the float, widened to 32 or 64 bits where the integer is
that wide; two floats the wider one, f16 with bf16 gives f32; two integers the wider one, and of equal width the
unsigned one.  Integers wrap.  A Python number takes the type of the other operand where it fits that type.
"""

from __future__ import annotations

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .number import BY_IR, TYPES, Numeric, NumericMeta, in_range, round_float, wrap_int

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Boolean(Numeric, ir=t.I1, signed=False):
    """A truth value; it counts as Int32 in arithmetic."""

    __slots__ = ()


class Int4(Numeric, ir=t.I4, signed=True):
    """Signed 4-bit integer."""

    __slots__ = ()


class Int8(Numeric, ir=t.I8, signed=True):
    """Signed 8-bit integer."""

    __slots__ = ()


class Int16(Numeric, ir=t.I16, signed=True):
    """Signed 16-bit integer."""

    __slots__ = ()


class Int32(Numeric, ir=t.I32, signed=True):
    """Signed 32-bit integer; indices and coordinates have this type."""

    __slots__ = ()


class Int64(Numeric, ir=t.I64, signed=True):
    """Signed 64-bit integer."""

    __slots__ = ()


class Int128(Numeric, ir=t.I128, signed=True):
    """Signed 128-bit integer."""

    __slots__ = ()


class Uint8(Numeric, ir=t.I8, signed=False):
    """Unsigned 8-bit integer."""

    __slots__ = ()


class Uint16(Numeric, ir=t.I16, signed=False):
    """Unsigned 16-bit integer."""

    __slots__ = ()


class Uint32(Numeric, ir=t.I32, signed=False):
    """Unsigned 32-bit integer."""

    __slots__ = ()


class Uint64(Numeric, ir=t.I64, signed=False):
    """Unsigned 64-bit integer."""

    __slots__ = ()


class Uint128(Numeric, ir=t.I128, signed=False):
    """Unsigned 128-bit integer."""

    __slots__ = ()


class Float16(Numeric, ir=t.F16, signed=None):
    """IEEE half precision."""

    __slots__ = ()


class BFloat16(Numeric, ir=t.BF16, signed=None):
    """The upper half of an f32: 8 exponent and 7 mantissa bits."""

    __slots__ = ()


class Float32(Numeric, ir=t.F32, signed=None):
    """IEEE single precision."""

    __slots__ = ()


class Float64(Numeric, ir=t.F64, signed=None):
    """IEEE double precision."""

    __slots__ = ()


class Float8E4M3FN(Numeric, ir=t.F8E4M3FN, signed=None):
    """OCP 8-bit float: bias 7, largest 448, no infinities."""

    __slots__ = ()


class Float8E5M2(Numeric, ir=t.F8E5M2, signed=None):
    """OCP 8-bit float: bias 15, largest 57344, with infinities."""

    __slots__ = ()


class Float8E4M3FNUZ(Numeric, ir=t.F8E4M3FNUZ, signed=None):
    """8-bit float of gfx942: bias 8, largest 240, one zero, one NaN."""

    __slots__ = ()


class Float8E5M2FNUZ(Numeric, ir=t.F8E5M2FNUZ, signed=None):
    """8-bit float of gfx942: bias 16, largest 57344, one zero, one NaN."""

    __slots__ = ()


class Float8E8M0FNU(Numeric, ir=t.F8E8M0FNU, signed=None):
    """A power of two, as scales are stored: 2**(x - 127)."""

    __slots__ = ()


class Float6E2M3FN(Numeric, ir=t.F6E2M3FN, signed=None):
    """OCP 6-bit float, largest 7.5."""

    __slots__ = ()


class Float6E3M2FN(Numeric, ir=t.F6E3M2FN, signed=None):
    """OCP 6-bit float, largest 28."""

    __slots__ = ()


class Float4E2M1FN(Numeric, ir=t.F4E2M1FN, signed=None):
    """OCP 4-bit float: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives."""

    __slots__ = ()


Index = Int32


def of_ir(value: Value, signed: bool = True) -> Numeric:
    """A number around an IR value, by its type."""
    cls = BY_IR[t.scalar_of(value.type).text]
    if not signed and cls.signed:
        cls = TYPES[f"U{cls.__name__.lower()}"]
    return cls.wrap(value)


# --- promotion -----------------------------------------------------------------------------------


def promote(a: type[Numeric], b: type[Numeric], arithmetic: bool = True) -> type[Numeric]:
    """The common type of two operands.

    Raises:
        TraceError: There is none; an explicit cast is needed.
    """
    if arithmetic:
        if a.ir is t.I1:
            a = Int32
        if b.ir is t.I1:
            b = Int32
    if a is b:
        if arithmetic:
            _rank_needed(a, b)
        return a
    if (a.signed is None) != (b.signed is None):
        f, i = (a, b) if a.signed is None else (b, a)
        _rank_needed(f, i)
        return f if f.width >= i.width or i.width <= 16 else (Float32 if i.width <= 32 else Float64)
    if a.signed is None:
        _rank_needed(a, b)
        if a.width == b.width:
            return Float32
        return a if a.width > b.width else b
    if a.signed == b.signed:
        return a if a.width >= b.width else b
    u, s = (b, a) if a.signed else (a, b)
    return u if u.width >= s.width else s


def _rank_needed(a: type[Numeric], b: type[Numeric]) -> None:
    for cls in (a, b):
        if cls.signed is None and cls.width < 16:
            raise TraceError(f"{a} with {b}: {cls} takes part in no arithmetic", fix="cast it with .to(fx.Float32)")


def as_numeric(x: Any, like: type[Numeric] | None = None) -> Numeric:
    """A number; a Python number takes the type of the other operand where it fits that type."""
    if isinstance(x, Numeric):
        return x
    if isinstance(x, Value):
        return of_ir(x)
    if isinstance(x, bool):
        return Boolean.wrap(int(x))
    if isinstance(x, int):
        if like is not None and _fits(x, like):
            return like(x)
        if not -(1 << 63) <= x < 1 << 63:
            return Int128(x)
        return Int32(x) if -(1 << 31) <= x < 1 << 31 else Int64(x)
    if isinstance(x, float):
        if like is not None and like.signed is None:
            made = like(x)
            return made if abs(x) == float("inf") or abs(float(made)) != float("inf") else Float32(x)
        return Float32(x)
    item = getattr(x, "item", None)
    if callable(item) and not getattr(x, "shape", ()):
        return as_numeric(item(), like)
    raise TraceError(f"{x!r} is not a number", fix="use Python or traced numbers")


def integer(x: Any, what: str, cls: type[Numeric] = Int32) -> Any:
    """A whole number as a type: an offset, a lane, a word of bits.

    Args:
        x: The number.
        what: What it is, for the message.
        cls: ``Int32`` or ``Int64``.

    Raises:
        TraceError: It is a float, or wider than the type and not known to fit.
    """
    n = as_numeric(x)
    if n.signed is None:
        raise TraceError(
            f"{what} is a {type(n)}",
            Builder.current().location(),
            f"use an integer: .to(fx.{cls}) for its whole part, .bitcast(fx.{cls}) for its bits",
        )
    if n.width > cls.width:
        known: Any = n._v.range if isinstance(n._v, Value) else (n._v, n._v)
        if known is None or known[0] < -(1 << (cls.width - 1)) or known[1] >= 1 << cls.width:
            raise TraceError(
                f"{what} is {n!r}, which may not fit {cls}",
                Builder.current().location(),
                f"convert it with .to(fx.{cls}) where it is known to be small",
            )
    return cls(n)


def count_of(x: Any, what: str, low: int = 0, high: int | None = None) -> int:
    """A compile-time whole number within bounds.

    Raises:
        TraceError: It is none.
    """
    known = x.static_value() if isinstance(x, Numeric) and x.signed is not None else x
    if type(known) is not int or known < low or (high is not None and known > high):
        b, span = Builder.active(), f"{low} or more" if high is None else f"{low} to {high}"
        raise TraceError(f"{what} is {x!r}", b and b.location(), f"use a compile-time int of {span}")
    return known


def refuse_too_large(value: Any, cls: type[Numeric]) -> None:
    """Refuses a Python int whose bits do not fit an integer type: what is written down should be what is stored.

    Raises:
        TraceError: It does not fit, neither as a signed nor as an unsigned number.
    """
    if (
        type(value) is int
        and cls.signed is not None
        and cls.width > 1
        and not -(1 << cls.width >> 1) <= value < 1 << cls.width
    ):
        raise TraceError(
            f"{value} as {cls}: it has more than {cls.width} bits",
            fix=f"use a number that fits, a wider type, or {cls}({value}) to keep the low bits",
        )


def _fits(x: int, like: type[Numeric]) -> bool:
    if like.signed is None:
        return abs(x) < 1 << 1000 and abs(round_float(float(x), like)) != float("inf")
    return like.ir is not t.I1 and wrap_int(x, like) == x


def choose(cond: Any, a: Any, b: Any) -> Any:
    """``a`` where ``cond``, else ``b``; no branch.  Both become their common type."""
    c = as_numeric(cond)
    known = c.static_value()
    x = as_numeric(a, type(b) if isinstance(b, Numeric) else None)
    y = as_numeric(b, type(x))
    cls = type(x) if type(x) is type(y) else promote(type(x), type(y), arithmetic=False)
    if known is not None:
        return cls(x if known else y)
    flag = c.ir_value() if c.ir is t.I1 else Boolean(c).ir_value()
    return cls.wrap(Builder.current().select(flag, cls(x).ir_value(), cls(y).ir_value()))


__all__ = [
    "BY_IR", "TYPES", "BFloat16", "Boolean", "Float4E2M1FN", "Float6E2M3FN", "Float6E3M2FN", "Float8E4M3FN",
    "Float8E4M3FNUZ", "Float8E5M2", "Float8E5M2FNUZ", "Float8E8M0FNU", "Float16", "Float32", "Float64", "Index", "Int4",
    "Int8", "Int16", "Int32", "Int64", "Int128", "Numeric", "NumericMeta", "Uint8", "Uint16", "Uint32", "Uint64",
    "Uint128", "as_numeric", "choose", "count_of", "in_range", "integer", "of_ir", "promote", "round_float", "wrap_int",
]  # fmt: skip
