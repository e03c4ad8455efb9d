"""Quotients, remainders and shift amounts at run time are those of Python, at the ends of each type too."""

from __future__ import annotations

import math
import random
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import SimError

pytestmark = [pytest.mark.sim]


@flyc.kernel(known_block_size=(1, 1, 1))
def divide(o: fx.Tensor, a: fx.Tensor, b: fx.Tensor, n: fx.Int32):
    for i in range(n):
        o[i, 0] = a[i] // b[i]
        o[i, 1] = a[i] % b[i]


@flyc.kernel(known_block_size=(1, 1, 1))
def divide_up(o: fx.Tensor, a: fx.Tensor, b: fx.Tensor, n: fx.Int32):
    for i in range(n):
        o[i, 0] = fx.ceil_div(a[i], b[i])
        o[i, 1] = fx.ceil_div(a[i], 5)


@flyc.kernel(known_block_size=(1, 1, 1))
def divide_vectors(o: fx.Tensor, a: fx.Tensor, b: fx.Tensor):
    x, y = a.load(), b.load()
    o[0, None].store(x // y)
    o[1, None].store(x % y)


def ran(kernel: Any, kind: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    n = len(a)
    out = np.zeros((n, 2), a.dtype)
    specs = [f"{kind}[{n},2]", f"{kind}[{n}]", f"{kind}[{n}]", "i32"]
    flyc.compile(kernel, *specs, arch="gfx942", stop_after="llvm").simulate(out, a, b, n, grid=1)
    return out


FLOATS = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
INTEGERS = {
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u32": np.uint32, "u64": np.uint64,
}  # fmt: skip


def floats(dtype: Any) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of special and random numbers of both signs; no divisor is zero."""
    special = [0.0, -0.0, 1.0, -1.0, 2.5, -2.5, math.inf, -math.inf, math.nan, 16.0]
    rng = random.Random(4)
    pairs = [(x, y) for x in special for y in special if y != 0]
    pairs += [[rng.uniform(-1, 1) * 10 ** rng.uniform(-3, 4) for _ in range(2)] for _ in range(400)]
    pairs += [(10000.0, 7.0), (1656.0, 7.0), (16.125, 0.0111083984375), (1.0, -0.01153564453125)]
    a, b = (np.array([p[i] for p in pairs]).astype(dtype) for i in (0, 1))
    b[b == 0] = 1
    return a, b


def same(got: Any, want: float) -> bool:
    value = float(got)
    return (math.isnan(value) and math.isnan(want)) or (
        value == want and math.copysign(1, value) == math.copysign(1, want)
    )


@pytest.mark.parametrize("kind", FLOATS)
def test_float_quotients_and_remainders_are_pythons_with_zeros_and_infinities(kind: str) -> None:
    dtype = FLOATS[kind]
    a, b = floats(dtype)
    out = ran(divide, kind, a, b)
    for i, (x, y) in enumerate(zip(map(float, a), map(float, b), strict=True)):
        with np.errstate(over="ignore"):
            want = [float(np.float64(v).astype(dtype)) for v in (x // y, x % y)]
        assert same(out[i, 0], want[0]), f"{x} // {y} = {out[i, 0]}, not {want[0]}"
        assert same(out[i, 1], want[1]), f"{x} % {y} = {out[i, 1]}, not {want[1]}"


def test_float_vectors_divide_as_their_elements_do() -> None:
    a = np.array([10000, 16.125, -7.5, 1], np.float16)
    b = np.array([7, 0.0111083984375, 2, -np.inf], np.float16)
    out = np.zeros((2, 4), np.float16)
    specs = ["f16[2,4]", "f16[4]", "f16[4]"]
    flyc.compile(divide_vectors, *specs, arch="gfx942", stop_after="llvm").simulate(out, a, b, grid=1)
    assert out[0].tolist() == [1428, 1451, -4, -1]
    assert out[1].tolist() == [4, float(np.float16(16.125 % 0.0111083984375)), 0.5, -math.inf]


def integers(dtype: Any) -> tuple[np.ndarray, np.ndarray, Any]:
    """Pairs at the ends and around zero, and a function that wraps a number into the type."""
    info = np.iinfo(dtype)
    near = {info.min, info.min + 1, -33, -7, -5, -1, 0, 1, 5, 7, 32, info.max - 1, info.max}
    values = sorted(v for v in near if info.min <= v <= info.max)
    pairs = [(x, y) for x in values for y in values if y]
    bits, low = int(info.bits), int(info.min)
    return (
        np.array([x for x, _ in pairs], dtype),
        np.array([y for _, y in pairs], dtype),
        lambda v: (v - low) % (1 << bits) + low,
    )


@pytest.mark.parametrize("kind", INTEGERS)
def test_integer_quotients_round_down_and_the_least_by_minus_one_wraps(kind: str) -> None:
    a, b, wrapped = integers(INTEGERS[kind])
    out = ran(divide, kind, a, b)
    want = [[wrapped(x // y), wrapped(x % y)] for x, y in zip(map(int, a), map(int, b), strict=True)]
    assert out.tolist() == want


@pytest.mark.parametrize("kind", INTEGERS)
def test_ceil_div_rounds_up_over_the_whole_range(kind: str) -> None:
    a, b, wrapped = integers(INTEGERS[kind])
    out = ran(divide_up, kind, a, b)
    want = [[wrapped(-(-x // y)), wrapped(-(-x // 5))] for x, y in zip(map(int, a), map(int, b), strict=True)]
    assert out.tolist() == want


def test_ceil_div_of_a_thread_index_stays_index_arithmetic() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def k(o: fx.Tensor):
        o[fx.thread_idx.x] = fx.ceil_div(fx.thread_idx.x, 8)

    text = flyc.compile(k, "i32[64]", arch="gfx942", stop_after="llvm").llvm_ir
    assert " lshr " in text and "rem i32" not in text and "div i32" not in text


@flyc.kernel(known_block_size=(1, 1, 1))
def shifted(o: fx.Tensor, x: fx.Uint8, n: fx.Int32):
    o[0] = x << n


@flyc.kernel(known_block_size=(1, 1, 1))
def shifted_vector(o: fx.Tensor, v: fx.Tensor, n: fx.Int64):
    o.store(v.load() >> n)


@pytest.mark.parametrize("amount", [0, 3, 7])
def test_a_shift_takes_a_wider_amount(amount: int) -> None:
    out = np.zeros(1, np.uint8)
    flyc.compile(shifted, "u8[1]", "u8", "i32", arch="gfx942", stop_after="llvm").simulate(out, 94, amount, grid=1)
    assert out[0] == (94 << amount) % 256


@pytest.mark.parametrize("amount", [8, 256, 257, 1 << 30, -256])
def test_an_amount_beyond_the_width_is_poison_and_not_cut(amount: int) -> None:
    art = flyc.compile(shifted, "u8[1]", "u8", "i32", arch="gfx942", stop_after="llvm")
    with pytest.raises(SimError, match="poison"):
        art.simulate(np.zeros(1, np.uint8), 94, amount, grid=1)


@pytest.mark.parametrize("amount", [32, 1 << 32, -1])
def test_an_amount_beyond_the_width_of_a_vector_is_poison(amount: int) -> None:
    art = flyc.compile(shifted_vector, "i32[4]", "i32[4]", "i64", arch="gfx942", stop_after="llvm")
    with pytest.raises(SimError, match="poison"):
        art.simulate(np.zeros(4, np.int32), np.ones(4, np.int32), amount, grid=1)
