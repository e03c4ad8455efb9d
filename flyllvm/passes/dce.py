"""Removal of what nobody needs: pure operations without a use, and carried values nobody reads."""

from __future__ import annotations

from ..ir.core import Block, Op, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Kernel

_DROPPABLE = frozenset({"fly.ptr.load", "arith.divsi", "arith.divui", "arith.remsi", "arith.remui"})
_REGIONS = frozenset({"scf.if", "scf.for", "scf.while"})
_ENDS = frozenset({"scf.yield", "scf.condition"})
_OPTIONAL = _DROPPABLE | _REGIONS | _ENDS


def eliminate_dead(kernel: Kernel) -> None:
    """Drops dead operations and dead carried values.

    An unused load or division is dropped too: it has no effect but a possible trap.
    """
    live = _Liveness(kernel)
    _sweep(kernel.body, live)


class _Liveness:
    """What is needed: operations, values, and the blocks whose enclosing operations are marked already."""

    def __init__(self, kernel: Kernel) -> None:
        self.values: set[Value] = set()
        self.ops: set[Op] = set()
        self._blocks: set[Block] = {kernel.body}
        self._work: list[Value] = []
        self._effects(kernel.body)
        self._drain()

    def _effects(self, block: Block) -> None:
        """Marks the operations that are needed whoever uses their results."""
        for op in block.ops:
            if not (op.pure or op.name in _OPTIONAL):
                self._op(op)
            for region in op.regions:
                self._effects(region)

    def _op(self, op: Op) -> None:
        """Marks an operation and everything that decides whether it runs."""
        if op in self.ops:
            return
        self.ops.add(op)
        if not op.regions:
            needed = op.operands
        elif op.name == "scf.if":
            needed = op.operands[:1]
        elif op.name == "scf.for":
            needed = op.operands[:3]
        else:
            needed = op.regions[0].ops[-1].operands[:1]
        for v in needed:
            if v not in self.values:
                self.values.add(v)
                self._work.append(v)
        block = op.parent
        if block is not None and block not in self._blocks:
            self._blocks.add(block)
            if block.parent is not None:
                self._op(block.parent)

    def value(self, v: Value) -> None:
        """Marks a value."""
        if v not in self.values:
            self.values.add(v)
            self._work.append(v)

    def _drain(self) -> None:
        work, ops, values, blocks = self._work, self.ops, self.values, self._blocks
        while work:
            v = work.pop()
            owner = v.owner
            if isinstance(owner, Block):
                self._argument(owner, v.index)
            elif owner.regions:
                self._op(owner)
                self._sources(owner, v.index)
            elif owner not in ops:
                if owner.parent not in blocks:
                    self._op(owner)
                    continue
                # What _op does, for most operations.
                ops.add(owner)
                for needed in owner.operands:
                    if needed not in values:
                        values.add(needed)
                        work.append(needed)

    def _sources(self, op: Op, index: int) -> None:
        if op.name == "scf.if":
            for region in op.regions:
                self.value(region.ops[-1].operands[index])
        elif op.name == "scf.for":
            self._carried(op, index)
        elif op.name == "scf.while":
            self.value(op.regions[0].ops[-1].operands[1 + index])

    def _carried(self, op: Op, index: int) -> None:
        self.value(op.operands[3 + index])
        self.value(op.regions[0].ops[-1].operands[index])
        self.value(op.results[index])

    def _argument(self, block: Block, index: int) -> None:
        op = block.parent
        if op is None:
            return
        self._op(op)
        if op.name == "scf.for" and index > 0:
            self._carried(op, index - 1)
        elif op.name == "scf.while":
            if block is op.regions[0]:
                self.value(op.operands[index])
                self.value(op.regions[1].ops[-1].operands[index])
            else:
                self.value(op.regions[0].ops[-1].operands[1 + index])


def _sweep(block: Block, live: _Liveness) -> None:
    kept = []
    for op in block.ops:
        if op.name in _ENDS:
            kept.append(op)
        elif op in live.ops:
            if op.name in _REGIONS:
                _shrink(op, live)
                for region in op.regions:
                    _sweep(region, live)
            kept.append(op)
    block.ops = kept


def _pick(values: list[Value], keep: list[bool]) -> list[Value]:
    return [v for v, k in zip(values, keep, strict=True) if k]


def _renumber(values: list[Value]) -> list[Value]:
    for i, v in enumerate(values):
        v.index = i
    return values


def _shrink(op: Op, live: _Liveness) -> None:
    op.checked = False
    for region in op.regions:
        region.ops[-1].checked = False
    if op.name == "scf.if":
        keep = [r in live.values for r in op.results]
        for region in op.regions:
            region.ops[-1].operands = _pick(region.ops[-1].operands, keep)
        op.results = _renumber(_pick(op.results, keep))
    elif op.name == "scf.for":
        body = op.regions[0]
        args = body.args[1:]
        keep = [r in live.values or a in live.values for r, a in zip(op.results, args, strict=True)]
        op.operands = op.operands[:3] + _pick(op.operands[3:], keep)
        body.args = _renumber([body.args[0], *_pick(args, keep)])
        body.ops[-1].operands = _pick(body.ops[-1].operands, keep)
        op.results = _renumber(_pick(op.results, keep))
    else:
        _shrink_while(op, live)


def _shrink_while(op: Op, live: _Liveness) -> None:
    before, after = op.regions
    keep = [a in live.values for a in before.args]
    op.operands = _pick(op.operands, keep)
    before.args = _renumber(_pick(before.args, keep))
    after.ops[-1].operands = _pick(after.ops[-1].operands, keep)
    passed = [r in live.values or a in live.values for r, a in zip(op.results, after.args, strict=True)]
    end = before.ops[-1]
    end.operands = [end.operands[0], *_pick(end.operands[1:], passed)]
    after.args = _renumber(_pick(after.args, passed))
    op.results = _renumber(_pick(op.results, passed))
