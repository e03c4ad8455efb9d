"""The closures of plain functions of one or two operands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .ir import Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def unary(c: Compiler, inst: Inst, fn: Callable[[Array], Array]) -> Op:
    """``dest = fn(operand 0)``."""
    d, a = c.dest(inst), c.slot(inst.operands[0])

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fn(r[a])

    return run


def binary(c: Compiler, inst: Inst, fn: Callable[[Array, Array], Array]) -> Op:
    """``dest = fn(operand 0, operand 1)``."""
    d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fn(r[a], r[b])

    return run
