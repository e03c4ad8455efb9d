"""Inline assembly without instructions: compilers use it to keep values and memory accesses where they are."""

from __future__ import annotations

import re

from . import types as ty
from .ir import Inst

# Comments, and instructions that only take time.
_INERT = re.compile(
    r"(?:\s|(?:;|//)[^\n]*(?:\n|$)|/\*.*?\*/|\bs_(?:nop|sleep|setprio)[ \t]+(?:0x[0-9a-fA-F]+|\d+)\b)*", re.DOTALL
)
_ESCAPE = re.compile(r"\\([0-9a-fA-F]{2})")


def simplify(inst: Inst) -> None:
    """Makes a call of such assembly what it computes: nothing, or the operand that its result is tied to.

    What has other instructions, or results that are tied to nothing, stays as it is and is refused.
    """
    template, constraints = (*inst.extra["asm"], "", "")[:2]
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)), template)
    if not _INERT.fullmatch(text):
        return
    kinds = [c for c in constraints.split(",") if c]
    results = [c for c in kinds if c.startswith("=")]
    inputs = [c for c in kinds if not c.startswith(("=", "~"))]
    if inst.type is ty.VOID and not results:
        inst.callee, inst.operands = "llvm.donothing", []
        return
    if len(results) == 1 and len(inputs) == len(inst.operands) and "0" in inputs:
        operand = inst.operands[inputs.index("0")]
        if operand.type is inst.type and not isinstance(inst.type, (ty.StructType, ty.ArrayType)):
            inst.op, inst.callee, inst.operands = "bitcast", None, [operand]
