"""``permlane``: lanes of a row, of a group or of the other half of the wave.

Source: RDNA3, CDNA4 and CDNA5 ISA manuals, V_PERMLANE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import dma
from .ir import Inst
from .lane_op import Builder, full, lane_op
from .values import Array, choose_lanes

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def _from_row(m: Machine, old: Array, source: Array, index: Array, fetch_inactive: int, bound: int) -> Array:
    """The values of the lanes ``index``; of lanes that do not run only on demand, else zero or the old value."""
    got = choose_lanes(full(m, source), index)
    if not m.full and not fetch_inactive:
        got = np.where(choose_lanes(m.mask, index), got, got.dtype.type(0) if bound else old)
    return got


def _permlane(rows: int) -> Builder:
    """``permlane16`` / ``permlanex16``: each lane of a row of 16 picks a lane of the same or the other row."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        fetch_inactive, bound = c.immediate(inst, 4), c.immediate(inst, 5)

        def compute(m: Machine, args: list[Any]) -> Any:
            old, source, low, high = args
            lanes = np.arange(m.wave_size)
            select = np.where(lanes % 16 < 8, dma.first_of_wave(m, low), dma.first_of_wave(m, high))
            pick = (select >> (4 * (lanes % 8)).astype(np.uint32)) & np.uint32(15)
            index = np.broadcast_to(((lanes // 16) ^ rows) * 16 + pick.astype(np.int64), m.shape)
            return _from_row(m, old, source, index, fetch_inactive, bound)

        return lane_op(c, inst, 4, (0, 1), compute)

    return builder


def _permlane_var(rows: int) -> Builder:
    """``permlane16.var``: like permlane16, each lane with its own selector."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        fetch_inactive, bound = c.immediate(inst, 3), c.immediate(inst, 4)

        def compute(m: Machine, args: list[Any]) -> Any:
            old, source, select = args
            lanes = np.arange(m.wave_size)
            index = ((lanes // 16) ^ rows) * 16 + (full(m, select) & np.uint32(15)).astype(np.int64)
            return _from_row(m, old, source, index, fetch_inactive, bound)

        return lane_op(c, inst, 3, (0, 1), compute)

    return builder


def _permlane_swap(width: int) -> Builder:
    """``permlane16.swap`` / ``permlane32.swap``: odd rows of the first operand and even ones of the second swap.

    Source: CDNA4 ISA manual, V_PERMLANE16_SWAP_B32, V_PERMLANE32_SWAP_B32.
    """

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        def compute(m: Machine, args: list[Any]) -> Any:
            lanes = np.arange(m.wave_size)
            odd = (lanes // width) % 2 == 1
            x, y = full(m, args[0]), full(m, args[1])
            return (np.where(odd, y[:, :, lanes - width * odd], x), np.where(odd, y, x[:, :, (lanes + width * ~odd)]))

        return lane_op(c, inst, 2, (0, 1), compute)

    return builder


def _permlane_group(step: Callable[[Array, Array, Array], Array]) -> Builder:
    """``permlane.bcast``, ``.up``, ``.down``, ``.xor`` of gfx1250: a lane of the same group, past its end the own one.

    The operands are the value, the lane or distance, and the width of the groups (a power of two; 0 is the wave).
    ``step`` gives the place in the group from place, distance and width.
    """

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        def compute(m: Machine, args: list[Any]) -> Any:
            lanes = np.arange(m.wave_size, dtype=np.int64)
            amount, width = (dma.first_of_wave(m, a).astype(np.int64) for a in args[1:3])
            whole = (width == 0) | (width & (width - 1) != 0) | (width > m.wave_size)
            width = np.where(whole, m.wave_size, width)
            place = lanes % width
            picked = step(place, amount & 0xFFFFFFFF, width)
            index = np.where((picked < 0) | (picked >= width), lanes, lanes - place + picked)
            return choose_lanes(full(m, args[0]), np.broadcast_to(index, m.shape))

        return lane_op(c, inst, 3, (0,), compute)

    return builder


def _permlane_index(c: Compiler, inst: Inst) -> list[Op]:
    """``permlane.idx.gen``: the address for bpermute of a lane of the own group: its place, and the groups' width.

    Source: CDNA5 ISA manual, V_PERMLANE_IDX_GEN_B32.
    """
    d, place, width = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        group = dma.first_of_wave(m, r[width])
        odd = (group == 0) | (group & (group - np.uint32(1)) != 0)
        if (odd & m.mask).any():
            m.fault(inst, f"groups of {int(group[odd].flat[0])} lanes", odd & m.mask, "give a power of two")
        inside = group - np.uint32(1)
        lanes = np.arange(m.wave_size, dtype=np.uint32).reshape(1, 1, -1)
        r[d] = ((r[place] & np.uint32(63) & inside) + (lanes & ~inside)) << np.uint32(2)

    return [run]


def _permlane64(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        lanes = np.arange(m.wave_size)
        return full(m, args[0])[:, :, lanes ^ 32] if m.wave_size == 64 else args[0]

    return lane_op(c, inst, 1, (0,), compute)


TABLE: dict[str, Builder] = {
    "amdgcn.permlane16": _permlane(0),
    "amdgcn.permlane.bcast": _permlane_group(lambda place, amount, width: amount % width + 0 * place),
    "amdgcn.permlane.up": _permlane_group(lambda place, amount, width: place - amount),
    "amdgcn.permlane.down": _permlane_group(lambda place, amount, width: place + amount),
    "amdgcn.permlane.xor": _permlane_group(lambda place, amount, width: place ^ amount),
    "amdgcn.permlanex16": _permlane(1),
    "amdgcn.permlane16.swap": _permlane_swap(16),
    "amdgcn.permlane32.swap": _permlane_swap(32),
    "amdgcn.permlane64": _permlane64,
    "amdgcn.permlane16.var": _permlane_var(0),
    "amdgcn.permlanex16.var": _permlane_var(1),
    "amdgcn.permlane.idx.gen": _permlane_index,
}
