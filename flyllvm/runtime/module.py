"""Code objects on a device, and the launch of their kernels."""

from __future__ import annotations

import ctypes
import threading
from weakref import WeakValueDictionary

from ..codeobject import CodeObject, KernelInfo, mismatch
from ..errors import LaunchError
from .args import ArgumentPacker
from .device import Device, check_launch, devices
from .hip import HipError, hip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .stream import Stream

# HIP_LAUNCH_PARAM_BUFFER_POINTER, _BUFFER_SIZE and _END.
_POINTER, _SIZE, _END = 1, 2, 3
# Launch shapes that a function remembers as legal.
_MAX_CHECKED = 1024
# Modules that stay loaded though nobody holds them.
_MAX_RECENT = 64
# Code object version -> the HIP runtime that first read it, as (version number, text).
_NEEDS_RUNTIME = {6: (60_300_000, "6.3")}


class LoadedModule:
    """A code object in the memory of a device: the current one at the time it is loaded.

    Attributes:
        code_object: What was loaded.
        device: Where it is.
    """

    __slots__ = ("__weakref__", "_functions", "_handle", "_lock", "_several", "code_object", "device")

    def __init__(self, code_object: CodeObject) -> None:
        """Loads a code object.

        Raises:
            LaunchError: It is for another device, or for a newer ROCm.
            HipError: HIP refuses it.
        """
        self._handle = 0
        self._functions: dict[str, Function] = {}
        self._lock = threading.Lock()
        self.code_object = code_object
        self.device = Device.current()
        _check_target(code_object, self.device)
        _check_version(code_object)
        self._handle = int(hip().one("hipModuleLoadData", code_object.image))
        self._several = len(devices()) > 1

    def function(self, name: str) -> Function:
        """A kernel of the module, ready to launch.

        Raises:
            LaunchError: No such kernel, or the module was unloaded.
        """
        if not self._handle:
            raise LaunchError(
                f"{self.code_object!r} was unloaded", fix="use it before unload() or inside its with block"
            )
        found = self._functions.get(name)
        if found is None:
            kernel = self.code_object.kernels.get(name)
            if kernel is None:
                known = ", ".join(self.code_object.kernels) or "none"
                raise LaunchError(f"the code object has no kernel {name!r}", fix=f"its kernels are: {known}")
            with self._lock:
                handle = int(hip().one("hipModuleGetFunction", self._handle, name.encode()))
                found = self._functions.setdefault(name, Function(self, kernel, handle))
        return found

    def unload(self) -> None:
        """Takes it off the device, once all work there is done; may be called again."""
        handle, self._handle = self._handle, 0
        self._functions.clear()
        if handle:
            # A kernel of the module may still be running: launches do not wait.
            self.call("hipDeviceSynchronize")
            self.call("hipModuleUnload", handle)

    def call(self, name: str, *args: object) -> None:
        """Calls a HIP function with the module's device as the current one, and puts back the other after it."""
        if self._several:
            before = Device.current()
            if before is not self.device:
                self.device.use()
                try:
                    hip().call(name, *args)
                finally:
                    before.use()
                return
        hip().call(name, *args)

    @property
    def loaded(self) -> bool:
        """Whether its kernels can be launched."""
        return self._handle != 0

    def __enter__(self) -> LoadedModule:
        return self

    def __exit__(self, *error: object) -> None:
        self.unload()

    def __del__(self) -> None:
        if getattr(self, "_handle", 0):
            try:
                self.unload()
            except (HipError, TypeError, AttributeError):
                self._handle = 0  # interpreter exit: the driver cleans up


def load_module(code_object: CodeObject) -> LoadedModule:
    """A code object on the current device, loaded once however often it is asked for.

    A module stays loaded while somebody holds it or one of its functions, and the last few stay anyway.

    Raises:
        LaunchError: It is for another device, or for a newer ROCm.
        HipError: HIP refuses it.
    """
    key = (Device.current().index, code_object.image)
    with _cache_lock:
        found = _cached.get(key)
        if found is None or not found.loaded:
            found = _cached[key] = LoadedModule(code_object)
        _recent.pop(key, None)
        _recent[key] = found
        while len(_recent) > _MAX_RECENT:
            del _recent[next(iter(_recent))]
    return found


_cache_lock = threading.RLock()  # a module that goes may be collected while the lock is held
_cached: WeakValueDictionary[tuple[int, bytes], LoadedModule] = WeakValueDictionary()
_recent: dict[tuple[int, bytes], LoadedModule] = {}


class Function:
    """A kernel on a device.

    Attributes:
        kernel: What is known about it.
        module: The module that holds it, kept alive.
    """

    __slots__ = ("_checked", "_free", "_handle", "_packers", "kernel", "module")

    def __init__(self, module: LoadedModule, kernel: KernelInfo, handle: int) -> None:
        self.module = module
        self.kernel = kernel
        self._handle = handle
        self._packers: dict[tuple[str | None, ...] | None, ArgumentPacker] = {}
        self._free: list[_Buffer] = []
        self._checked: set[tuple[object, ...]] = set()

    def launch(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: Sequence[object],
        *,
        types: tuple[str | None, ...] | None = None,
        dynamic_lds_bytes: int = 0,
        stream: Stream | int | None = None,
    ) -> None:
        """Puts the kernel into a stream.

        Args:
            grid: Number of workgroups in x, y, z.
            block: Work items in a workgroup in x, y, z.
            args: One value per explicit argument; see `flyllvm.codeobject.pack_kernarg`.
            types: Element type per argument where a value alone does not tell it.
            dynamic_lds_bytes: LDS on top of what the kernel declares, in bytes.
            stream: A stream, the number of one of another library, or the default stream.

        Raises:
            LaunchError: The launch does not fit the kernel, its arguments or the device.
            HipError: HIP refuses it.
        """
        shape = (*grid, *block, dynamic_lds_bytes)
        if shape not in self._checked:
            check_launch(self.kernel, self.module.device, grid, block, dynamic_lds_bytes)
            if len(self._checked) >= _MAX_CHECKED:
                self._checked.clear()
            self._checked.add(shape)
        if not self.module.loaded:
            raise LaunchError(f"the module of {self.kernel.name} was unloaded", fix="load it again")
        packer = self._packers.get(types)
        if packer is None:
            packer = self._packers[types] = ArgumentPacker(self.kernel, types)
        # pop and append are atomic, so threads never share a buffer.
        buffer = self._free.pop() if self._free else _Buffer(self.kernel.explicit_kernarg_bytes)
        try:
            packer.pack_into(buffer.data, args)
            queue = stream if stream is None or type(stream) is int else stream.live()  # type: ignore[union-attr]
            self.module.call(
                "hipModuleLaunchKernel", self._handle, *grid, *block, dynamic_lds_bytes, queue, None, buffer.extra
            )
        finally:
            self._free.append(buffer)


class _Buffer:
    """Argument bytes and the list that tells HIP where they are; HIP copies them before it returns."""

    __slots__ = ("_list", "_size", "data", "extra")

    def __init__(self, size: int) -> None:
        self.data = ctypes.create_string_buffer(max(size, 1))
        self._size = ctypes.c_size_t(size)
        self._list = (ctypes.c_void_p * 5)(
            _POINTER, ctypes.addressof(self.data), _SIZE, ctypes.addressof(self._size), _END
        )
        self.extra = ctypes.addressof(self._list) if size else None


def _check_target(code_object: CodeObject, on: Device) -> None:
    why = mismatch(code_object.target_id, on.target_id)
    if why:
        raise LaunchError(
            f"the code object does not run on device {on.index} ({on.name}): {why}",
            fix=f"compile it for {on.target_id.processor}",
        )


def _check_version(code_object: CodeObject) -> None:
    needed, text = _NEEDS_RUNTIME.get(code_object.code_object_version, (0, ""))
    version = hip().version
    if version < needed:
        raise LaunchError(
            f"code object version {code_object.code_object_version} needs ROCm {text}, this is "
            f"{version // 10**7}.{version // 10**5 % 100}",
            fix="compile with code object version 5, or install a newer ROCm",
        )
