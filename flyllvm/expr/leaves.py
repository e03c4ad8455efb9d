"""Between numbers of the language and leaves of the layout algebra."""

from __future__ import annotations

from typing import Any

from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.core import Value
from ..layout import STAR, Basis, ComposedLayout, Layout
from .numeric import Boolean, Int32, Int64, Numeric


def to_leaves(x: Any) -> Any:
    """An int tuple whose leaves the layout algebra takes: ints, IR values, basis leaves, ``*``."""
    if isinstance(x, (tuple, list)):
        return tuple(to_leaves(v) for v in x)
    if x is None:
        return STAR
    if isinstance(x, Numeric):
        if x.signed is None:
            raise TraceError(f"{type(x)} in a layout", Builder.current().location(), "use an integer")
        if x.is_static:
            return int(x)
        if isinstance(x, (Int32, Int64)):
            return x._v
        return Int32(x)._v if x.width <= 32 else Int64(x)._v
    return x


def from_leaves(x: Any) -> Any:
    """The same int tuple with run-time leaves as ``Int32`` / ``Int64`` numbers."""
    if isinstance(x, tuple):
        return tuple(from_leaves(v) for v in x)
    if isinstance(x, Value):
        if x.width == 1:
            return Boolean.wrap(x)
        return Int64.wrap(x) if x.width == 64 else Int32.wrap(x)
    return x


def shape_of(layout: Layout | ComposedLayout) -> Any:
    """The shape with numbers as leaves."""
    return from_leaves(layout.shape)


__all__ = ["STAR", "Basis", "from_leaves", "shape_of", "to_leaves"]
