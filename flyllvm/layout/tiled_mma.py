"""Tiled matrix multiply-accumulate as pure functions on layouts: thread layout, operand partitions, fragments."""

from __future__ import annotations

from ..errors import LayoutError
from .compose import composition
from .construct import compact_col_major, make_fragment_layout_like
from .coords import cosize, crd2idx, get_flat_coord, size
from .core import Layout, Tile, join_modes, layout_modes, raw_layout
from .divide import logical_divide, zipped_divide
from .inverse import right_inverse
from .leaf import STAR
from .memo import operation
from .merge import coalesce
from .product import tiled_product
from .tuples import append
from .tv import check_tile, entry_size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leaf import IntTuple, Leaf

OPERAND_MODES = {"a": (0, 2), "b": (1, 2), "c": (0, 1), "d": (0, 1)}
"""Which of (M, N, K) each operand of an MMA has."""


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
    return tuple([g if g is not STAR else n * size(a) for g, n, a in zip(given, atom_shape, atoms, strict=True)])


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
    check_tile(tile, tensor, "the tile of the tiled MMA")
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
    extents = (entry_size(whole[i]), entry_size(whole[j]))
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
