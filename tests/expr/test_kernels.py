"""Kernels in FlyDSL's style with only the imports changed: tiled MFMA, traversal orders, row softmax."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import FlyError

ORDERS = [f"{name}{tail}" for name in ("KMN", "KNM", "MKN", "MNK", "NKM", "NMK") for tail in ("", "_Serpentine")]


@flyc.kernel(known_block_size=(256, 1, 1))
def tiled_mfma(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, order: str | None = None):
    """C = A B^T, 64 x 64 x 8 f32, four waves as (2, 2, 1)."""
    tid = fx.thread_idx.x
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)), fx.make_layout((2, 2, 1), (1, 2, 0))
    )
    atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    copy_a, copy_b, copy_c = (make(atom, mma) for make in
                              (fx.make_tiled_copy_A, fx.make_tiled_copy_B, fx.make_tiled_copy_C))  # fmt: skip
    frag_a, frag_b, frag_c = mma.make_fragment_A(A), mma.make_fragment_B(B), mma.make_fragment_C(C)
    for tiled, tensor, fragment in ((copy_a, A, frag_a), (copy_b, B, frag_b)):
        thr = tiled.get_slice(tid)
        fx.copy(tiled, thr.partition_S(tensor), thr.retile(fragment))
    frag_c.fill(0.0)
    fx.gemm(mma, frag_c, frag_a, frag_b, frag_c, traversal_order=order)
    thr = copy_c.get_slice(tid)
    fx.copy(copy_c, thr.retile(frag_c), thr.partition_D(C))


@pytest.mark.sim
@pytest.mark.parametrize("layout", ["row", "column"])
def test_tiled_mfma_of_four_waves(layout: str) -> None:
    # Every element of A is different, so that a wrong map of K shows.
    a = (1000 * np.arange(64)[:, None] + np.arange(8)).astype(np.float32)
    b = np.random.default_rng(0).integers(-4, 5, (64, 8)).astype(np.float32)
    a_spec = "f32[64,8]" if layout == "row" else "f32[64,8]:(1,64)"
    a = a if layout == "row" else np.asfortranarray(a)
    c = np.zeros((64, 64), np.float32)
    artifact = flyc.compile(tiled_mfma, a_spec, "f32[64,8]", "f32[64,64]", arch="gfx942", stop_after="llvm")
    assert "alloca" not in artifact.llvm_ir and " div " not in artifact.llvm_ir
    artifact.simulate(a, b, c, grid=(1, 1, 1))
    np.testing.assert_array_equal(c, a.astype(np.float64) @ b.T.astype(np.float64))


@pytest.mark.sim
@pytest.mark.parametrize("order", ORDERS)
def test_every_traversal_order_gives_the_product(order: str) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (64, 8)).astype(np.float32) for _ in range(2))
    c = np.zeros((64, 64), np.float32)
    specs = ("f32[64,8]", "f32[64,8]", "f32[64,64]")
    artifact = flyc.compile(tiled_mfma, *specs, arch="gfx942", stop_after="llvm", constants={"order": order})
    artifact.simulate(a, b, c, grid=(1, 1, 1))
    np.testing.assert_array_equal(c, a @ b.T)


def test_an_unknown_order_is_refused() -> None:
    with pytest.raises(FlyError, match="KMN"):
        flyc.compile(
            tiled_mfma, "f32[64,8]", "f32[64,8]", "f32[64,64]", arch="gfx942", stop_after="llvm",
            constants={"order": "KKK"},
        )  # fmt: skip


@flyc.kernel(known_block_size=(256, 1, 1))
def softmax(x: fx.Tensor, y: fx.Tensor):
    """Softmax of every row, one row a workgroup, through wave reductions and LDS."""
    N, tid, row = x.shape[1], fx.thread_idx.x, fx.block_idx.x
    waves = 256 // fx.num_warp_threads()
    parts = fx.SharedAllocator().allocate(fx.Array[fx.Float32, 8]).view(fx.make_layout(8, 1))

    def over_block(value, op):
        value = fx.wave_reduce(value, op)
        fx.barrier()
        if fx.lane_id() == 0:
            parts[fx.wave_id()] = value
        fx.barrier()
        total = parts[0]
        for w in fx.range_constexpr(1, waves):
            total = fx.max(total, parts[w]) if op == "max" else total + parts[w]
        return total

    top = fx.Float32(float("-inf"))
    for i in range(tid, N, 256):
        top = fx.max(top, x[row, i].to(fx.Float32))
    top = over_block(top, "max")
    total = fx.Float32(0.0)
    for i in range(tid, N, 256):
        total += fx.math.exp2((x[row, i].to(fx.Float32) - top) * 1.4426950408889634)
    scale = 1.0 / over_block(total, "add")
    for i in range(tid, N, 256):
        y[row, i] = (fx.math.exp2((x[row, i].to(fx.Float32) - top) * 1.4426950408889634) * scale).to(y.dtype)


@pytest.mark.sim
@pytest.mark.parametrize("shape", [(3, 1000), (2, 5), (1, 256)])
@pytest.mark.parametrize(("name", "kind", "bound"), [("f32", np.float32, 2e-6), ("f16", np.float16, 6e-4)])
def test_row_softmax(shape: tuple[int, int], name: str, kind: type, bound: float) -> None:
    x = (np.random.default_rng(0).standard_normal(shape) * 5).astype(kind)
    y = np.zeros(shape, kind)
    spec = f"{name}[?,?]"
    flyc.compile(softmax, spec, spec, arch="gfx942", stop_after="llvm").simulate(x, y, grid=(shape[0], 1, 1))
    e = np.exp(x.astype(np.float64) - x.astype(np.float64).max(1, keepdims=True))
    want = e / e.sum(1, keepdims=True)
    np.testing.assert_allclose(y, want, rtol=bound * 4, atol=bound)


@flyc.kernel(known_block_size=(256, 1, 1))
def double_buffered(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """C = A B^T in f16: tiles of 128 x 128 x 64 through two stages of swizzled LDS."""
    tid, bx, by = fx.thread_idx.x, fx.block_idx.x, fx.block_idx.y
    steps = A.shape[1] // 64
    tiles = [fx.flat_divide(t, (128, 64))[None, None, i, None] for t, i in ((A, bx), (B, by))]

    # Global memory to registers and on to LDS: 32 rows at a time, 16 bytes a thread.
    wide = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
    g2s = fx.make_tiled_copy_tv(wide, fx.make_layout((32, 8), (8, 1)), fx.make_layout((1, 8), (1, 1)))
    mover = g2s.get_slice(tid)
    stages = fx.make_layout((128, 64, 2), (64, 1, 128 * 64))
    lds = [fx.apply_swizzle(fx.shared_memory(fx.Float16, 2 * 128 * 64, 1024), fx.Swizzle(3, 4, 3)).view(stages)
           for _ in range(2)]  # fmt: skip
    sources = [mover.partition_S(t) for t in tiles]
    targets = [mover.partition_D(t) for t in lds]
    staged = [fx.make_fragment_like(s[None, None, None, 0]) for s in sources]

    # LDS to registers to the matrix unit.
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)), fx.make_layout((2, 2, 1), (1, 2, 0))
    )
    half = fx.make_copy_atom(fx.UniversalCopy64b(), fx.Float16)
    readers = [make(half, mma) for make in (fx.make_tiled_copy_A, fx.make_tiled_copy_B)]
    frag_a, frag_b = mma.make_fragment_A(tiles[0][None, None, 0]), mma.make_fragment_B(tiles[1][None, None, 0])
    result = fx.make_identity_tensor((128, 128))
    acc = mma.make_fragment_C(result)
    acc.fill(0.0)

    def fetch(k):
        for source, registers in zip(sources, staged):
            fx.copy(g2s, source[None, None, None, k], registers)

    def put(stage):
        for registers, target in zip(staged, targets):
            fx.copy(g2s, registers, target[None, None, None, stage])

    fetch(0)
    put(0)
    fx.barrier()
    for k in range(steps):
        fetch(fx.min(k + 1, steps - 1))
        for reader, tile, fragment in zip(readers, lds, (frag_a, frag_b)):
            mine = reader.get_slice(tid)
            fx.copy(reader, mine.partition_S(tile[None, None, k % 2]), mine.retile(fragment))
        fx.gemm(mma, acc, frag_a, frag_b, acc)
        put((k + 1) % 2)
        fx.barrier()
    out = mma.get_slice(tid).partition_C(fx.flat_divide(C, (128, 128))[None, None, bx, by])
    single = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    fx.copy(single, acc, out)


@pytest.mark.sim
@pytest.mark.parametrize("shape", [(128, 128, 64), (256, 128, 192)])
def test_double_buffered_gemm(shape: tuple[int, int, int]) -> None:
    m, n, k = shape
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, s).astype(np.float16) for s in ((m, k), (n, k)))
    c = np.zeros((m, n), np.float32)
    operand = "f16[?,?{div=64}]:(?{div=64},1){align=16}"
    artifact = flyc.compile(double_buffered, operand, operand, "f32[?,?]:(?,1)", arch="gfx942", stop_after="llvm")
    assert "alloca" not in artifact.llvm_ir
    artifact.simulate(a, b, c, grid=(m // 128, n // 128, 1))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.llvm
def test_kernels_need_no_scratch_and_static_layouts_no_division() -> None:
    operand = "f16[?,?{div=64}]:(?{div=64},1){align=16}"
    cases = {
        "double_buffered": flyc.compile(double_buffered, operand, operand, "f32[?,?]:(?,1)", arch="gfx942"),
        "tiled_mfma": flyc.compile(tiled_mfma, "f32[64,8]", "f32[64,8]", "f32[64,64]", arch="gfx942"),
        "softmax": flyc.compile(softmax, "f16[?,?]", "f16[?,?]", arch="gfx942"),
    }
    for name, artifact in cases.items():
        info = artifact.code_object.kernels[name]
        assert (info.scratch_bytes, info.vgpr_spill_count, info.sgpr_spill_count) == (0, 0, 0), name
        if name != "softmax":
            assert "v_rcp_iflag" not in artifact.assembly, name
    assert cases["double_buffered"].code_object.kernels["double_buffered"].lds_bytes == 65536
