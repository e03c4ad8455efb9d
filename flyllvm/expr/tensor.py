"""Tensors of the authoring language: a pointer with a layout.

Slicing with ``None`` keeps a mode; a coordinate of integers only reads or writes an element.
"""

from __future__ import annotations

from .. import layout as L
from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Block, Value
from .coord_tensor import CoordTensor, keeps, refuse_outside
from .layouts import compact_basis, plain_layout
from .leaves import FarLayout, from_leaves, to_leaves
from .numeric import BY_IR, Int32, Numeric
from .pointer import Pointer, elem_ir, equal_by_python, moved, no_elements_in_turn, ptr_type
from .reach import WIDE_SPACES, encloses_current, fits_32_bits, widened_coord, widened_strides
from .stores import filling, stored
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Tensor:
    """A pointer with a layout.  ``fx.Tensor`` also marks a tensor parameter of a kernel.

    Attributes:
        ptr: The IR pointer.
        dtype: Element type.
    """

    __slots__ = ("_given", "_home", "_wide", "dtype", "ptr")
    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    def __init__(self, ptr: Value, layout: Any, dtype: type[Numeric] | None = None) -> None:
        kind = ptr_type(ptr)
        raw = to_leaves(layout)
        if not isinstance(raw, (L.Layout, L.ComposedLayout)):
            raise TraceError(f"a tensor with layout {layout!r}", fix="use fx.make_layout(shape, stride)")
        self.ptr = ptr
        self._given = raw
        self._home: Block | None = None  # where the conversions to 64 bits stand; None: there are none
        self._wide = raw if kind.space not in WIDE_SPACES or raw.is_static or fits_32_bits(raw) else None
        self.dtype = dtype if dtype is not None else BY_IR[kind.elem.text]

    @property
    def raw_layout(self) -> Any:
        """The layout in the algebra's form; run-time strides of memory that may be large are in 64 bits."""
        if self._wide is None or not encloses_current(self._home):
            self._home = Builder.current().block
            self._wide = widened_strides(self._given)
        return self._wide

    @property
    def layout(self) -> Any:
        """The layout."""
        return FarLayout.of(self._given) if self.is_far else from_leaves(self._given)

    @property
    def is_far(self) -> bool:
        """Whether an element may be 2**31 elements away: in global memory, where the layout proves no less."""
        return isinstance(self._given, L.Layout) and self.address_space in WIDE_SPACES and not fits_32_bits(self._given)

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
        return from_leaves(self._given.shape)

    @property
    def stride(self) -> Any:
        """Strides in elements."""
        if isinstance(self._given, L.ComposedLayout):
            raise TraceError(f"{self._given} has no strides", fix="use its outer layout")
        return from_leaves(self._given.stride)

    @property
    def leading_dim(self) -> int | None:
        """The top-level mode whose stride is 1, ``None`` if there is none."""
        if isinstance(self.raw_layout, L.ComposedLayout):
            return None
        stride = self.raw_layout.stride
        modes = stride if isinstance(stride, tuple) else (stride,)
        return next((i for i, d in enumerate(modes) if isinstance(d, int) and d == 1), None)

    def ir_value(self) -> Value:
        """The memref as an IR value."""
        return Builder.current().make_view(self.ptr, self.raw_layout)

    def with_layout(self, layout: Any) -> Tensor:
        """The same memory under another layout."""
        return Tensor(self.ptr, layout, self.dtype)

    def at(self, offset: Any, layout: Any) -> Tensor:
        """The memory ``offset`` elements further under a layout."""
        return Tensor(moved(self.ptr, offset), layout, self.dtype)

    def slice(self, coord: Any) -> Tensor:
        """The modes where ``coord`` is ``None``, at the given place of the others."""
        kept, offset = L.slice_and_offset(self._coord(coord), self.raw_layout)
        return self.at(offset, kept)

    def _coord(self, coord: Any) -> Any:
        """A coordinate whose products with the strides cannot leave their width."""
        leaves = to_leaves(coord)
        refuse_outside(leaves, self._given.shape)
        if self.address_space not in WIDE_SPACES or fits_32_bits(self._given):
            return leaves
        return widened_coord(leaves)

    def _element(self, coord: Any) -> Pointer:
        index = L.crd2idx(self._coord(coord), self.raw_layout)
        if isinstance(index, tuple):
            raise TraceError(
                f"the layout {self.raw_layout} gives a coordinate, not an offset", fix="index a memory tensor"
            )
        made: Pointer = self.iter + from_leaves(index)
        return made

    __iter__ = no_elements_in_turn
    __eq__ = equal_by_python
    __hash__ = object.__hash__

    def __getitem__(self, coord: Any) -> Any:
        return self.slice(coord) if keeps(to_leaves(coord)) else self._element(coord).load()

    def __setitem__(self, coord: Any, value: Any) -> None:
        if keeps(to_leaves(coord)):
            self.slice(coord).store(value)
        elif isinstance(value, Vector) and value.count > 1:
            raise TraceError(
                f"a vector of {value.count} elements into the one element at {coord!r}",
                Builder.current().location(),
                "write a part of the tensor, with None for the modes to keep: t[None, i] = v",
            )
        else:
            self._element(coord).store(value)

    def load(self) -> Vector:
        """All elements as one vector of the tensor's shape, first mode fastest."""
        b = Builder.current()
        count = self._count()
        v = b.emit("fly.memref.load_vec", [self.ir_value()], [t.VectorType(count, elem_ir(self.dtype))]).results[0]
        shape = self.raw_layout.shape
        return Vector(v, self.dtype, shape if isinstance(shape, tuple) else (shape,))

    def _count(self) -> int:
        count = L.size(self.raw_layout)
        if not isinstance(count, int):
            raise TraceError(
                f"vector access to the run-time shape {self.raw_layout.shape}",
                Builder.current().location(),
                "load a tile of static shape",
            )
        return count

    def store(self, value: Any) -> None:
        """Writes a vector of as many elements, or one number everywhere."""
        b = Builder.current()
        count = self._count()
        made = stored(value, self.dtype)
        vector = made if isinstance(made, Vector) else Vector.filled(count, made, self.dtype)
        if vector.count != count:
            raise TraceError(
                f"{vector.count} elements into a tensor of {count}", b.location(), "store a vector of the same size"
            )
        b.emit("fly.memref.store_vec", [vector.ir_value(), self.ir_value()])

    def fill(self, value: Any) -> None:
        """Writes one number everywhere; floats are rounded to the element type."""
        self.store(filling(value, self.dtype))

    def __repr__(self) -> str:
        return f"Tensor({self.dtype}, {self.address_space}, {self.raw_layout})"


# --- making tensors ------------------------------------------------------------------------------


def make_view(iterator: Any, layout: Any) -> Any:
    """Pointer and layout give a tensor, a coordinate and a layout a coordinate tensor.

    In a host function the iterator of a tensor argument gives the same memory under another layout.
    """
    if isinstance(iterator, HostIter):
        return iterator.tensor.view(layout)
    if isinstance(iterator, Pointer):
        return Tensor(iterator.ir_value(), layout, iterator.dtype)
    if isinstance(iterator, Value) and isinstance(iterator.type, t.PtrType):
        return Tensor(iterator, layout)
    return CoordTensor(iterator, layout)


def make_identity_tensor(shape: Any) -> CoordTensor:
    """The coordinate tensor whose value at c is c."""
    leaves = to_leaves(shape)
    base = tuple(0 for _ in leaves) if isinstance(leaves, tuple) else 0
    return CoordTensor(base, L.make_identity_layout(leaves))


def make_rmem_tensor(shape_or_layout: Any, dtype: type[Numeric]) -> Tensor:
    """Register memory; a shape becomes compact column-major.

    Raises:
        TraceError: The layout is known at run time only, or ``dtype`` is no number type.
    """
    raw = to_leaves(shape_or_layout)
    if isinstance(raw, (int, tuple)):
        raw = L.make_ordered_layout(raw, tuple(range(len(raw))) if isinstance(raw, tuple) else 0)
    b = Builder.current()
    if not isinstance(raw, L.Layout) or not raw.is_static:
        raise TraceError(
            f"register memory of layout {raw}", b.location(), "registers have a plain layout of compile-time numbers"
        )
    return Tensor(b.get_iter(b.alloca(elem_ir(dtype), raw)), raw, dtype)


def make_fragment_like(tensor: Any, dtype: type[Numeric] | None = None) -> Tensor:
    """Register memory shaped like a tensor or layout, value mode innermost; of a coordinate tensor it is Int32."""
    raw = getattr(tensor, "raw_layout", None)
    raw = to_leaves(tensor) if raw is None else raw
    kind = dtype if dtype is not None else getattr(tensor, "dtype", Int32)
    return make_rmem_tensor(L.make_fragment_layout_like(compact_basis(plain_layout(raw))), kind)


class HostIter:
    """Where a tensor argument begins, in host code: something to make views of.

    Attributes:
        tensor: The argument.
    """

    __slots__ = ("tensor",)

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor


def get_iter(x: Any) -> Any:
    """The pointer of a tensor, the base of a coordinate tensor."""
    if isinstance(x, CoordTensor):
        return from_leaves(x.base)
    return x.iter if hasattr(x, "iter") else _tensor(x, "get_iter")


# --- elements and vectors, by the names of the IR ------------------------------------------------


def _tensor(x: Any, what: str) -> Any:
    if not isinstance(x, (Tensor, CoordTensor)):
        raise TraceError(f"{what} of {x!r:.60}", Builder.current().location(), "pass a tensor")
    return x


def memref_alloca(dtype: type[Numeric], layout: Any) -> Tensor:
    """Register memory of a type and layout."""
    return make_rmem_tensor(layout, dtype)


def memref_load(memref: Tensor, indices: Any) -> Any:
    """One element."""
    return _tensor(memref, "memref_load")[indices]


def memref_store(value: Any, memref: Tensor, indices: Any) -> None:
    """Writes one element."""
    _tensor(memref, "memref_store")[indices] = value


def memref_load_vec(memref: Any) -> Vector:
    """All elements as a vector; of a coordinate tensor its indices."""
    made: Vector = _tensor(memref, "memref_load_vec").load()
    return made


def memref_store_vec(vector: Vector, memref: Tensor) -> None:
    """Writes all elements."""
    _tensor(memref, "memref_store_vec").store(vector)
