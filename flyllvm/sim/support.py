"""What the simulator can run: everything else is refused by name before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import SimError
from . import alu, builders, intrinsics, mode, types as ty
from .cfg import Node, build_graph, inline_calls, is_barrier
from .ir import Const, Inst, Module
from .parse_inst import FOREIGN

if TYPE_CHECKING:
    from .compile import Program


class UnsupportedError(SimError):
    """The kernel uses something that the simulator does not know; nothing has run."""


class Unsupported:
    """One thing the simulator cannot run."""

    __slots__ = ("line", "name", "reason")

    def __init__(self, name: str, line: int, reason: str) -> None:
        self.name, self.line, self.reason = name, line, reason

    def __str__(self) -> str:
        return f"line {self.line}: {self.name}: {self.reason}"


def unsupported(graph: list[Node]) -> list[Unsupported]:
    """All instructions of a kernel that the simulator does not know, each name once."""
    found: dict[str, Unsupported] = {}
    for node in graph:
        for inst in (*node.insts, node.end):
            reason = _reason(inst)
            name = f"@{inst.callee}" if inst.op == "call" else inst.op
            if reason and name not in found:
                found[name] = Unsupported(name, inst.line, reason)
    name, reason = f"@{mode.SETREG}", mode.reason_against_order(graph)
    if reason and name not in found:
        line = next(i.line for node in graph for i in node.insts if i.callee == mode.SETREG)
        found[name] = Unsupported(name, line, reason)
    return list(found.values())


def _reason(inst: Inst) -> str | None:
    if inst.op in FOREIGN:
        return "an instruction that AMDGPU code does not have"
    if inst.op == "call":
        return None if is_barrier(inst) else intrinsics.reason_against(inst)
    if inst.op == "shufflevector" and not _is_constant_mask(inst):
        return "its mask must be a constant"
    if inst.op == "icmp" and inst.extra["pred"] not in alu.INT_PREDICATES:
        return f"unknown predicate {inst.extra['pred']!r}"
    if inst.op == "fcmp" and inst.extra["pred"] not in alu.FLOAT_PREDICATES:
        return f"unknown predicate {inst.extra['pred']!r}"
    if inst.op not in builders.BUILDERS and inst.op not in ("br", "switch", "ret", "unreachable"):
        return "an instruction that the simulator does not know"
    for t in (inst.type, *(o.type for o in inst.operands)):
        if ty.scalar_of(t) is ty.FP128:
            return "fp128 does not exist on AMDGPU"
        if getattr(ty.scalar_of(t), "space", 0) == 9:
            return "structured buffer pointers (address space 9) have no meaning in the simulator"
    return None


def _is_constant_mask(inst: Inst) -> bool:
    mask = inst.operands[2]
    return isinstance(mask, Const) and mask.kind in ("agg", "zero", "poison", "undef")


def check(program: Program, graph: list[Node]) -> None:
    """Refuses a kernel that uses something unknown.

    Raises:
        UnsupportedError: With all unknown names.
    """
    found = unsupported(graph)
    if found:
        listing = "; ".join(map(str, found))
        raise UnsupportedError(
            f"@{program.kernel.name} uses what the simulator does not know: {listing}",
            f"{program.module.source_name}:{found[0].line}",
            "replace these, or run the kernel on hardware",
        )


def check_module(module: Module) -> dict[str, list[Unsupported]]:
    """For each kernel of a module what the simulator cannot run."""
    return {name: unsupported(build_graph(inline_calls(module, module.functions[name]))) for name in module.kernels()}
