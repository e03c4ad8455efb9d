"""Tiled views as pure functions on layouts: thread-value layouts, tiled copy and tiled MMA partitions, retile.

A *thread-value layout* maps ``(thread, value)`` to a column-major index inside a tile.  The partition functions turn a
tensor's layout into one whose first mode is the thread; slicing that mode gives a thread its part.
"""

from __future__ import annotations

from ..errors import LayoutError
from .compose import coalesce, coalesced, composition
from .construct import compact_col_major, make_fragment_layout_like
from .coords import cosize, crd2idx, get_flat_coord, size
from .core import Layout, Tile, as_layout, join_modes, layout_modes, raw_layout
from .divide import logical_divide, zipped_divide
from .int_tuple import modes, product, show
from .inverse import right_inverse
from .leaf import STAR
from .memo import operation
from .product import logical_product, raked_product, tiled_product
from .recast import recast_layout
from .tuples import append, int_tuple_product_each

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leaf import IntTuple, Leaf

OPERAND_MODES = {"a": (0, 2), "b": (1, 2), "c": (0, 1), "d": (0, 1)}
"""Which of (M, N, K) each operand of an MMA has."""


def covers(layout: Layout, count: int) -> int:
    """How often a static layout reaches each index of ``[0, count)``; 0 if not equally often, or also others.

    Sums of arithmetic progressions fill an interval once only if, sorted by stride, each starts where the span below
    ends; stride-0 modes repeat the whole.
    """
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


def _tile_layouts(tile: Any) -> Tile:
    if isinstance(tile, Tile):
        return tile
    return Tile(*tile) if isinstance(tile, tuple) else Tile(tile)


def _entry_size(entry: Any) -> Leaf:
    return size(entry) if isinstance(entry, Layout) else entry


def _tile_size(tile: Tile) -> Leaf:
    return product(tuple([_entry_size(e) for e in tile.modes]))


def _check_tile(tile: Tile, tensor: Layout, what: str) -> None:
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
        n, have = _entry_size(entry), size(mode)
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
    tile = _tile_layouts(tile)
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
    tile = _tile_layouts(tile)
    check_thread_value(tv, tile)
    _check_tile(tile, tensor, "tile")
    inside, rest = layout_modes(zipped_divide(tensor, tile))
    thr, val = layout_modes(composition(inside, tiled_copy_layout(tv, ref, side)))
    return join_modes((thr, val, *layout_modes(rest)))


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
    tile = _tile_layouts(tile)
    if check_thread_value(tv, tile) != 1:
        raise LayoutError(
            f"the thread-value layout {tv} repeats elements of {tile}", fix="retile with a bijective layout"
        )
    threads, values = (size(m) for m in layout_modes(tv))
    first = layout_modes(fragment)[0]
    v = size(first)
    if type(v) is not int or values % v:
        raise LayoutError(
            f"the fragment {fragment} has {v} values in mode 0, the copy {values} per thread",
            fix=f"use a divisor of {values}",
        )
    extents = tuple([_entry_size(e) for e in tile.modes])
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
    _check_tile(tiler, fragment, "the copy's tile of registers")
    inside, rest = layout_modes(zipped_divide(fragment, tiler))
    return join_modes((composition(inside, walk), *layout_modes(rest)[1:]))


def mma_tile(atom_shape: tuple[int, int, int], atom_layout: Layout, perm: Tile | None = None) -> tuple[Any, Any, Any]:
    """The permutation tile over (M, N, K): the given entry, or ``atom extent * atoms`` where it is ``*``.

    Raises:
        LayoutError: The atom layout or the permutation has not three modes.
    """
    atoms = layout_modes(atom_layout)
    given = perm.modes if perm is not None else (STAR,) * 3
    if len(atoms) != 3 or len(given) != 3:
        raise LayoutError(
            f"atom layout {atom_layout} and permutation {perm} must have the modes (M,N,K)",
            fix="write three modes in each",
        )
    return tuple([g if g is not STAR else n * size(a) for g, n, a in zip(given, atom_shape, atoms, strict=True)])  # type: ignore[return-value]


def mma_thread_layout(atom_threads: Layout, atom_layout: Layout) -> Layout:
    """Thread layout over (V, M, N, K): the atom's threads, repeated by the atom layout."""
    return append(tiled_product(atom_threads, atom_layout), None, 4)  # type: ignore[no-any-return]


def mma_thread_coord(thread_layout: Layout, thread: Leaf) -> tuple[Leaf, Leaf, Leaf, Leaf]:
    """The (V, M, N, K) coordinate of a thread index."""
    v, m, n, k = get_flat_coord(thread, thread_layout)
    return v, m, n, k


@operation
def tiled_mma_partition(
    operand: str,
    tensor: Any,
    atom_tv: Layout,
    atom_shape: tuple[int, int, int],
    atom_layout: Layout,
    perm: Tile | None = None,
) -> Any:
    """An operand's tensor as ``((ThrV,(ThrM,ThrK)),(FrgV,(RestM,RestK)))``; B has (N,K), C and D have (M,N).

    Args:
        operand: "a", "b", "c" or "d".
        tensor: Layout of the tensor; its first two modes are the operand's.
        atom_tv: The atom's thread-value layout of the operand.
        atom_shape: (M, N, K) of the atom.
        atom_layout: Layout of the atoms over (M, N, K).
        perm: Permutation tile; ``*`` stands for the extent that the atoms cover.

    Raises:
        LayoutError: The tile of the tiled MMA does not divide the tensor.
    """
    from .core import ComposedLayout

    if isinstance(tensor, ComposedLayout):
        part = tiled_mma_partition(operand, tensor.outer, atom_tv, atom_shape, atom_layout, perm)
        return ComposedLayout(tensor.inner, tensor.offset, part)
    if operand.lower() not in OPERAND_MODES:
        raise LayoutError(f"{operand!r} is no operand of an MMA", fix="use one of a, b, c, d")
    i, j = OPERAND_MODES[operand.lower()]
    whole = mma_tile(atom_shape, atom_layout, perm)
    tile = Tile(whole[i], whole[j])
    _check_tile(tile, tensor, "the tile of the tiled MMA")
    permuted = logical_divide(tensor, tile)
    atom, rest = layout_modes(zipped_divide(permuted, Tile(atom_shape[i], atom_shape[j])))
    thr_v, frg_v = layout_modes(composition(atom, atom_tv))
    atoms = layout_modes(atom_layout)
    thr, frg = layout_modes(zipped_divide(rest, Tile(size(atoms[i]), size(atoms[j]))))
    return join_modes((join_modes((thr_v, thr)), join_modes((frg_v, frg))))


def tiled_mma_slice(operand: str, partition: Layout, coord: tuple[Leaf, Leaf, Leaf, Leaf]) -> tuple[Layout, IntTuple]:
    """One thread's fragment ``(V, M, K)`` (or (V,N,K), (V,M,N)) and the offset of its first element.

    Args:
        operand: "a", "b", "c" or "d".
        partition: The result of ``tiled_mma_partition``.
        coord: The thread's (V, M, N, K).
    """
    i, j = OPERAND_MODES[operand.lower()]
    thr, frg = layout_modes(partition)
    offset = crd2idx((coord[0], (coord[1 + i], coord[1 + j])), thr)
    value, rest = layout_modes(frg)
    return join_modes((value, *layout_modes(rest))), offset


@operation
def tiled_mma_tv(
    operand: str,
    atom_tv: Layout,
    atom_shape: tuple[int, int, int],
    atom_layout: Layout,
    atom_threads: Layout,
    perm: Tile | None = None,
) -> tuple[tuple[Leaf, Leaf], Layout]:
    """Tile extents and thread-value layout of an operand, as ``make_tiled_copy_A`` and its kin need them.

    Threads that differ only in the mode the operand lacks hold the same elements (stride 0).
    """
    i, j = OPERAND_MODES[operand.lower()]
    whole = mma_tile(atom_shape, atom_layout, perm)
    extents = (_entry_size(whole[i]), _entry_size(whole[j]))
    reference = raw_layout(extents, compact_col_major(extents))
    thr, frg = layout_modes(tiled_mma_partition(operand, reference, atom_tv, atom_shape, atom_layout, perm))
    thr_v, thr_ij = layout_modes(thr)
    steps = dict(zip((i, j), layout_modes(thr_ij), strict=True))
    atoms = layout_modes(atom_layout)
    full = join_modes((thr_v, *(steps.get(m, raw_layout(size(atoms[m]), 0)) for m in range(3))))
    by_index = right_inverse(mma_thread_layout(atom_threads, atom_layout))
    if size(by_index) != size(full):
        raise LayoutError(
            f"the atom layout {atom_layout} does not number its threads from 0 without gaps", fix="use a compact one"
        )
    value = coalesce(frg, (1, (1, 1)))
    return extents, join_modes((composition(full, by_index), value))


def fragment_layout(partition: Any, stages: int | None = None) -> Layout:
    """The register layout of a fragment; with ``stages`` a last mode of that many copies.

    Units: elements.
    """
    layout = make_fragment_layout_like(partition)
    if stages is None:
        return layout
    if type(stages) is not int or stages < 1:
        raise LayoutError(f"a fragment cannot have {stages} stages", fix="use a positive int")
    return append(layout, raw_layout(stages, cosize(layout) if stages > 1 else 0))  # type: ignore[no-any-return]
