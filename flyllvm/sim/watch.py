"""Finds endless loops early: code that cannot return, a state that comes again, a counter that runs away.

Between two looks the machine runs a thousand blocks or so.  Three things end a run:

* a state that comes again while nothing was written: everything that a loop carries is in phis and in memory, so that
  the machine would go round for ever;
* a loop whose every exit compares a number that moves by the same step each time with one that does not, and that would
  need more blocks than the limit;
* the limit itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import alu, types as ty
from .cfg import Node
from .ir import Inst, Reg
from .values import Array

if TYPE_CHECKING:
    from .compile import CompiledNode, Compiler
    from .machine import Machine

# Blocks between two looks, and turns that lanes in a loop get before waves outside of it.
STEPS, FAIR_TURNS = 1024, 2048
_STEADY = 3  # looks at a counter that must agree


class Exit(NamedTuple):
    """A branch out of a loop: it goes on while ``icmp pred slot, limit`` has the value ``stays``."""

    branch: Inst
    pred: str
    slot: int
    limit: int
    bits: int
    stays: bool


class Loop:
    """A loop with its exits; ``exits`` is ``None`` where one of them is not a comparison of integers."""

    __slots__ = ("exits", "members")

    def __init__(self, members: frozenset[int], exits: list[Exit] | None) -> None:
        self.members, self.exits = members, exits


def find_loops(c: Compiler, graph: list[Node]) -> list[Loop]:
    """The loops of a kernel, with what their exits compare."""
    loops = []
    for header in graph:
        if header.header_of:
            ways = [(n, s) for n in graph if n.index in header.header_of for s in n.successors]
            leaving = [n for n, s in ways if s.index not in header.header_of]
            exits = [_exit(c, n, header.header_of) for n in leaving]
            known = [e for e in exits if e is not None]
            loops.append(Loop(header.header_of, known if len(known) == len(exits) else None))
    return loops


def _exit(c: Compiler, node: Node, members: frozenset[int]) -> Exit | None:
    condition = node.end.operands[0] if node.end.op == "br" and node.end.operands else None
    compare = c.defs.get(condition.name) if isinstance(condition, Reg) else None
    if compare is None or compare.op != "icmp":
        return None
    t = compare.operands[0].type
    if not isinstance(t, ty.IntType) or t.bits > 64 or t.bits == 1:
        return None
    slots = [c.slot(o) for o in compare.operands]
    stays = node.successors[0].index in members
    return Exit(node.end, compare.extra["pred"], slots[0], slots[1], t.bits, stays)


def cannot_return(graph: list[Node]) -> frozenset[int]:
    """Nodes from which no path leads to the end of the kernel."""
    ends = {n.index for n in graph if n.end.op in ("ret", "unreachable")}
    return frozenset(n.index for n in graph if n.index not in ends and not n.reaches & ends)


class Watch:
    """Looks at a machine from time to time."""

    def __init__(self) -> None:
        self.writes = -1
        self.seen: set[int] = set()
        self.counters: dict[tuple[int, int], list[tuple[int, Any, Any]]] = {}

    def look(self, m: Machine, node: CompiledNode) -> None:
        """Looks once.

        Raises:
            SimError: The kernel will not end, or not within the limit.
        """
        if m.steps > m.launch.max_steps:
            m.fault(
                node.node.end,
                f"the kernel ran {m.launch.max_steps} blocks without an end: an endless loop, or waves that wait "
                "for each other",
                m.mask,
                "check the loop's exit condition, or raise max_steps",
            )
        if not m.program.has_clock:
            self._look_for_repetition(m, node)
        self._look_for_counters(m, node)

    def _look_for_repetition(self, m: Machine, node: CompiledNode) -> None:
        if m.writes != self.writes:
            self.writes = m.writes
            self.seen.clear()
        parts: list[Any] = [node.node.index, min(m.turns, FAIR_TURNS + 1), m.mask.tobytes()]
        for masks in (m.pending, m.waiting):
            parts.append(tuple((i, mask.tobytes()) for i, mask in sorted(masks.items())))
        parts += [_bytes(m.regs[slot]) for slot in m.program.phi_slots]
        parts.append(m.barriers.state())
        parts.append(None if m.cluster is None else m.cluster.state())
        state = hash(tuple(parts))
        if state not in self.seen:
            self.seen.add(state)
            return
        why = "a value that another workgroup shall write may never come"
        if m.waiting:
            why = "what other waves of the workgroup would do next stands behind a barrier that this one does not reach"
        if m.pending:
            why = "lanes of the same wave wait outside the loop until these leave it, so they cannot end it"
            if not _same_waves(m):
                why = "all waves spin, each for what another one would write later"
        m.fault(node.node.end, "an endless loop: nothing changes any more", m.mask,
                f"check the loop's exit condition; {why}")  # fmt: skip

    def _look_for_counters(self, m: Machine, node: CompiledNode) -> None:
        for number, loop in enumerate(m.program.loops):
            if loop.exits is None or node.node.index not in loop.members or not loop.exits:
                continue
            needs = [self._needs(m, node.node.index, number, i, e) for i, e in enumerate(loop.exits)]
            if all(n is not None and n > m.launch.max_steps for n in needs):
                steps = min(n for n in needs if n is not None)
                m.fault(
                    loop.exits[0].branch,
                    f"the loop would go on for about {steps:.3g} blocks, the limit is {m.launch.max_steps}",
                    m.mask, "check the loop's exit condition and its step, or raise max_steps",
                )  # fmt: skip

    def _needs(self, m: Machine, index: int, number: int, position: int, leave: Exit) -> float | None:
        """Blocks until a loop takes this exit, if its counter moves steadily."""
        value, limit = m.regs[leave.slot], m.regs[leave.limit]
        if value is None or limit is None:
            return None
        history = self.counters.setdefault((index, number * 64 + position), [])
        history.append((m.steps, value, limit))
        del history[:-_STEADY]
        if len(history) < _STEADY or any(not _equal(h[2], limit) for h in history):
            return None
        (s0, a, _), (s1, b, _), (s2, c, _) = history
        if s1 - s0 <= 0 or s2 - s1 <= 0:
            return None
        lanes = [np.broadcast_to(v, m.shape)[m.mask] for v in (a, b, c, limit)]
        signed = leave.pred[0] == "s"
        x, y, z, end = (_numbers(v, leave.bits, signed) for v in lanes)
        first, second = y - x, z - y
        steady = (first * (s2 - s1) == second * (s1 - s0)) & (second != 0)
        if not steady.all():
            return None
        return float(_remaining(leave, z, end, second).max()) * (s2 - s1)


def _remaining(leave: Exit, value: Array, end: Array, step: Array) -> Array:
    """How many more times of ``step`` until the exit is taken; infinite where the counter moves away."""
    gap = (end - value).astype(np.float64)
    pred = leave.pred.lstrip("su")
    if pred in ("eq", "ne"):
        if (pred == "ne") != leave.stays:
            return np.zeros(value.shape)  # it leaves as soon as they differ
        gap = np.where((gap < 0) == (step < 0), gap, np.where(step < 0, gap - 2.0**leave.bits, gap + 2.0**leave.bits))
        return gap / step
    rising = (pred in ("lt", "le")) == leave.stays  # it leaves when the counter is large
    towards = step > 0 if rising else step < 0
    # One that moves away comes back from the other end of its range.
    return np.where(towards, gap, (gap - 2.0**leave.bits) if rising else (gap + 2.0**leave.bits)) / step


def _numbers(values: Array, bits: int, signed: bool) -> Array:
    return (alu.sign_extended(values, bits) if signed else values).astype(np.float64)


def _equal(a: Any, b: Any) -> bool:
    return a is b or (a.shape == b.shape and bool((a == b).all()))


def _bytes(value: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(map(_bytes, value))
    if value is None:
        return None
    return tuple(value.ravel()) if value.dtype.kind == "O" else value.tobytes()


def _same_waves(m: Machine) -> bool:
    """Whether pending lanes belong to waves with a running lane."""
    free = ~m.mask.any(axis=2)
    return not any((mask.any(axis=2) & free).any() for mask in m.pending.values())
