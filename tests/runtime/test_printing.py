"""Kernels that print, launched through HIP: on the double and, unchanged, on a real GPU."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import CodegenError
from flyllvm.runtime import Device, DeviceArray, Stream
from tests.hip_double.execute import Executor

pytestmark = [pytest.mark.hip, pytest.mark.llvm, pytest.mark.usefixtures("on_gpu")]


@flyc.kernel(known_block_size=(4, 1, 1))
def show(x: fx.Tensor, a: fx.Float32):
    i = fx.block_idx.x * 4 + fx.thread_idx.x
    if i != 1:
        fx.printf("{}: {}", i, x[i] * a)


LINES = ["0: 0.0", *[f"{i}: {i / 2}" for i in range(2, 8)]]


def test_an_artifact_prints_what_its_lanes_print() -> None:
    artifact = flyc.compile(show, "f32[8]", "f32", arch=Device.current().target_id.processor)
    out = io.StringIO()
    assert artifact.run(np.arange(8, dtype=np.float32), 0.5, grid=2, printf_to=out) == Device.current().name
    assert out.getvalue().splitlines() == LINES


def test_launches_and_host_functions_print(capsys: pytest.CaptureFixture[str]) -> None:
    @flyc.jit
    def host(x, a: fx.Float32, stream: fx.Stream = None):
        show(x, a).launch(grid=2, block=4, stream=stream)

    with DeviceArray.from_numpy(np.arange(8, dtype=np.float32)) as x, Stream() as stream:
        for launch in (
            lambda: show(x, 0.5).launch(grid=2),
            lambda: host(x, 0.5),
            lambda: host(x, 0.5),
            lambda: host(x, 0.5, stream),
        ):
            launch()
            assert capsys.readouterr().out.splitlines() == LINES


def test_a_loaded_kernel_prints_without_its_text(
    device: Executor | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = flyc.compile(show, "f32[8]", "f32", arch=Device.current().target_id.processor)
    flyllvm.save_artifacts(tmp_path, {"show": artifact}, llvm_ir=False)
    loaded = flyllvm.load_artifact(tmp_path, "show")
    assert loaded.llvm_ir == ""
    if device is not None:
        device.knows(artifact.code_object.image, artifact.llvm_ir)
        device.knows = lambda image, text: None
    try:
        with DeviceArray.from_numpy(np.arange(8, dtype=np.float32)) as x:
            loaded(x, 0.5, grid=2)
    finally:
        if device is not None:
            del device.knows
    assert capsys.readouterr().out.splitlines() == LINES


def test_an_overflow_is_reported(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_PRINTF_BYTES", "64")
    with DeviceArray.from_numpy(np.arange(8, dtype=np.float32)) as x:
        show(x, 0.5).launch(grid=2)
    assert capsys.readouterr().out.splitlines()[-1].startswith("printf: 5 records were dropped: 64 bytes were full")


def test_the_time_of_a_kernel_that_prints_is_not_measured() -> None:
    processor, x = Device.current().target_id.processor, np.zeros(8, np.float32)
    with pytest.raises(CodegenError, match=r"take fx\.printf out of it"):
        flyllvm.autotune(
            show, [{}], x, 0.5, grid=2, arch=processor, measure="time", specs=["f32[8]", "f32"], cache=False
        )
