"""What a piece of a function does with its names: which it assigns, which it may read first, how it leaves."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Nested = (*Function, ast.Lambda)
Comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


class _Assigned(ast.NodeVisitor):
    """Names that a scope's own statements bind, in order; nested functions and classes only by their name."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def add(self, name: str | None) -> None:
        if name is not None:
            self.names[name] = None

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.add(node.name)

    visit_AsyncFunctionDef = visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """A scope of its own."""

    def visit_comprehension(self, node: ast.comprehension) -> None:
        # The target belongs to the comprehension; only := escapes from it.
        for part in (node.iter, *node.ifs):
            self.visit(part)

    def visit_alias(self, node: ast.alias) -> None:
        self.add(node.asname or node.name.partition(".")[0])

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.add(node.rest)
        self.generic_visit(node)


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """Names bound by statements or expressions of one scope, in order."""
    found = _Assigned()
    for node in nodes:
        found.visit(node)
    return list(found.names)


def declared(body: Sequence[ast.stmt]) -> tuple[set[str], set[str]]:
    """Names that a function declares ``global``, and ``nonlocal``."""
    found: tuple[set[str], set[str]] = (set(), set())
    stack: list[ast.AST] = list(body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Global, ast.Nonlocal)):
            found[isinstance(node, ast.Nonlocal)].update(node.names)
        elif not isinstance(node, (*Function, ast.ClassDef)):
            stack.extend(blocks(node))
    return found


def blocks(node: ast.AST) -> Iterator[ast.AST]:
    """The statements (and handlers, and cases) directly under a node; definitions stand nowhere else."""
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = getattr(node, field, None)
        if type(inner) is list:
            yield from inner


def read_in_functions(body: Sequence[ast.stmt]) -> set[str]:
    """Names that functions, lambdas and classes inside a body mention: they may be read at any call."""
    names: set[str] = set()
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, (*Nested, ast.ClassDef)):
                names.update(n.id for n in ast.walk(node) if isinstance(n, ast.Name))
                names.update(x for n in ast.walk(node) if isinstance(n, ast.Nonlocal) for x in n.names)
    return names


def leaves_by(body: Iterable[ast.stmt]) -> str | None:
    """The first statement that leaves a body other than at its end: return, break, continue, yield, await."""
    for statement in body:
        found = _leaves(statement, False)
        if found:
            return found
    return None


def _leaves(node: ast.AST, in_loop: bool) -> str | None:
    if isinstance(node, (*Nested, ast.ClassDef)):
        return None
    if isinstance(node, (ast.Break, ast.Continue)):
        return None if in_loop else type(node).__name__.lower()
    name = {ast.Return: "return", ast.Yield: "yield", ast.YieldFrom: "yield", ast.Await: "await"}.get(type(node))
    if name:
        return name
    if isinstance(node, (ast.For, ast.While, ast.AsyncFor)):
        inner = {id(n) for n in node.body}
        parts = [(n, in_loop or id(n) in inner) for n in ast.iter_child_nodes(node)]
    else:
        parts = [(n, in_loop) for n in ast.iter_child_nodes(node)]
    for child, loop in parts:
        found = _leaves(child, loop)
        if found:
            return found
    return None


def has_walrus(*nodes: ast.AST) -> bool:
    """Whether expressions hold ``:=``, ``await`` or ``yield``, which cannot move into a function of their own."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(n, kinds) for node in nodes for n in ast.walk(node))


def is_range(node: ast.expr) -> bool:
    """Whether an expression is a call of ``range``, the only iterable that can be traced."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"


class _ReadFirst:
    """Walks statements in the order of execution and notes names that may be read before they are assigned."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def block(self, body: Iterable[ast.stmt], done: set[str]) -> set[str]:
        for statement in body:
            done = self.statement(statement, done)
        return done

    def expression(self, node: ast.AST | None, done: set[str]) -> None:
        """Reads of an expression, then what it assigns with ``:=``."""
        if node is None:
            return
        own: set[str] = set()
        for n in ast.walk(node):
            if isinstance(n, ast.comprehension):
                own.update(assigned([n.target]))
        for n in ast.walk(node):
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load) and n.id not in done and n.id not in own:
                self.found.add(n.id)

    def targets(self, nodes: Iterable[ast.AST], done: set[str]) -> set[str]:
        for node in nodes:
            self.expression(node, done)
        return done | set(assigned(nodes))

    def statement(self, s: ast.stmt, done: set[str]) -> set[str]:
        match s:
            case ast.Assign():
                self.expression(s.value, done)
                return self.targets(s.targets, done)
            case ast.AnnAssign():
                self.expression(s.value, done)
                return done if s.value is None else self.targets([s.target], done)
            case ast.AugAssign():
                if isinstance(s.target, ast.Name) and s.target.id not in done:
                    self.found.add(s.target.id)
                self.expression(s.value, done)
                return self.targets([s.target], done)
            case ast.If():
                self.expression(s.test, done)
                return self.block(s.body, done) & self.block(s.orelse, done)
            case ast.For() | ast.AsyncFor():
                self.expression(s.iter, done)
                inside = self.targets([s.target], done)
                after = self.block(s.body, inside)
                self.block(s.orelse, done)
                if is_range(s.iter):
                    return done
                # Python's loop: the tracer sees whether it has an iteration, and asks again where that matters.
                return inside if leaves_by(s.body) else after
            case ast.While():
                self.expression(s.test, done)
                self.block(s.body, done)
                self.block(s.orelse, done)
                return done
            case ast.With() | ast.AsyncWith():
                for item in s.items:
                    self.expression(item.context_expr, done)
                    if item.optional_vars is not None:
                        done = self.targets([item.optional_vars], done)
                return self.block(s.body, done)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                # What it reads counts wherever it is called: see read_in_functions.
                return done | {s.name}
            case ast.Delete():
                names = {n.id for t in s.targets for n in ast.walk(t) if isinstance(n, ast.Name)}
                self.found |= names - done
                return done - names
            case ast.Import() | ast.ImportFrom():
                return done | set(assigned([s]))
        return self.other(s, done)

    def other(self, s: ast.stmt, done: set[str]) -> set[str]:
        """Try, match and plain expressions: what they assign is not certain."""
        after = done
        for child in ast.iter_child_nodes(s):
            if isinstance(child, ast.stmt):
                after = self.statement(child, after)
            elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                inner = done | set(assigned([child.pattern] if isinstance(child, ast.match_case) else []))
                if isinstance(child, ast.ExceptHandler) and child.name:
                    inner = inner | {child.name}
                self.expression(child.guard if isinstance(child, ast.match_case) else child.type, inner)
                self.block(child.body, inner)
            else:
                self.expression(child, after)
        return done


def set_first(body: Sequence[ast.stmt], test: ast.expr | None = None, target: ast.expr | None = None) -> set[str]:
    """Names that every iteration of a loop assigns, on all paths, before it may read them.

    A Python loop in the body is taken to have an iteration.

    The others take part in the next iteration: they are read first, or a path keeps what they were.
    """
    walk = _ReadFirst()
    walk.expression(test, set())
    done = walk.block(body, set() if target is None else walk.targets([target], set()))
    return done - walk.found
