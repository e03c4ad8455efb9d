#!/usr/bin/env python3
"""What the disk cache costs and saves: cold, LLVM IR known, all known, and from an artefact folder.

Usage: benchmarks/bench_cache.py [--json] [--runs N]

CPU time of fresh processes, their compile workers included, on a copy of the package with its bytecode compiled; from
the start of Python to the bytes of a loadable image.  Ends with status 1 where a hit takes 60 ms or more, or loads
llvmlite or NumPy.
"""

from __future__ import annotations

import argparse
import compileall
import json
import os
import resource
import shutil
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMIT_MS = 60.0

COMPILE = """
import sys
import gemm
image = gemm.compile_gemm(arch="gfx942").code_object.image
assert image.startswith(b"\\x7fELF")
print(",".join(m for m in ("numpy", "llvmlite", "hip") if m in sys.modules) or "none")
"""
ARTEFACT = """
import sys
import flyllvm
image = flyllvm.load_artifact(sys.argv[1], "gemm").code_object.image
assert image.startswith(b"\\x7fELF")
print(",".join(m for m in ("numpy", "llvmlite", "hip") if m in sys.modules) or "none")
"""
SAVE = """
import sys
import flyllvm, gemm
flyllvm.save_artifacts(sys.argv[1], {"gemm": gemm.compile_gemm(arch="gfx942")})
print("none")
"""


class Child:
    """Runs programs in fresh processes.

    Args:
        home: Copy of the package and the examples.
        cache: Cache directory.
    """

    def __init__(self, home: Path, cache: Path) -> None:
        self.cache = cache
        self.environment = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FLYLLVM_"))}
        self.environment |= {
            "PYTHONPATH": os.pathsep.join([str(home), str(home / "examples")]),
            "FLYLLVM_CACHE_DIR": str(cache),
        }

    def run(self, program: str, *arguments: str, **environment: str) -> tuple[float, str]:
        """(CPU milliseconds of the process and its children, what it printed)."""
        read, write = os.pipe()
        argv = [sys.executable, "-c", program, *arguments]
        actions = [(os.POSIX_SPAWN_DUP2, write, 1)]
        pid = os.posix_spawn(argv[0], argv, {**self.environment, **environment}, file_actions=actions)
        os.close(write)
        with os.fdopen(read) as source:
            said = source.read().strip()
        _, status, usage = os.wait4(pid, 0)
        if status:
            raise SystemExit(f"error: a measured process ended with status {status}")
        return (usage.ru_utime + usage.ru_stime) * 1e3, said

    def forget(self, kind: str) -> None:
        """Removes the entries of a kind."""
        for path in self.cache.glob(f"v1/{kind}-*"):
            path.unlink()


def measure(runs: int) -> dict[str, dict[str, object]]:
    """CPU milliseconds by case, in alternation."""
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder, "copy")
        for name in ("flyllvm", "examples"):
            shutil.copytree(ROOT / name, home / name, ignore=shutil.ignore_patterns("__pycache__"))
        compileall.compile_dir(home, quiet=2)
        child = Child(home, Path(folder, "cache"))
        made = Path(folder, "made")
        child.run(SAVE, str(made))
        times: dict[str, list[float]] = {}
        loads: dict[str, set[str]] = {}

        def note(case: str, result: tuple[float, str]) -> None:
            times.setdefault(case, []).append(result[0])
            loads.setdefault(case, set()).add(result[1])

        for _ in range(runs):
            note("bare Python", child.run("print('none')"))
            note("cache off", child.run(COMPILE, FLYLLVM_CACHE="0"))
            shutil.rmtree(child.cache)
            note("cache empty", child.run(COMPILE))
            child.forget("source")
            note("LLVM IR known", child.run(COMPILE))
            note("all known", child.run(COMPILE))
            note("artefact", child.run(ARTEFACT, str(made)))
    return {
        case: {"ms": sorted(v)[len(v) // 2], "least": min(v), "most": max(v), "loads": sorted(loads[case])}
        for case, v in times.items()
    }


def main() -> int:
    """Measures, prints and compares."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=11)
    ns = parser.parse_args()
    figures = measure(ns.runs)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    ok = all(figures[c]["ms"] < LIMIT_MS and figures[c]["loads"] == ["none"] for c in ("all known", "artefact"))  # type: ignore[operator]
    if ns.json:
        print(json.dumps({"ok": ok, "limit_ms": LIMIT_MS, "peak_memory_mib": peak, "figures": figures}))
        return 0 if ok else 1
    print(f"{'':16}{'median ms':>10}{'least':>8}{'most':>8}  heavy modules")
    for case, f in figures.items():
        print(f"{case:16}{f['ms']:10.1f}{f['least']:8.1f}{f['most']:8.1f}  {', '.join(f['loads'])}")  # type: ignore[arg-type]
    print(f"peak memory of a process: {peak:.0f} MiB")
    print("ok" if ok else f"too slow: a hit may take {LIMIT_MS:.0f} ms and load none of NumPy, llvmlite, hip")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
