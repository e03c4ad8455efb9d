"""The numbered examples: their scripts agree with NumPy, spoilt ones say so, and their kernels stay in registers."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.examples.programs import load, verdict
from tests.examples.test_assembly import PROGRAMS, artifact

pytestmark = [pytest.mark.sim, pytest.mark.llvm]

SCRIPTS = ["03_tiled_mma"]


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")


@functools.cache
def example(name: str) -> ModuleType:
    return load(name)


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_script_ends_with_0(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert example(name).main() == 0
    assert "the results agree with NumPy" in capsys.readouterr().out


@pytest.mark.parametrize("name", [n for n in PROGRAMS if PROGRAMS[n][0] in SCRIPTS])
def test_no_alloca_is_left_at_stage_ssa(name: str) -> None:
    art = artifact(name, "gfx942")
    assert "alloca" in art.fly_ir or "memref" in art.fly_ir
    assert "alloca" not in art.ssa_ir


def spoilt(name: str, edit: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> str:
    said = verdict(lambda: load(name, edit).main() == 0)
    return said + capsys.readouterr().out


def test_a_tiled_mma_with_its_operands_swapped_fails(capsys: pytest.CaptureFixture[str]) -> None:
    edit = ("fx.gemm(mma, frag_c, frag_a, frag_b, frag_c)", "fx.gemm(mma, frag_c, frag_b, frag_a, frag_c)")
    assert "WRONG" in spoilt("03_tiled_mma", edit, capsys)


def test_a_tiled_mma_that_swaps_the_waves_of_the_result_fails(capsys: pytest.CaptureFixture[str]) -> None:
    other = "fx.make_tiled_mma(mma.mma_atom, fx.make_layout((2, 2, 1), (2, 1, 0)))"
    edit = (
        "    mine = copy_c.get_slice",
        f"    copy_c = fx.make_tiled_copy_C(single, {other})\n    mine = copy_c.get_slice",
    )
    assert "WRONG" in spoilt("03_tiled_mma", edit, capsys)


def integers(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Any:
    return rng.integers(-4, 5, shape).astype(dtype)


def test_the_tiled_mma_runs_through_its_host_function() -> None:
    rng = np.random.default_rng(1)
    a, b, c = integers(rng, 64, 8), integers(rng, 64, 8), np.zeros((64, 64), np.float32)
    example("03_tiled_mma").host(a, b, c)
    np.testing.assert_array_equal(c, a @ b.T)
