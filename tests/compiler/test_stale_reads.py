"""What code reads changes in a way that no name shows: it is seen, or nothing is recorded and nothing is kept."""

from __future__ import annotations

import abc
import builtins
import contextvars
import ctypes
import datetime
import enum
import functools
import linecache
import math
import os
import pathlib
import random
import secrets
import socket
import subprocess
import sys
import time
import types
import uuid
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

import hypothesis
import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler.cache.world import Unknown, World
from flyllvm.compiler.freeze import freeze
from flyllvm.compiler.watch import Watch, has_world


def sum_of(read: Any) -> str:
    """The sum of the disk cache, or that there is none."""
    try:
        return World(read).sum
    except Unknown:
        return ""


def check(read: Callable[[], Any], change: Callable[[], Any]) -> None:
    """What was learnt before a change must not hold after it, neither in the process nor on disk."""
    world, kept, before = Watch(read), sum_of(read), read()
    change()
    assert read() != before, "the change changes nothing"
    assert not world.valid()
    assert not kept or sum_of(read) != kept


class Meta(type):
    q = 1


def objects() -> tuple[Any, Any, Any]:
    """A base class, a class and an object of it."""

    class A(metaclass=Meta):
        k = 1

        def m(self) -> int:
            return 1

        @property
        def p(self) -> int:
            return 1

    class B(A):
        pass

    return A, B, B()


def look_ups() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """What is read, and how it changes."""
    a, b, o = objects()
    other = type("Other", (a,), {"k": 9})
    module: Any = types.ModuleType("late")
    no_meta = type("Plain", (type("One", (), {"k": 1}),), {})
    two = type("Two", (), {"k": 2})
    plain = no_meta()

    def set_bases() -> None:
        no_meta.__bases__ = (two,)

    def late_getattr() -> None:
        module.__getattr__ = lambda name: 5

    return {
        "an attribute in front of the class": (lambda: o.k, lambda: setattr(o, "k", 3)),
        "an attribute of a class in front of its base": (lambda: o.k, lambda: setattr(b, "k", 3)),
        "of the class itself": (lambda: b.k, lambda: setattr(b, "k", 3)),
        "a method on the object": (lambda: o.m(), lambda: setattr(o, "m", lambda: 3)),
        "a method on the class": (lambda: o.m(), lambda: setattr(b, "m", lambda self: 3)),
        "another class": (lambda: o.k, lambda: setattr(o, "__class__", other)),
        "other bases": (lambda: plain.k, set_bases),
        "a property in front": (lambda: o.k, lambda: setattr(b, "k", property(lambda self: 3))),
        "a property replaced": (lambda: o.p, lambda: setattr(a, "p", property(lambda self: 3))),
        "an attribute of the metaclass": (lambda: b.q, lambda: setattr(Meta, "q", Meta.q + 1)),
        "hasattr of an object": (lambda: hasattr(o, "late"), lambda: setattr(o, "late", 1)),
        "getattr with a default": (lambda: getattr(o, "late", 0), lambda: setattr(a, "late", 1)),
        "hasattr of a module": (lambda: hasattr(module, "late"), lambda: setattr(module, "late", 1)),
        "a module's __getattr__": (lambda: getattr(module, "late", 0), late_getattr),
        "__getattr__ of a class": (
            lambda: getattr(o, "late", 0),
            lambda: setattr(b, "__getattr__", lambda self, name: 7),
        ),
        "an operator on the class": (lambda: len(getattr(b, "l", "")) + bool(o), lambda: setattr(b, "__bool__", no)),
    }


def no(self: Any) -> bool:
    """Nothing is true."""
    return False


@pytest.mark.parametrize("what", look_ups())
def test_the_whole_look_up_is_watched(what: str) -> None:
    check(*look_ups()[what])


def helpers() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Functions that are changed in place."""

    def one(v: int = 1, *, w: int = 1) -> int:
        return v + w

    def two(v: int = 1, *, w: int = 1) -> int:
        return v + w + 100

    def attribute() -> int:
        return attribute.scale  # type: ignore[attr-defined, no-any-return]

    attribute.scale = 1  # type: ignore[attr-defined]
    keywords: Any = one.__kwdefaults__
    return {
        "__code__": (lambda: one(), lambda: setattr(one, "__code__", two.__code__)),
        "__defaults__": (lambda: one(), lambda: setattr(one, "__defaults__", (5,))),
        "__kwdefaults__": (lambda: one(), lambda: setattr(one, "__kwdefaults__", {"w": 5})),
        "an entry of __kwdefaults__": (lambda: one(), lambda: keywords.update(w=5)),
        "an attribute": (lambda: attribute(), lambda: setattr(attribute, "scale", 3)),
    }


@pytest.mark.parametrize("what", helpers())
def test_a_function_changed_in_place_is_seen(what: str) -> None:
    check(*helpers()[what])


class Color(enum.Enum):
    RED = 1


class Held:
    """An object that references point to."""

    v = 1


class Marked(np.ndarray):
    """An array with attributes."""


def unseen() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """State that hides where no name leads."""

    @functools.singledispatch
    def dispatched(v: Any) -> int:
        return 1

    variable = contextvars.ContextVar("variable", default=1)
    target: Any = Held()
    ref = weakref.ref(target)
    rows = np.array([[1], 2], object)
    raw = bytearray(b"\x01")
    view = memoryview(raw)
    marked: Any = np.zeros(2).view(Marked)
    marked.e = 1
    held = [1]

    @functools.lru_cache
    def cached() -> int:
        return held[0]

    def clear() -> None:
        held[0] = 2
        cached.cache_clear()

    class Abstract(metaclass=abc.ABCMeta):
        """Others are registered with it."""

        @abc.abstractmethod
        def m(self) -> None:
            """Nothing."""

    class Both:
        """A slot and attributes."""

        __slots__ = ("__dict__", "slot")

    class Named:
        """Asked for its name."""

    both, fixed = Both(), np.zeros(2)
    both.slot, both.other = 1, 1  # type: ignore[attr-defined]
    subclasses = [Named]
    return {
        "a slot beside attributes": (lambda: both.slot, lambda: setattr(both, "slot", 2)),
        "registered subclasses": (lambda: isinstance(both, Abstract), lambda: Abstract.register(Both)),
        "subclasses": (
            lambda: len(Named.__subclasses__()),
            lambda: subclasses.append(type("Sub", (Named,), {})),
        ),
        "the name of a class": (lambda: Named.__name__, lambda: setattr(Named, "__name__", "Other")),
        "the text of a function": (lambda: no.__doc__, lambda: setattr(no, "__doc__", (no.__doc__ or "") + "x")),
        "flags of an array": (lambda: fixed.flags.writeable, lambda: fixed.setflags(write=False)),
        "singledispatch": (lambda: dispatched(1), lambda: dispatched.register(int, lambda v: 5)),
        "a context variable": (lambda: variable.get(), lambda: variable.set(2)),
        "behind a weak reference": (lambda: ref().v + 0 * target.v, lambda: setattr(target, "v", 2)),
        "a list in an object array": (lambda: rows[0][0], lambda: rows[0].__setitem__(0, 2)),
        "a memoryview": (lambda: view[0], lambda: raw.__setitem__(0, 2)),
        "a member's value": (lambda: Color.RED.value, lambda: setattr(Color.RED, "_value_", Color.RED.value + 1)),
        "an attribute of an array": (lambda: marked.e, lambda: setattr(marked, "e", 2)),
        "a cleared cache": (lambda: cached(), clear),
        "a bound method of a list": (lambda: held.count(1), lambda: held.append(1)),
    }


@pytest.mark.parametrize("what", unseen())
def test_hidden_state_is_seen_or_nothing_is_recorded(what: str) -> None:
    check(*unseen()[what])


def test_arguments_of_the_program_and_new_builtins_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["x"])
    check(lambda: len(sys.argv), lambda: sys.argv.append("y"))
    monkeypatch.setattr(builtins, "FLY_SCALE", 1, raising=False)
    check(lambda: FLY_SCALE, lambda: setattr(builtins, "FLY_SCALE", 2))  # type: ignore[name-defined] # noqa: F821


def test_a_replaced_function_of_a_library_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    check(lambda: math.sqrt(4.0), lambda: monkeypatch.setattr(math, "sqrt", lambda x: 7.0))
    check(lambda: fx.math.sqrt, lambda: monkeypatch.setattr(fx.math, "sqrt", lambda x: 7.0))


HERE = pathlib.Path(__file__)
RNG = np.random.default_rng(0)
READ = random.random


def imports_inside() -> float:
    import time as clock

    return clock.time()


IMPURE: dict[str, Callable[[], Any]] = {
    "random": lambda: random.random(),
    "random by name": lambda: READ(),
    "np.random": lambda: np.random.random(),
    "a generator": lambda: RNG.random(),
    "time": lambda: time.time(),
    "datetime": lambda: datetime.datetime.now(),
    "an import inside": imports_inside,
    "open": lambda: open(HERE).read(),  # noqa: SIM115
    "a path object": lambda: HERE.read_text(),
    "a path": lambda: pathlib.Path("x").read_text(),
    "np.loadtxt": lambda: np.loadtxt("x"),
    "np.load": lambda: np.load("x"),
    "np.fromfile": lambda: np.fromfile("x"),
    "os.stat": lambda: os.stat("x"),
    "os.path.exists": lambda: os.path.exists("x"),
    "linecache": lambda: linecache.getline("x", 1),
    "uuid": lambda: uuid.uuid4(),
    "secrets": lambda: secrets.token_hex(),
    "input": lambda: input(),
    "socket": lambda: socket.gethostname(),
    "subprocess": lambda: subprocess.run("x", check=False),
    "eval": lambda: eval("1"),
    "another package": lambda: hypothesis.target(1),
    "an alias": lambda: [m.random for m in (np.random,)],
}


@pytest.mark.parametrize("what", IMPURE)
def test_what_may_differ_on_the_next_call_is_neither_recorded_nor_kept(what: str) -> None:
    assert Watch(IMPURE[what]).why_not is not None
    assert sum_of(IMPURE[what]) == ""


PURE: dict[str, Callable[[], Any]] = {
    "math": lambda: math.ceil(math.sqrt(3.0)),
    "numpy": lambda: np.zeros((2, 2)).sum() + np.linalg.norm(np.ones(3)) + np.float32(1),
    "functools": lambda: functools.reduce(max, [1, 2]),
    "builtins": lambda: sorted(map(str, range(3)), key=len) + list(zip("a", "b", strict=True)),
    "the language": lambda: fx.make_layout(4, 1) or fx.math.sqrt or fx.Float32,
    "data of another module": lambda: (sys.maxsize, os.sep, time.timezone),
    "a name that a library uses for files": lambda: np.ones(1) is fx.load,  # type: ignore[attr-defined]
}


@pytest.mark.parametrize("what", PURE)
def test_what_repeats_is_recorded_and_kept(what: str) -> None:
    world = Watch(PURE[what])
    assert world.why_not is None and world.valid()
    assert sum_of(PURE[what]) != ""


def computed() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Reads by names that are not in the code."""

    class Sizes:
        tile_1 = 1

    module: Any = types.ModuleType("sizes")
    module.tile_1 = 1
    sizes, one = Sizes(), 1
    get, part = getattr, functools.partial(getattr, module)
    return {
        "by another name of getattr": (lambda: get(module, "tile_" + str(one)), lambda: setattr(module, "tile_1", 2)),
        "by a partial of getattr": (lambda: part("tile_" + str(one)), lambda: setattr(module, "tile_1", 2)),
        "by a format": (lambda: "{.tile_1}".format(sizes), lambda: setattr(sizes, "tile_1", 2)),  # noqa: UP032
        "of a class": (lambda: getattr(sizes, f"tile_{one}"), lambda: setattr(Sizes, "tile_1", 2)),
        "in front of a class": (lambda: getattr(sizes, f"tile_{one}"), lambda: setattr(sizes, "tile_1", 2)),
        "of a module": (lambda: getattr(module, "tile_" + str(one)), lambda: setattr(module, "tile_1", 2)),
        "of a module, none so far": (lambda: hasattr(module, f"t_{one}"), lambda: setattr(module, "t_1", 2)),
        "of a dict of a module": (lambda: vars(module)["tile_" + str(one)], lambda: setattr(module, "tile_1", 2)),
        "of the globals": (lambda: globals()["no" + str(one)], lambda: globals().update(no1=globals()["no1"] + 1)),
    }


no1 = 1


@pytest.mark.parametrize("what", computed())
def test_names_that_are_computed_are_seen_or_nothing_is_recorded(what: str) -> None:
    check(*computed()[what])


def test_a_name_written_in_the_code_leaves_the_others_alone() -> None:
    module: Any = types.ModuleType("sizes")
    module.lock, module.tile = object(), 1
    world = Watch(lambda: getattr(module, "tile", 0) + hasattr(module, "late"))
    module.other = 1
    assert world.why_not is None and world.valid()


FACTOR = 1


def scaled() -> int:
    return FACTOR


class Slotted:
    """A function in a slot."""

    __slots__ = ("f",)


def test_functions_inside_of_things_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    slotted = Slotted()
    slotted.f = scaled
    inside: list[Any] = [(scaled,), {"a": [scaled]}, {scaled: 1}, slotted, functools.partial(scaled)]
    roots: list[Any] = [lambda thing=thing: thing for thing in inside]
    assert all(map(has_world, inside))
    worlds = [Watch(root) for root in (*roots, *inside)] + [Watch(lambda: np.frompyfunc(scaled, 0, 1)())]
    kept = [sum_of(thing) for thing in inside]
    monkeypatch.setitem(globals(), "FACTOR", 2)
    assert not any(world.valid() for world in worlds)
    assert all(not k or sum_of(thing) != k for thing, k in zip(inside, kept, strict=True))
    made = np.frompyfunc(scaled, 0, 1)
    assert Watch(lambda: made()).why_not is not None


@pytest.mark.sim
def test_randomness_is_drawn_in_every_launch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")

    @flyc.kernel
    def k(x: fx.Tensor):
        x[0] = random.random()

    @flyc.jit
    def host(x):
        k(x).launch()

    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Float32):
        x[0] = v

    @flyc.jit
    def draws(x):
        put(x, random.random()).launch()

    handle = flyc.compile(draws, "f32[1]", arch="gfx942")
    for run in (host, lambda x: k(x).launch(), draws, handle):
        seen = set()
        for _ in range(3):
            run(x := np.zeros(1, np.float32))
            seen.add(float(x[0]))
        assert len(seen) == 3


@pytest.mark.sim
def test_a_host_function_whose_code_is_replaced_runs_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")

    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Float32):
        x[0] = v

    def one(x: Any) -> None:
        put(x, 1.0).launch()

    def two(x: Any) -> None:
        put(x, 2.0).launch()

    host = flyc.jit(one)
    host(x := np.zeros(1, np.float32))
    one.__code__ = two.__code__
    host(x)
    assert x[0] == 2


class Anything:
    """Answers every name."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__array_interface__":
            raise AttributeError(name)
        return 1.0


def test_objects_that_answer_every_name_are_no_arrays() -> None:
    assert freeze(Anything()) == freeze(Anything())
    thing: Any = Anything()
    assert Watch(lambda: thing.x).why_not is None


@pytest.mark.sim
def test_unhashable_and_answering_arguments_are_read_in_every_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")

    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Float32):
        x[0] = v

    @flyc.jit
    def host(x, number):
        put(x, float(number.value)).launch()

    numbers: list[Any] = [ctypes.c_int(0), mock.Mock(value=0), mock.MagicMock(value=0), Anything()]
    for number in numbers:
        for value in (1, 2):
            number.value = value
            host(x := np.zeros(1, np.float32), number)
            assert x[0] == value


def test_results_kept_of_before_a_change_are_not_kept_on_disk() -> None:
    held = [1]

    @functools.lru_cache
    def cached(n: int) -> int:
        return held[0] + (cached(n - 1) if n else 0)

    def read() -> int:
        return cached(2)

    first = sum_of(read)
    assert first and read() == 3 and sum_of(read) == first
    held[0] = 2
    assert read() == 3 and sum_of(read) == "", "the old result under the new sum"
    cached.cache_clear()
    assert sum_of(read) not in ("", first) and read() == 6
