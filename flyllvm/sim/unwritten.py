"""Loads of LDS that nobody wrote, as long as nothing uses what they gave.

Compilers load ahead: the last turns of a pipeline read stages that were never filled, and then branch around what would
use them.  Such a load gives undef, which does no harm unused (LLVM LangRef).  So a load whose value only other blocks
or phis take is remembered instead of being a fault; it is one as soon as a running lane enters a block that uses the
value.  A use in the load's own block always runs, and what has no use at all was not loaded ahead: there
the load itself is the fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import matrix_transpose
from .ir import Inst, Reg
from .values import Array

if TYPE_CHECKING:
    from .compile import CompiledNode, Compiler
    from .machine import Machine

Move = list[tuple[int, int]]


def waits_for_use(c: Compiler, inst: Inst) -> bool:
    """Whether a load of unwritten LDS is a fault only when its value is used."""
    name = (inst.callee or "").removeprefix("llvm.amdgcn.")
    loads = inst.op == "load" or (inst.op == "call" and matrix_transpose.is_transposing(name))
    if not loads or inst.name is None or "atomic" in inst.flags or "volatile" in inst.flags:
        return False
    uses = c.uses.get(inst.name, ())
    return bool(uses) and all(user.op == "phi" or c.user_node(user) != c.user_node(inst) for user in uses)


class Unwritten:
    """The values of a running chunk that are undef, by register: the lanes, the load, and what was not written."""

    __slots__ = ("_reads", "values")

    def __init__(self) -> None:
        self.values: dict[int, tuple[Array, Inst, str]] = {}
        self._reads: dict[int, frozenset[int]] = {}

    def forget(self, m: Machine, slot: int) -> None:
        """The running lanes give a register another value."""
        found = self.values.get(slot)
        if found is not None:
            self._put(slot, found[0] & ~m.mask, found)

    def note(self, m: Machine, inst: Inst, what: str, flags: Array) -> None:
        """A load of what nobody wrote, in some of the running lanes."""
        slot = m.program.slots[inst.name or ""]
        lanes = m.lane_flags(flags)
        if inst.op == "call":  # transposing loads give lanes what others read
            lanes = np.broadcast_to(lanes.any(axis=2, keepdims=True), m.shape) & m.mask
        old = self.values.get(slot)
        self.values[slot] = (lanes if old is None else lanes | old[0], inst, what)

    def move(self, pairs: Move, mask: Array | None, m: Machine) -> None:
        """Registers are assigned, all at once, to others in the lanes of ``mask`` (``None``: in the running ones)."""
        lanes = m.mask if mask is None else mask
        given = [(to, self.values.get(source)) for to, source in pairs]
        for to, found in given:
            old = self.values.get(to)
            kept = None if old is None else old[0] & ~lanes
            got = None if found is None else found[0] & lanes
            both = got if kept is None else kept if got is None else kept | got
            if both is not None:
                self._put(to, both, found if got is not None and got.any() else old)

    def _put(self, slot: int, lanes: Array, found: Any) -> None:
        if lanes.any():
            self.values[slot] = (lanes, *found[1:])
        else:
            self.values.pop(slot, None)

    def check(self, m: Machine, node: CompiledNode) -> None:
        """Finds uses of undef values in a node that is about to run.

        Raises:
            SimError: A running lane uses one.
        """
        reads = self._reads.get(node.node.index)
        if reads is None:
            slots = m.program.slots
            reads = self._reads[node.node.index] = frozenset(
                slots[o.name] for i in (*node.node.insts, node.node.end) for o in i.operands if isinstance(o, Reg)
            )
        for slot in reads & self.values.keys():
            lanes, inst, what = self.values[slot]
            if (lanes & m.mask).any():
                m.fault(inst, f"read of uninitialised {what}, whose value is used at {self._user(m, node, slot)}",
                        lanes & m.mask, FIX)  # fmt: skip

    @staticmethod
    def _user(m: Machine, node: CompiledNode, slot: int) -> str:
        slots = m.program.slots
        for inst in (*node.node.insts, node.node.end):
            if any(isinstance(o, Reg) and slots[o.name] == slot for o in inst.operands):
                return f"{m.program.where(inst)} by '{m.program.text_of(inst)}'"
        return "another place"


FIX = "write it first (LDS has no defined content at the start of a workgroup)"
