"""Modules of libraries in the sum of `world`: what code names of them, and that it gives the same on the next call."""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, ModuleType

from ..followed import is_followed, is_library
from ..pure import impure, is_code
from .parts import Unknown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .world import Walk

_OURS = "flyllvm."


def add_used(walk: Walk, value: Any, chains: tuple[tuple[str, ...], ...]) -> None:
    """Adds a value of which code reads some attributes."""
    if not isinstance(value, ModuleType) or not is_library(value) or () in chains:
        walk.value(value)
        return
    ours = value.__name__.startswith(_OURS[:-1])
    for chain in chains:
        if ours:
            _add_word(walk, value, chain)
        else:
            walk.put("chain", value.__name__, *chain)
            add_chain(walk, value, chain)


def _add_word(walk: Walk, found: Any, chain: tuple[str, ...]) -> None:
    """Adds what somebody has put in the place of a word of the language; those not loaded yet are our own."""
    for name in chain:
        found = vars(found).get(name)
        if not isinstance(found, ModuleType) or not is_library(found):
            break
    home = getattr(found, "__module__", None) or getattr(found, "__name__", "")
    if found is None or type(found).__module__.startswith(_OURS):
        return
    if isinstance(found, FunctionType) and is_followed(found):
        home = ""
    if isinstance(found, ModuleType) and not is_library(found):
        walk.value(found)
    elif isinstance(home, str) and home.startswith(_OURS[:-1]):
        refuse(impure(found))
    else:
        walk.put("chain", *chain)
        walk.value(found)


def add_chain(walk: Walk, found: Any, chain: tuple[str, ...]) -> None:
    """Adds what attributes of a library's module lead to, one after the other."""
    for name in chain:
        module, found = found, getattr(found, name, None)
        if name not in vars(module):
            refuse(impure(module))  # it may work the value out
        if not isinstance(found, ModuleType) or not is_library(found):
            break
    # A library's constants go with its version; so do flyllvm's objects.
    kind = type(found)
    if isinstance(found, (ModuleType, FunctionType, BuiltinFunctionType, type)):
        walk.value(found)
    elif not is_code(found) and not kind.__module__.startswith(_OURS):
        walk.value(found)
    else:
        refuse(impure(found))


def refuse(what: str | None) -> None:
    """Refuses what is not known to give the same for the same arguments."""
    if what is not None:
        raise Unknown(f"{what}: it may give something else on the next call")
