"""What the benchmarks measure with."""

from __future__ import annotations

import time
from collections.abc import Callable


def median_ms(work: Callable[[], object], runs: int, clock: Callable[[], int] = time.process_time_ns) -> float:
    """Median time of one call, warm, in milliseconds: CPU time of this process, or what a clock of nanoseconds says."""
    work()
    times = []
    for _ in range(runs):
        start = clock()
        work()
        times.append(clock() - start)
    return sorted(times)[runs // 2] / 1e6
