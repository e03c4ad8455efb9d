"""Small-float conversions against ml_dtypes, for all bit patterns."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import numerics as nm

FORMATS = list(nm.FORMATS.values())
FP8 = [f for f in FORMATS if f.bits == 8]


def oracle(fmt: nm.SmallFloat) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, fmt.name))


def interesting(fmt: nm.SmallFloat) -> np.ndarray:
    """Every value, every midpoint and its float32 neighbours, specials, and random float32 bit patterns."""
    values = np.unique(fmt.table[np.isfinite(fmt.table)])
    middle = (values[1:].astype(np.float64) + values[:-1]) / 2
    ends = np.array([fmt.max * s for s in (1.01, 1.04, 1.0624, 1.0625, 1.0626, 1.125, 1.2, 2, 1e9)])
    points = np.concatenate([values, middle, ends, -ends, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40]])
    points = points.astype(np.float32)
    near = np.concatenate([points, np.nextafter(points, np.inf), np.nextafter(points, -np.inf)])
    noise = np.random.default_rng(1).integers(0, 2**32, 20000, dtype=np.uint32).view(np.float32)
    small = np.random.default_rng(2).normal(size=20000).astype(np.float32) * np.float32(fmt.max / 3)
    return np.concatenate([near, noise, small])


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
def test_decode_equals_ml_dtypes_for_every_code(fmt: nm.SmallFloat) -> None:
    codes = np.arange(1 << fmt.bits, dtype=np.uint8)
    expected = codes.view(oracle(fmt)).astype(np.float32)
    np.testing.assert_array_equal(fmt.decode(codes), expected)
    np.testing.assert_array_equal(
        np.signbit(fmt.decode(codes)) & (expected == 0), np.signbit(expected) & (expected == 0)
    )


@pytest.mark.parametrize("fmt", FORMATS, ids=lambda f: f.name)
def test_encode_equals_ml_dtypes_on_values_midpoints_and_noise(fmt: nm.SmallFloat) -> None:
    values = interesting(fmt)
    values = values[~np.isnan(values)]
    got = fmt.encode(values)
    with np.errstate(all="ignore"):
        want = values.astype(oracle(fmt)).view(np.uint8)
    if fmt.nan_code is None:
        np.testing.assert_array_equal(got, want)
    else:  # ml_dtypes picks NaN payloads of its own
        np.testing.assert_array_equal(fmt.decode(got), fmt.decode(want))
        real = ~np.isnan(fmt.decode(want))
        np.testing.assert_array_equal(got[real], want[real])


@pytest.mark.parametrize("fmt", FP8, ids=lambda f: f.name)
def test_saturating_encode_clips_to_the_largest_finite_value(fmt: nm.SmallFloat) -> None:
    values = np.array([np.inf, -np.inf, fmt.max * 4, -fmt.max * 4, 1.0], np.float32)
    assert fmt.decode(fmt.encode(values, saturate=True)).tolist() == [fmt.max, -fmt.max, fmt.max, -fmt.max, 1.0]


@pytest.mark.parametrize("fmt", FP8, ids=lambda f: f.name)
def test_overflow_without_saturation_is_infinity_or_nan(fmt: nm.SmallFloat) -> None:
    got = fmt.decode(fmt.encode(np.array([fmt.max * 4, -np.inf], np.float32)))
    if fmt.specials == "ieee":
        assert got.tolist() == [np.inf, -np.inf]
    else:
        assert np.isnan(got).all()


def test_nan_encodes_to_nan_where_the_format_has_one_and_to_max_elsewhere() -> None:
    for fmt in FORMATS:
        got = float(fmt.decode(fmt.encode(np.array([np.nan], np.float32)))[0])
        assert np.isnan(got) if fmt.nan_code is not None else got == fmt.max


@pytest.mark.parametrize("fmt", FP8, ids=lambda f: f.name)
def test_stochastic_rounding_is_unbiased_and_stays_between_the_neighbours(fmt: nm.SmallFloat) -> None:
    low, high = 1.0, 1.0 + 2.0**-fmt.mantissa_bits
    value = np.full(1 << 16, low + 0.3 * (high - low), np.float32)
    random = (np.arange(1 << 16, dtype=np.uint32) << 16) | 0x1234
    got = fmt.decode(fmt.encode_stochastic(value, random))
    assert set(got.tolist()) == {low, high}
    assert abs(float(np.mean(got == high)) - 0.3) < 1e-3


@pytest.mark.parametrize("fmt", FP8, ids=lambda f: f.name)
def test_stochastic_rounding_keeps_representable_values(fmt: nm.SmallFloat) -> None:
    codes = np.flatnonzero(np.isfinite(fmt.table)).astype(np.uint8)
    random = np.full(codes.shape, 0xFFFFFFFF, np.uint32)
    np.testing.assert_array_equal(fmt.encode_stochastic(fmt.decode(codes), random), codes)


def test_e8m0_equals_ml_dtypes_for_every_code() -> None:
    codes = np.arange(256, dtype=np.uint8)
    np.testing.assert_array_equal(nm.decode_e8m0(codes), codes.view(ml_dtypes.float8_e8m0fnu).astype(np.float64))
    powers = nm.decode_e8m0(codes[1:255]).astype(np.float32)
    np.testing.assert_array_equal(nm.encode_e8m0(powers), codes[1:255])


def test_bf16_decode_equals_ml_dtypes_for_every_code() -> None:
    codes = np.arange(1 << 16, dtype=np.uint16)
    np.testing.assert_array_equal(nm.decode_bf16(codes), codes.view(ml_dtypes.bfloat16).astype(np.float32))


def test_bf16_encode_equals_ml_dtypes_on_noise_ties_and_specials() -> None:
    codes = np.arange(1 << 16, dtype=np.uint32) << 16
    bits = np.concatenate([codes | low for low in (0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF)])
    values = bits.view(np.float32)
    nan = np.isnan(values)
    got = nm.encode_bf16(values)
    np.testing.assert_array_equal(got[~nan], values[~nan].astype(ml_dtypes.bfloat16).view(np.uint16))
    assert np.isnan(nm.decode_bf16(got[nan])).all()
    np.testing.assert_array_equal(got[nan] & 0x40, 0x40)


def test_bf16_from_f64_rounds_once() -> None:
    just_above_tie = np.array([1 + 2.0**-8 + 2.0**-40, -(1 + 2.0**-8 + 2.0**-40), 1 + 2.0**-8 - 2.0**-40])
    np.testing.assert_array_equal(
        nm.decode_bf16(nm.encode_bf16_from_f64(just_above_tie)), [1 + 2.0**-7, -1 - 2.0**-7, 1]
    )
    noise = np.random.default_rng(3).normal(size=5000)
    np.testing.assert_array_equal(
        nm.encode_bf16_from_f64(noise.astype(np.float32).astype(np.float64)), nm.encode_bf16(noise.astype(np.float32))
    )


def test_bf16_stochastic_rounding_carries_with_the_top_random_bits() -> None:
    value = np.array([0x3F804000], np.uint32).view(np.float32)  # a quarter of the way to the next code
    codes = [int(nm.encode_bf16_stochastic(value, np.array([r << 16], np.uint32))[0]) for r in (0, 0xBFFF, 0xC000)]
    assert codes == [0x3F80, 0x3F80, 0x3F81]
    special = np.array([np.inf, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(nm.encode_bf16_stochastic(special, np.full(3, 2**32 - 1)), nm.encode_bf16(special))


def test_xf32_keeps_ten_mantissa_bits_and_cuts_the_rest() -> None:
    values = np.array([1 + 2.0**-10, 1 + 2.0**-11, 2047.0, 4095.0], np.float32)
    assert nm.truncate_to_xf32(values).tolist() == [1 + 2.0**-10, 1.0, 2047.0, 4094.0]


def test_the_flavour_of_fp8_is_the_chips_and_its_absence_is_refused() -> None:
    assert nm.fp8("fnuz") is nm.E4M3FNUZ
    assert nm.bf8("ocp") is nm.E5M2
    with pytest.raises(SimError, match="gfx942"):
        nm.fp8(None)
    with pytest.raises(SimError, match="fnuz"):
        nm.SmallFloat("x", 4, 3, 7, "odd")
