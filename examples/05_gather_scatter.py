"""Rows picked by an index, and rows put where an index says: gather and scatter.

``pick`` computes OUT[i] = TABLE[INDEX[i]], an embedding look-up; ``put`` computes OUT[INDEX[i]] = ROWS[i], for an index
without repetitions.  A workgroup of 256 threads moves 32 rows, 128 bits a thread at once.

The side that lies in order is partitioned by a tiled copy as always.  The other side has no layout: ``fx.gather``
and ``fx.scatter`` take a pointer and an offset for every call of the copy atom.  Offsets have 64 bits, so the table
may have more than 2**31 elements.  A predicate per call leaves out the rows past the end, and an index that is
outside of the table: such a row of OUT is zero, or is not put.

Run it with ``python examples/05_gather_scatter.py``: it compiles, runs on a GPU or in the simulator, and checks
itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

THREADS = 256
COLUMNS = 128
TILE_ROWS = 32


def partitioned(rows, index, limit):
    """One thread's part of 32 rows in order, and what belongs to each of its copies.

    Args:
        rows: (n, 128), the side in order.
        index: (n,) int32: the rows on the other side.
        limit: Rows on the other side.

    Returns:
        (copy, part, inside, offsets, valid): the tiled copy, this thread's part of ``rows``, and per call: whether the
        row is below n, the offset on the other side in elements, and whether that is to be touched.
    """
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(
        atom, fx.make_layout((8, COLUMNS // 4), (COLUMNS // 4, 1)), fx.make_layout((1, 4), (4, 1))
    )
    thread = copy.get_slice(fx.thread_idx.x)
    tile = fx.make_tile(TILE_ROWS, COLUMNS)
    part, where = (
        thread.partition_S(fx.flat_divide(tensor, tile)[None, None, fx.block_idx.x, 0])
        for tensor in (rows, fx.make_identity_tensor(rows.shape))
    )
    count = rows.shape[0]
    inside = fx.make_predicate(where, rows.shape)
    calls = fx.size(inside.layout)
    offsets, valid = fx.make_rmem_tensor(calls, fx.Int64), fx.make_rmem_tensor(calls, fx.Boolean)
    for i in range(calls):
        row, column = where[0, i, 0]
        other = fx.Int32(-1)
        if row < count:
            other = index[row]
        valid[i] = (other >= 0) & (other < limit)
        offsets[i] = fx.Int64(other) * COLUMNS + column
    return copy, part, inside, offsets, valid


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def pick(TABLE: fx.Tensor, INDEX: fx.Tensor, OUT: fx.Tensor):
    """OUT[i] = TABLE[INDEX[i]], or zero where the index is outside.

    Args:
        TABLE: (limit, 128) f32, row-major.
        INDEX: (n,) int32.
        OUT: (n, 128) f32, row-major.
    """
    copy, out, inside, offsets, valid = partitioned(OUT, INDEX, TABLE.shape[0])
    data = fx.make_fragment_like(out)
    data.fill(0.0)
    fx.gather(copy, fx.get_iter(TABLE), offsets, data, pred=valid)
    fx.copy(copy, data, out, pred=inside)


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def put(ROWS: fx.Tensor, INDEX: fx.Tensor, OUT: fx.Tensor):
    """OUT[INDEX[i]] = ROWS[i]; the other rows of OUT stay.

    Args:
        ROWS: (n, 128) f32, row-major.
        INDEX: (n,) int32, no number twice.
        OUT: (limit, 128) f32, row-major.
    """
    copy, rows, inside, offsets, valid = partitioned(ROWS, INDEX, OUT.shape[0])
    data = fx.make_fragment_like(rows)
    data.fill(0.0)
    fx.copy(copy, rows, data, pred=inside)
    fx.scatter(copy, data, fx.get_iter(OUT), offsets, pred=valid)


@flyc.jit
def host(A: fx.Tensor, INDEX: fx.Tensor, OUT: fx.Tensor, scatter: fx.Constexpr[bool], stream: fx.Stream = None):
    """One workgroup for 32 entries of the index."""
    kernel = put if scatter else pick
    groups = (INDEX.shape[0] + TILE_ROWS - 1) // TILE_ROWS
    kernel(A, INDEX, OUT).launch(grid=(groups, 1, 1), block=(THREADS, 1, 1), stream=stream)


def compile_kernel(name: str, arch: str = "gfx942", **options):
    """``pick`` or ``put``, for any number of rows."""
    rows = f"f32[?,{COLUMNS}]:({COLUMNS},1){{align=16}}"
    return flyc.compile({"pick": pick, "put": put}[name], rows, "i32[?]", rows, arch=arch, **options)


def check(name: str, n: int, limit: int, compiled, seed: int = 0) -> bool:
    """Moves ``n`` rows with two entries of the index outside; nothing is computed, so the result is exact."""
    import numpy as np

    rng = np.random.default_rng(seed)
    index = rng.permutation(limit)[:n].astype(np.int32)
    index[: min(n, 2)] = (-5, limit)[: min(n, 2)]
    good_rows = (index >= 0) & (index < limit)
    source = np.arange((limit if name == "pick" else n) * COLUMNS, dtype=np.float32).reshape(-1, COLUMNS)
    if name == "pick":
        out = np.full((n, COLUMNS), np.nan, np.float32)
        want = np.where(good_rows[:, None], source[np.where(good_rows, index, 0)], np.float32(0))
    else:
        out = np.full((limit, COLUMNS), -1, np.float32)
        want = out.copy()
        want[index[good_rows]] = source[good_rows]
    where = compiled.run(source, index, out, grid=-(-n // TILE_ROWS))
    good = np.array_equal(out, want)
    print(f"  {name} {n} of {limit} rows on {where}: {'exact' if good else 'WRONG'}")
    return good


def main() -> int:
    """Compiles both kernels, prints what they use, and checks three sizes of each."""
    ok = True
    for name in ("pick", "put"):
        compiled = compile_kernel(name)
        kernel = compiled.code_object.kernels[name]
        spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
        print(f"{name} for {compiled.target}: {kernel.vgpr_count} VGPRs,")
        print(f"  {kernel.scratch_bytes} bytes scratch, {spills} spills")
        ok &= all([check(name, n, limit, compiled) for n, limit in ((96, 100), (45, 1000), (1, 1))])
        ok &= spills + kernel.scratch_bytes == 0
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
