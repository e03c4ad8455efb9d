"""Whole copies and gemms become the atom calls that their layouts ask for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flyllvm.expr as fx
from flyllvm.errors import FlyError, VerifyError
from flyllvm.passes.traversal import ORDERS, SERPENTINE, gemm_steps
from tests.passes.kernels import copy_atom, expanded, ops, run, traced

#: Shapes of the source's and destination's modes after the value mode; equal sizes, other nesting.
RESTS = [((6,), (6,)), ((2, 3), (2, 3)), ((2, 3), (6,)), (((2, 3),), (2, 3)), ((2, 3), ((2, 3), 1)), ((), (1,))]


def compact(shape: Any) -> Any:
    return fx.make_ordered_layout(shape, tuple(range(len(shape))))


# --- copy -----------------------------------------------------------------------------------------


@pytest.mark.sim
@pytest.mark.parametrize(("source", "target"), RESTS)
def test_a_copy_walks_both_rests_in_colexicographic_order(source: tuple[Any, ...], target: tuple[Any, ...]) -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        registers = fx.make_rmem_tensor(compact((4, *target)), fx.Float32)
        fx.copy(copy_atom(fx.Float32, 128), fx.make_view(A.iter, compact((4, *source))), registers)
        fx.copy(copy_atom(fx.Float32, 128), registers, fx.make_view(C.iter, compact((4, *source))))

    a, c = np.arange(24, dtype=np.float32) + 1, np.zeros(24, np.float32)
    run(kernel, a, c)
    count = 4 * fx.size(source) if source else 4
    np.testing.assert_array_equal(c[:count], a[:count])
    assert not c[count:].any()


def test_a_copy_makes_one_atom_call_per_step_and_one_for_a_lone_value_mode() -> None:
    def kernel(A: fx.Tensor) -> None:
        for shape in ((4, 6), (4, (2, 3)), (4, 2, 3), (24,), (4,)):
            registers = fx.make_rmem_tensor(compact(shape), fx.Float32)
            fx.copy(copy_atom(fx.Float32, 128), fx.make_view(A.iter, compact(shape)), registers)

    kernel_ops = ops(expanded(kernel, "f32[24]"), "fly.copy_atom_call")
    assert len(kernel_ops) == 6 + 6 + 6 + 6 + 1
    assert {op.operands[0].type.op.bit_size for op in kernel_ops} == {128}


@pytest.mark.sim
def test_a_value_mode_of_several_atoms_is_cut_at_the_atom() -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        # Two runs of 4 in the value mode, 16 apart, and two more steps 8 apart.
        view = fx.make_layout(((4, 2), 2), ((1, 16), 8))
        registers = fx.make_rmem_tensor(((4, 2), 2), fx.Float32)
        fx.copy(copy_atom(fx.Float32, 64), fx.make_view(A.iter, view), registers)
        fx.copy(copy_atom(fx.Float32, 128), registers, fx.make_view(C.iter, compact(((4, 2), 2))))

    a, c = np.arange(32, dtype=np.float32), np.zeros(16, np.float32)
    text = run(kernel, a, c)
    want = [16 * j + 8 * s + i for s in range(2) for j in range(2) for i in range(4)]
    np.testing.assert_array_equal(c, np.array(want, np.float32))
    assert text.count("load <2 x float>") == 8 and text.count("store <4 x float>") == 4


@pytest.mark.sim
def test_a_swizzled_pointer_permutes_what_it_writes_and_undoes_it_on_reading() -> None:
    swizzle = fx.Swizzle(2, 4, 3)

    def kernel(A: fx.Tensor, plain: fx.Tensor, through: fx.Tensor) -> None:
        tid = fx.thread_idx.x
        lds = fx.shared_memory(fx.Float32, 256, align=1024)
        piece = fx.make_layout(4, 1)
        swizzled = fx.apply_swizzle(lds, swizzle).view(fx.make_layout(256, 1))
        atom, registers = copy_atom(fx.Float32, 128), fx.make_rmem_tensor(4, fx.Float32)
        fx.copy(atom, A.at(tid * 4, piece), registers)
        fx.copy(atom, registers, swizzled.at(tid * 4, piece))
        fx.barrier()
        for source, target in ((lds.view(fx.make_layout(256, 1)), plain), (swizzled, through)):
            fx.copy(atom, source.at(tid * 4, piece), registers)
            fx.copy(atom, registers, target.at(tid * 4, piece))

    a = np.arange(256, dtype=np.float32)
    plain, through = np.zeros(256, np.float32), np.zeros(256, np.float32)
    run(kernel, a, plain, through)
    np.testing.assert_array_equal(through, a)
    places = [int(swizzle(4 * i)) // 4 for i in range(256)]  # the swizzle is one of byte addresses
    np.testing.assert_array_equal(plain[places], a)
    assert places != list(range(256))


@pytest.mark.sim
def test_a_composed_layout_is_walked_through_its_swizzle() -> None:
    swizzle, outer = fx.Swizzle(2, 0, 3), fx.make_layout((1, 32), (0, 1))

    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        registers = fx.make_rmem_tensor(compact((1, 32)), fx.Float32)
        fx.copy(copy_atom(fx.Float32), fx.make_view(A.iter, fx.make_composed_layout(swizzle, 0, outer)), registers)
        fx.copy(copy_atom(fx.Float32), registers, fx.make_view(C.iter, outer))

    a, c = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
    run(kernel, a, c)
    np.testing.assert_array_equal(c, np.array([int(swizzle(i)) for i in range(32)], np.float32))


@pytest.mark.parametrize(("step", "ok"), [(3, False), (4, True)])
def test_three_elements_of_a_swizzled_layout_stay_inside_of_what_the_swizzle_moves(step: int, ok: bool) -> None:
    layout = fx.make_composed_layout(fx.Swizzle(2, 2, 2), 0, fx.make_layout((3, 8), (1, step)))

    def kernel(A: fx.Tensor) -> None:
        registers = fx.make_rmem_tensor(compact((3, 8)), fx.Float32)
        atom = copy_atom(fx.Float32, 96)
        fx.copy(atom, fx.make_view(A.iter, layout), registers)

    if ok:
        assert len(ops(expanded(kernel, "f32[64]"), "fly.copy_atom_call")) == 8
    else:
        with pytest.raises(VerifyError, match=r"(?s)3 elements from offset 3 may straddle.*multiple of 4"):
            expanded(kernel, "f32[64]")


# --- predicates -----------------------------------------------------------------------------------


@pytest.mark.sim
@pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])
def test_a_predicate_per_atom_call_keeps_the_old_registers_where_it_is_false(ssa: bool) -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        tid = fx.thread_idx.x
        mine = fx.make_layout((2, 3), (1, 2))
        registers, pred = fx.make_rmem_tensor((2, 3), fx.Float32), fx.make_rmem_tensor(3, fx.Boolean)
        registers.fill(-5.0)
        for i in range(3):
            pred[i] = (tid + i) % 3 != 0
        fx.copy(copy_atom(fx.Float32, 64), A.at(tid * 6, mine), registers, pred=pred)
        fx.copy(copy_atom(fx.Float32, 64), registers, C.at(tid * 6, mine))

    a, c = np.arange(384, dtype=np.float32) + 1, np.zeros(384, np.float32)
    run(kernel, a, c, ssa=ssa)
    on = (np.arange(64)[:, None] + np.arange(3)) % 3 != 0
    want = np.where(on[..., None], a.reshape(64, 3, 2), -5.0)
    np.testing.assert_array_equal(c.reshape(64, 3, 2), want)


@pytest.mark.sim
@pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])
@pytest.mark.parametrize("form", ["scalar", "one entry"])
def test_one_predicate_serves_all_atom_calls(form: str, ssa: bool) -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        tid = fx.thread_idx.x
        mine = fx.make_layout((2, 3), (1, 2))
        inside = tid < 10
        pred = fx.make_rmem_tensor(1, fx.Boolean)
        pred[0] = inside
        registers = fx.make_rmem_tensor((2, 3), fx.Float32)
        fx.copy(copy_atom(fx.Float32, 64), A.at(tid * 6, mine), registers)
        used = inside if form == "scalar" else pred
        fx.copy(copy_atom(fx.Float32, 64), registers, C.at(tid * 6, mine), pred=used)

    a, c = np.arange(384, dtype=np.float32) + 1, np.full(384, 3, np.float32)
    run(kernel, a, c, ssa=ssa)
    np.testing.assert_array_equal(c[:60], a[:60])
    assert (c[60:] == 3).all()


def test_predicates_of_another_number_are_refused() -> None:
    def kernel(A: fx.Tensor) -> None:
        registers, pred = fx.make_rmem_tensor((2, 3), fx.Float32), fx.make_rmem_tensor(2, fx.Boolean)
        pred.fill(True)
        fx.copy(copy_atom(fx.Float32, 64), fx.make_view(A.iter, compact((2, 3))), registers, pred=pred)

    with pytest.raises(VerifyError, match=r"(?s)2 entries for 3 atom calls.*fix: give one predicate per atom call"):
        expanded(kernel, "f32[6]")


# --- copies that do not fit -----------------------------------------------------------------------


def refused(kernel: Any, *specs: str) -> str:
    """What expansion says, with the line of this file that it names."""
    with pytest.raises(FlyError) as caught:
        expanded(kernel, *specs)
    assert "test_expand.py:" in str(caught.value)
    return str(caught.value)


def test_a_source_and_destination_of_other_sizes_are_refused() -> None:
    def kernel(A: fx.Tensor) -> None:
        registers = fx.make_rmem_tensor((4, 3), fx.Float32)
        fx.copy(copy_atom(fx.Float32, 128), fx.make_view(A.iter, compact((4, 2))), registers)

    assert "the source needs 2 atom calls, the destination 3" in (said := refused(kernel, "f32[8]"))
    assert "fix: give both equal shapes" in said


def test_a_value_mode_that_is_no_whole_number_of_atoms_is_refused() -> None:
    def kernel(A: fx.Tensor) -> None:
        registers = fx.make_rmem_tensor((6, 2), fx.Float32)
        fx.copy(copy_atom(fx.Float32, 128), fx.make_view(A.iter, compact((6, 2))), registers)

    said = refused(kernel, "f32[12]")
    assert "holds 6 elements, an atom call moves 4" in said
    assert "fix: make the first mode a multiple of 4 elements" in said


def test_an_atom_that_is_no_whole_number_of_elements_is_refused() -> None:
    def kernel(A: fx.Tensor) -> None:
        registers = fx.make_rmem_tensor((1, 2), fx.Float32)
        fx.copy(copy_atom(fx.Float16, 16), fx.make_view(A.iter, compact((1, 2))), registers)

    assert "choose an atom whose width is a multiple" in refused(kernel, "f32[2]")


def test_a_value_mode_known_at_run_time_only_is_refused() -> None:
    def kernel(A: fx.Tensor) -> None:
        fx.copy(copy_atom(fx.Float32), A, fx.make_rmem_tensor(4, fx.Float32))

    assert "fix: make the first mode static" in refused(kernel, "f32[?]")


def test_a_rest_mode_known_at_run_time_only_is_refused() -> None:
    def kernel(A: fx.Tensor) -> None:
        fx.copy(copy_atom(fx.Float32), A, fx.make_rmem_tensor((1, 4), fx.Float32))

    assert "fix: copy tiles of static shape in a loop" in refused(kernel, "f32[1,?]:(?,1)")


def test_a_vector_access_through_a_swizzled_layout_is_refused() -> None:
    def kernel(A: fx.Tensor) -> None:
        composed = fx.make_composed_layout(fx.Swizzle(1, 0, 2), 0, fx.make_layout(8, 1))
        C = fx.make_view(A.iter, composed)
        A[0] = C.load()[0]

    assert "fix: use copy atoms, or index the elements one by one" in refused(kernel, "f32[8]")


# --- elements and vectors -------------------------------------------------------------------------


@pytest.mark.sim
@pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])
def test_vector_access_gathers_the_runs_of_a_layout(ssa: bool) -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        strided = fx.make_view(A.iter, fx.make_layout((2, 3), (1, 8)))
        fx.make_view(C.iter, fx.make_layout((3, 2), (2, 1))).store(strided.load() * 2.0)

    a, c = np.arange(24, dtype=np.float32), np.zeros(6, np.float32)
    run(kernel, a, c, ssa=ssa)
    flat = [8 * j + i for j in range(3) for i in range(2)]
    want = np.zeros(6, np.float32)
    for at, value in enumerate(flat):
        want[(at % 3) * 2 + at // 3] = 2 * value
    np.testing.assert_array_equal(c, want)


# --- gemm -----------------------------------------------------------------------------------------

COUNTS = (2, 3, 4)


def gemm_kernel(counts: tuple[int, int, int] = COUNTS, separate: bool = False, **options: Any) -> Any:
    """D = A * B + C over element fragments; all threads do the same."""
    m, n, k = counts

    def kernel(A: fx.Tensor, B: fx.Tensor, C: fx.Tensor) -> None:
        atom = fx.make_mma_atom(fx.UniversalFMA(fx.Float32))
        load = copy_atom(fx.Float32)
        fragments = []
        for tensor, shape in ((A, (1, m, k)), (B, (1, n, k)), (C, (1, m, n))):
            fragment = fx.make_rmem_tensor(shape, fx.Float32)
            fx.copy(load, fx.make_view(tensor.iter, compact(shape)), fragment)
            fragments.append(fragment)
        a, b, c = fragments
        d = fx.make_rmem_tensor((1, m, n), fx.Float32) if separate else c
        fx.gemm(atom, d, a, b, c, **options)
        fx.copy(load, d, fx.make_view(C.iter, compact((1, m, n))))

    return kernel


def order_of(**options: Any) -> list[tuple[int, int, int]]:
    (op,) = ops(traced(gemm_kernel(**options), "f32[8]", "f32[12]", "f32[6]"), "fly.gemm")
    return list(gemm_steps(*COUNTS, op))


EVERY = {(x, y, z) for x in range(2) for y in range(3) for z in range(4)}


@pytest.mark.parametrize("order", [None, *ORDERS, *(o + SERPENTINE for o in ORDERS)])
def test_every_order_visits_each_step_once(order: str | None) -> None:
    steps = order_of(traversal_order=order)
    assert len(steps) == 24 and set(steps) == EVERY


def test_the_first_letter_of_an_order_is_the_innermost_loop() -> None:
    assert order_of(traversal_order="KMN")[:5] == [(0, 0, 0), (0, 0, 1), (0, 0, 2), (0, 0, 3), (1, 0, 0)]
    assert order_of(traversal_order="MNK")[:4] == [(0, 0, 0), (1, 0, 0), (0, 1, 0), (1, 1, 0)]
    assert order_of() == order_of(traversal_order="NMK")


@pytest.mark.parametrize("order", ORDERS)
def test_a_serpentine_moves_one_step_in_one_direction_at_a_time(order: str) -> None:
    steps = order_of(traversal_order=order + SERPENTINE)
    for x, y in zip(steps, steps[1:]):
        assert sum(abs(i - j) for i, j in zip(x, y)) == 1


def test_a_layout_gives_any_order() -> None:
    # Column-major (m, n, k) indices; here n fastest, then k, then m.
    layout = fx.make_layout((3, 4, 2), (2, 6, 1))
    assert order_of(traversal_layout=layout)[:4] == [(0, 0, 0), (0, 1, 0), (0, 2, 0), (0, 0, 1)]
    assert set(order_of(traversal_layout=layout)) == EVERY


@pytest.mark.parametrize("layout", [fx.make_layout(24, 2), fx.make_layout(12, 1), fx.make_layout((12, 2), (1, 0))])
def test_a_layout_that_skips_or_repeats_steps_is_refused(layout: Any) -> None:
    with pytest.raises(VerifyError, match=r"(?s)does not visit each of 24 steps once.*0 to 23, each once"):
        order_of(traversal_layout=layout)


def test_an_order_and_a_layout_together_are_refused() -> None:
    with pytest.raises(FlyError, match="fix: give one of them"):
        order_of(traversal_order="KMN", traversal_layout=fx.make_layout(24, 1))


def test_an_unknown_order_is_refused_with_the_legal_ones() -> None:
    with pytest.raises(
        VerifyError, match=r"(?s)unknown traversal order 'XYZ'.*KMN, KNM, .*, each also with _Serpentine"
    ):
        order_of(traversal_order="XYZ")


@pytest.mark.sim
@pytest.mark.parametrize("separate", [False, True], ids=["in place", "d apart from c"])
@pytest.mark.parametrize("options", [{}, {"traversal_order": "KMN"}, {"traversal_order": "MKN_Serpentine"}], ids=str)
def test_a_gemm_adds_every_product_to_c_once(options: dict[str, str], separate: bool) -> None:
    rng = np.random.default_rng(1)
    a, b, c = (rng.integers(-4, 5, s).astype(np.float32) for s in ((4, 2), (4, 3), (3, 2)))  # column-major
    want = np.einsum("km,kn->nm", a, b) + c
    run(gemm_kernel(separate=separate, **options), a.reshape(-1), b.reshape(-1), c.reshape(-1))
    np.testing.assert_array_equal(c, want)


@pytest.mark.parametrize(
    ("shapes", "said"),
    [
        (((1, 2, 4), (1, 3, 3), (1, 2, 3)), r"operand b repeats the atom \(3, 3\) times, the others ask for \(3, 4\)"),
        (((1, 3, 4), (1, 3, 4), (1, 2, 3)), r"operand a repeats the atom \(3, 4\) times, the others ask for \(2, 4\)"),
        (((1, 2, 4), (1, 2, 4), (1, 2, 3)), r"operand b repeats the atom \(2, 4\) times, the others ask for \(3, 4\)"),
    ],
)
def test_a_gemm_of_operands_that_do_not_fit_names_the_odd_one(shapes: tuple[Any, ...], said: str) -> None:
    def kernel() -> None:
        a, b, c = (fx.make_rmem_tensor(s, fx.Float32) for s in shapes)
        fx.gemm(fx.make_mma_atom(fx.UniversalFMA(fx.Float32)), c, a, b, c)

    with pytest.raises(VerifyError, match=rf"(?s){said}.*fix: partition all operands with one tiled mma"):
        expanded(kernel)


def test_a_gemm_operand_of_rank_4_is_refused() -> None:
    def kernel() -> None:
        a = fx.make_rmem_tensor((1, 1, 1, 1), fx.Float32)
        fx.gemm(fx.make_mma_atom(fx.UniversalFMA(fx.Float32)), a, a, a, a)

    with pytest.raises(VerifyError, match=r"(?s)operand d has rank 4.*use \(V,M,N\), \(V,M,K\), \(V,N,K\) or rank 1"):
        expanded(kernel)
