"""What a simulation found and counted."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ..errors import LaunchError, SimError
from .profile import table

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..target import Target

FOOTER = "Checked: the LLVM IR as written. Out of scope: waits and hazards that LLVM's back end adds to it, and timing."


class SimReport:
    """The result of a run without faults.

    Attributes:
        kernel: Name of the kernel.
        target: Target id.
        grid: Workgroups per axis.
        block: Work items per axis.
        wave_size: Lanes in a wave.
        seconds: Wall time of the run, compilation to closures included, that of the second engine not.
        engine: ``numpy``, ``jit``, or ``numpy, then jit`` where the second engine took over on the way.
        engine_note: Why the second engine did not run although it was considered.
        compile_seconds: Time that making host code for the second engine took.
        instructions: Dynamic instructions, counted per wave, by kind.
        lane_instructions: Dynamic instructions, counted per running lane.
        matrix_flops: Multiplications and additions of matrix instructions.
        matrix_cycles: Issue cycles of matrix instructions, summed over waves, where the caller knows their costs.
        divergences: Branches at which lanes of a chunk (on the second engine: of a workgroup) went both ways.
        clipped: Lanes whose buffer access went past the end of the descriptor, by author's location.
        warnings: What is legal but probably not meant.
        lds_bytes: LDS of a workgroup.
        lines: Counts per author's line, see `profile.rows_by_line`.
        profiled: Memory traffic and bank conflicts were counted.
        occupancy: Registers and LDS of the code object, and how many waves they allow (`Occupancy.to_dict`); ``None``
            where it is not known.
        banks: Words that each LDS bank was asked for, per LDS instruction (location and text).
        footer: What the report does not cover.
        writers: Who wrote a byte of an array argument last (`writer_of`); ``None`` without ``checks="all"``.
    """

    def __init__(self, kernel: str, target: str, grid: tuple[int, ...], block: tuple[int, ...]) -> None:
        self.kernel, self.target, self.grid, self.block = kernel, target, grid, block
        self.wave_size = 0
        self.seconds = 0.0
        self.engine, self.engine_note = "numpy", ""
        self.compile_seconds = 0.0
        self.instructions: dict[str, int] = {}
        self.lane_instructions = 0
        self.matrix_flops = 0
        self.matrix_cycles: int | None = None
        self.divergences = 0
        self.clipped: dict[str, int] = {}
        self.warnings: list[str] = []
        self.lds_bytes = 0
        self.lines: list[dict[str, Any]] = []
        self.profiled = False
        self.banks: dict[str, list[int]] = {}
        self.occupancy: dict[str, Any] | None = None
        self.footer = FOOTER
        self.writers: Callable[[int, int], str | None] | None = None

    def writer_of(self, argument: int, byte: int) -> str | None:
        """The instruction that stored a byte of an array argument last: text, author's line, workgroup and wave.

        The way from a wrong element to the line that stored it, and to those that read from LDS what it is made from.
        ``None`` where the kernel did not write the byte.

        Args:
            argument: Number of the argument.
            byte: Offset in bytes from the array's first element.

        Raises:
            SimError: The run did not keep it.
        """
        if self.writers is None:
            raise SimError("this run did not keep who wrote what", fix='simulate with checks="all"')
        return self.writers(argument, byte)

    @property
    def clipped_lanes(self) -> int:
        """Lanes whose buffer access was clipped."""
        return sum(self.clipped.values())

    def add_resources(self, resources: Any, target: Target) -> None:
        """Adds what the code object's registers and LDS allow.

        Args:
            resources: A ``KernelInfo``: ``vgpr_count`` (all vector registers), ``agpr_count``, ``sgpr_count``,
                ``lds_bytes``, ``scratch_bytes``, and the numbers of spilled registers.
            target: Where it runs.
        """
        if not hasattr(resources, "vgpr_count"):
            raise LaunchError(f"resources are {resources!r}", fix='pass code_object.kernels["name"]')
        size = self.block[0] * self.block[1] * self.block[2]
        lds = max(int(resources.lds_bytes), self.lds_bytes)
        found = target.occupancy(resources.vgpr_count, resources.sgpr_count, lds, size)
        names = ("vgpr_count", "agpr_count", "sgpr_count", "vgpr_spill_count", "sgpr_spill_count", "scratch_bytes")
        used = {name: int(getattr(resources, name)) for name in names}
        self.occupancy = {**found.to_dict(), **used, "lds_bytes": lds}

    def _engine_text(self) -> str:
        made = f", host code made in {self.compile_seconds:.3f} s" if self.compile_seconds else ""
        return made + (f" ({self.engine_note})" if self.engine_note else "")

    def to_dict(self) -> dict[str, Any]:
        """All attributes as JSON-ready values; ``writers`` is a function and not among them."""
        out = {k: list(v) if isinstance(v, tuple) else v for k, v in vars(self).items() if k != "writers"}
        out["clipped_lanes"] = self.clipped_lanes
        return out

    def to_json(self) -> str:
        """The report as JSON text."""
        return json.dumps(self.to_dict(), indent=2)

    def to_html(self) -> str:
        """The report as an HTML page; with ``profile=True`` it has traffic and bank conflicts."""
        from .html import page

        return page(self)

    def render(self) -> str:
        """The report as text."""
        total = sum(self.instructions.values())
        cycles = f" in {self.matrix_cycles} issue cycles" if self.matrix_cycles is not None else ""
        lines = [
            f"@{self.kernel} on {self.target}: grid {_dims(self.grid)}, block {_dims(self.block)}, "
            f"LDS {self.lds_bytes} bytes, {self.seconds:.3f} s, no fault found",
            f"  engine: {self.engine}{self._engine_text()}",
            f"  {total} wave instructions, {self.lane_instructions} lane instructions, "
            f"{self.matrix_flops} matrix FLOPs{cycles}, {self.divergences} divergent branches",
        ]
        for kind, count in sorted(self.instructions.items(), key=lambda item: -item[1]):
            lines.append(f"  {count:>12}  {kind}")
        for where, count in self.clipped.items():
            lines.append(f"  {count:>12}  lanes clipped by the descriptor at {where}")
        if self.occupancy is not None:
            lines.extend(f"  {text}" for text in occupancy_lines(self.occupancy))
        if self.profiled:
            lines.extend(table(self.lines))
        lines.extend(f"  warning: {text}" for text in self.warnings)
        return "\n".join([*lines, f"  {self.footer}"])


_RESOURCES = {"vgprs": "vector registers", "sgprs": "scalar registers", "lds": "LDS", "waves": "wave slots",
              "workgroups": "workgroup slots"}  # fmt: skip


def occupancy_lines(found: dict[str, Any]) -> list[str]:
    """The occupancy as text."""
    limits = ", ".join(f"{_RESOURCES[name]} {count}" for name, count in found["limits"].items())
    spills = found["vgpr_spill_count"] + found["sgpr_spill_count"]
    spilled = f", {spills} registers spilled" if spills else ""
    return [
        f"occupancy: {found['waves_per_simd']} waves per SIMD, limited by {_RESOURCES[found['limited_by']]}; "
        f"{found['workgroups']} workgroups on four SIMDs",
        f"  waves that each would allow: {limits}",
        f"  used: {found['vgpr_count']} vector registers ({found['agpr_count']} for accumulation), "
        f"{found['sgpr_count']} scalar, {found['lds_bytes']} bytes of LDS, {found['scratch_bytes']} of scratch"
        + spilled,
    ]


def _dims(dims: tuple[int, ...]) -> str:
    return "x".join(map(str, dims))
