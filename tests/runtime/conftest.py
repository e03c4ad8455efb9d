"""The GPU of these tests: a double of the HIP library, unless FLYLLVM_TEST_DEVICE=real asks for the machine's.

A process has one HIP library, so a run has either the double (the default) or a real device.  Tests marked ``hip`` run
on both unchanged; all others look into the double and are left out of a run on a real device.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from flyllvm.runtime import hip as hip_module, module, unavailable
from flyllvm.runtime.device import _known
from tests.hip_double.build import Double, build
from tests.hip_double.execute import Executor

REAL = os.environ.get("FLYLLVM_TEST_DEVICE", "double") == "real"
HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if REAL:
        left_out = [i for i in items if HERE in i.path.parents and not i.get_closest_marker("hip")]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [i for i in items if i not in left_out]


@pytest.fixture(scope="session")
def loaded_double(tmp_path_factory: pytest.TempPathFactory) -> Double:
    folder = tmp_path_factory.mktemp("hip_double")
    library = build(folder)
    before = os.environ.get("ROCM_PATH")
    os.environ["ROCM_PATH"] = str(folder)
    try:
        why = unavailable()  # hip-python opens the library now, and keeps it
    finally:
        if before is None:
            del os.environ["ROCM_PATH"]
        else:
            os.environ["ROCM_PATH"] = before
    assert why is None, why
    return Double(library)


@pytest.fixture
def double(loaded_double: Double, monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    """The double as a fresh gfx942; the test must give back all that it takes."""
    restart(loaded_double, monkeypatch, "gfx942:sramecc+:xnack-")
    yield loaded_double
    module._recent.clear()
    if loaded_double.live != (0, 0, 0):
        gc.collect()
    loaded_double.on_launch(None)
    loaded_double.configure("gfx942:sramecc+:xnack-")
    hip_module.hip().call("hipInit", 0)
    assert loaded_double.live == (0, 0, 0)


def restart(double: Double, monkeypatch: pytest.MonkeyPatch, arch: str, devices: int = 1) -> None:
    """Makes the double another GPU, as if the process had just started."""
    double.configure(arch, devices)
    monkeypatch.setattr(hip_module, "_opened", None)
    _known.clear()


@pytest.fixture
def device(request: pytest.FixtureRequest) -> Executor | None:
    """A device for a test marked ``hip``: what plays the GPU on the double, or ``None`` on a real one."""
    if not REAL:
        return Executor(request.getfixturevalue("double"))
    why = unavailable()
    if why is not None:
        pytest.skip(f"no AMD GPU here: {why}")
    return None
