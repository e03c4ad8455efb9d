"""Exponentials, logarithms and sines, defined once for both engines.

Each function is a fixed sequence of operations on doubles, written against `Ops`, so that the NumPy engine and the host
code of the second engine compute the same bits on every machine.  The relative error is below 2**-50, and results are
rounded to float or a smaller format afterwards, so that all but about one in 2**26 are correctly rounded.

Source: W. Cody and W. Waite, "Software manual for the elementary functions" (argument reduction); Taylor series.
"""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

Value = Any


class Ops(Protocol):
    """Operations of an engine on doubles, on 64-bit integers and on conditions."""

    def const(self, number: float) -> Value:
        """A double."""

    def add(self, a: Value, b: Value) -> Value:
        """``a + b``."""

    def sub(self, a: Value, b: Value) -> Value:
        """``a - b``."""

    def mul(self, a: Value, b: Value) -> Value:
        """``a * b``."""

    def div(self, a: Value, b: Value) -> Value:
        """``a / b``."""

    def rint(self, a: Value) -> Value:
        """The nearest integer, ties to even."""

    def floor(self, a: Value) -> Value:
        """The next integer below."""

    def less(self, a: Value, b: Value) -> Value:
        """Whether ``a < b``."""

    def same(self, a: Value, b: Value) -> Value:
        """Whether ``a == b``; false for NaN."""

    def select(self, condition: Value, yes: Value, no: Value) -> Value:
        """One of two doubles."""

    def integer(self, a: Value) -> Value:
        """A double without fraction as an integer."""

    def number(self, i: Value) -> Value:
        """An integer as a double."""

    def bits(self, a: Value) -> Value:
        """The bit pattern of a double."""

    def from_bits(self, i: Value) -> Value:
        """The double of a bit pattern."""

    def plus(self, i: Value, number: int) -> Value:
        """An integer plus a constant."""

    def shift(self, i: Value, left: int) -> Value:
        """An integer shifted left, or (negative) right, with its sign."""

    def mask(self, i: Value, number: int) -> Value:
        """An integer and a constant, bit by bit."""

    def total(self, i: Value, j: Value) -> Value:
        """The sum of integers."""

    def either(self, i: Value, j: Value) -> Value:
        """The bits that one of two integers has."""

    def above(self, i: Value, number: int) -> Value:
        """Whether an integer is greater than a constant."""

    def pick(self, condition: Value, yes: Value, no: Value) -> Value:
        """One of two integers."""


class NumpyOps:
    """`Ops` on arrays."""

    const = staticmethod(np.float64)
    add, sub, mul, div = np.add, np.subtract, np.multiply, np.divide
    rint, floor, less, same = np.rint, np.floor, np.less, np.equal
    select = pick = staticmethod(np.where)
    plus, mask, total, either, above = np.add, np.bitwise_and, np.add, np.bitwise_or, np.greater

    def integer(self, a: Value) -> Value:
        """A double without fraction as an integer."""
        return a.astype(np.int64)

    def number(self, i: Value) -> Value:
        """An integer as a double."""
        return i.astype(np.float64)

    def bits(self, a: Value) -> Value:
        """The bit pattern of a double."""
        return a.view(np.int64)

    def from_bits(self, i: Value) -> Value:
        """The double of a bit pattern."""
        return i.view(np.float64)

    def shift(self, i: Value, left: int) -> Value:
        """An integer shifted left, or (negative) right, with its sign."""
        return i << left if left >= 0 else i >> -left


NUMPY = NumpyOps()
# The high parts have 41 significant bits, so that their product with an exponent is exact.
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42fefa3000p-1"), 2.8235290563031577e-13
_LOG10_2_HIGH, _LOG10_2_LOW = float.fromhex("0x1.34413509f7000p-2"), 1.42050232272661e-13


def _series(o: Ops, x: Value, terms: list[float]) -> Value:
    """``terms[0] + terms[1] * x + ...``, from the last term on."""
    total = o.const(terms[-1])
    for term in terms[-2::-1]:
        total = o.add(o.mul(total, x), o.const(term))
    return total


_EXP = [1 / math.factorial(i) for i in range(14)]
_EXP2 = [math.log(2) ** i / math.factorial(i) for i in range(14)]
_ATANH = [2 / (2 * i + 1) for i in range(12)]
_SIN = [(-1) ** i * (2 * math.pi) ** (2 * i + 1) / math.factorial(2 * i + 1) for i in range(9)]
_COS = [(-1) ** i * (2 * math.pi) ** (2 * i) / math.factorial(2 * i) for i in range(10)]
# Beyond this power of two a result is infinite or zero in every format that is rounded to.
_MOST = 1000.0


def _clamped(o: Ops, x: Value, most: float) -> Value:
    x = o.select(o.less(x, o.const(-most)), o.const(-most), x)
    return o.select(o.less(x, o.const(most)), x, o.const(most))  # NaN becomes a number here


def _scaled(o: Ops, x: Value, factor: Value, power: Value) -> Value:
    """``factor * 2**power``, or NaN where ``x`` is one."""
    scale = o.from_bits(o.shift(o.plus(o.integer(power), 1023), 52))
    return o.select(o.same(x, x), o.mul(factor, scale), x)


def exp2(o: Ops, x: Value) -> Value:
    """``2**x``."""
    near = _clamped(o, x, _MOST)
    whole = o.rint(near)
    return _scaled(o, x, _series(o, o.sub(near, whole), _EXP2), whole)


def exp(o: Ops, x: Value) -> Value:
    """``e**x``."""
    near = _clamped(o, x, _MOST * math.log(2))
    whole = o.rint(o.mul(near, o.const(1 / math.log(2))))
    rest = o.sub(o.sub(near, o.mul(whole, o.const(_LN2_HIGH))), o.mul(whole, o.const(_LN2_LOW)))
    return _scaled(o, x, _series(o, rest, _EXP), whole)


def exp10(o: Ops, x: Value) -> Value:
    """``10**x``."""
    near = _clamped(o, x, _MOST * math.log10(2))
    whole = o.rint(o.mul(near, o.const(1 / math.log10(2))))
    rest = o.sub(o.sub(near, o.mul(whole, o.const(_LOG10_2_HIGH))), o.mul(whole, o.const(_LOG10_2_LOW)))
    return _scaled(o, x, _series(o, o.mul(rest, o.const(math.log(10))), _EXP), whole)


def _logarithm(o: Ops, x: Value) -> tuple[Value, Value]:
    """Exponent and natural logarithm of the mantissa (between ``sqrt(1/2)`` and ``sqrt(2)``) of a positive number."""
    bits = o.plus(o.bits(x), -_HALF_ROOT)
    power = o.shift(bits, -52)
    mantissa = o.from_bits(o.plus(o.mask(bits, (1 << 52) - 1), _HALF_ROOT))
    above = o.sub(mantissa, o.const(1.0))
    ratio = o.div(above, o.add(mantissa, o.const(1.0)))
    return o.number(power), o.mul(ratio, _series(o, o.mul(ratio, ratio), _ATANH))


_HALF_ROOT = int(np.float64(math.sqrt(0.5)).view(np.int64))


def _special(o: Ops, x: Value, result: Value) -> Value:
    """A logarithm with those of zero, of negative numbers, of infinity and of NaN."""
    zero, infinity = o.const(0.0), o.const(math.inf)
    result = o.select(o.less(x, infinity), result, x)
    result = o.select(o.less(x, zero), o.const(math.nan), result)
    return o.select(o.same(x, zero), o.const(-math.inf), result)


def log2(o: Ops, x: Value) -> Value:
    """The logarithm to base 2."""
    power, rest = _logarithm(o, x)
    return _special(o, x, o.add(power, o.mul(rest, o.const(1 / math.log(2)))))


def log(o: Ops, x: Value) -> Value:
    """The natural logarithm."""
    power, rest = _logarithm(o, x)
    low = o.add(o.mul(power, o.const(_LN2_LOW)), rest)
    return _special(o, x, o.add(o.mul(power, o.const(_LN2_HIGH)), low))


def log10(o: Ops, x: Value) -> Value:
    """The logarithm to base 10."""
    power, rest = _logarithm(o, x)
    low = o.add(o.mul(power, o.const(_LOG10_2_LOW)), o.mul(rest, o.const(1 / math.log(10))))
    return _special(o, x, o.add(o.mul(power, o.const(_LOG10_2_HIGH)), low))


def _turns(o: Ops, x: Value, quarter: int) -> Value:
    """The sine of ``x + quarter / 4`` turns."""
    part = o.sub(x, o.floor(x))
    quarters = o.rint(o.mul(part, o.const(4.0)))
    rest = o.sub(part, o.mul(quarters, o.const(0.25)))
    square = o.mul(rest, rest)
    sine, cosine = o.mul(rest, _series(o, square, _SIN)), _series(o, square, _COS)
    turn = o.mask(o.plus(o.integer(o.select(o.same(part, part), quarters, o.const(0.0))), quarter), 3)
    odd = o.same(o.number(o.mask(turn, 1)), o.const(1.0))
    value = o.select(odd, cosine, sine)
    return o.select(o.less(o.number(turn), o.const(2.0)), value, o.sub(o.const(0.0), value))


def sine(o: Ops, x: Value) -> Value:
    """The sine of ``x`` turns."""
    return _turns(o, x, 0)


def cosine(o: Ops, x: Value) -> Value:
    """The cosine of ``x`` turns."""
    return _turns(o, x, 1)


#: The functions by name of the intrinsic.
FUNCTIONS = {
    "exp2": exp2, "exp": exp, "exp10": exp10, "log2": log2, "log": log, "log10": log10, "amdgcn.exp2": exp2,
    "amdgcn.log": log2, "amdgcn.sin": sine, "amdgcn.cos": cosine,
}  # fmt: skip
