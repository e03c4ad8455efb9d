"""The builder: operations by the name of what they mean, made where they belong.

It folds constants; equal pure operations are merged and leave loops (``build_core``).
"""

from __future__ import annotations

from _thread import _local  # `threading` loads functools and collections

from ..errors import TraceError
from .build_control import ControlBuilder
from .build_fly import FlyBuilder

_LOCAL = _local()


class Builder(FlyBuilder, ControlBuilder):
    """Builds the body of one kernel.

    Use as a context manager: inside ``with`` it is the current builder, which arithmetic on values
    and the authoring language write to.
    """

    @staticmethod
    def current() -> Builder:
        """The builder of the kernel that is being traced in this thread.

        Raises:
            TraceError: No kernel is being traced.
        """
        stack: list[Builder] = getattr(_LOCAL, "stack", [])
        if not stack:
            raise TraceError("no kernel is being traced here", fix="use traced values only inside a @flyc.kernel")
        return stack[-1]

    @staticmethod
    def active() -> Builder | None:
        """The current builder, or ``None`` outside of tracing."""
        stack: list[Builder] = getattr(_LOCAL, "stack", [])
        return stack[-1] if stack else None

    def __enter__(self) -> Builder:
        if not hasattr(_LOCAL, "stack"):
            _LOCAL.stack = []
        _LOCAL.stack.append(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _LOCAL.stack.pop()
