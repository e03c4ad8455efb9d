"""What a kernel reads, as a sum that is the same in every process.

`watch` answers "has this changed since I looked?" inside one process, by identity.  What code reads, and whose code is
looked at, both learn from `watch_names` and `followed`; here everything is taken by value:
code with its line numbers and the text of its file, the globals, closures and defaults it names, helpers included.
What has no value that can be written down (`Unknown`) keeps a kernel out of the first level of the disk cache.
"""

from __future__ import annotations

import builtins
import os
import sys
from _blake2 import blake2b
from abc import _get_dump  # type: ignore[attr-defined]
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType

from ..followed import is_followed, is_library
from ..pure import GETTERS, impure
from ..watch_names import reads_of
from .parts import Unknown as Unknown, is_found, is_python_made, plain, slots
from .world_data import add_array, add_container
from .world_library import add_chain, add_used, refuse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_OURS = "flyllvm."
_MAX_PARTS = 20000
_MAX_KEPT = 1000
#: Names through which code reads what no walk over names can see.
_BLIND = frozenset(("eval", "exec", "globals", "locals", "vars", "open", "input", "__import__", "id", "dir"))
_IMPURE = frozenset(
    ("os", "sys", "time", "random", "datetime", "uuid", "secrets", "subprocess", "socket", "io", "pathlib", "tempfile",
     "importlib", "inspect", "gc", "ctypes", "shutil", "glob", "platform", "threading")
)  # fmt: skip
_ABSTRACT = frozenset(("abc", "enum", "typing", "builtins", "dataclasses", "types"))
#: Entries of a class that say nothing about what it does.
_IDLE = frozenset(
    ("__dict__", "__weakref__", "__doc__", "__module__", "__abstractmethods__", "_abc_impl", "__annotations__",
     "__firstlineno__", "__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__")
)  # fmt: skip


class World:
    """The sum over what some functions read.

    Attributes:
        sum: The sum, as hexadecimal digits.
        files: (path, its bytes) of every source file that was read: a compilation may be kept only while what it
            was rewritten from is the same text.
    """

    __slots__ = ("files", "sum")

    def __init__(self, *roots: Any, whole_paths: bool = False) -> None:
        """Takes the sum.

        Args:
            roots: Functions, kernels and compile-time values.
            whole_paths: Whether the directories of source files count; their names always do (line tables).

        Raises:
            Unknown: Something has no value.
        """
        names: frozenset[str] = frozenset()
        every = False
        while True:
            # A module handed to a helper is read by the helper's names, so the names of all functions count.
            walk = Walk(names, whole_paths, every)
            for root in roots:
                walk.value(root)
            if walk.found <= names and walk.computed <= every:
                break
            names |= walk.found
            every |= walk.computed
        self.sum = blake2b(walk.data, digest_size=20).hexdigest()
        self.files = walk.files


def _check_kept(cached: Any) -> None:
    """Refuses a `functools.lru_cache` that keeps results of a time when its function read something else.

    Raises:
        Unknown: What the function reads has changed since results were kept first, and they were not cleared.
    """
    if id(cached) in _LOOKING:
        return  # it calls itself
    _LOOKING.add(id(cached))
    try:
        now = World(cached.__wrapped__).sum
    finally:
        _LOOKING.discard(id(cached))
    info = cached.cache_info()
    _, misses, before = _KEPT.get(id(cached), (cached, 0, now))
    if now != before and info.currsize and info.misses >= misses:
        raise Unknown(f"{cached.__wrapped__.__qualname__}, which keeps results of before a change")
    if len(_KEPT) >= _MAX_KEPT:
        _KEPT.clear()
    _KEPT[id(cached)] = (cached, info.misses, now)


#: Id of a cached function -> (it, its misses so far, the sum of what it reads), and those that are looked at.
_KEPT: dict[int, tuple[Any, int, str]] = {}
_LOOKING: set[int] = set()


class Walk:
    """One walk: depth first, every object once, names in order, so that equal worlds give equal sums."""

    def __init__(self, names: frozenset[str], whole_paths: bool, every: bool) -> None:
        self._all, self.computed = every, False
        self.data = bytearray()
        self.files: dict[str, bytes] = {}
        self.found: set[str] = set()
        self._names = names
        self._paths = whole_paths
        self._seen: dict[int, tuple[int, Any]] = {}
        self._count = 0

    def put(self, *words: object) -> None:
        """Adds words, each with its length, so that no two lists of words look the same."""
        data = self.data
        for word in words:
            raw = word if type(word) is bytes else str(word).encode("utf-8", "surrogatepass")
            data += b"%d:" % len(raw)
            data += raw

    def value(self, x: Any) -> None:
        """Adds a value."""
        cls = type(x)
        text = plain(x, cls)
        if text is not None:
            self.put(cls.__name__, text)
            return
        seen = self._seen.get(id(x))
        if seen is not None:
            self.put("again", seen[0])
            return
        self._seen[id(x)] = (len(self._seen), x)
        self._count += 1
        if self._count > _MAX_PARTS:
            raise Unknown(f"more than {_MAX_PARTS} values")
        self._object(x, cls)

    def _object(self, x: Any, cls: type) -> None:
        if cls is FunctionType:
            self._function(x)
        elif cls is MethodType:
            self.put("method")
            self.value(x.__func__)
            self.value(x.__self__)
        elif isinstance(x, CodeType):
            self.code(x)
        elif isinstance(x, ModuleType):
            self._module(x)
        elif isinstance(x, type):
            self._class(x)
        elif cls is BuiltinFunctionType:
            self._builtin(x)
        elif cls.__name__ == "_lru_cache_wrapper":
            self.put("cached")
            self.value(x.__wrapped__)
            _check_kept(x)
        elif hasattr(cls, "__array_interface__") and hasattr(cls, "tobytes") and hasattr(cls, "strides"):
            add_array(self, x)
        else:
            self._state(x, cls)

    # --- code -------------------------------------------------------------------------------------

    def _function(self, fn: FunctionType) -> None:
        self.put("function", fn.__module__, fn.__qualname__)
        self.value((fn.__defaults__, fn.__kwdefaults__))
        chains = reads_of(fn.__code__).chains if is_followed(fn) else {}
        for name, cell in zip(fn.__code__.co_freevars, fn.__closure__ or ()):
            try:
                content = cell.cell_contents
            except ValueError:  # not assigned yet
                self.put("empty")
                continue
            add_used(self, content, chains.get(name, ((),)))
        if not is_followed(fn):
            # flyllvm's own files have a sum of their own, other libraries a version.
            refuse(impure(fn))
            self._library(fn.__module__)
            self.put(fn.__code__.co_firstlineno, fn.__code__.co_code)
            return
        self.value(fn.__dict__)
        self._facts(fn)
        self.code(fn.__code__)
        self._source(fn.__code__.co_filename)
        scope, reads = fn.__globals__, reads_of(fn.__code__)
        for name in sorted(reads.globals):
            if name in scope:
                self.put("global", name)
                add_used(self, scope[name], reads.chains.get(name, ((),)))
            elif name in _BLIND and hasattr(builtins, name):
                raise Unknown(f"what {fn.__qualname__} reads through {name}()")
            elif hasattr(builtins, name):
                self.put("builtin", name)
                value = getattr(builtins, name)
                if getattr(value, "__module__", None) == "builtins" and value.__name__ == name:
                    refuse(impure(value))
                else:
                    self.value(value)

    def code(self, code: CodeType) -> None:
        """Adds code with its line numbers, which line tables show."""
        reads = reads_of(code)
        for name in reads.imports:
            if name.partition(".")[0] not in ("flyllvm", "math", "__future__"):
                raise Unknown(f"the module {name or 'of its own package'}, imported while {code.co_name} runs")
        self.found |= reads.names
        self.computed |= reads.computed
        file = code.co_filename if self._paths else os.path.basename(code.co_filename)
        self.put("code", code.co_name, code.co_qualname, file, code.co_firstlineno, code.co_flags)
        self.put(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
        self.put(code.co_code, code.co_linetable, code.co_exceptiontable)
        for names in (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars):
            self.put(len(names), *names)
        for const in code.co_consts:
            self.value(const)

    def _source(self, path: str) -> None:
        """Control flow is rewritten from the text of the file."""
        if path in self.files:
            return
        try:
            with open(path, "rb") as f:
                data = f.read()
        except OSError:
            # No file: a prompt or a notebook, whose lines linecache may hold.
            cached = sys.modules.get("linecache")
            lines = cached.getlines(path) if cached is not None else []
            data = "".join(lines).encode()
        self.files[path] = data
        self.put("file", data)

    def _facts(self, x: Any) -> None:
        """Adds what a function or class says of itself, where the code asks for it."""
        for name in ("__annotations__", "__doc__", "__name__"):
            if name in self._names:
                self.put(name)
                self.value(getattr(x, name))
        if "__subclasses__" in self._names:
            raise Unknown("which subclasses there are")

    # --- modules and classes ----------------------------------------------------------------------

    def _module(self, module: ModuleType) -> None:
        name = module.__name__
        self.put("module", name)
        if name.partition(".")[0] in _IMPURE or name == "numpy.random":
            raise Unknown(f"the module {name}: it tells of the world outside")
        refuse(impure(module) if is_library(module) else None)
        if is_library(module):
            self._library(name)
            if not name.startswith(_OURS[:-1]):
                for key in sorted(self._names.intersection(vars(module))):
                    self.put("attribute", key)
                    add_chain(self, module, (key,))
            return
        space = vars(module)
        every = (n for n in space if not (n[:2] == "__" == n[-2:])) if self._all else ()
        for key in sorted((self._names | {"__getattr__"}).intersection(space).union(every)):
            self.put("global", key)
            self.value(space[key])

    def _library(self, name: str | None) -> None:
        root = sys.modules.get((name or "").partition(".")[0])
        version = getattr(root, "__version__", "")
        self.put("library", name, version if isinstance(version, str) else "")

    def _class(self, cls: type) -> None:
        self.put("class", cls.__module__, cls.__qualname__)
        module = sys.modules.get(cls.__module__)
        if module is None:
            raise Unknown(f"the class {cls.__qualname__}, whose module is gone")
        if (cls.__module__ == "builtins" or is_library(module)) and is_found(cls, module):
            refuse(impure(cls))
            self._library(cls.__module__)
            return
        self._facts(cls)
        if "_abc_impl" in cls.__dict__ and _get_dump(cls)[0]:
            raise Unknown(f"the classes that are registered with {cls.__qualname__}")
        # A class that a library makes at run time (a struct, a named tuple) is taken by value like an author's own.
        if type(cls) is not type:
            self.value(type(cls))
        for base in cls.__bases__:
            self.value(base)
        for key in sorted(set(cls.__dict__) - _IDLE):
            self.put("attribute", key)
            self._attribute(cls, key, cls.__dict__[key])

    def _attribute(self, cls: type, key: str, raw: Any) -> None:
        inner = [getattr(raw, n, None) for n in ("__func__", "fget", "fset", "fdel")]
        if isinstance(raw, (staticmethod, classmethod, property)):
            self.put(type(raw).__name__)
            for part in inner:
                self.value(part)
        elif type(raw).__name__.endswith("_descriptor") and type(raw).__module__ == "builtins":
            self.put(type(raw).__name__, key)
        else:
            self.value(raw)

    def _builtin(self, fn: Any) -> None:
        owner = fn.__self__
        self.put("builtin", fn.__module__, fn.__qualname__)
        self.computed |= fn in GETTERS
        if owner is not None and not isinstance(owner, ModuleType):
            self.value(owner)
        refuse(impure(fn))

    # --- data -------------------------------------------------------------------------------------

    def _state(self, x: Any, cls: type) -> None:
        self.value(cls)
        self.put("object")
        fn = getattr(x, "fn", None)
        if cls.__module__.startswith(_OURS) and type(fn) is FunctionType:
            # A kernel or host function: what else it holds it has worked out itself.
            self.value(fn)
            self.value((getattr(x, "name", None), getattr(x, "options", None), getattr(x, "hints", None)))
            return
        known = add_container(self, x)
        for base in cls.__mro__[:-1]:
            if not (base.__module__ in _ABSTRACT or base.__module__.startswith(_OURS) or is_python_made(base)):
                raise Unknown(f"a {cls.__module__}.{cls.__qualname__}")
        state = getattr(x, "__dict__", None)
        held = [s for base in cls.__mro__ for s in slots(base)]
        if not known and state is None and not held and cls.__module__ == "builtins":
            raise Unknown(f"a {cls.__qualname__}")
        for name in held:
            if hasattr(x, name):
                self.put("slot", name)
                self.value(getattr(x, name))
        for name, part in sorted((state or {}).items(), key=lambda kv: str(kv[0])):
            self.put("field", name)
            self.value(part)
