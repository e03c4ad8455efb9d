"""How the worker loads llvmlite: the library alone, else without ``importlib.resources``, else the long way."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

CODEGEN = Path(__file__).parents[2] / "flyllvm" / "codegen"


def run(code: str) -> str:
    program = f"import sys; sys.path.insert(0, {str(CODEGEN)!r}); import worker; del sys.path[0]\n{code}"
    done = subprocess.run([sys.executable, "-B", "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.llvm
def test_llvm_works_and_pythons_own_module_is_there_afterwards() -> None:
    said = run(
        "before = 'importlib.resources' in sys.modules\n"
        "worker.import_llvmlite()\n"
        "print(before, 'importlib.resources' in sys.modules)\n"
        "llvm, problem = worker.load_llvm()\n"
        "print(problem, llvm.Target.from_triple('amdgcn-amd-amdhsa').name)\n"
        "import importlib.resources\n"
        "print(callable(importlib.resources.files), 'pathlib' in sys.modules)\n"
    )
    assert said.splitlines() == ["False False", "None amdgcn", "True True"]


@pytest.mark.llvm
def test_the_long_way_is_taken_where_the_short_one_fails() -> None:
    said = run(
        "worker._Folder.__truediv__ = lambda self, name: worker._Folder('/nowhere/' + name)\n"
        "worker.import_llvmlite()\n"
        "print([m for m in sys.modules if m.startswith('llvmlite')])\n"
        "llvm, problem = worker.load_llvm()\n"
        "print(problem, llvm.Target.from_triple('amdgcn-amd-amdhsa').name)\n"
    )
    assert said.splitlines() == ["[]", "None amdgcn"]


TEXT = "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\\n  store i32 1, ptr addrspace(1) %p\\n  ret void\\n}"
REQUEST = (
    "request = {'op': 'compile', 'ir': '" + TEXT + "', 'triple': 'amdgcn-amd-amdhsa', 'cpu': 'gfx942', 'features': '',"
    " 'opt_level': 1, 'passes': 'none', 'want': ['obj', 'asm', 'opt']}\n"
)


@pytest.mark.llvm
def test_a_module_without_passes_is_compiled_by_the_library_alone_with_the_same_result() -> None:
    said = run(
        REQUEST + "import sys\n"
        "print(worker.load_lean())\n"
        "lean = worker.compile_request(request)\n"
        "print('llvmlite.binding' in sys.modules, 'threading' in sys.modules)\n"
        "worker.compile_request(request | {'passes': 'O1'})\n"
        "worker._LEAN.clear()\n"
        "whole = worker.compile_request(request)\n"
        "print('llvmlite.binding' in sys.modules, lean['obj'] == whole['obj'], lean['asm'] == whole['asm'])\n"
        "print('store i32 1' in lean['opt'], lean['opt'] == whole['opt'])\n"
    )
    assert said.splitlines() == ["None", "False False", "True True True", "True True"]


@pytest.mark.llvm
def test_errors_of_the_library_are_llvms_words() -> None:
    said = run(
        REQUEST + "worker.load_lean()\n"
        "print(worker.compile_request(request | {'ir': 'nonsense'}))\n"
        "print(worker.compile_request(request | {'ir': 'define i32 @f() {\\n ret i32 %x\\n %x = add i32 1, 1\\n}'}))\n"
        "print(worker.compile_request(request | {'triple': 'potato'}))\n"
        "print(worker.compile_request(request | {'ir': 'target datalayout = \"e-p:32:32\"'})['error'][:21])\n"
    )
    parse, verify, triple, layout = said.splitlines()
    assert "LLVM IR parsing error" in parse and "expected top-level entity" in parse and "'stage': 'parse'" in parse
    assert "expected instruction opcode" in verify
    assert "potato" in triple and "'stage': 'target'" in triple
    assert layout == "its data layout is no"


@pytest.mark.llvm
def test_another_llvm_in_the_library_is_refused() -> None:
    said = run("worker.LLVM = (99, 0)\nprint(worker.load_lean())\nprint(worker._LEAN)\n")
    assert "flyllvm needs llvmlite 0.50.x with LLVM 99.0" in said and said.endswith("[]")


@pytest.mark.llvm
def test_a_worker_whose_library_is_another_goes_the_way_of_llvmlite() -> None:
    said = run(
        REQUEST + "worker.beside('worker_lean')._FUNCTIONS['NoSuchFunction'] = (None, ())\n"
        "import os, marshal\n"
        "(a, b), (c, d) = os.pipe(), os.pipe()\n"
        "body = marshal.dumps(request, 2)\n"
        "os.write(b, len(body).to_bytes(4, 'little') + body)\n"
        "def answer(request):\n"
        "    print(worker._LEAN, 'obj' in worker.compile_request(request), flush=True)\n"
        "    os._exit(0)\n"
        "worker._OPS['compile'] = answer\n"
        "worker.serve(a, d)\n"
    )
    assert said == "[] True"
