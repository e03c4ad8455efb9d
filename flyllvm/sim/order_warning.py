"""The words of the warning of `operand_order`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .ir import Inst, Reg
from .machine import ranges
from .origins import NUMBERS, OFFSET, READ_SHIFT, STORE_SHIFT, Plan
from .values import Array

if TYPE_CHECKING:
    from .machine import Machine

_FIX = (
    "give the write to LDS and the read from it the same swizzle and the same row pitch (or, where the argument is "
    "stored in this order on purpose, ignore this)"
)


def warn(
    m: Machine, plan: Plan, letter: str, product: Inst, words: Array, at: list[tuple[int, int]], lanes: list[int],
    wave: int,
) -> None:  # fmt: skip
    """Notes a warning, once per pair of a read and a store.

    Args:
        m: The machine.
        plan: What is followed.
        letter: Operand A or B.
        product: The matrix instruction.
        words: Origins of the operand.  Shape: ``(rows, K)``.
        at: Elements that contradict each other: two values of k of one row, then of another.
        lanes: Lanes that hold them.
        wave: Number of the wave over the whole chunk.
    """
    program = m.program
    reads, stores = _insts(plan.reads, words, at, READ_SHIFT), _insts(plan.stores, words, at, STORE_SHIFT)
    read = reads[-1]
    key = program.where(read), program.where(stores[-1]) if stores else ""
    if key in m.launch.disagreeing:
        return
    m.launch.disagreeing.add(key)
    (row, k0), (_, k1), (other, _), _ = at
    bytes_ = [_byte(m, int(words[p])) for p in at]
    group = m.launch.group_name(m.first_group + wave // m.waves)
    others = dict.fromkeys(program.where(i) for i in reads[:-1] if program.where(i) != key[0])
    text = (
        f"LDS is read in another order than it was written: in operand {letter} of '{program.text_of(product)}' at "
        f"{program.where(product)} the contraction index k means different columns in different rows. Of "
        f"{_buffer(m, int(words[at[0]]))}, row {row} has k = {k0} from byte {bytes_[0]} and k = {k1} from byte "
        f"{bytes_[1]}, row {other} from bytes {bytes_[2]} and {bytes_[3]} (workgroup {group}, wave {wave % m.waves}, "
        f"{ranges(lanes)})"
    )
    if others:
        text += f"; read at {', '.join(others)} too"
    for store in {program.where(s): s for s in stores}.values():
        text += f"; stored by '{program.text_of(store)}' at {program.where(store)}"
    m.launch.warn(read, f"{text}{_evidence(plan, read, stores)}; {_FIX}")


def _insts(numbers: list[Inst | None], words: Array, at: list[tuple[int, int]], shift: int) -> list[Inst]:
    """The instructions by which the elements went through LDS, the one that contradicts last."""
    found = [numbers[int(words[p]) >> shift & NUMBERS] for p in at]
    return list(dict.fromkeys(i for i in reversed(found) if i is not None))[::-1]


def _byte(m: Machine, word: int) -> int:
    address = (word & OFFSET) - 1 + m.heap.base
    region = m.heap.region_of(address)
    return address - (region.start if region is not None else 0)


def _buffer(m: Machine, word: int) -> str:
    region = m.heap.region_of((word & OFFSET) - 1 + m.heap.base)
    return region.name if region is not None else "global memory"


def _evidence(plan: Plan, read: Inst, stores: list[Inst]) -> str:
    """Which side alone makes its LDS address with an exclusive or, as swizzles are."""
    if not stores:
        return ""
    mixes = [_uses_xor(plan, read), any(_uses_xor(plan, s) for s in stores)]
    if mixes[0] == mixes[1]:
        return ""
    one, other = ("read", "store") if mixes[0] else ("store", "read")
    return f"; the address of the {one} goes through an xor, that of the {other} does not"


def _uses_xor(plan: Plan, access: Inst) -> bool:
    made = {i.name: i for i in plan.insts if i.name is not None}
    pointer = access.operands[0] if access.op == "load" or access.name is not None else access.operands[1]
    work, seen = [pointer], set()
    while work:
        operand = work.pop()
        if not isinstance(operand, Reg) or operand.name in seen or operand.name not in made:
            continue
        seen.add(operand.name)
        inst = made[operand.name]
        if inst.op == "xor":
            return True
        if inst.op not in ("load", "call"):
            work += inst.operands
    return False
