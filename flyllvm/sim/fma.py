"""Fused multiply-add with one rounding.

The product of two floats of up to 24 bits is exact in float64; the sum is then rounded to odd in float64, from which
the second rounding to the format is the right one (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums").
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from . import convert, types as ty
from .types import Type
from .values import Array


def sum_to_odd(a: Array, b: Array) -> Array:
    """``a + b`` of float64 rounded to odd."""
    total = a + b
    part = total - a
    error = (a - (total - part)) + (b - part)
    bits = np.atleast_1d(total).view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & (bits.reshape(total.shape) & 1 == 0)
    if not inexact.any():
        return total
    step = np.where((error > 0) == (total > 0), 1, -1)
    return np.where(inexact, (bits.reshape(total.shape) + step).view(np.float64), total)


def _small(t: Type) -> Callable[[Array, Array, Array], Array]:
    def fused(a: Array, b: Array, c: Array) -> Array:
        product = convert.to_float64(t, a) * convert.to_float64(t, b)
        return convert.from_float64(t, sum_to_odd(product, convert.to_float64(t, c)))

    return fused


def _exact(x: float, y: float, z: float) -> float:
    if not (np.isfinite(x) and np.isfinite(y) and np.isfinite(z)):
        return float(x * y + z) if np.isfinite(x) and np.isfinite(y) else float(np.float64(x) * np.float64(y) + z)
    total = Fraction(x) * Fraction(y) + Fraction(z)
    if total == 0:
        return float(np.float64(x) * np.float64(y) + np.float64(z))
    try:
        return float(total)
    except OverflowError:
        return float("inf") if total > 0 else float("-inf")


def _double(a: Array, b: Array, c: Array) -> Array:
    a, b, c = np.broadcast_arrays(a, b, c)
    flat = [_exact(float(x), float(y), float(z)) for x, y, z in zip(a.flat, b.flat, c.flat, strict=True)]
    return np.array(flat, np.float64).reshape(a.shape)


def function(t: Type) -> Callable[[Array, Array, Array], Array]:
    """The fused multiply-add of a type."""
    return _double if ty.scalar_of(t) is ty.DOUBLE else _small(t)
