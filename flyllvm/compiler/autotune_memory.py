"""What autotune does with the memory of its arguments: saves it, restores it, and hands it to the device."""

from __future__ import annotations

from ..errors import LaunchError
from .binding_arrays import as_tensor
from .binding_fit import run_time_leaves
from .binding_tensor import TensorArg
from .binding_types import DEVICE, HOST
from .binding_values import Fields, Number, for_spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .artifact import Artifact


class Memory:
    """The bytes that an argument covers, as they were.

    Attributes:
        address: Address of the first byte.
        size_bytes: How many there are, gaps between rows included.
        on_device: Whether they are in the memory of a GPU.
        writable: Whether a kernel may write them.
    """

    __slots__ = ("_saved", "address", "on_device", "size_bytes", "writable")

    def __init__(self, tensor: TensorArg, size_bytes: int) -> None:
        self.address = tensor.address
        self.size_bytes = size_bytes
        self.on_device = tensor.where == DEVICE
        self.writable = tensor.writable
        self._saved: Any = None
        if not size_bytes:
            return
        if self.on_device:
            from ..runtime import DeviceArray

            self._saved = DeviceArray(size_bytes, "uint8")
            _copy(self._saved.address, self.address, size_bytes, "hipMemcpyDeviceToDevice")
        else:
            self._saved = self.view().copy()

    def view(self) -> Any:
        """Host memory as an array of bytes."""
        from ..runtime.simulated import host_bytes

        return host_bytes(self.address, self.size_bytes, self.writable)

    def restore(self) -> None:
        """Puts the saved bytes back."""
        if self._saved is None or not self.writable:
            return
        if self.on_device:
            _copy(self.address, self._saved.address, self.size_bytes, "hipMemcpyDeviceToDevice")
        else:
            self.view()[...] = self._saved

    def restore_in(self, buffer: Any) -> None:
        """Puts the saved bytes of host memory into device memory."""
        buffer.copy_from(self._saved)


def _copy(to: int, source: int, size_bytes: int, kind: str) -> None:
    from ..runtime.hip import hip

    opened = hip()
    opened.call("hipMemcpy", to, source, size_bytes, getattr(opened.binding.hipMemcpyKind, kind))


class Saved:
    """The arguments as they were.

    Attributes:
        args: The arguments: arrays and tensors of any library, on the host or the device, and numbers.
        memory: Position of an argument -> its bytes.
    """

    __slots__ = ("args", "memory")

    def __init__(self, args: Sequence[Any]) -> None:
        self.args = args
        self.memory: dict[int, Memory] = {}
        for i, value in enumerate(args):
            tensor = as_tensor(value)
            if tensor is None:
                continue
            size = getattr(tensor, "span_bytes", None)
            if not isinstance(tensor, TensorArg) or not isinstance(size, int) or tensor.where not in (HOST, DEVICE):
                raise LaunchError(
                    f"argument {i + 1} is {type(value).__name__}, whose size or place in memory is not known",
                    fix="pass an array or tensor, so that its contents can be put back between the runs",
                )
            self.memory[i] = Memory(tensor, size)

    @property
    def on_device(self) -> bool:
        """Whether some of the memory is a GPU's."""
        return any(m.on_device for m in self.memory.values())

    def check_simulator(self) -> None:
        """Checks that a simulator on the host can reach all of it.

        Raises:
            LaunchError: It cannot.
        """
        for i, m in self.memory.items():
            if m.on_device:
                raise LaunchError(
                    f"argument {i + 1} of autotune is in the memory of a GPU, which the simulator cannot read",
                    fix="measure on the device, or pass arrays in host memory",
                )

    def restore(self) -> None:
        """Puts the saved contents back."""
        for m in self.memory.values():
            m.restore()


class OnDevice:
    """One artifact with arguments in device memory: those of the host have a copy there.

    Attributes:
        flat: The flat argument list of a launch.
    """

    __slots__ = ("_buffers", "_saved", "flat")

    def __init__(self, artifact: Artifact, saved: Saved) -> None:
        from ..runtime import DeviceArray

        names, specs = artifact.parameters, artifact.specs
        if len(saved.args) != len(specs):
            raise LaunchError(
                f"{len(saved.args)} arguments for {', '.join(names) or 'none'}",
                fix=f"pass {len(specs)} arguments in this order",
            )
        self._saved = saved
        self._buffers: dict[int, Any] = {}
        self.flat: list[Any] = []
        for i, (name, spec, value) in enumerate(zip(names, specs, saved.args, strict=True)):
            arg = for_spec(name, value, spec)
            if isinstance(arg, Number):
                self.flat.append(arg.value)
            elif isinstance(arg, Fields):
                self.flat += arg.values
            else:
                memory = saved.memory[i]
                if not memory.on_device and memory.size_bytes:
                    self._buffers[i] = DeviceArray(memory.size_bytes, "uint8")
                self.flat.append(self._buffers[i].address if i in self._buffers else arg.address)
                if isinstance(arg, TensorArg):
                    self.flat += run_time_leaves(name, spec, arg)

    def restore(self) -> None:
        """Makes the memory that the kernel sees what it was."""
        for i, memory in self._saved.memory.items():
            if i in self._buffers:
                memory.restore_in(self._buffers[i])
            else:
                memory.restore()

    def bring_back(self) -> None:
        """Copies what the kernel has written into the arrays of the host."""
        for i, buffer in self._buffers.items():
            if self._saved.memory[i].writable:
                self._saved.memory[i].view()[...] = buffer.numpy()
