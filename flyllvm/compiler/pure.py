"""Which functions and classes of libraries give the same for the same arguments.

Only what is on the list counts: the rest (clocks, random numbers, files, other packages) may give something else on
the next call, so whoever reads it is traced or run every time.
"""

from __future__ import annotations

import sys
from types import BuiltinFunctionType, FunctionType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Modules, with those below them.
_PURE = frozenset(
    ("_abc", "_bisect", "_collections", "_collections_abc", "_functools", "_heapq", "_operator", "_struct", "abc",
     "array", "base64", "binascii", "bisect", "builtins", "cmath", "collections", "contextlib", "copy", "copyreg",
     "dataclasses", "difflib", "enum", "flyllvm", "fractions", "functools",
     "hashlib", "_hashlib", "_blake2", "heapq", "itertools", "json", "keyword", "math", "ml_dtypes", "numbers", "numpy",
     "operator", "posixpath", "ntpath", "genericpath", "pprint", "re", "_sre", "reprlib", "string",
     "_string", "struct", "textwrap", "types", "typing", "typing_extensions", "warnings", "_warnings",
     "zlib", "__future__")
)  # fmt: skip
#: What rewritten assertions of tests call.
_ASSERTIONS = "_pytest.assertion"
#: Modules below them that are none of it.
_IMPURE = ("flyllvm.runtime", "flyllvm.cli", "numpy.random")
#: Names in these modules that read files, memory or settings.
_NOT = frozenset(
    ("open", "input", "eval", "exec", "compile", "breakpoint", "__import__", "id", "hash",
     "globals", "dir", "memoryview",
     "load", "loadtxt", "genfromtxt", "fromfile", "fromregex", "memmap", "open_memmap", "DataSource", "geterr",
     "get_printoptions", "exists", "isfile", "isdir", "getsize", "getmtime", "getatime", "getctime", "samefile",
     "realpath", "abspath", "expanduser", "expandvars", "lexists", "islink", "ismount", "relpath", "cwd", "home")
)  # fmt: skip
_BY_NAME = frozenset(("builtins", "numpy", "posixpath", "ntpath", "genericpath", "_io", "io"))
#: Classes of values that never change and are equal where they are the same.
_VALUES = frozenset(
    ("builtins", "datetime", "decimal", "_decimal", "_pydecimal", "fractions", "ml_dtypes", "numpy", "pathlib", "re",
     "types", "typing", "uuid", "ipaddress", "torch")
)  # fmt: skip


def impure(value: Any) -> str | None:
    """What to call a function, class or module of a library whose results are not known to repeat, else ``None``."""
    if isinstance(value, ModuleType):
        module, name = value.__name__, ""
    else:
        module, name = _home(value), str(getattr(value, "__name__", "") or type(value).__name__)
    root = module.partition(".")[0]
    if module.startswith(_ASSERTIONS):
        return None
    if root in _PURE and not module.startswith(_IMPURE) and not (root in _BY_NAME and name in _NOT):
        return None
    return f"{module}.{name}" if name else f"the module {module}"


def _home(value: Any) -> str:
    """The module of a function or class; a method's is that of its object."""
    if isinstance(value, BuiltinFunctionType):
        owner = value.__self__
        if owner is not None and not isinstance(owner, ModuleType):
            return type(owner).__module__
    if isinstance(value, FunctionType):
        return str(value.__globals__.get("__name__", "?"))  # a wrapper has the module of what it wraps
    module = getattr(value, "__module__", None)
    if not isinstance(module, str):
        module = getattr(getattr(value, "__objclass__", type(value)), "__module__", None)
    return module if isinstance(module, str) else "?"


def is_value_class(cls: type) -> bool:
    """Whether objects of a hashable class written by a library are equal only where they are the same for good."""
    root = cls.__module__.partition(".")[0]
    if root == "torch":
        return cls.__name__ in _OF_TORCH
    return root in _VALUES and cls.__name__ not in _CHANGING and cls.__module__ in sys.modules


#: Classes of these modules that stand for something that changes: a path asks for its file.
_CHANGING = frozenset(
    ("memoryview", "mappingproxy", "method-wrapper", "Generator", "RandomState", "ndarray", "Path", "PosixPath",
     "WindowsPath")
)  # fmt: skip
_OF_TORCH = frozenset(("dtype", "device", "layout", "memory_format"))
#: Functions that read attributes by names that they are given.
GETTERS = (getattr, hasattr, vars)


def is_code(value: Any) -> bool:
    """Whether a value of a library is something to call, or a class."""
    return isinstance(value, (FunctionType, BuiltinFunctionType, type)) or (
        callable(value) and type(value).__module__.partition(".")[0] in ("numpy", "builtins", "functools", "flyllvm")
    )
