"""``compile``: a kernel and argument specifications to an artifact."""

from __future__ import annotations

import os

from ..errors import TargetError, TraceError
from ..expr.specs import StructSpec
from ..target import Target
from .artifact import Artifact
from .cache import Recipe, find_source, keep_source
from .hints import check_hints, split_hints
from .image import image_stage
from .kernel import KernelFunction, as_spec
from .pipeline import check_stage, object_stage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from ..ir.core import Kernel, Module


def default_arch() -> str:
    """The architecture when none is given: ``FLYLLVM_ARCH``.

    Raises:
        TargetError: The variable is not set.
    """
    arch = os.environ.get("FLYLLVM_ARCH")
    if not arch:
        raise TargetError("no architecture given", fix="pass arch='gfx942', or set FLYLLVM_ARCH")
    return arch


class Compiler:
    """``flyc.compile``: compiles a kernel, or all that a host function launches; no GPU is needed.

    ``flyc.compile[{"waves_per_eu": 2}](fn, ...)`` gives compile hints in front; keywords count more.
    """

    __slots__ = ("_hints",)

    def __init__(self, hints: Mapping[str, Any] | None = None) -> None:
        self._hints = dict(hints or {})

    def __getitem__(self, hints: Any) -> Compiler:
        parts = hints if isinstance(hints, tuple) else (hints,)
        made = dict(self._hints)
        for part in parts:
            if not isinstance(part, dict):
                raise TraceError(
                    f"compile[{part!r}]", fix='write the hints as a dict: compile[{"waves_per_eu": 2}](...)'
                )
            made |= part
        return Compiler(made)

    def __call__(
        self,
        fn: Any,
        *args: Any,
        arch: str | Target | None = None,
        constants: dict[str, Any] | None = None,
        stop_after: str | None = None,
        ssa: bool = True,
        limits: dict[str, Any] | None = None,
        cache: bool = True,
        **options: Any,
    ) -> Any:
        """Compiles.

        Args:
            fn: A function decorated with ``@flyc.kernel`` or ``@flyc.jit``.
            args: One per parameter that is not in ``constants``: a ``TensorSpec``, its text (``"f16[?,?]"``), a number
                type, an array (its exact shape and strides, unless marked), a number, or a compile-time value.
            arch: Target, e.g. ``gfx942`` or ``gfx942:sramecc+:xnack-``; by default ``FLYLLVM_ARCH``.
            constants: Compile-time values by parameter name.
            stop_after: Last stage to run: ``llvm``, ``object`` or ``link`` (all of it).
            ssa: Whether register memory becomes values (it should; off for atoms that only have a memory form).
            limits: ``timeout`` (seconds) and ``memory_limit_bytes`` of the compile worker.
            cache: Whether the disk cache may answer, and keeps the result.
            options: Code generation options (``codegen.Options``) and kernel hints.

        Returns:
            An ``Artifact`` of a kernel, a ``CompiledJit`` of a host function.

        Raises:
            FlyError: With the author's line.
        """
        check_stage(stop_after)
        target = Target.parse(arch if arch is not None else default_arch())
        hints = check_hints({**self._hints, **options})
        if isinstance(fn, KernelFunction):
            return compile_kernel(fn, args, target, constants, stop_after, ssa, limits, hints, cache)
        from .jit_function import JitFunction

        if not isinstance(fn, JitFunction):
            raise TraceError(f"compile({fn!r})", fix="pass a function decorated with @flyc.kernel or @flyc.jit")
        if not ssa or limits is not None:
            raise TraceError(f"compile({fn!r}) with ssa or limits", fix="give them for a kernel")
        from .compile_jit import compile_jit

        return compile_jit(fn, args, target, constants, hints, stop_after, cache)


compile = Compiler()


def compile_kernel(
    fn: KernelFunction,
    args: Sequence[Any],
    target: Target,
    constants: dict[str, Any] | None,
    stop_after: str | None,
    ssa: bool,
    limits: dict[str, Any] | None,
    hints: dict[str, Any],
    cache: bool = True,
) -> Artifact:
    """Compiles one kernel; the arguments are those of `Compiler`, the hints are checked."""
    specs, given = _sort(fn, args, constants)
    own, settings = split_hints({**fn.options, **hints})
    known = fn.constants_for(specs, given)
    names = [p for p in fn.parameters() if p not in known]

    def source() -> Kernel:
        return fn.trace(specs, target, known, **own)

    recipe = Recipe(fn, specs, known, own) if cache else None
    return build(
        source,
        target,
        settings,
        stop_after,
        ssa=ssa,
        specs=specs,
        parameters=names,
        limits=limits,
        recipe=recipe,
        cache=cache,
    )


def _sort(
    fn: KernelFunction, args: Sequence[Any], constants: dict[str, Any] | None
) -> tuple[list[Any], dict[str, Any]]:
    """Specifications of the run-time arguments, and the compile-time values by name.

    Raises:
        LaunchError: An argument is not what its annotation says.
    """
    from .binding_call import as_argument
    from .binding_values import Constant, Fields, Number, StreamSlot

    params = fn.call_parameters()
    given = dict(constants or {})
    free = [i for i, name in enumerate(params.names) if name not in given]
    specs: list[Any] = []
    for i, value in zip(free, args):
        value = as_argument(params, i, value)
        if isinstance(value, StructSpec):
            specs.append(value)
            continue
        arg = params.classify(i, value)
        if isinstance(arg, Constant):
            given[params.names[i]] = arg.value
        elif isinstance(arg, StreamSlot):
            raise TraceError(f"argument {params.names[i]} of {fn.name} is a stream", fix="kernels take no streams")
        else:
            specs.append(arg.spec if isinstance(arg, (Number, Fields)) else arg.spec())
    return specs + [as_spec(x) for x in args[len(free) :]], given


def build(
    source: Callable[[], Kernel | Module],
    target: Target,
    settings: dict[str, Any],
    stop_after: str | None = None,
    *,
    ssa: bool = True,
    specs: Any = (),
    parameters: Any = (),
    limits: dict[str, Any] | None = None,
    recipe: Recipe | None = None,
    cache: bool = True,
) -> Artifact:
    """Runs the stages over fly IR from any source.

    Args:
        source: Gives the fly IR.
        target: The target.
        settings: Code generation options.
        stop_after: Last stage to run.
        ssa: Whether register memory becomes values.
        specs: Specifications of the arguments.
        parameters: Their names.
        limits: ``timeout`` and ``memory_limit_bytes`` of the compile worker.
        recipe: What the fly IR is made from, so that the disk cache can know it before tracing.
        cache: Whether the disk cache is read and written.
    """
    from ..codegen.options import Options

    artifact = Artifact(
        source=source,
        name="",
        target=target,
        options=Options(**settings),
        specs=specs,
        parameters=parameters,
        ssa=ssa,
    )
    clock, to_text = artifact.timings, stop_after in ("fly", "atoms", "ssa", "llvm")
    key = clock.run("cache", lambda: find_source(recipe, artifact)) if recipe is not None else None
    if artifact.from_cache is None:
        if not to_text:
            from ..codegen.client import default_pool

            # LLVM loads in the worker while this process traces.
            default_pool().start()
        artifact.build_text()
        if key is not None and recipe is not None:
            clock.run("cache", lambda: keep_source(key, recipe, artifact))
    if to_text:
        return artifact
    limits = limits or {}
    if stop_after == "object":
        artifact.object_bytes = object_stage(artifact.llvm_ir, target, artifact.options, clock, **limits).object
    else:
        artifact.take(image_stage(artifact.llvm_ir, target, artifact.options, clock, cache=cache, **limits))
    return artifact
