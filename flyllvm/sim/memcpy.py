"""``llvm.memcpy``, ``llvm.memmove`` and ``llvm.memset``, byte by byte through the checked memory operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import mem_ops, poison, types as ty
from .ir import Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def _chunks(m: Machine, inst: Inst, length: Array) -> int:
    lengths = np.unique(np.broadcast_to(length, m.shape)[m.mask])
    if len(lengths) != 1:
        m.fault(inst, "lanes copy different numbers of bytes", None, "copy a uniform number of bytes")
    return int(lengths[0])


def _copy(c: Compiler, inst: Inst) -> list[Op]:
    target, source, length = (c.slot(o) for o in inst.operands[:3])
    loads = mem_ops.loader(inst, ty.I8, mem_ops.space_of(c, inst, 1), 1)
    stores = mem_ops.storer(inst, ty.I8, mem_ops.space_of(c, inst, 0), 1)
    guard = poison.guard(c, inst, [0, 1, 2], "the address or length")

    def run(r: list[Any], m: Machine) -> None:
        count = _chunks(m, inst, r[length])
        a, b = r[target], r[source]
        data = [loads(m, b + b.dtype.type(i)) for i in range(count)]
        for i, byte in enumerate(data):
            stores(m, a + a.dtype.type(i), byte)

    return [guard, run] if guard else [run]


def _set(c: Compiler, inst: Inst) -> list[Op]:
    target, value, length = (c.slot(o) for o in inst.operands[:3])
    stores = mem_ops.storer(inst, ty.I8, mem_ops.space_of(c, inst, 0), 1)
    guard = poison.guard(c, inst, [0, 1, 2], "the address, value or length")

    def run(r: list[Any], m: Machine) -> None:
        a = r[target]
        for i in range(_chunks(m, inst, r[length])):
            stores(m, a + a.dtype.type(i), r[value])

    return [guard, run] if guard else [run]


TABLE = {"memcpy": _copy, "memmove": _copy, "memset": _set, "memcpy.inline": _copy, "memset.inline": _set}
