"""Intrinsics through which lanes of a wave see each other.

Source: LLVM AMDGPUUsage; CDNA3 and RDNA3 ISA manuals (DPP controls, DS_SWIZZLE, DS_BPERMUTE, V_PERMLANE).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import alu, dma, dpp, types as ty
from .buffers import differs_in_wave
from .ir import Inst, Operand
from .values import Array, choose_lanes, merge

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def _full(m: Machine, a: Array) -> Array:
    return np.broadcast_to(a, m.shape + a.shape[3:])


Compute = Callable[["Machine", list[Any]], Any]


def lane_op(c: Compiler, inst: Inst, count: int, data: tuple[int, ...], compute: Compute) -> list[Op]:
    """An intrinsic that moves values between lanes.

    The same function moves poison masks (see `poison.tracker`): they stand in for the operands in ``data``.
    """
    d, slots = c.dest(inst), [c.slot(o) for o in inst.operands[:count]]
    inst.extra["lane_op"] = (compute, slots, data)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = compute(m, [r[s] for s in slots])

    return [run]


def _readfirstlane(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        value = args[0]
        if isinstance(value, tuple):
            return tuple(dma.first_of_wave(m, v) for v in value)
        return dma.first_of_wave(m, value)

    ops = lane_op(c, inst, 1, (0,), compute)
    single = not isinstance(inst.operands[0].type, (ty.VecType, ty.StructType, ty.PtrType))
    if c.checks.uniformity and single and not _is_waterfall(c, inst):
        slot, bits = c.slot(inst.operands[0]), _bits_in_use(c, inst)

        def check(r: list[Any], m: Machine) -> None:
            value = r[slot] if bits is None else r[slot] & r[slot].dtype.type(bits)
            if differs_in_wave(m, value):
                m.launch.warn(inst, "readfirstlane of a value that differs between lanes")

        ops.insert(0, check)
    return ops


_MOVES = frozenset("bitcast insertelement extractelement shufflevector trunc zext inttoptr ptrtoint".split())


def _is_waterfall(c: Compiler, inst: Inst) -> bool:
    """Whether the result is compared with its operand: a loop over the values that lanes have."""
    moved, work = {inst.name}, [inst.name]
    while work:
        for user in c.uses.get(work.pop() or "", ()):
            if user.op in _MOVES and user.name not in moved:
                moved.add(user.name)
                work.append(user.name)
            elif user.op == "icmp" and user.extra["pred"] in ("eq", "ne"):
                others = [o for o in user.operands if getattr(o, "name", None) not in moved]
                if any(_is_made_from(c, o, getattr(inst.operands[0], "name", None)) for o in others):
                    return True
    return False


def _is_made_from(c: Compiler, operand: Operand, source: str | None) -> bool:
    seen: set[str] = set()
    work = [operand]
    while work:
        name = getattr(work.pop(), "name", None)
        if name is None or name in seen:
            continue
        if name == source:
            return True
        seen.add(name)
        made = c.defs.get(name)
        if made is not None and made.op in _MOVES:
            work += made.operands
    return False


def _bits_in_use(c: Compiler, inst: Inst) -> int | None:
    """The bits of an integer result that its users look at; ``None`` where they may look at all.

    Compilers take the number of the wave from the first lane's work item: the lower bits differ and do not count.
    """
    if not isinstance(inst.type, ty.IntType) or inst.name is None:
        return None
    every, bits = (1 << inst.type.bits) - 1, 0
    for user in c.uses.get(inst.name, ()):
        number = c.literal(user.operands[1]) if len(user.operands) == 2 else None
        if user.op == "and" and number is not None:
            bits |= number & every
        elif user.op in ("lshr", "ashr") and number is not None and number < inst.type.bits:
            above = _bits_in_use(c, user)
            bits |= (every if above is None else above) << number & every
            if user.op == "ashr" and (above is None or above >> (inst.type.bits - number)):
                bits |= 1 << (inst.type.bits - 1)
        elif user.op == "trunc" and isinstance(user.type, ty.IntType):
            bits |= (1 << user.type.bits) - 1
        elif user.op == "shl" and number is not None and number < inst.type.bits:
            above = _bits_in_use(c, user)
            bits |= (every if above is None else above) >> number
        else:
            return None
    return bits


def _readlane(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        index = dma.first_of_wave(m, args[1]).astype(np.int64) % m.wave_size
        return choose_lanes(_full(m, args[0]), np.broadcast_to(index, (*m.shape[:2], 1)))

    return lane_op(c, inst, 2, (0,), compute)


def _writelane(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        value, lane, old = args
        index = dma.first_of_wave(m, lane).astype(np.int64) % m.wave_size
        at = np.arange(m.wave_size).reshape(1, 1, -1) == index
        return merge(np.broadcast_to(at, m.shape), dma.first_of_wave(m, value), _full(m, old))

    return lane_op(c, inst, 3, (0, 2), compute)


def _bpermute(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        index = (_full(m, args[0]).astype(np.int64) >> 2) % m.wave_size
        got = choose_lanes(_full(m, args[1]), index)
        if not m.full:  # inactive lanes give zero
            got = np.where(choose_lanes(m.mask, index), got, got.dtype.type(0))
        return got

    return lane_op(c, inst, 2, (1,), compute)


def _permute(c: Compiler, inst: Inst) -> list[Op]:
    """``ds.permute``: pushes to the lane an address names; the highest lane wins, lanes nobody writes get zero."""

    def compute(m: Machine, args: list[Any]) -> Any:
        index = (_full(m, args[0]).astype(np.int64) >> 2) % m.wave_size
        source = _full(m, args[1])
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
        got = _full(m, args[0])[:, :, index]
        return got if m.full else np.where(m.mask[:, :, index], got, got.dtype.type(0))

    return lane_op(c, inst, 1, (0,), compute)


def wave_bits(m: Machine, flags: Array, bits: int) -> Array:
    """The flags of each wave's lanes as one integer.  Shape: ``(G, W, 1)``."""
    packed = np.packbits(np.ascontiguousarray(np.broadcast_to(flags, m.shape)), axis=-1, bitorder="little")
    padded = np.zeros((*packed.shape[:2], 8), np.uint8)
    padded[..., : packed.shape[-1]] = packed
    return padded.view(np.uint64).astype(ty.int_dtype(bits))


def _mask_bits(c: Compiler, inst: Inst, t: ty.Type) -> int:
    """Bits of a mask of lanes, which must have room for all of them.

    Raises:
        SimError: It has not; LLVM has no code for it.
    """
    bits = ty.bit_size(t)
    if bits < c.wave_size:
        raise SimError(
            f"'{c.program.text_of(inst)}': a mask of {bits} lanes, waves have {c.wave_size}", c.program.where(inst),
            f"use the form of i{c.wave_size}, or simulate the chip and wave size that the kernel is for",
        )  # fmt: skip
    return bits


def _ballot(c: Compiler, inst: Inst) -> list[Op]:
    d, a = c.dest(inst), c.slot(inst.operands[0])
    bits = _mask_bits(c, inst, inst.type)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = wave_bits(m, r[a] & m.mask, bits)

    return [run]


def _compare_ballot(fn_of: Callable[[int, ty.Type], Any]) -> Callable[[Compiler, Inst], list[Op]]:
    """``amdgcn.icmp`` / ``amdgcn.fcmp``: a comparison whose result is the wave's mask."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])
        compare = fn_of(c.immediate(inst, 2), inst.operands[0].type)
        bits = _mask_bits(c, inst, inst.type)

        def run(r: list[Any], m: Machine) -> None:
            r[d] = wave_bits(m, compare(r[a], r[b]) & m.mask, bits)

        return [run]

    return builder


_INT_CODES = dict(enumerate("eq ne ugt uge ult ule sgt sge slt sle".split(), 32))
_FLOAT_CODES = dict(enumerate("false oeq ogt oge olt ole one ord uno ueq ugt uge ult ule une true".split()))


def _mbcnt(shift: int) -> Callable[[Compiler, Inst], list[Op]]:
    """Counts the set bits of a mask below the lane, plus a base."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, mask, base = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

        def run(r: list[Any], m: Machine) -> None:
            lane = np.arange(m.wave_size, dtype=np.int64) - shift
            width = np.clip(lane, 0, 32).astype(np.uint64)
            below = ((np.uint64(1) << width) - np.uint64(1)).astype(np.uint32).reshape(1, 1, -1)
            r[d] = np.bitwise_count(r[mask] & below).astype(np.uint32) + r[base]

        return [run]

    return builder


def _dpp(update: bool) -> Callable[[Compiler, Inst], list[Op]]:
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
            got = _full(m, args[first])[:, :, index]
            reaches = np.broadcast_to(valid, m.shape)
            if not m.full:
                reaches = reaches & m.mask[:, :, index]
            zero = got.dtype.type(0)
            before = args[0] if update else zero
            passed, reached = (allowed[..., None], reaches[..., None]) if got.ndim == 4 else (allowed, reaches)
            return np.where(passed, np.where(reached, got, zero if bound else before), before)

        return lane_op(c, inst, first + 1, tuple(range(first + 1)), compute)

    return builder


def _permlane(rows: int) -> Callable[[Compiler, Inst], list[Op]]:
    """``permlane16`` / ``permlanex16``: each lane of a row of 16 picks a lane of the same or the other row."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        fetch_inactive, bound = c.immediate(inst, 4), c.immediate(inst, 5)

        def compute(m: Machine, args: list[Any]) -> Any:
            old, source, low, high = args
            lanes = np.arange(m.wave_size)
            select = np.where(lanes % 16 < 8, dma.first_of_wave(m, low), dma.first_of_wave(m, high))
            pick = (select >> (4 * (lanes % 8)).astype(np.uint32)) & np.uint32(15)
            index = np.broadcast_to(((lanes // 16) ^ rows) * 16 + pick.astype(np.int64), m.shape)
            got = choose_lanes(_full(m, source), index)
            if not m.full and not fetch_inactive:
                other = got.dtype.type(0) if bound else old
                got = np.where(choose_lanes(m.mask, index), got, other)
            return got

        return lane_op(c, inst, 4, (0, 1), compute)

    return builder


def _permlane_swap(width: int) -> Callable[[Compiler, Inst], list[Op]]:
    """``permlane16.swap`` / ``permlane32.swap``: odd rows of the first operand and even ones of the second swap.

    Source: CDNA4 ISA manual, V_PERMLANE16_SWAP_B32, V_PERMLANE32_SWAP_B32.
    """

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        def compute(m: Machine, args: list[Any]) -> Any:
            lanes = np.arange(m.wave_size)
            odd = (lanes // width) % 2 == 1
            x, y = _full(m, args[0]), _full(m, args[1])
            return (np.where(odd, y[:, :, lanes - width * odd], x), np.where(odd, y, x[:, :, (lanes + width * ~odd)]))

        return lane_op(c, inst, 2, (0, 1), compute)

    return builder


def _permlane_group(step: Callable[[Array, Array, Array], Array]) -> Callable[[Compiler, Inst], list[Op]]:
    """``permlane.bcast``, ``.up``, ``.down``, ``.xor`` of gfx1250: a lane of the same group, past its end the own one.

    The operands are the value, the lane or distance, and the width of the groups (a power of two; 0 is the wave).
    ``step`` gives the place in the group from place, distance and width.
    """

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        def compute(m: Machine, args: list[Any]) -> Any:
            lanes = np.arange(m.wave_size, dtype=np.int64)
            amount, width = (dma.first_of_wave(m, a).astype(np.int64) for a in args[1:3])
            whole = (width == 0) | (width & (width - 1) != 0) | (width > m.wave_size)
            width = np.where(whole, m.wave_size, width)
            place = lanes % width
            picked = step(place, amount & 0xFFFFFFFF, width)
            index = np.where((picked < 0) | (picked >= width), lanes, lanes - place + picked)
            return choose_lanes(_full(m, args[0]), np.broadcast_to(index, m.shape))

        return lane_op(c, inst, 3, (0,), compute)

    return builder


def _permlane_index(c: Compiler, inst: Inst) -> list[Op]:
    """``permlane.idx.gen``: the address for bpermute of a lane of the own group: its place, and the groups' width.

    Source: CDNA5 ISA manual, V_PERMLANE_IDX_GEN_B32.
    """
    d, place, width = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        group = dma.first_of_wave(m, r[width])
        odd = (group == 0) | (group & (group - np.uint32(1)) != 0)
        if (odd & m.mask).any():
            m.fault(inst, f"groups of {int(group[odd].flat[0])} lanes", odd & m.mask, "give a power of two")
        inside = group - np.uint32(1)
        lanes = np.arange(m.wave_size, dtype=np.uint32).reshape(1, 1, -1)
        r[d] = ((r[place] & np.uint32(63) & inside) + (lanes & ~inside)) << np.uint32(2)

    return [run]


def _permlane64(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        lanes = np.arange(m.wave_size)
        return _full(m, args[0])[:, :, lanes ^ 32] if m.wave_size == 64 else args[0]

    return lane_op(c, inst, 1, (0,), compute)


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


def _wave_reduce(operation: str) -> Callable[[Compiler, Inst], list[Op]]:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, a = c.dest(inst), c.slot(inst.operands[0])
        fn = _REDUCERS[operation](inst.type)

        def run(r: list[Any], m: Machine) -> None:
            value = _full(m, r[a])
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
        got = _full(m, args[0])[:, :, index]
        return got if m.full else np.where(m.mask[:, :, index], got, got.dtype.type(0))

    return lane_op(c, inst, 1, (0,), compute)


def _inverse_ballot(c: Compiler, inst: Inst) -> list[Op]:
    _mask_bits(c, inst, inst.operands[0].type)

    def compute(m: Machine, args: list[Any]) -> Any:
        word = dma.first_of_wave(m, args[0])
        return (word >> np.arange(m.wave_size, dtype=word.dtype)) & word.dtype.type(1) != 0

    return lane_op(c, inst, 1, (), compute)


def _bpermute_inactive(c: Compiler, inst: Inst) -> list[Op]:
    """``ds.bpermute.fi``: like bpermute, and reads inactive lanes too."""

    def compute(m: Machine, args: list[Any]) -> Any:
        return choose_lanes(_full(m, args[1]), (_full(m, args[0]).astype(np.int64) >> 2) % m.wave_size)

    return lane_op(c, inst, 2, (1,), compute)


def _shuffle(c: Compiler, inst: Inst) -> list[Op]:
    def compute(m: Machine, args: list[Any]) -> Any:
        return choose_lanes(_full(m, args[0]), _full(m, args[1]).astype(np.int64) % m.wave_size)

    return lane_op(c, inst, 2, (0,), compute)


def _permlane_var(rows: int) -> Callable[[Compiler, Inst], list[Op]]:
    """``permlane16.var``: like permlane16, each lane with its own selector."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        fetch_inactive, bound = c.immediate(inst, 3), c.immediate(inst, 4)

        def compute(m: Machine, args: list[Any]) -> Any:
            old, source, select = args
            lanes = np.arange(m.wave_size)
            index = ((lanes // 16) ^ rows) * 16 + (_full(m, select) & np.uint32(15)).astype(np.int64)
            got = choose_lanes(_full(m, source), index)
            if not m.full and not fetch_inactive:
                got = np.where(choose_lanes(m.mask, index), got, got.dtype.type(0) if bound else old)
            return got

        return lane_op(c, inst, 3, (0, 1), compute)

    return builder


def _set_inactive(c: Compiler, inst: Inst) -> list[Op]:
    return lane_op(c, inst, 2, (0, 1), lambda m, args: merge(m.mask, args[0], _full(m, args[1])))


TABLE: dict[str, Callable[[Compiler, Inst], list[Op]]] = {
    "amdgcn.readfirstlane": _readfirstlane,
    "amdgcn.readlane": _readlane,
    "amdgcn.writelane": _writelane,
    "amdgcn.ds.bpermute": _bpermute,
    "amdgcn.ds.permute": _permute,
    "amdgcn.ds.swizzle": _swizzle,
    "amdgcn.ballot": _ballot,
    "amdgcn.icmp": _compare_ballot(lambda code, t: alu.integer_compare(_INT_CODES[code], t)),
    "amdgcn.fcmp": _compare_ballot(lambda code, t: alu.float_compare(_FLOAT_CODES[code], t)),
    "amdgcn.mbcnt.lo": _mbcnt(0),
    "amdgcn.mbcnt.hi": _mbcnt(32),
    "amdgcn.mov.dpp": _dpp(False),
    "amdgcn.update.dpp": _dpp(True),
    "amdgcn.permlane16": _permlane(0),
    "amdgcn.permlane.bcast": _permlane_group(lambda place, amount, width: amount % width + 0 * place),
    "amdgcn.permlane.up": _permlane_group(lambda place, amount, width: place - amount),
    "amdgcn.permlane.down": _permlane_group(lambda place, amount, width: place + amount),
    "amdgcn.permlane.xor": _permlane_group(lambda place, amount, width: place ^ amount),
    "amdgcn.permlanex16": _permlane(1),
    "amdgcn.permlane16.swap": _permlane_swap(16),
    "amdgcn.permlane32.swap": _permlane_swap(32),
    "amdgcn.permlane64": _permlane64,
    "amdgcn.permlane16.var": _permlane_var(0),
    "amdgcn.permlanex16.var": _permlane_var(1),
    "amdgcn.permlane.idx.gen": _permlane_index,
    "amdgcn.mov.dpp8": _dpp8,
    "amdgcn.inverse.ballot": _inverse_ballot,
    "amdgcn.ds.bpermute.fi.b32": _bpermute_inactive,
    "amdgcn.wave.shuffle": _shuffle,
    "amdgcn.set.inactive": _set_inactive,
    **{f"amdgcn.wave.reduce.{op}": _wave_reduce(op) for op in _REDUCERS},
}
