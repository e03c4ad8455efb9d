"""Loops without an end that Python runs while tracing are cut, and the error says which."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable
from typing import Any

import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import TraceError


def error(fn: Callable[..., Any]) -> str:
    with pytest.raises(TraceError) as caught:
        flyc.kernel(fn).trace(["f32[4]", fx.Int32], "gfx942")
    assert "FLYLLVM_TRACE_LIMIT" in str(caught.value) and "range(fx.Int32(n))" in str(caught.value)
    return str(caught.value)


def place(fn: Callable[..., Any], text: str) -> str:
    lines, first = inspect.getsourcelines(fn)
    (at,) = [i for i, line in enumerate(lines) if text in line]
    return f"{fn.__code__.co_filename}:{first + at}"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_TRACE_LIMIT", "300")


def test_a_loop_that_traces_for_ever_is_cut_and_named() -> None:
    def k(A: fx.Tensor, n: fx.Int32):
        x = A[0]
        while True:
            x = x * 2.0

    message = error(k)
    assert message.startswith(f"{place(k, 'x = x * 2.0')}: the kernel k has more than 300 operations, in the loop at ")
    assert f"in the loop at {place(k, 'while True')}\n" in message


def test_a_loop_left_by_break_and_one_over_a_generator_are_cut() -> None:
    def broken(A: fx.Tensor, n: fx.Int32):
        x = A[0]
        while True:
            x = x * 2.0
            if n is None:
                break

    def counted(A: fx.Tensor, n: fx.Int32):
        x = A[0]
        for i in itertools.count():
            x = x * i

    assert place(broken, "while True") in error(broken) and place(counted, "for i in") in error(counted)


def test_a_loop_that_traces_nothing_is_cut() -> None:
    def idle(A: fx.Tensor, n: fx.Int32):
        i = 0
        while i >= 0:
            i += 1

    def left(A: fx.Tensor, n: fx.Int32):
        i = 0
        while True:
            i += 1
            if i < 0:
                break

    for fn, loop in ((idle, "while i"), (left, "while True")):
        message = error(fn)
        assert "have more than 3000 turns" in message and f"in the loop at {place(fn, loop)}" in message


@pytest.mark.parametrize("kind", ["range", "range_constexpr", "with break"])
def test_a_huge_range_is_refused_before_its_first_iteration(kind: str) -> None:
    def plain(A: fx.Tensor, n: fx.Int32):
        for i in range(10**30):
            A[0] = i

    def constexpr(A: fx.Tensor, n: fx.Int32):
        for i in fx.range_constexpr(1, 10**9, 3):
            A[0] = i

    def with_break(A: fx.Tensor, n: fx.Int32):
        for i in range(301):
            if i == 400:
                break

    fn = {"range": plain, "range_constexpr": constexpr, "with break": with_break}[kind]
    assert error(fn).startswith(f"{place(fn, 'for i in')}: a loop over range(")


def test_the_loops_of_callers_are_named_from_the_inside_out() -> None:
    def helper(x):
        return [x := x * 2.0 for _ in fx.range_constexpr(50)][-1]

    def k(A: fx.Tensor, n: fx.Int32):
        x = A[0]
        for _ in range(200):
            x = helper(x)

    message = error(k)
    assert f"in the loop at {place(helper, 'return')}, inside the one at {place(k, 'for _')}" in message


def test_the_limit_is_a_number_that_can_be_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def k(A: fx.Tensor, n: fx.Int32):
        for _ in fx.range_constexpr(400):
            A[0] = A[0] + 1.0

    assert "more than 300 operations" in error(k) or "a loop over" in error(k)
    monkeypatch.setenv("FLYLLVM_TRACE_LIMIT", "5000")
    flyc.kernel(k).trace(["f32[4]", fx.Int32], "gfx942")
    monkeypatch.setenv("FLYLLVM_TRACE_LIMIT", "many")
    with pytest.raises(TraceError, match="positive number of operations"):
        flyc.kernel(k).trace(["f32[4]", fx.Int32], "gfx942")
