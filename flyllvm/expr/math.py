"""Math on numbers and vectors: ``fx.math.exp2(x)``.

``TABLE`` says of every function and type how it is computed: by an instruction LLVM selects, by an expansion of our own
(``math_expand``), through f32, or not at all.  LLVM ends the process over functions it has no code for, and AMDGPU has
no device library; so what is not in the table is refused by name.
"""

from __future__ import annotations

import builtins

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from .fastmath import checked, emit_float, fastmath as flags_block
from .math_table import TABLE, Rule
from .numeric import Boolean, Float32, Int32, Int64, Numeric, as_numeric, promote
from .vector import Vector, where

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _operand(x: Any) -> Any:
    if isinstance(x, (Numeric, Vector)):
        return x
    made = as_numeric(x)
    return Float32(made) if made.signed is not None else made


def _rule(name: str, x: Any) -> Rule:
    kind = x.dtype.ir.text
    rule = TABLE[name].get(kind)
    if rule is None:
        legal = ", ".join(TABLE[name])
        raise TraceError(
            f"math.{name} of {x.dtype}", Builder.current().location(), f"there is code for {legal}: convert with .to()"
        )
    return rule


def emitted(op: str, x: Any, *more: Any) -> Any:
    """One elementwise IR operation on operands of one type, with the fast-math flags in force."""
    made = emit_float(op, x.ir_value(), *(m.ir_value() for m in more))
    return x.like(made) if isinstance(x, Vector) else type(x).wrap(made)


def _apply(name: str, args: tuple[Any, ...]) -> Any:
    rule = _rule(name, args[0])
    if rule.how == "f32":
        wide = _apply(name, tuple(a.to(Float32) for a in args))
        return wide.to(args[0].dtype)
    if rule.how == "llvm":
        return emitted(rule.op, *args)
    from . import math_expand

    run: Callable[..., Any] = getattr(math_expand, rule.op)
    # The steps of an expansion rely on IEEE rounding.
    with flags_block():
        return run(*args)


def _function(name: str, count: int = 1) -> Callable[..., Any]:
    def one(x: Any, *, fastmath: Any = None) -> Any:
        if fastmath is not None:
            with flags_block(*checked(fastmath)):
                return one(x)
        return _apply(name, (_operand(x),))

    def two(x: Any, y: Any, *, fastmath: Any = None) -> Any:
        if fastmath is not None:
            with flags_block(*checked(fastmath)):
                return two(x, y)
        return _apply(name, joined(x, y))

    run = one if count == 1 else two
    run.__name__ = run.__qualname__ = name
    ulps = sorted({f"{r.ulp:g} ulp for {k}" for k, r in TABLE[name].items() if r.how == "own"})
    run.__doc__ = f"``{name}`` of a number or vector." + (f"  Error: at most {', '.join(ulps)}." if ulps else "")
    return run


def joined(*args: Any) -> tuple[Any, ...]:
    """Float operands as one type, and one shape where one of them is a vector."""
    from .operators import refuse_negative
    from .vector_ops import joined as vectors

    vector = next((a for a in args if isinstance(a, Vector)), None)
    first = next((a for a in args if isinstance(a, Numeric)), None)
    like = vector.dtype if vector is not None else type(first) if first is not None else None
    given = [a if isinstance(a, (Numeric, Vector)) else as_numeric(a, like) for a in args]
    cls = given[0].dtype
    for a in given[1:]:
        cls = promote(cls, a.dtype)
    if vector is None:
        refuse_negative(cls, *given)
        return tuple(cls(a) for a in given)
    out = [a.to(cls) for a in given]
    shaped = next(a for a in out if isinstance(a, Vector))
    return tuple(vectors(shaped, a, arithmetic=False)[1] for a in out)


absf, ceil, floor, trunc = _function("absf"), _function("ceil"), _function("floor"), _function("trunc")
round, roundeven = _function("round"), _function("roundeven")
exp, exp2, expm1 = _function("exp"), _function("exp2"), _function("expm1")
log, log2, log10, log1p = _function("log"), _function("log2"), _function("log10"), _function("log1p")
sqrt, rsqrt, cbrt = _function("sqrt"), _function("rsqrt"), _function("cbrt")
sin, cos, tan = _function("sin"), _function("cos"), _function("tan")
asin, acos, atan, atan2 = _function("asin"), _function("acos"), _function("atan"), _function("atan2", 2)
sinh, cosh, tanh = _function("sinh"), _function("cosh"), _function("tanh")
erf, powf, copysign = _function("erf"), _function("powf", 2), _function("copysign", 2)
maxnumf, minnumf = _function("maxnumf", 2), _function("minnumf", 2)
maximumf, minimumf = _function("maximumf", 2), _function("minimumf", 2)


def sincos(x: Any, *, fastmath: Any = None) -> tuple[Any, Any]:
    """(sine, cosine)."""
    return sin(x, fastmath=fastmath), cos(x, fastmath=fastmath)


def _refused(name: str, instead: str) -> Callable[..., Any]:
    def run(*args: Any, fastmath: Any = None) -> Any:
        raise TraceError(f"math.{name} has no code on AMDGPU", Builder.current().location(), instead)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"Refused: {instead}."
    return run


erfc = _refused("erfc", "use 1 - erf(x) where its cancellation for large x does not matter")
asinh = _refused("asinh", "use log(x + sqrt(x * x + 1)), which is exact enough for x > 1")
acosh = _refused("acosh", "use log(x + sqrt(x * x - 1))")
atanh = _refused("atanh", "use 0.5 * log1p(2 * x / (1 - x))")


def fma(a: Any, b: Any, c: Any, *, fastmath: Any = None) -> Any:
    """``a * b + c`` with one rounding."""
    if fastmath is not None:
        with flags_block(*checked(fastmath)):
            return fma(a, b, c)
    x, y, z = joined(a, b, c)
    if x.dtype.signed is not None:
        raise TraceError(f"fma of {x.dtype}", Builder.current().location(), "use floats, or a * b + c")
    return emitted("math.fma", x, y, z)


def clampf(x: Any, low: Any, high: Any, *, fastmath: Any = None) -> Any:
    """``x`` inside [low, high]; NaN gives ``low``."""
    return minnumf(maxnumf(x, low, fastmath=fastmath), high, fastmath=fastmath)


# --- classes of floats ---------------------------------------------------------------------------


def _compared(x: Any, predicate: str, bound: float | None) -> Any:
    b = Builder.current()
    v = x.ir_value()
    other = v if bound is None else b.constant(bound, v.type)
    made = b.cmpf(predicate, v, other)
    return x.like(made, Boolean) if isinstance(x, Vector) else Boolean.wrap(made)


def isnan(x: Any) -> Any:
    """Whether a float is not a number."""
    return _compared(_operand(x), "uno", None)


def isinf(x: Any) -> Any:
    """Whether a float is an infinity."""
    return _compared(absf(x), "oeq", float("inf"))


def isfinite(x: Any) -> Any:
    """Whether a float is neither infinite nor NaN."""
    return _compared(absf(x), "olt", float("inf"))


def isnormal(x: Any) -> Any:
    """Whether a float is finite, not zero, and no denormal."""
    magnitude = absf(x)
    smallest = {"f16": 2.0**-14, "bf16": 2.0**-126, "f32": 2.0**-126, "f64": 2.0**-1022}[magnitude.dtype.ir.text]
    return _compared(magnitude, "oge", smallest) & _compared(magnitude, "olt", float("inf"))


# --- integers ------------------------------------------------------------------------------------


def _int_function(name: str) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        made = x if isinstance(x, (Numeric, Vector)) else as_numeric(x)
        if made.dtype.signed is None or made.dtype is Boolean:
            raise TraceError(f"{name} of {made.dtype}", Builder.current().location(), "use an integer")
        v = Builder.current().unary(f"math.{name}", made.ir_value())
        return made.like(v) if isinstance(made, Vector) else type(made).wrap(v)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = _INTEGER[name]
    return run


_INTEGER = {
    "ctlz": "Zero bits above the highest one; the width of the type for 0.",
    "cttz": "Zero bits below the lowest one; the width of the type for 0.",
    "ctpop": "Number of bits that are one.",
    "absi": "The magnitude.",
}
ctlz, cttz, ctpop = _int_function("ctlz"), _int_function("cttz"), _int_function("ctpop")
_absi = _int_function("absi")


def absi(x: Any) -> Any:
    """The magnitude of an integer; the smallest number stays as it is."""
    made = x if isinstance(x, (Numeric, Vector)) else as_numeric(x)
    return made if made.dtype.signed is False else _absi(made)


def powi(x: Any, n: int) -> Any:
    """``x`` to a known integer power, by repeated multiplication."""
    if n < 0:
        if x.dtype.signed is not None:
            raise TraceError(f"an integer to the power {n}", Builder.current().location(), "use a float")
        return 1.0 / powi(x, -n)
    result, square = None, x
    while n:
        if n & 1:
            result = square if result is None else result * square
        n >>= 1
        square = square * square if n else square
    if result is not None:
        return result
    return Vector.filled(x.shape, 1, x.dtype) if isinstance(x, Vector) else x.dtype(1)


def _known_power(name: str, n: Any) -> int:
    known = as_numeric(n).static_value() if not isinstance(n, Vector) else None
    if not isinstance(known, int):
        where = Builder.current().location()
        raise TraceError(f"{name} with a run-time exponent", where, "use powf, or a compile-time exponent")
    return known


def fpowi(x: Any, n: Any, *, fastmath: Any = None) -> Any:
    """A float to a compile-time integer power."""
    if fastmath is not None:
        with flags_block(*checked(fastmath)):
            return fpowi(x, n)
    return powi(_operand(x), _known_power("fpowi", n))


def ipowi(x: Any, n: Any) -> Any:
    """An integer to a compile-time integer power; it wraps."""
    return powi(x if isinstance(x, (Numeric, Vector)) else as_numeric(x), _known_power("ipowi", n))


def ceildiv(a: Any, b: Any) -> Any:
    """``a / b`` rounded up."""
    x = a if isinstance(a, (Numeric, Vector)) else as_numeric(a, type(b) if isinstance(b, Numeric) else None)
    quotient = x // b
    return where(x - quotient * b != 0, quotient + 1, quotient)


def shrui(a: Any, n: Any) -> Any:
    """A shift to the right that fills with zeros, whatever the sign of the type."""
    x = a if isinstance(a, (Numeric, Vector)) else as_numeric(a)
    if x.dtype.signed is None:
        raise TraceError(f"shrui of {x.dtype}", Builder.current().location(), "use an integer")
    from .numeric import TYPES

    unsigned = TYPES[f"Uint{x.dtype.width}"]
    return (x.bitcast(unsigned) >> n).bitcast(x.dtype)


_CMP: dict[str, Callable[[Any, Any], Any]] = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b, "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
}  # fmt: skip


def cmpi(predicate: str, a: Any, b: Any) -> Any:
    """Integer comparison by MLIR's name: ``eq``, ``slt``, ``uge``, ...; the letter decides the sign."""
    from .numeric import TYPES

    x = a if isinstance(a, (Numeric, Vector)) else as_numeric(a, type(b) if isinstance(b, Numeric) else None)
    y = b if isinstance(b, (Numeric, Vector)) else as_numeric(b, x.dtype)
    kind = predicate if predicate in ("eq", "ne") else predicate[1:]
    if kind not in _CMP or predicate[0] not in "suen" or x.dtype.signed is None:
        raise TraceError(
            f"cmpi({predicate!r}) of {x.dtype}", fix="use eq, ne, or s / u with lt, le, gt, ge, on integers"
        )
    if kind != predicate:
        name = ("Int" if predicate[0] == "s" else "Uint") + str(x.dtype.width)
        x, y = x.bitcast(TYPES[name]), y.to(x.dtype).bitcast(TYPES[name])
    return _CMP[kind](x, y)


def cmpf(predicate: str, a: Any, b: Any) -> Any:
    """Float comparison by MLIR's name: ``oeq``, ``olt``, ``uno``, ..."""
    from ..ir.ops_arith import CMPF

    x, y = joined(a, b)
    if predicate not in CMPF or x.dtype.signed is not None:
        raise TraceError(f"cmpf({predicate!r}) of {x.dtype}", fix=f"use one of {', '.join(CMPF)}, on floats")
    made = Builder.current().cmpf(predicate, x.ir_value(), y.ir_value())
    return x.like(made, Boolean) if isinstance(x, Vector) else Boolean.wrap(made)


# --- extremes ------------------------------------------------------------------------------------


def _mixed_signs(*numbers: Any) -> bool:
    """Whether a number that may be negative stands beside one of an unsigned type."""
    from .operators import nonneg

    known = [x if isinstance(x, Vector) else as_numeric(x) for x in numbers]
    may = [x.dtype.signed and (isinstance(x, Vector) or not nonneg(x)) for x in known]
    return any(may) and any(x.dtype.signed is False and x.dtype is not Boolean for x in known)


def _extreme(index_name: str, name: str) -> Callable[..., Any]:
    pick: Callable[..., Any] = getattr(builtins, name)

    def run(a: Any, b: Any, *rest: Any) -> Any:
        if rest:
            return run(run(a, b), *rest)
        x, y = joined(a, b)
        cls, builder = x.dtype, Builder.active()
        if cls.signed is False and _mixed_signs(a, b):
            return where(a > b if name == "max" else a < b, a, b)
        static = isinstance(x, Numeric) and x.is_static and y.is_static
        if static and cls.signed is not None:
            return cls.wrap(pick(x._v, y._v))
        if cls.signed is None:
            return emitted(f"arith.{name}numf", x, y)
        if cls in (Int32, Int64) and isinstance(x, Numeric) and builder is not None:
            made = getattr(builder, index_name)(x._v, y._v)
            return cls(made) if isinstance(made, int) or made.type != cls.ir else cls.wrap(made)
        v = Builder.current().binary(f"arith.{name}{'si' if cls.signed else 'ui'}", x.ir_value(), y.ir_value())
        return x.like(v) if isinstance(x, Vector) else cls.wrap(v)

    run.__name__ = run.__qualname__ = name
    run.__doc__ = f"The {'larger' if name == 'max' else 'smaller'}; of floats, a NaN loses."
    return run


max = _extreme("index_max", "max")
min = _extreme("index_min", "min")


def rcp(x: Any) -> Any:
    """The hardware's reciprocal: 1 ulp of f32, denormals of the result are flushed; ``1 / x`` is exactly rounded."""
    made = _operand(x)
    if not isinstance(made.dtype.ir, t.FloatType) or made.dtype.ir.is_small:
        raise TraceError(f"rcp of {made.dtype}", Builder.current().location(), "use Float16, BFloat16 or Float32")
    return emitted("rocdl.rcp", made)
