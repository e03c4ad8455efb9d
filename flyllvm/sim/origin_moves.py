"""How origins go through instructions on registers: those that move bytes, and conversions of single elements.

Everything else computes, and what is computed has no origin.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import origin_calls, poison, types as ty
from .ir import Inst
from .origin_bytes import elements, flat, is_plain, or_unknown, splat, split
from .origins import UNKNOWN, ZERO, Move, byte_count
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler
    from .machine import Machine


def of(c: Compiler, inst: Inst) -> Move | None:
    """How a result gets its origin; ``None`` where it is computed."""
    maker = origin_calls.maker_of(inst) if inst.op == "call" else _MAKERS.get(inst.op)
    return maker(c, inst) if maker is not None else None


def same(c: Compiler, inst: Inst) -> Move | None:
    return Move((0,), lambda r, m, w: w[0])


def _bitcast(c: Compiler, inst: Inst) -> Move | None:
    source = inst.operands[0].type
    fits = is_plain(source, inst.type) and byte_count(source) == byte_count(inst.type)
    return Move((0,), lambda r, m, w: w[0]) if fits else None


def _resize(c: Compiler, inst: Inst) -> Move | None:
    """``trunc``, ``zext`` and ``sext``: the low bytes stay."""
    source, target = elements(inst.operands[0].type), elements(inst.type)
    if source is None or target is None:
        return None
    (count, before), (_, after) = source, target
    fill = ZERO if inst.op == "zext" else UNKNOWN

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        parts = split(w[0], count)
        if after <= before:
            return flat(parts[..., :after])
        high = np.full((*parts.shape[:-1], after - before), fill, np.int64)
        return flat(np.concatenate((parts, high), axis=-1))

    return Move((0,), carry)


def _element_of(words: Array) -> Array:
    """One origin for each element: that of any byte that has one."""
    return words.max(axis=-1, keepdims=True)


def _convert(c: Compiler, inst: Inst) -> Move | None:
    """``fpext``, ``fptrunc``, ``sitofp``, ``uitofp``: every byte of an element comes from the element."""
    source, target = elements(inst.operands[0].type), elements(inst.type)
    if source is None or target is None:
        return None
    return Move((0,), lambda r, m, w: flat(np.repeat(_element_of(split(w[0], source[0])), target[1], axis=-1)))


def _shift(c: Compiler, inst: Inst) -> Move | None:
    """Shifts by whole bytes."""
    amount, shape = splat(inst.operands[1]), elements(inst.type)
    if amount is None or amount % 8 or shape is None or amount >= 8 * shape[1]:
        return None
    by, fill = amount // 8, UNKNOWN if inst.op == "ashr" else ZERO

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        parts = split(w[0], shape[0])
        new = np.full((*parts.shape[:-1], by), fill, np.int64)
        kept = parts[..., : shape[1] - by] if inst.op == "shl" else parts[..., by:]
        return flat(np.concatenate((new, kept) if inst.op == "shl" else (kept, new), axis=-1))

    return Move((0,), carry)


def _and(c: Compiler, inst: Inst) -> Move | None:
    """``and`` with a mask of whole bytes."""
    mask, shape = splat(inst.operands[1]), elements(inst.type)
    if mask is None or shape is None:
        return None
    kept = [mask >> 8 * i & 0xFF for i in range(shape[1])] * shape[0]
    whole, none = np.array([b == 0xFF for b in kept]), np.array([b == 0 for b in kept])
    return Move((0,), lambda r, m, w: np.where(whole, w[0], np.where(none, ZERO, UNKNOWN)))


def _or(c: Compiler, inst: Inst) -> Move | None:
    """``or`` and ``xor``: a byte with zero is that byte."""

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        a, b = w
        if a is None or b is None:
            return None
        return np.where(a == ZERO, b, np.where(b == ZERO, a, UNKNOWN))

    return Move((0, 1), carry) if elements(inst.type) is not None else None


def _select(c: Compiler, inst: Inst) -> Move | None:
    cond = c.slot(inst.operands[0])

    def choose(pick: Array, yes: Any, no: Any) -> Any:
        if yes is None and no is None:
            return None
        if isinstance(yes, tuple) or isinstance(no, tuple):
            count = len(yes if isinstance(yes, tuple) else no)
            return tuple(choose(pick, y, n) for y, n in zip(yes or (None,) * count, no or (None,) * count, strict=True))
        pick = pick[..., None] if pick.ndim == 3 else np.repeat(pick, shape[1] if shape else 1, axis=-1)
        return np.where(pick, UNKNOWN if yes is None else yes, UNKNOWN if no is None else no)

    shape = elements(inst.type) if is_plain(inst.type) else None
    if shape is None and isinstance(inst.operands[0].type, ty.VecType):
        return None
    return Move((1, 2), lambda r, m, w: choose(r[cond], *w))


def _insertelement(c: Compiler, inst: Inst) -> Move | None:
    shape, at = elements(inst.type), c.slot(inst.operands[2])
    if shape is None:
        return None
    count, size = shape

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        vector, part = or_unknown(w[0], count * size), or_unknown(w[1], size)
        there = r[at][..., None] == np.arange(count, dtype=np.uint64)
        return flat(np.where(there[..., None], part[..., None, :], split(vector, count)))

    return Move((0, 1), carry)


def _extractelement(c: Compiler, inst: Inst) -> Move | None:
    shape, at = elements(inst.operands[0].type), c.slot(inst.operands[1])
    if shape is None:
        return None
    known = c.literal(inst.operands[1])

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        parts = split(w[0], shape[0])
        if known is not None:
            return parts[..., min(known, shape[0] - 1), :]
        lanes = np.broadcast_shapes(parts.shape[:3], r[at].shape)
        index = np.broadcast_to(np.minimum(r[at].astype(np.int64), shape[0] - 1), lanes)[..., None, None]
        return np.take_along_axis(np.broadcast_to(parts, lanes + parts.shape[3:]), index, axis=-2)[..., 0, :]

    return Move((0,), carry)


def _shuffle(c: Compiler, inst: Inst) -> Move | None:
    shape = elements(inst.operands[0].type)
    if shape is None:
        return None
    count, size = shape
    index = np.array([0 if i is None else i for i in poison.shuffle_indices(inst)])
    first, first_only = int(index[0]), bool((index < count).all())
    is_slice = first_only and bool((np.diff(index) == 1).all())

    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        if is_slice:
            return None if w[0] is None else w[0][..., first * size : (first + len(index)) * size]
        a, b = (split(or_unknown(x, count * size), count) for x in w)
        if first_only:
            return flat(a[..., index, :])
        lanes = np.broadcast_shapes(a.shape[:3], b.shape[:3])
        both = [np.broadcast_to(x, lanes + x.shape[3:]) for x in (a, b)]
        return flat(np.concatenate(both, axis=-2)[..., index, :])

    return Move((0, 1), carry)


def _insertvalue(c: Compiler, inst: Inst) -> Move | None:
    def put(whole: Any, t: ty.Type, path: tuple[int, ...], part: Any) -> Any:
        if not path:
            return part
        types = [t.elem] * t.count if isinstance(t, ty.ArrayType) else list(getattr(t, "elems", None) or ())
        parts = list(whole) if whole is not None else [None] * len(types)
        parts[path[0]] = put(parts[path[0]], types[path[0]], path[1:], part)
        return tuple(parts)

    return Move((0, 1), lambda r, m, w: put(w[0], inst.type, inst.extra["indices"], w[1]))


def _extractvalue(c: Compiler, inst: Inst) -> Move | None:
    def carry(r: list[Any], m: Machine, w: list[Any]) -> Any:
        value = w[0]
        for index in inst.extra["indices"]:
            value = value[index] if value is not None else None
        return value

    return Move((0,), carry)


_MAKERS: dict[str, Callable[[Compiler, Inst], Move | None]] = {
    "freeze": same, "bitcast": _bitcast, "trunc": _resize, "zext": _resize, "sext": _resize,
    **dict.fromkeys(("fpext", "fptrunc", "sitofp", "uitofp"), _convert),
    **dict.fromkeys(("shl", "lshr", "ashr"), _shift), "and": _and, "or": _or, "xor": _or,
    "select": _select, "insertelement": _insertelement, "extractelement": _extractelement, "shufflevector": _shuffle,
    "insertvalue": _insertvalue, "extractvalue": _extractvalue,
}  # fmt: skip
