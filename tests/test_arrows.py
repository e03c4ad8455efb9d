"""Which room may import which: the table of ARCHITECTURE.md, enforced on every import statement.

An import inside a function counts like any other, and so does one under ``TYPE_CHECKING``: a type is a dependency
too.  The table marks the arrows that are legal only in one of these forms.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "flyllvm"

# Room -> rooms it may import.  `~room`: inside functions only.  `:room`: under TYPE_CHECKING only.
ARROWS = {
    "errors": "",
    "target": "errors",
    "printf": "errors",
    "layout": "errors",
    "ir": "layout :state target errors",
    "state": "ir layout target errors",
    "atoms": "ir state layout target errors",
    "passes": "ir atoms state layout target errors",
    "expr": "ir atoms state layout target errors",
    "codeobject": "errors target",
    "codegen": "ir atoms state layout codeobject printf target errors",
    "host": "~codegen",
    "sim": "host printf errors target",
    "runtime": "codeobject ~sim printf target errors",
    "compiler": "expr passes codegen codeobject runtime ~sim ir atoms state layout printf target errors",
}
# Rooms on top: they may import everything, and nothing below may import them.
TOP = {"cli", "testing", "kernels", "__main__"}
# The package's own page names the public things, each loaded at first use.
ROOT_PAGE = "__init__"

# Third-party module -> the files that may import it, as (room, file name pattern).
FENCES = {
    "llvmlite": [("codegen", "worker*.py")],
    "hip": [("runtime", "hip.py")],
    "rocm": [("runtime", "hip.py")],
    "multiprocessing": [],
    "numpy": [("sim", "*"), ("runtime", "*"), ("testing", "*"), ("kernels", "*"), ("cli", "sim_*.py")],
    "ml_dtypes": [("sim", "*"), ("runtime", "*"), ("testing", "*"), ("kernels", "*"), ("cli", "sim_*.py")],
}


class Import:
    """One imported module name, and how it is reached."""

    __slots__ = ("form", "line", "module")

    def __init__(self, module: str, line: int, form: str) -> None:
        self.module = module
        self.line = line
        self.form = form  # "~" inside a function, ":" under TYPE_CHECKING, "" otherwise


def imports_of(source: str, package: str) -> list[Import]:
    """All modules that `source`, a module of `package`, imports, with absolute names."""
    found: list[Import] = []

    def visit(node: ast.AST, form: str) -> None:
        if isinstance(node, ast.Import):
            found.extend(Import(alias.name, node.lineno, form) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                base = ".".join(parents[: len(parents) - node.level + 1] + ([base] if base else []))
            # `from . import x` names a room only with its alias.
            found.extend(Import(f"{base}.{alias.name}", node.lineno, form) for alias in node.names)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            form = "~"
        if isinstance(node, ast.If) and ast.unparse(node.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING"):
            for child in node.body:
                visit(child, ":")
            for child in node.orelse:
                visit(child, form)
            return
        for child in ast.iter_child_nodes(node):
            visit(child, form)

    visit(ast.parse(source), "")
    return found


def room_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0] if len(relative.parts) > 1 else relative.stem


def package_of(path: Path) -> str:
    return ".".join(["flyllvm", *path.relative_to(ROOT).parts[:-1]])


def broken_arrow(room: str, found: Import) -> str | None:
    """The rule that an import breaks, or None."""
    parts = found.module.split(".")
    if parts[0] != "flyllvm":
        return None
    target = parts[1] if len(parts) > 1 else ROOT_PAGE
    if room == ROOT_PAGE or room in TOP or target == room or target.startswith("__"):
        return None
    allowed = ARROWS[room].split()
    if target in allowed or (found.form and found.form + target in allowed):
        return None
    for form, words in (("~", "inside functions"), (":", "under TYPE_CHECKING")):
        if form + target in allowed:
            return f"{room} may import {target} {words} only"
    return f"{room} may import: {ARROWS[room] or 'nothing'}; not {target}"


def broken_fence(path: Path, found: Import) -> str | None:
    allowed = FENCES.get(found.module.split(".")[0])
    if allowed is None or any(room_of(path) == room and path.match(pattern) for room, pattern in allowed):
        return None
    return f"{found.module} may be imported by {allowed or 'nobody'}"


def sources() -> Iterator[Path]:
    yield from sorted(ROOT.rglob("*.py"))


def test_every_room_is_in_the_table() -> None:
    rooms = {room_of(path) for path in sources()} - TOP - {ROOT_PAGE}
    assert rooms == set(ARROWS)


@pytest.mark.parametrize("room", [*ARROWS, ROOT_PAGE, *sorted(TOP)])
def test_a_room_imports_only_what_the_table_allows(room: str) -> None:
    broken = [
        f"{path.relative_to(ROOT.parent)}:{found.line}: {rule}"
        for path in sources()
        if room_of(path) == room
        for found in imports_of(path.read_text(encoding="utf-8"), package_of(path))
        for rule in (broken_arrow(room, found), broken_fence(path, found))
        if rule
    ]
    assert not broken, "\n".join(broken)


def test_third_party_imports_are_declared_dependencies() -> None:
    known = sys.stdlib_module_names | set(FENCES) | {"flyllvm", "__future__"}
    # The pytest plugin runs inside pytest; a progress bar is the extra ``progress``.
    known_to = {"testing": {"pytest", "_pytest"}, "compiler": {"rich"}}
    unknown = [
        f"{path.relative_to(ROOT.parent)}:{found.line}: {found.module}"
        for path in sources()
        for found in imports_of(path.read_text(encoding="utf-8"), package_of(path))
        if found.module.split(".")[0] not in known | known_to.get(room_of(path), set())
    ]
    assert not unknown, "\n".join(unknown)


@pytest.mark.parametrize(
    ("room", "package", "source", "rule"),
    [
        ("sim", "flyllvm.sim", "from ..atoms import mma", "not atoms"),
        ("sim", "flyllvm.sim", "from .. import atoms", "not atoms"),
        ("sim", "flyllvm.sim", "from flyllvm import atoms", "not atoms"),
        ("sim", "flyllvm.sim", "def f():\n    import flyllvm.codegen.emit", "not codegen"),
        ("ir", "flyllvm.ir.sub", "if TYPE_CHECKING:\n    from ...atoms import Row", "not atoms"),
        ("runtime", "flyllvm.runtime", "from ..sim import simulate", "inside functions only"),
        ("ir", "flyllvm.ir", "from ..state import StateStruct", "under TYPE_CHECKING only"),
        (
            "ir",
            "flyllvm.ir",
            "if TYPE_CHECKING:\n    pass\nelse:\n    from ..state import X",
            "under TYPE_CHECKING only",
        ),
        ("layout", "flyllvm.layout", "from ..cli import main", "not cli"),
        ("errors", "flyllvm", "from .target import Target", "nothing"),
    ],
)
def test_the_walk_sees_a_forbidden_import(room: str, package: str, source: str, rule: str) -> None:
    (found,) = imports_of(source, package)
    assert rule in str(broken_arrow(room, found))


@pytest.mark.parametrize(
    ("room", "package", "source"),
    [
        ("sim", "flyllvm.sim", "from ..errors import SimError"),
        ("sim", "flyllvm.sim", "from .machine import Machine"),
        ("runtime", "flyllvm.runtime", "def f():\n    from ..sim import simulate"),
        ("ir", "flyllvm.ir", "if TYPE_CHECKING:\n    from ..state import StateStruct"),
        ("cli", "flyllvm.cli", "from ..sim import simulate"),
    ],
)
def test_the_walk_accepts_a_legal_import(room: str, package: str, source: str) -> None:
    (found,) = imports_of(source, package)
    assert broken_arrow(room, found) is None


def test_the_fence_sees_llvmlite_outside_the_worker() -> None:
    (found,) = imports_of("def f():\n    import llvmlite.binding", "flyllvm.codegen")
    assert broken_fence(ROOT / "codegen" / "emit.py", found)
    assert broken_fence(ROOT / "sim" / "worker.py", found)
    assert broken_fence(ROOT / "codegen" / "worker.py", found) is None
