"""The hooks that rewritten code calls: Python where a condition is known, traced control flow where it is not."""

from __future__ import annotations

import _operator as operator

from ..errors import FlyError
from ..ir.builder import Builder
from ..ir.core import Value
from .control_join import Branches, check_depth, refuse_globals
from .control_slot import truth
from .control_state import State
from .numeric import Boolean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge, "eq": operator.eq,
    "ne": operator.ne, "is_": operator.is_, "is_not": operator.is_not, "in": lambda a, b: a in b,
    "not_in": lambda a, b: a not in b,
}  # fmt: skip


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
    check_depth(b, where)
    state = State(bodies, names)
    start = state.snapshot()
    ends: list[Any] = []
    values: list[Any] = []

    def way(body: Callable[[], Any] | None) -> Callable[[], None]:
        def run() -> None:
            try:
                values.append(None if body is None else body())
            except Exception as e:
                if not isinstance(e, (FlyError, NameError)):
                    e.add_note(f"The branch at {where} is traced whatever happens at run time, and raised this.")
                raise
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
    return not flag if isinstance(flag, bool) else ~Boolean.wrap(flag)


def compare(ops: Sequence[str], left: Any, *rest: Callable[[], Any]) -> Any:
    """``a < b < c``: each operand is evaluated once, and only if the comparisons before it hold."""

    def at(i: int, x: Any) -> Any:
        y = rest[i]()
        held = _COMPARE[ops[i]](x, y)
        return held if i + 1 == len(rest) else _and(held, [lambda: at(i + 1, y)], rest)

    return at(0, left)
