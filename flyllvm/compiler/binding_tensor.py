"""Tensors and pointers as arguments: what host code sees, and what a kernel is compiled for.

An array is passed with its exact shape and strides, so the kernel is compiled for them; ``mark_layout_dynamic`` and its
relatives make extents and strides run-time arguments instead.  The alignment assumed is that of the address, up to 16
bytes, unless the author says more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import layout as L
from ..errors import LaunchError
from ..expr.specs import NAMES, PointerSpec, TensorSpec
from .binding import ARRAY_DTYPES
from .unknown import Unknown, known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..expr.numeric import Numeric
    from ..expr.specs import Spec

HOST, DEVICE, NOWHERE = "host", "device", "nowhere"
#: Element types by the name that NumPy, ml_dtypes and torch give them.
TYPE_OF_NAME: dict[str, type[Numeric]] = {numpy: NAMES[short] for short, numpy in ARRAY_DTYPES.items()}
#: Alignment in bytes by the low bits of an address.
ALIGN_OF = (16, 1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1)
_MAX_EXTENT = (1 << 31) - 1


def element_type(name: str, what: str) -> type[Numeric]:
    """An element type by the name other libraries give it.

    Raises:
        LaunchError: A kernel has no such elements.
    """
    found = TYPE_OF_NAME.get(name.removeprefix("torch."))
    if found is None:
        fix = "view it as uint8" if name.removeprefix("torch.") == "bool" else f"use one of: {', '.join(TYPE_OF_NAME)}"
        raise LaunchError(f"{what} of {name}: kernels have no such element type", fix=fix)
    return found


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
        self.dtype, self.shape, self.stride = dtype, shape, stride
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
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> Any:
        """Number of elements."""
        count: Any = 1
        for extent in _flat(self.shape):
            count = extent * count
        return count

    @property
    def raw_layout(self) -> L.Layout:
        """The layout in the algebra's form.

        Raises:
            TraceError: An extent or stride is not known here.
        """
        for x in (*_flat(self.shape), *_flat(self.stride)):
            if isinstance(x, Unknown):
                x.__index__()
        return L.Layout(self.shape, self.stride)

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
                f"{self!r} has no stride 1 in dimension {leading_dim if leading_dim is not None else 'any'}",
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
                f"{self.name}.view({layout}, {offset}) ends at byte {end} of {self.span_bytes}",
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
        shape, stride = _flat(self.shape), _flat(self.stride)
        if any(n == 0 for n in shape):
            return 0
        last: int = sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        return (1 + last) * self.dtype.width // 8

    def spec(self) -> TensorSpec:
        """What a kernel is compiled for to take this tensor."""
        if self._spec is None:
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


class PointerArg:
    """A raw pointer as a kernel argument.

    Attributes:
        dtype: Element type.
        address: The address.
        span_bytes: Bytes that may be read and written from there, or ``None`` when not known.
        where: ``host``, ``device``, or ``nowhere`` when only the author knows.
    """

    __slots__ = ("_align", "_spec", "address", "dtype", "name", "offset_bytes", "owner", "slot", "span_bytes", "where",
                 "writable")  # fmt: skip

    def __init__(
        self,
        dtype: type[Numeric],
        address: int,
        *,
        align: int | None = None,
        span_bytes: int | None = None,
        where: str = NOWHERE,
        owner: Any = None,
    ) -> None:
        self.dtype, self.address, self.span_bytes, self.where, self.owner = dtype, address, span_bytes, where, owner
        self.name, self.writable, self.offset_bytes = "pointer", True, 0
        self.slot: int | None = None
        self._align = ALIGN_OF[address & 15] if align is None else align
        self._spec: PointerSpec | None = None
        if address % self._align:
            raise LaunchError(
                f"address {address:#x} is not aligned to {self._align} bytes", fix="pass an aligned address, or less"
            )

    @property
    def element_type(self) -> type[Numeric]:
        """Element type."""
        return self.dtype

    @property
    def alignment(self) -> int:
        """Alignment that kernels rely on, in bytes."""
        return self._align

    def spec(self) -> PointerSpec:
        """What a kernel is compiled for to take this pointer."""
        return PointerSpec(self.dtype, self._align) if self._spec is None else self._spec

    def for_slot(self, slot: int | None, name: str) -> PointerArg:
        """A copy that stands for a parameter."""
        out = PointerArg(
            self.dtype,
            self.address,
            align=self._align,
            span_bytes=self.span_bytes,
            where=self.where,
            owner=self.owner,
        )
        out.slot, out.name, out._spec, out.writable = slot, name, self._spec, self.writable
        return out

    def fixed(self, spec: PointerSpec, name: str) -> PointerArg:
        """This pointer for a kernel compiled for ``spec``, checked."""
        if self.dtype is not spec.dtype:
            raise LaunchError(f"argument {name}: pointer to {self.dtype} for {spec}", fix=f"pass one to {spec.dtype}")
        if self.address % spec.align:
            raise LaunchError(
                f"argument {name}: address {self.address:#x} for {spec}", fix=f"align it to {spec.align} bytes"
            )
        out = self.for_slot(self.slot, name)
        out._spec = spec
        return out

    def key(self) -> Any:
        """All that code compiled for it depends on."""
        return (self.where, self.dtype, self._align, self.span_bytes)

    def __repr__(self) -> str:
        return f"{self.name}: pointer to {self.dtype} at {self.address:#x}"


def from_spec(spec: TensorSpec | PointerSpec, name: str) -> TensorArg | PointerArg:
    """An argument without data, for compiling."""
    if isinstance(spec, PointerSpec):
        pointer = PointerArg(spec.dtype, 0, align=spec.align)
        pointer._spec = spec
        return pointer
    out = TensorArg(
        spec.dtype,
        _unknown(spec.shape, f"extent of {name}"),
        _unknown(spec.stride, f"stride of {name}"),
        where=NOWHERE,
    )
    out._spec, out.name = spec, name
    return out


def run_time_leaves(name: str, spec: Spec, value: TensorArg) -> list[Any]:
    """The run-time extents and strides of a tensor for a specification, in the kernel's order.

    Raises:
        LaunchError: The tensor does not fit.
    """
    if not isinstance(spec, TensorSpec):
        raise LaunchError(f"argument {name}: a tensor for {spec}", fix=f"pass a {spec}")
    if value.dtype is not spec.dtype:
        wanted = next((n for n, kind in TYPE_OF_NAME.items() if kind is spec.dtype), str(spec.dtype))
        raise LaunchError(f"argument {name}: {value.dtype} elements for {spec}", fix=f"pass an array of {wanted}")
    if value.address % spec.align:
        raise LaunchError(
            f"argument {name}: its address {value.address:#x} for {spec}", fix=f"align it to {spec.align} bytes"
        )
    shape, rules = _flat(value.shape), spec.leaf_rules()
    actual = (*shape, *_flat(value.stride))
    if len(actual) != len(rules):
        raise LaunchError(
            f"argument {name}: {len(shape)} dimensions for {spec}", fix=f"pass {len(rules) // 2} dimensions"
        )
    return [n for (n, rule) in zip(actual, rules, strict=True) if not _fits(name, spec, n, rule, shape[rule[1]])]


def _fits(name: str, spec: TensorSpec, n: Any, rule: tuple[str, int, int | None, int], extent: Any) -> bool:
    """Whether a leaf is the static one of the rule; a run-time one is checked."""
    what, i, static, div = rule
    if isinstance(n, Unknown):
        return static is not None
    if static is not None:
        # The stride of an extent of one is never used.
        if n != static and not (what == "stride" and not isinstance(extent, Unknown) and extent <= 1):
            raise LaunchError(f"argument {name}: {what}[{i}] is {n} for {spec}", fix=f"it is compiled for {static}")
        return True
    if n % div:
        raise LaunchError(f"argument {name}: {what}[{i}] = {n} for {spec}", fix=f"pass a multiple of {div}")
    if n > _MAX_EXTENT:
        raise LaunchError(
            f"argument {name}: {what}[{i}] = {n}", fix="run-time extents and strides stay below 2**31; leave it static"
        )
    return False


def _flat(x: Any) -> tuple[Any, ...]:
    if isinstance(x, tuple):
        return tuple(leaf for part in x for leaf in _flat(part))
    return (x,)


def _marked(numbers: Any, marks: dict[int, int]) -> Any:
    if not marks:
        return numbers
    return tuple(
        n if i not in marks else None if marks[i] == 1 else L.Dyn(divisibility=marks[i]) for i, n in enumerate(numbers)
    )


def _unknown(tree: Any, name: str) -> Any:
    if isinstance(tree, tuple):
        return tuple(_unknown(x, f"{name}[{i}]") for i, x in enumerate(tree))
    return tree if isinstance(tree, int) else Unknown(name)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous array."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
