"""Buffer descriptors: loads and stores that the hardware checks against ``num_records``.

A load past the end returns 0 and a store is dropped, per 32-bit part; both are counted as clipped.  What the
descriptor lets through must still lie in a real buffer.

Source: CDNA3 and RDNA3 ISA manuals, buffer addressing and range checking.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import atomics, convert, mem_ops, poison, transfer, types as ty
from .ir import Inst
from .memory import known_alignment, unit_of
from .race_fault import ATOMIC
from .values import Array, scalar

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Rsrc = tuple[Array, Array, Array, Array]


class Access:
    """Byte offsets of a buffer access and the limits of its descriptor.

    Attributes:
        base: Base addresses of the descriptors.
        offset: Byte offset of each access, int64, scalar offset included.
        limit: Bytes that the descriptor covers, int64.
        packed: The arrays hold running lanes only.
    """

    __slots__ = ("base", "limit", "offset", "packed")

    def __init__(self, base: Array, offset: Array, limit: Array, packed: bool) -> None:
        self.base, self.offset, self.limit, self.packed = base, offset, limit, packed


Resolver = Callable[[list[Any], "Machine"], Access]


def resolver(c: Compiler, inst: Inst, first: int, structured: bool) -> Resolver:
    """How to find the bytes of a buffer intrinsic whose descriptor is operand ``first``."""
    rsrc_type = inst.operands[first].type
    rsrc = c.slot(inst.operands[first])
    rest = [c.slot(o) for o in inst.operands[first + 1 : first + (4 if structured else 3)]]
    words = isinstance(rsrc_type, ty.VecType)
    scalar_zero = c.literal(inst.operands[first + (3 if structured else 2)]) == 0

    def resolve(r: list[Any], m: Machine) -> Access:
        descriptor = mem_ops.rsrc_from_words(r[rsrc]) if words else r[rsrc]
        offset = r[rest[-2]].astype(np.int64)
        if not scalar_zero:
            offset = offset + r[rest[-1]].astype(np.int64)
        index = r[rest[0]] if structured else None
        return resolve_access(m, inst, descriptor, index, offset)

    return resolve


def resolve_access(m: Machine, inst: Inst, rsrc: Rsrc, index: Array | None, offset: Array) -> Access:
    """Applies stride and range check mode of a descriptor."""
    base, stride, records, flags = rsrc
    limit = records.astype(np.int64)
    if index is not None:
        wide = stride.astype(np.int64)
        if (wide == 0).any():
            m.fault(inst, "a structured buffer access through a descriptor of stride 0", None, "set the stride")
        outside = index.astype(np.int64) >= limit
        offset = np.where(outside, np.int64(1) << 40, index.astype(np.int64) * wide + offset)
        limit = limit * wide
    elif stride.any():
        m.fault(inst, "a raw buffer access through a descriptor with a stride", None,
                "make the descriptor with stride 0, or use the struct form")  # fmt: skip
    if m.program.checks.uniformity and any(differs_in_wave(m, part) for part in rsrc):
        m.launch.warn(inst, "the descriptor differs between lanes: the hardware runs a loop over its values")
    if m.program.target.chip.family.startswith("rdna"):
        # OOB_SELECT 2 turns the range check off
        unchecked = (flags >> np.uint32(28) & np.uint32(3)) == 2
        if unchecked.any():
            limit = np.where(unchecked, np.int64(1) << 39, limit)
    whole = m.full or (offset.size == 1 and base.size == 1 and limit.size == 1)
    if whole and not m.launch.watched:
        return Access(base, offset, limit, False)
    return Access(
        transfer.running(m, base), transfer.running(m, offset), transfer.running(m, limit), True
    )  # fmt: skip


def differs_in_wave(m: Machine, value: Array) -> bool:
    """Whether running lanes of one wave have different values."""
    if value.shape[2] == 1:
        return False
    from .dma import first_of_wave

    return bool(((np.broadcast_to(value, m.shape) != first_of_wave(m, value)) & m.mask).any())


def _inside(access: Access, byte_count: int) -> bool:
    return int(access.offset.max()) + byte_count <= int(access.limit.min())


def _global(
    m: Machine, inst: Inst, address: Array, byte_count: int, write: bool, parts: Array | None = None
) -> tuple[Array, int]:
    """Flat heap offsets of checked addresses and the unit to move."""
    transfer.check_bounds(m, inst, m.heap, address, byte_count, write, parts)
    unit = unit_of(byte_count, known_alignment(address))
    return (address - np.uint64(m.heap.base)).view(np.int64), unit


def _rows(m: Machine, good: Array) -> Array | None:
    """Lane of each part that is in range; only those who watch accesses ask, and for them accesses are packed."""
    return np.flatnonzero(m.mask)[np.nonzero(good)[0]] if m.launch.watched else None


def component_of(t: ty.Type) -> int:
    """Bytes that are range-checked together."""
    return max(1, min(4, ty.bit_size(ty.scalar_of(t)) // 8))


def read_raw(m: Machine, inst: Inst, access: Access, byte_count: int, component: int) -> Array:
    """The bytes of a buffer load, zero where out of range.

    Shape: lanes (or running lanes) + ``(bytes,)``.
    """
    if _inside(access, byte_count):
        address = access.base + access.offset.view(np.uint64)
        offset, unit = _global(m, inst, address, byte_count, False)
        if m.launch.profile is not None:
            m.launch.profile.note(m, inst, "global", offset, byte_count, access.packed)
        if m.launch.races is not None:
            m.launch.races.on_read(m, inst, transfer.Located(m.heap, offset, access.packed, unit), byte_count)
        return m.heap.gather(offset, byte_count, unit).view(np.uint8)
    starts, good = _components(m, inst, access, byte_count, component)
    if access.base.size > 1:
        good = np.broadcast_to(good, np.broadcast_shapes(good.shape, access.base.shape + good.shape[-1:]))
        starts = np.broadcast_to(starts, good.shape)
    out = np.zeros((*good.shape, component), np.uint8)
    if good.any():
        address = np.broadcast_to(access.base[..., None], good.shape)[good] + starts[good].view(np.uint64)
        offset, unit = _global(m, inst, address, component, False, good)
        rows = _rows(m, good)
        if m.launch.races is not None:
            m.launch.races.on_read(m, inst, transfer.Located(m.heap, offset, True, unit, rows), component)
        if m.launch.profile is not None:
            m.launch.profile.note(m, inst, "global", offset, component, True, rows)
        out[good] = m.heap.gather(offset, component, unit).view(np.uint8)
    return out.reshape((*good.shape[:-1], byte_count))


def _components(m: Machine, inst: Inst, access: Access, byte_count: int, component: int) -> tuple[Array, Array]:
    """Offsets of the parts of an access, and which are in range; counts clipped lanes."""
    parts = np.arange(0, byte_count, component, dtype=np.int64)
    starts = access.offset[..., None] + parts
    good = starts + component <= access.limit[..., None]
    starts = np.broadcast_to(starts, good.shape)
    clipped = ~good.all(axis=-1)
    if not access.packed:
        clipped = np.broadcast_to(clipped, m.shape) & m.mask
    m.launch.count_clipped(inst, int(np.count_nonzero(clipped)))
    return starts, good


def write_raw(m: Machine, inst: Inst, access: Access, raw: Array, component: int) -> None:
    """Stores bytes through a descriptor; parts out of range are dropped."""
    byte_count = raw.shape[-1]
    if _inside(access, byte_count):
        address = access.base + access.offset.view(np.uint64)
        offset, unit = _global(m, inst, address, byte_count, True)
        if m.launch.profile is not None:
            m.launch.profile.note(m, inst, "global", offset, byte_count, access.packed)
        where = transfer.Located(m.heap, offset, access.packed, unit)
        transfer.write(m, inst, where, raw)
        return
    starts, good = _components(m, inst, access, byte_count, component)
    shape = np.broadcast_shapes(good.shape[:-1], raw.shape[:-1], access.base.shape)
    good = np.broadcast_to(good, shape + good.shape[-1:])
    if not good.any():
        return
    starts = np.broadcast_to(starts, good.shape)
    address = np.broadcast_to(access.base[..., None], good.shape)[good] + starts[good].view(np.uint64)
    data = np.broadcast_to(raw, shape + raw.shape[-1:]).reshape((*shape, -1, component))[good]
    offset, unit = _global(m, inst, address, component, True, good)
    rows = _rows(m, good)
    if m.launch.profile is not None:
        m.launch.profile.note(m, inst, "global", offset, component, True, rows)
    transfer.write(m, inst, transfer.Located(m.heap, offset, True, unit, rows), np.ascontiguousarray(data))


# ---- intrinsics


def checks(c: Compiler, inst: Inst, address: list[int], value: list[int]) -> list[Op]:
    """The closures that report poison in the operands at these positions."""
    guards = [poison.guard(c, inst, address, "the address or descriptor"), poison.guard(c, inst, value, "the data")]
    return [g for g in guards if g is not None]


def make_rsrc(c: Compiler, inst: Inst) -> list[Op]:
    """``make.buffer.rsrc``: base, stride, num_records, flags."""
    d = c.dest(inst)
    base, stride, records, flags = (c.slot(o) for o in inst.operands)

    fat = getattr(inst.type, "space", 8) == 7
    start = (scalar(ty.I32, 0),) if fat else ()

    def run(r: list[Any], m: Machine) -> None:
        r[d] = (r[base].astype(np.uint64), r[stride], r[records].astype(np.uint64), r[flags], *start)

    return [*checks(c, inst, [0, 1, 2, 3], []), run]


def load(c: Compiler, inst: Inst, structured: bool) -> list[Op]:
    """``raw/struct.(ptr.)buffer.load``."""
    resolve = resolver(c, inst, 0, structured)
    d, fetch = c.dest(inst), fetcher(inst, inst.type)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fetch(m, resolve(r, m))

    return [*checks(c, inst, list(range(len(inst.operands) - 1)), []), run]


def fetcher(inst: Inst, t: ty.Type) -> Callable[[Machine, Access], Any]:
    """A function that loads a value of type ``t``."""
    byte_count, component = ty.store_size(t), component_of(t)

    def fetch(m: Machine, access: Access) -> Any:
        value = convert.from_bytes(t, read_raw(m, inst, access, byte_count, component))
        return transfer.expanded(m, value) if access.packed else value

    return fetch


def scalar_load(c: Compiler, inst: Inst) -> list[Op]:
    """``s.buffer.load``: descriptor, byte offset, cache bits; uniform in a wave."""
    rsrc, offset = c.slot(inst.operands[0]), c.slot(inst.operands[1])
    words = isinstance(inst.operands[0].type, ty.VecType)
    d, fetch = c.dest(inst), fetcher(inst, inst.type)

    def run(r: list[Any], m: Machine) -> None:
        descriptor = mem_ops.rsrc_from_words(r[rsrc]) if words else r[rsrc]
        r[d] = fetch(m, resolve_access(m, inst, descriptor, None, r[offset].astype(np.int64)))

    return [*checks(c, inst, [0, 1], []), run]


def store(c: Compiler, inst: Inst, structured: bool) -> list[Op]:
    """``raw/struct.(ptr.)buffer.store``."""
    resolve = resolver(c, inst, 1, structured)
    t, v = inst.operands[0].type, c.slot(inst.operands[0])
    component = component_of(t)

    def run(r: list[Any], m: Machine) -> None:
        access = resolve(r, m)
        value = transfer.running(m, r[v]) if access.packed else r[v]
        write_raw(m, inst, access, convert.to_bytes(t, value), component)

    return [*checks(c, inst, list(range(1, len(inst.operands) - 1)), [0]), run]


#: What ``atomicrmw`` calls the operations that buffers name otherwise.
ATOMICS = {"swap": "xchg", "smin": "min", "smax": "max", "inc": "uinc_wrap", "dec": "udec_wrap",
           "cond.sub.u32": "usub_cond", "sub.clamp.u32": "usub_sat"}  # fmt: skip


def atomic(c: Compiler, inst: Inst, operation: str, structured: bool) -> list[Op]:
    """``raw/struct.(ptr.)buffer.atomic.*``; out of range lanes do nothing and get 0."""
    exchange = operation == "cmpswap"
    t = inst.operands[0].type
    update = None if exchange else atomics.update_function(ATOMICS.get(operation, operation), t)
    resolve = resolver(c, inst, 2 if exchange else 1, structured)
    slots = [c.slot(o) for o in inst.operands[: 2 if exchange else 1]]
    d = c.dest(inst)
    if update is None and not exchange:
        raise SimError(f"'{c.program.text_of(inst)}': no atomic {operation} on {t}", c.program.where(inst))

    def step(old: Array, args: list[Array]) -> Array:
        return np.where(old == args[1], args[0], old) if update is None else update(old, args[0])

    def run(r: list[Any], m: Machine) -> None:
        r[d] = run_atomic(m, inst, resolve(r, m), t, [r[s] for s in slots], step)

    return [*checks(c, inst, list(range(len(slots), len(inst.operands) - 1)), list(range(len(slots)))), run]


def run_atomic(
    m: Machine, inst: Inst, access: Access, t: ty.Type, values: list[Array],
    step: Callable[[Array, list[Array]], Array],
) -> Array:  # fmt: skip
    """An atomic operation through a descriptor; returns the old values, 0 where out of range."""
    byte_count = ty.store_size(t)
    if not access.packed:
        base, offset, limit = (transfer.running(m, a) for a in (access.base, access.offset, access.limit))
        access = Access(base, offset, limit, True)
    args = [transfer.running(m, v) for v in values]
    good = access.offset + byte_count <= access.limit
    m.launch.count_clipped(inst, int(np.count_nonzero(~good)))
    old = np.zeros_like(args[0])
    if good.any():
        address = access.base[good] + access.offset[good].view(np.uint64)
        offset, unit = _global(m, inst, address, byte_count, True)
        rows = np.flatnonzero(m.mask)[good]
        if m.launch.profile is not None:
            m.launch.profile.note(m, inst, "global", offset, byte_count, True, rows)
        located = transfer.Located(m.heap, offset, True, unit, rows)
        if m.launch.races is not None:
            changes = np.ones(len(offset), bool)
            m.launch.races.on_write(m, inst, located, byte_count, ATOMIC, lambda: changes, lambda: None)
        inside = [a[good] for a in args]
        old[good] = atomics.run_rounds(
            m, located, t, byte_count, lambda value, lanes: step(value, [a[lanes] for a in inside])
        )  # fmt: skip
    return transfer.expanded(m, old)


def load_to_lds(c: Compiler, inst: Inst, structured: bool) -> list[Op]:
    """``raw/struct.(ptr.)buffer.load.lds``: lane i writes at the wave's LDS address plus ``i * size``.

    Source: LLVM AMDGPU intrinsics (the LDS pointer is uniform in a wave, the offset immediate applies to both sides).
    """
    from . import dma

    size, imm = c.immediate(inst, 2), c.immediate(inst, len(inst.operands) - 2)
    resolve, lds = lds_resolver(c, inst), c.slot(inst.operands[1])
    if size not in (1, 2, 4, 12, 16):
        raise SimError(f"'{c.program.text_of(inst)}': size {size} bytes", c.program.where(inst), "use 1, 2, 4, 12, 16")

    def run(r: list[Any], m: Machine) -> None:
        access = resolve(r, m)
        raw = read_raw(m, inst, access, size, min(4, size))
        dma.write(m, inst, r[lds] + np.uint32(imm), raw, size, access.packed)

    return [*checks(c, inst, [0, 1, 3, 4], []), run]


def is_structured(inst: Inst) -> bool:
    """Whether a buffer intrinsic has an index beside its offset."""
    return ".struct." in (inst.callee or "")


def lds_resolver(c: Compiler, inst: Inst) -> Resolver:
    """How to find the bytes that a ``buffer.load.lds`` copies."""
    structured, imm = is_structured(inst), c.immediate(inst, len(inst.operands) - 2)
    rsrc, index = c.slot(inst.operands[0]), c.slot(inst.operands[3]) if structured else None
    words = isinstance(inst.operands[0].type, ty.VecType)
    voffset, soffset = (c.slot(o) for o in inst.operands[4 if structured else 3 :][:2])

    def resolve(r: list[Any], m: Machine) -> Access:
        offset = r[voffset].astype(np.int64) + r[soffset].astype(np.int64) + imm
        descriptor = mem_ops.rsrc_from_words(r[rsrc]) if words else r[rsrc]
        vindex = None if index is None else r[index]
        return resolve_access(m, inst, descriptor, vindex, np.broadcast_to(offset, m.shape))

    return resolve
