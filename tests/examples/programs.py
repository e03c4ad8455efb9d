"""The examples, whole and spoilt: loaded from edited source, or with edited LLVM IR."""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flyllvm.errors import SimError

EXAMPLES = Path(__file__).parents[2] / "examples"
_COUNTER = itertools.count()


def load(name: str, *edits: tuple[str, str], **extra: Any) -> types.ModuleType:
    """An example as a module of its own.

    Args:
        name: The file without ``.py``.
        edits: (old, new) texts; each old one stands in the file exactly once.
        extra: Names that the new texts use.
    """
    path = EXAMPLES / f"{name}.py"
    text = path.read_text(encoding="utf-8")
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {path.name}"
        text = text.replace(old, new)
    module = types.ModuleType(f"loaded_{name}")
    module.__dict__.update(extra)
    if edits:
        # A kernel's control flow is read from the source of its file: the edited text gets a file name of its own.
        path = Path(f"/edited/{next(_COUNTER)}/{path.name}")
        linecache.cache[str(path)] = (len(text), None, text.splitlines(keepends=True), str(path))
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def verdict(check: Callable[[], bool]) -> str:
    """``right``, ``wrong``, or what the simulator says of the kernel."""
    try:
        return "right" if check() else "wrong"
    except SimError as e:
        return str(e)
