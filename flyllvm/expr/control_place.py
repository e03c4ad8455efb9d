"""One thing that a traced loop may carry: a variable, or an element of a container."""

from __future__ import annotations

from ..ir import types as t
from ..ir.core import Value
from .control_slot import Mismatch, Number, Slot, is_traced, lowered, mismatch, weaker
from .control_tree import Tree, flatten
from .numeric import as_numeric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Block

#: How messages call the values a loop compares.
WAYS = ("before the loop", "after an iteration")


class Place:
    """A variable, or an element of a container, that iterations may change.

    Attributes:
        name: For messages.
        at: The variable's name, or (container number, key).
        start: Value before the loop.
        tree: The start value taken apart.
        carried: Leaves that are carried: position -> how.
        lost: Why it has no value at the head of an iteration (text, fix), ``None`` when it has one.
    """

    __slots__ = ("at", "carried", "lost", "name", "start", "tree")

    def __init__(self, name: str, at: Any, start: Any) -> None:
        self.name = name
        self.at = at
        self.start = start
        self.tree: Tree = flatten(start)
        self.carried: dict[int, Slot] = {}
        self.lost: tuple[str, str] | None = None

    def carry(self, i: int) -> bool:
        """Carries a leaf, if it can be."""
        x = self.tree.leaves[i]
        if isinstance(x, Number):
            kind = type(as_numeric(x))
            slot = Slot(kind, kind.ir, (x,))
        elif isinstance(x, Value) and not (isinstance(x.type, t.PtrType) and x.type.space == "register"):
            slot = Slot(None, x.type, (x,))
        else:
            return False
        # In the order of the leaves, which is the order of everything that is yielded.
        self.carried = dict(sorted({**self.carried, i: slot}.items()))
        return True

    def weaken(self, i: int, y: Any) -> bool:
        """Carries a pointer with the weaker alignment of two; false when there is none."""
        slot = self.carried[i]
        type_ = weaker(slot.type, y.type) if slot.number is None and isinstance(y, Value) else None
        if type_ is None or type_ == slot.type:
            return False
        self.carried[i] = Slot(None, type_, slot.values)
        return True

    def value(self, args: list[Value]) -> Any:
        """The value made of carried leaves, taken from the front of the list."""
        if not self.carried:
            return self.start
        leaves = list(self.tree.leaves)
        for i, slot in self.carried.items():
            leaves[i] = slot.wrap(args.pop(0))
        return self.tree.rebuild(leaves)


def put(cells: dict[str, Any], contents: list[Any], at: Any, value: Any) -> None:
    if isinstance(at, str):
        cells[at] = value
    else:
        i, key = at
        contents[i] = type(contents[i])(contents[i])
        contents[i][key] = value


def next_value(slot: Slot, y: Any) -> Value | None:
    """A carried leaf's next value, ``None`` when its type is another."""
    if slot.number is not None:
        if not isinstance(y, Number):
            return None
        made = as_numeric(y, slot.number)
        return made.ir_value() if type(made) is slot.number else None
    if not isinstance(y, Value) or weaker(slot.type, y.type) != slot.type:
        return None
    return y if y.type == slot.type else lowered(y, slot.type)


def leaf_mismatch(p: Place, x: Any, y: Any, value: Any) -> Mismatch:
    if len(p.tree.leaves) == 1:
        x, y = p.start, value
    slot = next(iter(p.carried.values()), None)
    if isinstance(x, Number) and isinstance(y, Number) and slot is not None and slot.number is not None:
        # A Python number has a type only from here on; the message names it.
        x = slot.number(x) if not is_traced(x) else x
    return mismatch(p.name, x, y, WAYS)


def step_of(y: Value, arg: Value) -> Value | None:
    """What an iteration adds to a carried integer, where it does just that."""
    op = y.op
    if op is None or op.name != "arith.addi" or arg not in op.operands:
        return None
    return op.operands[1] if op.operands[0] is arg else op.operands[0]


def used_beside(body: Block, arg: Value, y: Value) -> bool:
    """Whether more depends on a carried value than its next one."""
    return any(arg in op.operands for op in body.walk() if op is not y.op)
