"""Which accesses take their address from memory: rows through an index, pages, neighbour lists, scattered stores."""

from __future__ import annotations

from . import dma
from .ir import Const, Inst, Operand, Reg
from .origin_memory import read_spaces, short_name

_ARGUMENTS = ("amdgcn.kernarg.segment.ptr", "amdgcn.implicitarg.ptr", "amdgcn.dispatch.ptr")


def of_data(insts: list[Inst], made: dict[str, Inst]) -> set[str]:
    """Names of the values that are made from loaded data, not from arguments and constants alone."""
    found: set[str] = set()

    def is_argument(inst: Inst) -> bool:
        """A load of a kernel argument through a pointer to all of them, or from a table of constants."""
        pointer = inst.operands[0]
        while isinstance(pointer, Reg) and pointer.name in made:
            source = made[pointer.name]
            if source.op == "call":
                return (source.callee or "").removeprefix("llvm.") in _ARGUMENTS
            if source.op not in ("getelementptr", "bitcast", "addrspacecast"):
                return False
            pointer = source.operands[0]
        # "byref" parameters are pointers to constant memory.
        return isinstance(pointer, (Reg, Const)) and getattr(pointer.type, "space", 0) == 4

    changed = True
    while changed:
        changed = False
        for inst in insts:
            if inst.name is None or inst.name in found:
                continue
            loads = bool(read_spaces(inst)) and not (inst.op == "load" and is_argument(inst))
            loads = loads or short_name(inst).startswith("s.buffer.load")
            if loads or any(is_of(found, o) for o in inst.operands):
                found.add(inst.name)
                changed = True
    return found


def is_of(names: set[str], operand: Operand) -> bool:
    """Whether an operand is one of these values."""
    return isinstance(operand, Reg) and operand.name in names


def indirect(insts: list[Inst], data: set[str]) -> set[int]:
    """Ids of the loads, stores and copies whose address is made from loaded data."""
    found = set()
    for inst in insts:
        if inst.op == "store":
            addresses = inst.operands[1:]
        elif read_spaces(inst) or dma.is_dma(inst):
            addresses = inst.operands
        else:
            continue
        if any(is_of(data, o) for o in addresses):
            found.add(inst.id)
    return found
