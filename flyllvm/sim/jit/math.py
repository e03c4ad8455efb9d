"""One element of the intrinsics that compute each lane by itself, as `sim.mathfn` and `sim.bitfn` define them."""

from __future__ import annotations

from collections.abc import Callable

from .. import elementary, types as ty
from .arith import Fn, flush_denormal, from_double, in_format, to_double
from .parts import NotCovered, bits_of, float_literal, scalar_type
from .text import Values

FnOf = Callable[[ty.Type, bool], Fn]


def plain(name: str, flag: bool = False) -> FnOf:
    """An intrinsic of LLVM that means the same on the host; ``flag``: it has a last argument, false here."""
    extra = (("i1", "false"),) if flag else ()

    def of(t: ty.Type, flush: bool) -> Fn:
        elem = scalar_type(t)
        return lambda v, *args: [v.intrinsic(f"llvm.{name}", elem, *args, extra=extra)]

    return of


def native(fn: Callable[..., str]) -> FnOf:
    """A function on floats in their own type (bfloat in float)."""
    return lambda t, flush: in_format(t, fn, flush)


def rounding(name: str) -> FnOf:
    """A float intrinsic with an exact result."""
    return native(lambda v, elem, *args: v.intrinsic(f"llvm.{name}", elem, *args))


def in_double(fn: Callable[..., str]) -> FnOf:
    """Computes in double and rounds once."""

    def of(t: ty.Type, flush: bool) -> Fn:
        def run(v: Values, *args: str) -> list[str]:
            if flush and t is ty.FLOAT:
                args = tuple(flush_denormal(v, a) for a in args)
            out = from_double(v, t, fn(v, *(to_double(v, t, a) for a in args)))
            return [flush_denormal(v, out) if flush and t is ty.FLOAT else out]

        return run

    return of


class TextOps:
    """`elementary.Ops` as text of the host."""

    def __init__(self, v: Values) -> None:
        self.v = v

    def const(self, number: float) -> str:
        """A double."""
        return self.v.const("double", float_literal("double", number))

    def add(self, a: str, b: str) -> str:
        """``a + b``."""
        return self.v.op("fadd", "double", a, b)

    def sub(self, a: str, b: str) -> str:
        """``a - b``."""
        return self.v.op("fsub", "double", a, b)

    def mul(self, a: str, b: str) -> str:
        """``a * b``."""
        return self.v.op("fmul", "double", a, b)

    def div(self, a: str, b: str) -> str:
        """``a / b``."""
        return self.v.op("fdiv", "double", a, b)

    def rint(self, a: str) -> str:
        """The nearest integer, ties to even."""
        return self.v.intrinsic("llvm.rint", "double", a)

    def floor(self, a: str) -> str:
        """The next integer below."""
        return self.v.intrinsic("llvm.floor", "double", a)

    def less(self, a: str, b: str) -> str:
        """Whether ``a < b``."""
        return self.v.op("fcmp olt", "double", a, b)

    def same(self, a: str, b: str) -> str:
        """Whether ``a == b``; false for NaN."""
        return self.v.op("fcmp oeq", "double", a, b)

    def select(self, condition: str, yes: str, no: str) -> str:
        """One of two doubles."""
        return self.v.select(condition, "double", yes, no)

    def integer(self, a: str) -> str:
        """A double without fraction as an integer."""
        return self.v.cast("fptosi", "double", a, "i64")

    def number(self, i: str) -> str:
        """An integer as a double."""
        return self.v.cast("sitofp", "i64", i, "double")

    def bits(self, a: str) -> str:
        """The bit pattern of a double."""
        return self.v.cast("bitcast", "double", a, "i64")

    def from_bits(self, i: str) -> str:
        """The double of a bit pattern."""
        return self.v.cast("bitcast", "i64", i, "double")

    def plus(self, i: str, number: int) -> str:
        """An integer plus a constant."""
        return self.v.op("add", "i64", i, self.v.const("i64", number))

    def shift(self, i: str, left: int) -> str:
        """An integer shifted left, or (negative) right, with its sign."""
        return self.v.op("shl" if left >= 0 else "ashr", "i64", i, self.v.const("i64", abs(left)))

    def mask(self, i: str, number: int) -> str:
        """An integer and a constant, bit by bit."""
        return self.v.op("and", "i64", i, self.v.const("i64", number))

    def total(self, i: str, j: str) -> str:
        """The sum of integers."""
        return self.v.op("add", "i64", i, j)

    def either(self, i: str, j: str) -> str:
        """The bits that one of two integers has."""
        return self.v.op("or", "i64", i, j)

    def above(self, i: str, number: int) -> str:
        """Whether an integer is greater than a constant."""
        return self.v.op("icmp sgt", "i64", i, self.v.const("i64", number))

    def pick(self, condition: str, yes: str, no: str) -> str:
        """One of two integers."""
        return self.v.select(condition, "i64", yes, no)


def _shared(name: str) -> FnOf:
    fn = elementary.FUNCTIONS[name]
    rounded = in_double(lambda v, a: str(fn(TextOps(v), a)))

    def of(t: ty.Type, flush: bool) -> Fn:
        if t is ty.DOUBLE:
            raise NotCovered(f"{name} of double")
        return rounded(t, flush)

    return of


def ldexp(t: ty.Type, exponent: str, flush: bool) -> Fn:
    """``ldexp``: exact in double for exponents that matter, and rounded once."""
    if t is ty.DOUBLE:
        raise NotCovered("ldexp of double")

    def scale(v: Values, a: str, power: str) -> str:
        wide = power if exponent == "i64" else v.cast("sext", exponent, power, "i64")
        least, most = v.const("i64", -_MOST_POWER), v.const("i64", _MOST_POWER)
        wide = v.intrinsic("llvm.smin", "i64", v.intrinsic("llvm.smax", "i64", wide, least), most)
        bits = v.op("shl", "i64", v.op("add", "i64", wide, v.const("i64", 1023)), v.const("i64", 52))
        return v.op("fmul", "double", a, v.cast("bitcast", "i64", bits, "double"))

    def run(v: Values, a: str, power: str) -> list[str]:
        a = flush_denormal(v, a) if flush and t is ty.FLOAT else a
        out = from_double(v, t, scale(v, to_double(v, t, a), power))
        return [flush_denormal(v, out) if flush and t is ty.FLOAT else out]

    return run


# Beyond it every float is zero or infinite.
_MOST_POWER = 700


def _one(v: Values) -> str:
    return v.const("double", float_literal("double", 1.0))


def sqrt(v: Values, a: str) -> str:
    """The square root of a double."""
    return v.intrinsic("llvm.sqrt", "double", a)


def _fmin(v: Values, elem: str, a: str, b: str) -> str:
    """The smaller one; of a NaN and a number the number."""
    less = v.select(v.op("fcmp olt", elem, a, b), elem, a, b)
    return v.select(v.op("fcmp uno", elem, b, b), elem, a, less)


def _fmax(v: Values, elem: str, a: str, b: str) -> str:
    more = v.select(v.op("fcmp ogt", elem, a, b), elem, a, b)
    return v.select(v.op("fcmp uno", elem, b, b), elem, a, more)


def _med3(v: Values, elem: str, a: str, b: str, c: str) -> str:
    return _fmax(v, elem, _fmin(v, elem, a, b), _fmin(v, elem, _fmax(v, elem, a, b), c))


def _fract(v: Values, elem: str, a: str) -> str:
    import numpy as np

    digits = {"half": np.finfo(np.float16).nmant, "float": np.finfo(np.float32).nmant}.get(elem, 52)
    top = v.const(elem, float_literal(elem, 1 - 2.0 ** -(digits + 1)))
    part = v.op("fsub", elem, a, v.intrinsic("llvm.floor", elem, a))
    return v.select(v.op("fcmp oge", elem, part, top), elem, top, part)


def _bits_only(mask: int, sign: bool) -> FnOf:
    """``fabs`` and ``copysign``: what moves the sign bit."""

    def of(t: ty.Type, flush: bool) -> Fn:
        elem = scalar_type(t)
        if t is not ty.BFLOAT:
            name = "llvm.copysign" if sign else "llvm.fabs"
            return lambda v, *args: [v.intrinsic(name, elem, *args)]

        def run(v: Values, *args: str) -> list[str]:
            size = v.op("and", "i16", args[0], v.const("i16", 0x7FFF))
            if not sign:
                return [size]
            return [v.op("or", "i16", size, v.op("and", "i16", args[1], v.const("i16", -0x8000)))]

        return run

    return of


def fma(t: ty.Type, flush: bool) -> Fn:
    """Fused multiply-add with one rounding."""
    if t in (ty.FLOAT, ty.DOUBLE):
        return in_format(t, lambda v, elem, *args: v.intrinsic("llvm.fma", elem, *args), flush)
    return lambda v, a, b, c: [from_double(v, t, _sum_to_odd(v, *(to_double(v, t, x) for x in (a, b, c))))]


def _sum_to_odd(v: Values, a: str, b: str, c: str) -> str:
    """``a * b + c`` where the product is exact, rounded to odd, as `fma.sum_to_odd`."""

    def op(name: str, x: str, y: str) -> str:
        return v.op(name, "double", x, y)

    product = op("fmul", a, b)
    total = op("fadd", product, c)
    part = op("fsub", total, product)
    error = op("fadd", op("fsub", product, op("fsub", total, part)), op("fsub", c, part))
    zero = v.const("double", float_literal("double", 0.0))
    bits = v.cast("bitcast", "double", total, "i64")
    size = v.op("and", "i64", bits, v.const("i64", (1 << 63) - 1))
    finite = v.op("icmp ult", "i64", size, v.const("i64", 0x7FF << 52))
    even = v.op("icmp eq", "i64", v.op("and", "i64", bits, v.const("i64", 1)), v.const("i64", 0))
    wrong = v.op("and", "i1", op("fcmp une", error, zero), v.op("and", "i1", finite, even))
    away = v.op("xor", "i1", op("fcmp ogt", error, zero), op("fcmp ogt", total, zero))
    moved = v.op("add", "i64", bits, v.select(away, "i64", v.const("i64", -1), v.const("i64", 1)))
    return v.cast("bitcast", "i64", v.select(wrong, "i64", moved, bits), "double")


def _canonicalize(v: Values, elem: str, a: str) -> str:
    nan = v.const(elem, float_literal(elem, float("nan")))
    return v.select(v.op("fcmp uno", elem, a, a), elem, nan, a)


def _canonical(t: ty.Type, flush: bool) -> Fn:
    if t is ty.BFLOAT:
        raise NotCovered("canonicalize of bfloat")
    return in_format(t, _canonicalize, flush)


def _bit_field(signed: bool) -> FnOf:
    def of(t: ty.Type, flush: bool) -> Fn:
        elem = scalar_type(t)
        bits = bits_of(elem)

        def run(v: Values, a: str, offset: str, width: str) -> list[str]:
            at = v.op("and", elem, offset, v.const(elem, bits - 1))
            count = v.op("and", elem, width, v.const(elem, bits - 1))
            none = v.op("icmp eq", elem, count, v.const(elem, 0))
            room = v.select(none, elem, v.const(elem, 0), v.op("sub", elem, v.const(elem, bits), count))
            high = v.op("shl", elem, v.op("lshr", elem, a, at), room)
            value = v.op("ashr" if signed else "lshr", elem, high, room)
            return [v.select(none, elem, v.const(elem, 0), value)]

        return run

    return of


def _mul24(signed: bool) -> FnOf:
    def of(t: ty.Type, flush: bool) -> Fn:
        def low(v: Values, a: str) -> str:
            high = v.op("shl", "i32", a, v.const("i32", 8))
            return v.op("ashr" if signed else "lshr", "i32", high, v.const("i32", 8))

        return lambda v, a, b: [v.op("mul", "i32", low(v, a), low(v, b))]

    return of


#: Functions of one, two and three operands, by name: (operands, function of the element type).
ELEMENT: dict[str, tuple[int, FnOf]] = {
    **{name: (1, plain(name)) for name in "ctpop bitreverse bswap".split()},
    **{name: (1, plain(name, True)) for name in "ctlz cttz abs".split()},
    **{name: (2, plain(name)) for name in "smin smax umin umax sadd.sat uadd.sat ssub.sat usub.sat".split()},
    **{name: (3, plain(name)) for name in "fshl fshr".split()},
    **{name: (1, rounding(name)) for name in "floor ceil trunc rint nearbyint roundeven round".split()},
    **{name: (2, rounding(name)) for name in "minimum maximum minimumnum maximumnum".split()},
    "minnum": (2, native(_fmin)), "maxnum": (2, native(_fmax)),
    "fabs": (1, _bits_only(0, False)), "copysign": (2, _bits_only(0, True)),
    "fma": (3, fma), "fmuladd": (3, fma),
    "sqrt": (1, in_double(sqrt)), "amdgcn.sqrt": (1, in_double(sqrt)),
    "amdgcn.rcp": (1, in_double(lambda v, a: v.op("fdiv", "double", _one(v), a))),
    "amdgcn.rcp.iflag": (1, in_double(lambda v, a: v.op("fdiv", "double", _one(v), a))),
    "amdgcn.fmad.ftz": (3, fma),
    "amdgcn.rsq": (1, in_double(lambda v, a: v.op("fdiv", "double", _one(v), sqrt(v, a)))),
    "amdgcn.fmed3": (3, native(_med3)), "amdgcn.fract": (1, native(_fract)),
    **{name: (1, _shared(name)) for name in elementary.FUNCTIONS},
    "canonicalize": (1, _canonical),
    "amdgcn.ubfe": (3, _bit_field(False)), "amdgcn.sbfe": (3, _bit_field(True)),
    "amdgcn.mul.u24": (2, _mul24(False)), "amdgcn.mul.i24": (2, _mul24(True)),
}  # fmt: skip
