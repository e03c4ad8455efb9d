"""Several matrix instructions in one product.

Neighbouring calls of one matrix intrinsic that do not read each other's results are stacked along the wave axis while
few waves run at once, because then the cost of a call is NumPy's overhead and not the arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import matrix
from .ir import Inst, Operand, Reg

if TYPE_CHECKING:
    from .compile import CompiledNode, Compiler, Op
    from .machine import Machine

# Above this many waves the copies of stacking cost more than they save.
_MOST_WAVES = 32
_MOST_CALLS = 32


def _key(c: Compiler, inst: Inst) -> tuple[Any, ...] | None:
    """What calls must share to be fused."""
    name = (inst.callee or "").removeprefix("llvm.amdgcn.")
    if inst.op != "call" or not matrix.supports(name) or not matrix.ignores_exec(name):
        return None
    if matrix.literal_positions(name) or matrix.assumption(name) or c.maybe_poison.get(inst.name or "", 0):
        return None
    immediates = tuple(c.literal(inst.operands[p]) for p in matrix.immediate_positions(name))
    return (name, immediates) if None not in immediates else None


def _groups(c: Compiler, marks: list[tuple[int, Inst]]) -> list[list[int]]:
    """Runs of positions in ``marks`` that can be fused."""
    groups: list[list[int]] = []
    key: tuple[Any, ...] | None = None
    members: list[int] = []
    made: set[str] = set()
    for position, (_, inst) in enumerate(marks):
        this = _key(c, inst)
        reads = {o.name for o in inst.operands if isinstance(o, Reg)}
        if this is None or this != key or reads & made or len(members) == _MOST_CALLS:
            if len(members) > 1:
                groups.append(members)
            key, members, made = this, [], set()
        if this is not None:
            members.append(position)
            made.add(inst.name or "")
    if len(members) > 1:
        groups.append(members)
    return groups


def fuse(c: Compiler, compiled: CompiledNode) -> None:
    """Replaces the closures of groups of calls in a node by one closure each."""
    if not c.fusing:
        return
    for members in reversed(_groups(c, compiled.marks)):
        start = compiled.marks[members[0]][0]
        end = compiled.marks[members[-1] + 1][0] if members[-1] + 1 < len(compiled.marks) else len(compiled.ops)
        singles = compiled.ops[start:end]
        if len(singles) != len(members):
            continue
        compiled.ops[start:end] = [_together(c, [compiled.marks[p][1] for p in members], singles)]
        removed = end - start - 1
        for position in range(members[0] + 1, len(compiled.marks)):
            at, inst = compiled.marks[position]
            compiled.marks[position] = (max(start + 1, at - removed) if at < end else at - removed, inst)


def _together(c: Compiler, insts: list[Inst], singles: list[Op]) -> Op:
    name = (insts[0].callee or "").removeprefix("llvm.amdgcn.")
    positions = matrix.immediate_positions(name)
    immediates = tuple(c.immediate(insts[0], p) for p in positions)
    compute = matrix.prepare(name, immediates, wave_size=c.wave_size, target=c.target)
    registers: list[list[Operand]] = [
        [o for i, o in enumerate(inst.operands) if i not in positions] for inst in insts
    ]  # fmt: skip
    columns = [[c.slot(row[i]) for row in registers] for i in range(len(registers[0]))]
    dests = [c.dest(inst) for inst in insts]
    count = len(insts)

    def run(r: list[Any], m: Machine) -> None:
        waves = m.groups * m.waves
        if not m.full or waves > _MOST_WAVES:
            for op in singles:
                op(r, m)
            return
        shape = m.shape
        args = []
        for column in columns:
            first = r[column[0]]
            stacked = np.empty((count, *shape, *first.shape[3:]), first.dtype)
            for i, slot in enumerate(column):
                stacked[i] = r[slot]
            args.append(stacked.reshape(count * waves, *stacked.shape[3:]))
        out = compute(*args)
        out = out.reshape(count, *shape, *out.shape[2:])
        for i, d in enumerate(dests):
            r[d] = out[i]

    return run
