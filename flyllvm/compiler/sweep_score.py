"""How trials are ranked."""

from __future__ import annotations

from ..errors import CodegenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .artifact import Artifact
    from .sweep import Trial


def waves_per_simd(artifact: Artifact) -> int:
    """Waves of the kernel that a SIMD can hold at once: by registers, and by LDS where the block size is known."""
    info, block = artifact.code_object.kernels[artifact.name], artifact.known_block_size
    size = None if block is None else block[0] * block[1] * block[2]
    # The metadata's vector registers hold the accumulation registers too, where the file is one.
    lds = info.lds_bytes + (artifact.dynamic_lds_bytes or 0)
    return artifact.target.occupancy(info.vgpr_count, info.sgpr_count, lds, size).waves_per_simd


def _registers(f: dict[str, Any]) -> tuple[float, ...]:
    return f["vgpr_count"], f["sgpr_count"], f["lds_bytes"], f["code_bytes"]


def _occupancy(f: dict[str, Any]) -> tuple[float, ...]:
    return -f["waves_per_simd"], f["vgpr_count"], f["lds_bytes"]


def _code(f: dict[str, Any]) -> tuple[float, ...]:
    return (f["code_bytes"],)


RANKS = {"registers": _registers, "occupancy": _occupancy, "code": _code}


def score_of(by: Any, trial: Trial) -> tuple[float, ...]:
    """The score of a trial; whatever it is ranked by, spills and scratch memory come first.

    Raises:
        CodegenError: The function gave no number.
    """
    if isinstance(by, str):
        own = RANKS[by](trial.facts)
    else:
        given = by(trial)
        own = tuple(given) if isinstance(given, (tuple, list)) else (given,)
        if not all(isinstance(x, (int, float)) and x == x for x in own):
            raise CodegenError(f"rank gave {given!r} for {trial.config}", fix="return a number, or a tuple of numbers")
        return own
    return trial.facts["spills"], trial.facts["scratch_bytes"], *own
