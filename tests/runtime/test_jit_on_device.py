"""Host functions and kernels launched through HIP: on the double and, unchanged, on a real GPU."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler import place
from flyllvm.errors import LaunchError
from flyllvm.runtime import DeviceArray, Stream, synchronize

pytestmark = pytest.mark.hip


@flyc.kernel
def axpy(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, a: fx.Float32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        y[i] = y[i] + x[i] * a


@flyc.jit
def run(x, y, n: fx.Int32, a: fx.Float32, stream: fx.Stream = None):
    axpy(x, y, n, a).launch(grid=(n + 63) // 64, block=64, stream=stream)


@pytest.fixture(autouse=True)
def forgotten_worlds(on_gpu: None) -> Iterator[None]:
    """No launch of one test is replayed in the next."""
    yield
    run._worlds.clear()


def arrays(n: int = 100) -> tuple[Any, DeviceArray, DeviceArray]:
    x = np.arange(n, dtype=np.float32)
    return x, DeviceArray.from_numpy(x), DeviceArray.from_numpy(np.ones(n, np.float32))


def test_a_host_function_records_once_and_replays_on_the_device() -> None:
    before = run.recordings
    for _ in range(2):
        x, dx, dy = arrays()
        with dx, dy:
            run(dx, dy, 100, 0.5)
            run(dx, dy, 100, 0.5)
            synchronize()
            assert np.array_equal(dy.numpy(), 1 + x)
    assert run.recordings == before + 1


def test_launches_go_into_the_stream_of_the_call() -> None:
    x, dx, dy = arrays()
    before = run.recordings
    with dx, dy, Stream() as first, Stream() as second:
        for stream in (first, second, fx.Stream(first), first.live(), None):
            run(dx, dy, 100, 1.0, stream=stream)
        synchronize()
        assert np.array_equal(dy.numpy(), 1 + 5 * x)
    assert run.recordings == before + 1, "a stream is no part of the signature"


def test_a_compiled_handle_and_a_kernel_are_launched_on_the_device() -> None:
    target = place.current_place().target
    x, dx, dy = arrays()
    with dx, dy:
        spec = "f32[?]:(1){align=16}"
        handle = flyc.compile(run, spec, spec, fx.Int32, fx.Float32, arch=target)
        handle(dx, dy, 100, 1.0)
        handle(dx, dy, 100, 1.0)
        art = flyc.compile(axpy, spec, spec, fx.Int32, fx.Float32, arch=target, known_block_size=64)
        art(dx, dy, 100, 2.0, grid=2)
        art(dx, dy, 100, 2.0, grid=2)
        axpy(dx, dy, 100, 0.25).launch(grid=2, block=64)
        synchronize()
        assert np.array_equal(dy.numpy(), 1 + 6.25 * x)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.int64])
def test_scalars_and_dynamic_leaves_are_packed(dtype: Any) -> None:
    @flyc.kernel
    def fill(out: fx.Tensor, a: fx.Int8, b: fx.Float64, c: fx.Uint16, d: fx.BFloat16, e: fx.Int64):
        m, n = out.shape
        i = fx.thread_idx.x
        if i < m * n:
            total = fx.Int32(fx.Float32(b) + fx.Float32(d)) + a + c + fx.Int32(e)
            out[i // n, i % n] = total.to(out.dtype)

    with DeviceArray.zeros((3, 5), dtype) as out:
        tensor = flyc.from_dlpack(out).mark_layout_dynamic()
        fill(tensor, -3, 0.5, 7, 1.5, 90).launch(block=64)
        synchronize()
        assert np.all(out.numpy().astype(np.float32) == 96)


def test_host_arrays_are_refused_on_the_device() -> None:
    x, dx, dy = arrays()
    with (
        dx,
        dy,
        pytest.raises(LaunchError, match=r"argument x: ndarray is in host memory.*\n.*DeviceArray.from_numpy") as e,
    ):
        run(x, dy, 100, 1.0)
    assert "test_jit_on_device.py" in str(e.value)


def test_a_freed_array_is_refused() -> None:
    _, dx, dy = arrays()
    with dx:
        dy.free()
        with pytest.raises(LaunchError, match="was freed"):
            run(dx, dy, 100, 1.0)


def test_an_array_of_the_recording_is_kept_and_checked() -> None:
    x, dx, dy = arrays()
    table = DeviceArray.from_numpy(x)

    @flyc.jit
    def with_table(y):
        axpy(table, y, 100, 1.0).launch(grid=2, block=64)

    with dx, dy:
        with_table(dy)
        with_table(dy)
        assert np.array_equal(dy.numpy(), 1 + 2 * x)
        table.free()
        with pytest.raises(LaunchError, match="was freed"):
            with_table(dy)


class Interface:
    """An array that only speaks the array interface of GPU libraries."""

    def __init__(self, array: DeviceArray) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__


class TorchLike:
    """As much of a torch tensor on the GPU as a launch looks at."""

    is_cuda = True
    dtype = "torch.float32"

    def __init__(self, array: DeviceArray) -> None:
        self.array, self.shape = array, array.shape
        self.device = type("device", (), {"type": "cuda", "index": array.device_index})()

    def data_ptr(self) -> int:
        return self.array.data_ptr()

    def stride(self) -> tuple[int, ...]:
        return (1,)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda a: a, id="DeviceArray"),
        pytest.param(lambda a: flyc.from_dlpack(a), id="from_dlpack"),
        pytest.param(lambda a: flyc.from_dlpack(a.__dlpack__()), id="capsule"),
        pytest.param(lambda a: flyc.from_c_void_p(a.address, fx.Float32, fx.make_layout(100, 1)), id="from_c_void_p"),
        pytest.param(TorchLike, id="torch"),
        pytest.param(lambda a: flyc.from_dlpack(TorchLike(a)).mark_layout_dynamic(), id="torch, marked"),
    ],
)
def test_sources_of_device_tensors(make: Any) -> None:
    x, dx, dy = arrays()
    with dx, dy:
        for _ in range(2):
            run(make(dx), make(dy), 100, 0.5)
        synchronize()
        assert np.array_equal(dy.numpy(), 1 + x)
        gc.collect()


def test_an_array_interface_and_a_pointer_of_the_device() -> None:
    @flyc.kernel
    def copy(source: fx.Pointer, out: fx.Tensor):
        out[fx.thread_idx.x] = source[fx.thread_idx.x]

    x, dx, dy = arrays(64)
    with dx, dy:
        copy(flyc.from_c_void_p(dx.address, fx.Float32), Interface(dy)).launch(block=64)
        copy(dx, dy).launch(block=64)
        synchronize()
        assert np.array_equal(dy.numpy(), x)
