"""Values of the machine: NumPy arrays with broadcasting lane axes.

A value of all lanes of a chunk has the axes ``(workgroup, wave, lane)`` and, for vectors, ``element``.  An axis along
which the value is the same has length 1: kernel arguments are ``(1, 1, 1)``, workgroup ids ``(G, 1, 1)``.  NumPy's
broadcasting then keeps uniform arithmetic cheap without any analysis.

* ``i1`` is bool, other integers the smallest unsigned dtype, above 64 bits Python ints in object arrays;
* half, float, double are NumPy floats; bfloat is its bit pattern in uint16;
* pointers are unsigned integers, 32 or 64 bits;
* buffer descriptors, fat pointers, structs and arrays are tuples of values.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import SimError
from . import types as ty
from .ir import Const, Operand
from .types import Type

# NumPy's types know neither shapes nor which reductions give scalars: naming the role is what helps a reader.
Array: TypeAlias = Any
Value: TypeAlias = Any  # an Array, or a tuple of Values


def members(t: Type) -> list[Type] | None:
    """Types of the parts of a value that is a tuple; ``None`` for values that are arrays."""
    if isinstance(t, ty.StructType):
        return list(t.elems or ())
    if isinstance(t, ty.ArrayType):
        return [t.elem] * t.count
    if isinstance(t, ty.PtrType) and t.space in (7, 8):
        # base, stride, num_records, flags; a fat pointer adds its offset
        parts: list[Type] = [ty.I64, ty.I16, ty.I64, ty.I32]
        return [*parts, ty.I32] if t.space == 7 else parts
    return None


def zero(t: Type) -> Value:
    """The zero of a type, uniform over all lanes."""
    parts = members(t)
    if parts is not None:
        return tuple(zero(p) for p in parts)
    if isinstance(t, ty.VecType):
        return np.zeros((1, 1, 1, t.count), ty.dtype_of(t))
    return np.zeros((1, 1, 1), ty.dtype_of(t))


def scalar(t: Type, value: int) -> Array:
    """A uniform scalar from an int, or from the bit pattern of a float."""
    dtype = ty.dtype_of(t)
    if dtype.kind == "f":
        return np.full((1, 1, 1), value, f"u{dtype.itemsize}").view(dtype)
    out = np.empty((1, 1, 1), dtype)
    out[0, 0, 0] = value
    return out


def constant(operand: Operand, addresses: dict[str, int]) -> Value:
    """The value of a constant.

    Args:
        operand: The constant.
        addresses: Address of each global variable in its address space.

    Raises:
        SimError: A constant expression that the simulator cannot evaluate.
    """
    if not isinstance(operand, Const):
        raise SimError(f"{operand!r} is not a constant")
    t, kind = operand.type, operand.kind
    if kind in ("zero", "poison", "undef", "null", "none"):
        # Null is not zero in the local and private address spaces of AMDGPU.
        if kind == "null" and isinstance(t, ty.PtrType) and t.space in (3, 5):
            return scalar(t, 0xFFFFFFFF)
        return zero(t)
    if kind in ("int", "fp"):
        if isinstance(t, ty.VecType):
            return np.repeat(scalar(t.elem, operand.value)[..., None], t.count, axis=-1)
        return scalar(t, operand.value)
    if kind == "global":
        return scalar(t, _address(operand.value, addresses))
    if kind == "expr":
        return scalar(t, const_int(operand, addresses))
    if kind == "agg":
        parts = [constant(e, addresses) for e in operand.value]
        if isinstance(t, ty.VecType):
            return np.stack(parts, axis=-1)
        return tuple(parts)
    if kind == "bytes":
        return tuple(scalar(ty.I8, b) for b in operand.value)
    raise SimError(f"no value for the constant {operand!r}")


def _address(name: str, addresses: dict[str, int]) -> int:
    if name not in addresses:
        raise SimError(f"@{name} has no address here", fix="only global variables and kernels' LDS can be used as data")
    return addresses[name]


def const_int(operand: Operand, addresses: dict[str, int]) -> int:
    """The integer or address that a scalar constant stands for."""
    if isinstance(operand, Const):
        if operand.kind == "int":
            return int(operand.value)
        if operand.kind in ("zero", "null", "undef", "poison"):
            return int(constant(operand, addresses).flat[0])
        if operand.kind == "global":
            return _address(operand.value, addresses)
        if operand.kind == "expr":
            return _expression(operand, addresses)
    raise SimError(f"{operand!r} is no integer constant")


def signed(value: int, bits: int) -> int:
    """The two's complement reading of ``value``."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def _expression(operand: Const, addresses: dict[str, int]) -> int:
    expr = operand.value
    first = const_int(expr.operands[0], addresses)
    width = (1 << ty.bit_size(operand.type)) - 1
    if expr.op == "getelementptr":
        indices = [signed(const_int(o, addresses), ty.bit_size(o.type)) for o in expr.operands[1:]]
        return (first + gep_constant(expr.base_type, indices)) & width
    if expr.op == "addrspacecast":
        source, target = expr.operands[0].type, operand.type
        return cast_address(first, getattr(source, "space", 0), getattr(target, "space", 0))
    if expr.op in ("bitcast", "ptrtoint", "inttoptr", "trunc", "ptrtoaddr"):
        return first & width
    second = const_int(expr.operands[1], addresses)
    table = {"add": first + second, "sub": first - second, "mul": first * second, "xor": first ^ second}
    if expr.op == "shl":
        return (first << second) & width
    return table[expr.op] & width


# High 32 bits of flat addresses that stand for LDS and private memory.
LDS_APERTURE = 0x0001_0000
PRIVATE_APERTURE = 0x0002_0000


def cast_address(address: int, source: int, target: int) -> int:
    """An address after ``addrspacecast``."""
    apertures = {3: LDS_APERTURE, 5: PRIVATE_APERTURE}
    if target == source or {source, target} <= {0, 1, 4}:
        return address
    if target == 0 and source in apertures:
        return 0 if address == 0xFFFFFFFF else (apertures[source] << 32) | address
    if source == 0 and target in apertures:
        return 0xFFFFFFFF if address == 0 else address & 0xFFFFFFFF
    if target in (1, 4, 6) or source == 6:
        return address & ((1 << ty.pointer_bits(target)) - 1)
    raise SimError(f"addrspacecast from address space {source} to {target} has no meaning")


def gep_constant(base: Type | None, indices: list[int]) -> int:
    """Byte offset of a ``getelementptr`` with constant indices."""
    if base is None:
        raise SimError("getelementptr without a base type")
    offset, t = indices[0] * ty.alloc_size(base), base
    for index in indices[1:]:
        step, t = gep_step(t, index)
        offset += step
    return offset


def gep_step(t: Type, index: int) -> tuple[int, Type]:
    """Byte offset and type of the member ``index`` of ``t``."""
    if isinstance(t, ty.StructType):
        return ty.struct_offsets(t)[index], (t.elems or ())[index]
    if isinstance(t, (ty.ArrayType, ty.VecType)):
        return index * ty.alloc_size(t.elem), t.elem
    raise SimError(f"getelementptr into {t}, which has no members")


def merge(mask: Array, new: Value, old: Value) -> Value:
    """``new`` where the lane mask is set, ``old`` elsewhere; ``old`` is ``None`` for a value not yet defined."""
    if old is None or new is old:
        return new
    if isinstance(new, tuple):
        return tuple(merge(mask, n, o) for n, o in zip(new, old, strict=True))
    return np.where(mask[..., None] if new.ndim == 4 else mask, new, old)


def to_signed(a: Array) -> Array:
    """The same bits, read as a signed integer (bool and object arrays are returned as they are)."""
    if a.dtype.kind != "u":
        return a
    return a.view(f"i{a.dtype.itemsize}")


def contiguous_view(a: Array, dtype: npt.DTypeLike) -> Array:
    """The bytes of the last axis as another dtype."""
    return np.ascontiguousarray(a).view(dtype)


def choose_lanes(a: Array, index: Array) -> Array:
    """Value of lane ``index`` of the same wave.

    Shape: ``a`` is ``(G, W, S)`` plus elements, ``index`` ``(G, W, n)``; the result ``(G, W, n)`` plus elements.
    """
    if a.ndim == 4:
        index = index[..., None]
    result: Array = np.take_along_axis(a, index, axis=2)
    return result
