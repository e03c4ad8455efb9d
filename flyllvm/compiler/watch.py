"""What a function reads besides its arguments: globals, closures and defaults, helpers included.

A compilation or a record of launches may be used again only while all of these are what they were.  The names come
from the bytecode of the function and of every function of the author's that it can reach; the check of an unchanged
world is one look-up per name.
"""

from __future__ import annotations

import os
import sys
from opcode import opmap
from types import CodeType, FunctionType, MethodType, ModuleType

from .freeze import Unfreezable, freeze, holds_data

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MISSING = object()
_STDLIB = os.path.dirname(os.__file__) + os.sep
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_KERNELS = os.path.join(_OURS, "kernels") + os.sep
_MAX_FUNCTIONS = 1000
_IMMUTABLE = (int, float, str, bytes, bool, complex, type(None), CodeType)


class Watch:
    """The world a function was seen in.

    Attributes:
        why_not: Why the world cannot be watched, or ``None``; such a function is traced again on every call.
    """

    __slots__ = ("_entries", "_frozen", "_functions", "why_not")

    def __init__(self, *roots: Any) -> None:
        names: frozenset[str] = frozenset()
        while True:
            # An object handed to a helper is read by the helper's names, so every walk uses the names of all functions.
            walk = _Walk(names)
            for root in roots:
                walk.reach(root)
            walk.run()
            if walk.found <= names or walk.why_not is not None:
                break
            names |= walk.found
        self.why_not = walk.why_not
        self._entries = walk.entries
        self._frozen = walk.frozen
        self._functions = walk.functions

    def covers(self, fn: Any) -> bool:
        """Whether what a function reads is part of this."""
        return self._functions.get(id(fn)) is fn

    def valid(self) -> bool:
        """Whether everything is as it was."""
        if self.why_not is not None:
            return False
        for space, name, value in self._entries:
            now = space.get(name, _MISSING)
            if now is not value and not _same(now, value):
                return False
        for value, key in self._frozen:
            try:
                if freeze(value) != key:
                    return False
            except Unfreezable:
                return False
        return True


class _Walk:
    """One walk over what functions reach.

    Attributes:
        found: Names that the functions read.
        entries: (namespace, name, value) compared by identity.
        frozen: (object, its contents) for what can change in place.
        functions: Functions that were gone through, by id.
        why_not: See `Watch`.
    """

    __slots__ = ("_names", "_seen", "_spaces", "_todo", "entries", "found", "frozen", "functions", "why_not")

    def __init__(self, names: frozenset[str]) -> None:
        self._names = names
        self.found: frozenset[str] = frozenset()
        self.entries: list[tuple[Any, str, Any]] = []
        self.frozen: list[tuple[Any, Any]] = []
        self.functions: dict[int, FunctionType] = {}
        self.why_not: str | None = None
        self._seen: dict[int, Any] = {}
        self._spaces: dict[int, tuple[Any, set[str]]] = {}
        self._todo: list[FunctionType] = []

    def run(self) -> None:
        """Goes through the functions reached so far, and those that they reach."""
        for _ in range(_MAX_FUNCTIONS):
            if not self._todo:
                return
            self._function(self._todo.pop())
        self.why_not = f"it reaches more than {_MAX_FUNCTIONS} functions"

    def reach(self, value: Any) -> None:
        """Follows a value that a function can read."""
        cls = type(value)
        if cls in _IMMUTABLE or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        inner = getattr(value, "fn", None)
        if cls is FunctionType:
            if _is_followed(value):
                self._todo.append(value)
        elif cls is MethodType:
            self.reach(value.__func__)
            self.reach(value.__self__)
        elif isinstance(value, ModuleType):
            if not _is_library(value):
                self._attributes(vars(value))
        elif isinstance(value, type):
            if _is_followed_class(value):
                for base in value.__mro__[:-1]:
                    self._attributes(base.__dict__)
        elif type(inner) is FunctionType and cls.__module__.startswith("flyllvm."):
            self.reach(inner)  # a kernel or host function
        else:
            self._contents(value, cls)

    def _function(self, fn: FunctionType) -> None:
        self.functions[id(fn)] = fn
        self.found |= _names(fn.__code__)
        scope = fn.__globals__
        for name in _globals(fn.__code__):
            # A name that is not there is one of Python's own, until somebody defines it.
            self._entry(scope, name, scope.get(name, _MISSING))
        for cell in fn.__closure__ or ():
            try:
                self._entry(_Cell(cell), "", cell.cell_contents)
            except ValueError:  # not assigned yet
                continue
        for value in (*(fn.__defaults__ or ()), *(fn.__kwdefaults__ or {}).values()):
            self.reach(value)

    def _entry(self, space: Any, name: str, value: Any) -> None:
        _, done = self._spaces.setdefault(id(space), (space, set()))
        if name not in done:
            done.add(name)
            self.entries.append((space, name, value))
        if value is not _MISSING:
            self.reach(value)

    def _attributes(self, space: Any) -> None:
        for name in self._names.intersection(space):
            raw = space[name]
            self._entry(space, name, raw)
            for wrapped in (getattr(raw, "__func__", None), getattr(raw, "fget", None)):
                if wrapped is not None:
                    self.reach(wrapped)

    def _contents(self, value: Any, cls: type) -> None:
        state = getattr(value, "__dict__", None)
        if isinstance(state, dict) and not cls.__module__.startswith("flyllvm.") and not holds_data(value):
            self._attributes(state)
            self.reach(cls)
            return
        if isinstance(value, (tuple, list, set, frozenset)):
            for part in value:
                self.reach(part)
        elif isinstance(value, dict):
            for part in value.values():
                self.reach(part)
        try:
            key = freeze(value)
        except Unfreezable as e:
            self.why_not = f"it reads {e}"
            return
        if not isinstance(value, frozenset):
            self.frozen.append((value, key))


def has_world(value: Any) -> bool:
    """Whether code that gets a value may read more than its contents: a function, or an object with methods."""
    return callable(value) or hasattr(value, "__dict__")


def _same(now: Any, before: Any) -> bool:
    """Whether two plain values are equal; others are by identity."""
    return type(now) is type(before) and type(now) in _IMMUTABLE and freeze(now) == freeze(before)


class _Cell:
    """A closure cell as a namespace of one name."""

    __slots__ = ("_cell",)

    def __init__(self, cell: Any) -> None:
        self._cell = cell

    def get(self, name: str, default: Any) -> Any:
        """What the cell holds."""
        del name
        try:
            return self._cell.cell_contents
        except ValueError:
            return default


_NAMES: dict[CodeType, frozenset[str]] = {}


def _names(code: CodeType) -> frozenset[str]:
    """Names of globals and attributes that code reads, with that of the functions inside it."""
    found = _NAMES.get(code)
    if found is None:
        out = set(code.co_names)
        for const in code.co_consts:
            if isinstance(const, CodeType):
                out |= _names(const)
        found = _NAMES[code] = frozenset(out)
    return found


_GLOBALS: dict[CodeType, tuple[str, ...]] = {}
_LOADS = {opmap["LOAD_GLOBAL"]: 1, opmap["LOAD_NAME"]: 0}  # opcode -> bits of its argument before the name's number
if "LOAD_FROM_DICT_OR_GLOBALS" in opmap:  # Python 3.12: class bodies inside functions
    _LOADS[opmap["LOAD_FROM_DICT_OR_GLOBALS"]] = 0
_EXTENDED = opmap["EXTENDED_ARG"]


def _globals(code: CodeType) -> tuple[str, ...]:
    """Names of the globals that code reads, with those of the functions inside it.

    ``co_names`` holds attribute names too, and a global that happens to be called like an attribute is none of ours.
    """
    found = _GLOBALS.get(code)
    if found is None:
        names: dict[str, None] = {}
        raw, high = code.co_code, 0
        for i in range(0, len(raw), 2):
            op, arg = raw[i], raw[i + 1] | high
            high = arg << 8 if op == _EXTENDED else 0
            if op in _LOADS:
                names[code.co_names[arg >> _LOADS[op]]] = None
        for const in code.co_consts:
            if isinstance(const, CodeType):
                names.update(dict.fromkeys(_globals(const)))
        found = _GLOBALS[code] = tuple(names)
    return found


def _is_followed(fn: FunctionType) -> bool:
    """Whether a function may depend on what an author changes: not those of libraries that know nothing of us."""
    file = fn.__code__.co_filename
    if file.startswith(_KERNELS):
        return True
    if file.startswith((_OURS, "<frozen")):
        return False
    if any(p in file for p in _PACKAGES):
        return _uses_us(fn.__globals__)
    return not file.startswith(_STDLIB)


def _is_followed_class(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return module is not None and cls.__module__ != "builtins" and not _is_library(module)


def _is_library(module: ModuleType) -> bool:
    file: str | None = getattr(module, "__file__", None)
    if file is None:
        return module.__name__ != "__main__" and module.__name__ in sys.stdlib_module_names
    if file.startswith(_OURS):
        return not file.startswith(_KERNELS)
    if any(p in file for p in _PACKAGES):
        return not _uses_us(vars(module))
    return file.startswith(_STDLIB)


def _uses_us(scope: dict[str, Any]) -> bool:
    for value in list(scope.values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and name.split(".")[0] == "flyllvm":
            return True
    return False
