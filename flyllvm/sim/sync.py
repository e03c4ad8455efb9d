"""Ordering between waves: barriers, fences, waits, and the LDS race detector built on them.

LLVM's memory model orders two LDS accesses of different waves only through: the first access, a release (a fence of
workgroup scope or wider, or an explicit wait), a barrier, an acquire, the second access.  A barrier alone orders
execution, not memory.

An access is tagged with the wave's *segment*, which counts its releases.  A barrier publishes the segments below the
current one, and an acquire makes what was published known: `known[v][w]` is the segment below which accesses of wave w
are ordered before what wave v does now.  While all waves do the same, these are plain integers.

Atomic operations order too: a release before one and an acquire after one pass on everything released so far.

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
_NEVER = 1 << 31
_SCOPES_OF_ONE_WAVE = ("singlethread", "wavefront")


class Sync:
    """What each wave has released and acquired.

    DMA to LDS completes in issue order: it is tagged with its number in the wave's count of vector memory operations,
    and a wait for all but the last n of them completes the others.  A release fence completes DMA too, except for the
    asynchronous forms, which only explicit waits complete.

    Attributes:
        uniform: All waves of the chunk have the same history; the counters are then integers.
        phase: Barriers passed, plus one.
        segment: Segment of accesses now.
        issued: Vector memory operations so far.
        done: How many of them are complete, as the wave knows; ``done_async`` for the asynchronous forms.
        published: ``(segment, done, done_async)`` of each wave at its last barrier.
        known: What each wave acquired of that, in the same order; with one more axis (of the other wave) where it is
            an array.
    """

    def __init__(self, groups: int, waves: int) -> None:
        self.groups, self.waves = groups, waves
        self.uniform = True
        self.phase: Any = 1
        self.segment: Any = 1
        self.issued: Any = 0
        self.done: Any = 0
        self.done_async: Any = 0
        self.marks: list[Any] = []
        self.published: tuple[Any, Any, Any] = (1, 0, 0)
        self.known: tuple[Any, Any, Any] = (1, 0, 0)
        self.waited: Any = False
        self.signalled: Any = _NEVER
        self.read_atomic: Any = False

    def split(self) -> None:
        """Goes over to one counter per wave."""
        if not self.uniform:
            return
        self.uniform = False
        shape = (self.groups, self.waves)
        for name in ("phase", "segment", "issued", "done", "done_async", "waited", "signalled", "read_atomic"):
            setattr(self, name, np.full(shape, getattr(self, name)))
        self.marks = [np.full(shape, mark) for mark in self.marks]
        a, b, c = self.published
        self.published = (np.full(shape, a), np.full(shape, b), np.full(shape, c))
        a, b, c = self.known
        square = (*shape, self.waves)
        self.known = (np.full(square, a), np.full(square, b), np.full(square, c))

    def _set(self, m: Machine, name: str, value: Any) -> None:
        """Sets a counter of the active waves."""
        if self.uniform and m.covering:
            setattr(self, name, value)
            return
        self.split()
        setattr(self, name, np.where(m.active_waves(), value, getattr(self, name)))

    def release(self, m: Machine) -> None:
        """A release: what the active waves did so far is published by their next barrier or atomic operation."""
        self._set(m, "segment", self.segment + 1)
        self._set(m, "done", self.issued)

    def signal(self, m: Machine) -> None:
        """Signals a split barrier: later releases do not count for it."""
        self._set(m, "signalled", self.segment)

    def wait_lds(self, m: Machine) -> None:
        """An explicit wait for all LDS operations."""
        self._set(m, "segment", self.segment + 1)
        self._set(m, "waited", True)

    def wait_memory(self, m: Machine, outstanding: int) -> None:
        """An explicit wait until at most ``outstanding`` vector memory operations are not complete."""
        self._complete(m, self.issued - outstanding)

    def wait_marks(self, m: Machine, outstanding: int) -> None:
        """An explicit wait until at most ``outstanding`` marked groups of DMA are not complete."""
        if len(self.marks) > outstanding:
            self._complete(m, self.marks[-1 - outstanding])

    def _complete(self, m: Machine, number: Any) -> None:
        for name in ("done", "done_async"):
            self._set(m, name, np.maximum(getattr(self, name), number) if not self.uniform else
                      max(getattr(self, name), number))  # fmt: skip
        self._set(m, "waited", True)

    def mark(self, m: Machine) -> None:
        """Ends a group of DMA operations."""
        if not m.covering:
            self.split()
        self.marks = [*self.marks[-15:], self.issued]

    def issue(self, m: Machine) -> None:
        """Counts a vector memory operation."""
        self._set(m, "issued", self.issued + 1)

    def atomic(self, m: Machine, acquires: bool) -> None:
        """An atomic operation that may have read what another wave released."""
        if acquires:
            self._learn_released(m)
        else:
            self._set(m, "read_atomic", True)

    def _learn_released(self, m: Machine) -> None:
        """Takes every release so far as seen: which one an atomic read came from is not followed."""
        now = (self.segment, self.done, self.done_async)
        if self.uniform and m.covering:
            self.known = now
            return
        self.split()
        waves = m.active_waves()[:, :, None]
        now = (self.segment, self.done, self.done_async)
        known = [np.where(waves, np.maximum(n[:, None, :], k), k) for n, k in zip(now, self.known, strict=True)]
        self.known = (known[0], known[1], known[2])

    def acquire(self, m: Machine) -> None:
        """Makes what was published at the last barrier known to the active waves."""
        if np.any(self.read_atomic):
            self._learn_released(m)
            self._set(m, "read_atomic", False)
            return
        if self.uniform and m.covering:
            self.known = self.published
            return
        self.split()
        self._learn(m.active_waves())

    def _learn(self, waves: Array) -> None:
        known = [np.where(waves[:, :, None], p[:, None, :], k) for p, k in zip(self.published, self.known, strict=True)]
        self.known = (known[0], known[1], known[2])

    def barrier(self, groups: Array | None) -> None:
        """All waves of these workgroups (``None``: of all) pass a barrier."""
        if self.uniform and groups is None:
            self.published = (min(self.segment, self.signalled), self.done, self.done_async)
            self.signalled = _NEVER
            self.phase += 1
            if self.waited:
                self.known, self.waited = self.published, False
            return
        self.split()
        now = (np.minimum(self.segment, self.signalled), self.done, self.done_async)
        passing = np.ones((self.groups, 1), bool) if groups is None else groups.reshape(-1, 1)
        new = [np.where(passing, n, p) for n, p in zip(now, self.published, strict=True)]
        self.published = (new[0], new[1], new[2])
        self.phase = self.phase + passing
        # An explicit wait before the barrier says that the author orders memory by hand.
        self._learn(self.waited & passing)
        self.waited = self.waited & ~passing
        self.signalled = np.where(passing, _NEVER, self.signalled)

    def tag(self, dma: bool) -> Any:
        """Tag of an access now: an int, or one per wave."""
        tag = self.issued if dma else self.segment
        return tag if self.uniform else tag[:, :, None]


class Shadow:
    """Who touched each granule of LDS last.

    Units: ``granule`` in bytes; indices count granules over all workgroups of the chunk.
    """

    def __init__(self, lds_bytes: int, granule: int, sync: Sync, has_dma: bool) -> None:
        self.granule, self.shift = granule, granule.bit_length() - 1
        count = max(1, lds_bytes >> self.shift)
        self.written = np.zeros(count, np.uint64)
        self.read = np.zeros(count, np.uint64)
        self.sync = sync
        self.one_wave = sync.waves == 1
        self.has_dma = has_dma

    def indices(self, offset: Array, byte_count: int) -> Array:
        """Granules of accesses at flat LDS offsets; one more axis where an access has several."""
        first = offset >> self.shift
        count = byte_count >> self.shift
        return first if count <= 1 else first[..., None] + np.arange(count)

    def _stamp(self, m: Machine, inst: Inst, index: Array, flags: int) -> tuple[Array, Array]:
        """The stamp of an access now and the waves that do it, both broadcastable to ``index``."""
        tag = self.sync.tag(bool(flags & DMA))
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

    def on_read(self, m: Machine, inst: Inst, index: Array, atomic: bool = False) -> None:
        """A read; finds uninitialised granules and unordered writes."""
        written = self.written.take(index, mode="clip")
        if int(written.min()) == 0:
            m.fault(inst, f"read of uninitialised {m.lds_name(index, written == 0)}", _lanes(written == 0, index),
                    "write it first (LDS has no defined content at the start of a workgroup)")  # fmt: skip
        if self.one_wave and not self.has_dma:
            return
        stamp, waves = self._stamp(m, inst, index, ATOMIC if atomic else 0)
        if self.has_dma:
            self._check_own_dma(m, inst, index, written, waves)
        if not self._settled(written):
            self._check(m, inst, index, written, waves, atomic)
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
        highest = int(stamps.max())
        if not self.sync.uniform or self.has_dma:
            return highest == 0
        return highest < int(self.sync.known[0]) << 32

    def _others(self, stamps: Array, waves: Array) -> Array:
        result: Array = (stamps & np.uint64(SEVERAL | WAVE_BITS)) != waves
        return result

    def _unordered(self, m: Machine, stamps: Array, waves: Array, index: Array) -> Array:
        tag = (stamps >> np.uint64(32)).astype(np.int64)
        known = self.sync.known
        if not self.sync.uniform:
            groups = index // max(1, m.lds_copy_bytes >> self.shift)
            other = (stamps & np.uint64(WAVE_BITS)).astype(np.int64)
            mine = np.broadcast_to(waves, stamps.shape).astype(np.int64)
            lowest = known[0].min(axis=2)[groups, mine]
            several = (stamps & np.uint64(SEVERAL)) != 0
            known = (
                np.where(several, lowest, known[0][groups, mine, other]),
                known[1][groups, mine, other], known[2][groups, mine, other],
            )  # fmt: skip
        if not self.has_dma:
            return tag >= known[0]
        dma = (stamps & np.uint64(DMA)) != 0
        return np.where(dma, tag > np.where(self._is_async(m, stamps), known[2], known[1]), tag >= known[0])

    def _is_async(self, m: Machine, stamps: Array) -> Array:
        return m.program.is_async[(stamps >> np.uint64(8) & np.uint64(0xFFFFFF)).astype(np.int64)]

    def _check_own_dma(self, m: Machine, inst: Inst, index: Array, stamps: Array, waves: Array) -> None:
        """A wave must wait for its own asynchronous DMA too."""
        own = (stamps & np.uint64(DMA) != 0) & ((stamps & np.uint64(WAVE_BITS)) == waves)
        own &= self._is_async(m, stamps)
        done = self.sync.done_async
        if not self.sync.uniform:
            groups = index // max(1, m.lds_copy_bytes >> self.shift)
            done = done[groups, np.broadcast_to(waves, stamps.shape).astype(np.int64)]
        late = own & ((stamps >> np.uint64(32)).astype(np.int64) > done)
        if late.any():
            stamp = int(stamps[late].flat[0])
            other = m.program.insts[(stamp >> 8) & 0xFFFFFF]
            m.fault(
                inst, f"read of {m.lds_name(index, late)} before the asynchronous DMA of the same wave is complete: "
                f"'{m.program.text_of(other)}' at {m.program.where(other)}",
                _lanes(late, index), "wait for it first (wait.asyncmark, s.wait.asynccnt, s.waitcnt vmcnt)",
            )  # fmt: skip

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
