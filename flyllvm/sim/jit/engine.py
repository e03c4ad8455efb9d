"""The second engine: runs workgroups of a launch as host code in the compile worker.

It works on a copy of global memory, or on one for each thread.  Where it finds a fault, or cannot go on, they are
thrown away and the NumPy engine runs the same workgroups, so that a fault is reported in the same words by both.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ... import host
from ...errors import CodegenError, SimError
from ..compile import Program
from ..values import Array
from . import module, threads
from .arena import Arena
from .parts import value_bits

if TYPE_CHECKING:
    from ..run import Setup

#: Seconds that LLVM may take for a kernel, and that one batch of workgroups may take.
COMPILE_TIMEOUT, RUN_TIMEOUT = 120.0, 300.0
# Batches are sized to last about that long, so that progress shows and an endless one is noticed.
_BATCH_SECONDS, _FIRST_BATCH = 0.5, 64
_PAGE = 4096
_WHY = {
    module.FAULT: "it found a fault",
    module.ENDLESS: "a workgroup ran too many blocks",
    module.STRANGE: "lanes diverged around a barrier, or read registers of inactive lanes",
}
_ARENA = Arena()


def host_code(program: Program, block: tuple[int, int, int], dynamic_lds_bytes: int) -> module.HostCode:
    """The host code of a kernel for a block size; kept with the program.

    Raises:
        SimError: The kernel uses what this engine does not cover.
    """
    key = (block, dynamic_lds_bytes)
    found = program.host_code.get(key)
    if found is None:
        try:
            found = module.build(program, block, dynamic_lds_bytes)
            found.key = hashlib.sha256(found.text.encode()).hexdigest()
        except SimError as e:
            found = e
        program.host_code[key] = found
    if isinstance(found, SimError):
        raise found
    if not isinstance(found, module.HostCode):
        raise TypeError("host code")
    return found


class Runner:
    """Runs the workgroups of a launch.

    Attributes:
        threads: Workgroups that may run at the same time.
        reason: Why the last run was left to the NumPy engine.
        compile_seconds: Time that making host code took.
        found_fault: That reason is a fault.
    """

    def __init__(self, setup: Setup, threads: int = 1) -> None:
        self.setup, self.launch, self.threads = setup, setup.launch, threads
        self.reason = ""
        self.compile_seconds = 0.0
        self.found_fault = False

    def run(self, first: int, total: int, progress: Callable[[int, int], None] | None) -> bool:
        """Runs workgroups ``first`` to ``total``; without success memory is as before, and ``reason`` says why.

        Raises:
            SimError: The kernel uses what this engine does not cover.
            CodegenError: The worker cannot make or run the code; memory is as before.
        """
        start = time.perf_counter()
        code = host_code(self.launch.program, self.launch.block, self.launch.dynamic_lds_bytes)
        self.compile_seconds += time.perf_counter() - start
        control = self._control(code)
        with _ARENA.lock:
            try:
                for count in dict.fromkeys((threads.useful(self.threads, code, self.launch, total - first), 1)):
                    done = self._on_copies(code, control, threads.Plan(count, first, total), progress)
                    if done is not None:
                        return done
                    code.alone = True  # its workgroups write the same bytes: their order is that of one thread
                return False
            finally:
                _ARENA.trim()

    def _on_copies(
        self, code: module.HostCode, control: Array, plan: threads.Plan, progress: Callable[[int, int], None] | None
    ) -> bool | None:
        """Runs on copies of memory, and takes the results over if all went well; ``None`` where they clash."""
        heap = self.launch.heap.data
        heap_at = -(-control.size // _PAGE) * _PAGE
        each = heap_at + -(-heap.size // _PAGE) * _PAGE
        memory = _ARENA.view(plan.threads * each)
        copies = [memory[each * i : each * (i + 1)] for i in range(plan.threads)]
        for copy in copies:
            copy[: control.size] = control
            copy[heap_at : heap_at + heap.size] = heap
        places = [(each * i, each * i + heap_at) for i in range(plan.threads)]
        status = self._batches(code, places, plan, progress)
        if status != module.DONE:
            self.found_fault = status == module.FAULT
            self.reason = _WHY.get(status, f"status {status}")
            return False
        results = [(copy[: control.size].view(np.uint64), copy[heap_at:]) for copy in copies]
        written = [self._written(code, words) for words, _ in results]
        if not threads.merge(self.launch.heap, written, [data for _, data in results]):
            return None
        for words, _ in results:
            self._take(code, words)
        return True

    def _batches(
        self, code: module.HostCode, places: list[tuple[int, int]], plan: threads.Plan,
        progress: Callable[[int, int], None] | None,
    ) -> int:  # fmt: skip
        """Runs all workgroups; the status of the first one that does not end well."""
        size = _FIRST_BATCH
        while plan.at < plan.total:
            start = time.perf_counter()
            before = plan.at
            jobs = [(*place, ranges) for place, ranges in zip(places, plan.batch(size), strict=True)]
            failed = [(at, status) for status, at in self._call(code, jobs) if status != module.DONE]
            if failed:
                return min(failed)[1]
            if progress is not None:
                progress(plan.at, plan.total)
            speed = (plan.at - before) / max(1e-6, time.perf_counter() - start)
            size = max(1, int(speed * _BATCH_SECONDS))
        return module.DONE

    def _call(self, code: module.HostCode, jobs: host.Jobs) -> list[tuple[int, int]]:
        ends = host.run(code.key, _ARENA.path, _ARENA.size, jobs, RUN_TIMEOUT)
        if ends is None:
            start = time.perf_counter()
            host.load(code.key, code.text, code.state_bytes, COMPILE_TIMEOUT)
            self.compile_seconds += time.perf_counter() - start
            ends = host.run(code.key, _ARENA.path, _ARENA.size, jobs, RUN_TIMEOUT)
        if ends is None:
            raise CodegenError("the worker does not keep the code", fix="use engine='numpy'")
        return ends

    # ---- what both sides share

    def _control(self, code: module.HostCode) -> Array:
        """The control block with the table of regions."""
        launch = self.launch
        pointers = [
            int(read().flat[0]) if name in code.pointers else 0
            for name, read in (
                ("dispatch", launch.dispatch_pointer), ("implicit", launch.implicit_pointer),
                ("kernarg", launch.kernarg_pointer),
            )
        ]  # fmt: skip
        regions = launch.heap.regions
        control = np.zeros(code.control_bytes + module.REGION_BYTES * len(regions), np.uint8)
        words = control.view(np.uint64)
        words[module.GRID // 8 : module.GRID // 8 + 3] = launch.grid
        words[module.FUEL // 8] = launch.max_steps
        words[module.REGIONS // 8] = len(regions)
        words[module.POINTERS // 8 : module.POINTERS // 8 + 3] = pointers
        at = module.PARAMS // 8
        for value in self.setup.values:
            for bits in value_bits(value):
                words[at] = bits
                at += 1
        table = words[code.control_bytes // 8 :].reshape(-1, 4)
        for row, region in zip(table, regions, strict=True):
            row[:] = (region.start, region.size, int(region.readonly), int(region.written))
        return control

    def _written(self, code: module.HostCode, words: Array) -> list[bool]:
        """Which regions a thread wrote to."""
        return [bool(row[3]) for row in words[code.control_bytes // 8 :].reshape(-1, 4)]

    def _take(self, code: module.HostCode, words: Array) -> None:
        """Adds the counts of a thread."""
        launch = self.launch
        counts = words[code.counters // 8 :][: 3 * len(launch.counts)].reshape(-1, 3)
        for total, row, full in zip(launch.counts, counts, code.full, strict=True):
            runs = int(row[0])
            total[0] += runs
            total[1] += runs * launch.block_lanes if full else int(row[1])
            total[2] += runs * launch.waves if full else int(row[2])
        for node, inst, text in code.warnings:
            if counts[node, 0]:
                launch.warn(inst, text)
        for i, inst in enumerate(code.clipped):
            launch.count_clipped(inst, int(words[code.clipped_at // 8 + i]))
        self.setup.report.divergences += int(words[module.DIVERGENCES // 8])
