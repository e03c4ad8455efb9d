"""Handles of host functions: what ``flyc.compile`` returns for a ``@jit`` function."""

from __future__ import annotations

from ..errors import FlyError, LaunchError
from .binding_call import Parameters, Unkeyed, signature
from .binding_values import Constant
from .freeze import freeze
from .jit_function import same_signature
from .launch import author_line
from .place import Place, current_place
from .watch import Watch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..expr.specs import Spec
    from ..target import Target
    from .jit_function import JitFunction
    from .replay import Record

_MAX_RECORDS = 1024


class CompiledJit:
    """A host function compiled for fixed arguments: what ``flyc.compile`` returns for a ``@jit`` function.

    Calling it with arrays and numbers launches what the function launches, with the least host time: where launches go
    is decided at the first call, and globals and closures are not looked at for a signature seen before.

    Attributes:
        jit: The host function.
        target: What it was compiled for.
        hints: The compile hints.
        artifacts: The compiled kernels by name, in the order of their first launch.
    """

    def __init__(
        self,
        jit: JitFunction,
        target: Target,
        specs: Sequence[Spec | None],
        hints: dict[str, Any],
        record: Record,
        constants: dict[str, Any],
    ) -> None:
        self.jit, self.target, self.hints = jit, target, hints
        self._specs = list(specs)
        self._constants = constants
        self._params = Parameters(jit.fn, jit.scope)
        # Compile-time values may be left out: they are those of the compilation.
        self._params.set_defaults(constants)
        self._records: dict[Any, Record] = {}
        self._place: Place | None = None
        self.artifacts: dict[str, Any] = {}
        for launch in record.launches:
            _name_artifact(self.artifacts, launch.compiled.artifact)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        """Launches with these arguments.

        Raises:
            LaunchError: An argument does not fit what was compiled.
        """
        params = self._params
        values = params.positional(args, kwargs)
        try:
            key, addresses = signature(values, params.streams)
        except Unkeyed:
            key, addresses = None, []
        record = self._records.get(key)
        if record is not None:
            record.run(values, addresses)
            return
        self._record(key, values)

    def _record(self, key: Any, values: tuple[Any, ...]) -> None:
        try:
            if self._place is None:
                self._place = current_place(self.target)
            self._check_constants(values)
            world = Watch(self.jit.fn)
            record = self.jit.run_host(values, self._place, specs=self._specs, hints=self.hints)
        except FlyError as e:
            raise e if e.where is not None else e.at(author_line()) from None
        # Whoever changes what he reads, or uses memory of his own, is run every time.
        changed = not world.repeats or (world.why_not is None and not world.valid())
        if not changed and not record.has_other_memory(world) and same_signature(values, self._params.streams, key):
            if len(self._records) >= _MAX_RECORDS:
                self._records.clear()
            self._records[key] = record

    def _check_constants(self, values: tuple[Any, ...]) -> None:
        for i, name in enumerate(self._params.names):
            if name in self._constants:
                arg = self._params.classify(i, values[i])
                now = arg.value if isinstance(arg, Constant) else arg
                before = self._constants[name]
                if now is not before and freeze(now) != freeze(before):
                    raise LaunchError(
                        f"argument {name}: {now!r:.60}",
                        fix=f"it is compiled for {before!r:.60}: pass that, or leave it out",
                    )

    def _only(self) -> Any:
        if len(self.artifacts) != 1:
            raise LaunchError(
                f"{self.jit.__name__} launches {len(self.artifacts)} kernels",
                fix=f"take one of .artifacts: {', '.join(self.artifacts) or 'none'}",
            )
        return next(iter(self.artifacts.values()))

    def __getattr__(self, name: str) -> Any:
        # code_object, llvm_ir, assembly, ...: those of the kernel, where there is one.
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._only(), name)

    def __repr__(self) -> str:
        return f"<{self.jit.__name__} compiled for {self.target}: {', '.join(self.artifacts)}>"


def _name_artifact(artifacts: dict[str, Any], artifact: Any) -> None:
    """Adds an artifact; another one of the same kernel gets a number."""
    if any(a is artifact for a in artifacts.values()):
        return
    name, count = artifact.name, 1
    while name in artifacts:
        count += 1
        name = f"{artifact.name}.{count}"
    artifacts[name] = artifact
