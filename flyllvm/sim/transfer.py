"""Where an access goes, whether it may, and the bytes it moves."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .ir import Inst
from .memory import UNITS, Space, known_alignment, unit_of
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


class Located:
    """Where an access goes.

    Attributes:
        space: The memory.
        offset: Flat byte offsets, of all lanes (broadcastable) or of the running ones alone.
        packed: ``offset`` holds running lanes only, in one axis.
        unit: Bytes that can move at once.
        rows: Number of the lane (over the whole chunk) of each packed offset, where these are not the running lanes.
    """

    __slots__ = ("offset", "packed", "rows", "space", "unit")

    def __init__(self, space: Space, offset: Array, packed: bool, unit: int, rows: Array | None = None) -> None:
        self.space, self.offset, self.packed, self.unit, self.rows = space, offset, packed, unit, rows


def running(m: Machine, a: Array) -> Array:
    """The values of the running lanes, one after the other."""
    result: Array = np.broadcast_to(a, m.shape + a.shape[3:])[m.mask]
    return result


def expanded(m: Machine, packed: Array) -> Array:
    """The inverse of `running`; other lanes are zero."""
    out = np.zeros(m.shape + packed.shape[1:], packed.dtype)
    out[m.mask] = packed
    return out


def locate(
    m: Machine, inst: Inst, space_name: str, address: Array, byte_count: int, align: int, write: bool
) -> Located:
    """Checks alignment and bounds of an access by the running lanes, and finds its bytes.

    Units: ``byte_count`` and ``align`` in bytes.

    Raises:
        SimError: Misaligned, or outside every region.
    """
    # What lanes store to one address may differ: only the running ones count.
    packed = not m.full and (write or address.size > 1 or space_name != "global")
    pointer = running(m, address) if packed else address
    known = known_alignment(pointer)
    if known < align and m.program.checks.alignment:
        _check_alignment(m, inst, space_name, pointer, align)
    unit = unit_of(byte_count, known)
    space = _space(m, inst, space_name)
    check_bounds(m, inst, space, pointer, byte_count, write)
    if m.launch.profile is not None and space_name != "private":
        m.launch.profile.note(m, inst, space_name, pointer, byte_count, packed)
    if space_name == "global":
        return Located(space, (pointer - np.uint64(space.base)).view(np.int64), packed, unit)
    offset = pointer.astype(np.int64)
    base = m.lds_base if space_name == "LDS" else m.private_base
    if packed:
        return Located(space, offset + running(m, base), True, unit)
    offset = offset + base
    if offset.shape[1] != m.waves:
        offset = np.broadcast_to(offset, (m.groups, m.waves, offset.shape[2]))
    return Located(space, offset, False, unit)


# Compilers for gfx1250 send the lanes that shall not write here: LDS has no such byte, and the write is dropped.
NOWHERE = 0x7FFFFFFF


def somewhere(c: Compiler, space_name: str, address: int, op: Op) -> Op:
    """A write to LDS that leaves out lanes with the address `NOWHERE`, on the chip where compilers use it."""
    if space_name != "LDS" or c.target.processor != "gfx1250":
        return op

    def run(r: list[Any], m: Machine) -> None:
        nowhere = np.broadcast_to(r[address] == NOWHERE, m.shape) & m.mask
        if not nowhere.any():
            op(r, m)
            return
        saved = m.mask
        m.enter(saved & ~nowhere)
        if m.active:
            op(r, m)
        m.enter(saved)

    return run


def _check_alignment(m: Machine, inst: Inst, space_name: str, pointer: Array, align: int) -> None:
    bad = pointer & pointer.dtype.type(align - 1) != 0
    if not bad.any():
        return
    first = int(np.atleast_1d(pointer)[np.atleast_1d(bad)].flat[0])
    m.fault(
        inst,
        f"address {show(m, space_name, first)} is not a multiple of {align}, as the instruction's align promises",
        bad, f"align the address to {align} bytes, or lower the align",
    )  # fmt: skip


def _space(m: Machine, inst: Inst, name: str) -> Space:
    if name == "global":
        return m.heap
    if name == "LDS":
        return m.lds
    if m.private is None:
        m.fault(inst, "private memory is used, but the kernel has no alloca")
    return m.private


def check_bounds(
    m: Machine, inst: Inst, space: Space, pointer: Array, byte_count: int, write: bool, parts: Array | None = None
) -> None:
    """Checks addresses of lanes or, with ``parts``, of those parts of their accesses that are set in it."""
    region = space.find(pointer, byte_count)
    if region is None:
        bad = space.outside(pointer, byte_count)
        if bad.any():
            _out_of_bounds(m, inst, space, pointer, bad, byte_count, write, parts)
        regions = space.touched(pointer) if write else []
    else:
        regions = [region] if write else []
    for touched in regions:
        if touched.readonly:
            m.fault(inst, f"store into read-only {touched.name}", fix="pass a writeable array")
        touched.written = True


def _out_of_bounds(
    m: Machine,
    inst: Inst,
    space: Space,
    pointer: Array,
    bad: Array,
    byte_count: int,
    write: bool,
    parts: Array | None,
) -> None:
    first = int(pointer[bad].flat[0])
    verb = "writes" if write else "reads"
    if parts is not None:
        of_parts = np.zeros(parts.shape, bool)
        of_parts[parts] = bad
        bad = of_parts.any(axis=-1)
    m.fault(
        inst, f"{verb} {byte_count} bytes out of bounds, at {show(m, space.name, first)}", bad,
        "check the index against the size, or mask the access",
    )  # fmt: skip


def show(m: Machine, space_name: str, address: int) -> str:
    """An address relative to the nearest region."""
    space = {"global": m.heap, "LDS": m.lds, "private": m.private}[space_name]
    if address < 4096 if space_name == "global" else address > 0xFFFFF000:
        return f"{space_name} address {address:#x} (null pointer)"
    if space is None or not space.regions:
        return f"{space_name} address {address:#x} (there is no {space_name} memory)"
    region = space.region_of(address)
    after = next((r for r in space.regions if r.start > address), None)
    if region is None or (after is not None and after.start - address < address - region.start - region.size):
        region = after or space.regions[0]
    offset = address - region.start
    name = region.name if space_name == "global" or region.name.startswith("%") else f"@{region.name}"
    if abs(offset) > 1 << 40:
        return f"{space_name} address {address:#x}, far from every buffer"
    return f"byte {offset} of {name} ({region.size} bytes)"


def read(m: Machine, inst: Inst, where: Located, byte_count: int, atomic: bool = False, dma: bool = False) -> Array:
    """The units at a located access; checks that they were written before."""
    if where.space is m.heap:
        if m.launch.races is not None:
            m.launch.races.on_read(m, inst, where, byte_count, atomic)
    elif not m.program.checks.lds:
        pass
    elif where.space is m.lds:
        m.shadow.on_read(m, inst, m.shadow.indices(where.offset, byte_count), atomic, dma=dma)
    else:
        known = m.private_written[where.offset[..., None] + np.arange(byte_count)]
        if not known.all():
            m.fault(inst, "read of private memory that was never written", ~known.all(axis=-1),
                    "initialise the variable; before llvm.lifetime.start and after llvm.lifetime.end it has no content",
                    )  # fmt: skip
    return where.space.gather(where.offset, byte_count, where.unit)


def write(m: Machine, inst: Inst, where: Located, raw: Array, flags: int = 0) -> None:
    """Writes bytes to a located access.

    Shape: ``raw`` is uint8, ``lanes + (bytes,)``, broadcastable to the lanes of ``where``.
    """
    byte_count = raw.shape[-1]
    m.writes += 1
    units = raw.view(UNITS[where.unit])
    offset = where.offset
    if offset.shape != units.shape[:-1]:
        shape = np.broadcast_shapes(offset.shape, units.shape[:-1])
        offset, units = np.broadcast_to(offset, shape), np.broadcast_to(units, shape + units.shape[-1:])
    if where.space is m.heap:
        _global_write(m, inst, where, offset, units, flags)
        return
    where.space.scatter(offset, units, where.unit)
    if not m.program.checks.lds:
        return
    if where.space is m.lds:
        _shadow_write(m, inst, where, offset, units, byte_count, flags)
    else:
        m.private_written[offset[..., None] + np.arange(byte_count)] = True


def _global_write(m: Machine, inst: Inst, where: Located, offset: Array, units: Array, flags: int) -> None:
    space, races = where.space, m.launch.races
    if races is None:
        space.scatter(offset, units, where.unit)
        return
    data = np.ascontiguousarray(units).view(np.uint8)
    races.on_write(
        m, inst, Located(space, offset, where.packed, where.unit, where.rows), data.shape[-1], flags,
        lambda: (space.gather(offset, data.shape[-1], where.unit).view(np.uint8) != data).any(axis=-1),
        lambda: space.scatter(offset, units, where.unit),
    )  # fmt: skip


def _shadow_write(
    m: Machine, inst: Inst, where: Located, offset: Array, units: Array, byte_count: int, flags: int
) -> None:
    def lost() -> Array:
        now = where.space.gather(offset, byte_count, where.unit)
        same = np.ascontiguousarray(now).view(np.uint8) == np.ascontiguousarray(units).view(np.uint8)
        result: Array = ~same.all(axis=-1)
        return result

    m.shadow.on_write(m, inst, m.shadow.indices(offset, byte_count), flags, lost)
