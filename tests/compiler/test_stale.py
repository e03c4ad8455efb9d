"""What a kernel or a host function depends on has changed: nothing old is used again."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler.cache.world import World

pytestmark = pytest.mark.sim
SPEC = "f32[8]"


@pytest.fixture(autouse=True)
def simulated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches go to the simulator, with a disk cache of their own."""
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")
    monkeypatch.setenv("FLYLLVM_CACHE", "1")
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", str(tmp_path / "cache"))


def made_by(kernel: Any, **constants: Any) -> flyc.Artifact:
    """The kernel, by way of the disk cache."""
    return flyc.compile(kernel, SPEC, arch="gfx942", known_block_size=1, constants=constants, stop_after="llvm")


def struct_of(n: int) -> Any:
    """A struct of two arrays."""

    @fx.struct
    class S:
        a: fx.Array[fx.Float32, n]  # type: ignore[valid-type]
        b: fx.Array[fx.Float32, n]  # type: ignore[valid-type]

    return S


def union_of(n: int) -> Any:
    """A union whose size depends on a struct inside."""

    @fx.union
    class U:
        a: struct_of(n)  # type: ignore[valid-type]
        b: fx.Int32

    return U


@pytest.mark.parametrize("make", [struct_of, union_of])
def test_the_layout_of_a_struct_is_part_of_the_key(make: Any) -> None:
    def size_of(held: Any) -> Any:
        @flyc.kernel
        def k(x: fx.Tensor):
            x[0] = fx.Float32(held.size_bytes)

        return k

    @flyc.kernel
    def given(x: fx.Tensor, kind: fx.Constexpr):
        x[0] = fx.Float32(kind.size_bytes)

    for n in (4, 8):
        x = np.zeros(8, np.float32)
        size_of(make(n))(x).launch()
        assert x[0] == 8 * n
        given(x, make(n)).launch()
        assert x[0] == 8 * n
    four, again, eight = (made_by(given, kind=make(n)) for n in (4, 4, 8))
    assert (four.from_cache, again.from_cache, eight.from_cache) == (None, "source", None)
    assert four.llvm_ir == again.llvm_ir != eight.llvm_ir


def test_a_struct_by_field_names_types_and_offsets() -> None:
    kinds = [
        fx.struct["a" : fx.Float32, "b" : fx.Float32],
        fx.struct["b" : fx.Float32, "a" : fx.Float32],
        fx.struct["a" : fx.Float32, "b" : fx.Int32],
        fx.struct["a" : fx.Float32, "b" : fx.Align[fx.Float32, 16]],
        fx.union["a" : fx.Float32, "b" : fx.Float32],
        fx.struct["a" : fx.struct["a" : fx.Float32], "b" : fx.Float32],
    ]
    assert len({World(kind).sum for kind in kinds}) == len(kinds)
    assert World(kinds[0]).sum == World(fx.struct["a" : fx.Float32, "b" : fx.Float32]).sum


# --- arguments, and what they lead to ----------------------------------------------------------------


FACTOR = [1.0]


class Base:
    """A class whose attributes change."""

    k = 1.0

    def m(self) -> float:
        return self.k


def bump(thing: Any) -> None:
    """Changes what functions read."""
    del thing
    FACTOR[0] += 1


def factor() -> float:
    return FACTOR[0]


def made(**names: Any) -> Any:
    """An object of a class of its own."""
    return type("Made", (Base,), names)()


def other_code(v: float = 1.0) -> float:
    return 9.0 * v


def plain(v: float = 1.0) -> float:
    return v


def copied() -> Any:
    """A function of its own."""
    return types.FunctionType(plain.__code__, globals(), "plain", (1.0,))


Change = Callable[[Any], Any]
ARGUMENTS: dict[str, tuple[Callable[[], Any], Change, Change]] = {
    "an attribute of its class": (made, lambda o: setattr(type(o), "k", o.k + 1), lambda o: o.k),
    "an attribute of a base": (made, lambda o: setattr(Base, "k", o.k + 1), lambda o: o.k),
    "a method on it": (made, lambda o: setattr(o, "m", lambda: 9.0), lambda o: o.m()),
    "a class": (lambda: type("Made", (), {"v": 1.0}), lambda c: setattr(c, "v", 2.0), lambda c: c.v),
    "a class in a list": (lambda: [type("Made", (), {"v": 1.0})], lambda c: setattr(c[0], "v", 2.0), lambda c: c[0].v),
    "a function's code": (copied, lambda f: setattr(f, "__code__", other_code.__code__), lambda f: f()),
    "a function's defaults": (copied, lambda f: setattr(f, "__defaults__", (3.0,)), lambda f: f()),
    "a function's global": (lambda: factor, bump, lambda f: f()),
    "functions in containers": (lambda: [{"a": (factor,)}], bump, lambda f: f[0]["a"][0]()),
    "a partial": (lambda: functools.partial(factor), bump, lambda f: f()),
    "a module": (lambda: types.ModuleType("m"), lambda m: setattr(m, "v", 3.0), lambda m: getattr(m, "v", 1.0)),
}


@pytest.mark.parametrize("what", ARGUMENTS)
def test_what_an_argument_leads_to_is_watched(what: str) -> None:
    make, change, read = ARGUMENTS[what]
    thing = make()

    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Float32):
        x[0] = v

    @flyc.kernel
    def reads(x: fx.Tensor, given: fx.Constexpr):
        x[0] = float(read(given))

    @flyc.jit
    def in_host(x, given):
        put(x, float(read(given))).launch()

    @flyc.jit
    def in_kernel(x, given):
        reads(x, given).launch()

    ways: list[Any] = [in_host, in_kernel, lambda x, given: reads(x, given).launch()]
    for _ in range(2):
        for way in ways:
            way(x := np.zeros(8, np.float32), thing)
            assert x[0] == read(thing)
        change(thing)
    for way in ways:
        way(x := np.zeros(8, np.float32), thing)
        assert x[0] == read(thing)


def test_a_function_that_counts_is_called_every_time() -> None:
    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Float32):
        x[0] = v

    @flyc.jit
    def host(x, f):
        put(x, f()).launch()

    def counts() -> float:
        FACTOR[0] += 1
        return FACTOR[0]

    seen = []
    for _ in range(3):
        host(x := np.zeros(8, np.float32), counts)
        seen.append(x[0] - seen[0] if seen else x[0])
    assert seen[1:] == [1, 2]


def test_a_global_that_is_handed_to_an_argument_is_read_by_its_names() -> None:
    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Float32):
        x[0] = v

    box = made(tile=1.0)

    @flyc.jit
    def host(x, f):
        put(x, f(box)).launch()

    def tile(b: Any) -> float:
        return b.tile  # type: ignore[no-any-return]

    for value in (1.0, 2.0):
        type(box).tile = value
        host(x := np.zeros(8, np.float32), tile)
        assert x[0] == value


def test_defaults_that_are_replaced_are_used() -> None:
    @flyc.kernel
    def put(x: fx.Tensor, v: fx.Constexpr = 1.0):
        x[0] = v

    @flyc.jit
    def host(x, *, v=1.0):
        put(x, v).launch()

    put(x := np.zeros(8, np.float32)).launch()
    put.fn.__defaults__ = (2.0,)
    put(x).launch()
    assert x[0] == 2
    host(x)
    host.fn.__kwdefaults__["v"] = 3.0
    host(x)
    assert x[0] == 3
