"""LLVM in the user's own process, beside another user of LLVM there, in both orders."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Stands for numba: its own modules and engine in the same llvmlite, alive before and after.
OTHER = """
import ctypes
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
machine = llvm.Target.from_default_triple().create_target_machine()
HOST = "define i32 @twice(i32 %x) {\\n  %y = shl i32 %x, 1\\n  ret i32 %y\\n}"
engine = llvm.create_mcjit_compiler(llvm.parse_assembly(HOST), machine)
engine.finalize_object()
twice = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(engine.get_function_address("twice"))
assert twice(21) == 42
"""
OURS = """
import flyllvm.compiler as flyc, flyllvm.expr as fx
from flyllvm.codegen import compile_llvm
from flyllvm.errors import CodegenError
from flyllvm.target import Target
@flyc.kernel
def add(A: fx.Tensor):
    A[fx.thread_idx.x] = A[fx.thread_idx.x] + 1
art = flyc.compile(add, "f32[64]", arch="gfx942")
for passes in ("none", "O1"):
    here = compile_llvm(art.llvm_ir, Target.parse("gfx942"), passes=passes, in_process=True).object
    assert here == compile_llvm(art.llvm_ir, Target.parse("gfx942"), passes=passes).object
try:
    compile_llvm("nonsense", Target.parse("gfx942"), in_process=True)
except CodegenError as e:
    assert "expected top-level entity" in str(e)
else:
    raise AssertionError
"""
BOTH = """
assert twice(4) == 8
again = llvm.create_mcjit_compiler(llvm.parse_assembly(HOST.replace("shl i32 %x, 1", "mul i32 %x, 5")),
                                   llvm.Target.from_default_triple().create_target_machine())
again.finalize_object()
five = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(again.get_function_address("twice"))
assert five(4) == 20 and twice(4) == 8
print("both work")
"""


@pytest.mark.llvm
@pytest.mark.parametrize("program", [OTHER + OURS, OURS + OTHER, OURS + OTHER + OURS], ids=["last", "first", "around"])
def test_llvm_in_the_own_process_and_another_user_of_it_do_not_disturb_each_other(program: str, tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(f"import sys\nsys.path.insert(0, {str(ROOT)!r})\n{program}{BOTH}")
    done = subprocess.run([sys.executable, str(path)], capture_output=True, text=True, timeout=60)
    assert done.stdout == "both work\n", done.stderr
