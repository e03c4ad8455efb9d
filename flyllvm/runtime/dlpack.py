"""Shares device arrays with other libraries through DLPack, without a copy.

Source: dlpack.h (DLManagedTensor, device type ROCm = 10) and the Python array API, ``__dlpack__``.
"""

from __future__ import annotations

import ctypes

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .array import DeviceArray

ROCM = 10
# Kind of a NumPy type -> type code of DLPack.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4


class _Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class ManagedTensor(ctypes.Structure):
    """DLManagedTensor: a tensor and the function that its consumer calls when done."""

    _fields_ = [("tensor", _Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p]
_name = ctypes.create_string_buffer(b"dltensor")
_NAME = ctypes.addressof(_name)

# Address of a tensor that somebody holds -> what must stay alive meanwhile.
_shared: dict[int, tuple[ManagedTensor, Any, DeviceArray]] = {}
# Address of a capsule that still exists -> its pointer and its name, read in place.
_capsules: dict[int, Any] = {}
_HEADER_BYTES = object.__basicsize__


def _delete(address: int) -> None:
    """The consumer is done with a tensor."""
    held = _shared.pop(address, None)
    if held is not None:
        held[2].shares -= 1


def _destroy(capsule: int) -> None:
    """A capsule goes.  A consumer has renamed it; one that still has its name was never consumed.

    The consumer may have an exception pending (it refuses the device, say).  A call through ctypes would lose it, so the
    capsule's fields are read through a view made earlier.
    """
    fields = _capsules.pop(capsule, None)
    if fields is not None and fields[1] == _NAME:
        _delete(fields[0])


# Kept for the whole process: consumers may hold tensors until its end.
_delete_c = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)
_destroy_c = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(_destroy)


def export(array: DeviceArray) -> Any:
    """A DLPack capsule over the array's memory; the array lives until the consumer is done.

    Raises:
        BufferError: The element type has no code in this version of DLPack.
    """
    code = _BFLOAT if array.dtype.name == "bfloat16" else _CODES.get(array.dtype.kind)
    if code is None:
        raise BufferError(f"{array.dtype} has no DLPack code; pass data_ptr() instead")
    managed = ManagedTensor()
    rank = len(array.shape)
    numbers = (ctypes.c_int64 * max(2 * rank, 1))(*array.shape, *_strides(array.shape))
    tensor = managed.tensor
    tensor.data, tensor.device_type, tensor.device_id = array.data_ptr() or None, ROCM, array.device_index
    tensor.ndim, tensor.code, tensor.bits, tensor.lanes = rank, code, 8 * array.dtype.itemsize, 1
    base = ctypes.addressof(numbers)
    tensor.shape = ctypes.cast(base, ctypes.POINTER(ctypes.c_int64))
    tensor.strides = ctypes.cast(base + 8 * rank, ctypes.POINTER(ctypes.c_int64))
    managed.deleter = ctypes.cast(_delete_c, ctypes.c_void_p)
    address = ctypes.addressof(managed)
    _shared[address] = (managed, numbers, array)
    array.shares += 1
    capsule = _new(address, _NAME, ctypes.cast(_destroy_c, ctypes.c_void_p))
    # PyCapsule begins with pointer and name after the object header, in every CPython.
    _capsules[id(capsule)] = (ctypes.c_void_p * 2).from_address(id(capsule) + _HEADER_BYTES)
    return capsule


def _strides(shape: tuple[int, ...]) -> list[int]:
    """Strides of a contiguous array, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]
