"""Which functions, classes and modules may depend on what an author changes: those of libraries do not."""

from __future__ import annotations

import os
import sys
from types import FunctionType, ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_STDLIB = os.path.dirname(os.__file__) + os.sep
_PACKAGES = (os.sep + "site-packages" + os.sep, os.sep + "dist-packages" + os.sep)
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_KERNELS = os.path.join(_OURS, "kernels") + os.sep


def is_followed(fn: FunctionType) -> bool:
    """Whether a function may depend on what an author changes: not those of libraries that know nothing of us."""
    file = fn.__code__.co_filename
    if file.startswith(_KERNELS):
        return True
    if file.startswith((_OURS, "<frozen")):
        return False
    if any(p in file for p in _PACKAGES):
        return _uses_us(fn.__globals__)
    return not file.startswith(_STDLIB)


def is_followed_class(cls: type) -> bool:
    """Whether a class is an author's."""
    module = sys.modules.get(cls.__module__)
    return module is not None and cls.__module__ != "builtins" and not is_library(module)


def is_library(module: ModuleType) -> bool:
    """Whether a module is one of Python, of flyllvm, or of a package that does not use flyllvm."""
    file = vars(module).get("__file__")
    if not isinstance(file, str):
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
