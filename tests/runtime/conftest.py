"""Launches of these tests go to the HIP double, or to a real device; see tests/hip_double/fixtures.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import flyllvm.compiler as flyc
from flyllvm.compiler import place
from tests.hip_double.execute import Executor
from tests.hip_double.fixtures import REAL, device, double

__all__ = ["device", "double"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if REAL:
        left_out = [i for i in items if HERE in i.path.parents and not i.get_closest_marker("hip")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if i not in left_out]


@pytest.fixture
def on_gpu(device: Executor | None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Launches go to the GPU; the double is told the LLVM IR of every image that is made."""
    monkeypatch.setenv("FLYLLVM_DEVICE", "hip")
    place.forget()
    flyc.clear_caches()
    if device is not None:
        made = flyc.Artifact.code_object.fget

        def told(self: Any) -> Any:
            code = made(self)
            device.knows(code.image, self.llvm_ir)
            return code

        monkeypatch.setattr(flyc.Artifact, "code_object", property(told))
    yield
    flyc.clear_caches()
    place.forget()
