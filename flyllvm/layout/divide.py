"""logical, zipped, tiled and flat divide."""

from __future__ import annotations

from .compose import by_mode, check_tile_rank, composition
from .coords import size
from .core import ComposedLayout, Layout, Tile, as_layout, join_modes, layout_modes, raw_layout
from .inverse import complement
from .leaf import STAR
from .memo import operation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _tiler(tile: Any) -> Layout | Tile:
    """A lone integer n tiles the whole layout as ``n:1``; ints in a tuple are a tile."""
    if isinstance(tile, (Layout, Tile)):
        return tile
    if isinstance(tile, tuple):
        return Tile(*tile)
    return Layout(tile, 1)


def _divide(a: Layout, b: Layout) -> Layout:
    rest = complement(b, size(a))
    return composition(a, join_modes((b, rest)))  # type: ignore[no-any-return]


def _on_outer(fn: Callable[[Any, Any], Any], a: Any, tile: Any) -> Any:
    return ComposedLayout(a.inner, a.offset, fn(a.outer, tile))


@operation
def logical_divide(a: Any, tile: Any) -> Any:
    """Splits A into ``(tile, rest)``: ``composition(A, (B, complement(B, size(A))))``.

    Args:
        a: Layout, or composed layout (its outer part is divided).
        tile: Layout or integer: the whole of A is split.  Tile (or tuple): each mode is split into (tile, rest);
            ``*`` and missing modes pass.

    A tile that does not divide A rounds the rest up, as crd2idx extrapolates; then the result has more elements.

    Raises:
        LayoutError: No layout satisfies the law, or the tile has more modes than A.
    """
    if isinstance(a, ComposedLayout):
        return _on_outer(logical_divide, a, tile)
    a, tile = as_layout(a, "logical_divide"), _tiler(tile)
    return _divide(a, tile) if isinstance(tile, Layout) else by_mode(a, tile, _divide)


def _zipped(a: Layout, tile: Any) -> tuple[Layout, Layout]:
    """(tile, rest) of one mode, recursively by the profile of the tile."""
    if tile is STAR:
        return a, raw_layout(1, 0)
    if not isinstance(tile, Tile):
        parts = layout_modes(_divide(a, tile if isinstance(tile, Layout) else raw_layout(tile, 1)))
        return parts[0], parts[1]
    check_tile_rank(a, tile)
    parts = layout_modes(a)
    pairs = [_zipped(m, t) for m, t in zip(parts, tile.modes, strict=False)]
    rest = [r for _, r in pairs] + list(parts[len(tile.modes) :])
    return join_modes([t for t, _ in pairs]), join_modes(rest)


@operation
def zipped_divide(a: Any, tile: Any) -> Any:
    """``((tile modes), (rest modes))``; modes beyond the tile go to the rest, a ``*`` mode goes whole to the tile."""
    if isinstance(a, ComposedLayout):
        return _on_outer(zipped_divide, a, tile)
    return join_modes(_zipped(as_layout(a, "zipped_divide"), _tiler(tile)))


@operation
def tiled_divide(a: Any, tile: Any) -> Any:
    """``((tile modes), rest modes...)``."""
    if isinstance(a, ComposedLayout):
        return _on_outer(tiled_divide, a, tile)
    t, r = _zipped(as_layout(a, "tiled_divide"), _tiler(tile))
    return join_modes((t, *layout_modes(r)))


@operation
def flat_divide(a: Any, tile: Any) -> Any:
    """``(tile modes..., rest modes...)``."""
    if isinstance(a, ComposedLayout):
        return _on_outer(flat_divide, a, tile)
    t, r = _zipped(as_layout(a, "flat_divide"), _tiler(tile))
    return join_modes((*layout_modes(t), *layout_modes(r)))
