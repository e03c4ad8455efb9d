"""What a function reads besides its arguments: globals, closures and defaults, helpers included.

A compilation or a record of launches may be used again only while all of these are what they were.  The names come
from the bytecode of the function and of every function of the author's that it can reach; the check of an unchanged
world is one look-up per name.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FunctionType, MethodType, ModuleType

from .followed import is_followed, is_followed_class, is_library
from .freeze import Unfreezable, freeze, holds_data, is_partial
from .watch_names import reads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MISSING = object()
_MAX_FUNCTIONS = 1000
#: Names of Python that read attributes whose names are not in the code.
_DYNAMIC = frozenset(
    ("getattr", "vars", "asdict", "astuple", "attrgetter", "__dict__", "__getattribute__", "__match_args__")
)
#: Attributes under which wrappers keep a function.
_WRAPPERS = ("__func__", "fget", "func", "__wrapped__")
_METHODS = (FunctionType, staticmethod, classmethod, property)
_CONTAINERS = (tuple, list, set, frozenset, dict)
_ENVIRONMENT = frozenset(("environ", "getenv"))
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

    def holds(self, value: Any) -> bool:
        """Whether a global, a closure or an attribute that is read has this very object as its value."""
        return value is not None and any(found is value for _, _, found in self._entries)

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
            if is_followed(value):
                self._todo.append(value)
        elif cls is MethodType:
            self.reach(value.__func__)
            self.reach(value.__self__)
        elif is_partial(cls):
            for part in (value.func, value.args, value.keywords):
                self.reach(part)
            self._freeze(value)
        elif isinstance(value, ModuleType):
            if not is_library(value):
                self._attributes(vars(value))
        elif isinstance(value, type):
            self._class(value)
        elif type(inner) is FunctionType and cls.__module__.startswith("flyllvm."):
            self.reach(inner)  # a kernel or host function
        else:
            self._contents(value, cls)

    def _function(self, fn: FunctionType) -> None:
        self.functions[id(fn)] = fn
        reads, scope = reads_of(fn.__code__), fn.__globals__
        self.found |= reads.names
        # A name that is not there is one of Python's own, until somebody defines it.
        for name in (*reads.globals, *(sorted(reads.strings) if "globals" in reads.names else ())):
            self._entry(scope, name, scope.get(name, _MISSING))
        for name in reads.imports:
            # A relative import has the rest of the name; an import that has not happened yet is seen when it has.
            for full in (name, f"{scope.get('__package__') or ''}.{name}".strip(".")):
                if full in sys.modules:
                    self._entry(sys.modules, full, sys.modules[full])
        if not _ENVIRONMENT.isdisjoint(reads.names):
            self.reach(os.environ)
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

    def _class(self, cls: type) -> None:
        if not is_followed_class(cls):
            return
        if type(cls) is not type:
            self._class(type(cls))
        for base in cls.__mro__[:-1]:
            if not is_followed_class(base):
                continue
            # Operators, `with`, `for` and calls use these without their names in the code.
            special = [n for n, raw in base.__dict__.items() if n[:2] == "__" == n[-2:] and type(raw) in _METHODS]
            self._attributes(base.__dict__, special)
            if isinstance(places := base.__dict__.get("__match_args__"), tuple):
                self.found |= frozenset(places)

    def _attributes(self, space: Any, more: Any = ()) -> None:
        for name in self._names.intersection(space).union(more):
            raw = space[name]
            self._entry(space, name, raw)
            for wrapper in _WRAPPERS:
                wrapped = getattr(raw, wrapper, None)
                if wrapped is not None:
                    self.reach(wrapped)

    def _contents(self, value: Any, cls: type) -> None:
        state = getattr(value, "__dict__", None)
        if isinstance(state, dict) and not cls.__module__.startswith("flyllvm.") and not holds_data(value):
            self._attributes(state)
            self.reach(cls)
            self.reach(getattr(value, "__wrapped__", None))
            # Methods of a library, and reads by computed names, may look at every attribute; where one cannot be
            # compared, those that the code names must do.
            if not is_followed_class(cls) or not self._names.isdisjoint(_DYNAMIC):
                self._freeze(value, needed=False)
            if not isinstance(value, _CONTAINERS):
                return
        if isinstance(value, (tuple, list, set, frozenset)):
            for part in value:
                self.reach(part)
        elif isinstance(value, dict):
            for part in value.values():
                self.reach(part)
        self._freeze(value)

    def _freeze(self, value: Any, needed: bool = True) -> None:
        try:
            key = freeze(value)
        except Unfreezable as e:
            if needed:
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
