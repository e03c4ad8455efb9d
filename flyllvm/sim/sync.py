"""Ordering between waves: barriers, fences, waits, and the LDS race detector built on them.

LLVM's memory model orders two LDS accesses of different waves only through: the first access, a release (a fence of
workgroup scope or wider, or an explicit wait), a barrier, an acquire, the second access.  A barrier alone orders
execution, not memory.

Every wave counts the barriers it passed (its *phase*).  An access is tagged with the wave's *segment*: the phase
whose barrier will publish it once the wave releases.  `known[v][w]` is the segment below which accesses of wave w
are ordered before what wave v does now.  While all waves do the same, these are plain integers.

Shadow state per granule of LDS (the largest size that divides every LDS access of the kernel) is one uint64 stamp of
the last write and one of the last read: segment << 32 | instruction << 8 | flags | wave.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .values import Array

if TYPE_CHECKING:
    from .ir import Inst
    from .machine import Machine

SEVERAL, ATOMIC, DMA = 0x20, 0x40, 0x80
WAVE_BITS = 0x1F
_SCOPES_OF_ONE_WAVE = ("singlethread", "wavefront")


class Sync:
    """What each wave has released and acquired.

    Attributes:
        uniform: All waves of the chunk have the same history; the counters are then integers.
    """

    def __init__(self, groups: int, waves: int) -> None:
        self.groups, self.waves = groups, waves
        self.uniform = True
        self.phase: Any = 1
        self.segment: Any = 1
        self.dma_segment: Any = 1
        self.published: Any = (1, 1)
        self.known: Any = 1
        self.known_dma: Any = 1
        self.waited: Any = False

    def split(self) -> None:
        """Goes over to one counter per wave."""
        if not self.uniform:
            return
        self.uniform = False
        shape = (self.groups, self.waves)
        self.phase, self.segment = np.full(shape, self.phase), np.full(shape, self.segment)
        self.dma_segment = np.full(shape, self.dma_segment)
        self.published = (np.full(shape, self.published[0]), np.full(shape, self.published[1]))
        square = (self.groups, self.waves, self.waves)
        self.known, self.known_dma = np.full(square, self.known), np.full(square, self.known_dma)
        self.waited = np.full(shape, self.waited)

    def release(self, m: Machine, lds: bool = True, dma: bool = True, explicit: bool = False) -> None:
        """Marks what the active waves did so far as released by their next barrier."""
        if self.uniform and m.covering:
            self.segment = self.phase + 1 if lds else self.segment
            self.dma_segment = self.phase + 1 if dma else self.dma_segment
            self.waited = self.waited or explicit
            return
        self.split()
        active = m.active_waves()
        if lds:
            self.segment = np.where(active, self.phase + 1, self.segment)
        if dma:
            self.dma_segment = np.where(active, self.phase + 1, self.dma_segment)
        if explicit:
            self.waited = self.waited | active

    def acquire(self, m: Machine) -> None:
        """Makes what was published at the last barrier known to the active waves."""
        if self.uniform and m.covering:
            self.known, self.known_dma = self.published
            return
        self.split()
        self._learn(m.active_waves())

    def _learn(self, waves: Array) -> None:
        self.known = np.where(waves[:, :, None], self.published[0][:, None, :], self.known)
        self.known_dma = np.where(waves[:, :, None], self.published[1][:, None, :], self.known_dma)

    def barrier(self, groups: Array | None) -> None:
        """All waves of these workgroups (``None``: of all) pass a barrier."""
        if self.uniform and groups is None:
            self.published = (self.segment, self.dma_segment)
            self.phase += 1
            if self.waited:
                self.known, self.known_dma = self.published
                self.waited = False
            return
        self.split()
        passing = np.ones((self.groups, 1), bool) if groups is None else groups.reshape(-1, 1)
        self.published = (
            np.where(passing, self.segment, self.published[0]),
            np.where(passing, self.dma_segment, self.published[1]),
        )
        self.phase = self.phase + passing
        # An explicit wait before the barrier says that the author orders memory by hand.
        self._learn(self.waited & passing)
        self.waited = self.waited & ~passing

    def tag(self, m: Machine, dma: bool = False) -> Any:
        """Segment of an access now, to be compared with `known`: an int, or one per wave."""
        segment = self.dma_segment if dma else self.segment
        return segment if self.uniform else segment[:, :, None]


class Shadow:
    """Who touched each granule of LDS last.

    Units: ``granule`` in bytes; indices count granules over all workgroups of the chunk.
    """

    def __init__(self, lds_bytes: int, granule: int, sync: Sync) -> None:
        self.granule, self.shift = granule, granule.bit_length() - 1
        count = max(1, lds_bytes >> self.shift)
        self.written = np.zeros(count, np.uint64)
        self.read = np.zeros(count, np.uint64)
        self.sync = sync
        self.one_wave = sync.waves == 1

    def indices(self, offset: Array, byte_count: int) -> Array:
        """Granules of accesses at flat LDS offsets; one more axis where an access has several."""
        first = offset >> self.shift
        count = byte_count >> self.shift
        return first if count <= 1 else first[..., None] + np.arange(count)

    def _stamp(self, m: Machine, inst: Inst, index: Array, flags: int) -> tuple[Array, Array]:
        """The stamp of an access now and the waves that do it, both broadcastable to ``index``."""
        tag = self.sync.tag(m, bool(flags & DMA))
        low = np.uint64((inst.id << 8) | flags)
        stamp = (np.asarray(tag, np.uint64) << np.uint64(32)) | low | m.wave_ids
        waves = m.wave_ids
        if index.ndim in (1, 2):  # only active lanes, flattened
            mask = m.mask
            stamp = np.broadcast_to(stamp, mask.shape)[mask]
            waves = np.broadcast_to(waves, mask.shape)[mask]
        if index.ndim in (2, 4):
            stamp, waves = stamp[..., None], waves[..., None]
        return stamp, waves

    def on_read(self, m: Machine, inst: Inst, index: Array) -> None:
        """A plain read; finds uninitialised granules and unordered writes."""
        written = self.written.take(index, mode="clip")
        if int(written.min()) == 0:
            m.fault(inst, f"read of uninitialised {m.lds_name(index, written == 0)}", _lanes(written == 0, index),
                    "write it first (LDS has no defined content at the start of a workgroup)")  # fmt: skip
        if self.one_wave:
            return
        stamp, waves = self._stamp(m, inst, index, 0)
        if not self._settled(written):
            self._check(m, inst, index, written, waves)
        old = self.read.take(index, mode="clip")
        if not self._settled(old):
            several = self._unordered(m, old, waves, index) & self._others(old, waves)
            stamp = stamp | np.where(several, np.uint64(SEVERAL), np.uint64(0))
        self.read[index] = stamp
        got = self.read.take(index, mode="clip")
        if not np.array_equal(got, np.broadcast_to(stamp, got.shape)):
            differs = (got ^ stamp) & np.uint64(WAVE_BITS) != 0
            self.read[np.broadcast_to(index, differs.shape)[differs]] |= np.uint64(SEVERAL)

    def on_write(
        self, m: Machine, inst: Inst, index: Array, flags: int = 0, lost: Callable[[], Array] | None = None
    ) -> None:
        """A plain, atomic or DMA write; finds unordered reads and writes of other waves.

        Args:
            m: The machine.
            inst: The instruction.
            index: Granules written, from `indices`.
            flags: ``ATOMIC`` or ``DMA``.
            lost: Tells which lanes now read back other data than they wrote.  Waves that meet in one instruction and
                write the same bytes do no harm.
        """
        stamp, waves = self._stamp(m, inst, index, flags)
        if self.one_wave:
            self.written[index] = stamp
            return
        for kind in (self.written, self.read):
            old = kind.take(index, mode="clip")
            if not self._settled(old):
                self._check(m, inst, index, old, waves, bool(flags & ATOMIC))
        self.written[index] = stamp
        got = self.written.take(index, mode="clip")
        if np.array_equal(got, np.broadcast_to(stamp, got.shape)):
            return
        differs = (got ^ stamp) & np.uint64(WAVE_BITS) != 0
        if flags & ATOMIC:
            self.written[np.broadcast_to(index, differs.shape)[differs]] |= np.uint64(SEVERAL)
            return
        if lost is not None:
            overwritten = lost()
            differs &= overwritten[..., None] if differs.ndim > overwritten.ndim else overwritten
        if differs.any():
            self._report(m, inst, index, differs, got, waves)

    def _settled(self, stamps: Array) -> bool:
        """The fast answer to whether all these accesses are ordered before now."""
        if not self.sync.uniform:
            return int(stamps.max()) == 0
        bound = min(self.sync.known, self.sync.known_dma)
        return int(stamps.max()) < int(bound) << 32

    def _others(self, stamps: Array, waves: Array) -> Array:
        result: Array = (stamps & np.uint64(SEVERAL | WAVE_BITS)) != waves
        return result

    def _unordered(self, m: Machine, stamps: Array, waves: Array, index: Array) -> Array:
        segment = (stamps >> np.uint64(32)).astype(np.int64)
        dma = (stamps & np.uint64(DMA)) != 0
        if self.sync.uniform:
            late: Array = segment >= np.where(dma, self.sync.known_dma, self.sync.known)
            return late
        groups = index // max(1, m.lds_copy_bytes >> self.shift)
        other = (stamps & np.uint64(WAVE_BITS)).astype(np.int64)
        mine = np.broadcast_to(waves, stamps.shape).astype(np.int64)
        bound = np.where(dma, self.sync.known_dma[groups, mine, other], self.sync.known[groups, mine, other])
        lowest = self.sync.known.min(axis=2)[groups, mine]
        bound = np.where((stamps & np.uint64(SEVERAL)) != 0, lowest, bound)
        unordered: Array = segment >= bound
        return unordered

    def _check(self, m: Machine, inst: Inst, index: Array, stamps: Array, waves: Array, atomic: bool = False) -> None:
        race = self._unordered(m, stamps, waves, index) & self._others(stamps, waves)
        if atomic:
            race &= (stamps & np.uint64(ATOMIC)) == 0
        if race.any():
            self._report(m, inst, index, race, stamps, waves)

    def _report(self, m: Machine, inst: Inst, index: Array, race: Array, stamps: Array, waves: Array) -> None:
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
        m.fault(inst, what, _lanes(race, index), self._advice(stamp))

    def _advice(self, stamp: int) -> str:
        phase = int(np.max(self.sync.phase))
        if stamp & DMA:
            return "wait for the DMA (s.waitcnt vmcnt(0) or a release fence), then barrier and acquire, before the read"
        if (stamp >> 32) < phase and phase > 1:
            return (
                'a bare s.barrier orders execution, not memory: put fence syncscope("workgroup") release before it '
                "and acquire after it, in every wave"
            )
        return 'put a barrier between the two: fence syncscope("workgroup") release; s.barrier; fence ... acquire'


def _lanes(bad: Array, index: Array) -> Array:
    """One flag per lane from one per granule."""
    result: Array = np.any(bad, axis=-1) if index.ndim in (2, 4) else bad
    return result


def synchronises_waves(scope: str) -> bool:
    """Whether a fence of that scope orders memory between waves of a workgroup."""
    return scope.removesuffix("-one-as").removesuffix("one-as") not in _SCOPES_OF_ONE_WAVE
