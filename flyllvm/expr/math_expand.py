"""Expansions of mathematical functions that AMDGPU has no code for, on f32 numbers and vectors.

Polynomials are minimax fits of our own; the bound of each function stands in ``math_table``.
"""

from __future__ import annotations

from .math import absf, copysign, exp, exp2, fma, isnan, log, log2, sqrt
from .math_trig import cos, sin, tan
from .numeric import Float32, Float64, Int32
from .vector import Vector, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INF, NAN = float("inf"), float("nan")
_LN2 = 0.6931471805599453


def poly(x: Any, coefficients: tuple[float, ...]) -> Any:
    """``c0 + c1 x + c2 x**2 + ...`` by Horner's rule with ``fma``."""
    made: Any = coefficients[-1]
    for c in reversed(coefficients[:-1]):
        made = fma(x, made, c)
    return made


def constant(like: Any, value: float) -> Any:
    """A constant of the type and shape of an operand."""
    return Vector.filled(like.shape, value, like.dtype) if isinstance(like, Vector) else like.dtype(value)


def _intrinsic(name: str, x: Any, *more: Any) -> Any:
    """An LLVM intrinsic on every element."""
    from ..ir import types as t
    from ..ir.builder import Builder

    b = Builder.current()
    v = x.ir_value()
    extra = [m.ir_value() for m in more]

    def one(i: int) -> Any:
        made = b.intrinsic(name, t.scalar_of(v.type), [b.extract(o, i) for o in (v, *extra)], pure=True)
        return made

    if not isinstance(x, Vector):
        return type(x).wrap(one(0))
    parts = [one(i) for i in range(x.count)]
    return x.like(b.concat(parts) if len(parts) > 1 else b.broadcast(parts[0], 1))


def ldexp(x: Any, n: Any) -> Any:
    """``x * 2**n`` for an f32 and an Int32, rounded once."""
    return _intrinsic("llvm.ldexp.f32.i32", x, n)


def rsqrt(x: Any) -> Any:
    """The hardware's approximation, with denormals scaled into its range."""
    from .math import emitted

    small = absf(x) < 2.0**-126
    made = emitted("math.rsqrt", where(small, x * 2.0**24, x))
    return where(small, made * 2.0**12, made)


def rsqrt_f64(x: Any) -> Any:
    """One over the root."""
    return 1.0 / sqrt(x)


def expm1(x: Any) -> Any:
    """``(u - 1) * x / log(u)`` with ``u = exp(x)``: the errors of u and of its logarithm cancel."""
    u = exp(x)
    less = u - 1.0
    made = less * (x / log(u))
    made = where(absf(x) < 2.0**-12, fma(x * x, 0.5, x), made)
    made = where(x == 0.0, x, made)
    return where(absf(x) > 17.5, less, made)


def log1p(x: Any) -> Any:
    """``log(u) * x / (u - 1)`` with ``u = 1 + x``."""
    u = 1.0 + x
    made = log(u) * (x / (u - 1.0))
    made = where(u == 1.0, x, made)
    return where((x == INF) | (u == 0.0), log(u), made)


def cbrt(x: Any) -> Any:
    """``2**(log2(x) / 3)`` and a step of Newton; denormals are scaled."""
    small = absf(x) < 2.0**-126
    a = absf(where(small, x * 2.0**24, x))
    y = exp2(log2(a) * (1.0 / 3.0))
    square = y * y
    y = y - fma(square, y, -a) / (3.0 * square)
    y = copysign(where(small, y * 2.0**-8, y), x)
    return where((x == 0.0) | (absf(x) == INF) | isnan(x), x, y)


def tanh(x: Any) -> Any:
    """A polynomial for small arguments, ``1 - 2 / (exp(2x) + 1)`` for the others."""
    a = absf(x)
    s = x * x
    small = fma(
        x * s,
        poly(s, (-0.33333259849303454, 0.13330830369641125, -0.05368802466908737, 0.02046942396757131,
                 -0.00551516761962012)),
        x,
    )  # fmt: skip
    large = 1.0 - 2.0 / (exp(a + a) + 1.0)
    return copysign(where(a < 0.6, absf(small), large), x)


def sinh(x: Any) -> Any:
    """From ``expm1``; large arguments halve the exponent so that the result overflows only where it must."""
    a = absf(x)
    e = expm1(a)
    small = 0.5 * (e + e / (e + 1.0))
    half = exp(0.5 * a)
    return copysign(where(a > 17.5, (0.5 * half) * half, small), x)


def cosh(x: Any) -> Any:
    """Half of ``exp(x) + exp(-x)``; large arguments halve the exponent."""
    a = absf(x)
    e = exp(a)
    half = exp(0.5 * a)
    return where(a > 17.5, (0.5 * half) * half, 0.5 * e + 0.5 / e)


def erf(x: Any) -> Any:
    """An odd polynomial below 0.92; above it ``1 - 2**p`` with a polynomial p for ``log2(1 - erf)``."""
    a = absf(x)
    s = x * x
    small = x * poly(
        s,
        (1.1283791664109943, -0.37612631621151776, 0.11283664065679636, -0.02685770763490144, 0.0051969567248808055,
         -0.0008097744179695595, 8.185231393161951e-05),
    )  # fmt: skip
    inside = where(a > 4.1, constant(a, 4.1), a)
    p = poly(
        inside,
        (-0.00025605927081371954, -1.6269987520372204, -0.9190828538075461, -0.15009427099364966, 0.032139089101991355,
         -0.004408322373883014, 0.0002844744752277105),
    )  # fmt: skip
    made = where(a < 0.92, small, copysign(1.0 - exp2(p), x))
    return where(isnan(x), x, made)


# --- inverse circular functions ------------------------------------------------------------------

_ATAN = (
    -0.33333299089259816, 0.19998548283006473, -0.1426424162581013, 0.10952185330448325, -0.08403448668603569,
    0.057957560288320095, -0.031177808790580935, 0.010914584140827254, -0.0017936165606943137,
)  # fmt: skip
_HALF_PI_HI, _HALF_PI_LO = 1.5707963705062866, -4.371138828673793e-08
_PI_HI, _PI_LO = 3.1415927410125732, -8.742277657347586e-08


def _atan_unit(q: Any) -> Any:
    """The arc tangent of 0 to 1."""
    s = q * q
    return fma(q * s, poly(s, _ATAN), q)


def atan(x: Any) -> Any:
    """A polynomial up to 1, the complement of the reciprocal above."""
    a = absf(x)
    big = a > 1.0
    r = _atan_unit(where(big, 1.0 / a, a))
    r = where(big, _HALF_PI_HI - (r - _HALF_PI_LO), r)
    return where(isnan(x), x, copysign(r, x))


def atan2(y: Any, x: Any) -> Any:
    """The angle of (x, y), in the quadrant the signs say."""
    ax, ay = absf(x), absf(y)
    low, high = where(ax < ay, ax, ay), where(ax < ay, ay, ax)
    # Both scaled down where the quotient of large numbers would lose bits to denormals.
    scale = where(
        high > 2.0**125, constant(x, 2.0**-4), where(high < 2.0**-100, constant(x, 2.0**24), constant(x, 1.0))
    )
    q = (low * scale) / (high * scale)
    q = where(low == high, where(high == 0.0, constant(x, 0.0), constant(x, 1.0)), q)
    r = _atan_unit(q)
    r = where(ay > ax, _HALF_PI_HI - (r - _HALF_PI_LO), r)
    negative = copysign(constant(x, 1.0), x) < 0.0
    r = where(negative, _PI_HI - (r - _PI_LO), r)
    return where(isnan(x) | isnan(y), x + y, copysign(r, y))


_ASIN = (
    0.16666752477272542, 0.07495297815739106, 0.04547035597716889, 0.024179606945815734, 0.04216616047035271,
)  # fmt: skip


def _asin_half(q: Any, s: Any) -> Any:
    """The arc sine of 0 to 0.5; ``s`` is the square of ``q``."""
    return fma(q * s, poly(s, _ASIN), q)


def asin(x: Any) -> Any:
    """A polynomial up to 0.5; above it through ``sqrt((1 - x) / 2)``."""
    a = absf(x)
    big = a > 0.5
    s = where(big, fma(a, -0.5, 0.5), a * a)
    r = _asin_half(where(big, sqrt(s), a), s)
    r = where(big, _HALF_PI_HI - (2.0 * r - _HALF_PI_LO), r)
    return copysign(r, x)


def acos(x: Any) -> Any:
    """From the arc sine of ``sqrt((1 - |x|) / 2)`` near 1, of x elsewhere."""
    a = absf(x)
    big = a > 0.5
    s = where(big, fma(a, -0.5, 0.5), a * a)
    r = _asin_half(where(big, sqrt(s), a), s)
    near = where(x < 0.0, _PI_HI - (2.0 * r - _PI_LO), 2.0 * r)
    return where(big, near, _HALF_PI_HI - (copysign(r, x) - _HALF_PI_LO))


# --- powers --------------------------------------------------------------------------------------


def _log2_f64(a: Any) -> Any:
    """log2 of a positive f32, in f64 to 2**-39 of itself: the exponent, and the series of the mantissa's atanh."""
    small = a < 2.0**-126
    bits = where(small, a * 2.0**24, a).bitcast(Int32)
    # Mantissas from sqrt(1/2) to sqrt(2), so that the logarithm of numbers around 1 has no cancellation.
    e = (bits - 0x3F3504F3) >> 23
    m = (bits - (e << 23)).bitcast(Float32).to(Float64)
    q = (m - 1.0) / (m + 1.0)
    s = q * q
    two = 2.0 / _LN2
    series = poly(s, tuple(two / (2 * i + 1) for i in range(8)))
    return fma(q, series, (e - where(small, constant(e, 24), constant(e, 0))).to(Float64))


def powf(x: Any, y: Any) -> Any:
    """``2**(y log2 x)`` with the product in f64."""
    a = absf(x)
    product = y.to(Float64) * _log2_f64(a)
    # Beyond these the result is 0 or infinite.
    product = where(product > 200.0, constant(product, 200.0), product)
    product = where(product < -200.0, constant(product, -200.0), product)
    n = _rounded(product)
    made = ldexp(exp2((product - n).to(Float32)), n.to(Int32))
    whole = _rounded(y) == y
    half = y * 0.5
    odd = whole & (_rounded(half) != half) & (absf(y) < 2.0**24)
    zero_or_inf = where((a == 0.0) == (y < 0.0), constant(a, INF), constant(a, 0.0))
    made = where((a == 0.0) | (a == INF), zero_or_inf, made)
    grows = (a > 1.0) == (y > 0.0)
    made = where(
        absf(y) == INF, where(a == 1.0, constant(a, 1.0), where(grows, constant(a, INF), constant(a, 0.0))), made
    )
    negative = copysign(constant(x, 1.0), x) < 0.0
    made = where(negative & odd, -made, made)
    finite = (a != INF) & (absf(y) != INF)
    made = where((x < 0.0) & ~whole & finite, constant(x, NAN), made)
    made = where(isnan(x) | isnan(y), x + y, made)
    return where((x == 1.0) | (y == 0.0), constant(x, 1.0), made)


def _rounded(x: Any) -> Any:
    from .math import roundeven

    return roundeven(x)


__all__ = [
    "acos", "asin", "atan", "atan2", "cbrt", "cos", "cosh", "erf", "expm1", "ldexp", "log1p", "powf",
    "rsqrt", "rsqrt_f64", "sin", "sinh", "tan", "tanh",
]  # fmt: skip
