#!/usr/bin/env python3
"""What each compile-time lever does to LLVM's time, and to the code: loop, registers, spills.

Usage: benchmarks/bench_levers.py [--json] [--runs N] [--arch gfx942]

LLVM's CPU time in a warm worker, median of N runs, the settings in alternation.  A setting that spills, or whose hot
loop is longer than the best one's by more than a twentieth, is marked: its time does not count.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "benchmarks")]
os.environ["FLYLLVM_CACHE"] = "0"

import gemm  # noqa: E402
import gemm_big  # noqa: E402

SETTINGS = {
    "attributes, O1, no passes": {"passes": "none"},
    "attributes, O0, no passes": {"passes": "none", "opt_level": 0},
    "attributes, O2, no passes": {"passes": "none", "opt_level": 2},
    "attributes, O3, no passes": {"passes": "none", "opt_level": 3},
    "no AGPR attribute, O1, no passes": {"passes": "none", "agpr": "allow"},
    "AGPRs forbidden, O1, no passes": {"passes": "none", "agpr": "never"},
    "O1, passes O1": {"passes": "O1"},
    "O1, passes O2": {"passes": "O2"},
    "O1, passes O3": {"passes": "O3"},
    "O3, passes O3": {"passes": "O3", "opt_level": 3},
    "O1, passes O1, AGPRs forbidden": {"passes": "O1", "agpr": "never"},
    "no line tables, O1, no passes": {"passes": "none", "debug": False},
    "automatic": {},
}
FENCED = {
    "sched.barrier per slice, O1, no passes": {"passes": "none", "fence": 1},
    "sched.barrier per slice, O1, passes O1": {"passes": "O1", "fence": 1},
}
KERNELS = {
    "gemm 128x128x32": (lambda arch, **o: gemm.compile_gemm(arch=arch, **o), SETTINGS),
    "gemm 128x128x64, no edges": (lambda arch, **o: gemm_big.compile_tile(128, 128, 64, arch, **o), SETTINGS | FENCED),
    "gemm 256x256x64, no edges": (lambda arch, **o: gemm_big.compile_tile(256, 256, 64, arch, **o), SETTINGS | FENCED),
}


def hot_loop(assembly: str) -> tuple[int, int]:
    """(instructions, MFMAs) of the loop with the most MFMAs: from a label to the branch back to it."""
    labels: dict[str, int] = {}
    code: list[str] = []
    best = (0, 0)
    for line in assembly.splitlines():
        text = line.split(";")[0].strip()
        if text.endswith(":"):
            labels[text[:-1]] = len(code)
        elif text and not text.startswith("."):
            code.append(text)
            back = re.match(r"s_c?branch\w*\s+(\S+)", text)
            if back and back[1] in labels:
                body = code[labels[back[1]] :]
                found = (len(body), sum(t.startswith(("v_mfma", "v_wmma", "v_smfmac")) for t in body))
                if found[1] > best[1]:
                    best = found
    return best


def measure(compile_one, settings: dict, arch: str, runs: int) -> dict[str, dict]:
    """Per setting: LLVM's CPU milliseconds and the code it made."""
    rows: dict[str, dict] = {}
    times: dict[str, list[float]] = {name: [] for name in settings}
    for turn in range(runs + 1):
        for name, options in settings.items():
            made = compile_one(arch, **options)
            if turn:
                times[name].append(sum(v for k, v in made.timings.stages.items() if k.startswith("llvm:")))
                continue
            (kernel,) = made.code_object.kernels.values()
            length, matrix = hot_loop(made.assembly)
            rows[name] = {
                "loop": length, "loop_mfma": matrix, "vgprs": kernel.vgpr_count, "agprs": kernel.agpr_count,
                "sgprs": kernel.sgpr_count, "spills": kernel.vgpr_spill_count + kernel.sgpr_spill_count,
                "scratch_bytes": kernel.scratch_bytes, "code_bytes": kernel.code_bytes,
            }  # fmt: skip
    for name, values in times.items():
        values.sort()
        rows[name] |= {"llvm_ms": values[len(values) // 2], "least": values[0], "most": values[-1]}
    least = min(r["loop"] for r in rows.values() if not r["spills"] and r["loop_mfma"])
    for r in rows.values():
        r["refused"] = bool(r["spills"] or r["loop"] * 20 > least * 21)
    return rows


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--arch", default="gfx942")
    ns = parser.parse_args()
    figures = {name: measure(make, settings, ns.arch, ns.runs) for name, (make, settings) in KERNELS.items()}
    if ns.json:
        print(json.dumps(figures))
        return 0
    for kernel, rows in figures.items():
        print(f"\n{kernel}, {ns.arch}")
        print(f"| {'setting':40} | LLVM CPU ms | loop (MFMA) | VGPRs (AGPRs) | SGPRs | spills | scratch B | |")
        print("|---|---|---|---|---|---|---|---|")
        for name, r in sorted(rows.items(), key=lambda kv: (kv[1]["refused"], kv[1]["llvm_ms"])):
            print(
                f"| {name:40} | {r['llvm_ms']:.1f} [{r['least']:.1f}-{r['most']:.1f}] | {r['loop']} ({r['loop_mfma']}) "
                f"| {r['vgprs']} ({r['agprs']}) | {r['sgprs']} | {r['spills']} | {r['scratch_bytes']} "
                f"| {'refused' if r['refused'] else ''} |"
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
