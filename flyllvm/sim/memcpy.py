"""``llvm.memcpy``, ``llvm.memmove`` and ``llvm.memset``, byte by byte through the checked memory operations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from . import mem_ops, poison, transfer, types as ty
from .ir import Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def _bytes(m: Machine, length: Array) -> Iterator[Array]:
    """For each byte in turn the lanes that copy it."""
    wide = np.broadcast_to(length, m.shape)
    mask, lengths = m.mask, np.unique(wide[m.mask])
    for i in range(int(lengths[-1])):
        yield mask if i < int(lengths[0]) else mask & (wide > i)


def _copy(c: Compiler, inst: Inst) -> list[Op]:
    """Bytes that were never written, such as the padding of a struct, stay so in the copy."""
    target, source, length = (c.slot(o) for o in inst.operands[:3])
    to, of = mem_ops.space_of(c, inst, 0), mem_ops.space_of(c, inst, 1)
    loads, stores = mem_ops.loader(inst, ty.I8, of, 1), mem_ops.storer(inst, ty.I8, to, 1)
    guard = poison.guard(c, inst, [0, 1, 2], "the address or length")

    def run(r: list[Any], m: Machine) -> None:
        a, b, saved = r[target], r[source], m.mask
        data: list[tuple[Array, Array | None, Array]] = []
        for i, lanes in enumerate(_bytes(m, r[length])):
            m.enter(lanes)
            unset = _never_written(m, inst, of, b + b.dtype.type(i))
            if unset is not None:
                m.enter(lanes & ~unset)
            byte = loads(m, b + b.dtype.type(i)) if m.active else np.zeros(m.shape, np.uint8)
            data.append((lanes, unset, byte))
        for i, (lanes, unset, byte) in enumerate(data):
            place = a + a.dtype.type(i)
            m.enter(lanes if unset is None else lanes & ~unset)
            if m.active:
                stores(m, place, byte)
            if unset is not None:
                m.enter(unset)
                _forget(m, inst, to, place)
        m.enter(saved)

    return [guard, run] if guard else [run]


def _never_written(m: Machine, inst: Inst, space_name: str, address: Array) -> Array | None:
    """The running lanes that read a byte which nothing wrote; ``None`` where there are none."""
    if space_name == "global" or not m.program.checks.lds:
        return None
    if space_name == "flat":
        parts = mem_ops.each_flat(m, address, lambda name, a: _never_written(m, inst, name, a))
        masks = [mask for _, mask in parts if mask is not None]
        return np.logical_or.reduce(masks) if masks else None
    where = transfer.locate(m, inst, space_name, address, 1, 1, False)
    if space_name == "private":
        known = m.private_written[where.offset]
    else:
        known = m.shadow.written.take(m.shadow.indices(where.offset, 1), mode="clip") != 0
    if known.all():
        return None
    unset: Array = ~(transfer.expanded(m, known) if where.packed else np.broadcast_to(known, m.shape)) & m.mask
    return unset if unset.any() else None


def _forget(m: Machine, inst: Inst, space_name: str, address: Array) -> None:
    """The bytes at an address have no content any more."""
    if space_name == "flat":
        mem_ops.each_flat(m, address, lambda name, a: _forget(m, inst, name, a))
    elif space_name == "private":
        m.private_written[transfer.locate(m, inst, "private", address, 1, 1, True).offset] = False
    elif space_name == "global":
        m.launch.warn(inst, "bytes that were never written are copied to global memory (padding of a struct?)")


def _set(c: Compiler, inst: Inst) -> list[Op]:
    target, value, length = (c.slot(o) for o in inst.operands[:3])
    stores = mem_ops.storer(inst, ty.I8, mem_ops.space_of(c, inst, 0), 1)
    guard = poison.guard(c, inst, [0, 1, 2], "the address, value or length")

    def run(r: list[Any], m: Machine) -> None:
        a, saved = r[target], m.mask
        for i, lanes in enumerate(_bytes(m, r[length])):
            m.enter(lanes)
            stores(m, a + a.dtype.type(i), r[value])
        m.enter(saved)

    return [guard, run] if guard else [run]


def _lifetime(c: Compiler, inst: Inst) -> list[Op]:
    """``lifetime.start`` and ``lifetime.end``: the variable has no content.

    The pointer comes last; before LLVM 22 there is a size in front of it.
    """
    alloca = c.defs.get(getattr(inst.operands[-1], "name", ""))
    if not c.checks.lds or alloca is None or alloca.op != "alloca":
        return []
    start = alloca.extra["address"]
    size = (c.literal(alloca.operands[0]) or 1 if alloca.operands else 1) * ty.alloc_size(alloca.extra["base_type"])

    def run(r: list[Any], m: Machine) -> None:
        m.private_written.reshape((*m.shape, -1))[m.mask, start : start + size] = False

    return [run]


TABLE = {
    "lifetime.start": _lifetime,
    "lifetime.end": _lifetime,
    "memcpy": _copy,
    "memmove": _copy,
    "memset": _set,
    "memcpy.inline": _copy,
    "memset.inline": _set,
}
