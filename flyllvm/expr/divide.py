"""Division as Python has it, on values: quotients rounded down or up, remainders with the divisor's sign."""

from __future__ import annotations

from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .fastmath import emit_float


def floor_division(b: Builder, a: Value, d: Value, remainder: bool) -> Value:
    """Python's rounding to minus infinity, from the hardware's rounding to zero; the least integer by -1 wraps."""
    zero = b.constant(0, a.type)
    d, minus = _no_overflow(b, a, d)
    rem = b.binary("arith.remsi", a, d)
    off = b.binary("arith.andi", b.cmpi("ne", rem, zero), b.cmpi("slt", b.binary("arith.xori", rem, d), zero))
    if remainder:
        return b.select(off, b.binary("arith.addi", rem, d), rem)
    quotient = b.binary("arith.divsi", a, d)
    floor = b.select(off, b.binary("arith.addi", quotient, b.constant(-1, a.type)), quotient)
    return floor if minus is None else b.select(minus, b.binary("arith.subi", zero, a), floor)


def ceil_division(b: Builder, a: Value, d: Value, signed: bool) -> Value:
    """The quotient rounded to plus infinity, of any two integers of one type."""
    zero, one = b.constant(0, a.type), b.constant(1, a.type)
    if not signed:
        some = b.cmpi("ne", b.binary("arith.remui", a, d), zero)
        return b.binary("arith.addi", b.binary("arith.divui", a, d), b.select(some, one, zero))
    d, minus = _no_overflow(b, a, d)
    rem = b.binary("arith.remsi", a, d)
    up = b.binary("arith.andi", b.cmpi("ne", rem, zero), b.cmpi("sge", b.binary("arith.xori", rem, d), zero))
    ceil = b.binary("arith.addi", b.binary("arith.divsi", a, d), b.select(up, one, zero))
    return ceil if minus is None else b.select(minus, b.binary("arith.subi", zero, a), ceil)


def _no_overflow(b: Builder, a: Value, d: Value) -> tuple[Value, Value | None]:
    """(a divisor that is not -1, whether it was): the least integer divided by -1 has no quotient in LLVM.

    ``None`` where the operands show that this cannot be.
    """
    elem = t.scalar_of(a.type)
    known = d.static_value()
    if known is not None and known != -1:
        return d, None
    if d.range is not None and (d.range[0] > -1 or d.range[1] < -1):
        return d, None
    if a.range is not None and isinstance(elem, t.IntType) and a.range[0] > -(1 << (elem.bits - 1)):
        return d, None
    minus = b.cmpi("eq", d, b.constant(-1, d.type))
    return b.select(minus, b.constant(1, d.type), d), minus


def float_division(a: Value, d: Value, remainder: bool) -> Value:
    """The floor division or its remainder of two floats, or vectors of them: Python's steps, zeros and infinities.

    Narrow types go through f32, where every step below is exact enough to give the rounded result of f64.
    """
    b = Builder.current()
    elem = t.scalar_of(a.type)
    if elem.bits < 32:
        wide = t.like(a.type, t.F32)
        a, d = b.cast("arith.extf", a, wide), b.cast("arith.extf", d, wide)
        return b.cast("arith.truncf", float_division(a, d, remainder), elem)
    zero = b.constant(0.0, a.type)
    rem = emit_float("arith.remf", a, d)
    some = b.cmpf("une", rem, zero)
    opposite = b.binary("arith.xori", b.cmpf("olt", rem, zero), b.cmpf("olt", d, zero))
    off = b.binary("arith.andi", some, opposite)
    if remainder:
        moved = b.select(off, emit_float("arith.addf", rem, d), rem)
        return b.select(some, moved, emit_float("math.copysign", zero, d))
    # (a - rem) / d is an integer but for its rounding, so the nearest one is meant.
    quotient = emit_float("math.roundeven", emit_float("arith.divf", emit_float("arith.subf", a, rem), d))
    one = b.constant(1.0, a.type)
    quotient = b.select(off, emit_float("arith.subf", quotient, one), quotient)
    sign = emit_float("arith.mulf", emit_float("math.copysign", zero, a), emit_float("math.copysign", one, d))
    return b.select(b.cmpf("oeq", quotient, zero), sign, quotient)


def shift_amount(b: Builder, amount: Value, to: t.Type) -> Value:
    """An amount in the type of what is shifted; one that is too large there stays too large."""
    have, want = t.scalar_of(amount.type), t.scalar_of(to)
    if have.bits <= want.bits:
        return amount
    rng = amount.range
    if rng is None or rng[0] < 0 or rng[1] >= 1 << want.bits:
        amount = b.binary("arith.minui", amount, b.constant((1 << want.bits) - 1, amount.type))
    return b.cast("arith.trunci", amount, want)
