"""Autotune with times of a device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
import flyllvm.layout as L
from flyllvm.errors import LaunchError
from flyllvm.runtime import Device, DeviceArray
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


@flyc.kernel
def axpy(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, a: fx.Float32, unroll: fx.Constexpr[int]) -> None:
    for k in fx.range_constexpr(unroll):
        i = (fx.block_idx.x * unroll + k) * 64 + fx.thread_idx.x
        if i < n:
            y[i] = y[i] + x[i] * a


class ByInterface:
    """A device tensor of a library that speaks the array interface of CUDA."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class ByDlpack:
    """A device tensor of a library that speaks DLPack."""

    def __init__(self, array: DeviceArray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> Any:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("kind", [lambda a: a, ByInterface, ByDlpack], ids=["device array", "interface", "dlpack"])
@pytest.mark.parametrize("host_x", [False, True], ids=["device", "mixed"])
def test_memory_of_the_device_is_measured_where_it_is_and_put_back(on_gpu: None, kind: Any, host_x: bool) -> None:
    n = 100
    x = np.arange(n, dtype=np.float32)
    with DeviceArray.from_numpy(x) as dx, DeviceArray.from_numpy(np.ones(n, np.float32)) as dy:
        tuned = flyllvm.autotune(
            axpy, [{"unroll": 1}, {"unroll": 2}], x if host_x else kind(dx), kind(dy), n, 0.5,
            grid=lambda config: 2 // config["unroll"], block=64, measure="time", cache=False, repeats=2,
        )  # fmt: skip
        assert tuned.sweep is not None and [t.error for t in tuned.sweep.trials] == [None, None]
        # Six runs and the last one: only that one is left in the result, and the input is what it was.
        assert np.array_equal(dy.numpy(), 1 + x / 2) and np.array_equal(dx.numpy(), x)
        flyllvm.autotune(
            axpy, [{"unroll": 1}], kind(dx), kind(dy), n, 0.5, grid=2, block=64, cache=False, repeats=1, run_best=False
        )
        assert np.array_equal(dy.numpy(), 1 + x / 2)


def test_host_tensors_of_other_libraries_go_to_the_device_and_come_back(on_gpu: None) -> None:
    class HostDlpack:
        def __init__(self, array: Any) -> None:
            self.array = array

        def __dlpack__(self, **options: Any) -> Any:
            return self.array.__dlpack__()

        def __dlpack_device__(self) -> Any:
            return self.array.__dlpack_device__()

    x, y = np.arange(100, dtype=np.float32), np.ones((100, 2), np.float32)[:, 0]
    flyllvm.autotune(
        axpy, [{"unroll": 2}], HostDlpack(x), y, 100, 0.5, grid=1, block=64, measure="time", cache=False, repeats=1
    )
    assert np.array_equal(y, 1 + x / 2)


def test_memory_of_a_gpu_is_none_for_the_simulator(on_gpu: None) -> None:
    with DeviceArray.zeros(100) as dx, pytest.raises(LaunchError, match="argument 1 of autotune is in the memory of"):
        flyllvm.autotune(axpy, [{"unroll": 1}], dx, dx, 1, 1.0, grid=1, block=64, arch="gfx942", measure="simulator")


@pytest.mark.parametrize("layout", [None, "4:1"])
def test_an_address_alone_has_no_contents_to_put_back(on_gpu: None, layout: str | None) -> None:
    address = flyc.from_c_void_p(0x1000, fx.Float32, L.parse(layout) if layout else None)
    with pytest.raises(LaunchError, match=r"size or place in memory is not known\n.*pass an array or tensor"):
        flyllvm.autotune(
            axpy, [{"unroll": 1}], address, np.ones(4, np.float32), 4, 1.0, grid=1, block=64,
            specs=["f32[4]", "f32[4]", "i32", "f32"],
        )  # fmt: skip
