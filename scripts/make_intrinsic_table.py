#!/usr/bin/env python3
"""Writes flyllvm/codegen/intrinsics.txt, the signatures of the AMDGPU intrinsics of LLVM 22.1.

Usage: make_intrinsic_table.py INTRINSICS.json.gz

The input is a list of objects with `name`, `signature` (`i32 (i32, i1 immarg)`), `immargs`, `attrs` and `archs_ok`,
gathered by compiling one call of each overload for each processor.  A line of the output is

    name TAB signature without `immarg` TAB immediate positions TAB processor mask (hexadecimal) TAB flags

in the order of the names; the first line lists the processors from the low bit of the mask up.  Flag `p`: touches no
memory and no other lane.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

# Begin of a name -> processors without the instruction, for which LLVM selects it all the same: its pattern asks for no
# feature.  Source: the processors' ISA manuals, list of instructions.
LACKING = {
    "llvm.amdgcn.cvt.scalef32.": {"gfx90a", "gfx942"},
    "llvm.amdgcn.exp.": {"gfx942", "gfx950"},
}
OUT = Path(__file__).parents[1] / "flyllvm" / "codegen" / "intrinsics.txt"


def main() -> int:
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with gzip.open(sys.argv[1], "rt", encoding="utf-8") as f:
        entries = json.load(f)
    archs = sorted({a for e in entries for a in e["archs_ok"]})
    lines = ["\t".join(archs)]
    for e in sorted(entries, key=lambda e: e["name"]):
        lacking = {a for begin, chips in LACKING.items() if e["name"].startswith(begin) for a in chips}
        mask = sum(1 << archs.index(a) for a in e["archs_ok"] if a not in lacking)
        attrs = e["attrs"]
        pure = "p" if "memory(none)" in attrs and "convergent" not in attrs else ""
        imms = ",".join(map(str, e["immargs"]))
        lines.append("\t".join([e["name"], e["signature"].replace(" immarg", ""), imms, f"{mask:x}", pure]))
    # mtime 0: the same table gives the same bytes.
    OUT.write_bytes(("\n".join(lines) + "\n").encode("ascii"))
    print(f"{OUT.name}: {len(lines) - 1} overloads, {OUT.stat().st_size} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
