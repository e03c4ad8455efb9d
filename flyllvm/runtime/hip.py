"""The one door to HIP: hip-python, imported and initialised at the first call, every call checked.

Importing this module opens nothing.  A HIP function that fails raises `HipError` with HIP's name for the error and its
likely cause; a library that is missing is one sentence that names what was looked for and where.
"""

from __future__ import annotations

import threading

from ..errors import LaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LIBRARY = "libamdhip64.so"
# hipRuntimeGetVersion counts major * 10**7 + minor * 10**5 + patch; the properties call we need came with 6.0.
_OLDEST = 60_000_000

_CAUSES = {
    "hipErrorInvalidValue": "an argument of the call is wrong: a freed or host pointer, a size past the allocation",
    "hipErrorOutOfMemory": "the device has no memory left: free arrays, or use smaller ones",
    "hipErrorNotInitialized": "the HIP runtime was not initialised in this process",
    "hipErrorInvalidConfiguration": "the grid or block is outside the limits of the device",
    "hipErrorInvalidDevicePointer": "the address is not in device memory",
    "hipErrorNoDevice": "no AMD GPU is visible: check the driver, /dev/kfd and ROCR_VISIBLE_DEVICES",
    "hipErrorInvalidDevice": "no such device, or a HIP library that does not fit the driver",
    "hipErrorInvalidImage": "the runtime cannot read the code object: ROCm before 6.3 refuses code object version 6",
    "hipErrorNoBinaryForGpu": "the code object is for another processor, or for other xnack or sramecc modes",
    "hipErrorInvalidHandle": "the module, stream or event was destroyed already",
    "hipErrorNotFound": "the module has no kernel of that name",
    "hipErrorIllegalAddress": "a kernel read or wrote outside its arrays; the simulator names the line that does it",
    "hipErrorLaunchOutOfResources": "registers or LDS do not suffice for this block: use a smaller one",
    "hipErrorLaunchFailure": "the kernel died on the device, or its block is larger than it was compiled for",
    "hipErrorNotSupported": "this HIP runtime or device lacks the function",
}


class HipError(LaunchError):
    """A HIP call failed.

    Attributes:
        name: HIP's name for the error, e.g. ``hipErrorOutOfMemory``.
    """

    def __init__(self, what: str, where: object | None = None, fix: str | None = None, name: str = "") -> None:
        super().__init__(what, where, fix)
        self.name = name

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return (type(self), (self.what, None if self.where is None else str(self.where), self.fix, self.name))


class Hip:
    """The opened HIP library.

    Attributes:
        binding: The module of hip-python.
        version: Version of the HIP runtime, as ``hipRuntimeGetVersion`` counts.
    """

    __slots__ = ("binding", "version")

    def __init__(self, binding: Any) -> None:
        self.binding = binding
        self.version = 0

    def call(self, name: str, *args: object) -> tuple[Any, ...]:
        """Calls a HIP function and returns its results without the status.

        Raises:
            HipError: The function is missing, or returns an error.
        """
        status, *results = self._invoke(name, args)
        if status:
            raise _failed(name, status)
        return tuple(results)

    def one(self, name: str, *args: object) -> Any:
        """Calls a HIP function that has one result."""
        return self.call(name, *args)[0]

    def properties(self, index: int) -> Any:
        """The properties of a device.

        Raises:
            HipError: No such device.
        """
        try:
            return self.one("hipGetDeviceProperties", index)
        except TypeError:
            # hip-python 6 and 7 fill a structure of the caller.
            properties = self.binding.hipDeviceProp_t()
            self.call("hipGetDeviceProperties", properties, index)
            return properties

    def _invoke(self, name: str, args: tuple[object, ...]) -> tuple[Any, ...]:
        function = getattr(self.binding, name, None)
        if function is None:
            raise HipError(f"hip-python has no {name}", fix="install hip-python 6.2 or later")
        try:
            result: tuple[Any, ...] = function(*args)
            return result
        except RuntimeError as error:
            if "dlopen" in str(error):
                raise _not_found(self.binding.__name__.startswith("rocm")) from None
            raise HipError(
                f"the HIP library lacks {name}: {error}",
                fix="install ROCm 6.0 or later, of the major version of hip-python",
            ) from None
        except ValueError as error:
            # An error code that this hip-python does not know, or memory that is not contiguous.
            raise HipError(f"{name}: {error}", fix="install a hip-python of the same major version as ROCm") from None


_lock = threading.Lock()
_opened: Hip | None = None


def hip() -> Hip:
    """The HIP library, opened and initialised by the first call.

    Raises:
        HipError: hip-python or the library is missing, the runtime is too old, or there is no device.
    """
    global _opened
    if _opened is None:
        with _lock:
            if _opened is None:
                _opened = _open()
    return _opened


def unavailable() -> str | None:
    """Why HIP cannot be used here, in words; ``None`` where it can."""
    try:
        hip()
    except HipError as error:
        return error.what
    return None


def _open() -> Hip:
    found = Hip(_import())
    version = found.one("hipRuntimeGetVersion")
    if version < _OLDEST:
        raise HipError(
            f"the HIP runtime is version {version // 10**7}.{version // 10**5 % 100}; flyllvm needs 6.0",
            fix="install ROCm 6.0 or later",
        )
    found.version = version
    found.call("hipInit", 0)
    if not found.one("hipGetDeviceCount"):
        raise HipError("HIP sees no device", fix=_CAUSES["hipErrorNoDevice"], name="hipErrorNoDevice")
    return found


def _import() -> Any:
    try:
        from rocm.bindings import hip as binding
    except ImportError:
        try:
            from hip import hip as binding
        except ImportError:
            raise HipError(
                "hip-python is not installed", fix="pip install hip-python (Linux on x86-64), or run in the simulator"
            ) from None
    return binding


def _failed(call: str, status: Any) -> HipError:
    name = getattr(status, "name", str(status))
    return HipError(
        f"{call} failed: {name}", fix=_CAUSES.get(name, "see the documentation of this HIP error"), name=name
    )


def _not_found(looks_into_rocm: bool) -> HipError:
    """What was looked for and where, and what lies there instead.

    Args:
        looks_into_rocm: Whether this hip-python looks into ROCm's folders, as version 10 does; 6 and 7 leave the search
            to the dynamic loader.
    """
    import os
    from glob import glob

    roots = {f"${name}": os.environ.get(name) for name in ("ROCM_PATH", "ROCM_HOME")} | {"the default": "/opt/rocm"}
    libraries = [path for root in roots.values() if root for path in sorted(glob(f"{root}/lib/{_LIBRARY}*"))]
    if looks_into_rocm:
        places = [f"{label} ({root}/lib)" if root else f"{label} (not set)" for label, root in roots.items()]
        what = f"{_LIBRARY} was not found in {', '.join(places)}, nor by the dynamic loader"
        fix = f"install ROCm 6.0 or later, or point ROCM_PATH at a directory with lib/{_LIBRARY}"
        if libraries:
            fix = f"only {libraries[0]} is there: make a link named {_LIBRARY} to it"
    else:
        what = f"{_LIBRARY} was not found by the dynamic loader, where this version of hip-python looks"
        fix = "install ROCm 6.0 or later, and name its lib folder in LD_LIBRARY_PATH"
        if libraries:
            fix = f"set LD_LIBRARY_PATH={os.path.dirname(libraries[0])} before Python starts"
    return HipError(what, fix=fix)
