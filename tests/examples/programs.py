"""The examples, whole and spoilt: loaded from edited source, or with edited LLVM IR."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from flyllvm.errors import SimError

EXAMPLES = Path(__file__).parents[2] / "examples"


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
    module = types.ModuleType(f"spoilt_{name}")
    module.__dict__.update(extra)
    exec(compile(text, str(path), "exec"), module.__dict__)
    return module


def verdict(check: Callable[[], bool]) -> str:
    """``right``, ``wrong``, or what the simulator says of the kernel."""
    try:
        return "right" if check() else "wrong"
    except SimError as e:
        return str(e)
