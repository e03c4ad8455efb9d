"""What the author's code can change inside a branch or loop body: its variables and the containers it reaches.

The bodies share their variables with the function around them through closure cells, so a hook can read, set and
empty them.  Lists, dicts, sets and objects of the author's classes are changed in place: their content is noted
before a body runs and put back after it.
"""

from __future__ import annotations

from types import CodeType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from ..ir.location import is_author_file

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CellType


class _Unset:
    def __repr__(self) -> str:
        return "unset"


#: Stands for a variable without a value.
UNSET: Any = _Unset()

_SKIP, _LIST, _DICT, _SET, _TUPLE, _FUNCTION, _METHOD, _OBJECT = range(8)
_KINDS: dict[type, int] = {
    list: _LIST, dict: _DICT, set: _SET, tuple: _TUPLE, FunctionType: _FUNCTION, MethodType: _METHOD,
}  # fmt: skip


def _kind(cls: type) -> int:
    found = _KINDS.get(cls)
    if found is None:
        found = _KINDS[cls] = _kind_of(cls)
    return found


def _kind_of(cls: type) -> int:
    for base, kind in ((list, _LIST), (dict, _DICT), (set, _SET), (tuple, _TUPLE)):
        if issubclass(cls, base):
            return kind
    if not cls.__dictoffset__ or issubclass(cls, type) or hasattr(cls, "__fly_flatten__"):
        return _SKIP
    # A class is the author's when its functions are written in a file of theirs, or when it has none.
    files = {f.__code__.co_filename for f in vars(cls).values() if type(f) is FunctionType}
    written = [f for f in files if not f.startswith("<")]
    if cls.__module__ == "builtins" or cls.__module__.startswith("flyllvm"):
        return _SKIP
    return _OBJECT if all(is_author_file(f) and not _installed(f) for f in written) else _SKIP


def _installed(path: str) -> bool:
    import os

    return "site-packages" in path or "dist-packages" in path or path.startswith(os.path.dirname(os.__file__))


class Container:
    """A list, dict, set or object that a body can reach.

    Attributes:
        name: The variable it was reached through.
        object: Itself.
        kind: How it holds its content.
    """

    __slots__ = ("kind", "name", "object")

    def __init__(self, name: str, object: Any, kind: int) -> None:
        self.name = name
        self.kind = kind
        self.object = vars(object) if kind == _OBJECT else object

    def content(self) -> Any:
        """A shallow copy of what it holds: a list, dict or set."""
        if self.kind == _LIST:
            return list(self.object)
        return set(self.object) if self.kind == _SET else dict(self.object)

    def put(self, content: Any) -> None:
        """Makes it hold exactly this content."""
        held = self.object
        if self.kind == _LIST:
            held[:] = content
            return
        held.clear()
        held.update(content)

    def keys(self, content: Any) -> list[Any]:
        """Where its items are."""
        return list(range(len(content))) if self.kind == _LIST else [] if self.kind == _SET else list(content)

    def same_frame(self, a: Any, b: Any) -> bool:
        """Whether two contents have the same places."""
        return len(a) == len(b) if self.kind == _LIST else a == b if self.kind == _SET else a.keys() == b.keys()

    def describe(self, content: Any) -> str:
        """A content in an error message."""
        if self.kind == _OBJECT:
            return f"the attributes {sorted(content)}"
        if self.kind == _LIST:
            return f"{len(content)} elements"
        return f"the {'keys' if self.kind == _DICT else 'elements'} {sorted(map(str, content))}"


class Snapshot:
    """Values of variables and contents of containers at one moment."""

    __slots__ = ("cells", "contents")

    def __init__(self, cells: dict[str, Any], contents: list[Any]) -> None:
        self.cells = cells
        self.contents = contents


class State:
    """All that some bodies can change.

    Attributes:
        cells: Their assigned variables.
        containers: Containers that they reach.
    """

    __slots__ = ("_file", "cells", "containers")

    def __init__(self, bodies: Sequence[Callable[..., Any]], names: Sequence[str]) -> None:
        every: dict[str, CellType] = {}
        for body in bodies:
            every.update(zip(body.__code__.co_freevars, body.__closure__ or ()))
        self.cells = {n: every[n] for n in names if n in every}
        self._file = bodies[0].__code__.co_filename
        self.containers = _reach(bodies)

    @property
    def file(self) -> str:
        """The file the bodies are written in."""
        return self._file

    def snapshot(self) -> Snapshot:
        """What everything is now."""
        return Snapshot({n: read(c) for n, c in self.cells.items()}, [c.content() for c in self.containers])

    def restore(self, s: Snapshot) -> None:
        """Puts everything back."""
        for name, cell in self.cells.items():
            write(cell, s.cells[name])
        for container, content in zip(self.containers, s.contents):
            container.put(content)


def read(cell: CellType) -> Any:
    """A variable's value, ``UNSET`` when it has none."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNSET


def write(cell: CellType, value: Any) -> None:
    """Sets a variable, or takes its value away."""
    if value is not UNSET:
        cell.cell_contents = value
    elif read(cell) is not UNSET:
        del cell.cell_contents


def _reach(bodies: Sequence[Callable[..., Any]]) -> list[Container]:
    """Containers that functions can reach through their variables, and functions that those can call."""
    found: list[Container] = []
    seen: set[int] = set()
    stack: list[tuple[str, Any]] = []
    for body in bodies:
        stack += _variables(body)
    while stack:
        name, value = stack.pop()
        kind = _kind(type(value))
        if kind == _SKIP or id(value) in seen:
            continue
        seen.add(id(value))
        if kind == _FUNCTION:
            if is_author_file(value.__code__.co_filename) and not _installed(value.__code__.co_filename):
                stack += _variables(value)
        elif kind == _METHOD:
            stack += [(name, value.__self__), (name, value.__func__)]
        elif kind == _TUPLE:
            stack += [(name, v) for v in value]
        else:
            held = Container(name, value, kind)
            found.append(held)
            items = held.object.values() if kind in (_DICT, _OBJECT) else held.object
            stack += [(name, v) for v in items]
    return found


#: id of a code object -> (itself, to keep it alive; names of globals that it and the code inside it read).
_GLOBALS: dict[int, tuple[CodeType, tuple[str, ...]]] = {}


def _variables(f: Any) -> list[tuple[str, Any]]:
    """Variables that a function can read."""
    code = f.__code__
    known = _GLOBALS.get(id(code))
    if known is None:
        known = _GLOBALS[id(code)] = (code, tuple(dict.fromkeys(_names(code))))
    out = [(n, read(c)) for n, c in zip(code.co_freevars, f.__closure__ or ())]
    namespace = f.__globals__
    out += [(n, namespace[n]) for n in known[1] if n in namespace]
    return out + [(f.__name__, d) for d in f.__defaults__ or ()]


def _names(code: CodeType) -> list[str]:
    inner = [n for c in code.co_consts if type(c) is CodeType for n in _names(c)]
    return [*code.co_names, *inner]
