"""The rule that leaves out what may change costs nothing that ships: examples and benchmarks stay cached."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from flyllvm.compiler.cache.world import World
from flyllvm.compiler.jit_function import JitFunction
from flyllvm.compiler.kernel import KernelFunction
from flyllvm.compiler.watch import Watch

ROOT = Path(__file__).parents[2]
FILES = [
    *sorted((ROOT / "examples").glob("*.py")),
    ROOT / "benchmarks" / "bench_dispatch.py",
    ROOT / "tests" / "compiler" / "sweep_kernels.py",
]


def loaded(path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A script as a module of its own."""
    spec = importlib.util.spec_from_file_location(f"kept_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    monkeypatch.syspath_prepend(str(path.parent))
    spec.loader.exec_module(module)
    return module


def check(module: ModuleType) -> int:
    """Checks all kernels and host functions of a module, and says how many there are."""
    found = [v for v in vars(module).values() if isinstance(v, (KernelFunction, JitFunction))]
    for fn in found:
        world = Watch(fn.fn)
        assert world.why_not is None and world.valid(), fn
        if isinstance(fn, KernelFunction):
            assert World(fn).sum
    return len(found)


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_examples_are_recorded_and_kept(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert check(loaded(path, monkeypatch))
