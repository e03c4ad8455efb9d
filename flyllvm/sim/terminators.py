"""Ends of nodes: branches, switches, returns and barriers, with the phi moves of the edges."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import barriers, cluster_barrier, clusters, origins, poison
from .cfg import Node
from .ir import Inst, Operand
from .values import Array, merge

if TYPE_CHECKING:
    from .compile import CompiledNode, Compiler
    from .machine import Machine

Finish = Callable[[list[Any], "Machine"], "CompiledNode | None"]
Move = Callable[[list[Any], "Machine", "Array | None"], None]


def build_finish(c: Compiler, node: Node) -> Finish:
    """The function that ends a node: returns the next one, or ``None`` after leaving lanes pending."""
    end = node.end
    if end.op == "call":
        return _barrier(c, node)
    if end.op == "br":
        return _branch(c, node) if end.operands else _jump(c, node)
    if end.op == "switch":
        return _switch(c, node)
    if end.op == "ret":
        return _return(node)
    if end.op == "unreachable":
        return _unreachable(end)
    raise SimError(f"terminator {end.op!r} has no meaning")


def _move(c: Compiler, node: Node, successor: Node) -> Move | None:
    """The parallel assignment of the phis of ``successor`` on the edge from ``node``."""
    edges = _values(node, successor)
    pairs = [(c.dest(phi), c.slot(value)) for phi, value in edges]
    if not pairs:
        return None
    traced = c.program.origins
    followed = [(c.dest(p), traced.slot(c, o)) for p, o in edges if p.name in traced.followed] if traced else []
    poisonous = any(c.maybe_poison.get(phi.name or "", 0) for phi in successor.phis)

    def move(r: list[Any], m: Machine, mask: Array | None) -> None:
        values = [r[s] for _, s in pairs]
        if m.unwritten.values:
            m.unwritten.move(pairs, mask, m)
        if mask is None:
            for (d, _), value in zip(pairs, values, strict=True):
                r[d] = value
        else:
            for (d, _), value in zip(pairs, values, strict=True):
                r[d] = merge(mask, value, r[d])
        if poisonous:
            masks = [m.poison[s] for _, s in pairs]
            for (d, _), flags in zip(pairs, masks, strict=True):
                m.poison[d] = poison.merge_masks(mask, flags, m.poison[d])
        if followed:
            words = [m.origin[s] for _, s in followed]
            for (d, _), word in zip(followed, words, strict=True):
                m.origin[d] = origins.merged(mask, word, m.origin[d])

    return move


def _values(node: Node, successor: Node) -> list[tuple[Inst, Operand]]:
    """The phis of ``successor`` with their values on the edge from ``node``."""
    return [
        (phi, next(o for o, label in zip(phi.operands, phi.labels, strict=True) if label == node.block_name))
        for phi in successor.phis
    ]


def _depart(m: Machine, node: Node, target: Node, mask: Array) -> None:
    """Remembers from where lanes return, for the check of skipped barriers."""
    if target.trivial_return and not node.trivial_return:
        m.retired_from[mask] = node.index


def _go(m: Machine, node: Node, target: CompiledNode) -> CompiledNode | None:
    """All running lanes go to one node: at once, or after others that come first."""
    if target.node.trivial_return:
        _depart(m, node, target.node, m.mask)
    if not m.pending:
        return target
    m.arrive(target.node.index, m.mask)
    return None


def _jump(c: Compiler, node: Node) -> Finish:
    move = _move(c, node, node.successors[0])
    target = c.program.nodes[node.successors[0].index]

    def finish(r: list[Any], m: Machine) -> CompiledNode | None:
        if move is not None:
            move(r, m, None if m.covering else m.mask)
        return _go(m, node, target)

    return finish


def _check_condition(c: Compiler, end: Inst) -> Callable[[Machine], None] | None:
    if not c.is_poison(end.operands[0]):
        return None
    slot = c.slot(end.operands[0])

    def check(m: Machine) -> None:
        flags = m.poison[slot]
        if flags is not None and (flags & m.mask).any():
            m.fault(end, "the branch depends on poison", flags & m.mask, "initialise the value on every path")

    return check


def _branch(c: Compiler, node: Node) -> Finish:
    end = node.end
    condition = c.slot(end.operands[0])
    check = _check_condition(c, end)
    moves = [_move(c, node, s) for s in node.successors]
    targets = [c.program.nodes[s.index] for s in node.successors]

    def all_to(r: list[Any], m: Machine, arm: int) -> CompiledNode | None:
        move = moves[arm]
        if move is not None:
            move(r, m, None if m.covering else m.mask)
        return _go(m, node, targets[arm])

    def finish(r: list[Any], m: Machine) -> CompiledNode | None:
        if check is not None:
            check(m)
        cond = r[condition]
        if cond.size == 1:
            return all_to(r, m, 0 if cond.flat[0] else 1)
        taken = cond & m.mask
        count = int(np.count_nonzero(taken)) if taken.shape == m.shape else -1
        if count == m.active:
            return all_to(r, m, 0)
        if count == 0:
            return all_to(r, m, 1)
        m.divergences += 1
        for arm, mask in ((0, taken), (1, m.mask & ~taken)):
            move = moves[arm]
            if move is not None:
                move(r, m, mask)
            _depart(m, node, targets[arm].node, mask)
            m.arrive(targets[arm].node.index, mask)
        return None

    return finish


def _switch(c: Compiler, node: Node) -> Finish:
    end = node.end
    value = c.slot(end.operands[0])
    check = _check_condition(c, end)
    cases = [c.slot(o) for o in end.operands[1:]]
    moves = [_move(c, node, s) for s in node.successors]
    targets = [c.program.nodes[s.index] for s in node.successors]

    def finish(r: list[Any], m: Machine) -> CompiledNode | None:
        if check is not None:
            check(m)
        rest = m.mask
        arms: list[tuple[int, Array]] = []
        for number, case in enumerate(cases, 1):
            mask = (r[value] == r[case]) & rest
            if mask.any():
                arms.append((number, mask))
                rest = rest & ~mask
        if rest.any():
            arms.append((0, rest))
        for arm, mask in arms:
            whole = m.covering and len(arms) == 1
            move = moves[arm]
            if move is not None:
                move(r, m, None if whole else mask)
            _depart(m, node, targets[arm].node, mask)
            m.arrive(targets[arm].node.index, mask)
        return None

    return finish


def _return(node: Node) -> Finish:
    def finish(r: list[Any], m: Machine) -> CompiledNode | None:
        if not node.trivial_return:
            m.retired_from[m.mask] = node.index
        m.retire(m.mask)
        return None

    return finish


def _unreachable(end: Inst) -> Finish:
    def finish(r: list[Any], m: Machine) -> CompiledNode | None:
        m.fault(end, "control reached 'unreachable'", m.mask, "the code that leads here promised that it never would")

    return finish


def _barrier(c: Compiler, node: Node) -> Finish:
    compiled = c.program.nodes[node.index]
    if node.end.operands and barriers.number_of(c, node.end) == cluster_barrier.NUMBER:
        c.program.cluster = clusters.dims_of(c, node.end)

    def finish(r: list[Any], m: Machine) -> CompiledNode | None:
        return m.barrier(compiled)

    return finish
