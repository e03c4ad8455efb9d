"""Launches of these tests go to the HIP double, or to a real device; see tests/hip_double/fixtures.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hip_double.fixtures import REAL, device, double

__all__ = ["device", "double"]

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if REAL:
        left_out = [i for i in items if HERE in i.path.parents and not i.get_closest_marker("hip")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if i not in left_out]
