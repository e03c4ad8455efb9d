"""How origins go through calls: between lanes, and through those that pick bytes or convert single ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import types as ty
from .ir import Inst
from .origin_bytes import elements, flat, is_plain, or_unknown, splat, split
from .origins import UNKNOWN, ZERO, Move, byte_count

if TYPE_CHECKING:
    from .compile import Compiler
    from .machine import Machine

_COPIES = frozenset((
    "expect", "ssa.copy", "amdgcn.wqm", "amdgcn.softwqm", "amdgcn.strict.wqm", "amdgcn.wwm", "amdgcn.strict.wwm",
))  # fmt: skip
# Positions of the operands that may hold data of calls that move values between lanes.
_LANE_CALLS = (
    "readfirstlane", "readlane", "writelane", "ds.bpermute", "ds.permute", "ds.swizzle", "mov.dpp", "update.dpp",
    "permlane", "wave.shuffle", "set.inactive",
)  # fmt: skip


def _copy(c: Compiler, inst: Inst) -> Move | None:
    return Move((0,), lambda r, m, w: w[0])


def _across_lanes(c: Compiler, inst: Inst) -> Move | None:
    """Origins move between lanes as values do, byte by byte."""
    size = byte_count(inst.operands[0].type) if is_plain(*(o.type for o in inst.operands)) else 0
    if not size:
        return None
    positions = tuple(range(len(inst.operands)))

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        compute, slots, data = inst.extra["lane_op"]
        parts = []
        for byte in range(size):
            args = [r[s] for s in slots]
            for i in data:
                args[i] = or_unknown(w[i], size)[..., byte]
            parts.append(compute(m, args))
        if isinstance(parts[0], tuple):
            return tuple(np.stack(np.broadcast_arrays(*p), axis=-1) for p in zip(*parts, strict=True))
        return np.stack(parts, axis=-1)

    return Move(positions, carry)


def _perm(c: Compiler, inst: Inst) -> Move | None:
    """``amdgcn.perm`` with a known selector."""
    selector = splat(inst.operands[2])
    if selector is None:
        return None
    codes = [selector >> 8 * i & 0xFF for i in range(4)]
    index = np.array([code if code < 8 else 8 if code == 12 else 9 for code in codes])

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        high, low = (or_unknown(x, 4) for x in w)
        lanes = np.broadcast_shapes(high.shape[:3], low.shape[:3])
        rest = np.broadcast_to(np.array([ZERO, UNKNOWN]), (*lanes, 2))
        return np.concatenate([*(np.broadcast_to(x, (*lanes, 4)) for x in (low, high)), rest], axis=-1)[..., index]

    return Move((0, 1), carry)


def _funnel(c: Compiler, inst: Inst) -> Move | None:
    """``fshl``, ``fshr``, ``alignbit``, ``alignbyte`` by whole bytes."""
    name, amount, shape = inst.callee or "", splat(inst.operands[2]), elements(inst.type)
    if amount is None or shape is None:
        return None
    count, size = shape
    bits = amount * 8 if name.endswith("alignbyte") else amount
    if bits % 8 or bits >= 8 * size:
        return None
    start = size - bits // 8 if ".fshl" in name else bits // 8

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        high, low = (split(or_unknown(x, count * size), count) for x in w)
        lanes = np.broadcast_shapes(high.shape[:3], low.shape[:3])
        both = [np.broadcast_to(x, lanes + x.shape[3:]) for x in (low, high)]
        return flat(np.concatenate(both, axis=-1)[..., start : start + size])

    return Move((0, 1), carry)


def _from_fp8(c: Compiler, inst: Inst) -> Move | None:
    """``cvt.f32.fp8`` and ``cvt.pk.f32.fp8``: one or two bytes become floats."""
    place = c.literal(inst.operands[1])
    count = 2 if ".pk." in (inst.callee or "") else 1
    if place is None or not isinstance(inst.operands[0].type, ty.IntType):
        return None
    part = slice(place * count, place * count + count)
    return Move((0,), lambda r, m, w: np.repeat(w[0][..., part], 4, axis=-1))


def maker_of(inst: Inst) -> Callable[[Compiler, Inst], Move | None] | None:
    """What knows how a call moves bytes; ``None`` where it computes."""
    name = (inst.callee or "").removeprefix("llvm.")
    if name in _COPIES or name.rpartition(".")[0] in _COPIES:
        return _copy
    short = name.removeprefix("amdgcn.")
    if short != name and short.startswith(_LANE_CALLS):
        return _across_lanes
    if name.startswith(("fshl.", "fshr.", "amdgcn.alignb")):
        return _funnel
    if short.startswith(("cvt.pk.f32.fp8", "cvt.pk.f32.bf8", "cvt.f32.fp8", "cvt.f32.bf8")) and "e5m3" not in short:
        return _from_fp8
    return _perm if name == "amdgcn.perm" else None
