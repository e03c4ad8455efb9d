"""Pointers and tensors of the authoring language.

A ``Tensor`` is a pointer with a layout; a ``CoordTensor`` a base coordinate with a layout of basis
strides.  Slicing with ``None`` keeps a mode; a coordinate of integers only reads or writes an element.
"""

from __future__ import annotations

from typing import Any

from .. import layout as L
from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from ..layout.tuples import slice_and_offset
from .leaves import from_leaves, to_leaves
from .numeric import BY_IR, Boolean, Int32, Numeric
from .vector import Vector


def ptr_type(value: Value) -> t.PtrType:
    """The pointer type of a value."""
    if not isinstance(value.type, t.PtrType):
        raise TraceError(f"expected a pointer, got {value.type}", fix="use fx.get_iter(tensor)")
    return value.type


class Pointer:
    """A typed pointer; ``dtype`` says how its elements read."""

    __slots__ = ("_v", "dtype")

    def __init__(self, value: Value, dtype: type[Numeric] | None = None) -> None:
        self._v = value
        self.dtype = dtype if dtype is not None else BY_IR[ptr_type(value).elem.text]

    @property
    def element_type(self) -> type[Numeric]:
        """Element type."""
        return self.dtype

    @property
    def address_space(self) -> str:
        """Address space name."""
        return ptr_type(self._v).space

    @property
    def alignment(self) -> int:
        """Known alignment, in bytes."""
        return ptr_type(self._v).align

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(Builder.current().add_offset(self._v, to_leaves(offset)), self.dtype)

    def load(self, count: int = 1) -> Any:
        """One element, or a vector of ``count``."""
        v = Builder.current().ptr_load(self._v, count)
        return Vector(v, self.dtype) if isinstance(v.type, t.VectorType) else self.dtype.wrap(v)

    def store(self, value: Any) -> None:
        """Writes a number or vector."""
        v = value.to(self.dtype) if isinstance(value, Vector) else self.dtype(value)
        Builder.current().ptr_store(v.ir_value(), self._v)

    def __getitem__(self, offset: Any) -> Any:
        return (self + offset).load()

    def __setitem__(self, offset: Any, value: Any) -> None:
        (self + offset).store(value)

    def view(self, layout: Any) -> Tensor:
        """A tensor over this pointer."""
        return Tensor(self._v, layout, self.dtype)

    def __repr__(self) -> str:
        return f"Pointer({self._v.type})"


def _keeps(coord: Any) -> bool:
    """Whether a coordinate has a ``*`` anywhere."""
    return any(map(_keeps, coord)) if isinstance(coord, tuple) else coord is L.STAR


class Tensor:
    """A pointer with a layout.

    Attributes:
        ptr: The IR pointer.
        layout: Layout whose run-time leaves are IR values.
        dtype: Element type.
    """

    __slots__ = ("dtype", "layout", "ptr")

    def __init__(self, ptr: Value, layout: Any, dtype: type[Numeric] | None = None) -> None:
        ptr_type(ptr)
        if not isinstance(layout, (L.Layout, L.ComposedLayout)):
            raise TraceError(f"a tensor with layout {layout!r}", fix="use fx.make_layout(shape, stride)")
        self.ptr = ptr
        self.layout = layout
        self.dtype = dtype if dtype is not None else BY_IR[ptr_type(ptr).elem.text]

    @property
    def element_type(self) -> type[Numeric]:
        """Element type."""
        return self.dtype

    @property
    def address_space(self) -> str:
        """Address space name."""
        return ptr_type(self.ptr).space

    @property
    def alignment(self) -> int:
        """Known alignment of the first element, in bytes."""
        return ptr_type(self.ptr).align

    @property
    def iter(self) -> Pointer:
        """The pointer."""
        return Pointer(self.ptr, self.dtype)

    @property
    def shape(self) -> Any:
        """Shape with numbers of the language."""
        return from_leaves(self.layout.shape)

    @property
    def stride(self) -> Any:
        """Strides in elements."""
        if isinstance(self.layout, L.ComposedLayout):
            raise TraceError(f"{self.layout} has no strides", fix="use its outer layout")
        return from_leaves(self.layout.stride)

    def ir_value(self) -> Value:
        """The memref as an IR value."""
        return Builder.current().make_view(self.ptr, self.layout)

    def with_layout(self, layout: Any) -> Tensor:
        """The same memory under another layout."""
        return Tensor(self.ptr, layout, self.dtype)

    def at(self, offset: Any, layout: Any) -> Tensor:
        """The memory ``offset`` elements further under a layout."""
        return Tensor(Builder.current().add_offset(self.ptr, to_leaves(offset)), layout, self.dtype)

    def slice(self, coord: Any) -> Tensor:
        """The modes where ``coord`` is ``None``, at the given place of the others."""
        kept, offset = slice_and_offset(to_leaves(coord), self.layout)
        return self.at(offset, kept)

    def _element(self, coord: Any) -> Pointer:
        index = L.crd2idx(to_leaves(coord), self.layout)
        if isinstance(index, tuple):
            raise TraceError(f"the layout {self.layout} gives a coordinate, not an offset", fix="index a memory tensor")
        return self.iter + index

    def __getitem__(self, coord: Any) -> Any:
        leaves = to_leaves(coord)
        if _keeps(leaves):
            return self.slice(coord)
        element = self._element(coord)
        return Boolean.wrap(element.load()._v) if self.dtype is Boolean else element.load()

    def __setitem__(self, coord: Any, value: Any) -> None:
        if _keeps(to_leaves(coord)):
            self.slice(coord).store(value)
        else:
            self._element(coord).store(value)

    def load(self) -> Vector:
        """All elements as one vector, first mode fastest."""
        b = Builder.current()
        count = self._count()
        v = b.emit("fly.memref.load_vec", [self.ir_value()], [t.VectorType(count, self.dtype.ir)]).results[0]
        return Vector(v, self.dtype)

    def _count(self) -> int:
        count = L.size(self.layout)
        if not isinstance(count, int):
            raise TraceError(
                f"vector access to the run-time shape {self.layout.shape}",
                Builder.current().location(),
                "load a tile of static shape",
            )
        return count

    def store(self, value: Any) -> None:
        """Writes a vector of as many elements, or one number everywhere."""
        b = Builder.current()
        count = self._count()
        vector = value.to(self.dtype) if isinstance(value, Vector) else Vector.filled(count, value, self.dtype)
        if vector.count != count:
            raise TraceError(
                f"{vector.count} elements into a tensor of {count}", b.location(), "store a vector of the same size"
            )
        b.emit("fly.memref.store_vec", [vector.ir_value(), self.ir_value()])

    def fill(self, value: Any) -> None:
        """Writes one number everywhere."""
        self.store(value)

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}, {self.address_space}, {self.layout})"


class CoordTensor:
    """A tensor of coordinates: its value at c is ``base + layout(c)``."""

    __slots__ = ("base", "layout")

    def __init__(self, base: Any, layout: Any) -> None:
        self.base = base
        self.layout = layout

    @property
    def shape(self) -> Any:
        """Shape with numbers of the language."""
        return from_leaves(self.layout.shape)

    def __getitem__(self, coord: Any) -> Any:
        leaves = to_leaves(coord)
        if _keeps(leaves):
            kept, offset = slice_and_offset(leaves, self.layout)
            return CoordTensor(_add(self.base, offset), kept)
        return from_leaves(_add(self.base, L.crd2idx(leaves, self.layout)))

    def at(self, offset: Any, layout: Any) -> CoordTensor:
        """The coordinates moved by ``offset`` under a layout."""
        return CoordTensor(_add(self.base, offset), layout)

    def __repr__(self) -> str:
        return f"CoordTensor({self.layout})"


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


def make_view(iterator: Any, layout: Any) -> Any:
    """Pointer and layout give a tensor, a coordinate and a layout a coordinate tensor."""
    if isinstance(iterator, Pointer):
        return Tensor(iterator.ir_value(), layout, iterator.dtype)
    if isinstance(iterator, Value):
        return Tensor(iterator, layout)
    return CoordTensor(to_leaves(iterator), layout)


def make_identity_tensor(shape: Any) -> CoordTensor:
    """The coordinate tensor whose value at c is c."""
    leaves = to_leaves(shape)
    base = tuple(0 for _ in leaves) if isinstance(leaves, tuple) else 0
    return CoordTensor(base, L.make_identity_layout(leaves))


def make_rmem_tensor(shape_or_layout: Any, dtype: type[Numeric]) -> Tensor:
    """Register memory; a shape becomes compact column-major."""
    layout = shape_or_layout
    if not isinstance(layout, L.Layout):
        leaves = to_leaves(layout)
        layout = L.make_ordered_layout(leaves, tuple(range(len(leaves))) if isinstance(leaves, tuple) else 0)
    b = Builder.current()
    return Tensor(b.get_iter(b.alloca(dtype.ir, layout)), layout, dtype)


def make_fragment_like(tensor: Any, dtype: type[Numeric] | None = None) -> Tensor:
    """Register memory shaped like a tensor, value mode innermost."""
    layout = tensor.layout if not isinstance(tensor, L.Layout) else tensor
    if isinstance(layout, L.ComposedLayout):
        layout = layout.outer
    kind = dtype if dtype is not None else getattr(tensor, "dtype", Int32)
    fragment = L.make_fragment_layout_like(compact_basis(layout))
    return make_rmem_tensor(fragment, kind)


def compact_basis(layout: L.Layout) -> L.Layout:
    """The layout with basis strides replaced by compact ones (a fragment of a coordinate tensor)."""
    if any(isinstance(leaf, L.Basis) for leaf in L.get_leaves(layout)):
        shape = layout.shape
        return L.make_ordered_layout(shape, tuple(range(len(shape))) if isinstance(shape, tuple) else 0)
    return layout


def get_iter(x: Any) -> Any:
    """The pointer of a tensor, the base of a coordinate tensor."""
    return x.iter if isinstance(x, Tensor) else from_leaves(x.base)


def get_layout(x: Any) -> Any:
    """The layout of a tensor."""
    return x.layout


def get_shape(x: Any) -> Any:
    """The shape of a tensor or layout."""
    return from_leaves(x.layout.shape if isinstance(x, (Tensor, CoordTensor)) else x.shape)


def get_stride(x: Any) -> Any:
    """The strides of a tensor or layout."""
    return x.stride if isinstance(x, Tensor) else from_leaves(x.stride)


def _on_layout(name: str) -> Any:
    fn = getattr(L, name)

    def run(x: Any, *args: Any) -> Any:
        given = [a if isinstance(a, (L.Layout, L.Tile)) else to_leaves(a) for a in args]
        if isinstance(x, Tensor):
            return x.with_layout(fn(x.layout, *given))
        if isinstance(x, CoordTensor):
            return CoordTensor(x.base, fn(x.layout, *given))
        return from_leaves(fn(x if isinstance(x, (L.Layout, L.ComposedLayout, L.Tile)) else to_leaves(x), *given))

    run.__name__ = name
    run.__doc__ = fn.__doc__
    return run


logical_divide, zipped_divide, tiled_divide, flat_divide = (
    _on_layout(f"{n}_divide") for n in ("logical", "zipped", "tiled", "flat")
)
group, select_modes, take, append, prepend = (_on_layout(n) for n in ("group", "select", "take", "append", "prepend"))


def slice(x: Any, coord: Any) -> Any:
    """The modes where the coordinate is ``None``."""
    return x[coord] if isinstance(x, (Tensor, CoordTensor)) else from_leaves(L.slice_(x, to_leaves(coord)))


def recast_iter(dtype: type[Numeric], x: Any) -> Any:
    """A pointer seen with another element type."""
    return Pointer(Builder.current().recast_iter(x.ir_value(), dtype.ir), dtype)


def add_offset(ptr: Any, offset: Any) -> Any:
    """A pointer plus elements, or a tensor moved by elements."""
    return ptr.at(offset, ptr.layout) if isinstance(ptr, (Tensor, CoordTensor)) else ptr + offset


def apply_swizzle(ptr: Pointer, swizzle: L.Swizzle) -> Pointer:
    """The pointer with a swizzle of its byte address; use the same one to write and to read."""
    return Pointer(Builder.current().apply_swizzle(ptr.ir_value(), swizzle), ptr.dtype)
