"""``@jit``: host functions in ordinary Python, recorded at the first call and replayed after.

A call whose signature (types, shapes, strides and alignments of arrays, values of all other arguments) was seen before
does not run the Python code: its launches are put into the stream again with the new pointers.
"""

from __future__ import annotations

from types import MethodType

from ..errors import FlyError, LaunchError, TraceError
from ..ir.builder import Builder
from .binding_call import Parameters, Unkeyed, signature
from .binding_pointer import PointerArg
from .binding_tensor import TensorArg
from .binding_values import Constant, Fields, Number, StreamSlot
from .hints import check_hints
from .launch import author_line
from .place import Place, current_place
from .replay import Record, Recorder
from .watch import Watch, has_world

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from ..target import Target

_MAX_RECORDS = 1024
_MAX_WORLDS = 8


class JitFunction:
    """A host function decorated with ``@jit``.

    Attributes:
        fn: The author's function.
        arch: What the simulator plays, or the GPU must be; ``None`` leaves it to the environment.
        replay: Whether calls are recorded.
        hints: Compile hints for every kernel it launches.
        recordings: How often the Python code ran.
        not_recorded: Why the last call that ran it was not recorded, or ``None``.
        scope: Local names that its annotations use.
    """

    def __init__(
        self,
        fn: Callable[..., Any],
        arch: str | Target | None,
        replay: bool,
        hints: dict[str, Any],
        scope: dict[str, Any] | None = None,
    ) -> None:
        self.fn = fn
        self.arch = arch
        self.replay = replay
        code = fn.__code__
        self.hints = check_hints(hints, f"{code.co_filename}:{code.co_firstlineno}")
        self.recordings = 0
        self.not_recorded: str | None = None
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self.__wrapped__ = fn
        self.scope = scope
        self._params: Parameters | None = None
        # Per state of the globals and closures it reads: place -> signature -> record.
        self._worlds: list[tuple[Watch, dict[Place, dict[Any, Record]]]] = []

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    @property
    def params(self) -> Parameters:
        """Its parameters; annotations are read at the first use, when all names exist."""
        params = self._params
        if params is None or not params.are_of(self.fn):
            params = self._params = Parameters(self.fn, self.scope)
        return params

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launches what the function launches.

        Raises:
            LaunchError: An argument or a launch does not fit.
            FlyError: A kernel cannot be compiled.
        """
        params = self.params
        outer, builder = Recorder.active(), Builder.active()
        if builder is not None and (outer is None or outer.builder is not builder):
            raise TraceError(
                f"the host function {self.__name__} is called inside a kernel",
                builder.location(),
                "launch kernels from host code; what kernels share is a plain function",
            )
        try:
            values = params.positional(args, kwargs)
            if outer is not None:
                self._inline(values, outer)
                return
            place = current_place(self.arch)
            if not self.replay:
                self.run_host(values, place)
                return
            self._replay_or_record(values, place)
        except FlyError as e:
            raise e if e.where is not None else e.at(author_line()) from None

    def _replay_or_record(self, values: tuple[Any, ...], place: Place) -> None:
        params = self.params
        try:
            key, addresses = signature(values, params.streams)
        except Unkeyed as e:
            self.not_recorded = f"an argument is or holds {e}"
            self.run_host(values, place)
            return
        world, records = self._records(place)
        record = records.get(key)
        if record is not None and record.valid():
            record.run(values, addresses)
            return
        records.pop(key, None)
        made = self.run_host(values, place, addresses=addresses, world=world)
        self.not_recorded = made.why_not(world) or _changed(values, params.streams, key)
        if self.not_recorded is not None:
            return
        if len(records) >= _MAX_RECORDS:
            for old in list(records)[: _MAX_RECORDS // 2]:
                records.pop(old, None)
        records[key] = made

    def _records(self, place: Place) -> tuple[Watch, dict[Any, Record]]:
        """The world as it is, and the records made in one like it."""
        for world, places in self._worlds:
            if world.valid():
                found = places.get(place)
                if found is None:
                    found = places[place] = {}
                return world, found
        world = Watch(self.fn)
        places = {place: {}}
        if world.why_not is None:
            self._worlds.append((world, places))
            del self._worlds[:-_MAX_WORLDS]
        return world, places[place]

    def run_host(
        self,
        values: Sequence[Any],
        place: Place,
        *,
        addresses: Sequence[int] | None = None,
        specs: Sequence[Any] | None = None,
        hints: dict[str, Any] | None = None,
        execute: bool = True,
        cache: bool = True,
        world: Watch | None = None,
    ) -> Record:
        """Runs the Python code and records its launches.

        Args:
            values: One argument per parameter.
            place: Where launches go.
            addresses: Address of each argument; read from them when not given.
            specs: Specification per parameter where it is fixed, else ``None``.
            hints: Compile hints that count more than the function's.
            execute: Whether the launches are carried out.
            cache: Whether the disk cache may answer, and keeps what is compiled.
            world: What the function reads, where its record may be used again.
        """
        params = self.params
        args = [params.classify(i, v, specs[i] if specs is not None else None) for i, v in enumerate(values)]
        if addresses is None:
            addresses = [getattr(a, "address", 0) for a in args]
        given = [_seen_by_host(i, name, arg) for i, (name, arg) in enumerate(zip(params.names, args, strict=True))]
        recorder = Recorder(place, {**self.hints, **(hints or {})}, values, addresses, execute)
        recorder.disk_cache = cache
        self.recordings += 1
        objects = [a.value for a in args if isinstance(a, Constant) and has_world(a.value)] if world is not None else []
        # Looked at before the code runs, which may change it.
        worlds = [Watch(self.fn, *objects)] if objects else []
        with recorder:
            self._run(given)
        _check_pending(recorder)
        if world is not None:
            worlds += self._worlds_of(recorder.roots, [world, *worlds])
        return Record(recorder.launches, worlds)

    def _worlds_of(self, roots: Sequence[Any], worlds: Sequence[Watch]) -> list[Watch]:
        """What kernels read that no world covers so far; what the host function reads may be handed to them."""
        unseen = {id(r): r for r in roots if not any(world.covers(r) for world in worlds)}
        return [Watch(self.fn, *unseen.values())] if unseen else []

    def _inline(self, values: Sequence[Any], outer: Recorder) -> None:
        """Called by another host function: its launches belong to that one's record."""
        params = self.params
        hints = outer.hints
        outer.hints = {**self.hints, **hints}
        try:
            args = []
            for i, (name, value) in enumerate(zip(params.names, values, strict=True)):
                arg = params.classify(i, value)
                slot = getattr(arg, "slot", None)
                args.append(_seen_by_host(slot, name, arg))
            self._run(args)
        finally:
            outer.hints = hints

    def _run(self, args: Sequence[Any]) -> None:
        params, n = self.params, self.params.positional_count
        result = self.fn(*args[:n], **dict(zip(params.names[n:], args[n:])))
        if result is not None:
            raise LaunchError(
                f"{self.__name__} returned {result!r:.60}",
                f"{self.fn.__code__.co_filename}:{self.fn.__code__.co_firstlineno}",
                "return nothing: a replay has no value to return; results go into arrays",
            )

    def __repr__(self) -> str:
        return f"<host function {self.__name__}>"


def _seen_by_host(slot: int | None, name: str, arg: Any) -> Any:
    """What the Python code gets for an argument: layouts and numbers, never data."""
    if isinstance(arg, (TensorArg, PointerArg)):
        made = arg.for_slot(slot, name)
        made.offset_bytes = arg.offset_bytes if arg.slot is not None else 0
        return made
    if isinstance(arg, (Number, Constant, Fields)):
        return arg.value
    if isinstance(arg, StreamSlot):
        return StreamSlot(slot, arg.value)
    return arg


def same_signature(values: Sequence[Any], streams: frozenset[int], key: Any) -> bool:
    """Whether a call has left its arguments as they were: a replay would not change a list or an object again."""
    return _changed(values, streams, key) is None


def _changed(values: Sequence[Any], streams: frozenset[int], key: Any) -> str | None:
    try:
        same = bool(signature(values, streams)[0] == key)
    except Unkeyed:
        same = False
    return None if same else "it changes an argument"


def _check_pending(recorder: Recorder) -> None:
    if recorder.pending:
        call = recorder.pending[0]
        raise LaunchError(
            f"{call.kernel.name}(...) is called and never launched", call.loc, "append .launch(grid=..., block=...)"
        )
