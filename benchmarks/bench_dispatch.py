#!/usr/bin/env python3
"""Time of a kernel launch up to the HIP call, on the HIP double with execution off.

Usage: benchmarks/bench_dispatch.py [--json]

CPU time per launch, least of several rounds.  Ends with status 1 where everything before the HIP call takes 10 us or
more.  Needs hip-python and a C compiler.
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

from tests.hip_double.build import build  # noqa: E402

BUDGET_US = 10.0
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


def main() -> int:
    """Measures, prints and compares."""
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder), "-O2")
        os.environ["ROCM_PATH"] = folder
        result = {name: round(value, 2) for name, value in measure().items()}
    if "--json" in sys.argv:
        print(json.dumps(result | {"budget_us": BUDGET_US}))
    else:
        for name, value in result.items():
            print(f"{name:26}{value:8.2f}")
    return 0 if result["before_hip_us"] < BUDGET_US else 1


if __name__ == "__main__":
    sys.exit(main())
