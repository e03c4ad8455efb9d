"""Layout, ComposedLayout and Tile: immutable values that print as the fly dialect does."""

from __future__ import annotations

from ..errors import LayoutError
from .int_tuple import (
    is_profile_congruent,
    is_static as tuple_static,
    leaves,
    normal,
    same_kind,
    same_tree,
    show,
    tree_hash,
    tuple_rank,
)
from .leaf import Basis, Star
from .swizzle import CoordSwizzle, Frozen, Swizzle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .leaf import IntTuple


class Layout(Frozen):
    """A map from coordinates to indices: the inner product of a coordinate with the strides.

    Args:
        shape: Int tuple of extents, each at least 1 where static.
        stride: Int tuple of the same profile; leaves are ints, dynamic leaves or basis leaves.

    Raises:
        LayoutError: Profiles differ, an extent is not positive, or a leaf has no place there.
    """

    __slots__ = ("_hash", "_static", "shape", "stride")

    shape: IntTuple
    stride: IntTuple
    _static: bool
    _hash: int | None

    def __init__(self, shape: object, stride: object) -> None:
        s, d = normal(shape), normal(stride)
        if not is_profile_congruent(s, d):
            raise LayoutError(
                f"shape {show(s)} and stride {show(d)} do not nest alike",
                fix="give one stride for each leaf of the shape",
            )
        if _has_empty(s):
            raise LayoutError(f"shape {show(s)} holds a mode without extents", fix="write 1 for a mode of one element")
        for x in leaves(s):
            if isinstance(x, (Basis, Star)) or (type(x) is int and x < 1):
                raise LayoutError(
                    f"shape {show(s)}: extent {x} is not a positive integer", fix="every extent is at least 1"
                )
        for x in leaves(d):
            if isinstance(x, Star):
                raise LayoutError(
                    f"stride {show(d)}: * is not a stride", fix="write an integer or a basis leaf such as 1E0"
                )
        self._set(shape=s, stride=d, _static=tuple_static(s) and tuple_static(d), _hash=None)

    def __call__(self, *coord: object) -> IntTuple:
        """The index (or coordinate) at a coordinate: ``layout(5)``, ``layout(1, 2)``."""
        from .coords import crd2idx

        return crd2idx(coord[0] if len(coord) == 1 else coord, self)

    def __iter__(self) -> Iterator[Layout]:
        return iter(layout_modes(self))

    def __getitem__(self, i: int) -> Layout:
        parts = layout_modes(self)
        if not 0 <= i < len(parts):
            raise LayoutError(f"mode {i} of {self} does not exist", fix=f"use 0 to {len(parts) - 1}")
        return parts[i]

    @property
    def is_static(self) -> bool:
        """Whether no leaf is dynamic."""
        return self._static

    def __repr__(self) -> str:
        return f"{show(self.shape)}:{show(self.stride)}"

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(other) is not Layout or self._static != other._static:
            return False
        if self._static:
            return bool(self.shape == other.shape and self.stride == other.stride)
        return same_tree(self.shape, other.shape) and same_tree(self.stride, other.stride)

    def __hash__(self) -> int:
        h = self._hash
        if h is None:
            h = (
                hash((self.shape, self.stride))
                if self._static
                else hash((tree_hash(self.shape), tree_hash(self.stride)))
            )
            object.__setattr__(self, "_hash", h)
        return h

    def __reduce__(self) -> tuple[object, ...]:
        return (Layout, (self.shape, self.stride))


def _has_empty(t: IntTuple) -> bool:
    return isinstance(t, tuple) and (not t or any([_has_empty(m) for m in t]))


_new = object.__new__
_set = object.__setattr__


def raw_layout(shape: IntTuple, stride: IntTuple, static: bool | None = None) -> Layout:
    """A layout from parts that the algebra made itself: normal, congruent, positive extents."""
    made = _new(Layout)
    _set(made, "shape", shape)
    _set(made, "stride", stride)
    _set(made, "_static", tuple_static(shape) and tuple_static(stride) if static is None else static)
    _set(made, "_hash", None)
    return made


def layout_modes(layout: Layout) -> tuple[Layout, ...]:
    """The top-level modes as layouts; a leaf layout is its own only mode."""
    if not isinstance(layout.shape, tuple):
        return (layout,)
    return tuple([raw_layout(s, d) for s, d in zip(layout.shape, layout.stride, strict=True)])


def join_modes(parts: tuple[Layout, ...] | list[Layout]) -> Layout:
    """The layout that has the given layouts as its top-level modes."""
    return raw_layout(
        tuple([p.shape for p in parts]), tuple([p.stride for p in parts]), all([p.is_static for p in parts])
    )


class ComposedLayout(Frozen):
    """``inner o offset o outer``: the value at c is ``inner(offset + outer(c))``.

    Args:
        inner: Layout, ComposedLayout, Swizzle or CoordSwizzle.
        offset: Int tuple in the domain of ``inner``.
        outer: Layout or ComposedLayout; it holds the shape.
    """

    __slots__ = ("inner", "offset", "outer")

    inner: Layout | ComposedLayout | Swizzle | CoordSwizzle
    offset: IntTuple
    outer: Layout | ComposedLayout

    def __init__(self, inner: Any, offset: object, outer: Any) -> None:
        if not isinstance(inner, (Layout, ComposedLayout, Swizzle, CoordSwizzle)):
            raise LayoutError(
                f"the inner part of a composed layout cannot be {inner!r}", fix="use a layout or a swizzle"
            )
        if not isinstance(outer, (Layout, ComposedLayout)):
            raise LayoutError(f"the outer part of a composed layout cannot be {outer!r}", fix="use a layout")
        self._set(inner=inner, offset=normal(offset), outer=outer)

    def __call__(self, *coord: object) -> IntTuple:
        """The index at a coordinate."""
        from .coords import crd2idx

        return crd2idx(coord[0] if len(coord) == 1 else coord, self)

    @property
    def shape(self) -> IntTuple:
        """The shape of the outer part, which is the domain."""
        return self.outer.shape

    @property
    def is_static(self) -> bool:
        """Whether no leaf of any part is dynamic."""
        return self.inner.is_static and self.outer.is_static and tuple_static(self.offset)

    def __repr__(self) -> str:
        outer = f"[{self.outer}]" if isinstance(self.outer, ComposedLayout) else str(self.outer)
        return f"{self.inner} o {show(self.offset)} o {outer}"

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is ComposedLayout
            and self.inner == other.inner
            and self.outer == other.outer
            and same_tree(self.offset, other.offset)
        )

    def __hash__(self) -> int:
        return hash((self.inner, tree_hash(self.offset), self.outer))

    def __reduce__(self) -> tuple[object, ...]:
        return (ComposedLayout, (self.inner, self.offset, self.outer))


class Tile(Frozen):
    """A tiler that works mode by mode: ``[4|*|(2,4):(1,8)]``.

    Args:
        modes: For each mode an integer n (meaning ``n:1``), ``None`` or ``STAR`` (the whole mode), a Layout, or a Tile.
    """

    __slots__ = ("modes",)

    modes: tuple[Any, ...]

    def __init__(self, *modes: object) -> None:
        parts = []
        for m in modes:
            part = m if isinstance(m, (Layout, Tile)) else normal(m)
            if isinstance(part, (tuple, Basis)) or (type(part) is int and part < 1):
                raise LayoutError(f"tile mode {part} is not allowed", fix="use n >= 1, *, a layout or a nested tile")
            parts.append(part)
        if not parts:
            raise LayoutError("a tile has no modes", fix="give at least one mode")
        self._set(modes=tuple(parts))

    @property
    def is_static(self) -> bool:
        """Whether no leaf is dynamic."""
        return all(m.is_static if isinstance(m, (Layout, Tile)) else tuple_static(m) for m in self.modes)

    def __repr__(self) -> str:
        return "[" + "|".join(str(m) for m in self.modes) + "]"

    def __eq__(self, other: object) -> bool:
        if type(other) is not Tile or len(self.modes) != len(other.modes):
            return False
        return all(
            a == b if isinstance(a, (Layout, Tile)) else not isinstance(b, (Layout, Tile)) and same_tree(a, b)
            for a, b in zip(self.modes, other.modes, strict=True)
        )

    def __hash__(self) -> int:
        return hash(tuple([hash(m) if isinstance(m, (Layout, Tile)) else tree_hash(m) for m in self.modes]))

    def __reduce__(self) -> tuple[object, ...]:
        return (Tile, self.modes)


def type_equal(a: object, b: object) -> bool:
    """Equality as types: like ``==``, but dynamic leaves agree by width and divisibility alone."""
    if type(a) is not type(b):
        return not isinstance(a, Frozen) and not isinstance(b, Frozen) and same_kind(a, b)
    if isinstance(a, Layout) and isinstance(b, Layout):
        return same_kind(a.shape, b.shape) and same_kind(a.stride, b.stride)
    if isinstance(a, ComposedLayout) and isinstance(b, ComposedLayout):
        return type_equal(a.inner, b.inner) and same_kind(a.offset, b.offset) and type_equal(a.outer, b.outer)
    if isinstance(a, Tile) and isinstance(b, Tile):
        return len(a.modes) == len(b.modes) and all(type_equal(x, y) for x, y in zip(a.modes, b.modes, strict=True))
    if isinstance(a, Frozen):
        return a == b
    return same_kind(a, b)


def is_static(x: object) -> bool:
    """Whether no leaf of an int tuple, layout, swizzle or tile is dynamic."""
    if isinstance(x, (Layout, ComposedLayout, Tile, Swizzle, CoordSwizzle)):
        return x.is_static
    return tuple_static(x)


def as_layout(value: object, op: str) -> Layout:
    """``value`` if it is a plain layout.

    Raises:
        LayoutError: It is something else.
    """
    if type(value) is Layout:
        return value
    raise LayoutError(f"{op} needs a plain layout, got {show(value)}", fix="pass shape:stride")


def rank(x: object) -> int:
    """Number of top-level modes of an int tuple, layout or tile."""
    if isinstance(x, (Layout, ComposedLayout)):
        return tuple_rank(x.shape)
    return len(x.modes) if isinstance(x, Tile) else tuple_rank(normal(x))
