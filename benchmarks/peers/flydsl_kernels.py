"""FlyDSL's side of ``bench_peers.py``: GEMM tiles and a vector add, compiled without a GPU.

Prints one JSON object with CPU milliseconds, children included, and what the code object uses.
"""

import json
import os
import resource
import sys
import tempfile


def cpu_ms():
    """CPU time of this process and its children."""
    usage = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in usage) * 1e3


MODE, ARCH = sys.argv[1:3]
START = cpu_ms()
os.environ.update(COMPILE_ONLY="1", ARCH=ARCH, FLYDSL_GPU_ARCH=ARCH, FLYDSL_RUNTIME_ENABLE_CACHE="0")

import flydsl.compiler as flyc  # noqa: E402
import flydsl.expr as fx  # noqa: E402

IMPORT = cpu_ms() - START
K_SIZE = 4096


def make_gemm(bm, bn, bk):
    """A new GEMM of one tile size: C = A * B^T, LDS for both operands, the next tile prefetched into registers."""
    bits = {32: 2, 64: 3}[bk]

    @flyc.kernel
    def gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, tiled_mma: fx.TiledMma, g2s: fx.TiledCopy):
        tid = fx.thread_idx.x
        bx, by, _ = fx.block_idx
        A = fx.rocdl.make_buffer_tensor(A)
        B = fx.rocdl.make_buffer_tensor(B)
        C = fx.rocdl.make_buffer_tensor(C)
        g_a = fx.flat_divide(A, fx.make_tile(bm, bk))[None, None, bx, None]
        g_b = fx.flat_divide(B, fx.make_tile(bn, bk))[None, None, by, None]
        g_c = fx.flat_divide(C, fx.make_tile(bm, bn))[None, None, bx, by]
        thread, mover = tiled_mma.thr_slice(tid), g2s.get_slice(tid)
        wide = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
        load = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float16)
        store = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), fx.Float16)
        copy_a = fx.make_tiled_copy_A(wide, tiled_mma).get_slice(tid)
        copy_b = fx.make_tiled_copy_B(wide, tiled_mma).get_slice(tid)
        copy_c = fx.make_tiled_copy_C(store, tiled_mma).get_slice(tid)
        lds = fx.recast_iter(fx.PointerType.get(fx.Float16.ir_type, fx.AddressSpace.Shared, 512), fx.get_dyn_shared())

        def tile(ptr, rows):
            swizzle = fx.static(fx.SwizzleType.get(bits, 3, 3))
            return fx.make_view(ptr, fx.make_composed_layout(swizzle, fx.make_ordered_layout((rows, bk), (1, 0))))

        s_a, s_b = tile(lds, bm), tile(fx.add_offset(lds, bm * bk), bn)
        from_a, from_b = mover.partition_S(g_a), mover.partition_S(g_b)
        to_a, to_b = mover.partition_D(s_a), mover.partition_D(s_b)
        next_a, next_b = fx.make_fragment_like(to_a), fx.make_fragment_like(to_b)
        frag_a, frag_b = thread.make_fragment_A(s_a), thread.make_fragment_B(s_b)
        lds_a, regs_a = copy_a.partition_S(s_a), copy_a.retile(frag_a)
        lds_b, regs_b = copy_b.partition_S(s_b), copy_b.retile(frag_b)
        acc = thread.make_fragment_C(g_c)
        acc.fill(0.0)
        fx.copy(load, from_a[None, None, None, 0], next_a)
        fx.copy(load, from_b[None, None, None, 0], next_b)
        for k in range(1, K_SIZE // bk + 1):
            fx.copy(wide, next_a, to_a)
            fx.copy(wide, next_b, to_b)
            fx.gpu.barrier()
            at = fx.Int32(k)
            fx.copy(load, from_a[None, None, None, at], next_a)
            fx.copy(load, from_b[None, None, None, at], next_b)
            fx.copy(wide, lds_a, regs_a)
            fx.copy(wide, lds_b, regs_b)
            fx.gemm(tiled_mma, acc, frag_a, frag_b, acc)
            fx.gpu.barrier()
        result = fx.make_fragment_like(acc, fx.Float16.ir_type)
        result.store(acc.load().to(fx.Float16))
        fx.copy(store, copy_c.retile(result), copy_c.partition_S(g_c))

    @flyc.jit
    def gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):  # noqa: B008
        columns = bk // 8
        rows = 256 // columns
        g2s = fx.make_tiled_copy(
            fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16),
            fx.make_layout(((columns, rows), (1, 8)), ((rows * 8, 1), (1, rows))),
            fx.make_tile(rows, bk),
        )
        mma = fx.make_tiled_mma(
            fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
            fx.make_layout((2, 2, 1), (1, 2, 0)),
            fx.make_tile(32, 32, fx.make_layout((4, 4, 2), (1, 8, 4))),
        )
        gemm_kernel(A, B, C, mma, g2s).launch(
            grid=(32, 32, 1), block=(256, 1, 1), smem=(bm + bn) * bk * 2, stream=stream
        )

    return gemm


@flyc.kernel
def add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
    """Four floats per thread."""
    tid, bid = fx.thread_idx.x, fx.block_idx.x
    parts = []
    for tensor in (A, B, C):
        block = fx.slice(fx.logical_divide(fx.rocdl.make_buffer_tensor(tensor), fx.make_layout(1024, 1)), (None, bid))
        parts.append(fx.slice(fx.logical_divide(block, fx.make_layout(4, 1)), (None, tid)))
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
    a, b, c = (fx.make_rmem_tensor(4, fx.Float32) for _ in range(3))
    fx.copy_atom_call(atom, parts[0], a)
    fx.copy_atom_call(atom, parts[1], b)
    c.store(a.load() + b.load())
    fx.copy_atom_call(atom, c, parts[2])


@flyc.jit
def add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):  # noqa: B008
    """The vector add."""
    add_kernel(A, B, C).launch(grid=(1024, 1, 1), block=(256, 1, 1), stream=stream)


def timed(work):
    """CPU milliseconds of a call."""
    start = cpu_ms()
    work()
    return cpu_ms() - start


def main():
    """Compiles and prints."""
    import numpy as np

    matrix = flyc.from_dlpack(np.zeros((K_SIZE, K_SIZE), np.float16))
    line = flyc.from_dlpack(np.zeros(1 << 20, np.float32))
    out = {"import": IMPORT, "first": timed(lambda: make_gemm(128, 128, 32)(matrix, matrix, matrix))}
    if MODE == "inside":
        out["again"] = min(timed(lambda: make_gemm(128, 128, 32)(matrix, matrix, matrix)) for _ in range(3))
        out["next kernel"] = timed(lambda: add(line, line, line))
        out["big"] = timed(lambda: make_gemm(256, 256, 64)(matrix, matrix, matrix))
    print(json.dumps(out))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        os.chdir(scratch)
        main()
