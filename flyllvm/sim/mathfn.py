"""Intrinsics that compute each lane by itself: ``llvm.*`` mathematics and the AMDGPU conversions and bit operations.

Hardware approximations (rcp, rsq, exp2, log, sin, cos) are computed exactly rounded here; hardware differs from that
by up to 1 ulp (AMD ISA manuals), so a comparison with hardware needs that tolerance.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import alu, bitfn, convert, cvt, denormals, elementary, fma, trig, types as ty
from .ir import Inst
from .types import Type
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

FnOf = Callable[[Type], Callable[..., Any]]


def elementwise(fn_of: FnOf, count: int, computes: bool = True) -> Callable[[Compiler, Inst], list[Op]]:
    """A builder for a function of the first ``count`` operands, chosen by the type of the first.

    Args:
        fn_of: The function of a type.
        count: Operands.
        computes: Whether the denormal mode applies; it does not to what only moves bits.
    """

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, slots = c.dest(inst), [c.slot(o) for o in inst.operands[:count]]
        fn = fn_of(inst.operands[0].type)
        if computes:
            fn = denormals.flushed(c.kernel, inst.operands[0].type, fn)
        if count == 1:
            a = slots[0]

            def run_one(r: list[Any], m: Machine) -> None:
                r[d] = fn(r[a])

            return [run_one]

        def run(r: list[Any], m: Machine) -> None:
            r[d] = fn(*[r[s] for s in slots])

        return [run]

    return builder


def in_double(fn: Callable[..., Array]) -> FnOf:
    """Computes in float64 and rounds once to the type."""

    def of(t: Type) -> Callable[..., Array]:
        return lambda *args: convert.from_float64(t, fn(*(convert.to_float64(t, a) for a in args)))

    return of


def shared(name: str, double: Callable[[Array], Array]) -> FnOf:
    """A function of `elementary`, rounded once; ``double`` for doubles themselves, which need more than it gives."""
    fn = elementary.FUNCTIONS[name]
    rounded = in_double(lambda a: fn(elementary.NUMPY, a))
    return lambda t: double if ty.scalar_of(t) is ty.DOUBLE else rounded(t)


def native(fn: Callable[..., Array]) -> FnOf:
    """Computes in the type itself (bfloat in float32): for functions whose result needs no second rounding."""
    return lambda t: alu.widened(t, fn)


def _round_half_away(a: Array) -> Array:
    whole = np.trunc(a)
    return np.where(np.abs(a - whole) >= 0.5, whole + np.copysign(a.dtype.type(1), a), whole)


def _zero_ordered(fn: Callable[[Array, Array], Array], negative_first: bool) -> Callable[[Array, Array], Array]:
    """Minimum or maximum that orders -0 before +0."""

    def pick(a: Array, b: Array) -> Array:
        both = (a == 0) & (b == 0)
        sign = np.signbit(a) | np.signbit(b) if negative_first else np.signbit(a) & np.signbit(b)
        zero = np.where(sign, a.dtype.type(-0.0), a.dtype.type(0.0))
        return np.where(both, zero, fn(a, b))

    return pick


_minimum, _maximum = _zero_ordered(np.minimum, True), _zero_ordered(np.maximum, False)
_fmin, _fmax = _zero_ordered(np.fmin, True), _zero_ordered(np.fmax, False)


def _fabs(t: Type) -> Callable[[Array], Array]:
    if ty.scalar_of(t) is ty.BFLOAT:
        return lambda a: a & np.uint16(0x7FFF)
    return np.abs


def _copysign(t: Type) -> Callable[[Array, Array], Array]:
    if ty.scalar_of(t) is ty.BFLOAT:
        return lambda a, b: (a & np.uint16(0x7FFF)) | (b & np.uint16(0x8000))
    return np.copysign


def _fract(a: Array) -> Array:
    part = a - np.floor(a)
    below_one = np.nextafter(a.dtype.type(1), a.dtype.type(0))
    return np.where(np.isnan(a) | np.isinf(a), part, np.minimum(part, below_one))


def _med3(a: Array, b: Array, c: Array) -> Array:
    return np.fmax(np.fmin(a, b), np.fmin(np.fmax(a, b), c))


def _ldexp(c: Compiler, inst: Inst) -> list[Op]:
    t = inst.operands[0].type
    d, a, e = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])
    bits = ty.bit_size(ty.scalar_of(inst.operands[1].type))

    def scale(value: Array, power: Array) -> Array:
        return convert.from_float64(t, np.ldexp(convert.to_float64(t, value), power))

    fn = denormals.flushed(c.kernel, t, scale)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fn(r[a], np.clip(alu.sign_extended(r[e], bits).astype(np.int64), -5000, 5000).astype(np.int32))

    return [run]


def _powi(c: Compiler, inst: Inst) -> list[Op]:
    t = inst.operands[0].type
    d, a, e = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])
    bits = ty.bit_size(ty.scalar_of(inst.operands[1].type))

    def power(value: Array, exponent: Array) -> Array:
        return convert.from_float64(t, np.power(convert.to_float64(t, value), exponent))

    fn = denormals.flushed(c.kernel, t, power)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fn(r[a], alu.sign_extended(r[e], bits).astype(np.float64))

    return [run]


def _frexp(c: Compiler, inst: Inst) -> list[Op]:
    t, d, a = inst.operands[0].type, c.dest(inst), c.slot(inst.operands[0])
    exponent_type = (inst.type.elems or (ty.FLOAT, ty.I32))[1] if isinstance(inst.type, ty.StructType) else ty.I32

    def run(r: list[Any], m: Machine) -> None:
        mantissa, exponent = np.frexp(convert.to_float64(t, r[a]))
        unsigned = alu.from_signed(exponent.astype(np.int64), ty.bit_size(ty.scalar_of(exponent_type)))
        r[d] = (convert.from_float64(t, mantissa), unsigned)

    return [run]


def _frexp_part(part: int) -> Callable[[Compiler, Inst], list[Op]]:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        t, d, a = inst.operands[0].type, c.dest(inst), c.slot(inst.operands[0])
        bits = ty.bit_size(inst.type)

        def run(r: list[Any], m: Machine) -> None:
            value = np.frexp(convert.to_float64(t, r[a]))[part]
            r[d] = convert.from_float64(t, value) if part == 0 else alu.from_signed(value.astype(np.int64), bits)

        return [run]

    return builder


_FPCLASS: tuple[Callable[[Array, Array], Array], ...] = (
    lambda a, q: np.isnan(a) & ~q, lambda a, q: np.isnan(a) & q,
    lambda a, q: a == -np.inf, lambda a, q: (a < 0) & np.isfinite(a) & ~_subnormal(a),
    lambda a, q: (a < 0) & _subnormal(a), lambda a, q: (a == 0) & np.signbit(a),
    lambda a, q: (a == 0) & ~np.signbit(a), lambda a, q: (a > 0) & _subnormal(a),
    lambda a, q: (a > 0) & np.isfinite(a) & ~_subnormal(a), lambda a, q: a == np.inf,
)  # fmt: skip


def _subnormal(a: Array) -> Array:
    return (a != 0) & (np.abs(a) < np.finfo(a.dtype).tiny)


def _class(c: Compiler, inst: Inst) -> list[Op]:
    """``llvm.is.fpclass`` and ``amdgcn.class``: tests a value against a mask of ten classes."""
    t, d = inst.operands[0].type, c.dest(inst)
    a, mask = c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        value = r[a]
        if ty.scalar_of(t) is ty.BFLOAT:
            quiet = (value & np.uint16(0x40)) != 0
            value = (value.astype(np.uint32) << np.uint32(16)).view(np.float32)
        else:
            bits = np.ascontiguousarray(value).view(f"u{value.dtype.itemsize}")
            quiet = bits >> bits.dtype.type(np.finfo(value.dtype).nmant - 1) & bits.dtype.type(1) != 0
        wanted = r[mask]
        out = np.zeros(np.broadcast_shapes(value.shape, wanted.shape), bool)
        for bit, test in enumerate(_FPCLASS):
            selected = (wanted >> wanted.dtype.type(bit)) & wanted.dtype.type(1) != 0
            out |= selected & test(value, quiet)
        r[d] = out

    return [run]


def reason_against(inst: Inst) -> str | None:
    """Why a mathematical intrinsic cannot run with its types, or ``None``."""
    for operand in inst.operands:
        scalar = ty.scalar_of(operand.type)
        if scalar is ty.FP128:
            return "fp128 does not exist on AMDGPU"
    return None


def _canonicalize(t: Type) -> Callable[[Array], Array]:
    if ty.scalar_of(t) is ty.BFLOAT:
        return lambda a: np.where((a & np.uint16(0x7FFF)) > np.uint16(0x7F80), a | np.uint16(0x40), a)
    return lambda a: np.where(np.isnan(a), a.dtype.type(np.nan), a)


_ONE: dict[str, FnOf] = {
    "sqrt": in_double(np.sqrt), "amdgcn.sqrt": in_double(np.sqrt),
    "exp": shared("exp", np.exp), "exp2": shared("exp2", np.exp2), "amdgcn.exp2": shared("exp2", np.exp2),
    "exp10": shared("exp10", lambda a: np.power(10.0, a)),
    "log": shared("log", np.log), "log2": shared("log2", np.log2), "log10": shared("log10", np.log10),
    "amdgcn.log": shared("log2", np.log2),
    "sin": in_double(np.sin), "cos": in_double(np.cos), "tan": in_double(np.tan), "tanh": in_double(np.tanh),
    "sinh": in_double(np.sinh), "cosh": in_double(np.cosh), "asin": in_double(np.arcsin), "acos": in_double(np.arccos),
    "atan": in_double(np.arctan), "amdgcn.tanh": in_double(np.tanh),
    "amdgcn.sin": shared("amdgcn.sin", lambda a: np.sin(2 * np.pi * np.remainder(a, 1.0))),
    "amdgcn.cos": shared("amdgcn.cos", lambda a: np.cos(2 * np.pi * np.remainder(a, 1.0))),
    "amdgcn.rcp": in_double(lambda a: 1.0 / a), "amdgcn.rsq": in_double(lambda a: 1.0 / np.sqrt(a)),
    "amdgcn.rcp.iflag": in_double(lambda a: 1.0 / a), "amdgcn.fract": native(_fract),
    "floor": native(np.floor), "ceil": native(np.ceil), "trunc": native(np.trunc), "rint": native(np.rint),
    "nearbyint": native(np.rint), "roundeven": native(np.rint), "round": native(_round_half_away),
    "canonicalize": _canonicalize, "fabs": _fabs, "arithmetic.fence": native(lambda a: a),
}  # fmt: skip
_TWO: dict[str, FnOf] = {
    "minnum": native(np.fmin), "maxnum": native(np.fmax),
    "minimum": native(_minimum), "maximum": native(_maximum),
    "minimumnum": native(_fmin), "maximumnum": native(_fmax),
    "copysign": _copysign, "pow": in_double(np.power), "atan2": in_double(np.arctan2),
    "amdgcn.fmul.legacy": native(lambda a, b: np.where((a == 0) | (b == 0), a.dtype.type(0), a * b)),
}  # fmt: skip
_THREE: dict[str, FnOf] = {
    "fma": fma.function, "fmuladd": fma.function, "amdgcn.fmad.ftz": fma.function,
    "amdgcn.fmed3": native(_med3),
}  # fmt: skip
#: Functions that change no more than the sign.
_MOVES = frozenset({"fabs", "copysign", "arithmetic.fence"})


def function(name: str) -> FnOf:
    """The function of a type behind a call of one operand: ``sin``."""
    return _ONE[name]


TABLE: dict[str, Callable[[Compiler, Inst], list[Op]]] = {
    **{name: elementwise(fn, 1, name not in _MOVES) for name, fn in _ONE.items()},
    **{name: elementwise(fn, 2, name not in _MOVES) for name, fn in _TWO.items()},
    **{name: elementwise(fn, 3) for name, fn in _THREE.items()},
    "ldexp": _ldexp,
    "amdgcn.ldexp": _ldexp,
    "powi": _powi,
    "frexp": _frexp,
    "amdgcn.frexp.mant": _frexp_part(0),
    "amdgcn.frexp.exp": _frexp_part(1),
    "is.fpclass": _class,
    "amdgcn.class": _class,
    **{name: elementwise(fn, count) for name, (fn, count) in bitfn.FUNCTIONS.items()},
    **bitfn.TABLE,
    **cvt.TABLE,
    **trig.TABLE,
}
