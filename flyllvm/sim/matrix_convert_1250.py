"""Conversions of gfx1250 alone: scales selected by lane, E5M3, and stochastic packs of 16-bit floats.

``cvt.scale.pk8`` and ``pk16`` unpack the codes of a lane and multiply by an E8M0 byte.  The byte comes from the scale
register of lane ``L % 16 + 16*half`` of the wave, as the scales of a WMMA do.  The selector is a constant:

- 4-bit and 6-bit codes: bit 0 says blocks of 16 instead of 32, bit 1 the upper half of the scale word, bit 2 is
  ``half``.  Blocks of 32: lanes 0 to 15 take byte ``2*bit1``, lanes 16 to 31 the next one.  Blocks of 16 (bit 1 clear):
  byte 0 for lanes 0 to 15, byte 2 for lanes 16 to 31.
- 8-bit codes, blocks of 32: bits 2:1 are the byte, the same for all lanes, bit 3 is ``half``.

Other selectors are refused: they are reserved, or public texts leave open which byte they take.

E5M3 has no sign: 5 bits of exponent with bias 15, 3 of mantissa, and code 255 as NaN; a number loses its sign, and
what is beyond 114688 becomes NaN.  The second value of a stochastic pack rounds with the next V_PRNG_B32 word.

Source: description of MLIR's ``amdgpu.scaled_ext_packed_matrix`` and the encoding of its selector; AMD's public
emulator of gfx1250 (E5M3, the second random word).  None of it is from an ISA manual, nothing was run on the chip.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..errors import SimError
from ..target import Target
from . import matrix_core as core, numerics
from .matrix_convert import WIDE, Down, Up, next_random, small_format, unpack_codes
from .matrix_element import AnyArray

_1250 = ("gfx1250",)


class LaneScaled:
    """``cvt.scale.pk8`` and ``pk16``: all codes of a lane, times a byte of another lane's register.

    Args:
        up: The conversion without its scale.
        lanes: The lane whose register holds the scale of each lane.  Shape: ``(32,)``.
        bytes: The byte of that register.  Shape: ``(32,)``.
    """

    __slots__ = ("bytes", "lanes", "up")

    def __init__(self, up: Up, lanes: AnyArray, bytes: AnyArray) -> None:
        self.up, self.lanes, self.bytes = up, lanes, bytes

    def __call__(self, source: AnyArray, scale: AnyArray) -> AnyArray:
        word = scale.astype(np.uint32)[:, self.lanes] >> (8 * self.bytes).astype(np.uint32)
        factor = numerics.decode_e8m0((word & np.uint32(255)).astype(np.uint8))
        values = self.up.fmt.table64[unpack_codes(source, self.up.fmt.bits)] * factor[:, :, None]
        return self.up.rounded(values)


def scale_places(name: str, bits: int, selector: int) -> tuple[AnyArray, AnyArray]:
    """Lane and byte of the scale of every lane, for codes of ``bits`` bits.

    Raises:
        SimError: A selector without a known meaning.
    """
    legal = (0, 2, 4, 6, 10, 12, 14) if bits == 8 else (0, 1, 2, 4, 5, 6)
    if selector not in legal:
        raise SimError(
            f"{name}: scale selector {selector}",
            fix=f"a selector whose meaning is public: {', '.join(map(str, legal))}",
        )
    lane = np.arange(32)
    upper = lane // 16
    if bits == 8:
        return lane % 16 + 16 * (selector >> 3), np.full(32, selector >> 1 & 3)
    first, step = 2 * (selector >> 1 & 1), 2 if selector & 1 else 1
    return lane % 16 + 16 * (selector >> 2 & 1), first + step * upper


def _lane_scaled(
    small: str, wide: str, immediates: tuple[int, ...], wave: int, target: Target, name: str
) -> core.Prepared:
    fmt = small_format(small, target)
    lanes, bytes = scale_places(name, fmt.bits, immediates[0])
    return LaneScaled(Up(fmt, wide, 0, 0, scaled=False), lanes, bytes)


def _e5m3(kind: str, count: int, immediates: tuple[int, ...], wave: int, target: Target, name: str) -> core.Prepared:
    place = immediates[0]
    core.check_flag(name, "the selected part", place, 4 // count - 1)
    if kind == "up":
        return Up(numerics.UE5M3, "f32", count, place, scaled=False)
    return Down(numerics.UE5M3, "f32", count, place, scaled=False, stochastic=kind == "random")


class StochasticPair:
    """cvt.sr.pk.bf16.f32 and cvt.sr.pk.f16.f32."""

    __slots__ = ("kind",)

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def __call__(self, first: AnyArray, second: AnyArray, random: AnyArray) -> AnyArray:
        encode = numerics.encode_bf16_stochastic if self.kind == "bf16" else numerics.encode_f16_stochastic
        pair: AnyArray = np.stack([encode(first, random), encode(second, next_random(random))], axis=2)
        return pair


def _stochastic_pair(kind: str, immediates: tuple[int, ...], wave: int, target: Target) -> core.Prepared:
    return StochasticPair(kind)


def _intrinsics() -> dict[str, core.Intrinsic]:
    found: list[core.Intrinsic] = []
    for wide in WIDE:
        for small, count in (("fp8", 8), ("bf8", 8), ("fp4", 8), ("fp6", 16), ("bf6", 16)):
            name = f"cvt.scale.pk{count}.{wide}.{small}"
            build = partial(_lane_scaled, small, wide, name=name)
            found.append(core.Intrinsic(name, _1250, (32,), {2: "scale selector"}, 0, build))
    for name, kind, count, constants in (
        ("cvt.f32.fp8.e5m3", "up", 1, {1: "byte"}),
        ("cvt.pk.fp8.f32.e5m3", "down", 2, {3: "word"}),
        ("cvt.sr.fp8.f32.e5m3", "random", 1, {3: "byte"}),
    ):
        found.append(core.Intrinsic(name, _1250, (32,), constants, 0, partial(_e5m3, kind, count, name=name)))
    for kind in ("bf16", "f16"):
        found.append(core.Intrinsic(f"cvt.sr.pk.{kind}.f32", _1250, (32,), {}, 0, partial(_stochastic_pair, kind)))
    return {i.name: i for i in found}


INTRINSICS: dict[str, core.Intrinsic] = _intrinsics()
