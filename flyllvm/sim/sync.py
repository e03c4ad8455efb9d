"""Ordering between waves: vector clocks that fences, barriers, waits and atomic operations move.

LLVM's memory model orders two LDS accesses of different waves only through a chain: the first access, a release (a
fence of workgroup scope or wider, or an explicit wait), a barrier or an atomic operation, an acquire, the second
access.  A barrier alone orders execution, not memory.

An access is tagged with the wave's *segment*, which counts its releases.  What a wave has released is its *clock*: its
own segment, and for every other wave the segment below which accesses are ordered before what this wave does.  A
barrier collects the clocks of the waves that signal it and puts them into the inbox of those that pass; an acquire
takes the inbox as known.  An atomic operation leaves its wave's clock at its address (a relaxed one the clock of its
last release fence) and finds the clocks left there before.  While all waves do the same, a clock is four integers.

DMA to LDS completes in issue order: it is tagged with its number in the wave's count of vector memory (or of tensor)
operations, and a wait for all but the last n of them completes the others.  A release fence completes DMA too, except
for the asynchronous and the tensor forms, which only explicit waits complete.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from .values import Array

if TYPE_CHECKING:
    from .machine import Machine

# Parts of a clock: segments of accesses, then how many operations of each kind of DMA are complete.
SEGMENT, PLAIN, ASYNC, TENSOR = range(4)
# The barriers of the whole workgroup and of its cluster; the keys of named ones are other numbers.
WORKGROUP, CLUSTER = -1, -1 << 40
_SCOPES_OF_ONE_WAVE = ("singlethread", "wavefront")
Places = dict[int, dict[int, Array]]


class Sync:
    """What each wave has released and acquired.

    Attributes:
        uniform: All waves of the chunk have the same history.
        now: The wave's own clock entries.  Four ints, or an array ``(4, workgroup, wave)``.
        issued: Vector memory and tensor operations so far; ints or ``(workgroup, wave)``.
        known: What each wave has acquired.  Four ints, or ``(4, workgroup, wave, other wave)``.
        inbox: What barriers brought and no acquire has taken yet, in the same form; ``fenced``: the clock at the last
            release fence.
        phase: Barriers passed, plus one.  Shape: ``(workgroup,)``.
    """

    def __init__(self, groups: int, waves: int) -> None:
        self.groups, self.waves = groups, waves
        self.uniform = True
        self.phase = np.ones(groups, np.int64)
        self.now: Any = (1, 0, 0, 0)
        self.issued: list[Any] = [0, 0]
        self.marks: list[Any] = []
        self.known: Any = (1, 0, 0, 0)
        self.inbox: Any = (1, 0, 0, 0)
        self.fenced: Any = (0, 0, 0, 0)
        self.waited: Any = False
        self.offered: tuple[int, ...] | None = None
        self.gathered: dict[Hashable, Array] = {}
        self.found: Array | None = None
        self.foreign_found: dict[int, dict[int, Array]] = {}
        self.places: Places = {}

    def split(self) -> None:
        """Goes over to one clock per wave."""
        if not self.uniform:
            return
        self.uniform = False
        shape = (self.groups, self.waves)

        def spread(clock: tuple[int, ...], tail: tuple[int, ...]) -> Array:
            column = np.array(clock, np.int64).reshape((4,) + (1,) * len(tail))
            return np.broadcast_to(column, (4, *tail)).copy()

        self.now = spread(self.now, shape)
        self.known, self.inbox, self.fenced = (
            spread(c, (*shape, self.waves)) for c in (self.known, self.inbox, self.fenced)
        )
        self.issued = [np.full(shape, n) for n in self.issued]
        self.waited = np.full(shape, self.waited)
        self.marks = [np.full(shape, mark) for mark in self.marks]
        if self.offered is not None:
            self.gathered[WORKGROUP] = spread(self.offered, shape)
            self.offered = None

    def _advance(self, m: Machine, part: int, value: Any) -> None:
        """Sets one entry of the active waves' own clocks."""
        if self.uniform and m.covering:
            self.now = (*self.now[:part], value, *self.now[part + 1 :])
            return
        self.split()
        self.now[part] = np.where(m.active_waves(), value, self.now[part])

    def _set_waited(self, m: Machine) -> None:
        if self.uniform and m.covering:
            self.waited = True
            return
        self.split()
        self.waited = self.waited | m.active_waves()

    def clock(self) -> Array:
        """Clocks of all waves now.  Shape: ``(4, workgroup, wave, entry)``."""
        clock = self.known.copy()
        own = np.arange(self.waves)
        clock[:, :, own, own] = self.now
        return clock

    # ---- releases and waits

    def release(self, m: Machine) -> None:
        """A release: what the active waves did so far goes with their next barrier or atomic operation."""
        self._advance(m, SEGMENT, self.now[SEGMENT] + 1)
        self._advance(m, PLAIN, self.issued[0])

    def fence_release(self, m: Machine) -> None:
        """A release fence: relaxed atomic stores after it pass it on too."""
        self.release(m)
        if self.uniform:
            self.fenced = self.now
        else:
            self.fenced = np.where(m.active_waves()[:, :, None], self.clock(), self.fenced)

    def wait_lds(self, m: Machine) -> None:
        """An explicit wait for all LDS operations."""
        self._advance(m, SEGMENT, self.now[SEGMENT] + 1)
        self._set_waited(m)

    def wait_memory(self, m: Machine, outstanding: int) -> None:
        """An explicit wait until at most ``outstanding`` vector memory operations are not complete."""
        self._complete(m, (PLAIN, ASYNC), self.issued[0] - outstanding)

    def wait_tensor(self, m: Machine, outstanding: int) -> None:
        """An explicit wait until at most ``outstanding`` tensor operations are not complete."""
        self._complete(m, (TENSOR,), self.issued[1] - outstanding)

    def wait_marks(self, m: Machine, outstanding: int) -> None:
        """An explicit wait until at most ``outstanding`` marked groups of DMA are not complete."""
        if len(self.marks) > outstanding:
            self._complete(m, (PLAIN, ASYNC), self.marks[-1 - outstanding])

    def _complete(self, m: Machine, parts: tuple[int, ...], number: Any) -> None:
        for part in parts:
            old = self.now[part]
            self._advance(m, part, max(old, number) if self.uniform else np.maximum(old, number))
        self._set_waited(m)

    def mark(self, m: Machine) -> None:
        """Ends a group of DMA operations."""
        if not m.covering:
            self.split()
        self.marks = [*self.marks[-15:], self.issued[0]]

    def issue(self, m: Machine, counter: int = 0) -> None:
        """Counts a vector memory operation, or a tensor operation on counter 1."""
        if self.uniform and m.covering:
            self.issued[counter] += 1
            return
        self.split()
        self.issued[counter] = self.issued[counter] + m.active_waves()

    # ---- acquires

    def acquire(self, m: Machine) -> None:
        """Takes what barriers and relaxed atomic reads brought as known."""
        if self.uniform and m.covering:
            self.known = self.inbox
            return
        self.split()
        active = m.active_waves()
        self._learn(active)
        if self.found is not None:
            self.known = np.where(active[:, :, None], np.maximum(self.known, self.found), self.known)
        for group in list(self.foreign_found):
            if active[group - m.first_group].any():
                _join(m.launch.foreign.setdefault(group, {}), self.foreign_found.pop(group))

    def _learn(self, waves: Array) -> None:
        self.known = np.where(waves[:, :, None], np.maximum(self.known, self.inbox), self.known)

    # ---- barriers

    def offer(self, m: Machine, barrier: Hashable, waves: Array) -> None:
        """These waves signal a barrier: later releases do not count for it."""
        if self.uniform and m.covering and barrier == WORKGROUP:
            self.offered = self.now
            return
        self.split()
        clock = self.clock()
        if barrier == CLUSTER:  # one wave signals for all, and hands on what the workgroup's barrier brought it
            clock = np.maximum(clock, self.inbox)
        clock = np.where(waves[:, :, None], clock, 0).max(axis=2)
        old = self.gathered.get(barrier)
        self.gathered[barrier] = clock if old is None else np.maximum(old, clock)

    def share(self, m: Machine, barrier: Hashable, groups: list[int]) -> None:
        """What these workgroups brought to a barrier, each gets from the others; `complete` comes after."""
        brought = self.gathered[barrier]
        for group in groups:
            into = self.foreign_found.setdefault(m.first_group + group, {})
            for other in groups:
                if other != group:
                    _join(into, m.launch.foreign.get(m.first_group + other, {}))
                    _join(into, {m.first_group + other: brought[:, other].copy()})

    def complete(self, barrier: Hashable, groups: Array | None, receivers: Array | None) -> None:
        """A barrier is complete in these workgroups (``None``: in all) and lets these waves pass."""
        if groups is None and self.uniform and self.offered is not None:
            self.inbox, self.offered = self.offered, None
            self.phase += 1
            if self.waited:
                self.known, self.waited = self.inbox, False
            return
        self.split()
        shape = (self.groups, self.waves)
        passing = np.ones(shape, bool) if receivers is None else receivers
        done = np.ones(self.groups, bool) if groups is None else groups
        brought = self.gathered[barrier]
        fuller = np.maximum(self.inbox, brought[:, :, None, :])
        self.inbox = np.where(passing[:, :, None], fuller, self.inbox)
        self.gathered[barrier] = np.where(done[:, None], 0, brought)
        self.phase += done
        # An explicit wait before the barrier says that the author orders memory by hand.
        self._learn(self.waited & passing)
        self.waited = self.waited & ~passing

    # ---- atomic operations

    def atomic(
        self, m: Machine, places: Places, keys: Array, rows: Array, order: str, *, reads: bool, writes: bool,
        wide: bool,
    ) -> None:  # fmt: skip
        """An atomic operation: finds the clocks left at its addresses, and leaves its own.

        Args:
            m: The machine.
            places: Clocks by address.
            keys: Address of each running lane.
            rows: Number of each lane over the whole chunk.
            order: LLVM's ordering.
            reads: It reads, so that it finds what was left there.
            writes: It writes; without reading too, it hides what was left there.
            wide: Its scope reaches other workgroups.
        """
        acquires, releases = order in ("acquire", "acq_rel", "seq_cst"), order in ("release", "acq_rel", "seq_cst")
        if not places and not releases and not (wide and m.launch.races) and not self._tells_something():
            return
        self.split()
        clock = self.clock() if releases else self.fenced
        waves = rows // m.wave_size
        for flat, key in np.unique(np.stack((waves, keys.astype(np.int64)), axis=1), axis=0).tolist():
            group, wave = divmod(flat, self.waves)
            left = places.get(key)
            if reads and left:
                self._find(m, left, group, wave, acquires, wide)
                if acquires and releases:
                    clock[:, group, wave] = np.maximum(clock[:, group, wave], self.known[:, group, wave])
            if writes:
                mine = {m.first_group + group: clock[:, group, wave].copy()}
                if wide:
                    _join(mine, m.launch.foreign.get(m.first_group + group, {}))
                places[key] = _join(mine, left) if reads and left else mine

    def leave(self, m: Machine, key: int, group: int, wave: int, part: int) -> None:
        """One wave leaves at an address of LDS the clock of its last release fence, with its DMA so far complete."""
        self.split()
        clock = self.fenced[:, group, wave].copy()
        clock[part, wave] = max(clock[part, wave], self.issued[part == TENSOR][group, wave])
        self.places[key] = _join({m.first_group + group: clock}, self.places.get(key, {}))

    def _tells_something(self) -> bool:
        """Whether the clock of some wave's last release fence has something that another wave does not know yet."""
        if self.uniform:
            return any(f > k for f, k in zip(self.fenced, self.known, strict=True))
        return bool((self.fenced > self.known.min(axis=2, keepdims=True)).any())

    def _find(self, m: Machine, left: dict[int, Array], group: int, wave: int, acquires: bool, wide: bool) -> None:
        absolute = m.first_group + group
        own = left.get(absolute)
        if own is not None:
            if acquires:
                self.known[:, group, wave] = np.maximum(self.known[:, group, wave], own)
            else:
                if self.found is None:
                    self.found = np.zeros_like(self.known)
                self.found[:, group, wave] = np.maximum(self.found[:, group, wave], own)
        others = {g: c for g, c in left.items() if g != absolute}
        if wide and others:
            into = m.launch.foreign if acquires else self.foreign_found
            _join(into.setdefault(absolute, {}), others)

    def tag(self, kind: int) -> Any:
        """Tag of an access now: an int, or one per wave.  ``kind`` is a part of the clock."""
        tag = self.now[SEGMENT] if kind == SEGMENT else self.issued[kind == TENSOR]
        return tag if self.uniform else tag[:, :, None]


def _join(into: dict[int, Array], other: dict[int, Array]) -> dict[int, Array]:
    for group, clock in other.items():
        old = into.get(group)
        into[group] = clock if old is None else np.maximum(old, clock)
    return into


def synchronises_waves(scope: str) -> bool:
    """Whether a fence of that scope orders memory between waves of a workgroup."""
    return scope.removesuffix("-one-as").removesuffix("one-as") not in _SCOPES_OF_ONE_WAVE


def reaches_workgroups(scope: str) -> bool:
    """Whether a scope is wider than a workgroup."""
    return synchronises_waves(scope) and not scope.startswith("workgroup")
