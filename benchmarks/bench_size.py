#!/usr/bin/env python3
"""What an installation takes on disk: flyllvm, FlyDSL and Triton, each with what it needs to compile.

Usage: benchmarks/bench_size.py [--python PYTHON ...] [--json]

``--python`` names Pythons that have the peers' wheels, by default this one; the first that has a package counts.  Sizes
are those of the files that pip has recorded for a package, bytecode left out, in MiB; dependencies are those that the
wheels declare, and for FlyDSL what it imports without declaring it (torch, numpy).  flyllvm is counted from its source.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Product -> the packages it needs to compile, and those it also needs to run as its authors ship it.
PRODUCTS = {
    "flyllvm": (["llvmlite"], ["numpy", "ml_dtypes", "hip-python"]),
    "FlyDSL": (["flydsl", "numpy"], ["torch"]),
    "Triton": (["triton"], ["torch"]),
}
MEASURE = """
import importlib.metadata as m, json, os, re, sys
def size(name):
    total = 0
    for f in m.distribution(name).files or ():
        path = str(f.locate())
        if not path.endswith(".pyc") and os.path.isfile(path):
            total += os.path.getsize(path)
    return total
def need(name, seen):
    key = re.sub("[-_.]+", "-", name).lower()
    if key in seen:
        return
    try:
        requires = m.requires(name) or []
    except m.PackageNotFoundError:
        return
    seen[key] = size(name)
    for line in requires:
        if "extra ==" not in line:
            need(re.match(r"[\\w.-]+", line)[0], seen)
out = {}
for name in sys.argv[1:]:
    seen = {}
    need(name, seen)
    out[name] = seen
print(json.dumps(out))
"""


def measure(pythons: list[str], names: list[str]) -> dict[str, dict[str, int]]:
    """Package -> bytes of itself and of each package that it declares, from the first Python that has it."""
    found: dict[str, dict[str, int]] = {}
    for python in pythons:
        said = subprocess.run([python, "-c", MEASURE, *names], capture_output=True, text=True, check=True).stdout
        for name, sizes in json.loads(said).items():
            if sizes and name not in found:
                found[name] = sizes
    return found


def own_bytes() -> int:
    """The package's own files, as a wheel has them."""
    return sum(p.stat().st_size for p in (ROOT / "flyllvm").rglob("*") if p.is_file() and p.suffix != ".pyc")


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", action="append")
    parser.add_argument("--json", action="store_true")
    ns = parser.parse_args()
    names = sorted({n for parts in PRODUCTS.values() for group in parts for n in group})
    found = measure(ns.python or [sys.executable], names)
    rows = {}
    for product, (compile_with, run_with) in PRODUCTS.items():
        sizes: dict[str, int] = {"flyllvm": own_bytes()} if product == "flyllvm" else {}
        missing = [n for n in compile_with if n not in found]
        for name in compile_with:
            sizes |= found.get(name, {})
        more = dict(sizes)
        for name in run_with:
            more |= found.get(name, {})
        rows[product] = {
            "compile_mib": sum(sizes.values()) / 2**20,
            "all_mib": sum(more.values()) / 2**20,
            "missing": missing + [n for n in run_with if n not in found],
            "packages_mib": {n: round(b / 2**20, 1) for n, b in more.items()},
        }
    if ns.json:
        print(json.dumps(rows))
        return 0
    print(f"{'':10}{'to compile':>12}{'as shipped':>12}  MiB; largest packages")
    for product, row in rows.items():
        largest = sorted(row["packages_mib"].items(), key=lambda kv: -kv[1])[:4]
        text = ", ".join(f"{n} {s:.0f}" for n, s in largest)
        absent = f"; not installed: {', '.join(row['missing'])}" if row["missing"] else ""
        print(f"{product:10}{row['compile_mib']:12.0f}{row['all_mib']:12.0f}  {text}{absent}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
