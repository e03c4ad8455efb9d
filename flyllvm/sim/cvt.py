"""AMDGPU conversions between number formats.

Source: CDNA3, CDNA4 ISA manuals (V_CVT_*).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import alu, numerics, types as ty
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


def _formats(c: Compiler) -> dict[str, numerics.SmallFloat]:
    flavour = c.target.chip.fp8
    return {"fp8": numerics.fp8(flavour), "bf8": numerics.bf8(flavour)}


def _unpack(kind: str, pair: bool) -> Builder:
    """``cvt.f32.fp8`` (byte select) and ``cvt.pk.f32.fp8`` (word select)."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        fmt, d, a = _formats(c)[kind], c.dest(inst), c.slot(inst.operands[0])
        select = c.immediate(inst, 1)

        def run(r: list[Any], m: Machine) -> None:
            word = r[a]
            if pair:
                shifted = word >> np.uint32(16 * select)
                codes = np.stack((shifted & np.uint32(0xFF), shifted >> np.uint32(8) & np.uint32(0xFF)), axis=-1)
            else:
                codes = word >> np.uint32(8 * select) & np.uint32(0xFF)
            r[d] = fmt.decode(codes.astype(np.uint8))

        return [run]

    return builder


def _pack(kind: str) -> Builder:
    """``cvt.pk.fp8.f32``: two values into the selected half of an old register."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        fmt, d = _formats(c)[kind], c.dest(inst)
        a, b, old = (c.slot(o) for o in inst.operands[:3])
        shift = np.uint32(16 * c.immediate(inst, 3))

        def run(r: list[Any], m: Machine) -> None:
            low = fmt.encode(r[a]).astype(np.uint32)
            high = fmt.encode(r[b]).astype(np.uint32)
            keep = np.uint32(~(0xFFFF << int(shift)) & 0xFFFFFFFF)
            r[d] = (r[old] & keep) | (low | high << np.uint32(8)) << shift

        return [run]

    return builder


def _stochastic(kind: str) -> Builder:
    """``cvt.sr.fp8.f32``: one value, rounded with random bits, into the selected byte."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        fmt, d = _formats(c)[kind], c.dest(inst)
        a, random, old = (c.slot(o) for o in inst.operands[:3])
        shift = np.uint32(8 * c.immediate(inst, 3))

        def run(r: list[Any], m: Machine) -> None:
            value, seed = np.broadcast_arrays(r[a], r[random])
            code = fmt.encode_stochastic(value, seed).astype(np.uint32)
            keep = np.uint32(~(0xFF << int(shift)) & 0xFFFFFFFF)
            r[d] = (r[old] & keep) | code << shift

        return [run]

    return builder


def _byte_to_float(byte: int) -> Builder:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a = c.dest(inst), c.slot(inst.operands[0])

        def run(r: list[Any], m: Machine) -> None:
            r[d] = (r[a] >> np.uint32(8 * byte) & np.uint32(0xFF)).astype(np.float32)

        return [run]

    return builder


def _saturating_to_int(signed: bool) -> Builder:
    """``llvm.fptosi.sat`` / ``llvm.fptoui.sat``."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a = c.dest(inst), c.slot(inst.operands[0])
        convert = alu.float_to_int(inst.operands[0].type, inst.type, signed)

        def run(r: list[Any], m: Machine) -> None:
            r[d] = convert(r[a])

        return [run]

    return builder


def _rounded_to_int(c: Compiler, inst: Inst) -> list[Op]:
    """``llvm.lrint`` and relatives."""
    t, d, a = inst.operands[0].type, c.dest(inst), c.slot(inst.operands[0])
    convert = alu.float_to_int(ty.DOUBLE, inst.type, True)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = convert(np.rint(alu.to_float64(t, r[a])))

    return [run]


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
    "amdgcn.cvt.f32.fp8": _unpack("fp8", False),
    "amdgcn.cvt.f32.bf8": _unpack("bf8", False),
    "amdgcn.cvt.pk.f32.fp8": _unpack("fp8", True),
    "amdgcn.cvt.pk.f32.bf8": _unpack("bf8", True),
    "amdgcn.cvt.pk.fp8.f32": _pack("fp8"),
    "amdgcn.cvt.pk.bf8.f32": _pack("bf8"),
    "amdgcn.cvt.sr.fp8.f32": _stochastic("fp8"),
    "amdgcn.cvt.sr.bf8.f32": _stochastic("bf8"),
    **{f"amdgcn.cvt.f32.ubyte{i}": _byte_to_float(i) for i in range(4)},
    "fptosi.sat": _saturating_to_int(True),
    "fptoui.sat": _saturating_to_int(False),
    "lrint": _rounded_to_int,
    "llrint": _rounded_to_int,
    "convert.to.fp16": _half_bits(True),
    "convert.from.fp16": _half_bits(False),
}
