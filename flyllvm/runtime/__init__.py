"""Kernels on a GPU through HIP: devices, arrays, streams, modules, launches.

Nothing of HIP is touched before the first use, and NumPy is loaded with the first array.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .args import ArgumentPacker as ArgumentPacker
    from .array import DeviceArray as DeviceArray
    from .device import Device as Device, check_launch as check_launch, devices as devices
    from .hip import HipError as HipError, unavailable as unavailable
    from .module import Function as Function, LoadedModule as LoadedModule, load_module as load_module
    from .stream import Event as Event, Stream as Stream, synchronize as synchronize

# Public name -> module that defines it; the imports above say the same to type checkers.
_HOMES = {
    "ArgumentPacker": "args",
    "Device": "device",
    "DeviceArray": "array",
    "Event": "stream",
    "Function": "module",
    "HipError": "hip",
    "LoadedModule": "module",
    "Stream": "stream",
    "check_launch": "device",
    "devices": "device",
    "load_module": "module",
    "synchronize": "stream",
    "unavailable": "hip",
}


def __getattr__(name: str) -> object:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'flyllvm.runtime' has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"flyllvm.runtime.{home}"), name)
    globals()[name] = value
    return value
