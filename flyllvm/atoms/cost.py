"""What the rows' costs say about a run."""

from __future__ import annotations

from . import all_rows
from .rows import RowMma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

_PREFIX = "llvm.amdgcn."
_MATRIX = ("amdgcn.mfma.", "amdgcn.smfmac.", "amdgcn.wmma.", "amdgcn.swmmac.")


def matrix_cycles(instructions: Mapping[str, int], processor: str) -> int | None:
    """Issue cycles of the matrix instructions of a run, summed over its waves.

    Args:
        instructions: Executions in waves, by name of the intrinsic with or without ``llvm.amdgcn.``.
        processor: The chip.

    Returns:
        ``None`` where there are no matrix instructions, or the cost of one of them is unknown.
    """
    counts = {name.removeprefix("llvm.").removeprefix("amdgcn."): n for name, n in instructions.items()}
    counts = {name: n for name, n in counts.items() if f"amdgcn.{name}".startswith(_MATRIX)}
    if not counts:
        return None
    cycles = _CYCLES.get(processor, {})
    if counts.keys() - cycles.keys():
        cycles = _CYCLES[processor] = _cycles_of(processor)
    if counts.keys() - cycles.keys():
        return None
    return sum([n * cycles[name] for name, n in counts.items()])


# Making all rows takes longer than many a simulated run.
_CYCLES: dict[str, dict[str, int]] = {}


def _cycles_of(processor: str) -> dict[str, int]:
    """Issue cycles of the matrix instructions of a chip, by name without ``llvm.amdgcn.``."""
    return {
        op.row.intrinsic.removeprefix(_PREFIX): op.row.cycles[processor]
        for op in all_rows()
        if isinstance(op, RowMma) and processor in op.row.cycles
    }
