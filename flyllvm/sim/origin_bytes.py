"""Arrays of origins as bytes of elements; helpers of `origin_moves` and `origin_calls`."""

from __future__ import annotations

from typing import Any

import numpy as np

from . import types as ty
from .ir import Const, Operand
from .values import Array


def elements(t: ty.Type) -> tuple[int, int] | None:
    """Number of elements and bytes of each; ``None`` where these are no whole bytes."""
    count = t.count if isinstance(t, ty.VecType) else 1
    bits = ty.bit_size(ty.scalar_of(t))
    return None if bits % 8 else (count, bits // 8)


def is_plain(*types: ty.Type) -> bool:
    """Whether these are numbers, pointers or vectors of them, not aggregates."""
    return all(isinstance(ty.scalar_of(t), (ty.IntType, ty.FloatType, ty.PtrType)) for t in types)


def split(words: Array, count: int) -> Array:
    """The bytes of each of ``count`` elements on an axis of their own."""
    return words.reshape(*words.shape[:-1], count, -1)


def flat(words: Array) -> Array:
    """The inverse of `split`."""
    return words.reshape(*words.shape[:-2], -1)


def or_unknown(words: Any, size: int) -> Array:
    """Origins of ``size`` bytes, of which there may be none."""
    return np.zeros((1, 1, 1, size), np.int64) if words is None else words


def splat(operand: Operand) -> int | None:
    """The integer that a constant, or every element of one, is."""
    if not isinstance(operand, Const):
        return None
    if operand.kind in ("int", "zero"):
        return int(operand.value or 0)
    if operand.kind == "agg":
        values = {splat(e) for e in operand.value}
        return values.pop() if len(values) == 1 else None
    return None
