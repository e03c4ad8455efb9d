"""Single instructions of the hardware that compute each lane by itself."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.sim.test_lanes import run

pytestmark = pytest.mark.sim
RNG = np.random.default_rng(11)
X, Y, Z = (RNG.integers(0, 2**32, 128, dtype=np.uint32) for _ in range(3))


def _bytes(a: Any) -> Any:
    return a.view(np.uint8).reshape(-1, 4).astype(np.int64)


def _i32(name: str, args: str = "i32 %x0, i32 %x1, i32 %x2") -> Any:
    return run(f"%v = call i32 @llvm.amdgcn.{name}({args})", [X, Y, Z])


def test_sums_of_absolute_differences() -> None:
    difference = np.abs(_bytes(X) - _bytes(Y))
    assert np.array_equal(_i32("sad.u8"), (difference.sum(1) + Z & 0xFFFFFFFF).astype(np.uint32))
    assert np.array_equal(_i32("sad.hi.u8"), ((difference.sum(1) << 16) + Z & 0xFFFFFFFF).astype(np.uint32))
    masked = np.where(_bytes(Y) == 0, 0, difference)
    assert np.array_equal(_i32("msad.u8"), (masked.sum(1) + Z & 0xFFFFFFFF).astype(np.uint32))
    halves = [a.view(np.uint16).reshape(-1, 2).astype(np.int64) for a in (X, Y)]
    want = np.abs(halves[0] - halves[1]).sum(1) + Z & 0xFFFFFFFF
    assert np.array_equal(_i32("sad.u16"), want.astype(np.uint32))


def test_lerp_averages_bytes_and_rounds_by_the_third_operand() -> None:
    want = (_bytes(X) + _bytes(Y) + (_bytes(Z) & 1)) >> 1
    assert np.array_equal(_i32("lerp"), want.astype(np.uint8).view(np.uint32).ravel())


@pytest.mark.parametrize(
    ("table", "want"), [(0x80, X & Y & Z), (0xFE, X | Y | Z), (0x96, X ^ Y ^ Z), (0xCA, (X & Y) | (~X & Z)), (0, X * 0)]
)
def test_bitop3_is_a_truth_table(table: int, want: Any) -> None:
    got = run(f"%v = call i32 @llvm.amdgcn.bitop3.i32(i32 %x0, i32 %x1, i32 %x2, i32 {table})", [X, Y, Z])
    assert np.array_equal(got, want)


def test_saturating_sums_with_limits() -> None:
    wide = X.astype(np.int64) + Y.astype(np.int64)
    assert np.array_equal(_i32("add.max.u32"), np.maximum(np.minimum(wide, 2**32 - 1), Z).astype(np.uint32))
    signed = X.view(np.int32).astype(np.int64) + Y.view(np.int32)
    limited = np.minimum(np.clip(signed, -(2**31), 2**31 - 1), Z.view(np.int32))
    assert np.array_equal(_i32("add.min.i32"), limited.astype(np.int32).view(np.uint32))


def test_bit_scans_and_masks() -> None:
    values = np.array([0, 1, 0xFFFFFFFF, 0x0000FFFF, 0xFFFF0000, 0x80000000, 0x40000000, 3] * 16, np.uint32)
    got = run("%v = call i32 @llvm.amdgcn.sffbh.i32(i32 %x0)", [values])[:8].astype(np.int32)
    assert list(got) == [-1, 31, -1, 16, 16, 1, 1, 30]
    quads = run("%v = call i32 @llvm.amdgcn.s.quadmask.i32(i32 %x0)", [values])[:8]
    assert list(quads) == [0, 1, 0xFF, 0x0F, 0xF0, 0x80, 0x80, 1]
    low = "%wide = call i64 @llvm.amdgcn.s.bitreplicate(i32 %x0)\n%v = trunc i64 %wide to i32"
    assert list(run(low, [values])[:4]) == [0, 3, 0xFFFFFFFF, 0xFFFFFFFF]


def test_mov_dpp8_and_shuffles() -> None:
    lane = np.arange(32)
    reverse = sum((7 - i) << (3 * i) for i in range(8))
    got = run(f"%v = call i32 @llvm.amdgcn.mov.dpp8.i32(i32 %x0, i32 {reverse})", [X], target="gfx1100")
    assert np.array_equal(got.reshape(-1, 32), X.reshape(-1, 32)[:, lane ^ 7])
    body = "%i = xor i32 %t, 5\n%v = call i32 @llvm.amdgcn.wave.shuffle.i32(i32 %x0, i32 %i)"
    assert np.array_equal(run(body, [X], target="gfx1200").reshape(-1, 32), X.reshape(-1, 32)[:, lane ^ 5])
    body = "%b = call i1 @llvm.amdgcn.inverse.ballot.i32(i32 10)\n%v = zext i1 %b to i32"
    assert np.array_equal(run(body, target="gfx1100")[:32], 10 >> lane & 1)


def test_the_division_sequence_gives_the_rounded_quotient() -> None:
    a, b = RNG.normal(size=128).astype(np.float32) * 1e20, RNG.normal(size=128).astype(np.float32)
    b[3] = 0
    body = """
    %n = bitcast i32 %x0 to float
    %d = bitcast i32 %x1 to float
    %s0 = call { float, i1 } @llvm.amdgcn.div.scale.f32(float %n, float %d, i1 false)
    %s1 = call { float, i1 } @llvm.amdgcn.div.scale.f32(float %n, float %d, i1 true)
    %sd = extractvalue { float, i1 } %s0, 0
    %sn = extractvalue { float, i1 } %s1, 0
    %vcc = extractvalue { float, i1 } %s1, 1
    %r = call float @llvm.amdgcn.rcp.f32(float %sd)
    %q = fmul float %sn, %r
    %m = call float @llvm.amdgcn.div.fmas.f32(float %q, float 1.0, float 0.0, i1 %vcc)
    %f = call float @llvm.amdgcn.div.fixup.f32(float %m, float %d, float %n)
    %v = bitcast float %f to i32"""
    with np.errstate(divide="ignore"):
        want = a / b
    assert np.array_equal(run(body, [a.view(np.uint32), b.view(np.uint32)]).view(np.float32), want)


def test_float_functions_of_the_hardware() -> None:
    x = np.abs(RNG.normal(size=128)).astype(np.float32)
    wide = x.astype(np.float64)
    cases = {
        "rcp": 1 / wide, "rsq": 1 / np.sqrt(wide), "sqrt": np.sqrt(wide), "exp2": np.exp2(wide), "log": np.log2(wide),
        "sin": np.sin(2 * np.pi * wide), "fract": x - np.floor(x),
    }  # fmt: skip
    for name, want in cases.items():
        body = (
            f"%f = bitcast i32 %x0 to float\n%g = call float @llvm.amdgcn.{name}.f32(float %f)\n"
            "%v = bitcast float %g to i32"
        )
        assert np.array_equal(run(body, [x.view(np.uint32)]).view(np.float32), want.astype(np.float32)), name


def test_median_of_three_and_classes() -> None:
    a, b, c = (RNG.normal(size=128).astype(np.float32) for _ in range(3))
    body = (
        "%a = bitcast i32 %x0 to float\n%b = bitcast i32 %x1 to float\n%c = bitcast i32 %x2 to float\n"
        "%m = call float @llvm.amdgcn.fmed3.f32(float %a, float %b, float %c)\n%v = bitcast float %m to i32"
    )
    got = run(body, [v.view(np.uint32) for v in (a, b, c)]).view(np.float32)
    assert np.array_equal(got, np.median(np.stack([a, b, c]), axis=0))
    values = np.array([np.nan, -np.inf, -1, -1e-42, -0.0, 0.0, 1e-42, 1, np.inf, 2] * 13, np.float32)[:128]
    subnormal = (abs(values) > 0) & (abs(values) < 1e-40)
    for mask, want in ((0x3, np.isnan(values)), (0x204, np.isinf(values)), (0x60, values == 0), (0x90, subnormal)):
        body = (
            f"%f = bitcast i32 %x0 to float\n%c = call i1 @llvm.amdgcn.class.f32(float %f, i32 {mask})\n"
            "%v = zext i1 %c to i32"
        )
        assert np.array_equal(run(body, [values.view(np.uint32)]), want.astype(np.uint32)), hex(mask)
