"""Dynamic leaves: the arithmetic they become is right for every value, and nothing ever compares them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, strategies as st

from flyllvm.errors import LayoutError
from flyllvm.layout import (
    Basis,
    ComposedLayout,
    Dyn,
    Layout,
    Swizzle,
    coalesce,
    complement,
    composition,
    cosize,
    covers,
    crd2idx,
    elem_less,
    equal,
    flat_divide,
    get_leaves,
    idx2crd,
    int_tuple_sub,
    is_static,
    left_inverse,
    logical_divide,
    make_identity_layout,
    make_layout_like,
    make_ordered_layout,
    parse,
    recast_layout,
    size,
    slice_and_offset,
    type_equal,
    zipped_divide,
)
from tests.layout.runtime_ints import Num, value_of
from tests.layout.strategies import image


def frozen(layout):
    """The static layout that a layout over known run-time integers stands for."""
    return Layout(value_of(layout.shape), value_of(layout.stride))


@pytest.mark.parametrize(("n", "m"), [(1, 1), (3, 5), (4, 2), (7, 3)])
def test_nested_dynamic_shapes_index_as_numpy_does(n, m):
    shape, sizes = ((2, Num(n)), (Num(m), 4)), (2, n, m, 4)
    layout = Layout(shape, ((1, Num(2)), (Num(2 * n), Num(2 * n * m))))
    places = np.arange(2 * n * m * 4).reshape(sizes, order="F")
    for a, b, c, d in itertools.product(*map(range, sizes)):
        expected = places[a, b, c, d]
        assert value_of(crd2idx(((a, b), (c, d)), layout)) == expected
        assert value_of(crd2idx((a + 2 * b, c + m * d), layout)) == expected
        assert value_of(crd2idx(Num(expected), layout)) == expected
        assert value_of(idx2crd(Num(expected), layout)) == ((a, b), (c, d))


@given(st.integers(1, 8), st.integers(1, 8), st.sampled_from([1, 2, 4]), st.sampled_from([1, 2, 4]))
def test_divides_of_dynamic_shapes_equal_the_static_ones(m, n, bm, bn):
    rows, cols = m * bm, n * bn
    dynamic = Layout((Num(rows, bm), Num(cols, bn)), (Num(cols, bn), 1))
    static = Layout((rows, cols), (cols, 1))
    for fn in (logical_divide, zipped_divide, flat_divide):
        assert image(frozen(fn(dynamic, (bm, bn)))) == image(fn(static, (bm, bn)))
    by_mode = composition(dynamic, (Num(rows), bn))
    assert image(frozen(by_mode)) == image(composition(static, (rows, bn)))


@given(st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))
def test_composition_over_a_dynamic_inner_extent(n, m, k):
    a = Layout((Num(4 * n, 4), Num(m)), (1, Num(4 * n)))
    b = Layout((4, Num(n * m)), (1, 4))
    r = frozen(composition(a, b))
    assert [crd2idx(i, r) for i in range(size(r))] == list(range(4 * n * m))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 400))
def test_dynamic_coordinates_past_the_end_extrapolate(n, d, i):
    layout = Layout((3, Num(n), 5), (Num(d), 7, 11))
    assert value_of(crd2idx(Num(i), layout)) == crd2idx(i, frozen(layout))


def test_complement_of_a_single_dynamic_mode():
    r = complement(Layout(4, Num(3)), Num(24))
    assert image(frozen(r)) == image(complement(Layout(4, 3), 24))


def test_left_inverse_keeps_a_run_time_extent_last():
    inverse = frozen(left_inverse(Layout((4, Num(3)), (1, 8))))
    layout = Layout((4, 3), (1, 8))
    assert [crd2idx(x, inverse) for x in image(layout)] == list(range(12))


def test_coverage_of_a_run_time_layout_is_refused():
    with pytest.raises(LayoutError, match="use a static layout"):
        covers(parse("?:1"), 4)


def test_complement_of_several_dynamic_strides_is_refused():
    with pytest.raises(LayoutError, match="make the strides static"):
        complement(parse("(4,8):(?,?)"), 64)


def test_swizzles_apply_to_run_time_indices():
    layout = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((Num(64), 64), (64, 1)))
    static = ComposedLayout(Swizzle(3, 3, 3), 0, Layout((64, 64), (64, 1)))
    for i, j in [(0, 0), (5, 9), (63, 63), (17, 40)]:
        assert value_of(crd2idx((Num(i), Num(j)), layout)) == crd2idx((i, j), static)


def test_slices_move_a_run_time_index_into_the_offset():
    view, offset = slice_and_offset((None, Num(3)), parse("(4,8):(1,4)"))
    assert view == Layout(4, 1)
    assert value_of(offset) == 12


def test_identity_layouts_give_run_time_coordinates():
    assert value_of(crd2idx((Num(3), Num(4)), make_identity_layout((Num(8), Num(9))))) == (3, 4)


def test_comparisons_of_run_time_integers_are_values():
    assert value_of(elem_less((Num(3), 1), (4, Num(2)))) == 1
    assert value_of(elem_less((Num(3), 1), (4, Num(1)))) == 0
    assert elem_less((Num(3), 2), (4, 2)) is False
    assert value_of(equal((Num(3), 4), (3, 4))) == 1


@pytest.mark.parametrize(
    ("fn", "expected"),
    [
        (lambda a, b: a + b, "?{div=4}"),
        (lambda a, b: a - b, "?{div=4}"),
        (lambda a, b: a % b, "?{div=4}"),
        (lambda a, b: a.min_(b), "?{div=4}"),
        (lambda a, b: a.max_(b), "?{div=4}"),
        (lambda a, b: a * b, "?{div=96}"),
        (lambda a, b: a // b, "?"),
        (lambda a, b: a.ceil_div_(b), "?"),
        (lambda a, b: 24 + a, "?{div=8}"),
        (lambda a, b: 0 - a, "?{div=8}"),
        (lambda a, b: a * 3, "?{div=24}"),
    ],
)
def test_symbolic_arithmetic_derives_divisibility(fn, expected):
    assert str(fn(Dyn(divisibility=8), Dyn(divisibility=12))) == expected


def test_symbolic_arithmetic_takes_the_wider_width():
    assert str(Dyn(64) + Dyn(32)) == "?{i64}"
    assert str(Dyn(64, 8) + 16) == "?{i64 div=8}"


def test_zero_minus_a_run_time_integer_is_negated():
    assert value_of(int_tuple_sub(0, Num(5))) == -5


def test_folds_keep_the_run_time_leaf_itself():
    n = Dyn()
    layout = Layout((4, n), (1, 4))
    assert get_leaves(composition(layout, parse("4:1"))) == (4, 1)
    assert coalesce(Layout((1, n), (0, 1))).shape is n
    assert logical_divide(Layout(n, 1), 1).shape[1] is n
    assert make_ordered_layout((8, n), (0, 1)).stride == (1, 8)


def test_dynamic_leaves_never_merge():
    assert str(coalesce(parse("(4,?):(1,4)"))) == "(4,?):(1,4)"


def test_layouts_are_equal_by_the_identity_of_their_dynamic_leaves():
    n = Dyn(name="n")
    assert Layout((4, n), (n, 1)) == Layout((4, Dyn(name="n")), (Dyn(name="n"), 1))
    assert hash(Layout(n, 1)) == hash(Layout(Dyn(name="n"), 1))
    assert Layout((4, Dyn()), (1, 4)) != Layout((4, Dyn()), (1, 4))
    assert type_equal(Layout((4, Dyn()), (1, 4)), Layout((4, Dyn()), (1, 4)))
    assert not type_equal(Layout((4, Dyn(64)), (1, 4)), Layout((4, Dyn()), (1, 4)))


def test_results_with_run_time_leaves_are_not_shared():
    a, b = Dyn(), Dyn()
    first = composition(Layout((4, a), (1, 4)), parse("(2,2):(1,2)"))
    assert is_static(first)
    assert cosize(Layout(a, 1)) is not cosize(Layout(b, 1))


def test_dynamic_strides_order_after_static_ones():
    assert str(make_layout_like(parse("(4,8,2):(?,1,2)"))) == "(4,8,2):(16,1,8)"


def test_recast_divides_run_time_strides():
    assert value_of(recast_layout(32, 16, Layout((8, Num(4)), (1, Num(8, 8)))).stride) == (1, 4)


@pytest.mark.parametrize(
    ("layout", "said"),
    [
        ("(8,4):(1,?)", r"stride \? is not known to be a multiple of 2"),
        ("(8,4):(1,?{div=3})", r"stride \?\{div=3\} is not known"),
        ("(?,4):(1,8)", r"extent \? is not known to be a multiple of 2"),
        ("S<2,3,3> o ? o 8:1", r"offset \? is not known to be a multiple of 2"),
    ],
)
def test_recast_refuses_run_time_leaves_that_nobody_promised_to_divide(layout, said):
    with pytest.raises(LayoutError, match=rf"(?s){said}.*promise it: {{div=2}}"):
        recast_layout(32, 16, parse(layout))
    promised = layout.replace("?{div=3}", "?").replace("?", "?{div=2}")
    assert "?" in str(recast_layout(32, 16, parse(promised)))


@pytest.mark.parametrize("bad", [True, np.bool_(True), 1.5, "4", object()])
def test_leaves_that_are_no_integers_are_refused(bad):
    with pytest.raises(LayoutError, match="of a layout"):
        Layout((4, bad), (1, 4))


def test_numpy_integers_become_python_ints():
    layout = Layout((np.int64(4), np.int32(8)), (np.uint8(1), 4))
    assert layout == parse("(4,8):(1,4)")
    assert all(type(x) is int for x in layout.shape + layout.stride)


def test_the_truth_of_a_symbolic_integer_is_refused():
    with pytest.raises(LayoutError, match="use a run-time comparison"):
        bool(Dyn())


@pytest.mark.parametrize(("width", "div"), [(16, 1), (32, 0), (32, True)])
def test_symbolic_integers_check_width_and_divisibility(width, div):
    with pytest.raises(LayoutError, match="use"):
        Dyn(width, div)


def test_basis_leaves_check_value_and_path():
    assert str(Basis(2, (0, 1))) == "2E0E1"
    with pytest.raises(LayoutError, match=r"write Basis\(2, \(0, 1\)\)"):
        Basis(2, ())
