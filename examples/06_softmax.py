"""Softmax of every row of a matrix, with reductions over lanes and over waves.

A workgroup of 256 threads has one row.  Every thread holds some pieces of four neighbouring elements in
registers, so that the row is read once and written once.  The maximum and the sum are joined in three
steps: over a thread's vector, over the 64 lanes of its wave by exchanges between lanes, and over the four waves
through LDS.

Run it with ``python examples/06_softmax.py``: it compiles, runs on a GPU or in the simulator, and checks itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

THREADS = 256
LOG2_E = 1.4426950408889634
#: Far below any exponent that matters, and finite: a lane that is all padding has no NaN.
LOWEST = -3.0e38


def over_workgroup(value, op, storage):
    """A number of every thread joined over the workgroup by ``max`` or ``add``; every thread gets the result.

    Args:
        value: A number.
        op: ``max`` or ``add``.
        storage: LDS for one number a wave, used for nothing else.
    """
    mine = fx.wave_reduce(value, op)
    waves = THREADS // fx.num_warp_threads()
    if fx.lane_id() == 0:
        storage[fx.wave_id()] = mine
    fx.barrier()
    joined = storage[0]
    for wave in range(1, waves):
        joined = fx.max(joined, storage[wave]) if op == "max" else joined + storage[wave]
    return joined


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def softmax(X: fx.Tensor, Y: fx.Tensor):
    """Y = softmax of each row of X.

    Args:
        X: (M, N) f32, row-major; N is static and a multiple of 4.
        Y: As X.
    """
    length, tid = X.shape[1], fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    tiled = fx.make_tiled_copy_tv(atom, fx.make_layout(THREADS, 1), fx.make_layout(4, 1))
    thread = tiled.get_slice(tid)
    row = fx.block_idx.x
    source, target, where = (
        thread.partition_S(fx.zipped_divide(line, tiled.tile_mn))
        for line in (X[row, None], Y[row, None], fx.make_identity_tensor((length,)))
    )
    inside = fx.make_predicate(where, (length,))

    x = fx.make_fragment_like(source)
    x.fill(LOWEST)
    fx.copy(tiled, source, x, pred=inside)

    peaks, sums = (fx.SharedAllocator().allocate(fx.Array[fx.Float32, 16]).view(fx.make_layout(16, 1)) for _ in "ab")
    peak = over_workgroup(x.load().reduce("max"), "max", peaks)
    power = fx.math.exp2((x.load() - peak) * LOG2_E)
    # One division a thread: the sum is at least 1, and its reciprocal costs one more rounding.
    scale = 1.0 / over_workgroup(power.reduce("add"), "add", sums)
    x.store(power * scale)
    fx.copy(tiled, x, target, pred=inside)


@flyc.jit
def host(X: fx.Tensor, Y: fx.Tensor, stream: fx.Stream = None):
    """One workgroup a row."""
    softmax(X, Y).launch(grid=(X.shape[0], 1, 1), block=(THREADS, 1, 1), stream=stream)


def compile_softmax(n: int = 2048, arch: str = "gfx942", **options):
    """The kernel for rows of ``n`` elements, any number of them."""
    spec = f"f32[?,{n}]:({n},1){{align=16}}"
    return flyc.compile(softmax, spec, spec, arch=arch, **options)


def error_bound(x):
    """The exact softmax, and how far Y may be from it.

    The argument of the power has two roundings of at most 2**-24 of its size, up to ``spread``, which change the power
    by as much; the power itself, the sum (12 additions deep, plus the sums of a thread) and the division add
    some units of 2**-23 each.
    """
    import numpy as np

    wide = x.astype(np.float64)
    power = np.exp(wide - wide.max(axis=1, keepdims=True))
    exact = power / power.sum(axis=1, keepdims=True)
    spread = wide.max(axis=1, keepdims=True) - wide.min(axis=1, keepdims=True)
    deep = 12 + x.shape[1] / THREADS
    return exact, exact * 2.0**-23 * (2 * spread * LOG2_E + deep + 8) + 2.0**-149


def check(m: int, n: int, compiled, seed: int = 0) -> bool:
    """Random rows, some of them shifted far from zero, within the bound."""
    import numpy as np

    rng = np.random.default_rng(seed)
    x = (4 * rng.standard_normal((m, n)) + 1000 * (np.arange(m) % 3 - 1)[:, None]).astype(np.float32)
    y = np.full((m, n), np.nan, np.float32)
    where = compiled.run(x, y, grid=m)
    exact, bound = error_bound(x)
    good = bool((np.abs(y - exact) <= bound).all())
    worst = float(np.nanmax(np.abs(y - exact) / bound))
    print(f"  {m} x {n} on {where}: {f'largest error {worst:.2f} of the bound' if good else 'WRONG'}")
    return good


def main() -> int:
    """Compiles for some row lengths, prints what the kernels use, and checks them."""
    ok = True
    for n in (2048, 1000, 12):
        compiled = compile_softmax(n)
        kernel = compiled.code_object.kernels["softmax"]
        spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
        print(f"softmax of rows of {n} for {compiled.target}: {kernel.vgpr_count} VGPRs,")
        print(f"  {kernel.scratch_bytes} bytes scratch, {spills} spills")
        ok &= check(7, n, compiled) and spills + kernel.scratch_bytes == 0
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
