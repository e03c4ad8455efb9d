#!/usr/bin/env python3
"""Time to emit LLVM IR, to load the room, and what the worker and line tables cost.

Usage: benchmarks/bench_codegen.py [--json]

CPU time; medians of warm runs on the example GEMM.  Ends with status 1 where emission takes 8 ms or more, or the worker
takes more than 1.25 times the CPU of a bare process that emits the same object.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from clock import median_ms

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

EMIT_MS, WORKER_RATIO = 8.0, 1.25
RUNS = 15


def children_ms(command: list[str], environment: dict[str, str]) -> float:
    """CPU time of a process and what it starts, in milliseconds (least of several)."""
    times = []
    for _ in range(4):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times.append((after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) * 1e3)
    return min(times[1:])  # the first one writes the bytecode cache


BARE = """
import sys
import llvmlite.binding as llvm
llvm.initialize_all_targets()
llvm.initialize_all_asmprinters()
module = llvm.parse_assembly(open(sys.argv[1]).read())
machine = llvm.Target.from_triple("amdgcn-amd-amdhsa").create_target_machine("gfx942", opt=1)
machine.emit_object(module)
"""
WORKER = """
import sys
sys.path.insert(0, {root!r})
from flyllvm.codegen.client import compile_llvm, default_pool
from flyllvm.target import Target
compile_llvm(open(sys.argv[1]).read(), Target.parse("gfx942"), check=False)
default_pool().close()
"""


def emission() -> tuple[dict[str, float], dict[str, str]]:
    """Times of emission, and the text with and without line tables."""
    import gemm

    import flyllvm.expr as fx
    from flyllvm.codegen import Options, emit_module
    from flyllvm.compiler.pipeline import atoms_stage, ssa_stage
    from flyllvm.ir.core import Module
    from flyllvm.target import Target

    target = Target.parse("gfx942")
    specs: list[Any] = [fx.parse_spec("f16[?,?]:(?,1){div=8,align=16}")] * 3
    kernel = gemm.gemm.trace(specs, target)
    module = ssa_stage(atoms_stage(Module([kernel]), target), target)
    plain = Options(debug=False)
    texts = {"lines": emit_module(module, target), "plain": emit_module(module, target, plain)}
    times = {
        "emit_ms": median_ms(lambda: emit_module(module, target), RUNS),
        "emit_without_lines_ms": median_ms(lambda: emit_module(module, target, plain), RUNS),
    }
    return times, texts


def llvm_times(texts: dict[str, str]) -> dict[str, float]:
    """LLVM's own CPU time, warm, with and without line tables."""
    from flyllvm.codegen import compile_llvm
    from flyllvm.target import Target

    target = Target.parse("gfx942")
    out = {}
    for name, text in texts.items():
        runs = [sum(compile_llvm(text, target, check=False).timings.values()) for _ in range(RUNS)]
        out[f"llvm_{name}_ms"] = sorted(runs)[RUNS // 2]
    return out


def main() -> int:
    """Runs the benchmark; returns the exit status."""
    figures, texts = emission()
    figures |= llvm_times(texts)
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    with tempfile.TemporaryDirectory() as directory:
        environment["PYTHONPYCACHEPREFIX"] = directory
        path = Path(directory, "gemm.ll")
        path.write_text(texts["lines"])
        bare = children_ms([sys.executable, "-c", BARE, str(path)], environment)
        ours = children_ms([sys.executable, "-c", WORKER.format(root=str(ROOT)), str(path)], environment)
        empty = children_ms([sys.executable, "-c", "pass"], environment)
    figures |= {"bare_process_ms": bare, "client_and_worker_ms": ours, "empty_python_ms": empty}
    # The client is a process of its own: an empty Python is not the worker's doing.
    figures["worker_ratio"] = (ours - empty) / bare
    ok = figures["emit_ms"] < EMIT_MS and figures["worker_ratio"] <= WORKER_RATIO
    if "--json" in sys.argv[1:]:
        print(json.dumps({"ok": ok, **figures}))
    else:
        for name, value in figures.items():
            print(f"{name:<24}{value:8.2f}")
        print("ok" if ok else f"too slow: emission < {EMIT_MS} ms, worker <= {WORKER_RATIO} x bare")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
