"""Traced loops: finding what an iteration hands to the next.

A body is traced with the variables it assigns as carried values.  If it turns out to change something else (an
element of a list, a known number in a tuple), or to give a variable another type, the body is taken back and traced
again knowing so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .control_join import (
    Joined,
    Mismatch,
    Number,
    Slot,
    is_traced,
    lose,
    lowered,
    mismatch,
    refuse_globals,
    same_key,
    slot_of,
    truth,
    weaker,
)
from .control_state import UNSET, State
from .control_tree import Tree, flatten, same
from .numeric import Numeric, as_numeric

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CellType

    from .control_state import Snapshot

_WAYS = ("before the loop", "after an iteration")
#: Variable that holds the list of ``range(..., init=)``.
INIT = "the list of range(init=...)"


class _Again(Exception):
    """The body must be traced again with what is known now."""


class _Place:
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


class Loop:
    """One loop that is traced.

    Args:
        bodies: The author's functions that run in it.
        early: Variables that an iteration may read before it assigns them.
        late: Variables that every iteration assigns before it reads them.
        extra: A variable of our own, carried whole.
    """

    def __init__(
        self,
        bodies: Sequence[Callable[..., Any]],
        early: Sequence[str],
        late: Sequence[str],
        extra: CellType | None = None,
    ) -> None:
        self.b = Builder.current()
        self.where = self.b.location()
        self.state = State(bodies, (*early, *late))
        if extra is not None:
            self.state.cells[INIT] = extra
        self.late = [n for n in late if n in self.state.cells]
        self.early = [n for n in self.state.cells if n not in self.late and n not in self.state.others]
        self.start = self.state.snapshot()
        self.places: dict[Any, _Place] = {}
        self.finish: list[tuple[_Place | Joined, str]] = []
        for name in self.early:
            value = self.start.cells[name]
            if value is not UNSET:
                place = self.places[name] = _Place(name, name, value)
                alone = place.tree.key == "leaf" or name == INIT
                for i, x in enumerate(place.tree.leaves):
                    if isinstance(x, (Numeric, Value)) or (alone and isinstance(x, Number)):
                        place.carry(i)

    def run(self, build: Callable[[list[Value]], list[Value]]) -> None:
        """Traces the loop: ``build(inits)`` builds the operation and returns its results."""
        attrs = self.b.kernel.attrs
        before = dict(attrs)
        while True:
            inits = [slot.value(0) for p in self.live() for slot in p.carried.values()]
            try:
                results = build(inits)
            except _Again:
                self.state.restore(self.start)
                attrs.clear()
                attrs.update(before)
                continue
            self._after(results)
            return

    def live(self) -> list[_Place]:
        """Places that are carried."""
        return [p for p in self.places.values() if p.lost is None]

    def enter(self, args: Sequence[Value]) -> list[Value]:
        """Sets everything to what it is at the head of an iteration; returns the arguments."""
        left = list(args)
        cells, contents = dict(self.start.cells), list(self.start.contents)
        for p in self.live():
            if p.carried:
                _put(cells, contents, p.at, p.value(left))
        for p in self.places.values():
            if p.lost is not None:
                cells[p.at] = UNSET
                lose(self.state, p.at, *p.lost)
        self.state.restore(type(self.start)(cells, contents))
        return list(args)

    def leave(self, args: Sequence[Value]) -> list[Value]:
        """What an iteration hands on; puts everything back to the start."""
        end = self.end = self.state.snapshot()
        refuse_globals(self.state, "loop", self.where)
        fresh = [*self._changed_items(end), *self._changed_others(end)]
        # A list that was changed in place holds what the iteration left in it only until it is put back.
        trees = {p.at: flatten(self._at(end, p.at)) for p in self.live()}
        trees.update((at, flatten(self._at(end, at))) for _, at in fresh)
        late = {n: flatten(end.cells[n]) for n in self.late if end.cells[n] is not UNSET}
        self.state.restore(self.start)
        for name, at in fresh:
            self.places[at] = _Place(name, at, self._at(self.start, at))
        yields: list[Value] = []
        again = [p for p in self.live() if self._ends(p, trees[p.at], yields)]
        if again:
            raise _Again
        self.unchanged = [y is a for y, a in zip(yields, args)]
        self._late(late, yields)
        return yields

    # --- what changed ----------------------------------------------------------------------------

    @staticmethod
    def _at(s: Snapshot, at: Any) -> Any:
        return s.cells[at] if isinstance(at, str) else s.contents[at[0]][at[1]]

    def _ends(self, p: _Place, tree: Tree, yields: list[Value]) -> bool:
        """Collects what a place yields; true when the loop must be traced again."""
        if tree.whole is UNSET:
            return self._lose(p, Mismatch(f"{p.name} is deleted in the loop", f"do not delete {p.name} in the loop"))
        if tree.whole is p.start and not p.carried:
            return False
        if not same_key(tree.key, p.tree.key):
            return self._lose(p, mismatch(p.name, p.start, tree.whole, _WAYS))
        again = False
        for i, (x, y) in enumerate(zip(p.tree.leaves, tree.leaves)):
            slot = p.carried.get(i)
            made = None if slot is None else _next(slot, y)
            if made is not None:
                yields.append(made)
            elif slot is None and same(x, y):
                continue
            elif (slot is None and slot_of(x, y) is not None and p.carry(i)) or (slot is not None and p.weaken(i, y)):
                again = True
            else:
                return self._lose(p, _leaf_mismatch(p, x, y, tree.whole))
        return again

    def _lose(self, p: _Place, e: Mismatch) -> bool:
        if not isinstance(p.at, str) or p.at == INIT:
            raise TraceError(f"{e} of the loop", self.where, e.fix)
        p.lost = (f"{e} of the loop at {self.where}", e.fix)
        return True

    def _changed_items(self, end: Snapshot) -> Iterator[tuple[str, Any]]:
        """Elements of containers that the body changed and that are not carried yet."""
        for i, container in enumerate(self.state.containers):
            before, after = self.start.contents[i], end.contents[i]
            if not container.same_frame(before, after):
                raise TraceError(
                    f"{container.name} has {container.describe(before)} before a traced loop "
                    f"and {container.describe(after)} after an iteration",
                    self.where,
                    "keep its length and keys; use fx.range_constexpr to build a container in a loop",
                )
            for key in container.keys(before):
                if before[key] is not after[key] and (i, key) not in self.places:
                    yield f"{container.name}[{key!r}]", (i, key)

    def _changed_others(self, end: Snapshot) -> Iterator[tuple[str, Any]]:
        """Variables that a function called by the body assigned."""
        for name in self.state.others:
            before = self.start.cells[name]
            if before is not end.cells[name] and before is not UNSET and name not in self.places:
                yield name, name

    def _late(self, ends: dict[str, Tree], yields: list[Value]) -> None:
        """Variables that only matter after the loop."""
        self.finish = [(p, p.name) for p in self.live()]
        for name, after in ends.items():
            before = self.start.cells[name]
            if before is after.whole or before is UNSET:
                continue
            try:
                joined = Joined(name, flatten(before), after, _WAYS)
            except Mismatch as e:
                lose(self.state, name, f"{e} of the loop at {self.where}", e.fix)
                continue
            self.finish.append((joined, name))
            for slot in joined.slots.values():
                self.b.carry(slot.value(0))
                yields.append(slot.value(1))

    # --- after the loop --------------------------------------------------------------------------

    def _after(self, results: list[Value]) -> None:
        left = list(results)
        cells, contents = dict(self.start.cells), list(self.start.contents)
        kept = iter(self.unchanged)
        done: set[str] = set()
        for item, name in self.finish:
            if isinstance(item, Joined):
                cells[name] = item.value(left)
                done.add(name)
                continue
            leaves = list(item.tree.leaves)
            for i, slot in item.carried.items():
                result = left.pop(0)
                # What no iteration changes stays what it was, with all that is known of it.
                if not next(kept):
                    leaves[i] = slot.wrap(result)
            if item.carried:
                _put(cells, contents, item.at, item.tree.rebuild(leaves))
            done.add(name)
        for name in self.state.cells:
            if name not in done:
                self._forget(name, cells)
        self.state.restore(type(self.start)(cells, contents))

    def _forget(self, name: str, cells: dict[str, Any]) -> None:
        """A variable whose value after the loop is not known, because it may have no iteration or changes its type."""
        before, after = self.start.cells[name], self.end.cells[name]
        place = self.places.get(name)
        if place is not None and place.lost is not None:
            lose(self.state, name, *place.lost)
        elif before is after:
            return
        elif before is UNSET:
            text = f"{name} is given a value only inside the loop at {self.where}, which may have no iteration"
            lose(self.state, name, text, f"give {name} a value before the loop")
        cells[name] = UNSET


def _put(cells: dict[str, Any], contents: list[Any], at: Any, value: Any) -> None:
    if isinstance(at, str):
        cells[at] = value
    else:
        i, key = at
        contents[i] = type(contents[i])(contents[i])
        contents[i][key] = value


def _next(slot: Slot, y: Any) -> Value | None:
    """A carried leaf's next value, ``None`` when its type is another."""
    if slot.number is not None:
        if not isinstance(y, Number):
            return None
        made = as_numeric(y, slot.number)
        return made.ir_value() if type(made) is slot.number else None
    if not isinstance(y, Value) or weaker(slot.type, y.type) != slot.type:
        return None
    return y if y.type == slot.type else lowered(y, slot.type)


def _leaf_mismatch(p: _Place, x: Any, y: Any, value: Any) -> Mismatch:
    if len(p.tree.leaves) == 1:
        x, y = p.start, value
    slot = next(iter(p.carried.values()), None)
    if isinstance(x, Number) and isinstance(y, Number) and slot is not None and slot.number is not None:
        # A Python number has a type only from here on; the message names it.
        x = slot.number(x) if not is_traced(x) else x
    return mismatch(p.name, x, y, _WAYS)


def traced_for(
    low: Any, high: Any, step: Any, index: Callable[[Value], Any], body: Callable[[Any], Any], loop: Loop
) -> None:
    """Traces ``body(index(i))`` over a range."""

    def once(i: Value, *args: Value) -> list[Value]:
        loop.enter(args)
        body(index(i))
        return loop.leave(args)

    loop.run(lambda inits: loop.b.for_(low, high, step, inits, once))


def traced_while(test: Callable[[], Any], body: Callable[[], Any], loop: Loop) -> None:
    """Traces ``while test(): body()``."""

    def before(*args: Value) -> tuple[Value, list[Value]]:
        loop.enter(args)
        held = loop.state.snapshot()
        flag = truth(test())
        _unchanged(loop, held)
        if not isinstance(flag, Value):
            flag = loop.b.constant(int(flag), t.I1)
        return flag, list(args)

    def after(*args: Value) -> list[Value]:
        loop.enter(args)
        body()
        return loop.leave(args)

    loop.run(lambda inits: loop.b.while_(inits, before, after))


def _unchanged(loop: Loop, held: Snapshot) -> None:
    now = loop.state.snapshot()
    for container, x, y in zip(loop.state.containers, held.contents, now.contents):
        if not container.same_frame(x, y) or any(x[k] is not y[k] for k in container.keys(x)):
            raise TraceError(
                f"the condition of a traced while changes {container.name}",
                loop.where,
                "change it in the body of the loop",
            )
