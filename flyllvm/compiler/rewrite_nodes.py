"""Pieces of syntax trees that the rewriting makes.

Generated names hold characters that no Python name can, so they meet none of the author's.
"""

from __future__ import annotations

import _ast as ast

from .rewrite_names import children, walk

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TypeVar

    Node = TypeVar("Node", bound=ast.AST)

#: The variable that holds the hooks.
HOOKS = "<hooks>"
#: Prefix of generated functions, and the parameter that marks a generated lambda.
REGION = "<region>"
OPS = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne", ast.Is: "is_",
    ast.IsNot: "is_not", ast.In: "in", ast.NotIn: "not_in",
}  # fmt: skip


def place(new: Node, old: ast.AST) -> Node:
    """Gives a generated node the first line of an author's node: calls report the line their callee ends on."""
    made: Any = new
    made.lineno = made.end_lineno = old.lineno  # type: ignore[attr-defined]
    made.col_offset = made.end_col_offset = old.col_offset  # type: ignore[attr-defined]
    return new


def name(id: str) -> ast.expr:
    """A name that is read."""
    return ast.Name(id, ast.Load())


def hook(which: str, *args: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
    """A call of a hook."""
    return ast.Call(ast.Attribute(name(HOOKS), which, ast.Load()), list(args), list(keywords))


def arguments(names: Sequence[str] = (), default: bool = False) -> ast.arguments:
    """Parameters of a generated function; ``None`` each where they have a default."""
    return ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in names], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None,
        defaults=[ast.Constant(None) for _ in names] if default else [],
    )  # fmt: skip


def function(name: str, args: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    """A function definition."""
    made = ast.FunctionDef(name, args, body, [], None, None)
    made.type_params = []  # type: ignore[attr-defined]
    return made


def thunk(value: ast.expr) -> ast.expr:
    """A lambda that evaluates an expression later."""
    return place(ast.Lambda(arguments([REGION], True), value), value)


def texts(names: Sequence[str]) -> ast.expr:
    """A tuple of names as texts."""
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())


def copied(node: Node) -> Node:
    """A node with copies of all under it; contexts and operators, which hold nothing, are shared."""
    kind = type(node)
    made = kind.__new__(kind)  # not called: a newer Python warns of missing fields
    for key, value in node.__dict__.items():
        if type(value) is list:
            value = [copied(x) if isinstance(x, ast.AST) else x for x in value]
        elif isinstance(value, ast.AST):
            value = copied(value)
        setattr(made, key, value)
    return made


def copy_location(new: Node, old: ast.AST) -> Node:
    """Gives a generated node the whole place of an author's node."""
    for name in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
        setattr(new, name, getattr(old, name))
    return new


def locate(node: ast.AST, at: dict[str, Any]) -> None:
    """Gives nodes without a place that of the node around them, as ``ast.fix_missing_locations`` does.

    Args:
        node: A node whose every part has its whole place or nothing of it.
        at: Attributes of the node around it.
    """
    have = node.__dict__
    if "lineno" in have:
        at = have
    elif node._attributes:
        for key in ("lineno", "col_offset", "end_lineno", "end_col_offset"):
            have[key] = at[key]
    for child in children(node):
        locate(child, at)


def loaded(target: ast.expr) -> ast.expr:
    """An assignment target as an expression that reads it."""
    made = copied(target)
    for n in walk(made):
        if isinstance(n, (ast.Name, ast.Tuple, ast.List, ast.Attribute, ast.Subscript, ast.Starred)):
            n.ctx = ast.Load()
    return made


def split_yield(body: list[ast.stmt]) -> tuple[list[ast.stmt], ast.stmt | None]:
    """The body of a ``range(..., init=)`` loop without its closing ``yield``, and that statement."""
    last = body[-1]
    if isinstance(last, (ast.Expr, ast.Assign)) and isinstance(last.value, ast.Yield):
        return body[:-1], last
    return body, None
