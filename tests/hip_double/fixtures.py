"""Fixtures for tests that launch on a GPU: a double of the HIP library, or a real one (FLYLLVM_TEST_DEVICE=real).

A process has one HIP library, so a run has either the double (the default) or a real device.  Tests marked ``hip`` run
on both unchanged; all others look into the double and are left out of a run on a real device.
"""

from __future__ import annotations

import atexit
import gc
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from flyllvm.runtime import hip as hip_module, module, unavailable
from flyllvm.runtime.device import _known
from tests.hip_double.build import Double, build
from tests.hip_double.execute import Executor

GFX942 = "gfx942:sramecc+:xnack-"
REAL = os.environ.get("FLYLLVM_TEST_DEVICE", "double") == "real"


@cache
def load_double() -> Double:
    """The double, built and opened by hip-python once in a process."""
    folder = Path(mkdtemp(prefix="hip_double_"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    library = build(folder)
    # An earlier look for the library that found none has made hip-python remember the bare name, and a name that is
    # loaded already is what the dynamic loader gives for it.
    loaded = Double(library)
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
    _hide(loaded)
    return loaded


def _hide(double: Double) -> None:
    """Leaves no GPU behind, so that other tests of the process go to the simulator as before."""
    double.on_launch(None)
    double.configure(GFX942, devices=0)
    hip_module._opened = None
    _known.clear()


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[Double]:
    """The double as a fresh gfx942; the test must give back all that it takes."""
    loaded = load_double()
    restart(loaded, monkeypatch, GFX942)
    yield loaded
    module._recent.clear()
    if loaded.live != (0, 0, 0):
        gc.collect()
    live = loaded.live
    _hide(loaded)
    assert live == (0, 0, 0), "a test left allocations, modules or streams behind"


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
