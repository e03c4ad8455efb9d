"""``@kernel``: a Python function that traces to fly IR."""

from __future__ import annotations

import sys
from types import MethodType

from ..errors import TraceError
from ..expr.composite import Struct
from ..expr.host import Constexpr
from ..expr.specs import PointerSpec, ScalarSpec, Spec, StructSpec, TensorSpec, parse_spec
from ..ir.builder import Builder
from ..ir.core import Kernel
from ..ir.location import Frame, Location
from ..ir.ops_control import Return
from ..target import Target
from .binding_call import Parameters, annotation_scope
from .binding_values import constant_argument
from .hints import check_hints, split_hints

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import FunctionType
    from typing import Any

    from .launch import KernelCall


class KernelFunction:
    """A function decorated with ``@kernel``.

    Attributes:
        fn: The author's function.
        name: Symbol name of the kernel.
        options: ``known_block_size``, ``waves_per_eu`` and other hints.
    """

    def __init__(
        self, fn: Callable[..., Any], name: str | None, options: dict[str, Any], scope: dict[str, Any] | None = None
    ) -> None:
        self.fn = fn
        self.name = name or fn.__name__
        self.options = check_hints(options, self._location())
        self.__name__ = fn.__name__
        self.__doc__ = fn.__doc__
        self._scope = scope
        self._params: Parameters | None = None

    def parameters(self) -> list[str]:
        """Names of the parameters, the keyword-only ones last."""
        code = self.fn.__code__
        return list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])

    def call_parameters(self) -> Parameters:
        """Its parameters with their annotations, read at the first use, when all names exist."""
        if self._params is None or not self._params.are_of(self.fn):
            self._params = Parameters(self.fn, self._scope)
        return self._params

    def defaults(self) -> dict[str, Any]:
        """Default values by parameter name; they are compile-time values."""
        values = self.fn.__defaults__ or ()
        count = self.fn.__code__.co_argcount
        names = self.parameters()[count - len(values) : count]
        return dict(zip(names, values, strict=True)) | (self.fn.__kwdefaults__ or {})

    def constants_for(self, specs: Sequence[Any], given: Mapping[str, Any] | None) -> dict[str, Any]:
        """The compile-time values of a call: those given, and defaults of parameters that no specification is for.

        Raises:
            LaunchError: A value is not what ``fx.Constexpr[T]`` says.
        """
        kinds = dict(zip(self.parameters(), self.call_parameters().kinds))
        out = {name: _checked(name, kinds.get(name), value) for name, value in (given or {}).items()}
        free = [n for n in self.parameters() if n not in out]
        for name, value in self.defaults().items():
            if name not in out and free.index(name) >= len(specs):
                out[name] = _checked(name, kinds[name], value)
        return out

    def trace(
        self, specs: Sequence[Any], target: Target | str, constants: Mapping[str, Any] | None = None, **options: Any
    ) -> Kernel:
        """Runs the function once and returns the fly IR it wrote.

        Args:
            specs: One specification (or its text) per parameter that is no constant, in order.
            target: The target.
            constants: Compile-time values by parameter name.
            options: Hints that override the decorator's.

        Raises:
            FlyError: With the author's line.
        """
        target = Target.parse(target)
        kernel = Kernel(self.name, self._location())
        given, _ = split_hints(check_hints({**self.options, **options}, kernel.loc))
        kernel.attrs.update(given)
        if "known_block_size" in given:
            kernel.attrs["known_block_size"] = _block(given["known_block_size"], target)
        # Loaded here: what never traces needs no syntax trees.
        from ..ir.verifier import check_op
        from .host_atoms import own
        from .rewrite import AuthorErrors, rewritten

        author: Any = self.fn
        fn = rewritten(author)
        b = Builder(kernel, target, fn.__code__)
        b.check = check_op
        args = self._arguments(kernel, specs, self.constants_for(specs, constants))
        with b, AuthorErrors(b):
            self._call(fn, {name: own(value) for name, value in args.items()}, b)
        kernel.body.append(Return((), (), None, (), kernel.loc))
        return kernel

    def _call(self, fn: FunctionType, args: dict[str, Any], b: Builder) -> None:
        try:
            result = fn(**args)
        except RecursionError as e:
            from ..expr.control_errors import author_location

            lines: dict[tuple[str, int], Frame] = {}
            for frame in (author_location(e, b.root_code) or b.kernel.loc).frames:
                lines.setdefault((frame.file, frame.line), frame)
            frames = tuple(lines.values())
            raise TraceError(
                f"the calls of {frames[0].func} nest deeper than Python allows while {self.name} is traced",
                Location(frames),
                "end the recursion earlier, by a compile-time value; a condition known only at run time traces both "
                "branches, so write a loop instead",
            ) from None
        if result is not None:
            from ..expr.control_tree import describe

            raise TraceError(
                f"the kernel {self.name} returns {describe(result)}",
                b.kernel.loc,
                "write results into a tensor argument: a kernel returns nothing",
            )

    def _location(self) -> Location:
        code = self.fn.__code__
        return Location((Frame(code.co_filename, code.co_firstlineno, code.co_name, code.co_firstlineno),))

    def _arguments(self, kernel: Kernel, specs: Sequence[Any], constants: dict[str, Any]) -> dict[str, Any]:
        names = self.parameters()
        for name in constants:
            if name not in names:
                raise TraceError(
                    f"{self.name} has no parameter {name!r}", kernel.loc, f"parameters: {', '.join(names)}"
                )
        wanted = [n for n in names if n not in constants]
        if len(wanted) != len(specs):
            raise TraceError(
                f"{self.name} takes {', '.join(wanted) or 'no arguments'}; {len(specs)} specifications were given",
                kernel.loc,
                "give one specification per parameter, or a constant by name",
            )
        args: dict[str, Any] = dict(constants)
        # Callers may pass one array twice (in-place kernels), so only the author can promise no aliasing.
        pointer = {"noalias": True} if kernel.attrs.get("noalias") else {}
        for name, spec in zip(wanted, specs, strict=True):
            spec = as_spec(spec)
            args[name] = spec.declare(kernel, name, pointer)
        return args

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __call__(self, *args: Any, **kwargs: Any) -> KernelCall:
        """The kernel with its arguments; ``.launch(grid=..., block=...)`` runs it.

        Raises:
            TraceError: A kernel is being traced here.
            LaunchError: Arguments are missing or unknown.
        """
        from .launch import KernelCall
        from .replay import Recorder

        recorder, builder = Recorder.active(), Builder.active()
        if builder is not None and (recorder is None or recorder.builder is not builder):
            raise TraceError(
                f"the kernel {self.name} is called inside a kernel",
                builder.location(),
                "launch it from host code; what kernels share is a plain function",
            )
        return KernelCall(self, args, kwargs)


def _checked(name: str, kind: Any, value: Any) -> Any:
    return constant_argument(name, kind, value).value if isinstance(kind, Constexpr) else value


def as_spec(x: Any) -> Spec:
    """A specification from itself, its text, or a number type."""
    if isinstance(x, (TensorSpec, PointerSpec, ScalarSpec, StructSpec)):
        return x
    if isinstance(x, str):
        return parse_spec(x)
    if isinstance(x, type):
        number: Any = x  # ScalarSpec says if it is none
        return StructSpec(x) if issubclass(x, Struct) else ScalarSpec(number)
    raise TraceError(f"{x!r} is no argument specification", fix="use fx.TensorSpec(...), 'f16[?,?]', or a number type")


def _block(size: Any, target: Target) -> tuple[int, int, int]:
    parts = (size,) if isinstance(size, int) else tuple(size)
    full: tuple[int, int, int] = (*parts, 1, 1, 1)[:3]
    if len(parts) > 3 or any(isinstance(n, bool) or not isinstance(n, int) or n < 1 for n in full):
        raise TraceError(f"known_block_size={size!r}", fix="use one to three positive ints")
    total = full[0] * full[1] * full[2]
    limit = target.chip.max_workgroup_size
    if total > limit:
        raise TraceError(
            f"known_block_size={size!r}: {total} work items in a workgroup",
            fix=f"{target.processor} runs at most {limit}",
        )
    return full


def kernel(
    fn: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    known_block_size: Any = None,
    **hints: Any,
) -> Any:
    """Marks a function as a GPU kernel.

    Args:
        fn: The function; parameters are tensors, pointers, numbers or compile-time values.
        name: Symbol name; by default the function's.
        known_block_size: Work items per workgroup (x, y, z); the kernel may only be launched with it.
        hints: ``waves_per_eu``, ``maxnreg``, ``fastmath``, ``noalias=True`` (no two pointer arguments overlap),
            ``cluster=(x, y, z)`` (workgroups of a cluster), and code generation options such as ``denormals``.
    """

    def wrap(f: Callable[..., Any]) -> KernelFunction:
        scope = annotation_scope(f, sys._getframe(1 if fn is None else 2).f_locals)
        return KernelFunction(f, name, {"known_block_size": known_block_size, **hints}, scope)

    return wrap if fn is None else wrap(fn)
