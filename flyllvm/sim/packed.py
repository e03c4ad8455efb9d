"""AMDGPU instructions on packed bytes, nibbles and halves, and those that look up cube faces.

Source: CDNA4, CDNA5 and RDNA4 ISA manuals, opcode descriptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .hardware import of_values
from .values import Array

if TYPE_CHECKING:
    from .hardware import Builder

U32, U64 = np.uint32, np.uint64


def _signed(a: Array) -> Array:
    return a.view(np.int32).astype(np.int64)


def _ashr_pk(low: int, high: int) -> Callable[[Array, Array, Array], Array]:
    """Two words shifted right, limited to a byte each, side by side."""

    def fn(a: Array, b: Array, shift: Array) -> Array:
        s = (shift & U32(31)).astype(np.int64)
        first, second = (np.clip(_signed(x) >> s, low, high) & 0xFF for x in (a, b))
        return (first | second << 8).astype(np.uint16)

    return fn


def _sat_pk4(signed: bool) -> Callable[[Array], Array]:
    """Four bytes limited to four bits each."""

    def fn(a: Array) -> Array:
        out = np.zeros(a.shape, np.int64)
        for i in range(4):
            byte = (a >> U32(8 * i) & U32(0xFF)).astype(np.int64)
            byte = np.clip((byte ^ 0x80) - 0x80, -8, 7) if signed else np.minimum(byte, 15)
            out |= (byte & 15) << 4 * i
        return out.astype(np.uint16)

    return fn


def _pk_add(signed: bool, largest: bool) -> Callable[[Array, Array, Array], Array]:
    """Saturating 16-bit sums, then maximum or minimum with the third operand."""

    def fn(a: Array, b: Array, c: Array) -> Array:
        x, y, z = ((v.view(np.int16) if signed else v).astype(np.int64) for v in map(np.ascontiguousarray, (a, b, c)))
        total = np.clip(x + y, *((-(1 << 15), (1 << 15) - 1) if signed else (0, (1 << 16) - 1)))
        return ((np.maximum if largest else np.minimum)(total, z) & 0xFFFF).astype(np.uint16)

    return fn


def _words(a: Array) -> list[Array]:
    """32-bit words of an i32, an i64 or a vector of i32, lowest first."""
    if a.ndim == 4:
        return [a[..., i] for i in range(a.shape[-1])]
    if a.dtype == U64:
        return [(a & U64(0xFFFFFFFF)).astype(U32), (a >> U64(32)).astype(U32)]
    return [a]


def _bits_of(words: list[Array], at: Array, width: int) -> Array:
    """``width`` bits of a row of words from bit ``at`` on."""
    shape = np.broadcast_shapes(at.shape, *(w.shape for w in words))
    row = np.stack([np.broadcast_to(w, shape) for w in (*words, np.zeros_like(words[0]))], axis=-1).astype(U64)
    place = np.broadcast_to(at, shape)
    low = np.take_along_axis(row, (place // 32)[..., None], axis=-1)[..., 0]
    high = np.take_along_axis(row, (place // 32 + 1)[..., None], axis=-1)[..., 0]
    return (low | high << U64(32)) >> (place % 32).astype(U64) & U64((1 << width) - 1)


def _perm_pk16(width: int) -> Callable[[Array, Array, Array], Array]:
    """Looks up 16 entries of a table (first operand above second) by the 4-bit numbers in the third."""

    def fn(above: Array, below: Array, selectors: Array) -> Array:
        table, picks = [*_words(below), *_words(above)], _words(selectors)
        total: Any = [0] * (width // 2)
        for i in range(16):
            pick = (picks[i // 8] >> U32(4 * (i % 8)) & U32(15)).astype(np.int64)
            entry = _bits_of(table, pick * width, width)
            word, bit = divmod(i * width, 32)
            total[word] = total[word] | (entry << U64(bit) & U64(0xFFFFFFFF)).astype(U32)
            if bit + width > 32:
                total[word + 1] = total[word + 1] | (entry >> U64(32 - bit)).astype(U32)
        return np.stack(np.broadcast_arrays(*total), axis=-1)

    return fn


def _quad_sad(masked: bool, wide: bool) -> Callable[[Array, Array, Array], Array]:
    """Four sums of absolute differences of a reference with bytes 0-3, 1-4, 2-5 and 3-6, each added to its sum."""

    def fn(a: Array, reference: Array, sums: Array) -> Array:
        out = []
        for i in range(4):
            total: Any = np.zeros(np.broadcast_shapes(a.shape, reference.shape), np.int64)
            for j in range(4):
                x = (a >> U64(8 * (i + j)) & U64(0xFF)).astype(np.int64)
                y = (reference >> U32(8 * j) & U32(0xFF)).astype(np.int64)
                total = total + (np.where(y == 0, 0, abs(x - y)) if masked else abs(x - y))
            if wide:
                out.append((total + sums[..., i].astype(np.int64)).astype(np.uint64).astype(U32))
            else:
                old = (sums >> U64(16 * i) & U64(0xFFFF)).astype(np.int64)
                out.append((total + old & 0xFFFF).astype(U64) << U64(16 * i))
        if wide:
            return np.stack(np.broadcast_arrays(*out), axis=-1)
        return out[0] | out[1] | out[2] | out[3]

    return fn


def _cube(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """Which coordinate is the major one: z, then y."""
    az, ay, ax = abs(z), abs(y), abs(x)
    by_z = (az >= ax) & (az >= ay)
    return by_z, ~by_z & (ay >= ax)


def _cube_id(x: Array, y: Array, z: Array) -> Array:
    by_z, by_y = _cube(x, y, z)
    face = np.where(by_z, np.where(z < 0, 5, 4), np.where(by_y, np.where(y < 0, 3, 2), np.where(x < 0, 1, 0)))
    return face.astype(np.float32)


def _cube_sc(x: Array, y: Array, z: Array) -> Array:
    by_z, by_y = _cube(x, y, z)
    return np.where(by_z, np.where(z < 0, -x, x), np.where(by_y, x, np.where(x < 0, z, -z)))


def _cube_tc(x: Array, y: Array, z: Array) -> Array:
    _, by_y = _cube(x, y, z)
    return np.where(by_y, np.where(y < 0, -z, z), -y)


def _cube_ma(x: Array, y: Array, z: Array) -> Array:
    by_z, by_y = _cube(x, y, z)
    return np.where(by_z, z, np.where(by_y, y, x)) * np.float32(2)


def _quad_all(a: Array) -> Array:
    """Every group of four bits is all ones if one of them is set."""
    out, four = np.zeros_like(a), a.dtype.type(0xF)
    for i in range(a.dtype.itemsize * 2):
        shift = a.dtype.type(4 * i)
        out |= np.where((a >> shift & four) != 0, four << shift, a.dtype.type(0))
    return out


TABLE: dict[str, Builder] = {
    "amdgcn.ashr.pk.i8.i32": of_values(_ashr_pk(-128, 127), 3),
    "amdgcn.ashr.pk.u8.i32": of_values(_ashr_pk(0, 255), 3),
    "amdgcn.sat.pk4.i4.i8": of_values(_sat_pk4(True), 1),
    "amdgcn.sat.pk4.u4.u8": of_values(_sat_pk4(False), 1),
    "amdgcn.pk.add.max.i16": of_values(_pk_add(True, True), 3),
    "amdgcn.pk.add.max.u16": of_values(_pk_add(False, True), 3),
    "amdgcn.pk.add.min.i16": of_values(_pk_add(True, False), 3),
    "amdgcn.pk.add.min.u16": of_values(_pk_add(False, False), 3),
    "amdgcn.perm.pk16.b4.u4": of_values(_perm_pk16(4), 3),
    "amdgcn.perm.pk16.b6.u4": of_values(_perm_pk16(6), 3),
    "amdgcn.perm.pk16.b8.u4": of_values(_perm_pk16(8), 3),
    "amdgcn.qsad.pk.u16.u8": of_values(_quad_sad(False, False), 3),
    "amdgcn.mqsad.pk.u16.u8": of_values(_quad_sad(True, False), 3),
    "amdgcn.mqsad.u32.u8": of_values(_quad_sad(True, True), 3),
    "amdgcn.cubeid": of_values(_cube_id, 3),
    "amdgcn.cubesc": of_values(_cube_sc, 3),
    "amdgcn.cubetc": of_values(_cube_tc, 3),
    "amdgcn.cubema": of_values(_cube_ma, 3),
    "amdgcn.s.wqm": of_values(_quad_all, 1),
}
