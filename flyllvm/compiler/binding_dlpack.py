"""Reads arrays of other libraries through DLPack.

Source: dlpack.h 1.0 (DLManagedTensor, device and type codes) and the Python array API, ``__dlpack__``.
"""

from __future__ import annotations

import ctypes

from ..errors import LaunchError
from ..runtime.dlpack import NAME, ManagedTensor, is_valid
from .binding_tensor import TensorArg
from .binding_types import DEVICE, HOST, element_type, row_major

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..runtime.dlpack import Tensor

_HOST_DEVICES = (1, 3, 11)  # CPU, and pinned host memory of CUDA and ROCm
_GPU_DEVICES = (2, 10, 13)  # torch on ROCm calls its devices CUDA
#: (type code, bits) -> element type by its NumPy name.
_NAMES = {
    (4, 16): "bfloat16",
    (8, 8): "float8_e4m3fn", (10, 8): "float8_e4m3fn", (11, 8): "float8_e4m3fnuz",
    (12, 8): "float8_e5m2", (13, 8): "float8_e5m2fnuz", (14, 8): "float8_e8m0fnu",
    **{(0, n): f"int{n}" for n in (8, 16, 32, 64)},
    **{(1, n): f"uint{n}" for n in (8, 16, 32, 64)},
    **{(2, n): f"float{n}" for n in (16, 32, 64)},
}  # fmt: skip
del _NAMES[(8, 8)]  # e4m3 with infinities is a type of its own, which no GPU has


_api = ctypes.pythonapi
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.restype = ctypes.c_int
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_USED = b"used_dltensor"
_Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class _Held:
    """A tensor of another library, given back when nobody needs it."""

    __slots__ = ("_managed", "producer")

    def __init__(self, address: int, producer: Any) -> None:
        self._managed = ManagedTensor.from_address(address)
        self.producer = producer

    @property
    def tensor(self) -> Tensor:
        return self._managed.tensor  # type: ignore[no-any-return]

    def __del__(self) -> None:
        managed = getattr(self, "_managed", None)
        if managed is not None and managed.deleter:
            _Deleter(managed.deleter)(ctypes.addressof(managed))


def from_capsule(capsule: Any, producer: Any) -> TensorArg:
    """A tensor argument over a DLPack capsule, which is used up.

    Raises:
        LaunchError: A used capsule, or a device or element type that kernels cannot reach.
    """
    if not is_valid(capsule, NAME):
        raise LaunchError(
            f"{capsule!r} of {type(producer).__name__} is no fresh DLPack capsule", fix="export the array again"
        )
    address = _api.PyCapsule_GetPointer(capsule, NAME)
    # From here on the capsule's own destructor leaves the tensor alone, and we give it back.
    _api.PyCapsule_SetName(capsule, _USED)
    held = _Held(address, producer)
    t = held.tensor
    if t.device_type not in _HOST_DEVICES + _GPU_DEVICES:
        raise LaunchError(
            f"{type(producer).__name__}: its memory is on DLPack device type {t.device_type}",
            fix="move it to host memory or to the GPU",
        )
    name = _NAMES.get((t.code, t.bits)) if t.lanes == 1 else None
    dtype = element_type(name or f"DLPack type {t.code} of {t.bits} bits x {t.lanes}", type(producer).__name__)
    shape = tuple(t.shape[i] for i in range(t.ndim))
    if t.strides:
        stride = tuple(t.strides[i] for i in range(t.ndim))
    else:
        stride = row_major(shape)
    where = HOST if t.device_type in _HOST_DEVICES else DEVICE
    return TensorArg(dtype, shape, stride, address=(t.data or 0) + t.byte_offset, where=where, owner=held)
