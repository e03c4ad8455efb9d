"""The hooks that rewritten code calls: Python where a condition is known, traced control flow where it is not."""

from __future__ import annotations

import operator
import re
from types import CellType
from typing import TYPE_CHECKING, Any

from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.core import Value
from ..ir.location import Location, frames_of, is_author_file
from .control_join import Branches, refuse_globals, truth
from .control_state import State
from .numeric import Boolean, Int32, Int64, Numeric, as_numeric

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
    "ne": operator.ne, "is_": operator.is_, "is_not": operator.is_not, "in": lambda a, b: a in b,
    "not_in": lambda a, b: a not in b,
}  # fmt: skip

#: Deepest nesting of branches; the verifier allows as many regions.
_DEPTH = 100


# --- branches -------------------------------------------------------------------------------------


def if_(cond: Any, then: Callable[[], Any], other: Callable[[], Any] | None, names: Sequence[str]) -> None:
    """``if`` / ``else`` as a statement.

    Args:
        cond: The condition.
        then: The first branch.
        other: The second branch, if there is one.
        names: Variables that the branches assign.
    """
    flag = truth(cond)
    if flag is True:
        then()
    elif flag is not False:
        _branch(flag, then, other, [then] if other is None else [then, other], names, False)
    elif other is not None:
        other()


def _branch(
    flag: Value,
    then: Callable[[], Any],
    other: Callable[[], Any] | None,
    bodies: Sequence[Callable[..., Any]],
    names: Sequence[str],
    wanted: bool,
) -> Any:
    """A traced branch; returns the joined result of both bodies where it is wanted."""
    b = Builder.current()
    where = b.location()
    if b.block.depth >= _DEPTH:
        raise TraceError(
            f"run-time branches nest {_DEPTH} deep",
            where,
            "a recursion needs a compile-time condition to end; use a loop for a run-time one",
        )
    state = State(bodies, names)
    start = state.snapshot()
    ends: list[Any] = []
    values: list[Any] = []

    def way(body: Callable[[], Any] | None) -> Callable[[], None]:
        def run() -> None:
            values.append(None if body is None else body())
            ends.append(state.snapshot())
            state.restore(start)

        return run

    merged: list[Branches] = []

    def join(within: Any) -> tuple[list[Value], list[Value]]:
        refuse_globals(state, "branch", where)
        branches = Branches(state, start, ends, where, (values[0], values[1]) if wanted else None)
        merged.append(branches)
        return within(0, lambda: branches.yields(0)), within(1, lambda: branches.yields(1))

    results = b.branch(flag, way(then), way(other), join)
    merged[0].finish(results)
    return merged[0].result


def ifexp(cond: Any, then: Callable[[], Any], other: Callable[[], Any]) -> Any:
    """``a if cond else b``."""
    flag = truth(cond)
    if flag is True:
        return then()
    return other() if flag is False else _branch(flag, then, other, (then, other), (), True)


def and_(x: Any, *rest: Callable[[], Any]) -> Any:
    """``x and y and ...``; with a run-time ``x`` the others run where it is true only."""
    return _and(x, rest, rest)


def _and(x: Any, rest: Sequence[Callable[[], Any]], bodies: Sequence[Callable[..., Any]]) -> Any:
    for i, thunk in enumerate(rest):
        flag = truth(x)
        if flag is False:
            return x
        if flag is not True:
            no = False if _is_boolean(x) else x
            return _branch(flag, lambda: _and(thunk(), rest[i + 1 :], bodies), lambda: no, bodies, (), True)  # noqa: B023
        x = thunk()
    return x


def or_(x: Any, *rest: Callable[[], Any]) -> Any:
    """``x or y or ...``; with a run-time ``x`` the others run where it is false only."""
    for i, thunk in enumerate(rest):
        flag = truth(x)
        if flag is True:
            return x
        if flag is not False:
            yes = True if _is_boolean(x) else x
            return _branch(flag, lambda: yes, lambda: or_(thunk(), *rest[i + 1 :]), rest, (), True)  # noqa: B023
        x = thunk()
    return x


def _is_boolean(x: Any) -> bool:
    return type(x) is Boolean or isinstance(x, Value)


def not_(x: Any) -> Any:
    """``not x``."""
    flag = truth(x)
    return not flag if isinstance(flag, bool) else ~Boolean.wrap(flag)  # type: ignore[operator]


def compare(ops: Sequence[str], left: Any, *rest: Callable[[], Any]) -> Any:
    """``a < b < c``: each operand is evaluated once, and only if the comparisons before it hold."""

    def at(i: int, x: Any) -> Any:
        y = rest[i]()
        held = _COMPARE[ops[i]](x, y)
        return held if i + 1 == len(rest) else _and(held, [lambda: at(i + 1, y)], rest)

    return at(0, left)


# --- what stays Python ----------------------------------------------------------------------------

_FIX = {
    "return": "assign the result to a variable in every branch and return it once, at the end of the function",
    "break": "loop with while and put the condition into it",
    "continue": "put the rest of the loop body under the opposite condition",
    "yield": "collect values in a list and return it",
    "await": "await outside of the kernel",
    "else": "put the else block behind the loop",
    ":=": "assign the variable in a statement of its own",
}


def plain(x: Any, what: str) -> bool:
    """A condition that must be known while tracing, because of a statement under it (``return in if``)."""
    flag = truth(x)
    if not isinstance(flag, Value):
        return flag
    way, _, kind = what.partition(" in ")
    of = f"{way} {'of' if way == 'else' else 'inside'} {'an' if kind == 'if' else 'a'} {kind}"
    raise TraceError(
        f"{of} whose condition is known only at run time",
        Builder.current().location(),
        f"{_FIX[way]}, or make the condition a compile-time value",
    )


def plain_range(range_: Any, way: str, *args: Any, **keywords: Any) -> Any:
    """The iterable of a loop that must be Python's, because of a statement in it."""
    if _is_traced_range(range_, args, keywords):
        raise TraceError(
            f"{way} {'of' if way == 'else' else 'inside'} a loop whose bounds are known only at run time",
            Builder.current().location(),
            f"{_FIX[way]}, or use fx.range_constexpr with compile-time bounds",
        )
    return range_(*args, **keywords)


# --- loops ----------------------------------------------------------------------------------------


def while_(test: Callable[[], Any], body: Callable[[], Any], early: Sequence[str], late: Sequence[str]) -> None:
    """``while``: Python's until its condition is known at run time only.

    Args:
        test: The condition.
        body: The body.
        early: Variables that an iteration may read before it assigns them.
        late: The other variables it assigns.
    """
    from .control_loop import Loop, traced_while

    while True:
        b = Builder.active()
        mark = b.mark() if b is not None else None
        flag = truth(test())
        if flag is False:
            return
        if flag is not True:
            break
        body()
    if b is None or mark is None:
        raise TraceError("a run-time condition outside of a kernel", fix="use it inside a @flyc.kernel")
    b.rollback(mark)
    traced_while(test, body, Loop((body, test), early, late))


def for_(
    range_: Any,
    body: Callable[[Any], Any],
    early: Sequence[str],
    late: Sequence[str],
    *args: Any,
    **keywords: Any,
) -> Any:
    """``for ... in range(...)``; returns the carried list of ``init=``.

    Args:
        range_: What the author's name ``range`` stands for.
        body: The body.
        early: Variables that an iteration may read before it assigns them.
        late: The other variables it assigns.
        args: Arguments of ``range``.
        keywords: ``init``, ``unroll`` and ``unroll_full``.
    """
    if not _is_traced_range(range_, args, keywords):
        for item in range_(*args, **keywords):
            body(item)
        return None
    return _traced_range(body, early, late, args, **keywords)


def _is_traced_range(range_: Any, args: Sequence[Any], keywords: dict[str, Any]) -> bool:
    return range_ is range and (bool(keywords) or any(isinstance(a, (Numeric, Value)) for a in args))


def _traced_range(
    body: Callable[[Any], Any],
    early: Sequence[str],
    late: Sequence[str],
    args: Sequence[Any],
    init: Sequence[Any] | None = None,
    unroll: int = -1,
    unroll_full: bool = False,
) -> Any:
    from .control_loop import Loop, traced_for

    low, high, step = _bounds(args)
    by = step if isinstance(step, int) else None
    if by == 0:
        raise TraceError("range() with step 0", Builder.current().location(), "use a step that is not zero")
    hint = _unroll(unroll, unroll_full)
    if init is None:
        loop = Loop((body,), early, late)
        run = body
    else:
        held = CellType(list(init))
        loop = Loop((body,), early, late, held)

        def run(i: Any) -> None:
            # The body gets a list of its own: what it hands on is what it returns.
            held.cell_contents = list(body((i, list(held.cell_contents))))

    if by is not None and by < 0:
        start, count = low, (as_numeric(low) - as_numeric(high) + (-by - 1)) // -by
        traced_for(0, count._v, 1, lambda j: as_numeric(start) + _index(j) * by, run, loop)
    else:
        traced_for(low, high, step, _index, run, loop)
    if hint is not None:
        loop.b.block.ops[-1].attrs["unroll"] = hint
    return None if init is None else list(held.cell_contents)


def _index(v: Value) -> Any:
    return Int64.wrap(v) if v.width == 64 else Int32.wrap(v)


def _bounds(args: Sequence[Any]) -> tuple[Any, Any, Any]:
    if not 1 <= len(args) <= 3:
        raise TraceError(
            f"range() with {len(args)} arguments", Builder.current().location(), "give stop; start, stop; or all three"
        )
    parts = [_bound(a) for a in args]
    if len(parts) == 1:
        return 0, parts[0], 1
    return parts[0], parts[1], parts[2] if len(parts) == 3 else 1


def _bound(x: Any) -> Any:
    """A bound as a Python int or a 32- or 64-bit IR value."""
    if isinstance(x, Value):
        x = as_numeric(x)
    if isinstance(x, Numeric):
        fits = x.signed is not None and type(x) is not Boolean and (x.signed or x.width < 32) and x.width <= 64
        if not fits:
            raise TraceError(
                f"a loop bound of type {type(x)}",
                Builder.current().location(),
                "loop bounds are Int32 or Int64: convert it with .to(fx.Int32)",
            )
        if x.is_static:
            return int(x)
        return x._v if isinstance(x, (Int32, Int64)) else Int32(x)._v
    try:
        return operator.index(x)
    except TypeError:
        raise TraceError(
            f"a loop bound of type {type(x).__name__}", Builder.current().location(), "use an int or fx.Int32"
        ) from None


def _unroll(unroll: Any, full: Any) -> bool | int | None:
    if not isinstance(full, bool) or isinstance(unroll, bool) or not isinstance(unroll, int) or unroll == 0:
        raise TraceError(
            f"range(unroll={unroll!r}, unroll_full={full!r})",
            Builder.current().location(),
            "unroll is a positive compile-time int (1: not at all), unroll_full a bool",
        )
    if full:
        return True
    return None if unroll < 0 else False if unroll == 1 else unroll


# --- errors ---------------------------------------------------------------------------------------


def explain(error: NameError, b: Builder, root: object | None = None) -> TraceError | None:
    """The error for a variable that a branch or loop left without a value; ``None`` for any other name."""
    found = re.search(r"'(\w+)'", str(error))
    where = author_location(error, root)
    if found is None or where is None:
        return None
    reason = b.unset.get((where.frames[0].file, found[1]))
    if reason is None:
        return None
    text, fix = reason
    return TraceError(f"{found[1]} has no value here: {text}", where, fix)


def author_location(error: BaseException, root: object | None = None) -> Location | None:
    """Where an error was raised in the author's code, from its traceback.

    Args:
        error: The error.
        root: Code object of the outermost function to name.
    """
    tb = error.__traceback__
    key: list[Any] = []
    while tb is not None:
        code = tb.tb_frame.f_code
        if code is root:
            key = []
        if is_author_file(code.co_filename):
            key = [code, tb.tb_lineno, *key]
        tb = tb.tb_next
    return Location(frames_of(key)) if key else None
