"""How trials are ranked."""

from __future__ import annotations

from ..errors import CodegenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .artifact import Artifact
    from .sweep import Trial

_SIMDS = 4


def waves_per_simd(artifact: Artifact) -> int:
    """Waves of the kernel that a SIMD can hold at once: by vector registers, and by LDS where the block size is known.

    Units: LDS of a compute unit (CDNA) or of a pair of them (RDNA) feeds four SIMDs.
    """
    target, info = artifact.target, artifact.code_object.kernels[artifact.name]
    chip = target.chip
    cdna = chip.family.startswith("cdna")
    # In wave64 mode a register of an RDNA chip is two of wave32's.
    file = chip.vgpr_total if cdna or target.wave_size == 32 else chip.vgpr_total // 2
    granule = chip.vgpr_granule if cdna or target.wave_size == 32 else chip.vgpr_granule // 2
    # The metadata's vector registers hold the accumulation registers too, where the file is one.
    used = max(info.vgpr_count, 1)
    waves = min(chip.max_waves_per_simd, file // (-(-used // granule) * granule))
    block = artifact.known_block_size
    lds = info.lds_bytes + (artifact.dynamic_lds_bytes or 0)
    if block is not None and lds:
        in_group = -(-(block[0] * block[1] * block[2]) // target.wave_size)
        groups = (target.lds_bytes if cdna else 2 * target.lds_bytes) // lds
        waves = min(waves, max(groups * in_group // _SIMDS, 1))
    return int(waves)


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
