"""Intrinsics on packed values, tests of classes, dot products and ordered reductions, part by part.

The meaning is that of `sim.bitfn`, `sim.cvt`, `sim.mathfn` and `sim.matrix_dot`.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import types as ty
from ..ir import Inst
from ..matrix_dot import FloatDot, IntegerDot
from ..matrix_element import BF16, F16, Element
from . import arith, math
from .lower import Lowering
from .parts import NotCovered, Part, bits_of, float_literal, part_types, scalar_type
from .small import codes_of, decode
from .text import Values

Lower = Callable[[Lowering, Inst], "list[Part] | None"]


def _i32(v: Values, number: int) -> str:
    return v.const("i32", number)


def _double(v: Values, number: float) -> str:
    return v.const("double", float_literal("double", number))


def _words(fn: Callable[..., str], out: str = "i32", count: int = 3) -> Lower:
    """A function of scalars."""

    def lower(b: Lowering, inst: Inst) -> list[Part]:
        return b.apply(lambda v, *args: [fn(v, *args)], [b.part(o) for o in inst.operands[:count]], [out])

    return lower


# ---- bits


def _both(v: Values, high: str, low: str) -> str:
    wide = v.op("shl", "i64", v.cast("zext", "i32", high, "i64"), v.const("i64", 32))
    return v.op("or", "i64", wide, v.cast("zext", "i32", low, "i64"))


def _perm(v: Values, high: str, low: str, selector: str) -> str:
    """Each byte of the selector picks a byte of the two words, a sign, or a constant."""
    both = _both(v, high, low)
    done = ""
    for byte in range(4):
        code = v.op("and", "i32", v.op("lshr", "i32", selector, _i32(v, 8 * byte)), _i32(v, 255))
        inside = v.op("shl", "i32", v.op("and", "i32", code, _i32(v, 7)), _i32(v, 3))
        picked = v.op("lshr", "i64", both, v.cast("zext", "i32", inside, "i64"))
        value = v.op("and", "i32", v.cast("trunc", "i64", picked, "i32"), _i32(v, 255))
        place = v.op("add", "i32", v.op("shl", "i32", v.op("and", "i32", code, _i32(v, 3)), _i32(v, 4)), _i32(v, 15))
        sign = v.cast("trunc", "i64", v.op("lshr", "i64", both, v.cast("zext", "i32", place, "i64")), "i1")
        filled = v.select(sign, "i32", _i32(v, 255), _i32(v, 0))
        constant = v.select(v.op("icmp eq", "i32", code, _i32(v, 12)), "i32", _i32(v, 0), _i32(v, 255))
        rest = v.select(v.op("icmp ult", "i32", code, _i32(v, 12)), "i32", filled, constant)
        value = v.select(v.op("icmp ult", "i32", code, _i32(v, 8)), "i32", value, rest)
        moved = v.op("shl", "i32", value, _i32(v, 8 * byte))
        done = v.op("or", "i32", done, moved) if done else moved
    return done


def _align(mask: int, scale: int) -> Callable[..., str]:
    def fn(v: Values, high: str, low: str, amount: str) -> str:
        by = v.op("shl", "i32", v.op("and", "i32", amount, _i32(v, mask)), _i32(v, scale))
        shifted = v.op("lshr", "i64", _both(v, high, low), v.cast("zext", "i32", by, "i64"))
        return v.cast("trunc", "i64", shifted, "i32")

    return fn


def _mulhi24(signed: bool) -> Callable[..., str]:
    def wide(v: Values, a: str) -> str:
        high = v.op("shl", "i32", a, _i32(v, 8))
        low = v.op("ashr" if signed else "lshr", "i32", high, _i32(v, 8))
        return v.cast("sext" if signed else "zext", "i32", low, "i64")

    def fn(v: Values, a: str, c: str) -> str:
        product = v.op("mul", "i64", wide(v, a), wide(v, c))
        return v.cast("trunc", "i64", v.op("lshr", "i64", product, v.const("i64", 32)), "i32")

    return fn


# ---- conversions


def _toward_zero(v: Values, a: str) -> str:
    """A float as half, rounded towards zero."""
    near = v.cast("fptrunc", "float", a, "half")
    back = v.intrinsic("llvm.fabs", "float", v.cast("fpext", "half", near, "float"))
    size = v.intrinsic("llvm.fabs", "float", a)
    finite = v.op("fcmp olt", "float", size, v.const("float", float_literal("float", float("inf"))))
    far = v.op("and", "i1", v.op("fcmp ogt", "float", back, size), finite)
    bits = v.cast("bitcast", "half", near, "i16")
    moved = v.op("sub", "i16", bits, v.const("i16", 1))
    return v.cast("bitcast", "i16", v.select(far, "i16", moved, bits), "half")


def _clamped(signed: bool) -> Callable[..., str]:
    def fn(v: Values, a: str) -> str:
        if signed:
            a = v.intrinsic("llvm.smax", "i32", v.intrinsic("llvm.smin", "i32", a, _i32(v, 32767)), _i32(v, -32768))
        else:
            a = v.intrinsic("llvm.umin", "i32", a, _i32(v, 65535))
        return v.cast("trunc", "i32", a, "i16")

    return fn


def _between(v: Values, x: str, low: float, high: float) -> str:
    """A double between limits, NaN as zero."""
    x = v.select(v.op("fcmp uno", "double", x, x), "double", _double(v, 0.0), x)
    x = v.select(v.op("fcmp olt", "double", x, _double(v, low)), "double", _double(v, low), x)
    return v.select(v.op("fcmp ogt", "double", x, _double(v, high)), "double", _double(v, high), x)


def _normalised(scale: float, signed: bool) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        t = ty.scalar_of(inst.operands[0].type)

        def run(v: Values, a: str) -> list[str]:
            near = _between(v, arith.to_double(v, t, a), -1.0 if signed else 0.0, 1.0)
            whole = v.intrinsic("llvm.rint", "double", v.op("fmul", "double", near, _double(v, scale)))
            return [v.cast("trunc", "i32", v.cast("fptosi", "double", whole, "i32"), "i16")]

        return [b.apply(run, [b.part(o)], ["i16"])[0] for o in inst.operands[:2]]

    return lower


def _pair(fn: Callable[..., str], out: str) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        return [b.apply(lambda v, a: [fn(v, a)], [b.part(o)], [out])[0] for o in inst.operands[:2]]

    return lower


def _byte_to_float(byte: int) -> Callable[..., str]:
    def fn(v: Values, a: str) -> str:
        low = v.op("and", "i32", v.op("lshr", "i32", a, _i32(v, 8 * byte)), _i32(v, 255))
        return v.cast("uitofp", "i32", low, "float")

    return fn


def _float_to_byte(v: Values, number: str, byte: str, word: str) -> str:
    near = _between(v, v.cast("fpext", "float", number, "double"), 0.0, 255.0)
    whole = v.cast("fptosi", "double", v.intrinsic("llvm.rint", "double", near), "i32")
    shift = v.op("shl", "i32", v.op("and", "i32", byte, _i32(v, 3)), _i32(v, 3))
    hole = v.op("xor", "i32", v.op("shl", "i32", _i32(v, 255), shift), _i32(v, -1))
    return v.op("or", "i32", v.op("and", "i32", word, hole), v.op("shl", "i32", whole, shift))


def _saturating(signed: bool) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        source, target = ty.scalar_of(inst.operands[0].type), ty.scalar_of(inst.type)
        fn = arith.convert("fptosi" if signed else "fptoui", source, target, False)
        return b.each(fn, scalar_type(target), b.parts(inst.operands[0]))

    return lower


# ---- classes


def _class(b: Lowering, inst: Inst) -> list[Part]:
    """``is.fpclass`` and ``amdgcn.class``: one of ten classes against the bits of a mask."""
    digits = {"half": 10, "float": 23, "double": 52, "bfloat": 7}[str(ty.scalar_of(inst.operands[0].type))]
    values, mask = b.parts(inst.operands[0]), b.part(inst.operands[1])
    held = values[0].type
    word = f"i{bits_of(held)}"
    top = bits_of(held) - 1
    infinity, quiet = ((1 << (top - digits)) - 1) << digits, 1 << (digits - 1)

    def run(v: Values, a: str, wanted: str) -> list[str]:
        bits = v.cast("bitcast", held, a, word)
        size = v.op("and", word, bits, v.const(word, (1 << top) - 1))
        negative = v.op("icmp slt", word, bits, v.const(word, 0))

        def below(limit: int) -> str:
            return v.op("icmp ult", word, size, v.const(word, limit))

        def signed(positive: int, other: int) -> str:
            return v.select(negative, "i32", _i32(v, other), _i32(v, positive))

        is_quiet = v.op("icmp ne", word, v.op("and", word, size, v.const(word, quiet)), v.const(word, 0))
        found = v.select(is_quiet, "i32", _i32(v, 1), _i32(v, 0))
        found = v.select(below(infinity + 1), "i32", signed(9, 2), found)
        found = v.select(below(infinity), "i32", signed(8, 3), found)
        found = v.select(below(1 << digits), "i32", signed(7, 4), found)
        found = v.select(below(1), "i32", signed(6, 5), found)
        return [v.cast("trunc", "i32", v.op("lshr", "i32", wanted, found), "i1")]

    return [b.apply(run, [value, mask], ["i1"])[0] for value in values]


# ---- sums


def _reduce_floats(name: str) -> Lower:
    """``llvm.vector.reduce.f*``, from the first element on."""

    def lower(b: Lowering, inst: Inst) -> list[Part]:
        t = ty.scalar_of(inst.type)
        parts = b.parts(inst.operands[-1])
        if name in ("fadd", "fmul"):
            parts = [b.part(inst.operands[0]), *parts]
            fn = arith.binary(name, t, b.flush)
        else:
            fn = math.ELEMENT[_EXTREMES[name]][1](t, b.flush)

        def run(v: Values, *args: str) -> list[str]:
            total = args[0]
            for a in args[1:]:
                (total,) = fn(v, total, a)
            return [total]

        return b.apply(run, parts, [scalar_type(t)])

    return lower


_EXTREMES = {"fmax": "maxnum", "fmin": "minnum"}


def dot(b: Lowering, inst: Inst, prepared: IntegerDot | FloatDot, operands: list[list[Part]]) -> list[Part]:
    """A dot product of the vector unit."""
    left, right, (start,) = operands
    rows = [
        codes_of(b, parts, element.bits, 0, prepared.count)
        for parts, element in ((left, prepared.a), (right, prepared.b))
    ]
    if isinstance(prepared, IntegerDot):
        return b.apply(lambda v, *args: [_integer_dot(v, prepared, *args)], [*rows[0], *rows[1], start], ["i32"])
    result = {"f32": ty.FLOAT, "f16": ty.HALF, "bf16": ty.BFLOAT}[prepared.result.name]

    def run(v: Values, *args: str) -> list[str]:
        n = prepared.count
        pairs = zip(args[:n], args[n : 2 * n], strict=True)
        total = ""
        for x, y in pairs:
            product = v.op("fmul", "double", _number(v, prepared.a, x), _number(v, prepared.b, y))
            total = v.op("fadd", "double", total, product) if total else product
        total = v.op("fadd", "double", total, arith.to_double(v, result, args[-1]))
        return [arith.from_double(v, result, _between(v, total, 0.0, 1.0) if prepared.clamp else total)]

    return b.apply(run, [*rows[0], *rows[1], start], part_types(inst.type))


def _number(v: Values, element: Element, code: str) -> str:
    """An element's code (i32) as double."""
    if element is F16:
        half = v.cast("bitcast", "i16", v.cast("trunc", "i32", code, "i16"), "half")
        return v.cast("fpext", "half", half, "double")
    if element is BF16:
        return v.cast("fpext", "float", arith.decode_bf16(v, v.cast("trunc", "i32", code, "i16")), "double")
    if element.fmt is None:
        raise NotCovered(f"a dot product of {element.name}")
    return v.cast("fpext", "float", decode(v, element.fmt, code), "double")


def _integer_dot(v: Values, prepared: IntegerDot, *args: str) -> str:
    def wide(element: Element, code: str) -> str:
        if element.name.startswith("i"):
            room = _i32(v, 32 - element.bits)
            code = v.op("ashr", "i32", v.op("shl", "i32", code, room), room)
        return v.cast("sext", "i32", code, "i64")

    n = prepared.count
    total = v.cast("zext" if prepared.unsigned else "sext", "i32", args[-1], "i64")
    for x, y in zip(args[:n], args[n : 2 * n], strict=True):
        total = v.op("add", "i64", total, v.op("mul", "i64", wide(prepared.a, x), wide(prepared.b, y)))
    if prepared.clamp:
        low, high = (0, 2**32 - 1) if prepared.unsigned else (-(2**31), 2**31 - 1)
        total = v.intrinsic("llvm.smax", "i64", total, v.const("i64", low))
        total = v.intrinsic("llvm.smin", "i64", total, v.const("i64", high))
    return v.cast("trunc", "i64", total, "i32")


TABLE: dict[str, Lower] = {
    "amdgcn.perm": _words(_perm),
    "amdgcn.alignbit": _words(_align(31, 0)),
    "amdgcn.alignbyte": _words(_align(3, 3)),
    "amdgcn.mulhi.u24": _words(_mulhi24(False), count=2),
    "amdgcn.mulhi.i24": _words(_mulhi24(True), count=2),
    "amdgcn.cvt.pkrtz": _pair(_toward_zero, "half"),
    "amdgcn.cvt.pk.i16": _pair(_clamped(True), "i16"),
    "amdgcn.cvt.pk.u16": _pair(_clamped(False), "i16"),
    "amdgcn.cvt.pknorm.i16": _normalised(32767.0, True),
    "amdgcn.cvt.pknorm.u16": _normalised(65535.0, False),
    **{f"amdgcn.cvt.f32.ubyte{i}": _words(_byte_to_float(i), "float", 1) for i in range(4)},
    "amdgcn.cvt.pk.u8.f32": _words(_float_to_byte),
    "fptosi.sat": _saturating(True),
    "fptoui.sat": _saturating(False),
    "is.fpclass": _class,
    "amdgcn.class": _class,
    **{f"vector.reduce.{name}": _reduce_floats(name) for name in ("fadd", "fmul", *_EXTREMES)},
}
