"""Shares device arrays with other libraries through DLPack, without a copy.

Source: dlpack.h (DLManagedTensor, device type ROCm = 10) and the Python array API, ``__dlpack__``.
"""

from __future__ import annotations

import ctypes
import sys
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .array import DeviceArray

ROCM = 10
# Kind of a NumPy type -> type code of DLPack.
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
_BFLOAT = 4
NAME = b"dltensor"


class Tensor(ctypes.Structure):
    """DLTensor: memory, device, element type, shape and strides (in elements)."""

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

    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p)]


_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
is_valid = _api.PyCapsule_IsValid
is_valid.restype, is_valid.argtypes = ctypes.c_int, [ctypes.py_object, ctypes.c_char_p]

# Address of a tensor that somebody holds -> what must stay alive meanwhile.
_shared: dict[int, tuple[ManagedTensor, Any, DeviceArray]] = {}
# Capsules that may still be taken, with the address of their tensor.
_offered: list[tuple[Any, int]] = []
_sweeping = threading.Lock()
# References to a capsule that nobody else has, as `sweep` counts: its pair, its name there, the argument of the count.
_OWN_REFERENCES = 3


def _delete(address: int) -> None:
    """The consumer is done with a tensor."""
    held = _shared.pop(address, None)
    if held is not None:
        held[2].shares -= 1


# Kept for the whole process: consumers may hold tensors until its end.
_delete_c = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(_delete)


def sweep() -> None:
    """Takes back capsules that were offered and that nobody took.

    A capsule could do this in a destructor.  But one that goes because its consumer raised an error would run Python
    with that error pending, and lose it.
    """
    if not _sweeping.acquire(blocking=False):
        return  # another thread does it
    try:
        for entry in _offered[:]:
            capsule, address = entry
            # A consumer renames a capsule; from then on it is the consumer's.
            taken = not is_valid(capsule, NAME)
            if taken or sys.getrefcount(capsule) <= _OWN_REFERENCES:
                _offered.remove(entry)
                if not taken:
                    _delete(address)
    finally:
        _sweeping.release()


def export(array: DeviceArray) -> Any:
    """A DLPack capsule over the array's memory; the array lives until the consumer is done.

    Raises:
        BufferError: The element type has no code in this version of DLPack.
    """
    sweep()
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
    capsule = _new(address, NAME, None)
    _offered.append((capsule, address))
    return capsule


def _strides(shape: tuple[int, ...]) -> list[int]:
    """Strides of a contiguous array, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return strides[::-1]
