"""Where values come from: the byte of global memory that each byte of a register or of LDS was loaded from.

An *origin* is an int64 per byte of a value, next to the value: arrays have the lane axes of the value (length 1 where
it is the same) and one axis of bytes, structs are tuples of arrays, and ``None`` stands for no origin anywhere.  What
is computed has no origin.  Only values that matrix instructions get through LDS are followed (`plan`), and a kernel
without such ones costs nothing.

An origin holds, low bits first: 40 bits of the byte's offset in the heap plus one; 11 bits with the number of the
instruction that stored it to LDS; 11 bits with that of the one that read it there; and whether loaded data decided on
its way (an address made from an index in memory, a lane or an element picked by one).  A byte without an origin is 0,
one that is known to be zero is -1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import types as ty
from .ir import Const, Inst, Operand, Reg
from .memory import Space
from .values import Array

if TYPE_CHECKING:
    from .cfg import Node
    from .compile import Compiler, Op
    from .machine import Machine

UNKNOWN, ZERO = 0, -1
OFFSET = (1 << 40) - 1
STORE_SHIFT, READ_SHIFT, NUMBERS = 40, 51, (1 << 11) - 1
INDIRECT = 1 << 62
# What a store to LDS leaves of an origin.
_STORED = OFFSET | INDIRECT

Carry = Callable[[list[Any], "Machine", list[Any]], Any]


class Move:
    """How the origin of a result follows from those of operands.

    Attributes:
        sources: Positions of the operands whose bytes it may hold.
        carry: The origin of the result from the registers, the machine and the origins of ``sources``.
    """

    __slots__ = ("carry", "sources")

    def __init__(self, sources: tuple[int, ...], carry: Carry) -> None:
        self.sources, self.carry = sources, carry


class TracedSpace(Space):
    """A memory that keeps the origin of each byte; what is written has none until it is told (`Plan.store`)."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.origins: Array = np.zeros(self.data.size, np.int64)

    def scatter(self, offset: Array, data: Array, unit: int) -> None:
        """Writes units and forgets where the bytes there came from."""
        super().scatter(offset, data, unit)
        self.origins[offset[..., None] + np.arange(data.shape[-1] * unit)] = UNKNOWN


def byte_count(t: ty.Type) -> int:
    """Bytes of the image of a scalar or a vector."""
    return (ty.bit_size(t) + 7) // 8


def merged(mask: Array | None, new: Any, old: Any) -> Any:
    """Origins after the lanes of ``mask`` (``None``: all) got ``new`` and the others kept ``old``."""
    if mask is None or (new is None and old is None) or new is old:
        return new
    if isinstance(new, tuple) or isinstance(old, tuple):
        count = len(new if isinstance(new, tuple) else old)
        new, old = new or (None,) * count, old or (None,) * count
        return tuple(merged(mask, n, o) for n, o in zip(new, old, strict=True))
    return np.where(mask[..., None], UNKNOWN if new is None else new, UNKNOWN if old is None else old)


def stored(origin: Array, number: int, flag: int = 0) -> Array:
    """Origins of bytes that the LDS store of a number wrote; ``flag`` is `INDIRECT` or 0."""
    return np.where(origin > 0, origin & _STORED | (number << STORE_SHIFT | flag), origin)


def fetched(origin: Array, number: int, flag: int = 0) -> Array:
    """Origins of bytes that the LDS read of a number got; ``flag`` is `INDIRECT` or 0."""
    return np.where(origin > 0, origin | (number << READ_SHIFT | flag), origin)


def marked(origin: Any) -> Any:
    """Origins of what loaded data picked."""
    if isinstance(origin, tuple):
        return tuple(marked(part) for part in origin)
    return np.where(origin > 0, origin | INDIRECT, origin) if origin is not None else None


class Plan:
    """What is followed in a kernel.

    Attributes:
        followed: Names of the values whose origins are kept.
        stores: Instructions that write to LDS, by number; number 0 is any other.
        reads: The same of reads.
        data: Names of values that are made from loaded data.
        indirect: Accesses whose address is.
        through_stack: Whether origins go through private memory.
        template: Initial origins of all slots.
    """

    def __init__(self, insts: list[Inst]) -> None:
        self.insts = insts
        self.followed: set[str] = set()
        self.stores: list[Inst | None] = [None]
        self.reads: list[Inst | None] = [None]
        self.through_lds = self.through_stack = False
        self.data: set[str] = set()
        self.indirect: set[int] = set()
        self.constants: dict[int, Array] = {}

    def number_of(self, inst: Inst, numbers: list[Inst | None]) -> int:
        """The number of an LDS access; where there are too many the last ones share one."""
        for number, known in enumerate(numbers):
            if known is inst:
                return number
        if len(numbers) <= NUMBERS:
            numbers.append(inst)
        return len(numbers) - 1

    def follows(self, operand: Operand) -> bool:
        """Whether an operand may have an origin."""
        return isinstance(operand, Reg) and operand.name in self.followed

    def slot(self, c: Compiler, operand: Operand) -> int:
        """The slot of an operand, constants with their origins."""
        slot = c.slot(operand)
        if isinstance(operand, Const) and operand.kind in ("zero", "int") and not operand.value:
            self.constants[slot] = np.full((1, 1, 1, byte_count(operand.type)), ZERO, np.int64)
        return slot

    def template(self, count: int) -> list[Any]:
        """Initial origins of so many slots."""
        return [self.constants.get(slot) for slot in range(count)]

    def ops(self, c: Compiler, inst: Inst) -> list[Op]:
        """The closures that follow one instruction, to run after it."""
        from . import origin_indirect, origin_memory, origin_moves

        if inst.name not in self.followed:
            return origin_memory.build_store(c, self, inst)
        load = origin_memory.build_load(c, self, inst)
        if load is not None:
            return [_kept(c.dest(inst), load)]
        move = origin_moves.of(c, inst)
        if move is None:
            return []
        slots = [self.slot(c, inst.operands[i]) for i in move.sources]
        carry = move.carry
        moved = inst.extra["lane_op"][2] if "lane_op" in inst.extra else move.sources
        chosen = any(origin_indirect.is_of(self.data, o) for i, o in enumerate(inst.operands) if i not in moved)

        def run(r: list[Any], m: Machine) -> Any:
            words = [m.origin[s] for s in slots]
            if all(w is None for w in words):
                return None
            result = carry(r, m, words)
            return marked(result) if chosen else result

        return [_kept(c.dest(inst), run)]


def _kept(d: int, compute: Callable[[list[Any], Machine], Any]) -> Op:
    def run(r: list[Any], m: Machine) -> None:
        new = compute(r, m)
        m.origin[d] = new if m.covering else merged(m.mask, new, m.origin[d])

    return run


def plan(c: Compiler, graph: list[Node]) -> Plan | None:
    """What to follow in a kernel; ``None`` where no matrix instruction gets data from global memory through LDS."""
    from . import operand_tiles, origin_indirect, origin_memory, origin_moves

    insts = [i for node in graph for i in (*node.phis, *node.insts)]
    made = {i.name: i for i in insts if i.name is not None}
    found = Plan(insts)
    work = [o for i in insts if operand_tiles.is_product(i) for o in operand_tiles.factors(i)]
    loads: list[Inst] = []
    writers = [i for i in insts if origin_memory.stored_operand(i) is not None]
    while work:
        operand = work.pop()
        if not isinstance(operand, Reg) or operand.name in found.followed or operand.name not in made:
            continue
        inst = made[operand.name]
        spaces = origin_memory.read_spaces(inst)
        if spaces:
            found.followed.add(operand.name)
            loads.append(inst)
            if not found.through_lds and 3 in spaces:
                found.through_lds = True
                work += [i.operands[origin_memory.stored_operand(i) or 0] for i in writers]
            if not found.through_stack and 5 in spaces:
                found.through_stack = True
                work += [i.operands[origin_memory.stored_operand(i) or 0] for i in writers]
            continue
        move = None if inst.op == "phi" else origin_moves.of(c, inst)
        sources = tuple(range(len(inst.operands))) if inst.op == "phi" else move.sources if move is not None else ()
        if sources:
            found.followed.add(operand.name)
            work += [inst.operands[i] for i in sources]
    if not found.through_lds:
        return None
    found.data = origin_indirect.of_data(insts, made)
    found.indirect = origin_indirect.indirect(insts, found.data)
    return found
