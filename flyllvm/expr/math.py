"""Math on numbers and vectors; each name is one LLVM instruction or intrinsic that AMDGPU selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from .fastmath import current_flags
from .numeric import Int32, Int64, Numeric, as_numeric, promote

if TYPE_CHECKING:
    from collections.abc import Callable


def _unary(name: str) -> Callable[[Any], Any]:
    def run(x: Any) -> Any:
        x = x if hasattr(x, "ir_value") else as_numeric(x)
        v = x.ir_value()
        elem = t.scalar_of(v.type)
        if not isinstance(elem, t.FloatType) or elem.is_small:
            raise TraceError(
                f"{name} of {elem}", Builder.current().location(), "use Float16, BFloat16, Float32 or Float64"
            )
        flags = current_flags()
        made = Builder.current().unary(name, v, **({"fastmath": flags} if flags else {}))
        return x.like(made) if not isinstance(x, Numeric) else type(x).wrap(made)

    run.__name__ = name.split(".")[1]
    run.__doc__ = f"``{name}`` of a number or vector."
    return run


absf = _unary("math.absf")
ceil = _unary("math.ceil")
floor = _unary("math.floor")
trunc = _unary("math.trunc")
roundeven = _unary("math.roundeven")
exp = _unary("math.exp")
exp2 = _unary("math.exp2")
log = _unary("math.log")
log2 = _unary("math.log2")
sqrt = _unary("math.sqrt")


def _extreme(index_name: str, signed: str, unsigned: str, number: str) -> Callable[[Any, Any], Any]:
    def run(a: Any, b: Any) -> Any:
        x = as_numeric(a, type(b) if isinstance(b, Numeric) else None)
        y = as_numeric(b, type(x))
        cls = promote(type(x), type(y))
        x, y = cls(x), cls(y)
        builder = Builder.current()
        if cls.signed is None:
            flags = current_flags()
            made = builder.binary(number, x.ir_value(), y.ir_value(), **({"fastmath": flags} if flags else {}))
            return cls.wrap(made)
        if cls.signed:
            return (
                cls.wrap(getattr(builder, index_name)(x._v, y._v))
                if cls in (Int32, Int64)
                else cls.wrap(builder.binary(signed, x.ir_value(), y.ir_value()))
            )
        return cls.wrap(builder.binary(unsigned, x.ir_value(), y.ir_value()))

    return run


max = _extreme("index_max", "arith.maxsi", "arith.maxui", "arith.maxnumf")
min = _extreme("index_min", "arith.minsi", "arith.minui", "arith.minnumf")
