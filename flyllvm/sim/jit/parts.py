"""Values of the kernel as *parts*: scalars, one for each element of a vector and each member of an aggregate.

A part is the same for the whole workgroup (uniform: a scalar of the host), or has a value per lane, kept in the
register file as an array over lanes.  Taking vectors apart and putting them together only renames parts.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import types as ty
from ..ir import Operand
from ..values import constant, members


class NotCovered(Exception):
    """The second engine cannot do something; ``what`` names it."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what


class Part:
    """One scalar of a value.

    Attributes:
        type: LLVM type on the host; bfloat is ``i16``.
        uniform: The same for all lanes of a workgroup.
        literal: Text of a constant.
        node: Index of the node that defines it, -1 for what is known on entry.
        step: Number of the step in the node that defines it.
        readers: ``(node, step)`` of every use.
        slot: Byte offset in the register file of the lanes' values.
        name: Name of the scalar on the host, inside its node or (known on entry) everywhere.
        cell: Name of the variable that holds a uniform value across nodes.
        base: Name of a constant with the lanes' values.
    """

    __slots__ = ("base", "cell", "literal", "name", "node", "readers", "slot", "step", "type", "uniform")

    def __init__(self, type: str, uniform: bool, node: int, step: int, literal: str | None = None) -> None:
        self.type, self.uniform, self.node, self.step, self.literal = type, uniform, node, step, literal
        self.readers: set[tuple[int, int]] = set()
        self.slot = -1
        self.name = ""
        self.cell = ""
        self.base = ""

    @property
    def leaves_step(self) -> bool:
        """Whether something outside of the defining step reads it."""
        return any(reader != (self.node, self.step) for reader in self.readers)

    @property
    def leaves_node(self) -> bool:
        """Whether another node reads it."""
        return any(node != self.node for node, _ in self.readers)


def scalar_type(t: ty.Type) -> str:
    """The host type of a scalar."""
    if isinstance(t, ty.IntType):
        if t.bits > 64:
            raise NotCovered(f"integers of {t.bits} bits")
        return f"i{t.bits}"
    if t in (ty.HALF, ty.FLOAT, ty.DOUBLE):
        return str(t)
    if t is ty.BFLOAT:
        return "i16"
    if isinstance(t, ty.PtrType) and members(t) is None and t.space != 9:
        return f"i{ty.pointer_bits(t.space)}"
    raise NotCovered(f"values of type {t}")


def part_types(t: ty.Type) -> list[str]:
    """Host types of the parts of a value."""
    inner = members(t)
    if inner is not None:
        return [p for member in inner for p in part_types(member)]
    if isinstance(t, ty.VecType):
        return [scalar_type(t.elem)] * t.count
    if isinstance(t, ty.IntType) and is_wide(t) and t.bits % 32 == 0:
        word = 64 if t.bits % 64 == 0 else 32
        return [f"i{word}"] * (t.bits // word)
    return [scalar_type(t)]


def is_wide(t: ty.Type) -> bool:
    """Whether values of a type are integers of several words, the lowest first."""
    return isinstance(t, ty.IntType) and t.bits > 64


def bits_of(t: str) -> int:
    """Width of a host type in bits."""
    return {"half": 16, "float": 32, "double": 64}.get(t) or int(t[1:])


def bytes_of(t: str) -> int:
    """Bytes of a host type in the register file."""
    return max(1, 1 << (bits_of(t) - 1).bit_length()) // 8 if bits_of(t) > 8 else 1


def literal_of(t: str, bits: int) -> str:
    """The text of a constant with that bit pattern."""
    if t == "i1":
        return "true" if bits & 1 else "false"
    if t == "half":
        return f"0xH{bits:04X}"
    if t == "double":
        return f"0x{bits:016X}"
    if t == "float":
        return f"0x{_double_bits(bits):016X}"
    width = int(t[1:])
    bits &= (1 << width) - 1
    return str(bits - (1 << width) if bits >> (width - 1) else bits)


def _double_bits(bits: int) -> int:
    """Bits of the double that a float constant is written as."""
    if bits & 0x7F800000 == 0x7F800000 and bits & 0x7FFFFF:
        return (bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29
    single = np.array(bits, np.uint32).view(np.float32)
    return int(np.float64(single).view(np.uint64))


def float_literal(t: str, number: float) -> str:
    """The text of a float constant."""
    dtype = {"half": np.float16, "float": np.float32, "double": np.float64}[t]
    return literal_of(t, int(np.array(number, dtype).view(f"u{bits_of(t) // 8}")))


def constant_parts(operand: Operand, addresses: dict[str, int]) -> list[Part]:
    """The parts of a constant."""
    types = part_types(operand.type)
    flat = _words(operand.type, constant(operand, addresses))
    return [Part(t, True, -1, -1, literal_of(t, bits)) for t, bits in zip(types, flat, strict=True)]


def _words(t: ty.Type, value: Any) -> list[int]:
    """Bit patterns of the parts of a value of a type."""
    if isinstance(value, tuple):
        return [bits for m, v in zip(members(t) or (), value, strict=True) for bits in _words(m, v)]
    if not is_wide(t):
        return _flatten(value)
    types, whole = part_types(t), int(value.ravel()[0])
    width = bits_of(types[0])
    return [whole >> (i * width) & ((1 << width) - 1) for i in range(len(types))]


def _flatten(value: Any) -> list[int]:
    if isinstance(value, tuple):
        return [bits for member in value for bits in _flatten(member)]
    raw = value.ravel()
    if raw.dtype.kind == "f":
        raw = raw.view(f"u{raw.dtype.itemsize}")
    return [int(x) for x in raw]


def value_bits(value: Any) -> list[int]:
    """Bit patterns of the parts of an argument's value."""
    return _flatten(value)
