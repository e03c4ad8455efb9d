"""Closures that take vectors and aggregates apart and put them together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import poison, types as ty
from .ir import Inst, Reg
from .ops import binary, unary

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def extractelement(c: Compiler, inst: Inst) -> list[Op]:
    """``extractelement``; an index past the end is a fault."""
    d, a = c.dest(inst), c.slot(inst.operands[0])
    index = c.literal(inst.operands[1])
    if index is not None and index < getattr(inst.operands[0].type, "count", 0):

        def run(r: list[Any], m: Machine) -> None:
            r[d] = r[a][..., index]

        return [run]
    i = c.slot(inst.operands[1])

    def run_dynamic(r: list[Any], m: Machine) -> None:
        vector, at = r[a], r[i].astype(np.int64)
        at = np.minimum(at, vector.shape[-1] - 1)
        shape = np.broadcast_shapes(vector.shape[:3], at.shape)
        vector = np.broadcast_to(vector, shape + vector.shape[-1:])
        r[d] = np.take_along_axis(vector, np.broadcast_to(at, shape)[..., None], axis=-1)[..., 0]

    return [_index_check(c, inst, 1), run_dynamic]


def _index_check(c: Compiler, inst: Inst, position: int) -> Op:
    slot, count = c.slot(inst.operands[position]), getattr(inst.operands[0].type, "count", 0)

    def run(r: list[Any], m: Machine) -> None:
        bad = r[slot] >= count
        if bad.any() and (bad & m.mask).any():
            m.fault(inst, f"the index is outside a vector of {count} elements", bad & m.mask)

    return run


def insertelement(c: Compiler, inst: Inst) -> list[Op]:
    """``insertelement``; an index past the end is a fault."""
    if _at_known_place(c, inst):
        return _insert_chain(c, inst)
    d = c.dest(inst)
    a, v, i = (c.slot(o) for o in inst.operands)

    def run(r: list[Any], m: Machine) -> None:
        at = r[i][..., None] == np.arange(r[a].shape[-1])
        r[d] = np.where(at, r[v][..., None], r[a])

    return [_index_check(c, inst, 2), run]


def _insert_chain(c: Compiler, inst: Inst) -> list[Op]:
    """A chain of insertions, each read only by the next one, becomes one construction at its end."""
    if _extends(c, inst) is not None:
        return []
    writes: dict[int, int] = {}
    link: Inst | None = inst
    base = inst.operands[0]
    while link is not None:
        writes.setdefault(c.literal(link.operands[2]) or 0, c.slot(link.operands[1]))
        base = link.operands[0]
        before = c.defs.get(base.name) if isinstance(base, Reg) else None
        link = before if before is not None and _extends(c, before) is link else None
    d, a = c.dest(inst), c.slot(base)
    count = getattr(inst.type, "count", 0)
    dtype = ty.dtype_of(inst.type)
    items = [(i, s) for i, s in writes.items() if i < count]
    whole = len(items) == count

    def run(r: list[Any], m: Machine) -> None:
        parts = [r[s] for _, s in items]
        shapes = [p.shape for p in parts]
        if not whole:
            shapes.append(r[a].shape[:3])
        out = np.empty((*np.broadcast_shapes(*shapes), count), dtype)
        if not whole:
            out[...] = r[a]
        for (i, _), part in zip(items, parts, strict=True):
            out[..., i] = part
        r[d] = out

    return [run]


def _at_known_place(c: Compiler, inst: Inst) -> bool:
    index = c.literal(inst.operands[2]) if inst.op == "insertelement" else None
    return index is not None and index < getattr(inst.type, "count", 0)


def _extends(c: Compiler, inst: Inst) -> Inst | None:
    """The insertion that alone reads this one, in the same node."""
    users = c.uses.get(inst.name or "", [])
    if len(users) != 1 or not (_at_known_place(c, inst) and _at_known_place(c, users[0])):
        return None
    first = users[0].operands[0]
    if not (isinstance(first, Reg) and first.name == inst.name) or c.user_node(users[0]) != c.user_node(inst):
        return None
    return users[0]


def shufflevector(c: Compiler, inst: Inst) -> list[Op]:
    """``shufflevector``: a view, a gather, or a gather over both operands."""
    d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])
    count = getattr(inst.operands[0].type, "count", 1)
    wanted = [0 if i is None else i for i in poison.shuffle_indices(inst)]
    if all(i < count for i in wanted):
        lo = wanted[0]
        if wanted == list(range(lo, lo + len(wanted))):
            hi = lo + len(wanted)

            def run_slice(r: list[Any], m: Machine) -> None:
                r[d] = r[a][..., lo:hi]

            return [run_slice]
        index = np.array(wanted)

        def run_take(r: list[Any], m: Machine) -> None:
            r[d] = r[a].take(index, axis=-1)

        return [run_take]
    index = np.array(wanted)

    def run(r: list[Any], m: Machine) -> None:
        x, y = r[a], r[b]
        if x.shape != y.shape:
            shape = np.broadcast_shapes(x.shape, y.shape)
            x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
        r[d] = np.concatenate((x, y), axis=-1).take(index, axis=-1)

    return [run]


def extractvalue(c: Compiler, inst: Inst) -> list[Op]:
    """``extractvalue``."""
    indices = inst.extra["indices"]

    def pick(value: Any) -> Any:
        for i in indices:
            value = value[i]
        return value

    return [unary(c, inst, pick)]


def insertvalue(c: Compiler, inst: Inst) -> list[Op]:
    """``insertvalue``: a new tuple with one member replaced."""
    indices = inst.extra["indices"]

    def put(whole: Any, part: Any, path: tuple[int, ...]) -> Any:
        if not path:
            return part
        return tuple(put(v, part, path[1:]) if i == path[0] else v for i, v in enumerate(whole))

    return [binary(c, inst, lambda whole, part: put(whole, part, indices))]
