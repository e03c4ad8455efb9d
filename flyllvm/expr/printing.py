"""``printf`` on the device."""

from __future__ import annotations

import sys

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from .leaves import IntTuple
from .numeric import Numeric, as_numeric
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Types of run-time numbers that are printed.
_PRINTED = frozenset((t.I1, t.I8, t.I16, t.I32, t.I64, t.F16, t.BF16, t.F32, t.F64))


def _has_conversion(text: str) -> bool:
    """Whether a text holds a conversion of C's printf; ``%%`` and a lone percent sign are text."""
    import re  # most kernels print nothing

    return re.search(r"(?<!%)%[-+#0-9.]*(hh|h|ll|l|z)?[diuxXofFeEgGcsp]\b", text) is not None


def _shown(x: Any, out: list[Numeric]) -> str:
    """The text of one argument; run-time numbers go to ``out`` and leave ``{}``."""
    if isinstance(x, str):
        return x.replace("{", "{{").replace("}", "}}")
    if isinstance(x, Vector):
        return "[" + ", ".join(_shown(x[i], out) for i in range(x.count)) + "]"
    if isinstance(x, (tuple, list, IntTuple)):
        return "(" + ",".join(_shown(v, out) for v in x) + ")"
    if isinstance(x, (bool, int, float, Numeric)):
        number = as_numeric(x)
        known = number.static_value()
        if known is not None:
            return str(known)
        if number.ir not in _PRINTED:
            raise TraceError(
                f"printf of a {type(number).__name__}",
                Builder.current().location(),
                f"convert it first, for example with .to(fx.{'Float32' if number.signed is None else 'Int32'})",
            )
        out.append(number)
        return "{:u}" if number.signed is False and number.width > 1 else "{}"
    return str(x).replace("{", "{{").replace("}", "}}")


def lowered(args: tuple[Any, ...], format_str: str) -> tuple[str, list[Numeric]]:
    """The format with ``{}`` for each run-time number (``{:u}`` for an unsigned one), and those numbers.

    Raises:
        TraceError: The format has another number of ``{}`` than there are arguments, or a number is too wide or too
            narrow to be printed.
    """
    values: list[Numeric] = []
    if not format_str:
        if len(args) > 1 and isinstance(args[0], str) and _has_conversion(args[0]):
            raise TraceError(
                f"printf({args[0]!r}) with {len(args) - 1} arguments",
                Builder.current().location(),
                "write {} for each argument, whatever its type",
            )
        return " ".join(_shown(a, values) for a in args), values
    pieces = _pieces(format_str)
    if _has_conversion(format_str):
        raise TraceError(
            f"printf({format_str!r}) with a conversion of C",
            Builder.current().location(),
            "write {} for each argument, whatever its type, and %% for a percent sign in front of a letter",
        )
    if pieces is None or len(pieces) - 1 != len(args):
        raise TraceError(
            f"printf({format_str!r}) with {len(args)} arguments",
            Builder.current().location(),
            "write one {} for each argument, and {{ for a brace",
        )
    text = pieces[0] + "".join([_shown(a, values) + p for a, p in zip(args, pieces[1:], strict=True)])
    return text, values


def _pieces(text: str) -> list[str] | None:
    """A format cut at its ``{}``; doubled braces stay doubled.  ``None`` where a brace stands alone."""
    out, i = [""], 0
    while i < len(text):
        two = text[i : i + 2]
        if two in ("{{", "}}"):
            out[-1] += two
        elif two == "{}":
            out.append("")
        elif text[i] in "{}":
            return None
        else:
            out[-1] += text[i]
            i -= 1
        i += 2
    return out


def printf(*args: Any, format_str: str = "") -> None:
    """Prints a line from every active lane after the launch; in a host function, when its Python code runs.

    ``printf("i = {}", i)`` or ``printf(i, format_str="i = {}")``.  Layouts, tuples and vectors print as text.

    Args:
        args: What to print; the first may be the format, if it holds ``{}``.
        format_str: The format: one ``{}`` for each argument.  Without one, arguments are separated by spaces.
    """
    if not format_str and args and isinstance(args[0], str) and "{" in args[0]:
        format_str, args = args[0], args[1:]
    text, values = lowered(args, format_str)
    if Builder.current().kernel.attrs.get("host"):
        # All values of host code are known; what is left are the doubled braces of a format.
        sys.stdout.write(text.replace("{{", "{").replace("}}", "}") + "\n")
        return
    Builder.current().emit("gpu.printf", [v.ir_value() for v in values], (), {"format": text})
