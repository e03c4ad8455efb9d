"""``flyllvm layout``: evaluates layout expressions, and draws their results."""

from __future__ import annotations

import sys

from ..errors import FlyError
from ..layout.evaluate import compute, render_value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


def _expressions(args: list[str]) -> Iterator[str]:
    """The expressions in order; ``-`` stands for the lines of standard input."""
    for arg in args:
        if arg == "-":
            for line in sys.stdin:
                yield line.rstrip("\r\n")
        else:
            yield arg


def _one_line(error: FlyError) -> str:
    text = " ".join(str(error.what).split())
    return f"{text} (fix: {' '.join(error.fix.split())})" if error.fix else text


def _print_json(rows: list[dict[str, str]]) -> None:
    import json

    sys.stdout.write(json.dumps(rows, indent=1) + "\n")


def run(args: list[str], *, json: bool = False, svg: str | None = None) -> int:
    """Evaluates expressions and prints one result a line, in input order.

    A wrong expression prints ``error: ...`` on its line and the rest goes on; a blank line stays blank.

    Args:
        args: Expressions; ``-`` reads one a line from standard input.
        json: Print one list of ``{"expr", "result"}`` or ``{"expr", "error"}`` objects instead.
        svg: File to draw the results into: layouts as grids, ``make_layout_tv`` results as thread-value grids.

    Returns:
        Exit status: 0, or 2 if there was no expression, one was wrong, or the picture could not be made.
    """
    if not args:
        sys.stderr.write("error: no expression\n  fix: flyllvm layout 'composition((4,8):(1,4), (2,4):(1,2))'\n")
        return 2
    rows: list[dict[str, str]] = []
    drawn: list[tuple[str, Any]] = []
    failed = False
    write = sys.stdout.write
    for expr in _expressions(args):
        row = {"expr": expr}
        try:
            value = compute(expr) if expr.strip() else None
            row["result"] = "" if value is None else render_value(value)
            if svg is not None and value is not None:
                drawn.append((expr, value))
        except FlyError as e:
            failed = True
            row["error"] = _one_line(e)
        if json:
            rows.append(row)
        else:
            write(f"error: {row['error']}\n" if "error" in row else row["result"] + "\n")
    if json:
        _print_json(rows)
    if svg is not None and not _draw(svg, drawn):
        failed = True
    return 2 if failed else 0


def _draw(path: str, items: list[tuple[str, Any]]) -> bool:
    """Writes the picture; says on standard error why it cannot."""
    from ..layout.svg import draw

    try:
        picture = draw(items) if items else None
        if picture is None:
            sys.stderr.write("error: nothing to draw\n  fix: give a layout expression\n")
            return False
        with open(path, "w", encoding="utf-8") as f:
            f.write(picture)
    except FlyError as e:
        sys.stderr.write(f"error: {e}\n")
        return False
    except OSError as e:
        sys.stderr.write(f"error: cannot write {path}: {e.strerror}\n  fix: give a file that can be written\n")
        return False
    return True
