"""Every use of a value must be dominated by its definition.

Source: K. Cooper, T. Harvey, K. Kennedy, "A simple, fast dominance algorithm".
"""

from __future__ import annotations

from collections.abc import Iterator

from .ir import Block, Const, Function, Inst, Operand, Reg


def broken_use(function: Function) -> tuple[Inst, str] | None:
    """The first instruction that uses a value before its definition, with the value's name."""
    blocks = {b.name: b for b in function.blocks}
    order = _postorder(function.blocks[0], blocks)
    number = {name: i for i, name in enumerate(order)}
    dominator = _dominators(function.blocks[0].name, order, number, blocks)
    home = {i.name: (b.name, at) for b in function.blocks for at, i in enumerate(b.insts) if i.name is not None}

    def dominates(above: str, below: str) -> bool:
        while number[below] < number[above]:
            below = dominator[below]
        return below == above

    for block in function.blocks:
        if block.name not in number:
            continue
        for at, inst in enumerate(block.insts):
            for position, operand in enumerate(inst.operands):
                for name in _names(operand):
                    place = home.get(name)
                    if place is None:
                        continue  # an argument
                    use = inst.labels[position] if inst.op == "phi" else block.name
                    if use not in number or place[0] not in number:
                        continue
                    same = inst.op != "phi" and place[0] == block.name
                    if (same and place[1] >= at) or not dominates(place[0], use):
                        return inst, name
    return None


def _names(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Reg):
        yield operand.name
    elif isinstance(operand, Const) and operand.kind == "agg":
        for elem in operand.value:
            yield from _names(elem)


def _postorder(entry: Block, blocks: dict[str, Block]) -> list[str]:
    """Names of reachable blocks, the entry last."""
    order: list[str] = []
    seen = {entry.name}
    stack = [(entry.name, iter(entry.insts[-1].labels))]
    while stack:
        name, labels = stack[-1]
        for label in labels:
            if label not in seen:
                seen.add(label)
                stack.append((label, iter(blocks[label].insts[-1].labels)))
                break
        else:
            stack.pop()
            order.append(name)
    return order


def _dominators(entry: str, order: list[str], number: dict[str, int], blocks: dict[str, Block]) -> dict[str, str]:
    predecessors: dict[str, list[str]] = {name: [] for name in order}
    for name in order:
        for label in blocks[name].insts[-1].labels:
            predecessors[label].append(name)
    dominator = {entry: entry}
    changed = True
    while changed:
        changed = False
        for name in reversed(order):
            if name == entry:
                continue
            known = [p for p in predecessors[name] if p in dominator]
            new = known[0]
            for other in known[1:]:
                while new != other:
                    while number[new] < number[other]:
                        new = dominator[new]
                    while number[other] < number[new]:
                        other = dominator[other]
            if dominator.get(name) != new:
                dominator[name] = new
                changed = True
    return dominator
