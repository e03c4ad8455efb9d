"""The meaning of AMDGPU matrix, dot-product and small-float intrinsics as pure NumPy functions.

The machine asks `supports` once per intrinsic name and `prepare` once per call in the program (the immediates are
constants there); the prepared function then takes the register arrays of all waves at once.  `evaluate` does both.

Matrix instructions ignore EXEC: they compute for all lanes.  The machine refuses waves with inactive lanes for those
names that `ignores_exec` names.

Names come without the ``llvm.amdgcn.`` prefix; type suffixes of overloaded intrinsics may stay on.

No instruction here was compared with hardware; the sources of each family are named in its file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from ..errors import SimError
from ..target import Target
from . import matrix_convert, matrix_convert_1250, matrix_dot, matrix_mfma, matrix_scaled, matrix_sparse, matrix_wmma
from .matrix_core import Intrinsic, Prepared
from .matrix_element import AnyArray

_FAMILIES: tuple[dict[str, Intrinsic], ...] = (
    matrix_mfma.INTRINSICS,
    matrix_scaled.INTRINSICS,
    matrix_wmma.INTRINSICS,
    matrix_sparse.INTRINSICS,
    matrix_dot.INTRINSICS,
    matrix_convert.INTRINSICS,
    matrix_convert_1250.INTRINSICS,
)
# What reads registers of other lanes; `cvt.scale.` reads the scales of half a wave.
_ACROSS = ("mfma.", "smfmac.", "wmma.", "swmmac.", "cvt.scale.")
_TYPE_SUFFIX = re.compile(r"(v\d+)?(i\d+|f\d+|bf\d+)")


@lru_cache(maxsize=1024)
def find(name: str) -> Intrinsic | None:
    """The intrinsic of a name, with or without type suffixes, or ``None`` where the simulator lacks it."""
    while True:
        for family in _FAMILIES:
            if name in family:
                return family[name]
        name, dot, last = name.rpartition(".")
        if not dot or not _TYPE_SUFFIX.fullmatch(last):
            return None


def supports(name: str) -> bool:
    """Whether `prepare` knows an intrinsic (on some target)."""
    return find(name) is not None


def ignores_exec(name: str) -> bool:
    """Whether the instruction reads registers of inactive lanes, so that a partly active wave has no sound result."""
    return name.startswith(_ACROSS)


def assumption(name: str) -> str | None:
    """What the meaning of an intrinsic rests on, where public sources contradict each other."""
    return matrix_sparse.ASSUMED.get(_known(name).name)


def flops(name: str) -> int:
    """Multiplications and additions that one wave does in one call; zero for intrinsics that only move or convert."""
    return _known(name).flops


def immediate_positions(name: str) -> tuple[int, ...]:
    """Argument positions that LLVM requires to be constants."""
    return tuple(_known(name).immediates)


def literal_positions(name: str) -> tuple[int, ...]:
    """Arguments that are to be passed as Python ints where the program has a literal: LLVM gives it another meaning.

    The scales of mfma.scale: two literal zeros select the unscaled instruction, zero in a register is ``2**-127``.
    """
    return (6, 8) if name.startswith("mfma.scale.") else ()


@lru_cache(maxsize=1024)
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
    return _known(name).prepare(immediates, wave_size, target)


def evaluate(name: str, args: Sequence[Any], *, wave_size: int, target: Target) -> AnyArray:
    """The result registers of one intrinsic call over all waves.

    Shape: register arrays are ``(waves, wave_size, values)``, or ``(waves, wave_size)`` for scalars, of LLVM's element
    type: half float16, float float32, double float64, ``iN`` signed or unsigned integers, bfloat uint16 bits.
    """
    constants, arrays = _known(name).split(args)
    return prepare(name, constants, wave_size=wave_size, target=target)(*arrays)


def _known(name: str) -> Intrinsic:
    found = find(name)
    if found is None:
        raise SimError(f"the simulator has no matrix intrinsic {name!r}", fix="see flyllvm.sim.matrix.supports")
    return found
