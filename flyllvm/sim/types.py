"""The types of LLVM IR and their size in memory under the AMDGPU data layout.

Types are interned: equal types are the same object, so ``is`` compares them.

Source: LLVM LangRef (type system, data layout); the ``amdgcn`` data layout string.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import SimError


class Type:
    """Base of all types; ``str`` prints it as LLVM does."""

    __slots__ = ("text",)
    text: str

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"


class IntType(Type):
    """An integer of ``bits`` bits."""

    __slots__ = ("bits",)

    def __init__(self, bits: int) -> None:
        self.text, self.bits = f"i{bits}", bits


class FloatType(Type):
    """A floating-point format, by its LLVM name."""

    __slots__ = ("bits",)

    def __init__(self, name: str, bits: int) -> None:
        self.text, self.bits = name, bits


class PtrType(Type):
    """An opaque pointer into address space ``space``."""

    __slots__ = ("space",)

    def __init__(self, space: int) -> None:
        self.text, self.space = ("ptr" if space == 0 else f"ptr addrspace({space})"), space


class VecType(Type):
    """A vector of ``count`` elements."""

    __slots__ = ("count", "elem")

    def __init__(self, count: int, elem: Type) -> None:
        self.text, self.count, self.elem = f"<{count} x {elem}>", count, elem


class ArrayType(Type):
    """An array of ``count`` elements."""

    __slots__ = ("count", "elem")

    def __init__(self, count: int, elem: Type) -> None:
        self.text, self.count, self.elem = f"[{count} x {elem}]", count, elem


class StructType(Type):
    """A struct; a named one gets its ``elems`` when its definition is read (``None`` while opaque)."""

    __slots__ = ("elems", "packed")

    def __init__(self, elems: tuple[Type, ...] | None, packed: bool = False, name: str | None = None) -> None:
        self.elems, self.packed = elems, packed
        if name is not None:
            self.text = name
        else:
            inner = ", ".join(map(str, elems or ()))
            self.text = ("<{%s}>" if packed else "{%s}") % (f" {inner} " if inner else "")


class OtherType(Type):
    """A type without values in memory: void, label, metadata, token, or a function type."""

    __slots__ = ()

    def __init__(self, text: str) -> None:
        self.text = text


VOID = OtherType("void")
LABEL = OtherType("label")
METADATA = OtherType("metadata")
TOKEN = OtherType("token")
HALF = FloatType("half", 16)
BFLOAT = FloatType("bfloat", 16)
FLOAT = FloatType("float", 32)
DOUBLE = FloatType("double", 64)
FP128 = FloatType("fp128", 128)

FLOATS: dict[str, FloatType] = {t.text: t for t in (HALF, BFLOAT, FLOAT, DOUBLE, FP128)}

_interned: dict[tuple[Any, ...], Type] = {}


def int_type(bits: int) -> IntType:
    """The integer type of that width in bits."""
    key = ("i", bits)
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = IntType(bits)
    return found  # type: ignore[return-value]


def ptr_type(space: int) -> PtrType:
    """The pointer type of that address space."""
    key = ("p", space)
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = PtrType(space)
    return found  # type: ignore[return-value]


def vec_type(count: int, elem: Type) -> VecType:
    """The vector type of ``count`` times ``elem``."""
    key = ("v", count, id(elem))
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = VecType(count, elem)
    return found  # type: ignore[return-value]


def array_type(count: int, elem: Type) -> ArrayType:
    """The array type of ``count`` times ``elem``."""
    key = ("a", count, id(elem))
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = ArrayType(count, elem)
    return found  # type: ignore[return-value]


def struct_type(elems: tuple[Type, ...], packed: bool = False) -> StructType:
    """The literal struct type of these elements."""
    key = ("s", packed, *map(id, elems))
    found = _interned.get(key)
    if found is None:
        found = _interned[key] = StructType(elems, packed)
    return found  # type: ignore[return-value]


I1 = int_type(1)
I8 = int_type(8)
I16 = int_type(16)
I32 = int_type(32)
I64 = int_type(64)

# Bits of a pointer and bytes of its alignment, per address space (p7: 160 bits, p8: 128 bits, p9: 192 bits).
_POINTER_BITS = {2: 32, 3: 32, 5: 32, 6: 32, 7: 160, 8: 128, 9: 192}
_POINTER_ALIGN = {2: 4, 3: 4, 5: 4, 6: 4, 7: 32, 8: 16, 9: 32}
# Bits of the offset arithmetic of getelementptr.
_INDEX_BITS = {2: 32, 3: 32, 5: 32, 6: 32, 7: 32, 8: 48, 9: 32}
_VECTOR_ALIGN = {16: 2, 24: 4, 32: 4, 48: 8, 96: 16, 192: 32, 256: 32, 512: 64, 1024: 128}


def pointer_bits(space: int) -> int:
    """Width of a pointer in bits."""
    return _POINTER_BITS.get(space, 64)


def index_bits(space: int) -> int:
    """Width of ``getelementptr`` arithmetic in bits."""
    return _INDEX_BITS.get(space, 64)


def bit_size(t: Type) -> int:
    """Size of a first-class value in bits, without padding."""
    if isinstance(t, (IntType, FloatType)):
        return t.bits
    if isinstance(t, PtrType):
        return pointer_bits(t.space)
    if isinstance(t, VecType):
        return t.count * bit_size(t.elem)
    return 8 * alloc_size(t)


def store_size(t: Type) -> int:
    """Bytes that a store of this type writes."""
    if isinstance(t, (ArrayType, StructType)):
        return alloc_size(t)
    return (bit_size(t) + 7) // 8


def abi_align(t: Type) -> int:
    """Natural alignment in bytes."""
    if isinstance(t, IntType):
        size = (t.bits + 7) // 8
        return min(8, 1 << (size - 1).bit_length())
    if isinstance(t, FloatType):
        return t.bits // 8
    if isinstance(t, PtrType):
        return _POINTER_ALIGN.get(t.space, 8)
    if isinstance(t, VecType):
        bits = bit_size(t)
        return _VECTOR_ALIGN.get(bits, max(1, 1 << ((bits + 7) // 8 - 1).bit_length()))
    if isinstance(t, ArrayType):
        return abi_align(t.elem)
    if isinstance(t, StructType):
        return 1 if t.packed else max((abi_align(e) for e in t.elems or ()), default=1)
    return 1


def alloc_size(t: Type) -> int:
    """Bytes between two elements of an array of this type."""
    if isinstance(t, ArrayType):
        return t.count * alloc_size(t.elem)
    if isinstance(t, StructType):
        offsets = struct_offsets(t)
        return offsets[-1]
    align = abi_align(t)
    return -(-store_size(t) // align) * align


def struct_offsets(t: StructType) -> list[int]:
    """Byte offset of each element, then the size of the whole struct."""
    offsets, end = [], 0
    for elem in t.elems or ():
        if not t.packed:
            align = abi_align(elem)
            end = -(-end // align) * align
        offsets.append(end)
        end += alloc_size(elem)
    align = abi_align(t)
    offsets.append(-(-end // align) * align)
    return offsets


_INT_DTYPES = ((8, np.dtype(np.uint8)), (16, np.dtype(np.uint16)), (32, np.dtype(np.uint32)), (64, np.dtype(np.uint64)))
_FLOAT_DTYPES: dict[str, np.dtype[Any]] = {
    "half": np.dtype(np.float16),
    "bfloat": np.dtype(np.uint16),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
_BOOL = np.dtype(np.bool_)
_OBJECT = np.dtype(object)


def int_dtype(bits: int) -> np.dtype[Any]:
    """The NumPy dtype that holds an integer: bool, the smallest unsigned type, or Python ints above 64 bits."""
    if bits == 1:
        return _BOOL
    for width, dtype in _INT_DTYPES:
        if bits <= width:
            return dtype
    return _OBJECT


def dtype_of(t: Type) -> np.dtype[Any]:
    """The NumPy dtype that holds one element of a scalar or vector type.

    Raises:
        SimError: The type has no such dtype (aggregates, descriptors, fp128).
    """
    if isinstance(t, VecType):
        t = t.elem
    if isinstance(t, IntType):
        return int_dtype(t.bits)
    if isinstance(t, FloatType) and t.text in _FLOAT_DTYPES:
        return _FLOAT_DTYPES[t.text]
    if isinstance(t, PtrType) and t.space not in (7, 8, 9):
        return int_dtype(pointer_bits(t.space))
    raise SimError(f"no value of type {t} can be computed with", fix="use integers, floats, pointers, vectors of them")


def scalar_of(t: Type) -> Type:
    """The element type of a vector, or the type itself."""
    return t.elem if isinstance(t, VecType) else t


def same_shape(t: Type, elem: Type) -> Type:
    """``elem``, as a vector where ``t`` is a vector."""
    return vec_type(t.count, elem) if isinstance(t, VecType) else elem
