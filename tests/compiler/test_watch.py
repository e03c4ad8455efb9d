"""What functions read besides their arguments: every change is seen, and nothing else counts as one."""

from __future__ import annotations

import math
import types
from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler.freeze import Unfreezable, freeze
from flyllvm.compiler.watch import Watch

LIMIT = 3
DEEP = {"tiles": [16, 32], "name": "x"}
settings = types.ModuleType("settings")
settings.TILE = 64  # type: ignore[attr-defined]
settings.OTHER = 1  # type: ignore[attr-defined]


class Base:
    """A class whose method is used."""

    width = 4

    def size(self) -> int:
        return self.width * self.height  # type: ignore[attr-defined, no-any-return]


class Box(Base):
    def __init__(self, height: int) -> None:
        self.height = height
        self.unused = 1


BOX = Box(2)


def inner() -> int:
    return LIMIT + math.floor(1.5)


def outer(box: Box) -> int:
    return inner() + DEEP["tiles"][0] + settings.TILE + box.size()  # type: ignore[attr-defined, index]


def root() -> int:
    return outer(BOX)


def replaced() -> int:
    return 7


CHANGES = {
    "a global of a helper's helper": (globals(), "LIMIT", 4),
    "a helper itself": (globals(), "inner", replaced),
    "an attribute of a module": (vars(settings), "TILE", 65),
    "an attribute of an object": (vars(BOX), "height", 3),
    "an item in a nested container": (DEEP["tiles"], 0, 17),
    "an object": (globals(), "BOX", Box(2)),
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_is_seen_and_its_undoing_too(what: str) -> None:
    space, name, value = CHANGES[what]
    world = Watch(root)
    assert world.valid() and world.why_not is None
    before = space[name]  # type: ignore[index]
    space[name] = value  # type: ignore[index]
    try:
        assert not world.valid()
    finally:
        space[name] = before  # type: ignore[index]
    assert world.valid()


def test_a_class_attribute_and_a_method_are_seen() -> None:
    world = Watch(root)
    Base.width = 5
    try:
        assert not world.valid()
    finally:
        Base.width = 4
    assert world.valid()
    size = Base.size
    Base.size = lambda self: 1  # type: ignore[method-assign]
    try:
        assert not world.valid()
    finally:
        Base.size = size  # type: ignore[method-assign]


def test_what_is_not_read_does_not_count() -> None:
    world = Watch(root)
    settings.OTHER = 2  # type: ignore[attr-defined]
    BOX.unused = 9
    assert world.valid()


def test_a_global_named_like_an_attribute_does_not_count() -> None:
    def f() -> Any:
        return fx.thread_idx.x

    world = Watch(f)
    globals()["x"] = 1
    try:
        assert world.valid()
    finally:
        del globals()["x"]


def test_a_global_that_hides_a_builtin_is_seen() -> None:
    def f() -> int:
        return max(1, 2)

    world = Watch(f)
    globals()["max"] = min
    try:
        assert not world.valid()
    finally:
        del globals()["max"]
    assert world.valid()


def test_globals_are_found_in_long_functions() -> None:
    space: dict[str, Any] = {f"v{i}": i for i in range(600)}
    exec("def f():\n    return [" + ", ".join(space) + "]", space)
    world = Watch(space["f"])
    space["v599"] = -1
    assert not world.valid()


def test_an_equal_number_is_no_change() -> None:
    global LIMIT
    world = Watch(root)
    LIMIT = int("3")
    assert world.valid()
    LIMIT = 3.0  # type: ignore[assignment]
    try:
        assert not world.valid(), "3.0 gives other code than 3"
    finally:
        LIMIT = 3


def test_closures_and_defaults_are_seen() -> None:
    scale = 2
    table = [1]

    def f(x: int, step: Any = table) -> int:
        return x * scale + step[0]

    world = Watch(f)
    scale = 3
    assert not world.valid()
    scale = 2
    assert world.valid()
    table.append(2)
    assert not world.valid()


def test_functions_inside_kernels_and_kernels_inside_host_functions_are_reached() -> None:
    @flyc.kernel
    def kernel(x: fx.Tensor):
        def fill() -> None:
            x[0] = LIMIT

        fill()

    @flyc.jit
    def host(x):
        kernel(x).launch()

    global LIMIT
    world = Watch(host.fn)
    assert world.covers(kernel.fn)
    LIMIT = 4
    try:
        assert not world.valid()
    finally:
        LIMIT = 3


def test_libraries_are_not_walked() -> None:
    def f() -> Any:
        return np.zeros(3), math.pi, fx.Float32

    world = Watch(f)
    assert world.why_not is None and world.valid()
    assert len(world._functions) == 1 and not world._frozen


class Opaque:
    """A class without readable contents."""

    __slots__ = ()


def test_what_cannot_be_watched_is_said_and_never_valid() -> None:
    import threading

    big = np.zeros(1 << 16, np.float64)
    lock = threading.Lock()

    def reads_big() -> Any:
        return big[0]

    def reads_lock() -> Any:
        return [lock]

    for f, why in ((reads_big, "it reads an array of 524288 bytes"), (reads_lock, "it reads a lock")):
        world = Watch(f)
        assert not world.valid()
        assert world.why_not == why


@pytest.mark.sim
def test_a_kernel_that_cannot_be_watched_is_traced_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")
    big = np.zeros(1 << 16, np.float64)

    @flyc.kernel
    def k(x: fx.Tensor):
        x[0] = float(big[0])

    @flyc.jit
    def run(x):
        k(x).launch()

    x = np.zeros(1, np.float32)
    for value in (1.0, 2.0):
        big[0] = value
        run(x)
        assert x[0] == value
    assert run.recordings == 2


# --- keys --------------------------------------------------------------------------------------------------


def test_keys_tell_types_apart() -> None:
    values = [
        1, 1.0, True, 0.0, -0.0, "1", b"1", None, (1,), [1], (1.0,), {1}, {1: 2}, {1: 2.0}, fx.Float16, fx.Float32,
        1 + 0j, Box(1), Box(2), inner, replaced, np.float32(1), np.float64(1), np.zeros(2), np.zeros(2, np.float32),
        np.ones(2), fx.make_layout(4, 1), fx.make_layout(4, 2), fx.Swizzle(2, 3, 3), fx.UniversalCopy(32),
        fx.UniversalCopy(64), fx.Int32(1), fx.Int64(1), fx.Int32(2), ...,
    ]  # fmt: skip
    keys = [freeze(v) for v in values]
    assert len(set(keys)) == len(keys)


def test_equal_contents_give_equal_keys() -> None:
    pairs: list[tuple[Any, Any]] = [
        (Box(1), Box(1)),
        ({"a": [1, 2]}, {"a": [1, 2]}),
        (np.ones(3), np.ones(3)),
        (fx.make_layout((4, 8), (8, 1)), fx.make_layout((4, 8), (8, 1))),
        (fx.UniversalCopy(32), fx.UniversalCopy(32)),
    ]
    for a, b in pairs:
        assert freeze(a) == freeze(b)


def test_a_lambda_made_twice_is_one_key_until_what_it_holds_differs() -> None:
    def make(n: int) -> Any:
        return lambda x: x + n

    assert freeze(make(1)) == freeze(make(1)) != freeze(make(2))


def test_what_has_no_key_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)
    parent, child = Box(1), Box(2)
    parent.child, child.parent = [child, child], parent  # type: ignore[attr-defined]
    wide = list(range(30_000))
    for value, why in (
        (object(), "a object"), (Opaque(), "a Opaque"), (loop, "a list that holds itself"), (iter([1]), "iterator"),
        (parent, "a Box that holds itself"), ([[x] for x in wide], "more than 20000 parts"),
    ):  # fmt: skip
        with pytest.raises(Unfreezable, match=why):
            freeze(value)
    assert freeze(wide)
