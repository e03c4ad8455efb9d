"""Elementwise operations on joined vectors, done part by part.

A fragment of 64 accumulators is 16 vectors of 4.  Read as one vector it is their concatenation, and an
operation on that is 16 operations on the parts: LLVM never sees a vector wider than a register tuple.
"""

from __future__ import annotations

from ..ir import types as t
from ..ir.ops_arith import CASTS, FLOAT_BINARY, FLOAT_UNARY, INT_BINARY, INT_UNARY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.builder import Builder
    from ..ir.core import Op, Value

ELEMENTWISE = frozenset(
    {
        *INT_BINARY,
        *FLOAT_BINARY,
        *FLOAT_UNARY,
        *INT_UNARY,
        *CASTS,
        "math.fma",
        "arith.cmpi",
        "arith.cmpf",
        "arith.select",
    }
)


def split_elementwise(b: Builder, op: Op) -> Value | None:
    """The operation done on the parts of its concatenated operands, joined; ``None`` where it does not apply."""
    result = op.results[0].type
    if not isinstance(result, t.VectorType):
        return None
    sizes = None
    for v in op.operands:
        if v.op is not None and v.op.name == "vector.concat":
            own = [t.count_of(p.type) for p in v.op.operands]
            if sizes is not None and own != sizes:
                return None
            sizes = own
    if sizes is None:
        return None
    parts, start = [], 0
    for size in sizes:
        operands = [_part(b, v, start, size) for v in op.operands]
        attrs = dict(op.attrs) or None
        parts.append(b.emit(op.name, operands, [t.value_type(size, result.elem)], attrs).results[0])
        start += size
    return b.concat(parts)


def _part(b: Builder, v: Value, start: int, size: int) -> Value:
    if isinstance(v.type, t.ScalarType):  # the condition of a select
        return v
    if v.op is not None and v.op.name == "vector.broadcast":
        return v.op.operands[0] if size == 1 else b.broadcast(v.op.operands[0], size)
    return b.vector_slice(v, start, size)
