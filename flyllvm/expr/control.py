"""Traced loops and branches as functions; ``for``, ``while`` and ``if`` of a kernel are rewritten to these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..ir.builder import Builder
from .leaves import to_leaves
from .numeric import Int32, Int64

if TYPE_CHECKING:
    from collections.abc import Callable


def loop(lower: Any, upper: Any, step: Any = 1) -> Callable[[Callable[[Any], None]], None]:
    """Decorator: runs the function below it as the body of a traced loop.

    ``@fx.loop(0, n, 32)`` over ``def _(k): ...`` is a loop at run time with ``k`` as its index; register
    memory written inside keeps its values over iterations.
    """

    def run(body: Callable[[Any], None]) -> None:
        b = Builder.current()

        def wrapped(index: Any) -> None:
            body(Int64.wrap(index) if index.width == 64 else Int32.wrap(index))

        b.for_(to_leaves(lower), to_leaves(upper), to_leaves(step), [], wrapped)

    return run
