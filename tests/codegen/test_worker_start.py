"""How the worker loads llvmlite: without ``importlib.resources``, and the long way where that does not work."""

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
