"""Shared memory (LDS): typed storage, a bump allocator, and the check against the target's limit."""

from __future__ import annotations

from ..errors import TraceError
from ..ir.builder import Builder
from .composite import AlignType, ArrayType, Composite, Struct, Union, align_of, bytes_of
from .numeric import Int8, NumericMeta
from .pointer import Pointer, no_elements_in_turn, recast_iter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Attribute of a kernel: bytes of dynamic LDS its allocators need.
DYNAMIC = "dynamic_lds_bytes"


def _up(n: int, align: int) -> int:
    return -(-n // align) * align


def static_bytes() -> int:
    """Bytes of static LDS that the kernel under construction has allocated."""
    end = 0
    for op in Builder.current().kernel.walk():
        if op.name == "fly.make_ptr" and "allocBytes" in op.attrs:
            end = _up(end, op.attrs["allocAlign"]) + op.attrs["allocBytes"]
    return end


def reserve(size: int, align: int, what: str, dynamic: bool = False) -> None:
    """Checks that one more allocation of ``size`` bytes fits the LDS of the target.

    Raises:
        TraceError: It does not, or the size or alignment is none.
    """
    b = Builder.current()
    if type(size) is not int or size < 1 or type(align) is not int or align < 1 or align & (align - 1):
        raise TraceError(
            f"{what}: {size} bytes aligned to {align}", b.location(), "use a positive size and a power of two"
        )
    fixed, moving = static_bytes(), int(b.kernel.attrs.get(DYNAMIC, 0))
    total = fixed + size + moving if not dynamic else _up(fixed, align) + max(moving, size)
    if total > b.target.lds_bytes:
        raise TraceError(
            f"{what} needs {size} bytes of LDS beside the {total - size} in use: {total} of {b.target.lds_bytes}",
            b.location(),
            f"{b.target.processor} has {b.target.lds_bytes} bytes for a workgroup; use smaller tiles or fewer stages",
        )


class Storage:
    """Memory seen as a type: ``storage.field`` of a struct or union, ``peek()``, ``poke(value)``.

    An array is used through ``ptr``, ``view(layout)`` and ``[i]``.
    """

    __slots__ = ("_kind", "_parts", "_ptr")

    def __init__(self, kind: Any, ptr: Pointer | None, parts: dict[str, Storage] | None = None) -> None:
        self._kind = kind.inner if isinstance(kind, AlignType) else kind
        self._ptr = ptr
        self._parts = parts

    def __class_getitem__(cls, kind: Any) -> Any:
        """``fx.Storage[T](ptr)``: a view on an 8-bit pointer."""
        return lambda ptr: cls(kind, ptr)

    @property
    def ptr(self) -> Pointer:
        """The pointer, of the element type for numbers and arrays and of bytes for structs and unions.

        Raises:
            TraceError: The fields were allocated apart and have no common base.
        """
        if self._ptr is None:
            raise TraceError(
                f"{self._kind.__name__} has no base pointer: each of its fields is an allocation of its own",
                Builder.current().location(),
                "use the pointers of its fields, or SharedAllocator(static=False)",
            )
        kind = self._kind
        dtype = kind.dtype if isinstance(kind, ArrayType) else kind if isinstance(kind, NumericMeta) else Int8
        return recast_iter(dtype, self._ptr)

    def view(self, layout: Any) -> Any:
        """A tensor over the memory."""
        return self.ptr.view(layout)

    def __getattr__(self, name: str) -> Storage:
        if name.startswith("__"):
            raise AttributeError(name)  # a protocol of Python's that it does not follow
        kind = self._kind
        fields = kind.fields if isinstance(kind, type) and issubclass(kind, Composite) else {}
        if name not in fields:
            raise TraceError(
                f"{kind} has no field {name!r}", fix=f"fields: {', '.join(fields)}" if fields else "use peek and poke"
            )
        if self._parts is not None:
            return self._parts[name]
        return Storage(fields[name], recast_iter(Int8, self.ptr) + kind.offsets[name])

    __iter__ = no_elements_in_turn

    def __getitem__(self, index: Any) -> Any:
        return self.ptr[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.ptr[index] = value

    def peek(self) -> Any:
        """The value in memory: a number, the elements of an array as a vector, or a struct."""
        kind = self._kind
        if isinstance(kind, ArrayType):
            return self.ptr.load(count=kind.count)
        if isinstance(kind, NumericMeta):
            return self.ptr.load()
        if issubclass(kind, Union):
            raise TraceError(f"peek of the union {kind.__name__}", fix="peek one of its variants: storage.name.peek()")
        return kind(**{name: getattr(self, name).peek() for name in kind.fields})

    def poke(self, value: Any) -> None:
        """Writes a number, a vector, or a struct."""
        kind = self._kind
        if isinstance(kind, (ArrayType, NumericMeta)):
            self.ptr.store(value)
        elif issubclass(kind, Union) or not isinstance(value, Struct) or list(value.fields) != list(kind.fields):
            raise TraceError(
                f"poke of {value!r} into {kind.__name__}", fix="poke a struct of the same fields, or one field"
            )
        else:
            for name in kind.fields:
                getattr(self, name).poke(getattr(value, name))

    def __repr__(self) -> str:
        return f"Storage[{self._kind}]"


class Arena:
    """Bump allocation of offsets in bytes, for any memory.

    Args:
        base_alignment: Alignment of what offsets count from, in bytes.
    """

    def __init__(self, base_alignment: int = 16) -> None:
        if type(base_alignment) is not int or base_alignment < 1 or base_alignment & (base_alignment - 1):
            raise TraceError(f"base_alignment={base_alignment}", fix="use a power of two, in bytes")
        self.base_alignment = base_alignment
        self.allocated_bytes = 0

    def offset_of(self, size: int, align: int) -> int:
        """The offset of ``size`` more bytes at a multiple of ``align``."""
        if type(size) is not int or size < 1:
            raise TraceError(f"an allocation of {size} bytes", fix="allocate at least one byte")
        if type(align) is not int or align < 1 or align & (align - 1):
            raise TraceError(f"an allocation aligned to {align} bytes", fix="use a power of two")
        offset = _up(self.allocated_bytes, align)
        self.allocated_bytes = offset + size
        return offset

    def measure(self, what: Any, alignment: int | None) -> tuple[int, int]:
        """(size, alignment) in bytes of a type or of a number of bytes."""
        if type(what) is int:
            return what, self.base_alignment if alignment is None else alignment
        return bytes_of(what), max(align_of(what), alignment or 1)

    def allocate(self, what: Any, alignment: int | None = None) -> Any:
        """The offset in bytes of a type, or of a number of bytes."""
        return self.offset_of(*self.measure(what, alignment))


class SharedAllocator(Arena):
    """Allocates LDS inside a kernel.

    Args:
        base_alignment: Alignment of raw bytes, and of the dynamic base, in bytes.
        static: Whether every number, array and union becomes an LDS variable of its own.  Otherwise all of it lies in
            the LDS given at launch, at compile-time offsets; ``allocated_bytes`` says where the last allocation ends.
            All dynamic allocators of a kernel share that LDS, and no two allocations overlap.

    Raises:
        TraceError: No kernel is being traced.
    """

    def __init__(self, base_alignment: int = 16, *, static: bool = True) -> None:
        super().__init__(base_alignment)
        Builder.current()
        self.static = static

    @property
    def base(self) -> Pointer:
        """The first byte of the dynamic LDS.

        Raises:
            TraceError: The allocator is static: there is no common base.
        """
        if self.static:
            raise TraceError(
                "a static SharedAllocator has no base pointer",
                Builder.current().location(),
                "every allocation is a variable of its own; use SharedAllocator(static=False)",
            )
        return Pointer(Builder.current().dyn_shared(Int8.ir), Int8)

    def allocate(self, what: Any, alignment: int | None = None) -> Any:
        """Storage of a type, or a byte pointer to a number of bytes.

        Raises:
            TraceError: The LDS of the target is too small.
        """
        size, align = self.measure(what, alignment)
        if self.static:
            self.offset_of(size, align)
            return self._static(what, size, align)
        b = Builder.current()
        # What another dynamic allocator of this kernel handed out is taken.
        self.allocated_bytes = max(self.allocated_bytes, int(b.kernel.attrs.get(DYNAMIC, 0)))
        offset = self.offset_of(size, align)
        reserve(self.allocated_bytes, self.base_alignment, f"SharedAllocator.allocate({what})", dynamic=True)
        b.kernel.attrs[DYNAMIC] = max(int(b.kernel.attrs.get(DYNAMIC, 0)), self.allocated_bytes)
        ptr = self.base + offset
        return ptr if type(what) is int else Storage(what, ptr)

    def _static(self, what: Any, size: int, align: int) -> Any:
        kind = what.inner if isinstance(what, AlignType) else what
        if isinstance(kind, type) and issubclass(kind, Struct) and kind.fields:
            parts: dict[str, Storage] = {}
            for name, field in kind.fields.items():
                # The first field carries the alignment of the whole.
                need = max(align_of(field), align if not parts else 1)
                parts[name] = self._static(field, bytes_of(field), need)
            return Storage(kind, None, parts)
        reserve(size, align, f"SharedAllocator.allocate({what})")
        ptr = Pointer(Builder.current().shared(Int8.ir, size, align), Int8)
        return ptr if type(what) is int else Storage(what, ptr)
