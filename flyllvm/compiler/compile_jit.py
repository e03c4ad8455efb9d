"""Ahead of time compilation of what a host function launches."""

from __future__ import annotations

from ..errors import CodegenError, LaunchError
from .binding_call import as_argument
from .binding_pointer import PointerArg
from .binding_tensor import TensorArg
from .binding_types import NOWHERE
from .binding_values import Constant, StreamSlot
from .compiled_jit import CompiledJit
from .place import Place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from ..target import Target
    from .jit_function import JitFunction


def compile_jit(
    jit: JitFunction,
    args: Sequence[Any],
    target: Target,
    constants: Mapping[str, Any] | None,
    hints: dict[str, Any],
    stop_after: str | None,
    cache: bool = True,
) -> CompiledJit:
    """Runs a host function without data, and compiles every kernel that it launches.

    Raises:
        FlyError: With the author's line.
    """
    if stop_after not in (None, "llvm", "object", "link"):
        raise CodegenError(f"stop_after={stop_after!r} for a host function", fix="use 'llvm', or leave it out")
    params = jit.params
    given = dict(constants or {})
    for i, name in enumerate(params.names):
        if params.kinds[i] == "stream" and name not in params.defaults and len(args) <= i:
            given.setdefault(name, None)
    values = [as_argument(params, i, v) for i, v in enumerate(params.positional(tuple(args), given))]
    specs: list[Any] = []
    fixed: dict[str, Any] = {}
    for i, value in enumerate(values):
        arg = params.classify(i, value)
        if isinstance(arg, Constant):
            fixed[params.names[i]] = arg.value
            specs.append(None)
        elif isinstance(arg, StreamSlot):
            specs.append(None)
        elif isinstance(arg, (TensorArg, PointerArg)):
            specs.append(arg.spec())
            # Its place counts when it is launched.
            arg.where = NOWHERE
            values[i] = arg
        else:
            specs.append(arg.spec)
    record = jit.run_host(values, Place(target, None), hints=hints, execute=False, cache=cache)
    if not record.launches:
        raise LaunchError(f"{jit.__name__} launches nothing for these arguments", fix="compile it with other arguments")
    if stop_after != "llvm":
        for launch in record.launches:
            launch.compiled.code_object()
    return CompiledJit(jit, target, specs, hints, record, fixed)
