"""Device arrays: ownership, copies, protocols."""

from __future__ import annotations

import gc

import ml_dtypes
import numpy as np
import pytest

from flyllvm.errors import LaunchError
from flyllvm.runtime import DeviceArray, HipError, Stream
from tests.hip_double.build import Double


def test_memory_is_given_back_by_with_by_free_and_by_the_collector(double: Double) -> None:
    with DeviceArray(10):
        assert double.live[0] == 1
    array = DeviceArray(10)
    array.free()
    array.free()
    assert double.live[0] == 0
    array = DeviceArray(10)
    del array
    gc.collect()
    assert double.live[0] == 0


def test_an_empty_array_takes_no_memory(double: Double) -> None:
    with DeviceArray((0, 4), np.int32) as array:
        assert (array.address, array.size, array.nbytes, double.live[0]) == (0, 0, 0, 0)
        array.fill_bytes(1)
        assert array.numpy().shape == (0, 4)


def test_fresh_memory_is_not_zero_so_that_nobody_relies_on_it(double: Double) -> None:
    with DeviceArray(4, np.uint8) as array:
        assert array.numpy().tolist() == [0xCD] * 4


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e4m3fnuz])
def test_narrow_floats_have_a_pointer_and_no_array_interface(double: Double, dtype: type) -> None:
    host = np.array([1.5, -2, 0.25], dtype)
    with DeviceArray.from_numpy(host) as array:
        assert array.data_ptr() == array.address != 0
        assert not hasattr(array, "__cuda_array_interface__")
        assert array.numpy().tobytes() == host.tobytes()


def test_the_array_interface_describes_the_memory(double: Double) -> None:
    with DeviceArray((2, 3), np.int16) as array:
        assert array.__cuda_array_interface__ == {
            "shape": (2, 3), "typestr": "<i2", "data": (array.address, False), "version": 3,
        }  # fmt: skip


def test_arrays_copy_to_each_other_and_from_strided_memory(double: Double) -> None:
    host = np.arange(24, dtype=np.float32).reshape(4, 6)
    with DeviceArray.from_numpy(host[:, ::2]) as a, DeviceArray((4, 3)) as b:
        b.copy_from(a)
        assert np.array_equal(b.numpy(), host[:, ::2])


@pytest.mark.parametrize(
    ("source", "match"),
    [
        (np.zeros(3, np.float32), r"(?s)copy of float32 \(3,\) into float32 \(4,\).*same shape and type"),
        (np.zeros(4, np.float64), r"copy of float64 \(4,\) into float32"),
        (np.zeros((2, 2), np.float32), r"\(2, 2\) into"),
    ],
)
def test_copies_of_another_shape_or_type_are_refused(double: Double, source: np.ndarray, match: str) -> None:  # type: ignore[type-arg]
    with DeviceArray(4) as array, pytest.raises(LaunchError, match=match):
        array.copy_from(source)


@pytest.mark.parametrize("shape", [(-1,), (2, 1.5), (True,)])
def test_bad_shapes_are_refused(double: Double, shape: tuple[object, ...]) -> None:
    with pytest.raises(LaunchError, match=r"(?s)shape .*extents of 0 or more"):
        DeviceArray(shape)  # type: ignore[arg-type]


def test_a_fill_byte_has_eight_bits(double: Double) -> None:
    with DeviceArray(4, np.uint8) as array:
        array.fill_bytes(7)
        assert array.numpy().tolist() == [7] * 4
        with pytest.raises(LaunchError, match=r"(?s)fill byte 256.*0 to 255"):
            array.fill_bytes(256)


def test_freed_memory_is_refused(double: Double) -> None:
    array = DeviceArray(4)
    array.free()
    for use in (array.data_ptr, array.numpy, lambda: array.fill_bytes(0), lambda: array.copy_from(np.zeros(4))):
        with pytest.raises(LaunchError, match=r"(?s)device array \(4,\) was freed.*before free"):
            use()
    assert "freed" in repr(array)


def test_too_much_memory_is_a_clear_error_and_frees_nothing_twice(double: Double) -> None:
    with pytest.raises(HipError, match=r"(?s)hipMalloc failed: hipErrorOutOfMemory.*no memory left"):
        DeviceArray(1 << 40, np.uint8)
    gc.collect()
    assert double.live == (0, 0, 0)


def test_streams_are_closed_once_and_refused_after(double: Double) -> None:
    stream = Stream()
    stream.close()
    stream.close()
    with pytest.raises(LaunchError, match=r"(?s)the stream was closed.*before close"):
        stream.synchronize()
    stream = Stream()
    del stream
    gc.collect()
    assert double.live[2] == 0
