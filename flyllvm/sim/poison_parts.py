"""Poison of conversions of small floats, part by part: a thread with few elements leaves the rest of a register undef.

Compilers fill a register of 8-bit floats half by half and pass undef for what is not used, so that an operand that is
undef does not make the whole result so.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import types as ty
from .ir import Const, Inst, Operand, Reg

if TYPE_CHECKING:
    from .machine import Machine

# For each element of the result the parts that it is made from: an operand and the number of its element.
Parts = list[list[tuple[Operand, int]]]
_PACKED = re.compile(r"llvm\.amdgcn\.cvt\.(?:sr\.)?(?:pk\.)?(?:fp8|bf8)\.f(?:32|16)\b")
_PACKED_SCALED = re.compile(r"llvm\.amdgcn\.cvt\.scalef32\.pk\.(?:fp8|bf8)\.")
_EIGHT = re.compile(r"llvm\.amdgcn\.cvt\.scale(?:f32)?\.(?:sr\.)?pk(?:8|16|32)\.")
_READ = re.compile(r"llvm\.amdgcn\.cvt\.(scalef32\.)?(pk\.)?(?:f32|f16|bf16)\.(?:fp8|bf8)\b")


def parts_of(inst: Inst, defs: dict[str, Inst]) -> Parts | None:
    """What the elements of the result are made from; ``None`` where each is made from all operands."""
    callee = inst.callee or ""
    if inst.op != "call" or not callee.startswith("llvm.amdgcn.cvt."):
        return None
    operands = [o for o in inst.operands if o.type is not ty.METADATA]
    if _PACKED.match(callee):
        used = [o for o in operands if not _is_undef(o)]
        written = [o for o in used if isinstance(ty.scalar_of(o.type), ty.FloatType) or isinstance(o, Reg)]
        return [[part for o in used for part in _all(o)]] if written else None
    if _PACKED_SCALED.match(callee) and _count(inst.type) == 2:
        word = int(getattr(operands[-1], "value", 0) or 0)
        sources = [part for o in operands[1:-1] for part in _all(o)]
        return [sources if i == word else [(operands[0], i)] for i in range(2)]
    if _EIGHT.match(callee):
        return _spread(inst, operands)
    found = _READ.match(callee)
    if found and isinstance(operands[0], Reg):
        return _read(inst, operands, defs, 2 if found[2] else 1)
    return None


def _spread(inst: Inst, operands: list[Operand]) -> Parts | None:
    """The elements in order, with the same share of the source each."""
    source, target = _count(operands[0].type), _count(inst.type)
    if source % target and target % source:
        return None
    rest = [part for o in operands[1:] for part in _all(o)]
    return [
        [
            (operands[0], e)
            for e in range(i * source // target, max(i * source // target + 1, (i + 1) * source // target))
        ]
        + rest
        for i in range(target)
    ]


def _read(inst: Inst, operands: list[Operand], defs: dict[str, Inst], count: int) -> Parts | None:
    """Only the selected bytes of the register count, where it is made of a vector of bytes or halves."""
    cast = defs.get(getattr(operands[0], "name", ""))
    choice = operands[-1]
    if cast is None or cast.op != "bitcast" or not isinstance(choice, Const) or len(operands) < 2:
        return None
    vector = cast.operands[0]
    width = 32 // _count(vector.type)
    if _count(vector.type) not in (2, 4) or ty.bit_size(operands[0].type) != 32:
        return None
    first = int(choice.value or 0) * 8 * count
    used = [
        (vector, i) for i in range(_count(vector.type)) if first < (i + 1) * width and i * width < first + 8 * count
    ]
    rest = [part for o in operands[1:] for part in _all(o)]
    return [used + rest for _ in range(_count(inst.type))]


def _count(t: ty.Type) -> int:
    return t.count if isinstance(t, ty.VecType) else 1


def _all(operand: Operand) -> list[tuple[Operand, int]]:
    return [(operand, i) for i in range(_count(operand.type))]


def _is_undef(operand: Operand) -> bool:
    return isinstance(operand, Const) and operand.kind in ("undef", "poison")


def bits_of(parts: Parts, bits: Callable[[Operand], int]) -> int:
    """The elements of the result that may be poison."""
    return sum(1 << i for i, made in enumerate(parts) if any(bits(o) >> e & 1 for o, e in made))


def tracker(parts: Parts, d: int, slot: Callable[[Operand], int], vector: bool) -> Callable[[list[Any], Machine], None]:
    """The closure that computes the poison mask of a result."""
    slots = [[(slot(o), e) for o, e in made] for made in parts]

    def track(r: list[Any], m: Machine) -> None:
        flags = []
        for made in slots:
            total: Any = np.zeros((1, 1, 1), bool)
            for s, e in made:
                mask = m.poison[s]
                if mask is not None:
                    total = total | (mask[..., min(e, mask.shape[-1] - 1)] if mask.ndim == 4 else mask)
            flags.append(total)
        result = np.stack(np.broadcast_arrays(*flags), axis=-1) if vector else flags[0]
        m.poison[d] = result if result.any() else None

    return track
