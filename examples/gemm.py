"""C = A * B^T in f16 with f32 accumulation, for any M, N and K: from Python to a gfx942 code object.

A is (M, K), B is (N, K), C is (M, N), all row-major.  A workgroup of 256 threads (2 x 2 waves) computes a
128 x 128 tile of C in K steps of 32.  Each step moves A and B from global memory through registers to
LDS, where writes and reads go through one swizzle, and from there to MFMA 16x16x16.  The next step's loads
are in flight while this one computes.

The product is computed as C^T = B * A^T, because then a lane holds four neighbouring columns of a row of C
and stores them at once.

Edges cost a compare and a select in the loop: a buffer descriptor for every 64 rows ends where the matrix
ends, so rows past M and N read zero, and lanes whose column is past K are sent past the end of their
descriptor.

Run it with ``python examples/gemm.py``: it compiles, runs on a GPU or in the simulator, and checks itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

TILE_M, TILE_N, TILE_K = 128, 128, 32
THREADS = 256
#: An offset, in elements, that is past the end of any descriptor made here (2**30 bytes).
OUTSIDE = 1 << 29
#: Rows of A or B that one descriptor spans, and the longest row for which its offsets stay below OUTSIDE.
SPAN = 64
MAX_COLUMNS = OUTSIDE // TILE_M - TILE_K
#: Swizzle of LDS byte addresses: rows are 64 bytes, and 16-byte pieces move with bits 7 and 8.
SWIZZLE = fx.Swizzle(2, 4, 3)


def rows_of(matrix, first_row, rows):
    """``rows`` rows of a row-major matrix from ``first_row``, as a buffer that ends with the matrix.

    The base moves in 64 bits, so matrices of more than 4 GiB are fine.
    """
    height, width = matrix.shape
    ptr = matrix.iter + fx.Int64(first_row) * fx.Int64(width)
    left = fx.max(fx.min(height - first_row, rows), 0)
    ptr = fx.rocdl.make_buffer_ptr(ptr, left * width * (matrix.dtype.width // 8))
    return fx.make_view(ptr, fx.make_layout((rows, width), (width, 1)))


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, vec_in: int = 8, vec_out: int = 4):
    """One 128 x 128 tile of C = A * B^T.

    Args:
        A: (M, K) f16, row-major.
        B: (N, K) f16, row-major.
        C: (M, N) f16, row-major.
        vec_in: Elements per global load, 8, 2 or 1; K is a multiple of it.
        vec_out: Elements per global store, 4, 2 or 1; N is a multiple of it.
    """
    k_size, n_size = A.shape[1], C.shape[1]
    tid = fx.thread_idx.x
    m0, n0 = fx.block_idx.x * TILE_M, fx.block_idx.y * TILE_N

    # Global memory to registers: 64 rows at a time, every thread 8 elements of a row in pieces of `vec_in`.
    load = fx.make_copy_atom(fx.rocdl.BufferCopy(16 * vec_in), fx.Float16)
    sources = [rows_of(matrix, first + half * SPAN, SPAN) for matrix, first in ((A, m0), (B, n0)) for half in range(2)]
    staged = [fx.make_rmem_tensor(8, fx.Float16) for _ in sources]
    row, column = tid // 4, tid % 4 * 8
    start = row * k_size + column
    piece = fx.make_layout(vec_in, 1)

    def fetch(k):
        for i in range(0, 8, vec_in):
            offset = fx.select(k < k_size - column - i, start + i + k, OUTSIDE)
            for source, registers in zip(sources, staged):
                fx.copy(load, source.at(offset, piece), registers.at(i, piece))

    # LDS, swizzled; the same pointer serves the writes and the reads.
    lds_a, lds_b = (
        fx.make_view(
            fx.apply_swizzle(fx.shared_memory(fx.Float16, rows * TILE_K, align=1024), SWIZZLE),
            fx.make_layout((rows, TILE_K), (TILE_K, 1)),
        )
        for rows in (TILE_M, TILE_N)
    )
    wide = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float16)
    r2s = fx.make_tiled_copy_tv(wide, fx.make_layout((SPAN, 4), (4, 1)), fx.make_layout((1, 8), (1, 1))).get_slice(tid)
    targets = [r2s.partition_D(tile)[None, half, 0] for tile in (lds_a, lds_b) for half in range(2)]

    # A lane reads 8 consecutive k at once; the K permutation feeds them to two MFMAs.
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float32)),
        fx.make_layout((2, 2, 1), (1, 2, 0)),
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    thread = mma.get_slice(tid)
    copy_n, copy_m = (make(wide, mma) for make in (fx.make_tiled_copy_A, fx.make_tiled_copy_B))
    frag_n, frag_m = mma.make_fragment_A(lds_b), mma.make_fragment_B(lds_a)
    moves = [(copy_n, lds_b, frag_n), (copy_m, lds_a, frag_m)]
    place = thread.partition_C(fx.make_view((0, 0), fx.make_identity_layout((TILE_N, TILE_M))))
    acc = mma.make_fragment_C(fx.make_view((0, 0), fx.make_identity_layout((TILE_N, TILE_M))))
    acc.fill(0.0)

    fetch(0)

    # At least one step, so that K = 0 needs no branch: its loads read zero.
    for k in range(0, fx.max(k_size, 1), TILE_K):
        for registers, target in zip(staged, targets):
            fx.copy(wide, registers, target)
        fx.barrier()
        fetch(k + TILE_K)
        for copy, tile, fragment in moves:
            mine = copy.get_slice(tid)
            fx.copy(copy, mine.partition_S(tile), mine.retile(fragment))
        fx.gemm(mma, acc, frag_n, frag_m, acc)
        fx.barrier()

    # Columns past N are sent outside; rows past M end with the descriptor.
    result = fx.make_fragment_like(acc, fx.Float16)
    result.store(acc.load().to(fx.Float16))
    block = rows_of(C, m0, TILE_M)
    out = thread.partition_C(fx.make_view(block.iter + n0, fx.make_layout((TILE_N, TILE_M), (1, n_size))))
    store = fx.make_copy_atom(fx.rocdl.BufferCopy(16 * vec_out), fx.Float16)
    for j in range(TILE_N // 32):
        for v in range(0, 4, vec_out):
            inside = n0 + place[v, j, 0][0] < n_size
            source, target = (
                t.at(fx.crd2idx((v, j, 0), t.layout), fx.make_layout((vec_out, TILE_M // 32), (1, t.stride[2])))
                for t in (result, out)
            )
            fx.copy(store, source, target.at(fx.select(inside, 0, OUTSIDE), target.layout))


def compile_gemm(k_multiple: int = 8, n_multiple: int = 4, arch: str = "gfx942", **options):
    """The kernel for K and N that are multiples of the given numbers (8, 2 or 1; 4, 2 or 1)."""
    operand = f"f16[?,?{{div={k_multiple}}}]:(?{{div={k_multiple}}},1){{align={2 * k_multiple}}}"
    output = f"f16[?,?{{div={n_multiple}}}]:(?{{div={n_multiple}}},1){{align={2 * n_multiple}}}"
    constants = {"vec_in": k_multiple, "vec_out": n_multiple}
    return flyc.compile(gemm, operand, operand, output, arch=arch, constants=constants, **options)


def run(a, b, arch: str = "gfx942", compiled=None):
    """A * B^T through the kernel; returns C and where it ran."""
    import numpy as np

    (m, k), (n, k_b) = a.shape, b.shape
    if k != k_b or max(k, n) > MAX_COLUMNS:
        raise ValueError(f"A {a.shape} and B {b.shape}: K must agree, and K and N stay below {MAX_COLUMNS}")
    if compiled is None:
        compiled = compile_gemm(
            next(v for v in (8, 2, 1) if k % v == 0), next(v for v in (4, 2, 1) if n % v == 0), arch
        )
    c = np.full((m, n), np.nan, np.float16)
    where = compiled.run(a, b, c, grid=(max(1, -(-m // TILE_M)), max(1, -(-n // TILE_N)), 1))
    return c, where


def error_bound(a, b):
    """How far C may be from the exact product: K roundings in f32, then one to f16.

    Each of the K additions is off by at most 2**-24 of the sum of magnitudes, the result by half a unit of f16.
    """
    import numpy as np

    magnitude = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64).T
    exact = a.astype(np.float64) @ b.astype(np.float64).T
    return exact, a.shape[1] * 2.0**-24 * magnitude + 2.0**-11 * np.abs(exact) + 2.0**-25


def check(m: int, n: int, k: int, seed: int = 0, compiled=None) -> bool:
    """Runs integer-valued inputs (exact) and random ones (within the bound); prints a line for each."""
    import numpy as np

    rng = np.random.default_rng(seed)
    ok = True
    for kind in ("integers", "random"):
        shapes = ((m, k), (n, k))
        if kind == "integers":
            a, b = (rng.integers(-2, 3, s).astype(np.float16) for s in shapes)
        else:
            a, b = (rng.standard_normal(s).astype(np.float16) for s in shapes)
        c, where = run(a, b, compiled=compiled)
        exact, bound = error_bound(a, b)
        off = np.abs(c.astype(np.float64) - exact)
        good = bool(np.array_equal(c, exact.astype(np.float16)) if kind == "integers" else (off <= bound).all())
        worst = float(np.nanmax(off / bound)) if off.size else 0.0
        said = "exact" if kind == "integers" else f"largest error {worst:.2f} of the bound"
        print(f"  {m} x {n} x {k}, {kind:<8} on {where}: {said if good else 'WRONG'}")
        ok &= good
    return ok


def main() -> int:
    """Compiles, prints what the kernel uses, writes gemm.hsaco, and checks two sizes."""
    from argparse import ArgumentParser

    parser = ArgumentParser(description="Compiles a GEMM, writes its code object, and checks two sizes.")
    parser.add_argument("path", nargs="?", default="gemm.hsaco", help="where the code object goes")
    path = parser.parse_args().path
    compiled = compile_gemm()
    code = compiled.code_object
    kernel = code.kernels["gemm"]
    print(f"gemm for {code.target}: {kernel.vgpr_count} VGPRs, {kernel.agpr_count} AGPRs, {kernel.sgpr_count} SGPRs,")
    spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
    print(f"  {kernel.lds_bytes} bytes LDS, {kernel.scratch_bytes} bytes scratch, {spills} spills")
    code.save(path)
    print(f"  wrote {path}: {len(code.image)} bytes")
    ok = all([check(512, 512, 256, compiled=compiled), check(257, 130, 96)])
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok and spills == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
