"""The base of all numbers of the language: a Python number known while tracing, or an IR value."""

from __future__ import annotations

from struct import pack, unpack

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .casts import cast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar, Self

#: Every number type by its name, and the signed or float type of an IR scalar by its text.
TYPES: dict[str, type[Numeric]] = {}
BY_IR: dict[str, type[Numeric]] = {}


class NumericMeta(type):
    """Makes number types print by their name."""

    def __repr__(cls) -> str:
        return cls.__name__


class Numeric(metaclass=NumericMeta):
    """Base of all number types.

    Class attributes:
        ir: The IR type.
        width: Size in bits.
        signed: Sign of an integer type (a Boolean has none), ``None`` for floats.
    """

    __slots__ = ("_v",)

    ir: ClassVar[t.ScalarType]
    width: ClassVar[int]
    signed: ClassVar[bool | None]

    def __init_subclass__(cls, *, ir: t.ScalarType, signed: bool | None) -> None:
        cls.ir, cls.width, cls.signed = ir, ir.bits, signed
        TYPES[cls.__name__] = cls
        if signed is not False or ir is t.I1:
            BY_IR[ir.text] = cls

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

    def to(self, dtype: type[Numeric], *, saturate: bool = False) -> Any:
        """The number converted to another type.

        Integers wrap.  A float becomes an integer by dropping the fraction; outside of the target's range the result
        is undefined unless ``saturate`` clamps it (NaN gives 0).  Floats round to nearest, ties to even.

        Raises:
            TraceError: The target has no instruction for the conversion.
        """
        if not isinstance(dtype, NumericMeta):
            raise TraceError(f"to({dtype!r})", fix="pass a number type such as fx.Float32")
        if isinstance(self._v, Value):
            return dtype.wrap(cast(self._v, type(self), dtype, saturate)) if type(self) is not dtype else self
        return dtype.wrap(_saturated(self._v, dtype) if saturate else in_range(self._v, dtype))

    def bitcast(self, dtype: type[Numeric]) -> Any:
        """The same bits as another type of equal width."""
        if dtype.width != self.width:
            raise TraceError(f"bitcast of {type(self)} to {dtype}", fix=f"choose a type of {self.width} bits")
        if dtype is type(self):
            return self
        if dtype.ir == self.ir:
            v = self._v
            return dtype.wrap(v if isinstance(v, Value) else in_range(v, dtype))
        return dtype.wrap(Builder.current().bitcast(self.ir_value(), dtype.ir))

    def select(self, a: Any, b: Any) -> Any:
        """``a`` where this Boolean is true, else ``b``."""
        from .numeric import choose

        return choose(self, a, b)

    def __bool__(self) -> bool:
        known = self.static_value()
        if known is None:
            raise TraceError(
                f"a run-time {type(self)} decides Python control flow here",
                Builder.current().location(),
                "use it in an if, while or conditional expression of a kernel, or fx.where, fx.max, fx.min, `|`, `&` "
                "(lambdas, conditions of comprehensions, min, max, any, all, sorted, `in`, match, assert and library "
                "code run as plain Python); for a compile-time choice use a Python value",
            )
        return bool(known)

    def __index__(self) -> int:
        known = self.static_value()
        if not isinstance(known, int):
            raise TraceError(
                f"a run-time {type(self)} is used where Python needs an int",
                Builder.current().location(),
                "use a compile-time value, or a loop that goes over range(...) itself; keep what a run-time number "
                "picks in a tensor, and convert numbers with .to(fx.Int32)",
            )
        return known

    def __int__(self) -> int:
        known = self.static_value()
        return int(known) if known is not None else self.__index__()

    def __float__(self) -> float:
        known = self.static_value()
        if known is None:
            raise TraceError(
                f"a run-time {type(self)} has no Python value",
                Builder.current().location(),
                "keep it traced: convert it with .to(fx.Float32), and use fx.math instead of Python's",
            )
        return float(known)

    def __format__(self, form: str) -> str:
        known = self.static_value()
        if not form:
            return str(self)
        if known is None:
            raise TraceError(
                f"the format {form!r} of a run-time {type(self)}",
                Builder.current().location(),
                "its value is known on the GPU only: print it with fx.printf",
            )
        return format(known, form)

    def __hash__(self) -> int:
        return hash((type(self), id(self._v) if isinstance(self._v, Value) else self._v))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._v!r})"

    if TYPE_CHECKING:
        # Put on the class by operators.py.
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __eq__(self, other: object) -> Any: ...
        def __ne__(self, other: object) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...


def wrap_int(value: int, cls: type[Numeric]) -> int:
    """The integer cut to the width of a type, as C does."""
    value &= (1 << cls.width) - 1
    return value - (1 << cls.width) if cls.signed and value >> (cls.width - 1) else value


_FORMATS = {"f16": "<e", "f32": "<f"}


def round_float(value: float, cls: type[Numeric]) -> float:
    """A Python float rounded to a float type, ties to even; small floats are rounded when they become constants."""
    name = cls.ir.text
    if name == "f64" or value != value or value in (float("inf"), float("-inf")):
        return value
    if name == "bf16":
        return _round_bf16(value)
    code = _FORMATS.get(name)
    if code is None:
        return value
    try:
        return float(unpack(code, pack(code, value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _round_bf16(value: float) -> float:
    # From the bits of the double, so that no rounding to f32 comes before.
    from math import copysign, frexp, ldexp

    mantissa, exponent = frexp(value)
    digits = 8 if exponent > -126 else 8 - (-125 - exponent)
    if digits < 0:
        return copysign(0.0, value)
    made = copysign(ldexp(float(round(ldexp(mantissa, digits))), exponent - digits), value)
    return made if abs(made) < 2.0**128 else float("inf") if value > 0 else float("-inf")


def in_range(value: int | float, cls: type[Numeric]) -> int | float:
    """A Python number as a constant of a type: integers wrap, floats round.

    Raises:
        TraceError: NaN, an infinity or a float out of range becomes an integer.
    """
    if cls.ir is t.I1:
        return int(bool(value))
    if cls.signed is None:
        return round_float(float(value), cls)
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        raise TraceError(f"{cls}({value}): no integer", fix="convert it with saturate=True, or use a finite number")
    if isinstance(value, float) and wrap_int(int(value), cls) != int(value):
        raise TraceError(
            f"{cls}({value}): out of range", fix="convert it with saturate=True, or convert int(x), which wraps"
        )
    return wrap_int(int(value), cls)


def _saturated(value: int | float, cls: type[Numeric]) -> int | float:
    if cls.signed is None or cls.ir is t.I1:
        return in_range(value, cls)
    if value != value:
        return 0
    low = -(1 << (cls.width - 1)) if cls.signed else 0
    high = (1 << (cls.width - (1 if cls.signed else 0))) - 1
    return low if value <= low else high if value >= high else int(value)


def _convert(value: Any, cls: type[Numeric]) -> Value | int | float:
    if isinstance(value, Numeric):
        if isinstance(value._v, Value):
            return value._v if type(value) is cls else cast(value._v, type(value), cls)
        value = value._v
    if isinstance(value, (int, float)):
        return in_range(value, cls)
    if isinstance(value, Value):
        source = BY_IR.get(value.type.text)
        if source is None:
            raise TraceError(f"{cls} of a value of type {value.type}", fix="convert a scalar")
        return value if value.type == cls.ir else cast(value, source, cls)
    item = getattr(value, "item", None)
    number = item() if callable(item) and not getattr(value, "shape", ()) else None
    if isinstance(number, (int, float)):
        return in_range(number, cls)
    raise TraceError(f"{cls}({value!r}): not a number", fix="pass a Python or traced number")
