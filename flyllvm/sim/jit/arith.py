"""One element of the arithmetic instructions, as text of the host.  The meaning is that of `sim.alu`.

A function takes the `Values` that write it and the operands' names, and returns the names of the results.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import types as ty
from .parts import NotCovered, float_literal, scalar_type
from .text import Values

Fn = Callable[..., list[str]]

_INT = frozenset("add sub mul and or xor".split())
_FLOAT = frozenset("fadd fsub fmul fdiv frem".split())


def binary(op: str, t: ty.Type, flush: bool) -> Fn:
    """A binary instruction on elements of type ``t``; ``flush`` where the kernel flushes denormals of f32."""
    if isinstance(t, ty.IntType):
        return _integer(op, t.bits)
    if op not in _FLOAT:
        raise NotCovered(op)
    return in_format(t, lambda v, elem, a, b: v.op(op, elem, a, b), flush)


def _integer(op: str, bits: int) -> Fn:
    elem = f"i{bits}"
    if op in _INT:
        return lambda v, a, b: [v.op(op, elem, a, b)]
    if bits == 1:
        return _one_bit(op)
    if op in ("shl", "lshr"):
        return lambda v, a, b: [_shift(v, op, bits, a, b)]
    if op == "ashr":
        top = bits - 1
        return lambda v, a, b: [v.op("ashr", elem, a, v.intrinsic("llvm.umin", elem, b, v.const(elem, top)))]
    if op in ("udiv", "urem", "sdiv", "srem"):
        return lambda v, a, b: [_divide(v, op, bits, a, b)]
    raise NotCovered(op)


def _one_bit(op: str) -> Fn:
    """Shifts, where one by the width is poison, and divisions, where one by zero is a fault, on ``i1``."""
    if op in ("shl", "lshr", "ashr"):
        return lambda v, a, b: [a]

    def divide(v: Values, a: str, b: str) -> list[str]:
        v.fault_if(v.op("xor", "i1", b, v.const("i1", "true")))
        return [a if op in ("udiv", "sdiv") else v.const("i1", "false")]

    return divide


def _shift(v: Values, op: str, bits: int, a: str, b: str) -> str:
    elem = f"i{bits}"
    shifted = v.op(op, elem, a, b)
    inside = v.op("icmp ult", elem, b, v.const(elem, bits))
    return v.select(inside, elem, shifted, v.const(elem, 0))


def _divide(v: Values, op: str, bits: int, a: str, b: str) -> str:
    """Running lanes must not divide by zero or overflow; in the others it must not trap."""
    elem = f"i{bits}"
    bad = v.op("icmp eq", elem, b, v.const(elem, 0))
    if op in ("sdiv", "srem"):
        least = v.op("icmp eq", elem, a, v.const(elem, -(1 << (bits - 1))))
        minus = v.op("icmp eq", elem, b, v.const(elem, -1))
        bad = v.op("or", "i1", bad, v.op("and", "i1", least, minus))
    v.fault_if(bad)
    return v.op(op, elem, a, v.select(bad, elem, v.const(elem, 1), b))


# ---- floats


def in_format(t: ty.Type, fn: Callable[..., str], flush: bool, result: bool = True) -> Fn:
    """``fn(v, elem, *args)`` on floats of type ``t``; bfloat computes in float, ``flush`` is about denormals of f32."""
    if t is ty.BFLOAT:
        return lambda v, *args: [
            encode_bf16(v, fn(v, "float", *(decode_bf16(v, a) for a in args)))
            if result
            else fn(v, "float", *(decode_bf16(v, a) for a in args))
        ]
    elem = scalar_type(t)
    if t is ty.FLOAT and flush:

        def flushed(v: Values, *args: str) -> list[str]:
            out = fn(v, elem, *(flush_denormal(v, a) for a in args))
            return [flush_denormal(v, out) if result else out]

        return flushed
    return lambda v, *args: [fn(v, elem, *args)]


def flush_denormal(v: Values, a: str) -> str:
    """A zero of the same sign for a denormal float."""
    size = v.intrinsic("llvm.fabs", "float", a)
    small = v.op("fcmp olt", "float", size, v.const("float", float_literal("float", 2.0**-126)))
    zero = v.intrinsic("llvm.copysign", "float", v.const("float", float_literal("float", 0.0)), a)
    return v.select(small, "float", zero, a)


def negate(t: ty.Type) -> Fn:
    """``fneg``."""
    if t is ty.BFLOAT:
        return lambda v, a: [v.op("xor", "i16", a, v.const("i16", -0x8000))]
    elem = scalar_type(t)
    return lambda v, a: [v.op("fneg", elem, a)]


def integer_compare(pred: str, t: ty.Type) -> Fn:
    """``icmp``."""
    elem = scalar_type(t)
    return lambda v, a, b: [v.op(f"icmp {pred}", elem, a, b)]


def float_compare(pred: str, t: ty.Type, flush: bool) -> Fn:
    """``fcmp``."""
    return in_format(t, lambda v, elem, a, b: v.op(f"fcmp {pred}", elem, a, b), flush, result=False)


def decode_bf16(v: Values, a: str) -> str:
    """A bfloat's bits as float."""
    wide = v.op("shl", "i32", v.cast("zext", "i16", a, "i32"), v.const("i32", 16))
    return v.cast("bitcast", "i32", wide, "float")


def encode_bf16(v: Values, a: str) -> str:
    """A float rounded to bfloat bits, as `numerics.encode_bf16`."""
    bits = v.cast("bitcast", "float", a, "i32")
    return _encode_bits(v, bits)


def _encode_bits(v: Values, bits: str) -> str:
    high = v.op("lshr", "i32", bits, v.const("i32", 16))
    odd = v.op("and", "i32", high, v.const("i32", 1))
    added = v.op("add", "i32", bits, v.op("add", "i32", odd, v.const("i32", 0x7FFF)))
    rounded = v.op("lshr", "i32", added, v.const("i32", 16))
    size = v.op("and", "i32", bits, v.const("i32", 0x7FFFFFFF))
    nan = v.op("icmp ugt", "i32", size, v.const("i32", 0x7F800000))
    quiet = v.op("or", "i32", high, v.const("i32", 0x40))
    return v.cast("trunc", "i32", v.select(nan, "i32", quiet, rounded), "i16")


def round_to_odd(v: Values, a: str) -> str:
    """A double as bits of a float that lost no information about ties: `numerics.encode_bf16_from_f64`."""
    single = v.cast("fptrunc", "double", a, "float")
    bits = v.cast("bitcast", "float", single, "i32")
    back = v.cast("fpext", "float", single, "double")
    error = v.op("fsub", "double", a, back)
    inexact = v.op("fcmp one", "double", error, v.const("double", float_literal("double", 0.0)))
    size = v.op("and", "i32", bits, v.const("i32", 0x7FFFFFFF))
    finite = v.op("icmp ult", "i32", size, v.const("i32", 0x7F800000))
    even = v.op("icmp eq", "i32", v.op("and", "i32", bits, v.const("i32", 1)), v.const("i32", 0))
    away = v.op("and", "i1", v.op("and", "i1", inexact, finite), even)
    error_sign = v.op("lshr", "i64", v.cast("bitcast", "double", error, "i64"), v.const("i64", 63))
    sign = v.op("lshr", "i32", bits, v.const("i32", 31))
    toward = v.op("icmp ne", "i32", v.cast("trunc", "i64", error_sign, "i32"), sign)
    less = v.op("sub", "i32", bits, v.const("i32", 1))
    more = v.op("or", "i32", bits, v.const("i32", 1))
    return v.select(away, "i32", v.select(toward, "i32", less, more), bits)


def to_double(v: Values, t: ty.Type, a: str) -> str:
    """Any float as double, exactly."""
    if t is ty.BFLOAT:
        return v.cast("fpext", "float", decode_bf16(v, a), "double")
    return v.cast("fpext", scalar_type(t), a, "double")


def from_double(v: Values, t: ty.Type, a: str) -> str:
    """A double rounded once to the float type ``t``."""
    if t is ty.DOUBLE:
        return a
    if t is ty.FLOAT:
        return v.cast("fptrunc", "double", a, "float")
    odd = round_to_odd(v, a)
    if t is ty.BFLOAT:
        return _encode_bits(v, odd)
    return v.cast("fptrunc", "float", v.cast("bitcast", "i32", odd, "float"), "half")


# ---- conversions


def convert(op: str, source: ty.Type, target: ty.Type, flush: bool) -> Fn:
    """A conversion between scalar types of different size or kind."""
    if op in ("trunc", "zext", "sext"):
        return _resize(op, scalar_type(source), scalar_type(target))
    if op in ("fptrunc", "fpext"):
        return _float_to_float(source, target, flush)
    if op in ("sitofp", "uitofp"):
        return _int_to_float(op, source, target)
    if op in ("fptosi", "fptoui"):
        return _float_to_int(op == "fptosi", source, target)
    raise NotCovered(f"{op} from {source} to {target}")


def _resize(op: str, source: str, target: str) -> Fn:
    return lambda v, a: [v.cast(op, source, a, target)]


def resize_pointer(source: str, target: str) -> Fn:
    """``ptrtoint`` and ``inttoptr``: zero-extends or truncates."""
    op = "zext" if int(target[1:]) > int(source[1:]) else "trunc"
    return _resize(op, source, target)


def _float_to_float(source: ty.Type, target: ty.Type, flush: bool) -> Fn:
    flush = flush and ty.BFLOAT not in (source, target)

    def run(v: Values, a: str) -> list[str]:
        if flush and source is ty.FLOAT:
            a = flush_denormal(v, a)
        if source is ty.BFLOAT:
            out = v.cast("fpext", "float", decode_bf16(v, a), scalar_type(target))
        elif target is ty.BFLOAT and source is not ty.DOUBLE:
            out = encode_bf16(v, v.cast("fpext", scalar_type(source), a, "float"))
        elif target is ty.BFLOAT or (source is ty.DOUBLE and target is ty.HALF):
            out = from_double(v, target, a)
        else:
            wider = ty.bit_size(target) > ty.bit_size(source)
            out = v.cast("fpext" if wider else "fptrunc", scalar_type(source), a, scalar_type(target))
        return [flush_denormal(v, out) if flush and target is ty.FLOAT else out]

    return run


def _int_to_float(op: str, source: ty.Type, target: ty.Type) -> Fn:
    elem = scalar_type(source)
    if target in (ty.FLOAT, ty.DOUBLE):
        return lambda v, a: [v.cast(op, elem, a, str(target))]
    if target is ty.BFLOAT and ty.bit_size(source) > 53:
        is_signed = op == "sitofp"
        return lambda v, a: [from_double(v, target, v.cast(op, elem, _odd(v, elem, is_signed, a), "double"))]
    return lambda v, a: [from_double(v, target, v.cast(op, elem, a, "double"))]


def _odd(v: Values, elem: str, is_signed: bool, a: str) -> str:
    """A long integer with its lowest bits rounded to odd where a double does not hold it, so that ties stay ties."""
    kept = v.op("and", elem, a, v.const(elem, -(1 << 11)))
    rest = v.op("and", elem, a, v.const(elem, (1 << 11) - 1))
    some = v.cast("zext", "i1", v.op("icmp ne", elem, rest, v.const(elem, 0)), elem)
    odd = v.op("or", elem, kept, v.op("shl", elem, some, v.const(elem, 11)))
    size = v.op("add", elem, a, v.const(elem, 1 << 53)) if is_signed else a
    long = v.op("icmp ugt", elem, size, v.const(elem, 1 << (54 if is_signed else 53)))
    return v.select(long, elem, odd, a)


def _float_to_int(is_signed: bool, source: ty.Type, target: ty.Type) -> Fn:
    """Truncation; out of range saturates and NaN gives 0, with the limits of `convert.float_to_int`."""
    from ..convert import float_to_int_range

    bits = ty.bit_size(target)
    if bits == 1:
        raise NotCovered("conversion of a float to i1")
    low, high = float_to_int_range(bits, is_signed)

    def run(v: Values, a: str) -> list[str]:
        wide = to_double(v, source, a)
        whole = v.intrinsic("llvm.trunc", "double", wide)
        least, most = (v.const("double", float_literal("double", x)) for x in (low, high))
        clipped = v.select(v.op("fcmp olt", "double", whole, least), "double", least, whole)
        over = v.op("fcmp ogt", "double", clipped, most)
        clipped = v.select(over, "double", most, clipped)
        number = v.op("fcmp ord", "double", wide, wide)
        clipped = v.select(number, "double", clipped, v.const("double", float_literal("double", 0.0)))
        out = v.cast("fptosi" if is_signed else "fptoui", "double", clipped, f"i{bits}")
        return [out if is_signed else v.select(over, f"i{bits}", v.const(f"i{bits}", -1), out)]

    return run
