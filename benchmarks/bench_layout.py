#!/usr/bin/env python3
"""Rate of `flyllvm layout -` over composition expressions, and time of the library's operations, against the budget.

Usage: benchmarks/bench_layout.py [--json]

CPU time of the command's process, its start included, over distinct expressions (no result is found in a table).  Ends
with status 1 where fewer than 3,000 compositions a second come out, or one result is wrong.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from flyllvm.layout import Dyn, Layout, composition, logical_divide, parse, zipped_divide  # noqa: E402

LEAST_RATE = 3000
CASES = 6000


def expressions() -> list[str]:
    """Distinct compositions of nested and flat layouts, all legal."""
    out = []
    for n in range(1, CASES // 6 + 1):
        a = f"((4,{2 * n}),(8,3)):((1,{4 * n}),(4,{64 * n}))"
        out += [
            f"composition({a}, {b})" for b in ("4:1", "(2,2):(1,2)", "2:2", "(4,2):(1,4)", "[2|*]", "[2|(2,4):(4,1)]")
        ]
    return out


def command_rate() -> tuple[float, int]:
    """Compositions a second of CPU time, and the number of lines that are errors."""
    lines = expressions()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-m", "flyllvm", "layout", "-"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    answers = done.stdout.splitlines()
    wrong = sum(a.startswith("error") for a in answers) + abs(len(lines) - len(answers))
    return len(lines) / seconds, wrong


def micros(work: Callable[[int], object], runs: int = 2000) -> float:
    """CPU time of one call in microseconds; the call gets a running number."""
    start = time.process_time_ns()
    for i in range(runs):
        work(i)
    return (time.process_time_ns() - start) / runs / 1e3


def main() -> int:
    rate, wrong = command_rate()
    tile, small, tv = parse("[128|64]"), parse("(2,4):(1,2)"), parse("((4,64),(8,4)):((128,4),(16,1))")
    n = Dyn(divisibility=8)
    result = {
        "command_per_second": round(rate),
        "wrong": wrong,
        "new_composition_us": micros(lambda i: composition(Layout((4, 8 + i), (1, 4)), small)),
        "known_composition_us": micros(lambda i: composition(tv, small)),
        "new_divide_us": micros(lambda i: zipped_divide(Layout((128 * (i + 1), 64), (64, 1)), tile)),
        "dynamic_divide_us": micros(lambda i: logical_divide(Layout((n, 128), (128, 1)), tile)),
    }
    if "--json" in sys.argv[1:]:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:24} {value:10.1f}")
    return 0 if rate >= LEAST_RATE and wrong == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
