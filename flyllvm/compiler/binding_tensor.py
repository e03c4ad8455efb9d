"""Tensors and pointers as arguments: what host code sees, and what a kernel is compiled for.

An array is passed with its exact shape and strides, so the kernel is compiled for them; ``mark_layout_dynamic`` and its
relatives make extents and strides run-time arguments instead.  The alignment assumed is that of the address, up to 16
bytes, unless the author says more.
"""

from __future__ import annotations

from .. import layout as L
from ..errors import LaunchError
from ..expr.leaves import IntTuple
from ..expr.specs import TensorSpec
from ..expr.tensor import HostIter
from .binding_fit import run_time_leaves
from .binding_types import ALIGN_OF, HOST, flat_leaves
from .unknown import Unknown, known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..expr.numeric import Numeric


class TensorArg:
    """An array as a kernel argument.

    Host code of a ``@flyc.jit`` function gets one for every array; it knows the layout and never the data.

    Attributes:
        dtype: Element type.
        shape: Extents.
        stride: Strides in elements.
        where: ``host``, ``device``, or ``nowhere`` when there is no data.
        address: Address of the first element; 0 where there is no data.
        owner: The array, kept alive.
        slot: Number of the parameter it came in by, or ``None``.
        offset_bytes: Distance from the first element of that parameter.
        writable: False when a kernel must not write it.
    """

    __slots__ = (
        "_align", "_key", "_shape_marks", "_spec", "_stride_marks", "address", "dtype", "name", "offset_bytes", "owner",
        "shape", "slot", "stride", "where", "writable",
    )  # fmt: skip

    def __init__(
        self,
        dtype: type[Numeric],
        shape: Any,
        stride: Any,
        *,
        address: int = 0,
        where: str = HOST,
        owner: Any = None,
        writable: bool = True,
    ) -> None:
        self.dtype, self.shape, self.stride = dtype, IntTuple(shape), IntTuple(stride)
        self.address, self.where, self.owner, self.writable = address, where, owner, writable
        self.name = "tensor"
        self.slot: int | None = None
        self.offset_bytes = 0
        self._align = 0
        self._shape_marks: dict[int, int] = {}
        self._stride_marks: dict[int, int] = {}
        self._spec: TensorSpec | None = None
        self._key: Any = None

    # --- what host code reads ----------------------------------------------------------------------

    @property
    def element_type(self) -> type[Numeric]:
        """Element type."""
        return self.dtype

    @property
    def iter(self) -> HostIter:
        """Where it begins: ``fx.make_view(fx.get_iter(x), layout)`` is ``x.view(layout)``."""
        return HostIter(self)

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Number of elements."""
        count: Any = 1
        for extent in flat_leaves(self.shape):
            count = extent * count
        return count

    @property
    def raw_layout(self) -> L.Layout:
        """The layout in the algebra's form.

        Raises:
            TraceError: An extent or stride is not known here.
        """
        for x in (*flat_leaves(self.shape), *flat_leaves(self.stride)):
            if isinstance(x, Unknown):
                x.__index__()
        return L.Layout(tuple(self.shape), tuple(self.stride))

    @property
    def layout(self) -> Any:
        """The layout, static in host code."""
        from ..expr.layouts import make_layout

        raw = self.raw_layout
        return make_layout(raw.shape, raw.stride)

    @property
    def alignment(self) -> int:
        """Alignment of the first element that kernels rely on, in bytes."""
        return int(self.spec().align)

    @property
    def leading_dim(self) -> int:
        """The dimension whose elements lie next to each other; -1 when there is none.

        Of several candidates (extents of one have strides nobody uses) the last with more than one element counts.
        """
        ones = [i for i, s in enumerate(self.stride) if isinstance(s, int) and s == 1]
        wide = [i for i in ones if not isinstance(self.shape[i], int) or self.shape[i] > 1]
        return (wide or ones or [-1])[-1]

    def __repr__(self) -> str:
        return f"{self.name}: {self.dtype}[{self.shape}]:{self.stride} ({self.where})"

    # --- marks -------------------------------------------------------------------------------------

    def mark_layout_dynamic(self, leading_dim: int | None = None, divisibility: int = 1) -> TensorArg:
        """Makes every extent and every stride but that of the leading dimension a run-time argument.

        Args:
            leading_dim: Dimension of stride 1; found by itself when not given.
            divisibility: What the leading extent and all run-time strides are multiples of, in elements.

        Raises:
            LaunchError: No such dimension, its stride is not 1, or a number is no multiple.
        """
        lead = self.leading_dim if leading_dim is None else self._dim(leading_dim)
        if lead < 0 or (self.stride[lead] != 1 and self.shape[lead] != 1):
            raise LaunchError(
                f"{self!r} has no stride 1 in {'any dimension' if leading_dim is None else f'dimension {leading_dim}'}",
                fix="name the leading dimension, or use mark_shape_dynamic() and mark_stride_dynamic()",
            )
        for i in range(self.ndim):
            self._mark(self._shape_marks, "extent", self.shape, i, divisibility if i == lead else 1)
            if i != lead:
                self._mark(self._stride_marks, "stride", self.stride, i, divisibility)
        return self

    def mark_shape_dynamic(self, dims: int | Sequence[int] | None = None, divisibility: int = 1) -> TensorArg:
        """Makes the extents of some dimensions (of all by default) run-time arguments.

        Raises:
            LaunchError: No such dimension, or an extent is no multiple of ``divisibility``.
        """
        for i in self._dims(dims):
            self._mark(self._shape_marks, "extent", self.shape, i, divisibility)
        return self

    def mark_stride_dynamic(self, dims: int | Sequence[int] | None = None, divisibility: int = 1) -> TensorArg:
        """Makes the strides of some dimensions (of all by default) run-time arguments.

        Raises:
            LaunchError: No such dimension, or a stride is no multiple of ``divisibility``.
        """
        for i in self._dims(dims):
            self._mark(self._stride_marks, "stride", self.stride, i, divisibility)
        return self

    def assume_aligned(self, align: int) -> TensorArg:
        """Lets kernels rely on an alignment of the first element, in bytes.

        Raises:
            LaunchError: Not a power of two, or the address is not aligned so.
        """
        if type(align) is not int or align < 1 or align & (align - 1):
            raise LaunchError(f"{self.name}: alignment of {align!r} bytes", fix="use a power of two")
        if self.address % align:
            raise LaunchError(
                f"{self.name}: its address {self.address:#x} is not aligned to {align} bytes",
                fix="allocate it aligned, or assume less",
            )
        self._align, self._key, self._spec = align, None, None
        return self

    def _dims(self, dims: int | Sequence[int] | None) -> list[int]:
        if dims is None:
            return list(range(self.ndim))
        return [self._dim(d) for d in ((dims,) if isinstance(dims, int) else dims)]

    def _dim(self, dim: int) -> int:
        if type(dim) is not int or not -self.ndim <= dim < self.ndim:
            raise LaunchError(f"{self!r} has no dimension {dim!r}", fix=f"use 0 to {self.ndim - 1}")
        return dim % self.ndim

    def _mark(self, marks: dict[int, int], what: str, numbers: Any, i: int, divisibility: int) -> None:
        if type(divisibility) is not int or divisibility < 1:
            raise LaunchError(f"{self.name}: divisibility={divisibility!r}", fix="use a positive int")
        if isinstance(numbers[i], tuple):
            raise LaunchError(f"{self!r}: dimension {i} is nested", fix="give the layout as a TensorSpec")
        if isinstance(numbers[i], int) and numbers[i] % divisibility:
            raise LaunchError(
                f"{self.name}: {what} {i} is {numbers[i]}, no multiple of {divisibility}",
                fix="pad the array, or use a smaller divisibility",
            )
        marks[i] = divisibility
        self._key = self._spec = None

    # --- views -------------------------------------------------------------------------------------

    def view(self, layout: Any, offset: int = 0) -> TensorArg:
        """The same memory under another static layout, from element ``offset`` on.

        Raises:
            LaunchError: It reaches outside this tensor's memory.
        """
        from ..expr.layouts import raw_layout

        made = raw_layout(layout)
        if not isinstance(made, L.Layout) or not L.is_static(made):
            raise LaunchError(f"{self.name}.view({layout})", fix="use a static layout of ints")
        shape = made.shape if isinstance(made.shape, tuple) else (made.shape,)
        stride = made.stride if isinstance(made.stride, tuple) else (made.stride,)
        bytes_each = self.dtype.width // 8
        out = TensorArg(self.dtype, shape, stride, where=self.where, owner=self.owner, writable=self.writable)
        start, end = offset * bytes_each, offset * bytes_each + out.span_bytes
        if offset < 0 or (known((self.shape, self.stride)) and end > self.span_bytes):
            raise LaunchError(
                f"{self.name}.view({layout}, {offset}) "
                + (f"starts at byte {start}" if offset < 0 else f"ends at byte {end} of {self.span_bytes}"),
                fix="stay inside the tensor",
            )
        out.address = self.address + start if self.address else 0
        out.name, out.slot, out.offset_bytes = self.name, self.slot, self.offset_bytes + start
        own = self.spec().align
        out._align = min(own, start & -start) if start else own
        return out

    # --- what launches read ------------------------------------------------------------------------

    @property
    def span_bytes(self) -> int:
        """Bytes from the first element to the end of the last."""
        shape, stride = flat_leaves(self.shape), flat_leaves(self.stride)
        if any(n == 0 for n in shape):
            return 0
        last: int = sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        return (1 + last) * self.dtype.width // 8

    def spec(self) -> TensorSpec:
        """What a kernel is compiled for to take this tensor.

        Raises:
            LaunchError: It has no dimensions, or a static extent of 0.
        """
        if self._spec is None:
            if not self.shape:
                raise LaunchError(f"argument {self.name}: an array without dimensions", fix="pass a.reshape(1)")
            if any(n == 0 for i, n in enumerate(self.shape) if i not in self._shape_marks):
                raise LaunchError(
                    f"argument {self.name}: an array of shape {self.shape} has no elements",
                    fix="launch nothing for it, or make the extent dynamic: flyc.from_dlpack(a).mark_shape_dynamic()",
                )
            align = self._align or max(ALIGN_OF[self.address & 15], 1)
            shape = _marked(self.shape, self._shape_marks)
            stride = _marked(self.stride, self._stride_marks)
            self._spec = TensorSpec(self.dtype, shape, stride, align=align)
        return self._spec

    def fixed(self, spec: TensorSpec, name: str) -> TensorArg:
        """This tensor for a kernel compiled for ``spec``, checked."""
        run_time_leaves(name, spec, self)
        out = self.for_slot(self.slot, name)
        out._spec = spec
        return out

    def for_slot(self, slot: int | None, name: str) -> TensorArg:
        """A copy that stands for a parameter."""
        out = TensorArg(
            self.dtype,
            self.shape,
            self.stride,
            address=self.address,
            where=self.where,
            owner=self.owner,
            writable=self.writable,
        )
        out._align, out._spec = self._align, self._spec
        out._shape_marks, out._stride_marks = dict(self._shape_marks), dict(self._stride_marks)
        out.slot, out.name, out.offset_bytes = slot, name, self.offset_bytes
        return out

    def key(self) -> Any:
        """All that code compiled for it depends on, and the numbers host code may read."""
        if self._key is None:
            marks = (*sorted(self._shape_marks.items()), None, *sorted(self._stride_marks.items()))
            align = self._align or self.address & 15
            self._key = (self.where, self.dtype, self.shape, self.stride, align, bool(self._align), marks)
        return self._key


def _marked(numbers: Any, marks: dict[int, int]) -> Any:
    if not marks:
        return numbers
    return tuple(
        n if i not in marks else None if marks[i] == 1 else L.Dyn(divisibility=marks[i]) for i, n in enumerate(numbers)
    )
