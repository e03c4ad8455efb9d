"""Control flow of a kernel's syntax tree becomes calls of the hooks in ``expr.control_flow``.

Branches and loop bodies become functions of their own that share the author's variables; a hook runs them as Python
where everything is known, and traces them where it is not.  What leaves a branch by ``return``, ``break`` or
``continue`` stays as Python wrote it, behind a hook that refuses a run-time condition.

Generated names hold characters that no Python name can, so they meet none of the author's.
"""

from __future__ import annotations

import _ast as ast

from .rewrite_names import (
    assigned,
    declared,
    fields,
    has_walrus,
    is_range,
    leaves_by,
    read_in_functions,
    set_first,
)
from .rewrite_nodes import (
    OPS,
    REGION,
    arguments,
    copied,
    copy_location,
    function,
    hook,
    loaded,
    name,
    place,
    split_yield,
    texts,
    thunk,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any


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


class Rewriter:
    """Rewrites one function definition with everything in it.

    Args:
        plain: Whether a call of this expression can never reach the author's code (``fx.copy``, ``len``).
        names: Names that are local somewhere in the function, or free in it.
    """

    def __init__(self, plain: Callable[[ast.expr], bool]) -> None:
        self.plain = plain
        self.scope: _Scope | None = None

    def visit(self, node: ast.AST) -> Any:
        """What stands in the place of a node: a node, or for a statement a list of them."""
        kind = type(node)
        if kind is ast.Name or kind is ast.Constant:
            return node
        method = _VISITS.get(kind)
        return self.generic_visit(node) if method is None else method(self, node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """A node that stays, with what stands under it rewritten."""
        have = node.__dict__
        for field in fields(type(node)):
            value = have.get(field)
            if type(value) is list:
                made: list[Any] = []
                for x in value:
                    new = self.visit(x) if isinstance(x, ast.AST) else x
                    made += new if type(new) is list else [new]
                value[:] = made
            elif isinstance(value, ast.AST):
                setattr(node, field, self.visit(value))
        return node

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
        node.body = [place(h, node) for h in head] + body
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
        return place(ast.Pass(), node)

    visit_Nonlocal = visit_Global

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> ast.ExceptHandler:
        """A handler for anything lets through what says that the kernel cannot be traced."""
        node.body = self.block(node.body)
        kinds = node.type.elts if isinstance(node.type, ast.Tuple) else [node.type]
        if any(k is None or (isinstance(k, ast.Name) and k.id in ("Exception", "BaseException")) for k in kinds):
            node.body.insert(0, place(ast.Expr(place(hook("caught"), node)), node))
        return node

    def leave(self, node: ast.AST) -> ast.AST:
        """Lambdas, classes and coroutines stay as they are."""
        return node

    visit_Lambda = visit_ClassDef = visit_AsyncFunctionDef = leave

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        """A statement that is only a name: it was meant to be called."""
        parts: list[str] = []
        value = node.value
        while isinstance(value, ast.Attribute):
            parts.append(value.attr)
            value = value.value
        if isinstance(value, ast.Name):
            text = ".".join([value.id, *reversed(parts)])
            node.value = place(hook("not_called", node.value, ast.Constant(text)), node.value)
        else:
            node.value = self.visit(node.value)
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        """A plain assignment: annotations of local names do nothing, and shared names may have none."""
        if node.value is None:
            return place(ast.Pass(), node)
        return copy_location(ast.Assign([self.visit(node.target)], self.visit(node.value)), node)

    # --- statements ------------------------------------------------------------------------------

    def _region(
        self, kind: str, body: list[ast.stmt], names: Sequence[str], at: ast.AST, args: Sequence[str] = ()
    ) -> ast.FunctionDef:
        """A generated function that shares the author's variables."""
        scope = self._scope()
        head: list[ast.stmt] = []
        shared = [n for n in names if n not in scope.globals]
        if shared:
            head.append(place(ast.Nonlocal(shared), at))
        own = [n for n in names if n in scope.globals]
        if own:
            head.append(place(ast.Global(own), at))
        scope.lifted.update(shared)
        return place(function(REGION + kind, arguments(args), head + body), at)

    def _scope(self) -> _Scope:
        if self.scope is None:
            raise RuntimeError("a statement outside of a function")
        return self.scope

    def _guarded(self, test: ast.expr, what: str) -> ast.expr:
        """A condition that only a compile-time value may decide."""
        return place(hook("plain", self.visit(test), ast.Constant(what)), test)

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
            other = name(REGION + "else")
        call = hook("if_", test, name(REGION + "then"), other, texts(names))
        return [*made, place(ast.Expr(place(call, node)), node)]

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
        test = thunk(self.visit(node.test))
        call = hook(
            "while_", test, name(REGION + "body"), texts([n for n in names if n not in late]),
            texts([n for n in names if n in late]),
        )  # fmt: skip
        return [body, place(ast.Expr(place(call, node)), node)]

    def visit_For(self, node: ast.For) -> ast.stmt | list[ast.stmt]:
        """``for`` over ``range(...)``: the body becomes a function; other iterables are Python's."""
        call = node.iter
        if not isinstance(call, ast.Call) or not is_range(call):
            node.iter = self.visit(node.iter)
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
            return node
        carries = any(k.arg == "init" for k in call.keywords)
        body, result = split_yield(node.body) if carries else (node.body, None)
        way = leaves_by(body) or ("else" if node.orelse else None)
        if not way and not carries and isinstance(node.target, (ast.Tuple, ast.List)):
            way = "unpacking"
        args = [self.visit(a) for a in call.args]
        keywords = [ast.keyword(k.arg, self.visit(k.value)) for k in call.keywords]
        if way:
            made = hook("plain_range", call.func, ast.Constant(way), *args, keywords=keywords)
            node.iter = place(made, call)
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
        lines: list[ast.stmt] = [place(ast.Assign([node.target], name(item)), node)]
        state = node.target.elts[1] if isinstance(node.target, ast.Tuple) and len(node.target.elts) == 2 else None
        targets: list[ast.expr] = []
        tail: list[ast.stmt] = []
        if carries:
            value = getattr(result, "value", None)
            if isinstance(value, ast.Yield):
                last: ast.expr = self.visit(value.value) if value.value is not None else ast.Constant(None)
            elif state is not None:
                last = loaded(state)
            else:
                last = ast.Subscript(name(item), ast.Constant(1), ast.Load())
            at = result if result is not None else body[-1]
            tail = [place(ast.Return(last), at)]
            targets = [copied(t) for t in result.targets] if isinstance(result, ast.Assign) else []
            if state is not None:
                targets.append(copied(state))
        region = self._region("body", [*lines, *self.block(body), *tail], names, node, [item])
        call = hook(
            "for_", name("range"), name(REGION + "body"), texts([n for n in names if n not in late]),
            texts([n for n in names if n in late]), *args, keywords=keywords,
        )  # fmt: skip
        place(call, node)
        end: ast.stmt = ast.Assign(targets, call) if targets else ast.Expr(call)
        self._scope().lifted.update(n for n in assigned(targets) if n not in self._scope().globals)
        return [region, place(end, node)]

    # --- expressions -----------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> ast.expr:
        """``a if c else b``."""
        if has_walrus(node.body, node.orelse):
            node.test = self._guarded(node.test, ":= in if")
            return node
        made = hook("ifexp", self.visit(node.test), thunk(self.visit(node.body)), thunk(self.visit(node.orelse)))
        return place(made, node)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        """``and`` / ``or``: later operands are evaluated only where they decide."""
        if has_walrus(*node.values[1:]):
            head = [
                place(hook("known", self.visit(v), ast.Constant(":= in chain of and / or")), v)
                for v in node.values[:-1]
            ]
            node.values = [*head, self.visit(node.values[-1])]
            return node
        first, *rest = [self.visit(v) for v in node.values]
        which = "and_" if isinstance(node.op, ast.And) else "or_"
        return place(hook(which, first, *map(thunk, rest)), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        """``not``."""
        node.operand = self.visit(node.operand)
        return place(hook("not_", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """``a < b < c``."""
        if len(node.ops) == 1 or has_walrus(*node.comparators):
            self.generic_visit(node)
            return node
        left, *rest = [self.visit(v) for v in (node.left, *node.comparators)]
        ops = texts([OPS[type(o)] for o in node.ops])
        return place(hook("compare", ops, left, *map(thunk, rest)), node)

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """A call: the author's functions are rewritten too."""
        func = node.func
        if isinstance(func, ast.Name) and func.id == "super" and not node.args and not node.keywords and self.scope:
            if self.scope.first is not None:
                node.args = [name("__class__"), name(self.scope.first)]
                place(node.args[0], node)
                place(node.args[1], node)
            return node
        plain = self.plain(func)
        self.generic_visit(node)
        if not plain:
            node.func = place(hook("callee", node.func), func)
        return node


#: Kind of node -> its method.
_VISITS: dict[type[ast.AST], Callable[[Rewriter, Any], Any]] = {
    getattr(ast, name.removeprefix("visit_")): method for name, method in vars(Rewriter).items() if name[:6] == "visit_"
}
