"""Recorded launches: what a call of a host function put into the stream, ready to be put there again."""

from __future__ import annotations

from _thread import _local

from ..errors import LaunchError
from ..ir.builder import Builder
from ..ir.core import Kernel
from .binding_arrays import as_tensor
from .binding_pointer import PointerArg
from .binding_tensor import TensorArg
from .binding_values import stream_handle
from .unknown import known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from .kernel_cache import Compiled
    from .place import Place
    from .watch import Watch

_LOCAL = _local()


class PointerSource:
    """Where the address of a pointer argument comes from.

    Attributes:
        index: Position in the flat argument list.
        slot: Parameter of the host function, or ``None`` when the memory is a fixed one.
        offset_bytes: Distance from the first element of that parameter.
        arg: The argument at recording; without its array where that comes in by a parameter.
        span_bytes: Bytes from its first element to the end of the last, or ``None`` when not known.
    """

    __slots__ = ("arg", "index", "offset_bytes", "slot", "span_bytes")

    def __init__(self, index: int, arg: TensorArg | PointerArg) -> None:
        self.index, self.slot, self.offset_bytes = index, arg.slot, arg.offset_bytes
        self.arg: TensorArg | PointerArg = arg
        sized = isinstance(arg, PointerArg) or known((arg.shape, arg.stride))
        self.span_bytes = arg.span_bytes if sized else None
        if arg.slot is not None:
            # A record must not keep the arrays of the call that made it.
            self.arg = arg.for_slot(arg.slot, arg.name)
            self.arg.owner = None


class Launch:
    """One launch, recorded.

    Attributes:
        compiled: The kernel.
        grid: Workgroups in x, y, z.
        block: Work items per workgroup in x, y, z.
        lds_bytes: LDS given at launch.
        flat: Argument list; numbers are in place, pointers are 0.
        pointers: Where the pointers come from.
        stream: The stream, or ``None``; used where ``stream_slot`` is ``None``.
        stream_slot: Parameter of the host function that is the stream.
    """

    __slots__ = ("_function", "_quick", "block", "compiled", "flat", "grid", "lds_bytes", "place", "pointers", "stream",
                 "stream_slot")  # fmt: skip

    def __init__(
        self, compiled: Compiled, place: Place, grid: Any, block: Any, lds_bytes: int, flat: list[Any],
        pointers: list[PointerSource], stream: Any, stream_slot: int | None,
    ) -> None:  # fmt: skip
        self.compiled, self.place, self.grid, self.block, self.lds_bytes = compiled, place, grid, block, lds_bytes
        self.flat, self.pointers, self.stream, self.stream_slot = flat, pointers, stream, stream_slot
        self._function: Any = None
        self._quick = [(p.index, p.slot, p.offset_bytes, p.arg) for p in pointers]

    def run(self, values: Sequence[Any], addresses: Sequence[int]) -> None:
        """Launches it with the arrays of a call.

        Args:
            values: The arguments of the host function.
            addresses: Their addresses.
        """
        if self.place.device is None:
            self._simulate(values)
            return
        function = self._function
        if function is None:
            function = self._function = self._load()
        flat = self.flat.copy()
        for index, slot, offset, arg in self._quick:
            flat[index] = _fixed_address(arg) if slot is None else addresses[slot] + offset
        stream = self.stream if self.stream_slot is None else stream_handle(values[self.stream_slot])
        made = self.compiled
        if made.formats:
            from ..runtime.printing import launch_printing

            launch_printing(
                function, self.grid, self.block, flat, made.formats, types=made.types,
                dynamic_lds_bytes=self.lds_bytes, stream=stream,
            )  # fmt: skip
            return
        function.launch(self.grid, self.block, flat, types=made.types, dynamic_lds_bytes=self.lds_bytes, stream=stream)

    def _load(self) -> Any:
        from ..runtime import load_module

        device = self.place.device
        if device is not None:
            device.use()
        return load_module(self.compiled.code_object()).function(self.compiled.artifact.name)

    def _simulate(self, values: Sequence[Any]) -> None:
        from ..runtime.simulated import simulate_launch

        flat = self.flat.copy()
        for source in self.pointers:
            flat[source.index] = host_memory(source, values)
        artifact = self.compiled.artifact
        simulate_launch(artifact.llvm_ir, artifact.name, self.grid, self.block, flat, artifact.target, self.lds_bytes)


def _fixed_address(arg: TensorArg | PointerArg) -> int:
    """Address of memory that is no argument of the host function; an array that was freed says so."""
    pointer = getattr(arg.owner, "data_ptr", None)
    return arg.address if pointer is None else int(pointer()) + arg.offset_bytes


def host_memory(source: PointerSource, values: Sequence[Any]) -> Any:
    """The bytes behind a pointer argument, as the simulator takes them.

    Raises:
        LaunchError: How many there are is not known.
    """
    arg = source.arg if source.slot is None else as_tensor(values[source.slot])
    if arg is None:
        raise LaunchError(f"argument {source.arg.name} is no array", fix="pass an array")
    address = arg.address + (source.offset_bytes if source.slot is not None else 0)
    span = source.span_bytes
    owner = arg.owner
    if (
        address == arg.address
        and hasattr(owner, "ctypes")
        and isinstance(arg, TensorArg)
        and owner.nbytes == arg.span_bytes
        and (owner.flags.c_contiguous or owner.flags.f_contiguous)
    ):
        return owner
    if address == 0 and not span:
        return None
    if span is None:
        raise LaunchError(
            f"argument {source.arg.name}: the simulator must know how many bytes lie behind {address:#x}",
            fix="give flyc.from_c_void_p(...) a layout or nbytes=",
        )
    from ..runtime.simulated import host_bytes

    return host_bytes(address, span, arg.writable)


class Record:
    """All launches of one call of a host function.

    Attributes:
        launches: The launches, in order.
        worlds: What the kernels read when they were compiled.
    """

    __slots__ = ("launches", "worlds")

    def __init__(self, launches: list[Launch], worlds: list[Watch]) -> None:
        self.launches, self.worlds = launches, worlds

    def valid(self) -> bool:
        """Whether the kernels would still compile to the same code."""
        return all(w.valid() for w in self.worlds)

    def why_not(self, world: Watch) -> str | None:
        """Why this must not be launched again, or ``None``.

        Args:
            world: What the host function read when it began.
        """
        return next((w.why_not for w in (world, *self.worlds) if w.why_not), None) or self.has_other_memory(world)

    def has_other_memory(self, world: Watch) -> str | None:
        """Which memory is neither an argument nor a watched global of the same identity, or ``None``.

        An array that the Python code made, or an address that it worked out, belongs to the call that made it.  No
        signature holds the addresses of arguments, which a function that asks for them may use.
        """
        if not world.names.isdisjoint(("address", "owner")):
            return "it asks for an address or an owner"
        for launch in self.launches:
            for source in launch.pointers:
                if source.slot is None and not world.holds(source.arg.owner):
                    return f"argument {source.arg.name} of {launch.compiled.artifact.name} is memory of this call alone"
        return None

    def run(self, values: Sequence[Any], addresses: Sequence[int]) -> None:
        """Launches everything again."""
        for launch in self.launches:
            launch.run(values, addresses)


class Recorder:
    """Collects the launches of a host function while it runs.

    Attributes:
        place: Where launches go.
        hints: Compile hints of the host function.
        disk_cache: Whether the disk cache may answer, and keeps what is compiled.
        execute: Whether launches are carried out at once, besides being recorded.
        values: Arguments of the host function.
        addresses: Their addresses.
        launches: What was recorded.
        pending: Kernel calls without a launch so far.
        roots: Functions that the kernels were traced from, and those given to them as compile-time values.
    """

    __slots__ = (
        "addresses",
        "builder",
        "disk_cache",
        "execute",
        "hints",
        "launches",
        "pending",
        "place",
        "roots",
        "values",
    )

    def __init__(
        self, place: Place, hints: Mapping[str, Any], values: Sequence[Any], addresses: Sequence[int], execute: bool
    ) -> None:
        self.place, self.hints, self.values, self.addresses, self.execute = place, hints, values, addresses, execute
        self.disk_cache = True
        self.launches: list[Launch] = []
        self.pending: list[Any] = []
        self.roots: list[Any] = []
        # Host code makes atoms and layouts; they need a trace to be made in.
        self.builder = Builder(Kernel("host"), place.target)
        self.builder.kernel.attrs["host"] = True

    @staticmethod
    def active() -> Recorder | None:
        """The recorder of the host function that runs in this thread."""
        stack: list[Recorder] = getattr(_LOCAL, "recorders", [])
        return stack[-1] if stack else None

    def __enter__(self) -> Recorder:
        if not hasattr(_LOCAL, "recorders"):
            _LOCAL.recorders = []
        _LOCAL.recorders.append(self)
        self.builder.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.builder.__exit__(*exc)
        _LOCAL.recorders.pop()
