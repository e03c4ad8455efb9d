"""Random programs over register memory: promoted, kept in memory, and worked out in NumPy, they agree.

A program reads and writes pieces of two fragments, under branches and loops that nest; conditions differ by lane.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

import flyllvm.expr as fx
from flyllvm.ir.core import Value
from tests.passes.kernels import b, copy_atom, loop, ops, promoted, run

SIZES = (8, 5)
LANES = np.arange(64, dtype=np.int32)


def pieces(count: int, strides: tuple[int, ...]) -> st.SearchStrategy[tuple[int, int, int, int]]:
    """(fragment, first element, count, stride)."""
    inside = [
        (f, at, count, stride)
        for f, size in enumerate(SIZES)
        for stride in strides
        for at in range(size - (count - 1) * stride)
    ]
    return st.sampled_from(inside)


ADD = st.sampled_from([1, 2, 4]).flatmap(
    lambda count: st.tuples(st.just("add"), pieces(count, (1, 2)), pieces(count, (1, 2)), st.integers(-9, 9))
)
LIMITS = st.sampled_from([None, 0, 9, 64])
COPY = st.sampled_from([1, 2, 4]).flatmap(
    lambda count: st.tuples(st.just("copy"), pieces(count, (1,)), pieces(count, (1,)), LIMITS)
)


def statements(depth: int) -> st.SearchStrategy[list[Any]]:
    """Lists of ("add", to, from, constant), ("copy", to, from, lanes or all) and nested control flow."""
    kinds: list[Any] = [ADD, ADD, COPY]
    if depth:
        inner = statements(depth - 1)
        kinds += [
            st.tuples(st.just("if"), st.integers(0, 64), inner, inner),
            st.tuples(st.just("for"), st.integers(0, 3), inner),
            st.tuples(st.just("while"), st.integers(0, 3), inner),
        ]
    return st.lists(st.one_of(*kinds), min_size=1, max_size=4)


def kernel_of(program: list[Any]) -> Any:
    """The program as a kernel that writes both fragments of every lane at the end."""

    def kernel(C: fx.Tensor) -> None:
        tid = fx.thread_idx.x
        fragments = [fx.make_rmem_tensor(size, fx.Int32) for size in SIZES]
        for f, fragment in enumerate(fragments):
            for i in range(SIZES[f]):
                fragment[i] = tid + 10 * f + i

        def view(piece: tuple[int, int, int, int]) -> Any:
            f, at, count, stride = piece
            return fragments[f].at(at, fx.make_layout(count, stride))

        def body(program: list[Any]) -> None:
            for kind, *rest in program:
                steps[kind](*rest)

        def add(to: Any, source: Any, constant: int) -> None:
            view(to).store(view(source).load() + constant)

        def copy(to: Any, source: Any, lanes: int | None) -> None:
            atom = copy_atom(fx.Int32, 32 * to[2])
            fx.copy(atom, view(source), view(to), pred=None if lanes is None else tid < lanes)

        def branch(limit: int, then: list[Any], otherwise: list[Any]) -> None:
            b().if_((tid < limit).ir_value(), lambda: body(then), lambda: body(otherwise))

        def for_loop(count: int, inner: list[Any]) -> None:
            loop(count, lambda _: body(inner))

        def while_loop(count: int, inner: list[Any]) -> None:
            # Every lane has a trip count of its own.
            left = fx.make_rmem_tensor(1, fx.Int32)
            left[0] = (tid + count) % 3

            def before() -> tuple[Value, list[Value]]:
                return (left[0] > 0).ir_value(), []

            def after() -> None:
                left[0] = left[0] - 1
                body(inner)

            b().while_([], before, after)

        steps = {"add": add, "copy": copy, "if": branch, "for": for_loop, "while": while_loop}
        body(program)
        for f, fragment in enumerate(fragments):
            for i in range(SIZES[f]):
                C[tid, 8 * f + i] = fragment[i]

    return kernel


def expected(program: list[Any]) -> np.ndarray:
    """What the program leaves, lane by lane."""
    state = [np.stack([LANES + 10 * f + i for i in range(size)], axis=1) for f, size in enumerate(SIZES)]

    def step(program: list[Any], active: np.ndarray) -> None:
        for kind, *rest in program:
            if kind in ("add", "copy"):
                (f, at, count, step_to), (g, source, _, step_from), last = rest
                constant = last if kind == "add" else 0
                value = state[g][:, source : source + count * step_from : step_from] + constant
                on = active if kind == "add" or last is None else active & (last > LANES)
                state[f][on, at : at + count * step_to : step_to] = value[on]
            elif kind == "if":
                limit, then, otherwise = rest
                step(then, active & (limit > LANES))
                step(otherwise, active & (limit <= LANES))
            elif kind == "for":
                for _ in range(rest[0]):
                    step(rest[1], active)
            else:
                trips = (LANES + rest[0]) % 3
                for i in range(3):
                    step(rest[1], active & (trips > i))

    step(program, np.ones(64, bool))
    out = np.zeros((64, 16), np.int32)
    out[:, :8], out[:, 8:13] = state
    return out


@pytest.mark.sim
@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(statements(2))
def test_promoted_and_kept_register_memory_agree_with_numpy(program: list[Any]) -> None:
    want = expected(program)
    for ssa in (True, False):
        c = np.zeros((64, 16), np.int32)
        run(kernel_of(program), c, ssa=ssa)
        np.testing.assert_array_equal(c, want)


@given(statements(2))
@settings(max_examples=40)
def test_no_register_memory_is_left_where_all_places_are_known(program: list[Any]) -> None:
    kernel = promoted(kernel_of(program), "i32[64,16]")
    assert ops(kernel, "fly.memref.alloca") == [] and ops(kernel, "fly.ptr.load") == []
