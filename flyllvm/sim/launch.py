"""What all chunks of one run share: grid, buffers, counters."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import LaunchError
from . import arguments, types as ty
from .compile import Program
from .global_race import GlobalShadow
from .ir import Inst
from .profile import Profile
from .values import Array, scalar

# Place and limit of the argument segment behind the buffers, in bytes.
_KERNARG_OFFSET, _KERNARG_BYTES = 2048, 4096


class Launch:
    """What all chunks of a launch share."""

    def __init__(
        self, program: Program, grid: tuple[int, int, int], block: tuple[int, int, int], wave_size: int,
        dynamic_lds_bytes: int, max_steps: int, buffers: arguments.Buffers,
    ) -> None:  # fmt: skip
        self.program, self.grid, self.block, self.wave_size = program, grid, block, wave_size
        self.block_lanes = block[0] * block[1] * block[2]
        self.waves = -(-self.block_lanes // wave_size)
        self.dynamic_lds_bytes, self.max_steps = dynamic_lds_bytes, max_steps
        self.buffers, self.heap = buffers, buffers.space
        # per node: runs, running lanes, waves with a running lane
        self.counts = [[0, 0, 0] for _ in program.nodes]
        self.clipped: dict[Inst, int] = {}
        self.warnings: dict[str, None] = {}
        # Pairs of lines whose disagreement on an order in LDS was warned of.
        self.disagreeing: set[tuple[str, str]] = set()
        # How many tiles of an operand, or of several, are mixed but may be meant (`operand_order`).
        self.excused: dict[Any, int] = {}
        self.races: GlobalShadow | None = None
        self.profile: Profile | None = None
        # Clocks that atomic operations left at global addresses, and those of other workgroups that each one has seen.
        self.places: dict[int, dict[int, Array]] = {}
        self.foreign: dict[int, dict[int, Array]] = {}
        self.kernarg = np.zeros(1, np.uint8)
        if program.checks.global_races:
            self.races = GlobalShadow(self, self.heap.data.size, program.heap_granule)

    @property
    def watched(self) -> bool:
        """Whether someone wants to see each global access lane by lane."""
        return self.races is not None or self.profile is not None

    def group_name(self, linear: int) -> str:
        """Coordinates of a workgroup as text."""
        x, y, _ = self.grid
        return f"({linear % x}, {linear // x % y}, {linear // (x * y)})"

    def count_clipped(self, inst: Inst, lanes: int) -> None:
        """Counts lanes whose buffer access was out of the descriptor's range."""
        if lanes:
            self.clipped[inst] = self.clipped.get(inst, 0) + lanes

    def warn(self, inst: Inst, what: str) -> None:
        """Notes something legal that is probably not meant, once per instruction."""
        self.warnings[f"{self.program.where(inst)}: '{self.program.text_of(inst)}': {what}"] = None

    def dispatch_pointer(self) -> Array:
        """Address of the dispatch packet (workgroup and grid size at bytes 4 and 12).

        Source: HSA Runtime specification, kernel dispatch packet.
        """
        packet = np.zeros(64, np.uint8)
        packet[4:10].view(np.uint16)[:] = self.block
        packet[12:24].view(np.uint32)[:] = [g * b for g, b in zip(self.grid, self.block, strict=True)]
        return self._place(packet, 0, "the dispatch packet")

    def implicit_pointer(self) -> Array:
        """Address of the implicit kernel arguments (block counts, group sizes, remainders, dimensions).

        Source: LLVM AMDGPUUsage, code object V5 implicit arguments.
        """
        hidden = np.zeros(256, np.uint8)
        hidden[0:12].view(np.uint32)[:] = self.grid
        hidden[12:18].view(np.uint16)[:] = self.block
        hidden[64:66].view(np.uint16)[:] = 3 if self.grid[2] > 1 else 2 if self.grid[1] > 1 else 1
        hidden[120:124].view(np.uint32)[:] = self.dynamic_lds_bytes
        return self._place(hidden, 1024, "the implicit arguments")

    def kernarg_pointer(self) -> Array:
        """Address of the packed kernel arguments."""
        return self._place(self.kernarg, _KERNARG_OFFSET, "the kernel arguments")

    def by_reference(self, values: list[Any]) -> list[Any]:
        """Packs the arguments; those passed by reference become pointers to their place in the segment."""
        kernel = self.program.kernel
        self.kernarg, offsets = arguments.kernarg(kernel, values)
        if self.kernarg.size > _KERNARG_BYTES:
            raise LaunchError(
                f"@{kernel.name} has {self.kernarg.size} bytes of arguments", fix="pass large data in a buffer"
            )
        out = list(values)
        for i, param in enumerate(kernel.params):
            if "byref" in param.attrs:
                out[i] = self.kernarg_pointer() + np.uint64(offsets[i])
        return out

    def _place(self, data: Array, offset: int, name: str) -> Array:
        address = self.buffers.tail + offset
        self.heap.add_region(name, address, data)
        return scalar(ty.I64, address)
