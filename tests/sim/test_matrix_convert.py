"""Small-float conversions: values from ml_dtypes, places in the register, scales, rounding."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import matrix, matrix_convert, numerics
from flyllvm.target import Target

GFX942, GFX950, GFX1250 = (Target.parse(name) for name in ("gfx942", "gfx950", "gfx1250"))
OCP = {
    "fp8": ml_dtypes.float8_e4m3fn, "bf8": ml_dtypes.float8_e5m2, "fp6": ml_dtypes.float6_e2m3fn,
    "bf6": ml_dtypes.float6_e3m2fn, "fp4": ml_dtypes.float4_e2m1fn,
}  # fmt: skip
FNUZ = {"fp8": ml_dtypes.float8_e4m3fnuz, "bf8": ml_dtypes.float8_e5m2fnuz}
BITS = {"fp8": 8, "bf8": 8, "fp6": 6, "bf6": 6, "fp4": 4}
WIDE = {"f32": np.float32, "f16": np.float16, "bf16": ml_dtypes.bfloat16}
RNG = np.random.default_rng(17)


def run(name: str, *args: Any, target: Target = GFX950) -> np.ndarray:
    return matrix.evaluate(name, list(args), wave_size=target.wave_size, target=target)


def lanes(target: Target) -> tuple[int, int]:
    return (3, target.wave_size)


def wide(shape: tuple[int, ...], kind: str, spread: float = 2.0) -> np.ndarray:
    """Random registers of a wide type (bf16 as bits)."""
    values = (RNG.normal(size=shape) * spread).astype(WIDE[kind])
    return values.view(np.uint16) if kind == "bf16" else values


def as_f64(registers: np.ndarray, kind: str) -> np.ndarray:
    values = registers.view(ml_dtypes.bfloat16) if kind == "bf16" else registers
    return values.astype(np.float64)


def same(got: np.ndarray, want: np.ndarray, kind: str) -> None:
    """Equal values, NaN for NaN."""
    with np.errstate(over="ignore"):
        rounded = want.astype(WIDE[kind]).astype(np.float64)
    np.testing.assert_array_equal(as_f64(got, kind), rounded)


def words_of(codes: np.ndarray, bits: int) -> np.ndarray:
    """An independent packer: the codes as one long Python integer per lane."""
    out = np.zeros((*codes.shape[:2], codes.shape[2] * bits // 32), np.uint32)
    for index in np.ndindex(codes.shape[:2]):
        total = sum(int(c) << (bits * i) for i, c in enumerate(codes[index]))
        out[index] = [total >> (32 * w) & 0xFFFFFFFF for w in range(out.shape[2])]
    return out[:, :, 0].copy() if out.shape[2] == 1 else out


@pytest.mark.parametrize("target, table", [(GFX942, FNUZ), (GFX950, OCP), (GFX1250, OCP)], ids=["fnuz", "ocp", "ocp32"])
@pytest.mark.parametrize("small", ["fp8", "bf8"])
def test_plain_conversions_have_the_flavour_of_the_chip(small: str, target: Target, table: dict[str, Any]) -> None:
    shape = lanes(target)
    x, y = wide(shape, "f32", 8), wide(shape, "f32", 8)
    old = RNG.integers(0, 2**32, shape, dtype=np.uint32)
    codes = [v.astype(table[small]).view(np.uint8).astype(np.uint32) for v in (x, y)]
    low = run(f"cvt.pk.{small}.f32", x, y, old, 0, target=target)
    high = run(f"cvt.pk.{small}.f32", x, y, old, 1, target=target)
    np.testing.assert_array_equal(low, (old & 0xFFFF0000) | codes[0] | codes[1] << 8)
    np.testing.assert_array_equal(high, (old & 0xFFFF) | codes[0] << 16 | codes[1] << 24)
    every = np.resize(np.arange(256, dtype=np.uint8), (*shape, 4))
    source = every.view(np.uint32)[:, :, 0].copy()
    values = every.view(table[small]).astype(np.float64)
    for byte in range(4):
        same(run(f"cvt.f32.{small}", source, byte, target=target), values[:, :, byte], "f32")
    for word in range(2):
        same(run(f"cvt.pk.f32.{small}", source, word, target=target), values[:, :, 2 * word : 2 * word + 2], "f32")


def test_overflow_is_nan_or_infinity_as_the_manual_says() -> None:
    x = np.full(lanes(GFX950), 1e6, np.float32)
    x[:, 1::2] = -np.inf
    old = np.zeros(lanes(GFX950), np.uint32)
    assert np.isnan(numerics.E4M3FN.decode(run("cvt.pk.fp8.f32", x, x, old, 0) & 0xFF)).all()
    bf8 = numerics.E5M2.decode(run("cvt.pk.bf8.f32", x, x, old, 0) & 0xFF)
    assert (bf8[:, ::2] == np.inf).all() and (bf8[:, 1::2] == -np.inf).all()
    for small in ("fp8", "bf8"):
        assert (run(f"cvt.pk.{small}.f32", x, x, old, 0, target=GFX942) == 0x8080).all()


@pytest.mark.parametrize("small", ["fp8", "bf8"])
def test_f16_forms_of_gfx1250(small: str) -> None:
    shape = lanes(GFX1250)
    pair = wide((*shape, 2), "f16")
    codes = run(f"cvt.pk.{small}.f16", pair, target=GFX1250)
    want = pair.astype(OCP[small])
    np.testing.assert_array_equal(codes, want.view(np.uint16)[:, :, 0])
    same(run(f"cvt.pk.f16.{small}", codes, target=GFX1250), want.astype(np.float64), "f16")
    same(
        run(f"cvt.f16.{small}", codes.astype(np.uint32) << 16, 3, target=GFX1250),
        want[:, :, 1].astype(np.float64),
        "f16",
    )


def scale_registers(shape: tuple[int, ...], low: int = -6, high: int = 7) -> tuple[np.ndarray, np.ndarray]:
    """float32 scales with random mantissas (only the exponent counts), and the factors they stand for."""
    exponent = RNG.integers(low, high, shape)
    return np.ldexp(1 + RNG.random(shape) * 0.99, exponent).astype(np.float32), np.ldexp(1.0, exponent)


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
@pytest.mark.parametrize("small", ["fp8", "bf8"])
def test_scaled_fp8_pairs_and_singles(small: str, kind: str) -> None:
    shape = lanes(GFX950)
    pair = wide((*shape, 2), kind)
    scale, factor = scale_registers(shape)
    old = RNG.integers(0, 2**16, (*shape, 2), dtype=np.uint16)
    values = [pair[:, :, 0].copy(), pair[:, :, 1].copy()] if kind == "f32" else [pair]
    want = (as_f64(pair, kind) / factor[..., None]).astype(OCP[small])
    for word in range(2):
        got = run(f"cvt.scalef32.pk.{small}.{kind}", old, *values, scale, word)
        np.testing.assert_array_equal(got[:, :, word], want.view(np.uint16)[:, :, 0])
        np.testing.assert_array_equal(got[:, :, 1 - word], old[:, :, 1 - word])
    source = np.resize(np.arange(256, dtype=np.uint8), (*shape, 4))
    packed = source.view(np.uint32)[:, :, 0].copy()
    back = source.view(OCP[small]).astype(np.float64) * factor[..., None]
    for word in range(2):
        same(run(f"cvt.scalef32.pk.{kind}.{small}", packed, scale, word), back[:, :, 2 * word : 2 * word + 2], kind)
    if kind == "f32":
        for byte in range(4):
            same(run(f"cvt.scalef32.f32.{small}", packed, scale, byte), back[:, :, byte], "f32")
    if kind == "f16":
        kept = wide((*shape, 2), "f16")
        got = run(f"cvt.scalef32.f16.{small}", kept, packed, scale, 2, 1)
        same(got[:, :, 1].copy(), back[:, :, 2], "f16")
        np.testing.assert_array_equal(got[:, :, 0], kept[:, :, 0])


@pytest.mark.parametrize("kind", ["f32", "f16", "bf16"])
def test_scaled_fp4_pairs_go_to_a_byte(kind: str) -> None:
    shape = lanes(GFX950)
    pair = wide((*shape, 2), kind, 4)
    scale, factor = scale_registers(shape, -2, 3)
    old = RNG.integers(0, 2**32, shape, dtype=np.uint32)
    values = [pair[:, :, 0].copy(), pair[:, :, 1].copy()] if kind == "f32" else [pair]
    codes = (as_f64(pair, kind) / factor[..., None]).astype(OCP["fp4"]).view(np.uint8).astype(np.uint32)
    for byte in range(4):
        got = run(f"cvt.scalef32.pk.fp4.{kind}", old, *values, scale, byte)
        clear = ~np.uint32(0xFF << 8 * byte)
        np.testing.assert_array_equal(got, (old & clear) | (codes[:, :, 0] | codes[:, :, 1] << 4) << 8 * byte)
        nibbles = np.stack([(old >> 8 * byte) & 15, (old >> 8 * byte + 4) & 15], axis=2).astype(np.uint8)
        back = nibbles.view(OCP["fp4"]).astype(np.float64) * factor[..., None]
        same(run(f"cvt.scalef32.pk.{kind}.fp4", old, scale, byte), back, kind)


WHOLE = [
    (f"cvt.scalef32.pk{n}.{small}.{kind}", small, kind, n, target)
    for n, smalls, target in (
        (32, ("fp6", "bf6"), GFX950),
        (8, ("fp8", "bf8", "fp4"), GFX1250),
        (16, ("fp6", "bf6"), GFX1250),
    )
    for small in smalls
    for kind in ("f32", "f16", "bf16")
    if not (n == 32 and kind == "f32")
]


@pytest.mark.parametrize("name, small, kind, count, target", WHOLE)
def test_whole_register_conversions_pack_low_bits_first(
    name: str, small: str, kind: str, count: int, target: Target
) -> None:
    shape = lanes(target)
    values = wide((*shape, count), kind, 4)
    scale, factor = scale_registers(shape, -1, 2)
    codes = (as_f64(values, kind) / factor[..., None]).astype(OCP[small]).view(np.uint8)
    packed = words_of(codes, BITS[small])
    np.testing.assert_array_equal(run(name, values, scale, target=target), packed)
    if count == 32:
        back = codes.view(OCP[small]).astype(np.float64) * factor[..., None]
        same(run(f"cvt.scalef32.pk32.{kind}.{small}", packed, scale), back, kind)


@pytest.mark.parametrize("small", ["fp6", "bf6"])
def test_2xpk16_interleaves_its_two_sources(small: str) -> None:
    shape = lanes(GFX950)
    even, odd = wide((*shape, 16), "f32"), wide((*shape, 16), "f32")
    scale = np.ones(shape, np.float32)
    both = np.stack([even, odd], axis=3).reshape(*shape, 32)
    got = run(f"cvt.scalef32.2xpk16.{small}.f32", even, odd, scale)
    np.testing.assert_array_equal(got, words_of(both.astype(OCP[small]).view(np.uint8), 6))
    same(run(f"cvt.scalef32.pk32.f32.{small}", got, scale), both.astype(OCP[small]).astype(np.float64), "f32")


def test_6_and_4_bit_formats_saturate_and_a_nan_scale_gives_nan() -> None:
    shape = lanes(GFX950)
    big = np.full(shape, 1e9, np.float32)
    one, nan = np.ones(shape, np.float32), np.full(shape, np.nan, np.float32)
    old = np.zeros(shape, np.uint32)
    assert (run("cvt.scalef32.pk.fp4.f32", old, big, -big, one, 0) == 0xF7).all()
    assert np.isnan(run("cvt.scalef32.f32.fp8", old, nan, 0)).all()


@pytest.mark.parametrize(
    "name, target",
    [
        ("cvt.sr.fp8.f32", GFX942),
        ("cvt.sr.bf8.f32", GFX950),
        ("cvt.sr.fp8.f16", GFX1250),
        ("cvt.scalef32.sr.bf8.bf16", GFX950),
    ],
)
def test_stochastic_forms_write_one_byte_between_the_neighbours(name: str, target: Target) -> None:
    shape = (64, target.wave_size)
    parts = name.split(".")
    small, kind = parts[-2], parts[-1]
    fmt = matrix_convert.small_format(small, target)
    value = np.full(shape, 1.1, WIDE[kind])
    value = value.view(np.uint16) if kind == "bf16" else value
    random = RNG.integers(0, 2**32, shape, dtype=np.uint32)
    old = RNG.integers(0, 2**32, shape, dtype=np.uint32)
    args = [old, value, random, np.ones(shape, np.float32)] if "scalef32" in name else [value, random, old]
    got = run(name, *args, 2, target=target)
    np.testing.assert_array_equal(got & 0xFF00FFFF, old & 0xFF00FFFF)
    values = fmt.decode((got >> 16) & 0xFF)
    step = 2.0**-fmt.mantissa_bits
    assert set(np.unique(values)) == {1.0, np.float32(1 + step)}
    chance = (float(as_f64(value, kind)[0, 0]) - 1) / step
    assert abs(float(np.mean(values > 1)) - chance) < 0.05


def test_stochastic_packs_advance_the_random_word() -> None:
    word = np.array([[0x80000001, 0x00000003]], np.uint32)
    assert matrix_convert.next_random(word).tolist() == [[2 ^ 197, 6]]
    shape = lanes(GFX950)
    values = np.full((*shape, 32), 1.05, np.float32)
    random = RNG.integers(0, 2**32, shape, dtype=np.uint32)
    got = run("cvt.scalef32.sr.pk32.fp6.f32", values, random, np.ones(shape, np.float32))
    back = run("cvt.scalef32.pk32.f32.fp6", got, np.ones(shape, np.float32))
    assert set(np.unique(back)) == {1.0, 1.125}
    first = numerics.E2M3FN.decode(numerics.E2M3FN.encode_stochastic(values[:, :, 0], random))
    np.testing.assert_array_equal(back[:, :, 0], first)


def test_stochastic_halves_keep_the_other_half() -> None:
    shape = lanes(GFX950)
    value = np.full(shape, 1 + 2.0**-12, np.float32)
    for kind, dtype in (("bf16", np.uint16), ("f16", np.float16)):
        old = np.full((*shape, 2), 7, dtype)
        for random, up in ((0, False), (0xFFFFFFFF, True)):
            got = run(f"cvt.sr.{kind}.f32", old, value, np.full(shape, random, np.uint32), 1)
            assert (got[:, :, 0] == 7).all()
            high = numerics.decode_bf16(got[:, :, 1]) if kind == "bf16" else got[:, :, 1]
            assert ((high > 1) == up).all()
    special = np.array([[np.inf, -np.inf, np.nan, 65504.0]], np.float32)
    rounded = numerics.encode_f16_stochastic(special, np.zeros((1, 4), np.uint32))
    assert rounded[0, :2].tolist() == [np.inf, -np.inf] and np.isnan(rounded[0, 2]) and rounded[0, 3] == 65504


@pytest.mark.parametrize(
    "name, constants, target, fix",
    [
        ("cvt.pk.fp8.f32", (0,), Target.parse("gfx90a"), "targets with it: gfx942"),
        ("cvt.scalef32.pk.fp4.f32", (0,), GFX942, "targets with it: gfx950"),
        ("cvt.pk.f32.fp8", (2,), GFX950, "the selected part is 0 to 1"),
        ("cvt.f32.fp8", (4,), GFX950, "the selected part is 0 to 3"),
        ("cvt.scalef32.f16.fp8", (0, 2), GFX950, "the half to write is 0 to 1"),
        ("cvt.sr.bf16.f32", (2,), GFX950, "the half to write is 0 to 1"),
    ],
)
def test_what_the_chip_lacks_or_means_nothing_is_refused(
    name: str, constants: tuple[int, ...], target: Target, fix: str
) -> None:
    with pytest.raises(SimError, match=re.escape(fix)):
        matrix.prepare(name, constants, wave_size=target.wave_size, target=target)


def test_forms_without_a_public_meaning_are_not_supported() -> None:
    for name in ("cvt.scale.pk8.f16.fp8", "cvt.pk.fp8.f32.e5m3", "cvt.sr.pk.bf16.f32"):
        assert not matrix.supports(name)
