"""Building layouts from shapes."""

from __future__ import annotations

from ..errors import LayoutError
from . import leaf as lf
from .core import ComposedLayout, Layout, as_layout, layout_modes, raw_layout
from .int_tuple import flatten, leaves, modes, normal, product, show, transform, unflatten
from .leaf import STAR, Basis, is_dynamic
from .memo import operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leaf import IntTuple, Leaf


def make_layout(shape: object, stride: object) -> Layout:
    """The layout of a shape and a stride of the same profile; there is no implicit compact form."""
    return Layout(shape, stride)


def make_composed_layout(inner: Any, offset: object, outer: Any) -> ComposedLayout:
    """``inner o offset o outer``."""
    return ComposedLayout(inner, offset, outer)


def make_identity_layout(shape: object) -> Layout:
    """The layout whose value at a coordinate is the coordinate: strides ``1E0, 1E1, ...`` of the same profile."""
    s = normal(shape)

    def basis(t: IntTuple, path: tuple[int, ...]) -> IntTuple:
        if isinstance(t, tuple):
            return tuple([basis(m, (*path, i)) for i, m in enumerate(t)])
        return Basis(1, path or (0,))

    return Layout(s, basis(s, ()))


def compact_col_major(shape: IntTuple, start: Leaf = 1) -> IntTuple:
    """Compact column-major strides for a shape, the innermost one being ``start``."""
    out: list[Leaf] = []
    span = start
    for s in leaves(shape):
        out.append(span)
        span = lf.mul(span, s)
    return unflatten(iter(out), shape)


def _subtrees(shape: IntTuple, order: IntTuple, whole: str) -> list[tuple[IntTuple, Leaf]]:
    """The shape sub-tree that each order leaf owns."""
    if not isinstance(order, tuple):
        return [(shape, order)]
    if not isinstance(shape, tuple) or len(shape) != len(order):
        raise LayoutError(
            f"order {whole} does not fit: {show(order)} has rank {len(order)}, "
            f"the shape {show(shape)} has rank {len(modes(shape))}",
            fix="give one order for each mode of the shape",
        )
    return [pair for s, o in zip(shape, order, strict=True) for pair in _subtrees(s, o, whole)]


def _ordered(shape: IntTuple, order: IntTuple) -> IntTuple:
    """Strides that are compact in the order given; equal or dynamic orders go by position."""
    owned = _subtrees(shape, order, show(order))
    ranked = sorted(
        range(len(owned)), key=lambda i: (is_dynamic(owned[i][1]), 0 if is_dynamic(owned[i][1]) else owned[i][1])
    )
    strides: dict[int, IntTuple] = {}
    span: Leaf = 1
    for i in ranked:
        sub = owned[i][0]
        strides[i] = compact_col_major(sub, span)
        span = lf.mul(span, product(sub))
    flat = [d for i in range(len(owned)) for d in leaves(strides[i])]
    return unflatten(iter(flat), shape)


@operation
def make_ordered_layout(shape: object, order: object) -> Layout:
    """The compact layout whose modes follow an order: the mode of the smallest order leaf is innermost.

    An order leaf owns the shape sub-tree at its place, compact column-major inside; a single leaf means compact
    column-major.

    Raises:
        LayoutError: Order and shape do not fit, an order is not a static integer, or two orders are equal.
    """
    s, o = normal(shape), normal(order)
    flat = flatten(o)
    if any(type(x) is not int for x in flat):
        raise LayoutError(f"order {show(o)} is not static", fix="write the order as integers")
    if len(set(flat)) != len(flat):
        twice = next(x for x in flat if flat.count(x) > 1)
        raise LayoutError(
            f"order {show(o)} holds {twice} twice, so the modes would overlap", fix="give each mode its own order"
        )
    return Layout(s, _ordered(s, o))


def _zero(d: Leaf) -> bool:
    return type(d) is int and d == 0


def _order_of(stride: IntTuple) -> IntTuple:
    """A stride as an order: basis leaves cannot be ordered, negative ones count by magnitude."""
    if any(isinstance(d, Basis) or d is STAR for d in leaves(stride)):
        raise LayoutError(f"the strides {show(stride)} have no order", fix="use integer strides")
    return transform(lambda d: abs(d) if type(d) is int else d, stride)


@operation
def make_layout_like(layout: Any) -> Layout:
    """The same shape with compact strides in the stride order of the layout; stride-0 modes stay 0."""
    source = _plain(layout)
    counted = transform(lambda s, d: 1 if _zero(d) else s, source.shape, source.stride)
    strides = _ordered(counted, _order_of(source.stride))
    return raw_layout(source.shape, transform(lambda d, n: 0 if _zero(d) else n, source.stride, strides))


def _plain(layout: Any) -> Layout:
    while isinstance(layout, ComposedLayout):
        layout = layout.outer
    if not isinstance(layout, Layout):
        raise LayoutError(f"{show(layout)} is not a layout", fix="pass shape:stride")
    return layout


@operation
def make_fragment_layout_like(layout: Any) -> Layout:
    """The layout of a register fragment with the modes of a layout.

    Mode 0, the values of one atom, is compact column-major and innermost (nested stride-0 leaves stay 0); the other
    modes are compact around it in the stride order of the source.  Of a composed layout the outer part counts.
    """
    from .product import tiled_product

    source = _plain(layout)
    if len(modes(source.shape)) == 1:
        return raw_layout(source.shape, compact_col_major(source.shape))
    first, *others = layout_modes(source)
    if isinstance(first.shape, tuple):
        counted = transform(lambda s, d: 1 if _zero(d) else s, first.shape, first.stride)
        compact = compact_col_major(counted)
        block = raw_layout(first.shape, transform(lambda d, n: 0 if _zero(d) else n, first.stride, compact))
    else:
        block = raw_layout(first.shape, 1)
    shape = others[0].shape if len(others) == 1 else tuple([m.shape for m in others])
    stride = others[0].stride if len(others) == 1 else tuple([m.stride for m in others])
    return as_layout(
        tiled_product(block, raw_layout(shape, _ordered(shape, _order_of(stride)))), "make_fragment_layout_like"
    )
