"""Traced loops: finding what an iteration hands to the next.

A body is traced with the variables it assigns as carried values.  If it turns out to change something else (an
element of a list, a known number in a tuple), or to give a variable another type, the body is taken back and traced
again knowing so.
"""

from __future__ import annotations

from math import gcd

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .control_join import Joined, check_depth, lose, refuse_globals, same_key
from .control_place import WAYS, Place, leaf_mismatch, next_value, put, step_of, used_beside
from .control_slot import Mismatch, Number, Slot, mismatch, slot_of
from .control_state import UNSET, State
from .control_tree import Tree, flatten, same
from .numeric import Numeric

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import CellType
    from typing import Any

    from .control_state import Snapshot

#: Variable that holds the list of ``range(..., init=)``.
INIT = "the list of range(init=...)"


class _Again(Exception):
    """The body must be traced again with what is known now."""


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
        check_depth(self.b, self.where)
        self.state = State(bodies, (*early, *late))
        if extra is not None:
            self.state.cells[INIT] = extra
        self.late = [n for n in late if n in self.state.cells]
        self.early = [n for n in self.state.cells if n not in self.late and n not in self.state.others]
        self.start = self.state.snapshot()
        self.places: dict[Any, Place] = {}
        self.finish: list[tuple[Place | Joined, str]] = []
        #: Reasons why variables have no value, as they were at the head of the iteration.
        self.known_unset: dict[Any, Any] = {}
        for name in self.early:
            self._early(name)

    def _early(self, name: str) -> None:
        value = self.start.cells[name]
        if value is UNSET:
            return
        place = self.places[name] = Place(name, name, value)
        alone = place.tree.key == "leaf" or name == INIT
        for i, x in enumerate(place.tree.leaves):
            if isinstance(x, (Numeric, Value)) or (alone and isinstance(x, Number)):
                place.carry(i)

    def run(self, build: Callable[[list[Value]], list[Value]]) -> None:
        """Traces the loop: ``build(inits)`` builds the operation and returns its results."""
        attrs = self.b.kernel.attrs
        before = dict(attrs)
        while True:
            inits = self.inits = [slot.value(0) for slot in self.slots()]
            try:
                results = build(inits)
            except _Again:
                pass
            except NameError as e:
                if not self._promote(e):
                    raise
            else:
                self._after(results)
                return
            self.state.restore(self.start)
            attrs.clear()
            attrs.update(before)

    def _promote(self, error: NameError) -> bool:
        """Carries a variable that an iteration reads first after all, because a Python loop before it is empty."""
        import re

        found = re.search(r"'(\w+)'", str(error))
        return found is not None and self._to_early(found[1])

    def _to_early(self, name: str) -> bool:
        if name not in self.late or self.start.cells[name] is UNSET:
            return False
        self.late.remove(name)
        self._early(name)
        return True

    def live(self) -> list[Place]:
        """Places that are carried."""
        return [p for p in self.places.values() if p.lost is None]

    def slots(self) -> list[Slot]:
        """What is carried, in the order of the values of the loop."""
        return [slot for p in self.live() for slot in p.carried.values()]

    def enter(self, args: Sequence[Value]) -> list[Value]:
        """Sets everything to what it is at the head of an iteration; returns the arguments."""
        left = list(args)
        for slot, arg in zip(self.slots(), args):
            arg.divisibility = slot.divisibility or 1
        cells, contents = dict(self.start.cells), list(self.start.contents)
        for p in self.live():
            if p.carried:
                put(cells, contents, p.at, p.value(left))
        for p in self.places.values():
            if p.lost is not None:
                cells[p.at] = UNSET
                lose(self.state, p.at, *p.lost)
        cells.update(dict.fromkeys(self.late, UNSET))
        self.known_unset = dict(self.b.unset)
        self.state.restore(type(self.start)(cells, contents))
        return list(args)

    def leave(self, args: Sequence[Value]) -> list[Value]:
        """What an iteration hands on; puts everything back to the start."""
        end = self.end = self.state.snapshot()
        refuse_globals(self.state, "loop", self.where)
        # Assigned on some paths only, after a Python loop that was thought to assign it and is empty.
        partly = [n for n in self.late if end.cells[n] is UNSET and not self._untouched(n)]
        if any([self._to_early(n) for n in partly]):
            raise _Again
        fresh = [*self._changed_items(end), *self._changed_others(end)]
        # A list that was changed in place holds what the iteration left in it only until it is put back.
        trees = {p.at: flatten(self._at(end, p.at)) for p in self.live()}
        trees.update((at, flatten(self._at(end, at))) for _, at in fresh)
        late = {n: flatten(end.cells[n]) for n in self.late if end.cells[n] is not UNSET}
        self.state.restore(self.start)
        for name, at in fresh:
            self.places[at] = Place(name, at, self._at(self.start, at))
        yields: list[Value] = []
        again = [p for p in self.live() if self._ends(p, trees[p.at], yields)]
        if again:
            raise _Again
        self._multiples(args, yields)
        self.unchanged = [y is a for y, a in zip(yields, args)]
        self._late(late, yields)
        return yields

    def _multiples(self, args: Sequence[Value], yields: list[Value]) -> None:
        """Finds counters that stay multiples of a power of two, for the alignment of what is addressed by them."""
        again = False
        for slot, init, arg, y in zip(self.slots(), self.inits, args, yields):
            known = slot.divisibility
            if known is None and isinstance(arg.type, t.IntType):
                step = step_of(y, arg)
                if step is not None:
                    both = gcd(init.divisibility, step.divisibility)
                    slot.divisibility = both & -both
                    again = again or (slot.divisibility > 1 and used_beside(self.b.block, arg, y))
            elif known is not None and y.divisibility % known:
                slot.divisibility = 1
                again = True
        if again:
            raise _Again

    # --- what changed ----------------------------------------------------------------------------

    @staticmethod
    def _at(s: Snapshot, at: Any) -> Any:
        return s.cells[at] if isinstance(at, str) else s.contents[at[0]][at[1]]

    def _ends(self, p: Place, tree: Tree, yields: list[Value]) -> bool:
        """Collects what a place yields; true when the loop must be traced again."""
        if tree.whole is UNSET:
            return self._lose(p, Mismatch(f"{p.name} is deleted in the loop", f"do not delete {p.name} in the loop"))
        if tree.whole is p.start and not p.carried:
            return False
        if not same_key(tree.key, p.tree.key):
            return self._lose(p, mismatch(p.name, p.start, tree.whole, WAYS))
        again = False
        for i, (x, y) in enumerate(zip(p.tree.leaves, tree.leaves)):
            slot = p.carried.get(i)
            made = None if slot is None else next_value(slot, y)
            if made is not None:
                yields.append(made)
            elif slot is None and same(x, y):
                continue
            elif (slot is None and slot_of(x, y) is not None and p.carry(i)) or (slot is not None and p.weaken(i, y)):
                again = True
            else:
                return self._lose(p, leaf_mismatch(p, x, y, tree.whole))
        return again

    def _lose(self, p: Place, e: Mismatch) -> bool:
        if not isinstance(p.at, str) or p.at == INIT:
            raise TraceError(f"{e} of the loop", self.where, e.fix)
        p.lost = (f"{e} of the loop at {self.where}", e.fix)
        return True

    def _changed_items(self, end: Snapshot) -> Iterator[tuple[str, Any]]:
        """Elements of containers that the body changed and that are not carried yet."""
        for i, container in enumerate(self.state.containers):
            before, after = self.start.contents[i], end.contents[i]
            if container.identical(before, after):
                continue
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
                joined = Joined(name, flatten(before), after, WAYS)
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
                put(cells, contents, item.at, item.tree.rebuild(leaves))
            done.add(name)
        for name in self.state.cells:
            if name not in done and not self._untouched(name):
                self._forget(name, cells)
        self.state.restore(type(self.start)(cells, contents))

    def _untouched(self, name: str) -> bool:
        """Whether no iteration assigned a variable whose value was hidden in them."""
        key = (self.state.file, name)
        hidden = name in self.late and self.end.cells[name] is UNSET
        return hidden and self.b.unset.get(key) is self.known_unset.get(key)

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
