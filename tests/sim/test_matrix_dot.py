"""Dot products of the vector unit against plain Python integers and float64."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import matrix, numerics
from flyllvm.target import Target
from tests.sim import probes

GFX942, GFX1201 = Target.parse("gfx942"), Target.parse("gfx1201")
RNG = np.random.default_rng(11)


def words(waves: int = 2, lanes: int = 64) -> np.ndarray:
    return RNG.integers(0, 2**32, (waves, lanes), dtype=np.uint32)


def fields(word: int, bits: int, signed: bool) -> list[int]:
    parts = [(word >> at) & ((1 << bits) - 1) for at in range(0, 32, bits)]
    return [p - (1 << bits) if signed and p >> (bits - 1) else p for p in parts]


def reference(a: Any, b: Any, c: Any, bits: int, sign_a: bool, sign_b: bool, clamp: bool, unsigned: bool) -> int:
    total = sum(x * y for x, y in zip(fields(int(a), bits, sign_a), fields(int(b), bits, sign_b)))
    start = int(c)
    total += start - 2**32 if not unsigned and start >> 31 else start
    if clamp:
        low, high = (0, 2**32 - 1) if unsigned else (-(2**31), 2**31 - 1)
        total = min(max(total, low), high)
    return total & 0xFFFFFFFF


@pytest.mark.parametrize("clamp", [0, 1])
@pytest.mark.parametrize(
    "name, bits, signed", [("sdot4", 8, True), ("udot4", 8, False), ("sdot8", 4, True), ("udot8", 4, False)]
)
def test_integer_dots_equal_python_integers(name: str, bits: int, signed: bool, clamp: int) -> None:
    a, b, c = words(), words(), words()
    c[:, ::3] |= 0x7FFFFF00  # near the limits
    got = matrix.evaluate(name, [a, b, c, clamp], wave_size=64, target=GFX942)
    want = np.vectorize(lambda x, y, z: reference(x, y, z, bits, signed, signed, bool(clamp), not signed))(a, b, c)
    np.testing.assert_array_equal(got, want)
    assert got.dtype == np.uint32


@pytest.mark.parametrize("sign_a", [0, 1])
@pytest.mark.parametrize("sign_b", [0, 1])
@pytest.mark.parametrize("name, bits", [("sudot4", 8), ("sudot8", 4)])
def test_sign_flags_of_mixed_dots(name: str, bits: int, sign_a: int, sign_b: int) -> None:
    a, b, c = words(2, 32), words(2, 32), words(2, 32)
    for clamp in (0, 1):
        got = matrix.evaluate(name, [sign_a, a, sign_b, b, c, clamp], wave_size=32, target=GFX1201)
        want = np.vectorize(
            lambda x, y, z, k=clamp: reference(x, y, z, bits, bool(sign_a), bool(sign_b), bool(k), False)
        )(a, b, c)
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("name, signed", [("sdot2", True), ("udot2", False)])
def test_16_bit_dots_take_pairs(name: str, signed: bool) -> None:
    a, b, c = words(), words(), words()
    pair_a, pair_b = (x.view(np.uint16).reshape(2, 64, 2) for x in (a, b))
    got = matrix.evaluate(name, [pair_a, pair_b, c, 0], wave_size=64, target=GFX942)
    want = np.vectorize(lambda x, y, z: reference(x, y, z, 16, signed, signed, False, not signed))(a, b, c)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "name, element, result, target",
    [
        ("fdot2", "f16", "f32", GFX942),
        ("fdot2.f32.bf16", "bf16", "f32", GFX1201),
        ("fdot2.f16.f16", "f16", "f16", GFX1201),
        ("fdot2.bf16.bf16", "bf16", "bf16", GFX1201),
    ],
)
def test_float_dots_are_exact_on_small_integers(name: str, element: str, result: str, target: Target) -> None:
    lanes = target.wave_size
    a, b = RNG.integers(-6, 7, (2, 3, lanes, 2)).astype(float)
    c = RNG.integers(-20, 20, (3, lanes, 1)).astype(float)
    start = probes.pack(c, result)
    start = start[:, :, 0].copy() if start.ndim == 3 else start
    clamp = [0] if "f32" in result else []
    got = matrix.evaluate(
        name, [probes.pack(a, element), probes.pack(b, element), start, *clamp], wave_size=lanes, target=target
    )
    np.testing.assert_array_equal(probes.unpack(got, result)[:, :, 0], (a * b).sum(axis=2) + c[:, :, 0])


def test_clamp_limits_float_dots_to_the_unit_interval() -> None:
    a = np.array([[[2, 0]] * 21 + [[-1, 0]] * 21 + [[0.25, 0.25]] * 22], np.float16)
    b = np.ones_like(a)
    got = matrix.evaluate("fdot2", [a, b, np.zeros((1, 64), np.float32), 1], wave_size=64, target=GFX942)
    assert got[0].tolist() == [1.0] * 21 + [0.0] * 21 + [0.5] * 22


@pytest.mark.parametrize("a", ["fp8", "bf8"])
@pytest.mark.parametrize("b", ["fp8", "bf8"])
def test_fp8_dots_decode_each_operand_in_its_own_format(a: str, b: str) -> None:
    codes_a, codes_b = (RNG.integers(0, 0x70, (2, 32, 4)).astype(np.uint8) for _ in range(2))
    c = RNG.normal(size=(2, 32)).astype(np.float32)
    table = {"fp8": numerics.E4M3FN.table64, "bf8": numerics.E5M2.table64}
    want = ((table[a][codes_a] * table[b][codes_b]).sum(axis=2) + c).astype(np.float32)
    args = [codes_a.view(np.uint32)[:, :, 0], codes_b.view(np.uint32)[:, :, 0], c]
    np.testing.assert_array_equal(matrix.evaluate(f"dot4.f32.{a}.{b}", args, wave_size=32, target=GFX1201), want)


def test_dots_refuse_foreign_targets_operands_and_constants() -> None:
    one = np.ones((1, 64), np.uint32)
    with pytest.raises(SimError, match="targets with it: gfx1100"):
        matrix.evaluate("sudot4", [0, one, 0, one, one, 0], wave_size=64, target=GFX942)
    with pytest.raises(SimError, match="clamp is 0 to 1"):
        matrix.evaluate("sdot4", [one, one, one, 2], wave_size=64, target=GFX942)
    with pytest.raises(SimError, match=re.escape("2 f16 values per lane")):
        matrix.evaluate("fdot2", [one.astype(np.uint64), one, one, 0], wave_size=64, target=GFX942)
