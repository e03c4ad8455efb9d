"""Types of the fly IR, printed in the fly dialect's spelling.

Scalars and vectors are MLIR's (``i32``, ``f16``, ``vector<4xf32>``); pointers, memrefs, layouts and
atoms are the fly dialect's (``!fly.memref<f16, shared, (4,8):(1,4)>``).  Integers carry no sign:
operations do.  Dynamic leaves inside a type are the symbolic ``layout.Dyn`` (``?``).
"""

from __future__ import annotations

from ..errors import VerifyError
from . import lltype as ll

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..layout import ComposedLayout, CoordSwizzle, Layout, Swizzle, Tile
    from .protocols import CopyOp, MmaOp


class Type:
    """Base of all types; equal when class and printed text are equal."""

    __slots__ = ("text",)

    text: str

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self) is type(other) and self.text == other.text)

    def __hash__(self) -> int:
        return hash(self.text)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<{self.text}>"


class ScalarType(Type):
    """A number of fixed width in bits."""

    __slots__ = ("bits", "storage")

    bits: int
    storage: ll.LLType


class IntType(ScalarType):
    """A signless integer ``i<bits>``; ``i1`` is the result of comparisons."""

    __slots__ = ()

    def __init__(self, bits: int) -> None:
        self.bits = bits
        self.text = f"i{bits}"
        self.storage = ll.int_(bits)


class FloatType(ScalarType):
    """A float; the small ones (8, 6, 4 bits) have no LLVM type and are stored as ``iN``."""

    __slots__ = ("is_small",)

    def __init__(self, name: str, bits: int, storage: ll.LLType) -> None:
        self.bits = bits
        self.text = name
        self.storage = storage
        self.is_small = storage.kind == "int"


I1, I4, I8, I16, I32, I64, I128 = (IntType(n) for n in (1, 4, 8, 16, 32, 64, 128))
F16 = FloatType("f16", 16, ll.F16)
BF16 = FloatType("bf16", 16, ll.BF16)
F32 = FloatType("f32", 32, ll.F32)
F64 = FloatType("f64", 64, ll.F64)
F8E4M3FN = FloatType("f8E4M3FN", 8, ll.I8)
F8E5M2 = FloatType("f8E5M2", 8, ll.I8)
F8E4M3FNUZ = FloatType("f8E4M3FNUZ", 8, ll.I8)
F8E5M2FNUZ = FloatType("f8E5M2FNUZ", 8, ll.I8)
F8E8M0FNU = FloatType("f8E8M0FNU", 8, ll.I8)
F6E2M3FN = FloatType("f6E2M3FN", 6, ll.int_(6))
F6E3M2FN = FloatType("f6E3M2FN", 6, ll.int_(6))
F4E2M1FN = FloatType("f4E2M1FN", 4, ll.int_(4))

SCALARS: dict[str, ScalarType] = {
    t.text: t
    for t in (
        I1, I4, I8, I16, I32, I64, I128, F16, BF16, F32, F64, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ,
        F8E8M0FNU, F6E2M3FN, F6E3M2FN, F4E2M1FN,
    )
}  # fmt: skip
# xf32 is f32 data that the matrix unit rounds to 10 mantissa bits while reading: an atom's element
# name, not a storage type, so it is not a scalar of the IR.


def int_type(bits: int) -> IntType:
    """The integer type of a width in bits."""
    found = SCALARS.get(f"i{bits}")
    return found if isinstance(found, IntType) else IntType(bits)


class VectorType(Type):
    """``vector<NxT>``: N elements in registers, element 0 in the low bits."""

    __slots__ = ("count", "elem")

    def __init__(self, count: int, elem: ScalarType) -> None:
        if count < 1:
            raise VerifyError(f"vector of {count} elements of {elem}", fix="a vector has at least one element")
        self.count = count
        self.elem = elem
        self.text = f"vector<{count}x{elem.text}>"


#: Address spaces by name, with the LLVM number; a buffer descriptor is a struct, not an LLVM space.
SPACES = {"generic": 0, "global": 1, "shared": 3, "constant": 4, "register": 5, "buffer_desc": 8}
_SPACE_TEXT = {"buffer_desc": "#fly_rocdl.buffer_desc"}


def check_space(space: str) -> str:
    """Returns the space, or raises if there is none of that name."""
    if space not in SPACES:
        raise VerifyError(f"unknown address space {space!r}", fix=f"use one of: {', '.join(SPACES)}")
    return space


_DERIVED: dict[tuple[object, ...], PtrType] = {}
_DERIVED_LIMIT = 4096


class PtrType(Type):
    """A typed pointer.

    Units:
        ``align`` is in bytes: the value of the pointer before its swizzle is a multiple of it.
    """

    __slots__ = ("align", "elem", "space", "swizzle")

    def __init__(self, elem: ScalarType, space: str, align: int | None = None, swizzle: Swizzle | None = None) -> None:
        self.elem = elem
        self.space = check_space(space)
        self.align = natural_align(elem) if align is None else align
        self.swizzle = swizzle
        self.text = f"!fly.ptr<{elem.text}, {_tail(self)}>"

    def with_(self, **changes: Any) -> PtrType:
        """The type with some fields replaced."""
        key = (self.text, *changes.items())
        found = _DERIVED.get(key)
        if found is None:
            fields: dict[str, Any] = {"elem": self.elem, "space": self.space, "align": self.align}
            fields["swizzle"] = self.swizzle
            fields.update(changes)
            if len(_DERIVED) >= _DERIVED_LIMIT:
                _DERIVED.clear()
            found = _DERIVED[key] = PtrType(**fields)
        return found


def natural_align(elem: ScalarType) -> int:
    """Bytes an element is aligned to when nothing else is known (at least one)."""
    return max(1, elem.bits // 8)


def _tail(p: PtrType) -> str:
    parts = [_SPACE_TEXT.get(p.space, p.space)]
    if p.align != natural_align(p.elem):
        parts.append(f"align<{p.align}>")
    if p.swizzle is not None:
        parts.append(str(p.swizzle))
    return ", ".join(parts)


class MemRefType(Type):
    """A pointer with a layout: ``!fly.memref<f16, shared, align<16>, S<3,3,3>, (4,8):(1,4)>``."""

    __slots__ = ("layout", "ptr")

    def __init__(self, ptr: PtrType, layout: Layout | ComposedLayout) -> None:
        self.ptr = ptr
        self.layout = layout
        self.text = f"!fly.memref<{ptr.elem.text}, {_tail(ptr)}, {layout}>"

    @property
    def elem(self) -> ScalarType:
        """Element type."""
        return self.ptr.elem

    @property
    def space(self) -> str:
        """Address space name."""
        return self.ptr.space


class CoordTensorType(Type):
    """A coordinate tensor: a base coordinate with a layout whose strides are basis leaves."""

    __slots__ = ("base", "layout")

    def __init__(self, base: object, layout: Layout | ComposedLayout) -> None:
        self.base = base
        self.layout = layout
        self.text = f"!fly.coord_tensor<{_render(base)}, {layout}>"


class IntTupleType(Type):
    """An int tuple; static leaves are part of the type."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.value = value
        self.text = f"!fly.int_tuple<{_render(value)}>"


class LayoutType(Type):
    """A layout, composed layout, tile or swizzle as a value; static parts are part of the type."""

    __slots__ = ("value",)

    def __init__(self, value: Layout | ComposedLayout | Tile | Swizzle | CoordSwizzle) -> None:
        self.value = value
        name = {"Layout": "layout", "ComposedLayout": "composed_layout", "Tile": "tile"}.get(
            type(value).__name__, "swizzle"
        )
        self.text = f"!fly.{name}<{value}>"


class CopyAtomType(Type):
    """``!fly.copy_atom<OP, valBits>``: a copy operation seen as values of ``val_bits`` bits."""

    __slots__ = ("op", "val_bits")

    def __init__(self, op: CopyOp, val_bits: int) -> None:
        self.op = op
        self.val_bits = val_bits
        self.text = f"!fly.copy_atom<{op}, {val_bits}>"


class MmaAtomType(Type):
    """``!fly.mma_atom<OP>``."""

    __slots__ = ("op",)

    def __init__(self, op: MmaOp) -> None:
        self.op = op
        self.text = f"!fly.mma_atom<{op}>"


class TiledCopyType(Type):
    """A copy atom laid over a tile: ``layout_tv`` maps (thread, value) to an index in ``tile``."""

    __slots__ = ("atom", "layout_tv", "tile")

    def __init__(self, atom: CopyAtomType, layout_tv: Layout, tile: Tile) -> None:
        self.atom, self.layout_tv, self.tile = atom, layout_tv, tile
        self.text = f"!fly.tiled_copy<{atom}, {layout_tv}, {tile}>"


class TiledMmaType(Type):
    """An mma atom repeated over (M,N,K) by ``atom_layout``, with a permutation tile."""

    __slots__ = ("atom", "atom_layout", "permutation")

    def __init__(self, atom: MmaAtomType, atom_layout: Layout, permutation: Tile) -> None:
        self.atom, self.atom_layout, self.permutation = atom, atom_layout, permutation
        self.text = f"!fly.tiled_mma<{atom}, {atom_layout}, {permutation}>"


def _render(value: object) -> str:
    if isinstance(value, tuple):
        return "(" + ",".join(map(_render, value)) + ")"
    return "*" if value is None else str(value)


def scalar_of(t: Type) -> ScalarType:
    """Element type of a vector, or the scalar itself.

    Raises:
        VerifyError: The type is neither.
    """
    if isinstance(t, VectorType):
        return t.elem
    if isinstance(t, ScalarType):
        return t
    raise VerifyError(f"expected a number or a vector, got {t}", fix="load the value first")


def count_of(t: Type) -> int:
    """Number of elements of a vector, 1 for a scalar."""
    return t.count if isinstance(t, VectorType) else 1


def like(t: Type, elem: ScalarType) -> Type:
    """The type ``t`` with its element type replaced."""
    return VectorType(t.count, elem) if isinstance(t, VectorType) else elem


_VECTORS: dict[tuple[int, str], VectorType] = {}


def vector_type(count: int, elem: ScalarType) -> VectorType:
    """``VectorType(count, elem)``, the same object each time."""
    key = (count, elem.text)
    found = _VECTORS.get(key)
    return _VECTORS.setdefault(key, VectorType(count, elem)) if found is None else found


def value_type(count: int, elem: ScalarType) -> Type:
    """The SSA type of ``count`` register elements: the scalar itself for one."""
    return elem if count == 1 else vector_type(count, elem)


def storage(t: Type) -> ll.LLType:
    """The LLVM type a scalar or vector is held in."""
    if isinstance(t, VectorType):
        return ll.vec(t.count, t.elem.storage)
    if isinstance(t, ScalarType):
        return t.storage
    raise VerifyError(f"{t} has no single LLVM type", fix="only numbers and vectors are held in registers")
