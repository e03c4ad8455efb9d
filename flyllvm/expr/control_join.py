"""Two values of one variable become one that is known at run time."""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, Any

from ..errors import FlyError, TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .control_state import UNSET
from .control_tree import describe, flatten, same
from .numeric import Boolean, Float32, Int32, Int64, Numeric, as_numeric, of_ir, promote
from .pointer import Pointer
from .tensor import Tensor
from .vector import Vector

if TYPE_CHECKING:
    from collections.abc import Callable

    from .control_state import Container, Snapshot, State

Number = (Numeric, bool, int, float)


class Mismatch(Exception):
    """Two values that cannot become one; the text says how they differ, ``fix`` what to write."""

    def __init__(self, text: str, fix: str) -> None:
        super().__init__(text)
        self.fix = fix


def truth(x: Any) -> bool | Value:
    """A condition: a bool where it is known, else an i1."""
    if x is True or x is False:
        return x
    if isinstance(x, Value):
        x = of_ir(x)
    if isinstance(x, Numeric):
        known = x.static_value()
        if known is not None:
            return bool(known)
        return x.ir_value() if type(x) is Boolean else Boolean(x).ir_value()
    if isinstance(x, (Vector, Tensor, Pointer)):
        raise TraceError(
            f"{describe(x)} is used as a condition", Builder.current().location(), "compare or reduce it to one Boolean"
        )
    return bool(x)


def is_traced(x: Any) -> bool:
    """Whether a leaf is known at run time only."""
    return isinstance(x, Value) or (isinstance(x, Numeric) and not x.is_static)


def number_type(a: Any, b: Any, promoting: bool = False) -> type[Numeric] | None:
    """The type two numbers have in common; Python numbers take the other's type where they fit it."""
    if isinstance(a, Numeric) or isinstance(b, Numeric):
        x = a if isinstance(a, Numeric) else as_numeric(a, type(b))
        y = b if isinstance(b, Numeric) else as_numeric(b, type(x))
        if type(x) is type(y):
            return type(x)
        try:
            return promote(type(x), type(y), arithmetic=False) if promoting else None
        except FlyError:
            return None
    if isinstance(a, float) or isinstance(b, float):
        return Float32
    if isinstance(a, bool) and isinstance(b, bool):
        return Boolean
    return Int64 if Int64 in (type(as_numeric(int(a))), type(as_numeric(int(b)))) else Int32


class Slot:
    """A leaf that differs.

    Attributes:
        number: Number type of the joined leaf; ``None`` for other IR values, which join as they are.
        type: IR type of the joined leaf.
        values: The leaf on each way.
    """

    __slots__ = ("number", "type", "values")

    def __init__(self, number: type[Numeric] | None, type: t.Type, values: tuple[Any, ...]) -> None:
        self.number = number
        self.type = type
        self.values = values

    def value(self, way: int) -> Value:
        """The IR value on one way, emitted at the current place."""
        x = self.values[way]
        if self.number is not None:
            return self.number(x).ir_value()
        return x if x.type == self.type else lowered(x, self.type)

    def wrap(self, value: Value) -> Any:
        """The joined leaf."""
        return value if self.number is None else self.number.wrap(value)


def lowered(x: Value, type: t.Type) -> Value:
    """A pointer with a weaker alignment."""
    return Builder.current().emit("fly.recast_iter", [x], [type]).results[0]


def slot_of(a: Any, b: Any, promoting: bool = False) -> Slot | None:
    """How two leaves that differ join; ``None`` when they cannot."""
    if isinstance(a, Number) and isinstance(b, Number):
        number = number_type(a, b, promoting)
        return None if number is None else Slot(number, number.ir, (a, b))
    if not isinstance(a, Value) or not isinstance(b, Value):
        return None
    p, q = a.type, b.type
    if isinstance(p, t.PtrType) and p.space == "register":
        return None
    if p == q:
        return Slot(None, p, (a, b))
    if isinstance(p, t.PtrType) and isinstance(q, t.PtrType):
        type_ = p.with_(align=gcd(p.align, q.align))
        if q.with_(align=type_.align) == type_:
            return Slot(None, type_, (a, b))
    return None


def mismatch(name: str, a: Any, b: Any, where: tuple[str, str]) -> Mismatch:
    """Says how two values of a variable differ."""
    text = f"{name} is {describe(a)} {where[0]} and {describe(b)} {where[1]}"
    for x, y in ((a, b), (b, a)):
        if x is None:
            of = f"fx.{type(y).__name__}(0)" if isinstance(y, Numeric) else "a zero vector"
            fix = f"give {name} a start value of its type instead of None (such as {of})"
            return Mismatch(text, f"{fix}, or decide at compile time with fx.const_expr")
    if any(isinstance(x, Tensor) and x.address_space == "register" for x in (a, b)):
        return Mismatch(text, "register memory cannot be chosen at run time: copy its values, or unroll the loop")
    if all(isinstance(x, Number) for x in (a, b)):
        kinds = [type(x) for x in (a, b) if isinstance(x, Numeric)]
        return Mismatch(text, f"convert both to one type, such as fx.{kinds[-1]}(...)")
    return Mismatch(text, "keep its type, shape and length the same, or choose at compile time with fx.const_expr")


class Joined:
    """A value of which some leaves differ: ``slots`` by leaf position."""

    __slots__ = ("_tree", "slots")

    def __init__(self, name: str, a: Any, b: Any, where: tuple[str, str], promoting: bool = False) -> None:
        x, y = flatten(a), flatten(b)
        self.slots: dict[int, Slot] = {}
        self._tree = x
        if not _same_key(x.key, y.key):
            raise mismatch(name, a, b, where)
        for i, (p, q) in enumerate(zip(x.leaves, y.leaves)):
            if not same(p, q):
                slot = slot_of(p, q, promoting)
                if slot is None:
                    alone = len(x.leaves) == 1
                    raise mismatch(name, *((a, b) if alone else (p, q)), where)
                self.slots[i] = slot

    def value(self, results: list[Value]) -> Any:
        """The joined value; takes its results from the front of the list."""
        leaves = list(self._tree.leaves)
        for i, slot in self.slots.items():
            leaves[i] = slot.wrap(results.pop(0))
        return self._tree.rebuild(leaves)


def _same_key(a: Any, b: Any) -> bool:
    try:
        return bool(a == b)
    except FlyError:  # layouts of run-time leaves do not compare
        return False


_BRANCHES = ("in one branch", "in the other")


class Branches:
    """Joins what two branches made of the author's variables and containers.

    Args:
        state: Everything the branches can change.
        start: What it was before them.
        ends: What each branch left.
        where: The author's line of the branch.
    """

    def __init__(self, state: State, start: Snapshot, ends: list[Snapshot], where: object) -> None:
        self.state = state
        self.start = start
        self.where = where
        self.joined: list[tuple[Joined, Callable[[Any], None]]] = []
        #: (variable, reason, fix) of those without a value afterwards.
        self.unset: list[tuple[str, str, str]] = []
        self.cells = dict(start.cells)
        self.contents = list(start.contents)
        for name in state.cells:
            self._cell(name, ends[0].cells[name], ends[1].cells[name])
        for i, container in enumerate(state.containers):
            self._container(i, container, ends[0].contents[i], ends[1].contents[i])

    def _cell(self, name: str, a: Any, b: Any) -> None:
        if a is b:
            self.cells[name] = a
        elif a is UNSET or b is UNSET:
            self.cells[name] = UNSET
            text = f"{name} is given a value in one branch only of the if at {self.where}"
            self.unset.append((name, text, f"give {name} a value before the if, or in both branches"))
        else:
            try:
                self.add(name, a, b, lambda v: self.cells.__setitem__(name, v))
            except Mismatch as e:
                self.cells[name] = UNSET
                self.unset.append((name, f"{e} of the if at {self.where}", e.fix))

    def add(self, name: str, a: Any, b: Any, put: Callable[[Any], None], promoting: bool = False) -> None:
        """Joins two values; ``put`` takes the result."""
        self.joined.append((Joined(name, a, b, _BRANCHES, promoting), put))

    def _container(self, i: int, container: Container, a: Any, b: Any) -> None:
        if not container.same_frame(a, b):
            raise TraceError(
                f"{container.name} has {container.describe(a)} after one branch of an if "
                f"and {container.describe(b)} after the other",
                self.where,
                "branches work on copies: change its elements only, or make a new one and assign it in both branches",
            )
        content = self.contents[i] = type(a)(a)
        for key in container.keys(a):
            if a[key] is not b[key]:
                try:
                    self.add(f"{container.name}[{key!r}]", a[key], b[key], _setter(content, key))
                except Mismatch as e:
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


def lose(state: State, name: str, text: str, fix: str) -> None:
    """Notes why a variable has no value, for the error where it is used."""
    Builder.current().unset[(state.file, name)] = (text, fix)
