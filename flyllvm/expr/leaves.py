"""Between numbers of the language and leaves of the layout algebra."""

from __future__ import annotations

from .. import layout as L
from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.core import Value
from .numeric import Boolean, Int32, Int64, Numeric
from .reach import index_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    _Tuple = tuple[Any, ...]
else:
    _Tuple = tuple


class IntTuple(_Tuple):
    """A tuple of the layout algebra as a kernel sees it: ints, run-time numbers, and tuples of them.

    It is a Python tuple; leaves are plain ints where they are known.
    """

    __slots__ = ()

    @property
    def rank(self) -> int:
        """Number of top-level modes."""
        return len(self)

    @property
    def depth(self) -> int:
        """Levels of nesting; 1 for a flat tuple."""
        return int(L.depth(to_leaves(self)))

    @property
    def is_leaf(self) -> bool:
        """A tuple is none."""
        return False

    @property
    def is_static(self) -> bool:
        """Whether every leaf is known while tracing."""
        return bool(L.is_static(to_leaves(self)))

    def unpack(self) -> tuple[Any, ...]:
        """The top-level modes."""
        return tuple(self)

    def to_py_value(self) -> Any:
        """The same tuple with Python ints.

        Raises:
            TraceError: A leaf is known at run time only.
        """
        return tuple(m.to_py_value() if isinstance(m, IntTuple) else m.__index__() for m in self)


class _Wrapped:
    """Base of layouts as a kernel sees them: ``raw`` is the object of the layout algebra."""

    __slots__ = ("raw",)
    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    raw: Any

    @classmethod
    def of(cls, raw: Any) -> Any:
        """The kernel's view of a layout of the algebra."""
        made = cls.__new__(cls)
        made.raw = raw
        return made

    @property
    def is_static(self) -> bool:
        """Whether nothing is left to run time."""
        return bool(self.raw.is_static)

    @property
    def shape(self) -> Any:
        """The shape, with numbers of the language as run-time leaves."""
        return from_leaves(self.raw.shape)

    @property
    def rank(self) -> int:
        """Number of top-level modes."""
        return int(L.rank(self.raw))

    @property
    def depth(self) -> int:
        """Levels of nesting of the shape."""
        return int(L.depth(self.raw))

    @property
    def is_static_shape(self) -> bool:
        """Whether every extent is known while tracing."""
        return bool(L.is_static(self.raw.shape))

    def __call__(self, *coord: Any) -> Any:
        """The index (or coordinate) at a coordinate."""
        return from_leaves(
            index_at(to_leaves(coord[0] if len(coord) == 1 else coord), self.raw, type(self) is FarLayout)
        )

    def get_hier_coord(self, index: Any) -> Any:
        """The coordinate of an index in the nesting of the shape."""
        return from_leaves(L.idx2crd(to_leaves(index), self.raw))

    def get_flat_coord(self, index: Any) -> Any:
        """The coordinate of an index, one number per top-level mode."""
        return from_leaves(L.get_flat_coord(to_leaves(index), self.raw))

    def get_1d_coord(self, index: Any) -> Any:
        """The column-major number of the coordinate of an index."""
        return from_leaves(L.get_1d_coord(to_leaves(index), self.raw))

    def __eq__(self, other: object) -> bool:
        return bool(self.raw == (other.raw if isinstance(other, _Wrapped) else other))

    def __hash__(self) -> int:
        return hash(self.raw)

    def __repr__(self) -> str:
        return str(self.raw)

    def __reduce__(self) -> tuple[Any, ...]:
        return (from_leaves, (self.raw,))


class Layout(_Wrapped):
    """A layout: shape and stride of one profile.  ``Layout((4, 8), (8, 1))`` prints as ``(4,8):(8,1)``."""

    __slots__ = ()

    def __init__(self, shape: Any, stride: Any) -> None:
        self.raw = L.make_layout(to_leaves(shape), to_leaves(stride))

    @property
    def stride(self) -> Any:
        """The strides, with numbers of the language as run-time leaves."""
        return from_leaves(self.raw.stride)

    @property
    def is_static_stride(self) -> bool:
        """Whether every stride is known while tracing."""
        return bool(L.is_static(self.raw.stride))

    def __getitem__(self, mode: Any) -> Any:
        """A top-level mode; a tuple of positions goes down, with ``None`` it is sliced."""
        if isinstance(mode, int):
            return from_leaves(self.raw[mode % self.rank if -self.rank <= mode < 0 else mode])
        leaves = to_leaves(mode)
        if isinstance(leaves, tuple) and all(type(i) is int for i in leaves):
            return from_leaves(L.get(self.raw, *leaves))
        return from_leaves(L.slice_(self.raw, leaves))

    def __iter__(self) -> Iterator[Any]:
        return (from_leaves(m) for m in self.raw)

    def __len__(self) -> int:
        return self.rank


class FarLayout(Layout):
    """The layout of a tensor in global memory whose elements may be 2**31 apart: indices in it are in 64 bits."""

    __slots__ = ()


class ComposedLayout(_Wrapped):
    """``inner o offset o outer``: the value at c is ``inner(offset + outer(c))``."""

    __slots__ = ()

    def __init__(self, inner: Any, offset: Any, outer: Any) -> None:
        self.raw = L.ComposedLayout(to_leaves(inner), to_leaves(offset), to_leaves(outer))

    @property
    def inner(self) -> Any:
        """The layout or swizzle applied last."""
        return from_leaves(self.raw.inner)

    @property
    def offset(self) -> Any:
        """What is added in between."""
        return from_leaves(self.raw.offset)

    @property
    def outer(self) -> Any:
        """The layout applied first."""
        return from_leaves(self.raw.outer)


def to_leaves(x: Any) -> Any:
    """What the layout algebra takes: tuples of ints, IR values, basis leaves and ``*``, and its own layouts."""
    if type(x) is int:
        return x
    if isinstance(x, (tuple, list)):
        return tuple([to_leaves(v) for v in x])
    if x is None:
        return L.STAR
    if isinstance(x, Numeric):
        v = x._v
        if x.signed is None or (x.width == 1 and isinstance(v, Value)):
            raise TraceError(f"{type(x)} in a layout", Builder.current().location(), "use an integer: .to(fx.Int32)")
        if not isinstance(v, Value):
            return int(v)
        if isinstance(x, (Int32, Int64)):
            return v
        return Int32(x)._v if x.width <= 32 else Int64(x)._v
    if x is Ellipsis or isinstance(x, slice):
        b = Builder.active()
        raise TraceError(
            f"{'...' if x is Ellipsis else 'a slice'} in a coordinate",
            b and b.location(),
            "None keeps a whole mode: t[None, 3]; for a part of one divide the tensor (fx.zipped_divide) or make a "
            "view: fx.make_view(t.iter + start, fx.make_layout(count, 1))",
        )
    return x.raw if isinstance(x, _Wrapped) else x


def from_leaves(x: Any) -> Any:
    """The same with run-time leaves as ``Int32`` / ``Int64`` numbers, and layouts as a kernel sees them."""
    if type(x) is int:
        return x
    if isinstance(x, tuple):
        return IntTuple([from_leaves(v) for v in x])
    if isinstance(x, Value):
        if x.width == 1:
            return Boolean.wrap(x)
        return Int64.wrap(x) if x.width == 64 else Int32.wrap(x)
    if isinstance(x, L.Layout):
        return Layout.of(x)
    return ComposedLayout.of(x) if isinstance(x, L.ComposedLayout) else x
