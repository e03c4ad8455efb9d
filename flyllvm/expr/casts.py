"""Conversions between number types, on scalars and vectors alike."""

from __future__ import annotations

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Value
    from .number import Numeric


def cast(v: Value, source: type[Numeric], target: type[Numeric], saturate: bool = False) -> Value:
    """A scalar or vector of one number type as another.

    Raises:
        TraceError: There is no instruction for it on the target.
    """
    b = Builder.current()
    if target.ir is source.ir and not (saturate and source.signed is not target.signed):
        return v
    if target.ir is t.I1:
        return _truth(b, v, source)
    if source.signed is not None and target.signed is not None:
        return _integers(b, v, source, target, saturate)
    if _small(source) or _small(target):
        from .small_floats import convert_small

        return convert_small(b, v, source, target, saturate)
    if source.signed is not None:
        return b.cast("arith.sitofp" if source.signed else "arith.uitofp", v, target.ir)
    if target.signed is not None:
        return _to_integer(b, v, source, target, saturate)
    if target.width == source.width:
        # f16 and bf16 meet in f32, which holds both: one rounding.
        return b.cast("arith.truncf", b.cast("arith.extf", v, t.F32), target.ir)
    return b.cast("arith.extf" if target.width > source.width else "arith.truncf", v, target.ir)


def _small(cls: type[Numeric]) -> bool:
    return isinstance(cls.ir, t.FloatType) and cls.ir.is_small


def _truth(b: Builder, v: Value, source: type[Numeric]) -> Value:
    if _small(source):
        raise TraceError(f"{source} as a Boolean", b.location(), "compare a converted number with zero")
    if source.signed is not None:
        return b.cmpi("ne", v, b.constant(0, v.type))
    return b.cmpf("une", v, b.constant(0.0, v.type))


def _integers(b: Builder, v: Value, source: type[Numeric], target: type[Numeric], saturate: bool) -> Value:
    if saturate and source.ir is not t.I1:
        v = _clamped(b, v, source, target)
    if target.width == source.width:
        return v
    if target.width < source.width:
        return b.cast("arith.trunci", v, target.ir)
    made = b.cast("arith.extsi" if source.signed else "arith.extui", v, target.ir)
    if source.ir is not t.I1 and (source.signed or (v.range is not None and v.range[0] >= 0)):
        made.range, made.divisibility = v.range, v.divisibility
    return made


def bounds(cls: type[Numeric]) -> tuple[int, int]:
    """Smallest and largest number of an integer type."""
    if cls.signed:
        return -(1 << (cls.width - 1)), (1 << (cls.width - 1)) - 1
    return 0, (1 << cls.width) - 1


def _clamped(b: Builder, v: Value, source: type[Numeric], target: type[Numeric]) -> Value:
    """The value inside the target's range, still of the source type."""
    (low, high), (least, most) = bounds(target), bounds(source)
    sign = "si" if source.signed else "ui"
    if low > least:
        v = b.binary(f"arith.max{sign}", v, b.constant(low, v.type))
    if high < most:
        v = b.binary(f"arith.min{sign}", v, b.constant(high, v.type))
    return v


def _to_integer(b: Builder, v: Value, source: type[Numeric], target: type[Numeric], saturate: bool) -> Value:
    name = "arith.fptosi" if target.signed else "arith.fptoui"
    if not saturate:
        return b.cast(name, v, target.ir)
    if source.width < 32:
        v, source_ir = b.cast("arith.extf", v, t.F32), t.F32
    else:
        source_ir = t.F64 if source.width == 64 else t.F32
    low, high = bounds(target)
    digits = 53 if source_ir is t.F64 else 24
    # Both ends are exact powers of two, so the comparisons are too; the conversion runs on numbers in between.
    top = float(high + 1)
    below = b.cmpf("olt", v, b.constant(float(low), v.type))
    above = b.cmpf("oge", v, b.constant(top, v.type))
    largest = float(high) if target.width <= digits else top - 2.0 ** (target.width - (target.signed or 0) - digits)
    inside = b.binary("arith.minnumf", v, b.constant(largest, v.type))
    inside = b.binary("arith.maxnumf", inside, b.constant(float(low), v.type))
    made = b.cast(name, inside, target.ir)
    made = b.select(above, b.constant(high, made.type), made)
    made = b.select(below, b.constant(low, made.type), made)
    return b.select(b.cmpf("uno", v, v), b.constant(0, made.type), made)
