"""The operands of matrix instructions as matrices of origins, and which of them belong together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from . import matrix, matrix_core
from .ir import Inst, Operand, Reg
from .origins import OFFSET, Plan
from .values import Array

if TYPE_CHECKING:
    from .cfg import Node
    from .compile import Compiler
    from .machine import Machine

_PRODUCTS = ("mfma.", "smfmac.", "wmma.", "swmmac.")


def _name(inst: Inst) -> str:
    return (inst.callee or "").removeprefix("llvm.amdgcn.") if inst.op == "call" else ""


def is_product(inst: Inst) -> bool:
    """Whether an instruction multiplies matrices."""
    name = _name(inst)
    return name.startswith(_PRODUCTS) and matrix.supports(name)


def factors(inst: Inst) -> list[Operand]:
    """The operands A and B of a matrix instruction."""
    return _registers(inst)[:2]


def _registers(inst: Inst) -> list[Operand]:
    positions = matrix.immediate_positions(_name(inst))
    return [o for i, o in enumerate(inst.operands) if i not in positions]


class Tiles(NamedTuple):
    """One operand as the waves of a chunk read it.

    Attributes:
        words: Origins.  Shape: ``(tiles, rows, K)``; a tile is a block of one wave.
        places: Addresses in the heap, in units of the element's narrowest step (bits below a byte).
        waves: Number of the wave, over the whole chunk, of each tile.
        known: Which elements have an origin; ``None`` for all.
    """

    words: Array
    places: Array
    waves: Array
    known: Array | None


class Side:
    """Operand A or B of one instruction.

    Attributes:
        letter: ``A`` or ``B``.
        inst: The instruction.
        slot, partner: Registers of this operand and of the other one.
        other: How the other one is read.
        lanes: Lane that holds each element.  Shape: ``(blocks, rows, K)``.
    """

    def __init__(
        self, letter: str, inst: Inst, slots: tuple[int, int], fetch: Any, other: Any, immediates: tuple[int, ...]
    ) -> None:
        self.letter, self.inst, self.immediates = letter, inst, immediates
        (self.slot, self.partner), self.other = slots, other
        byte, bit = fetch.places()
        if letter == "B":
            byte, bit = byte.swapaxes(-1, -2), bit.swapaxes(-1, -2)
        self.shape = (-1, *byte.shape[-2:])
        self.byte, self.bit = byte.reshape(self.shape), bit.reshape(self.shape)
        self.lanes = self.byte // fetch.lane_bytes
        self.lane_bytes = fetch.lane_bytes
        self.narrow = fetch.element.bits < 8

    def tiles(self, m: Machine) -> Tiles | None:
        """The operand now; ``None`` where nothing of it has an origin."""
        origin = m.origin[self.slot]
        if origin is None or origin.shape[-1] != self.lane_bytes:
            return None
        waves = m.groups * m.waves
        flat = np.broadcast_to(origin, (*m.shape, self.lane_bytes)).reshape(waves, -1)
        numbers = np.arange(waves)
        if not m.full:
            numbers = np.flatnonzero(m.active_waves())
            flat = flat[numbers]
        blocks = self.byte.shape[0]
        words = flat.take(self.byte.reshape(-1), axis=1).reshape(self.shape)
        places = words & OFFSET
        if self.narrow:
            places = places * 8 + np.tile(self.bit, (len(numbers), 1, 1))
        known = words > 0
        whole = bool(known.all())
        if not whole and not known.any():
            return None
        return Tiles(words, places, np.repeat(numbers, blocks), None if whole else known)

    def is_summed(self, m: Machine, wave: int) -> bool:
        """Whether the other operand has one value at all k, so that the order of this one does not matter."""
        raw = np.broadcast_to(m.regs[self.partner], m.shape + m.regs[self.partner].shape[3:])
        values = np.ascontiguousarray(raw.reshape(-1, *raw.shape[2:])[wave : wave + 1])
        matrix_ = self.other(values, np.empty((1, *self.other.shape)))
        axis = -2 if self.letter == "A" else -1
        return bool((matrix_ == matrix_.take([0], axis=axis)).all())


class Group:
    """Operands of one kind that follow each other.

    Attributes:
        keys: Of the sides, in order.
        axis: -1 where they follow in k (they add to one accumulator), -2 in rows (one operand multiplies them all).
    """

    __slots__ = ("axis", "keys")

    def __init__(self, keys: tuple[Any, ...], axis: int) -> None:
        self.keys, self.axis = keys, axis


def of_node(c: Compiler, plan: Plan, node: Node) -> tuple[dict[Any, Side], list[Group]]:
    """The operands that the matrix instructions of a node read, each once, and those that belong together."""
    sides: dict[Any, Side] = {}
    keys: dict[tuple[int, str], Any] = {}
    chains: dict[tuple[Any, ...], None] = {}
    shared: dict[Any, dict[Any, None]] = {}
    for inst in node.insts:
        for side in _sides(c, plan, inst) if is_product(inst) else ():
            key = keys[inst.id, side.letter] = (side.letter, side.slot, inst.callee, side.immediates)
            sides.setdefault(key, side)
            shared.setdefault((side.letter, side.partner, *key[2:]), {})[key] = None
            chain = _chain(c, inst)
            if not _continues(c, inst):
                chains[tuple(keys.get((i.id, side.letter)) for i in chain)] = None
    columns = dict.fromkeys(tuple(group) for group in shared.values())
    groups = [Group(chain, -1) for chain in chains] + [Group(group, -2) for group in columns]
    return sides, [g for g in groups if len(g.keys) > 1 and None not in g.keys]


def _sides(c: Compiler, plan: Plan, inst: Inst) -> list[Side]:
    """The operands of a matrix instruction that may have an origin."""
    name = _name(inst)
    immediates = tuple(c.immediate(inst, p) for p in matrix.immediate_positions(name))
    product = matrix.prepare(name, immediates, wave_size=c.wave_size, target=c.target)
    if not isinstance(product, matrix_core.Product):
        return []
    a, b = factors(inst)
    return [
        Side(letter, inst, (c.slot(operand), c.slot(partner)), fetch, other, immediates)
        for letter, operand, partner, fetch, other in (
            ("A", a, b, product.a, product.b),
            ("B", b, a, product.b, product.a),
        )
        if plan.follows(operand)
    ]


def _chain(c: Compiler, inst: Inst) -> list[Inst]:
    """Instructions of a node that add to one accumulator, up to this one."""
    found = [inst]
    while (before := _before(c, found[-1])) is not None:
        found.append(before)
    return found[::-1]


def _before(c: Compiler, inst: Inst) -> Inst | None:
    """The instruction of the same kind in this node whose result this one adds to."""
    total = _registers(inst)[2]
    made = c.defs.get(total.name) if isinstance(total, Reg) else None
    same = made is not None and made.callee == inst.callee and c.user_node(made) == c.user_node(inst)
    return made if same else None


def _continues(c: Compiler, inst: Inst) -> bool:
    return any(
        u.op == "call" and u.callee == inst.callee and _before(c, u) is inst for u in c.uses.get(inst.name or "", ())
    )
