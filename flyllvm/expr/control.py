"""Compile-time control flow: what says that a loop or condition is Python's."""

from __future__ import annotations

from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.core import Value
from ..ir.limit import too_much
from .numeric import Boolean, Numeric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def const_expr(x: Any) -> Any:
    """The value of ``x``, which must be known while tracing.

    Raises:
        TraceError: It is known only at run time.
    """
    if isinstance(x, (Numeric, Value)):
        known = x.static_value()
        if known is None:
            raise TraceError(
                "const_expr of a run-time value",
                Builder.current().location(),
                "pass a compile-time value, or leave const_expr out",
            )
        return bool(known) if type(x) is Boolean else known
    return x


def range_constexpr(*args: Any) -> range:
    """``range`` over compile-time numbers; a loop over it is unrolled while tracing.

    Raises:
        TraceError: A bound is known only at run time.
    """
    for x in args:
        if isinstance(x, (Numeric, Value)) and x.static_value() is None:
            raise TraceError(
                "range_constexpr with a bound that is known only at run time",
                Builder.current().location(),
                "use range(...) for a loop at run time",
            )
    items = range(*(int(const_expr(x)) for x in args))
    refuse_endless(items)
    return items


def refuse_endless(items: Any) -> None:
    """Refuses a range that Python would go through for ever while tracing.

    Raises:
        TraceError: It is longer than the limit of operations.
    """
    b = Builder.active()
    # A range of more than 2**63 numbers has no len().
    if b is not None and type(items) is range and items[b.limit :]:
        raise too_much(f"a loop over {items} is unrolled while tracing", b.location())
