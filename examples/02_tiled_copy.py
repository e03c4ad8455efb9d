"""A tiled copy, and a transpose through LDS without bank conflicts.

``tiled_copy`` moves 64 x 64 tiles with a tiled copy: 256 threads, each 128 bits of a row at a time.

``transpose`` writes B = A^T.  A tile goes row by row into LDS and comes out column by column, so that global memory
is read and written along its rows.  The columns of a plain 64 x 64 tile of f32 lie 256 bytes apart: in one
LDS bank.  A swizzle mixes bits of the row into bits of the column and spreads them over the banks; the same pointer
serves the writes and the reads, so the layouts know nothing of it.

Run it with ``python examples/02_tiled_copy.py``: it compiles, runs on a GPU or in the simulator, and checks
itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

THREADS = 256
TILE = 64
#: Swizzle of LDS byte addresses: 4-byte elements move with the row, bits 8 to 13 (rows are 256 bytes) onto 2 to 7.
SWIZZLE = fx.Swizzle(6, 2, 6)


def row_copy(bits: int):
    """A tiled copy of f32 along rows: 128 bits by 16 x 16 threads, or 32 bits by 4 x 64."""
    width = bits // 32
    columns = TILE // width
    return fx.make_tiled_copy_tv(
        fx.make_copy_atom(fx.UniversalCopy(bits), fx.Float32),
        fx.make_layout((THREADS // columns, columns), (columns, 1)),
        fx.make_layout((1, width), (width, 1)),
    )


def tile_of(tensor, row, column):
    """The 64 x 64 tile of a tensor at (row, column), counted in tiles."""
    return fx.flat_divide(tensor, fx.make_tile(TILE, TILE))[None, None, row, column]


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def tiled_copy(A: fx.Tensor, B: fx.Tensor):
    """B = A.

    Args:
        A: (M, N) f32, row-major, M and N multiples of 64.
        B: As A.
    """
    copy = row_copy(128)
    thread = copy.get_slice(fx.thread_idx.x)
    source = thread.partition_S(tile_of(A, fx.block_idx.x, fx.block_idx.y))
    target = thread.partition_D(tile_of(B, fx.block_idx.x, fx.block_idx.y))
    registers = fx.make_fragment_like(source)
    fx.copy(copy, source, registers)
    fx.copy(copy, registers, target)


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def transpose(A: fx.Tensor, B: fx.Tensor):
    """B = A^T.

    Args:
        A: (M, N) f32, row-major, M and N multiples of 64.
        B: (N, M) f32, row-major.
    """
    copy = row_copy(32)
    thread = copy.get_slice(fx.thread_idx.x)
    lds = fx.apply_swizzle(fx.shared_memory(fx.Float32, TILE * TILE, align=16384), SWIZZLE)
    rows = fx.make_view(lds, fx.make_layout((TILE, TILE), (TILE, 1)))
    columns = fx.make_view(lds, fx.make_layout((TILE, TILE), (1, TILE)))

    source = thread.partition_S(tile_of(A, fx.block_idx.x, fx.block_idx.y))
    registers = fx.make_fragment_like(source)
    fx.copy(copy, source, registers)
    fx.copy(copy, registers, thread.partition_D(rows))
    fx.barrier()
    # Row i of the transposed tile is column i of what stands in LDS.
    fx.copy(copy, thread.partition_S(columns), registers)
    fx.copy(copy, registers, thread.partition_D(tile_of(B, fx.block_idx.y, fx.block_idx.x)))


@flyc.jit
def host(A: fx.Tensor, B: fx.Tensor, turned: fx.Constexpr[bool], stream: fx.Stream = None):
    """One workgroup a tile of A."""
    M, N = A.shape
    kernel = transpose if turned else tiled_copy
    kernel(A, B).launch(grid=(M // TILE, N // TILE, 1), block=(THREADS, 1, 1), stream=stream)


def compile_kernel(name: str, m: int = 192, n: int = 128, arch: str = "gfx942", **options):
    """``tiled_copy`` or ``transpose`` for one shape of A, so that its layouts cost nothing at run time."""
    kernel, shape = {"tiled_copy": (tiled_copy, (m, n)), "transpose": (transpose, (n, m))}[name]
    specs = (f"f32[{rows},{columns}]{{align=16}}" for rows, columns in ((m, n), shape))
    return flyc.compile(kernel, *specs, arch=arch, **options)


def check(name: str, m: int, n: int, compiled) -> bool:
    """Moves numbers that are all different; nothing is computed, so the result is exact."""
    import numpy as np

    a = np.arange(m * n, dtype=np.float32).reshape(m, n)
    want = a.T if name == "transpose" else a
    b = np.full(want.shape, np.nan, np.float32)
    where = compiled.run(a, b, grid=(m // TILE, n // TILE, 1))
    good = np.array_equal(b, want)
    print(f"  {name} of {m} x {n} on {where}: {'exact' if good else 'WRONG'}")
    return good


def main() -> int:
    """Compiles both kernels, prints what they use, and checks two sizes of each."""
    ok = True
    for name in ("tiled_copy", "transpose"):
        for m, n in ((192, 128), (64, 64)):
            compiled = compile_kernel(name, m, n)
            kernel = compiled.code_object.kernels[name]
            spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
            print(f"{name} for {compiled.target}: {kernel.vgpr_count} VGPRs, {kernel.lds_bytes} bytes LDS,")
            print(f"  {kernel.scratch_bytes} bytes scratch, {spills} spills")
            ok &= check(name, m, n, compiled) and spills + kernel.scratch_bytes == 0
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
