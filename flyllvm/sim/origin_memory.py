"""Where origins begin, and how they go through LDS and private memory.

The closures run after the access itself, so that every address was checked; those of lanes that do not run may be
anything and count for nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import buffers, dma, fat, matrix_transpose, mem_ops, transfer, types as ty
from .ir import Inst
from .origins import INDIRECT, UNKNOWN, Plan, TracedSpace, byte_count, fetched, stored
from .values import LDS_APERTURE, PRIVATE_APERTURE, Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

_LDS, _PRIVATE, _GLOBAL = 3, 5, 1
# Calls that load from each lane's address.
_LOADS = ("cluster.load.b", "global.load.monitor.b", "flat.load.monitor.b", "cooperative.atomic.load.")
Load = Callable[[list[Any], "Machine"], Any]


def short_name(inst: Inst) -> str:
    """The name of an intrinsic without what all of AMD's begin with."""
    return (inst.callee or "").removeprefix("llvm.").removeprefix("amdgcn.") if inst.op == "call" else ""


def _is_buffer_load(inst: Inst) -> bool:
    name = short_name(inst)
    return ".buffer.load" in name and not is_copy_to_lds(inst) and name.startswith(("raw", "struct"))


def is_copy_to_lds(inst: Inst) -> bool:
    """Whether an instruction copies from global memory to LDS, each lane its own bytes."""
    return dma.is_dma(inst) and "store" not in (inst.callee or "") and "tensor" not in (inst.callee or "")


def read_spaces(inst: Inst) -> tuple[int, ...]:
    """Address spaces that an instruction with a result may load data from; empty for other instructions."""
    loads = inst.op == "load" or short_name(inst).startswith(_LOADS)
    if loads or matrix_transpose.is_transposing(short_name(inst)):
        space = getattr(inst.operands[0].type, "space", 0)
        return {0: (_GLOBAL, _LDS, _PRIVATE), _LDS: (_LDS,), _PRIVATE: (_PRIVATE,)}.get(space, (_GLOBAL,))
    return (_GLOBAL,) if _is_buffer_load(inst) else ()


def stored_operand(inst: Inst) -> int | None:
    """Position of the value that a plain store puts into LDS or private memory."""
    if inst.op != "store":
        return None
    return 0 if getattr(inst.operands[1].type, "space", 0) in (0, _LDS, _PRIVATE) else None


# ---- addresses


def _global_origin(m: Machine, address: Array, size: int, flag: int) -> Array:
    """Origins of ``size`` bytes at addresses of global memory."""
    offset = (address - address.dtype.type(m.heap.base)).view(np.int64)
    inside = (offset >= 0) & (offset <= m.heap.data.size - size)
    first = np.where(inside, offset + 1 | flag, UNKNOWN)
    return np.where(inside[..., None], first[..., None] + np.arange(size), UNKNOWN)


def _place(m: Machine, space: Any, base: Array, address: Array, size: int) -> tuple[Array, Array]:
    """Indices of the bytes at addresses in LDS or private memory, and which lanes' are inside of it."""
    offset = address.astype(np.int64)
    inside = np.broadcast_to((offset >= 0) & (offset <= space.copy_bytes - size), m.shape)
    at = np.where(inside, offset, 0) + base
    return np.broadcast_to(at, m.shape)[..., None] + np.arange(size), inside


def _get(m: Machine, name: str, address: Array, size: int) -> Array | None:
    space, base = (m.lds, m.lds_base) if name == "LDS" else (m.private, getattr(m, "private_base", None))
    if not isinstance(space, TracedSpace):
        return None
    if address.shape[1:] == (1, 1) and name == "LDS":
        offset = address.astype(np.int64)
        inside = (offset >= 0) & (offset <= space.copy_bytes - size)
        at = (np.where(inside, offset, 0) + base)[..., None] + np.arange(size)
    else:
        at, inside = _place(m, space, base, address, size)
    return np.where(inside[..., None], space.origins.take(at, mode="clip"), UNKNOWN)


def _put(m: Machine, name: str, address: Array, words: Array, size: int) -> None:
    space, base = (m.lds, m.lds_base) if name == "LDS" else (m.private, getattr(m, "private_base", None))
    if not isinstance(space, TracedSpace):
        return
    at, inside = _place(m, space, base, address, size)
    rows = inside & m.mask
    space.origins[at[rows]] = np.broadcast_to(words, (*m.shape, size))[rows]


# ---- loads


def build_load(c: Compiler, plan: Plan, inst: Inst) -> Load | None:
    """A function that gives the origin of what an instruction loaded, or ``None`` for other instructions."""
    if not read_spaces(inst):
        return None
    flag = INDIRECT if inst.id in plan.indirect else 0
    if matrix_transpose.is_transposing(short_name(inst)):
        return _transposing(c, plan, inst, flag)
    if _is_buffer_load(inst):
        return _buffer_load(c, inst, flag)
    pointer = inst.operands[0]
    if getattr(pointer.type, "space", 0) == 7:
        p, size, component = c.slot(pointer), byte_count(inst.type), buffers.component_of(inst.type)
        return lambda r, m: _through_descriptor(m, fat.access_of(m, inst, r[p]), size, component, flag)
    return _plain_load(c, plan, inst, inst.type, 0, flag)


def _plain_load(c: Compiler, plan: Plan, inst: Inst, t: ty.Type, offset: int, flag: int) -> Load:
    parts = mem_ops.parts_of(t)
    if parts is not None:
        loads = [_plain_load(c, plan, inst, part, offset + at, flag) for at, part in parts]
        return lambda r, m: tuple(load(r, m) for load in loads)
    if isinstance(t, ty.PtrType) and t.space in (7, 8):
        return lambda r, m: None
    p, size, spaces = c.slot(inst.operands[0]), byte_count(t), read_spaces(inst)
    number = plan.number_of(inst, plan.reads) if _LDS in spaces else 0

    def load(r: list[Any], m: Machine) -> Any:
        address = r[p] + r[p].dtype.type(offset)
        if len(spaces) == 1:
            return at(m, spaces[0], address)
        high = address >> np.uint64(32)
        low = address.astype(np.uint32)
        lds, private = (high == LDS_APERTURE)[..., None], (high == PRIVATE_APERTURE)[..., None]
        out = np.where(lds | private, UNKNOWN, at(m, _GLOBAL, address))
        if lds.any():
            out = np.where(lds, at(m, _LDS, low), out)
        return np.where(private, at(m, _PRIVATE, low), out) if private.any() else out

    def at(m: Machine, space: int, address: Array) -> Any:
        if space == _GLOBAL:
            return _global_origin(m, address, size, flag)
        words = _get(m, "LDS" if space == _LDS else "private", address, size)
        if words is None:
            return np.zeros((1, 1, 1, size), np.int64)
        return fetched(words, number, flag) if space == _LDS else words

    return load


def _through_descriptor(m: Machine, access: buffers.Access, size: int, component: int, flag: int) -> Array:
    """Origins of bytes that were loaded through a buffer descriptor; none past its end.  Shape: full lane axes."""
    base, offset, limit = access.base, access.offset, access.limit
    words = _global_origin(m, base + offset.view(np.uint64), size, flag)
    starts = offset[..., None] + np.arange(size) // component * component
    words = np.where(starts + component <= limit[..., None], words, UNKNOWN)
    return transfer.expanded(m, words) if access.packed else np.broadcast_to(words, (*m.shape, size))


def _buffer_load(c: Compiler, inst: Inst, flag: int) -> Load:
    size, component = byte_count(inst.type), buffers.component_of(inst.type)
    resolve = buffers.resolver(c, inst, 0, buffers.is_structured(inst))
    return lambda r, m: _through_descriptor(m, resolve(r, m), size, component, flag)


def _transposing(c: Compiler, plan: Plan, inst: Inst, flag: int) -> Load:
    """Transposing loads: elements of whole bytes move with their origins."""
    exchange = matrix_transpose.prepare(short_name(inst), wave_size=c.wave_size, target=c.target)
    p, size, group = c.slot(inst.operands[0]), exchange.lane_bytes, exchange.group
    in_lds = _LDS in read_spaces(inst)
    number = plan.number_of(inst, plan.reads) if in_lds else 0

    def load(r: list[Any], m: Machine) -> Any:
        if exchange.element_bits % 8:
            return None
        address = np.broadcast_to(r[p], m.shape)
        words = _get(m, "LDS", address, size) if in_lds else _global_origin(m, address, size, flag)
        if words is None:
            return None
        cells = words.reshape(
            -1, m.wave_size // group, group, size * 8 // exchange.element_bits, exchange.element_bits // 8
        )
        moved = cells[:, :, exchange.source_lane, exchange.source_element].reshape(*m.shape, size)
        return fetched(moved, number, flag)

    return load


# ---- stores


def build_store(c: Compiler, plan: Plan, inst: Inst) -> list[Op]:
    """The closures that follow what an instruction writes to LDS or private memory."""
    if is_copy_to_lds(inst):
        return _dma(c, plan, inst)
    position = stored_operand(inst)
    if position is None or not plan.follows(inst.operands[position]):
        return []
    value, pointer = inst.operands
    v, p, space = c.slot(value), c.slot(pointer), getattr(pointer.type, "space", 0)
    number = plan.number_of(inst, plan.stores) if space != _PRIVATE else 0
    flag = INDIRECT if inst.id in plan.indirect else 0

    def put(m: Machine, address: Array, words: Any, t: ty.Type) -> None:
        parts = mem_ops.parts_of(t)
        if words is None:
            return
        if parts is not None:
            for (offset, part), word in zip(parts, words, strict=True):
                put(m, address + address.dtype.type(offset), word, part)
            return
        size = words.shape[-1]
        if space == _PRIVATE:
            _put(m, "private", address, words, size)
        elif space == _LDS:
            _put(m, "LDS", address, stored(words, number, flag), size)
        else:
            high, low = address >> np.uint64(32), address.astype(np.uint32)
            for aperture, name in ((LDS_APERTURE, "LDS"), (PRIVATE_APERTURE, "private")):
                if (high == aperture).any():
                    # An address outside of the memory leaves a lane out.
                    _put(m, name, np.where(high == aperture, low, transfer.NOWHERE), stored(words, number, flag), size)

    def run(r: list[Any], m: Machine) -> None:
        put(m, r[p], m.origin[v], value.type)

    return [run]


def _dma(c: Compiler, plan: Plan, inst: Inst) -> list[Op]:
    """Copies from global memory to LDS."""
    flag, number = INDIRECT if inst.id in plan.indirect else 0, plan.number_of(inst, plan.stores)
    name, lds = short_name(inst), c.slot(inst.operands[1])
    if name.startswith(("global.load.async.to.lds.", "cluster.load.async.to.lds.")):  # every lane names its own place
        size, imm, p = dma.ASYNC_BYTES[name.rpartition(".")[2]], c.immediate(inst, 2), c.slot(inst.operands[0])

        def each(r: list[Any], m: Machine) -> None:
            words = _global_origin(m, r[p] + np.uint64(imm), size, flag)
            _put(m, "LDS", r[lds] + np.uint32(imm), stored(words, number), size)

        return [each]
    size = c.immediate(inst, 2)
    source, imm = _dma_source(c, inst, size, flag)

    def run(r: list[Any], m: Machine) -> None:
        words = stored(source(r, m), number)
        wide = max(4, size)
        base = dma.first_of_wave(m, r[lds] + np.uint32(imm))
        address = base + (np.arange(m.wave_size, dtype=np.uint32) * np.uint32(wide)).reshape(1, 1, -1)
        if size < wide:
            words = np.concatenate((words, np.zeros((*words.shape[:-1], wide - size), np.int64)), axis=-1)
        _put(m, "LDS", address, words, wide)

    return [run]


def _dma_source(c: Compiler, inst: Inst, size: int, flag: int) -> tuple[Load, int]:
    """The origins of what a copy to LDS takes, and its immediate offset."""
    if ".buffer." in (inst.callee or ""):
        resolve, imm = buffers.lds_resolver(c, inst), c.immediate(inst, len(inst.operands) - 2)
        return lambda r, m: _through_descriptor(m, resolve(r, m), size, min(4, size), flag), imm
    p, imm = c.slot(inst.operands[0]), c.immediate(inst, 3)
    if getattr(inst.operands[0].type, "space", 1) == 7:
        return lambda r, m: _through_descriptor(m, fat.access_of(m, inst, r[p], imm), size, min(4, size), flag), imm
    return lambda r, m: _global_origin(m, r[p] + np.uint64(imm), size, flag), imm


def copied(m: Machine, plan: Plan, inst: Inst, lds: Array, offset: Array, size: int) -> None:
    """Notes that elements of ``size`` bytes went from offsets in the heap to offsets in LDS (tensor copies)."""
    if isinstance(m.lds, TracedSpace):
        flag, number = INDIRECT if inst.id in plan.indirect else 0, plan.number_of(inst, plan.stores)
        m.lds.origins[lds[:, None] + np.arange(size)] = stored((offset + 1 | flag)[:, None] + np.arange(size), number)
