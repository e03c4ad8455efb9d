"""Whether the operands of matrix instructions have one order of the contraction index, by where they come from.

Element (m, k) of an operand comes from a byte of global memory (`origins`).  Whatever gathers rows, permutes k or
transposes, in a product of matrices that byte is a place of the row plus a place of k: k means the same in all rows.
It does not where LDS is written with one swizzle (or row pitch) and read with another.  A kernel may mean it: where
the host stores the matrix swizzled, the same instructions are right.  So this is a warning.

It is not judged, because it is often meant, where rows share bytes (windows of a convolution at a border, circulant and
packed symmetric matrices), where data did not come through LDS, from several buffers or from one that the kernel itself
writes, and where the other operand has one value at all k (sums).  What comes through an index in memory may mix
anything: it, and several instructions that belong together, need the same pieces in all rows, in different order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .operand_tiles import Group, Side, Tiles, of_node
from .order_warning import warn
from .origins import INDIRECT, NUMBERS, OFFSET, READ_SHIFT, Plan
from .values import Array

if TYPE_CHECKING:
    from .cfg import Node
    from .compile import Compiler, Op
    from .machine import Machine

# Rows that cannot agree by chance, and mixed tiles of one operand to look at until it counts as meant.
_ENOUGH, _PATIENCE = 4, 64


def build(c: Compiler, plan: Plan, node: Node) -> list[Op]:
    """The closure that checks the operands of the matrix instructions of a node, at its end."""
    sides, groups = of_node(c, plan, node)

    def run(r: list[Any], m: Machine) -> None:
        excused = m.launch.excused
        found = {key: side.tiles(m) if excused.get(side, 0) < _PATIENCE else None for key, side in sides.items()}
        for key, tiles in found.items():
            bad = mixed(tiles) if tiles is not None else None
            if tiles is not None and bad is not None:
                _judge(m, plan, sides[key], tiles, bad)
                found[key] = None
        for group in groups:
            parts = [p for key in group.keys if (p := found[key]) is not None]
            if len(parts) == len(group.keys) and excused.get(group, 0) < _PATIENCE:
                _judge_group(m, plan, group, [sides[key] for key in group.keys], parts)

    return [run] if sides else []


def _step(tiles: Array, known: Array) -> tuple[Array, Array, Array]:
    """Distance of every row from the tile's fullest one: at each k, at the first k of both, and which k both have."""
    fullest = np.argmax(known.sum(axis=-1), axis=-1)[:, None, None]
    both = known & np.take_along_axis(known, fullest, axis=1)
    distance = tiles - np.take_along_axis(tiles, fullest, axis=1)
    first = np.take_along_axis(distance, np.argmax(both, axis=-1)[..., None], axis=-1)
    return distance, first, both


def mixed(tiles: Tiles) -> Array | None:
    """Tiles in which the distance between two rows is not the same at every k; ``None`` where none is."""
    places = tiles.places
    if tiles.known is None:
        distance = places - places[:, :1]
        bad = distance != distance[:, :, :1]
    else:
        distance, first, both = _step(places, tiles.known)
        bad = (distance != first) & both
    return bad.any(axis=(1, 2)) if bad.any() else None


def _judge(m: Machine, plan: Plan, side: Side, tiles: Tiles, bad: Array) -> None:
    """Warns of the first tile that nothing excuses."""
    for number in np.flatnonzero(bad).tolist():
        words, places = tiles.words[number], tiles.places[number]
        table = _distinct(np.where(words > 0, places, -1)) if _is_comparable(m, words) else None
        wrong = table is not None and (not _is_indirect(words) or _is_permuted(table) or _is_permuted(table.T))
        if wrong and not side.is_summed(m, int(tiles.waves[number])):
            _warn(m, plan, side, side.lanes, tiles, number)
            return
        if _excuse(m, side):
            return


def _judge_group(m: Machine, plan: Plan, group: Group, sides: list[Side], parts: list[Tiles]) -> None:
    """The same over several operands, each of which is in order."""
    shape, axis = parts[0].words.shape, group.axis
    if any(p.words.shape != shape for p in parts):
        return
    if all(p.known is None for p in parts):
        # Along k every part has the same distances of rows, along the rows those of k.
        steps = [p.places[:, :, 0] if axis == -1 else p.places[:, 0] for p in parts]
        if all((step - step[:, :1] == steps[0] - steps[0][:, :1]).all() for step in steps[1:]):
            return
    words, places = (np.concatenate([p[i] for p in parts], axis=axis) for i in (0, 1))
    whole = Tiles(words, places, parts[0].waves, words > 0)
    bad = mixed(whole)
    for number in np.flatnonzero(bad).tolist() if bad is not None else ():
        words = whole.words[number]
        judged = _is_comparable(m, words) and not _is_indirect(words)
        table = _distinct(np.where(words > 0, whole.places[number], -1)) if judged else None
        wrong = table is not None and _is_permuted(table if axis == -1 else table.T)
        if wrong and not all(side.is_summed(m, int(whole.waves[number])) for side in sides):
            _warn(m, plan, sides[-1], np.concatenate([s.lanes for s in sides], axis=axis), whole, number)
            return
        if _excuse(m, group):
            return


def _excuse(m: Machine, what: Side | Group) -> bool:
    """Counts a mixed tile that may be meant; whether there were so many that the others are not looked at."""
    m.launch.excused[what] = m.launch.excused.get(what, 0) + 1
    return m.launch.excused[what] >= _PATIENCE


def _is_comparable(m: Machine, words: Array) -> bool:
    """Whether all elements with an origin came through LDS from one buffer, which the kernel has not written."""
    known = words[words > 0]
    if not ((known >> READ_SHIFT) & NUMBERS).all():
        return False
    buffers = m.heap.touched((known & OFFSET) - 1 + m.heap.base)
    return len(buffers) == 1 and not buffers[0].written


def _is_indirect(words: Array) -> bool:
    """Whether an element was loaded through an index in memory."""
    return bool((words[words > 0] & INDIRECT).any())


def _distinct(table: Array) -> Array | None:
    """A table without its repeated rows and columns; ``None`` where a place is in it twice even so."""
    table = np.unique(np.unique(table, axis=0), axis=1)
    found = table[table >= 0]
    return table if len(np.unique(found)) == len(found) else None


def _is_permuted(table: Array) -> bool:
    """Whether all rows hold the same steps, counted from their first place: they can differ in the order only.

    Rows and columns of which nothing is known do not count; a few rows, or some with gaps, may agree by chance.
    """
    known = table >= 0
    table = table[known.any(axis=1)][:, known.any(axis=0)]
    steps = np.sort(table, axis=1)
    steps = steps - steps[:, :1]
    return len(table) >= _ENOUGH and bool((table >= 0).all() and (steps == steps[0]).all())


def _warn(m: Machine, plan: Plan, side: Side, lanes: Array, tiles: Tiles, number: int) -> None:
    """Words the warning with two rows of a tile that disagree, and where each holds two values of k.

    ``lanes`` are those that hold the elements.  Shape: ``(blocks, rows, K)``.
    """
    words, places = tiles.words[number], tiles.places[number]
    known = words > 0
    distance, first, both = (x[0] for x in _step(places[None], known[None]))
    row, column = (int(x) for x in np.argwhere((distance != first) & both)[0])
    fullest, start = int(np.argmax(known.sum(axis=-1))), int(np.argmax(both[row]))
    at = [(r, k) for r in (fullest, row) for k in (start, column)]
    held = sorted({int(lanes[number % len(lanes)][p]) for p in at})
    warn(m, plan, side.letter, side.inst, words, at, held, int(tiles.waves[number]))
