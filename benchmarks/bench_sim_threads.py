"""What threads bring the simulator's second engine: GEMMs, sums of growing length, and a vector add.

Run: ``python benchmarks/bench_sim_threads.py [THREADS]`` (by default the cores of this machine), on a quiet one.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from bench_sim import VECTOR_ADD, from_example, median

from flyllvm.sim import simulate

#: Workgroup g sums the first ``64 * (g + 1)`` numbers, lane by lane: later ones have more to do.
CAUSAL = """
define amdgpu_kernel void @causal(ptr addrspace(1) %x, ptr addrspace(1) %z) {
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %n, %loop ]
  %s = phi float [ 0.0, %entry ], [ %m, %loop ]
  %b = mul i32 %i, 64
  %k = add i32 %b, %t
  %p = getelementptr float, ptr addrspace(1) %x, i32 %k
  %v = load float, ptr addrspace(1) %p, align 4
  %e = call float @llvm.sqrt.f32(float %v)
  %m = fadd float %s, %e
  %n = add i32 %i, 1
  %c = icmp ule i32 %n, %g
  br i1 %c, label %loop, label %done
done:
  %r = mul i32 %g, 64
  %o = add i32 %r, %t
  %q = getelementptr float, ptr addrspace(1) %z, i32 %o
  store float %m, ptr addrspace(1) %q, align 4
  ret void
}
"""


def compare(name: str, run: Callable[..., Any], result: np.ndarray, threads: int) -> None:
    """Times a kernel with one thread and with more; both results must be the same."""
    results, seconds = [], []
    for count in (1, threads):
        result[:] = 0
        seconds.append(median(lambda count=count: run(engine="jit", checks="none", threads=count)))
        results.append(result.tobytes())
    assert results[0] == results[1], "the results differ"
    print(
        f"{name:24} {seconds[0] * 1e3:8.2f} ms with 1 thread, {seconds[1] * 1e3:8.2f} ms with {threads}: "
        f"{seconds[0] / seconds[1]:.2f} times as fast"
    )


def main() -> int:
    """Prints all figures."""
    threads = int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count() or 1
    run, rng = from_example(), np.random.default_rng(0)
    for m, n, k in ((256, 256, 256), (512, 512, 512), (2048, 1024, 512)):
        a, b = (rng.integers(-4, 5, (rows, k)).astype(np.float16) for rows in (m, n))
        c = np.zeros((m, n), np.float16)
        compare(f"gemm {m}x{n}x{k}", lambda **o: run(a, b, c, (m // 128, n // 128), **o), c, threads)  # noqa: B023
    x = rng.random(64 * 2048, np.float32)
    z = np.zeros_like(x)
    compare("causal sums", lambda **o: simulate(CAUSAL, grid=2048, block=64, args=[x, z], **o), z, threads)
    n = 1 << 20
    x, z = np.ones(n, np.float32), np.zeros(n, np.float32)
    add = {"grid": n // 256, "block": 256, "args": [x, x + 1, z, n]}
    compare(f"vector add {n}", lambda **o: simulate(VECTOR_ADD, **add, **o), z, threads)
    return 0


if __name__ == "__main__":
    sys.exit(main())
