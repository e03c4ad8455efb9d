"""Races on global memory, on request.

Nothing orders two workgroups of a launch except atomics, and two waves of a workgroup only barriers with fences (see
`sync`).  Per granule of the heap the last write and the last read are kept, with workgroup, wave, segment and
instruction.  A write that changes nothing is no race, and atomic operations do not race with each other unless their
scope leaves the other workgroup out: chips with several L2 caches do them in the nearest one then.

Source: LLVM AMDGPUUsage, memory scopes (atomic operations of different workgroups need scope agent or system).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from . import transfer
from .ir import Reg
from .race_fault import ATOMIC, SEVERAL, WAVE_BITS
from .sync import SEGMENT
from .values import Array

if TYPE_CHECKING:
    from .ir import Inst
    from .launch import Launch
    from .machine import Machine
    from .transfer import Located

_SEVERAL_GROUPS = -2
LDS_SPACE = 3


def lds_reads(insts: list[Inst], store: Inst) -> list[Inst]:
    """The loads from LDS that the operands of an instruction are computed from, in the order of the text."""
    made = {i.name: i for i in insts if i.name is not None}
    found: set[int] = set()
    seen: set[str] = set()
    work = list(store.operands)
    while work:
        operand = work.pop()
        if not isinstance(operand, Reg) or operand.name in seen:
            continue
        seen.add(operand.name)
        inst = made.get(operand.name)
        if inst is None:
            continue
        if inst.op == "load" and getattr(inst.operands[0].type, "space", 0) == LDS_SPACE:
            found.add(inst.id)
        else:
            work += inst.operands
    return [i for i in insts if i.id in found]


class GlobalShadow:
    """Who touched each granule of the heap last; lives for the whole launch.

    Units: ``granule`` in bytes.
    """

    def __init__(self, launch: Launch, heap_bytes: int, granule: int) -> None:
        self.launch, self.granule, self.shift = launch, granule, granule.bit_length() - 1
        count = (heap_bytes >> self.shift) + 1
        self.written, self.read = np.zeros(count, np.uint64), np.zeros(count, np.uint64)
        self.write_group, self.read_group = np.zeros(count, np.int32), np.zeros(count, np.int32)

    def _place(
        self, m: Machine, inst: Inst, where: Located, byte_count: int, flags: int
    ) -> tuple[Array, Array, Array, Array]:
        """Granules, stamps, workgroups (from 1) and waves of an access, one row per running lane or part of one."""
        offset = where.offset if where.packed else transfer.running(m, where.offset)
        rows = np.flatnonzero(m.mask) if where.rows is None else where.rows
        index = (offset >> self.shift)[:, None] + np.arange(max(1, byte_count >> self.shift))
        groups = np.arange(m.first_group + 1, m.first_group + 1 + m.groups, dtype=np.int32).reshape(-1, 1, 1)
        tag = np.asarray(m.sync.tag(SEGMENT), np.uint64) << np.uint64(32)
        stamp = tag | np.uint64(inst.id << 8 | flags) | m.wave_ids
        columns = [np.broadcast_to(a, m.shape).reshape(-1)[rows][:, None] for a in (stamp, groups, m.wave_ids)]
        return index, columns[0], columns[1], columns[2]

    def _conflict(self, m: Machine, stamps: Array, owners: Array, groups: Array, waves: Array) -> Array:
        """Which earlier accesses are not ordered before one now."""
        elsewhere = owners != groups
        other_wave = (stamps & np.uint64(SEVERAL | WAVE_BITS)) != waves
        tags = (stamps >> np.uint64(32)).astype(np.int64)
        known = m.sync.known[0]
        if not m.sync.uniform:
            inside = np.clip(np.broadcast_to(groups, stamps.shape) - m.first_group - 1, 0, m.groups - 1)
            mine, other = np.broadcast_to(waves, stamps.shape).astype(np.int64), stamps & np.uint64(WAVE_BITS)
            several = (stamps & np.uint64(SEVERAL)) != 0
            known = np.where(several, known.min(axis=2)[inside, mine], known[inside, mine, other.astype(np.int64)])
        if self.launch.foreign and elsewhere.any():
            elsewhere = elsewhere & ~self._passed_on(stamps, tags, owners, groups)
        return (stamps != 0) & (elsewhere | ((owners == groups) & other_wave & (tags >= known)))

    def _passed_on(self, stamps: Array, tags: Array, owners: Array, groups: Array) -> Array:
        """Which accesses of other workgroups came before an atomic operation that this one has seen."""
        result = np.zeros(stamps.shape, bool)
        wide = np.broadcast_to(groups, stamps.shape)
        for group in np.unique(wide).tolist():
            clocks = self.launch.foreign.get(group - 1)
            if clocks is None:
                continue
            mine = wide == group
            # Of several readers only the last is known.
            result |= mine & (owners == _SEVERAL_GROUPS)
            for owner in np.unique(owners[mine]).tolist():
                clock = clocks.get(owner - 1)
                if clock is not None:
                    waves = (stamps & np.uint64(WAVE_BITS)).astype(np.int64)
                    result |= mine & (owners == owner) & (tags < clock[SEGMENT][waves])
        return result

    def _plain(self, m: Machine, inst: Inst, stamps: Array, owners: Array, groups: Array) -> Array:
        """Which earlier accesses are not atomic for the atomic one now."""
        plain: Array = (stamps & np.uint64(ATOMIC)) == 0
        narrow = m.program.narrow
        if not narrow.any():
            return plain
        others = narrow[(stamps >> np.uint64(8) & np.uint64(0xFFFFFF)).astype(np.int64)]
        return plain | ((owners != groups) & (others | narrow[inst.id]))

    def on_read(self, m: Machine, inst: Inst, where: Located, byte_count: int, atomic: bool = False) -> None:
        """A read."""
        index, stamp, groups, waves = self._place(m, inst, where, byte_count, 0)
        written = self.written[index]
        bad = self._conflict(m, written, self.write_group[index], groups, waves)
        if atomic:
            bad &= self._plain(m, inst, written, self.write_group[index], groups)
        if bad.any():
            self._report(m, inst, index, bad, written, self.write_group[index])
        old = self.read_group[index]
        several = (old != 0) & (old != groups)
        self.read[index] = np.broadcast_to(stamp, index.shape)
        self.read_group[index] = np.where(several, _SEVERAL_GROUPS, groups)
        mixed = self.read_group[index]
        self.read_group[index] = np.where((mixed != groups) & (mixed != _SEVERAL_GROUPS), _SEVERAL_GROUPS, mixed)

    def on_write(
        self, m: Machine, inst: Inst, where: Located, byte_count: int, flags: int,
        differing: Callable[[], Array], commit: Callable[[], None],
    ) -> None:  # fmt: skip
        """A write.

        Args:
            m: The machine.
            inst: The instruction.
            where: The flat heap offsets.
            byte_count: Bytes per row.
            flags: ``ATOMIC`` or 0.
            differing: Tells which rows' bytes are not those in memory now.
            commit: Does the write.
        """
        index, stamp, groups, waves = self._place(m, inst, where, byte_count, flags)

        def differ() -> Array:
            flags = differing()
            return (flags if where.packed else transfer.running(m, flags))[:, None]

        changed = differ()
        for kind, owner in ((self.written, self.write_group), (self.read, self.read_group)):
            stamps, owners = kind[index], owner[index]
            bad = self._conflict(m, stamps, owners, groups, waves) & changed
            if flags & ATOMIC:
                bad &= self._plain(m, inst, stamps, owners, groups)
            if bad.any():
                self._report(m, inst, index, bad, stamps, owners)
        self.written[index] = np.broadcast_to(stamp, index.shape)
        self.write_group[index] = np.broadcast_to(groups, index.shape)
        commit()
        if flags & ATOMIC:
            owners = self.write_group[index]
            if m.program.narrow[inst.id] and (owners != groups).any():  # met in this very instruction
                self._report(m, inst, index, owners != groups, self.written[index], owners)
            return
        lost = differ()
        if not lost.any():
            return
        got, owners = self.written[index], self.write_group[index]
        bad = ((owners != groups) | ((got & np.uint64(WAVE_BITS)) != waves)) & lost
        if bad.any():
            self._report(m, inst, index, bad, got, owners)
        row, column = np.argwhere(np.broadcast_to(lost, index.shape))[0]
        address = m.heap.base + (int(index[row, column]) << self.shift)
        what = f"race: lanes of one wave store different values to {transfer.show(m, 'global', address)} at once"
        m.fault(inst, what, None, "give every lane its own place, let one lane store, or use an atomic")

    def writer(self, address: int) -> str | None:
        """The instruction that wrote a byte of the heap last, with its place; ``None`` where nothing did."""
        granule = (address - self.launch.heap.base) >> self.shift
        stamp, owner = int(self.written[granule]), int(self.write_group[granule])
        if not stamp:
            return None
        program = self.launch.program
        inst = program.insts[stamp >> 8 & 0xFFFFFF]
        group = self.launch.group_name(owner - 1)
        said = f"'{program.text_of(inst)}' at {program.where(inst)}, workgroup {group}, wave {stamp & WAVE_BITS}"
        reads = dict.fromkeys(program.where(read) for read in lds_reads(program.insts, inst))
        return said + (f"; it is made from the LDS reads at {', '.join(reads)}" if reads else "")

    def _report(self, m: Machine, inst: Inst, index: Array, bad: Array, stamps: Array, owners: Array) -> None:
        row, column = np.argwhere(bad)[0]
        stamp, owner = int(stamps[row, column]), int(owners[row, column])
        other = m.program.insts[stamp >> 8 & 0xFFFFFF]
        who = "several workgroups" if owner == _SEVERAL_GROUPS else f"workgroup {self.launch.group_name(owner - 1)}"
        address = m.heap.base + (int(index[row, column]) << self.shift)
        fix = "use atomics, give each workgroup its own part, or a fenced barrier between waves of one workgroup"
        if stamp & ATOMIC and (m.program.narrow[inst.id] or m.program.narrow[other.id]):
            fix = 'atomic operations of several workgroups need syncscope("agent") or none'
        m.fault(
            inst,
            f"race on {transfer.show(m, 'global', address)}: not ordered with '{m.program.text_of(other)}' at "
            f"{m.program.where(other)} of {who}, wave {stamp & WAVE_BITS}",
            None, fix,
        )  # fmt: skip
