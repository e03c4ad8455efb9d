"""logical, zipped, tiled, flat, blocked and raked product, and tile_to_shape."""

from __future__ import annotations

from ..errors import LayoutError
from . import leaf as lf
from .arith import ceil_div, int_tuple_product_each
from .compose import composition
from .construct import make_ordered_layout
from .coords import cosize, size
from .core import ComposedLayout, Layout, as_layout, join_modes, layout_modes, raw_layout
from .int_tuple import leaves, modes, normal, show
from .inverse import complement
from .memo import operation
from .merge import canonical
from .tuples import append

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_LARGEST_SCAN = 1 << 14


def _free_run(a: Layout) -> int:
    """The n for which adding ``[0, n)`` to A's image never hits it again; 0 if that is not cheap to say."""
    ds = list(leaves(a.stride))
    if not a.is_static or size(a) > _LARGEST_SCAN or any(type(d) is not int or d < 0 for d in ds):
        return 0
    image = [0]
    for s, d in zip(leaves(a.shape), ds, strict=True):
        if d:
            image = [x + i * d for i in range(s) for x in image]
    image.sort()
    return min((y - x for x, y in zip(image, image[1:], strict=False)), default=0)


def _pair(a: Layout, b: Layout) -> tuple[Layout, Layout]:
    """A, and the copies of it that B asks for."""
    try:
        around = complement(a, lf.mul(size(a), cosize(b)))
    except LayoutError:
        # A does not nest, so its complement is not one layout.  A's gaps may still hold all of B.
        span = cosize(b)
        if type(span) is not int or span > _free_run(a):
            raise
        around = raw_layout(span, 1)
    return canonical(a), canonical(composition(around, b))


def _on_outer(fn: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    return ComposedLayout(a.inner, a.offset, fn(a.outer, b))


@operation
def logical_product(a: Any, b: Any) -> Any:
    """``(A, copies of A laid out as B)``: ``(A, composition(complement(A, size(A) * cosize(B)), B))``.

    Distinct coordinates of the second mode move A to disjoint places.

    Args:
        a: Layout, or composed layout (its outer part is repeated).
        b: Layout of the copies.

    Raises:
        LayoutError: A's modes overlap or leave no room for the copies.
    """
    if isinstance(a, ComposedLayout):
        return _on_outer(logical_product, a, b)
    return join_modes(_pair(as_layout(a, "logical_product"), as_layout(b, "logical_product")))


@operation
def zipped_product(a: Any, b: Any) -> Any:
    """``((A modes), (B modes))``: the logical product."""
    if isinstance(a, ComposedLayout):
        return _on_outer(zipped_product, a, b)
    return join_modes(_pair(as_layout(a, "zipped_product"), as_layout(b, "zipped_product")))


@operation
def tiled_product(a: Any, b: Any) -> Any:
    """``(A, copy modes...)``."""
    if isinstance(a, ComposedLayout):
        return _on_outer(tiled_product, a, b)
    block, copies = _pair(as_layout(a, "tiled_product"), as_layout(b, "tiled_product"))
    return join_modes((block, *layout_modes(copies)))


@operation
def flat_product(a: Any, b: Any) -> Any:
    """``(A modes..., copy modes...)``."""
    if isinstance(a, ComposedLayout):
        return _on_outer(flat_product, a, b)
    block, copies = _pair(as_layout(a, "flat_product"), as_layout(b, "flat_product"))
    return join_modes((*layout_modes(block), *layout_modes(copies)))


def _paired_modes(a: Layout, b: Layout) -> list[tuple[Layout, Layout]]:
    """Modes of A with their copies, both padded to one rank with ``1:0``."""
    n = max(len(modes(a.shape)), len(modes(b.shape)))
    block, copies = _pair(append(a, None, n), append(b, None, n))
    if n == 1:
        return [(block, copies)]
    return list(zip(layout_modes(block), layout_modes(copies), strict=True))


@operation
def blocked_product(a: Any, b: Any) -> Any:
    """Mode i is ``(A_i, copies along mode i)``: blocks next to each other."""
    if isinstance(a, ComposedLayout):
        return _on_outer(blocked_product, a, b)
    pairs = _paired_modes(as_layout(a, "blocked_product"), as_layout(b, "blocked_product"))
    return join_modes([join_modes(p) for p in pairs]) if len(pairs) > 1 else join_modes(pairs[0])


@operation
def raked_product(a: Any, b: Any) -> Any:
    """Mode i is ``(copies along mode i, A_i)``: blocks interleaved."""
    if isinstance(a, ComposedLayout):
        return _on_outer(raked_product, a, b)
    pairs = [(y, x) for x, y in _paired_modes(as_layout(a, "raked_product"), as_layout(b, "raked_product"))]
    return join_modes([join_modes(p) for p in pairs]) if len(pairs) > 1 else join_modes(pairs[0])


@operation
def tile_to_shape(block: Any, target: object, order: object) -> Any:
    """Repeats a block until it covers the target shape, the copies in the given order.

    ``blocked_product(block, make_ordered_layout(ceil_div(target, shape of the block), order))``.

    Raises:
        LayoutError: The block has more modes than the target.
    """
    if not isinstance(block, (Layout, ComposedLayout)):
        as_layout(block, "tile_to_shape")
    shape = normal(target)
    n = len(modes(shape))
    have = len(modes(block.shape))
    if have > n:
        raise LayoutError(
            f"the block has rank {have}, the target {show(shape)} has rank {n}",
            fix="give the target one extent for each mode",
        )
    padded = append(block, None, n)
    extents = int_tuple_product_each(padded.shape)
    copies = ceil_div(int_tuple_product_each(shape), extents)
    return blocked_product(padded, make_ordered_layout(copies, order))
