"""Two values of one variable become one that is known at run time."""

from __future__ import annotations

from ..errors import FlyError, TraceError
from ..ir.builder import Builder
from ..ir.core import Value
from .control_slot import Mismatch, Slot, mismatch, slot_of
from .control_state import UNSET
from .control_tree import flatten, same

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from .control_state import Snapshot, State
    from .control_tree import Tree


class Joined:
    """A value of which some leaves differ: ``slots`` by leaf position.

    Args:
        name: The variable, for messages.
        a: The value on the first way, taken apart.
        b: The value on the second way.
        where: How messages call the two ways.
        promoting: Whether numbers of two types become their common type.
    """

    __slots__ = ("_tree", "slots")

    def __init__(self, name: str, a: Tree, b: Tree, where: tuple[str, str], promoting: bool = False) -> None:
        self.slots: dict[int, Slot] = {}
        self._tree = a
        if not same_key(a.key, b.key):
            raise mismatch(name, a.whole, b.whole, where)
        for i, (p, q) in enumerate(zip(a.leaves, b.leaves)):
            if not same(p, q):
                slot = slot_of(p, q, promoting)
                if slot is None:
                    alone = len(a.leaves) == 1
                    raise mismatch(name, *((a.whole, b.whole) if alone else (p, q)), where)
                self.slots[i] = slot

    def value(self, results: list[Value]) -> Any:
        """The joined value; takes its results from the front of the list."""
        leaves = list(self._tree.leaves)
        for i, slot in self.slots.items():
            leaves[i] = slot.wrap(results.pop(0))
        return self._tree.rebuild(leaves)


def same_key(a: Any, b: Any) -> bool:
    """Whether two values can replace each other but for their leaves."""
    try:
        return bool(a == b)
    except FlyError:  # layouts of run-time leaves do not compare
        return False


_BRANCHES = ("in one branch", "in the other")


class _Pair:
    """Two values that may have to be joined, who takes the result, and what happens when they cannot."""

    __slots__ = ("a", "b", "fail", "name", "promoting", "put")

    def __init__(
        self,
        name: str,
        a: Any,
        b: Any,
        put: Callable[[Any], None],
        fail: Callable[[Mismatch], None],
        promoting: bool = False,
    ) -> None:
        self.name, self.a, self.b = name, a, b
        self.put, self.fail, self.promoting = put, fail, promoting


class Branches:
    """Joins what two branches made of the author's variables and containers.

    Args:
        state: Everything the branches can change.
        start: What it was before them.
        ends: What each branch left.
        where: The author's line of the branch.
        values: Results of both branches, of a conditional expression.

    Attributes:
        result: Their joined result, after ``finish``.
    """

    def __init__(
        self, state: State, start: Snapshot, ends: list[Snapshot], where: object, values: tuple[Any, Any] | None
    ) -> None:
        self.state = state
        self.start = start
        self.where = where
        self.joined: list[tuple[Joined, Callable[[Any], None]]] = []
        #: (variable, reason, fix) of those without a value afterwards.
        self.unset: list[tuple[str, str, str]] = []
        self.result: Any = None
        self.cells = dict(start.cells)
        self.contents = list(start.contents)
        pairs = [*self._cells(ends), *self._containers(ends)]
        if values is not None:
            pairs.append(_Pair("the expression", *values, self._set_result, self._refuse, True))
        self._join(pairs, ends)

    def _cells(self, ends: list[Snapshot]) -> Iterator[_Pair]:
        for name, a in ends[0].cells.items():
            b = ends[1].cells[name]
            if a is b:
                self.cells[name] = a
            elif a is UNSET or b is UNSET:
                text = f"{name} is given a value in one branch only"
                self._lose(name)(Mismatch(text, f"give {name} a value before the if, or in both branches"))
            else:
                yield _Pair(name, a, b, _setter(self.cells, name), self._lose(name))

    def _containers(self, ends: list[Snapshot]) -> Iterator[_Pair]:
        for i, container in enumerate(self.state.containers):
            a, b = ends[0].contents[i], ends[1].contents[i]
            if container.identical(a, b):
                self.contents[i] = a
                continue
            if not container.same_frame(a, b):
                raise TraceError(
                    f"{container.name} has {container.describe(a)} after one branch of an if "
                    f"and {container.describe(b)} after the other",
                    self.where,
                    "branches work on copies: change elements only, or make a new one and assign it in both branches",
                )
            content = self.contents[i] = type(a)(a)
            for key in container.keys(a):
                if a[key] is not b[key]:
                    yield _Pair(f"{container.name}[{key!r}]", a[key], b[key], _setter(content, key), self._refuse)

    def _join(self, pairs: list[_Pair], ends: list[Snapshot]) -> None:
        if not pairs:
            return
        # A list that a branch changed in place holds what that branch left in it only while the branch is put back.
        self.state.restore(ends[0])
        first = [flatten(p.a) for p in pairs]
        self.state.restore(ends[1])
        second = [flatten(p.b) for p in pairs]
        self.state.restore(self.start)
        for pair, a, b in zip(pairs, first, second):
            try:
                self.joined.append((Joined(pair.name, a, b, _BRANCHES, pair.promoting), pair.put))
            except Mismatch as e:
                pair.fail(e)

    def _set_result(self, value: Any) -> None:
        self.result = value

    def _lose(self, name: str) -> Callable[[Mismatch], None]:
        def lost(e: Mismatch) -> None:
            self.cells[name] = UNSET
            self.unset.append((name, f"{e} of the if at {self.where}", e.fix))

        return lost

    def _refuse(self, e: Mismatch) -> None:
        raise TraceError(f"{e} of an if", self.where, e.fix) from None

    def yields(self, way: int) -> list[Value]:
        """What one branch yields."""
        return [slot.value(way) for joined, _ in self.joined for slot in joined.slots.values()]

    def finish(self, results: list[Value]) -> None:
        """Sets variables and containers to what is known after the branches."""
        left = list(results)
        for joined, put in self.joined:
            put(joined.value(left))
        self.state.restore(type(self.start)(self.cells, self.contents))
        for name, text, fix in self.unset:
            lose(self.state, name, text, fix)


def _setter(content: Any, key: Any) -> Callable[[Any], None]:
    return lambda v: content.__setitem__(key, v)


def refuse_globals(state: State, what: str, where: object) -> None:
    """Raises the error for a module global that was assigned in a body."""
    name = state.assigned_global()
    if name is not None:
        raise TraceError(
            f"the module global {name} is assigned inside a run-time {what}",
            where,
            "use a local variable, or a compile-time condition",
        )


#: Deepest nesting of branches and loops; the verifier allows as many regions.
_DEPTH = 100


def check_depth(b: Builder, where: object) -> None:
    """Raises the error for a recursion that nothing known while tracing ends."""
    if b.block.depth >= _DEPTH:
        raise TraceError(
            f"run-time branches and loops nest {_DEPTH} deep",
            where,
            "a recursion needs a compile-time condition to end; use a loop for a run-time one",
        )


def lose(state: State, name: str, text: str, fix: str) -> None:
    """Notes why a variable has no value, for the error where it is used."""
    Builder.current().unset[(state.file, name)] = (text, fix)
