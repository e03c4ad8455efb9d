"""C = A * B^T in f16 with f32 accumulation, for any M, N and K: from Python to a gfx942 code object.

A is (M, K), B is (N, K), C is (M, N), all row-major.  A workgroup of 256 threads (2 x 2 waves) computes a
128 x 128 tile of C in K steps of 32.  Each step moves A and B from global memory through registers to
LDS, where both sides go through one swizzle, and from there to MFMA 16x16x16.  The next step's loads are
in flight while this one computes.

Edges cost nothing in the loop body but a compare and a select: a buffer descriptor for every 64 rows
ends where the matrix ends, so rows past M and N read zero, and lanes whose column is past K are sent
past the end of their descriptor.
"""

from __future__ import annotations

import flyllvm.compiler as flyc
import flyllvm.expr as fx

TILE_M, TILE_N, TILE_K = 128, 128, 32
THREADS = 256
#: An offset, in elements, that is past the end of any descriptor made here (2**30 bytes).
OUTSIDE = 1 << 29
#: Rows of A or B that one descriptor spans, and the largest row for which its offsets stay below OUTSIDE.
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
def gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, vec: int):
    """One 128 x 128 tile of C = A * B^T.

    Args:
        A: (M, K) f16, row-major.
        B: (N, K) f16, row-major.
        C: (M, N) f16, row-major.
        vec: Elements per global load: 8, 2 or 1; K must be a multiple of it.
    """
    k_size, n_size = A.shape[1], C.shape[1]
    tid = fx.thread_idx.x
    m0, n0 = fx.block_idx.x * TILE_M, fx.block_idx.y * TILE_N

    # Global memory to registers: 64 rows at a time, every thread 8 elements of a row in pieces of `vec`.
    load = fx.make_copy_atom(fx.rocdl.BufferCopy(16 * vec), fx.Float16)
    sources = [
        rows_of(matrix, first + half * SPAN, SPAN) for matrix, first in ((A, m0), (B, n0)) for half in range(2)
    ]
    staged = [fx.make_rmem_tensor(8, fx.Float16) for _ in sources]
    row, column = tid // 4, tid % 4 * 8
    start = row * k_size + column
    piece = fx.make_layout(vec, 1)

    def fetch(k):
        for i in range(0, 8, vec):
            offset = fx.select(k < k_size - column - i, start + i + k, OUTSIDE)
            for source, registers in zip(sources, staged):
                fx.copy(load, source.at(offset, piece), registers.at(i, piece))

    # LDS, swizzled; the same pointer serves the writes and the reads.
    lds = [
        fx.make_view(
            fx.apply_swizzle(fx.shared_memory(fx.Float16, rows * TILE_K, align=1024), SWIZZLE),
            fx.make_layout((rows, TILE_K), (TILE_K, 1)),
        )
        for rows in (TILE_M, TILE_N)
    ]
    wide = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float16)
    r2s = fx.make_tiled_copy_tv(wide, fx.make_layout((SPAN, 4), (4, 1)), fx.make_layout((1, 8), (1, 1))).get_slice(tid)
    targets = [r2s.partition_D(tile)[None, half, 0] for tile in lds for half in range(2)]

    # A lane reads 8 consecutive k at once; the K permutation feeds them to two MFMAs.
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float32)),
        fx.make_layout((2, 2, 1), (1, 2, 0)),
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    copy_a, copy_b = fx.make_tiled_copy_A(wide, mma), fx.make_tiled_copy_B(wide, mma)
    frag_a, frag_b = mma.make_fragment_A(lds[0]), mma.make_fragment_B(lds[1])
    tile_c = fx.make_layout((TILE_M, TILE_N), (n_size, 1))
    frag_c = mma.make_fragment_C(fx.make_view((0, 0), fx.make_identity_layout((TILE_M, TILE_N))))
    frag_c.fill(0.0)

    fetch(0)

    # At least one step, so that K = 0 needs no branch: its loads read zero.
    @fx.loop(0, fx.max(k_size, 1), TILE_K)
    def _(k):
        for registers, target in zip(staged, targets):
            fx.copy(wide, registers, target)
        fx.barrier()
        fetch(k + TILE_K)
        for copy, tile, fragment in ((copy_a, lds[0], frag_a), (copy_b, lds[1], frag_b)):
            thread = copy.get_slice(tid)
            fx.copy(copy, thread.partition_S(tile), thread.retile(fragment))
        fx.gemm(mma, frag_c, frag_a, frag_b, frag_c)
        fx.barrier()

    # Columns past N are sent outside; rows past M end with the descriptor.
    result = fx.make_fragment_like(frag_c, fx.Float16)
    result.store(frag_c.load().to(fx.Float16))
    block = rows_of(C, m0, TILE_M)
    out = mma.get_slice(tid).partition_C(fx.make_view(block.iter + n0, tile_c))
    place = mma.get_slice(tid).partition_C(fx.make_view((0, 0), fx.make_identity_layout((TILE_M, TILE_N))))
    store = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), fx.Float16)
    for j in range(4):
        inside = n0 + place[0, 0, j][1] < n_size
        here = out[None, None, j]
        fx.copy(store, result[None, None, j], here.at(fx.select(inside, 0, OUTSIDE), here.layout))
