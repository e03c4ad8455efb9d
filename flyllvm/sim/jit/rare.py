"""Calls that move the elements of vectors, and rare functions of words and floats, part by part.

The meaning is that of `sim.vector_calls`, `sim.hardware`, `sim.mathfn` and `sim.bitfn`.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import types as ty
from ..ir import Inst
from ..values import LDS_APERTURE, PRIVATE_APERTURE, signed
from . import arith
from .lower import Lowering
from .parts import Part, bits_of, float_literal, part_types
from .text import Values

Lower = Callable[[Lowering, Inst], list[Part]]
Fn = Callable[..., str]

# ---- elements of vectors


def _interleave(b: Lowering, inst: Inst) -> list[Part]:
    rows = [b.parts(o) for o in inst.operands]
    return b.renamed([part for group in zip(*rows, strict=True) for part in group])


def _deinterleave(b: Lowering, inst: Inst) -> list[Part]:
    parts, count = b.parts(inst.operands[0]), len(getattr(inst.type, "elems", None) or ())
    return b.renamed([part for i in range(count) for part in parts[i::count]])


def _reverse(b: Lowering, inst: Inst) -> list[Part]:
    return b.renamed(b.parts(inst.operands[0])[::-1])


def _splice(b: Lowering, inst: Inst) -> list[Part]:
    first, second = (b.parts(o) for o in inst.operands[:2])
    at = signed(b.number(inst.operands[2], "a place in a vector") & 0xFFFFFFFF, 32)
    start = at if at >= 0 else len(first) + at
    return b.renamed([*first, *second][start : start + len(first)])


def _extract(b: Lowering, inst: Inst) -> list[Part]:
    at = b.number(inst.operands[1], "a place in a vector")
    return b.renamed(b.parts(inst.operands[0])[at : at + len(part_types(inst.type))])


def _insert(b: Lowering, inst: Inst) -> list[Part]:
    whole, part = (b.parts(o) for o in inst.operands[:2])
    at = b.number(inst.operands[2], "a place in a vector")
    return b.renamed([*whole[:at], *part, *whole[at + len(part) :]])


# ---- words


def _each(fn: Callable[[str], Fn], count: int) -> Lower:
    """A function of integers of one type, made for that type."""

    def lower(b: Lowering, inst: Inst) -> list[Part]:
        rows = [b.parts(o) for o in inst.operands[:count]]
        t, out = rows[0][0].type, part_types(inst.type)[0]
        made = fn(t)
        return b.each(lambda v, *args: [made(v, *args)], out, *rows)

    return lower


def _compare(b: Lowering, inst: Inst) -> list[Part]:
    """``ucmp`` and ``scmp``: -1, 0 or 1."""
    rows, out = [b.parts(o) for o in inst.operands], part_types(inst.type)[0]
    t, kind = rows[0][0].type, "s" if ".scmp" in (inst.callee or "") else "u"

    def run(v: Values, x: str, y: str) -> list[str]:
        less = v.select(v.op(f"icmp {kind}lt", t, x, y), out, v.const(out, -1), v.const(out, 0))
        return [v.select(v.op(f"icmp {kind}gt", t, x, y), out, v.const(out, 1), less)]

    return b.each(run, out, *rows)


def _bitop3(b: Lowering, inst: Inst) -> list[Part]:
    table = b.number(inst.operands[3], "a truth table")

    def of(t: str) -> Fn:
        def run(v: Values, *args: str) -> str:
            plain = [args, [v.op("xor", t, a, v.const(t, -1)) for a in args]]
            total = v.op("and", t, args[0], v.const(t, 0))
            for row in range(8):
                if table >> row & 1:
                    x, y, z = (plain[0 if row & bit else 1][i] for i, bit in enumerate((4, 2, 1)))
                    total = v.op("or", t, total, v.op("and", t, v.op("and", t, x, y), z))
            return total

        return run

    return _each(of, 3)(b, inst)


def _field(v: Values, a: str, shift: int, bits: int) -> str:
    return v.op("and", "i32", v.op("lshr", "i32", a, v.const("i32", shift)), v.const("i32", (1 << bits) - 1))


def _sad(bits: int, masked: bool = False, shift: int = 0) -> Lower:
    """Sum of absolute differences of fields, added to the third operand; ``masked`` skips zero reference fields."""

    def run(v: Values, a: str, b: str, c: str) -> str:
        total = ""
        for at in range(0, 32, bits):
            x, y = _field(v, a, at, bits), _field(v, b, at, bits)
            low, high = (v.intrinsic(f"llvm.u{pick}", "i32", x, y) for pick in ("min", "max"))
            part = v.op("sub", "i32", high, low)
            if masked:
                none = v.op("icmp eq", "i32", y, v.const("i32", 0))
                part = v.select(none, "i32", v.const("i32", 0), part)
            total = v.op("add", "i32", total, part) if total else part
        return v.op("add", "i32", v.op("shl", "i32", total, v.const("i32", shift)), c)

    return _each(lambda t: run, 3)


def _lerp(v: Values, a: str, b: str, c: str) -> str:
    total = ""
    for at in range(0, 32, 8):
        both = v.op("add", "i32", _field(v, a, at, 8), _field(v, b, at, 8))
        half = v.op("lshr", "i32", v.op("add", "i32", both, _field(v, c, at, 1)), v.const("i32", 1))
        moved = v.op("shl", "i32", half, v.const("i32", at))
        total = v.op("or", "i32", total, moved) if total else moved
    return total


def _sffbh(v: Values, a: str) -> str:
    """Bits before the first that differs from the sign, -1 where all are equal."""
    sign = v.op("ashr", "i32", a, v.const("i32", 31))
    flipped = v.op("xor", "i32", a, sign)
    count = v.intrinsic("llvm.ctlz", "i32", flipped, extra=(("i1", "false"),))
    none = v.op("icmp eq", "i32", flipped, v.const("i32", 0))
    return v.select(none, "i32", v.const("i32", -1), count)


def _is_in(aperture: int) -> Lower:
    def run(v: Values, a: str) -> str:
        return v.op("icmp eq", "i64", v.op("lshr", "i64", a, v.const("i64", 32)), v.const("i64", aperture))

    return _each(lambda t: run, 1)


def _ptrmask(b: Lowering, inst: Inst) -> list[Part]:
    """Bits above those of the mask stay."""
    pointer, mask = b.part(inst.operands[0]), b.part(inst.operands[1])
    t, m = pointer.type, mask.type
    high = -(1 << bits_of(m)) if bits_of(m) < bits_of(t) else 0

    def run(v: Values, a: str, keep: str) -> list[str]:
        wide = v.cast("zext", m, keep, t)
        return [v.op("and", t, a, v.op("or", t, wide, v.const(t, high)) if high else wide)]

    return b.apply(run, [pointer, mask], [t])


# ---- mantissa and exponent


def _double(v: Values, number: float) -> str:
    return v.const("double", float_literal("double", number))


def _taken_apart(v: Values, a: str) -> tuple[str, str]:
    """Mantissa in [0.5, 1) as double and exponent as i64; zeros, infinities and NaN have the exponent 0."""
    field = 0x7FF << 52
    least = v.op("fcmp olt", "double", v.intrinsic("llvm.fabs", "double", a), _double(v, 2.0**-1022))
    grown = v.select(least, "double", v.op("fmul", "double", a, _double(v, 2.0**54)), a)
    bits = v.cast("bitcast", "double", grown, "i64")
    exponent = v.op("lshr", "i64", v.op("and", "i64", bits, v.const("i64", field)), v.const("i64", 52))
    bias = v.select(least, "i64", v.const("i64", 1022 + 54), v.const("i64", 1022))
    rest = v.op("and", "i64", bits, v.const("i64", ~field))
    number = v.cast("bitcast", "i64", v.op("or", "i64", rest, v.const("i64", 1022 << 52)), "double")
    zero = v.op("fcmp oeq", "double", a, _double(v, 0.0))
    special = v.op("or", "i1", zero, v.op("icmp eq", "i64", exponent, v.const("i64", 0x7FF)))
    power = v.select(special, "i64", v.const("i64", 0), v.op("sub", "i64", exponent, bias))
    return v.select(special, "double", a, number), power


def _mantissa(b: Lowering, inst: Inst) -> list[Part]:
    t, parts = ty.scalar_of(inst.operands[0].type), b.parts(inst.operands[0])
    return b.each(
        lambda v, a: [arith.from_double(v, t, _taken_apart(v, arith.to_double(v, t, a))[0])], parts[0].type, parts
    )


def _exponent(out: str) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        t, parts = ty.scalar_of(inst.operands[0].type), b.parts(inst.operands[0])
        target = out or part_types(inst.type)[0]
        return b.each(
            lambda v, a: [v.cast("trunc", "i64", _taken_apart(v, arith.to_double(v, t, a))[1], target)], target, parts
        )

    return lower


def _frexp(b: Lowering, inst: Inst) -> list[Part]:
    return [*_mantissa(b, inst), *_exponent(part_types(inst.type)[-1])(b, inst)]


def _first(b: Lowering, inst: Inst) -> list[Part]:
    return b.renamed(b.parts(inst.operands[0]))


TABLE: dict[str, Callable[[Lowering, Inst], list[Part] | None]] = {
    **{f"vector.interleave{n}": _interleave for n in range(2, 9)},
    **{f"vector.deinterleave{n}": _deinterleave for n in range(2, 9)},
    "vector.reverse": _reverse,
    "vector.splice": _splice,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "ucmp": _compare,
    "scmp": _compare,
    "ptrmask": _ptrmask,
    "frexp": _frexp,
    "amdgcn.frexp.mant": _mantissa,
    "amdgcn.frexp.exp": _exponent(""),
    "amdgcn.bitop3": _bitop3,
    "amdgcn.sad.u8": _sad(8),
    "amdgcn.sad.hi.u8": _sad(8, shift=16),
    "amdgcn.msad.u8": _sad(8, masked=True),
    "amdgcn.sad.u16": _sad(16),
    "amdgcn.lerp": _each(lambda t: _lerp, 3),
    "amdgcn.sffbh": _each(lambda t: _sffbh, 1),
    "amdgcn.is.shared": _is_in(LDS_APERTURE),
    "amdgcn.is.private": _is_in(PRIVATE_APERTURE),
    # A lane that does not run is asked for by `cross` only, which leaves that to the NumPy engine.
    **dict.fromkeys(("amdgcn.set.inactive", "amdgcn.softwqm", "amdgcn.strict.wqm", "amdgcn.wwm"), _first),
}
