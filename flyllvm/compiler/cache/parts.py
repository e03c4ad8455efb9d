"""Small questions about values, names and code that `world` asks."""

from __future__ import annotations

import sys

from ..followed import is_library

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Unknown(Exception):
    """A value that cannot be taken by value; the message names it."""


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


def slots(cls: type) -> tuple[str, ...]:
    slots = cls.__dict__.get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    return tuple(n for n in names if n not in ("__dict__", "__weakref__"))


def is_python_made(cls: type) -> bool:
    """Whether all that an object of the class holds is in its fields: not so for a library's classes, written in C."""
    module = sys.modules.get(cls.__module__)
    return module is not None and not is_library(module)


def is_found(cls: type, module: Any) -> bool:
    """Whether a class is what its module has under its name: not so for one made at run time, like a struct."""
    found: Any = module
    for name in cls.__qualname__.split("."):
        found = getattr(found, "__dict__", {}).get(name)
    return found is cls
