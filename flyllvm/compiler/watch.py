"""What a function reads besides its arguments: globals, closures and defaults, helpers included.

A compilation or a record of launches may be used again only while all of these are what they were.  The names come
from the bytecode of the function and of every function of the author's that it can reach.  Of every object that is
read the whole look-up is watched: where a name was found, the places in front of it that do not have it, and which
places these are.  What cannot be watched is said (``why_not``), and is then neither recorded nor kept.
"""

from __future__ import annotations

from abc import get_cache_token
from operator import is_

from .followed import is_followed_class
from .freeze import Unfreezable, freeze
from .watch_walk import IMMUTABLE, MISSING, Walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .watch_walk import Spaces


class Watch:
    """The world a function was seen in.

    Attributes:
        names: Attributes that are read.
        repeats: Whether all that the functions call is known to give the same on every call.
        why_not: Why the world cannot be watched, or ``None``; such a function is traced again on every call.
    """

    __slots__ = ("_absent", "_cells", "_classes", "_code", "_facts", "_found", "_frozen", "_functions", "_orders",
                 "_roots", "_sizes", "_token", "names", "repeats",
                 "why_not")  # fmt: skip

    def __init__(self, *roots: Any) -> None:
        names: frozenset[str] = frozenset()
        every = False
        while True:
            # An object handed to a helper is read by the helper's names, so every walk uses the names of all functions.
            walk = Walk(names, every)
            try:
                for root in roots:
                    walk.reach(root)
                walk.run()
            except RecursionError:
                walk.why_not, walk.refused = "it reads values that nest too deeply", True
            if (walk.found <= names and walk.computed <= every) or walk.refused:
                break
            names |= walk.found
            every |= walk.computed
        self.names = names
        self._roots = roots
        self.why_not, self.repeats = walk.why_not, not walk.refused
        self._frozen = walk.frozen
        self._functions = walk.functions
        self._cells = walk.cells
        self._facts = walk.facts
        self._token = get_cache_token() if walk.abstract else None
        self._classes = walk.classes
        self._orders = [(cls, cls.__mro__) for cls in walk.orders]
        self._code = [(f, f.__code__, f.__defaults__, f.__kwdefaults__) for f in walk.functions.values()]
        self._found, self._absent, self._sizes = _by_space(walk.spaces)

    def covers(self, fn: Any) -> bool:
        """Whether what a function reads is part of this."""
        return self._functions.get(id(fn)) is fn or any(root is fn for root in self._roots)

    def holds(self, value: Any) -> bool:
        """Whether a global, a closure or an attribute that is read has this very object as its value."""
        if value is None:
            return False
        return any(v is value for _, _, found in self._found for v in found) or any(v is value for _, v in self._cells)

    def valid(self) -> bool:
        """Whether everything is as it was."""
        if self.why_not is not None:
            return False
        for space, names, values in self._found:
            now = [space.get(name, MISSING) for name in names]
            if not all(map(is_, now, values)) and not all(map(_same, now, values)):
                return False
        for keys, absent in self._absent:
            if not keys.isdisjoint(absent):
                return False
        return self._same_look_ups() and self._same_contents()

    def _same_look_ups(self) -> bool:
        for space, size in self._sizes:
            if len(space) != size:
                return False
        if self._token is not None and get_cache_token() != self._token:
            return False  # a class was registered with an abstract one
        for value, name, before in self._facts:
            now = getattr(value, name, MISSING)
            if now is not before and not _same(now, before):
                return False
        for value, cls in self._classes:
            if type(value) is not cls:
                return False
        for cls, order in self._orders:
            if cls.__mro__ is not order:
                return False
        for f, code, defaults, kwdefaults in self._code:
            if f.__code__ is not code or f.__defaults__ is not defaults or f.__kwdefaults__ is not kwdefaults:
                return False
        return True

    def _same_contents(self) -> bool:
        for cell, before in self._cells:
            try:
                now = cell.cell_contents
            except ValueError:  # not assigned yet
                now = MISSING
            if now is not before and not _same(now, before):
                return False
        for value, key in self._frozen:
            try:
                if freeze(value) != key:
                    return False
            except Unfreezable:
                return False
        return True


def _by_space(spaces: Spaces) -> tuple[list[Any], list[Any], list[Any]]:
    """What was found in each namespace, what is not there, and how many names a class has."""
    found, absent, sizes = [], [], []
    for space, values, missing, sized in spaces.values():
        there = {name: value for name, value in values.items() if value is not MISSING}
        gone = missing.union(name for name, value in values.items() if value is MISSING) - there.keys()
        if there:
            found.append((space, tuple(there), tuple(there.values())))
        if gone:
            absent.append((space.keys(), frozenset(gone)))
        if sized:
            sizes.append((space, len(space)))
    return found, absent, sizes


def has_world(value: Any) -> bool:
    """Whether code that gets a value may read more than its contents: a function, or an object with methods."""
    if isinstance(value, (tuple, list, set, frozenset)):
        return any(map(has_world, value))
    if isinstance(value, dict):
        return any(map(has_world, value)) or any(map(has_world, value.values()))
    return callable(value) or hasattr(value, "__dict__") or is_followed_class(type(value))


def _same(now: Any, before: Any) -> bool:
    """Whether two plain values are equal; others are by identity."""
    if now is before:
        return True
    return type(now) is type(before) and type(now) in IMMUTABLE and bool(freeze(now) == freeze(before))
