"""Small questions about values, names and code that `world` asks."""

from __future__ import annotations

import sys
from types import CodeType

from ..watch import _is_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Opcode that brings a module into a function while it runs.
_IMPORT_NAME = 108 if sys.version_info < (3, 13) else None


def plain(x: Any, cls: type) -> bytes | str | None:
    """The text of a number, string or constant; ``None`` for anything else."""
    if cls is str:
        return str(x)
    if cls is int or cls is bool or x is None or x is ... or x is NotImplemented:
        return repr(x)
    if cls is float:
        return float.hex(x)
    if cls is complex:
        return f"{x.real.hex()} {x.imag.hex()}"
    return bytes(x) if cls is bytes else None


def bare(x: Any) -> Any:
    """A number or string of a class of its own, as a plain one."""
    if isinstance(x, int):
        return int.__index__(x)
    if isinstance(x, float):
        return float.__float__(x)
    return str.__str__(x) if isinstance(x, str) else bytes.__getitem__(x, slice(None))


def all_names(code: CodeType) -> set[str]:
    out = set(code.co_names)
    for const in code.co_consts:
        if isinstance(const, CodeType):
            out |= all_names(const)
    return out


def imports(code: CodeType) -> list[str]:
    """Modules that code imports while it runs, those of flyllvm and ``math`` left out."""
    op = _IMPORT_NAME
    if op is None:
        import opcode

        op = opcode.opmap["IMPORT_NAME"]
    raw = code.co_code
    if op not in raw[::2]:
        return []
    out = []
    for i in range(0, len(raw), 2):
        if raw[i] == op:
            name = code.co_names[raw[i + 1]] if raw[i + 1] < len(code.co_names) and len(code.co_names) < 256 else "?"
            if name.partition(".")[0] not in ("flyllvm", "math", "__future__"):
                out.append(name)
    return out


def slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))


def is_python_made(cls: type) -> bool:
    """Whether all that an object of the class holds is in its fields: not so for a library's classes, written in C."""
    module = sys.modules.get(cls.__module__)
    return module is not None and not _is_library(module)
