"""What the benchmarks measure with."""

from __future__ import annotations

import time
from collections.abc import Callable


def median_ms(work: Callable[[], object], runs: int) -> float:
    """Median CPU time of one call in this process, warm, in milliseconds."""
    work()
    times = []
    for _ in range(runs):
        start = time.process_time_ns()
        work()
        times.append(time.process_time_ns() - start)
    return sorted(times)[runs // 2] / 1e6
