"""What the LDS race detector says: whose access it was, which other one it meets, and what would order them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .sync import ASYNC, PLAIN, TENSOR
from .values import Array

if TYPE_CHECKING:
    from .ir import Inst
    from .machine import Machine

# Low bits of a stamp.
SEVERAL, ATOMIC, DMA = 0x20, 0x40, 0x80
WAVE_BITS = 0x1F
FIXES = {
    PLAIN: "wait for the DMA (s.waitcnt vmcnt(0) or a release fence), then barrier and acquire, before the access",
    ASYNC: "wait for it first (wait.asyncmark, s.wait.asynccnt, s.waitcnt vmcnt)",
    TENSOR: "wait for it first (s.wait.tensorcnt)",
}


class Who:
    """Whose access it is, where that is one wave as a whole and not its lanes."""

    __slots__ = ("group", "wave")

    def __init__(self, group: int, wave: int) -> None:
        self.group, self.wave = group, wave


def report_race(
    m: Machine, inst: Inst, index: Array, race: Array, stamps: Array, waves: Array, who: Who | None
) -> None:
    """Reports the first granule whose last access is not ordered before this one.

    Args:
        m: The machine.
        inst: The access now.
        index: Its granules.
        race: Which of them race.
        stamps: The other accesses.
        waves: Who does this one.
        who: The wave, where it acts as a whole.

    Raises:
        SimError: Always.
    """
    flat = int(np.flatnonzero(race)[0])
    stamp = int(stamps.ravel()[flat])
    other = m.program.insts[(stamp >> 8) & 0xFFFFFF]
    own_wave = int(np.broadcast_to(waves, race.shape).ravel()[flat])
    other_wave = "several waves" if stamp & SEVERAL else f"wave {stamp & WAVE_BITS}"
    name = m.lds_name(index, race)
    what = (
        f"LDS race on {name}: wave {own_wave} and {other_wave} are not ordered; the other access is "
        f"'{m.program.text_of(other)}' at {m.program.where(other)}"
    )
    m.fault(inst, what, lanes_of(m, race, index, who), _advice(m, stamp))


def report_lanes(m: Machine, inst: Inst, index: Array, lanes: Array, who: Who | None) -> None:
    """Lanes of one wave that stored to a place where another one stored something else."""
    bad = np.broadcast_to(lanes[..., None] if index.ndim in (2, 4) else lanes, index.shape)
    what = f"race: lanes of one wave store different values to {m.lds_name(index, bad)} at once"
    fix = "give every lane its own place, let one lane store, or use an atomic"
    m.fault(inst, what, lanes_of(m, bad, index, who), fix)


def _advice(m: Machine, stamp: int) -> str:
    phase = int(np.max(m.sync.phase))
    if stamp & DMA:
        kind = int(m.program.dma_kind[(stamp >> 8) & 0xFFFFFF])
        return f"{FIXES[kind]}, then barrier and acquire" if kind != PLAIN else FIXES[PLAIN]
    if (stamp >> 32) < phase and phase > 1:
        return (
            'a bare s.barrier orders execution, not memory: put fence syncscope("workgroup") release before it '
            "and acquire after it, in every wave"
        )
    return 'put a barrier between the two: fence syncscope("workgroup") release; s.barrier; fence ... acquire'


def lanes_of(m: Machine, bad: Array, index: Array, who: Who | None) -> Any:
    """One flag per lane from one per granule."""
    if who is not None:
        return of_wave(m, who)
    result: Array = np.any(bad, axis=-1) if index.ndim in (2, 4) else bad
    return result


def of_wave(m: Machine, who: Who) -> Array:
    """Flags of the running lanes of one wave."""
    flags = np.zeros(m.shape, bool)
    flags[who.group, who.wave] = m.mask[who.group, who.wave]
    return flags
