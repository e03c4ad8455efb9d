"""Integer intrinsics: counting, reversing, funnel shifts, saturation, overflow, bit fields, dot products."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import alu, denormals, types as ty
from .ir import Inst
from .types import Type
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Fn = Callable[..., Any]


def bits_of(t: Type) -> int:
    """Width of the elements in bits."""
    return ty.bit_size(ty.scalar_of(t))


def _as_dtype(t: Type, a: Array) -> Array:
    return a.astype(ty.dtype_of(t))


def _wide(a: Array) -> Array:
    return a.astype(object) if a.dtype == object else a.astype(np.uint64)


def _ctpop(t: Type) -> Fn:
    if ty.dtype_of(t).kind == "O":
        return lambda a: np.array([int(x).bit_count() for x in a.flat], object).reshape(a.shape)
    return lambda a: _as_dtype(t, np.bitwise_count(a.astype(np.uint8) if a.dtype == bool else a))


def _bit_length(a: Array) -> Array:
    if a.dtype == object:
        return np.array([int(x).bit_length() for x in a.flat], object).reshape(a.shape)
    value, length = a.astype(np.uint64), np.zeros(a.shape, np.uint64)
    for shift in (32, 16, 8, 4, 2, 1):
        high = value >> np.uint64(shift)
        big = high != 0
        length += np.where(big, np.uint64(shift), np.uint64(0))
        value = np.where(big, high, value)
    return length + (value != 0).astype(np.uint64)


def _ctlz(t: Type) -> Fn:
    bits = bits_of(t)
    return lambda a: _as_dtype(t, bits - _bit_length(a).astype(object if a.dtype == object else np.int64))


def _cttz(t: Type) -> Fn:
    bits = bits_of(t)

    def count(a: Array) -> Array:
        wide = _wide(a)
        low = wide & (~wide + wide.dtype.type(1)) if wide.dtype != object else wide & -wide
        length = _bit_length(low).astype(object if a.dtype == object else np.int64)
        return _as_dtype(t, np.where(wide == 0, bits, length - 1))

    return count


def _bitreverse(t: Type) -> Fn:
    bits = bits_of(t)

    def reverse(a: Array) -> Array:
        wide = _wide(a)
        out = np.zeros_like(wide)
        one = 1 if wide.dtype == object else np.uint64(1)
        for _ in range(bits):
            out = (out << one) | (wide & one)
            wide = wide >> one
        return _as_dtype(t, out)

    return reverse


def _bswap(t: Type) -> Fn:
    if ty.dtype_of(t).kind != "O":
        return lambda a: a.byteswap()
    size = bits_of(t) // 8
    return lambda a: np.array(
        [int.from_bytes(int(x).to_bytes(size, "little"), "big") for x in a.flat], object
    ).reshape(a.shape)  # fmt: skip


def _funnel(left: bool) -> Callable[[Type], Fn]:
    def of(t: Type) -> Fn:
        bits = bits_of(t)

        def shift(high: Array, low: Array, amount: Array) -> Array:
            if high.dtype != object and bits > 32:
                high, low = high.astype(object), low.astype(object)
            wide = high.astype(object) if bits > 32 else high.astype(np.uint64)
            rest = low.astype(object) if bits > 32 else low.astype(np.uint64)
            by = (amount.astype(np.int64) % bits).astype(object if bits > 32 else np.uint64)
            both = (wide << (bits if bits > 32 else np.uint64(bits))) | rest
            if left:
                both = (both << by) >> (bits if bits > 32 else np.uint64(bits))
            else:
                both = both >> by
            mask = (1 << bits) - 1
            return _as_dtype(t, both & (mask if bits > 32 else np.uint64(mask)))

        return shift

    return of


def _pick(signed: bool, smaller: bool) -> Callable[[Type], Fn]:
    def of(t: Type) -> Fn:
        if not signed:
            return np.minimum if smaller else np.maximum
        bits, better = bits_of(t), np.less_equal if smaller else np.greater_equal
        return lambda a, b: np.where(better(alu.sign_extended(a, bits), alu.sign_extended(b, bits)), a, b)

    return of


def exact(operation: str, t: Type, signed: bool) -> Fn:
    """The result without wrapping, as Python ints or int64."""
    bits = bits_of(t)

    def compute(a: Array, b: Array) -> Array:
        x, y = (alu.sign_extended(v, bits) if signed else v for v in (a, b))
        dtype: Any = np.int64 if bits <= 31 or (operation != "mul" and bits <= 62) else object
        x, y = (v.astype(np.uint8).astype(dtype) if v.dtype == bool else v.astype(dtype) for v in (x, y))
        if operation == "add":
            return x + y
        return x - y if operation == "sub" else x * y

    return compute


def limits(bits: int, signed: bool) -> tuple[int, int]:
    """Smallest and largest value of an integer type."""
    return (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)


def _saturating(operation: str, signed: bool) -> Callable[[Type], Fn]:
    def of(t: Type) -> Fn:
        bits, compute = bits_of(t), exact(operation, t, signed)
        low, high = limits(bits, signed)

        def saturate(a: Array, b: Array) -> Array:
            result = np.clip(compute(a, b), low, high)
            return _as_dtype(t, result & ((1 << bits) - 1))

        return saturate

    return of


def _shl_sat(signed: bool) -> Callable[[Type], Fn]:
    def of(t: Type) -> Fn:
        bits = bits_of(t)
        low, high = limits(bits, signed)

        def saturate(a: Array, b: Array) -> Array:
            x = (alu.sign_extended(a, bits) if signed else a).astype(object)
            return _as_dtype(t, np.clip(x << b.astype(object), low, high) & ((1 << bits) - 1))

        return saturate

    return of


def _with_overflow(operation: str, signed: bool) -> Callable[[Type], Fn]:
    def of(t: Type) -> Fn:
        bits, compute = bits_of(t), exact(operation, t, signed)
        low, high = limits(bits, signed)

        def both(a: Array, b: Array) -> tuple[Array, Array]:
            result = compute(a, b)
            wrapped = _as_dtype(t, result & ((1 << bits) - 1))
            return wrapped, ((result < low) | (result > high)).astype(bool)

        return both

    return of


def _abs(t: Type) -> Fn:
    bits = bits_of(t)
    return lambda a: np.where(alu.sign_extended(a, bits) < 0, alu.integer_op("sub", bits)(np.zeros_like(a), a), a)


def _compare(signed: bool) -> Callable[[Compiler, Inst], list[Op]]:
    """``llvm.scmp`` / ``llvm.ucmp``: -1, 0 or 1."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])
        bits, out = bits_of(inst.operands[0].type), bits_of(inst.type)

        def run(r: list[Any], m: Machine) -> None:
            x, y = (alu.sign_extended(v, bits) if signed else v for v in (r[a], r[b]))
            r[d] = alu.from_signed((x > y).astype(np.int8) - (x < y).astype(np.int8), out)

        return [run]

    return builder


def _bit_field(signed: bool) -> Callable[[Type], Fn]:
    def of(t: Type) -> Fn:
        bits = bits_of(t)

        def extract(a: Array, offset: Array, width: Array) -> Array:
            at, count = offset & offset.dtype.type(bits - 1), width & width.dtype.type(bits - 1)
            low = a >> at.astype(a.dtype)
            count = count.astype(a.dtype)
            mask = (a.dtype.type(1) << count) - a.dtype.type(1)
            value = low & mask
            if signed:
                sign = np.where(count > 0, a.dtype.type(1) << (count - a.dtype.type(1)), a.dtype.type(0))
                value = (value ^ sign) - sign
            return np.where(count == 0, a.dtype.type(0), value)

        return extract

    return of


def _perm(t: Type) -> Fn:
    """``amdgcn.perm``: each byte of the selector picks a byte of the two sources, or a constant or sign.

    Source: CDNA3 ISA manual, V_PERM_B32.
    """

    def permute(high: Array, low: Array, selector: Array) -> Array:
        both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
        out = np.zeros(np.broadcast_shapes(both.shape, selector.shape), np.uint32)
        for byte in range(4):
            code = selector >> np.uint32(8 * byte) & np.uint32(0xFF)
            picked = both >> (np.minimum(code, 7).astype(np.uint64) * np.uint64(8)) & np.uint64(0xFF)
            sign = both >> (((code.astype(np.uint64) - np.uint64(8)) & np.uint64(3)) * np.uint64(16) + np.uint64(15))
            filled = np.where(sign & np.uint64(1), np.uint64(0xFF), np.uint64(0))
            value = np.where(code <= 7, picked, np.where(code <= 11, filled, np.where(code == 12, 0, 0xFF)))
            out |= value.astype(np.uint32) << np.uint32(8 * byte)
        return out

    return permute


def _align(bytes_: bool) -> Callable[[Type], Fn]:
    def of(t: Type) -> Fn:
        def shift(high: Array, low: Array, amount: Array) -> Array:
            by = (amount & amount.dtype.type(3)) * amount.dtype.type(8) if bytes_ else amount & amount.dtype.type(31)
            both = (high.astype(np.uint64) << np.uint64(32)) | low.astype(np.uint64)
            return (both >> by.astype(np.uint64)).astype(np.uint32)

        return shift

    return of


def _mul24(signed: bool, high: bool = False) -> Callable[[Type], Fn]:
    def of(t: Type) -> Fn:
        def low24(a: Array) -> Array:
            wide = a.astype(np.int64) & 0xFFFFFF
            return (wide ^ 0x800000) - 0x800000 if signed else wide

        def multiply(a: Array, b: Array) -> Array:
            product = low24(a) * low24(b)
            return ((product >> 32 if high else product) & 0xFFFFFFFF).astype(np.uint32)

        return multiply

    return of


def _reduce(name: str) -> Callable[[Compiler, Inst], list[Op]]:
    """``llvm.vector.reduce.*``, element by element from the first."""
    start = name in ("fadd", "fmul")
    fns: dict[str, Callable[[Type], Fn]] = {
        "add": lambda t: alu.binary_op("add", t), "mul": lambda t: alu.binary_op("mul", t),
        "and": lambda t: np.bitwise_and, "or": lambda t: np.bitwise_or, "xor": lambda t: np.bitwise_xor,
        "smax": _pick(True, False), "smin": _pick(True, True), "umax": _pick(False, False), "umin": _pick(False, True),
        "fadd": lambda t: alu.binary_op("fadd", t), "fmul": lambda t: alu.binary_op("fmul", t),
        "fmax": lambda t: alu.widened(t, np.fmax), "fmin": lambda t: alu.widened(t, np.fmin),
        "fmaximum": lambda t: alu.widened(t, np.maximum), "fminimum": lambda t: alu.widened(t, np.minimum),
    }  # fmt: skip

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, v = c.dest(inst), c.slot(inst.operands[-1])
        first = c.slot(inst.operands[0]) if start else None
        fn = denormals.flushed(c.kernel, inst.type, fns[name](inst.type))

        def run(r: list[Any], m: Machine) -> None:
            vector = r[v]
            total = r[first] if first is not None else vector[..., 0]
            for i in range(0 if first is not None else 1, vector.shape[-1]):
                total = fn(total, vector[..., i])
            r[d] = total

        return [run]

    return builder


FUNCTIONS: dict[str, tuple[Callable[[Type], Fn], int]] = {
    "ctpop": (_ctpop, 1), "ctlz": (_ctlz, 1), "cttz": (_cttz, 1), "bitreverse": (_bitreverse, 1),
    "bswap": (_bswap, 1), "abs": (_abs, 1), "fshl": (_funnel(True), 3), "fshr": (_funnel(False), 3),
    "smin": (_pick(True, True), 2), "smax": (_pick(True, False), 2),
    "umin": (_pick(False, True), 2), "umax": (_pick(False, False), 2),
    "sadd.sat": (_saturating("add", True), 2), "uadd.sat": (_saturating("add", False), 2),
    "ssub.sat": (_saturating("sub", True), 2), "usub.sat": (_saturating("sub", False), 2),
    "sshl.sat": (_shl_sat(True), 2), "ushl.sat": (_shl_sat(False), 2),
    **{f"{s}{op}.with.overflow": (_with_overflow(op, s == "s"), 2) for s in "su" for op in ("add", "sub", "mul")},
    "amdgcn.ubfe": (_bit_field(False), 3), "amdgcn.sbfe": (_bit_field(True), 3), "amdgcn.perm": (_perm, 3),
    "amdgcn.alignbit": (_align(False), 3), "amdgcn.alignbyte": (_align(True), 3),
    "amdgcn.mul.u24": (_mul24(False), 2), "amdgcn.mul.i24": (_mul24(True), 2),
    "amdgcn.mulhi.u24": (_mul24(False, True), 2), "amdgcn.mulhi.i24": (_mul24(True, True), 2),
}  # fmt: skip

TABLE: dict[str, Callable[[Compiler, Inst], list[Op]]] = {
    "scmp": _compare(True),
    "ucmp": _compare(False),
    **{
        f"vector.reduce.{name}": _reduce(name)
        for name in "add mul and or xor smax smin umax umin fadd fmul fmax fmin fmaximum fminimum".split()
    },
}
