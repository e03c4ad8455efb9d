"""The GEMM example agrees with NumPy for every kind of edge, and its script says so."""

from __future__ import annotations

import functools
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.examples.programs import load

pytestmark = [pytest.mark.sim, pytest.mark.llvm]

#: Every pair of values of (M, N), (M, K) and (N, K) from 1, 7, 33, 128, 129, 257 would be 36 products; these cover
#: each value in each place, tiles that are whole, one short and one over, and all pairs of vector widths.
SIZES = [
    (1, 1, 1), (1, 257, 128), (1, 33, 33), (7, 7, 7), (7, 128, 129), (7, 1, 257), (33, 33, 1), (33, 129, 128),
    (33, 257, 7), (128, 128, 128), (128, 7, 33), (128, 1, 1), (129, 129, 129), (129, 33, 257), (129, 257, 1),
    (257, 128, 7), (257, 1, 33), (257, 7, 128), (130, 258, 34), (64, 132, 130), (257, 130, 96),
]  # fmt: skip


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")


@functools.cache
def gemm() -> ModuleType:
    return load("gemm")


@functools.cache
def compiled(k_multiple: int, n_multiple: int, arch: str = "gfx942") -> Any:
    return gemm().compile_gemm(k_multiple, n_multiple, arch)


def widths(n: int, k: int) -> tuple[int, int]:
    """The widest loads and stores that K and N allow."""
    return next(v for v in (8, 2, 1) if k % v == 0), next(v for v in (4, 2, 1) if n % v == 0)


def integers(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.integers(-2, 3, shape).astype(np.float16)


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.astype(np.float64) @ b.astype(np.float64).T).astype(np.float16)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: "x".join(map(str, s)))
def test_any_size_agrees_with_numpy(size: tuple[int, int, int]) -> None:
    m, n, k = size
    assert gemm().check(m, n, k, compiled=compiled(*widths(n, k)))


@pytest.mark.parametrize("widths", [(8, 4), (1, 1)])
def test_k_of_zero_gives_zeros(widths: tuple[int, int]) -> None:
    a, b = np.zeros((33, 0), np.float16), np.zeros((128, 0), np.float16)
    c, _ = gemm().run(a, b, compiled=compiled(*widths))
    np.testing.assert_array_equal(c, np.zeros((33, 128), np.float16))


@pytest.mark.parametrize("size", [(0, 33, 8), (33, 0, 8), (0, 0, 0)], ids=lambda s: "x".join(map(str, s)))
def test_an_empty_result_is_nothing_to_do(size: tuple[int, int, int]) -> None:
    m, n, k = size
    c, _ = gemm().run(np.ones((m, k), np.float16), np.ones((n, k), np.float16), compiled=compiled(*widths(n, k)))
    assert c.shape == (m, n)


def test_narrow_copies_serve_sizes_that_allow_wide_ones() -> None:
    assert gemm().check(128, 128, 64, compiled=compiled(1, 1))


def test_matrices_that_do_not_start_at_their_buffer_touch_nothing_else() -> None:
    rng = np.random.default_rng(3)
    big_a, big_b = integers(rng, 140, 40), integers(rng, 70, 40)
    big_c = np.full((140, 64), 7, np.float16)
    a, b, c = big_a[2:135], big_b[3:67], big_c[4:137]
    compiled(8, 4).run(a, b, c, grid=(2, 1, 1))
    np.testing.assert_array_equal(c, product(a, b))
    assert (big_c[:4] == 7).all() and (big_c[137:] == 7).all()


def test_not_a_number_in_a_row_stays_in_its_row() -> None:
    rng = np.random.default_rng(4)
    a, b = integers(rng, 33, 40), integers(rng, 44, 40)
    a[32], b[43] = np.nan, np.inf
    c, _ = gemm().run(a, b, compiled=compiled(8, 4))
    np.testing.assert_array_equal(c[:32, :43], product(a[:32], b[:43]))
    assert np.isnan(c[32]).all()


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950"])
def test_the_neighbouring_chips_agree_too(arch: str) -> None:
    assert gemm().check(129, 132, 72, compiled=compiled(8, 4, arch))


def test_what_llvms_own_passes_make_of_it_agrees_too() -> None:
    art = gemm().compile_gemm(passes="O2")
    assert art.code_object.kernels["gemm"].vgpr_spill_count == 0
    art.llvm_ir = art.optimised_ir
    assert gemm().check(129, 132, 72, compiled=art)


def test_operands_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="K must agree"):
        gemm().run(np.zeros((4, 8), np.float16), np.zeros((4, 16), np.float16))


def test_the_bound_refuses_one_wrong_element() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((32, 96)).astype(np.float16) for _ in range(2))
    exact, bound = gemm().error_bound(a, b)
    off = np.abs(exact.astype(np.float16).astype(np.float64) - exact)
    assert (off <= bound).all()
    # One product of the 96 left out is seen in nearly every element; the bound is that tight.
    missing = (a[:, 1:].astype(np.float64) @ b[:, 1:].astype(np.float64).T).astype(np.float16)
    assert (np.abs(missing - exact) > bound).mean() > 0.9


def test_the_script_prints_what_it_uses_writes_the_code_object_and_ends_with_0(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out.hsaco"
    monkeypatch.setattr("sys.argv", ["gemm.py", str(target)])
    assert gemm().main() == 0
    said = capsys.readouterr().out
    integers, random = "512 x 512 x 256, integers on simulator: exact", "257 x 130 x 96, random   on simulator: largest"
    for line in ("VGPRs", "16384 bytes LDS", "0 bytes scratch, 0 spills", integers, random):
        assert line in said
    assert target.read_bytes()[:4] == b"\x7fELF"


def test_the_script_of_a_wrong_kernel_ends_with_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    spoilt = load("gemm", ("+ place[v, j, 0][0] < n_size", "+ place[v, j, 0][0] < n_size - 4"))
    monkeypatch.setattr("sys.argv", ["gemm.py", str(tmp_path / "out.hsaco")])
    assert spoilt.main() == 1
    assert "WRONG" in capsys.readouterr().out
