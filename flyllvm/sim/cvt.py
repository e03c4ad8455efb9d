"""AMDGPU conversions between number formats.

Source: CDNA3, CDNA4 ISA manuals (V_CVT_*).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import alu, convert, types as ty
from .ir import Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Builder = Callable[["Compiler", Inst], "list[Op]"]


def half_towards_zero(a: Array) -> Array:
    """float32 to float16, rounded towards zero; finite values never become infinite."""
    near = a.astype(np.float16)
    back = near.astype(np.float32)
    too_far = (np.abs(back) > np.abs(a)) & np.isfinite(a)
    return np.where(too_far, np.nextafter(near, np.float16(0)), near)


def _pair(convert: Callable[[Array], Array]) -> Builder:
    """Two scalars to one vector of two."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

        def run(r: list[Any], m: Machine) -> None:
            r[d] = np.stack(np.broadcast_arrays(convert(r[a]), convert(r[b])), axis=-1)

        return [run]

    return builder


def _normalised(scale: float, signed: bool) -> Callable[[Array], Array]:
    def convert(a: Array) -> Array:
        number = np.rint(np.clip(np.nan_to_num(a.astype(np.float64)), -1.0 if signed else 0.0, 1.0) * scale)
        return (number.astype(np.int64) & 0xFFFF).astype(np.uint16)

    return convert


def _clamped(signed: bool) -> Callable[[Array], Array]:
    def convert(a: Array) -> Array:
        if signed:
            return (np.clip(alu.sign_extended(a, 32), -32768, 32767).astype(np.int64) & 0xFFFF).astype(np.uint16)
        return np.minimum(a, np.uint32(0xFFFF)).astype(np.uint16)

    return convert


def _byte_to_float(byte: int) -> Builder:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a = c.dest(inst), c.slot(inst.operands[0])

        def run(r: list[Any], m: Machine) -> None:
            r[d] = (r[a] >> np.uint32(8 * byte) & np.uint32(0xFF)).astype(np.float32)

        return [run]

    return builder


def float_to_byte(number: Array, byte: Array, word: Array) -> Array:
    """``cvt.pk.u8.f32``: a number, rounded to nearest even and clamped to 0..255 (NaN is 0), as byte of a word.

    Source: RDNA3 and CDNA3 ISA manuals, V_CVT_PK_U8_F32; rounding, clamp and NaN as measured on gfx90c and gfx1201.
    """
    whole = np.rint(np.clip(np.where(np.isnan(number), np.float32(0), number), 0, 255)).astype(np.uint32)
    shift = (byte & np.uint32(3)) * np.uint32(8)
    packed: Array = (word & ~(np.uint32(0xFF) << shift)) | (whole << shift)
    return packed


def _float_to_byte(c: Compiler, inst: Inst) -> list[Op]:
    d, (number, byte, word) = c.dest(inst), (c.slot(o) for o in inst.operands)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = float_to_byte(r[number], r[byte], r[word])

    return [run]


def _saturating_to_int(signed: bool) -> Builder:
    """``llvm.fptosi.sat`` / ``llvm.fptoui.sat``."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a = c.dest(inst), c.slot(inst.operands[0])
        to_int = convert.float_to_int(inst.operands[0].type, inst.type, signed)

        def run(r: list[Any], m: Machine) -> None:
            r[d] = to_int(r[a])

        return [run]

    return builder


def _rounded_to_int(rounded: Callable[[Array], Array]) -> Builder:
    """``llvm.lrint``, ``llvm.lround`` and relatives."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        t, d, a = inst.operands[0].type, c.dest(inst), c.slot(inst.operands[0])
        to_int = convert.float_to_int(ty.DOUBLE, inst.type, True)

        def run(r: list[Any], m: Machine) -> None:
            r[d] = to_int(rounded(convert.to_float64(t, r[a])))

        return [run]

    return builder


def _half_away(a: Array) -> Array:
    return np.copysign(np.floor(np.abs(a) + 0.5 - (np.abs(a) == 0.49999999999999994) * 0.5), a)


def _half_bits(to_half: bool) -> Builder:
    """``llvm.convert.to.fp16`` / ``llvm.convert.from.fp16``."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a = c.dest(inst), c.slot(inst.operands[0])
        dtype = np.dtype(np.uint16) if to_half else ty.dtype_of(inst.type)

        def run(r: list[Any], m: Machine) -> None:
            if to_half:
                r[d] = r[a].astype(np.float16).view(np.uint16)
            else:
                r[d] = np.ascontiguousarray(r[a]).view(np.float16).astype(dtype)

        return [run]

    return builder


TABLE: dict[str, Builder] = {
    "amdgcn.cvt.pkrtz": _pair(half_towards_zero),
    "amdgcn.cvt.pknorm.i16": _pair(_normalised(32767.0, True)),
    "amdgcn.cvt.pknorm.u16": _pair(_normalised(65535.0, False)),
    "amdgcn.cvt.pk.i16": _pair(_clamped(True)),
    "amdgcn.cvt.pk.u16": _pair(_clamped(False)),
    **{f"amdgcn.cvt.f32.ubyte{i}": _byte_to_float(i) for i in range(4)},
    "amdgcn.cvt.pk.u8.f32": _float_to_byte,
    "fptosi.sat": _saturating_to_int(True),
    "fptoui.sat": _saturating_to_int(False),
    **dict.fromkeys(("lrint", "llrint"), _rounded_to_int(np.rint)),
    **dict.fromkeys(("lround", "llround"), _rounded_to_int(_half_away)),
    "convert.to.fp16": _half_bits(True),
    "convert.from.fp16": _half_bits(False),
}
