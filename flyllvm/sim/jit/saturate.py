"""Conversions to 8-bit floats under MODE.FP16_OVFL: operands are clipped first, as `sim.mode` does."""

from __future__ import annotations

from .. import matrix_convert, mode, types as ty
from ..ir import Inst
from . import arith
from .lower import Lowering
from .parts import NotCovered, Part, float_literal
from .small import scale_of
from .text import Values


def clipped(b: Lowering, inst: Inst, positions: tuple[int, ...], operands: list[list[Part]]) -> list[list[Part]]:
    """The register operands of a conversion; ``positions`` are those of its other operands.

    What `sim.mode` warns of or refuses is left to it.
    """
    found = mode.TO_SMALL.match(inst.callee or "")
    if found is None:
        return operands
    types = [ty.scalar_of(o.type) for i, o in enumerate(inst.operands) if i not in positions]
    floats = [i for i, t in enumerate(types) if isinstance(t, ty.FloatType)]
    if len(types) != len(operands):
        raise NotCovered(f"@{inst.callee} under MODE.FP16_OVFL")
    largest = float(matrix_convert.small_format(found[1], b.program.target).max)
    factors = [scale_of(b, operands[floats.pop()][0])] if ".scalef32." in (inst.callee or "") else []

    def clip(t: ty.Type, part: Part) -> Part:
        def run(v: Values, x: str, *factor: str) -> list[str]:
            bound = v.const("double", float_literal("double", largest))
            if factor:
                bound = v.op("fmul", "double", bound, factor[0])
            wide = arith.to_double(v, t, x)
            size = v.intrinsic("llvm.fabs", "double", wide)
            over = v.op("fcmp ogt", "double", size, bound)
            limited = v.intrinsic("llvm.copysign", "double", bound, wide)
            out = arith.from_double(v, t, limited)
            infinite = v.op("fcmp oeq", "double", size, v.const("double", float_literal("double", float("inf"))))
            inexact = v.op("fcmp une", "double", arith.to_double(v, t, out), limited)
            v.fault_if(v.op("and", "i1", over, v.op("or", "i1", infinite, inexact)))
            return [v.select(over, part.type, out, x)]

        return b.apply(run, [part, *factors], [part.type])[0]

    return [[clip(types[i], p) for p in parts] if i in floats else parts for i, parts in enumerate(operands)]
