"""Kernel arguments: arrays become device buffers, scalars become uniform values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import LaunchError
from . import convert, types as ty
from .ir import Function, Param
from .layout_lds import ConstantData
from .memory import GUARD_BYTES, HEAP_BASE, Region, Space
from .values import Array, Value, scalar

_ALIGN_BYTES = 256


class _Block:
    """Caller's memory: one array, or several that overlap."""

    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end
        self.arrays: list[tuple[int, Array, bool]] = []  # argument, array, whether it is the argument itself
        self.region: Region


class Buffers:
    """The arrays of a launch, copied into one heap with guard gaps, and back after a run without faults.

    Those that structs point to are among them.  Arrays that overlap in the caller's memory overlap in the heap.
    """

    def __init__(
        self, kernel: Function, args: Sequence[Any], constants: ConstantData, addresses: dict[str, int]
    ) -> None:
        arrays = [(i, a, True) for i, a in enumerate(args) if isinstance(a, np.ndarray)]
        for i, (param, arg) in enumerate(zip(kernel.params, args, strict=False)):
            arrays += [(i, a, False) for a in _pointed_to(by_value(param), arg)]
        self.blocks = _merge([(i, _memory(kernel, i, a), whole) for i, a, whole in arrays])
        self.address_of: dict[int, int] = {}
        regions: list[Region] = []
        end = constants.end + GUARD_BYTES
        for block in self.blocks:
            block.region = Region(_names(kernel, block), end, block.end - block.start)
            block.region.readonly = not all(a.flags.writeable for _, a, _ in block.arrays)
            regions.append(block.region)
            for index, array, whole in block.arrays:
                if whole:
                    self.address_of[index] = end + array.ctypes.data - block.start
            end += -(-(block.region.size + GUARD_BYTES) // _ALIGN_BYTES) * _ALIGN_BYTES
        self.tail = end  # parameter structures and the dispatch packet
        regions.extend(region for region, _ in constants.items)
        self.space = Space("global", HEAP_BASE, regions, end - HEAP_BASE + _TAIL_BYTES, 1)
        for region, variable in constants.items:
            at = region.start - HEAP_BASE
            self.space.data[at : at + region.size] = constants.image(variable, addresses)
        for block in self.blocks:
            for _, array, _ in block.arrays:
                self._bytes(block, array)[...] = _raw(array)

    def address_inside(self, array: Array) -> int:
        """Address of an array that a struct points to."""
        start = int(array.ctypes.data)
        block = next(b for b in self.blocks if b.start <= start < b.end or (b.start == b.end == start))
        return block.region.start + start - block.start

    def _bytes(self, block: _Block, array: Array) -> Array:
        start = block.region.start - HEAP_BASE + array.ctypes.data - block.start
        return self.space.data[start : start + array.nbytes]

    def bytes_of(self, index: int) -> Array:
        """What is in the buffer of an array argument now."""
        start = self.address_of[index]
        block = next(b for b in self.blocks if b.region.start <= start < b.region.start + b.region.size)
        return self.space.data[start - HEAP_BASE : block.region.start + block.region.size - HEAP_BASE]

    def broken_noalias(self, kernel: Function) -> list[str]:
        """What is wrong with arrays that overlap and were written, although parameters say ``noalias``."""
        said = []
        for block in self.blocks:
            numbers = dict.fromkeys(index for index, _, whole in block.arrays if whole)
            marked = [f"%{kernel.params[i].name}" for i in numbers if "noalias" in kernel.params[i].attrs]
            if block.region.written and len(numbers) > 1 and marked:
                said.append(
                    f"{block.region.name} overlap and are written, although {', '.join(marked)} promises noalias: LLVM "
                    "may move accesses past each other"
                )
        return said

    def copy_back(self) -> None:
        """Writes the results of the run into the caller's arrays."""
        for block in self.blocks:
            if block.region.written:
                for _, array, _ in block.arrays:
                    _raw(array)[...] = self._bytes(block, array)


_TAIL_BYTES = 8192


def _memory(kernel: Function, index: int, array: Array) -> Array:
    if not (array.flags.c_contiguous or array.flags.f_contiguous):
        raise LaunchError(
            f"argument {index} of @{kernel.name} is an array with gaps (shape {array.shape}, strides {array.strides})",
            fix="pass a contiguous array, for example numpy.ascontiguousarray(a), and the strides as arguments",
        )
    if not array.dtype.isnative:
        raise LaunchError(
            f"argument {index} of @{kernel.name} is an array of {array.dtype.str}: its bytes are swapped",
            fix="convert it: a.astype(a.dtype.newbyteorder('='))",
        )
    if isinstance(array, np.ma.MaskedArray):
        raise LaunchError(
            f"argument {index} of @{kernel.name} has a mask", fix="pass array.filled(value) or array.data"
        )
    if array.dtype == object:
        raise LaunchError(f"argument {index} of @{kernel.name} is an array of Python objects", fix="pass numbers")
    return array


def _raw(array: Array) -> Array:
    """The bytes of a contiguous array, in memory order."""
    flat = array.ravel(order="K") if array.flags.c_contiguous else array.T.ravel()
    return flat.view(np.uint8)


def by_value(param: Param) -> ty.Type:
    """Type of what the argument segment holds for a parameter."""
    byref = param.attrs.get("byref")
    return byref if isinstance(byref, ty.Type) else param.type


def _members(t: ty.Type) -> list[ty.Type]:
    """Types of the members of an aggregate; none for other types."""
    if isinstance(t, ty.StructType):
        return list(t.elems or ())
    return [t.elem] * t.count if isinstance(t, ty.ArrayType) else []


def _pointed_to(t: ty.Type, arg: Any) -> list[Array]:
    """The arrays that pointers inside of a struct stand for."""
    found: list[Array] = []
    if isinstance(arg, (tuple, list)):
        for part, value in zip(_members(t), arg, strict=False):
            if isinstance(part, ty.PtrType) and isinstance(value, np.ndarray):
                found.append(value)
            found += _pointed_to(part, value)
    return found


def _merge(arrays: list[tuple[int, Array, bool]]) -> list[_Block]:
    blocks: list[_Block] = []
    for index, array, whole in sorted(arrays, key=lambda item: item[1].ctypes.data):
        start, end = array.ctypes.data, array.ctypes.data + array.nbytes
        if blocks and start < blocks[-1].end:
            blocks[-1].end = max(blocks[-1].end, end)
        else:
            blocks.append(_Block(start, end))
        blocks[-1].arrays.append((index, array, whole))
    return blocks


def _names(kernel: Function, block: _Block) -> str:
    names = (f"{'' if whole else 'array in '}argument {i} %{kernel.params[i].name}" for i, _, whole in block.arrays)
    return " / ".join(dict.fromkeys(names))


def check_count(kernel: Function, args: Sequence[Any]) -> None:
    """Refuses a wrong number of arguments.

    Raises:
        LaunchError: With the kernel's signature.
    """
    if len(args) != len(kernel.params):
        signature = ", ".join(f"{p.type} %{p.name}" for p in kernel.params)
        raise LaunchError(
            f"@{kernel.name} takes {len(kernel.params)} arguments, got {len(args)}", fix=f"pass: {signature}"
        )


def value_of(kernel: Function, index: int, arg: Any, buffers: Buffers) -> Value:
    """The machine's value of one argument.

    Raises:
        LaunchError: The argument does not fit the parameter.
    """
    param = kernel.params[index]
    t = param.type
    where = f"argument {index} of @{kernel.name} ({t} %{param.name})"
    if isinstance(param.attrs.get("byref"), ty.Type):
        return _aggregate(kernel, index, by_value(param), arg, buffers)
    if isinstance(t, ty.PtrType):
        return _pointer(where, t, index, arg, buffers)
    if isinstance(arg, np.ndarray) and arg.ndim and not isinstance(t, ty.VecType):
        raise LaunchError(f"{where} is no pointer, got an array", fix="pass a number")
    if isinstance(t, ty.IntType):
        return _integer(where, t, arg)
    if isinstance(t, ty.FloatType):
        return _float(where, t, arg)
    if isinstance(t, (ty.StructType, ty.ArrayType)):
        return _aggregate(kernel, index, t, arg, buffers)
    if isinstance(t, ty.VecType):
        return _vector(where, t, arg)
    raise LaunchError(f"{where}: the simulator cannot pass a value of this type")


def _pointer(where: str, t: ty.PtrType, index: int, arg: Any, buffers: Buffers) -> Array:
    if arg is None:
        return scalar(ty.I64, 0)
    if isinstance(arg, np.ndarray):
        if t.space not in (0, 1, 4):
            raise LaunchError(f"{where} does not point to global memory")
        return scalar(ty.I64, buffers.address_of[index])
    raise LaunchError(f"{where}: got {type(arg).__name__}", fix="pass a NumPy array, or None for a null pointer")


def _integer(where: str, t: ty.IntType, arg: Any) -> Array:
    if isinstance(arg, (bool, np.bool_)):
        arg = int(arg)
    if isinstance(arg, np.ndarray) and arg.ndim == 0:
        arg = arg[()]
    if not isinstance(arg, (int, np.integer)):
        raise LaunchError(f"{where}: got {type(arg).__name__} {arg!r}", fix="pass an int")
    number = int(arg)
    if not -(1 << (t.bits - 1)) <= number < (1 << t.bits):
        raise LaunchError(f"{where}: {number} does not fit", fix=f"pass a value of {t.bits} bits")
    return scalar(t, number & ((1 << t.bits) - 1))


def _float(where: str, t: ty.FloatType, arg: Any) -> Array:
    if isinstance(arg, np.ndarray) and arg.ndim == 0:
        arg = arg[()]
    try:
        number = float(arg)
    except (TypeError, ValueError):
        raise LaunchError(f"{where}: got {type(arg).__name__} {arg!r}", fix="pass a number") from None
    return convert.from_float64(t, np.full((1, 1, 1), number, np.float64))


def _vector(where: str, t: ty.VecType, arg: Any) -> Array:
    array = np.asarray(arg)
    if array.shape != (t.count,):
        raise LaunchError(f"{where}: got shape {array.shape}", fix=f"pass {t.count} numbers")
    convert = _integer if isinstance(t.elem, ty.IntType) else _float
    return np.stack([convert(where, t.elem, x) for x in array], axis=-1)  # type: ignore[arg-type]


def _aggregate(kernel: Function, index: int, t: ty.Type, arg: Any, buffers: Buffers) -> Value:
    param = kernel.params[index]
    where = f"argument {index} of @{kernel.name} ({t} %{param.name})"
    parts = _members(t)
    if not isinstance(arg, (tuple, list, np.ndarray)) or len(arg) != len(parts):
        raise LaunchError(f"{where}: got {arg!r}", fix=f"pass a tuple of {len(parts)} values")
    out: list[Any] = []
    for part, value in zip(parts, arg, strict=True):
        if isinstance(part, ty.IntType):
            out.append(_integer(where, part, value))
        elif isinstance(part, ty.FloatType):
            out.append(_float(where, part, value))
        elif isinstance(part, (ty.StructType, ty.ArrayType)):
            out.append(_aggregate(kernel, index, part, value, buffers))
        elif isinstance(part, ty.PtrType) and value is None:
            out.append(scalar(ty.I64, 0))
        elif isinstance(part, ty.PtrType) and isinstance(value, np.ndarray):
            out.append(scalar(ty.I64, buffers.address_inside(value)))
        else:
            raise LaunchError(
                f"{where}: {value!r} is no value of its member of type {part}",
                fix="pass numbers, or arrays and None for pointers",
            )
    return tuple(out)


def kernarg(kernel: Function, values: Sequence[Value]) -> tuple[Array, list[int]]:
    """The packed argument segment and the offset of each argument in bytes.

    Source: LLVM AMDGPUUsage, kernel argument segment: natural alignment, in order.
    """
    types = [by_value(p) for p in kernel.params]
    offsets, end = [], 0
    for param, t in zip(kernel.params, types, strict=True):
        align = max(ty.abi_align(t), int(param.attrs.get("align", 1)) if "byref" in param.attrs else 1)
        end = -(-end // align) * align
        offsets.append(end)
        end += ty.alloc_size(t)
    out = np.zeros(max(end, 1), np.uint8)
    for offset, t, value in zip(offsets, types, values, strict=True):
        _pack(out, offset, t, value)
    return out, offsets


def _pack(out: Array, at: int, t: ty.Type, value: Value) -> None:
    if isinstance(t, ty.StructType):
        for offset, part, item in zip(ty.struct_offsets(t), t.elems or (), value, strict=False):
            _pack(out, at + offset, part, item)
    elif isinstance(t, ty.ArrayType):
        for i, item in enumerate(value):
            _pack(out, at + i * ty.alloc_size(t.elem), t.elem, item)
    else:
        raw = convert.to_bytes(t, value).ravel()
        out[at : at + raw.size] = raw
