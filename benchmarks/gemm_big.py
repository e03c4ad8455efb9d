"""The GEMM of the example with a tile of any size: the 256 x 256 x 64 one keeps a lane's every register busy.

C = A * B^T in f16 with f32 accumulation; M and N are multiples of the tile, K of TILE_K (the edges are in
``examples/gemm.py``).  256 threads, 2 x 2 waves; one LDS buffer per operand; the next tile is loaded into registers
while this one computes.  A wave issues ``(tile_m / 32) * (tile_n / 32) * (tile_k / 16)`` MFMA 16x16x16 per K tile: 256
for 256 x 256 x 64.
"""

from __future__ import annotations

import flyllvm.compiler as flyc
import flyllvm.expr as fx

THREADS = 256


def rows_of(matrix, first_row, rows):
    """``rows`` rows of a row-major matrix from ``first_row``, as a buffer."""
    width = matrix.shape[1]
    ptr = matrix.iter + fx.Int64(first_row) * fx.Int64(width)
    return fx.make_view(
        fx.rocdl.make_buffer_ptr(ptr, rows * width * (matrix.dtype.width // 8)),
        fx.make_layout((rows, width), (width, 1)),
    )


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def gemm_tile(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, tile_m: int, tile_n: int, tile_k: int, fence: int = 0):
    """One tile of C.

    Args:
        A: (M, K) f16, row-major.
        B: (N, K) f16, row-major.
        C: (M, N) f16, row-major.
        tile_m: Rows of a workgroup's tile.
        tile_n: Columns of it.
        tile_k: K per step: 32 or 64.
        fence: Whether a scheduling barrier stands between slices of K.
    """
    k_size, n_size = A.shape[1], C.shape[1]
    tid = fx.thread_idx.x
    m0, n0 = fx.block_idx.x * tile_m, fx.block_idx.y * tile_n
    wide_columns = tile_k // 8
    span = THREADS // wide_columns

    load = fx.make_copy_atom(fx.rocdl.BufferCopy(128), fx.Float16)
    row, column = tid // wide_columns, tid % wide_columns * 8
    start = row * k_size + column
    wide_piece = fx.make_layout(8, 1)
    places = [(rows_of(m, first, rows), p * span) for m, first, rows in ((A, m0, tile_m), (B, n0, tile_n))
              for p in range(rows // span)]  # fmt: skip
    staged = [fx.make_rmem_tensor(8, fx.Float16) for _ in places]

    def fetch(k):
        for (source, below), registers in zip(places, staged):
            fx.copy(load, source.at(start + k + below * k_size, wide_piece), registers)

    bits = {32: 2, 64: 3}[tile_k]
    lds_a, lds_b = (
        fx.make_view(
            fx.apply_swizzle(fx.shared_memory(fx.Float16, rows * tile_k, align=1024), fx.Swizzle(bits, 4, 3)),
            fx.make_layout((rows, tile_k), (tile_k, 1)),
        )
        for rows in (tile_m, tile_n)
    )
    wide = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float16)
    r2s = fx.make_tiled_copy_tv(
        wide, fx.make_layout((span, wide_columns), (wide_columns, 1)), fx.make_layout((1, 8), (1, 1))
    ).get_slice(tid)
    targets = [r2s.partition_D(tile)[None, p, 0] for tile, rows in ((lds_a, tile_m), (lds_b, tile_n))
               for p in range(rows // span)]  # fmt: skip

    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float32)),
        fx.make_layout((2, 2, 1), (1, 2, 0)),
        fx.make_tile(None, None, fx.make_layout((4, 4, 2), (1, 8, 4))),
    )
    thread = mma.get_slice(tid)
    copy_n, copy_m = (make(wide, mma) for make in (fx.make_tiled_copy_A, fx.make_tiled_copy_B))
    acc = mma.make_fragment_C(fx.make_view((0, 0), fx.make_identity_layout((tile_n, tile_m))))
    acc.fill(0.0)
    # Slices of 32 in K: the fragments of one slice are in registers at a time.
    slices = []
    for s in range(tile_k // 32):
        part_a, part_b = (
            fx.make_view(tile.iter + s * 32, fx.make_layout((rows, 32), (tile_k, 1)))
            for tile, rows in ((lds_a, tile_m), (lds_b, tile_n))
        )
        slices.append((part_a, part_b))

    fetch(0)
    for k in range(0, k_size, tile_k):
        for registers, target in zip(staged, targets):
            fx.copy(wide, registers, target)
        fx.barrier()
        fetch(k + tile_k)
        for part_a, part_b in slices:
            frag_n, frag_m = mma.make_fragment_A(part_b), mma.make_fragment_B(part_a)
            for copy, tile, fragment in ((copy_n, part_b, frag_n), (copy_m, part_a, frag_m)):
                mine = copy.get_slice(tid)
                fx.copy(copy, mine.partition_S(tile), mine.retile(fragment))
            fx.gemm(mma, acc, frag_n, frag_m, acc)
            if fence:
                fx.rocdl.sched_barrier(0)
        fx.barrier()

    result = fx.make_fragment_like(acc, fx.Float16)
    result.store(acc.load().to(fx.Float16))
    block = rows_of(C, m0, tile_m)
    out = thread.partition_C(fx.make_view(block.iter + n0, fx.make_layout((tile_n, tile_m), (1, n_size))))
    fx.copy(fx.make_copy_atom(fx.rocdl.BufferCopy(64), fx.Float16), result, out)


OPERAND = "f16[?,?{div=64}]:(?{div=64},1){align=16}"


def compile_tile(tile_m=256, tile_n=256, tile_k=64, arch="gfx942", fence=0, **options):
    """The kernel for one tile size."""
    constants = {"tile_m": tile_m, "tile_n": tile_n, "tile_k": tile_k, "fence": fence}
    return flyc.compile(gemm_tile, OPERAND, OPERAND, OPERAND, arch=arch, constants=constants, **options)


@flyc.kernel(known_block_size=(256, 1, 1))
def add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """C = A + B for f32 arrays: four elements per thread, bounds by the buffer descriptors, no mask."""
    start = (fx.block_idx.x * 256 + fx.thread_idx.x) * 4
    atom, piece = fx.make_copy_atom(fx.rocdl.BufferCopy(128), fx.Float32), fx.make_layout(4, 1)
    places = []
    for tensor in (A, B, C):
        buffer = fx.rocdl.make_buffer_ptr(tensor.iter, tensor.shape[0] * 4)
        places.append(fx.make_view(buffer, fx.make_layout(tensor.shape[0], 1)).at(start, piece))
    a, b, c = (fx.make_rmem_tensor(4, fx.Float32) for _ in places)
    fx.copy(atom, places[0], a)
    fx.copy(atom, places[1], b)
    c.store(a.load() + b.load())
    fx.copy(atom, c, places[2])


def compile_add(arch="gfx942", **options):
    """The vector add."""
    spec = "f32[?]:(1){align=16}"
    return flyc.compile(add, spec, spec, spec, arch=arch, **options)
