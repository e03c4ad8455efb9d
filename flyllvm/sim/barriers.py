"""Barriers of a workgroup: the one of all its waves, whole or split into signal and wait, and named ones.

A barrier is complete when as many waves have signalled it as it has members: all live waves of the workgroup, or the
number given to ``s.barrier.init`` or ``s.barrier.signal.var``.  Its completion lets each member pass one wait.  A wave
may signal a named barrier that it never waits for; to wait it must have joined one, and it is in one at a time.

`cluster_barrier` has the one of a cluster of workgroups.

Source: RDNA4 ISA manual, S_BARRIER_SIGNAL, S_BARRIER_WAIT; LLVM AMDGPUUsage, named barriers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import cluster_barrier, dma, poison
from .sync import WORKGROUP
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .ir import Inst
    from .machine import Machine

_ALONE = "call it from whole waves, with the same operands in every lane"


class Named:
    """A named barrier in each workgroup.  Shape: ``(workgroups,)``."""

    __slots__ = ("members", "signals")

    def __init__(self, groups: int) -> None:
        self.members, self.signals = np.zeros(groups, np.int64), np.zeros(groups, np.int64)


class Barriers:
    """Who has signalled and who may pass.  Shape: ``(workgroups, waves)``.

    Attributes:
        signalled: Waves that signalled the workgroup's barrier and wait for its completion.
        open: Waves that may pass one wait of the workgroup's barrier.
        open_named: How often the joined barrier was complete since the wave's last wait.
        joined: Key of the named barrier that each wave has joined, or -1.
    """

    def __init__(self, groups: int, waves: int) -> None:
        shape = (groups, waves)
        self.groups = groups
        self.signalled: Array = np.zeros(shape, bool)
        self.open: Array = np.zeros(shape, bool)
        self.open_named: Array = np.zeros(shape, np.int64)
        self.joined = np.full(shape, -1, np.int64)
        self.named: dict[int, Named] = {}

    @property
    def idle(self) -> bool:
        """Nobody has signalled, and nobody may pass."""
        return not (self.signalled.any() or self.open.any())

    def state(self) -> tuple[object, ...]:
        """What decides who may pass next."""
        named = tuple((k, b.signals.tobytes(), b.members.tobytes()) for k, b in sorted(self.named.items()))
        return self.signalled.tobytes(), self.open.tobytes(), self.open_named.tobytes(), self.joined.tobytes(), named

    # ---- the barrier of the workgroup

    def signal(self, m: Machine, inst: Inst, waves: Array) -> None:
        """These waves arrive at the workgroup's barrier."""
        twice = self.signalled & waves
        if twice.any():
            m.fault(inst, "a wave signals the barrier again before it is complete", twice[:, :, None] & m.mask,
                    "wait for it in between, in every wave")  # fmt: skip
        unused = self.open & waves
        if unused.any():
            m.fault(inst, "a wave signals the barrier again without having waited for it", unused[:, :, None] & m.mask,
                    "every signal needs its wait in the same wave")  # fmt: skip
        self.signalled = self.signalled | waves
        m.sync.offer(m, WORKGROUP, waves)
        self.update(m)

    def update(self, m: Machine) -> None:
        """Completes the workgroup's barrier where every live wave has signalled it."""
        alive: Array = m.live.any(axis=2)
        ready: Array = (self.signalled | ~alive).all(axis=1) & (self.signalled & alive).any(axis=1)
        if not ready.any():
            return
        for index, mask in list(m.waiting.items()):
            m.check_skipped(index, mask, ready)
        receivers = alive & ready[:, None]
        self.open = self.open | receivers
        self.signalled = self.signalled & ~ready[:, None]
        whole = bool((ready | ~alive.any(axis=1)).all())
        m.sync.complete(WORKGROUP, None if whole else ready, None if whole else receivers)

    # ---- named barriers

    def find(self, m: Machine, inst: Inst, key: int) -> Named:
        """A named barrier; ``key`` is its LDS address, or its number below zero."""
        found = self.named.get(key)
        if found is None:
            found = self.named[key] = Named(self.groups)
        return found

    def arrive(self, m: Machine, inst: Inst, key: int, waves: Array) -> None:
        """These waves signal a named barrier, one after the other."""
        barrier = self.find(m, inst, key)
        missing = waves & (barrier.members == 0)[:, None]
        if missing.any():
            m.fault(inst, "the named barrier has no member count", missing[:, :, None] & m.mask,
                    "s.barrier.init gives it one; a barrier of the workgroup then tells the others")  # fmt: skip
        for wave in range(waves.shape[1]):
            here = waves[:, wave]
            if here.any():
                only = np.zeros_like(waves)
                only[:, wave] = here
                m.sync.offer(m, key, only)
                barrier.signals = barrier.signals + here
                self.complete_named(m, key)

    def complete_named(self, m: Machine, key: int) -> None:
        """Completes a named barrier where it has its signals."""
        barrier = self.named[key]
        ready = (barrier.signals >= barrier.members) & (barrier.signals > 0)
        if not ready.any():
            return
        barrier.signals = np.where(ready, 0, barrier.signals)
        receivers = (self.joined == key) & ready[:, None]
        self.open_named = self.open_named + receivers
        m.sync.complete(key, ready, receivers)

    def times(self, number: int) -> Array:
        """How often the workgroup's barrier (-1), or the one a wave has joined, was complete since its last wait."""
        return self.open_named if number > 0 else self.open.astype(np.int64)

    def passed(self, number: int, waves: Array) -> None:
        """These waves have passed."""
        if number > 0:
            self.open_named = np.where(waves, 0, self.open_named)
        else:
            self.open = self.open & ~waves


# ---- intrinsics


def whole_waves(m: Machine, inst: Inst) -> Array:
    """The running waves; all their live lanes must run."""
    waves = m.active_waves()
    missing = m.live & ~m.mask & waves[:, :, None]
    if missing.any():
        m.check_missing(inst, missing)
    return waves


def _per_wave(m: Machine, value: Array) -> Array:
    """A scalar operand.  Shape: ``(workgroups, waves)``."""
    result: Array = np.broadcast_to(dma.first_of_wave(m, value)[:, :, 0], m.shape[:2]).astype(np.int64)
    return result


def _each_key(m: Machine, keys: Array, waves: Array) -> list[tuple[int, Array]]:
    return [(int(k), waves & (keys == k)) for k in np.unique(keys[waves])]


def signal(c: Compiler, inst: Inst) -> list[Op]:
    """``s.barrier.signal`` and ``.isfirst``: number -1 is the workgroup's barrier, 1 and up are named ones."""
    number = number_of(c, inst)
    if number == cluster_barrier.NUMBER:
        return cluster_barrier.signal(c, inst)
    first = (inst.callee or "").endswith("isfirst")
    d = c.dest(inst)

    def run(r: list[Any], m: Machine) -> None:
        waves = whole_waves(m, inst)
        if first:
            r[d] = _is_first(m, waves, number)
        if number == 0:
            return
        if number > 0:
            m.barriers.arrive(m, inst, -1 - number, waves)
        else:
            m.barriers.signal(m, inst, waves)

    return [run]


def _is_first(m: Machine, waves: Array, number: int) -> Array:
    """Whether each wave is the first to signal; those that meet in one instruction come in order."""
    lowest = waves & (np.cumsum(waves, axis=1) == 1)
    if number > 0:
        barrier = m.barriers.named.get(-1 - number)
        fresh = np.ones(m.groups, bool) if barrier is None else barrier.signals == 0
    else:
        fresh = ~m.barriers.signalled.any(axis=1)
    result: Array = (lowest & fresh[:, None])[:, :, None]
    return result


def number_of(c: Compiler, inst: Inst) -> int:
    """The barrier that a signal or wait names: -1 and -3 those of workgroup and cluster, 1 and up named ones.

    Raises:
        SimError: It belongs to trap handlers, or has no meaning with this instruction.
    """
    c.immediate(inst, 0)
    number = awaited(inst)
    first = (inst.callee or "").endswith("isfirst")
    if number < -3 or number == -2 or (number == -3 and first):
        what = "tells only the first, and only later, that it is" if number == -3 else "belongs to trap handlers"
        raise SimError(
            f"'{c.program.text_of(inst)}': barrier {number} {what}", c.program.where(inst),
            "use -1 (the workgroup), -3 (its cluster; without isfirst) or a named barrier",
        )  # fmt: skip
    return number


def awaited(inst: Inst) -> int:
    """Number of the barrier that an instruction is for; -1 where it has no operand."""
    if not inst.operands:
        return -1
    value = int(getattr(inst.operands[0], "value", 0) or 0) & 0xFFFF
    return value - (1 << 16) if value >> 15 else value


def signal_var(c: Compiler, inst: Inst) -> list[Op]:
    """``s.barrier.signal.var``: pointer to a named barrier, member count (0 keeps it)."""
    pointer, count = c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        waves, counts = whole_waves(m, inst), _per_wave(m, r[count])
        for key, mine in _each_key(m, _per_wave(m, r[pointer]), waves):
            barrier = m.barriers.find(m, inst, key)
            given = np.where(mine, counts, 0).max(axis=1)
            barrier.members = np.where(given > 0, given, barrier.members)
            m.barriers.arrive(m, inst, key, mine)

    return [*_guards(c, inst), run]


def init(c: Compiler, inst: Inst) -> list[Op]:
    """``s.barrier.init``: pointer to a named barrier, member count."""
    pointer, count = c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        waves, counts = whole_waves(m, inst), _per_wave(m, r[count])
        bad = waves & ((counts <= 0) | (counts > 32))
        if bad.any():
            m.fault(inst, f"a member count of {int(counts[bad].flat[0])}", bad[:, :, None] & m.mask,
                    "give the number of waves that signal it, 1 to 32")  # fmt: skip
        for key, mine in _each_key(m, _per_wave(m, r[pointer]), waves):
            barrier = m.barriers.find(m, inst, key)
            here = mine.any(axis=1)
            barrier.members = np.where(here, np.where(mine, counts, 0).max(axis=1), barrier.members)
            barrier.signals = np.where(here, 0, barrier.signals)

    return [*_guards(c, inst), run]


def join(c: Compiler, inst: Inst) -> list[Op]:
    """``s.barrier.join``: pointer to a named barrier, which the wave is a member of from now on."""
    pointer = c.slot(inst.operands[0])

    def run(r: list[Any], m: Machine) -> None:
        waves = whole_waves(m, inst)
        m.barriers.joined = np.where(waves, _per_wave(m, r[pointer]), m.barriers.joined)
        m.barriers.passed(1, waves)

    return [*_guards(c, inst), run]


def leave(c: Compiler, inst: Inst) -> list[Op]:
    """``s.barrier.leave``: the wave is no member of its named barrier any more."""

    def run(r: list[Any], m: Machine) -> None:
        waves, state = whole_waves(m, inst), m.barriers
        for key, mine in _each_key(m, state.joined, waves & (state.joined != -1)):
            barrier = state.find(m, inst, key)
            barrier.members = np.maximum(barrier.members - mine.sum(axis=1), 0)
            state.joined = np.where(mine, -1, state.joined)
            state.complete_named(m, key)

    return [run]


def _guards(c: Compiler, inst: Inst) -> list[Op]:
    guard = poison.guard(c, inst, list(range(len(inst.operands))), "the operand")
    return [guard] if guard else []


TABLE = {
    "amdgcn.s.barrier.signal": signal,
    "amdgcn.s.barrier.signal.isfirst": signal,
    "amdgcn.s.barrier.signal.var": signal_var,
    "amdgcn.s.barrier.init": init,
    "amdgcn.s.barrier.join": join,
    "amdgcn.s.barrier.leave": leave,
}
