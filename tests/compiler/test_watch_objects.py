"""What functions read through operators, protocols, computed names and libraries is seen to change."""

from __future__ import annotations

import collections
import dataclasses
import functools
import os
import sys
import types
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler.freeze import Unfreezable, freeze
from flyllvm.compiler.watch import Watch


class Table:
    """Read by nothing but Python's protocols."""

    def __init__(self) -> None:
        self.n = 1
        self.unused = 1

    def __getitem__(self, i: int) -> int:
        return self.n + i

    def __call__(self) -> int:
        return self.n

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Any:
        return iter([self.n])

    def __add__(self, other: int) -> int:
        return self.n + other

    def __bool__(self) -> bool:
        return self.n > 1

    def __enter__(self) -> int:
        return self.n

    def __exit__(self, *error: object) -> None:
        return None

    def __contains__(self, x: int) -> bool:
        return self.n == x

    def __index__(self) -> int:
        return self.n


@dataclasses.dataclass
class Box:
    width: int = 1


class Rows(list[int]):
    """A list of a class of its own."""


class Names(dict[str, int]):
    """A dict of a class of its own."""


TABLE, BOX = Table(), Box()
ROWS, NAMES = Rows([1]), Names(a=1)
ORDERED, CHAIN = collections.OrderedDict(a=1), collections.ChainMap({"a": 1})
PARTIAL_OF = [1]
PARTIAL = functools.partial(lambda x: x[0], PARTIAL_OF)
LATE = 1
FIELD = "width"


def entered() -> int:
    with TABLE as n:
        return n


def matched() -> int:
    match BOX:
        case Box(width=w):
            return w
    return 0


def imported() -> int:
    import watched_settings  # type: ignore[import-not-found]

    return int(watched_settings.TILE)


def imported_from() -> int:
    from watched_settings import TILE

    return int(TILE)


READERS: dict[str, tuple[Callable[[], Any], Any, Any, Any]] = {
    "an index": (lambda: TABLE[0], vars(TABLE), "n", 2),
    "a call": (lambda: TABLE(), vars(TABLE), "n", 2),
    "len": (lambda: len(TABLE), vars(TABLE), "n", 2),
    "iteration": (lambda: sum(TABLE), vars(TABLE), "n", 2),
    "an operator": (lambda: TABLE + 1, vars(TABLE), "n", 2),
    "truth": (lambda: 1 if TABLE else 0, vars(TABLE), "n", 2),
    "with": (entered, vars(TABLE), "n", 2),
    "in": (lambda: int(2 in TABLE), vars(TABLE), "n", 2),
    "a number": (lambda: range(TABLE)[-1], vars(TABLE), "n", 2),
    "getattr": (lambda: getattr(BOX, "width"), vars(BOX), "width", 2),  # noqa: B009
    "getattr with a name from elsewhere": (lambda: getattr(BOX, FIELD), vars(BOX), "width", 2),
    "vars": (lambda: vars(BOX)["width"], vars(BOX), "width", 2),
    "asdict": (lambda: dataclasses.asdict(BOX)["width"], vars(BOX), "width", 2),
    "a pattern": (matched, vars(BOX), "width", 2),
    "equality": (lambda: int(Box(2) == BOX), vars(BOX), "width", 2),
    "a list of its own class": (lambda: ROWS[0], ROWS, 0, 2),
    "a dict of its own class": (lambda: NAMES["a"], NAMES, "a", 2),
    "an ordered dict": (lambda: ORDERED["a"], ORDERED, "a", 2),
    "an object of a library's class": (lambda: CHAIN["a"], CHAIN.maps[0], "a", 2),
    "a partial's argument": (lambda: PARTIAL(), PARTIAL_OF, 0, 2),
    "the environment": (lambda: os.environ["WATCHED"], os.environ, "WATCHED", "2"),
    "getenv": (lambda: os.getenv("WATCHED"), os.environ, "WATCHED", "2"),
    "an import inside": (imported, "watched_settings", "TILE", 2),
    "an import of a name inside": (imported_from, "watched_settings", "TILE", 2),
}


@pytest.mark.parametrize("what", READERS)
def test_a_change_behind_a_read_is_seen_and_its_undoing_too(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = types.ModuleType("watched_settings")
    settings.TILE = 1  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "watched_settings", settings)
    monkeypatch.setenv("WATCHED", "1")
    read, space, name, value = READERS[what]
    if space == "watched_settings":
        space = vars(settings)
    world, was, before = Watch(read), read(), space[name]
    assert world.valid() and world.why_not is None
    space[name] = value
    try:
        assert read() != was and not world.valid()
    finally:
        space[name] = before
    assert world.valid()


def test_a_replaced_special_method_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    world = Watch(READERS["an index"][0])
    monkeypatch.setattr(Table, "__getitem__", lambda self, i: 7)
    assert not world.valid()


def test_what_a_constructor_assigns_is_not_read() -> None:
    table = Table()
    world = Watch(lambda: table[0])
    table.unused = 2
    assert world.valid()
    table.n = 2
    assert not world.valid()


def test_keys_hold_the_contents_of_containers_and_partials_of_all_classes() -> None:
    def scale(k: int, x: int) -> int:
        return k * x

    assert freeze(Rows([1])) == freeze(Rows([1])) != freeze(Rows([2]))
    assert freeze(functools.partial(scale, 2)) == freeze(functools.partial(scale, 2))
    assert freeze(functools.partial(scale, 2)) != freeze(functools.partial(scale, 3))
    assert freeze(functools.partial(scale, x=2)) != freeze(functools.partial(scale, x=3))
    marked = Rows([1])
    marked.mark = 1  # type: ignore[attr-defined]
    assert freeze(marked) != freeze(Rows([1]))
    with pytest.raises(Unfreezable, match="a ValueError"):
        freeze(ValueError("x"))  # its arguments are no attributes


@pytest.mark.sim
def test_compile_time_partials_and_lists_of_a_class_are_kernels_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")

    def times(k: int, x: Any) -> Any:
        return k * x

    @flyc.kernel
    def k(x: fx.Tensor, f: fx.Constexpr, rows: fx.Constexpr):
        x[0] = f(x[0]) + rows[0]

    for factor, row in ((2, 10), (3, 10), (3, 20)):
        x = np.full(1, 5, np.int32)
        k(x, functools.partial(times, factor), Rows([row])).launch()
        assert x[0] == 5 * factor + row
