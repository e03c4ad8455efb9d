"""Ends of nodes: phi moves, branches of lanes both ways, and the choice of the next node.

Lanes that are elsewhere wait as *pending* masks of nodes, and the node that runs next is chosen as `sim.machine` does:
the first pending one in running order, a loop's header only when no lane is left in the loop.  Nodes that always run
with all live lanes jump directly.
"""

from __future__ import annotations

from collections.abc import Callable

from ..cfg import WHOLE_BARRIER, Node
from .gen import Gen
from .lower import Lowering, incoming
from .parts import Part
from .steps import Step, load_lanes, store_lanes
from .text import WIDTH
from .uniform import Divergence


class SignalStep(Step):
    """The signal of a barrier by all live lanes."""

    __slots__ = ()

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        w, good = g.w, g.w.fresh("signal")
        free = w.emit(f"xor i1 {w.emit('load i1, ptr %signalled')}, true")
        if g.masked:
            free = w.emit(f"and i1 {free}, {g.nobody_waits()}")
        w.branch(free, good, "strange")
        w.start(good)
        w.do("store i1 true, ptr %signalled")


class Control:
    """Writes the ends of nodes.

    Attributes:
        pending: Number of each node that lanes may wait for.
        slots: Byte offset in the register file of the masks of all of them.
        bits: Type of a set of pending nodes.
    """

    def __init__(self, g: Gen, b: Lowering, nodes: list[Node], divergence: Divergence) -> None:
        self.g, self.b, self.nodes, self.divergence = g, b, nodes, divergence
        sources = divergence.masked | divergence.branches
        targets = sorted({s.index for i in sources for s in nodes[i].successors})
        self.pending = {index: number for number, index in enumerate(targets)}
        self.mask_bytes = -(-g.lanes // 8)
        self.slots = g.room(max(1, self.mask_bytes * len(targets)))
        self.arm_slot = g.room(g.lanes // 8)
        self.rest_slot = g.room(g.lanes // 8)
        self.width = -(-max(1, len(targets)) // 64) * 64
        self.bits = g.pending = f"i{self.width}"
        g.entry.append(f"  %pending = alloca {self.bits}, align 16")
        if b.splits:
            g.entry.append("  %signalled = alloca i1, align 1")

    # ---- the end of a node

    def end(self, node: Node) -> None:
        """Writes the end of a node."""
        g, op = self.g, node.end.op
        if op == "unreachable":
            g.w.go("fault")
        elif op == "ret":
            g.w.go("dispatch" if g.masked else "group_done")
        elif op == "call":
            self._barrier(node)
        elif op == "br" and not node.end.operands:
            self._edge(node, node.successors[0], g.mask_slot if g.masked else None)
        else:
            self._choice(node)

    def _barrier(self, node: Node) -> None:
        """All live lanes must be here: what is more involved is left to the NumPy engine."""
        g, following = self.g, f"node{node.successors[0].index}"
        if self.b.splits:
            waits = node.end.callee != WHOLE_BARRIER
            was = g.w.emit("load i1, ptr %signalled")
            good = g.w.fresh("matched")
            g.w.branch(was if waits else g.w.emit(f"xor i1 {was}, true"), good, "strange")
            g.w.start(good)
            g.w.do("store i1 false, ptr %signalled")
        if g.masked:
            g.w.branch(self._nobody_waits(), following, "strange")
        else:
            g.w.go(following)

    def _nobody_waits(self) -> str:
        return self.g.nobody_waits()

    def _choice(self, node: Node) -> None:
        g, end = self.g, node.end
        condition = self.b.part(end.operands[0])
        if not condition.uniform:
            self._diverge(node, condition)
            return
        labels = [g.w.fresh("edge") for _ in node.successors]
        value = g.scalar(condition)
        if end.op == "br":
            g.w.branch(value, *labels)
        else:
            t = condition.type
            cases = " ".join(
                f"{t} {self.b.part(o).literal}, label %{x}" for o, x in zip(end.operands[1:], labels[1:], strict=True)
            )
            g.w.do(f"switch {t} {value}, label %{labels[0]} [ {cases} ]")
        for label, successor in zip(labels, node.successors, strict=True):
            g.w.start(label)
            self._edge(node, successor, g.mask_slot if g.masked else None)

    def _edge(self, node: Node, successor: Node, mask: int | None) -> None:
        """All running lanes go to one node: at once, or after others that come first."""
        g = self.g
        self._moves(node, successor, mask)
        if not g.masked:
            g.w.go(f"node{successor.index}")
            return
        later = g.w.fresh("later")
        g.w.branch(self._nobody_waits(), f"node{successor.index}", later)
        g.w.start(later)
        self._arrive(successor, g.mask_slot)
        g.w.go("dispatch")

    def _arrive(self, target: Node, mask: int) -> None:
        """Lanes of a mask wait for a node."""
        g, number = self.g, self.pending[target.index]
        w = g.w
        base = g.place(self.slots + number * self.mask_bytes)

        def body(index: str) -> None:
            place = w.emit(f"getelementptr i{WIDTH}, ptr {base}, i64 {index}")
            both = w.emit(f"or i{WIDTH} {w.emit(f'load i{WIDTH}, ptr {place}')}, {g.running(index, mask)}")
            w.do(f"store i{WIDTH} {both}, ptr {place}")

        g.each_vector(body, skip=False)
        old = w.emit(f"load {self.bits}, ptr %pending")
        w.do(f"store {self.bits} {w.emit(f'or {self.bits} {old}, {1 << number}')}, ptr %pending")

    # ---- lanes both ways

    def _diverge(self, node: Node, condition: Part) -> None:
        g, end = self.g, node.end
        base = g.slot(condition)
        if end.op == "br":
            taken = self._split(lambda index: load_bits(g, base, index), g.mask_slot)
            self._one_way_or_both(node, [taken, self._any(self.rest_slot)])
            return
        # a switch takes one case after the other out of the rest
        self._copy(g.mask_slot, self.rest_slot)
        for case, successor in zip(end.operands[1:], node.successors[1:], strict=True):
            literal = self.b.part(case).literal
            t = condition.type

            def equal(index: str, literal: str | None = literal, t: str = t) -> str:
                lanes = load_lanes(g, t, base, index)
                flags = g.w.emit(f"icmp eq <{WIDTH} x {t}> {lanes}, splat ({t} {literal})")
                return g.w.emit(f"bitcast <{WIDTH} x i1> {flags} to i{WIDTH}")

            self._arm(node, successor, self._split(equal, self.rest_slot), self.arm_slot)
        self._arm(node, node.successors[0], self._any(self.rest_slot), self.rest_slot)
        g.w.go("dispatch")

    def _arm(self, node: Node, successor: Node, some: str, mask: int) -> None:
        g, go, after = self.g, self.g.w.fresh("arm"), self.g.w.fresh("after")
        g.w.branch(some, go, after)
        g.w.start(go)
        self._moves(node, successor, mask)
        self._arrive(successor, mask)
        g.w.go(after)
        g.w.start(after)

    def _one_way_or_both(self, node: Node, some: list[str]) -> None:
        g, w, successors = self.g, self.g.w, node.successors
        both, one, yes, no = (w.fresh(s) for s in ("both", "one", "yes", "no"))
        w.branch(w.emit(f"and i1 {some[0]}, {some[1]}"), both, one)
        w.start(one)
        w.branch(some[0], yes, no)
        for label, successor, mask in ((yes, successors[0], self.arm_slot), (no, successors[1], self.rest_slot)):
            w.start(label)
            self._edge(node, successor, mask)
        w.start(both)
        g.count(32, "1")
        for successor, mask in ((successors[0], self.arm_slot), (successors[1], self.rest_slot)):
            self._moves(node, successor, mask)
            self._arrive(successor, mask)
        w.go("dispatch")

    def _split(self, flags: Callable[[str], str], source: int) -> str:
        """Puts the lanes of a mask that have a flag into `arm_slot` and the rest into `rest_slot`; whether any has."""
        g, w = self.g, self.g.w
        arm, rest = g.place(self.arm_slot), g.place(self.rest_slot)

        def body(index: str) -> None:
            bits = g.running(index, source)
            chosen = flags(index)
            taken = w.emit(f"and i{WIDTH} {bits}, {chosen}")
            left = w.emit(f"and i{WIDTH} {bits}, {w.emit(f'xor i{WIDTH} {chosen}, -1')}")
            for base, value in ((arm, taken), (rest, left)):
                w.do(f"store i{WIDTH} {value}, ptr {w.emit(f'getelementptr i{WIDTH}, ptr {base}, i64 {index}')}")

        g.each_vector(body, skip=False)
        return self._any(self.arm_slot)

    def _any(self, mask: int) -> str:
        """Whether a mask has a lane."""
        whole = f"i{self.g.lanes}"
        bits = self.g.w.emit(f"load {whole}, ptr {self.g.place(mask)}, align 8")
        return self.g.w.emit(f"icmp ne {whole} {bits}, 0")

    def _copy(self, source: int, target: int) -> None:
        w, whole = self.g.w, f"i{self.g.lanes}"
        bits = w.emit(f"load {whole}, ptr {self.g.place(source)}, align 8")
        w.do(f"store {whole} {bits}, ptr {self.g.place(target)}, align 8")

    # ---- phis

    def _moves(self, node: Node, successor: Node, mask: int | None) -> None:
        """The parallel assignment of the phis of a successor, for the lanes of a mask."""
        g = self.g
        pairs = [
            (target, source)
            for phi in successor.phis
            for target, source in zip(self.b.values[phi.name or ""], self.b.parts(incoming(phi, node)), strict=True)
            if target.readers and target is not source
        ]
        scalars = [(t, g.scalar(s)) for t, s in pairs if t.uniform]
        for target, value in scalars:
            g.w.do(f"store {target.type} {value}, ptr {g.cell(target)}")
        lanes = [(t, s) for t, s in pairs if not t.uniform]
        if not lanes:
            return
        known = {id(s): g.splat(s) for _, s in lanes if s.uniform}
        places = {id(p): g.slot(p) for pair in lanes for p in pair if not p.uniform}

        def body(index: str) -> None:
            values = [known.get(id(s)) or load_lanes(g, s.type, places[id(s)], index) for _, s in lanes]
            flags = None if mask is None else g.running(index, mask)
            for (target, _), value in zip(lanes, values, strict=True):
                store_lanes(g, target.type, places[id(target)], index, value, flags)

        g.each_vector(body)

    # ---- the next node

    def dispatch(self) -> None:
        """Writes the choice of the next node."""
        g, w, t = self.g, self.g.w, self.bits
        w.start("dispatch")
        waiting = w.emit(f"load {t}, ptr %pending")
        w.branch(w.emit(f"icmp eq {t} {waiting}, 0"), "group_done", "search")
        w.start("search")
        w.lines.append(f"  %candidates = phi {t} [ {waiting}, %dispatch ], [ %fewer, %search_next ]")
        number = w.call(t, f"llvm.cttz.{t}", (t, "%candidates"), ("i1", "true"))
        at = number if self.width == 64 else w.emit(f"trunc {t} {number} to i64")
        loop = w.emit(f"load {t}, ptr {w.emit(f'getelementptr {t}, ptr @loops, i64 {at}')}")
        w.branch(w.emit(f"icmp eq {t} {w.emit(f'and {t} {loop}, {waiting}')}, 0"), "chosen", "search_next")
        w.start("search_next")
        w.lines.append(f"  %fewer = and {t} %candidates, {w.emit(f'sub {t} %candidates, 1')}")
        w.branch(w.emit(f"icmp eq {t} %fewer, 0"), "lowest", "search")
        w.start("lowest")
        lowest = w.call(t, f"llvm.cttz.{t}", (t, waiting), ("i1", "true"))
        w.go("chosen")
        w.start("chosen")
        w.lines.append(f"  %next = phi {t} [ {number}, %search ], [ {lowest}, %lowest ]")
        rest = w.emit(f"xor {t} {waiting}, {w.emit(f'shl {t} 1, %next')}")
        w.do(f"store {t} {rest}, ptr %pending")
        nobody = w.emit(f"icmp eq {t} {rest}, 0")
        w.do(f"switch {t} %next, label %strange [ " + " ".join(
            f"{t} {n}, label %enter{index}" for index, n in self.pending.items()) + " ]")  # fmt: skip
        for index, n in self.pending.items():
            w.start(f"enter{index}")
            place, whole = g.place(self.slots + n * self.mask_bytes), f"i{g.lanes}"
            bits = w.emit(f"load {whole}, ptr {place}, align 2")
            w.do(f"store {whole} 0, ptr {place}, align 2")
            w.do(f"store {whole} {bits}, ptr {g.place(g.mask_slot)}, align 8")
            if index in self.divergence.masked:
                w.go(f"node{index}")
            else:
                w.branch(nobody, f"node{index}", "strange")

    def loops_table(self) -> str:
        """For each pending node a loop that it heads, as a set of the other pending nodes in it."""
        rows = []
        for index, number in self.pending.items():
            inside = self.nodes[index].header_of
            rows.append(sum(1 << n for i, n in self.pending.items() if i in inside and n != number))
        rows = rows or [0]
        items = ", ".join(f"{self.bits} {row}" for row in rows)
        return f"@loops = internal constant [{len(rows)} x {self.bits}] [ {items} ]"


def load_bits(g: Gen, base: str, index: str) -> str:
    """The bits of an ``i1`` in a vector of lanes."""
    return g.w.emit(f"load i{WIDTH}, ptr {g.w.emit(f'getelementptr i{WIDTH}, ptr {base}, i64 {index}')}")
