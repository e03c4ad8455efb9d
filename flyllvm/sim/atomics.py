"""Atomic read-modify-write operations: lanes that meet at one address act one after the other, in lane order."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import alu, convert, mem_ops, ordering, poison, transfer, types as ty
from .ir import Inst
from .memory import UNITS
from .race_fault import ATOMIC
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Update = Callable[[Array, Array], Array]


def update_function(operation: str, t: ty.Type) -> Update | None:
    """New value from the old one and the operand; ``None`` for an unknown operation."""
    scalar = ty.scalar_of(t)
    if isinstance(scalar, ty.IntType):
        return _integer_update(operation, scalar.bits)
    floats: dict[str, Update] = {
        "fadd": np.add, "fsub": np.subtract, "fmax": np.fmax, "fmin": np.fmin,
        "fmaximum": np.maximum, "fminimum": np.minimum,
    }  # fmt: skip
    if operation == "xchg":
        return lambda old, new: new
    return alu.widened(t, floats[operation]) if operation in floats else None


def _integer_update(operation: str, bits: int) -> Update | None:
    if operation in ("add", "sub", "and", "or", "xor"):
        return alu.integer_op(operation, bits)
    table: dict[str, Update] = {
        "xchg": lambda old, new: new,
        "nand": lambda old, new: ~(old & new),
        "umax": np.maximum,
        "umin": np.minimum,
        "max": lambda old, new: np.where(alu.sign_extended(old, bits) >= alu.sign_extended(new, bits), old, new),
        "min": lambda old, new: np.where(alu.sign_extended(old, bits) <= alu.sign_extended(new, bits), old, new),
        "uinc_wrap": lambda old, new: np.where(old >= new, old.dtype.type(0), old + old.dtype.type(1)),
        "udec_wrap": lambda old, new: np.where((old == 0) | (old > new), new, old - old.dtype.type(1)),
        "usub_cond": lambda old, new: np.where(old >= new, old - new, old),
        "usub_sat": lambda old, new: np.where(old >= new, old - new, old.dtype.type(0)),
    }
    return table.get(operation)


def apply(
    m: Machine, inst: Inst, space_name: str, address: Array, t: ty.Type, align: int,
    step: Callable[[Array, Array], Array],
) -> Array:  # fmt: skip
    """Runs ``step(old, lanes) -> new`` at the addresses of the running lanes and returns the old values.

    Args:
        m: The machine.
        inst: The instruction.
        space_name: ``global``, ``LDS`` or ``private``.
        address: One address per lane, with full lane axes.
        t: Type of the value in memory.
        align: Alignment the instruction promises, in bytes.
        step: New values from old ones, for the running lanes whose numbers are ``lanes``.
    """
    byte_count = ty.store_size(t)
    saved = m.full
    m.full = False  # locate then packs the running lanes
    try:
        where = transfer.locate(m, inst, space_name, np.broadcast_to(address, m.shape).copy(), byte_count, align, True)
    finally:
        m.full = saved
    if where.space is m.heap and m.launch.races is not None:
        changes = np.ones(where.offset.shape, bool)
        m.launch.races.on_write(m, inst, where, byte_count, ATOMIC, lambda: changes, lambda: None)
    if where.space is m.lds and m.program.checks.lds:
        index = m.shadow.indices(where.offset, byte_count)
        if inst.extra.get("operation") != "xchg":  # whose old value may be of no interest
            m.shadow.check_written(m, inst, index)
        m.shadow.on_write(m, inst, index, ATOMIC)
    return run_rounds(m, where, t, byte_count, step)


def run_rounds(
    m: Machine, where: transfer.Located, t: ty.Type, byte_count: int, step: Callable[[Array, Array], Array]
) -> Array:
    """Applies ``step`` in as many rounds as lanes share an address.

    An operation that changes nothing (a lock that is taken, tried again) is no write for `watch`.
    """
    offsets = where.offset
    order = np.argsort(offsets, kind="stable")
    ordered = offsets[order]
    first = np.ones(len(order), bool)
    first[1:] = ordered[1:] != ordered[:-1]
    starts = np.maximum.accumulate(np.where(first, np.arange(len(order)), 0))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order)) - starts
    old = np.zeros(0)
    for turn in range(int(rank.max()) + 1 if len(rank) else 0):
        lanes = np.flatnonzero(rank == turn)
        raw = where.space.gather(offsets[lanes], byte_count, where.unit)
        value = convert.from_bytes(t, raw.view(np.uint8))
        if turn == 0:
            old = np.zeros((len(offsets), *value.shape[1:]), value.dtype)
        old[lanes] = value
        new = convert.to_bytes(t, step(value, lanes)).view(UNITS[where.unit])
        if not np.array_equal(new, raw):
            m.writes += 1
            where.space.scatter(offsets[lanes], new, where.unit)
    return old


def build_atomicrmw(c: Compiler, inst: Inst) -> list[Op]:
    """``atomicrmw``."""
    t = inst.operands[1].type
    update = update_function(inst.extra["operation"], t)
    if update is None:
        raise SimError(
            f"'{c.program.text_of(inst)}': the simulator does not know this operation on {t}", c.program.where(inst)
        )
    return _build(c, inst, t, lambda old, args: update(old, args[0]), lambda old, args: old)


def build_cmpxchg(c: Compiler, inst: Inst) -> list[Op]:
    """``cmpxchg``: the result is the old value and whether it was replaced."""
    return _build(
        c, inst, inst.operands[1].type,
        lambda old, args: np.where(old == args[0], args[1], old),
        lambda old, args: (old, old == args[0]),
    )  # fmt: skip


def _build(
    c: Compiler, inst: Inst, t: ty.Type,
    step: Callable[[Array, list[Array]], Array], result: Callable[[Array, list[Array]], Any],
) -> list[Op]:  # fmt: skip
    """The closures of an atomic operation.

    Args:
        c: The compiler.
        inst: The instruction; its first operand is the pointer.
        t: Type of the value in memory.
        step: New value in memory from the old one and the other operands.
        result: Result of the instruction from the same.
    """
    if getattr(inst.operands[0].type, "space", 0) == 7:
        from . import fat

        return fat.build_atomic(c, inst, t, step, result)
    space_name = mem_ops.space_of(c, inst, 0)
    align = inst.extra.get("align") or ty.abi_align(t)
    d, p = c.dest(inst), c.slot(inst.operands[0])
    slots = [c.slot(o) for o in inst.operands[1:]]
    checks = [
        poison.guard(c, inst, [0], "the address"),
        poison.guard(c, inst, list(range(1, len(inst.operands))), "the operand"),
    ]

    def run(r: list[Any], m: Machine) -> None:
        def at(name: str, address: Array) -> Array:
            args = [transfer.running(m, r[s]) for s in slots]
            old = apply(m, inst, name, address, t, align, lambda old, lanes: step(old, [a[lanes] for a in args]))
            return transfer.expanded(m, old)

        old: Any = None
        if space_name != "flat":
            old = at(space_name, r[p])
        else:
            for lanes, part in mem_ops.each_flat(m, r[p], at):
                old = part if old is None else np.where(lanes[..., None] if part.ndim == 4 else lanes, part, old)
        r[d] = result(old, [r[s] for s in slots])

    before, after = ordering.around(c, inst, 0, space_name)
    return [*(k for k in checks if k), *before, run, *after]
