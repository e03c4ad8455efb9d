"""Arithmetic of the builder: typed operations, and index arithmetic that folds.

*Typed* methods (``addi``, ``mulf``, ...) take values of one type.  *Index* methods (``index_add``, ...)
take ints and values of i32 / i64 mixed, return an int where both are known, and use what is known of
ranges and divisibility.  Layout arithmetic is index arithmetic; like the fly dialect's it assumes that
no index overflows its width.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from ..errors import TraceError, VerifyError
from . import types as t
from .core import Value
from .ops_arith import CASTS, FLOAT_BINARY, FLOAT_UNARY, INT_BINARY, INT_UNARY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .core import Block, Kernel, Op

    Index = int | Value


def _interval(v: Index) -> tuple[int, int] | None:
    return (v, v) if isinstance(v, int) else v.range


def _div_of(v: Index) -> int:
    return abs(v) if isinstance(v, int) else v.divisibility


class ArithBuilder:
    """Mixin of ``Builder``: everything on numbers and vectors."""

    kernel: Kernel
    block: Block

    if TYPE_CHECKING:

        def emit(
            self,
            name: str,
            operands: Sequence[Value] = (),
            result_types: Sequence[t.Type] = (),
            attrs: dict[str, Any] | None = None,
        ) -> Op: ...

    # --- constants and conversions ---------------------------------------------------------------

    def constant(self, value: int | float | tuple[int | float, ...], type: t.Type) -> Value:
        """A constant of a scalar or vector type; one number fills a vector."""
        elem = t.scalar_of(type)
        if isinstance(elem, t.IntType) and isinstance(value, int) and elem.bits > 1:
            half = 1 << (elem.bits - 1)
            if half <= value < 2 * half:
                value -= 2 * half
        made = self.emit("arith.constant", (), [type], {"value": value})
        v = made.results[0]
        if isinstance(value, int) and isinstance(type, t.IntType):
            v.divisibility = abs(value) or 1 << 30
            v.range = (value, value)
        return v

    def value(self, v: Index, type: t.Type = t.I32) -> Value:
        """An index as a value."""
        return v if isinstance(v, Value) else self.constant(v, type)

    def same_width(self, *parts: Index) -> list[Value]:
        """Indices as values of one width: the widest value's, i64 where a constant needs it, else i32."""
        bits = max((v.width for v in parts if isinstance(v, Value)), default=32)
        if any(isinstance(v, int) and not -(1 << 31) <= v < 1 << 31 for v in parts):
            bits = 64
        type_ = t.int_type(max(bits, 32))
        return [self.to_width(v, type_) for v in parts]

    def to_width(self, v: Index, type: t.IntType) -> Value:
        """An index sign-extended or truncated to a width."""
        if isinstance(v, int):
            return self.constant(v, type)
        if v.type == type:
            return v
        known = v.static_value()
        if known is not None:
            return self.constant(known, type)
        if v.width < type.bits:
            low = _interval(v)
            made = self.cast("arith.extui" if v.width == 1 or (low and low[0] >= 0) else "arith.extsi", v, type)
        else:
            made = self.cast("arith.trunci", v, type)
        made.divisibility, made.range = v.divisibility, v.range
        return made

    # --- typed operations ------------------------------------------------------------------------

    def binary(self, name: str, a: Value, b: Value, **attrs: Any) -> Value:
        """Any elementwise binary operation by name."""
        return self.emit(name, [a, b], [a.type], attrs or None).results[0]

    def unary(self, name: str, a: Value, **attrs: Any) -> Value:
        """Any elementwise unary operation by name."""
        return self.emit(name, [a], [a.type], attrs or None).results[0]

    def cast(self, name: str, a: Value, to: t.Type) -> Value:
        """A conversion by name; ``to`` is the element type, or a type of the same shape."""
        to = t.like(a.type, t.scalar_of(to))
        return a if a.type == to else self.emit(name, [a], [to]).results[0]

    def cmpi(self, predicate: str, a: Value, b: Value) -> Value:
        """Integer comparison."""
        return self.emit("arith.cmpi", [a, b], [t.like(a.type, t.I1)], {"predicate": predicate}).results[0]

    def cmpf(self, predicate: str, a: Value, b: Value) -> Value:
        """Float comparison."""
        return self.emit("arith.cmpf", [a, b], [t.like(a.type, t.I1)], {"predicate": predicate}).results[0]

    def select(self, cond: Value, a: Value, b: Value) -> Value:
        """``a`` where ``cond``, else ``b``; folds a known condition and equal values."""
        known = cond.static_value()
        if known is not None:
            return a if known else b
        if a is b:
            return a
        made = self.emit("arith.select", [cond, a, b], [a.type]).results[0]
        if isinstance(a.type, t.IntType):
            made.divisibility = gcd(a.divisibility, b.divisibility)
            if a.range and b.range:
                made.range = (min(a.range[0], b.range[0]), max(a.range[1], b.range[1]))
        return made

    def fma(self, a: Value, b: Value, c: Value, **attrs: Any) -> Value:
        """``a * b + c`` with one rounding."""
        return self.emit("math.fma", [a, b, c], [a.type], attrs or None).results[0]

    # --- vectors ---------------------------------------------------------------------------------

    def bitcast(self, a: Value, to: t.Type) -> Value:
        """The same bits as another type; a bitcast of a bitcast goes back to the first value."""
        if a.type == to:
            return a
        if a.op is not None and a.op.name == "vector.bitcast":
            return self.bitcast(a.op.operands[0], to)
        return self.emit("vector.bitcast", [a], [to]).results[0]

    def broadcast(self, a: Value, count: int) -> Value:
        """A scalar in every element of a vector."""
        if a.op is not None and a.op.name == "arith.constant":
            return self.constant(a.op.attrs["value"], t.VectorType(count, t.scalar_of(a.type)))
        return self.emit("vector.broadcast", [a], [t.VectorType(count, t.scalar_of(a.type))]).results[0]

    def extract(self, v: Value, position: int | Value) -> Value:
        """One element; looks through concatenations, inserts, broadcasts and constants."""
        if isinstance(v.type, t.ScalarType) and position == 0:
            return v
        elem = t.scalar_of(v.type)
        if isinstance(position, Value):
            known = position.static_value()
            if known is None:
                return self.emit("vector.extract", [v, position], [elem]).results[0]
            position = known
        found = self._element(v, position)
        return found if found is not None else self._plain_extract(v, position)

    def _element(self, v: Value, position: int) -> Value | None:
        op = v.op
        while op is not None and op.name in ("vector.insert", "vector.insert_strided_slice", "vector.concat",
                                             "vector.broadcast", "arith.constant",
                                             "vector.extract_strided_slice"):  # fmt: skip
            if op.name == "vector.broadcast":
                return op.operands[0]
            if op.name == "arith.constant":
                value = op.attrs["value"]
                return self.constant(value[position] if isinstance(value, tuple) else value, t.scalar_of(v.type))
            if op.name == "vector.insert":
                if "position" not in op.attrs:
                    return None
                if op.attrs["position"] == position:
                    return op.operands[0]
                v = op.operands[1]
            elif op.name == "vector.insert_strided_slice":
                start, part = op.attrs["offset"], op.operands[0]
                inside = start <= position < start + t.count_of(part.type)
                position, v = (position - start, part) if inside else (position, op.operands[1])
            elif op.name == "vector.extract_strided_slice":
                position, v = position + op.attrs["offset"], op.operands[0]
            else:
                for part in op.operands:
                    if position < t.count_of(part.type):
                        v = part
                        break
                    position -= t.count_of(part.type)
            if isinstance(v.type, t.ScalarType):
                return v
            op = v.op
        return self._plain_extract(v, position)

    def _plain_extract(self, v: Value, position: int) -> Value:
        return self.emit("vector.extract", [v], [t.scalar_of(v.type)], {"position": position}).results[0]

    def insert(self, element: Value, v: Value, position: int | Value) -> Value:
        """The vector with one element replaced."""
        if isinstance(v.type, t.ScalarType):
            return element
        if isinstance(position, Value):
            known = position.static_value()
            if known is None:
                return self.emit("vector.insert", [element, v, position], [v.type]).results[0]
            position = known
        return self.emit("vector.insert", [element, v], [v.type], {"position": position}).results[0]

    def vector_slice(self, v: Value, offset: int, size: int) -> Value:
        """``size`` elements from ``offset``; looks through concatenations; a scalar for size 1."""
        if size == t.count_of(v.type):
            return v
        if size == 1:
            return self.extract(v, offset)
        if v.op is not None and v.op.name == "vector.concat":
            start = 0
            for part in v.op.operands:
                count = t.count_of(part.type)
                if start <= offset and offset + size <= start + count:
                    return self.vector_slice(part, offset - start, size)
                start += count
        if v.op is not None and v.op.name == "vector.extract_strided_slice":
            return self.vector_slice(v.op.operands[0], v.op.attrs["offset"] + offset, size)
        if v.op is not None and v.op.name == "arith.constant":
            value = v.op.attrs["value"]
            part_value = value[offset : offset + size] if isinstance(value, tuple) else value
            return self.constant(part_value, t.VectorType(size, t.scalar_of(v.type)))
        attrs = {"offset": offset, "size": size}
        return self.emit("vector.extract_strided_slice", [v], [t.VectorType(size, t.scalar_of(v.type))], attrs).results[
            0
        ]

    def insert_slice(self, part: Value, v: Value, offset: int) -> Value:
        """The vector with a run of elements replaced."""
        if t.count_of(part.type) == t.count_of(v.type):
            return part
        if isinstance(part.type, t.ScalarType):
            return self.insert(part, v, offset)
        return self.emit("vector.insert_strided_slice", [part, v], [v.type], {"offset": offset}).results[0]

    def concat(self, parts: Sequence[Value]) -> Value:
        """Scalars and vectors of one element type joined in order; pieces of one vector join back to it."""
        if len(parts) == 1:
            return parts[0]
        whole = _rejoined(parts)
        if whole is not None:
            return whole
        elem = t.scalar_of(parts[0].type)
        total = sum(t.count_of(p.type) for p in parts)
        return self.emit("vector.concat", list(parts), [t.VectorType(total, elem)]).results[0]

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
        v = self.emit(name, [x, y], [x.type], attrs).results[0]
        v.divisibility = max(v.divisibility, div) if div else v.divisibility
        if rng is not None:
            v.range = rng
        return v

    def index_add(self, a: Index, b: Index) -> Index:
        """``a + b``; constants gather at the end and loop-invariant parts at the front of a sum."""
        if isinstance(a, int) and isinstance(b, int):
            return a + b
        a, b = _known(a), _known(b)
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int):
            return a + b if isinstance(b, int) else self.index_add(b, a)
        if isinstance(b, int):
            if b == 0:
                return a
            inner = _split_const(a)
            if inner is not None:
                return self.index_add(inner[0], inner[1] + b)
        else:
            for x, y in ((a, b), (b, a)):
                inner = _split_const(x)
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
        a, b = _known(a), _known(b)
        if isinstance(b, int):
            return a - b if isinstance(a, int) else self.index_add(a, -b)
        if a is b:
            return 0
        ra, rb = _interval(a), _interval(b)
        rng = (ra[0] - rb[1], ra[1] - rb[0]) if ra and rb else None
        return self._index("arith.subi", a, b, gcd(_div_of(a), _div_of(b)), rng)

    def index_mul(self, a: Index, b: Index) -> Index:
        """``a * b``; a constant factor is pulled inward over sums and joined with other factors."""
        a, b = _known(a), _known(b)
        if isinstance(a, int):
            a, b = b, a
        if isinstance(a, int):
            return a * b if isinstance(b, int) else self.index_mul(b, a)
        if isinstance(b, int):
            if b in (0, 1):
                return 0 if b == 0 else a
            inner = _split_const(a)
            if inner is not None:
                return self.index_add(self.index_mul(inner[0], b), inner[1] * b)
            factor = _factor(a)
            if factor is not None:
                return self.index_mul(factor[0], factor[1] * b)
            div = a.divisibility * abs(b)
            ra = a.range
            rng = (min(ra[0] * b, ra[1] * b), max(ra[0] * b, ra[1] * b)) if ra else None
            if b > 0 and b & (b - 1) == 0 and ra is not None and ra[0] >= 0:
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
        a, b = _known(a), _known(b)
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
        a, b = _known(a), _known(b)
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
        a, b = _known(a), _known(b)
        if isinstance(b, int) and (b == 1 or _div_of(a) % b == 0):
            return self.index_div(a, b)
        return self.index_div(self.index_add(a, self.index_sub(b, 1)), b)

    def index_shl(self, a: Index, b: Index) -> Index:
        """``a << b``."""
        a, b = _known(a), _known(b)
        if isinstance(b, int):
            return self.index_mul(a, 1 << b)
        return self._index("arith.shli", a, b, _div_of(a), None)

    def index_shr(self, a: Index, b: Index) -> Index:
        """``a >> b`` for non-negative ``a``."""
        a, b = _known(a), _known(b)
        if isinstance(b, int):
            return self.index_div(a, 1 << b)
        ra = _interval(a)
        rng = (0, ra[1]) if ra is not None and ra[0] >= 0 else None
        return self._index("arith.shrui" if rng else "arith.shrsi", a, b, 1, rng)

    def index_and(self, a: Index, b: Index) -> Index:
        """``a & b``; a mask below the range becomes the value, a mask of low bits of a multiple becomes 0."""
        a, b = _known(a), _known(b)
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
        a, b = _known(a), _known(b)
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
        a, b = _known(a), _known(b)
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
        a, b = _known(a), _known(b)
        ra, rb = _interval(a), _interval(b)
        if ra and rb and (ra[1] < rb[0] or ra[0] >= rb[1]):
            return ra[1] < rb[0]
        x, y = self.same_width(a, b)
        return self.cmpi("slt", x, y)

    def index_equal(self, a: Index, b: Index) -> bool | Value:
        """``a == b``; a bool where it is known."""
        a, b = _known(a), _known(b)
        if isinstance(a, int) and isinstance(b, int):
            return a == b
        if a is b:
            return True
        x, y = self.same_width(a, b)
        return self.cmpi("eq", x, y)


def _known(v: Index) -> Index:
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
    return None if parts is None else (_known(parts[0]), _known(parts[1]))


def _split_const(v: Index) -> tuple[Value, int] | None:
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


def _rejoined(parts: Sequence[Value]) -> Value | None:
    """The vector whose consecutive pieces ``parts`` are, if they are all of it."""
    source: Value | None = None
    at = 0
    for p in parts:
        op = p.op
        if op is None or op.name not in ("vector.extract_strided_slice", "vector.extract") or len(op.operands) != 1:
            return None
        start = op.attrs["offset"] if op.name == "vector.extract_strided_slice" else op.attrs["position"]
        if start != at or (source is not None and op.operands[0] is not source):
            return None
        source = op.operands[0]
        at += t.count_of(p.type)
    return source if source is not None and at == t.count_of(source.type) else None


def _add_named(name: str, kind: str) -> None:
    short = name.split(".")[1]

    def two(self: ArithBuilder, a: Value, b: Value, **attrs: Any) -> Value:
        return self.binary(name, a, b, **attrs)

    def one(self: ArithBuilder, a: Value, **attrs: Any) -> Value:
        return self.unary(name, a, **attrs)

    def conv(self: ArithBuilder, a: Value, to: t.Type) -> Value:
        return self.cast(name, a, to)

    method = {"two": two, "one": one, "cast": conv}[kind]
    method.__name__ = short
    method.__doc__ = f"``{name}``."
    setattr(ArithBuilder, short, method)


for _n in (*INT_BINARY, *FLOAT_BINARY):
    _add_named(_n, "two")
for _n in (*INT_UNARY, *FLOAT_UNARY):
    _add_named(_n, "one")
for _n in CASTS:
    _add_named(_n, "cast")
