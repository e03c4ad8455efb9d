"""complement, right_inverse and left_inverse."""

from __future__ import annotations

from ..errors import LayoutError
from . import leaf as lf
from .coords import cosize
from .core import Layout, as_layout
from .int_tuple import leaves, normal, show
from .leaf import Basis
from .memo import operation
from .merge import coalesced, pack

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .leaf import Leaf


def _integer_strides(layout: Layout) -> None:
    for d in leaves(layout.stride):
        if isinstance(d, Basis):
            raise LayoutError(
                f"the stride {d} is a basis leaf, so the codomain is not an integer", fix="use integer strides"
            )
        if type(d) is int and d < 0:
            raise LayoutError(f"the stride {d} is negative", fix="use strides of at least 0")


@operation
def complement(layout: Layout, codomain: object = None) -> Layout:
    """The ordered layout whose image, added to A's, reaches every index of the codomain once.

    Args:
        layout: A; its modes, sorted by stride, must nest: each stride a multiple of the span below it.
        codomain: Size to cover, in elements; by default ``cosize(layout)``.  It is rounded up to whole copies of A.

    Raises:
        LayoutError: Two modes of A overlap or do not divide (both are named), or A's codomain is no integer.
    """
    layout = as_layout(layout, "complement")
    _integer_strides(layout)
    target = cosize(layout) if codomain is None else normal(codomain)
    if isinstance(target, (tuple, Basis)) or target is lf.STAR or (type(target) is int and target < 1):
        raise LayoutError(
            f"codomain {show(target)} is not a positive integer", fix="give the number of indices to cover"
        )
    pairs = [(s, d) for s, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True) if not lf.same_leaf(d, 0)]
    ss, ds = coalesced(tuple(s for s, _ in pairs), tuple(d for _, d in pairs)) if pairs else ([1], [0])
    if len(ss) == 1 and lf.same_leaf(ds[0], 0):
        return pack(*coalesced(target, 1))
    modes = list(zip(ds, ss, strict=True))
    if len(modes) > 1:
        if any(type(d) is not int for d in ds):
            raise LayoutError(
                "more than one mode needs static strides, to know their order", fix="make the strides static"
            )
        modes.sort(key=lambda m: m[0])
    shapes: list[Leaf] = []
    strides: list[Leaf] = []
    last: Leaf = 1
    below = ""
    for d, s in modes:
        _check_nesting(last, d, s, below)
        shapes.append(lf.div(d, last))
        strides.append(last)
        last = lf.mul(d, s)
        below = f"{s}:{d}"
    shapes.append(lf.ceil_div(target, last))
    strides.append(last)
    return pack(*coalesced(tuple(shapes), tuple(strides)))


def _check_nesting(span: Leaf, d: Leaf, s: Leaf, below: str) -> None:
    if type(span) is int and type(d) is int and d % span:
        how = "overlap" if d < span else "do not divide"
        raise LayoutError(
            f"modes {below} and {s}:{d} {how}: stride {d} is not a multiple of {span}, the span of {below}",
            fix="use a layout whose modes, sorted by stride, nest",
        )


@operation
def right_inverse(layout: Layout) -> Layout:
    """The largest layout R found with ``A(R(i)) == i`` for ``i < size(R)``; ``1:0`` if A reaches no run from 0."""
    layout = as_layout(layout, "right_inverse")
    if any(isinstance(d, Basis) for d in leaves(layout.stride)):
        raise LayoutError("basis strides have no integer image to invert", fix="use integer strides")
    ss, ds = coalesced(layout.shape, layout.stride)
    before: list[Leaf] = [1]
    for s in ss:
        before.append(lf.mul(before[-1], s))
    ready = [
        (d, i) for i, (s, d) in enumerate(zip(ss, ds, strict=True)) if type(s) is int and type(d) is int and s != 1
    ]
    shapes: list[Leaf] = []
    strides: list[Leaf] = []
    reached = 1
    for d, i in sorted(ready):
        if d == reached:
            shapes.append(ss[i])
            strides.append(before[i])
            reached = ss[i] * d
    return pack(*coalesced(tuple(shapes), tuple(strides))) if shapes else pack([1], [0])


@operation
def left_inverse(layout: Layout) -> Layout:
    """A layout L with ``L(A(i)) == i`` for every index i of A.

    Raises:
        LayoutError: A repeats an index, is dynamic in more than it can order, or its strides do not nest.
    """
    layout = as_layout(layout, "left_inverse")
    _integer_strides(layout)
    ss, ds = coalesced(layout.shape, layout.stride)
    if lf.same_leaf(ss[0], 1):  # coalesced: then it is the only mode
        return pack([1], [0])
    if any(type(d) is not int for d in ds):
        raise LayoutError("a dynamic stride cannot be ordered", fix="make the strides static")
    before: list[Leaf] = [1]
    for s in ss:
        before.append(lf.mul(before[-1], s))
    modes = sorted((d, i) for i, d in enumerate(ds))
    shapes: list[Leaf] = []
    strides: list[Leaf] = []
    reached, stride = 1, 0
    below, extent = "", 1
    for d, i in modes:
        if d == 0:
            raise LayoutError(
                f"mode {ss[i]}:0 repeats an index, so A has no left inverse", fix="drop the modes of stride 0"
            )
        if d % reached or (type(extent) is int and extent * reached > d):
            raise LayoutError(
                f"modes {below} and {ss[i]}:{d}: stride {d} is not a multiple of {reached} "
                f"that clears the span {extent}*{reached}",
                fix="use a layout whose strides nest",
            )
        shapes.append(d // reached)
        strides.append(stride)
        reached, stride, extent = d, before[i], ss[i]
        below = f"{ss[i]}:{d}"
    shapes.append(extent)
    strides.append(stride)
    return pack(*coalesced(tuple(shapes), tuple(strides)))
