"""The LDS race detector: who touched each granule of LDS last, and whether `sync` orders that before now.

Shadow state per granule of LDS (the largest size that divides every LDS access of the kernel) is one uint64 stamp of
the last write and one of the last read: segment << 32 | instruction << 8 | flags | wave.  Once waves go their own ways
(`Sync.uniform` is false) reads and atomic operations are kept for each wave apart, because their clocks then do not
compare: the last of several readers says nothing about the others.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from .race_fault import ATOMIC, DMA, FIXES, SEVERAL, WAVE_BITS, Who, lanes_of, report_lanes, report_race
from .sync import ASYNC, SEGMENT, Sync
from .unwritten import FIX
from .values import Array

if TYPE_CHECKING:
    from .ir import Inst
    from .machine import Machine


class Shadow:
    """Who touched each granule of LDS last.

    Attributes:
        written, read: Stamps of the last plain write and read, those of uniform times with atomic ones among them.
        each: After `Sync.split`: stamps for each wave of plain reads, atomic reads and atomic writes.

    Units: ``granule`` in bytes; indices count granules over all workgroups of the chunk.
    """

    def __init__(self, lds_bytes: int, granule: int, sync: Sync, has_dma: bool, has_atomics: bool) -> None:
        self.granule, self.shift = granule, granule.bit_length() - 1
        count = max(1, lds_bytes >> self.shift)
        self.written = np.zeros(count, np.uint64)
        self.read = np.zeros(count, np.uint64)
        self.each: dict[str, Array] = {}
        self.sync = sync
        self.one_wave = sync.waves == 1
        self.has_dma, self.has_atomics = has_dma, has_atomics

    def indices(self, offset: Array, byte_count: int) -> Array:
        """Granules of accesses at flat LDS offsets; one more axis where an access has several."""
        first = offset >> self.shift
        count = byte_count >> self.shift
        return first if count <= 1 else first[..., None] + np.arange(count)

    def _stamp(self, m: Machine, inst: Inst, index: Array, flags: int, who: Who | None) -> tuple[Array, Array]:
        """The stamp of an access now and the waves that do it, both broadcastable to ``index``."""
        kind = int(m.program.dma_kind[inst.id]) if flags & DMA else SEGMENT
        tag = self.sync.tag(kind)
        low = np.uint64((inst.id << 8) | flags)
        if who is not None:
            own = int(tag if self.sync.uniform else tag[who.group, who.wave, 0])
            wave = np.array(who.wave, np.uint64)
            return np.uint64(own << 32) | low | wave, wave
        stamp = (np.asarray(tag, np.uint64) << np.uint64(32)) | low | m.wave_ids
        waves = m.wave_ids
        if index.ndim in (1, 2):  # only active lanes, flattened
            mask = m.mask
            stamp = np.broadcast_to(stamp, mask.shape)[mask]
            waves = np.broadcast_to(waves, mask.shape)[mask]
        if index.ndim in (2, 4):
            stamp, waves = stamp[..., None], waves[..., None]
        return stamp, waves

    def _each(self, name: str) -> Array:
        """The stamps of one kind for each wave, made from those of uniform times at the first use."""
        table = self.each.get(name)
        if table is None:
            table = np.zeros((self.sync.waves, len(self.read)), np.uint64)
            old = self.written if name == "atomic writes" else self.read
            atomic = (old & np.uint64(ATOMIC)) != 0
            old = np.where((atomic == (name != "reads")) & ((old & np.uint64(DMA)) == 0), old, np.uint64(0))
            several = (old & np.uint64(SEVERAL)) != 0
            for wave in range(self.sync.waves):
                mine = several | ((old & np.uint64(WAVE_BITS)) == wave)
                table[wave] = np.where(mine, old & ~np.uint64(SEVERAL | WAVE_BITS) | np.uint64(wave), 0)
                table[wave][old == 0] = 0
            self.each[name] = table
        return table

    def _split(self) -> None:
        if not self.each:
            for name in ("reads", "atomic reads", "atomic writes") if self.has_atomics else ("reads",):
                self._each(name)

    def check_written(self, m: Machine, inst: Inst, index: Array, who: Who | None = None) -> Array:
        """Finds uninitialised granules among those that are read; gives the stamps of their last writes."""
        written: Array = self.written.take(index, mode="clip")
        waits = inst.id in m.program.unwritten_waits
        if waits and m.unwritten.values:
            m.unwritten.forget(m, m.program.slots[inst.name or ""])
        if int(written.min()) == 0:
            bad = written == 0
            what, lanes = m.lds_name(index, bad), lanes_of(m, bad, index, who)
            if not waits:
                m.fault(inst, f"read of uninitialised {what}", lanes, FIX)
            m.unwritten.note(m, inst, what, lanes)
        return written

    def on_read(
        self, m: Machine, inst: Inst, index: Array, atomic: bool = False, *, dma: bool = False, who: Who | None = None
    ) -> None:
        """A read; finds uninitialised granules and unordered writes."""
        written = self.check_written(m, inst, index, who)
        if self.one_wave and not self.has_dma:
            return
        stamp, waves = self._stamp(m, inst, index, (ATOMIC if atomic else 0) | (DMA if dma else 0), who)
        if self.has_dma:
            self._check_own_dma(m, inst, index, written, waves, who)
        if not self.sync.uniform:
            written = _without(written, ATOMIC)
        if not self._settled(written):
            self._check(m, inst, index, written, waves, who, atomic)
        if not self.sync.uniform:
            self._split()
            if not atomic:
                self._check_each(m, inst, index, "atomic writes", waves, who)
            if not dma:
                self._note_each("atomic reads" if atomic else "reads", index, stamp, waves)
                return
        old = self.read.take(index, mode="clip")
        if not self._settled(old):
            several = self._unordered(m, old, waves, index) & self._others(old, waves)
            stamp = np.asarray(stamp | np.where(several, np.uint64(SEVERAL), np.uint64(0)))
            if self.has_dma:  # a read by DMA that goes on counts for more than one that is over
                stamp = np.where(self._incomplete(m, old, index) & (not dma), old, stamp)
        self.read[index] = stamp
        got = self.read.take(index, mode="clip")
        if not np.array_equal(got, np.broadcast_to(stamp, got.shape)):
            differs = (got ^ stamp) & np.uint64(WAVE_BITS) != 0
            self.read[np.broadcast_to(index, differs.shape)[differs]] |= np.uint64(SEVERAL)

    def on_write(
        self, m: Machine, inst: Inst, index: Array, flags: int = 0, lost: Callable[[], Array] | None = None,
        *, who: Who | None = None, excused: Array | None = None,
    ) -> None:  # fmt: skip
        """A plain, atomic or DMA write; finds unordered reads and writes of other waves.

        Args:
            m: The machine.
            inst: The instruction.
            index: Granules written, from `indices`.
            flags: ``ATOMIC`` or ``DMA``.
            lost: Tells which lanes now read back other data than they wrote.  Lanes that meet in one instruction and
                write the same bytes do no harm.
            who: The wave that writes as a whole.
            excused: Granules that hold these bytes already, from another wave in the same instruction.
        """
        stamp, waves = self._stamp(m, inst, index, flags, who)
        if self.has_dma:
            self._check_own_dma(m, inst, index, self.read.take(index, mode="clip"), waves, who)
            self._check_own_dma(m, inst, index, self.written.take(index, mode="clip"), waves, who, bool(flags & DMA))
        atomic = bool(flags & ATOMIC)
        overwritten = lost() if lost is not None and not atomic else None
        if self.one_wave:
            self.written[index] = stamp
            if overwritten is not None and overwritten.any():
                report_lanes(m, inst, index, overwritten, who)
            return
        for kind in (self.written, self.read):
            old: Array = kind.take(index, mode="clip")
            if not self.sync.uniform:  # the others are in `each`
                old = _without(old, ATOMIC) if kind is self.written else _only(old, DMA)
            if kind is self.written and excused is not None:
                old = np.where(excused, np.uint64(0), old)
            if not self._settled(old):
                self._check(m, inst, index, old, waves, who, atomic)
        if not self.sync.uniform:
            self._split()
            for name in ("reads",) if atomic else ("reads", "atomic reads", "atomic writes"):
                self._check_each(m, inst, index, name, waves, who)
            if atomic:
                self._note_each("atomic writes", index, stamp, waves)
        self.written[index] = stamp
        got = self.written.take(index, mode="clip")
        if overwritten is not None and not overwritten.any():
            return
        differs = (got ^ stamp) & np.uint64(WAVE_BITS) != 0
        if atomic:
            self.written[np.broadcast_to(index, differs.shape)[differs]] |= np.uint64(SEVERAL)
            return
        if overwritten is not None:
            differs &= overwritten[..., None] if differs.ndim > overwritten.ndim else overwritten
        if differs.any():
            report_race(m, inst, index, differs, got, waves, who)
        if overwritten is not None:
            report_lanes(m, inst, index, overwritten, who)

    def is_of(self, index: Array, inst: Inst) -> Array:
        """Which granules an instruction wrote last."""
        stamps = self.written.take(index, mode="clip")
        result: Array = (stamps != 0) & ((stamps >> np.uint64(8) & np.uint64(0xFFFFFF)) == inst.id)
        return result

    # ---- what is ordered

    def _settled(self, stamps: Array) -> bool:
        """The fast answer to whether all these accesses are ordered before now."""
        highest = int(stamps.max())
        if self.has_dma:
            return highest == 0
        known = self.sync.known[0]
        return highest < (int(known) if self.sync.uniform else int(known.min())) << 32

    def _others(self, stamps: Array, waves: Array) -> Array:
        result: Array = (stamps & np.uint64(SEVERAL | WAVE_BITS)) != waves
        return result

    def _group_of(self, m: Machine, index: Array) -> Array:
        return index // max(1, m.lds_copy_bytes >> self.shift)

    def _unordered(self, m: Machine, stamps: Array, waves: Array, index: Array) -> Array:
        tag = (stamps >> np.uint64(32)).astype(np.int64)
        kinds = self._kinds(m, stamps) if self.has_dma else None
        known = self.sync.known
        if not self.sync.uniform:
            groups = self._group_of(m, index)
            other = (stamps & np.uint64(WAVE_BITS)).astype(np.int64)
            mine = np.broadcast_to(waves, stamps.shape).astype(np.int64)
            several = (stamps & np.uint64(SEVERAL)) != 0
            lowest = known[0].min(axis=2)[groups, mine]
            plain = np.where(several, lowest, known[0][groups, mine, other])
            if kinds is None:
                return tag >= plain
            return np.where(kinds == SEGMENT, tag >= plain, tag > known[kinds, groups, mine, other])
        if kinds is None:
            return tag >= known[0]
        return np.where(kinds == SEGMENT, tag >= known[0], tag > np.array(known)[kinds])

    def _kinds(self, m: Machine, stamps: Array) -> Array:
        """Part of the clock that says whether each access is complete."""
        kinds = m.program.dma_kind[(stamps >> np.uint64(8) & np.uint64(0xFFFFFF)).astype(np.int64)]
        return np.where((stamps & np.uint64(DMA)) != 0, kinds, SEGMENT)

    def _incomplete(self, m: Machine, stamps: Array, index: Array) -> Array:
        """Which accesses are DMA that the issuing wave does not know to be complete."""
        kinds = self._kinds(m, stamps)
        now = self.sync.now
        if self.sync.uniform:
            done = np.array(now)[kinds]
        else:
            done = now[kinds, self._group_of(m, index), (stamps & np.uint64(WAVE_BITS)).astype(np.int64)]
        result: Array = (kinds != SEGMENT) & ((stamps >> np.uint64(32)).astype(np.int64) > done)
        return result

    # ---- stamps for each wave

    def _note_each(self, name: str, index: Array, stamp: Array, waves: Array) -> None:
        table = self._each(name)
        shape = np.broadcast_shapes(index.shape, waves.shape)
        where = np.broadcast_to(waves, shape).astype(np.int64), np.broadcast_to(index, shape)
        table[where] = np.broadcast_to(stamp, shape)

    def _check_each(self, m: Machine, inst: Inst, index: Array, name: str, waves: Array, who: Who | None) -> None:
        table = self.each.get(name)
        if table is None:
            return
        mine: Array | None = None
        for wave in range(self.sync.waves):
            stamps = table[wave].take(index, mode="clip")
            if not stamps.any():
                continue
            if mine is None:
                mine = np.broadcast_to(waves, stamps.shape).astype(np.int64)
                groups = self._group_of(m, index)
            late = (stamps >> np.uint64(32)).astype(np.int64) >= self.sync.known[0][groups, mine, wave]
            race = late & (stamps != 0) & (mine != wave)
            if race.any():
                report_race(m, inst, index, race, stamps, waves, who)

    # ---- faults

    def _check_own_dma(
        self, m: Machine, inst: Inst, index: Array, stamps: Array, waves: Array, who: Who | None,
        loads: bool = False,
    ) -> None:  # fmt: skip
        """A wave must wait for its own asynchronous DMA too; loads of one kind (``loads``) keep their order."""
        late = (stamps & np.uint64(DMA) != 0) & ((stamps & np.uint64(WAVE_BITS)) == waves)
        if not late.any():
            return
        kinds = self._kinds(m, stamps)
        late &= self._incomplete(m, stamps, index) & (kinds >= ASYNC)
        if loads:
            late &= kinds != m.program.dma_kind[inst.id]
        if late.any():
            stamp = int(stamps[late].flat[0])
            other = m.program.insts[(stamp >> 8) & 0xFFFFFF]
            kind = int(m.program.dma_kind[other.id])
            what = "asynchronous DMA" if kind == ASYNC else "tensor DMA"
            m.fault(
                inst, f"access to {m.lds_name(index, late)} before the {what} of the same wave is complete: "
                f"'{m.program.text_of(other)}' at {m.program.where(other)}",
                lanes_of(m, late, index, who), FIXES[kind],
            )  # fmt: skip

    def _check(
        self, m: Machine, inst: Inst, index: Array, stamps: Array, waves: Array, who: Who | None, atomic: bool = False
    ) -> None:
        race = self._unordered(m, stamps, waves, index) & self._others(stamps, waves) & (stamps != 0)
        if atomic:
            race &= (stamps & np.uint64(ATOMIC)) == 0
        if race.any():
            report_race(m, inst, index, race, stamps, waves, who)


def _only(stamps: Array, flag: int) -> Array:
    return np.where((stamps & np.uint64(flag)) != 0, stamps, np.uint64(0))


def _without(stamps: Array, flag: int) -> Array:
    return np.where((stamps & np.uint64(flag)) == 0, stamps, np.uint64(0))
