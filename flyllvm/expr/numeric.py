"""Numbers of the authoring language: typed scalars with defined promotion.

A ``Numeric`` holds either a Python number (known while tracing) or an IR value.  Operators follow
FlyDSL's promotion rules: float with integer gives the float; two floats the wider one, f16 with bf16
gives f32; two integers the wider one, and of equal width the unsigned one.  Integers wrap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value

if TYPE_CHECKING:
    from typing import Self

Number = (int, float)


class NumericMeta(type):
    """Makes number types print by their name."""

    def __repr__(cls) -> str:
        return cls.__name__


class Numeric(metaclass=NumericMeta):
    """Base of all number types.

    Class attributes:
        ir: The IR type.
        width: Size in bits.
        signed: Sign of an integer type, ``None`` for floats.
    """

    __slots__ = ("_v",)

    ir: ClassVar[t.ScalarType]
    width: ClassVar[int]
    signed: ClassVar[bool | None]

    def __init__(self, value: Any) -> None:
        self._v = _convert(value, type(self))

    @classmethod
    def wrap(cls, value: Value | int | float) -> Self:
        """A number around an IR value of exactly this type, or a Python number already in range."""
        self = cls.__new__(cls)
        self._v = value
        return self

    @property
    def is_static(self) -> bool:
        """True when the number is known while tracing."""
        return not isinstance(self._v, Value)

    @property
    def dtype(self) -> type[Numeric]:
        """The number's type."""
        return type(self)

    def ir_value(self) -> Value:
        """The IR value; a known number becomes a constant."""
        v = self._v
        return v if isinstance(v, Value) else Builder.current().constant(v, self.ir)

    def static_value(self) -> int | float | None:
        """The number if it is known while tracing."""
        return self._v.static_value() if isinstance(self._v, Value) else self._v

    def to(self, dtype: type[Numeric]) -> Any:
        """The number converted to another type: round to nearest even, integers wrap."""
        return dtype(self)

    def bitcast(self, dtype: type[Numeric]) -> Any:
        """The same bits as another type of equal width."""
        if dtype.width != self.width:
            raise TraceError(f"bitcast of {type(self)} to {dtype}", fix=f"choose a type of {self.width} bits")
        return dtype.wrap(Builder.current().bitcast(self.ir_value(), dtype.ir))

    def select(self, a: Any, b: Any) -> Any:
        """``a`` where this Boolean is true, else ``b``."""
        return select(self, a, b)

    def __bool__(self) -> bool:
        known = self.static_value()
        if known is None:
            raise TraceError(
                f"a run-time {type(self)} decides Python control flow here",
                Builder.current().location(),
                "use it in the 'if', 'while' or conditional expression of a kernel, or fx.select; "
                "for a compile-time choice use a Python value or fx.const_expr",
            )
        return bool(known)

    def __index__(self) -> int:
        known = self.static_value()
        if not isinstance(known, int):
            raise TraceError(
                f"a run-time {type(self)} is used where Python needs an int",
                Builder.current().location(),
                "use a compile-time value, or a traced loop over range(...)",
            )
        return known

    __int__ = __index__

    def __float__(self) -> float:
        known = self.static_value()
        if known is None:
            raise TraceError(
                f"a run-time {type(self)} has no Python value", Builder.current().location(), "keep it traced"
            )
        return float(known)

    def __hash__(self) -> int:
        return hash((type(self), id(self._v) if isinstance(self._v, Value) else self._v))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._v!r})"


def _type(name: str, ir: t.ScalarType, signed: bool | None) -> type[Numeric]:
    doc = f"{name}: {ir.bits} bits."
    return NumericMeta(
        name, (Numeric,), {"__slots__": (), "ir": ir, "width": ir.bits, "signed": signed, "__doc__": doc}
    )  # type: ignore[return-value]


Boolean = _type("Boolean", t.I1, False)
Int4, Int8, Int16 = (_type(f"Int{b}", t.int_type(b), True) for b in (4, 8, 16))
Int32, Int64, Int128 = (_type(f"Int{b}", t.int_type(b), True) for b in (32, 64, 128))
Uint8, Uint16 = (_type(f"Uint{b}", t.int_type(b), False) for b in (8, 16))
Uint32, Uint64, Uint128 = (_type(f"Uint{b}", t.int_type(b), False) for b in (32, 64, 128))
Index = Int32
Float16, BFloat16 = _type("Float16", t.F16, None), _type("BFloat16", t.BF16, None)
Float32, Float64 = _type("Float32", t.F32, None), _type("Float64", t.F64, None)
Float8E4M3FN, Float8E5M2 = _type("Float8E4M3FN", t.F8E4M3FN, None), _type("Float8E5M2", t.F8E5M2, None)
Float8E4M3FNUZ = _type("Float8E4M3FNUZ", t.F8E4M3FNUZ, None)
Float8E5M2FNUZ = _type("Float8E5M2FNUZ", t.F8E5M2FNUZ, None)
Float8E8M0FNU = _type("Float8E8M0FNU", t.F8E8M0FNU, None)
Float6E2M3FN, Float6E3M2FN = _type("Float6E2M3FN", t.F6E2M3FN, None), _type("Float6E3M2FN", t.F6E3M2FN, None)
Float4E2M1FN = _type("Float4E2M1FN", t.F4E2M1FN, None)

TYPES: dict[str, type[Numeric]] = {
    cls.__name__: cls
    for cls in (
        Boolean, Int4, Int8, Int16, Int32, Int64, Int128, Uint8, Uint16, Uint32, Uint64, Uint128, Float16, BFloat16,
        Float32, Float64, Float8E4M3FN, Float8E5M2, Float8E4M3FNUZ, Float8E5M2FNUZ, Float8E8M0FNU, Float6E2M3FN,
        Float6E3M2FN, Float4E2M1FN,
    )
}  # fmt: skip
#: The signed or float type of an IR scalar.
BY_IR: dict[str, type[Numeric]] = {c.ir.text: c for c in reversed(TYPES.values()) if c.signed is not False}
BY_IR["i1"] = Boolean


def of_ir(value: Value, signed: bool = True) -> Numeric:
    """A number around an IR value, by its type."""
    cls = BY_IR[t.scalar_of(value.type).text]
    if not signed and cls.signed:
        cls = TYPES[f"U{cls.__name__.lower()}"]
    return cls.wrap(value)


def _wrap_int(value: int, cls: type[Numeric]) -> int:
    value &= (1 << cls.width) - 1
    return value - (1 << cls.width) if cls.signed and value >> (cls.width - 1) else value


def _static(value: int | float, cls: type[Numeric]) -> int | float:
    if cls is Boolean:
        return int(bool(value))
    if cls.signed is None:
        return float(value)
    return _wrap_int(int(value), cls)


def _convert(value: Any, cls: type[Numeric]) -> Value | int | float:
    if isinstance(value, Numeric):
        if isinstance(value._v, Value):
            return value._v if type(value) is cls else _cast(value._v, type(value), cls)
        value = value._v
    if isinstance(value, Value):
        source = BY_IR.get(value.type.text)
        if source is None:
            raise TraceError(f"{cls} of a value of type {value.type}", fix="convert a scalar")
        return value if value.type == cls.ir else _cast(value, source, cls)
    if isinstance(value, Number):
        return _static(value, cls)
    try:
        return _static(value.item(), cls)
    except AttributeError:
        raise TraceError(f"{cls}({value!r}): not a number", fix="pass a Python or traced number") from None


def _cast(v: Value, source: type[Numeric], target: type[Numeric]) -> Value:
    b = Builder.current()
    if target is Boolean:
        zero = b.constant(0 if source.signed is not None else 0.0, source.ir)
        return b.cmpi("ne", v, zero) if source.signed is not None else b.cmpf("une", v, zero)
    if source.signed is not None and target.signed is not None:
        if target.width == source.width:
            return v
        if target.width < source.width:
            return b.cast("arith.trunci", v, target.ir)
        made = b.cast("arith.extsi" if source.signed else "arith.extui", v, target.ir)
        made.range, made.divisibility = v.range, v.divisibility
        return made
    _refuse_small(source, target)
    if source.signed is not None:
        return b.cast("arith.sitofp" if source.signed else "arith.uitofp", v, target.ir)
    if target.signed is not None:
        return b.cast("arith.fptosi" if target.signed else "arith.fptoui", v, target.ir)
    if target.width == source.width:  # f16 and bf16 meet in f32
        return b.cast("arith.truncf", b.cast("arith.extf", v, t.F32), target.ir)
    return b.cast("arith.extf" if target.width > source.width else "arith.truncf", v, target.ir)


def _refuse_small(*types: type[Numeric]) -> None:
    for cls in types:
        if isinstance(cls.ir, t.FloatType) and cls.ir.is_small:
            raise TraceError(
                f"no conversion to or from {cls} here", Builder.current().location(), "use the fx.rocdl.cvt_* functions"
            )


# --- promotion -----------------------------------------------------------------------------------


def promote(a: type[Numeric], b: type[Numeric], arithmetic: bool = True) -> type[Numeric]:
    """The common type of two operands.

    Raises:
        TraceError: There is none; an explicit cast is needed.
    """
    if arithmetic:
        a, b = (Int32 if c is Boolean else c for c in (a, b))
    if a is b:
        return a
    if (a.signed is None) != (b.signed is None):
        f, i = (a, b) if a.signed is None else (b, a)
        _rank_needed(f, i)
        return f if f.width >= i.width or i.width <= 16 else (Float32 if i.width <= 32 else Float64)
    if a.signed is None:
        _rank_needed(a, b)
        if a.width == b.width:
            return Float32
        return a if a.width > b.width else b
    if a.signed == b.signed:
        return a if a.width >= b.width else b
    u, s = (b, a) if a.signed else (a, b)
    return u if u.width >= s.width else s


def _rank_needed(a: type[Numeric], b: type[Numeric]) -> None:
    for cls in (a, b):
        if cls.signed is None and cls.width < 16:
            raise TraceError(f"{a} with {b}: {cls} takes part in no promotion", fix="cast it with .to(fx.Float32)")


def as_numeric(x: Any, like: type[Numeric] | None = None) -> Numeric:
    """A number; Python numbers take the type of the other operand where they fit it."""
    if isinstance(x, Numeric):
        return x
    if isinstance(x, Value):
        return of_ir(x)
    if isinstance(x, bool):
        return Boolean(x)
    if isinstance(x, int):
        if like is not None and (like.signed is None or _wrap_int(x, like) == x):
            return like(x)
        return Int32(x) if -(1 << 31) <= x < 1 << 31 else Int64(x)
    if isinstance(x, float):
        return like(x) if like is not None and like.signed is None else Float32(x)
    raise TraceError(f"{x!r} is not a number", fix="use Python or traced numbers")


def select(cond: Any, a: Any, b: Any) -> Any:
    """``a`` where ``cond``, else ``b``; no branch.  Both become their common type."""
    c = as_numeric(cond)
    known = c.static_value()
    if known is not None:
        return a if known else b
    x = as_numeric(a, type(b) if isinstance(b, Numeric) else None)
    y = as_numeric(b, type(x))
    cls = type(x) if type(x) is type(y) else promote(type(x), type(y), arithmetic=False)
    flag = c.ir_value() if type(c) is Boolean else Boolean(c).ir_value()
    return cls.wrap(Builder.current().select(flag, cls(x).ir_value(), cls(y).ir_value()))
