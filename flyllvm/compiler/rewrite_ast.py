"""Control flow of a kernel's syntax tree becomes calls of the hooks in ``expr.control_flow``.

Branches and loop bodies become functions of their own that share the author's variables; a hook runs them as Python
where everything is known, and traces them where it is not.  What leaves a branch by ``return``, ``break`` or
``continue`` stays as Python wrote it, behind a hook that refuses a run-time condition.

Generated names hold characters that no Python name can, so they meet none of the author's.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any

from .rewrite_names import (
    Nested,
    assigned,
    declared,
    has_walrus,
    leaves_by,
    read_in_functions,
    set_first,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

#: The variable that holds the hooks.
HOOKS = "<hooks>"
#: Prefix of generated functions, and the parameter that marks a generated lambda.
REGION = "<region>"
_OPS = {
    ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge", ast.Eq: "eq", ast.NotEq: "ne", ast.Is: "is_",
    ast.IsNot: "is_not", ast.In: "in", ast.NotIn: "not_in",
}  # fmt: skip


class _Scope:
    """Facts about the function whose body is being rewritten.

    Attributes:
        globals: Names it declares ``global``.
        captured: Names that its nested functions mention.
        lifted: Names that moved into generated functions.
    """

    __slots__ = ("captured", "first", "globals", "lifted", "nonlocals")

    def __init__(self, node: ast.FunctionDef) -> None:
        self.globals, self.nonlocals = declared(node.body)
        self.captured = read_in_functions(node.body)
        self.lifted: set[str] = set()
        a = node.args
        positional = [*a.posonlyargs, *a.args]
        self.first = positional[0].arg if positional else None


def _place(new: Any, old: ast.AST) -> Any:
    """Gives a generated node the first line of an author's node: calls report the line their callee ends on."""
    new.lineno = new.end_lineno = old.lineno  # type: ignore[attr-defined]
    new.col_offset = new.end_col_offset = old.col_offset  # type: ignore[attr-defined]
    return new


def _name(id: str) -> ast.expr:
    return ast.Name(id, ast.Load())


def _hook(name: str, *args: ast.expr, keywords: Sequence[ast.keyword] = ()) -> ast.Call:
    return ast.Call(ast.Attribute(_name(HOOKS), name, ast.Load()), list(args), list(keywords))


def _arguments(names: Sequence[str] = (), default: bool = False) -> ast.arguments:
    return ast.arguments(
        posonlyargs=[], args=[ast.arg(n) for n in names], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None,
        defaults=[ast.Constant(None) for _ in names] if default else [],
    )  # fmt: skip


def _function(name: str, args: ast.arguments, body: list[ast.stmt]) -> ast.FunctionDef:
    made = ast.FunctionDef(name, args, body, [], None, None)
    made.type_params = []  # type: ignore[attr-defined]
    return made


def _thunk(value: ast.expr) -> ast.expr:
    return _place(ast.Lambda(_arguments([REGION], True), value), value)


def _texts(names: Sequence[str]) -> ast.expr:
    return ast.Tuple([ast.Constant(n) for n in names], ast.Load())


class Rewriter(ast.NodeTransformer):
    """Rewrites one function definition with everything in it.

    Args:
        plain: Whether a call of this expression can never reach the author's code (``fx.copy``, ``len``).
        names: Names that are local somewhere in the function, or free in it.
    """

    def __init__(self, plain: Callable[[ast.expr], bool]) -> None:
        self.plain = plain
        self.scope: _Scope | None = None
        self.count = 0

    # --- functions -------------------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function: its body, with the names that moved into generated functions kept local to it."""
        node.decorator_list = [self.visit(d) for d in node.decorator_list]
        node.args = self.visit(node.args)
        outer, self.scope = self.scope, _Scope(node)
        scope = self.scope
        body = self.block(node.body)
        self.scope = outer
        a = node.args
        given = {x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg) if x is not None}
        keep = sorted(scope.lifted - scope.globals - scope.nonlocals - given)
        head: list[ast.stmt] = []
        if scope.globals:
            head.append(ast.Global(sorted(scope.globals)))
        if scope.nonlocals:
            head.append(ast.Nonlocal(sorted(scope.nonlocals)))
        # An annotation without a value makes a name local and does nothing else.
        head += [ast.AnnAssign(ast.Name(n, ast.Store()), ast.Constant(None), None, 1) for n in keep]
        node.body = [_place(h, node) for h in head] + body
        return node

    def block(self, body: Sequence[ast.stmt]) -> list[ast.stmt]:
        """Statements of one block; never empty."""
        out: list[ast.stmt] = []
        for statement in body:
            made = self.visit(statement)
            out += made if isinstance(made, list) else [made]
        return out

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> ast.stmt:
        """Declared at the top of the function instead."""
        return _place(ast.Pass(), node)

    visit_Nonlocal = visit_Global

    def leave(self, node: ast.AST) -> ast.AST:
        """Lambdas, classes and coroutines stay as they are."""
        return node

    visit_Lambda = visit_ClassDef = visit_AsyncFunctionDef = leave

    # --- statements ------------------------------------------------------------------------------

    def _region(
        self, kind: str, body: list[ast.stmt], names: Sequence[str], at: ast.AST, args: Sequence[str] = ()
    ) -> ast.FunctionDef:
        """A generated function that shares the author's variables."""
        scope = self._scope()
        head: list[ast.stmt] = []
        shared = [n for n in names if n not in scope.globals]
        if shared:
            head.append(_place(ast.Nonlocal(shared), at))
        own = [n for n in names if n in scope.globals]
        if own:
            head.append(_place(ast.Global(own), at))
        scope.lifted.update(shared)
        return _place(_function(REGION + kind, _arguments(args), head + body), at)

    def _scope(self) -> _Scope:
        if self.scope is None:
            raise RuntimeError("a statement outside of a function")
        return self.scope

    def _guarded(self, test: ast.expr, what: str) -> ast.expr:
        """A condition that only a compile-time value may decide."""
        return _place(_hook("plain", self.visit(test), ast.Constant(what)), test)

    def visit_If(self, node: ast.If) -> ast.stmt | list[ast.stmt]:
        """``if``: both branches become functions."""
        way = leaves_by([*node.body, *node.orelse])
        if way:
            node.test = self._guarded(node.test, f"{way} in if")
            node.body = self.block(node.body)
            node.orelse = self.block(node.orelse)
            return node
        names = assigned([*node.body, *node.orelse])
        test = self.visit(node.test)
        then = self._region("then", self.block(node.body), names, node)
        made: list[ast.stmt] = [then]
        other: ast.expr = ast.Constant(None)
        if node.orelse:
            made.append(self._region("else", self.block(node.orelse), names, node))
            other = _name(REGION + "else")
        call = _hook("if_", test, _name(REGION + "then"), other, _texts(names))
        return [*made, _place(ast.Expr(_place(call, node)), node)]

    def visit_While(self, node: ast.While) -> ast.stmt | list[ast.stmt]:
        """``while``: condition and body become functions."""
        way = "else" if node.orelse else leaves_by(node.body)
        if not way and has_walrus(node.test):
            way = ":="
        if way:
            node.test = self._guarded(node.test, f"{way} in while")
            node.body = self.block(node.body)
            node.orelse = self.block(node.orelse)
            return node
        names = assigned(node.body)
        late = set_first(node.body, node.test) - self._scope().captured
        body = self._region("body", self.block(node.body), names, node)
        test = _thunk(self.visit(node.test))
        call = _hook(
            "while_", test, _name(REGION + "body"), _texts([n for n in names if n not in late]),
            _texts([n for n in names if n in late]),
        )  # fmt: skip
        return [body, _place(ast.Expr(_place(call, node)), node)]

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        """``for`` over ``range(...)``: the body becomes a function; other iterables are Python's."""
        call = node.iter
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
            node.iter = self.visit(node.iter)
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return node
        carries = any(k.arg == "init" for k in call.keywords)
        body, result = _split_yield(node.body) if carries else (node.body, None)
        way = leaves_by(body) or ("else" if node.orelse else None)
        args = [self.visit(a) for a in call.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in call.keywords]
        if way:
            made = _hook("plain_range", call.func, ast.Constant(way), *args, keywords=keywords)
            node.iter = _place(made, call)
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return node
        return self._loop(node, body, args, keywords, result if carries else None, carries)

    def _loop(
        self,
        node: ast.For,
        body: Sequence[ast.stmt],
        args: list[ast.expr],
        keywords: list[ast.keyword],
        result: ast.stmt | None,
        carries: bool,
    ) -> list[ast.stmt]:
        names = assigned([node.target, *body])
        late = set_first(body, None, node.target) - self._scope().captured
        item = "<item>"
        lines: list[ast.stmt] = [_place(ast.Assign([node.target], _name(item)), node)]
        state = node.target.elts[1] if isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2 else None
        targets: list[ast.expr] = []
        tail: list[ast.stmt] = []
        if carries:
            value = getattr(result, "value", None)
            if isinstance(value, ast.Yield):
                last: ast.expr = self.visit(value.value) if value.value is not None else ast.Constant(None)
            elif state is not None:
                last = _loaded(state)
            else:
                last = ast.Subscript(_name(item), ast.Constant(1), ast.Load())
            at = result if result is not None else body[-1]
            tail = [_place(ast.Return(last), at)]
            targets = [copy.deepcopy(t) for t in result.targets] if isinstance(result, ast.Assign) else []
            if state is not None:
                targets.append(copy.deepcopy(state))
        region = self._region("body", [*lines, *self.block(body), *tail], names, node, [item])
        call = _hook(
            "for_", _name("range"), _name(REGION + "body"), _texts([n for n in names if n not in late]),
            _texts([n for n in names if n in late]), *args, keywords=keywords,
        )  # fmt: skip
        _place(call, node)
        end: ast.stmt = ast.Assign(targets, call) if targets else ast.Expr(call)
        self._scope().lifted.update(n for n in assigned(targets) if n not in self._scope().globals)
        return [region, _place(end, node)]

    # --- expressions -----------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """``a if c else b``."""
        if has_walrus(node.body, node.orelse):
            node.test = self._guarded(node.test, ":= in if")
            return node
        made = _hook("ifexp", self.visit(node.test), _thunk(self.visit(node.body)), _thunk(self.visit(node.orelse)))
        return _place(made, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """``and`` / ``or``: later operands are evaluated only where they decide."""
        if has_walrus(*node.values[1:]):
            return node
        first, *rest = [self.visit(v) for v in node.values]
        name = "and_" if isinstance(node.op, ast.And) else "or_"
        return _place(_hook(name, first, *map(_thunk, rest)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """``not``."""
        node.operand = self.visit(node.operand)
        return _place(_hook("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``a < b < c``."""
        if len(node.ops) == 1 or has_walrus(*node.comparators):
            self.generic_visit(node)
            return node
        left, *rest = [self.visit(v) for v in (node.left, *node.comparators)]
        ops = _texts([_OPS[type(o)] for o in node.ops])
        return _place(_hook("compare", ops, left, *map(_thunk, rest)), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call: the author's functions are rewritten too."""
        func = node.func
        if isinstance(func, ast.Name) and func.id == "super" and not node.args and not node.keywords and self.scope:
            if self.scope.first is not None:
                node.args = [_name("__class__"), _name(self.scope.first)]
                _place(node.args[0], node)
                _place(node.args[1], node)
            return node
        plain = self.plain(func)
        self.generic_visit(node)
        if not plain:
            node.func = _place(_hook("callee", node.func), func)
        return node


def _loaded(target: ast.expr) -> ast.expr:
    """An assignment target as an expression that reads it."""
    made = copy.deepcopy(target)
    for n in ast.walk(made):
        if isinstance(n, (ast.Name, ast.Tuple, ast.List, ast.Attribute, ast.Subscript, ast.Starred)):
            n.ctx = ast.Load()
    return made


def _split_yield(body: list[ast.stmt]) -> tuple[list[ast.stmt], ast.stmt | None]:
    """The body of a ``range(..., init=)`` loop without its closing ``yield``, and that statement."""
    last = body[-1]
    if isinstance(last, (ast.Expr, ast.Assign)) and isinstance(last.value, ast.Yield):
        return body[:-1], last
    return body, None


def local_names(node: ast.FunctionDef) -> set[str]:
    """Names that are local in a function or in one nested there."""
    found = set(assigned([node, *node.body]))
    for n in ast.walk(node):
        if isinstance(n, Nested):
            found.update(x.arg for x in ast.walk(n.args) if isinstance(x, ast.arg))
            if isinstance(n, ast.FunctionDef):
                found.update(assigned(n.body))
        elif isinstance(n, ast.comprehension):
            found.update(assigned([n.target]))
    return found
