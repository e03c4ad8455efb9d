"""Fat buffer pointers (address space 7): a descriptor and a 32-bit offset, used by ordinary loads and stores.

Source: LLVM AMDGPUUsage, buffer fat pointers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import buffers, convert, transfer, types as ty
from .ir import Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def access_of(m: Machine, inst: Inst, fat: Any, extra: int = 0) -> buffers.Access:
    """The access that a fat pointer names, ``extra`` bytes further on."""
    base, stride, records, flags, offset = fat
    return buffers.resolve_access(m, inst, (base, stride, records, flags), None, offset.astype(np.int64) + extra)


def build_load(c: Compiler, inst: Inst) -> list[Op]:
    """``load`` through a fat pointer."""
    d, p, fetch = c.dest(inst), c.slot(inst.operands[0]), buffers.fetcher(inst, inst.type)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fetch(m, access_of(m, inst, r[p]))

    return [*buffers.checks(c, inst, [0], []), run]


def build_store(c: Compiler, inst: Inst) -> list[Op]:
    """``store`` through a fat pointer."""
    t = inst.operands[0].type
    v, p, component = c.slot(inst.operands[0]), c.slot(inst.operands[1]), buffers.component_of(t)

    def run(r: list[Any], m: Machine) -> None:
        access = access_of(m, inst, r[p])
        value = transfer.running(m, r[v]) if access.packed else r[v]
        buffers.write_raw(m, inst, access, convert.to_bytes(t, value), component)

    return [*buffers.checks(c, inst, [1], [0]), run]


def build_atomic(
    c: Compiler, inst: Inst, t: ty.Type,
    step: Callable[[Array, list[Array]], Array], result: Callable[[Array, list[Array]], Any],
) -> list[Op]:  # fmt: skip
    """``atomicrmw`` and ``cmpxchg`` through a fat pointer; arguments as in `atomics`."""
    d, p, slots = c.dest(inst), c.slot(inst.operands[0]), [c.slot(o) for o in inst.operands[1:]]

    def run(r: list[Any], m: Machine) -> None:
        values = [r[s] for s in slots]
        old = buffers.run_atomic(m, inst, access_of(m, inst, r[p]), t, values, step)
        r[d] = result(old, values)

    return [*buffers.checks(c, inst, [0], list(range(1, len(inst.operands)))), run]


def load_to_lds(c: Compiler, inst: Inst) -> list[Op]:
    """``load.to.lds`` from a fat pointer."""
    from . import dma

    source, lds = c.slot(inst.operands[0]), c.slot(inst.operands[1])
    size, imm = c.immediate(inst, 2), c.immediate(inst, 3)

    def run(r: list[Any], m: Machine) -> None:
        access = access_of(m, inst, r[source], imm)
        raw = buffers.read_raw(m, inst, access, size, min(4, size))
        dma.write(m, inst, r[lds] + np.uint32(imm), raw, size, access.packed)

    return [*buffers.checks(c, inst, [0, 1], []), run]
