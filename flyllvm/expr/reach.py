"""How far a tensor reaches: offsets of global memory are 32-bit where that is proved to be enough, else 64-bit."""

from __future__ import annotations

from .. import layout as L
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Block, Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Spaces whose addresses have 64 bits.
WIDE_SPACES = ("global", "generic", "constant")
_LIMIT = 1 << 31


def _largest(leaf: Any) -> int | None:
    if isinstance(leaf, L.Basis):
        leaf = leaf.value
    if isinstance(leaf, int):
        return abs(leaf)
    return leaf.range[1] if isinstance(leaf, Value) and leaf.range is not None else None


def fits_32_bits(raw: Any) -> bool:
    """Whether every offset of a layout is proved to stay below 2**31 elements."""
    while isinstance(raw, L.ComposedLayout):
        raw = raw.outer
    total = 0
    for extent, stride in zip(L.flatten(raw.shape), L.flatten(raw.stride), strict=True):
        n, d = _largest(extent), _largest(stride)
        if n is None or d is None:
            return False
        total += max(0, n - 1) * d
    return total < _LIMIT


def thread_coord(coord: Any, threads: Any, tensor: Any) -> Any:
    """A thread's coordinate for the thread mode of a partition: in 64 bits where its static strides reach that far."""
    if getattr(tensor, "address_space", None) not in WIDE_SPACES:
        return coord
    total = 0
    for extent, stride in zip(L.flatten(threads.shape), L.flatten(threads.stride), strict=True):
        # Products with run-time strides are in 64 bits already.
        if isinstance(stride, int):
            total += (extent - 1) * abs(stride) if isinstance(extent, int) else _LIMIT
    return coord if total < _LIMIT else widened_coord(coord)


def encloses_current(home: Block | None) -> bool:
    """Whether values made in a block are known where the trace is now; always where there is no block."""
    if home is None:
        return True
    block: Block | None = Builder.current().block
    while block is not None:
        if block is home:
            return True
        block = block.parent.parent if block.parent is not None else None
    return False


def _map(fn: Any, x: Any) -> Any:
    return tuple([_map(fn, v) for v in x]) if isinstance(x, tuple) else fn(x)


def widened_strides(raw: Any) -> Any:
    """The layout with its run-time strides in 64 bits, so that products with them are too."""
    if isinstance(raw, L.ComposedLayout):
        return raw
    b = Builder.current()

    def wide(leaf: Any) -> Any:
        return b.to_width(leaf, t.I64) if isinstance(leaf, Value) and leaf.width == 32 else leaf

    return L.Layout(raw.shape, _map(wide, raw.stride))


def widened_coord(coord: Any) -> Any:
    """A coordinate with its run-time leaves in 64 bits."""
    return _map(lambda v: Builder.current().to_width(v, t.I64) if isinstance(v, Value) and v.width == 32 else v, coord)


def narrowed(raw: Any) -> Any:
    """The layout with 32-bit leaves, for memory behind a buffer descriptor, which has no more."""
    if isinstance(raw, L.ComposedLayout):
        return raw
    b = Builder.current()

    def narrow(leaf: Any) -> Any:
        if not isinstance(leaf, Value) or leaf.width != 64:
            return leaf
        op = leaf.op
        if op is not None and op.name in ("arith.extsi", "arith.extui") and op.operands[0].type == t.I32:
            return op.operands[0]
        return b.to_width(leaf, t.I32)

    return L.Layout(_map(narrow, raw.shape), _map(narrow, raw.stride))


def index_at(coord: Any, raw: Any, far: bool = False) -> Any:
    """``crd2idx``, in 64 bits where the static extents and strides of the layout reach 2**31.

    Args:
        coord: The coordinate.
        raw: The layout.
        far: It is that of memory that may be larger, whatever its numbers say.
    """
    if far or (isinstance(raw, (L.Layout, L.ComposedLayout)) and raw.is_static and not fits_32_bits(raw)):
        coord = widened_coord(coord)
    return L.crd2idx(coord, raw)
