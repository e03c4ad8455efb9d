"""From Python to the device: the GEMM example compiled, linked, loaded and launched."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from flyllvm.runtime import Device
from tests.hip_double.execute import Executor

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
