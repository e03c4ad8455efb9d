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

SCRIPTS = [
    "01_vector_add_2d",
    "02_tiled_copy",
    "03_tiled_mma",
    "04_preshuffle_gemm",
    "05_gather_scatter",
    "06_softmax",
    "07_gemm_double_buffer",
]


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


@pytest.mark.parametrize(("arch", "banks"), [("gfx942", 32), ("gfx950", 64)])
def test_the_swizzle_spreads_the_transpose_over_the_banks(arch: str, banks: int) -> None:
    def cycles(module: ModuleType) -> list[tuple[int, int]]:
        art = module.compile_kernel("transpose", 64, 64, arch, stop_after="llvm")
        a = np.zeros((64, 64), np.float32)
        report = art.simulate(a, a.copy(), grid=1, profile=True)
        return [(r["lds_cycles"], r["lds_ideal_cycles"]) for r in report.lines if r["lds_bytes"]]

    (write, least), (read, least_read) = cycles(example("02_tiled_copy"))
    assert write == least and read == least_read == 64 * 64 // banks
    plain = load("02_tiled_copy", ("fx.Swizzle(6, 2, 6)", "fx.Swizzle(0, 2, 6)"))
    assert cycles(plain) == [(least, least), (banks * least, least)]


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


GEMMS = {
    "04_preshuffle_gemm": "compile_preshuffle_gemm",
    "07_gemm_double_buffer": "compile_gemm_double_buffer",
}


@pytest.mark.parametrize("name", GEMMS)
@pytest.mark.parametrize("k", [128, 256, 384])
def test_a_pipelined_gemm_agrees_for_no_one_and_two_turns_of_its_loop(name: str, k: int) -> None:
    compiled = getattr(example(name), GEMMS[name])(128, 256, k, stop_after="llvm")
    assert example(name).check(128, 256, k, compiled)


@pytest.mark.parametrize("name", GEMMS)
def test_a_pipelined_gemm_refuses_what_is_no_whole_tile(name: str) -> None:
    with pytest.raises(ValueError, match="M and N must be multiples of 128, K of 128"):
        getattr(example(name), GEMMS[name])(128, 128, 64)


@pytest.mark.parametrize(
    ("name", "edit", "said"),
    [
        ("04_preshuffle_gemm", ("1 - stage])\n            fx.barrier()", "1 - stage])"), "race"),
        ("04_preshuffle_gemm", ("transpose(0, 2, 3, 1, 4)", "transpose(0, 2, 1, 3, 4)"), "WRONG"),
        ("04_preshuffle_gemm", ("fetch(following, 1 - stage)", "fetch(following, stage)"), "WRONG"),
        ("07_gemm_double_buffer", ("stage])\n        fx.barrier()", "stage])"), "race"),
        ("07_gemm_double_buffer", ("fetch(k + stage + 1)", "fetch(k + stage)"), "WRONG"),
        ("07_gemm_double_buffer", ("write(1 - stage)", "write(stage)"), "race"),
    ],
    ids=["barrier of A", "shuffle", "stage of B", "barrier", "step", "stage"],
)
def test_a_spoilt_pipeline_fails(
    name: str, edit: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in spoilt(name, edit, capsys)


@pytest.mark.parametrize("name", GEMMS)
def test_a_pipelined_gemm_runs_through_its_host_function(name: str) -> None:
    rng = np.random.default_rng(1)
    a, b = integers(rng, 128, 128, dtype=np.float16), integers(rng, 128, 128, dtype=np.float16)
    c = np.zeros((128, 128), np.float16)
    example(name).host(a, example(name).preshuffle(b) if name.startswith("04") else b, c)
    np.testing.assert_array_equal(c, (a.astype(np.float32) @ b.astype(np.float32).T).astype(np.float16))


@pytest.mark.parametrize(
    "edit",
    [
        ("valid[i] = (other >= 0) & (other < limit)", "valid[i] = other < limit"),
        ("valid[i] = (other >= 0) & (other < limit)", "valid[i] = (other >= 0) & (other <= limit)"),
        ("* COLUMNS + column", "* COLUMNS"),
        ("        if row < count:\n            other = index[row]", "        other = index[row]"),
        ("fx.copy(copy, data, out, pred=inside)", "fx.copy(copy, data, out)"),
    ],
    ids=["below", "above", "column", "past the index", "past the rows"],
)
def test_a_spoilt_gather_fails(edit: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    said = spoilt("05_gather_scatter", edit, capsys)
    assert "WRONG" in said or "out of bounds" in said


@pytest.mark.parametrize("scatter", [False, True])
def test_gather_and_scatter_run_through_their_host_function(scatter: bool) -> None:
    rows, index = np.arange(64 * 128, dtype=np.float32).reshape(64, 128), np.arange(64, dtype=np.int32)[::-1].copy()
    out = np.zeros((64, 128), np.float32)
    example("05_gather_scatter").host(rows, index, out, scatter)
    np.testing.assert_array_equal(out, rows[::-1])


@pytest.mark.parametrize("n", [4, 256, 1020, 1024, 1028, 4096])
def test_a_softmax_of_any_row_length_is_within_its_bound(n: int) -> None:
    module = example("06_softmax")
    assert module.check(3, n, module.compile_softmax(n, stop_after="llvm"))


@pytest.mark.parametrize("arch", ["gfx1100", "gfx1201"])
def test_a_softmax_of_waves_of_32_lanes_is_within_its_bound(arch: str) -> None:
    module = example("06_softmax")
    assert module.check(3, 1000, module.compile_softmax(1000, arch, stop_after="llvm"))


@pytest.mark.parametrize(
    ("edit", "said"),
    [
        (("    fx.barrier()\n", ""), "race"),
        (
            ('over_workgroup(power.reduce("add"), "add", sums)', 'over_workgroup(power.reduce("add"), "add", peaks)'),
            "race",
        ),
        (("    mine = fx.wave_reduce(value, op)", "    mine = value"), "WRONG"),
        (("LOWEST = -3.0e38", "LOWEST = 0.0"), "WRONG"),
        (("(x.load() - peak) * LOG2_E", "x.load() * LOG2_E"), "WRONG"),
    ],
    ids=["barrier", "one storage", "lanes", "padding", "peak"],
)
def test_a_spoilt_softmax_fails(edit: tuple[str, str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert said in spoilt("06_softmax", edit, capsys)


def test_the_softmax_runs_through_its_host_function() -> None:
    x, y = np.zeros((3, 16), np.float32), np.full((3, 16), np.nan, np.float32)
    example("06_softmax").host(x, y)
    np.testing.assert_array_equal(y, np.full((3, 16), 1 / 16, np.float32))


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950", "gfx1100", "gfx1201", "gfx1250"])
def test_examples_without_matrix_instructions_run_as_every_chip(arch: str) -> None:
    add, copy, rows = (example(n) for n in ("01_vector_add_2d", "02_tiled_copy", "05_gather_scatter"))
    assert add.check(17, 132, add.compile_vector_add_2d(None, arch))
    assert all([copy.check(n, 64, 128, copy.compile_kernel(n, 64, 128, arch)) for n in ("tiled_copy", "transpose")])
    assert all([rows.check(n, 45, 60, rows.compile_kernel(n, arch)) for n in ("pick", "put")])


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_examples_with_matrix_instructions_run_as_every_chip_that_has_them(arch: str) -> None:
    tile = example("03_tiled_mma")
    assert tile.check(tile.compile_tiled_mma(arch))
    for name, function in GEMMS.items():
        assert example(name).check(128, 128, 256, getattr(example(name), function)(128, 128, 256, arch))
