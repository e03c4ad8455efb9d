"""``@jit``, which marks host functions; what they do is in `jit_function`, loaded when there is one."""

from __future__ import annotations

import sys

from .binding_call import annotation_scope

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..target import Target
    from .jit_function import JitFunction


def jit(
    fn: Callable[..., Any] | None = None,
    *,
    arch: str | Target | None = None,
    replay: bool = True,
    **hints: Any,
) -> Any:
    """Marks a function as host code that launches kernels.

    Args:
        fn: The function.  Its array arguments are layouts without data while it runs.
        arch: What the simulator plays, or the GPU must be; by default the GPU that is there, else ``FLYLLVM_ARCH``.
        replay: Whether a call whose signature was seen before replays the recorded launches.  With ``False`` the Python
            code runs on every call.
        hints: Compile hints for every kernel it launches.
    """

    def wrap(f: Callable[..., Any]) -> JitFunction:
        from .jit_function import JitFunction

        scope = annotation_scope(f, sys._getframe(1 if fn is None else 2).f_locals)
        return JitFunction(f, arch, replay, hints, scope)

    return wrap if fn is None else wrap(fn)
