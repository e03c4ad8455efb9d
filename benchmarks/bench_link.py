#!/usr/bin/env python3
"""Time to link, read and import the code object room, against its budget.

Usage: benchmarks/bench_link.py [--json]

CPU time of this process; per fixture the median of many runs.  Ends with status 1 where the GEMM takes 2 ms or more
to link.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from clock import median_ms

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from flyllvm.codeobject import inspect, link  # noqa: E402

FIXTURES = ROOT / "tests" / "fixtures" / "codeobject"
NAMES = ("vector_add_gfx942", "gemm_gfx942", "three_kernels_gfx942", "debug_lines")
GEMM_LINK_MS = 2.0
RUNS = 200


def import_ms() -> float:
    """CPU time of importing the room with bytecode in place, in milliseconds (least of several)."""
    program = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
start = time.process_time()
import flyllvm.codeobject
print(time.process_time() - start)
"""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as cache:
        environment["PYTHONPYCACHEPREFIX"] = cache
        command = [sys.executable, "-c", program]
        runs = [subprocess.run(command, env=environment, capture_output=True, check=True) for _ in range(7)]
    return min(float(run.stdout) * 1e3 for run in runs)


def main() -> int:
    """Measures, prints and compares."""
    rows = {}
    for name in NAMES:
        data = (FIXTURES / f"{name}.o").read_bytes()
        image = link(data)
        rows[name] = {
            "object_bytes": len(data),
            "link_ms": round(median_ms(lambda data=data: link(data), RUNS), 3),
            "inspect_ms": round(median_ms(lambda image=image: inspect(image), RUNS), 3),
        }
    result = {"fixtures": rows, "import_ms": round(import_ms(), 2), "budget_gemm_link_ms": GEMM_LINK_MS}
    if "--json" in sys.argv:
        print(json.dumps(result))
    else:
        print(f"{'fixture':24}{'object B':>10}{'link ms':>10}{'inspect ms':>12}")
        for name, row in rows.items():
            print(f"{name:24}{row['object_bytes']:>10}{row['link_ms']:>10.3f}{row['inspect_ms']:>12.3f}")
        print(f"import of flyllvm.codeobject: {result['import_ms']} ms")
    return 0 if rows["gemm_gfx942"]["link_ms"] < GEMM_LINK_MS else 1


if __name__ == "__main__":
    sys.exit(main())
