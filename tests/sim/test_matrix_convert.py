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


def test_a_chip_without_the_form_or_its_wave_refuses_it() -> None:
    with pytest.raises(SimError, match="targets with it: gfx1250"):
        matrix.prepare("cvt.scale.pk8.f16.fp8", (0,), wave_size=64, target=GFX950)


UNPACKS = [
    (f"cvt.scale.pk{n}.{kind}.{small}", small, kind, n)
    for small, n in (("fp8", 8), ("bf8", 8), ("fp4", 8), ("fp6", 16), ("bf6", 16))
    for kind in ("f32", "f16", "bf16")
]
# Selector: the lane whose scale word lane 3 and lane 20 read, and the bytes, written out by hand.
SELECTED = {
    "narrow": {
        0: ((3, 4), (0, 1)), 2: ((3, 4), (2, 3)), 4: ((19, 20), (0, 1)), 6: ((19, 20), (2, 3)), 1: ((3, 4), (0, 2)),
        5: ((19, 20), (0, 2)),
    },
    "wide": {
        0: ((3, 4), (0, 0)), 2: ((3, 4), (1, 1)), 4: ((3, 4), (2, 2)), 6: ((3, 4), (3, 3)), 10: ((19, 20), (1, 1)),
        12: ((19, 20), (2, 2)), 14: ((19, 20), (3, 3)),
    },
}  # fmt: skip


@pytest.mark.parametrize("name, small, kind, count", UNPACKS)
def test_lane_scaled_unpacks_take_the_byte_that_the_selector_says(name: str, small: str, kind: str, count: int) -> None:
    shape = lanes(GFX1250)
    codes = RNG.integers(0, 1 << BITS[small], (*shape, count)).astype(np.uint8)
    scales = RNG.integers(110, 140, (*shape, 4)).astype(np.uint8)
    packed, words = words_of(codes, BITS[small]), scales.view(np.uint32)[:, :, 0].copy()
    values = codes.view(OCP[small]).astype(np.float64)
    for selector, (where, bytes) in SELECTED["wide" if BITS[small] == 8 else "narrow"].items():
        got = run(name, packed, words, selector, target=GFX1250)
        for lane, held, byte in zip((3, 20), where, bytes):
            factor = np.ldexp(1.0, scales[:, held, byte].astype(int) - 127)
            same(got[:, lane].copy(), values[:, lane] * factor[:, None], kind)


@pytest.mark.parametrize("small, selector", [("fp4", 3), ("fp4", 7), ("fp4", 8), ("fp8", 1), ("fp8", 8), ("fp8", 13)])
def test_a_selector_without_a_public_meaning_is_refused(small: str, selector: int) -> None:
    with pytest.raises(SimError, match="a selector whose meaning is public"):
        matrix.prepare(f"cvt.scale.pk8.f32.{small}", (selector,), wave_size=32, target=GFX1250)


def e5m3_value(code: int) -> float:
    """The format from its definition, one code at a time."""
    exponent, mantissa = code >> 3, code & 7
    if code == 255:
        return float("nan")
    return mantissa * 2.0**-17 if exponent == 0 else (1 + mantissa / 8) * 2.0 ** (exponent - 15)


def test_e5m3_is_unsigned_with_one_nan() -> None:
    shape = (8, 32)
    every = np.arange(256, dtype=np.uint32).reshape(shape)
    table = np.array([e5m3_value(code) for code in range(256)])
    for byte in range(4):
        same(run("cvt.f32.fp8.e5m3", every << 8 * byte, byte, target=GFX1250), table.reshape(shape), "f32")
    x = np.ldexp(1 + RNG.random(shape), RNG.integers(-18, 18, shape)).astype(np.float32)
    x[0, :4] = 0, np.inf, np.nan, -1.5
    got = run("cvt.pk.fp8.f32.e5m3", x, -x, np.zeros(shape, np.uint32), 1, target=GFX1250)
    assert ((got & 0xFFFF) == 0).all()
    codes = got >> 16 & 0xFF
    np.testing.assert_array_equal(got >> 24, codes)  # the sign is lost
    finite = table[:255]
    for value, code in zip(np.abs(x.astype(np.float64)).flat, codes.flat):
        if np.isnan(value) or value > 118784:  # beyond the middle of the last step
            assert code == 255
        else:
            assert abs(finite[code] - value) == np.abs(finite - value).min()
    random = RNG.integers(0, 2**32, shape, dtype=np.uint32)
    middle = np.full(shape, 1 + 1 / 16, np.float32)
    rounded = run("cvt.sr.fp8.f32.e5m3", middle, random, np.zeros(shape, np.uint32), 0, target=GFX1250)
    np.testing.assert_array_equal(table[rounded], np.where(random >> 31, 1.125, 1.0))


@pytest.mark.parametrize("kind", ["bf16", "f16"])
def test_stochastic_pairs_use_the_next_random_word_for_the_second(kind: str) -> None:
    shape = lanes(GFX1250)
    middle = np.full(shape, 1 + 2.0 ** (-8 if kind == "bf16" else -11), np.float32)
    random = RNG.integers(0, 2**32, shape, dtype=np.uint32)
    got = as_f64(run(f"cvt.sr.pk.{kind}.f32", middle, middle, random, target=GFX1250), kind)
    step = 2.0 ** (-7 if kind == "bf16" else -10)
    following = [(int(r) << 1 & 0xFFFFFFFF) ^ (197 if r >> 31 else 0) for r in random.flat]
    np.testing.assert_array_equal(got[..., 0], 1 + step * (random >> 31))
    np.testing.assert_array_equal(got[..., 1], 1 + step * (np.array(following).reshape(shape) >> 31))
