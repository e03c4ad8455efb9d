"""Register memory becomes values, carried through control flow whole; what needs an address stays memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import flyllvm.expr as fx
from flyllvm.atoms.copy_op import StatelessCopy
from flyllvm.errors import VerifyError
from flyllvm.ir import types as t
from flyllvm.ir.core import Kernel, Value
from flyllvm.ir.protocols import Emitter, LLValue, MemOperand
from flyllvm.ir.verifier import KEPT_MEMORY
from tests.passes.kernels import b, copy_atom, element, expanded, loop, ops, promoted, run

BOTH = pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])


def kept(kernel: Kernel) -> int:
    """Register allocations left, checked against the count that the kernel carries."""
    left = len(ops(kernel, "fly.memref.alloca"))
    assert kernel.attrs.get(KEPT_MEMORY, 0) == left
    return left


def types(values: list[Value]) -> list[str]:
    return [v.type.text for v in values]


def wide() -> Any:
    return copy_atom(fx.Float32, 128)


# --- straight line --------------------------------------------------------------------------------


def test_a_fragment_is_cut_where_vectors_are_accessed() -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        registers = fx.make_rmem_tensor((4, 2), fx.Float32)
        fx.copy(wide(), fx.make_view(A.iter, fx.make_layout((4, 2), (1, 4))), registers)
        fx.copy(wide(), registers, fx.make_view(C.iter, fx.make_layout((4, 2), (1, 4))))

    kernel_ = promoted(kernel, "f32[8]", "f32[8]")
    assert kept(kernel_) == 0
    calls = ops(kernel_, "fly.copy_atom_call_ssa")
    assert [types(op.results) for op in calls] == [["vector<4xf32>"]] * 2 + [[]] * 2
    assert calls[2].operands[1] is calls[0].results[0] and calls[3].operands[1] is calls[1].results[0]
    assert ops(kernel_, "fly.copy_atom_call") == []


@BOTH
@pytest.mark.sim
def test_parts_written_in_pieces_read_back_as_one(ssa: bool) -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        registers = fx.make_rmem_tensor(8, fx.Float32)
        piece = fx.make_layout(4, 1)
        fx.copy(wide(), A.at(0, piece), registers.at(0, piece))
        fx.copy(wide(), A.at(4, piece), registers.at(4, piece))
        registers[3] = 50.0
        fx.copy(copy_atom(fx.Float32, 64), A.at(0, fx.make_layout(2, 1)), registers.at(5, fx.make_layout(2, 1)))
        C.store(registers.load())

    a, c = np.arange(8, dtype=np.float32) + 1, np.zeros(8, np.float32)
    run(kernel, a, c, ssa=ssa)
    np.testing.assert_array_equal(c, [1, 2, 3, 50, 5, 1, 2, 8])


def test_an_access_outside_a_fragment_is_refused_at_the_line() -> None:
    def kernel() -> None:
        registers = fx.make_rmem_tensor(4, fx.Float32)
        registers.at(2, fx.make_layout(4, 1)).fill(0.0)

    with pytest.raises(VerifyError, match=r"(?s)test_ssa\.py:.*elements 2 to 5 of register memory with 4.*stay inside"):
        promoted(kernel)


# --- control flow ---------------------------------------------------------------------------------


def loop_kernel(A: fx.Tensor, C: fx.Tensor) -> None:
    acc, junk = fx.make_rmem_tensor(4, fx.Float32), fx.make_rmem_tensor(4, fx.Float32)
    acc.fill(0.0)
    junk.fill(0.0)
    piece = fx.make_layout(4, 1)

    def body(k: Any) -> None:
        staged = fx.make_rmem_tensor(4, fx.Float32)
        fx.copy(wide(), A.at(k * 4, piece), staged)
        acc.store(acc.load() + staged.load())
        junk.store(junk.load() + acc.load())

    loop(5, body)
    fx.copy(wide(), acc, C.at(0, piece))


def test_a_loop_carries_whole_vectors_and_nothing_that_is_dead() -> None:
    kernel = promoted(loop_kernel, "f32[20]", "f32[4]")
    (made,) = ops(kernel, "scf.for")
    # `junk` is written and read in the loop, and by nobody else; `staged` lives in one iteration.
    assert types(made.results) == ["vector<4xf32>"]
    assert types(made.regions[0].args) == ["i32", "vector<4xf32>"]
    assert kept(kernel) == 0


@BOTH
@pytest.mark.sim
def test_a_loop_gives_the_sum(ssa: bool) -> None:
    a, c = np.arange(20, dtype=np.float32), np.zeros(4, np.float32)
    run(loop_kernel, a, c, ssa=ssa)
    np.testing.assert_array_equal(c, a.reshape(5, 4).sum(axis=0))


def if_kernel(C: fx.Tensor) -> None:
    tid = fx.thread_idx.x
    registers = fx.make_rmem_tensor(2, fx.Int32)
    registers[0], registers[1] = 7, 8

    def then() -> None:
        registers[0] = tid * 2

    def otherwise() -> None:
        registers[1] = tid * 3

    b().if_((tid < 10).ir_value(), then, otherwise)
    C[tid, 0], C[tid, 1] = registers[0], registers[1]


def test_a_branch_yields_what_either_side_writes() -> None:
    kernel = promoted(if_kernel, "i32[64,2]")
    (branch,) = ops(kernel, "scf.if")
    assert types(branch.results) == ["i32", "i32"]
    assert kept(kernel) == 0


@BOTH
@pytest.mark.sim
def test_a_branch_keeps_what_its_side_does_not_write(ssa: bool) -> None:
    c = np.zeros((64, 2), np.int32)
    run(if_kernel, c, ssa=ssa)
    lanes = np.arange(64)
    np.testing.assert_array_equal(c[:, 0], np.where(lanes < 10, 2 * lanes, 7))
    np.testing.assert_array_equal(c[:, 1], np.where(lanes < 10, 8, 3 * lanes))


def while_kernel(C: fx.Tensor) -> None:
    """Collatz steps of the lane's number; the count and the number are register memory."""
    tid = fx.thread_idx.x
    number, count = fx.make_rmem_tensor(1, fx.Int32), fx.make_rmem_tensor(1, fx.Int32)
    number[0], count[0] = tid + 1, 0

    def before() -> tuple[Value, list[Value]]:
        return (number[0] != 1).ir_value(), []

    def after() -> None:
        n = number[0]
        number[0] = fx.where(n % 2 == 0, n // 2, 3 * n + 1)
        count[0] = count[0] + 1

    b().while_([], before, after)
    C[tid] = count[0]


def test_a_while_loop_carries_through_its_condition() -> None:
    kernel = promoted(while_kernel, "i32[64]")
    (made,) = ops(kernel, "scf.while")
    assert types(made.regions[0].args) == ["i32", "i32"]
    assert kept(kernel) == 0


@BOTH
@pytest.mark.sim
def test_a_while_loop_runs_each_lane_as_long_as_it_needs(ssa: bool) -> None:
    def steps(n: int) -> int:
        return 0 if n == 1 else 1 + steps(n // 2 if n % 2 == 0 else 3 * n + 1)

    c = np.zeros(64, np.int32)
    run(while_kernel, c, ssa=ssa)
    np.testing.assert_array_equal(c, [steps(n + 1) for n in range(64)])


def test_a_register_that_a_loop_only_reads_is_not_carried() -> None:
    def kernel(C: fx.Tensor) -> None:
        factor, acc = fx.make_rmem_tensor(1, fx.Float32), fx.make_rmem_tensor(1, fx.Float32)
        factor[0], acc[0] = C[0], 1.0

        def body(_: Any) -> None:
            acc[0] = acc[0] * factor[0]

        loop(3, body)
        C[0] = acc[0]

    (made,) = ops(promoted(kernel, "f32[1]"), "scf.for")
    assert types(made.results) == ["f32"]


@BOTH
@pytest.mark.sim
def test_a_cell_first_written_inside_a_loop_is_carried_out(ssa: bool) -> None:
    def kernel(C: fx.Tensor) -> None:
        last = fx.make_rmem_tensor(1, fx.Int32)

        def body(k: Any) -> None:
            last[0] = k * 10

        loop(4, body)
        C[fx.thread_idx.x] = last[0]

    c = np.zeros(64, np.int32)
    run(kernel, c, ssa=ssa)
    assert (c == 30).all()


# --- what stays memory ----------------------------------------------------------------------------


def indexed(A: fx.Tensor, C: fx.Tensor) -> None:
    tid = fx.thread_idx.x
    table, plain = fx.make_rmem_tensor(4, fx.Int32), fx.make_rmem_tensor(4, fx.Int32)
    for i in range(4):
        table[i] = tid * 10 + i
        plain[i] = i
    C[tid] = fx.Int32.wrap(b().ptr_load(element(table, A[tid]))) + plain[2]


def test_a_run_time_index_keeps_its_register_memory_and_no_other() -> None:
    kernel = promoted(indexed, "i32[64]", "i32[64]")
    assert kept(kernel) == 1


@BOTH
@pytest.mark.sim
def test_a_run_time_index_reads_the_element(ssa: bool) -> None:
    rng = np.random.default_rng(1)
    a, c = rng.integers(0, 4, 64).astype(np.int32), np.zeros(64, np.int32)
    text = run(indexed, a, c, ssa=ssa)
    np.testing.assert_array_equal(c, np.arange(64) * 10 + a + 2)
    assert text.count("alloca") == (1 if ssa else 2)


def recast(C: fx.Tensor) -> None:
    words = fx.make_rmem_tensor(2, fx.Int32)
    words[0], words[1] = 0x00020001, 0x00040003
    # The language refuses this; fly IR that was written as text may have it.
    halves = fx.Pointer(b().recast_iter(words.ptr, t.I16), fx.Int16)
    for i in range(4):
        C[i] = fx.Int32(halves[i])


def test_a_recast_keeps_register_memory() -> None:
    assert kept(promoted(recast, "i32[4]")) == 1


@BOTH
@pytest.mark.sim
def test_a_recast_sees_the_same_bits(ssa: bool) -> None:
    c = np.zeros(4, np.int32)
    run(recast, c, ssa=ssa)
    np.testing.assert_array_equal(c, [1, 2, 3, 4])


def mixed(which: str) -> Callable[..., None]:
    """An FMA of fragments of which one has a run-time index somewhere, so that all four stay in memory."""

    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        tid = fx.thread_idx.x
        fragments = {name: fx.make_rmem_tensor(2, fx.Float32) for name in "dabc"}
        for i, fragment in enumerate(fragments.values()):
            fragment.fill(float(i + 2))
        b().ptr_store(fx.Float32(7.0).ir_value(), element(fragments[which], A[tid]))
        one = fx.make_layout(1, 1)
        at = {name: fragment.at(1, one) for name, fragment in fragments.items()}
        fx.mma_atom_call(fx.make_mma_atom(fx.UniversalFMA(fx.Float32)), at["d"], at["a"], at["b"], at["c"])
        C[tid] = fragments["d"][1]

    return kernel


@pytest.mark.parametrize("which", "dabc")
def test_an_mma_with_one_operand_in_memory_keeps_all_of_them_and_its_memory_form(which: str) -> None:
    kernel = promoted(mixed(which), "i32[64]", "f32[64]")
    assert kept(kernel) == 4
    assert len(ops(kernel, "fly.mma_atom_call")) == 1 and ops(kernel, "fly.mma_atom_call_ssa") == []


@BOTH
@pytest.mark.parametrize("which", "dabc")
@pytest.mark.sim
def test_an_mma_with_one_operand_in_memory_stores_its_result(which: str, ssa: bool) -> None:
    c = np.zeros(64, np.float32)
    run(mixed(which), np.ones(64, np.int32), c, ssa=ssa)
    value = {"a": 3.0, "b": 4.0, "c": 5.0} | {which: 7.0}
    assert (c == value["a"] * value["b"] + value["c"]).all()


class Doubled(StatelessCopy):
    """A copy that has no SSA form: dst = 2 * src."""

    __slots__ = ()
    mnemonic = "test.doubled"
    params = "32"
    bit_size = 32
    emit_atom_call_ssa = property()  # type: ignore[assignment]

    def emit_atom_call(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand, pred: LLValue | None
    ) -> None:
        value = em.load(src, src.type.elem.storage)
        em.store(em.binary("fadd", value, value), dst)


@BOTH
@pytest.mark.sim
def test_an_atom_without_an_ssa_form_keeps_its_operands_in_memory_and_runs_in_both_pipelines(ssa: bool) -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        tid, one = fx.thread_idx.x, fx.make_layout(1, 1)
        held, free = fx.make_rmem_tensor(1, fx.Float32), fx.make_rmem_tensor(1, fx.Float32)
        fx.copy(fx.make_copy_atom(Doubled(), fx.Float32), A.at(tid, one), held)
        fx.copy(copy_atom(fx.Float32), held, free)
        fx.copy(copy_atom(fx.Float32), free, C.at(tid, one))

    assert kept(promoted(kernel, "f32[64]", "f32[64]")) == 1
    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    text = run(kernel, a, c, ssa=ssa)
    np.testing.assert_array_equal(c, 2 * a)
    assert text.count("alloca") == (1 if ssa else 2)


def test_memory_kept_at_one_place_leaves_the_rest_of_the_kernel_promoted() -> None:
    kernel = expanded(indexed, "i32[64]", "i32[64]")
    assert len(ops(kernel, "fly.memref.alloca")) == 2
    kernel = promoted(indexed, "i32[64]", "i32[64]")
    (left,) = ops(kernel, "fly.memref.alloca")
    assert isinstance(left.result.type, t.MemRefType)
