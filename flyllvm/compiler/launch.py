"""``kernel(args...).launch(grid=, block=, ...)``: checks, compilation at the first use, and the launch."""

from __future__ import annotations

from _operator import index

from ..errors import FlyError, LaunchError
from ..ir.location import Location, capture
from .binding_arrays import readers_of
from .binding_fit import run_time_leaves
from .binding_pointer import PointerArg
from .binding_tensor import TensorArg
from .binding_values import Constant, Fields, Number, StreamSlot, stream_handle
from .hints import check_hints
from .kernel_cache import Compiled, compiled
from .place import Place, current_place
from .replay import Launch, PointerSource, Recorder
from .unknown import Unknown, known
from .watch import has_world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..expr.specs import Spec
    from .kernel import KernelFunction

Triple = tuple[int, int, int]
#: Work items of a launch in one dimension, by HIP's rule: below 2**32.
_MAX_ITEMS = (1 << 32) - 1


class KernelCall:
    """A kernel with its arguments, to be launched; one that is dropped without a launch warns of it.

    Attributes:
        kernel: The kernel.
        values: One argument per parameter.
    """

    __slots__ = ("_waiting", "kernel", "loc", "values")

    def __init__(self, kernel: KernelFunction, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self._waiting = False
        self.kernel = kernel
        self.loc = author_line()
        recorder = Recorder.active()
        try:
            params = kernel.call_parameters()
            self.values = params.positional(tuple(args), kwargs)
        except FlyError as e:
            raise e.at(self.loc) from None
        if recorder is not None:
            recorder.pending.append(self)
        else:
            self._waiting = True

    def __del__(self) -> None:
        if self._waiting:
            from warnings import warn_explicit

            text = f"{self.kernel.name}(...) is never launched: append .launch(grid=..., block=...)"
            file, line = next(((f.file, f.line) for f in self.loc.frames), ("unknown", 0))
            warn_explicit(text, RuntimeWarning, file, line)

    def launch(
        self,
        *,
        grid: Any = (1, 1, 1),
        block: Any = None,
        smem: int | None = None,
        stream: Any = None,
        cluster: Any = None,
        arch: Any = None,
        **hints: Any,
    ) -> None:
        """Puts the kernel into a stream, or runs it in the simulator.

        Inside a ``@flyc.jit`` function the launch is recorded too.

        Args:
            grid: Workgroups in x, y, z.
            block: Work items per workgroup in x, y, z; the kernel is compiled for it.  By default what the kernel was
                declared with, else one work item.
            smem: LDS given at launch, in bytes.  By default what the kernel's own allocations ask for.
            stream: The stream; by default the device's default stream.
            cluster: Workgroups per cluster in x, y, z (gfx1250); the kernel is compiled for it.
            arch: What the simulator plays, outside of a ``@flyc.jit`` function.
            hints: Compile hints; they count more than the kernel's and the host function's.

        Raises:
            LaunchError: An argument, a size or the device does not fit; with the line of the launch.
            FlyError: The kernel cannot be compiled.
        """
        self._waiting = False
        recorder = Recorder.active()
        hints = {name: value for name, value in hints.items() if value is not None}
        try:
            if recorder is None:
                made = self._prepare(current_place(arch), grid, block, smem, stream, cluster, hints)
                _check_own(made)
                made.run((), ())
                return
            if arch is not None:
                raise LaunchError("launch(arch=...) inside a host function", fix="give it to @flyc.jit(arch=...)")
            if self in recorder.pending:
                recorder.pending.remove(self)
            made = self._prepare(recorder.place, grid, block, smem, stream, cluster, {**recorder.hints, **hints})
            recorder.roots += (self.kernel.fn, *(v for v in self.values if has_world(v) and readers_of(v) is None))
            recorder.launches.append(made)
            if recorder.execute:
                made.run(recorder.values, recorder.addresses)
        except FlyError as e:
            raise e.at(self.loc) from None

    def _prepare(
        self, place: Place, grid: Any, block: Any, smem: int | None, stream: Any, cluster: Any, hints: dict[str, Any]
    ) -> Launch:
        if "known_block_size" in hints:
            raise LaunchError("known_block_size at a launch", fix="give block=(x, y, z)")
        recorder = Recorder.active()
        disk = recorder is None or recorder.disk_cache
        bound = Bound()
        params = self.kernel.call_parameters()
        for i, (name, value) in enumerate(zip(params.names, self.values, strict=True)):
            bound.add(name, params.classify(i, value), place)
        merged = check_hints(
            {**self.kernel.options, **hints, **({} if cluster is None else {"cluster": cluster})}, self.loc
        )
        size = block_size(self.kernel.name, block, merged.get("known_block_size"), place)
        merged["known_block_size"] = size
        made = compiled(self.kernel, bound.specs, bound.constants, place.target, merged, disk)
        full = check_grid(grid, size, place)
        _check_cluster(merged.get("cluster"), full, place)
        lds = check_lds(made, smem, place)
        slot, queue = _queue(stream)
        return Launch(made, place, full, size, lds, bound.flat, bound.pointers, queue, slot)


class Bound:
    """The arguments of a kernel call, sorted.

    Attributes:
        specs: What the kernel is compiled for, one per run-time argument.
        constants: Compile-time values by name.
        flat: Argument list of the launch; pointers are 0.
        pointers: Where they come from.
    """

    __slots__ = ("constants", "flat", "pointers", "specs")

    def __init__(self) -> None:
        self.specs: list[Spec] = []
        self.constants: dict[str, Any] = {}
        self.flat: list[Any] = []
        self.pointers: list[PointerSource] = []

    def add(self, name: str, arg: Any, place: Place) -> None:
        """Adds an argument.

        Raises:
            LaunchError: It cannot be used where the launch goes.
        """
        if isinstance(arg, Constant):
            raw = getattr(arg.value, "raw", arg.value)
            if getattr(raw, "is_static", True) is False:
                raise LaunchError(f"argument {name}: {arg.value} has run-time extents", fix="make it inside the kernel")
            self.constants[name] = arg.value
        elif isinstance(arg, Number):
            self.specs.append(arg.spec)
            self.flat.append(arg.value)
        elif isinstance(arg, Fields):
            self.specs.append(arg.spec)
            self.flat += arg.values
        elif isinstance(arg, StreamSlot):
            raise LaunchError(f"argument {name} of a kernel is a stream", fix="pass it to launch(stream=...)")
        else:
            self._pointer(name, arg, place)

    def _pointer(self, name: str, arg: TensorArg | PointerArg, place: Place) -> None:
        owner = arg.owner
        what = type(owner).__name__ if owner is not None else "the memory"
        device = getattr(owner, "device_index", None)
        if device is None:
            device = getattr(getattr(owner, "device", None), "index", None)
        place.check_array(name, arg.where, what, device if arg.where == "device" and type(device) is int else None)
        spec = arg.spec()
        self.specs.append(spec)
        self.pointers.append(PointerSource(len(self.flat), arg))
        self.flat.append(0)
        if isinstance(arg, TensorArg):
            self.flat += run_time_leaves(name, spec, arg)


def _check_own(made: Launch) -> None:
    """Refuses arguments of a host function in a launch outside of it.

    Raises:
        LaunchError: There is one.
    """
    names = [source.arg.name for source in made.pointers if source.slot is not None]
    if names or made.stream_slot is not None:
        raise LaunchError(
            f"argument {names[0] if names else 'stream'} belongs to a call of a host function, "
            "and this launch is in another thread or after it",
            fix="launch in the thread of the host function, or pass the array itself",
        )


def author_line(skip: int = 2) -> Location:
    """The author's line that runs now."""
    return Location(capture(skip=skip).frames[:1])


def triple(value: Any, what: str) -> Triple:
    """One to three sizes as three ints.

    Raises:
        LaunchError: They are no positive ints.
    """
    try:
        parts = tuple(value) if isinstance(value, (tuple, list)) else (value,)
        full = tuple(n if isinstance(n, Unknown) else _index(n) for n in parts)
    except TypeError:
        raise LaunchError(f"{what}={value!r}", fix="use one to three positive ints") from None
    if not 1 <= len(full) <= 3 or any(not isinstance(n, Unknown) and n < 1 for n in full):
        raise LaunchError(f"{what}={value!r}", fix="use one to three positive ints")
    sizes: tuple[Any, ...] = (*full, 1, 1)
    return sizes[0], sizes[1], sizes[2]


def _index(n: Any) -> int:
    if isinstance(n, bool):
        raise TypeError
    return index(n)


def block_size(kernel: str, block: Any, declared: Any, place: Place) -> Triple:
    """The block size of a launch.

    Raises:
        LaunchError: It contradicts what the kernel declares, or the device has no such workgroups.
    """
    known_size = None if declared is None else triple(declared, "known_block_size")
    if block is None:
        return known_size or (1, 1, 1)
    full = triple(block, "block")
    if not known(full):
        raise LaunchError(f"block={block!r} is not known while compiling", fix="use ints that no argument decides")
    if known_size is not None and full != known_size:
        raise LaunchError(
            f"block={full} for {kernel}",
            fix=f"it is declared with known_block_size={known_size}: launch it so, or take the declaration away",
        )
    limit = place.target.chip.max_workgroup_size
    items = full[0] * full[1] * full[2]
    if items > limit:
        raise LaunchError(
            f"block={full} has {items} work items", fix=f"{place.target.processor} takes at most {limit} per workgroup"
        )
    return full


def check_grid(grid: Any, block: Triple, place: Place) -> Triple:
    """The grid of a launch.

    Raises:
        LaunchError: No positive ints, or more than the device takes.
    """
    full = triple(grid, "grid")
    for axis, groups, items, limit in zip("xyz", full, block, place.max_grid, strict=True):
        if isinstance(groups, Unknown):
            continue
        if groups > limit:
            raise LaunchError(f"grid.{axis} = {groups}", fix=f"{place} takes 1 to {limit} workgroups in {axis}")
        if groups * items > _MAX_ITEMS:
            raise LaunchError(
                f"{groups} workgroups of {items} work items in {axis}", fix="keep their product below 2**32"
            )
    return full


def check_lds(made: Compiled, smem: Any, place: Place) -> int:
    """LDS to give at launch, in bytes.

    Raises:
        LaunchError: Too little for the kernel's allocations, or more than the device has.
    """
    name, own = made.artifact.name, made.dynamic_lds_bytes
    if smem is None:
        if own is None and made.uses_dynamic_lds:
            raise LaunchError(f"{name} uses LDS given at launch, and smem is not given", fix="pass smem=bytes")
        smem = own or 0
    if isinstance(smem, bool) or not hasattr(smem, "__index__") or isinstance(smem, Unknown) or _index(smem) < 0:
        raise LaunchError(f"smem={smem!r}", fix="use a number of bytes, 0 or more")
    given = _index(smem)
    if own is not None and given < own:
        raise LaunchError(
            f"smem={given} bytes for {name}", fix=f"its allocations take {own}: give that or more, or leave it out"
        )
    limit = place.target.lds_bytes
    if made.lds_bytes + given > limit:
        raise LaunchError(
            f"{made.lds_bytes} bytes of LDS in {name} and smem={given} at launch; {place.target.processor} has {limit}",
            fix=f"ask for at most {limit - made.lds_bytes} bytes at launch",
        )
    return given


def _check_cluster(cluster: Triple | None, grid: Triple, place: Place) -> None:
    """Checks that a grid is made of whole clusters, somewhere that runs them.

    Raises:
        LaunchError: It is not.
    """
    if cluster is None or cluster == (1, 1, 1):
        return
    if place.device is not None:
        raise LaunchError(
            f"cluster={cluster} on {place}: HIP launches no clusters from here yet",
            fix="launch without cluster=, or in the simulator (FLYLLVM_DEVICE=sim)",
        )
    for axis, groups, size in zip("xyz", grid, cluster, strict=True):
        if not isinstance(groups, Unknown) and groups % size:
            raise LaunchError(
                f"grid.{axis} = {groups} workgroups in clusters of {size}",
                fix="launch whole clusters: round the grid up",
            )


def _queue(stream: Any) -> tuple[int | None, Any]:
    """(parameter of the host function, fixed stream)."""
    if isinstance(stream, StreamSlot) and stream.slot is not None:
        return stream.slot, None
    return None, stream_handle(stream)
