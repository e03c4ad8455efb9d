"""Which loads take their address from memory: rows through an index, pages, neighbour lists."""

from __future__ import annotations

from . import dma
from .ir import Inst, Operand, Reg
from .origin_memory import is_copy_to_lds, read_spaces, short_name

_ARGUMENTS = ("amdgcn.kernarg.segment.ptr", "amdgcn.implicitarg.ptr", "amdgcn.dispatch.ptr")


def indirect(insts: list[Inst], made: dict[str, Inst]) -> set[int]:
    """Ids of the instructions that load from an address that is made from loaded data (not from arguments alone)."""
    tainted: set[str] = set()

    def is_argument(inst: Inst) -> bool:
        """A load of a kernel argument through a pointer to all of them."""
        pointer = inst.operands[0]
        while isinstance(pointer, Reg) and pointer.name in made:
            source = made[pointer.name]
            if source.op == "call":
                return (source.callee or "").removeprefix("llvm.") in _ARGUMENTS
            if source.op not in ("getelementptr", "bitcast", "addrspacecast"):
                return False
            pointer = source.operands[0]
        # "byref" parameters are pointers to constant memory.
        return isinstance(pointer, Reg) and getattr(pointer.type, "space", 0) == 4

    changed = True
    while changed:
        changed = False
        for inst in insts:
            if inst.name is None or inst.name in tainted:
                continue
            loads = bool(read_spaces(inst)) and not (inst.op == "load" and is_argument(inst))
            loads = loads or short_name(inst).startswith("s.buffer.load")
            if loads or any(isinstance(o, Reg) and o.name in tainted for o in inst.operands):
                tainted.add(inst.name)
                changed = True
    found = set()
    for inst in insts:
        if read_spaces(inst) or dma.is_dma(inst):
            addresses: list[Operand] = [o for i, o in enumerate(inst.operands) if not (is_copy_to_lds(inst) and i == 1)]
            if any(isinstance(o, Reg) and o.name in tainted for o in addresses):
                found.add(inst.id)
    return found
