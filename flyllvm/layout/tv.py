"""Thread-value layouts.

A *thread-value layout* maps ``(thread, value)`` to a column-major index inside a tile.
"""

from __future__ import annotations

from ..errors import LayoutError
from .arith import int_tuple_product_each
from .compose import composition
from .coords import size
from .core import Layout, Tile, as_layout, layout_modes, raw_layout
from .int_tuple import modes, product, show
from .inverse import right_inverse
from .leaf import STAR
from .memo import operation
from .merge import coalesced
from .product import raked_product

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leaf import IntTuple, Leaf


def covers(layout: Layout, count: int) -> int:
    """How often a static layout reaches each index of ``[0, count)``; 0 if not equally often, or also others.

    Sums of arithmetic progressions fill an interval once only if, sorted by stride, each starts where the span below
    ends; stride-0 modes repeat the whole.
    """
    if not layout.is_static:
        raise LayoutError(f"the coverage of {layout} is not known at compile time", fix="use a static layout")
    ss, ds = coalesced(layout.shape, layout.stride)
    repeats, reached = 1, 1
    for d, s in sorted(zip(ds, ss, strict=True)):
        if d == 0:
            repeats *= s
        elif d == reached:
            reached *= s
        else:
            return 0
    return repeats if reached == count else 0


@operation
def make_layout_tv(thr: Layout, val: Layout) -> tuple[IntTuple, Layout]:
    """The tile that a thread layout times a value layout covers, and the thread-value layout on it.

    ``L = raked_product(thr, val)``; the tile is the size of each mode of L, the thread-value layout is
    ``composition(right_inverse(L), (|thr|,|val|):(1,|thr|))``.

    Returns:
        ``(tiler, tv)``: an int tuple of extents, and a layout of shape (threads, values).

    Raises:
        LayoutError: A layout is dynamic, or threads and values do not cover the tile exactly once.
    """
    thr, val = as_layout(thr, "make_layout_tv"), as_layout(val, "make_layout_tv")
    if not (thr.is_static and val.is_static):
        raise LayoutError("thread and value layout must be static", fix="use compile-time extents and strides")
    raked = raked_product(thr, val)
    threads, values = size(thr), size(val)
    inverse = right_inverse(raked)
    if size(inverse) != threads * values:
        raise LayoutError(
            f"threads and values reach only {size(inverse)} of {threads * values} places "
            f"of the tile {show(int_tuple_product_each(raked.shape))}",
            fix="use compact layouts, each with strides that fill 0 to its size",
        )
    tv = composition(inverse, raw_layout((threads, values), (1, threads)))
    return int_tuple_product_each(raked.shape), tv


def as_tile(tile: Any) -> Tile:
    if isinstance(tile, Tile):
        return tile
    return Tile(*tile) if isinstance(tile, tuple) else Tile(tile)


def entry_size(entry: Any) -> Leaf:
    return size(entry) if isinstance(entry, Layout) else entry


def _tile_size(tile: Tile) -> Leaf:
    return product(tuple([entry_size(e) for e in tile.modes]))


def check_tile(tile: Tile, tensor: Layout, what: str) -> None:
    """Refuses a tile that does not divide a static tensor."""
    parts = layout_modes(tensor)
    if len(tile.modes) > len(parts):
        raise LayoutError(
            f"{what} {tile} has rank {len(tile.modes)}, the tensor {tensor} has rank {len(parts)}",
            fix="partition a tensor that has at least the modes of the tile",
        )
    for i, (entry, mode) in enumerate(zip(tile.modes, parts, strict=False)):
        if entry is STAR:
            continue
        n, have = entry_size(entry), size(mode)
        if type(n) is int and type(have) is int and have % n:
            raise LayoutError(
                f"{what} {tile} does not divide the tensor {tensor}: mode {i} has {have} elements, the tile {n}",
                fix=f"use a tile extent that divides {have}, or divide a padded tensor first",
            )


def check_thread_value(tv: Layout, tile: Any, thread_count: int | None = None) -> int:
    """How often a thread-value layout covers its tile.

    Args:
        tv: Static layout of shape (threads, values).
        tile: Tile or int tuple; its size is what must be covered.
        thread_count: Threads that will run; by default any.

    Returns:
        1 for a bijection, n where n threads or values share each element.

    Raises:
        LayoutError: Not every element is covered equally often, or the thread count differs.
    """
    tile = as_tile(tile)
    if len(modes(tv.shape)) != 2:
        raise LayoutError(
            f"the thread-value layout {tv} has no two modes (threads, values)", fix="use (threads,values):..."
        )
    threads, values = (size(m) for m in layout_modes(tv))
    if thread_count is not None and threads != thread_count:
        raise LayoutError(
            f"the thread-value layout {tv} is for {threads} threads, {thread_count} run",
            fix=f"launch {threads} threads in a block",
        )
    if not (tv.is_static and tile.is_static):
        raise LayoutError(
            f"the thread-value layout {tv} on {tile} is not static", fix="use compile-time extents and strides"
        )
    count = _tile_size(tile)
    times = covers(tv, count)
    if times == 0:
        raise LayoutError(
            f"{threads} threads with {values} values each do not cover the {count} elements "
            f"of tile {tile} equally often: {tv}",
            fix="make |threads| * |values| a multiple of the tile, with strides that fill it",
        )
    return times
