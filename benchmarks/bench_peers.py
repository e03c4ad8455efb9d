#!/usr/bin/env python3
"""Compile times of flyllvm, FlyDSL and Triton for the same kernels, in alternation, with ratios.

Usage: benchmarks/bench_peers.py [--runs N] [--arch gfx942] [--python PYTHON] [--torch-python PYTHON] [--json]

``--python`` is a Python that has the peers' wheels (they need no GPU); by default this one.  A peer that is not
installed is left out with a sentence.  FlyDSL imports torch for type names only: where there is no torch, an empty
module stands for it, which the table says; ``--torch-python`` is one with FlyDSL and torch, for a column of its own.
FlyDSL also starts ``$ROCM_PATH/llvm/bin/ld.lld``; where there is none, an
``ld.lld`` of the system's is put there.

CPU milliseconds, all child processes included; a fresh process per run; disk caches off.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
STUB = """
class Name:
    def __init__(self, name): self.name = name
    def __repr__(self): return "torch." + self.name
dtype = Name
class Tensor: pass
class device: pass
class cuda:
    class Stream: pass
class nn:
    class Parameter: pass
def __getattr__(name):
    if name.startswith("__"): raise AttributeError(name)
    return Name(name)
"""
ROWS = ("cold process", "import", "first", "again", "next kernel", "big")


class Side:
    """One compiler: its script, its Python and its environment."""

    def __init__(self, name: str, script: str, python: str, environment: dict[str, str]) -> None:
        self.name = name
        self.command = [python, str(HERE / "peers" / script)]
        self.environment = environment

    def run(self, mode: str, arch: str) -> tuple[float, dict]:
        """(CPU milliseconds of the process and its children, what it printed)."""
        read, write = os.pipe()
        actions = [(os.POSIX_SPAWN_DUP2, write, 1)]
        argv = [*self.command, mode, arch]
        pid = os.posix_spawn(argv[0], argv, self.environment, file_actions=actions)
        os.close(write)
        with os.fdopen(read) as source:
            said = source.read()
        _, status, usage = os.wait4(pid, 0)
        if status:
            raise SystemExit(f"error: {' '.join(argv)} ended with status {status}")
        return (usage.ru_utime + usage.ru_stime) * 1e3, json.loads(said.strip().splitlines()[-1])


def has(python: str, module: str) -> bool:
    """Whether a Python has a module, without importing it."""
    code = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({module!r}) is None)"
    return subprocess.run([python, "-c", code], check=False).returncode == 0


def sides(python: str, scratch: Path, torch_python: str | None = None) -> list[Side]:
    """The compilers that are there; flyllvm first."""
    base = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    base["PYTHONPYCACHEPREFIX"] = str(scratch / "bytecode")
    ours = base | {"PYTHONPATH": os.pathsep.join(map(str, (ROOT, ROOT / "examples", HERE)))}
    found = [Side("flyllvm", "flyllvm_kernels.py", sys.executable, ours)]
    if has(python, "flydsl"):
        name, environment = "FlyDSL with torch", dict(base)
        if not has(python, "torch"):
            (scratch / "stub").mkdir()
            (scratch / "stub" / "torch.py").write_text(STUB)
            name, environment["PYTHONPATH"] = "FlyDSL, stub torch", str(scratch / "stub")
        rocm = Path(base.get("ROCM_PATH", "/opt/rocm"))
        linker = shutil.which("ld.lld", path=os.pathsep.join(["/usr/lib/llvm-22/bin", *os.get_exec_path()]))
        if not (rocm / "llvm" / "bin" / "ld.lld").exists() and linker is not None:
            (scratch / "rocm" / "llvm" / "bin").mkdir(parents=True)
            (scratch / "rocm" / "llvm" / "bin" / "ld.lld").symlink_to(linker)
            environment["ROCM_PATH"] = str(scratch / "rocm")
        found.append(Side(name, "flydsl_kernels.py", python, environment))
        if torch_python is not None and name != "FlyDSL with torch":
            if not (has(torch_python, "flydsl") and has(torch_python, "torch")):
                raise SystemExit(f"error: {torch_python} has not both FlyDSL and torch")
            environment = {k: v for k, v in environment.items() if k != "PYTHONPATH"}
            found.insert(1, Side("FlyDSL with torch", "flydsl_kernels.py", torch_python, environment))
    else:
        print(f"FlyDSL is not installed in {python}: left out (pip install --no-deps flydsl==0.5.0 numpy)")
    if has(python, "triton"):
        found.append(Side("Triton", "triton_kernels.py", python, base))
    else:
        print(f"Triton is not installed in {python}: left out (pip install --no-deps triton==3.9.0)")
    return found


def middle(values: list[float]) -> float:
    """The median."""
    return sorted(values)[len(values) // 2]


def measure(found: list[Side], arch: str, runs: int) -> tuple[dict, dict]:
    """Times by side and row, and what the kernels use."""
    times: dict[str, dict[str, list[float]]] = {s.name: {row: [] for row in ROWS} for s in found}
    uses: dict[str, dict] = {}
    for turn in range(runs + 1):
        for side in found:
            cold, _ = side.run("cold", arch)
            _, said = side.run("inside", arch)
            uses[side.name] = {k: said.pop(k) for k in list(said) if k.endswith("uses")}
            if turn:  # the first turn writes bytecode
                times[side.name]["cold process"].append(cold)
                for row, value in said.items():
                    times[side.name][row].append(value)
    return times, uses


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--arch", default="gfx942")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--torch-python", help="a Python that has FlyDSL and torch")
    parser.add_argument("--json", action="store_true")
    ns = parser.parse_args()
    start = time.time()
    with tempfile.TemporaryDirectory() as scratch:
        found = sides(ns.python, Path(scratch), ns.torch_python)
        times, uses = measure(found, ns.arch, ns.runs)
    if ns.json:
        print(json.dumps({"arch": ns.arch, "times_ms": times, "uses": uses}))
        return 0
    print(f"\n{ns.arch}, CPU ms, median [least-most] of {ns.runs}, ratio flyllvm / peer of the medians\n")
    print(
        "| | " + " | ".join(s.name for s in found) + " | " + " | ".join(f"ratio to {s.name}" for s in found[1:]) + " |"
    )
    print("|---" * (2 * len(found)) + "|")
    for row in ROWS:
        cells = [f"{middle(v):.0f} [{min(v):.0f}-{max(v):.0f}]" for v in (times[s.name][row] for s in found)]
        ours = times[found[0].name][row]
        ratios = []
        for s in found[1:]:
            pairs = [a / b for a, b in zip(ours, times[s.name][row])]
            ratios.append(f"{middle(ours) / middle(times[s.name][row]):.2f} [{min(pairs):.2f}-{max(pairs):.2f}]")
        print(f"| {row} | " + " | ".join(cells + ratios) + " |")
    for name, kernels in uses.items():
        for kernel, facts in kernels.items():
            print(f"{name}, {kernel}: {facts}")
    print(f"{time.time() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
