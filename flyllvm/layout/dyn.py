"""Symbolic run-time integers that need no IR."""

from __future__ import annotations

from math import gcd

from ..errors import LayoutError
from .leaf import leaf_divisibility, leaf_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .leaf import Leaf


class Dyn:
    """A symbolic run-time integer that needs no IR: ``?``, ``?{div=8}``, ``?{i64 div=8}``.

    Two ``Dyn`` are the same value when they are one object or carry the same name.  Arithmetic gives a new
    ``Dyn`` with the derived width (the larger) and divisibility (add, sub, mod, min, max: gcd; mul: product;
    division: 1).

    Args:
        width: Bits: 32 or 64 (1 for a condition).
        divisibility: A positive int that divides the value.
        name: Identity across objects; not printed.
    """

    __slots__ = ("divisibility", "name", "width")

    def __init__(self, width: int = 32, divisibility: int = 1, name: str | None = None) -> None:
        if width not in (1, 32, 64):
            raise LayoutError(f"a dynamic integer has no width {width}", fix="use a width of 32 or 64 bits")
        if isinstance(divisibility, bool) or not isinstance(divisibility, int) or divisibility < 1:
            raise LayoutError(
                f"divisibility must be a positive int, got {divisibility!r}", fix="use 1 if nothing is known"
            )
        self.width = width
        self.divisibility = divisibility
        self.name = name

    def static_value(self) -> int | None:
        """``None``: the value is not known at compile time."""
        return None

    def same_as(self, other: object) -> bool:
        """Whether ``other`` is certainly the same run-time value."""
        return self is other or (isinstance(other, Dyn) and self.name is not None and self.name == other.name)

    def __bool__(self) -> bool:
        raise LayoutError(f"the truth of {self} is not known at compile time", fix="use a run-time comparison")

    def __repr__(self) -> str:
        parts = ([f"i{self.width}"] if self.width != 32 else []) + (
            [f"div={self.divisibility}"] if self.divisibility != 1 else []
        )
        return "?{" + " ".join(parts) + "}" if parts else "?"

    def _result(self, other: Leaf, divisibility: int) -> Dyn:
        return Dyn(max(self.width, leaf_width(other)), divisibility)

    def _gcd(self, other: Leaf) -> Dyn:
        return self._result(other, gcd(self.divisibility, leaf_divisibility(other)) or 1)

    def _one(self, other: Leaf) -> Dyn:
        return self._result(other, 1)

    def _mul(self, other: Leaf) -> Dyn:
        return self._result(other, max(1, self.divisibility * leaf_divisibility(other)))

    def _condition(self, other: Leaf) -> Dyn:
        return Dyn(1)

    __add__ = __radd__ = __sub__ = __rsub__ = __mod__ = __rmod__ = min_ = max_ = _gcd
    __mul__ = __rmul__ = _mul
    __floordiv__ = __rfloordiv__ = ceil_div_ = rceil_div_ = _one
    __and__ = __rand__ = __rxor__ = __rshift__ = _one
    less_ = greater_ = equal_ = and_ = _condition

    def __xor__(self, other: Leaf) -> Dyn:
        # Only the power of two common to both sides survives an exclusive or.
        common = gcd(self.divisibility, leaf_divisibility(other))
        return self._result(other, (common & -common) or 1)

    def __lshift__(self, bits: int) -> Dyn:
        return Dyn(self.width, self.divisibility << bits)
