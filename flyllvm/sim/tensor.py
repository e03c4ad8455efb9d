"""The tensor data mover of gfx1250: tiles of up to five dimensions between global memory and LDS.

One instruction moves a whole tile for its wave, whatever lanes run.  Groups of scalar words describe it; dimension 0
is the innermost, contiguous one, and strides count elements.  An element past the tensor's extent reads as zero and is
not stored.  A load can leave gaps in LDS (padding); a store takes LDS as it lies.  In gather mode the rows of a
two-dimensional tile come from a list of row numbers.

Workgroups of a cluster that ask for the same tile are served together, each with its own copy, so the mask of
workgroups changes nothing here.

Source: CDNA5 ISA manual, 10.11 and tables 61 to 67.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import mbarrier, origin_memory, poison, transfer
from .dma import first_of_wave
from .ir import Inst
from .memory import UNITS, Space, known_alignment, unit_of
from .race_fault import DMA, Who, of_wave
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

_GROUP_BITS = (128, 256, 128, 128)
#: Fields of a descriptor: group, lowest bit and width.
FIELDS = {
    "count": (0, 0, 2), "restores": (0, 2, 1), "wide_rows": (0, 30, 1), "gathers": (0, 31, 1), "lds": (0, 32, 32),
    "address": (0, 64, 57), "kind": (0, 126, 2), "size": (1, 16, 2), "notifies": (1, 18, 1), "iterates": (1, 19, 1),
    "pads": (1, 20, 1), "interval": (1, 22, 3), "amount": (1, 25, 7), "barrier": (1, 32, 16),
}  # fmt: skip
#: The same for each dimension, innermost first; the stride of the innermost is one element.
TILE = [(1, 112, 16), (1, 128, 16), (1, 144, 16), (2, 112, 16), (3, 80, 16)]
EXTENTS = [(1, 48, 32), (1, 80, 32), (2, 0, 32), (2, 32, 32), (3, 48, 32)]
STRIDES = [(1, 160, 48), (1, 208, 48), (2, 64, 48), (3, 0, 48)]
#: A tile is repeated at most so often; rows that a gather lists, of 16 and of 32 bits.
MOST_REPEATS, MOST_ROWS = 256, (16, 8)


class Descriptor:
    """The fields of a tensor descriptor that matter here.

    Attributes:
        valid: There is something to do.
        tile: Extents of the tile, innermost first; one for dimensions that are not used.
        extents: What the tensor has left in each dimension, from the tile's first element on.
        strides: Distance of neighbours in global memory, in elements.
        rows: Row numbers of gather mode, or ``None``.
        steps: LDS and global distance of repeated tiles, in elements, and how many there are.
        barrier: LDS address of the barrier that the wave arrives at (``notifies``) when the copy is complete.
        padding: Interval and amount of the gaps in LDS, in bytes, or ``None``.
    """

    def __init__(self, groups: list[int]) -> None:
        def field(group: int, low: int, width: int) -> int:
            return groups[group] >> low & (1 << width) - 1 if group < len(groups) else 0

        value = {name: field(*where) for name, where in FIELDS.items()}
        self.count, self.kind, self.restores = value["count"], value["kind"], bool(value["restores"])
        self.lds, self.address, self.size = value["lds"], value["address"], 1 << value["size"]
        self.notifies, iterates, gathers = bool(value["notifies"]), value["iterates"], value["gathers"]
        self.barrier = 8 * value["barrier"]
        tile, extents = [field(*where) for where in TILE], [field(*where) for where in EXTENTS]
        strides = [1, *(field(*where) for where in STRIDES)]
        self.steps = (0, 0, 1)
        if iterates and not gathers:
            self.steps = (extents[3], strides[3], tile[3] + 1)
            tile[3:] = [0, 0]
        self.rows: list[int] | None = None
        if gathers:
            width = 32 if value["wide_rows"] else 16
            per_group = 128 // width
            self.rows = [field(2 + i // per_group, i % per_group * width, width) for i in range(2 * per_group)]
            self.rows = self.rows[: tile[1]]
            tile[2:] = [0, 0, 0]
        self.valid = self.count != 0 and tile[0] > 0 and self.rows != []
        self.tile = [n or 1 for n in tile]
        # A dimension that is not used has no bound.
        self.extents = [e if n or i == 0 else 1 for i, (e, n) in enumerate(zip(extents, tile, strict=True))]
        if gathers:
            self.extents[1] = extents[1]
        self.strides = strides
        self.padding: tuple[int, int] | None = None
        if value["pads"]:
            self.padding = 4 << value["interval"] + 1, 4 * (value["amount"] + 1)

    def reason_against(self, loads: bool) -> tuple[str, str] | None:
        """What is wrong with it, and how to put it right."""
        if self.count == 0:
            return None
        if self.kind != 2 or self.count != 1 or self.restores:
            return f"the descriptor has type {self.kind} and count {self.count}", "type is 2 and count 1 (0: no copy)"
        if self.notifies and not self.valid:
            return "the descriptor asks for an arrival at a barrier after a copy of nothing", (
                "clear atomic_barrier_enable, or set count to 0 where the wave has nothing to do"
            )
        if self.rows and len(self.rows) < self.tile[1]:
            return f"the descriptor lists {self.tile[1]} rows", "at most 16 of 16 bits, or 8 of 32 bits"
        if self.steps[2] > MOST_REPEATS:
            return f"the descriptor repeats {self.steps[2]} times", "repeat at most 256 times"
        if loads and self.padding is not None and self.tile[0] * self.size % 4:
            return f"padding with rows of {self.tile[0] * self.size} bytes", "rows of whole dwords"
        return None

    def places(self, loads: bool) -> tuple[Array, Array, Array]:
        """Every element of the tile: byte offsets in global memory and in LDS, and whether the tensor has it."""
        shape = tuple(reversed(self.tile))
        grid = np.meshgrid(*(np.arange(n, dtype=np.int64) for n in shape), indexing="ij", sparse=True)
        axes: list[Array] = list(grid)[::-1]
        if self.rows is not None:
            axes[1] = np.array(self.rows, np.int64).reshape(axes[1].shape)
        inside, far = np.ones(shape, bool), np.zeros(shape, np.int64)
        for axis, extent, stride in zip(axes, self.extents, self.strides, strict=True):
            inside &= axis < extent
            far = far + axis * stride
        near = np.arange(far.size, dtype=np.int64)
        far, inside = far.ravel(), inside.ravel()
        lds_step, far_step, times = self.steps
        if times > 1:
            turns = np.arange(times, dtype=np.int64)[:, None]
            far, inside = (far + turns * far_step).ravel(), np.tile(inside, times)
            near = near + turns * lds_step
        near = self._padded(near * self.size) if loads else near * self.size
        return far * self.size, near.ravel(), inside

    def _padded(self, near: Array) -> Array:
        if self.padding is None:
            return near
        interval, amount = self.padding
        return near + near // interval * amount


def build(c: Compiler, inst: Inst) -> list[Op]:
    """``tensor.load.to.lds`` and ``tensor.store.from.lds``, with two or four groups."""
    loads = ".load." in (inst.callee or "")
    groups = 2 if (inst.callee or "").endswith(".d2") else 4
    slots = [c.slot(o) for o in inst.operands[:groups]]
    guard = poison.guard(c, inst, list(range(groups)), "the descriptor")

    def run(r: list[Any], m: Machine) -> None:
        values = [r[s] for s in slots]
        _check_uniform(m, inst, values)
        words = [
            np.broadcast_to(first_of_wave(m, v)[:, :, 0], (*m.shape[:2], v.shape[-1])).astype(np.uint64) for v in values
        ]
        kept: dict[bytes, Any] = {}
        for group, wave in np.argwhere(m.active_waves()).tolist():
            packed = [sum(int(w) << 32 * i for i, w in enumerate(part[group, wave])) for part in words]
            descriptor, who = Descriptor(packed), Who(group, wave)
            _move(m, inst, descriptor, who, loads, kept)
            if descriptor.notifies and descriptor.valid:
                mbarrier.arrive_after_copy(m, inst, descriptor.barrier, who)

    return [guard, run] if guard else [run]


def _check_uniform(m: Machine, inst: Inst, values: list[Array]) -> None:
    from .buffers import differs_in_wave

    for value in values:
        if value.shape[2] > 1 and any(differs_in_wave(m, value[..., i]) for i in range(value.shape[-1])):
            m.fault(inst, "the descriptor differs between the lanes of a wave, which has one for all",
                    None, "compute it from uniform values, or with readfirstlane")  # fmt: skip


def _move(m: Machine, inst: Inst, d: Descriptor, who: Who, loads: bool, kept: dict[bytes, Any]) -> None:
    """Moves one wave's tile.

    Args:
        m: The machine.
        inst: The instruction.
        d: The descriptor.
        who: The wave.
        loads: Towards LDS.
        kept: Places of tiles that other waves had in the same form.
    """
    reason = d.reason_against(loads)
    if reason is not None:
        m.fault(inst, reason[0], of_wave(m, who), reason[1])
    if not d.valid:
        return
    key = repr((d.tile, d.extents, d.strides, d.rows, d.steps, d.padding, d.size)).encode()
    if key not in kept:
        kept[key] = d.places(loads)
    far, near, inside = kept[key]
    address = (np.uint64(d.address) + far[inside].view(np.uint64)).astype(np.uint64)
    _check(m, inst, m.heap, address, d.size, who, not loads)
    lds = d.lds + near if loads else d.lds + near[inside]
    _check(m, inst, m.lds, lds.astype(np.uint32), d.size, who, loads)
    lds = lds + who.group * m.lds_copy_bytes
    lane = (who.group * m.waves + who.wave) * m.wave_size
    rows = np.full(len(address), lane, np.int64)
    far_unit = unit_of(d.size, known_alignment(address)) if len(address) else 1
    global_side = transfer.Located(m.heap, (address - np.uint64(m.heap.base)).view(np.int64), True, far_unit, rows)
    if m.launch.profile is not None and len(address):
        m.launch.profile.note(m, inst, "global", address, d.size, True, rows)
    near_unit = unit_of(d.size, known_alignment(lds)) if len(lds) else 1
    if loads:
        data = np.zeros((len(lds), d.size), np.uint8)
        if len(address):
            data[inside] = transfer.read(m, inst, global_side, d.size).view(np.uint8)
        _write_lds(m, inst, lds, data, near_unit, who)
        if m.program.origins is not None:
            origin_memory.copied(m, m.program.origins, inst, lds[inside], global_side.offset, d.size)
    elif len(lds):
        if m.program.checks.lds:
            m.shadow.on_read(m, inst, m.shadow.indices(lds, d.size), dma=True, who=who)
        raw = np.ascontiguousarray(m.lds.gather(lds, d.size, near_unit)).view(np.uint8)
        transfer.write(m, inst, global_side, raw)


def _write_lds(m: Machine, inst: Inst, lds: Array, data: Array, unit: int, who: Who) -> None:
    m.writes += 1
    if m.program.checks.lds:
        index = m.shadow.indices(lds, data.shape[-1])
        # Waves that load the same tile to the same place at once do no harm.
        now = np.ascontiguousarray(m.lds.gather(lds, data.shape[-1], unit)).view(np.uint8)
        same = m.shadow.is_of(index, inst) & (now == data).all(axis=-1).reshape((-1,) + (1,) * (index.ndim - 1))
        m.shadow.on_write(m, inst, index, DMA, who=who, excused=same)
    m.lds.scatter(lds, np.ascontiguousarray(data).view(UNITS[unit]), unit)


def _check(m: Machine, inst: Inst, space: Space, address: Array, size: int, who: Who, write: bool) -> None:
    """Bounds, with all elements of the tile that the tensor has."""
    if not len(address):
        return
    bad = None if space.find(address, size) is not None else space.outside(address, size)
    if bad is not None and bad.any():
        first = int(address[bad][0])
        m.fault(
            inst, f"{'writes' if write else 'reads'} {size} bytes out of bounds, at "
            f"{transfer.show(m, space.name, first)}, element {int(np.flatnonzero(bad)[0])} of the tile",
            of_wave(m, who), "check the tile's address, extents and strides",
        )  # fmt: skip
    if write:
        for region in space.touched(address):
            if region.readonly:
                m.fault(inst, f"store into read-only {region.name}", of_wave(m, who), "pass a writeable array")
            region.written = True


TABLE = dict.fromkeys(
    (f"amdgcn.tensor.{name}{form}" for name in ("load.to.lds", "store.from.lds") for form in ("", ".d2")), build
)
