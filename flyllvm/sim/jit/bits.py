"""Reinterpretation of bits: ``bitcast`` and the memory image of values, part by part."""

from __future__ import annotations

from .. import types as ty
from ..values import members
from .parts import NotCovered, bits_of, part_types
from .text import Values


def integer_of(v: Values, t: str, a: str) -> str:
    """The bits of a part as an integer."""
    return v.cast("bitcast", t, a, f"i{bits_of(t)}")


def signed_literal(number: int, width: int) -> int:
    """A number as LLVM writes a constant of that width."""
    low = number & ((1 << width) - 1)
    return low - (1 << width) if low >> (width - 1) else low


def split(v: Values, t: str, a: str, pieces: list[str]) -> list[str]:
    """A part as narrower ones, the lowest bits first."""
    whole, width = integer_of(v, t, a), bits_of(t)
    out = []
    for i, piece in enumerate(pieces):
        bits = bits_of(piece)
        low = v.op("lshr", f"i{width}", whole, v.const(f"i{width}", i * bits)) if i else whole
        out.append(v.cast("bitcast", f"i{bits}", v.cast("trunc", f"i{width}", low, f"i{bits}"), piece))
    return out


def combine(v: Values, t: str, args: list[str], whole: str) -> str:
    """Parts of one type as a wider one, the first in the lowest bits."""
    width, bits = bits_of(whole), bits_of(t)
    total = ""
    for i, a in enumerate(args):
        wide = v.cast("zext", f"i{bits}", integer_of(v, t, a), f"i{width}")
        if i:
            wide = v.op("shl", f"i{width}", wide, v.const(f"i{width}", i * bits))
        total = v.op("or", f"i{width}", total, wide) if total else wide
    return v.cast("bitcast", f"i{width}", total, whole)


def ratio(source: str, target: str) -> int:
    """Parts of ``target`` in one of ``source`` (positive), or the other way round (negative); 1 for equal sizes.

    Zero where neither divides the other.
    """
    a, b = bits_of(source), bits_of(target)
    if a % b == 0:
        return a // b
    if b % a == 0:
        return -(b // a)
    return 0


def slice_bits(v: Values, source: str, first: int, args: list[str], start: int, target: str) -> str:
    """Bits from ``start`` on of a row of parts, of which ``args`` are those from number ``first`` on."""
    width, bits = bits_of(source), bits_of(target)
    total = ""
    for i, a in enumerate(args, first):
        wide = v.cast("zext", f"i{width}", integer_of(v, source, a), "i128")
        by = i * width - start
        if by:
            wide = v.op("shl" if by > 0 else "lshr", "i128", wide, v.const("i128", abs(by)))
        total = v.op("or", "i128", total, wide) if total else wide
    return v.cast("bitcast", f"i{bits}", v.cast("trunc", "i128", total, f"i{bits}"), target)


class Field:
    """Where a part is in memory.

    Units: ``offset`` and ``size`` in bytes; ``shift`` in bits, for elements that are no whole bytes.
    """

    __slots__ = ("offset", "shift", "size", "type")

    def __init__(self, offset: int, size: int, type: str, shift: int = 0) -> None:
        self.offset, self.size, self.type, self.shift = offset, size, type, shift

    @property
    def plain(self) -> bool:
        """Whether the part fills its bytes."""
        return self.shift == 0 and self.size * 8 == bits_of(self.type)


def fields_of(t: ty.Type, offset: int = 0) -> list[Field]:
    """The parts of a type as they are in memory."""
    if isinstance(t, ty.StructType):
        pairs = zip(ty.struct_offsets(t), t.elems or (), strict=False)
        return [f for at, elem in pairs for f in fields_of(elem, offset + at)]
    if isinstance(t, ty.ArrayType):
        step = ty.alloc_size(t.elem)
        return [f for i in range(t.count) for f in fields_of(t.elem, offset + i * step)]
    if members(t) is not None:
        raise NotCovered(f"memory access of type {t}")
    types = part_types(t)
    bits = bits_of(types[0])
    if bits in (8, 16, 32, 64):
        return [Field(offset + i * bits // 8, bits // 8, p) for i, p in enumerate(types)]
    size = ty.store_size(t)
    if size > 8:
        raise NotCovered(f"memory access of type {t}")
    return [Field(offset, size, p, i * bits) for i, p in enumerate(types)]
