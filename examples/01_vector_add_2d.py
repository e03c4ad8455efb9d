"""C = A + B of two matrices of any number of rows, in tiles, with predicated copies of 128 bits.

A workgroup of 256 threads adds a 16 x 128 tile: every thread two rows of four neighbouring elements.  Tiles at
the edge of the matrix stick out; a coordinate tensor, divided and partitioned like the data, says which copies
are inside.

One copy moves four elements or none, so the number of columns must be a multiple of four (1000 is); the kernel's
argument promises it, and the compiler refuses the predicate without the promise.

Run it with ``python examples/01_vector_add_2d.py``: it compiles, runs on a GPU or in the simulator, and checks
itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

THREADS = 256
#: Threads of a workgroup as rows and columns, and elements of a thread as rows and columns.
THREAD_ROWS, THREAD_COLUMNS = 8, 32
ROWS, COLUMNS = 2, 4
TILE_M, TILE_N = THREAD_ROWS * ROWS, THREAD_COLUMNS * COLUMNS


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def vector_add_2d(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """C = A + B, one tile a workgroup.

    Args:
        A: (M, N) f32, row-major, N a multiple of 4.
        B: As A.
        C: As A.
    """
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    tiled = fx.make_tiled_copy_tv(
        atom,
        fx.make_layout((THREAD_ROWS, THREAD_COLUMNS), (THREAD_COLUMNS, 1)),
        fx.make_layout((ROWS, COLUMNS), (COLUMNS, 1)),
    )
    thread = tiled.get_slice(fx.thread_idx.x)
    tile = (None, None, fx.block_idx.x, fx.block_idx.y)
    a, b, c, where = (
        thread.partition_S(fx.flat_divide(tensor, tiled.tile_mn)[tile])
        for tensor in (A, B, C, fx.make_identity_tensor(C.shape))
    )
    inside = fx.make_predicate(where, C.shape)

    # What a false predicate leaves out stays zero.
    frag_a, frag_b, frag_c = (fx.make_fragment_like(part) for part in (a, b, c))
    for part, fragment in ((a, frag_a), (b, frag_b)):
        fragment.fill(0.0)
        fx.copy(tiled, part, fragment, pred=inside)
    frag_c.store(frag_a.load() + frag_b.load())
    fx.copy(tiled, frag_c, c, pred=inside)


@flyc.jit
def host(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = None):
    """As many workgroups as tiles touch C."""
    M, N = C.shape
    grid = ((M + TILE_M - 1) // TILE_M, (N + TILE_N - 1) // TILE_N, 1)
    vector_add_2d(A, B, C).launch(grid=grid, block=(THREADS, 1, 1), stream=stream)


def compile_vector_add_2d(shape: tuple[int, int] | None = None, arch: str = "gfx942", **options):
    """The kernel for one shape, or without one for every shape whose rows are whole vectors of 16 bytes."""
    spec = f"f32[?,?{{div={COLUMNS}}}]:(?{{div={COLUMNS}}},1)" if shape is None else f"f32[{shape[0]},{shape[1]}]"
    return flyc.compile(vector_add_2d, *[spec + "{align=16}"] * 3, arch=arch, **options)


def run(a, b, compiled):
    """A + B through the kernel; returns C and where it ran."""
    import numpy as np

    c = np.full(a.shape, np.nan, a.dtype)
    where = compiled.run(a, b, c, grid=(-(-a.shape[0] // TILE_M), -(-a.shape[1] // TILE_N), 1))
    return c, where


def check(m: int, n: int, compiled, seed: int = 0) -> bool:
    """Adds random numbers: each sum is rounded once, so the result is NumPy's to the last bit."""
    import numpy as np

    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal((m, n)).astype(np.float32) for _ in range(2))
    c, where = run(a, b, compiled)
    good = np.array_equal(c, a + b)
    print(f"  {m} x {n} on {where}: {'exact' if good else 'WRONG'}")
    return good


def main() -> int:
    """Compiles for any shape and for one, and checks shapes with whole tiles, an edge, and less than a tile."""
    ok = True
    for name, shape in (("any shape", None), ("100 x 1000", (100, 1000))):
        compiled = compile_vector_add_2d(shape)
        kernel = compiled.code_object.kernels["vector_add_2d"]
        spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
        print(f"vector_add_2d of {name} for {compiled.target}: {kernel.vgpr_count} VGPRs,")
        print(f"  {kernel.scratch_bytes} bytes scratch, {spills} spills")
        sizes = [(100, 1000), (3, 8), (1, 4), (32, 256), (17, 132)] if shape is None else [shape]
        ok &= all([check(m, n, compiled) for m, n in sizes]) and spills + kernel.scratch_bytes == 0
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
