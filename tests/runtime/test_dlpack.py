"""DLPack: the consumer's side, played by the test."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flyllvm.errors import LaunchError
from flyllvm.runtime import DeviceArray
from flyllvm.runtime.dlpack import ManagedTensor
from tests.hip_double.build import Double

_get = ctypes.pythonapi.PyCapsule_GetPointer
_get.restype, _get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
_rename = ctypes.pythonapi.PyCapsule_SetName
_rename.restype, _rename.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]
_USED = b"used_dltensor"


class Consumer:
    """Takes a capsule as a tensor library does."""

    def __init__(self, array: DeviceArray, **options: Any) -> None:
        capsule = array.__dlpack__(**options)
        address = _get(capsule, b"dltensor")
        _rename(capsule, _USED)
        self.managed = ManagedTensor.from_address(address)
        self.address = address

    def release(self) -> None:
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.managed.deleter)(self.address)


@pytest.mark.parametrize(
    ("dtype", "code", "bits"),
    [
        (np.int8, 0, 8), (np.int64, 0, 64), (np.uint16, 1, 16), (np.float16, 2, 16), (np.float64, 2, 64),
        (ml_dtypes.bfloat16, 4, 16), (np.complex64, 5, 64), (np.bool_, 6, 8),
    ],
)  # fmt: skip
def test_the_tensor_describes_the_memory(double: Double, dtype: type, code: int, bits: int) -> None:
    with DeviceArray((2, 3, 4), dtype) as array:
        consumer = Consumer(array)
        t = consumer.managed.tensor
        assert (t.data, t.device_type, t.device_id, t.byte_offset) == (array.address, 10, 0, 0)
        assert array.__dlpack_device__() == (10, 0)
        assert (t.ndim, t.shape[:3], t.strides[:3]) == (3, [2, 3, 4], [12, 4, 1])
        assert (t.code, t.bits, t.lanes) == (code, bits, 1)
        consumer.release()


def test_scalars_and_empty_arrays_can_be_shared(double: Double) -> None:
    with DeviceArray(()) as scalar, DeviceArray((0, 3)) as empty:
        for array, rank in ((scalar, 0), (empty, 2)):
            consumer = Consumer(array)
            assert consumer.managed.tensor.ndim == rank
            consumer.release()


def test_the_memory_lives_until_the_consumer_is_done(double: Double) -> None:
    array: DeviceArray | None = DeviceArray(4)
    consumer = Consumer(array)
    array = None
    gc.collect()
    assert double.live[0] == 1
    consumer.release()
    gc.collect()
    assert double.live[0] == 0


def test_shared_memory_is_not_freed_by_hand(double: Double) -> None:
    array = DeviceArray(4)
    first, second = Consumer(array), Consumer(array)
    with pytest.raises(LaunchError, match=r"(?s)shared with 2 other.*delete their tensors first"):
        array.free()
    first.release()
    second.release()
    array.free()


def test_a_capsule_that_nobody_took_holds_nothing(double: Double) -> None:
    array = DeviceArray(4)
    capsule = array.__dlpack__(stream=-1)
    with pytest.raises(LaunchError, match=r"shared with 1 other"):
        array.free()
    del capsule
    array.free()


def test_an_array_that_nobody_took_is_freed_with_the_next_allocation(double: Double) -> None:
    DeviceArray(4).__dlpack__()
    with DeviceArray(8):
        gc.collect()
        assert double.live[0] == 1


def test_what_cannot_be_shared_is_refused(double: Double) -> None:
    with (
        DeviceArray(4, ml_dtypes.float8_e4m3fn) as array,
        pytest.raises(BufferError, match=r"(?s)float8_e4m3fn.*data_ptr"),
    ):
        array.__dlpack__()
    with DeviceArray(4) as array:
        for options in ({"copy": True}, {"dl_device": (1, 0)}):
            with pytest.raises(BufferError, match=r"shared in place"):
                array.__dlpack__(**options)
    with pytest.raises(LaunchError, match=r"was freed"):
        array.__dlpack__()


def test_numpy_is_told_that_it_cannot_reach_device_memory(double: Double) -> None:
    with DeviceArray(4) as array:
        for _ in range(3):
            with pytest.raises((BufferError, RuntimeError), match=r"(?i)unsupported device"):
                np.from_dlpack(array)
