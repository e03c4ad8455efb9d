"""Arrays in device memory, owned by Python."""

from __future__ import annotations

import sys

import numpy as np

from ..errors import LaunchError
from .hip import HipError, hip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .stream import Stream

_TO_DEVICE, _TO_HOST, _ON_DEVICE = "hipMemcpyHostToDevice", "hipMemcpyDeviceToHost", "hipMemcpyDeviceToDevice"


class DeviceArray:
    """A contiguous array in the memory of the current device.

    The memory is freed by `free`, at the end of a ``with`` block, or when the object goes.

    Attributes:
        shape: Extents, outermost first.
        dtype: NumPy type of an element.
        address: Device address; 0 for an empty array and after `free`.
        device_index: Device that holds the memory.
        shares: Number of other libraries that use the memory now.
    """

    __slots__ = ("__weakref__", "_open", "address", "device_index", "dtype", "shape", "shares")

    def __init__(self, shape: int | tuple[int, ...], dtype: Any = np.float32) -> None:
        """Allocates memory; its contents are undefined.

        Raises:
            LaunchError: A negative extent.
            HipError: No memory, or HIP is not available.
        """
        self.address = self.device_index = self.shares = 0
        self._open = False
        self.shape = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype = np.dtype(dtype)
        if any(type(n) is not int or n < 0 for n in self.shape):
            raise LaunchError(f"shape {self.shape}", fix="give extents of 0 or more as int")
        _take_back()
        if self.nbytes:
            self.device_index = int(hip().one("hipGetDevice"))
            self.address = int(hip().one("hipMalloc", self.nbytes))
        self._open = True

    @property
    def size(self) -> int:
        """Number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return self.size * int(self.dtype.itemsize)

    @staticmethod
    def from_numpy(source: Any) -> DeviceArray:
        """Copies a NumPy array to the device."""
        source = np.asarray(source)
        made = DeviceArray(source.shape, source.dtype)
        made.copy_from(source)
        return made

    @staticmethod
    def zeros(shape: int | tuple[int, ...], dtype: Any = np.float32) -> DeviceArray:
        """An array of zeros."""
        made = DeviceArray(shape, dtype)
        made.fill_bytes(0)
        return made

    def copy_from(self, source: Any, stream: Stream | None = None) -> None:
        """Copies a NumPy array or device array of the same shape and type into this one.

        Raises:
            LaunchError: Another shape or type, or memory that was freed.
            HipError: The copy failed.
        """
        self._check_open()
        kind = _ON_DEVICE if isinstance(source, DeviceArray) else _TO_DEVICE
        if not isinstance(source, DeviceArray):
            source = np.ascontiguousarray(source).reshape(np.shape(source))
        if tuple(source.shape) != self.shape or source.dtype != self.dtype:
            raise LaunchError(
                f"copy of {source.dtype} {tuple(source.shape)} into {self.dtype} {self.shape}",
                fix="give an array of the same shape and type",
            )
        address = source.address if isinstance(source, DeviceArray) else source.ctypes.data
        self._copy(self.address, address, kind, stream)

    def numpy(self, stream: Stream | None = None) -> Any:
        """A copy in host memory; waits for the stream."""
        self._check_open()
        host = np.empty(self.shape, self.dtype)
        self._copy(host.ctypes.data, self.address, _TO_HOST, stream)
        if stream is not None:
            stream.synchronize()
        return host

    def fill_bytes(self, value: int) -> None:
        """Sets every byte.

        Raises:
            LaunchError: Not a byte, or memory that was freed.
        """
        self._check_open()
        if not 0 <= value <= 255:
            raise LaunchError(f"fill byte {value}", fix="use 0 to 255")
        if self.nbytes:
            hip().call("hipMemset", self.address, value, self.nbytes)

    def free(self) -> None:
        """Gives the memory back; may be called again.

        Raises:
            LaunchError: Another library still uses the memory.
        """
        if self.shares:
            _take_back()
        if self.shares:
            raise LaunchError(
                f"device array {self.shape} is shared with {self.shares} other user(s)",
                fix="delete their tensors first; the memory is freed with the last one",
            )
        address, self.address, self._open = self.address, 0, False
        if address:
            hip().call("hipFree", address)

    def data_ptr(self) -> int:
        """Device address.

        Raises:
            LaunchError: The memory was freed.
        """
        self._check_open()
        return self.address

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        # bfloat16 and the 8-bit floats have no name in this protocol.  hasattr() must be false then, so that consumers
        # ask for data_ptr().
        if self.dtype.kind == "V":
            raise AttributeError(f"{self.dtype} has no name in the array interface; use data_ptr()")
        return {"shape": self.shape, "typestr": self.dtype.str, "data": (self.data_ptr(), False), "version": 3}

    def __dlpack_device__(self) -> tuple[int, int]:
        """Device type of DLPack and number of the device."""
        from .dlpack import ROCM

        return ROCM, self.device_index

    def __dlpack__(self, *, stream: int | None = None, **options: object) -> Any:
        """A DLPack capsule; all work on the device is done first, unless ``stream`` is -1.

        Raises:
            BufferError: The element type has no DLPack code, or a copy or another device is wanted.
        """
        from .dlpack import export

        if options.get("copy") or options.get("dl_device") not in (None, self.__dlpack_device__()):
            raise BufferError("a device array is shared in place: use numpy() for a copy in host memory")
        self._check_open()
        if stream != -1:
            hip().call("hipDeviceSynchronize")
        return export(self)

    def __enter__(self) -> DeviceArray:
        return self

    def __exit__(self, *error: object) -> None:
        self.free()

    def __del__(self) -> None:
        if getattr(self, "address", 0):
            try:
                self.free()
            except (HipError, TypeError, AttributeError):
                # At interpreter exit the library may be gone already; the driver frees all.
                self.address = 0

    def __repr__(self) -> str:
        state = f"at {self.address:#x}" if self._open else "freed"
        return f"DeviceArray({self.shape}, {self.dtype}, {state})"

    def _check_open(self) -> None:
        if not self._open:
            raise LaunchError(
                f"device array {self.shape} was freed", fix="use it before free() or inside its with block"
            )

    def _copy(self, to: int, source: int, kind: str, stream: Stream | None) -> None:
        if not self.nbytes:
            return
        opened = hip()
        direction = getattr(opened.binding.hipMemcpyKind, kind)
        if stream is None:
            opened.call("hipMemcpy", to, source, self.nbytes, direction)
        else:
            opened.call("hipMemcpyAsync", to, source, self.nbytes, direction, stream.handle)


def _take_back() -> None:
    """Frees arrays that were offered through DLPack and not taken."""
    shared = sys.modules.get("flyllvm.runtime.dlpack")
    if shared is not None:
        shared.sweep()
