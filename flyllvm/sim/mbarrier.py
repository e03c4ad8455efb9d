"""Barriers that lie in LDS (gfx1250): eight bytes that count arrivals and change phase when all have come.

Bits 28:0 are the arrivals that are missing, less one; 31:29 the phase; 47:32 what the count starts from again.  An
arrival takes its value from the low 32 bits, so that a count that falls below zero takes one from the phase; the count
then starts anew.  Waves that wait read the phase in a loop.  An arrival is a relaxed atomic operation: release and
acquire fences make it order memory.  The asynchronous form, and that of a tensor copy, comes after the wave's DMA so
far and hands on that this is complete.

How many bits the count has is a setting of the chip; 29 is what AMD's library and Triton take, and the machine warns.
Compilers read the phase with plain loads of 64 bits, which count as relaxed atomic ones where a kernel may have such
barriers.

Source: CDNA5 ISA manual, LDS Barrier Atomic Instructions, and DS_ATOMIC_BARRIER_ARRIVE_RTN_B64.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import atomics, poison, transfer, types as ty
from .race_fault import ATOMIC, Who, of_wave
from .sync import ASYNC, TENSOR
from .values import Array

if TYPE_CHECKING:
    from .cfg import Node
    from .compile import Compiler, Op
    from .ir import Inst
    from .machine import Machine

_COUNT_BITS = 29
_WARNING = f"the count of a barrier in LDS is taken to have {_COUNT_BITS} bits, which is a setting of the chip"
_RETURNING, _ASYNC = "amdgcn.ds.atomic.barrier.arrive.rtn.b64", "amdgcn.ds.atomic.async.barrier.arrive.b64"


def arrived(state: Array, value: Array) -> Array:
    """The barrier's eight bytes after an arrival."""
    low32, count = np.uint64(0xFFFFFFFF), np.uint64((1 << _COUNT_BITS) - 1)
    low = (state - (value & low32)) & low32
    below_zero = low >> np.uint64(_COUNT_BITS - 1) & np.uint64(1) != 0
    again = (low & ~count) | (state >> np.uint64(32) & np.uint64(0xFFFF))
    after: Array = (state & ~low32) | np.where(below_zero, again, low)
    return after


def mark_waits(graph: list[Node]) -> None:
    """Makes plain 64-bit loads from LDS relaxed atomic ones, in kernels in which they may read a phase."""
    insts = [inst for node in graph for inst in node.insts]
    callees = {(inst.callee or "").removeprefix("llvm.") for inst in insts if inst.op == "call"}
    if not callees & {_RETURNING, _ASYNC} and not any(c.startswith("amdgcn.tensor.") for c in callees):
        return
    for inst in insts:
        plain = inst.op == "load" and "order" not in inst.extra
        if plain and inst.type is ty.I64 and getattr(inst.operands[0].type, "space", 0) == 3:
            inst.flags = (*inst.flags, "atomic")
            inst.extra |= {"order": "monotonic", "scope": "workgroup"}


def build(c: Compiler, inst: Inst) -> list[Op]:
    """``ds.atomic.barrier.arrive.rtn.b64`` and ``ds.atomic.async.barrier.arrive.b64``."""
    returns = (inst.callee or "").endswith(_RETURNING)
    d, p = c.dest(inst), c.slot(inst.operands[0])
    value = c.slot(inst.operands[1]) if returns else None
    orders, tracked = c.program.orders, c.program.tracks_atomics
    guard = poison.guard(c, inst, list(range(len(inst.operands))), "the operand")

    def run(r: list[Any], m: Machine) -> None:
        m.launch.warn(inst, _WARNING)
        given = np.ones(m.active, np.uint64) if value is None else transfer.running(m, r[value])
        old = atomics.apply(m, inst, "LDS", r[p], ty.I64, 8, lambda state, lanes: arrived(state, given[lanes]))
        if returns:
            r[d] = transfer.expanded(m, old)
        if not orders:
            return
        rows = np.flatnonzero(m.mask)
        groups = rows // (m.waves * m.wave_size)
        keys = transfer.running(m, r[p]).astype(np.int64) + groups * m.lds_copy_bytes
        if not returns:
            if tracked:
                for row, key in np.unique(np.stack((rows // m.wave_size, keys), axis=1), axis=0).tolist():
                    m.sync.leave(m, key, row // m.waves, row % m.waves, ASYNC)
            m.sync.issue(m)
        elif tracked:
            m.sync.atomic(m, m.sync.places, keys, rows, "monotonic", reads=True, writes=True, wide=False)

    return [guard, run] if guard else [run]


def arrive_after_copy(m: Machine, inst: Inst, address: int, who: Who) -> None:
    """The arrival of a wave whose tensor copy is complete."""
    m.launch.warn(inst, _WARNING)
    if m.lds.find(np.array([address], np.uint32), 8) is None:
        m.fault(inst, f"the barrier at {transfer.show(m, 'LDS', address)} is out of bounds", of_wave(m, who),
                "check the descriptor's barrier address")  # fmt: skip
    m.writes += 1
    offset = np.array([address + who.group * m.lds_copy_bytes], np.int64)
    if m.program.checks.lds:
        index = m.shadow.indices(offset, 8)
        m.shadow.on_read(m, inst, index, True, who=who)
        m.shadow.on_write(m, inst, index, ATOMIC, who=who)
    state = np.ascontiguousarray(m.lds.gather(offset, 8, 8)).view(np.uint64)
    m.lds.scatter(offset, arrived(state, np.uint64(1)), 8)
    if m.program.tracks_atomics:
        m.sync.leave(m, int(offset[0]), who.group, who.wave, TENSOR)


TABLE = {_RETURNING: build, _ASYNC: build}
