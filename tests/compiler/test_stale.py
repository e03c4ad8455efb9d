"""What a kernel or a host function depends on has changed: nothing old is used again."""

from __future__ import annotations

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
