"""Memory of the machine: byte arrays with exact bounds.

An address space is one flat NumPy byte array.  The regions that a kernel may touch (buffers, LDS variables, stack
slots) lie in it with guard gaps between them, so that an access one byte past the end of one is found.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import Any

import numpy as np

from .values import Array

UNITS: dict[int, Any] = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}
HEAP_BASE = 0x7A00_0000_0000
GUARD_BYTES = 4096


class Region:
    """A range of addresses a kernel may use; ``written`` is set by the first store into it.

    Units: ``start`` and ``size`` in bytes.
    """

    __slots__ = ("name", "readonly", "size", "start", "written")

    def __init__(self, name: str, start: int, size: int, readonly: bool = False) -> None:
        self.name, self.start, self.size, self.readonly = name, start, size, readonly
        self.written = False


def aligned_bytes(size: int) -> Array:
    """Zeroed bytes, padded to 64 and aligned to 64."""
    raw = np.zeros(-(-size // 64) * 64 + 64, np.uint8)
    skip = -raw.ctypes.data % 64
    return raw[skip : skip + raw.size - 64]


class Space:
    """A flat byte array with regions.

    Attributes:
        name: ``global``, ``LDS`` or ``private``.
        base: Address of byte 0 of each copy.
        copy_bytes: Bytes of one copy (one per workgroup for LDS, per lane for private memory), or 0 for one copy.
    """

    def __init__(self, name: str, base: int, regions: list[Region], copy_bytes: int, copies: int) -> None:
        self.name, self.base = name, base
        self.regions = sorted(regions, key=lambda r: r.start)
        self.starts = [r.start for r in self.regions]
        self.copy_bytes = copy_bytes
        self.data = aligned_bytes(copy_bytes * copies)
        self.views = {unit: self.data.view(dtype) for unit, dtype in UNITS.items()}

    def region_of(self, address: int) -> Region | None:
        """The last region that starts at or before an address."""
        index = bisect_right(self.starts, address) - 1
        return self.regions[index] if index >= 0 else None

    def add_region(self, name: str, address: int, data: Array) -> None:
        """Puts read-only bytes at an address inside the array, unless they are there already."""
        if any(r.start == address for r in self.regions):
            return
        self.data[address - self.base : address - self.base + data.size] = data
        self.regions = sorted([*self.regions, Region(name, address, data.size, True)], key=lambda r: r.start)
        self.starts = [r.start for r in self.regions]

    def find(self, address: Array, byte_count: int) -> Region | None:
        """The region that holds all of these accesses, if one does (else `outside` tells which are wrong)."""
        low, high = int(address.min()), int(address.max())
        index = bisect_right(self.starts, low) - 1
        if index < 0:
            return None
        region = self.regions[index]
        return region if high + byte_count <= region.start + region.size else None

    def touched(self, address: Array) -> list[Region]:
        """Regions that these (valid) addresses lie in."""
        index = np.searchsorted(np.array(self.starts, np.uint64), address.astype(np.uint64), side="right") - 1
        return [self.regions[i] for i in np.unique(index)]

    def outside(self, address: Array, byte_count: int) -> Array:
        """Which addresses do not lie in any region with all their bytes."""
        if not self.regions:
            return np.ones(address.shape, bool)
        starts = np.array(self.starts, np.uint64)
        ends = np.array([r.start + r.size for r in self.regions], np.uint64)
        wide = address.astype(np.uint64)
        index = np.searchsorted(starts, wide, side="right").astype(np.int64) - 1
        end = ends[np.maximum(index, 0)]
        return (index < 0) | (wide > end) | (end - np.minimum(wide, end) < byte_count)

    def gather(self, offset: Array, byte_count: int, unit: int) -> Array:
        """Bytes at flat offsets.

        Shape: ``offset`` of any shape; the result has one more axis, of ``byte_count // unit`` units.
        """
        view, shift = self.views[unit], unit.bit_length() - 1
        index = offset >> shift if shift else offset
        count = byte_count // unit
        if count == 1:
            return view.take(index, mode="clip")[..., None]
        return view.take(index[..., None] + np.arange(count), mode="clip")

    def scatter(self, offset: Array, data: Array, unit: int) -> None:
        """Writes units to flat offsets; of lanes that hit the same place the last one wins.

        Shape: ``data`` is ``offset.shape + (units,)``.
        """
        view, shift = self.views[unit], unit.bit_length() - 1
        index = offset >> shift if shift else offset
        if data.shape[-1] == 1:
            view[index] = data[..., 0]
        else:
            view[index[..., None] + np.arange(data.shape[-1])] = data


def unit_of(byte_count: int, alignment: int) -> int:
    """The widest unit that divides an access of that size at that alignment."""
    low = byte_count & -byte_count
    return min(low, alignment & -alignment if alignment else 16, 16)


def known_alignment(address: Array) -> int:
    """The alignment in bytes that all addresses have, up to 16."""
    bits = int(np.bitwise_or.reduce(address, axis=None)) if address.size > 1 else int(address.flat[0])
    return min(16, bits & -bits) if bits else 16
