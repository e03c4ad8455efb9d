"""``s.setreg`` of MODE.FP16_OVFL: results that overflow become the largest number instead of an infinity.

Compilers set it where a kernel converts to 8-bit floats, which saturate then.  It counts for every f16 result of the
vector unit, too.  Only a kernel that sets it once and for all, before anything that depends on it, is known here; other
fields and registers are not.

An infinity that goes into a conversion to an 8-bit float saturates as well; public sources do not say so, and the
report warns where it happens.

Source: CDNA3 ISA manual, MODE register (bit 23) and the description of the FP8 conversions.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from . import matrix_convert, numerics, types as ty
from .ir import Const, Inst
from .values import Array

if TYPE_CHECKING:
    from .cfg import Node
    from .compile import Compiler, Op
    from .machine import Machine

SETREG = "llvm.amdgcn.s.setreg"
# hwreg(HW_REG_MODE, 23, 1): register 1, offset << 6, (size - 1) << 11.
_FP16_OVFL = 1 | 23 << 6  #: Conversions that saturate.
TO_SMALL = re.compile(r"llvm\.amdgcn\.cvt\.(?:scalef32\.)?(?:sr\.)?(?:pk\d*\.)?(fp8|bf8)\.(?:f32|f16|bf16)\b")
# f16 results that an overflow of finite operands makes infinite; what else gives infinities is refused where it does.
_OVERFLOWING = frozenset("fadd fsub fmul fdiv fptrunc sitofp uitofp".split())
_FUSED = ("llvm.fma.", "llvm.fmuladd.", "llvm.amdgcn.cvt.pkrtz")
_LARGEST = np.float16(65504)


def reason_against(inst: Inst) -> str | None:
    """Why a write to a register of the machine has no meaning here, or ``None``."""
    register, value = (o.value if isinstance(o, Const) and o.kind in ("int", "zero") else None for o in inst.operands)
    if (register or 0) == _FP16_OVFL and (value or 0) in (0, 1) and isinstance(inst.operands[1], Const):
        return None
    return "of the registers of the machine only MODE.FP16_OVFL is known (register 1473), with a constant"


def saturates(graph: list[Node]) -> bool:
    """Whether a kernel runs with MODE.FP16_OVFL set."""
    return any(_value(inst) for node in graph for inst in node.insts if inst.callee == SETREG)


def reason_against_order(graph: list[Node]) -> str | None:
    """Why it is not clear for which instructions the mode counts, or ``None``."""
    writes = [inst for node in graph for inst in node.insts if inst.callee == SETREG]
    if not any(map(_value, writes)):
        return None
    for inst in graph[0].insts:
        if inst.callee == SETREG:
            break
        if _depends(inst):
            return "instructions before it depend on it"
    else:
        return "it must be set in the first block of the kernel"
    return None if all(map(_value, writes)) else "it must not change"


def _value(inst: Inst) -> int:
    return int(getattr(inst.operands[1], "value", 0) or 0)


def _depends(inst: Inst) -> bool:
    return ty.scalar_of(inst.type) is ty.HALF or bool(TO_SMALL.match(inst.callee or ""))


def wrapped(c: Compiler, inst: Inst, ops: list[Op]) -> list[Op]:
    """The closures of an instruction under MODE.FP16_OVFL."""
    found = TO_SMALL.match(inst.callee or "")
    if found:
        return _clipped(c, inst, matrix_convert.small_format(found[1], c.target), ops)
    return [*ops, _clamp(c, inst)] if is_clamped(inst) else ops


def is_clamped(inst: Inst) -> bool:
    """Whether an instruction's own f16 result saturates."""
    calls = inst.op == "call" and not _moves(inst)
    return ty.scalar_of(inst.type) is ty.HALF and (inst.op in _OVERFLOWING or calls)


def _moves(inst: Inst) -> bool:
    callee = inst.callee or ""
    return any(part in callee for part in (".load", "readlane", "readfirstlane", "permlane", "dpp", ".vector.", "fabs"))


def _clipped(c: Compiler, inst: Inst, fmt: numerics.SmallFloat, ops: list[Op]) -> list[Op]:
    """Clips what is converted to the largest number of the format, times the scale."""
    floats = [o for o in inst.operands if isinstance(ty.scalar_of(o.type), ty.FloatType)]
    scale = c.slot(floats.pop()) if ".scalef32." in (inst.callee or "") else None
    slots = [(c.slot(o), ty.scalar_of(o.type)) for o in floats]

    def run(r: list[Any], m: Machine) -> None:
        saved = [r[s] for s, _ in slots]
        factor = np.ones((1, 1, 1)) if scale is None else matrix_convert.scale_factor(r[scale])
        for slot, t in slots:
            r[slot] = _clip(m, inst, r[slot], t, fmt.max * factor)
        for op in ops:
            op(r, m)
        for (slot, _), value in zip(slots, saved, strict=True):
            r[slot] = value

    return [run]


def _clip(m: Machine, inst: Inst, value: Array, t: ty.Type, bound: Array) -> Array:
    kind = "bf16" if t is ty.BFLOAT else "f16" if t is ty.HALF else "f32"
    wide = matrix_convert.widen(value, kind)
    bound = bound[..., None] if wide.ndim > bound.ndim else bound
    over = np.abs(wide) > bound
    lanes = over.any(axis=-1) if over.ndim == 4 else over
    if not (lanes & m.mask).any():
        return value
    if np.isinf(wide[np.broadcast_to(over, wide.shape)]).any() if over.shape == wide.shape else np.isinf(wide).any():
        m.launch.warn(inst, "an infinity is converted under FP16_OVFL: that it saturates is assumed")
    limited = np.where(over, np.copysign(bound, wide), wide)
    out = matrix_convert.narrow(limited, kind)
    if not np.array_equal(matrix_convert.widen(out, kind), limited, equal_nan=True):
        m.fault(inst, "overflow under FP16_OVFL of a scale that the source's type cannot express", lanes & m.mask,
                "use a larger scale")  # fmt: skip
    return out


def _clamp(c: Compiler, inst: Inst) -> Op:
    """Makes infinities of finite operands the largest f16 number."""
    d = c.dest(inst)
    slots = [c.slot(o) for o in inst.operands if isinstance(ty.scalar_of(o.type), ty.FloatType)]
    divisor = c.slot(inst.operands[1]) if inst.op == "fdiv" else None
    known = inst.op in _OVERFLOWING or (inst.callee or "").startswith(_FUSED)

    def run(r: list[Any], m: Machine) -> None:
        result = r[d]
        over = np.isinf(result)
        if not over.any():
            return
        for slot in slots:
            finite = (r[slot] & 0x7F80) != 0x7F80 if r[slot].dtype == np.uint16 else np.isfinite(r[slot])
            over = over & finite
        if divisor is not None:
            over = over & (r[divisor] != 0)
        lanes = (over.any(axis=-1) if over.ndim == 4 else over) & m.mask
        if not known and lanes.any():
            m.fault(inst, "an infinite result under FP16_OVFL", lanes, "what the hardware gives here is not known")
        r[d] = np.where(over, np.copysign(_LARGEST, result), result)

    return run
