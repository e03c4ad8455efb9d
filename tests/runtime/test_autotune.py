"""Autotune with times of a device."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
from flyllvm.runtime import Device
from tests.compiler.sweep_kernels import add_one
from tests.hip_double.execute import Executor

pytestmark = [pytest.mark.hip, pytest.mark.llvm]

CONFIGS = [{"repeat": 4}, {"repeat": 0}, {"repeat": 2}]
SPEC = "i32[128]"


def test_time_on_a_device_restores_too(device: Executor | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "hip")
    processor = Device.current().target_id.processor
    for config in CONFIGS:
        art = flyc.compile(add_one, SPEC + "{align=16}", arch=processor, constants=config)
        if device is not None:
            device.knows(art.code_object.image, art.llvm_ir)
    x = np.arange(128, dtype=np.int32)
    tuned = flyllvm.autotune(
        add_one, CONFIGS, x, grid=1, arch=processor, measure="time", specs=[SPEC + "{align=16}"], cache=False, repeats=2
    )
    assert tuned.sweep is not None and all(t.facts["time_ms"] >= 0 for t in tuned.sweep.trials)
    assert np.array_equal(x, np.arange(128) + 1)
