"""From Python to the device: the GEMM example compiled, linked, loaded and launched."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import flyllvm.compiler as flyc
from flyllvm.errors import LaunchError
from flyllvm.runtime import Device
from tests.hip_double.execute import Executor
from tests.runtime.kernels import axpy

pytestmark = [pytest.mark.hip, pytest.mark.llvm]


@pytest.fixture(scope="module")
def example() -> ModuleType:
    path = Path(__file__).parents[2] / "examples" / "gemm.py"
    spec = importlib.util.spec_from_file_location("gemm_example", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (130, 36, 40)])
def test_the_gemm_example_runs_on_the_device_and_agrees_with_numpy(
    device: Executor | None, example: ModuleType, monkeypatch: pytest.MonkeyPatch, m: int, n: int, k: int
) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "hip")
    compiled = example.compile_gemm(arch=Device.current().target_id.processor)
    if device is not None:
        device.knows(compiled.code_object.image, compiled.llvm_ir)
    rng = np.random.default_rng(1)
    a = rng.integers(-3, 4, (m, k)).astype(np.float16)
    b = rng.integers(-3, 4, (n, k)).astype(np.float16)
    got, where = example.run(a, b, compiled=compiled)
    assert where == Device.current().name
    assert np.array_equal(got.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).T)


def test_a_float_argument_arrives_in_the_type_that_it_was_compiled_for(
    device: Executor | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "hip")
    processor = Device.current().target_id.processor
    compiled = flyc.compile(axpy, "f32[?]:(1)", "f32[?]:(1)", "f32", arch=processor)
    if device is not None:
        device.knows(compiled.code_object.image, compiled.llvm_ir)
    x, y = np.arange(128, dtype=np.float32), np.ones(128, np.float32)
    for _ in range(2):
        assert compiled.run(x, y, 2.5, grid=2) == Device.current().name
    assert np.array_equal(y, 5 * np.arange(128, dtype=np.float32) + 1)
    with pytest.raises(LaunchError, match=r"argument a: 'x' is no number"):
        compiled.run(x, y, "x", grid=2)
