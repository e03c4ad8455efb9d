"""Transposing loads: each lane's read is checked as any load, then lanes of a group exchange elements."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import matrix_transpose, mem_ops, poison, transfer, types as ty
from .ir import Inst

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def build(c: Compiler, inst: Inst) -> list[Op]:
    """``ds.read.tr*``, ``ds.load.tr*``, ``global.load.tr*``."""
    name = (inst.callee or "").removeprefix("llvm.amdgcn.")
    try:
        exchange = matrix_transpose.prepare(name, wave_size=c.wave_size, target=c.target)
    except SimError as error:
        raise error.at(c.program.where(inst)) from None
    d, p = c.dest(inst), c.slot(inst.operands[0])
    space, size = mem_ops.space_of(c, inst, 0), exchange.lane_bytes
    align, dtype, vector = size & -size, ty.dtype_of(inst.type), isinstance(inst.type, ty.VecType)
    guard = poison.guard(c, inst, [0], "the address")

    def run(r: list[Any], m: Machine) -> None:
        if exchange.disputed:
            m.launch.warn(inst, matrix_transpose.ASSUMED)
        partial = m.active_waves() & ~m.mask.all(axis=2)
        if partial.any():
            m.fault(inst, "a transposing load with inactive lanes, whose elements others would need",
                    ~m.mask & partial[:, :, None], "run it with whole waves")  # fmt: skip
        address = np.broadcast_to(r[p], m.shape)
        where = transfer.locate(m, inst, space, address, size, align, False)
        raw = transfer.read(m, inst, where, size).view(np.uint8)
        if where.packed:
            raw = transfer.expanded(m, raw)
        data = np.ascontiguousarray(np.broadcast_to(raw, (*m.shape, size))).reshape(-1, m.wave_size, size)
        out = np.ascontiguousarray(exchange(data)).reshape(*m.shape, size).view(dtype)
        r[d] = out if vector else out[..., 0]

    return [guard, run] if guard else [run]
