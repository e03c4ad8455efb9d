"""Hooks of loops: Python's where everything is known, traced where a bound or condition is not."""

from __future__ import annotations

import _operator as operator
from math import gcd
from types import CellType

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .control import refuse_endless
from .control_errors import is_traced_range
from .control_loop import Loop
from .control_slot import truth
from .numeric import Boolean, Int32, Int64, Numeric, as_numeric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .control_state import Snapshot


def while_(test: Callable[[], Any], body: Callable[[], Any], early: Sequence[str], late: Sequence[str]) -> None:
    """``while``: Python's until its condition is known at run time only.

    Args:
        test: The condition.
        body: The body.
        early: Variables that an iteration may read before it assigns them.
        late: The other variables it assigns.
    """
    while True:
        b = Builder.active()
        mark = b.mark() if b is not None else None
        flag = truth(test())
        if flag is False:
            return
        if flag is not True:
            break
        if b is not None:
            b.turn()
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
    if not is_traced_range(range_, args, keywords):
        items = range_(*args, **keywords)
        refuse_endless(items)
        for item in items:
            body(item)
        return None
    return _traced_range(body, early, late, args, **keywords)


def _traced_range(
    body: Callable[[Any], Any],
    early: Sequence[str],
    late: Sequence[str],
    args: Sequence[Any],
    init: Sequence[Any] | None = None,
    unroll: int = -1,
    unroll_full: bool = False,
) -> Any:
    low, high, step = _bounds(args)
    by = step if isinstance(step, int) else step.static_value()
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
        # Every bit turned counts upwards, and unlike a count of the iterations it cannot leave the type.
        start = as_numeric(low)
        multiple = gcd(start.ir_value().divisibility, by)
        traced_for(_turned(low), _turned(high), -by, lambda j: _down(j, multiple), run, loop)
    elif by is None and not _is_positive(step):
        _either_way(low, high, step, run, loop)
    else:
        traced_for(low, high, step, _index, run, loop)
    if hint is not None:
        loop.b.block.ops[-1].attrs["unroll"] = hint
    return None if init is None else list(held.cell_contents)


def _index(v: Value) -> Any:
    return Int64.wrap(v) if v.width == 64 else Int32.wrap(v)


#: What counts threads and workgroups, and what joins such counts to larger ones.
_COUNTS = ("gpu.block_dim", "gpu.grid_dim")
_JOINS = ("arith.muli", "arith.addi", "arith.extsi", "arith.extui")


def _is_positive(step: Value) -> bool:
    """Whether a run-time step is above zero: by its range, or as a count of threads, which no launch makes negative."""
    if step.range is not None and step.range[0] > 0:
        return True
    op = step.op
    if op is None:
        return False
    return op.name in _COUNTS or (op.name in _JOINS and all(_is_positive(v) for v in op.operands))


def _either_way(low: Any, high: Any, step: Any, run: Callable[[Any], Any], loop: Loop) -> None:
    """A loop whose step may be negative: then every bit of the bounds and of the index is turned, and it counts up."""
    bounds = [as_numeric(x) for x in (low, high, step)]
    cls = Int64 if any(x.width == 64 for x in bounds) else Int32
    first, last, by = (cls(x) for x in bounds)
    down = by >> (cls.width - 1)
    start, stop, size = (x.ir_value() for x in (first ^ down, last ^ down, (by ^ down) - down))
    traced_for(start, stop, size, lambda j: _index(j) ^ down, run, loop)


def _turned(x: Any) -> Any:
    """``-1 - x``, which every number of a type has in it."""
    return ~x if isinstance(x, int) else (~as_numeric(x)).ir_value()


def _down(j: Value, multiple: int) -> Any:
    """The index of a loop that counts down, of its counter."""
    made = _index(Builder.current().value(Builder.current().index_sub(-1, j)))
    made._v.divisibility = max(made._v.divisibility, multiple)
    return made


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
            # A known Int64 keeps its width, and with it the loop's index.
            return x.ir_value() if isinstance(x, Int64) else int(x)
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


# --- tracing -----------------------------------------------------------------------------------


def traced_for(
    low: Any, high: Any, step: Any, index: Callable[[Value], Any], body: Callable[[Any], Any], loop: Loop
) -> None:
    """Traces ``body(index(i))`` over a range."""

    def once(i: Value, *args: Value) -> list[Value]:
        loop.enter(args)
        body(index(i))
        return loop.leave(args)

    loop.run(lambda inits: loop.b.for_(low, high, step, inits, once))


def traced_while(test: Callable[[], Any], body: Callable[[], Any], loop: Loop) -> None:
    """Traces ``while test(): body()``."""

    def before(*args: Value) -> tuple[Value, list[Value]]:
        loop.enter(args)
        held = loop.state.snapshot()
        flag = truth(test())
        _unchanged(loop, held)
        if not isinstance(flag, Value):
            flag = loop.b.constant(int(flag), t.I1)
        return flag, list(args)

    def after(*args: Value) -> list[Value]:
        loop.enter(args)
        body()
        return loop.leave(args)

    loop.run(lambda inits: loop.b.while_(inits, before, after))


def _unchanged(loop: Loop, held: Snapshot) -> None:
    now = loop.state.snapshot()
    for container, x, y in zip(loop.state.containers, held.contents, now.contents):
        if not container.identical(x, y):
            raise TraceError(
                f"the condition of a traced while changes {container.name}",
                loop.where,
                "change it in the body of the loop",
            )
