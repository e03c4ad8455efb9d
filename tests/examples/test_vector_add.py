"""The vector add example: any length, both types, nothing touched past the end, and spoilt versions fail."""

from __future__ import annotations

import functools
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from flyllvm.errors import LaunchError
from tests.examples.programs import load, verdict

pytestmark = [pytest.mark.sim, pytest.mark.llvm]

DTYPES = {"f32": np.float32, "f16": np.float16}


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")


@functools.cache
def example() -> ModuleType:
    return load("vector_add")


@functools.cache
def compiled(dtype: str, arch: str = "gfx942") -> Any:
    return example().compile_vector_add(dtype, arch)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("n", [0, 1, 3, 4, 7, 8, 9, 1023, 1024, 1025, 2047, 2048, 2055, 5000])
def test_any_length_is_exact(n: int, dtype: str) -> None:
    assert example().check(n, compiled(dtype), dtype)


@pytest.mark.parametrize("arch", ["gfx90a", "gfx950", "gfx1100", "gfx1201"])
def test_other_chips_give_the_same(arch: str) -> None:
    assert example().check(1027, compiled("f16", arch), "f16")


def test_what_stands_around_the_result_is_kept() -> None:
    big = np.full(5000, 9, np.float32)
    a = np.arange(4001, dtype=np.float32)
    example().run(a, a, compiled("f32"), out=big[8:4009])
    np.testing.assert_array_equal(big[8:4009], a + a)
    assert (big[:8] == 9).all() and (big[4009:] == 9).all()


def test_the_result_may_be_an_operand() -> None:
    a, b = np.arange(1030, dtype=np.float32), np.ones(1030, np.float32)
    want = a + b
    example().run(a, b, compiled("f32"), out=a)
    np.testing.assert_array_equal(a, want)


def test_special_values_are_those_of_numpy() -> None:
    a = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45, 3.4e38, 0.0], np.float32)
    b = np.array([1, np.inf, 1, -0.0, 1e-45, 3.4e38, -0.0], np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        want = a + b
    got, _ = example().run(a, b, compiled("f32"))
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[3:]), np.signbit(want[3:]))


def test_arrays_of_another_type_are_refused() -> None:
    a = np.zeros(8, np.float64)
    with pytest.raises(LaunchError, match="fix: pass an array of float32"):
        example().run(a, a, compiled("f32"))


@pytest.mark.parametrize(
    "edit",
    [
        ("index < vectors)", "index <= vectors)"),
        ("index < n - vectors * width)", "index <= n - vectors * width)"),
        ("index < vectors)", "index < vectors - 1)"),
        ("index < n - vectors * width)", "index < n - vectors * width - 1)"),
        ("a.load() + b.load()", "a.load() - b.load()"),
        ("C.at(start, piece), pred=inside", "C.at(start, piece)"),
        ("tensor.at(start, piece), registers, pred=inside", "tensor.at(start, piece), registers"),
    ],
    ids=["vector end", "tail end", "vector early", "tail early", "difference", "store everywhere", "load everywhere"],
)
def test_a_spoilt_kernel_fails(edit: tuple[str, str]) -> None:
    spoilt = load("vector_add", edit)
    said = verdict(lambda: spoilt.check(1027, spoilt.compile_vector_add(), "f32"))
    assert said == "wrong" or "out of bounds" in said or "poison" in said


def test_the_script_ends_with_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert example().main() == 0
    assert "the results agree with NumPy" in capsys.readouterr().out


def test_the_script_of_a_wrong_kernel_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    assert load("vector_add", ("a.load() + b.load()", "a.load() - b.load()")).main() == 1
    assert "WRONG" in capsys.readouterr().out
