"""Kernels that flush the denormals of f32: ``"denormal-fp-math-f32"="preserve-sign,preserve-sign"``.

Arithmetic, comparisons and conversions read a denormal as a zero of its sign, and write one; what only moves bits
(loads, selects, ``fneg``, ``fabs``, bit casts) keeps them.  Matrix instructions do not follow the mode.

Source: LLVM LangRef, ``denormal-fp-math``; CDNA3 ISA manual, MODE register.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from . import types as ty
from .ir import Function
from .types import Type
from .values import Array

_LEAST = np.float32(2.0**-126)


def flushes_f32(kernel: Function) -> bool:
    """Whether the mode of a kernel flushes denormals of f32; one without a mode keeps them."""
    mode = kernel.attrs.get("denormal-fp-math-f32", "ieee")
    return mode.partition(",")[0] in ("preserve-sign", "positive-zero")


def flush(a: Array) -> Array:
    """float32 values with zeros, of the same sign, for denormals; other arrays as they are."""
    if a.dtype != np.float32:
        return a
    small = np.abs(a) < _LEAST
    return np.where(small, np.copysign(np.float32(0), a), a) if small.any() else a


def flushed(kernel: Function, t: Type, fn: Callable[..., Array], result: bool = True) -> Callable[..., Array]:
    """``fn`` on values of type ``t`` as the kernel's mode computes it; without ``result`` only operands are flushed."""
    if ty.scalar_of(t) is not ty.FLOAT or not flushes_f32(kernel):
        return fn
    if not result:
        return lambda *args: fn(*map(flush, args))
    return lambda *args: flush(fn(*map(flush, args)))
