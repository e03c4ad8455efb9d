"""Numbers to codes of floats of at most 8 bits, defined once for both engines.

Each function is a fixed sequence of operations on doubles and 64-bit integers, written against `elementary.Ops`.  The
format comes as a `Format`; `numerics` has the formats, their tables and their sources.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

from .elementary import Ops, Value

_SIZE = (1 << 63) - 1


class Format(Protocol):
    """What `numerics.SmallFloat` tells of a format."""

    bits: int
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: str
    min_normal: float

    @property
    def max_code(self) -> int:
        """Code of the largest finite value."""

    @property
    def nan_code(self) -> int | None:
        """Code of NaN without its sign, or ``None``."""


def encode(o: Ops, fmt: Any, x: Value, saturate: bool = False, random: Value | None = None) -> Value:
    """The code of a double: rounded to nearest, ties to even; with ``random`` (a 32-bit integer) stochastically."""
    bits = o.bits(x)
    size = o.mask(bits, _SIZE)
    if random is not None:
        size = o.bits(_stochastic(o, fmt, size, random))
    number = o.from_bits(size)
    dropped = 52 - fmt.mantissa_bits
    rebased = o.plus(size, -(1023 - fmt.bias) << 52)
    odd = o.mask(o.shift(rebased, -dropped), 1)
    normal = o.shift(o.plus(o.total(rebased, odd), (1 << (dropped - 1)) - 1), -dropped)
    below = o.less(number, o.const(fmt.min_normal))
    steps = o.mul(o.select(below, number, o.const(0.0)), o.const(2.0 ** (fmt.bias - 1 + fmt.mantissa_bits)))
    code = o.pick(below, o.integer(o.rint(steps)), normal)
    return _finished(o, fmt, x, bits, code, saturate)


def _finished(o: Ops, fmt: Any, x: Value, bits: Value, code: Value, saturate: bool) -> Value:
    """The code with overflow, NaN and sign."""
    nan, most = fmt.nan_code, fmt.max_code
    infinity = ((1 << fmt.exponent_bits) - 1) << fmt.mantissa_bits
    beyond = most if saturate or nan is None else infinity if fmt.specials == "ieee" else nan
    code = o.pick(o.above(code, most), o.plus(o.mask(code, 0), beyond), code)
    is_number = o.same(x, x)
    code = o.pick(is_number, code, o.plus(o.mask(code, 0), most if nan is None else nan))
    if fmt.specials == "unsigned":
        return code
    sign = o.mask(o.shift(bits, fmt.bits - 64), 1 << (fmt.bits - 1))
    none = o.mask(sign, 0)
    if nan is None:
        sign = o.pick(is_number, sign, none)
    if fmt.specials == "fnuz":  # no minus zero: its code is the one NaN
        sign = o.pick(o.above(code, 0), sign, none)
    return o.either(code, sign)


def _stochastic(o: Ops, fmt: Any, size: Value, random: Value) -> Value:
    """A magnitude plus random bits below the last kept one, cut."""
    dropped = 23 - fmt.mantissa_bits
    return cut(o, size, random, 1 - fmt.bias, fmt.mantissa_bits, dropped)


def cut(o: Ops, size: Value, random: Value, least: int, digits: int, dropped: int) -> Value:
    """A magnitude (its bits) cut to ``digits`` after the first, after adding ``dropped`` random bits below them.

    ``least`` is the smallest normal exponent.
    """
    exponent = o.shift(size, -52)
    exponent = o.pick(o.above(exponent, least + 1023), exponent, o.plus(o.mask(exponent, 0), least + 1023))
    quantum = o.from_bits(o.shift(o.plus(exponent, -digits), 52))
    fraction = o.mul(o.number(o.shift(random, dropped - 32)), o.const(2.0**-dropped))
    return o.mul(o.floor(o.add(o.div(o.from_bits(size), quantum), fraction)), quantum)


def half_stochastic(o: Ops, x: Value, random: Value) -> Value:
    """A double that is a half, or too large for one, after stochastic rounding by 13 random bits."""
    bits = o.bits(x)
    size = o.bits(cut(o, o.mask(bits, _SIZE), random, -14, 10, 13))
    sign = o.mask(bits, -1 << 63)
    return o.select(o.less(o.from_bits(o.mask(bits, _SIZE)), o.const(math.inf)), o.from_bits(o.either(size, sign)), x)
