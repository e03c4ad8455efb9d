"""Tiled copies as pure functions on layouts.

A partition is the tensor's layout with the thread as first mode; slicing that mode gives a thread its part.
"""

from __future__ import annotations

from ..errors import LayoutError
from .arith import int_tuple_product_each
from .compose import composition
from .construct import compact_col_major
from .coords import size
from .core import Layout, Tile, join_modes, layout_modes, raw_layout
from .divide import zipped_divide
from .int_tuple import flatten, product
from .inverse import right_inverse
from .memo import operation
from .merge import coalesce
from .product import logical_product
from .recast import recast_layout
from .tv import as_tile, check_thread_value, check_tile, entry_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


@operation
def tiled_copy_layout(tv: Layout, ref: Layout, side: Layout) -> Layout:
    """The thread-value layout of one side of a tiled copy: ``(thread, (atom value, rest value))``.

    Args:
        tv: The tiled copy's thread-value layout.
        ref: The atom's reference layout of shape (threads, values).
        side: The atom's source or destination layout, of the same size.

    Raises:
        LayoutError: The atom's threads or values do not divide the tiled copy's, or ref is no bijection.
    """
    atom_thr, atom_val = (size(m) for m in layout_modes(ref))
    for name, have, atom in zip(
        ("threads", "values"), (size(m) for m in layout_modes(tv)), (atom_thr, atom_val), strict=True
    ):
        if type(have) is int and type(atom) is int and have % atom:
            raise LayoutError(
                f"the copy has {have} {name}, which its atom of {atom} {name} does not divide",
                fix=f"use a multiple of {atom} {name}",
            )
    atom, rest = layout_modes(zipped_divide(tv, Tile(atom_thr, atom_val)))
    if side != ref:
        inverse = right_inverse(ref)
        if size(inverse) != size(ref) or size(side) != size(ref):
            raise LayoutError(
                f"the atom's reference layout {ref} cannot be turned into {side}",
                fix="use a bijective reference layout",
            )
        atom = composition(atom, composition(inverse, side))
    (a_thr, a_val), (r_thr, r_val) = layout_modes(atom), layout_modes(rest)
    zipped = join_modes((join_modes((a_thr, r_thr)), join_modes((a_val, r_val))))
    return coalesce(zipped, (1, (1, 1)))  # type: ignore[no-any-return]


@operation
def tiled_copy_partition(tensor: Any, tv: Layout, tile: Any, ref: Layout, side: Layout) -> Any:
    """The tensor as ``(thread, (atom value, rest value), rest M, rest N, ...)``.

    Args:
        tensor: Layout of the tensor.
        tv: Thread-value layout over the tile.
        tile: Tile or int tuple over the first modes of the tensor.
        ref: The atom's reference layout (threads, values).
        side: The atom's source or destination layout.

    Raises:
        LayoutError: The thread-value layout does not cover the tile equally often, the tile does not divide the
            tensor, or the atom does not divide threads and values.
    """
    from .core import ComposedLayout

    if isinstance(tensor, ComposedLayout):
        return ComposedLayout(tensor.inner, tensor.offset, tiled_copy_partition(tensor.outer, tv, tile, ref, side))
    tile = as_tile(tile)
    check_thread_value(tv, tile)
    check_tile(tile, tensor, "tile")
    inside, rest = layout_modes(zipped_divide(tensor, tile))
    thr, val = layout_modes(composition(inside, tiled_copy_layout(tv, ref, side)))
    return join_modes((thr, val, *layout_modes(rest)))


def _one_copy(tv: Layout) -> Layout:
    """The thread-value layout without the threads that only repeat others (stride 0): values are the same in each."""
    thr, val = layout_modes(tv)
    ss, ds = flatten(thr.shape), flatten(thr.stride)
    kept = [(s, d) for s, d in zip(ss, ds, strict=True) if not (type(d) is int and d == 0)]
    thr = raw_layout(tuple([s for s, _ in kept]), tuple([d for _, d in kept])) if kept else raw_layout(1, 0)
    return join_modes((thr, val))


@operation
def tiled_copy_retile(fragment: Layout, tv: Layout, tile: Any, atom_values: int) -> Layout:
    """A fragment partitioned for an MMA, seen as ``((atom value, rest value), rest M, rest N)`` of a tiled copy.

    Registers stay where they are; only the order in which the copy walks them changes.

    Args:
        fragment: Layout of shape (V, M, N) in registers.
        tv: The tiled copy's thread-value layout.
        tile: Its tile.
        atom_values: Values of one copy atom per thread.

    Raises:
        LayoutError: The fragment does not hold whole tiles of the copy, or the atom does not divide its values.
    """
    tile = as_tile(tile)
    tv = _one_copy(tv)
    if check_thread_value(tv, tile) != 1:
        raise LayoutError(
            f"the thread-value layout {tv} repeats elements of {tile}", fix="retile with values that are all different"
        )
    threads, values = (size(m) for m in layout_modes(tv))
    first = layout_modes(fragment)[0]
    v = size(first)
    if type(v) is not int or values % v:
        raise LayoutError(
            f"the fragment {fragment} has {v} values in mode 0, the copy {values} per thread",
            fix=f"use a divisor of {values}",
        )
    extents = tuple([entry_size(e) for e in tile.modes])
    place = composition(right_inverse(tv), raw_layout(extents, compact_col_major(extents)))
    blocks = recast_layout(threads * v, 1, place)
    order = logical_product(raw_layout(v, 1), right_inverse(blocks))
    divided = zipped_divide(raw_layout(product(order.shape), 1), atom_values)
    if type(size(divided)) is int and size(divided) != size(order):
        raise LayoutError(
            f"the copy atom's {atom_values} values do not divide the {size(order)} of a thread",
            fix="use a smaller atom",
        )
    walk = composition(order, divided)
    tiler = Tile(v, *(int_tuple_product_each(blocks.shape) if isinstance(blocks.shape, tuple) else (blocks.shape,)))
    check_tile(tiler, fragment, "the copy's tile of registers")
    inside, rest = layout_modes(zipped_divide(fragment, tiler))
    return join_modes((composition(inside, walk), *layout_modes(rest)[1:]))
