"""Transposing loads: every lane reads its own address, then a group of lanes exchanges elements.

The machine does the reads (with its checks) and hands the bytes of all lanes to the exchange here.  Result element
``e`` of lane ``i`` of a group comes from:

- ds.read.tr16.b64 (gfx950, 16 lanes, 4 elements): lane ``4*e + i // 4``, element ``i % 4``;
- ds.read.tr8.b64 (gfx950, 16 lanes, 8 elements): lane ``2*e + i // 8``, element ``i % 8``;
- ds.read.tr4.b64 and ds.read.tr6.b96 (gfx950, 16 lanes, 16 elements): lane ``e``, element ``i``;
- ds.load.tr16.b128 (gfx1250) and global.load.tr.b128 (gfx1250, gfx1200, gfx1201; 8 lanes, 8 elements): lane ``e``,
  element ``i``;
- ds.load.tr8.b64 (gfx1250) and global.load.tr.b64 (gfx1250, gfx1200, gfx1201; 16 lanes, 8 elements): lane
  ``4*(i // 8) + e % 4 + 8*(e // 4)``, element ``i % 8``.
- ds.load.tr4.b64, ds.load.tr6.b96 and their global forms (gfx1250, 16 lanes, 16 elements): lane ``e``, element ``i``,
  as gfx950's.  Public sources contradict each other on these four, so the machine warns where it runs one.

No lane map is public for wave64 on gfx12: that is refused.

Source: CDNA4 ISA manual, DS_READ_B64_TR_*; for gfx12 and gfx1250 layouts published by compilers and reported hardware
measurements (the 8-bit global form byte by byte, on gfx1201).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..errors import SimError
from ..target import Target
from .matrix_core import grid
from .matrix_element import AnyArray
from .matrix_fragment import Index

#: What the meaning of a disputed one rests on.
ASSUMED = "public sources contradict each other on its lane map; gfx950's is assumed"
_950 = ("gfx950",)
_1250 = ("gfx1250",)
_ALL_GFX12 = ("gfx1200", "gfx1201", "gfx1250")


class TransposeLoad:
    """One transposing load.

    Attributes:
        name: Intrinsic name without ``llvm.amdgcn.`` and type suffixes.
        targets: Processors whose lane map is known.
        group: Lanes that exchange elements.
        element_bits: Width of an element in bits.
        lane_bytes: Bytes that each lane reads and gets.
        source_lane: Lane of the group that each result element comes from.  Shape: ``(group, elements)``.
        source_element: Element of that lane's read.  Shape: ``(group, elements)``.
        disputed: Whether public sources contradict each other on the lane map.
    """

    __slots__ = ("disputed", "element_bits", "group", "lane_bytes", "name", "source_element", "source_lane", "targets")

    def __init__(
        self,
        name: str,
        targets: tuple[str, ...],
        group: int,
        element_bits: int,
        elements: int,
        source: Callable[[Index, Index], tuple[Index, Index]],
        *,
        disputed: bool = False,
    ) -> None:
        self.name = name
        self.disputed = disputed
        self.targets = targets
        self.group = group
        self.element_bits = element_bits
        self.lane_bytes = element_bits * elements // 8
        lane, element = grid(group, elements)
        self.source_lane, self.source_element = source(lane, element)

    def __call__(self, data: AnyArray) -> AnyArray:
        """The exchange.

        Shape: ``data`` and the result are uint8 ``(waves, lanes, lane_bytes)``: what each lane read, what it gets.
        """
        waves, lanes, size = data.shape
        if size != self.lane_bytes or lanes % self.group:
            raise SimError(
                f"{self.name}: data of shape {data.shape}",
                fix=f"{self.lane_bytes} bytes per lane in whole groups of {self.group} lanes",
            )
        if self.element_bits % 8:
            cells = np.unpackbits(data, axis=2, bitorder="little")
        else:
            cells = data
        grouped = cells.reshape(waves, lanes // self.group, self.group, self.source_lane.shape[1], -1)
        moved = grouped[:, :, self.source_lane, self.source_element].reshape(waves, lanes, -1)
        return np.packbits(moved, axis=2, bitorder="little") if self.element_bits % 8 else moved


def _square(lane: Index, element: Index) -> tuple[Index, Index]:
    return element, lane


def _bytes(lane: Index, element: Index) -> tuple[Index, Index]:
    return 4 * (lane // 8) + element % 4 + 8 * (element // 4), lane % 8


_LOADS = (
    TransposeLoad("ds.read.tr16.b64", _950, 16, 16, 4, lambda i, e: (4 * e + i // 4, i % 4)),
    TransposeLoad("ds.read.tr8.b64", _950, 16, 8, 8, lambda i, e: (2 * e + i // 8, i % 8)),
    TransposeLoad("ds.read.tr4.b64", _950, 16, 4, 16, _square),
    TransposeLoad("ds.read.tr6.b96", _950, 16, 6, 16, _square),
    TransposeLoad("ds.load.tr16.b128", _1250, 8, 16, 8, _square),
    TransposeLoad("global.load.tr.b128", _ALL_GFX12, 8, 16, 8, _square),
    TransposeLoad("ds.load.tr8.b64", _1250, 16, 8, 8, lambda i, e: (4 * (i // 8) + e % 4 + 8 * (e // 4), i % 8)),
    TransposeLoad(
        "global.load.tr.b64", _ALL_GFX12, 16, 8, 8, lambda i, e: (4 * (i // 8) + e % 4 + 8 * (e // 4), i % 8)
    ),
    TransposeLoad("ds.load.tr4.b64", _1250, 16, 4, 16, _square, disputed=True),
    TransposeLoad("ds.load.tr6.b96", _1250, 16, 6, 16, _square, disputed=True),
    TransposeLoad("global.load.tr4.b64", _1250, 16, 4, 16, _square, disputed=True),
    TransposeLoad("global.load.tr6.b96", _1250, 16, 6, 16, _square, disputed=True),
)
LOADS: dict[str, TransposeLoad] = {load.name: load for load in _LOADS}


def is_transposing(name: str) -> bool:
    """Whether an intrinsic name (type suffixes may stay on) is a transposing load."""
    return any(name == n or name.startswith(n + ".") for n in LOADS)


def prepare(name: str, *, wave_size: int, target: Target) -> TransposeLoad:
    """The exchange of a transposing load.

    Raises:
        SimError: No lane map of this form is public for the target or the wave size.
    """
    load = next((x for n, x in LOADS.items() if name == n or name.startswith(n + ".")), None)
    if load is None:
        raise SimError(f"no lane map of {name} is public", fix=f"known transposing loads: {', '.join(LOADS)}")
    if target.processor not in load.targets:
        legal = ", ".join(load.targets)
        raise SimError(f"no lane map of {load.name} is public for {target.processor}", fix=f"known for: {legal}")
    if load.targets != _950 and wave_size != 32:
        raise SimError(
            f"no lane map of {load.name} is public for waves of {wave_size}", fix="simulate with wave_size=32"
        )
    return load
