"""Single leaves that differ: conditions, the type two numbers have in common, and what cannot become one value."""

from __future__ import annotations

from math import gcd

from ..errors import FlyError, TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .control_tree import describe
from .numeric import Boolean, Float32, Int32, Int64, Numeric, as_numeric, of_ir, promote
from .pointer import Pointer
from .tensor import Tensor
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Number = (Numeric, bool, int, float)


class Mismatch(Exception):
    """Two values that cannot become one; the text says how they differ, ``fix`` what to write."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(text)
        self.fix = fix


def truth(x: Any) -> bool | Value:
    """A condition: a bool where it is known, else an i1."""
    if x is True or x is False:
        return x
    if isinstance(x, Value):
        x = of_ir(x)
    if isinstance(x, Numeric):
        known = x.static_value()
        if known is not None:
            return bool(known)
        return x.ir_value() if type(x) is Boolean else Boolean(x).ir_value()
    if isinstance(x, (Vector, Tensor, Pointer)):
        raise TraceError(
            f"{describe(x)} is used as a condition", Builder.current().location(), "compare or reduce it to one Boolean"
        )
    return bool(x)


def is_traced(x: Any) -> bool:
    """Whether a leaf is known at run time only."""
    return isinstance(x, Value) or (isinstance(x, Numeric) and not x.is_static)


def number_type(a: Any, b: Any, promoting: bool = False) -> type[Numeric] | None:
    """The type two numbers have in common; Python numbers take the other's type where they fit it."""
    if isinstance(a, Numeric) or isinstance(b, Numeric):
        x = a if isinstance(a, Numeric) else as_numeric(a, type(b))
        y = b if isinstance(b, Numeric) else as_numeric(b, type(x))
        if type(x) is type(y):
            return type(x)
        try:
            return promote(type(x), type(y), arithmetic=False) if promoting else None
        except FlyError:
            return None
    if isinstance(a, float) or isinstance(b, float):
        return Float32
    if isinstance(a, bool) and isinstance(b, bool):
        return Boolean
    return Int64 if Int64 in (type(as_numeric(int(a))), type(as_numeric(int(b)))) else Int32


class Slot:
    """A leaf that differs.

    Attributes:
        number: Number type of the joined leaf; ``None`` for other IR values, which join as they are.
        type: IR type of the joined leaf.
        values: The leaf on each way.
        divisibility: In a loop, what the integer is a multiple of in every iteration; ``None`` when that is not looked
            for yet.
    """

    __slots__ = ("divisibility", "number", "type", "values")

    def __init__(self, number: type[Numeric] | None, type: t.Type, values: tuple[Any, ...]) -> None:
        self.number = number
        self.type = type
        self.values = values
        self.divisibility: int | None = None

    def value(self, way: int) -> Value:
        """The IR value on one way, emitted at the current place."""
        x = self.values[way]
        if self.number is not None:
            return self.number(x).ir_value()
        return x if x.type == self.type else lowered(x, self.type)

    def wrap(self, value: Value) -> Any:
        """The joined leaf."""
        return value if self.number is None else self.number.wrap(value)


def lowered(x: Value, type: t.Type) -> Value:
    """A pointer with a weaker alignment."""
    return Builder.current().emit("fly.recast_iter", [x], [type]).results[0]


def slot_of(a: Any, b: Any, promoting: bool = False) -> Slot | None:
    """How two leaves that differ join; ``None`` when they cannot."""
    if isinstance(a, Number) and isinstance(b, Number):
        number = number_type(a, b, promoting)
        return None if number is None else Slot(number, number.ir, (a, b))
    if not isinstance(a, Value) or not isinstance(b, Value):
        return None
    type_ = weaker(a.type, b.type)
    if type_ is None or (isinstance(type_, t.PtrType) and type_.space == "register"):
        return None
    return Slot(None, type_, (a, b))


def weaker(p: t.Type, q: t.Type) -> t.Type | None:
    """The type of both: equal, or pointers that differ in their alignment; else ``None``."""
    if p == q:
        return p
    if isinstance(p, t.PtrType) and isinstance(q, t.PtrType):
        made = p.with_(align=gcd(p.align, q.align))
        return made if q.with_(align=made.align) == made else None
    return None


def mismatch(name: str, a: Any, b: Any, where: tuple[str, str]) -> Mismatch:
    """Says how two values of a variable differ."""
    text = f"{name} is {describe(a)} {where[0]} and {describe(b)} {where[1]}"
    for x, y in ((a, b), (b, a)):
        if x is None:
            of = f"fx.{type(y).__name__}(0)" if isinstance(y, Numeric) else "a zero vector"
            fix = f"give {name} a start value of its type instead of None (such as {of})"
            return Mismatch(text, f"{fix}, or decide at compile time with fx.const_expr")
    if any(isinstance(x, Tensor) and x.address_space == "register" for x in (a, b)):
        return Mismatch(text, "register memory cannot be chosen at run time: copy its values, or unroll the loop")
    if all(isinstance(x, Number) for x in (a, b)):
        kinds = [type(x) for x in (a, b) if isinstance(x, Numeric)]
        return Mismatch(text, f"convert both to one type, such as fx.{kinds[-1]}(...)")
    return Mismatch(text, "keep its type, shape and length the same, or choose at compile time with fx.const_expr")
