"""``readfirstlane``, and when it is told that lanes differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import dma, types as ty
from .buffers import differs_in_wave
from .ir import Inst, Operand
from .lane_op import lane_op

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def readfirstlane(c: Compiler, inst: Inst) -> list[Op]:
    """The value of the first running lane; under all checks with a warning where lanes differ in bits that count."""

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
