"""Tensors of coordinates: a base coordinate with a layout of basis strides.

They are sliced like tensors: ``None`` keeps a mode, a coordinate of integers only gives a coordinate.
"""

from __future__ import annotations

from .. import layout as L
from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.core import Value
from .leaves import IntTuple, from_leaves, to_leaves
from .numeric import Int32, Int64
from .pointer import equal_by_python, no_elements_in_turn
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def keeps(coord: Any) -> bool:
    """Whether a coordinate has a ``*`` anywhere."""
    return any(map(keeps, coord)) if isinstance(coord, tuple) else coord is L.STAR


class Coordinate(IntTuple):
    """A coordinate of an atom call's first value.

    Attributes:
        run: Coordinates that the call covers from there, as a shape.
    """

    run: Any


def _is_zero(x: Any) -> bool:
    return all(map(_is_zero, x)) if isinstance(x, tuple) else type(x) is int and x == 0


def _is_coordinate(x: Any) -> bool:
    return all(map(_is_coordinate, x)) if isinstance(x, tuple) else isinstance(x, (int, Value))


def refuse_outside(coord: Any, shape: Any) -> None:
    """Refuses a coordinate that is known while tracing and lies outside of a shape.

    Raises:
        TraceError: It does.
    """
    found = _outside(coord, shape)
    if found is not None:
        at, extent = found
        raise TraceError(
            f"coordinate {at} of a mode of extent {extent}, in {coord} of the shape {shape}",
            Builder.current().location(),
            "coordinates count from 0 and stay below the extent; for other elements of the memory make a view of it: "
            "fx.make_view(fx.get_iter(t), layout)",
        )


def _outside(coord: Any, shape: Any) -> tuple[int, int] | None:
    if type(coord) is int:
        if type(shape) is tuple and L.is_static(shape):
            shape = L.size(shape)
        return (coord, shape) if type(shape) is int and not 0 <= coord < shape else None
    if type(coord) is tuple and type(shape) is tuple:
        for c, s in zip(coord, shape):
            found = _outside(c, s)
            if found is not None:
                return found
    return None


class CoordTensor:
    """A tensor of coordinates: its value at c is ``base + layout(c)``.

    Attributes:
        base: Coordinate of the first element.
        raw_layout: Layout whose strides are basis leaves.
        run: Coordinates that a value stands for where the other values of an atom call were sliced away: a shape.
    """

    __slots__ = ("base", "raw_layout", "run")
    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    def __init__(self, base: Any, layout: Any) -> None:
        self.base = to_leaves(base)
        self.raw_layout = to_leaves(layout)
        self.run: Any = None
        if not _is_coordinate(self.base) or not isinstance(self.raw_layout, (L.Layout, L.ComposedLayout)):
            b = Builder.active()
            raise TraceError(
                f"a view of {base!r:.60} by {layout!r:.60}",
                b and b.location(),
                "give a pointer (fx.get_iter(tensor)) or a coordinate, and a layout: fx.make_layout(shape, stride)",
            )

    @property
    def layout(self) -> Any:
        """The layout."""
        return from_leaves(self.raw_layout)

    @property
    def shape(self) -> Any:
        """Shape with numbers of the language."""
        return from_leaves(self.raw_layout.shape)

    @property
    def stride(self) -> Any:
        """Strides: steps of the coordinate."""
        return from_leaves(self.raw_layout.stride)

    __iter__ = no_elements_in_turn
    __eq__ = equal_by_python
    __hash__ = object.__hash__

    def __getitem__(self, coord: Any) -> Any:
        leaves = to_leaves(coord)
        refuse_outside(leaves, self.raw_layout.shape)
        if keeps(leaves):
            kept, offset = L.slice_and_offset(leaves, self.raw_layout)
            made = CoordTensor(_add(self.base, offset), kept)
            made.run = self.run if self.run is not None else self._run_of_first(leaves)
            return made
        value = from_leaves(_add(self.base, L.crd2idx(leaves, self.raw_layout)))
        if self.run is not None and isinstance(value, IntTuple):
            value = Coordinate(value)
            value.run = self.run
        return value

    def _run_of_first(self, leaves: Any) -> Any:
        """What the first value of every atom call stands for, where ``[(0, None), ...]`` picks it."""
        first = leaves[0] if isinstance(leaves, tuple) and leaves else None
        if not isinstance(first, tuple) or len(first) < 2 or not _is_zero(first[0]) or not keeps(first[1:]):
            return None
        mode = self.raw_layout[0] if isinstance(self.raw_layout, L.Layout) else None
        return L.coshape(mode[0]) if mode is not None and L.is_static(mode[0].shape) else None

    def at(self, offset: Any, layout: Any) -> CoordTensor:
        """The coordinates moved by ``offset`` under a layout."""
        return CoordTensor(_add(self.base, to_leaves(offset)), layout)

    def with_layout(self, layout: Any) -> CoordTensor:
        """The same base under another layout."""
        return CoordTensor(self.base, layout)

    def load(self) -> Vector:
        """The indices of a tensor of scalar coordinates as a vector of Int32 (Int64 where they need it)."""
        count = L.size(self.raw_layout)
        values = [self[i] for i in range(count)] if isinstance(count, int) else [()]
        if any(isinstance(v, tuple) for v in values):
            where = Builder.current().location()
            raise TraceError(f"{self}: its values are no single numbers", where, "select one mode of the coordinate")
        cls = Int64 if any(getattr(v, "width", 32) == 64 for v in values) else Int32
        return Vector.from_elements(values, cls)

    def __repr__(self) -> str:
        return f"CoordTensor({self.raw_layout})"


def _add(base: Any, offset: Any) -> Any:
    if isinstance(offset, int) and offset == 0:
        return base
    if isinstance(base, tuple) and isinstance(offset, tuple):
        longest = max(len(base), len(offset))
        pads = [v + (0,) * (longest - len(v)) for v in (base, offset)]
        return tuple(_add(x, y) for x, y in zip(*pads, strict=True))
    if isinstance(base, tuple) or isinstance(offset, tuple):
        raise TraceError(f"coordinate {base} plus {offset}", fix="use coordinates of one profile")
    return base + offset
