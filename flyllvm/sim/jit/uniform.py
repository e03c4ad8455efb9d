"""What is the same for all lanes of a workgroup, and which nodes may run with some lanes missing.

A value differs between lanes if an operand does, if it is a phi where the arms of a divergent branch meet, or if it
leaves a loop that lanes leave at different times.

Source: R. Karrenberg and S. Hack, "Improving performance of OpenCL on CPUs" (divergence analysis); joins are found by
labels that spread from the successors of a divergent branch.
"""

from __future__ import annotations

from collections.abc import Callable

from ..cfg import Node
from ..ir import Const, Inst, Operand, Reg

EXIT = -1


class Divergence:
    """The result.

    Attributes:
        varying: Names of values that may differ between lanes.
        masked: Indices of nodes that may run while other live lanes are elsewhere.
        branches: Indices of nodes whose end may send lanes both ways.
    """

    def __init__(self, nodes: list[Node], seed: Callable[[Inst], bool], forgets: Callable[[Inst], bool]) -> None:
        self.nodes = nodes
        self.varying: set[str] = set()
        self.masked: set[int] = set()
        self.branches: set[int] = set()
        self._seed, self._forgets = seed, forgets
        self._home = {i.name: n.index for n in nodes for i in (*n.phis, *n.insts) if i.name is not None}
        self._loops = [n.header_of for n in nodes if n.header_of]
        self._after = post_dominators(nodes)
        self.forced: set[str] = set()
        self._solve()

    def is_varying(self, operand: Operand) -> bool:
        """Whether an operand may differ between lanes."""
        if isinstance(operand, Reg):
            return operand.name in self.varying
        if isinstance(operand, Const) and operand.kind == "agg":
            return any(self.is_varying(o) for o in operand.value)
        return False

    def _solve(self) -> None:
        changed = True
        while changed:
            changed = self._spread()
            for node in self.nodes:
                if node.index in self.branches or len(node.successors) < 2 or node.end.op == "call":
                    continue
                if self.is_varying(node.end.operands[0]):
                    self.branches.add(node.index)
                    self._diverge(node)
                    changed = True

    def _spread(self) -> bool:
        before = len(self.varying)
        for node in self.nodes:
            for inst in (*node.phis, *node.insts):
                if inst.name is None or inst.name in self.varying:
                    continue
                if (
                    inst.name in self.forced
                    or self._seed(inst)
                    or (not self._forgets(inst) and any(self.is_varying(o) for o in inst.operands))
                ):
                    self.varying.add(inst.name)
        return len(self.varying) != before

    def _diverge(self, branch: Node) -> None:
        end = self._after[branch.index]
        region, stack = set(), [s.index for s in branch.successors]
        while stack:
            index = stack.pop()
            if index == end or index in region:
                continue
            region.add(index)
            stack += [s.index for s in self.nodes[index].successors]
        self.masked |= region
        for index in self._joins(branch, region, end):
            self.forced.update(p.name for p in self.nodes[index].phis if p.name is not None)
        for loop in self._loops:
            if branch.index in loop and (region - loop or end not in loop):
                self._leave(loop)

    def _joins(self, branch: Node, region: set[int], end: int) -> set[int]:
        """Nodes that two successors reach on paths that do not meet before."""
        label: dict[int, int] = {}
        joins: set[int] = set()
        starts = {s.index for s in branch.successors}
        work = set(starts)
        for index in starts:
            label[index] = index
        inside = region | {end}
        while work:
            index = min(work)
            work.remove(index)
            if index == end:
                continue
            for successor in self.nodes[index].successors:
                following = successor.index
                if following not in inside:
                    continue
                new = label[index]
                old = label.get(following)
                if old is None:
                    label[following] = new
                elif old != new and following not in joins:
                    joins.add(following)
                    label[following] = following
                else:
                    continue
                work.add(following)
        return joins

    def _leave(self, loop: frozenset[int]) -> None:
        """Values that leave a loop which lanes leave at different times differ between them."""
        for node in self.nodes:
            if node.index in loop:
                continue
            for inst in (*node.phis, *node.insts, node.end):
                for operand in inst.operands:
                    if isinstance(operand, Reg) and self._home.get(operand.name) in loop:
                        self.forced.add(operand.name)


def post_dominators(nodes: list[Node]) -> list[int]:
    """The node after each one through which all its lanes go, `EXIT` where that is the end of the kernel."""
    count = len(nodes)
    everything = frozenset(range(count)) | {EXIT}
    above: list[frozenset[int]] = [everything] * count
    changed = True
    while changed:
        changed = False
        for node in reversed(nodes):
            followers = [above[s.index] for s in node.successors] or [frozenset({EXIT})]
            new = frozenset.intersection(*followers) | {node.index}
            if new != above[node.index]:
                above[node.index] = new
                changed = True
    out = []
    for node in nodes:
        candidates = above[node.index] - {node.index, EXIT}
        # The nearest one is post-dominated by all others.
        nearest = [c for c in candidates if len(above[c] - {EXIT}) == len(candidates)]
        out.append(nearest[0] if nearest else EXIT)
    return out
