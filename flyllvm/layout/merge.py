"""coalesce, and the canonical form of results."""

from __future__ import annotations

from ..errors import LayoutError
from .core import ComposedLayout, Layout, as_layout, join_modes, layout_modes, raw_layout
from .int_tuple import leaves, normal, show
from .leaf import Basis
from .memo import operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leaf import IntTuple, Leaf

    Modes = tuple[list[Leaf], list[Leaf]]


def _continues(s: Leaf, d: Leaf, next_d: Leaf) -> bool:
    """Whether a mode ``s:d`` is continued by one of stride ``next_d``; all static."""
    if type(s) is not int:
        return False
    if isinstance(d, Basis):
        return isinstance(next_d, Basis) and d.path == next_d.path and _continues(s, d.value, next_d.value)
    return type(d) is int and type(next_d) is int and s * d == next_d


def coalesced(shape: IntTuple, stride: IntTuple, keep_boundary: bool = False) -> Modes:
    """Flat modes with runs merged and static size-1 modes dropped; never empty.

    With ``keep_boundary`` a trailing static size-1 mode stays as a mode of size 2 with its stride, so that indices
    past the end keep their value.
    """
    ss, ds = list(leaves(shape)), list(leaves(stride))
    out_s: list[Leaf] = []
    out_d: list[Leaf] = []
    last = len(ss) - 1
    for i, (s, d) in enumerate(zip(ss, ds, strict=True)):
        if type(s) is int and s == 1:
            if not (keep_boundary and i == last):
                continue
            s = 2
        if out_s and type(s) is int and _continues(out_s[-1], out_d[-1], d):
            out_s[-1] *= s
        else:
            out_s.append(s)
            out_d.append(d)
    return (out_s, out_d) if out_s else ([1], [0])


def pack(shapes: list[Leaf], strides: list[Leaf]) -> Layout:
    """A layout of flat modes; a single mode stands alone."""
    if len(shapes) == 1:
        return raw_layout(shapes[0], strides[0])
    return raw_layout(tuple(shapes), tuple(strides))


def canonical(layout: Layout) -> Layout:
    """The same function with static size-1 leaves at stride 0 and singleton nests unwrapped."""
    s, d = _canonical(layout.shape, layout.stride)
    return raw_layout(s, d)


def _canonical(shape: IntTuple, stride: IntTuple) -> tuple[IntTuple, IntTuple]:
    if not isinstance(shape, tuple):
        return (shape, 0) if type(shape) is int and shape == 1 else (shape, stride)
    if len(shape) == 1:
        return _canonical(shape[0], stride[0])
    parts = [_canonical(s, d) for s, d in zip(shape, stride, strict=True)]
    return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])


@operation
def coalesce(layout: Any, pattern: object = 0) -> Any:
    """The same function with as few modes as possible.

    Args:
        layout: A layout; of a composed layout the outer part is coalesced.
        pattern: Each leaf stands for one sub-mode to coalesce on its own; modes beyond the pattern stay as they are.

    Raises:
        LayoutError: The pattern has more modes than the layout.
    """
    if isinstance(layout, ComposedLayout):
        return ComposedLayout(layout.inner, layout.offset, coalesce(layout.outer, pattern))
    layout = as_layout(layout, "coalesce")
    return _coalesce(layout, normal(pattern))


def _coalesce(layout: Layout, pattern: IntTuple) -> Layout:
    if not isinstance(pattern, tuple):
        return pack(*coalesced(layout.shape, layout.stride))
    parts = layout_modes(layout)
    if len(pattern) > len(parts):
        raise LayoutError(
            f"pattern {show(pattern)} has rank {len(pattern)}, the layout {layout} has rank {len(parts)}",
            fix="give the pattern at most one entry for each mode",
        )
    done = [_coalesce(m, p) for m, p in zip(parts, pattern, strict=False)]
    return join_modes([*done, *parts[len(pattern) :]])
