"""Poison and undef: which values may be poison is found before running, masks are kept only for those.

A value that the analysis clears costs nothing at run time.  For the others ``machine.poison[slot]`` is ``None`` (no
poison now) or a mask; a store, address, branch or division that reads a set flag of a running lane is an error.

Source: LLVM LangRef, poison values, undefined values, freeze.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import convert, poison_parts, types as ty
from .cfg import Node
from .ir import Const, Inst, Operand, Reg
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler
    from .machine import Machine

_CLEAN = frozenset(("freeze", "load", "alloca", "atomicrmw", "cmpxchg"))
_SHIFTS = ("shl", "lshr", "ashr")


def _width(t: ty.Type) -> int:
    """Parts of a value that are tracked apart: elements of a vector, members of an aggregate."""
    if isinstance(t, (ty.VecType, ty.ArrayType)):
        return t.count
    return len(t.elems or ()) if isinstance(t, ty.StructType) else 1


def constant_bits(operand: Operand) -> int:
    """Poison or undef elements of a constant, one bit per element."""
    if not isinstance(operand, Const):
        return 0
    if operand.kind in ("poison", "undef"):
        return (1 << _width(operand.type)) - 1
    if operand.kind == "agg":
        return sum(1 << i for i, e in enumerate(operand.value) if constant_bits(e))
    return 0


def constant_mask(operand: Operand) -> Any:
    """The poison mask of a constant for the machine."""
    bits = constant_bits(operand)
    if not bits:
        return None
    if _is_aggregate(operand.type):
        if isinstance(operand, Const) and operand.kind == "agg":
            return tuple(constant_mask(e) for e in operand.value)
        return tuple(constant_mask(Const(t, "poison")) for t in _member_types(operand.type))
    if isinstance(operand.type, ty.VecType):
        return np.array([bool(bits >> i & 1) for i in range(operand.type.count)]).reshape(1, 1, 1, -1)
    return np.ones((1, 1, 1), bool)


def _is_aggregate(t: ty.Type) -> bool:
    return isinstance(t, (ty.StructType, ty.ArrayType))


def _member_types(t: ty.Type) -> list[ty.Type]:
    if isinstance(t, ty.ArrayType):
        return [t.elem] * t.count
    return list(t.elems or ()) if isinstance(t, ty.StructType) else []


def analyse(graph: list[Node]) -> dict[str, int]:
    """Elements of each value that may be poison, one bit per element; values that are never poison are absent."""
    state: dict[str, int] = {}
    defs = {inst.name: inst for node in graph for inst in node.insts if inst.name is not None}

    def bits(operand: Operand) -> int:
        return state.get(operand.name, 0) if isinstance(operand, Reg) else constant_bits(operand)

    changed = True
    while changed:
        changed = False
        for node in graph:
            for inst in (*node.phis, *node.insts):
                if inst.name is None:
                    continue
                new = _transfer(inst, bits, defs)
                if new & ~state.get(inst.name, 0):
                    state[inst.name] = state.get(inst.name, 0) | new
                    changed = True
    return state


def _transfer(inst: Inst, bits: Callable[[Operand], int], defs: dict[str, Inst]) -> int:
    op, operands = inst.op, inst.operands
    if op in _CLEAN or (_is_aggregate(inst.type) and op not in ("phi", "select", "insertvalue", "extractvalue")):
        return 0
    every = (1 << _width(inst.type)) - 1
    if op == "insertvalue":
        path = inst.extra["indices"]
        kept = bits(operands[0]) & ~(1 << path[0]) if len(path) == 1 else bits(operands[0])
        return kept | (1 << path[0] if bits(operands[1]) else 0)
    if op == "extractvalue":
        return every if bits(operands[0]) >> inst.extra["indices"][0] & 1 else 0
    if op == "insertelement":
        index = operands[2]
        if isinstance(index, Const) and index.kind in ("int", "zero"):
            at = 1 << int(index.value or 0)
            return (bits(operands[0]) & ~at) | (at if bits(operands[1]) else 0)
        return bits(operands[0]) | (every if bits(operands[1]) else 0)
    if op == "extractelement":
        index = operands[1]
        if isinstance(index, Const) and index.kind in ("int", "zero"):
            return bits(operands[0]) >> int(index.value or 0) & 1
        return int(bits(operands[0]) != 0)
    if op == "shufflevector":
        return _shuffle_bits(inst, bits)
    parts = poison_parts.parts_of(inst, defs)
    if parts is not None:
        return poison_parts.bits_of(parts, bits)
    if op == "call" and not elementwise_call(inst):
        return every if any(bits(o) for o in operands) else 0
    if op == "bitcast":
        return _recount(bits(operands[0]), _width(operands[0].type), _width(inst.type))
    seed = every if may_overshift(inst) or op in ("fptosi", "fptoui") or _may_be_excluded(inst) else 0
    for operand in operands[1:] if op == "select" and _is_aggregate(inst.type) else operands:
        part = bits(operand)
        if part:
            seed |= part if _width(operand.type) == _width(inst.type) else every
    return seed


def elementwise_call(inst: Inst) -> bool:
    """Whether element i of the result depends only on elements i of the operands."""
    name = inst.callee or ""
    return name.startswith("llvm.") and not name.startswith("llvm.amdgcn.") and not name.startswith("llvm.vector")


def _may_be_excluded(inst: Inst) -> bool:
    """Whether an intrinsic is told that its operand is never zero (``ctlz``, ``cttz``) or the minimum (``abs``)."""
    name = (inst.callee or "").removeprefix("llvm.").partition(".")[0]
    if inst.op != "call" or name not in ("ctlz", "cttz", "abs") or not isinstance(inst.operands[1], Const):
        return False
    return bool(inst.operands[1].value)


def may_overshift(inst: Inst) -> bool:
    """Whether a shift amount might reach the width."""
    if inst.op not in _SHIFTS:
        return False
    amount, width = inst.operands[1], ty.bit_size(ty.scalar_of(inst.type))
    if isinstance(amount, Const):
        if amount.kind in ("int", "zero"):
            return int(amount.value or 0) >= width
        if amount.kind == "agg":
            return not all(isinstance(e, Const) and e.kind in ("int", "zero") and int(e.value or 0) < width
                           for e in amount.value)  # fmt: skip
    return True


def shuffle_indices(inst: Inst) -> list[int | None]:
    """Source element of each result element, counted over both operands; ``None`` for poison."""
    mask = inst.operands[2]
    count = _width(mask.type)
    if isinstance(mask, Const) and mask.kind == "agg":
        return [int(e.value or 0) if e.kind in ("int", "zero") else None for e in mask.value]
    if isinstance(mask, Const) and mask.kind in ("poison", "undef"):
        return [None] * count
    return [0] * count


def _shuffle_bits(inst: Inst, bits: Callable[[Operand], int]) -> int:
    both = bits(inst.operands[0]) | bits(inst.operands[1]) << _width(inst.operands[0].type)
    return sum(1 << i for i, s in enumerate(shuffle_indices(inst)) if s is None or both >> s & 1)


def _recount(bits: int, source: int, target: int) -> int:
    """Elements that hold bits of the given ones when the same memory is cut into another number of elements."""
    flags = [bits >> i & 1 for i in range(source)]
    return sum(1 << j for j in range(target) if any(flags[j * source // target : -(-(j + 1) * source // target)]))


# ---- run time


def _union(flags: list[Any], target_vector: bool) -> Any:
    result: Any = None
    for flag in flags:
        if flag is None:
            continue
        if target_vector and flag.ndim == 3:
            flag = flag[..., None]
        elif not target_vector and flag.ndim == 4:
            flag = flag.any(axis=-1)
        result = flag if result is None else result | flag
    return result


def tracker(c: Compiler, inst: Inst) -> Callable[[list[Any], Machine], None]:
    """The closure that computes the poison mask of a result after its value."""
    d, slots = c.dest(inst), [c.slot(o) for o in inst.operands if o.type is not ty.METADATA]
    special = {
        "insertelement": _track_insert, "extractelement": _track_extract, "shufflevector": _track_shuffle,
        "bitcast": _track_bitcast, "select": _track_select,
        "insertvalue": _track_insertvalue, "extractvalue": _track_extractvalue,
    }.get(inst.op)  # fmt: skip
    if special is not None:
        return special(c, inst, d, slots)
    if "lane_op" in inst.extra:
        return _track_lanes(inst, d)
    parts = poison_parts.parts_of(inst, c.defs)
    if parts is not None:
        return poison_parts.tracker(parts, d, c.slot, isinstance(inst.type, ty.VecType))
    seed = _seed(inst, slots)
    vector = isinstance(inst.type, ty.VecType)
    aligned = not (inst.op == "call" and not elementwise_call(inst))

    def track(r: list[Any], m: Machine) -> None:
        flags = [m.poison[s] for s in slots]
        if seed is not None:
            flags.append(seed(r))
        result = _union(flags, vector)
        if result is not None and vector and (not aligned or result.shape[-1] not in (1, r[d].shape[-1])):
            result = np.broadcast_to(result.any(axis=-1, keepdims=True), result.shape[:-1] + r[d].shape[-1:])
        m.poison[d] = result if result is not None and result.any() else None

    return track


def _seed(inst: Inst, slots: list[int]) -> Callable[[list[Any]], Array] | None:
    if may_overshift(inst):
        width = ty.bit_size(ty.scalar_of(inst.type))
        return lambda r: r[slots[1]] >= width
    if inst.op in ("fptosi", "fptoui"):
        bits = ty.bit_size(ty.scalar_of(inst.type))
        check = convert.out_of_range(inst.operands[0].type, bits, inst.op == "fptosi")
        return lambda r: check(r[slots[0]])
    if _may_be_excluded(inst):
        bits = ty.bit_size(ty.scalar_of(inst.type))
        excluded = 1 << bits - 1 if ".abs." in (inst.callee or "") else 0
        return lambda r: r[slots[0]] == excluded
    return None


def _expanded(flags: Any, count: int) -> Array:
    if flags is None:
        return np.zeros((1, 1, 1, count), bool)
    return np.broadcast_to(flags if flags.ndim == 4 else flags[..., None], (*flags.shape[:3], count))


def _settle(flags: Array) -> Any:
    return flags if flags.any() else None


def _track_insert(c: Compiler, inst: Inst, d: int, slots: list[int]) -> Callable[[list[Any], Machine], None]:
    count = _width(inst.type)

    def track(r: list[Any], m: Machine) -> None:
        vector, value = m.poison[slots[0]], m.poison[slots[1]]
        at = r[slots[2]][..., None] == np.arange(count)
        if vector is None and value is None:
            m.poison[d] = None
            return
        m.poison[d] = _settle(np.where(at, _expanded(value, count), _expanded(vector, count)))

    return track


def _track_extract(c: Compiler, inst: Inst, d: int, slots: list[int]) -> Callable[[list[Any], Machine], None]:
    count = _width(inst.operands[0].type)

    def track(r: list[Any], m: Machine) -> None:
        flags = m.poison[slots[0]]
        if flags is None:
            m.poison[d] = None
            return
        at = r[slots[1]][..., None] == np.arange(count)
        m.poison[d] = _settle((_expanded(flags, count) & at).any(axis=-1))

    return track


def _track_bitcast(c: Compiler, inst: Inst, d: int, slots: list[int]) -> Callable[[list[Any], Machine], None]:
    source, target = _width(inst.operands[0].type), _width(inst.type)
    ranges = [range(j * source // target, -(-(j + 1) * source // target)) for j in range(target)]

    def track(r: list[Any], m: Machine) -> None:
        flags = m.poison[slots[0]]
        if flags is not None:
            wide = _expanded(flags, source)
            flags = np.stack([wide[..., part.start : part.stop].any(axis=-1) for part in ranges], axis=-1)
            flags = flags if isinstance(inst.type, ty.VecType) else flags[..., 0]
        m.poison[d] = flags

    return track


def _track_shuffle(c: Compiler, inst: Inst, d: int, slots: list[int]) -> Callable[[list[Any], Machine], None]:
    count = _width(inst.operands[0].type)
    indices = shuffle_indices(inst)
    lost = np.array([i is None for i in indices])
    source = np.array([0 if i is None else i for i in indices])

    def track(r: list[Any], m: Machine) -> None:
        first, second = _expanded(m.poison[slots[0]], count), _expanded(m.poison[slots[1]], count)
        shape = np.broadcast_shapes(first.shape[:3], second.shape[:3])
        both = np.concatenate(
            [np.broadcast_to(first, (*shape, count)), np.broadcast_to(second, (*shape, count))], axis=-1
        )
        m.poison[d] = _settle(both[..., source] | lost)

    return track


def _track_select(c: Compiler, inst: Inst, d: int, slots: list[int]) -> Callable[[list[Any], Machine], None]:
    count = _width(inst.type)
    vector = isinstance(inst.type, ty.VecType)

    def track(r: list[Any], m: Machine) -> None:
        cond, yes, no = (m.poison[s] for s in slots)
        if cond is None and yes is None and no is None:
            m.poison[d] = None
            return
        pick = r[slots[0]]
        if isinstance(yes, tuple) or isinstance(no, tuple):
            m.poison[d] = merge_masks(np.broadcast_to(pick, m.shape), yes, no)
            return
        if vector and pick.ndim == 3:
            pick = pick[..., None]
        parts = [_expanded(f, count) if vector else (np.zeros((1, 1, 1), bool) if f is None else f)
                 for f in (cond, yes, no)]  # fmt: skip
        m.poison[d] = _settle(parts[0] | np.where(pick, parts[1], parts[2]))

    return track


def _track_insertvalue(c: Compiler, inst: Inst, d: int, slots: list[int]) -> Callable[[list[Any], Machine], None]:
    whole = inst.type

    def put(flags: Any, t: ty.Type, path: tuple[int, ...], part: Any) -> Any:
        if not path:
            return part
        types = _member_types(t)
        parts = list(flags) if flags is not None else [None] * len(types)
        parts[path[0]] = put(parts[path[0]], types[path[0]], path[1:], part)
        return tuple(parts) if any(p is not None for p in parts) else None

    def track(r: list[Any], m: Machine) -> None:
        m.poison[d] = put(m.poison[slots[0]], whole, inst.extra["indices"], m.poison[slots[1]])

    return track


def _track_extractvalue(c: Compiler, inst: Inst, d: int, slots: list[int]) -> Callable[[list[Any], Machine], None]:
    def track(r: list[Any], m: Machine) -> None:
        flags = m.poison[slots[0]]
        for index in inst.extra["indices"]:
            flags = flags[index] if flags is not None else None
        m.poison[d] = flags

    return track


def merge_masks(mask: Array | None, new: Any, old: Any) -> Any:
    """Poison masks after the lanes of ``mask`` (``None``: all) got ``new`` and the others kept ``old``."""
    if mask is None or (new is None and old is None):
        return new
    if isinstance(new, tuple) or isinstance(old, tuple):
        count = len(new if isinstance(new, tuple) else old)
        new, old = new or (None,) * count, old or (None,) * count
        parts = tuple(merge_masks(mask, n, o) for n, o in zip(new, old, strict=True))
        return parts if any(p is not None for p in parts) else None
    none = np.zeros((1, 1, 1), bool)
    new, old = none if new is None else new, none if old is None else old
    if new.ndim != old.ndim:
        new = new if new.ndim == 4 else new[..., None]
        old = old if old.ndim == 4 else old[..., None]
    return _settle(np.where(mask[..., None] if new.ndim == 4 else mask, new, old))


def per_lane(flags: Any) -> Any:
    """One flag per lane from the masks of all parts; ``None`` without poison."""
    if isinstance(flags, tuple):
        result: Any = None
        for part in map(per_lane, flags):
            if part is not None:
                result = part if result is None else result | part
        return result
    return flags.any(axis=-1) if flags is not None and flags.ndim == 4 else flags


def _track_lanes(inst: Inst, d: int) -> Callable[[list[Any], Machine], None]:
    """Masks move between lanes as values do."""
    compute, slots, data = inst.extra["lane_op"]

    def track(r: list[Any], m: Machine) -> None:
        if all(m.poison[slots[i]] is None for i in data):
            m.poison[d] = None
            return
        args = [r[s] for s in slots]
        for i in data:
            flags = m.poison[slots[i]]
            args[i] = np.zeros(args[i].shape, bool) if flags is None else flags
        m.poison[d] = _settle(compute(m, args))

    return track


def guard(c: Compiler, inst: Inst, positions: list[int], use: str) -> Callable[[list[Any], Machine], None] | None:
    """A closure that reports poison in operands of an instruction with side effects."""
    slots = [c.slot(inst.operands[p]) for p in positions if c.is_poison(inst.operands[p])]
    if not slots:
        return None

    def check(r: list[Any], m: Machine) -> None:
        for slot in slots:
            flags = per_lane(m.poison[slot])
            if flags is None:
                continue
            bad = flags & m.mask
            if bad.any():
                m.fault(inst, f"{use} is poison or undef", bad, "initialise the value on every path that leads here")

    return check
