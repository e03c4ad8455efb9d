"""Intrinsics through which lanes of a wave see each other.

Source: LLVM AMDGPUUsage; CDNA3 and RDNA3 ISA manuals (DPP controls, DS_SWIZZLE, DS_BPERMUTE, V_PERMLANE).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import alu, dma, dpp, lane_masks, permlane, types as ty
from .first_lane import readfirstlane
from .ir import Inst
from .lane_op import Builder, full, lane_op
from .values import Array, choose_lanes, merge

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def _readlane(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        index = dma.first_of_wave(m, args[1]).astype(np.int64) % m.wave_size
        return choose_lanes(full(m, args[0]), np.broadcast_to(index, (*m.shape[:2], 1)))

    return lane_op(c, inst, 2, (0,), compute)


def _writelane(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        value, lane, old = args
        index = dma.first_of_wave(m, lane).astype(np.int64) % m.wave_size
        at = np.arange(m.wave_size).reshape(1, 1, -1) == index
        return merge(np.broadcast_to(at, m.shape), dma.first_of_wave(m, value), full(m, old))

    return lane_op(c, inst, 3, (0, 2), compute)


def _bpermute(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        index = (full(m, args[0]).astype(np.int64) >> 2) % m.wave_size
        got = choose_lanes(full(m, args[1]), index)
        if not m.full:  # inactive lanes give zero
            got = np.where(choose_lanes(m.mask, index), got, got.dtype.type(0))
        return got

    return lane_op(c, inst, 2, (1,), compute)


def _permute(c: Compiler, inst: Inst) -> list[Op]:
    """``ds.permute``: pushes to the lane an address names; the highest lane wins, lanes nobody writes get zero."""

    def compute(m: Machine, args: list[Any]) -> Any:
        index = (full(m, args[0]).astype(np.int64) >> 2) % m.wave_size
        source = full(m, args[1])
        out = np.zeros_like(source)
        group, wave, _ = np.indices(m.shape)
        active = m.mask
        out[group[active], wave[active], index[active]] = source[active]
        return out

    return lane_op(c, inst, 2, (1,), compute)


def swizzle_sources(pattern: int, wave_size: int) -> Array:
    """Source lane of each lane under a ``ds.swizzle`` pattern."""
    lanes = np.arange(wave_size)
    if pattern & 0x8000:  # quad permutation
        return (lanes & ~3) | (pattern >> (2 * (lanes & 3)) & 3)
    and_mask, or_mask, xor_mask = pattern & 31, pattern >> 5 & 31, pattern >> 10 & 31
    return (lanes & ~31) | ((((lanes & 31) & and_mask) | or_mask) ^ xor_mask)


def _swizzle(c: Compiler, inst: Inst) -> list[Op]:
    index = swizzle_sources(c.immediate(inst, 1), c.wave_size)

    def compute(m: Machine, args: list[Any]) -> Any:
        got = full(m, args[0])[:, :, index]
        return got if m.full else np.where(m.mask[:, :, index], got, got.dtype.type(0))

    return lane_op(c, inst, 1, (0,), compute)


def _dpp(update: bool) -> Builder:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        first = 1 if update else 0
        control, row_mask, bank_mask, bound = (c.immediate(inst, first + 1 + i) for i in range(4))
        source = dpp.sources(control, c.wave_size)
        if source is None:
            raise SimError(
                f"'{c.program.text_of(inst)}': unknown DPP control {control:#x}", c.program.where(inst),
                "see the DPP controls in the ISA manual",
            )  # fmt: skip
        lanes = np.arange(c.wave_size)
        enabled = (row_mask >> (lanes // 16 % 4)) & (bank_mask >> (lanes // 4 % 4)) & 1 == 1
        valid = source >= 0
        index = np.where(valid, source, 0)
        allowed = enabled.reshape(1, 1, -1)

        def compute(m: Machine, args: list[Any]) -> Any:
            got = full(m, args[first])[:, :, index]
            reaches = np.broadcast_to(valid, m.shape)
            if not m.full:
                reaches = reaches & m.mask[:, :, index]
            zero = got.dtype.type(0)
            before = args[0] if update else zero
            passed, reached = (allowed[..., None], reaches[..., None]) if got.ndim == 4 else (allowed, reaches)
            return np.where(passed, np.where(reached, got, zero if bound else before), before)

        return lane_op(c, inst, first + 1, tuple(range(first + 1)), compute)

    return builder


_REDUCERS: dict[str, Callable[[ty.Type], Callable[[Array, Array], Array]]] = {
    "add": lambda t: alu.binary_op("fadd" if isinstance(t, ty.FloatType) else "add", t),
    "fadd": lambda t: alu.binary_op("fadd", t),
    "sub": lambda t: alu.binary_op("sub", t),
    "fsub": lambda t: alu.binary_op("fsub", t),
    "and": lambda t: np.bitwise_and, "or": lambda t: np.bitwise_or, "xor": lambda t: np.bitwise_xor,
    "umin": lambda t: np.minimum, "umax": lambda t: np.maximum,
    "min": lambda t: _signed_pick(t, np.less_equal), "max": lambda t: _signed_pick(t, np.greater_equal),
    "fmin": lambda t: np.fmin, "fmax": lambda t: np.fmax,
}  # fmt: skip


def _signed_pick(t: ty.Type, better: Callable[[Array, Array], Array]) -> Callable[[Array, Array], Array]:
    bits = ty.bit_size(t)
    return lambda a, b: np.where(better(alu.sign_extended(a, bits), alu.sign_extended(b, bits)), a, b)


def _wave_reduce(operation: str) -> Builder:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a = c.dest(inst), c.slot(inst.operands[0])
        fn = _REDUCERS[operation](inst.type)

        def run(r: list[Any], m: Machine) -> None:
            value = full(m, r[a])
            total = np.zeros((*m.shape[:2], 1), value.dtype)
            started = np.zeros((*m.shape[:2], 1), bool)
            for lane in range(m.wave_size):
                active = m.mask[:, :, lane : lane + 1]
                part = value[:, :, lane : lane + 1]
                if operation in ("sub", "fsub"):  # from zero
                    total = np.where(active, fn(total, part), total)
                else:
                    total = np.where(active, np.where(started, fn(total, part), part), total)
                started = started | active
            r[d] = total

        return [run]

    return builder


def _dpp8(c: Compiler, inst: Inst) -> list[Op]:
    """``mov.dpp8``: each lane of eight picks one of the eight by three bits of the control."""
    control, lanes = c.immediate(inst, 1), np.arange(c.wave_size)
    index = (lanes & ~7) | (control >> (3 * (lanes & 7)) & 7)

    def compute(m: Machine, args: list[Any]) -> Any:
        got = full(m, args[0])[:, :, index]
        return got if m.full else np.where(m.mask[:, :, index], got, got.dtype.type(0))

    return lane_op(c, inst, 1, (0,), compute)


def _bpermute_inactive(c: Compiler, inst: Inst) -> list[Op]:
    """``ds.bpermute.fi``: like bpermute, and reads inactive lanes too."""

    def compute(m: Machine, args: list[Any]) -> Any:
        return choose_lanes(full(m, args[1]), (full(m, args[0]).astype(np.int64) >> 2) % m.wave_size)

    return lane_op(c, inst, 2, (1,), compute)


def _shuffle(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        return choose_lanes(full(m, args[0]), full(m, args[1]).astype(np.int64) % m.wave_size)

    return lane_op(c, inst, 2, (0,), compute)


def _set_inactive(c: Compiler, inst: Inst) -> list[Op]:
    return lane_op(c, inst, 2, (0, 1), lambda m, args: merge(m.mask, args[0], full(m, args[1])))


TABLE: dict[str, Builder] = {
    **lane_masks.TABLE,
    **permlane.TABLE,
    "amdgcn.readfirstlane": readfirstlane,
    "amdgcn.readlane": _readlane,
    "amdgcn.writelane": _writelane,
    "amdgcn.ds.bpermute": _bpermute,
    "amdgcn.ds.permute": _permute,
    "amdgcn.ds.swizzle": _swizzle,
    "amdgcn.mov.dpp": _dpp(False),
    "amdgcn.update.dpp": _dpp(True),
    "amdgcn.mov.dpp8": _dpp8,
    "amdgcn.ds.bpermute.fi.b32": _bpermute_inactive,
    "amdgcn.wave.shuffle": _shuffle,
    "amdgcn.set.inactive": _set_inactive,
    **{f"amdgcn.wave.reduce.{op}": _wave_reduce(op) for op in _REDUCERS},
}
