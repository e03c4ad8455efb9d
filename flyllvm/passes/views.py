"""What a memref value is made of: its pointer and its layout with run-time leaves."""

from __future__ import annotations

from ..errors import VerifyError
from ..ir import types as t
from ..layout import ComposedLayout, Layout, get_leaves, is_static

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.builder import Builder
    from ..ir.core import Op, Value


def static_leaves(value: object, op: Op) -> object:
    """The int tuple of a ``fly.make_int_tuple`` with its operands in place of the symbolic leaves."""
    operands = iter(op.operands)
    return _fill(value, operands)


def _fill(value: object, operands: Any) -> object:
    if isinstance(value, tuple):
        return tuple(_fill(v, operands) for v in value)
    if is_static(value):
        return value
    return next(operands)


def layout_of(value: Value) -> Layout | ComposedLayout:
    """The layout behind a layout value, with values as run-time leaves.

    Raises:
        VerifyError: The layout comes from nowhere the pass can see.
    """
    type_ = value.type
    if not isinstance(type_, t.LayoutType):
        raise VerifyError(f"expected a layout, got {type_}")
    if is_static(type_.value):
        return type_.value  # type: ignore[return-value]
    op = value.op
    if op is not None and op.name == "fly.make_layout":
        shape, stride = (_tuple_of(o) for o in op.operands)
        return Layout(shape, stride)
    if op is not None and op.name == "fly.make_composed_layout":
        inner = op.operands[0].type
        first = inner.value if isinstance(inner, t.LayoutType) and is_static(inner.value) else layout_of(op.operands[0])
        return ComposedLayout(first, _tuple_of(op.operands[1]), layout_of(op.operands[2]))
    raise VerifyError(f"the run-time leaves of {type_} are not known here", fix="build it with fly.make_layout")


def _tuple_of(value: Value) -> object:
    type_ = value.type
    if not isinstance(type_, t.IntTupleType):
        raise VerifyError(f"expected an int tuple, got {type_}")
    if value.op is not None and value.op.name == "fly.make_int_tuple":
        return static_leaves(type_.value, value.op)
    return type_.value


def view_of(b: Builder, memref: Value) -> tuple[Value, Layout | ComposedLayout]:
    """(pointer, layout) of a memref.

    Raises:
        VerifyError: Run-time leaves of the layout are not known.
    """
    op = memref.op
    if op is not None and op.name == "fly.make_view":
        return op.operands[0], layout_of(op.operands[1])
    type_ = memref.type
    if not isinstance(type_, t.MemRefType):
        raise VerifyError(f"expected a memref, got {type_}", b.location())
    if not is_static(type_.layout):
        raise VerifyError(f"the run-time leaves of {type_} are not known here", b.location(), "build it with make_view")
    return b.get_iter(memref), type_.layout


def leaf_count(layout: object) -> int:
    """Number of leaves of a layout's shape."""
    return len(get_leaves(layout))
