"""Conversions to and from the 8-, 6- and 4-bit floats, with and without a scale.

- Plain forms (`cvt.pk.fp8.f32` and relatives) have the chip's fp8 flavour.  Overflow gives NaN for fp8 and, in the OCP
  flavour, infinity for bf8 (MODE.FP16_OVFL is taken as 0); FNUZ formats have no infinity, so NaN.
- Scaled forms read the exponent field of their float32 scale: ``2**(field - 127)``, 255 is NaN.  Conversions to a small
  format divide by it first, conversions from one multiply after.  fp6 and fp4 saturate; NaN becomes their largest
  value.
- Stochastic forms add random bits below the last kept bit and cut (`SmallFloat.encode_stochastic`).  In forms of
  several values the random word advances by V_PRNG_B32 from value to value; that the first value takes the word
  unchanged is an assumption, the manual does not say.

The scaled forms exist from gfx950 on, although LLVM selects some for gfx90a and gfx942.  What gfx1250 alone has besides
(`cvt.scale.*`, E5M3, `cvt.sr.pk.*`) is in `matrix_convert_1250`.

Source: CDNA4 ISA manual 7.3 (overflow table, scale, saturation) and V_PRNG_B32; CDNA3 ISA manual, V_CVT_*FP8*; the
interleaving of ``2xpk16`` from libraries that use it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from ..target import Target
from . import matrix_core as core, numerics
from .matrix_element import F64, AnyArray

_OCP = ("gfx950", "gfx1200", "gfx1201", "gfx1250")
_FP8 = ("gfx942", *_OCP)
_950 = ("gfx950",)
_1250 = ("gfx1250",)
WIDE = ("f32", "f16", "bf16")


def small_format(name: str, target: Target) -> numerics.SmallFloat:
    """The format behind a name in an intrinsic, in the flavour of the chip."""
    if name == "fp8":
        return numerics.fp8(target.chip.fp8)
    if name == "bf8":
        return numerics.bf8(target.chip.fp8)
    return {"fp6": numerics.E2M3FN, "bf6": numerics.E3M2FN, "fp4": numerics.E2M1FN}[name]


def widen(values: AnyArray, kind: str) -> F64:
    """float64 values of f32, f16 or bf16 registers."""
    return numerics.decode_bf16(values).astype(np.float64) if kind == "bf16" else values.astype(np.float64)


def narrow(values: F64, kind: str) -> AnyArray:
    """Registers of f32, f16 or bf16 (as uint16) for float64 values, rounded to nearest."""
    if kind == "bf16":
        return numerics.encode_bf16_from_f64(values)
    with np.errstate(all="ignore"):
        done: AnyArray = values.astype(np.float32 if kind == "f32" else np.float16)
    return done


def scale_factor(scale: AnyArray) -> F64:
    """The power of two in the exponent field of float32 scales."""
    return numerics.decode_e8m0(numerics.encode_e8m0(scale))


def next_random(word: AnyArray) -> AnyArray:
    """The next state of V_PRNG_B32, a 32-bit linear feedback shift register."""
    state = word.astype(np.uint32)
    feedback: AnyArray = np.where(state >> 31, np.uint32(197), np.uint32(0))
    return ((state << np.uint32(1)) & np.uint32(0xFFFFFFFF)) ^ feedback


def pack_codes(codes: AnyArray, bits: int) -> AnyArray:
    """Codes ``(waves, lanes, n)`` packed low bits first into 32-bit words ``(waves, lanes, n * bits / 32)``."""
    spread = (codes[..., None] >> np.arange(bits, dtype=np.uint8)) & 1
    flat = spread.reshape(*codes.shape[:2], -1)
    return np.packbits(flat, axis=2, bitorder="little").view(np.uint32)


def unpack_codes(words: AnyArray, bits: int) -> AnyArray:
    """Codes ``(waves, lanes, n)`` of 32-bit words ``(waves, lanes)`` or ``(waves, lanes, words)``."""
    raw = np.ascontiguousarray(words).view(np.uint8).reshape(*words.shape[:2], -1)
    flat = np.unpackbits(raw, axis=2, bitorder="little").reshape(*raw.shape[:2], -1, bits)
    codes: AnyArray = (flat << np.arange(bits, dtype=np.uint8)).sum(axis=3, dtype=np.uint8)
    return codes


def insert(old: AnyArray, codes: AnyArray, first_bit: int, bits: int) -> AnyArray:
    """Registers with ``codes`` written at a bit of each lane; other bits keep ``old``.  Shape: that of ``old``."""
    raw = np.ascontiguousarray(old)
    word = raw.view(np.uint32).reshape(raw.shape[:2]).astype(np.uint64)
    mask = np.uint64(((1 << bits) - 1) << first_bit)
    done = (word & ~mask) | (codes.astype(np.uint64) << np.uint64(first_bit))
    return done.astype(np.uint32).view(raw.dtype).reshape(raw.shape)


def join(codes: AnyArray, bits: int) -> AnyArray:
    """Two or more codes of a lane as one integer, the first lowest.  Shape: ``(waves, lanes)``."""
    shifts = np.arange(codes.shape[2], dtype=np.uint64) * np.uint64(bits)
    total: AnyArray = (codes.astype(np.uint64) << shifts).sum(axis=2, dtype=np.uint64)
    return total


Maker = Callable[[tuple[int, ...], Target], core.Prepared]


def _to_small(fmt: numerics.SmallFloat, values: F64, random: AnyArray | None = None) -> AnyArray:
    """Codes of ``(waves, lanes, n)`` values, to nearest or stochastically."""
    if random is None:
        return fmt.encode(values)
    codes = np.empty(values.shape, np.uint8)
    word = random
    for at in range(values.shape[2]):
        codes[:, :, at] = fmt.encode_stochastic(values[:, :, at], word)
        word = next_random(word)
    return codes


class Down:
    """Values to codes inside an old register: ``cvt[.scalef32][.sr][.pk].<small>.<wide>`` with a place to write to.

    Arguments by signature: ``old`` comes first in scaled forms and after the values in plain ones; packed f32 values
    are two scalars in most forms.
    """

    __slots__ = ("bits", "count", "fmt", "kind", "place", "scaled", "stochastic")

    def __init__(
        self, fmt: numerics.SmallFloat, kind: str, count: int, place: int, *, scaled: bool, stochastic: bool
    ) -> None:
        self.fmt = fmt
        self.kind = kind
        self.count = count
        self.bits = fmt.bits * count
        self.place = place
        self.scaled = scaled
        self.stochastic = stochastic

    def __call__(self, *registers: AnyArray) -> AnyArray:
        left = list(registers)
        scale = left.pop() if self.scaled else None
        old = left.pop(0) if self.scaled else left.pop()
        random = left.pop() if self.stochastic else None
        values = (
            np.stack([widen(x, self.kind) for x in left], axis=2) if left[0].ndim == 2 else widen(left[0], self.kind)
        )
        if scale is not None:
            with np.errstate(all="ignore"):
                values = values / scale_factor(scale)[:, :, None]
        codes = join(_to_small(self.fmt, values, random), self.fmt.bits)
        return insert(old, codes, self.place * self.bits, self.bits)


class DownWhole:
    """Values to whole registers of codes: the pk8, pk16, pk32 and 2xpk16 forms, and the f16 forms of gfx1250."""

    __slots__ = ("fmt", "interleave", "kind", "scaled", "stochastic")

    def __init__(
        self, fmt: numerics.SmallFloat, kind: str, *, scaled: bool, stochastic: bool, interleave: bool
    ) -> None:
        self.fmt = fmt
        self.kind = kind
        self.scaled = scaled
        self.stochastic = stochastic
        self.interleave = interleave

    def __call__(self, *registers: AnyArray) -> AnyArray:
        left = list(registers)
        scale = left.pop() if self.scaled else None
        random = left.pop() if self.stochastic else None
        values = widen(left[0], self.kind)
        if self.interleave:
            values = np.stack([values, widen(left[1], self.kind)], axis=3).reshape(*values.shape[:2], -1)
        if scale is not None:
            with np.errstate(all="ignore"):
                values = values / scale_factor(scale)[:, :, None]
        codes = _to_small(self.fmt, values, random)
        if codes.shape[2] == 2:
            return join(codes, 8).astype(np.uint16)
        words = pack_codes(codes, self.fmt.bits)
        return words[:, :, 0].copy() if words.shape[2] == 1 else words


class Up:
    """Codes to values: one, two or all codes of the source, optionally scaled.

    Args:
        fmt: Small format.
        kind: f32, f16 or bf16.
        count: Values to make; 0 for all.
        place: Which group of ``count`` codes of the source.
        scaled: Whether the last argument is a scale.
        half: For f16 from one code: the half of ``old`` (the first argument) to write, else ``None``.
    """

    __slots__ = ("count", "fmt", "half", "kind", "place", "scaled")

    def __init__(
        self, fmt: numerics.SmallFloat, kind: str, count: int, place: int, *, scaled: bool, half: int | None = None
    ) -> None:
        self.fmt = fmt
        self.kind = kind
        self.count = count
        self.place = place
        self.scaled = scaled
        self.half = half

    def __call__(self, *registers: AnyArray) -> AnyArray:
        left = list(registers)
        scale = left.pop() if self.scaled else None
        codes = unpack_codes(left[-1], self.fmt.bits)
        if self.count:
            codes = codes[:, :, self.place * self.count : (self.place + 1) * self.count]
        values = self.fmt.table64[codes]
        if scale is not None:
            values = values * scale_factor(scale)[:, :, None]
        done = self.rounded(values)
        if self.half is not None:
            out = left[0].copy()
            out[:, :, self.half] = done
            return out
        return done

    def rounded(self, values: F64) -> AnyArray:
        """Registers for float64 values: a scalar per lane for forms of one value."""
        done = narrow(values, self.kind)
        return done[:, :, 0].copy() if self.count == 1 else done


class StochasticHalf:
    """cvt.sr.bf16.f32 and cvt.sr.f16.f32: a value into one half of ``old``."""

    __slots__ = ("half", "kind")

    def __init__(self, kind: str, half: int) -> None:
        self.kind, self.half = kind, half

    def __call__(self, old: AnyArray, value: AnyArray, random: AnyArray) -> AnyArray:
        out = old.copy()
        encode = numerics.encode_bf16_stochastic if self.kind == "bf16" else numerics.encode_f16_stochastic
        out[:, :, self.half] = encode(value, random)
        return out


def _make(
    kind: str, small: str, wide: str, count: int, immediates: tuple[int, ...], wave: int, target: Target, name: str
) -> core.Prepared:
    """Builds one conversion; ``kind`` says which shape of arguments it has."""
    places = {"down": 32, "up": 32}.get(kind.split("-")[0], 0)
    fmt = small_format(small, target)
    scaled, stochastic = "scaled" in kind, "random" in kind
    place = immediates[0] if immediates else 0
    if places and count:
        core.check_flag(name, "the selected part", place, places // (fmt.bits * count) - 1)
    if kind.startswith("down"):
        return Down(fmt, wide, count, place, scaled=scaled, stochastic=stochastic)
    if kind.startswith("whole"):
        return DownWhole(fmt, wide, scaled=scaled, stochastic=stochastic, interleave="interleave" in kind)
    half = immediates[1] if "half" in kind else None
    if half is not None:
        core.check_flag(name, "the half to write", half)
    return Up(fmt, wide, count, place, scaled=scaled, half=half)


def _plain() -> list[tuple[str, tuple[str, ...], dict[int, str], str, str, str, int]]:
    """Rows without a scale: name, targets, constants, kind, small, wide, values."""
    rows: list[tuple[str, tuple[str, ...], dict[int, str], str, str, str, int]] = []
    for s in ("fp8", "bf8"):
        rows += [
            (f"cvt.pk.{s}.f32", _FP8, {3: "word"}, "down", s, "f32", 2),
            (f"cvt.sr.{s}.f32", _FP8, {3: "byte"}, "down-random", s, "f32", 1),
            (f"cvt.pk.f32.{s}", _FP8, {1: "word"}, "up", s, "f32", 2),
            (f"cvt.f32.{s}", _FP8, {1: "byte"}, "up", s, "f32", 1),
            (f"cvt.f16.{s}", _1250, {1: "byte"}, "up", s, "f16", 1),
            (f"cvt.pk.f16.{s}", _1250, {}, "up", s, "f16", 0),
            (f"cvt.pk.{s}.f16", _1250, {}, "whole", s, "f16", 0),
            (f"cvt.sr.{s}.f16", _1250, {3: "byte"}, "down-random", s, "f16", 1),
        ]
    return rows


def _scaled() -> list[tuple[str, tuple[str, ...], dict[int, str], str, str, str, int]]:
    """Rows with a scale, as `_plain`."""
    rows: list[tuple[str, tuple[str, ...], dict[int, str], str, str, str, int]] = []
    pre = "cvt.scalef32"
    for s in ("fp8", "bf8"):
        rows.append((f"{pre}.f32.{s}", _950, {2: "byte"}, "up-scaled", s, "f32", 1))
        rows.append((f"{pre}.f16.{s}", _950, {3: "byte", 4: "half"}, "up-scaled-half", s, "f16", 1))
        for w in WIDE:
            rows.append((f"{pre}.pk.{w}.{s}", _950, {2: "word"}, "up-scaled", s, w, 2))
            rows.append((f"{pre}.pk.{s}.{w}", _950, {4 if w == "f32" else 3: "word"}, "down-scaled", s, w, 2))
            rows.append((f"{pre}.sr.{s}.{w}", _950, {4: "byte"}, "down-scaled-random", s, w, 1))
    for w in WIDE:
        rows.append((f"{pre}.pk.{w}.fp4", _950, {2: "byte"}, "up-scaled", "fp4", w, 2))
        rows.append((f"{pre}.pk.fp4.{w}", _950, {4 if w == "f32" else 3: "byte"}, "down-scaled", "fp4", w, 2))
        rows.append((f"{pre}.sr.pk.fp4.{w}", _950, {4: "byte"}, "down-scaled-random", "fp4", w, 2))
        for s in ("fp6", "bf6"):
            rows.append((f"{pre}.pk32.{w}.{s}", _950, {}, "up-scaled", s, w, 0))
            rows.append((f"{pre}.sr.pk32.{s}.{w}", _950, {}, "whole-scaled-random", s, w, 0))
            if w != "f32":
                rows.append((f"{pre}.pk32.{s}.{w}", _950, {}, "whole-scaled", s, w, 0))
        for s, n in (("fp8", 8), ("bf8", 8), ("fp4", 8), ("fp6", 16), ("bf6", 16)):
            rows.append((f"{pre}.pk{n}.{s}.{w}", _1250, {}, "whole-scaled", s, w, 0))
            rows.append((f"{pre}.sr.pk{n}.{s}.{w}", _1250, {}, "whole-scaled-random", s, w, 0))
    for s in ("fp6", "bf6"):
        rows.append((f"{pre}.2xpk16.{s}.f32", _950, {}, "whole-scaled-interleave", s, "f32", 0))
    return rows


def _intrinsics() -> dict[str, core.Intrinsic]:
    found: list[core.Intrinsic] = []
    for name, targets, constants, kind, small, wide, count in (*_plain(), *_scaled()):
        build = partial(_make, kind, small, wide, count, name=name)
        found.append(core.Intrinsic(name, targets, (32, 64), constants, 0, build))
    for kind in ("bf16", "f16"):
        name = f"cvt.sr.{kind}.f32"

        def build_half(
            immediates: tuple[int, ...], wave: int, target: Target, name: str = name, kind: str = kind
        ) -> core.Prepared:
            core.check_flag(name, "the half to write", immediates[0])
            return StochasticHalf(kind, immediates[0])

        found.append(core.Intrinsic(name, _950, (32, 64), {3: "half"}, 0, build_half))
    return {i.name: i for i in found}


INTRINSICS: dict[str, core.Intrinsic] = _intrinsics()
