"""C = A + B for any length, in f32 and f16: predicated copies of 128 bits, and a tail of single elements.

Work item i adds vector i (16 bytes of A and B) where all of it is inside.  The up to 3 (f32) or 7 (f16) elements
that no whole vector covers are added one each by the first work items.  A false predicate skips the access, so
nothing past the end is touched, and C may be A or B.

Run it with ``python examples/vector_add.py``: it compiles, runs on a GPU or in the simulator, and checks itself.
"""

from __future__ import annotations

import sys

import flyllvm.compiler as flyc
import flyllvm.expr as fx

THREADS = 256
VECTOR_BITS = 128


@flyc.kernel(known_block_size=(THREADS, 1, 1))
def vector_add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """C = A + B.

    Args:
        A: (n,) f32 or f16, contiguous.
        B: As A.
        C: As A; its length counts.
    """
    n, dtype = C.shape[0], C.dtype
    width = VECTOR_BITS // dtype.width
    index = fx.block_idx.x * THREADS + fx.thread_idx.x

    def add(count, start, inside):
        """``count`` elements from ``start`` on, where ``inside`` is true."""
        atom = fx.make_copy_atom(fx.UniversalCopy(count * dtype.width), dtype)
        piece = fx.make_layout(count, 1)
        a, b, c = (fx.make_rmem_tensor(count, dtype) for _ in range(3))
        for tensor, registers in ((A, a), (B, b)):
            fx.copy(atom, tensor.at(start, piece), registers, pred=inside)
        c.store(a.load() + b.load())
        fx.copy(atom, c, C.at(start, piece), pred=inside)

    # Comparing vector indices, not element offsets: the offset of the last block may be past 2**31.
    vectors = n // width
    add(width, index * width, index < vectors)
    add(1, vectors * width + index, index < n - vectors * width)


def compile_vector_add(dtype: str = "f32", arch: str = "gfx942", **options):
    """The kernel for ``f32`` or ``f16`` arrays that start at a multiple of 16 bytes."""
    spec = f"{dtype}[?]:(1){{align={VECTOR_BITS // 8}}}"
    return flyc.compile(vector_add, spec, spec, spec, arch=arch, **options)


def run(a, b, compiled, out=None):
    """A + B through the kernel; returns C and where it ran."""
    import numpy as np

    if a.shape != b.shape or a.dtype != b.dtype or a.ndim != 1:
        raise ValueError(f"A is {a.dtype}{a.shape}, B is {b.dtype}{b.shape}: pass two vectors of one type and length")
    c = np.full(a.shape, np.nan, a.dtype) if out is None else out
    elements = THREADS * VECTOR_BITS // (8 * a.itemsize)
    where = compiled.run(a, b, c, grid=max(1, -(-a.size // elements)))
    return c, where


def check(n: int, compiled, dtype: str, seed: int = 0) -> bool:
    """Adds ``n`` random numbers: each sum is rounded once, so the result is NumPy's to the last bit."""
    import numpy as np

    rng = np.random.default_rng(seed)
    a, b = (rng.standard_normal(n).astype({"f32": np.float32, "f16": np.float16}[dtype]) for _ in range(2))
    c, where = run(a, b, compiled)
    good = np.array_equal(c, a + b)
    print(f"  {n:7} x {dtype} on {where}: {'exact' if good else 'WRONG'}")
    return good


def main() -> int:
    """Compiles for both types, prints what the kernels use, and checks lengths with and without a tail."""
    ok = True
    for dtype in ("f32", "f16"):
        compiled = compile_vector_add(dtype)
        kernel = compiled.code_object.kernels["vector_add"]
        spills = kernel.vgpr_spill_count + kernel.sgpr_spill_count
        print(f"vector_add of {dtype} for {compiled.target}: {kernel.vgpr_count} VGPRs, {kernel.sgpr_count} SGPRs,")
        print(f"  {kernel.scratch_bytes} bytes scratch, {spills} spills")
        ok &= all([check(n, compiled, dtype) for n in (1, 1000, 1024, 100_003)]) and spills == 0
    print("the results agree with NumPy" if ok else "the results are WRONG")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
