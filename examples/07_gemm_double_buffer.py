"""C = A * B^T in f16 in tiles of 128 x 128 x 64, with both operands in two LDS buffers.

While MFMAs work on one buffer, the next tiles of A and B come from global memory to registers, and are written to
the other buffer before the step ends.  So one barrier a step is enough: the buffer that is written was read a
step ago.

The two steps of the loop's body use buffer 0 and buffer 1: their LDS addresses differ by a constant that goes
into the instructions.

Run it with ``python examples/07_gemm_double_buffer.py``: it compiles, runs on a GPU or in the simulator, and
checks itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

TILE_M, TILE_N, TILE_K = 128, 128, 64
THREADS = 256
#: Swizzle of LDS byte addresses: rows are 128 bytes, and 16-byte pieces move with bits 7 to 9.
SWIZZLE = fx.Swizzle(3, 4, 3)


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def gemm_double_buffer(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """One 128 x 128 tile of C = A * B^T.

    Args:
        A: (M, K) f16, row-major, M a multiple of 128, K of 128.
        B: (N, K) f16, row-major, N a multiple of 128.
        C: (M, N) f16, row-major.
    """
    (M, N), K = C.shape, A.shape[1]
    tid = fx.thread_idx.x
    bid_m, bid_n, _ = fx.block_idx
    steps = K // TILE_K

    A, B, C = (fx.rocdl.make_buffer_tensor(tensor) for tensor in (A, B, C))
    # C^T = B * A^T: a lane then holds four neighbouring columns of a row of C.
    C = fx.make_view(fx.get_iter(C), fx.make_layout((N, M), (1, N)))
    tile_c = fx.flat_divide(C, fx.make_tile(TILE_N, TILE_M))[None, None, bid_n, bid_m]
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float32)),
        fx.make_layout((2, 2, 1), (1, 2, 0)),
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    wide, load = (fx.make_copy_atom(op, fx.Float16) for op in (fx.UniversalCopy128b(), fx.rocdl.BufferCopy128b()))
    copy_in = fx.make_tiled_copy_tv(load, fx.make_layout((32, 8), (8, 1)), fx.make_layout((1, 8), (8, 1)))
    thread_in = copy_in.get_slice(tid)

    # Per operand: what a thread loads, keeps, writes to LDS, reads from it, and multiplies.
    fetches, writes, reads, fragments = [], [], [], []
    for matrix, block, copy_out, make_fragment in (
        (B, bid_n, fx.make_tiled_copy_A(wide, mma), mma.make_fragment_A),
        (A, bid_m, fx.make_tiled_copy_B(wide, mma), mma.make_fragment_B),
    ):
        tiles = fx.flat_divide(matrix, fx.make_tile(TILE_M, TILE_K))[None, None, block, None]
        lds = fx.apply_swizzle(fx.shared_memory(fx.Float16, 2 * TILE_M * TILE_K, align=1024), SWIZZLE)
        lds = fx.make_view(lds, fx.make_layout((TILE_M, TILE_K, 2), (TILE_K, 1, TILE_M * TILE_K)))
        target = thread_in.partition_D(lds)
        staged = fx.make_fragment_like(target[None, None, None, 0])
        fragment = make_fragment(lds[None, None, 0])
        thread_out = copy_out.get_slice(tid)
        fetches.append((thread_in.partition_S(tiles), staged))
        writes.append((staged, target))
        reads.append((thread_out.partition_S(lds), thread_out.retile(fragment)))
        fragments.append(fragment)

    acc = mma.make_fragment_C(tile_c)
    acc.fill(0.0)

    def fetch(step):
        for source, staged in fetches:
            fx.copy(load, source[None, None, None, step], staged)
        # Without this the scheduler moves the loads down to the writes that need them, and nobody hides their latency.
        fx.rocdl.sched_barrier(0)

    def write(stage):
        for staged, target in writes:
            fx.copy(wide, staged, target[None, None, None, stage])
        fx.barrier()

    def compute(stage):
        for source, fragment in reads:
            fx.copy(wide, source[None, None, None, stage], fragment)
        fx.gemm(mma, acc, *fragments, acc)

    fetch(0)
    write(0)
    # A traced bound: a loop on the GPU.
    for k in range(0, fx.Int32(steps - 2), 2):
        for stage in range(2):
            fetch(k + stage + 1)
            compute(stage)
            write(1 - stage)
    fetch(steps - 1)
    compute(0)
    write(1)
    compute(1)

    result = fx.make_fragment_like(acc, fx.Float16)
    result.store(acc.load().to(fx.Float16))
    copy_c = fx.make_tiled_copy_C(fx.make_copy_atom(fx.rocdl.BufferCopy64b(), fx.Float16), mma)
    thread_c = copy_c.get_slice(tid)
    fx.copy(copy_c, thread_c.retile(result), thread_c.partition_D(tile_c))


@flyc.jit
def host(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = None):
    """C = A * B^T."""
    M, N = C.shape
    gemm_double_buffer(A, B, C).launch(grid=(M // TILE_M, N // TILE_N, 1), block=(THREADS, 1, 1), stream=stream)


def compile_gemm_double_buffer(m: int = 256, n: int = 256, k: int = 512, arch: str = "gfx942", **options):
    """The kernel for one size: M, N and K multiples of 128."""
    if m % TILE_M or n % TILE_N or k % (2 * TILE_K):
        raise ValueError(f"{m} x {n} x {k}: M and N must be multiples of {TILE_M}, K of {2 * TILE_K}")
    specs = (f"f16[{rows},{columns}]{{align=16}}" for rows, columns in ((m, k), (n, k), (m, n)))
    return flyc.compile(gemm_double_buffer, *specs, arch=arch, **options)


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
        where = compiled.run(a, b, c, grid=(m // TILE_M, n // TILE_N, 1))
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
        compiled = compile_gemm_double_buffer(m, n, k)
        kernel = compiled.code_object.kernels["gemm_double_buffer"]
        spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
        print(f"gemm_double_buffer for {compiled.target}: {kernel.vgpr_count} VGPRs, {kernel.agpr_count} AGPRs,")
        print(f"  {kernel.lds_bytes} bytes LDS, {kernel.scratch_bytes} bytes scratch, {spills} spills")
        ok &= check(m, n, k, compiled) and spills + kernel.scratch_bytes == 0
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
