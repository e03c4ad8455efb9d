#!/usr/bin/env python3
"""What it costs to compile the GEMM example, against its budget.

Usage: benchmarks/bench_compile.py [--json] [--runs N]

CPU time, that of the compile worker included; the disk cache is off.  Cold processes are compared with a bare process
that imports llvmlite, makes the target machine and emits the object of the same LLVM IR; the two alternate, so that a
machine that slows down slows both.  Medians.  Ends with status 1 where a limit is exceeded.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]
# What the disk cache saves is bench_cache.py's question.
os.environ["FLYLLVM_CACHE"] = "0"

import gemm  # noqa: E402

from flyllvm.codegen.client import default_pool  # noqa: E402
from flyllvm.codeobject import CodeObject, link  # noqa: E402

#: Limits: a ratio, then milliseconds.
LIMITS = {
    "cold process / bare LLVM": 2.5,
    "import flyllvm": 40.0,
    "warm: LLVM": 35.0,
    "warm: ours": 20.0,
    "warm: ours, tracing left out": 10.0,
    "warm: link": 2.0,
}

COLD = """
import gemm
gemm.compile_gemm(arch="gfx942", cache=False).code_object.kernels["gemm"]
"""

BARE = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine("gfx942", "", opt=1)
module = llvm.parse_assembly(open(sys.argv[1]).read())
module.verify()
assert machine.emit_object(module)
"""

IMPORT = """
import time
start = time.process_time_ns()
import flyllvm, flyllvm.compiler, flyllvm.expr
print((time.process_time_ns() - start) / 1e6)
"""


def median(values: list[float]) -> float:
    """The middle value."""
    return sorted(values)[len(values) // 2]


class Child:
    """Runs fresh Pythons with bytecode in place, which a first run writes.

    Args:
        cache: Directory of the bytecode.
    """

    def __init__(self, cache: str) -> None:
        self.environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        self.environment["PYTHONPYCACHEPREFIX"] = cache
        self.environment["PYTHONPATH"] = os.pathsep.join(sys.path[:2])

    def cpu_ms(self, program: str, *arguments: str) -> float:
        """CPU time of the process and all it has waited for (the compile worker), in milliseconds."""
        command = [sys.executable, "-c", program, *arguments]
        pid = os.posix_spawn(sys.executable, command, self.environment)
        _, status, usage = os.wait4(pid, 0)
        if status:
            raise SystemExit(f"error: a measured process ended with status {status}")
        return (usage.ru_utime + usage.ru_stime) * 1e3

    def printed_ms(self, program: str) -> float:
        """The number that the program prints."""
        read, write = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, write, 1)]
        pid = os.posix_spawn(sys.executable, [sys.executable, "-c", program], self.environment, file_actions=actions)
        os.close(write)
        with os.fdopen(read) as source:
            text = source.read()
        os.waitpid(pid, 0)
        return float(text)


def cold(child: Child, runs: int, llvm_ir: Path) -> dict[str, float]:
    """Import to linked code object, against LLVM alone."""
    child.cpu_ms(COLD)
    child.cpu_ms(BARE, str(llvm_ir))
    pairs = [(child.cpu_ms(COLD), child.cpu_ms(BARE, str(llvm_ir))) for _ in range(runs)]
    child.printed_ms(IMPORT)
    return {
        "cold process": median([ours for ours, _ in pairs]),
        "bare LLVM": median([bare for _, bare in pairs]),
        "cold process / bare LLVM": median([ours / bare for ours, bare in pairs]),
        "import flyllvm": median([child.printed_ms(IMPORT) for _ in range(runs)]),
    }


def cpu_of(pid: int) -> float:
    """CPU time a process has used, in milliseconds (its Linux clock)."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6


def timed(work: Callable[[], object]) -> float:
    """CPU time of a call in this process, in milliseconds."""
    start = time.process_time_ns()
    work()
    return (time.process_time_ns() - start) / 1e6


def warm(runs: int) -> dict[str, float]:
    """A kernel compiled again and again in one process with one worker."""
    for _ in range(3):
        art = gemm.compile_gemm(arch="gfx942", cache=False)
    (worker,) = default_pool()._idle
    llvm, ours, untraced = [], [], []
    for _ in range(runs):
        before = cpu_of(worker.pid)
        start = time.process_time_ns()
        art = gemm.compile_gemm(arch="gfx942", cache=False)
        ours.append((time.process_time_ns() - start) / 1e6)
        llvm.append(cpu_of(worker.pid) - before)
        untraced.append(ours[-1] - art.timings.stages["fly"])
    image = art.object_bytes or b""
    return {
        "warm: LLVM": median(llvm),
        "warm: ours": median(ours),
        "warm: ours, tracing left out": median(untraced),
        "warm: link": median([timed(lambda: CodeObject.from_image(link(image))) for _ in range(10 * runs)]),
    }


def measure(runs: int) -> dict[str, float]:
    """All figures by name."""
    art = gemm.compile_gemm(arch="gfx942", cache=False)
    with tempfile.TemporaryDirectory() as folder:
        llvm_ir = Path(folder) / "gemm.ll"
        llvm_ir.write_text(art.llvm_ir, encoding="utf-8")
        return {**cold(Child(folder), runs, llvm_ir), **warm(4 * runs)}


def main() -> int:
    """Measures, prints and compares."""
    parser = argparse.ArgumentParser(description="CPU time of compiling the GEMM example, against its budget.")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=11, help="cold processes of each kind")
    ns = parser.parse_args()
    figures = measure(ns.runs)
    over = [name for name, limit in LIMITS.items() if figures[name] > limit]
    if ns.json:
        print(json.dumps({"figures": figures, "limits": LIMITS, "over": over}))
    else:
        print(f"{'':32}{'median':>10}{'limit':>10}")
        for name, value in figures.items():
            unit = "x " if "/" in name else "ms"
            limit = f"{LIMITS[name]:8.1f}{unit}" if name in LIMITS else ""
            print(f"{name:32}{value:8.2f}{unit}{limit:>10}{'  OVER' if name in over else ''}")
    return 1 if over else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
