#!/usr/bin/env python3
"""Time of a kernel launch up to the HIP call, on the HIP double with execution off.

Usage: benchmarks/bench_dispatch.py [--json]

CPU time per launch of a kernel with 3 tensors and 3 scalars, least of several rounds: through the runtime alone,
through the handle that flyc.compile returns, and through a repeated call of a @flyc.jit function, with device arrays
and with an object that looks like a torch tensor.  Ends with status 1 where the time before the HIP call reaches its
budget: 10 us, for the @flyc.jit call 30 us.  Needs hip-python and a C compiler.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import flyllvm.compiler as flyc  # noqa: E402
import flyllvm.expr as fx  # noqa: E402
from tests.hip_double.build import build  # noqa: E402

BUDGET_US = 10.0
JIT_BUDGET_US = 30.0
ROUNDS, CALLS = 7, 3000
TYPES = (None, None, None, "i32", "i32", "i32")
SHAPE = ((4, 4, 1), (256, 1, 1))


def least_us(work: Callable[[], object]) -> float:
    """CPU time of one call in microseconds."""
    best = float("inf")
    for _ in range(ROUNDS):
        start = time.process_time_ns()
        for _ in range(CALLS):
            work()
        best = min(best, (time.process_time_ns() - start) / CALLS / 1e3)
    return best


def measure() -> dict[str, float]:
    """Times of the launch and of its parts."""
    from flyllvm.codeobject import CodeObject, link
    from flyllvm.runtime import DeviceArray, LoadedModule
    from flyllvm.runtime.hip import hip

    data = (ROOT / "tests" / "fixtures" / "codeobject" / "gemm_gfx942.o").read_bytes()
    with LoadedModule(CodeObject.from_image(link(data))) as module, DeviceArray(4) as array:
        function = module.function("gemm")
        args, addresses = [array, array, array, 128, 128, 64], [array.address] * 3 + [128, 128, 64]
        whole = least_us(lambda: function.launch(*SHAPE, args, types=TYPES))
        extra, call = function._free[0].extra, hip().binding.hipModuleLaunchKernel
        bare = least_us(lambda: call(function._handle, *SHAPE[0], *SHAPE[1], 0, None, None, extra))
        return {
            "launch_us": whole,
            "launch_by_address_us": least_us(lambda: function.launch(*SHAPE, addresses, types=TYPES)),
            "launch_without_types_us": least_us(lambda: function.launch(*SHAPE, args)),
            "hip_call_us": bare,
            "before_hip_us": whole - bare,
        }


@flyc.kernel
def triad(a: fx.Tensor, b: fx.Tensor, c: fx.Tensor, n: fx.Int32, x: fx.Float32, y: fx.Float32):
    """``c = x * a + y * b``."""
    i = fx.block_idx.x * 256 + fx.thread_idx.x
    if i < n:
        c[i] = x * a[i] + y * b[i]


@flyc.jit
def run(a, b, c, n: fx.Int32, x: fx.Float32, y: fx.Float32, stream: fx.Stream = None):
    """Launches `triad` over ``n`` elements."""
    triad(a, b, c, n, x, y).launch(grid=(n + 255) // 256, block=256, stream=stream)


class TorchLike:
    """What a launch reads of a torch tensor."""

    def __init__(self, array: object) -> None:
        self.array, self.dtype, self.shape, self.device = array, "torch.float32", array.shape, "cuda:0"  # type: ignore
        self.is_cuda = True

    def data_ptr(self) -> int:
        """Device address."""
        return self.array.address  # type: ignore

    def stride(self) -> tuple[int, ...]:
        """Strides in elements."""
        return (1,)


def measure_host(hip_call_us: float) -> dict[str, float]:
    """Times before the HIP call of the handle and of the host function."""
    from flyllvm.runtime import DeviceArray

    with DeviceArray(1024) as a, DeviceArray(1024) as b, DeviceArray(1024) as c:
        spec = "f32[?]:(1){align=16}"
        scalars = (fx.Int32, fx.Float32, fx.Float32)
        handle = flyc.compile(run, spec, spec, spec, *scalars, arch="gfx942")
        kernel = flyc.compile(triad, spec, spec, spec, *scalars, arch="gfx942", known_block_size=256)
        torch = tuple(TorchLike(x) for x in (a, b, c))
        numbers = (1000, 2.0, 3.0)
        return {
            "handle_us": least_us(lambda: handle(a, b, c, *numbers)) - hip_call_us,
            "handle_torch_like_us": least_us(lambda: handle(*torch, *numbers)) - hip_call_us,
            "kernel_handle_us": least_us(lambda: kernel(a, b, c, *numbers, grid=4)) - hip_call_us,
            "jit_us": least_us(lambda: run(a, b, c, *numbers)) - hip_call_us,
            "jit_torch_like_us": least_us(lambda: run(*torch, *numbers)) - hip_call_us,
            "jit_with_stream_us": least_us(lambda: run(a, b, c, *numbers, stream=0)) - hip_call_us,
        }


def main() -> int:
    """Measures, prints and compares."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), "-O2")
        os.environ["ROCM_PATH"] = folder
        os.environ["FLYLLVM_DEVICE"] = "hip"
        found = measure()
        found |= measure_host(found["hip_call_us"])
        result = {name: round(value, 2) for name, value in found.items()}
    late = [n for n, us in result.items() if n.startswith("jit") and us >= JIT_BUDGET_US]
    late += [
        n for n in ("before_hip_us", "handle_us", "handle_torch_like_us", "kernel_handle_us") if result[n] >= BUDGET_US
    ]
    if "--json" in sys.argv:
        print(json.dumps(result | {"budget_us": BUDGET_US, "jit_budget_us": JIT_BUDGET_US}))
    else:
        for name, value in result.items():
            print(f"{name:26}{value:8.2f}")
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
