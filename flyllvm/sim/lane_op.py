"""How an intrinsic that moves values between lanes becomes a closure."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .ir import Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def full(m: Machine, a: Array) -> Array:
    """A value with all lane axes at their full length."""
    return np.broadcast_to(a, m.shape + a.shape[3:])


Compute = Callable[["Machine", list[Any]], Any]
Builder = Callable[["Compiler", Inst], "list[Op]"]


def lane_op(c: Compiler, inst: Inst, count: int, data: tuple[int, ...], compute: Compute) -> list[Op]:
    """An intrinsic that moves values between lanes.

    The same function moves poison masks (see `poison.tracker`): they stand in for the operands in ``data``.
    """
    d, slots = c.dest(inst), [c.slot(o) for o in inst.operands[:count]]
    inst.extra["lane_op"] = (compute, slots, data)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = compute(m, [r[s] for s in slots])

    return [run]
