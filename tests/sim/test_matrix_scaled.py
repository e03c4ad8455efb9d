"""Block-scaled products: published register maps, mixed formats, a different scale for every block."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import matrix, matrix_mfma, matrix_scaled, numerics, simulate
from flyllvm.target import Target
from tests.sim import probes

GFX950, GFX1250 = Target.parse("gfx950"), Target.parse("gfx1250")
TABLE = {row["key"]: row for row in probes.oracle_rows() if ".scale." in row["intrinsic"]}
# The table names widths; both 8-bit and both 6-bit formats share a map.
ELEMENTS = {"f8": ("fp8", "bf8"), "f6": ("fp6", "bf6"), "f4": ("fp4", "fp4")}
ONE = 127


def fragments(entry: dict[str, Any]) -> probes.Fragments:
    return probes.from_layouts(tuple(entry["mnk"]), 1, entry["wave"], entry["A"], entry["B"], entry["C"])


class Call:
    """One scaled row with chosen formats, as a function of values and scale codes."""

    def __init__(
        self,
        entry: dict[str, Any],
        pick: int,
        *,
        block: int = 32,
        opsel: tuple[int, int] = (0, 0),
        formats: tuple[int, int] = (0, 0),
    ) -> None:
        self.f = fragments(entry)
        self.block = block
        self.cdna4 = entry["wave"] == 64
        self.wide = self.f.m == 32 and not self.cdna4
        self.target = GFX950 if self.cdna4 else GFX1250
        self.a, self.b = ELEMENTS[entry["a"]][pick], ELEMENTS[entry["b"]][1 - pick]
        self.opsel, self.formats = opsel, formats
        name = entry["intrinsic"].removeprefix("llvm.amdgcn.")
        self.name = name if block == 32 else name.replace("wmma.scale.", "wmma.scale16.")

    def scale_registers(self, codes: np.ndarray, opsel: int) -> np.ndarray:
        """Scale operand for codes ``(waves, rows, blocks)``; bytes that are not selected hold nonsense."""
        waves, rows, blocks = codes.shape
        lanes = self.f.lanes
        if self.cdna4:
            registers = np.full((waves, lanes, 4), 200, np.uint8)
            registers[:, :, opsel] = codes.swapaxes(1, 2).reshape(waves, lanes)  # lane = row + rows * block
            return registers.view(np.uint32)[:, :, 0].copy()
        registers = np.full((waves, lanes, blocks), 200, np.uint8)
        registers[:, 16 * opsel : 16 * opsel + rows] = codes
        return registers.view(np.uint32 if blocks == 4 else np.uint64)[:, :, 0].copy()

    def __call__(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, scale_a: Any, scale_b: Any) -> np.ndarray:
        code_a, code_b = matrix_scaled.FORMATS.index(self.a), matrix_scaled.FORMATS.index(self.b)
        a, b, c = (probes.pack(x, e, "ocp") for x, e in ((a, self.a), (b, self.b), (c, "f32")))
        sel_a, sel_b = self.opsel
        if self.cdna4:
            args = [a, b, c, code_a, code_b, sel_a, scale_a, sel_b, scale_b]
        else:
            tail = [sel_a, self.formats[0], scale_a, sel_b, self.formats[1], scale_b, 0, 1]
            args = [a, b, 0, c, *tail] if self.wide else [code_a, a, code_b, b, 0, c, *tail]
        got = matrix.evaluate(self.name, args, wave_size=self.f.lanes, target=self.target)
        return probes.unpack(got, "f32")

    def with_unit_scales(self, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        ones = [np.full((a.shape[0], rows, self.f.k // self.block), ONE, np.uint8) for rows in (self.f.m, self.f.n)]
        return self(a, b, c, *(self.scale_registers(x, o) for x, o in zip(ones, self.opsel)))


@pytest.mark.parametrize("key", sorted(TABLE))
def test_lane_formulas_equal_the_published_register_maps(key: str) -> None:
    entry = TABLE[key]
    f = fragments(entry)
    if f.m == 32 and f.n == 16:
        a_index = matrix_scaled.input_index_32_rows()
        groups, out = 2, matrix_scaled.output_index_gfx1250(32)
    elif entry["wave"] == 32:
        groups, out = 2, matrix_scaled.output_index_gfx1250(16)
    else:
        groups, out = 64 // f.m, matrix_mfma.output_index(f.m, 1, 4)[0]
    for element in ELEMENTS[entry["a"]]:
        index = a_index if f.m != f.n else matrix_scaled.input_index(element, f.m, f.k, groups)
        np.testing.assert_array_equal(index, f.table("a")[0, ..., 0])
    for element in ELEMENTS[entry["b"]]:
        index = matrix_scaled.input_index(element, f.n, f.k, groups)
        np.testing.assert_array_equal(index.T, f.table("b")[0, ..., 0])
    np.testing.assert_array_equal(out, f.table("d")[0, ..., 0])


@pytest.mark.parametrize("key", sorted(TABLE))
def test_every_product_lands_in_its_element_and_nowhere_else(key: str) -> None:
    call = Call(TABLE[key], 0)
    probes.check_products(call.with_unit_scales, call.f, probes.exact_values(call.b, "ocp"))
    probes.check_accumulator(call.with_unit_scales, call.f)


@pytest.mark.parametrize("opsel", [(0, 0), (3, 1)])
@pytest.mark.parametrize("pick", [0, 1])
@pytest.mark.parametrize("key", sorted(TABLE))
def test_every_block_has_a_scale_of_its_own(key: str, pick: int, opsel: tuple[int, int]) -> None:
    entry = TABLE[key]
    if entry["wave"] == 32:
        opsel = (0, opsel[1]) if entry["mnk"][0] == 32 else (opsel[0] & 1, opsel[1])
    for block in (32,) if entry["wave"] == 64 else (32, 16):
        call = Call(entry, pick, block=block, opsel=opsel)
        f = call.f
        rng = np.random.default_rng(3)
        a = rng.integers(-2, 3, (2, 1, f.m, f.k)).astype(float)
        b = rng.integers(-2, 3, (2, 1, f.k, f.n)).astype(float)
        c = rng.integers(-9, 9, (2, 1, f.m, f.n)).astype(float)
        codes_a = rng.integers(ONE - 3, ONE + 4, (2, f.m, f.k // block)).astype(np.uint8)
        codes_b = rng.integers(ONE - 3, ONE + 4, (2, f.n, f.k // block)).astype(np.uint8)
        got = call(
            probes.scatter(a, f.table("a"), f.lanes, f.counts[0]),
            probes.scatter(b, f.table("b"), f.lanes, f.counts[1]),
            probes.scatter(c, f.table("d"), f.lanes, f.counts[2]),
            call.scale_registers(codes_a, opsel[0]),
            call.scale_registers(codes_b, opsel[1]),
        )
        wide_a = np.repeat(numerics.decode_e8m0(codes_a), block, axis=2)[:, None]
        wide_b = np.repeat(numerics.decode_e8m0(codes_b), block, axis=2).swapaxes(1, 2)[:, None]
        want = (a * wide_a) @ (b * wide_b) + c
        np.testing.assert_array_equal(got.reshape(2, -1)[:, f.table("d")[..., 0]], want)


@pytest.mark.parametrize("formats", [(1, 2), (2, 0), (0, 1)])
@pytest.mark.parametrize("block", [32, 16])
@pytest.mark.parametrize("key", [key for key in sorted(TABLE) if TABLE[key]["wave"] == 32])
def test_gfx1250_reads_scales_of_each_format(key: str, block: int, formats: tuple[int, int]) -> None:
    call = Call(TABLE[key], 0, block=block, formats=formats)
    f = call.f
    rng = np.random.default_rng(3)
    a = rng.integers(-2, 3, (2, 1, f.m, f.k)).astype(float)
    b = rng.integers(-2, 3, (2, 1, f.k, f.n)).astype(float)
    low, high = ((ONE - 3, 114, 0x30), (ONE + 4, 134, 0x48))  # short factors around one, in each format
    codes = [
        rng.integers(low[fmt], high[fmt], (2, rows, f.k // block)).astype(np.uint8)
        for fmt, rows in zip(formats, (f.m, f.n))
    ]
    factors = []
    for fmt, held in zip(formats, codes):
        exponent, mantissa = held >> 3, held & 7
        number = (1 + mantissa / 8) * np.ldexp(1.0, exponent.astype(int) - 15)  # E5M3 by its definition
        factors.append((np.ldexp(1.0, held.astype(int) - 127), number, held.view(ml_dtypes.float8_e4m3fn))[fmt])
    got = call(
        probes.scatter(a, f.table("a"), f.lanes, f.counts[0]),
        probes.scatter(b, f.table("b"), f.lanes, f.counts[1]),
        np.zeros((2, f.lanes, f.counts[2])),
        *(call.scale_registers(held, 0) for held in codes),
    )
    wide_a, wide_b = (np.repeat(x.astype(float), block, axis=2) for x in factors)
    want = (a * wide_a[:, None]) @ (b * wide_b.swapaxes(1, 2)[:, None])
    np.testing.assert_array_equal(got.reshape(2, -1)[:, f.table("d")[..., 0]], want)


def ones(target: Target) -> list[np.ndarray]:
    """Operands of 16x16x128 whose fp8 elements are all one, and a zero accumulator."""
    lanes, words = (64, 8) if target is GFX950 else (32, 16)
    return [
        *(np.full((1, lanes, words), 0x38383838, np.uint32) for _ in range(2)),
        np.zeros((1, lanes, 256 // lanes), np.float32),
    ]


def test_two_constant_zero_scales_are_the_unscaled_instruction_and_registers_of_zero_are_not() -> None:
    a, b, c = ones(GFX950)
    name = "mfma.scale.f32.16x16x128.f8f6f4.v8i32.v8i32"
    zero = np.zeros((1, 64), np.uint32)
    one = np.full((1, 64), ONE, np.uint32)

    def run(scale_a: Any, scale_b: Any) -> np.ndarray:
        return matrix.evaluate(name, [a, b, c, 0, 0, 0, scale_a, 0, scale_b], wave_size=64, target=GFX950)

    assert (run(0, 0) == 128).all()
    assert (run(one, one) == 128).all() and (run(ONE, ONE + 1) == 256).all()
    assert (run(zero, one) == 128 * 2.0**-127).all() and (run(0, ONE) == 128 * 2.0**-127).all()
    assert (run(zero, zero) == 0).all()  # 2**-247 is below float32
    assert np.isnan(run(one, np.full((1, 64), 255, np.uint32))).all()


def test_gfx1250_has_no_unscaled_reading_of_constant_zero_scales() -> None:
    a, b, c = ones(GFX1250)
    args = [0, a, 0, b, 0, c, 0, 0, 0, 0, 0, ONE * 0x01010101, 0, 0]
    got = matrix.evaluate("wmma.scale.f32.16x16x128.f8f6f4", args, wave_size=32, target=GFX1250)
    assert (got == 128 * 2.0**-127).all()


def test_gfx1250_unscaled_forms_multiply_and_refuse_mixes_of_unknown_order() -> None:
    a, b, c = ones(GFX1250)
    name = "wmma.f32.16x16x128.f8f6f4"
    assert (matrix.evaluate(name, [0, a, 0, b, 0, c], wave_size=32, target=GFX1250) == 128).all()
    four = np.full((1, 32, 8), 0x22222222, np.uint32)  # fp4 ones
    assert (matrix.evaluate(name, [4, four, 4, four, 1, c + 1], wave_size=32, target=GFX1250) == 127).all()
    with pytest.raises(SimError, match=re.escape("use wmma.scale with scales of one")):
        matrix.evaluate(name, [0, a, 4, four, 0, c], wave_size=32, target=GFX1250)
    wide = np.full((1, 32, 16), 0x22222222, np.uint32)
    c32 = np.zeros((1, 32, 16), np.float32)
    assert (matrix.evaluate("wmma.f32.32x16x128.f4", [wide, four, 0, c32], wave_size=32, target=GFX1250) == 128).all()


@pytest.mark.parametrize(
    "name, target, immediates, fix",
    [
        ("mfma.scale.f32.16x16x128.f8f6f4", GFX950, (5, 0, 0, 0), "0 fp8, 1 bf8, 2 fp6, 3 bf6, 4 fp4"),
        ("mfma.scale.f32.16x16x128.f8f6f4", GFX950, (0, 0, 4, 0), "opsel of A is 0 to 3"),
        ("mfma.scale.f32.16x16x128.f8f6f4", GFX1250, (0, 0, 0, 0), "targets with it: gfx950"),
        ("wmma.scale.f32.16x16x128.f8f6f4", GFX1250, (0, 0, 0, 0, 3, 0, 0, 0, 0), "scale format of A is 0 to 2"),
        ("wmma.scale.f32.16x16x128.f8f6f4", GFX1250, (0, 0, 0, 2, 0, 0, 0, 0, 0), "scale selector of A is 0 to 1"),
        ("wmma.scale.f32.32x16x128.f4", GFX1250, (0, 1, 0, 0, 0, 0, 0), "scale selector of A is 0 to 0"),
        ("wmma.scale.f32.32x16x128.f4", GFX1250, (0, 0, 0, 0, 0, 0, 2), "reuse B is 0 to 1"),
    ],
)
def test_what_means_nothing_is_refused(name: str, target: Target, immediates: tuple[int, ...], fix: str) -> None:
    with pytest.raises(SimError, match=re.escape(fix)):
        matrix.prepare(name, immediates, wave_size=target.wave_size, target=target)


def test_operands_of_the_wrong_width_are_refused() -> None:
    a, b, c = ones(GFX950)
    name = "mfma.scale.f32.16x16x128.f8f6f4"
    with pytest.raises(SimError, match=re.escape("32 fp4 values per lane in 64 lanes (16 bytes per lane)")):
        matrix.evaluate(name, [a, b, c, 4, 0, 0, ONE, 0, ONE], wave_size=64, target=GFX950)
    with pytest.raises(SimError, match="one i32 in 64 lanes"):
        matrix.evaluate(name, [a, b, c, 0, 0, 0, np.zeros((1, 64), np.uint64), 0, ONE], wave_size=64, target=GFX950)


IR = """
target triple = "amdgcn-amd-amdhsa"
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.sdot4(i32, i32, i32, i1 immarg)
declare <4 x float> @llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v4i32.v4i32(<4 x i32>, <4 x i32>, <4 x float>,
                                                              i32 immarg, i32 immarg, i32 immarg, i32, i32 immarg, i32)
define amdgpu_kernel void @k(ptr addrspace(1) %literal, ptr addrspace(1) %register, ptr addrspace(1) %dot, i32 %s) {
  %i = call i32 @llvm.amdgcn.workitem.id.x()
  %one = insertelement <4 x i32> poison, i32 572662306, i32 0
  %a = shufflevector <4 x i32> %one, <4 x i32> poison, <4 x i32> zeroinitializer
  %r = call <4 x float> @llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v4i32.v4i32(<4 x i32> %a, <4 x i32> %a,
                                  <4 x float> zeroinitializer, i32 4, i32 4, i32 0, i32 0, i32 0, i32 0)
  %t = call <4 x float> @llvm.amdgcn.mfma.scale.f32.16x16x128.f8f6f4.v4i32.v4i32(<4 x i32> %a, <4 x i32> %a,
                                  <4 x float> zeroinitializer, i32 4, i32 4, i32 0, i32 %s, i32 0, i32 127)
  %p = getelementptr <4 x float>, ptr addrspace(1) %literal, i32 %i
  store <4 x float> %r, ptr addrspace(1) %p
  %q = getelementptr <4 x float>, ptr addrspace(1) %register, i32 %i
  store <4 x float> %t, ptr addrspace(1) %q
  %few = icmp slt i32 %i, 10
  br i1 %few, label %some, label %end
some:
  %d = call i32 @llvm.amdgcn.sdot4(i32 %i, i32 %i, i32 5, i1 false)
  %o = getelementptr i32, ptr addrspace(1) %dot, i32 %i
  store i32 %d, ptr addrspace(1) %o
  br label %end
end:
  ret void
}
"""


@pytest.mark.sim
def test_a_kernel_sees_literal_scales_and_may_use_dots_in_part_of_a_wave() -> None:
    literal, register = np.zeros((2, 64, 4), np.float32)
    dot = np.zeros(64, np.int32)
    simulate(IR, kernel="k", grid=(1,), block=(64,), args=[literal, register, dot, 128], target="gfx950")
    assert (literal == 128).all() and (register == 256).all()
    np.testing.assert_array_equal(dot, [i * i + 5 if i < 10 else 0 for i in range(64)])
