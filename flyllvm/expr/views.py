"""Tuple functions and divisions, on tensors, coordinate tensors, layouts, tiles and int tuples alike."""

from __future__ import annotations

from .. import layout as L
from ..errors import TraceError
from .coord_tensor import CoordTensor, refuse_outside
from .leaves import from_leaves, to_leaves
from .numeric import count_of
from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _on_layout(name: str) -> Any:
    fn = getattr(L, name)

    def run(x: Any, *args: Any, **kwargs: Any) -> Any:
        given = [to_leaves(a) for a in args]
        named = {k: to_leaves(v) if v is not None else None for k, v in kwargs.items()}
        if isinstance(x, (Tensor, CoordTensor)):
            return x.with_layout(fn(x.raw_layout, *given, **named))
        return from_leaves(fn(to_leaves(x), *given, **named))

    run.__name__ = run.__qualname__ = name
    run.__doc__ = fn.__doc__
    return run


logical_divide, zipped_divide = _on_layout("logical_divide"), _on_layout("zipped_divide")
tiled_divide, flat_divide = _on_layout("tiled_divide"), _on_layout("flat_divide")
composition, coalesce = _on_layout("composition"), _on_layout("coalesce")
group, take = _on_layout("group"), _on_layout("take")


def select(x: Any, *indices: Any, **named: Any) -> Any:
    """The modes of a tuple, layout or tensor at the given indices, in that order.

    ``select(t, [0, 2])``, ``select(t, 0, 2)`` and ``select(t, indices=[0, 2])`` are the same.  With a truth value
    first, ``select(cond, a, b)`` is ``where(cond, a, b)``.
    """
    from .numeric import Numeric
    from .vector import Vector, where

    if isinstance(x, (bool, Numeric, Vector)) and len(indices) == 2:
        return where(x, *indices)
    picked = named.get("indices", indices)
    if len(picked) == 1 and isinstance(picked[0], (list, tuple)):
        picked = picked[0]
    if named.keys() - {"indices"}:
        raise TraceError(f"select with {', '.join(named)}", fix="give indices")
    modes = tuple(count_of(i, "an index of select") for i in picked)
    if isinstance(x, (Tensor, CoordTensor)):
        return x.with_layout(L.select(x.raw_layout, modes))
    return from_leaves(L.select(to_leaves(x), modes))


def _padded(name: str) -> Any:
    fn = getattr(L, name)

    def run(base: Any, elem: Any = None, *, n: int | None = None) -> Any:
        filler = None if elem is None else to_leaves(elem)
        if isinstance(base, (Tensor, CoordTensor)):
            return base.with_layout(fn(base.raw_layout, filler, n))
        return from_leaves(fn(to_leaves(base), filler, n))

    run.__name__ = run.__qualname__ = name
    run.__doc__ = fn.__doc__
    return run


append, prepend = _padded("append"), _padded("prepend")


def get_(x: Any, *mode: Any) -> Any:
    """The mode at a path: ``get_(t, 1)``, ``get_(t, (1, 0))`` or ``get_(t, 1, 0)``."""
    path = mode[0] if len(mode) == 1 and isinstance(mode[0], (tuple, list)) else mode
    steps = tuple(count_of(i, "a mode of get") for i in path)
    if isinstance(x, (Tensor, CoordTensor)):
        return x.with_layout(L.get(x.raw_layout, *steps))
    return from_leaves(L.get(to_leaves(x), *steps))


get = get_


def slice(x: Any, coord: Any) -> Any:
    """The modes where the coordinate is ``None``; a tensor is moved to the place the others say."""
    leaves = to_leaves(coord)
    if isinstance(x, Tensor):
        return x.slice(coord)
    if isinstance(x, CoordTensor):
        refuse_outside(leaves, x.raw_layout.shape)
        kept, offset = L.slice_and_offset(leaves, x.raw_layout)
        return x.at(offset, kept)
    return from_leaves(L.slice_(to_leaves(x), leaves))


def dice(x: Any, coord: Any) -> Any:
    """The modes where the coordinate is not ``None``."""
    leaves = to_leaves(coord)
    if isinstance(x, (Tensor, CoordTensor)):
        return x.with_layout(L.dice(x.raw_layout, leaves))
    return from_leaves(L.dice(to_leaves(x), leaves))
