"""DMA from global memory to LDS: the write side, and ``global.load.lds``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import poison, transfer
from .ir import Inst
from .memory import known_alignment, unit_of
from .race_fault import DMA
from .sync import ASYNC, PLAIN, SEGMENT, TENSOR
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def write(m: Machine, inst: Inst, lds: Array, raw: Array, size: int, packed: bool) -> None:
    """Writes each running lane's bytes at its wave's LDS address plus lane times size, at least four bytes each.

    Args:
        m: The machine.
        inst: The instruction.
        lds: LDS address, the same for all lanes of a wave (the first running lane's counts).
        raw: Bytes per lane.
        size: Bytes per lane in global memory.
        packed: ``raw`` holds running lanes only.
    """
    if size < 4:  # bytes and halves arrive as zero-extended words
        raw = np.concatenate((raw, np.zeros((*raw.shape[:-1], 4 - size), np.uint8)), axis=-1)
        size = 4
    wave_base = first_of_wave(m, lds)
    lanes = np.arange(m.wave_size, dtype=np.uint32).reshape(1, 1, -1)
    address = np.broadcast_to(wave_base + lanes * np.uint32(size), m.shape)
    where = transfer.locate(m, inst, "LDS", address, size, 1, True)
    if packed != where.packed:
        raw = transfer.expanded(m, raw) if packed else transfer.running(m, raw)
    elif not packed:
        raw = np.broadcast_to(raw, m.shape + raw.shape[-1:])
    unit = unit_of(size, known_alignment(where.offset))
    located = transfer.Located(where.space, where.offset, where.packed, unit)
    transfer.write(m, inst, located, np.ascontiguousarray(raw), DMA)


def is_dma(inst: Inst) -> bool:
    """Whether an instruction copies from global memory to LDS by itself."""
    return inst.op == "call" and any(part in (inst.callee or "") for part in _DMA_NAMES)


def kind_of(inst: Inst) -> int:
    """What completes a DMA: the part of a clock in `sync`; ``SEGMENT`` for other instructions."""
    if not is_dma(inst):
        return SEGMENT
    callee = inst.callee or ""
    return TENSOR if ".tensor." in callee else ASYNC if "async" in callee else PLAIN


# With ".async" not even the wave itself sees the data before an explicit wait.
_DMA_NAMES = (
    ".load.lds", ".load.to.lds", ".load.async.lds", ".load.async.to.lds", ".store.async.from.lds", ".store.from.lds",
)  # fmt: skip


def is_buffer_access(inst: Inst) -> bool:
    """Whether a call is a load, store or atomic operation through a buffer descriptor."""
    callee = inst.callee or ""
    return ".buffer." in callee and "rsrc" not in callee and bool(inst.operands)


def counter_of(inst: Inst, family: str) -> Op | None:
    """Counts an instruction for ``vmcnt`` (on gfx12, where DMA has counters of its own: for the one of its kind).

    Source: CDNA3 ISA manual, S_WAITCNT: loads and stores of vector memory return in order.
    """
    if is_dma(inst):
        return count_tensor if kind_of(inst) == TENSOR else count
    if not family.startswith("cdna"):
        return None
    if inst.op in ("load", "store"):
        pointer = inst.operands[inst.op == "store"]
        return count if getattr(pointer.type, "space", 3) in (0, 1, 4, 7) else None
    return count if inst.op == "call" and is_buffer_access(inst) else None


def count(r: list[Any], m: Machine) -> None:
    """Counts one vector memory operation."""
    m.sync.issue(m)


def count_tensor(r: list[Any], m: Machine) -> None:
    """Counts one tensor operation."""
    m.sync.issue(m, 1)


def first_of_wave(m: Machine, value: Array) -> Array:
    """The value of the first running lane of each wave.  Shape: ``(G or 1, W or 1, 1)`` plus elements."""
    if value.shape[2] == 1:
        return value
    if m.full:
        return value[:, :, :1]
    first = np.argmax(m.mask, axis=2)[:, :, None]
    full = np.broadcast_to(value, m.shape + value.shape[3:])
    if full.ndim == 4:
        first = first[..., None]
    return np.take_along_axis(full, first, axis=2)


ASYNC_BYTES = {"b8": 1, "b32": 4, "b64": 8, "b128": 16}


def load_async_to_lds(c: Compiler, inst: Inst) -> list[Op]:
    """``global.load.async.to.lds.*``: every lane names its own LDS address.

    Source: LLVM AMDGPU intrinsics; the offset applies to both addresses.
    """
    size = ASYNC_BYTES[(inst.callee or "").rpartition(".")[2]]
    source, lds = c.slot(inst.operands[0]), c.slot(inst.operands[1])
    imm = c.immediate(inst, 2)
    guard = poison.guard(c, inst, [0, 1], "the address")

    def run(r: list[Any], m: Machine) -> None:
        address = np.broadcast_to(r[source] + np.uint64(imm), m.shape)
        where = transfer.locate(m, inst, "global", address, size, min(4, size), False)
        raw = transfer.read(m, inst, where, size).view(np.uint8)
        target = np.broadcast_to(r[lds] + np.uint32(imm), m.shape)
        to = transfer.locate(m, inst, "LDS", target, size, min(4, size), True)
        transfer.write(m, inst, to, np.ascontiguousarray(raw), DMA)

    op = transfer.somewhere(c, "LDS", lds, run)
    return [guard, op] if guard else [op]


def store_from_lds(c: Compiler, inst: Inst) -> list[Op]:
    """``global.store.async.from.lds.*``: copies from each lane's LDS address to its global address."""
    size = ASYNC_BYTES[(inst.callee or "").rpartition(".")[2]]
    target, lds = c.slot(inst.operands[0]), c.slot(inst.operands[1])
    imm = c.immediate(inst, 2)
    guard = poison.guard(c, inst, [0, 1], "the address")

    def run(r: list[Any], m: Machine) -> None:
        source = np.broadcast_to(r[lds] + np.uint32(imm), m.shape)
        where = transfer.locate(m, inst, "LDS", source, size, min(4, size), False)
        raw = transfer.read(m, inst, where, size, dma=True).view(np.uint8)
        address = np.broadcast_to(r[target] + np.uint64(imm), m.shape)
        to = transfer.locate(m, inst, "global", address, size, min(4, size), True)
        transfer.write(m, inst, to, np.ascontiguousarray(raw))

    return [guard, run] if guard else [run]


def global_load_lds(c: Compiler, inst: Inst) -> list[Op]:
    """``global.load.lds`` and ``load.to.lds``: source pointer, LDS pointer, size, offset, cache bits."""
    if getattr(inst.operands[0].type, "space", 1) == 7:
        from . import fat

        return fat.load_to_lds(c, inst)
    source, lds = c.slot(inst.operands[0]), c.slot(inst.operands[1])
    size, imm = c.immediate(inst, 2), c.immediate(inst, 3)
    guard = poison.guard(c, inst, [0, 1], "the address")

    def run(r: list[Any], m: Machine) -> None:
        address = r[source] + np.uint64(imm)
        where = transfer.locate(m, inst, "global", address, size, min(4, size & -size), False)
        raw = transfer.read(m, inst, where, size).view(np.uint8)
        write(m, inst, r[lds] + np.uint32(imm), raw, size, where.packed)

    return [guard, run] if guard else [run]
