"""C = A * B^T in f16 with B shuffled beforehand, so that MFMA operands come straight from global memory.

The weights of a model are known long before they are used.  ``preshuffle`` puts B in the order in which lanes want
it: 16 rows by 32 columns at a time, 8 columns a lane.  The kernel sees the shuffled array through a layout whose
coordinates are still (n, k); tiles, partitions and fragments do not know about the shuffle.  B needs no LDS then:
a wave loads its operands with 16 neighbouring bytes a lane.

A goes through LDS in two buffers: while MFMAs work on one, the next tile arrives in registers and is written to the
other.  One barrier a step is enough.  B's fragment has two stages for the same purpose.

A workgroup of 256 threads (four waves along N) computes a 128 x 128 tile of C in K steps of 64.  The product is
computed as C^T = B * A^T, because then a lane holds four neighbouring columns of a row of C.

Run it with ``python examples/04_preshuffle_gemm.py``: it compiles, runs on a GPU or in the simulator, and checks
itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

TILE_M, TILE_N, TILE_K = 128, 128, 64
THREADS = 256
#: Swizzle of LDS byte addresses: rows are 128 bytes, and 16-byte pieces move with bits 7 to 9.
SWIZZLE = fx.Swizzle(3, 4, 3)


def preshuffle(b):
    """B (N, K) in the order of the kernel: blocks of 16 x 32, in them 4 columns of 16 pieces of 8 elements."""
    n, k = b.shape
    return b.reshape(n // 16, 16, k // 32, 4, 8).transpose(0, 2, 3, 1, 4).copy().reshape(n, k)


def preshuffled_layout(n, k):
    """Where element (n, k) of B stands in what ``preshuffle`` returns."""
    return fx.make_layout(((16, n // 16), (8, 4, k // 32)), ((8, 16 * k), (1, 8 * 16, 8 * 16 * 4)))


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def preshuffle_gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """One 128 x 128 tile of C = A * B^T.

    Args:
        A: (M, K) f16, row-major, M a multiple of 128, K of 128.
        B: (N, K) f16, shuffled, N a multiple of 128.
        C: (M, N) f16, row-major.
    """
    (M, N), K = C.shape, A.shape[1]
    tid = fx.thread_idx.x
    bid_m, bid_n, _ = fx.block_idx
    steps = K // TILE_K

    A, B, C = (fx.rocdl.make_buffer_tensor(tensor) for tensor in (A, B, C))
    B = fx.make_view(fx.get_iter(B), preshuffled_layout(N, K))
    C = fx.make_view(fx.get_iter(C), fx.make_layout((N, M), (1, N)))
    tiles_a = fx.flat_divide(A, fx.make_tile(TILE_M, TILE_K))[None, None, bid_m, None]
    tiles_b = fx.flat_divide(B, fx.make_tile(TILE_N, TILE_K))[None, None, bid_n, None]
    tile_c = fx.flat_divide(C, fx.make_tile(TILE_N, TILE_M))[None, None, bid_n, bid_m]

    # A lane feeds 8 consecutive k to two MFMAs.
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float32)),
        fx.make_layout((4, 1, 1), (1, 0, 0)),
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    wide, load = (fx.make_copy_atom(op, fx.Float16) for op in (fx.UniversalCopy128b(), fx.rocdl.BufferCopy128b()))

    # A: global memory to registers to LDS (rows of 8 threads), and from there to fragments.
    lds = fx.apply_swizzle(fx.shared_memory(fx.Float16, 2 * TILE_M * TILE_K, align=1024), SWIZZLE)
    lds = fx.make_view(lds, fx.make_layout((TILE_M, TILE_K, 2), (TILE_K, 1, TILE_M * TILE_K)))
    copy_in = fx.make_tiled_copy_tv(load, fx.make_layout((32, 8), (8, 1)), fx.make_layout((1, 8), (8, 1)))
    thread_in = copy_in.get_slice(tid)
    source_a, target_a = thread_in.partition_S(tiles_a), thread_in.partition_D(lds)
    staged = fx.make_fragment_like(target_a[None, None, None, 0])
    copy_m = fx.make_tiled_copy_B(wide, mma).get_slice(tid)
    frag_m = mma.make_fragment_B(lds[None, None, 0])
    source_m, target_m = copy_m.partition_S(lds), copy_m.retile(frag_m)

    # B: global memory to fragments.
    copy_n = fx.make_tiled_copy_A(load, mma).get_slice(tid)
    frag_n = mma.make_fragment_A(tiles_b[None, None, 0], stages=2)
    source_n, target_n = copy_n.partition_S(tiles_b), copy_n.retile(frag_n)

    acc = mma.make_fragment_C(tile_c)
    acc.fill(0.0)

    def fetch(step, stage):
        """The tiles of a K step: A to registers, B to a stage of its fragment."""
        fx.copy(load, source_a[None, None, None, step], staged)
        fx.copy(load, source_n[None, None, None, step], target_n[None, None, None, stage])
        # Without this the scheduler moves the loads down to where they are needed, and nobody hides their latency.
        fx.rocdl.sched_barrier(0)

    def step(stage, following):
        """Computes with what stands in ``stage`` while K step ``following``, if any, comes into the other one."""
        if following is not None:
            fetch(following, 1 - stage)
        fx.copy(wide, source_m[None, None, None, stage], target_m)
        fx.gemm(mma, acc, frag_n[None, None, None, stage], frag_m, acc)
        if following is not None:
            fx.copy(wide, staged, target_a[None, None, None, 1 - stage])
            fx.barrier()

    fetch(0, 0)
    fx.copy(wide, staged, target_a[None, None, None, 0])
    fx.barrier()
    # A traced bound: a loop on the GPU.  Two steps at once, because registers take compile-time indices.
    for k in range(0, fx.Int32(steps - 2), 2):
        step(0, k + 1)
        step(1, k + 2)
    step(0, steps - 1)
    step(1, None)

    result = fx.make_fragment_like(acc, fx.Float16)
    result.store(acc.load().to(fx.Float16))
    copy_c = fx.make_tiled_copy_C(fx.make_copy_atom(fx.rocdl.BufferCopy64b(), fx.Float16), mma)
    thread_c = copy_c.get_slice(tid)
    fx.copy(copy_c, thread_c.retile(result), thread_c.partition_D(tile_c))


@flyc.jit
def host(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = None):
    """C = A * B^T with B from ``preshuffle``."""
    M, N = C.shape
    preshuffle_gemm(A, B, C).launch(grid=(M // TILE_M, N // TILE_N, 1), block=(THREADS, 1, 1), stream=stream)


def compile_preshuffle_gemm(m: int = 256, n: int = 256, k: int = 512, arch: str = "gfx942", **options):
    """The kernel for one size: M and N multiples of 128, K a multiple of 128."""
    if m % TILE_M or n % TILE_N or k % (2 * TILE_K):
        raise ValueError(f"{m} x {n} x {k}: M and N must be multiples of {TILE_M}, K of {2 * TILE_K}")
    specs = (f"f16[{rows},{columns}]{{align=16}}" for rows, columns in ((m, k), (n, k), (m, n)))
    return flyc.compile(preshuffle_gemm, *specs, arch=arch, **options)


def check(m: int, n: int, k: int, compiled, seed: int = 0) -> bool:
    """Integers (exact) and random numbers (K roundings in f32, then one to f16)."""
    import numpy as np

    rng = np.random.default_rng(seed)
    ok = True
    for kind in ("integers", "random"):
        a, b = (
            (rng.integers(-2, 3, s) if kind == "integers" else rng.standard_normal(s)).astype(np.float16)
            for s in ((m, k), (n, k))
        )
        c = np.full((m, n), np.nan, np.float16)
        where = compiled.run(a, preshuffle(b), c, grid=(m // TILE_M, n // TILE_N, 1))
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64).T
        bound = k * 2.0**-24 * magnitude + 2.0**-11 * np.abs(exact) + 2.0**-25
        off = np.abs(c.astype(np.float64) - exact)
        good = bool(np.array_equal(c, exact.astype(np.float16)) if kind == "integers" else (off <= bound).all())
        said = "exact" if kind == "integers" else f"largest error {float(np.nanmax(off / bound)):.2f} of the bound"
        print(f"  {m} x {n} x {k}, {kind:<8} on {where}: {said if good else 'WRONG'}")
        ok &= good
    return ok


def main() -> int:
    """Compiles two sizes, prints what the kernels use, and checks them."""
    ok = True
    for m, n, k in ((256, 256, 512), (128, 128, 128)):
        compiled = compile_preshuffle_gemm(m, n, k)
        kernel = compiled.code_object.kernels["preshuffle_gemm"]
        spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
        print(f"preshuffle_gemm for {compiled.target}: {kernel.vgpr_count} VGPRs, {kernel.agpr_count} AGPRs,")
        print(f"  {kernel.lds_bytes} bytes LDS, {kernel.scratch_bytes} bytes scratch, {spills} spills")
        ok &= check(m, n, k, compiled) and spills + kernel.scratch_bytes == 0
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
