"""Pointers of the authoring language, and the functions on them."""

from __future__ import annotations

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from ..layout import Swizzle
from .leaves import to_leaves
from .numeric import (
    BY_IR,
    Int8,
    Int32,
    Int64,
    Numeric,
    NumericMeta,
    as_numeric,
    count_of,
    integer,
)
from .stores import stored
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def ptr_type(value: Value) -> t.PtrType:
    """The pointer type of a value."""
    if not isinstance(value.type, t.PtrType):
        raise TraceError(f"expected a pointer, got {value.type}", fix="use fx.get_iter(tensor)")
    return value.type


def elem_ir(dtype: Any) -> t.ScalarType:
    """The IR type of a number type.

    Raises:
        TraceError: It is no number type.
    """
    if not isinstance(dtype, NumericMeta):
        b = Builder.active()
        raise TraceError(f"{dtype!r:.60} is no number type", b and b.location(), "use e.g. fx.Float16")
    return dtype.ir  # type: ignore[attr-defined, no-any-return]


def _pointer(x: Any, what: str) -> Pointer:
    if not isinstance(x, Pointer):
        fix = "pass a pointer: fx.get_iter(tensor)"
        raise TraceError(f"{what} of {x!r:.60}", Builder.current().location(), fix)
    return x


def moved(ptr: Value, offset: Any) -> Value:
    """A pointer some elements further.

    Raises:
        TraceError: The offset of a register pointer is known at run time only.
    """
    leaf, b = to_leaves(offset), Builder.current()
    if isinstance(leaf, Value) and ptr_type(ptr).space == "register" and leaf.static_value() is None:
        raise TraceError(
            "register memory is indexed with a run-time number",
            b.location(),
            "registers have no addresses: use a compile-time index (fx.range_constexpr), load() the fragment and index "
            "the vector (which selects among its elements), or keep it in LDS",
        )
    made = b.add_offset(ptr, leaf)
    if ptr_type(ptr).space == "buffer_desc":
        _check_buffer_offset(ptr, made, leaf)
    return made


def _constant_offset(ptr: Value) -> int:
    """The constant part of a pointer's offset, in elements."""
    op = ptr.op
    known = op.operands[1].static_value() if op is not None and op.name == "fly.add_offset" else None
    return known or 0


def _check_buffer_offset(ptr: Value, made: Value, leaf: Any) -> None:
    """Offsets behind a descriptor are 32-bit and count up from its base: what does not fit is refused, not masked."""
    b = Builder.current()
    if (
        isinstance(leaf, Value)
        and leaf.width == 64
        and not (leaf.range and 0 <= leaf.range[0] <= leaf.range[1] < 1 << 31)
    ):
        raise TraceError(
            "a 64-bit run-time offset behind a buffer descriptor",
            b.location(),
            "move the base of the descriptor instead (offset the global pointer, then make the buffer), or convert the "
            "offset to Int32 where it is known to be small",
        )
    op = made.op
    if op is None or op.name != "fly.add_offset" or op.operands[1].static_value() is None:
        return
    # The IR holds the constant in 32 bits, so the sum is formed here.
    known = (leaf if isinstance(leaf, int) else 0) + _constant_offset(ptr)
    size = known * ptr_type(made).elem.bits // 8
    inner = op.operands[0].op
    alone = inner is None or inner.name != "fly.add_offset"
    if abs(size) >= 1 << 31 or (alone and size < 0):
        raise TraceError(
            f"an offset of {size} bytes behind a buffer descriptor",
            b.location(),
            "offsets count up from the base, below 2**31 bytes; move the base of the descriptor instead",
        )


def no_elements_in_turn(what: Any) -> Any:
    """``__iter__`` of what is indexed without an end: Python would index it for ever.

    Raises:
        TraceError: Always.
    """
    raise TraceError(
        f"{type(what).__name__} is gone through by a Python loop, `in` or unpacking",
        fix="loop over indices, for i in range(n), or go through the vector that load() returns",
    )


def equal_by_python(self: Any, other: object) -> bool:
    """``==`` of what has elements: the same object, or nothing; which elements are equal is another question.

    Raises:
        TraceError: It is compared with other memory, or with a number or vector.
    """
    if isinstance(other, (int, float, Numeric, Vector, Pointer)) or hasattr(other, "raw_layout"):
        if self is other:
            return True
        raise TraceError(
            f"{self!r:.60} is compared with {other!r:.60}",
            Builder.current().location(),
            "compare elements, t[i] == x, or vectors, t.load() == v; addresses are numbers: fx.ptrtoint(p)",
        )
    return False


class Pointer:
    """A typed pointer; ``dtype`` says how its elements read.

    ``fx.Pointer`` also marks a pointer parameter of a kernel.
    """

    __slots__ = ("_v", "dtype")
    __array_ufunc__ = None  # NumPy's arrays leave operators to this class

    def __init__(self, value: Value, dtype: type[Numeric] | None = None) -> None:
        self.dtype = dtype if dtype is not None else BY_IR[ptr_type(value).elem.text]
        self._v = value

    @property
    def ptr_type(self) -> t.PtrType:
        """The IR type."""
        return ptr_type(self._v)

    @property
    def element_type(self) -> type[Numeric]:
        """Element type."""
        return self.dtype

    @property
    def address_space(self) -> str:
        """Address space name."""
        return self.ptr_type.space

    @property
    def alignment(self) -> int:
        """Known alignment, in bytes."""
        return self.ptr_type.align

    def ir_value(self) -> Value:
        """The IR value."""
        return self._v

    def __add__(self, offset: Any) -> Pointer:
        return Pointer(moved(self._v, offset), self.dtype)

    __radd__ = __add__

    def __sub__(self, offset: Any) -> Pointer:
        return self + (-as_numeric(offset) if not isinstance(offset, int) else -offset)

    def load(self, dtype: Any = None, count: int = 1) -> Any:
        """One element, or a vector of ``count``; ``dtype`` reads the bytes as another type."""
        if isinstance(dtype, int) and not isinstance(dtype, bool):
            dtype, count = None, dtype
        count = count_of(count, "the number of elements to load", 1)
        pointer = self if dtype is None or dtype is self.dtype else recast_iter(dtype, self)
        v = Builder.current().ptr_load(pointer._v, count)
        return Vector(v, pointer.dtype) if isinstance(v.type, t.VectorType) else pointer.dtype.wrap(v)

    def store(self, value: Any) -> None:
        """Writes a number or vector, in the element type.

        Raises:
            TraceError: The element type cannot hold it; see `stores.stored`.
        """
        Builder.current().ptr_store(stored(value, self.dtype).ir_value(), self._v)

    __iter__ = no_elements_in_turn
    __eq__ = equal_by_python
    __hash__ = object.__hash__

    def __getitem__(self, offset: Any) -> Any:
        return (self + offset).load()

    def __setitem__(self, offset: Any, value: Any) -> None:
        (self + offset).store(value)

    def view(self, layout: Any) -> Any:
        """A tensor over this pointer."""
        from .tensor import Tensor

        return Tensor(self._v, layout, self.dtype)

    def __repr__(self) -> str:
        return f"Pointer({self._v.type})"


class PointerType:
    """The type of a pointer, for ``inttoptr``, ``recast_iter`` and ``make_ptr``.

    Args:
        dtype: Element type.
        space: Address space: generic, global, shared, constant, register or buffer_desc.
        align: Alignment in bytes; by default the element's own.
        swizzle: Swizzle of the byte address.
    """

    __slots__ = ("dtype", "ir")

    def __init__(
        self, dtype: type[Numeric], space: str = "global", align: int | None = None, swizzle: Swizzle | None = None
    ) -> None:
        self.dtype = dtype
        self.ir = t.PtrType(elem_ir(dtype), space, align, swizzle)

    def __repr__(self) -> str:
        return str(self.ir)


def recast_iter(dtype: Any, x: Any) -> Pointer:
    """A pointer seen with another element type (a number type, or a ``PointerType`` of the same space)."""
    x = _pointer(x, "recast_iter")
    if isinstance(dtype, PointerType):
        if dtype.ir.space != x.address_space:
            where = Builder.current().location()
            raise TraceError(f"recast_iter of {x} to {dtype}", where, f"keep the address space {x.address_space}")
        dtype = dtype.dtype
    ir = elem_ir(dtype)
    if x.address_space == "register" and ir.text != x.ptr_type.elem.text:
        raise TraceError(
            f"recast_iter of register memory of {x.dtype} to {dtype}",
            Builder.current().location(),
            "registers have no bytes to look at again: load() the fragment and bitcast the vector",
        )
    return Pointer(Builder.current().recast_iter(x.ir_value(), ir), dtype)


def add_offset(ptr: Any, offset: Any) -> Any:
    """A pointer plus elements, or a tensor moved by elements."""
    return ptr + offset if isinstance(ptr, Pointer) else ptr.at(offset, ptr.raw_layout)


def apply_swizzle(ptr: Pointer, swizzle: Swizzle) -> Pointer:
    """The pointer with a swizzle of its byte address; use the same one to write and to read."""
    if not isinstance(swizzle, Swizzle):
        where = Builder.current().location()
        raise TraceError(f"apply_swizzle by {swizzle!r:.60}", where, "pass fx.Swizzle(mask, base, shift)")
    return Pointer(Builder.current().apply_swizzle(_pointer(ptr, "apply_swizzle").ir_value(), swizzle), ptr.dtype)


def inttoptr(type: PointerType, src: Any) -> Pointer:
    """An address as a pointer: 32 bits for shared memory, 64 otherwise."""
    b = Builder.current()
    if not isinstance(type, PointerType):
        raise TraceError(f"inttoptr({type!r})", b.location(), "pass fx.PointerType(dtype, space)")
    wanted = Int32 if type.ir.space == "shared" else Int64
    value = integer(src, "the address of inttoptr", wanted).ir_value()
    return Pointer(b.emit("fly.inttoptr", [value], [type.ir]).results[0], type.dtype)


def ptrtoint(ptr: Pointer) -> Any:
    """The address of a pointer, in bytes: ``Int32`` for shared memory, ``Int64`` otherwise."""
    cls = Int32 if _pointer(ptr, "ptrtoint").address_space == "shared" else Int64
    return cls.wrap(Builder.current().emit("fly.ptrtoint", [ptr.ir_value()], [cls.ir]).results[0])


#: LLVM's number of an address space.
_NUMBERS = {"generic": 0, "global": 1, "shared": 3, "constant": 4, "register": 5}


def to_llvm_ptr(ptr: Pointer, address_space: int | None = None) -> Value:
    """The IR value of a pointer, for calls of intrinsics; its LLVM address space can be checked.

    Raises:
        TraceError: The pointer is a buffer descriptor, or of another address space.
    """
    own = _NUMBERS.get(_pointer(ptr, "to_llvm_ptr").address_space)
    if own is None or (address_space is not None and address_space != own):
        raise TraceError(
            f"to_llvm_ptr of {ptr}" + ("" if address_space is None else f" as address space {address_space}"),
            Builder.current().location(),
            "a buffer descriptor is no pointer: pass its base" if own is None else f"it is in address space {own}",
        )
    return ptr.ir_value()


def ptr_load(ptr: Pointer, type: Any = None, count: int = 1) -> Any:
    """One element at a pointer, or a vector of ``count``, read as ``type``."""
    return _pointer(ptr, "ptr_load").load(type, count)


def ptr_store(value: Any, ptr: Pointer) -> None:
    """Writes a number or vector at a pointer."""
    _pointer(ptr, "ptr_store").store(value)


def make_ptr(result_type: PointerType, args: Any = (), *, dict_attrs: Any = None) -> Pointer:
    """A new allocation or descriptor.

    Args:
        result_type: ``register`` allocates ``allocSize`` elements, ``shared`` ``allocBytes`` bytes at ``allocAlign``;
            ``buffer_desc`` takes (global pointer, stride, num_records in bytes, flags) as arguments.
        args: Operands of a buffer descriptor.
        dict_attrs: The attributes named above.
    """
    from .. import layout as L

    b, attrs = Builder.current(), dict(dict_attrs or {})
    space, elem = result_type.ir.space, result_type.ir.elem
    if space == "register" and isinstance(attrs.get("allocSize"), int):
        made = b.get_iter(b.alloca(elem, L.Layout(attrs["allocSize"], 1)))
    elif space == "shared" and isinstance(attrs.get("allocBytes"), int):
        made = b.shared(elem, attrs["allocBytes"], attrs.get("allocAlign", result_type.ir.align))
    elif space == "buffer_desc" and len(args) == 4:
        base, stride, records, flags = args
        value = Int64(records).ir_value()
        made = b.make_buffer(base.ir_value(), value, int(flags), int(stride))
    else:
        raise TraceError(
            f"make_ptr({result_type}, {args}, {attrs})",
            b.location(),
            "give allocSize for registers, allocBytes for shared memory, or (pointer, stride, num_records, flags) "
            "for a buffer descriptor",
        )
    return Pointer(made, result_type.dtype)


def shared_memory(dtype: type[Numeric], count: int, align: int = 16) -> Pointer:
    """A new LDS allocation of ``count`` elements, aligned to ``align`` bytes; sub-byte elements are packed.

    Raises:
        TraceError: The kernel's allocations exceed the LDS of the target.
    """
    from .shared import reserve

    elem_ir(dtype)
    size = -(-dtype.width * count // 8)
    reserve(size, align, f"shared_memory({dtype}, {count})")
    return Pointer(Builder.current().shared(elem_ir(dtype), size, align), dtype)


def get_dyn_shared(dtype: type[Numeric] | None = None) -> Pointer:
    """The LDS given at launch, aligned to 1024 bytes; every request gives the same memory."""
    kind = Int8 if dtype is None else dtype
    return Pointer(Builder.current().dyn_shared(elem_ir(kind)), kind)


def assume(x: Any, divisibility: int) -> Any:
    """The number, known to be a multiple of ``divisibility``; a wrong promise gives wrong results."""
    number = as_numeric(x)
    v = number._v
    if not isinstance(v, Value):
        if int(v) % divisibility:
            raise TraceError(f"assume: {v} is no multiple of {divisibility}", fix="correct the promise")
        return x
    b = Builder.current()
    made = b.emit("fly.assume", [v], [v.type], {"divisibility": divisibility}).results[0]
    from math import lcm

    made.divisibility, made.range = lcm(v.divisibility, divisibility), v.range
    return type(number).wrap(made)
