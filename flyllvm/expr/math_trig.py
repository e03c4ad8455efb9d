"""Sine, cosine and tangent of f32: the hardware's instructions reduce no range, so that is done here.

Up to 30000 the argument loses multiples of pi/2 in three steps of ``fma``; above, the bits of 2/pi that matter are
multiplied with the mantissa in integers (Payne and Hanek), under a branch that other waves do not take.
"""

from __future__ import annotations

from ..ir.builder import Builder
from .math import absf, fma, roundeven
from .numeric import Float32, Int32, Int64, Uint32, Uint64, choose
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: pi/2 as three f32, each the rest of the one before.
_HALF_PI = (1.5707963705062866, -4.371138828673793e-08, -1.7151245100058819e-15)
#: Fraction bits of 2/pi in words of 32, after a word of zeros.
_TWO_OVER_PI = (
    0, 0xA2F9836E, 0x4E441529, 0xFC2757D1, 0xF534DDC0, 0xDB629599, 0x3C439041, 0xFE5163AB, 0xDEBBC561
)  # fmt: skip
_LARGE = 30000.0
_SIN = (-0.16666654423257773, 0.008332148751128922, -0.00019513624109056315)
_COS = (0.04166664535424109, -0.0013887299941740911, 2.4431260038134272e-05)


def _near(x: Any) -> tuple[Any, Any]:
    """(rest in [-pi/4, pi/4], quadrant) of a moderate argument."""
    n = roundeven(x * 0.6366197466850281)
    r = fma(n, -_HALF_PI[0], x)
    r = fma(n, -_HALF_PI[1], r)
    return fma(n, -_HALF_PI[2], r), n.to(Int32)


def _far(x: Any) -> tuple[Any, Any]:
    """The same of a large one: the magnitude times 2/pi modulo 4, in 96 bits."""
    bits = x.bitcast(Uint32)
    skip = ((bits >> 23) & 0xFF) - 120
    index, shift = skip >> 5, (skip & 31).to(Uint64)
    words = [_word(index, i) for i in range(4)]
    high, mid, low = ((((words[i] << 32) | words[i + 1]) << shift) >> 32 for i in range(3))
    mantissa = ((bits & 0x7FFFFF) | 0x800000).to(Uint64)
    carry = (mantissa * low) >> 32
    middle = mantissa * mid + carry
    top = mantissa * high + (middle >> 32)
    product = (top << 32) | (middle & 0xFFFFFFFF)
    fraction = (product << 2).bitcast(Int64).to(Float32)
    r = fraction * (1.5707963267948966 * 2.0**-64)
    quadrant = ((product >> 62) + ((product >> 61) & 1)).to(Int32)
    negative = x < 0.0
    return choose(negative, -r, r), choose(negative, -quadrant, quadrant)


def _word(index: Any, place: int) -> Any:
    """Word ``index + place`` of 2/pi, for an index of 0 to 4."""
    made: Any = Uint64(_TWO_OVER_PI[place])
    for i in range(1, 5):
        made = choose(index == i, Uint64(_TWO_OVER_PI[i + place]), made)
    return made


def _reduced(x: Any) -> tuple[Any, Any]:
    b = Builder.current()
    moderate = absf(x) <= _LARGE
    near, quadrant = _near(choose(moderate, x, 0.0))

    def far() -> list[Any]:
        r, q = _far(x)
        return [r.ir_value(), q.ir_value()]

    made = b.if_(moderate.ir_value(), lambda: [near.ir_value(), quadrant.ir_value()], far)
    r = Float32.wrap(made[0])
    # An infinity has no sine: 0 times it is NaN, and NaN stays.
    return choose(absf(x) < float("inf"), r, x * 0.0), Int32.wrap(made[1])


def _sine(r: Any) -> Any:
    s = r * r
    return fma(r * s, fma(s, fma(s, _SIN[2], _SIN[1]), _SIN[0]), r)


def _cosine(r: Any) -> Any:
    s = r * r
    return fma(s * s, fma(s, fma(s, _COS[2], _COS[1]), _COS[0]), fma(s, -0.5, 1.0))


def _turned(x: Any, shift: int) -> Any:
    r, quadrant = _reduced(x)
    if shift:
        quadrant = quadrant + 1
    made = choose((quadrant & 1) == 1, _cosine(r), _sine(r))
    return choose((quadrant & 2) == 2, -made, made)


def _elementwise(x: Any, one: Any) -> Any:
    if not isinstance(x, Vector):
        return one(x)
    return Vector.from_elements([one(x[i]) for i in range(x.count)], x.dtype).reshape(x.shape)


def sin(x: Any) -> Any:
    """The sine of an angle in radians."""
    return _elementwise(x, lambda v: choose(v == 0.0, v, _turned(v, 0)))


def cos(x: Any) -> Any:
    """The cosine of an angle in radians."""
    return _elementwise(x, lambda v: _turned(v, 1))


def _tangent(x: Any) -> Any:
    r, quadrant = _reduced(x)
    s, c = _sine(r), _cosine(r)
    odd = (quadrant & 1) == 1
    return choose(x == 0.0, x, choose(odd, -c, s) / choose(odd, s, c))


def tan(x: Any) -> Any:
    """The tangent of an angle in radians."""
    return _elementwise(x, _tangent)


__all__ = ["cos", "sin", "tan"]
