"""Where launches of host functions go: with no GPU, one, two, and arrays in the wrong place."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler import place
from flyllvm.errors import LaunchError
from flyllvm.runtime import DeviceArray
from flyllvm.runtime.device import device
from tests.hip_double.build import Double
from tests.hip_double.execute import Executor
from tests.hip_double.fixtures import restart

ROOT = Path(__file__).parents[2]


@flyc.kernel
def increment(x: fx.Tensor):
    x[fx.thread_idx.x] = x[fx.thread_idx.x] + 1.0


@flyc.jit
def run(x):
    increment(x).launch(block=64)


def forget() -> None:
    place.forget()
    flyc.clear_caches()
    run._worlds.clear()


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FLYLLVM_DEVICE", raising=False)
    monkeypatch.delenv("FLYLLVM_ARCH", raising=False)
    forget()


@pytest.fixture
def gpus(double: Double, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[int], None]]:
    """Makes the double one or several GPUs that execute what is compiled here."""
    made = flyc.Artifact.code_object.fget

    def plays(count: int) -> None:
        restart(double, monkeypatch, "gfx942:sramecc+:xnack-", count)
        executor = Executor(double)

        def told(self: Any) -> Any:
            code = made(self)
            executor.knows(code.image, self.llvm_ir)
            return code

        monkeypatch.setattr(flyc.Artifact, "code_object", property(told))

    yield plays
    forget()


def test_auto_takes_the_gpu_that_is_there(gpus: Callable[[int], None], monkeypatch: pytest.MonkeyPatch) -> None:
    gpus(1)
    where = place.current_place()
    assert where.on_gpu and str(where.target) == "gfx942:sramecc+:xnack-"
    with DeviceArray.zeros(64) as x:
        run(x)
        assert np.all(x.numpy() == 1)
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx950")
    host = np.zeros(64, np.float32)
    run(host)
    assert np.all(host == 1) and run.recordings >= 2
    assert not place.current_place().on_gpu


def test_launches_follow_the_current_device(gpus: Callable[[int], None]) -> None:
    gpus(2)
    arrays = []
    for index in (0, 1):
        device(index).use()
        arrays.append(DeviceArray.zeros(64))
    before = run.recordings
    for _ in range(2):
        for index in (0, 1):
            device(index).use()
            run(arrays[index])
    assert run.recordings == before + 2, "once per device"
    assert all(np.all(a.numpy() == 2) for a in arrays)
    device(0).use()
    with pytest.raises(LaunchError, match=r"argument x: DeviceArray is on device 1, .* device 0 .*\n.*the current one"):
        run(arrays[1])
    for array in arrays:
        array.free()


def test_without_a_gpu_auto_runs_in_the_simulator(tmp_path: Path) -> None:
    program = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
import numpy as np
from tests.runtime.test_jit_places import run
x = np.zeros(64, np.float32)
run(x)
run(x)
assert np.all(x == 2) and run.recordings == 1
"""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("FLYLLVM_", "ROCM_"))}
    environment |= {"FLYLLVM_ARCH": "gfx942", "ROCM_PATH": str(tmp_path), "FLYLLVM_CACHE_DIR": str(tmp_path / "cache")}
    subprocess.run([sys.executable, "-c", program], env=environment, check=True)
    environment["FLYLLVM_DEVICE"] = "hip"
    failed = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False
    )
    assert "FLYLLVM_DEVICE=hip: libamdhip64.so was not found" in failed.stderr
    assert "fix: set FLYLLVM_DEVICE=sim" in failed.stderr
