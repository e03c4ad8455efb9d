"""One 64 x 64 x 8 product in f32 by four waves: a tiled mma, its fragments, and copies that fill them.

C = A * B^T with A (M, K) and B (N, K), all row-major and of static shape.  MFMA 16x16x4 is laid over the
workgroup as (2, 2, 1): two waves along M, two along N, so that the four waves compute 32 x 32 x 4 at a time.  The
fragments cover the whole 64 x 64 x 8 tile, and ``fx.gemm`` makes the 2 x 2 x 2 products of every wave.

There is no LDS and no barrier here: every lane reads from global memory just what its MFMAs need.

Run it with ``python examples/03_tiled_mma.py``: it compiles, runs on a GPU or in the simulator, and checks itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

M, N, K = 64, 64, 8
THREADS = 256


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def tiled_mma(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """C = A * B^T.

    Args:
        A: (64, 8) f32.
        B: (64, 8) f32.
        C: (64, 64) f32.
    """
    tid = fx.thread_idx.x
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 4, fx.Float32)),
        fx.make_layout((2, 2, 1), (1, 2, 0)),
    )
    thread = mma.thr_slice(tid)

    # Which elements a copy moves follows from the mma; how many bits at once from the atom.
    single = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
    copy_a, copy_b, copy_c = (
        make(single, mma) for make in (fx.make_tiled_copy_A, fx.make_tiled_copy_B, fx.make_tiled_copy_C)
    )
    frag_a, frag_b, frag_c = thread.make_fragment_A(A), thread.make_fragment_B(B), thread.make_fragment_C(C)
    for copy, memory, fragment in ((copy_a, A, frag_a), (copy_b, B, frag_b)):
        mine = copy.get_slice(tid)
        fx.copy(copy, mine.partition_S(memory), mine.retile(fragment))

    frag_c.fill(0.0)
    fx.gemm(mma, frag_c, frag_a, frag_b, frag_c)

    mine = copy_c.get_slice(tid)
    fx.copy(copy_c, mine.retile(frag_c), mine.partition_D(C))


@flyc.jit
def host(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = None):
    """Launches one workgroup."""
    tiled_mma(A, B, C).launch(grid=(1, 1, 1), block=(THREADS, 1, 1), stream=stream)


def compile_tiled_mma(arch: str = "gfx942", **options):
    """The kernel for its one size."""
    return flyc.compile(tiled_mma, f"f32[{M},{K}]", f"f32[{N},{K}]", f"f32[{M},{N}]", arch=arch, **options)


def check(compiled, seed: int = 0) -> bool:
    """Integers (exact) and random numbers (8 additions, each off by at most 2**-24 of the sum of magnitudes)."""
    import numpy as np

    rng = np.random.default_rng(seed)
    ok = True
    for kind in ("integers", "random"):
        a, b = (
            (rng.integers(-8, 9, s) if kind == "integers" else rng.standard_normal(s)).astype(np.float32)
            for s in ((M, K), (N, K))
        )
        c = np.full((M, N), np.nan, np.float32)
        where = compiled.run(a, b, c, grid=1)
        exact = a.astype(np.float64) @ b.astype(np.float64).T
        bound = 0 if kind == "integers" else K * 2.0**-24 * (np.abs(a).astype(np.float64) @ np.abs(b).T)
        good = bool((np.abs(c - exact) <= bound).all())
        print(f"  {M} x {N} x {K}, {kind:<8} on {where}: {'right' if good else 'WRONG'}")
        ok &= good
    return ok


def main() -> int:
    """Compiles, prints what the kernel uses, and checks it."""
    compiled = compile_tiled_mma()
    kernel = compiled.code_object.kernels["tiled_mma"]
    spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
    print(f"tiled_mma for {compiled.target}: {kernel.vgpr_count} VGPRs, {kernel.scratch_bytes} bytes scratch")
    ok = check(compiled) and spills + kernel.scratch_bytes == 0
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
