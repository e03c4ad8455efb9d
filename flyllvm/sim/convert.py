"""Conversions between number formats, and between values and their bytes in memory.

Source: LLVM LangRef, conversion operations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import numerics, types as ty
from .alu import Fn1, from_signed, full_width, sign_extended, wrap
from .types import Type
from .values import Array


def to_float64(t: Type, a: Array) -> Array:
    """Any float value as float64, exactly."""
    if ty.scalar_of(t) is ty.BFLOAT:
        return numerics.decode_bf16(a).astype(np.float64)
    return a.astype(np.float64, copy=False)


def from_float64(t: Type, a: Array) -> Array:
    """float64 rounded once, to nearest even, to the float type ``t``."""
    if ty.scalar_of(t) is ty.BFLOAT:
        return numerics.encode_bf16_from_f64(a)
    return a.astype(ty.dtype_of(t), copy=False)


def convert_float(source: Type, target: Type) -> Fn1:
    """``fptrunc`` and ``fpext``: one rounding to nearest even."""
    source, target = ty.scalar_of(source), ty.scalar_of(target)
    if source is ty.BFLOAT:
        if target is ty.FLOAT:
            return numerics.decode_bf16
        return lambda a: numerics.decode_bf16(a).astype(ty.dtype_of(target))
    if target is ty.BFLOAT:
        if source is ty.DOUBLE:
            return numerics.encode_bf16_from_f64
        return lambda a: numerics.encode_bf16(a.astype(np.float32, copy=False))
    dtype = ty.dtype_of(target)
    return lambda a: a.astype(dtype)


def float_to_int_range(bits: int, is_signed: bool) -> tuple[float, float]:
    """The smallest and largest float64 that truncate into the integer type."""
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)
    top = float(high)
    if int(top) > high:
        top = float(np.nextafter(top, 0.0))
    return float(low), top


def out_of_range(source: Type, bits: int, is_signed: bool) -> Fn1:
    """Which values ``fptosi`` / ``fptoui`` turn into poison."""
    low, high = float_to_int_range(bits, is_signed)

    def check(a: Array) -> Array:
        whole = np.trunc(to_float64(source, a))
        return ~((whole >= low) & (whole <= high))

    return check


def float_to_int(source: Type, target: Type, is_signed: bool) -> Fn1:
    """Truncation towards zero; values out of range saturate and NaN gives 0, as the hardware does."""
    scalar = ty.scalar_of(target)
    bits = scalar.bits if isinstance(scalar, ty.IntType) else 32
    low, high = float_to_int_range(bits, is_signed)
    dtype: Any = ty.int_dtype(bits)

    def convert(a: Array) -> Array:
        whole = np.trunc(to_float64(source, a))
        whole = np.where(np.isnan(whole), 0.0, np.clip(whole, low, high))
        if dtype.kind == "O":
            return np.array([int(x) & ((1 << bits) - 1) for x in whole.flat], object).reshape(whole.shape)
        if is_signed:
            return from_signed(whole.astype(np.int64), bits) if bits > 1 else whole != 0
        exact = whole.astype(np.uint64).astype(dtype)
        return np.where(np.trunc(to_float64(source, a)) > high, dtype.type(_all_ones(bits)), exact)

    return convert


def _all_ones(bits: int) -> int:
    return (1 << bits) - 1


def int_to_float(source: Type, target: Type, is_signed: bool) -> Fn1:
    """Conversion with one rounding to nearest even."""
    scalar = ty.scalar_of(source)
    bits = scalar.bits if isinstance(scalar, ty.IntType) else 32
    out = ty.scalar_of(target)

    def convert(a: Array) -> Array:
        number = sign_extended(a, bits) if is_signed else a
        if out in (ty.FLOAT, ty.DOUBLE):
            return number.astype(ty.dtype_of(out))
        if out is ty.BFLOAT and bits > 53:
            return numerics.encode_bf16_from_f64(_odd_float64(number))
        return from_float64(out, number.astype(np.float64))

    return convert


def _odd_float64(number: Array) -> Array:
    """float64 rounded to odd, from which a second rounding to a shorter format is right."""
    near = number.astype(np.float64)
    exact = number.astype(object)
    flat = near.ravel().view(np.int64).copy()
    for i, (rounded, whole) in enumerate(zip(near.flat, exact.flat, strict=True)):
        error = int(whole) - int(rounded)
        if error and flat[i] & 1 == 0:
            flat[i] += 1 if (error > 0) == (rounded > 0) else -1
    return flat.view(np.float64).reshape(near.shape)


def resize_int(op: str, source: Type, target: Type) -> Fn1:
    """``trunc``, ``zext`` and ``sext``."""
    s, t = ty.scalar_of(source), ty.scalar_of(target)
    from_bits = s.bits if isinstance(s, ty.IntType) else ty.bit_size(s)
    to_bits = t.bits if isinstance(t, ty.IntType) else ty.bit_size(t)
    dtype = ty.int_dtype(to_bits)
    if op == "sext":
        return lambda a: _widen_signed(sign_extended(a, from_bits), to_bits)
    if op == "zext":
        if dtype.kind == "O":
            return lambda a: a.astype(object) if a.dtype != bool else a.astype(np.uint8).astype(object)
        return lambda a: a.astype(dtype)
    if to_bits == 1:
        return lambda a: (a & (1 if a.dtype == object else a.dtype.type(1))).astype(bool)
    if full_width(to_bits) and from_bits <= 64:
        return lambda a: a.astype(dtype)
    return lambda a: wrap(a, to_bits).astype(dtype) if from_bits > 64 else wrap(a.astype(dtype), to_bits)


def _widen_signed(a: Array, bits: int) -> Array:
    if bits > 64:
        return a.astype(object) & ((1 << bits) - 1)
    if full_width(bits):
        return a.astype(f"i{bits // 8}").view(f"u{bits // 8}")
    return wrap(a.astype(f"i{ty.int_dtype(bits).itemsize}").view(ty.int_dtype(bits)), bits)


def to_bytes(t: Type, a: Array) -> Array:
    """The memory image of scalars or vectors.

    Shape: lane axes, then one axis of bytes (for vectors, of all elements one after the other).
    """
    bits = ty.bit_size(ty.scalar_of(t))
    if not isinstance(t, ty.VecType):
        a = a[..., None]
    if bits % 8 == 0 and bits in (8, 16, 32, 64):
        return np.ascontiguousarray(a).view(np.uint8)
    # odd widths: vectors are packed bit by bit, lowest element first
    total = ty.bit_size(t)
    if a.dtype == object or bits * a.shape[-1] > 64:
        words = np.zeros(a.shape[:-1], object)
        for i in range(a.shape[-1]):
            words = words | (a[..., i].astype(object) << (bits * i))
        size = (total + 7) // 8
        flat = [int(w).to_bytes(size, "little") for w in words.flat]
        return np.frombuffer(b"".join(flat), np.uint8).reshape((*a.shape[:-1], size))
    packed = np.zeros(a.shape[:-1], np.uint64)
    for i in range(a.shape[-1]):
        packed |= a[..., i].astype(np.uint64) << np.uint64(bits * i)
    return np.ascontiguousarray(packed[..., None]).view(np.uint8)[..., : (total + 7) // 8]


def from_bytes(t: Type, raw: Array) -> Array:
    """The inverse of `to_bytes`."""
    scalar = ty.scalar_of(t)
    bits, dtype = ty.bit_size(scalar), ty.dtype_of(t)
    if bits in (8, 16, 32, 64):
        out = np.ascontiguousarray(raw).view(dtype)
        return out if isinstance(t, ty.VecType) else out[..., 0]
    count = t.count if isinstance(t, ty.VecType) else 1
    size = raw.shape[-1]
    rows = np.ascontiguousarray(raw).reshape(-1, size)
    words = [int.from_bytes(row.tobytes(), "little") for row in rows]
    mask = (1 << bits) - 1
    flat = [[(w >> (bits * i)) & mask for i in range(count)] for w in words]
    array = np.array(flat, dtype=dtype if dtype.kind != "b" else np.uint8).astype(dtype)
    array = array.reshape((*raw.shape[:-1], count))
    return array if isinstance(t, ty.VecType) else array[..., 0]


def bitcast(source: Type, target: Type) -> Fn1:
    """Reinterpretation of the bits."""
    s_bits, t_bits = ty.bit_size(ty.scalar_of(source)), ty.bit_size(ty.scalar_of(target))
    if s_bits in (8, 16, 32, 64) and t_bits in (8, 16, 32, 64):
        dtype = ty.dtype_of(target)
        source_is_vector, target_is_vector = isinstance(source, ty.VecType), isinstance(target, ty.VecType)

        def cast(a: Array) -> Array:
            if not source_is_vector:
                a = a[..., None]
            out = np.ascontiguousarray(a).view(dtype)
            return out if target_is_vector else out[..., 0]

        return cast
    return lambda a: from_bytes(target, to_bytes(source, a))
