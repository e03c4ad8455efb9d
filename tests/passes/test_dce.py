"""Dead operations and dead carried values go; what has an effect, or decides whether an effect happens, stays."""

from __future__ import annotations

from typing import Any

import pytest

import flyllvm.expr as fx
from flyllvm.ir.core import Kernel, Value
from flyllvm.ir.verifier import verify
from flyllvm.passes.dce import eliminate_dead
from tests.passes.kernels import GFX942, b, expanded, ops


def swept(fn: Any, *specs: str) -> Kernel:
    """The kernel at stage atoms without what is dead; the verifier still accepts it."""
    kernel = expanded(fn, *specs)
    eliminate_dead(kernel)
    verify(kernel, "atoms", GFX942)
    return kernel


def names(kernel: Kernel) -> list[str]:
    return [op.name for op in kernel.walk()]


def zero() -> Value:
    return fx.Int32(0).ir_value()


@pytest.mark.parametrize(
    "dead",
    [
        lambda A: A[0] + 1,
        lambda A: A[0] // 7,
        lambda A: A[0] % 7,
        lambda A: A.load() * 2,
        lambda A: fx.where(A[0] < 3, A[1], A[2]),
        lambda A: fx.thread_idx.x,
    ],
    ids=["sum", "quotient", "remainder", "vector", "select", "id"],
)
def test_a_result_that_nobody_needs_goes_with_all_that_made_it(dead: Any) -> None:
    def kernel(A: fx.Tensor) -> None:
        dead(A)

    assert names(swept(kernel, "i32[4]")) == ["gpu.return"]


def test_stores_and_barriers_stay_with_all_they_need() -> None:
    def kernel(A: fx.Tensor) -> None:
        A[0] = A[1] * 3
        fx.barrier()

    left = names(swept(kernel, "i32[4]"))
    for name in ("fly.ptr.load", "arith.muli", "fly.ptr.store", "gpu.barrier"):
        assert name in left


def test_a_branch_without_an_effect_goes() -> None:
    def kernel(A: fx.Tensor) -> None:
        b().if_((A[0] < 3).ir_value(), lambda: [(A[1] + 1).ir_value()], lambda: [zero()])

    assert ops(swept(kernel, "i32[4]"), "scf.if") == []


def test_a_branch_with_a_store_keeps_its_condition_and_loses_its_dead_result() -> None:
    def kernel(A: fx.Tensor) -> None:
        def then() -> list[Value]:
            A[2] = 5
            return [(A[1] + 1).ir_value(), A[3].ir_value()]

        _, used = b().if_((A[0] < 3).ir_value(), then, lambda: [zero(), zero()])
        A[0] = fx.Int32.wrap(used)

    (branch,) = ops(swept(kernel, "i32[4]"), "scf.if")
    assert len(branch.results) == 1 and branch.results[0].index == 0
    assert [len(r.ops[-1].operands) for r in branch.regions] == [1, 1]
    assert not any(op.name == "arith.addi" for op in branch.regions[0].walk())


def loop(carried: int, body: Any) -> list[Value]:
    return b().for_(0, 8, 1, [zero()] * carried, body)


def test_carried_values_that_only_feed_themselves_go() -> None:
    def kernel(A: fx.Tensor) -> None:
        def body(_: Value, x: Value, y: Value, z: Value) -> list[Value]:
            # x and y feed each other and nobody else; z is stored after the loop.
            return [b().binary("arith.addi", x, y), x, b().binary("arith.addi", z, A[1].ir_value())]

        A[0] = fx.Int32.wrap(loop(3, body)[2])

    (left,) = ops(swept(kernel, "i32[4]"), "scf.for")
    assert len(left.results) == 1 and len(left.regions[0].args) == 2 and len(left.operands) == 4
    assert [a.index for a in left.regions[0].args] == [0, 1]


def test_a_carried_value_that_feeds_a_live_one_stays() -> None:
    def kernel(A: fx.Tensor) -> None:
        def body(_: Value, x: Value, y: Value) -> list[Value]:
            return [b().binary("arith.addi", x, A[1].ir_value()), b().binary("arith.addi", y, x)]

        A[0] = fx.Int32.wrap(loop(2, body)[1])

    (left,) = ops(swept(kernel, "i32[4]"), "scf.for")
    assert len(left.results) == 2


def test_a_loop_without_an_effect_goes_also_when_it_nests() -> None:
    def kernel(A: fx.Tensor) -> None:
        def inner(_: Value, x: Value) -> list[Value]:
            return [b().binary("arith.addi", x, A[1].ir_value())]

        loop(1, lambda _, x: loop(1, inner))

    assert ops(swept(kernel, "i32[4]"), "scf.for") == []


def test_a_loop_with_a_store_keeps_its_bounds() -> None:
    def kernel(A: fx.Tensor) -> None:
        b().for_(0, A[3].ir_value(), 1, [], lambda i: A.__setitem__(0, fx.Int32.wrap(i)))

    (left,) = ops(swept(kernel, "i32[4]"), "scf.for")
    assert left.operands[1].op is not None and left.operands[1].op.name == "fly.ptr.load"


def test_a_while_loop_keeps_what_its_condition_needs_and_drops_the_rest() -> None:
    def kernel(A: fx.Tensor) -> None:
        def before(x: Value, y: Value) -> tuple[Value, list[Value]]:
            return b().cmpi("slt", x, A[1].ir_value()), [x, y]

        def after(x: Value, y: Value) -> list[Value]:
            A[2] = fx.Int32.wrap(x)
            return [b().binary("arith.addi", x, fx.Int32(1).ir_value()), b().binary("arith.addi", y, x)]

        b().while_([zero(), zero()], before, after)

    (left,) = ops(swept(kernel, "i32[4]"), "scf.while")
    assert len(left.operands) == 1 and len(left.results) == 1
    assert [len(r.args) for r in left.regions] == [1, 1]
    assert len(left.regions[0].ops[-1].operands) == 2 and len(left.regions[1].ops[-1].operands) == 1


def test_a_while_result_that_is_read_keeps_its_path_through_both_regions() -> None:
    def kernel(A: fx.Tensor) -> None:
        def before(x: Value, y: Value) -> tuple[Value, list[Value]]:
            return b().cmpi("slt", x, A[1].ir_value()), [x, y]

        def after(x: Value, y: Value) -> list[Value]:
            return [b().binary("arith.addi", x, fx.Int32(1).ir_value()), b().binary("arith.addi", y, x)]

        A[0] = fx.Int32.wrap(b().while_([zero(), zero()], before, after)[1])

    (left,) = ops(swept(kernel, "i32[4]"), "scf.while")
    assert len(left.operands) == 2


def test_a_second_sweep_finds_nothing() -> None:
    def kernel(A: fx.Tensor) -> None:
        def body(_: Value, x: Value, y: Value) -> list[Value]:
            return [b().binary("arith.addi", x, y), A[1].ir_value()]

        A[0] = fx.Int32.wrap(loop(2, body)[1])

    kernel_ = swept(kernel, "i32[4]")
    before = names(kernel_)
    eliminate_dead(kernel_)
    assert names(kernel_) == before
