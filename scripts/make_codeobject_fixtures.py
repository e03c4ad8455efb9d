#!/usr/bin/env python3
"""Makes the binaries under tests/fixtures/codeobject: objects emitted by LLVM and linked by a stock lld.

Usage: scripts/make_codeobject_fixtures.py [LLD]

LLD is an ``ld.lld`` (default: found on the path); the committed ones are from lld 22.1.  The tests need only the
committed binaries.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from llvmlite import binding as llvm

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures" / "codeobject"
sys.path.insert(0, str(ROOT))

# (fixture, source, processor, features, LLVM optimisation level, code object version)
ROWS = [
    ("vector_add_gfx90a", "vector_add", "gfx90a", "", 2, 5),
    ("vector_add_gfx942", "vector_add", "gfx942", "", 2, 5),
    ("vector_add_gfx1100", "vector_add", "gfx1100", "", 2, 5),
    ("vector_add_gfx942_v4", "vector_add", "gfx942", "", 2, 4),
    ("vector_add_gfx942_v6", "vector_add", "gfx942", "", 2, 6),
    ("vector_add_gfx942_modes", "vector_add", "gfx942", "+sramecc,-xnack", 2, 5),
    ("vector_add_generic", "vector_add", "gfx9-4-generic", "", 2, 6),
    ("gemm_gfx942", "gemm_gfx942", "gfx942", "", 1, 5),
    ("gemm_gfx950", "gemm_gfx950", "gfx950", "", 1, 5),
    ("three_kernels_gfx90a", "three_kernels", "gfx90a", "", 2, 5),
    ("three_kernels_gfx942", "three_kernels", "gfx942", "", 2, 5),
    ("three_kernels_gfx950", "three_kernels", "gfx950", "", 2, 5),
    ("three_kernels_gfx1100", "three_kernels", "gfx1100", "", 2, 5),
    ("one_global", "one_global", "gfx942", "", 2, 5),
    ("nothing_exported", "nothing_exported", "gfx942", "", 2, 5),
    ("odd_sections", "odd_sections", "gfx942", "", 2, 5),
    ("debug_lines", "debug_lines", "gfx942", "", 2, 5),
    ("arguments", "arguments", "gfx942", "", 2, 5),
]
_VERSION = '"amdhsa_code_object_version", i32 '


def emit(source: str, processor: str, features: str, level: int, version: int) -> bytes:
    """Object file of one LLVM IR text."""
    text = (FIXTURES / f"{source}.ll").read_text(encoding="utf-8")
    text = text.replace(f"{_VERSION}500", f"{_VERSION}{version * 100}")
    if _VERSION not in text:
        text += f"!llvm.module.flags = !{{!9000}}\n!9000 = !{{i32 1, !{_VERSION}{version * 100}}}\n"
    module = llvm.parse_assembly(text)
    module.verify()
    target = llvm.Target.from_triple("amdgcn-amd-amdhsa")
    machine = target.create_target_machine(cpu=processor, features=features, opt=level, reloc="pic")
    data: bytes = machine.emit_object(module)
    return data


def main() -> int:
    """Emits and links every fixture."""
    from tests.codeobject.objects import absolute_object

    lld = sys.argv[1] if len(sys.argv) > 1 else shutil.which("ld.lld")
    if lld is None:
        print("no ld.lld on the path; install lld or name one", file=sys.stderr)
        return 2
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    objects = {name: emit(*row) for name, *row in ROWS}
    objects["absolute"] = absolute_object()
    for name, data in objects.items():
        path, linked = FIXTURES / f"{name}.o", FIXTURES / f"{name}.hsaco"
        path.write_bytes(data)
        subprocess.run([lld, "-shared", path.name, "-o", linked.name], cwd=FIXTURES, check=True)
        linked.chmod(0o644)
        print(f"{name}: {len(data)} bytes, linked {linked.stat().st_size}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
