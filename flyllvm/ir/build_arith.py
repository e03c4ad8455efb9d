"""Arithmetic of the builder: typed operations on numbers and vectors.

*Typed* methods (``addi``, ``mulf``, ...) take values of one type; index arithmetic, which folds, is in
``build_index``.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from math import gcd

from . import types as t
from .build_core import BuilderCore
from .core import Value
from .ops_arith import CASTS, FLOAT_BINARY, FLOAT_UNARY, INT_BINARY, INT_UNARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Index = int | Value


class ArithBuilder(BuilderCore):
    """The part of ``Builder`` for everything on numbers and vectors."""

    # --- constants and conversions ---------------------------------------------------------------

    def constant(self, value: int | float | tuple[int | float, ...], type: t.Type) -> Value:
        """A constant of a scalar or vector type; one number fills a vector."""
        # Constants stand in the kernel's body, so that one serves everywhere.
        plain = value.__class__ is int and isinstance(type, t.IntType)
        if plain:
            found = self.ints.get((value, type.text))  # type: ignore[arg-type]
            if found is not None:
                return found
        given = value
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
        if plain:
            self.ints[(given, type.text)] = v  # type: ignore[index]
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
            low = v.range
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
            return self.constant(a.op.attrs["value"], t.vector_type(count, t.scalar_of(a.type)))
        return self.emit("vector.broadcast", [a], [t.vector_type(count, t.scalar_of(a.type))]).results[0]

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
                v, start = self._part(v, position)
                position -= start
            if isinstance(v.type, t.ScalarType):
                return v
            op = v.op
        return self._plain_extract(v, position)

    def _part(self, v: Value, position: int) -> tuple[Value, int]:
        """The operand of a concatenation that holds an element, and where it starts."""
        parts = v.op.operands if v.op is not None else []
        starts = self.starts.get(v)
        if starts is None:
            starts = self.starts[v] = [0, *accumulate([t.count_of(p.type) for p in parts[:-1]])]
        index = bisect_right(starts, position) - 1
        return parts[index], starts[index]

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
            part, start = self._part(v, offset)
            if offset + size <= start + t.count_of(part.type):
                return self.vector_slice(part, offset - start, size)
        if v.op is not None and v.op.name == "vector.extract_strided_slice":
            return self.vector_slice(v.op.operands[0], v.op.attrs["offset"] + offset, size)
        if v.op is not None and v.op.name == "arith.constant":
            value = v.op.attrs["value"]
            part_value = value[offset : offset + size] if isinstance(value, tuple) else value
            return self.constant(part_value, t.vector_type(size, t.scalar_of(v.type)))
        attrs = {"offset": offset, "size": size}
        return self.emit(
            "vector.extract_strided_slice", [v], [t.vector_type(size, t.scalar_of(v.type))], attrs
        ).results[0]

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
        return self.emit("vector.concat", list(parts), [t.vector_type(total, elem)]).results[0]


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
