"""Draws layouts as SVG grids: a cell for each coordinate, the value inside."""

from __future__ import annotations

from ..errors import LayoutError
from .coords import crd2idx, size
from .core import ComposedLayout, Layout
from .int_tuple import modes, product, show
from .swizzle import Swizzle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_CELL_W, _CELL_H, _MARGIN = 46, 26, 30
_MOST_CELLS = 1 << 14


def _hue(n: int) -> str:
    """A light colour; the golden angle keeps neighbours apart."""
    return f"hsl({n * 137 % 360},60%,84%)"


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _grid(title: str, cells: list[list[tuple[str, int]]], top: int) -> tuple[list[str], int, int]:
    """SVG elements of one grid below ``top``, its width and its bottom, in pixels."""
    out = [f'<text x="{_MARGIN}" y="{top + 16}" class="t">{_escape(title)}</text>']
    y0 = top + 40
    for j in range(len(cells[0])):
        out.append(f'<text x="{_MARGIN + j * _CELL_W + _CELL_W // 2}" y="{y0 - 5}" class="i">{j}</text>')
    for i, row in enumerate(cells):
        y = y0 + i * _CELL_H
        out.append(f'<text x="{_MARGIN - 12}" y="{y + 17}" class="i">{i}</text>')
        for j, (label, colour) in enumerate(row):
            x = _MARGIN + j * _CELL_W
            out.append(f'<rect x="{x}" y="{y}" width="{_CELL_W}" height="{_CELL_H}" fill="{_hue(colour)}"/>')
            out.append(f'<text x="{x + _CELL_W // 2}" y="{y + 17}" class="c">{_escape(label)}</text>')
    return out, 2 * _MARGIN + len(cells[0]) * _CELL_W, y0 + len(cells) * _CELL_H + 20


def _check(rows: Any, cols: Any, what: object) -> None:
    if type(rows) is not int or type(cols) is not int:
        raise LayoutError(f"{what} has run-time extents and cannot be drawn", fix="draw a static layout")
    if rows * cols > _MOST_CELLS:
        raise LayoutError(f"{what} has {rows * cols} cells, too many to draw", fix=f"draw at most {_MOST_CELLS} cells")


def _layout_cells(layout: Layout | ComposedLayout) -> list[list[tuple[str, int]]]:
    """Rows are mode 0, columns the other modes; a layout of rank 1 is one row."""
    parts = modes(layout.shape)
    rows = product(parts[0]) if len(parts) > 1 else 1
    cols = product(parts[1:]) if len(parts) > 1 else size(layout)
    _check(rows, cols, layout)
    cells = []
    for i in range(rows):
        row = []
        for j in range(cols):
            value = crd2idx(i + rows * j, layout)
            row.append((show(value), value if type(value) is int else i))
        cells.append(row)
    return cells


def _tv_cells(tiler: Any, tv: Layout) -> list[list[tuple[str, int]]]:
    """The tile, each cell with the threads and values that hold it."""
    extents = [product(m) for m in modes(tiler)]
    rows, cols = extents[0], product(tuple(extents[1:]))
    _check(rows, cols, show(tiler))
    threads, values = (product(m) for m in modes(tv.shape))
    _check(threads, values, tv)
    cells: list[list[tuple[str, int]]] = [[("", 0)] * cols for _ in range(rows)]
    for v in range(values):
        for t in range(threads):
            place = crd2idx((t, v), tv)
            if type(place) is not int or not 0 <= place < rows * cols:
                raise LayoutError(
                    f"{tv} leaves the tile {show(tiler)} at thread {t}, value {v}", fix="give the tile it covers"
                )
            i, j = place % rows, place // rows
            before = cells[i][j][0]
            cells[i][j] = (f"{before} T{t}V{v}".strip(), t if not before else cells[i][j][1])
    return cells


def draw(items: list[tuple[str, Any]]) -> str:
    """One SVG picture of several results, each a (title, value).

    Args:
        items: Values are layouts, composed layouts, swizzles (drawn over one period), or ``(tiler, thread-value
            layout)`` pairs as ``make_layout_tv`` returns them.

    Raises:
        LayoutError: A value cannot be drawn.
    """
    body: list[str] = []
    width, top = 0, 10
    for title, value in items:
        if isinstance(value, (Layout, ComposedLayout)):
            cells = _layout_cells(value)
        elif isinstance(value, Swizzle):
            low = 1 << (value.base + value.shift)
            cells = _layout_cells(ComposedLayout(value, 0, Layout((1 << value.mask, low), (low, 1))))
        elif isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], Layout):
            cells = _tv_cells(value[0], value[1])
        else:
            raise LayoutError(f"{title}: {show(value)} is no layout and cannot be drawn", fix="draw a layout")
        parts, w, top = _grid(title, cells, top)
        body += parts
        width = max(width, w, 8 * len(title) + 2 * _MARGIN)
    style = (
        "rect{stroke:#555;stroke-width:.5}text{font:11px monospace;text-anchor:middle}"
        "text.t{font-size:13px;text-anchor:start}text.i{fill:#888}"
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" viewBox="0 0 {width} {top}">'
    return "\n".join(
        [head, f"<style>{style}</style>", '<rect width="100%" height="100%" fill="#fff"/>', *body, "</svg>", ""]
    )
