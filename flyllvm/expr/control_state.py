"""What the author's code can change inside a branch or loop body: its variables and the containers it reaches.

The bodies share their variables with the function around them through closure cells, so a hook can read, set and
empty them.  Lists, dicts, sets and objects of the author's classes are changed in place: their content is noted
before a body runs and put back after it.
"""

from __future__ import annotations

from _operator import is_
from types import CodeType, FunctionType, MethodType

from ..ir.location import is_author_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import CellType
    from typing import Any


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

    def identical(self, a: Any, b: Any) -> bool:
        """Whether two contents hold the same objects at the same places."""
        if self.kind == _LIST:
            return len(a) == len(b) and all(map(is_, a, b))
        return self.same_frame(a, b) and (self.kind == _SET or all(a[k] is b[k] for k in a))

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
        cells: Variables by name: those the bodies assign, then all others that they and the functions they can call
            read, for such a function may assign them too.
        others: Names of the latter.
        containers: Containers that they reach.
        file: The file the bodies are written in.
    """

    __slots__ = ("_globals", "cells", "containers", "file", "others")

    def __init__(self, bodies: Sequence[Callable[..., Any]], names: Sequence[str]) -> None:
        every: dict[str, CellType] = {}
        for body in bodies:
            every.update(zip(body.__code__.co_freevars, body.__closure__ or ()))
        self.cells = {n: every[n] for n in names if n in every}
        self.file = bodies[0].__code__.co_filename
        reached = _Reach(bodies)
        known = {id(c) for c in self.cells.values()}
        self.others: set[str] = set()
        for name, cell in reached.cells:
            if id(cell) not in known:
                known.add(id(cell))
                key = name
                while key in self.cells:
                    key += "'"
                self.cells[key] = cell
                self.others.add(key)
        self.containers = reached.containers
        self._globals = [(space, n, space.get(n, UNSET)) for space, n in reached.stores]

    def snapshot(self) -> Snapshot:
        """What everything is now."""
        return Snapshot({n: read(c) for n, c in self.cells.items()}, [c.content() for c in self.containers])

    def restore(self, s: Snapshot) -> None:
        """Puts everything back."""
        for name, cell in self.cells.items():
            write(cell, s.cells[name])
        for container, content in zip(self.containers, s.contents):
            container.put(content)

    def assigned_global(self) -> str | None:
        """A module global that was assigned since the start, which nothing here can put back."""
        return next((n for space, n, was in self._globals if space.get(n, UNSET) is not was), None)


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


class _Reach:
    """Variables, containers and stored globals that functions reach, with the author's functions they can call."""

    def __init__(self, bodies: Sequence[Callable[..., Any]]) -> None:
        self.containers: list[Container] = []
        self.cells: list[tuple[str, CellType]] = []
        self.stores: list[tuple[dict[str, Any], str]] = []
        self._stack: list[tuple[str, Any]] = []
        seen: set[int] = set()
        for body in bodies:
            self._function(body)
        while self._stack:
            name, value = self._stack.pop()
            kind = _kind(type(value))
            if kind == _SKIP or id(value) in seen:
                continue
            seen.add(id(value))
            self._visit(name, value, kind)

    def _visit(self, name: str, value: Any, kind: int) -> None:
        push = self._stack.append
        if kind == _FUNCTION:
            if is_author_file(value.__code__.co_filename) and not _installed(value.__code__.co_filename):
                self._function(value)
        elif kind == _METHOD:
            push((name, value.__self__))
            push((name, value.__func__))
        elif kind == _TUPLE:
            for v in value:
                push((name, v))
        else:
            held = Container(name, value, kind)
            self.containers.append(held)
            for v in held.object.values() if kind in (_DICT, _OBJECT) else held.object:
                push((name, v))
            if kind == _OBJECT:
                for v in vars(type(value)).values():
                    if type(v) is FunctionType:
                        push((name, v))

    def _function(self, f: Any) -> None:
        code, push = f.__code__, self._stack.append
        for name, cell in zip(code.co_freevars, f.__closure__ or ()):
            self.cells.append((name, cell))
            push((name, read(cell)))
        read_names, stored = _globals_of(code)
        space = f.__globals__
        for name in read_names:
            if name in space:
                push((name, space[name]))
        self.stores += [(space, name) for name in stored]
        for default in f.__defaults__ or ():
            push((f.__name__, default))


#: id of a code object -> (itself, to keep it alive; names of globals it may read; those it stores).
_GLOBALS: dict[int, tuple[CodeType, list[str], list[str]]] = {}


def _globals_of(code: CodeType) -> tuple[list[str], list[str]]:
    """Names that a code object and the code inside it may read as globals, and those it stores."""
    known = _GLOBALS.get(id(code))
    if known is None:
        reads, stores = dict.fromkeys(code.co_names), dict.fromkeys(_stored(code))
        for const in code.co_consts:
            if type(const) is CodeType:
                more = _globals_of(const)
                reads.update(dict.fromkeys(more[0]))
                stores.update(dict.fromkeys(more[1]))
        known = _GLOBALS[id(code)] = (code, list(reads), list(stores))
    return known[1], known[2]


def _stored(code: CodeType) -> list[str]:
    """Globals that the instructions of a code object assign or delete."""
    from opcode import EXTENDED_ARG, opmap

    stores = (opmap["STORE_GLOBAL"], opmap["DELETE_GLOBAL"])
    out, wide, text = [], 0, code.co_code
    for i in range(0, len(text), 2):
        arg = text[i + 1] | wide
        wide = arg << 8 if text[i] == EXTENDED_ARG else 0
        if text[i] in stores:
            out.append(code.co_names[arg])
    return out
