"""What a piece of a function does with its names: which it assigns, which it may read first, how it leaves."""

from __future__ import annotations

import _ast as ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Function = (ast.FunctionDef, ast.AsyncFunctionDef)
Nested = (*Function, ast.Lambda)
Comprehension = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


#: Fields whose values nobody here asks for: texts, and nodes without anything in them.
_SKIPPED = {"ctx", "op", "ops", "id", "attr", "kind", "type_comment"}
#: Kind of node -> its fields that can hold nodes of interest.  ``ast.walk`` and ``NodeVisitor`` find them out again at
#: every node, which made the analysis the slowest part of a first compile.
_FIELDS: dict[type[ast.AST], tuple[str, ...]] = {}


def fields(kind: type[ast.AST]) -> tuple[str, ...]:
    """Fields of a kind of node that can hold statements, expressions and what belongs to them."""
    known = _FIELDS.get(kind)
    if known is None:
        known = _FIELDS[kind] = tuple([f for f in kind._fields if f not in _SKIPPED])
    return known


def children(node: ast.AST) -> list[ast.AST]:
    """Nodes directly under a node, in the order of its fields; not contexts and operators."""
    made: list[ast.AST] = []
    have, kind, base = node.__dict__, type(node), ast.AST
    for field in _FIELDS.get(kind) or fields(kind):
        value = have.get(field)
        if type(value) is list:
            made += [x for x in value if isinstance(x, base)]
        elif isinstance(value, base):
            made.append(value)
    return made


_LEAVES = {ast.Name, ast.Constant}


def walk(node: ast.AST) -> list[ast.AST]:
    """A node and all under it; not contexts and operators."""
    found = [node]
    for n in found:  # the list grows meanwhile
        if type(n) not in _LEAVES:
            found += children(n)
    return found


#: Kind of node -> its field with a name that it binds.
_BINDS: dict[type[ast.AST], str] = {
    ast.FunctionDef: "name", ast.AsyncFunctionDef: "name", ast.ClassDef: "name", ast.ExceptHandler: "name",
    ast.MatchAs: "name", ast.MatchStar: "name", ast.MatchMapping: "rest",
}  # fmt: skip


def _own_name(node: ast.AST) -> str | None:
    """The name that a node itself binds, beside what stands under it."""
    if type(node) is ast.Name:
        return None if type(node.ctx) is ast.Load else node.id
    if type(node) is ast.alias:
        return node.asname or node.name.partition(".")[0]
    field = _BINDS.get(type(node))
    return None if field is None else getattr(node, field)


#: Nodes under which nothing is bound in the scope around them: a function, class or lambda is a scope of its own.
_CLOSED = {*Nested, ast.ClassDef, ast.Name, ast.Constant}


def _bind(node: ast.AST, names: dict[str, None]) -> None:
    own = _own_name(node)
    if own is not None:
        names[own] = None
    if isinstance(node, ast.comprehension):
        # The target belongs to the comprehension; only := escapes from it.
        for part in (node.iter, *node.ifs):
            _bind(part, names)
    elif type(node) not in _CLOSED:
        for child in children(node):
            _bind(child, names)


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """Names bound by statements or expressions of one scope, in order."""
    found: dict[str, None] = {}
    for node in nodes:
        _bind(node, found)
    return list(found)


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
    have = node.__dict__
    for field in ("body", "orelse", "handlers", "finalbody", "cases"):
        inner = have.get(field)
        if type(inner) is list:
            yield from inner


def read_in_functions(body: Sequence[ast.stmt]) -> set[str]:
    """Names that functions, lambdas and classes inside a body mention: they may be read at any call."""
    names: set[str] = set()
    for statement in body:
        for node in walk(statement):
            if isinstance(node, (*Nested, ast.ClassDef)):
                names.update(n.id for n in walk(node) if isinstance(n, ast.Name))
                names.update(x for n in walk(node) if isinstance(n, ast.Nonlocal) for x in n.names)
    return names


def leaves_by(body: Iterable[ast.stmt]) -> str | None:
    """The first statement that leaves a body other than at its end: return, break, continue, yield, await."""
    for statement in body:
        found = _leaves(statement, False)
        if found:
            return found
    return None


_WAYS = {
    ast.Break: "break", ast.Continue: "continue", ast.Return: "return", ast.Yield: "yield", ast.YieldFrom: "yield",
    ast.Await: "await",
}  # fmt: skip


def _leaves(node: ast.AST, in_loop: bool) -> str | None:
    kind = type(node)
    if kind in _CLOSED:
        return None
    name = _WAYS.get(kind)
    if name is not None:
        return None if in_loop and name in ("break", "continue") else name
    inside = node.body if isinstance(node, (ast.For, ast.While, ast.AsyncFor)) else ()
    for child in children(node):
        found = _leaves(child, in_loop or child in inside)
        if found:
            return found
    return None


def has_walrus(*nodes: ast.AST) -> bool:
    """Whether expressions hold ``:=``, ``await`` or ``yield``, which cannot move into a function of their own."""
    kinds = (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)
    return any(isinstance(n, kinds) for node in nodes for n in walk(node))


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
        parts = walk(node)
        own: set[str] = set()
        for n in parts:
            if isinstance(n, ast.comprehension):
                own.update(assigned([n.target]))
        for n in parts:
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
                names = {n.id for t in s.targets for n in walk(t) if isinstance(n, ast.Name)}
                self.found |= names - done
                return done - names
            case ast.Import() | ast.ImportFrom():
                return done | set(assigned([s]))
        return self.other(s, done)

    def other(self, s: ast.stmt, done: set[str]) -> set[str]:
        """Try, match and plain expressions: what they assign is not certain."""
        after = done
        for child in children(s):
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


def local_names(node: ast.FunctionDef) -> set[str]:
    """Names that are local in a function or in anything nested there."""
    names = {n.arg if isinstance(n, ast.arg) else _own_name(n) for n in walk(node)}
    return {n for n in names if n is not None}
