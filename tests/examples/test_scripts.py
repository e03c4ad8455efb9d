"""The numbered examples: their scripts agree with NumPy, spoilt ones say so, and their kernels stay in registers."""

from __future__ import annotations

import functools
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from flyllvm.errors import TraceError
from tests.examples.programs import load, verdict
from tests.examples.test_assembly import PROGRAMS, artifact

pytestmark = [pytest.mark.sim, pytest.mark.llvm]

SCRIPTS = ["01_vector_add_2d", "02_tiled_copy", "03_tiled_mma"]


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


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_alloca_is_left_at_stage_ssa(name: str) -> None:
    art = artifact(name, "gfx942")
    assert "fly.memref.alloca" in art.fly_ir
    assert "fly.memref.alloca" not in art.ssa_ir and "register" not in art.ssa_ir
    assert not re.search(r"\balloca\b", art.llvm_ir)


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


@pytest.mark.parametrize(
    "edit",
    [
        ("fx.make_predicate(where, C.shape)", "None"),
        ("fx.make_predicate(where, C.shape)", "fx.make_predicate(where, (C.shape[0], C.shape[1] - 4))"),
        ("frag_a.load() + frag_b.load()", "frag_a.load() - frag_b.load()"),
        ("fx.copy(tiled, frag_c, c, pred=inside)", "fx.copy(tiled, frag_c, c)"),
    ],
    ids=["no predicate", "one vector early", "difference", "store everywhere"],
)
def test_a_spoilt_2d_vector_add_fails(edit: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    said = spoilt("01_vector_add_2d", edit, capsys)
    assert "WRONG" in said or "out of bounds" in said


@pytest.mark.parametrize("shape", [(1, 4), (3, 8), (16, 128), (17, 128), (16, 132), (33, 260), (100, 1000)])
def test_a_2d_vector_add_of_a_static_shape_is_exact(shape: tuple[int, int]) -> None:
    module = example("01_vector_add_2d")
    assert module.check(*shape, module.compile_vector_add_2d(shape, stop_after="llvm"))


def test_a_2d_vector_add_whose_rows_are_no_whole_vectors_is_refused() -> None:
    with pytest.raises(TraceError, match="fix: use an atom of fewer values, or promise that the extent"):
        example("01_vector_add_2d").compile_vector_add_2d((100, 1001), stop_after="llvm")


def test_a_transpose_without_its_barrier_is_an_lds_race(capsys: pytest.CaptureFixture[str]) -> None:
    assert "LDS race" in spoilt("02_tiled_copy", ("    fx.barrier()\n", ""), capsys)


def test_the_copy_in_place_of_the_transpose_fails(capsys: pytest.CaptureFixture[str]) -> None:
    edit = ("thread.partition_S(columns)", "thread.partition_S(rows)")
    assert "WRONG" in spoilt("02_tiled_copy", edit, capsys)


def test_the_swizzle_spreads_the_transpose_over_the_banks() -> None:
    def cycles(module: ModuleType) -> list[tuple[int, int]]:
        art = module.compile_kernel("transpose", 64, 64, stop_after="llvm")
        a = np.zeros((64, 64), np.float32)
        report = art.simulate(a, a.copy(), grid=1, profile=True)
        return [(r["lds_cycles"], r["lds_ideal_cycles"]) for r in report.lines if r["lds_bytes"]]

    (write, least), (read, least_read) = cycles(example("02_tiled_copy"))
    assert write == least and read == least_read
    plain = load("02_tiled_copy", ("fx.Swizzle(5, 2, 6)", "fx.Swizzle(0, 2, 6)"))
    assert cycles(plain) == [(least, least), (32 * least, least)]


@pytest.mark.parametrize("turned", [False, True])
def test_the_tiled_copies_run_through_their_host_function(turned: bool) -> None:
    a = np.arange(64 * 128, dtype=np.float32).reshape(64, 128)
    b = np.zeros((128, 64) if turned else (64, 128), np.float32)
    example("02_tiled_copy").host(a, b, turned)
    np.testing.assert_array_equal(b, a.T if turned else a)


def test_the_2d_vector_add_runs_through_its_host_function() -> None:
    rng = np.random.default_rng(1)
    a, b, c = integers(rng, 17, 132), integers(rng, 17, 132), np.zeros((17, 132), np.float32)
    example("01_vector_add_2d").host(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def integers(rng: np.random.Generator, *shape: int, dtype: Any = np.float32) -> Any:
    return rng.integers(-4, 5, shape).astype(dtype)


def test_the_tiled_mma_runs_through_its_host_function() -> None:
    rng = np.random.default_rng(1)
    a, b, c = integers(rng, 64, 8), integers(rng, 64, 8), np.zeros((64, 64), np.float32)
    example("03_tiled_mma").host(a, b, c)
    np.testing.assert_array_equal(c, a @ b.T)
