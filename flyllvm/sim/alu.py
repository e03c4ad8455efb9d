"""Scalar and vector arithmetic: pure functions on arrays, chosen once per instruction from its type.

Integers are unsigned arrays that wrap; widths that NumPy lacks are masked after each operation.

Source: LLVM LangRef, binary, bitwise and conversion operations.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from . import numerics, types as ty
from .types import Type
from .values import Array, to_signed

Fn1 = Callable[[Array], Array]
Fn2 = Callable[[Array, Array], Array]


def full_width(bits: int) -> bool:
    """Whether NumPy wraps this width by itself."""
    return bits in (8, 16, 32, 64)


def wrap(a: Array, bits: int) -> Array:
    """Drops the bits above ``bits``."""
    mask: Any = (1 << bits) - 1
    result: Array = a & (a.dtype.type(mask) if bits <= 64 else mask)
    return result


def sign_extended(a: Array, bits: int) -> Array:
    """A signed reading of ``bits``-wide integers, in a dtype that holds it."""
    if bits == 1:
        return -a.astype(np.int8)
    if full_width(bits):
        return to_signed(a)
    sign = 1 << (bits - 1)
    if bits < 64:
        s = to_signed(a)
        one = s.dtype.type(sign)
        return (s ^ one) - one
    return (a ^ sign) - sign


def from_signed(a: Array, bits: int) -> Array:
    """The unsigned ``bits``-wide form of a signed result."""
    if full_width(bits):
        return a.astype(f"i{bits // 8}", copy=False).view(f"u{bits // 8}")
    if bits > 64:
        return a & ((1 << bits) - 1)
    return wrap(a.astype(np.int64).astype(np.uint64).astype(ty.int_dtype(bits)), bits)


def _divide(fn: Fn2) -> Fn2:
    """Division that leaves lanes with a zero divisor at some value; the checker reports them."""

    def divide(a: Array, b: Array) -> Array:
        return fn(a, np.where(b == 0, b.dtype.type(1) if b.dtype != object else 1, b))

    return divide


def _sdiv(bits: int) -> Fn2:
    def sdiv(a: Array, b: Array) -> Array:
        x, y = sign_extended(a, bits), sign_extended(b, bits)
        if x.dtype == object:
            return from_signed(_object_quotient(x, y), bits)
        # INT_MIN / -1 overflows, which the checker reports; here it must only not trap
        y = np.where((y == 0) | ((y == -1) & (a == a.dtype.type(1 << (bits - 1)))), y.dtype.type(1), y)
        return from_signed((x - np.fmod(x, y)) // y, bits)

    return sdiv


def _srem(bits: int) -> Fn2:
    def srem(a: Array, b: Array) -> Array:
        x, y = sign_extended(a, bits), sign_extended(b, bits)
        if x.dtype == object:
            return from_signed(x - _object_quotient(x, y) * y, bits)
        y = np.where((y == 0) | (y == -1), y.dtype.type(1), y)
        return from_signed(np.fmod(x, y), bits)

    return srem


def _object_quotient(x: Array, y: Array) -> Array:
    quotient = abs(x) // np.where(y == 0, 1, abs(y))
    return np.where((x < 0) != (y < 0), -quotient, quotient)


def _shift(fn: Fn2, bits: int) -> Fn2:
    """Shifts by the width or more are poison; the machine tracks that, here they only must not trap."""
    if bits <= 64:
        return fn
    return lambda a, b: fn(a, np.minimum(b, bits))


def _ashr(bits: int) -> Fn2:
    def ashr(a: Array, b: Array) -> Array:
        if bits > 64:
            return from_signed(sign_extended(a, bits) >> np.minimum(b, bits), bits)
        amount = np.minimum(b, b.dtype.type(bits - 1))
        return from_signed(np.right_shift(sign_extended(a, bits), to_signed(amount)), bits)

    return ashr


def integer_op(op: str, bits: int) -> Fn2:
    """The function of an integer instruction at a width."""
    if bits == 1:
        return _BOOL[op]
    table: dict[str, Fn2] = {
        "add": np.add, "sub": np.subtract, "mul": np.multiply,
        "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        "udiv": _divide(np.floor_divide), "urem": _divide(np.remainder),
        "shl": _shift(np.left_shift, bits), "lshr": _shift(np.right_shift, bits),
    }  # fmt: skip
    if op in ("sdiv", "srem", "ashr"):
        return {"sdiv": _sdiv, "srem": _srem, "ashr": _ashr}[op](bits)
    fn = table[op]
    if full_width(bits) or op not in ("add", "sub", "mul", "shl"):
        return fn
    return lambda a, b: wrap(fn(a, b), bits)


_BOOL: dict[str, Fn2] = {
    "add": np.logical_xor, "sub": np.logical_xor, "xor": np.logical_xor,
    "mul": np.logical_and, "and": np.logical_and, "or": np.logical_or,
    "udiv": lambda a, b: a, "sdiv": lambda a, b: a, "urem": lambda a, b: np.zeros_like(a),
    "srem": lambda a, b: np.zeros_like(a), "shl": lambda a, b: a, "lshr": lambda a, b: a, "ashr": lambda a, b: a,
}  # fmt: skip

_FLOAT: dict[str, Fn2] = {
    "fadd": np.add, "fsub": np.subtract, "fmul": np.multiply, "fdiv": np.divide, "frem": np.fmod,
}  # fmt: skip


def widened(t: Type, fn: Callable[..., Array]) -> Callable[..., Array]:
    """``fn`` on float arrays as a function on values of the float type ``t``; bfloat computes in float32."""
    if ty.scalar_of(t) is not ty.BFLOAT:
        return fn
    return lambda *args: numerics.encode_bf16(fn(*(numerics.decode_bf16(a) for a in args)))


def binary_op(op: str, t: Type) -> Fn2:
    """The function of a binary instruction at a type."""
    scalar = ty.scalar_of(t)
    if isinstance(scalar, ty.IntType):
        return integer_op(op, scalar.bits)
    return widened(t, _FLOAT[op])


def negate(t: Type) -> Fn1:
    """``fneg``: flips the sign bit, of NaN too."""
    if ty.scalar_of(t) is ty.BFLOAT:
        return lambda a: a ^ np.uint16(0x8000)
    return np.negative


_UNSIGNED: dict[str, Fn2] = {
    "eq": np.equal, "ne": np.not_equal, "ugt": np.greater, "uge": np.greater_equal,
    "ult": np.less, "ule": np.less_equal,
}  # fmt: skip
_SIGNED: dict[str, Fn2] = {
    "sgt": np.greater, "sge": np.greater_equal, "slt": np.less, "sle": np.less_equal,
}  # fmt: skip
INT_PREDICATES = frozenset(_UNSIGNED) | frozenset(_SIGNED)


def integer_compare(pred: str, t: Type) -> Fn2:
    """The function of ``icmp``."""
    if pred in _UNSIGNED:
        return _UNSIGNED[pred]
    scalar, fn = ty.scalar_of(t), _SIGNED[pred]
    bits = scalar.bits if isinstance(scalar, ty.IntType) else ty.bit_size(scalar)
    return lambda a, b: fn(sign_extended(a, bits), sign_extended(b, bits))


def _unordered(a: Array, b: Array) -> Array:
    return np.isnan(a) | np.isnan(b)


FLOAT_PREDICATES: dict[str, Fn2] = {
    "false": lambda a, b: np.zeros(np.broadcast_shapes(a.shape, b.shape), bool),
    "true": lambda a, b: np.ones(np.broadcast_shapes(a.shape, b.shape), bool),
    "oeq": np.equal, "ogt": np.greater, "oge": np.greater_equal, "olt": np.less, "ole": np.less_equal,
    "one": lambda a, b: (a < b) | (a > b),
    "ord": lambda a, b: ~_unordered(a, b),
    "uno": _unordered,
    "ueq": lambda a, b: ~((a < b) | (a > b)),
    "ugt": lambda a, b: ~(a <= b), "uge": lambda a, b: ~(a < b),
    "ult": lambda a, b: ~(a >= b), "ule": lambda a, b: ~(a > b),
    "une": np.not_equal,
}  # fmt: skip


def float_compare(pred: str, t: Type) -> Fn2:
    """The function of ``fcmp``."""
    fn = FLOAT_PREDICATES[pred]
    if ty.scalar_of(t) is not ty.BFLOAT:
        return fn
    return lambda a, b: fn(numerics.decode_bf16(a), numerics.decode_bf16(b))
