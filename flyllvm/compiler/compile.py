"""``compile``: a kernel and argument specifications to an artifact."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import TargetError, TraceError
from ..expr.specs import PointerSpec, ScalarSpec, TensorSpec
from ..target import Target
from .artifact import Artifact
from .kernel import KernelFunction, as_spec
from .pipeline import check_stage, link_stage, object_stage

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ir.core import Kernel, Module

_SPECS = (TensorSpec, PointerSpec, ScalarSpec)


def default_arch() -> str:
    """The architecture when none is given: ``FLYLLVM_ARCH``.

    Raises:
        TargetError: The variable is not set.
    """
    arch = os.environ.get("FLYLLVM_ARCH")
    if not arch:
        raise TargetError("no architecture given", fix="pass arch='gfx942', or set FLYLLVM_ARCH")
    return arch


def compile(
    fn: KernelFunction,
    *specs: Any,
    arch: str | Target | None = None,
    constants: dict[str, Any] | None = None,
    stop_after: str | None = None,
    ssa: bool = True,
    limits: dict[str, Any] | None = None,
    **options: Any,
) -> Artifact:
    """Compiles a kernel; no GPU is needed.

    Args:
        fn: A function decorated with ``@flyc.kernel``.
        specs: One per parameter that is no constant: a ``TensorSpec``, its text (``"f16[?,?]"``), a number type, or
            an array (its exact shape and strides).
        arch: Target, e.g. ``gfx942`` or ``gfx942:sramecc+:xnack-``; by default ``FLYLLVM_ARCH``.
        constants: Compile-time values by parameter name.
        stop_after: Last stage to run: ``llvm``, ``object`` or ``link`` (all of it).
        ssa: Whether register memory becomes values (it should; off for atoms that only have a memory form).
        limits: ``timeout`` (seconds) and ``memory_limit_bytes`` of the compile worker.
        options: Code generation options (``codegen.Options``) and kernel hints.

    Raises:
        FlyError: With the author's line.
    """
    if not isinstance(fn, KernelFunction):
        raise TraceError(f"compile({fn!r})", fix="pass a function decorated with @flyc.kernel")
    check_stage(stop_after)
    target = Target.parse(arch if arch is not None else default_arch())
    hints, settings = _split(options)
    parsed = [s if isinstance(s, _SPECS) else _spec(s) for s in specs]
    known = fn.constants_for(parsed, constants)
    names = [p for p in fn.parameters() if p not in known]

    def source() -> Kernel:
        return fn.trace(parsed, target, constants, **hints)

    return build(source, target, settings, stop_after, ssa=ssa, specs=parsed, parameters=names, limits=limits)


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
) -> Artifact:
    """Runs the stages over fly IR from any source."""
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
    if stop_after not in ("fly", "atoms", "ssa", "llvm"):
        from ..codegen.client import default_pool

        # LLVM loads in the worker while this process traces.
        default_pool().start()
    artifact.build_text()
    if stop_after in ("fly", "atoms", "ssa", "llvm"):
        return artifact
    result = object_stage(artifact.llvm_ir, target, artifact.options, artifact.timings, **(limits or {}))
    artifact.object_bytes = result.object
    if stop_after != "object":
        artifact._code_object = artifact.timings.run("link", lambda: link_stage(result.object))
    return artifact


def _split(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Kernel hints and code generation options apart."""
    from ..codegen.options import Options

    settings = {k: v for k, v in options.items() if k in Options.__slots__}
    return {k: v for k, v in options.items() if k not in settings}, settings


def _spec(x: Any) -> Any:
    if hasattr(x, "dtype") and hasattr(x, "shape"):
        from .binding import spec_of

        return spec_of(x)
    return as_spec(x)
