"""How much a kernel may trace: a loop without an end is an error, not a full memory."""

from __future__ import annotations

import os

from ..errors import TraceError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .location import Location

#: Operations of one kernel, unless ``FLYLLVM_TRACE_LIMIT`` says otherwise.  LLVM would take minutes over them.
DEFAULT = 250_000
VARIABLE = "FLYLLVM_TRACE_LIMIT"


def trace_limit() -> int:
    """Operations that a kernel may have, and iterations that a loop may be unrolled to.

    Raises:
        TraceError: The variable is no positive number.
    """
    text = os.environ.get(VARIABLE)
    if not text:
        return DEFAULT
    if not text.isdecimal() or int(text) < 1:
        raise TraceError(f"{VARIABLE}={text!r}", fix="set it to a positive number of operations")
    return int(text)


def too_much(what: str, where: Location) -> TraceError:
    """The error of a kernel that traces without an end, with the loops it is inside of."""
    loops = [place for frame in where.frames for place in _loops_around(frame.file, frame.line)]
    inside = f", in the loop at {', inside the one at '.join(loops)}" if loops else ""
    return TraceError(
        f"{what}{inside}",
        where,
        "Python runs such a loop while tracing: end it, write a loop of the GPU (range(fx.Int32(n)), or a while whose "
        f"condition is known at run time), or set {VARIABLE} to a larger number",
    )


def _loops_around(file: str, line: int) -> list[str]:
    """``file:line`` of the loops of the source that hold a line, the innermost first."""
    import ast
    import linecache

    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return []
    kinds = (ast.For, ast.While, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
    found = [n for n in ast.walk(tree) if isinstance(n, kinds) and n.lineno <= line <= (n.end_lineno or 0)]
    functions = [
        n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.lineno <= line <= (n.end_lineno or 0)
    ]
    own = max((f.lineno for f in functions), default=0)
    return [f"{file}:{n.lineno}" for n in sorted(found, key=lambda n: n.lineno, reverse=True) if n.lineno >= own]
