"""Makes tests/fixtures/foreign/flydsl_*.ll: LLVM IR that FlyDSL emits for kernels written here.

FlyDSL compiles for AMD processors without a GPU.  It is no dependency of the project: install it in an environment of
its own and run ``python scripts/make_foreign_flydsl.py`` there.  It imports torch for type names, so that an empty
module does, and links with ``$ROCM_PATH/llvm/bin/ld.lld``; what is linked is not used here, so that a script that
copies does.  The kernels of this file are ours; what lies in the fixtures is their compiled form.
"""

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

OUT = Path(__file__).resolve().parent.parent / "tests" / "fixtures" / "foreign"
M, N, K = 64, 64, 32
K_SIZE = 96


def compile_all():
    """Compiles both kernels for the processor in ``ARCH``; FlyDSL dumps what it makes."""
    import flydsl.compiler as flyc
    import flydsl.expr as fx
    import numpy as np

    @flyc.kernel
    def gemm_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, tiled_mma: fx.TiledMma, g2s: fx.TiledCopy):
        tid = fx.thread_idx.x
        bx, by, _ = fx.block_idx
        g_a = fx.flat_divide(fx.rocdl.make_buffer_tensor(A), fx.make_tile(M, K))[None, None, bx, None]
        g_b = fx.flat_divide(fx.rocdl.make_buffer_tensor(B), fx.make_tile(N, K))[None, None, by, None]
        g_c = fx.flat_divide(fx.rocdl.make_buffer_tensor(C), fx.make_tile(M, N))[None, None, bx, by]
        thread, mover = tiled_mma.thr_slice(tid), g2s.get_slice(tid)
        wide = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16)
        load = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float16)
        store = fx.make_copy_atom(fx.rocdl.BufferCopy16b(), fx.Float16)
        copy_a = fx.make_tiled_copy_A(wide, tiled_mma).get_slice(tid)
        copy_b = fx.make_tiled_copy_B(wide, tiled_mma).get_slice(tid)
        copy_c = fx.make_tiled_copy_C(store, tiled_mma).get_slice(tid)
        lds = fx.recast_iter(fx.PointerType.get(fx.Float16.ir_type, fx.AddressSpace.Shared, 512), fx.get_dyn_shared())

        def tile(ptr, rows):
            swizzle = fx.static(fx.SwizzleType.get(2, 3, 3))
            return fx.make_view(ptr, fx.make_composed_layout(swizzle, fx.make_ordered_layout((rows, K), (1, 0))))

        s_a, s_b = tile(lds, M), tile(fx.add_offset(lds, M * K), N)
        from_a, from_b = mover.partition_S(g_a), mover.partition_S(g_b)
        to_a, to_b = mover.partition_D(s_a), mover.partition_D(s_b)
        held_a, held_b = fx.make_fragment_like(to_a), fx.make_fragment_like(to_b)
        frag_a, frag_b = thread.make_fragment_A(s_a), thread.make_fragment_B(s_b)
        lds_a, regs_a = copy_a.partition_S(s_a), copy_a.retile(frag_a)
        lds_b, regs_b = copy_b.partition_S(s_b), copy_b.retile(frag_b)
        acc = thread.make_fragment_C(g_c)
        acc.fill(0.0)
        for k in range(K_SIZE // K):
            at = fx.Int32(k)
            fx.copy(load, from_a[None, None, None, at], held_a)
            fx.copy(load, from_b[None, None, None, at], held_b)
            fx.copy(wide, held_a, to_a)
            fx.copy(wide, held_b, to_b)
            fx.gpu.barrier()
            fx.copy(wide, lds_a, regs_a)
            fx.copy(wide, lds_b, regs_b)
            fx.gemm(tiled_mma, acc, frag_a, frag_b, acc)
            fx.gpu.barrier()
        result = fx.make_fragment_like(acc, fx.Float16.ir_type)
        result.store(acc.load().to(fx.Float16))
        fx.copy(store, copy_c.retile(result), copy_c.partition_S(g_c))

    @flyc.jit
    def gemm(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):  # noqa: B008
        columns, rows = K // 8, 256 // (K // 8)
        g2s = fx.make_tiled_copy(
            fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float16),
            fx.make_layout(((columns, rows), (1, 8)), ((rows * 8, 1), (1, rows))),
            fx.make_tile(rows, K),
        )
        mma = fx.make_tiled_mma(
            fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16)),
            fx.make_layout((2, 2, 1), (1, 2, 0)),
            fx.make_tile(32, 32, fx.make_layout((4, 4, 2), (1, 8, 4))),
        )
        gemm_kernel(A, B, C, mma, g2s).launch(grid=(2, 2, 1), block=(256, 1, 1), smem=(M + N) * K * 2, stream=stream)

    @flyc.kernel
    def add_kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor):
        tid, bid = fx.thread_idx.x, fx.block_idx.x
        parts = []
        for tensor in (A, B, C):
            buffer = fx.rocdl.make_buffer_tensor(tensor)
            block = fx.slice(fx.logical_divide(buffer, fx.make_layout(1024, 1)), (None, bid))
            parts.append(fx.slice(fx.logical_divide(block, fx.make_layout(4, 1)), (None, tid)))
        atom = fx.make_copy_atom(fx.rocdl.BufferCopy128b(), fx.Float32)
        a, b, c = (fx.make_rmem_tensor(4, fx.Float32) for _ in range(3))
        fx.copy_atom_call(atom, parts[0], a)
        fx.copy_atom_call(atom, parts[1], b)
        c.store(a.load() + b.load())
        fx.copy_atom_call(atom, c, parts[2])

    @flyc.jit
    def add(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor, stream: fx.Stream = fx.Stream(None)):  # noqa: B008
        add_kernel(A, B, C).launch(grid=(3, 1, 1), block=(256, 1, 1), stream=stream)

    operand = flyc.from_dlpack(np.zeros((128, K_SIZE), np.float16))
    gemm(operand, operand, flyc.from_dlpack(np.zeros((128, 128), np.float16)))
    line = flyc.from_dlpack(np.zeros(3072, np.float32))
    add(line, line, line)


def main():
    """Compiles in a process for each processor, and keeps the LLVM IR of the dumps."""
    for arch in ("gfx942", "gfx950"):
        with tempfile.TemporaryDirectory() as scratch:
            env = {**os.environ, "COMPILE_ONLY": "1", "ARCH": arch, "FLYDSL_GPU_ARCH": arch, "FLYDSL_DUMP_IR": "1",
                   "FLYDSL_DUMP_DIR": scratch, "FLYDSL_RUNTIME_ENABLE_CACHE": "0"}  # fmt: skip
            subprocess.run([sys.executable, __file__, "compile"], env=env, cwd=scratch, check=True)
            for name in ("add", "gemm"):
                (file,) = Path(scratch).glob(f"{name}_kernel_*/*llvm_ir.ll")
                text = re.sub(r'directory: "[^"]*"', 'directory: ""', file.read_text(encoding="utf-8"))
                shared = (M + N) * K * 2 if name == "gemm" else 0
                text = f"; {name} for {arch}, dynamic LDS: {shared} bytes\n{text}"
                (OUT / f"flydsl_{name}-{arch}.ll").write_text(text, encoding="utf-8")
                print(f"flydsl_{name}-{arch}.ll: {len(text)} bytes")


if __name__ == "__main__":
    compile_all() if sys.argv[1:] == ["compile"] else main()
