"""Sizes of layouts, and the maps between coordinates and indices."""

from __future__ import annotations

from ..errors import LayoutError
from . import leaf as lf
from .core import ComposedLayout, Layout, as_layout
from .int_tuple import add_coords, basis_tuple, leaves, modes, normal, product, show, transform, tuple_depth
from .leaf import STAR, Basis
from .memo import operation
from .swizzle import CoordSwizzle, Swizzle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .leaf import IntTuple, Leaf


def size(x: object) -> Leaf:
    """Number of elements: the product of the shape leaves of a layout, or of the leaves of an int tuple.

    Units: elements.
    """
    return product(x.shape if isinstance(x, (Layout, ComposedLayout)) else normal(x))


def depth(x: object) -> int:
    """Nesting depth; 0 for a leaf."""
    return tuple_depth(x.shape if isinstance(x, (Layout, ComposedLayout)) else normal(x))


def _stride_sum(pairs: Iterator[tuple[Leaf, Leaf]]) -> IntTuple:
    """Sum of ``count * stride`` over leaves: an index, or a coordinate where strides are basis leaves."""
    total: IntTuple = 0
    for count, d in pairs:
        step = lf.mul(count, d)
        total = add_coords(total, basis_tuple(step) if isinstance(step, Basis) else step)
    return total


@operation
def coshape(layout: Layout | ComposedLayout) -> IntTuple:
    """Extent of the codomain: per codomain leaf ``sum((s - 1) * |d|) + 1``.

    Negative strides count by their magnitude: the image then spans that many indices, reaching below zero.
    """
    if isinstance(layout, ComposedLayout):
        raise LayoutError("the codomain of a composed layout is not an affine box", fix="ask for its outer layout")
    pairs = ((lf.sub(s, 1), _magnitude(d)) for s, d in _leaf_pairs(as_layout(layout, "coshape")))
    return transform(lambda x: lf.add(x, 1), _stride_sum(pairs))


def _magnitude(d: Leaf) -> Leaf:
    return abs(d) if type(d) is int else d


def _leaf_pairs(layout: Layout) -> Iterator[tuple[Leaf, Leaf]]:
    return zip(leaves(layout.shape), leaves(layout.stride), strict=True)


def coprofile(layout: Layout) -> IntTuple:
    """The profile of the codomain with all leaves 0: ``0`` for integer strides, a tuple for basis strides."""
    pairs = ((1, d) for d in leaves(as_layout(layout, "coprofile").stride))
    return transform(lambda _: 0, _stride_sum(pairs))


def cosize(layout: Layout | ComposedLayout) -> Leaf:
    """Product of the coshape.

    Units: elements.

    Raises:
        LayoutError: The layout is a composed one: its image is no box.
    """
    return product(coshape(layout))


def crd2idx(coord: object, layout: Any) -> IntTuple:
    """The value of a layout, composed layout or swizzle at a coordinate.

    A coordinate may be an integer for a nested shape: it is split column-major, and the last mode takes the whole
    remaining quotient, so an index past the end extrapolates along the last mode.  ``*`` counts as 0.

    Raises:
        LayoutError: The coordinate nests deeper than the shape, or has another rank.
    """
    if type(coord) is int and coord >= 0 and type(layout) is Layout:
        at = _at_int(coord, layout.shape, layout.stride)
        if at is not None:
            return at
    c = normal(coord)
    if isinstance(layout, Swizzle):
        while isinstance(c, tuple) and len(c) == 1:
            c = c[0]
        if isinstance(c, (tuple, Basis)):
            raise LayoutError(f"crd2idx({show(c)}, {layout}): a swizzle takes one index", fix="give an integer")
        return layout(0 if c is STAR else c)
    if isinstance(layout, CoordSwizzle):
        return layout(c)
    if isinstance(layout, ComposedLayout):
        return crd2idx(add_coords(layout.offset, crd2idx(c, layout.outer)), layout.inner)
    layout = as_layout(layout, "crd2idx")
    total: IntTuple = 0
    for step in _steps(c, layout.shape, layout.stride, c, layout):
        total = add_coords(total, basis_tuple(step) if isinstance(step, Basis) else step)
    return total


def _at_int(i: int, shape: IntTuple, stride: IntTuple) -> Leaf | None:
    """The index at a static coordinate, which most are; ``None`` where an extent is dynamic or a stride is a basis."""
    if type(shape) is not tuple:
        return None if isinstance(stride, Basis) else i * stride if type(stride) is int else lf.mul(i, stride)
    total: Leaf = 0
    last = len(shape) - 1
    for k, s in enumerate(shape):
        digit = i
        if k < last:
            n = s if type(s) is int else product(s)
            if type(n) is not int:
                return None
            i, digit = divmod(i, n)
        part = _at_int(digit, s, stride[k])
        if part is None:
            return None
        total = total + part if type(part) is int and type(total) is int else lf.add(total, part)
    return total


def _steps(c: IntTuple, shape: IntTuple, stride: IntTuple, whole: IntTuple, layout: Layout) -> Iterator[Leaf]:
    if not isinstance(shape, tuple):
        while isinstance(c, tuple) and len(c) == 1:
            c = c[0]
        if isinstance(c, tuple):
            raise LayoutError(
                f"crd2idx({show(whole)}, {layout}): the coordinate {show(c)} nests deeper than the mode {show(shape)}",
                fix="give one integer for this mode",
            )
        yield lf.mul(0 if c is STAR else c, stride)
    elif isinstance(c, tuple):
        if len(c) != len(shape):
            raise LayoutError(
                f"crd2idx({show(whole)}, {layout}): coordinate {show(c)} has rank {len(c)}, "
                f"the mode {show(shape)} has rank {len(shape)}",
                fix="give one coordinate for each mode, or one integer for all",
            )
        for x, s, d in zip(c, shape, stride, strict=True):
            yield from _steps(x, s, d, whole, layout)
    elif shape:
        rest = 0 if c is STAR else c
        for s, d in zip(shape[:-1], stride[:-1], strict=True):
            n = product(s)
            yield from _steps(lf.mod(rest, n), s, d, whole, layout)
            rest = lf.div(rest, n)
        yield from _steps(rest, shape[-1], stride[-1], whole, layout)


@operation
def _check_invertible(layout: Layout) -> bool:
    """Whether ``(i / d) % s`` recovers every coordinate: each stride is a multiple of the span below it."""
    if any(isinstance(d, Basis) for d in leaves(layout.stride)):
        raise LayoutError("basis strides have no linear index", fix="use integer strides")
    known = [(d, s) for s, d in _leaf_pairs(layout) if type(s) is not int or s != 1]
    for d, _ in known:
        if type(d) is int and d <= 0:
            raise LayoutError(
                f"stride {d} cannot be undone: it repeats or reverses indices", fix="use positive strides"
            )
    static = sorted((d, s) for d, s in known if type(d) is int and type(s) is int)
    for (d0, s0), (d1, s1) in zip(static, static[1:], strict=False):
        if d1 % (s0 * d0):
            raise LayoutError(
                f"mode {s1}:{d1} does not start at a multiple of the span {s0}*{d0} of mode {s0}:{d0}",
                fix="use a compact layout",
            )
    return True


def idx2crd(i: object, layout: Layout) -> IntTuple:
    """The coordinate that a layout maps to index ``i``: per leaf ``(i / stride) % shape``.

    Valid for layouts whose strides nest (each a multiple of the span of the smaller ones); an index outside the
    image wraps.  With dynamic strides this is assumed.

    Raises:
        LayoutError: The static strides do not nest, or repeat an index.
    """
    _check_invertible(as_layout(layout, "idx2crd"))
    index = normal(i)
    if isinstance(index, tuple):
        raise LayoutError(f"idx2crd({show(index)}, {layout}): the index is not an integer")
    return transform(
        lambda s, d: 0 if type(s) is int and s == 1 else lf.mod(lf.div(index, d), s), layout.shape, layout.stride
    )


def _flat(c: IntTuple, shape: IntTuple) -> Leaf:
    """Column-major scalar of a coordinate that nests like its shape."""
    total: Leaf = 0
    span: Leaf = 1
    for x, s in zip(leaves(c), leaves(shape), strict=True):
        total = lf.add(total, lf.mul(x, span))
        span = lf.mul(span, s)
    return total


def get_flat_coord(i: object, layout: Layout) -> IntTuple:
    """``idx2crd`` with every top-level mode turned into one column-major integer."""
    c = idx2crd(i, layout)
    if not isinstance(c, tuple):
        return c
    return tuple([_flat(x, s) for x, s in zip(c, modes(layout.shape), strict=True)])


def get_1d_coord(i: object, layout: Layout) -> Leaf:
    """``idx2crd`` turned into one column-major integer."""
    return _flat(idx2crd(i, layout), layout.shape)
