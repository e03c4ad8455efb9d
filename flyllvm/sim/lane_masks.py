"""Intrinsics whose operand or result is a mask with a bit for each lane of a wave."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import alu, dma, types as ty
from .ir import Inst
from .lane_op import Builder, lane_op
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def wave_bits(m: Machine, flags: Array, bits: int) -> Array:
    """The flags of each wave's lanes as one integer.  Shape: ``(G, W, 1)``."""
    packed = np.packbits(np.ascontiguousarray(np.broadcast_to(flags, m.shape)), axis=-1, bitorder="little")
    padded = np.zeros((*packed.shape[:2], 8), np.uint8)
    padded[..., : packed.shape[-1]] = packed
    return padded.view(np.uint64).astype(ty.int_dtype(bits))


def _mask_bits(c: Compiler, inst: Inst, t: ty.Type) -> int:
    """Bits of a mask of lanes, which must have room for all of them.

    Raises:
        SimError: It has not; LLVM has no code for it.
    """
    bits = ty.bit_size(t)
    if bits < c.wave_size:
        raise SimError(
            f"'{c.program.text_of(inst)}': a mask of {bits} lanes, waves have {c.wave_size}", c.program.where(inst),
            f"use the form of i{c.wave_size}, or simulate the chip and wave size that the kernel is for",
        )  # fmt: skip
    return bits


def _ballot(c: Compiler, inst: Inst) -> list[Op]:
    d, a = c.dest(inst), c.slot(inst.operands[0])
    bits = _mask_bits(c, inst, inst.type)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = wave_bits(m, r[a] & m.mask, bits)

    return [run]


def _compare_ballot(fn_of: Callable[[int, ty.Type], Any]) -> Builder:
    """``amdgcn.icmp`` / ``amdgcn.fcmp``: a comparison whose result is the wave's mask."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])
        compare = fn_of(c.immediate(inst, 2), inst.operands[0].type)
        bits = _mask_bits(c, inst, inst.type)

        def run(r: list[Any], m: Machine) -> None:
            r[d] = wave_bits(m, compare(r[a], r[b]) & m.mask, bits)

        return [run]

    return builder


_INT_CODES = dict(enumerate("eq ne ugt uge ult ule sgt sge slt sle".split(), 32))
_FLOAT_CODES = dict(enumerate("false oeq ogt oge olt ole one ord uno ueq ugt uge ult ule une true".split()))


def _mbcnt(shift: int) -> Builder:
    """Counts the set bits of a mask below the lane, plus a base."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, mask, base = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

        def run(r: list[Any], m: Machine) -> None:
            lane = np.arange(m.wave_size, dtype=np.int64) - shift
            width = np.clip(lane, 0, 32).astype(np.uint64)
            below = ((np.uint64(1) << width) - np.uint64(1)).astype(np.uint32).reshape(1, 1, -1)
            r[d] = np.bitwise_count(r[mask] & below).astype(np.uint32) + r[base]

        return [run]

    return builder


def _inverse_ballot(c: Compiler, inst: Inst) -> list[Op]:
    _mask_bits(c, inst, inst.operands[0].type)

    def compute(m: Machine, args: list[Any]) -> Any:
        word = dma.first_of_wave(m, args[0])
        return (word >> np.arange(m.wave_size, dtype=word.dtype)) & word.dtype.type(1) != 0

    return lane_op(c, inst, 1, (), compute)


TABLE: dict[str, Builder] = {
    "amdgcn.ballot": _ballot,
    "amdgcn.icmp": _compare_ballot(lambda code, t: alu.integer_compare(_INT_CODES[code], t)),
    "amdgcn.fcmp": _compare_ballot(lambda code, t: alu.float_compare(_FLOAT_CODES[code], t)),
    "amdgcn.mbcnt.lo": _mbcnt(0),
    "amdgcn.mbcnt.hi": _mbcnt(32),
    "amdgcn.inverse.ballot": _inverse_ballot,
}
