"""Operations that treat int tuples, layouts, composed layouts and tiles as tuples of modes."""

from __future__ import annotations

from ..errors import LayoutError
from .core import ComposedLayout, Layout, Tile, as_layout, join_modes, layout_modes, raw_layout
from .int_tuple import at, leaves, modes, normal, show
from .leaf import STAR, is_dynamic
from .memo import operation
from .swizzle import Frozen

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from .leaf import IntTuple, Leaf


def _position(i: object, x: Any) -> int:
    """A mode index or a count of modes.

    Raises:
        LayoutError: It is no static integer.
    """
    value = i if isinstance(i, Frozen) else normal(i)
    if type(value) is not int:
        raise LayoutError(f"{show(i)} is no mode index of {show(x)}", fix="count modes from 0 with integers")
    return value


def _parts(x: Any) -> tuple[Any, ...]:
    """The modes of anything tuple-like."""
    if isinstance(x, Layout):
        return layout_modes(x)
    if isinstance(x, ComposedLayout):
        return tuple([ComposedLayout(x.inner, x.offset, m) for m in _parts(x.outer)])
    return x.modes if isinstance(x, Tile) else modes(normal(x))


def _join(like: Any, parts: Sequence[Any]) -> Any:
    """The tuple-like of the kind of ``like`` with the given modes."""
    if isinstance(like, Layout):
        return join_modes(list(parts))
    if isinstance(like, ComposedLayout):
        return ComposedLayout(like.inner, like.offset, _join(like.outer, [p.outer for p in parts]))
    return Tile(*parts) if isinstance(like, Tile) else tuple(parts)


def _range(x: Any, begin: int, end: int) -> tuple[tuple[Any, ...], int, int]:
    parts = _parts(x)
    begin, end = _position(begin, x), _position(end, x)
    stop = len(parts) if end == -1 else end
    if not 0 <= begin < stop <= len(parts):
        raise LayoutError(
            f"modes {begin} to {end} do not exist in {show(x)}, which has rank {len(parts)}",
            fix=f"use 0 <= begin < end <= {len(parts)}, or end = -1 for the rank",
        )
    return parts, begin, stop


@operation
def take(x: Any, begin: int, end: int = -1) -> Any:
    """Modes ``begin`` to ``end - 1``; ``end = -1`` means the rank.  A single mode is unwrapped."""
    parts, begin, end = _range(x, begin, end)
    return parts[begin] if end - begin == 1 else _join(x, parts[begin:end])


@operation
def select(x: Any, indices: Sequence[int]) -> Any:
    """The modes at the given indices, in that order."""
    parts = _parts(x)
    for i in indices:
        if not 0 <= _position(i, x) < len(parts):
            raise LayoutError(f"mode {i} does not exist in {show(x)}", fix=f"use indices from 0 to {len(parts) - 1}")
    return _join(x, [parts[i] for i in indices])


@operation
def group(x: Any, begin: int, end: int = -1) -> Any:
    """Nests modes ``begin`` to ``end - 1`` into one."""
    parts, begin, end = _range(x, begin, end)
    return _join(x, [*parts[:begin], _join(x, parts[begin:end]), *parts[end:]])


def _filler(x: Any, elem: Any) -> Any:
    """What append and prepend add to x; of a composed layout it is a mode of the outer part."""
    if isinstance(x, ComposedLayout):
        return ComposedLayout(x.inner, x.offset, _filler(x.outer, elem))
    if elem is None:
        return raw_layout(1, 0) if isinstance(x, Layout) else 1
    if isinstance(x, Layout):
        return as_layout(elem, "append or prepend to a layout")
    if isinstance(x, Tile):
        return elem
    if isinstance(elem, Frozen):
        raise LayoutError(f"{elem} is no mode of the int tuple {show(x)}", fix="add an integer or an int tuple")
    return normal(elem)


def append(x: Any, elem: Any = None, n: int | None = None) -> Any:
    """Adds ``elem`` (1, or ``1:0`` for layouts) as last mode: once, or until there are n modes."""
    parts = _parts(x)
    extra = 1 if n is None else max(0, _position(n, x) - len(parts))
    return _join(x, [*parts, *[_filler(x, elem)] * extra]) if extra else x


def prepend(x: Any, elem: Any = None, n: int | None = None) -> Any:
    """Adds ``elem`` (1, or ``1:0`` for layouts) as first mode: once, or until there are n modes."""
    parts = _parts(x)
    extra = 1 if n is None else max(0, _position(n, x) - len(parts))
    return _join(x, [*[_filler(x, elem)] * extra, *parts]) if extra else x


def get(x: Any, *path: int) -> Any:
    """The mode at a path of indices: ``get(x, 1, 0)``.

    Raises:
        LayoutError: The path is deeper than the tuple, or an index is out of range.
    """
    steps = path[0] if len(path) == 1 and isinstance(path[0], tuple) else path
    steps = tuple([_position(p, x) for p in steps])
    if isinstance(x, Layout):
        return raw_layout(at(x.shape, steps), at(x.stride, steps))
    if isinstance(x, ComposedLayout):
        return ComposedLayout(x.inner, x.offset, get(x.outer, *steps))
    if isinstance(x, Tile):
        if not steps:
            return x
        if not 0 <= steps[0] < len(x.modes):
            raise LayoutError(f"mode {steps[0]} of {x} does not exist", fix=f"use 0 to {len(x.modes) - 1}")
        return get(x.modes[steps[0]], *steps[1:])
    return at(normal(x), steps)


def _pick(x: Any, coord: IntTuple, keep_star: bool, whole: Any) -> list[Any]:
    """The kept sub-trees of x as a list; a kept mode is one entry."""
    if not isinstance(coord, tuple):
        return [x] if (coord is STAR) == keep_star else []
    parts = _parts(x)
    if len(parts) != len(coord) or (not isinstance(x, (tuple, Tile)) and not isinstance(getattr(x, "shape", 0), tuple)):
        raise LayoutError(
            f"coordinate {show(coord)} does not fit {show(x)} in {show(whole)}", fix="give one entry for each mode"
        )
    kept: list[Any] = []
    for p, c in zip(parts, coord, strict=True):
        inner = _pick(p, c, keep_star, whole)
        if isinstance(c, tuple) and inner:
            kept.append(inner[0] if len(inner) == 1 else _join(p, inner))
        else:
            kept += inner
    return kept


def _empty(x: Any) -> Any:
    if isinstance(x, (Layout, ComposedLayout)):
        return _filler(x, None)
    return 1 if isinstance(x, Tile) else ()


def _sliced(x: Any, coord: object, keep_star: bool) -> Any:
    source = x if isinstance(x, (Layout, ComposedLayout, Tile)) else normal(x)
    kept = _pick(source, normal(coord), keep_star, source)
    if not kept:
        return _empty(source)
    return kept[0] if len(kept) == 1 else _join(source, kept)


@operation
def slice_(x: Any, coord: object) -> Any:
    """The modes where the coordinate is ``*``; a single kept mode is unwrapped.

    A coordinate without ``*`` keeps nothing: the empty view ``1:0`` of a layout, ``()`` of an int tuple.  On a
    composed layout the position enters the offset: ``A o off o B`` becomes ``A o off + B(c) o slice(B, c)``.

    Raises:
        LayoutError: The coordinate does not nest like x.
    """
    if isinstance(x, ComposedLayout):
        outer, offset = slice_and_offset(coord, x.outer)
        from .int_tuple import add_coords

        return ComposedLayout(x.inner, add_coords(x.offset, offset), outer)
    return _sliced(x, coord, True)


@operation
def dice(x: Any, coord: object) -> Any:
    """The modes where the coordinate is not ``*``; a single kept mode is unwrapped."""
    return _sliced(x, coord, False)


def slice_and_offset(coord: object, layout: Any) -> tuple[Any, IntTuple]:
    """The sliced layout and the offset of its first element: what slicing a memref needs.

    On a composed layout the offset is 0, because it has moved into the layout.
    """
    if isinstance(layout, ComposedLayout):
        return slice_(layout, coord), 0
    from .coords import crd2idx

    return slice_(layout, coord), crd2idx(coord, layout)


def get_scalar(x: object) -> Leaf:
    """The only leaf of a singleton nest: ``((4))`` gives 4.

    Raises:
        LayoutError: There is more than one leaf.
    """
    t = normal(x)
    while isinstance(t, tuple) and len(t) == 1:
        t = t[0]
    if isinstance(t, tuple):
        raise LayoutError(f"get_scalar({show(normal(x))}): not a single leaf", fix="select one mode first")
    return t


def get_leaves(x: object, dynamic_only: bool = False) -> tuple[Leaf, ...]:
    """All leaves from left to right (of a layout: shape, then stride), or the dynamic ones only."""
    if isinstance(x, Layout):
        return get_leaves((x.shape, x.stride), dynamic_only)
    if isinstance(x, ComposedLayout):
        inner = get_leaves(x.inner, dynamic_only) if isinstance(x.inner, (Layout, ComposedLayout)) else ()
        return inner + get_leaves(x.offset, dynamic_only) + get_leaves(x.outer, dynamic_only)
    return tuple([v for v in leaves(normal(x)) if not dynamic_only or is_dynamic(v)])
