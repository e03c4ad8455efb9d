"""The meaning of AMDGPU matrix intrinsics as pure NumPy functions.

The machine asks `supports` once per intrinsic name and `prepare` once per call in the program (the immediates are
constants there); the prepared function then takes the register arrays of all waves at once.  `evaluate` does both.

EXEC is ignored by these instructions: they compute for all lanes.  The machine refuses waves with inactive lanes.

Names come without the ``llvm.amdgcn.`` prefix; type suffixes of overloaded intrinsics may stay on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..errors import SimError
from ..target import Target
from . import matrix_mfma
from .matrix_core import AnyArray, Prepared, split_arguments


def supports(name: str) -> bool:
    """Whether `prepare` knows an intrinsic (on some target)."""
    return name in matrix_mfma.ROWS


def flops(name: str) -> int:
    """Multiplications and additions that one wave does in one call; zero for intrinsics that only move or convert."""
    return matrix_mfma.ROWS[name].flops


def immediate_positions(name: str) -> tuple[int, ...]:
    """Argument positions that LLVM requires to be constants."""
    _known(name)
    return matrix_mfma.IMMEDIATES


@lru_cache(maxsize=512)
def prepare(name: str, immediates: tuple[int, ...], *, wave_size: int, target: Target) -> Prepared:
    """A function of the non-constant arguments, in LLVM's order, with everything else bound.

    Args:
        name: Intrinsic name without ``llvm.amdgcn.``.
        immediates: The constant arguments, in LLVM's order.
        wave_size: Lanes in a wave.
        target: Processor; it decides which instructions exist, the flavour of fp8 and the handling of denormals.

    Raises:
        SimError: Unknown intrinsic, not on this target, or an immediate without a meaning.
    """
    _known(name)
    if wave_size != 64:
        raise SimError(f"{name} runs in waves of 64 lanes, not {wave_size}", fix="simulate with wave_size=64")
    if len(immediates) != len(matrix_mfma.IMMEDIATES):
        raise SimError(
            f"{name}: {len(immediates)} immediates", fix=f"pass {len(matrix_mfma.IMMEDIATES)}: cbsz, abid, blgp"
        )
    return matrix_mfma.prepare(name, immediates, target)


def evaluate(name: str, args: Sequence[Any], *, wave_size: int, target: Target) -> AnyArray:
    """The result registers of one intrinsic call over all waves.

    Shape: register arrays are ``(waves, wave_size, values)``, or ``(waves, wave_size)`` for scalars, of LLVM's element
    type: half float16, float float32, double float64, ``iN`` signed or unsigned integers, bfloat uint16 bits.
    """
    imms, arrays = split_arguments(name, args, immediate_positions(name))
    return prepare(name, tuple(imms), wave_size=wave_size, target=target)(*arrays)


def _known(name: str) -> None:
    if not supports(name):
        raise SimError(f"the simulator has no matrix intrinsic {name!r}", fix="see flyllvm.sim.matrix.supports")
