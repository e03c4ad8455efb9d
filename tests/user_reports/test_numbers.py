"""Numbers and matrix instructions, where users of such compilers met wrong values or code that did not compile."""

from __future__ import annotations

import re

import ml_dtypes
import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm import simulate
from flyllvm.codegen import compile_llvm
from flyllvm.codeobject import inspect
from flyllvm.target import Target

from .by_hand import fp8_product

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
FP8 = fx.Float8E4M3FNUZ


@flyc.kernel(known_block_size=(64, 1, 1))
def product(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, bits: fx.Constexpr[int]):
    """C = A B^T of (64, 128) and (16, 128) fp8, the operands through buffer copies of ``bits``."""
    # 16 bytes of a lane are two steps of K: the same permutation of K for both operands.
    order = fx.make_tile(None, None, fx.make_layout((8, 4, 2), (1, 16, 8))) if bits == 128 else None
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, FP8)), fx.make_layout((1, 1, 1), (0, 0, 0)), order
    )
    load, store = (
        fx.make_copy_atom(fx.rocdl.BufferCopy(bits), FP8),
        fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32),
    )
    thread = mma.thr_slice(fx.thread_idx.x)
    frag_a, frag_b, frag_c = thread.make_fragment_A(A), thread.make_fragment_B(B), thread.make_fragment_C(C)
    moves = ((fx.make_tiled_copy_A(load, mma), A, frag_a), (fx.make_tiled_copy_B(load, mma), B, frag_b))
    for copy, memory, fragment in moves:
        mine = copy.get_slice(fx.thread_idx.x)
        fx.copy(copy, mine.partition_S(fx.rocdl.make_buffer_tensor(memory)), mine.retile(fragment))
    frag_c.fill(0.0)
    fx.gemm(mma, frag_c, frag_a, frag_b, frag_c)
    copy = fx.make_tiled_copy_C(store, mma)
    mine = copy.get_slice(fx.thread_idx.x)
    fx.copy(copy, mine.retile(frag_c), mine.partition_D(C))


@pytest.mark.parametrize("bits", [32, 64, 128])
def test_fp8_fragments_fill_by_any_width_and_take_no_more_registers_than_written_by_hand(bits: int) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (64, 128)), rng.integers(-4, 5, (16, 128))
    small = [x.astype(ml_dtypes.float8_e4m3fnuz) for x in (a, b)]
    specs = ("f8E4M3FNUZ[64,128]{align=16}", "f8E4M3FNUZ[16,128]{align=16}", "f32[64,16]")
    artifact = flyc.compile(product, *specs, constants={"bits": bits}, arch="gfx942")
    width = {32: "dword", 64: "dwordx2", 128: "dwordx4"}[bits]
    # LLVM may join neighbours, but does not split them.
    assert bits == 32 or set(re.findall(r"buffer_load_(\w+)", artifact.assembly)) == {width}

    text = fp8_product(bits)
    hand = inspect(compile_llvm(text, Target.parse("gfx942")).object).kernels["product"]
    c, d = np.zeros((64, 16), np.float32), np.zeros((64, 16), np.float32)
    artifact.simulate(*small, c, grid=(1, 1, 1))
    simulate(text, kernel="product", grid=(1, 1, 1), block=(64, 1, 1), args=[*small, d], target="gfx942")
    np.testing.assert_array_equal(c, a @ b.T)
    np.testing.assert_array_equal(d, a @ b.T)
    ours = artifact.code_object.kernels["product"]
    assert ours.vgpr_count <= hand.vgpr_count and ours.agpr_count == 0 == ours.scratch_bytes


@flyc.kernel(known_block_size=(64, 1, 1))
def tiny(x: fx.Tensor, y: fx.Tensor):
    i = fx.thread_idx.x
    y[i] = fx.math.exp2(x[i])
    y[64 + i] = x[64 + i] * x[128 + i]


@pytest.mark.parametrize("flushes", [False, True])
def test_denormals_are_kept_by_default_and_flushed_on_request(flushes: bool) -> None:
    hints = {"denormals": "flush_f32"} if flushes else {}
    artifact = flyc.compile(tiny, "f32[192]", "f32[128]", arch="gfx942", **hints)
    x, y = np.zeros(192, np.float32), np.ones(128, np.float32)
    x[:64], x[64:128], x[128:] = -130, 1e-40, 1
    artifact.simulate(x, y, grid=(1, 1, 1))
    want = np.repeat(np.float32([2.0**-130, 1e-40]), 64)
    np.testing.assert_array_equal(y, 0 if flushes else want)
    # The instruction flushes by itself: to keep denormals its argument and result are scaled.
    assert f".amdhsa_float_denorm_mode_32 {0 if flushes else 3}" in artifact.assembly
    assert ("v_ldexp_f32" in artifact.assembly) is not flushes


@flyc.kernel(known_block_size=(64, 1, 1))
def wraps(y: fx.Tensor, a: fx.Uint32, b: fx.Int8):
    y[0], y[1] = fx.Int64(a + 1), fx.Int64(b * b)
    y[2], y[3] = fx.Int64(fx.Uint64(a) + 1), fx.Int64(fx.Int32(b) * b)


def test_integers_of_the_edge_wrap_in_their_own_type_and_are_exact_in_a_wider_one() -> None:
    y = np.zeros(4, np.int64)
    artifact = flyc.compile(wraps, "i64[4]", fx.Uint32, fx.Int8, arch="gfx942", stop_after="llvm")
    artifact.simulate(y, 0xFFFFFFFF, 100, grid=(1, 1, 1))
    assert y.tolist() == [0, np.int64(np.int8(10000 & 0xFF)), 1 << 32, 10000]


@flyc.kernel(known_block_size=(32, 1, 1))
def passes_c(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor):
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.WMMA(16, 16, 32, fx.Float16, fx.Float32)), fx.make_layout((1, 1, 1), (1, 1, 1))
    )
    thread, held = mma.get_slice(fx.thread_idx.x), []
    parts = (thread.partition_A(A), A), (thread.partition_B(B), B), (thread.partition_C(C), C)
    for source, tensor in parts:
        held.append(fx.make_fragment_like(source))
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(tensor.dtype.width), tensor.dtype), source, held[-1])
    # Twice: the second instruction takes the result of the first where a hazard would show.
    for _ in fx.range_constexpr(2):
        fx.gemm(mma, held[2], held[0], held[1], held[2])
    fx.copy(fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32), held[2], thread.partition_C(D))


def test_c_passes_unchanged_through_products_of_zeros_on_gfx1250() -> None:
    a, b = np.zeros((16, 32), np.float16), np.zeros((16, 32), np.float16)
    c, d = np.arange(256, dtype=np.float32).reshape(16, 16), np.zeros((16, 16), np.float32)
    artifact = flyc.compile(passes_c, a, b, c, d, arch="gfx1250")
    artifact.simulate(a, b, c, d, grid=(1, 1, 1))
    np.testing.assert_array_equal(d, c)
    assert artifact.assembly.count("v_wmma_f32_16x16x32_f16") == 2
