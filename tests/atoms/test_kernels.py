"""One kernel of each generation, written in the authoring language, compiled by LLVM and run in the simulator."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.atoms.rocdl.cdna3_buffer_atomic import BufferAtomic
from flyllvm.atoms.rocdl.cdna4_async_lds import GlobalLoadAsyncLds
from flyllvm.atoms.rocdl.cdna4_lds_read_trans import LdsReadTrans
from flyllvm.atoms.rocdl.cdna4_mfma_scale import find_mfma_scale
from flyllvm.atoms.rocdl.gfx1250_global_load_async_lds import Gfx1250GlobalLoadAsyncLds
from flyllvm.atoms.universal_atomic import UniversalAtomic
from flyllvm.errors import FlyError
from flyllvm.expr.rocdl.async_lds import asyncmark, wait_asyncmark
from flyllvm.expr.rocdl.load_tr import DSLoadTr, GlobalLoadTr
from flyllvm.expr.rocdl.tdm import make_tdm_atom
from flyllvm.expr.rocdl.wmma import WMMA

pytestmark = [pytest.mark.llvm, pytest.mark.sim]


def product(make: Any, tiles: tuple[int, int, int], threads: int) -> Any:
    """A kernel of one tile: every operand goes from memory to its fragments element by element."""

    @flyc.kernel(known_block_size=(threads, 1, 1))
    def one_tile(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor):
        mma = fx.make_tiled_mma(fx.make_mma_atom(make()), fx.make_layout((1, 1, 1), (1, 1, 1)))
        thr = mma.get_slice(fx.thread_idx.x)
        fragments = []
        for part, tensor in ((thr.partition_A, A), (thr.partition_B, B), (thr.partition_C, C)):
            source = part(tensor)
            held = fx.make_fragment_like(source)
            atom = fx.make_copy_atom(fx.UniversalCopy(tensor.dtype.width), tensor.dtype)
            fx.copy(atom, source, held)
            fragments.append(held)
        a, b, c = fragments
        fx.gemm(mma, c, a, b, c)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(D.dtype.width), D.dtype), c, thr.partition_C(D))

    return one_tile


def run(kernel: Any, arch: str, args: list[np.ndarray], threads: int, **options: Any) -> str:
    """Compiles, simulates in place, and gives the assembly."""
    art = flyc.compile(kernel, *args, arch=arch, **options)
    flyllvm.simulate(art, kernel=next(iter(art.code_object.kernels)), grid=(1,), block=(threads,), args=args)
    return str(art.assembly)


CASES = {
    "gfx1100": ((fx.Float16, fx.Float32), (16, 16, 16), np.float16, np.float32, "v_wmma_f32_16x16x16_f16"),
    "gfx1201": ((fx.BFloat16, fx.Float32), (16, 16, 16), ml_dtypes.bfloat16, np.float32, "v_wmma_f32_16x16x16_bf16"),
    "gfx1250": ((fx.Float16, fx.Float16), (16, 16, 32), np.float16, np.float16, "v_wmma_f16_16x16x32_f16"),
}


@pytest.mark.parametrize("arch", CASES)
def test_a_wmma_tile_agrees_with_numpy(arch: str) -> None:
    (ab, acc), (m, n, k), dtype, out, instruction = CASES[arch]
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-3, 4, shape).astype(x) for shape, x in (((m, k), dtype), ((n, k), dtype), ((m, n), out)))
    d = np.zeros((m, n), out)
    text = run(product(lambda: WMMA(m, n, k, ab, acc), (m, n, k), 32), arch, [a, b, c, d], 32)
    assert len(re.findall(instruction, text)) == 1
    np.testing.assert_array_equal(d.astype(float), a.astype(float) @ b.astype(float).T + c.astype(float))


def test_a_wmma_with_a_bf16_result_of_an_f32_accumulator() -> None:
    @flyc.kernel(known_block_size=(32, 1, 1))
    def one_tile(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, D: fx.Tensor):
        op = WMMA(16, 16, 32, fx.BFloat16, fx.Float32, elem_ty_result=fx.BFloat16)
        mma = fx.make_tiled_mma(fx.make_mma_atom(op), fx.make_layout((1, 1, 1), (1, 1, 1)))
        thr = mma.get_slice(fx.thread_idx.x)
        held = [mma.make_fragment(name, x) for name, x in (("a", A), ("b", B), ("c", C), ("d", D))]
        for x, part, kind in zip(held, (thr.partition_A(A), thr.partition_B(B), thr.partition_C(C)), (A, B, C)):
            fx.copy(fx.make_copy_atom(fx.UniversalCopy(kind.dtype.width), kind.dtype), part, x)
        fx.gemm(mma, held[3], held[0], held[1], held[2])
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(16), D.dtype), held[3], thr.partition_C(D))

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (16, 32)).astype(ml_dtypes.bfloat16) for _ in range(2))
    c = np.arange(256, dtype=np.float32).reshape(16, 16) + 1000  # needs more bits than bf16 has
    d = np.zeros((16, 16), ml_dtypes.bfloat16)
    text = run(one_tile, "gfx1250", [a, b, c, d], 32)
    assert len(re.findall(r"\tv_wmma_bf16f32_16x16x32_bf16", text)) == 1
    want = a.astype(np.float32) @ b.astype(np.float32).T + c
    np.testing.assert_array_equal(d.astype(np.float32), want.astype(ml_dtypes.bfloat16).astype(np.float32))


@pytest.mark.parametrize(("dtype", "sign"), [(fx.Int8, np.int8), (fx.Uint8, np.uint8)])
def test_the_number_type_decides_the_sign_of_a_wmma(dtype: Any, sign: Any) -> None:
    rng = np.random.default_rng(0)
    info = np.iinfo(sign)
    a, b = (rng.integers(info.min, info.max + 1, (16, 16)).astype(sign) for _ in range(2))
    c, d = np.ones((16, 16), np.int32), np.zeros((16, 16), np.int32)
    run(product(lambda: WMMA(16, 16, 16, dtype), (16, 16, 16), 32), "gfx1201", [a, b, c, d], 32)
    np.testing.assert_array_equal(d, a.astype(np.int32) @ b.astype(np.int32).T + 1)


def test_a_scaled_mfma_reads_fragments_and_scales_of_a_kernel() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def scaled(A: fx.Tensor, B: fx.Tensor, SA: fx.Tensor, SB: fx.Tensor, D: fx.Tensor):
        lane = fx.thread_idx.x
        atom = fx.make_mma_atom(find_mfma_scale(16, 16, 128, "f8E4M3FN"))
        atom = atom.set_value({"scale_a": SA[lane], "scale_b": SB[lane]})
        held = [fx.make_rmem_tensor(n, x) for n, x in ((32, fx.Float8E4M3FN), (32, fx.Float8E4M3FN), (4, fx.Float32))]
        wide = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float8E4M3FN)
        for source, registers in ((A, held[0]), (B, held[1])):
            for half in range(0, 32, 16):
                piece = fx.make_layout(16, 1)
                fx.copy(wide, source.at(lane * 32 + half, piece), registers.at(half, piece))
        held[2].fill(0.0)
        fx.mma_atom_call(atom, held[2], held[0], held[1], held[2])
        four = fx.make_layout(4, 1)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32), held[2], D.at(lane * 4, four))

    ones = np.ones(64 * 32, ml_dtypes.float8_e4m3fn)
    scale_a, scale_b = np.full(64, 128, np.int32), np.full(64, 126, np.int32)
    scale_a[48:] = 130  # the last block of 32 k, for every row
    d = np.zeros(256, np.float32)
    text = run(scaled, "gfx950", [ones, ones, scale_a, scale_b, d], 64)
    assert len(re.findall("v_mfma_scale_f32_16x16x128_f8f6f4", text)) == 1
    np.testing.assert_array_equal(d, 3 * 32 * 2 * 0.5 + 32 * 8 * 0.5)


def test_a_transposing_read_behind_an_asynchronous_copy_gives_columns() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def columns(src: fx.Tensor, dst: fx.Tensor):
        lane = fx.thread_idx.x
        lds = fx.make_view(fx.shared_memory(fx.Float16, 512), fx.make_layout(512, 1))
        piece = fx.make_layout(8, 1)
        load = fx.make_copy_atom(GlobalLoadAsyncLds(128), fx.Float16)
        fx.copy(load, src.at(lane * 8, piece), lds.at(lane * 8, piece))
        asyncmark()
        wait_asyncmark(0)
        fx.barrier()
        held = fx.make_rmem_tensor(4, fx.Float16)
        four = fx.make_layout(4, 1)
        fx.copy(fx.make_copy_atom(LdsReadTrans(16, 64), fx.Float16), lds.at(lane * 4, four), held)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(64), fx.Float16), held, dst.at(lane * 4, four))

    src = np.arange(512).astype(np.float16)
    dst = np.zeros(256, np.float16)
    text = run(columns, "gfx950", [src, dst], 64)
    assert "ds_read_b64_tr_b16" in text and "global_load_lds_dwordx4" in text
    behind = text[text.index("global_load_lds") :]
    assert "vmcnt(0)" in behind[: behind.index("ds_read_b64_tr")]
    np.testing.assert_array_equal(dst.reshape(4, 16, 4), src[:256].reshape(4, 4, 16).swapaxes(1, 2))


def test_an_asynchronous_copy_of_gfx1250_needs_its_wait() -> None:
    def reverse(wait: bool) -> Any:
        @flyc.kernel(known_block_size=(32, 1, 1))
        def kernel(src: fx.Tensor, dst: fx.Tensor):
            lane = fx.thread_idx.x
            lds = fx.make_view(fx.shared_memory(fx.Float32, 128), fx.make_layout(128, 1))
            four = fx.make_layout(4, 1)
            load = fx.make_copy_atom(Gfx1250GlobalLoadAsyncLds(128), fx.Float32)
            fx.copy(load, src.at(lane * 4, four), lds.at((31 - lane) * 4, four))
            if wait:
                fx.rocdl.s_wait_asynccnt(0)
            fx.barrier()
            held = fx.make_rmem_tensor(4, fx.Float32)
            plain = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)
            fx.copy(plain, lds.at(lane * 4, four), held)
            fx.copy(plain, held, dst.at(lane * 4, four))

        return kernel

    src, dst = np.arange(128, dtype=np.float32), np.zeros(128, np.float32)
    text = run(reverse(True), "gfx1250", [src, dst], 32)
    assert "global_load_async_to_lds_b128" in text
    np.testing.assert_array_equal(dst.reshape(32, 4), src.reshape(32, 4)[::-1])
    with pytest.raises(flyllvm.FlyError, match=r"s_wait_asynccnt|wait"):
        run(reverse(False), "gfx1250", [src, dst], 32)


def test_atomic_atoms_count_and_find_the_maximum() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def reduce(src: fx.Tensor, total: fx.Tensor, most: fx.Tensor):
        lane = fx.thread_idx.x
        one = fx.make_layout(1, 1)
        held = fx.make_rmem_tensor(1, fx.Int32)
        fx.copy(fx.make_copy_atom(fx.UniversalCopy(32), fx.Int32), src.at(lane, one), held)
        fx.copy(fx.make_copy_atom(UniversalAtomic("add", "i32", "agent"), fx.Int32), held, total.at(0, one))
        buffer = fx.rocdl.make_buffer_tensor(most)
        fx.copy(fx.make_copy_atom(BufferAtomic("max", "i32"), fx.Int32), held, buffer.at(0, one))

    src = np.random.default_rng(0).integers(-99, 99, 64).astype(np.int32)
    total, most = np.zeros(1, np.int32), np.full(1, -1000, np.int32)
    text = run(reduce, "gfx1100", [src, total, most], 64)
    assert "buffer_atomic_max_i32" in text
    assert total[0] == src.sum() and most[0] == src.max()


def test_constructors_refuse_what_the_target_lacks() -> None:
    def using(make: Any) -> Any:
        @flyc.kernel(known_block_size=(64, 1, 1))
        def kernel(x: fx.Tensor):
            make()

        return kernel

    one = np.zeros(4, np.float32)
    for make, fix in (
        (lambda: WMMA(16, 16, 16, fx.Float16), "use fx.rocdl.MFMA"),
        (lambda: DSLoadTr(16, 128), "load plainly"),
        (lambda: GlobalLoadTr(16, 128), "load plainly"),
        (lambda: wait_asyncmark(-1), "give the groups that may stay outstanding"),
    ):
        with pytest.raises(flyllvm.FlyError, match=fix):
            flyc.compile(using(make), one, arch="gfx942")


def test_a_tensor_copy_takes_its_strides_and_extents_from_the_tensor() -> None:
    @flyc.kernel(known_block_size=(128, 1, 1))
    def load(src: fx.Tensor, dst: fx.Tensor):
        row = fx.block_idx.x * 64
        lds = fx.make_view(fx.shared_memory(fx.Float16, 64 * 40), fx.make_layout((64, 32), (40, 1)))
        atom = make_tdm_atom(src, (64, 32), (row, 0), num_warps=4, pad_interval=32, pad_amount=8)
        first = fx.make_layout(1, 1)
        fx.copy_atom_call(atom, src.at(fx.Int64(row) * src.stride[0], first), lds.at(0, first))
        fx.rocdl.s_wait_tensorcnt(0)
        fx.barrier()
        lane = fx.thread_idx.x
        held = fx.make_rmem_tensor(8, fx.Float16)
        wide, eight = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float16), fx.make_layout(8, 1)
        fx.copy(wide, lds.at(lane // 2 * 40 + lane % 2 * 8, eight), held)
        fx.copy(wide, held, dst.at(lane * 8, eight))

    art = flyc.compile(load, "f16[?,?]:(?,1){div=8,align=16}", "f16[1024]:(1){align=16}", arch="gfx1250")
    text = str(art.assembly)
    assert len(re.findall(r"\ttensor_load_to_lds ", text)) == 1 and "s_wait_tensorcnt 0x0" in text
    assert "118554624" not in text  # 32 after 8, not 64 after 8
    assert "llvm.amdgcn.tensor.load.to.lds.d2" in art.llvm_ir


def test_a_tensor_copy_is_refused_where_the_descriptor_cannot_follow() -> None:
    def using(tile: tuple[int, ...], spec: str, arch: str) -> None:
        @flyc.kernel(known_block_size=(32, 1, 1))
        def kernel(x: fx.Tensor):
            make_tdm_atom(x, tile)

        flyc.compile(kernel, spec, arch=arch)

    for tile, spec, arch, fix in (
        ((64,), "f16[?,?]:(?,1)", "gfx1250", "give tile, coordinate and tensor one rank"),
        ((64, 32), "f16[?,?]:(1,?)", "gfx1250", "reorder the modes"),
        ((64, 32), "f16[?,?]:(?,1)", "gfx950", "no tensor data mover"),
    ):
        with pytest.raises(flyllvm.FlyError, match=fix):
            using(tile, spec, arch)


SPARSE = {
    "gfx942": (lambda: fx.rocdl.SMFMAC(16, 16, 32, fx.Float16), (4, 8, 4), 64, fx.Int32, "v_smfmac_f32_16x16x32_f16"),
    "gfx1201": (lambda: fx.rocdl.SWMMAC(16, 16, 32, fx.Float16), (8, 16, 8), 32, fx.Int32, "v_swmmac_f32_16x16x32_f16"),
    "gfx1250": (
        lambda: fx.rocdl.SWMMAC(16, 16, 64, fx.Float16, index="lane"), (16, 32, 8), 32, fx.Int32,
        "v_swmmac_f32_16x16x64_f16",
    ),
}  # fmt: skip


@pytest.mark.parametrize("arch", SPARSE)
def test_a_sparse_product_of_ones_counts_what_a_holds(arch: str) -> None:
    make, (na, nb, nc), threads, kind, instruction = SPARSE[arch]

    @flyc.kernel(known_block_size=(threads, 1, 1))
    def sparse(A: fx.Tensor, B: fx.Tensor, index: fx.Tensor, D: fx.Tensor):
        lane = fx.thread_idx.x
        atom = fx.make_mma_atom(make()).set_value({"index": kind(index[lane])})
        held = [fx.make_rmem_tensor(n, x) for n, x in ((na, fx.Float16), (nb, fx.Float16), (nc, fx.Float32))]
        for source, registers, n in ((A, held[0], na), (B, held[1], nb)):
            for at in fx.range_constexpr(n // 4):
                piece = fx.make_layout(4, 1)
                load = fx.make_copy_atom(fx.UniversalCopy(64), fx.Float16)
                fx.copy(load, source.at(lane * n + at * 4, piece), registers.at(at * 4, piece))
        held[2].fill(0.5)
        fx.mma_atom_call(atom, held[2], held[0], held[1], held[2])
        for at in fx.range_constexpr(nc):
            D[lane * nc + at] = held[2][at]

    a, b = np.full(threads * na, 2, np.float16), np.ones(threads * nb, np.float16)
    index = np.full(threads, 0x44444444, np.uint32).view(np.int32)  # columns 0 and 1 of every four
    d = np.zeros(threads * nc, np.float32)
    text = run(sparse, arch, [a, b, index, d], threads)
    assert len(re.findall(rf"\t{instruction}", text)) == 1
    np.testing.assert_array_equal(d, 2 * threads * na / 16 + 0.5)


@pytest.mark.parametrize(
    ("arch", "make", "fix"),
    [
        ("gfx942", lambda: fx.rocdl.SWMMAC(16, 16, 32, fx.Float16), "targets with it: gfx1200, gfx1201, gfx1250"),
        ("gfx950", lambda: fx.rocdl.SMFMAC(16, 16, 16, fx.Float16), "on gfx950: 16x16x32, 16x16x64"),
        ("gfx1250", lambda: fx.rocdl.SMFMAC(16, 16, 32, fx.Float16), "targets with it: gfx942, gfx950"),
        ("gfx1250", lambda: fx.rocdl.SWMMAC(16, 16, 64, fx.Float16), "check it on hardware"),
    ],
)
def test_sparse_products_are_refused_where_they_are_not(arch: str, make: Any, fix: str) -> None:
    @flyc.kernel(known_block_size=(32, 1, 1))
    def kernel(x: fx.Tensor):
        make()

    with pytest.raises(FlyError, match=fix) as caught:
        flyc.compile(kernel, np.zeros(4, np.float32), arch=arch)
    assert "test_kernels.py" in str(caught.value)


def test_scales_of_gfx1250_may_be_e4m3_and_e5m3() -> None:
    @flyc.kernel(known_block_size=(32, 1, 1))
    def scaled(A: fx.Tensor, B: fx.Tensor, SA: fx.Tensor, SB: fx.Tensor, D: fx.Tensor):
        lane = fx.thread_idx.x
        op = fx.rocdl.cdna5.WMMAScale(
            16, 16, 128, fx.Float8E4M3FN, block_size=16, scale_type_a=fx.Float8E4M3FN, scale_type_b="e5m3"
        )
        atom = fx.make_mma_atom(op).set_value({"scale_a": SA[lane], "scale_b": SB[lane]})
        held = [fx.make_rmem_tensor(n, x) for n, x in ((64, fx.Float8E4M3FN), (64, fx.Float8E4M3FN), (8, fx.Float32))]
        wide = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float8E4M3FN)
        for source, registers in ((A, held[0]), (B, held[1])):
            for quarter in range(0, 64, 16):
                piece = fx.make_layout(16, 1)
                fx.copy(wide, source.at(lane * 64 + quarter, piece), registers.at(quarter, piece))
        held[2].fill(0.0)
        fx.mma_atom_call(atom, held[2], held[0], held[1], held[2])
        for i in fx.range_constexpr(8):
            D[lane * 8 + i] = held[2][i]

    ones = np.ones(32 * 64, ml_dtypes.float8_e4m3fn)
    scale_a = np.full((32, 8), 0x38, np.uint8)  # one in E4M3
    scale_a[:, 5] = 0xC4  # minus three: block 5, K = 80 to 95
    scale_b = np.full((32, 8), 15 << 3 | 4, np.uint8)  # 1.5 in E5M3
    d = np.zeros(256, np.float32)
    args = [ones, ones, scale_a.view(np.int64).reshape(-1), scale_b.view(np.int64).reshape(-1), d]
    text = run(scaled, "gfx1250", args, 32)
    assert "matrix_a_scale_fmt:MATRIX_SCALE_FMT_E4M3" in text and "matrix_b_scale_fmt:MATRIX_SCALE_FMT_E5M3" in text
    np.testing.assert_array_equal(d, (128 - 16) * 1.5 - 16 * 3 * 1.5)


def test_another_type_of_scale_is_refused() -> None:
    @flyc.kernel(known_block_size=(32, 1, 1))
    def kernel(x: fx.Tensor):
        fx.rocdl.cdna5.WMMAScale(16, 16, 128, fx.Float8E4M3FN, scale_type_a=fx.Float8E5M2)

    with pytest.raises(FlyError, match="use Float8E8M0FNU, Float8E4M3FN or 'e5m3'"):
        flyc.compile(kernel, np.zeros(4, np.float32), arch="gfx1250")
