"""Speed of the simulator on one core: GEMMs against a tile-level NumPy reference, and a vector add.

The second engine's figures are those of code that is made already; the time that making it took is printed apart.  Exit
status 1: a GEMM of 256x256x256 took longer than its limit, in times of the reference.

Run: ``OPENBLAS_NUM_THREADS=1 python benchmarks/bench_sim.py [FILE.ll]``.  FILE.ll is a 128x128x32 f16 GEMM for gfx942
with the arguments (A, B, C, M, N, K); by default the GEMM of examples/ is compiled and run.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["FLYLLVM_SIM_THREADS"] = "1"

import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from clock import median_ms

from flyllvm.sim import simulate

TILE_M, TILE_N, TILE_K = 128, 128, 32
#: (engine, checks): how often the time of the reference a 256x256x256 GEMM may take.
LIMITS = {("jit", "none"): 6.0, ("numpy", "none"): 25.0, ("numpy", "default"): 60.0}

VECTOR_ADD = """
define amdgpu_kernel void @add(ptr addrspace(1) %x, ptr addrspace(1) %y, ptr addrspace(1) %z, i32 %n) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %b = mul i32 %g, 256
  %i = add i32 %b, %t
  %c = icmp ult i32 %i, %n
  br i1 %c, label %go, label %end
go:
  %px = getelementptr float, ptr addrspace(1) %x, i32 %i
  %py = getelementptr float, ptr addrspace(1) %y, i32 %i
  %pz = getelementptr float, ptr addrspace(1) %z, i32 %i
  %vx = load float, ptr addrspace(1) %px, align 4
  %vy = load float, ptr addrspace(1) %py, align 4
  %s = fadd float %vx, %vy
  store float %s, ptr addrspace(1) %pz, align 4
  br label %end
end:
  ret void
}
"""


def median(run: Callable[[], Any], rounds: int = 7) -> float:
    """Median wall time in seconds after one warm-up round."""
    return median_ms(run, rounds, time.perf_counter_ns) / 1e3


def tile_reference(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """The GEMM at tile level: one matmul per tile and K step."""
    wide_a, wide_b = a.astype(np.float32), b.astype(np.float32)
    for m in range(0, a.shape[0], TILE_M):
        for n in range(0, b.shape[0], TILE_N):
            acc = np.zeros((TILE_M, TILE_N), np.float32)
            for k in range(0, a.shape[1], TILE_K):
                acc += wide_a[m : m + TILE_M, k : k + TILE_K] @ wide_b[n : n + TILE_N, k : k + TILE_K].T
            c[m : m + TILE_M, n : n + TILE_N] = acc


Run = Callable[..., Any]


def from_file(path: str) -> Run:
    """Runs the GEMM of an ``.ll`` file."""
    text = Path(path).read_text(encoding="utf-8")

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray, grid: tuple[int, int], **options: str) -> Any:
        sizes = [c.shape[0], c.shape[1], a.shape[1]]
        return simulate(text, grid=grid, block=256, args=[a, b, c, *sizes], target="gfx942", **options)

    return run


def from_example() -> Run:
    """Runs the GEMM of examples/gemm.py."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "examples"))
    import gemm as example

    compiled = example.compile_gemm()

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray, grid: tuple[int, int], **options: str) -> Any:
        return compiled.simulate(a, b, c, grid=(*grid, 1), **options)

    return run


def gemm(run: Run, m: int, n: int, k: int) -> list[str]:
    """Times one size on both engines, with checkers on and off; returns the rows that are over their limit."""
    rng = np.random.default_rng(0)
    a = rng.integers(-4, 5, (m, k)).astype(np.float16)
    b = rng.integers(-4, 5, (n, k)).astype(np.float16)
    c, want = np.zeros((m, n), np.float16), np.zeros((m, n), np.float16)
    reference = median(lambda: tile_reference(a, b, want), 15)
    slow = []
    for (engine, checks), limit in LIMITS.items():
        once = partial(run, a, b, c, (m // TILE_M, n // TILE_N), engine=engine, checks=checks)
        c[:] = 0
        made = once().compile_seconds
        seconds = median(once, 15 if engine == "jit" else 7)
        assert np.array_equal(c, want), "the simulated GEMM is wrong"
        ratio, apart = seconds / reference, f", made in {made:.2f} s" if made else ""
        print(
            f"gemm {m}x{n}x{k}, {engine:5}, checks {checks:8}: {seconds * 1e3:8.1f} ms, {ratio:6.1f}x the "
            f"tile-level NumPy reference ({reference * 1e3:.2f} ms){apart}"
        )
        if seconds > limit * reference:
            slow.append(f"{engine}, checks {checks}: {ratio:.1f}x, the limit is {limit:g}x")
    return slow


def vector_add(n: int, engine: str, checks: str) -> None:
    """Times a predicated vector add in lane instructions per second."""
    x, y = np.ones(n, np.float32), np.arange(n, dtype=np.float32)
    z = np.zeros(n, np.float32)
    launch = {"grid": -(-n // 256), "block": 256, "args": [x, y, z, n], "engine": engine, "checks": checks}
    lanes = simulate(VECTOR_ADD, **launch).lane_instructions  # type: ignore[arg-type]
    seconds = median(lambda: simulate(VECTOR_ADD, **launch))  # type: ignore[arg-type]
    assert np.array_equal(z, x + y), "the simulated vector add is wrong"
    print(
        f"vector add n={n}, {engine:5}, checks {checks:8}: {seconds * 1e3:.1f} ms, "
        f"{lanes / seconds / 1e6:.0f} million lane instructions a second"
    )


def main() -> int:
    """Prints all figures."""
    run = from_file(sys.argv[1]) if len(sys.argv) > 1 else from_example()
    slow = gemm(run, 256, 256, 256)
    gemm(run, 512, 512, 256)
    for engine, checks in LIMITS:
        vector_add(1 << 20, engine, checks)
    for line in slow:
        print(f"over the limit: {line}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())
