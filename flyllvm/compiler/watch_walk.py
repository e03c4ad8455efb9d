"""The walk of `watch` over functions, and over the modules, classes and objects that they name."""

from __future__ import annotations

import builtins
import os
import sys
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from .followed import is_followed, is_followed_class, is_library
from .freeze import Unfreezable, freeze, holds_data, is_partial, slots_of
from .pure import GETTERS, impure, is_code
from .watch_names import reads_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    #: Id of a namespace -> (namespace, values by name, names that are not there, whether any new name counts).
    Spaces = dict[int, tuple[Any, dict[str, Any], set[str], bool]]

MISSING = object()
_MAX_FUNCTIONS = 1000
_METHODS = (FunctionType, staticmethod, classmethod, property)
_CONTAINERS = (tuple, list, set, frozenset, dict)
_ENVIRONMENT = frozenset(("environ", "getenv"))
IMMUTABLE = (int, float, str, bytes, bool, complex, type(None), type(...), type(NotImplemented), CodeType)
#: What functions and classes say of themselves, outside of their attributes.
_FACTS = ("__annotations__", "__doc__", "__module__", "__name__", "__qualname__")
#: Modules of classes whose methods read no attributes on their own.
_BARE = frozenset(("builtins", "abc", "typing"))


class Walk:
    """One walk over what functions reach.

    Attributes:
        found: Names that the functions read.
        computed: Whether they read by names that are not in the code, so that all attributes count.
        spaces: What was found in namespaces.
        abstract: Whether an abstract class is read, with which others can be registered.
        facts: (function or class, name of what it says of itself, the value).
        cells: (closure cell, its contents).
        classes: (object, its class).
        orders: Classes whose order of look-up counts.
        frozen: (object, its contents) for what can change in place.
        functions: Functions that were gone through, by id.
        refused: Whether they call what is not known to give the same on every call.
        why_not: See `Watch`.
    """

    __slots__ = ("_all", "_names", "_seen", "_todo", "abstract", "cells", "classes", "computed", "facts", "found",
                 "frozen", "functions", "orders", "refused", "spaces", "why_not")  # fmt: skip

    def __init__(self, names: frozenset[str], every: bool) -> None:
        self._names, self._all = names, every
        self.computed = self.abstract = self.refused = False
        self.facts: list[tuple[Any, str, Any]] = []
        self.found: frozenset[str] = frozenset()
        self.spaces: Spaces = {}
        self.cells: list[tuple[Any, Any]] = []
        self.classes: list[tuple[Any, type]] = []
        self.orders: dict[type, None] = {}
        self.frozen: list[tuple[Any, Any]] = []
        self.functions: dict[int, FunctionType] = {}
        self.why_not: str | None = None
        self._seen: dict[int, Any] = {}
        self._todo: list[FunctionType] = []

    def run(self) -> None:
        """Goes through the functions reached so far, and those that they reach."""
        for _ in range(_MAX_FUNCTIONS):
            if not self._todo:
                return
            self._function(self._todo.pop())
        self.refused = True
        self.why_not = f"it reaches more than {_MAX_FUNCTIONS} functions"

    def reach(self, value: Any) -> None:
        """Follows a value that a function can read."""
        cls = type(value)
        if cls in IMMUTABLE or id(value) in self._seen:
            return
        self._seen[id(value)] = value
        if cls is FunctionType:
            if is_followed(value):
                self._todo.append(value)
            else:
                self._library_function(value)
        elif cls is MethodType:
            self.reach(value.__func__)
            self.reach(value.__self__)
        elif cls is BuiltinFunctionType:
            self._refuse(impure(value))
            self.computed |= value in GETTERS
            if not isinstance(value.__self__, (ModuleType, type)):
                self.reach(value.__self__)
        elif is_partial(cls):
            for part in (value.func, value.args, value.keywords):
                self.reach(part)
            self._freeze(value)
        elif isinstance(value, ModuleType):
            self._module(value)
        elif isinstance(value, type):
            self._class(value)
        elif cls.__module__.startswith("flyllvm.") and type(getattr(value, "fn", None)) is FunctionType:
            # A kernel or host function, with its options.
            self.reach(self._entry(value.__dict__, "fn", value.fn))
            for options in (getattr(value, "options", None), getattr(value, "hints", None)):
                if isinstance(options, dict):
                    self._space(options, sized=True)[0].update(options)
        else:
            self._contents(value, cls)

    def _refuse(self, what: str | None) -> None:
        if what is not None and not self.refused:
            self.refused = True
            self.why_not = f"it reads {what}, which may give something else on the next call"

    # --- functions ----------------------------------------------------------------------------------

    def _function(self, fn: FunctionType) -> None:
        self.functions[id(fn)] = fn
        reads, scope = reads_of(fn.__code__), fn.__globals__
        self.found |= reads.names
        self.computed |= reads.computed
        self._attributes(fn.__dict__)
        self._named(fn)
        cells = dict(zip(fn.__code__.co_freevars, fn.__closure__ or ()))
        for name, cell in cells.items():
            try:
                value = cell.cell_contents
            except ValueError:  # not assigned yet
                value = MISSING
            self.cells.append((cell, value))
            self._used(value, reads.chains.get(name, ((),)))
        # A name that is not there is one of Python's own, until somebody defines it.
        for name in reads.globals:
            space: Any = scope if name in scope or not hasattr(builtins, name) else vars(builtins)
            if space is not scope:
                self._entry(scope, name, MISSING)
            value = self._entry(space, name, space.get(name, MISSING))
            if space is not scope and name in ("getattr", "hasattr", "vars") and value in GETTERS:
                continue  # what it reads is in the code
            self._used(value, reads.chains.get(name, ((),)))
        if not _ENVIRONMENT.isdisjoint(reads.names):
            self.reach(os.environ._data)  # type: ignore[attr-defined]
        self._imports(reads.imports, scope)
        for name, value in (fn.__kwdefaults__ or {}).items():
            self.reach(self._entry(fn.__kwdefaults__, name, value))
        for value in fn.__defaults__ or ():
            self.reach(value)

    def _imports(self, names: tuple[str, ...], scope: dict[str, Any]) -> None:
        for name in names:
            # A relative import has the rest of the name; an import that has not happened yet is seen when it has.
            for full in (name, f"{scope.get('__package__') or ''}.{name}".strip(".")):
                if full in sys.modules:
                    self.reach(self._entry(sys.modules, full, sys.modules[full]))
                elif full == name and full.partition(".")[0] in sys.stdlib_module_names:
                    self._refuse(full)

    def _library_function(self, fn: FunctionType) -> None:
        """A function of a library: it may wrap an author's own (`functools.singledispatch`, a context manager)."""
        self._refuse(impure(fn))
        if fn.__module__.startswith("flyllvm"):
            return
        for cell in fn.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:
                continue
            if value is not fn:
                self.cells.append((cell, value))
                self.reach(value)

    # --- namespaces ---------------------------------------------------------------------------------

    def _space(self, space: Any, sized: bool = False) -> tuple[dict[str, Any], set[str]]:
        found = self.spaces.get(id(space))
        if found is None:
            found = self.spaces[id(space)] = (space, {}, set(), sized)
        elif sized and not found[3]:
            found = self.spaces[id(space)] = (*found[:3], True)
        return found[1], found[2]

    def _entry(self, space: Any, name: str, value: Any) -> Any:
        self._space(space)[0].setdefault(name, value)
        return value

    def _used(self, value: Any, chains: tuple[tuple[str, ...], ...]) -> None:
        """Follows a value of which the code reads some attributes."""
        if value is MISSING:
            return
        if isinstance(value, ModuleType) and is_library(value) and () not in chains:
            for chain in chains:
                self._chain(value, chain)
        else:
            self.reach(value)

    def _chain(self, module: ModuleType, chain: tuple[str, ...]) -> None:
        """Follows attributes of a library's module: what is called must be known, and data is watched."""
        for name in chain:
            space = vars(module)
            if name not in space:
                getattr(module, name, None)  # modules that load their parts late
            if name not in space:
                self._refuse(impure(module))  # it may work the value out
                self._space(space)[1].add(name)
                return
            value = self._entry(space, name, space[name])
            if not isinstance(value, ModuleType):
                self._library_value(value)
                return
            if not is_library(value):
                break
            module = value
        self.reach(value)

    def _library_value(self, value: Any) -> None:
        cls = type(value)
        if cls in IMMUTABLE or value is os.getenv or value is os.environ:
            return  # the environment is watched by its contents
        if is_code(value) or (cls.__module__.startswith("flyllvm.") and not holds_data(value)):
            if cls is FunctionType or isinstance(value, (type, BuiltinFunctionType)):
                self.reach(value)
            else:
                self._refuse(impure(value))
            return
        self.reach(value)

    def _module(self, module: ModuleType) -> None:
        space = vars(module)
        if not is_library(module):
            self.classes.append((module, type(module)))
            self._space(space)[1].add("__getattr__")
            self._attributes(space, ("__getattr__",) if "__getattr__" in space else ())
            return
        name = module.__name__
        if name.startswith("flyllvm") or name in ("sys", "os"):
            self._refuse(impure(module) if name not in ("sys", "os") else None)
        elif (what := impure(module)) is not None:
            self._refuse(what)
            return
        if not name.startswith("flyllvm"):
            for attribute in sorted(self._names.intersection(space)):
                self._chain(module, (attribute,))

    def _class(self, cls: type) -> None:
        self.abstract |= hasattr(cls, "__abstractmethods__") or type(cls).__name__ == "ABCMeta"
        if not is_followed_class(cls):
            self._refuse(impure(cls))
            return
        self._named(cls)
        if "__subclasses__" in self._names:
            self._refuse("__subclasses__")
        self.orders[cls] = None
        self.classes.append((cls, type(cls)))
        if type(cls) is not type:
            self.reach(type(cls))
        for base in cls.__mro__[:-1]:
            if not is_followed_class(base):
                self._refuse(impure(base))
                continue
            # Operators, `with`, `for` and calls use these without their names in the code.
            special = [n for n, raw in base.__dict__.items() if n[:2] == "__" == n[-2:] and type(raw) in _METHODS]
            self._space(base.__dict__, sized=True)
            self._attributes(base.__dict__, special)
            if isinstance(places := base.__dict__.get("__match_args__"), tuple):
                self.found |= frozenset(places)

    def _attributes(self, space: Any, more: Any = ()) -> None:
        """Watches the names that the code reads, in a namespace of the author's: there or not."""
        if self._all:
            more = [name for name in space if not (name[:2] == "__" == name[-2:])] + list(more)
            self._space(space, sized=True)
        elif not self._names and not more:
            return
        self._space(space)[1].update(self._names)
        for name in sorted(self._names.intersection(space).union(more)):
            raw = self._entry(space, name, space[name])
            kind = type(raw)
            if kind is property:
                self.reach(raw.fget)
            elif kind in (staticmethod, classmethod):
                self.reach(raw.__func__)
            elif kind.__module__ == "functools" and kind.__name__ == "cached_property":
                self.reach(raw.func)
            elif kind.__module__ != "builtins" or not kind.__name__.endswith("_descriptor"):
                self.reach(raw)

    def _named(self, value: Any) -> None:
        """Watches what a function or class says of itself, where the code asks for it."""
        for name in _FACTS:
            if name in self._names:
                self.facts.append((value, name, getattr(value, name)))
                self.reach(getattr(value, name))

    # --- objects ------------------------------------------------------------------------------------

    def _contents(self, value: Any, cls: type) -> None:
        state = getattr(value, "__dict__", None)
        if not isinstance(state, dict):
            state = None
        followed = is_followed_class(cls)
        if followed:
            self.classes.append((value, cls))
            self.reach(cls)
        data = holds_data(value)
        if state is not None and not cls.__module__.startswith("flyllvm.") and not data:
            self._attributes(state)
            self.reach(state.get("__wrapped__"))
            # Methods of a library, and reads by computed names, may look at every attribute.
            if not followed or self._all or _has_library_base(cls) or any(map(slots_of, cls.__mro__)):
                self._parts(state.values())
                self._freeze(value)
            if not isinstance(value, _CONTAINERS):
                return
        elif followed:
            self._parts(getattr(value, n) for base in cls.__mro__ for n in slots_of(base) if hasattr(value, n))
        if isinstance(value, dict):
            self._parts(dict.keys(value))
            self._parts(dict.values(value))
        elif isinstance(value, _CONTAINERS):
            self._parts(value)
        self._freeze(value)

    def _parts(self, values: Any) -> None:
        for part in list(values):
            self.reach(part)

    def _freeze(self, value: Any) -> None:
        try:
            key = freeze(value)
        except Unfreezable as e:
            if self.why_not is None:
                self.why_not = f"it reads {e}"
            return
        if not isinstance(value, frozenset):
            self.frozen.append((value, key))


def _has_library_base(cls: type) -> bool:
    """Whether a class has methods of a library, which may read any attribute."""
    return any(not is_followed_class(base) and base.__module__ not in _BARE for base in cls.__mro__)
