"""Index arithmetic of the builder: ints and i32 / i64 values mixed, folding what is known.

``index_add`` and its kin return an int where both operands are known, use ranges and divisibility, and
order sums so that loop-invariant parts come first and constants last.  Layout arithmetic is index
arithmetic; like the fly dialect's it assumes that no index overflows its width.
"""

from __future__ import annotations

from math import gcd

from ..errors import TraceError, VerifyError
from .build_arith import ArithBuilder
from .core import Value

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Index = int | Value


def _interval(v: Index) -> tuple[int, int] | None:
    return (v, v) if isinstance(v, int) else v.range


def _div_of(v: Index) -> int:
    return abs(v) if isinstance(v, int) else v.divisibility


class IndexBuilder(ArithBuilder):
    """The part of ``Builder`` for index arithmetic."""

    # --- index arithmetic ------------------------------------------------------------------------

    def _index(self, name: str, a: Index, b: Index, div: int, rng: tuple[int, int] | None) -> Value:
        x, y = self.same_width(a, b)
        bits = x.width
        attrs: dict[str, Any] | None = None
        if rng is not None and name in ("arith.addi", "arith.subi", "arith.muli", "arith.shli"):
            if -(1 << (bits - 1)) <= rng[0] and rng[1] < 1 << (bits - 1):
                nuw = (
                    rng[0] >= 0
                    and name != "arith.subi"
                    and min((_interval(a) or (-1,))[0], (_interval(b) or (-1,))[0]) >= 0
                )
                attrs = {"overflow": ("nsw", "nuw") if nuw else ("nsw",)}
            else:
                rng = None
        made = self.emit(name, [x, y], [x.type], attrs)
        made.checked = True  # two integers of one width: right by construction
        v = made.results[0]
        v.divisibility = max(v.divisibility, div) if div else v.divisibility
        if rng is not None:
            v.range = rng
        return v

    def index_add(self, a: Index, b: Index) -> Index:
        """``a + b``; constants gather at the end and loop-invariant parts at the front of a sum."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        a, b = known_index(a), known_index(b)
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int):
            return a + b if isinstance(b, int) else self.index_add(b, a)
        if isinstance(b, int):
            if b == 0:
                return a
            inner = split_constant(a)
            if inner is not None:
                return self.index_add(inner[0], inner[1] + b)
        else:
            for x, y in ((a, b), (b, a)):
                inner = split_constant(x)
                if inner is not None:
                    return self.index_add(self.index_add(inner[0], y), inner[1])
            if _rank(b) < _rank(a):
                a, b = b, a
            deep = _sum_parts(b)
            if deep is not None and _rank(deep[1]) > _rank(a):
                return self.index_add(self.index_add(a, deep[0]), deep[1])
        ra, rb = _interval(a), _interval(b)
        rng = (ra[0] + rb[0], ra[1] + rb[1]) if ra and rb else None
        return self._index("arith.addi", a, b, gcd(_div_of(a), _div_of(b)), rng)

    def index_sub(self, a: Index, b: Index) -> Index:
        """``a - b``."""
        a, b = known_index(a), known_index(b)
        if isinstance(b, int):
            return a - b if isinstance(a, int) else self.index_add(a, -b)
        if a is b:
            return 0
        ra, rb = _interval(a), _interval(b)
        rng = (ra[0] - rb[1], ra[1] - rb[0]) if ra and rb else None
        return self._index("arith.subi", a, b, gcd(_div_of(a), _div_of(b)), rng)

    def index_mul(self, a: Index, b: Index) -> Index:
        """``a * b``; a constant factor is pulled inward over sums and joined with other factors."""
        a, b = known_index(a), known_index(b)
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int):
            return a * b if isinstance(b, int) else self.index_mul(b, a)
        if isinstance(b, int):
            if b in (0, 1):
                return 0 if b == 0 else a
            inner = split_constant(a)
            if inner is not None:
                return self.index_add(self.index_mul(inner[0], b), inner[1] * b)
            factor = _factor(a)
            if factor is not None:
                return self.index_mul(factor[0], factor[1] * b)
            div = a.divisibility * abs(b)
            ra = a.range
            rng = (min(ra[0] * b, ra[1] * b), max(ra[0] * b, ra[1] * b)) if ra else None
            if 0 < b < 1 << (a.width - 1) and b & (b - 1) == 0 and ra is not None and ra[0] >= 0:
                return self._index("arith.shli", a, b.bit_length() - 1, div, rng)
            return self._index("arith.muli", a, b, div, rng)
        ra, rb = a.range, b.range
        rng = None
        if ra and rb:
            ends = [x * y for x in ra for y in rb]
            rng = (min(ends), max(ends))
        return self._index("arith.muli", a, b, a.divisibility * b.divisibility, rng)

    def index_div(self, a: Index, b: Index, exact: bool = False) -> Index:
        """``a // b`` for non-negative ``a`` and positive ``b``.

        With ``exact`` nothing is assumed about overflow: a product is only cancelled when its range is known.
        """
        a, b = known_index(a), known_index(b)
        if isinstance(b, int):
            if b == 0:
                raise TraceError(f"division of {a} by zero", fix="divide by a positive number")
            if isinstance(a, int):
                return a // b
            if b == 1:
                return a
            ra = a.range
            if ra is not None and ra[0] >= 0 and ra[1] < b:
                return 0
            factor = _factor(a)
            if factor is not None and factor[1] % b == 0 and (ra is not None or not exact):
                return self.index_mul(factor[0], factor[1] // b)
            parts = _sum_parts(a)
            if parts is not None and (ra is not None or not exact):
                for x, y in (parts, parts[::-1]):
                    # (x + y) / b == x / b + y / b when b divides x and y is not negative.
                    if _div_of(x) % b == 0 and (_interval(y) or (-1,))[0] >= 0:
                        return self.index_add(self.index_div(x, b, exact), self.index_div(y, b, exact))
            shifted = _shift_right(a)
            if shifted is not None and b > 0 and b & (b - 1) == 0:
                return self.index_shr(shifted[0], shifted[1] + b.bit_length() - 1)
            div = a.divisibility // b if a.divisibility % b == 0 else 1
            rng = (ra[0] // b, ra[1] // b) if ra is not None and ra[0] >= 0 and b > 0 else None
            if b > 0 and b & (b - 1) == 0 and rng is not None:
                return self._index("arith.shrui", a, b.bit_length() - 1, div, rng)
            return self._index("arith.divui" if rng is not None else "arith.divsi", a, b, div, rng)
        if isinstance(a, int) and a == 0:
            return 0
        ra, rb = _interval(a), b.range
        nonneg = ra is not None and ra[0] >= 0 and rb is not None and rb[0] >= 0
        rng = (0, ra[1]) if nonneg and ra is not None else None
        return self._index("arith.divui" if nonneg else "arith.divsi", a, b, 1, rng)

    def index_rem(self, a: Index, b: Index) -> Index:
        """``a % b`` for non-negative ``a`` and positive ``b``."""
        a, b = known_index(a), known_index(b)
        if isinstance(b, int):
            if b == 0:
                raise TraceError(f"remainder of {a} by zero", fix="divide by a positive number")
            if isinstance(a, int):
                return a % b
            if b == 1 or a.divisibility % b == 0:
                return 0
            ra = a.range
            nonneg = ra is not None and ra[0] >= 0
            if ra is not None and nonneg and ra[1] < b:
                return a
            parts = _sum_parts(a)
            if parts is not None:
                for x, y in (parts, parts[::-1]):
                    if _div_of(x) % b == 0 and (_interval(y) or (-1,))[0] >= 0:
                        return self.index_rem(y, b)
            div = gcd(a.divisibility, b)
            rng = (0, min(b - 1, ra[1])) if ra is not None and nonneg else None
            if rng is not None and b & (b - 1) == 0:
                return self._index("arith.andi", a, b - 1, div, rng)
            return self._index("arith.remui" if rng is not None else "arith.remsi", a, b, div, rng)
        if isinstance(a, int) and a == 0:
            return 0
        ra, rb = _interval(a), b.range
        nonneg = ra is not None and ra[0] >= 0 and rb is not None and rb[0] >= 0
        rng = (0, max(0, rb[1] - 1)) if nonneg and rb is not None else None
        return self._index("arith.remui" if nonneg else "arith.remsi", a, b, gcd(_div_of(a), b.divisibility), rng)

    def index_ceil_div(self, a: Index, b: Index) -> Index:
        """``ceil(a / b)`` for non-negative ``a`` and positive ``b``."""
        a, b = known_index(a), known_index(b)
        if isinstance(b, int) and (b == 1 or _div_of(a) % b == 0):
            return self.index_div(a, b)
        return self.index_div(self.index_add(a, self.index_sub(b, 1)), b)

    def index_shl(self, a: Index, b: Index) -> Index:
        """``a << b``."""
        a, b = known_index(a), known_index(b)
        if isinstance(b, int):
            return self.index_mul(a, 1 << b)
        return self._index("arith.shli", a, b, _div_of(a), None)

    def index_shr(self, a: Index, b: Index) -> Index:
        """``a >> b`` for non-negative ``a``."""
        a, b = known_index(a), known_index(b)
        if isinstance(b, int):
            return self.index_div(a, 1 << b)
        ra = _interval(a)
        rng = (0, ra[1]) if ra is not None and ra[0] >= 0 else None
        return self._index("arith.shrui" if rng else "arith.shrsi", a, b, 1, rng)

    def index_and(self, a: Index, b: Index) -> Index:
        """``a & b``; a mask below the range becomes the value, a mask of low bits of a multiple becomes 0."""
        a, b = known_index(a), known_index(b)
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int):
            return a & b if isinstance(b, int) else self.index_and(b, a)
        if isinstance(b, int) and b >= 0 and b & (b + 1) == 0 and (a.range or (-1,))[0] >= 0:
            return self.index_rem(a, b + 1)
        ends = [r[1] for r in (a.range, _interval(b)) if r is not None and r[0] >= 0]
        low = b & -b if isinstance(b, int) and b else 1
        return self._index("arith.andi", a, b, max(low, 1), (0, min(ends)) if ends else None)

    def index_xor(self, a: Index, b: Index) -> Index:
        """``a ^ b``."""
        a, b = known_index(a), known_index(b)
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int):
            return a ^ b if isinstance(b, int) else self.index_xor(b, a)
        if b == 0 if isinstance(b, int) else False:
            return a
        ra, rb = a.range, _interval(b)
        rng = None
        if ra and rb and ra[0] >= 0 and rb[0] >= 0:
            rng = (0, (1 << max(ra[1].bit_length(), rb[1].bit_length())) - 1)
        div = gcd(a.divisibility, _div_of(b))
        return self._index("arith.xori", a, b, div & -div, rng)

    def index_min(self, a: Index, b: Index) -> Index:
        """The smaller, signed."""
        return self._extreme("arith.minsi", min, a, b)

    def index_max(self, a: Index, b: Index) -> Index:
        """The larger, signed."""
        return self._extreme("arith.maxsi", max, a, b)

    def _extreme(self, name: str, pick: Callable[[int, int], int], a: Index, b: Index) -> Index:
        a, b = known_index(a), known_index(b)
        if isinstance(a, int) and isinstance(b, int):
            return pick(a, b)
        if a is b:
            return a
        ra, rb = _interval(a), _interval(b)
        rng = (pick(ra[0], rb[0]), pick(ra[1], rb[1])) if ra and rb else None
        if ra and rb:
            lower, upper = (a, b) if ra[1] <= rb[0] else (b, a) if rb[1] <= ra[0] else (None, None)
            if lower is not None and upper is not None:
                return lower if pick is min else upper
        return self._index(name, a, b, gcd(_div_of(a), _div_of(b)), rng)

    def index_less(self, a: Index, b: Index) -> bool | Value:
        """``a < b``, signed; a bool where it is known."""
        a, b = known_index(a), known_index(b)
        ra, rb = _interval(a), _interval(b)
        if ra and rb and (ra[1] < rb[0] or ra[0] >= rb[1]):
            return ra[1] < rb[0]
        x, y = self.same_width(a, b)
        return self.cmpi("slt", x, y)

    def index_equal(self, a: Index, b: Index) -> bool | Value:
        """``a == b``; a bool where it is known."""
        a, b = known_index(a), known_index(b)
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        if a is b:
            return True
        x, y = self.same_width(a, b)
        return self.cmpi("eq", x, y)


def known_index(v: Index) -> Index:
    """An index with a known value as an int.

    Raises:
        VerifyError: The object is no index.
    """
    if isinstance(v, int):
        if isinstance(v, bool):
            raise VerifyError(f"{v} is no index", fix="use an int")
        return v
    if not isinstance(v, Value):
        static = getattr(v, "static_value", None)
        number = static() if static is not None else None
        if number is None:
            raise VerifyError(f"{v!r} is no index", fix="use an int or an i32 / i64 value")
        return int(number)
    known = v.static_value()
    return v if known is None else known


def _binary_parts(v: Index, name: str) -> tuple[Value, Value] | None:
    if isinstance(v, Value) and v.op is not None and v.op.name == name:
        return v.op.operands[0], v.op.operands[1]
    return None


def _sum_parts(v: Index) -> tuple[Index, Index] | None:
    parts = _binary_parts(v, "arith.addi")
    return None if parts is None else (known_index(parts[0]), known_index(parts[1]))


def split_constant(v: Index) -> tuple[Value, int] | None:
    """(run-time part, constant) of a sum with a constant."""
    parts = _sum_parts(v)
    if parts is not None and isinstance(parts[1], int) and isinstance(parts[0], Value):
        return parts[0], parts[1]
    return None


def _factor(v: Index) -> tuple[Value, int] | None:
    for name in ("arith.muli", "arith.shli"):
        parts = _binary_parts(v, name)
        if parts is not None:
            c = parts[1].static_value()
            if c is not None:
                return parts[0], c if name == "arith.muli" else 1 << c
    return None


def _shift_right(v: Index) -> tuple[Value, int] | None:
    parts = _binary_parts(v, "arith.shrui")
    c = parts[1].static_value() if parts is not None else None
    return None if parts is None or c is None else (parts[0], c)


def _rank(v: Index) -> int:
    return -1 if isinstance(v, int) else v.block.depth
