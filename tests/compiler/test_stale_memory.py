"""Memory of a recorded call: only arguments, and globals that are the same object, are launched again."""

from __future__ import annotations

import threading
import time
from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import LaunchError

pytestmark = pytest.mark.sim


@pytest.fixture(autouse=True)
def simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches go to the simulator."""
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")


@flyc.kernel
def add(a: fx.Tensor, x: fx.Tensor):
    x[fx.thread_idx.x] = x[fx.thread_idx.x] + a[fx.thread_idx.x]


@flyc.kernel
def copy(p: fx.Pointer, x: fx.Tensor):
    x[fx.thread_idx.x] = fx.make_view(p, fx.make_layout(8, 1))[fx.thread_idx.x]


@flyc.jit
def through_scratch(x, y):
    t = np.zeros(8, np.float32)
    add(x, t).launch(block=8)
    add(t, y).launch(block=8)


TABLE = np.ones(8, np.float32)


@flyc.jit
def through_global(y):
    add(TABLE, y).launch(block=8)


def ones() -> Any:
    return np.ones(8, np.float32)


@pytest.mark.parametrize("handle", [False, True])
def test_an_array_made_in_the_host_function_is_fresh_in_every_call(handle: bool) -> None:
    run: Any = flyc.compile(through_scratch, "f32[8]", "f32[8]", arch="gfx942") if handle else through_scratch
    for _ in range(3):
        y = np.zeros(8, np.float32)
        run(ones(), y)
        assert (y == 1).all()


def test_an_array_of_a_global_is_recorded_while_it_is_the_same_object() -> None:
    global TABLE
    before = through_global.recordings
    for _ in range(3):
        through_global(y := ones())
        assert (y == 2).all()
    assert through_global.recordings == before + 1
    old, TABLE = TABLE, TABLE.copy()  # equal, and another
    through_global(ones())
    TABLE[:] = 5
    through_global(y := ones())
    assert (y == 6).all()
    TABLE = old


@pytest.mark.parametrize("handle", [False, True])
def test_a_global_that_the_call_itself_binds_is_run_every_time(handle: bool) -> None:
    space: dict[str, Any] = {"np": np, "add": add, "ones": ones}
    exec("def f(y):\n    global T\n    T = np.zeros(8, np.float32)\n    add(y, T).launch(block=8)\n", space)
    host = flyc.jit(space["f"])
    run: Any = flyc.compile(host, "f32[8]", arch="gfx942") if handle else host
    made = []
    for _ in range(3):
        run(ones())
        made.append(space["T"])
    assert all((t == 1).all() for t in made) and len({id(t) for t in made}) == 3


class Holder:
    """An object with an array behind an address."""

    def __init__(self) -> None:
        self.array = np.full(8, 3, np.float32)

    @property
    def address(self) -> int:
        return int(self.array.ctypes.data)


@flyc.jit
def by_address(x, held):
    copy(flyc.from_c_void_p(held.address, fx.Float32, nbytes=32), x).launch(block=8)


@flyc.jit
def given_pointer(x, p: fx.Pointer):
    copy(p, x).launch(block=8)


def test_an_address_worked_out_in_the_host_function_is_never_recorded() -> None:
    first, second = Holder(), Holder()
    by_address(ones(), first)
    first.array[:] = 9
    by_address(x := ones(), second)
    assert (x == 3).all()


def test_an_address_given_as_an_argument_is_recorded() -> None:
    for value in (4, 5):
        source = np.full(8, value, np.float32)
        given_pointer(x := ones(), flyc.from_c_void_p(source.ctypes.data, fx.Float32, nbytes=32))
        assert (x == value).all()
    assert given_pointer.recordings == 1


def test_an_argument_that_the_call_changes_is_changed_by_every_call() -> None:
    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Int32):
        x[0] = fx.Float32(v)

    @flyc.jit
    def count(x, seen):
        seen.append(1)
        put(x, len(seen)).launch()

    for _ in range(3):
        count(x := ones(), seen := [])
        assert seen == [1] and x[0] == 1


def test_a_launch_in_another_thread_says_so() -> None:
    errors: list[BaseException] = []

    def work(x: Any) -> None:
        try:
            add(x, x).launch(block=8)
        except LaunchError as e:
            errors.append(e)

    @flyc.jit
    def host(x):
        thread = threading.Thread(target=work, args=(x,))
        thread.start()
        thread.join()

    host(ones())
    assert "another thread" in str(errors[0]) and "launch in the thread of the host function" in str(errors[0])


def test_what_is_not_recorded_says_why() -> None:
    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Float32):
        x[0] = v

    @flyc.jit
    def timed(x):
        put(x, time.time() * 0).launch()

    @flyc.jit
    def addressed(x):
        put(x, float(x.address * 0)).launch()

    @flyc.jit
    def appends(x, seen):
        seen.append(1)
        put(x, 1.0).launch()

    def why(fn: Any, *args: Any) -> str:
        fn(ones(), *args)
        assert fn.recordings == 1
        return str(fn.not_recorded)

    assert "time.time" in why(timed)
    assert "address" in why(addressed)
    assert "changes an argument" in why(appends, [])
    assert "argument x of add is memory of this call alone" in why(through_scratch_again(), ones())
    assert "a lock" in why(flyc.jit(lambda x, lock: add(x, x).launch(block=8)), threading.Lock())
    assert why(flyc.jit(lambda x: add(x, x).launch(block=8))) == "None"


def through_scratch_again() -> Any:
    """The host function with scratch, not called so far."""
    return flyc.jit(through_scratch.fn)


def test_options_of_a_kernel_that_change_are_seen() -> None:
    @flyc.kernel(known_block_size=8)
    def fill(x: fx.Tensor):
        x[fx.thread_idx.x] = fx.Float32(fx.block_dim.x)

    @flyc.jit
    def host(x):
        fill(x).launch()

    host(ones())
    fill.options["known_block_size"] = 4
    host(x := ones())
    assert x.tolist() == [4.0] * 4 + [1.0] * 4
