"""The syntax tree of a function, from the file that it was written in."""

from __future__ import annotations
import __future__

import _ast as ast
import os
import sys

from ..ir.location import is_author_file
from .rewrite_names import assigned, blocks, declared

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType
    from typing import Any

_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_FLAGS = 0
for _name in __future__.all_feature_names:
    _FLAGS |= getattr(__future__, _name).compiler_flag


class Found:
    """A function definition.

    Attributes:
        node: Its syntax tree, which may be shared: ``fresh`` gives one of your own.
        owner: Name of the class whose body holds it, or ``None``; it decides how ``__names`` are spelled.
    """

    __slots__ = ("_alone", "_lines", "node", "owner")

    def __init__(self, node: ast.FunctionDef, owner: str | None, lines: list[str], alone: bool = False) -> None:
        self.node = node
        self.owner = owner
        self._lines = lines
        self._alone = alone

    def fresh(self) -> ast.FunctionDef:
        """A new syntax tree with the lines of the file; parsing is quicker than copying."""
        if self._alone:
            self._alone = False
            return self.node
        first, last = first_line(self.node), self.node.end_lineno
        text = "".join(self._lines[first - 1 : last])
        # Blank lines in front keep the line numbers; a block of its own makes an indented definition legal.
        head = "\n" * (first - 1) if not self.node.col_offset else "\n" * (first - 2) + "if 1:\n"
        (top,) = _parse(head + text).body
        made = top.body[0] if isinstance(top, ast.If) else top
        if not isinstance(made, ast.FunctionDef):
            raise SyntaxError(f"{self.node.name} is no function of its own")
        return made


_ONLY_AST = 0x400  # PyCF_ONLY_AST, in every Python


def _parse(text: str) -> ast.Module:
    """The syntax tree of a text; the package ``ast`` would cost what a kernel takes to be rewritten."""
    tree: ast.Module = compile(text, "<unknown>", "exec", _ONLY_AST)
    return tree


#: File name -> the lines that it had when it was first looked at.
_LINES: dict[str, list[str]] = {}


def lines_of(name: str, namespace: dict[str, Any] | None = None) -> list[str]:
    """The lines of a source file, each with its end; read once, as ``linecache`` does.

    A prompt, a notebook or an archive has its lines in ``linecache`` only, and so has a file in another encoding.
    """
    known = _LINES.get(name)
    if known is not None:
        return known
    cache = sys.modules.get("linecache")
    if cache is None or name not in cache.cache:
        try:
            with open(name, encoding="utf-8-sig") as f:
                lines = f.readlines()
        except (OSError, ValueError):
            lines = []
        if lines and not any("coding" in line for line in lines[:2]):
            if not lines[-1].endswith("\n"):
                lines[-1] += "\n"
            _LINES[name] = lines
            return lines
    import linecache  # it loads tokenize and re

    return linecache.getlines(name, namespace)


#: File name -> (its lines, definitions by (name, first line)).
_FILES: dict[str, tuple[list[str], dict[tuple[str, int], list[Found]]]] = {}


def is_author_code(code: CodeType, namespace: dict[str, Any]) -> bool:
    """Whether a function is the kernel author's own: not flyllvm's, Python's or an installed library's.

    An installed file that uses flyllvm counts as the author's.
    """
    name = code.co_filename
    if not is_author_file(name):
        return False
    if any(part in name for part in _INSTALLED):
        return any(_is_ours(v) for v in list(namespace.values()))
    return not name.startswith((_LIBRARY, "<frozen"))


def _is_ours(value: object) -> bool:
    # A module has a name, anything else the name of the module it comes from.
    name = getattr(value, "__name__", None) if type(value) is type(os) else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] == "flyllvm"


def first_line(node: ast.FunctionDef) -> int:
    """The line Python records for a function: its first decorator's, if it has any."""
    return min([node.lineno, *(d.lineno for d in node.decorator_list)])


def _index(tree: ast.Module, lines: list[str]) -> dict[tuple[str, int], list[Found]]:
    table: dict[tuple[str, int], list[Found]] = {}
    stack: list[tuple[ast.AST, str | None]] = [(tree, None)]
    while stack:
        node, owner = stack.pop()
        if isinstance(node, ast.FunctionDef):
            table.setdefault((node.name, first_line(node)), []).append(Found(node, owner, lines))
        # Private names are spelled after the innermost class around them, through functions too.
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        stack.extend((child, inner) for child in blocks(node))
    return table


def _alone(code: CodeType, lines: list[str]) -> Found | None:
    """A function of the file's own level, parsed without the rest of the file; ``None`` where that cannot be told.

    What follows it at the beginning of a line ends it.  Where that line belongs to a string or an open bracket, the
    text in front of it is no Python, and the whole file is parsed.
    """
    first, count = code.co_firstlineno - 1, len(lines)
    if code.co_qualname != code.co_name or not 0 <= first < count:
        return None
    at = first
    while at < count and lines[at].startswith(("@", ")", "]", "}", " ", "\t", "#", "\n")):
        at += 1
    if at == count or not lines[at].startswith("def ") or (at > first and not lines[first].startswith("@")):
        return None
    end = at + 1
    while end < count and lines[end].startswith((" ", "\t", "#", "\n", ")", "]", "}")):
        end += 1
    try:
        body = _parse("\n" * first + "".join(lines[first:end])).body
    except (SyntaxError, ValueError):
        return None
    node = body[0] if len(body) == 1 else None
    if not isinstance(node, ast.FunctionDef):
        return None
    fits = node.name == code.co_name and first_line(node) == first + 1
    return Found(node, None, lines, alone=True) if fits else None


def find(code: CodeType, namespace: dict[str, Any]) -> Found | None:
    """The definition a code object was compiled from; ``None`` where no source fits it."""
    name = code.co_filename
    lines = lines_of(name, namespace)
    if not lines:
        return None
    found = _alone(code, lines) if name not in _FILES else None
    if found is not None and _fits(found.node, code):
        return found
    known = _FILES.get(name)
    if known is None or known[0] != lines:
        try:
            known = _FILES[name] = (lines, _index(_parse("".join(lines)), lines))
        except (SyntaxError, ValueError):
            return None
    fitting = [f for f in known[1].get((code.co_name, code.co_firstlineno), ()) if _fits(f.node, code)]
    return fitting[0] if len(fitting) == 1 else None


def _fits(node: ast.FunctionDef, code: CodeType) -> bool:
    """Whether parameters and assigned names agree, so that a file edited after its import is not taken."""
    a = node.args
    positional = [x.arg for x in (*a.posonlyargs, *a.args)]
    given = [*positional, *(x.arg for x in a.kwonlyargs)]
    given += [x.arg for x in (a.vararg, a.kwarg) if x is not None]
    if code.co_argcount != len(positional) or list(code.co_varnames[: len(given)]) != _mangled(given, code):
        return False
    out = {n for names in declared(node.body) for n in names}
    wanted = set(_mangled([n for n in assigned(node.body) if n not in out and n not in given], code))
    return wanted <= {*code.co_varnames, *code.co_cellvars}


def _mangled(names: list[str], code: CodeType) -> list[str]:
    # Only private names of methods are spelled differently; those are compared by their ending.
    if not any(n.startswith("__") and not n.endswith("__") for n in names):
        return names
    have = (*code.co_varnames, *code.co_cellvars)
    return [next((h for h in have if h.endswith(n) and h.startswith("_")), n) for n in names]


def future_flags(code: CodeType) -> int:
    """The ``from __future__`` choices a code object was compiled with, for ``compile``."""
    return code.co_flags & _FLAGS
