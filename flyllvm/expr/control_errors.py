"""What control flow refuses, and where in the author's code an error came from."""

from __future__ import annotations

import sys

from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.core import Value
from ..ir.location import Location, frames_of, is_author_file
from .control import refuse_endless
from .control_slot import is_traced, truth
from .control_tree import describe
from .numeric import Numeric
from .pointer import Pointer
from .tensor import Tensor
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

_FIX = {
    "return": "assign the result to a variable in every branch and return it once, at the end of the function",
    "break": "loop with while and put the condition into it",
    "continue": "put the rest of the loop body under the opposite condition",
    "yield": "collect values in a list and return it; the yield of range(init=...) is the last statement of its body",
    "unpacking": "use one loop variable, or range(..., init=[...])",
    "await": "await outside of the kernel",
    "else": "put the else block behind the loop",
    ":=": "assign the variable in a statement of its own",
}


def plain(x: Any, what: str) -> bool:
    """A condition that must be known while tracing, because of a statement under it (``return in if``)."""
    flag = truth(x)
    if not isinstance(flag, Value):
        if flag and what.endswith("while"):
            b = Builder.active()
            if b is not None:
                b.turn()
        return flag
    way, _, kind = what.partition(" in ")
    of = f"{way} {'of' if way == 'else' else 'inside'} {'an' if kind == 'if' else 'a'} {kind}"
    raise TraceError(
        f"{of} whose condition is known only at run time",
        Builder.current().location(),
        f"{_FIX[way]}, or make the condition a compile-time value",
    )


def known(x: Any, what: str) -> Any:
    """An operand that must be known while tracing, because of an assignment in a later one."""
    plain(x, what)
    return x


def not_called(x: Any, text: str) -> None:
    """Refuses a function that stands alone as a statement, where nothing calls it."""
    if callable(x):
        raise TraceError(f"{text} stands alone and does nothing", Builder.current().location(), f"call it: {text}()")


def caught() -> None:
    """Lets an error through that an ``except Exception`` of the author's would hide; it says that tracing went wrong.

    Raises:
        TraceError: What is being handled is one.
    """
    error = sys.exc_info()[1]
    b = Builder.active()
    if isinstance(error, TraceError) or (isinstance(error, NameError) and b is not None and b.block.depth):
        raise error


def constexpr(x: Any, name: str, function: str) -> None:
    """Refuses a run-time value for a parameter that is annotated ``Constexpr``."""
    if is_traced(x) or isinstance(x, (Vector, Tensor, Pointer)):
        raise TraceError(
            f"{name} of {function} is a compile-time parameter (Constexpr), and got {describe(x)}",
            Builder.current().location(),
            "pass a value that is known while tracing, or annotate the parameter with its number type",
        )


def is_traced_range(range_: Any, args: Sequence[Any], keywords: dict[str, Any]) -> bool:
    """Whether ``range(...)`` is a loop at run time."""
    return range_ is range and (bool(keywords) or any(isinstance(a, (Numeric, Value)) for a in args))


def plain_range(range_: Any, way: str, *args: Any, **keywords: Any) -> Any:
    """The iterable of a loop that must be Python's, because of a statement in it."""
    if is_traced_range(range_, args, keywords):
        raise TraceError(
            f"{way} {'of' if way == 'else' else 'inside'} a loop whose bounds are known only at run time",
            Builder.current().location(),
            f"{_FIX[way]}, or use fx.range_constexpr with compile-time bounds",
        )
    items = range_(*args, **keywords)
    refuse_endless(items)
    return items


def explain(error: NameError, b: Builder, root: object | None = None) -> TraceError | None:
    """The error for a variable that a branch or loop left without a value; ``None`` for any other name."""
    import re

    found = re.search(r"'(\w+)'", str(error))
    where = author_location(error, root)
    if found is None or where is None:
        return None
    reason = b.unset.get((where.frames[0].file, found[1]))
    if reason is None:
        return None
    text, fix = reason
    return TraceError(f"{found[1]} has no value here: {text}", where, fix)


def author_location(error: BaseException, root: object | None = None) -> Location | None:
    """Where an error was raised in the author's code, from its traceback.

    Args:
        error: The error.
        root: Code object of the outermost function to name.
    """
    tb = error.__traceback__
    key: list[Any] = []
    while tb is not None:
        code = tb.tb_frame.f_code
        if code is root:
            key = []
        if is_author_file(code.co_filename):
            key = [code, tb.tb_lineno, *key]
        tb = tb.tb_next
    return Location(frames_of(key)) if key else None
