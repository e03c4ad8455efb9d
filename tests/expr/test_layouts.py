"""Layout functions: every name, on compile-time and run-time values, with numbers of the language as leaves."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import FlyError, LayoutError, TraceError

from .kernels import Tracing

#: (expression, text of the result) for names that work on static values.
STATIC = [
    ("fx.make_layout((4, 8), (8, 1))", "(4,8):(8,1)"),
    ("fx.Layout((4, 8), (8, 1))", "(4,8):(8,1)"),
    ("fx.make_ordered_layout((4, 8), (1, 0))", "(4,8):(8,1)"),
    ("fx.make_layout_like(fx.make_layout((4, 8), (100, 1)))", "(4,8):(8,1)"),
    ("fx.make_identity_layout((4, 8))", "(4,8):(1E0,1E1)"),
    ("fx.make_composed_layout(fx.Swizzle(2, 0, 3), fx.make_layout(8, 1))", "S<2,0,3> o 0 o 8:1"),
    ("fx.make_composed_layout(fx.Swizzle(2, 0, 3), 4, fx.make_layout(8, 1))", "S<2,0,3> o 4 o 8:1"),
    ("fx.make_fragment_layout_like(fx.make_layout((4, 8), (8, 1)))", "(4,8):(1,4)"),
    ("fx.make_tile(4, None, fx.make_layout((2, 4), (1, 8)))", "[4|*|(2,4):(1,8)]"),
    ("fx.static('(4,8):(1,4)')", "(4,8):(1,4)"),
    ("fx.static(fx.make_layout(4, 1))", "4:1"),
    ("fx.E(0, 1)", "1E0E1"),
    ("fx.Basis(2, (0,))", "2E0"),
    ("fx.make_shape(4, (2, 8))", "(4, (2, 8))"),
    ("fx.make_stride(1, 4)", "(1, 4)"),
    ("fx.make_coord(1, 2)", "(1, 2)"),
    ("fx.make_int_tuple((1, 2))", "(1, 2)"),
    ("fx.make_int_tuple(7)", "7"),
    ("fx.rank(fx.make_layout((4, (2, 2)), (1, (4, 8))))", "2"),
    ("fx.depth(fx.make_layout((4, (2, 2)), (1, (4, 8))))", "2"),
    ("fx.size(((2, 3), 4))", "24"),
    ("fx.cosize(fx.make_layout((4, 2), (1, 8)))", "12"),
    ("fx.coshape(fx.make_layout((4, 2), (1, 8)))", "12"),
    ("fx.coprofile(fx.make_layout((4, 2), (1, 8)))", "0"),
    ("fx.get_scalar(((5,),))", "5"),
    ("fx.get_leaves((1, (2, 3)))", "(1, 2, 3)"),
    ("fx.get_shape(fx.make_layout((4, 2), (1, 4)))", "(4, 2)"),
    ("fx.get_stride(fx.make_layout((4, 2), (1, 4)))", "(1, 4)"),
    ("fx.composed_get_inner(fx.make_composed_layout(fx.Swizzle(2, 0, 3), 4, fx.make_layout(8, 1)))", "S<2,0,3>"),
    ("fx.composed_get_offset(fx.make_composed_layout(fx.Swizzle(2, 0, 3), 4, fx.make_layout(8, 1)))", "4"),
    ("fx.composed_get_outer(fx.make_composed_layout(fx.Swizzle(2, 0, 3), 4, fx.make_layout(8, 1)))", "8:1"),
    ("fx.is_profile_congruent((4, (2, 2)), (0, (0, 0)))", "True"),
    ("fx.is_profile_weakly_congruent(4, (2, 2))", "True"),
    ("fx.int_tuple_add((1, 2), (3, 4))", "(4, 6)"),
    ("fx.int_tuple_sub((5, 2), (3, 1))", "(2, 1)"),
    ("fx.int_tuple_mul((5, 2), (3, 4))", "(15, 8)"),
    ("fx.int_tuple_div((6, 8), (3, 4))", "(2, 2)"),
    ("fx.int_tuple_mod((7, 9), (3, 4))", "(1, 1)"),
    ("fx.int_tuple_product((2, (3, 4)))", "24"),
    ("fx.int_tuple_product_each((2, (3, 4)))", "(2, 12)"),
    ("fx.int_tuple_product_like((2, (3, 4)), (0, 0))", "(2, 12)"),
    ("fx.shape_div((4, 6), 8)", "(1, 3)"),
    ("fx.ceil_div(10, 4)", "3"),
    ("fx.elem_less((1, 2), (2, 3))", "True"),
    ("fx.equal((1, 2), (1, 2))", "True"),
    ("fx.get_((4, (2, 3)), (1, 0))", "2"),
    ("fx.get(fx.make_layout((4, 2), (1, 4)), 1)", "2:4"),
    ("fx.take((1, 2, 3), 1, 3)", "(2, 3)"),
    ("fx.select((1, 2, 3), [2, 0])", "(3, 1)"),
    ("fx.group(fx.make_layout((2, 3, 4), (1, 2, 6)), 0, 2)", "((2,3),4):((1,2),6)"),
    ("fx.append(fx.make_layout(4, 1), fx.make_layout(2, 4))", "(4,2):(1,4)"),
    ("fx.append((4,), n=3)", "(4, 1, 1)"),
    ("fx.prepend((4,), 2)", "(2, 4)"),
    ("fx.slice(fx.make_layout((4, 2), (1, 4)), (None, 1))", "4:1"),
    ("fx.dice(fx.make_layout((4, 2), (1, 4)), (None, 1))", "2:4"),
    ("fx.crd2idx((1, 1), fx.make_layout((4, 2), (1, 4)))", "5"),
    ("fx.idx2crd(5, fx.make_layout((4, 2), (1, 4)))", "(1, 1)"),
    ("fx.get_flat_coord(5, fx.make_layout((4, (2, 2)), (1, (4, 8))))", "(1, 1)"),
    ("fx.get_1d_coord(5, fx.make_layout((4, 2), (2, 1)))", "6"),
    ("fx.coalesce(fx.make_layout((4, 2), (1, 4)))", "8:1"),
    ("fx.composition(fx.make_layout((4, 2), (1, 8)), fx.make_layout(4, 2))", "(2,2):(2,8)"),
    ("fx.complement(fx.make_layout(4, 2), 24)", "(2,3):(1,8)"),
    ("fx.right_inverse(fx.make_layout((4, 2), (2, 1)))", "(2,4):(4,1)"),
    ("fx.left_inverse(fx.make_layout((4, 2), (2, 1)))", "(2,4):(4,1)"),
    ("fx.logical_divide(fx.make_layout(16, 1), fx.make_layout(4, 1))", "(4,4):(1,4)"),
    ("fx.zipped_divide(fx.make_layout((8, 8), (1, 8)), (4, 2))", "((4,2),(2,4)):((1,8),(4,16))"),
    ("fx.tiled_divide(fx.make_layout((8, 8), (1, 8)), (4, 2))", "((4,2),2,4):((1,8),4,16)"),
    ("fx.flat_divide(fx.make_layout((8, 8), (1, 8)), (4, 2))", "(4,2,2,4):(1,8,4,16)"),
    ("fx.logical_product(fx.make_layout(4, 1), fx.make_layout(2, 1))", "(4,2):(1,4)"),
    ("fx.zipped_product(fx.make_layout(4, 1), fx.make_layout(2, 1))", "(4,2):(1,4)"),
    ("fx.tiled_product(fx.make_layout(4, 1), fx.make_layout(2, 1))", "(4,2):(1,4)"),
    ("fx.flat_product(fx.make_layout(4, 1), fx.make_layout(2, 1))", "(4,2):(1,4)"),
    ("fx.blocked_product(fx.make_layout(4, 1), fx.make_layout(2, 1))", "(4,2):(1,4)"),
    ("fx.raked_product(fx.make_layout(4, 1), fx.make_layout(2, 1))", "(2,4):(4,1)"),
    ("fx.recast_layout(fx.make_layout(8, 1), 16, 32)", "4:1"),
    ("fx.tile_to_shape(fx.make_layout((2, 2), (1, 2)), (4, 4), (0, 1))", "((2,2),(2,2)):((1,4),(2,8))"),
    ("fx.make_layout_tv(fx.make_layout(4, 1), fx.make_layout(2, 1))", "((8,), (4,2):(2,1))"),
]


@pytest.mark.parametrize(("expression", "text"), STATIC, ids=[e[3:40] for e, _ in STATIC])
def test_static_values(expression: str, text: str) -> None:
    made = eval(expression, {"fx": fx})
    shown = str(made)
    assert shown == text or shown.replace(" ", "") == text.replace(" ", ""), shown


def test_layout_objects_behave_as_documented() -> None:
    layout = fx.make_layout((4, (2, 8)), (16, (8, 1)))
    assert layout.rank == 2 and layout.depth == 2 and layout.is_static and layout.is_static_shape
    assert layout.is_static_stride and layout.shape == (4, (2, 8)) and layout.stride == (16, (8, 1))
    assert layout[1] == fx.make_layout((2, 8), (8, 1)) and layout[-1] == layout[1] and layout[1, 0].stride == 8
    assert [str(m) for m in layout] == ["4:16", "(2,8):(8,1)"] and len(layout) == 2
    assert layout(1, (1, 3)) == 27 and layout(0) == 0
    assert layout.get_hier_coord(27) == (1, (1, 3)) and layout.get_flat_coord(27) == (1, 7)
    assert layout.get_1d_coord(27) == 29 and layout[None, (0, 0)] == fx.make_layout(4, 16)
    assert hash(layout) == hash(fx.Layout((4, (2, 8)), (16, (8, 1)))) and layout != fx.make_layout(4, 1)
    composed = fx.make_composed_layout(fx.Swizzle(2, 0, 3), layout)
    assert isinstance(composed, fx.ComposedLayout) and composed.outer == layout and composed.shape == layout.shape
    assert composed(0) == 0 and composed.rank == 2
    import copy

    assert copy.deepcopy(layout) == layout


def test_int_tuples_behave_as_documented() -> None:
    made = fx.make_int_tuple((4, (2, 8)))
    assert isinstance(made, tuple) and made.rank == 2 and made.depth == 2 and not made.is_leaf and made.is_static
    assert made.unpack() == (4, (2, 8)) and made.to_py_value() == (4, (2, 8)) and made[1].rank == 2
    with Tracing() as k:
        run_time = fx.make_int_tuple((k.arg(fx.Int32), 4))
        assert not run_time.is_static and type(run_time[0]) is fx.Int32
        with pytest.raises(TraceError, match="compile-time value"):
            run_time.to_py_value()
        assert len(fx.get_leaves(run_time, dynamic_only=True)) == 1


def test_run_time_leaves_are_numbers() -> None:
    with Tracing() as k:
        n, wide = k.arg(fx.Int32), k.arg(fx.Int64)
        layout = fx.make_layout((n, 4), (4, 1))
        assert type(layout.shape[0]) is fx.Int32 and str(layout.shape[1]) == "4" and not layout.is_static
        assert not layout.is_static_shape and layout.is_static_stride
        assert type(layout.shape[0] == 5) is fx.Boolean and type(layout.shape[0] < n + 1) is fx.Boolean
        assert type(fx.size(layout)) is fx.Int32 and type(fx.make_layout(wide, 1).shape) is fx.Int64
        assert type(fx.elem_less((n, 0), (4, 4))) is fx.Boolean and type(fx.equal(n, 4)) is fx.Boolean
        assert type(fx.crd2idx((n, 1), layout)) is fx.Int32
        with pytest.raises(TraceError, match="compile-time numbers"):
            fx.static(layout)
        with pytest.raises(TraceError, match="use an integer"):
            fx.make_layout(k.arg(fx.Float32), 1)


@flyc.kernel(known_block_size=(64, 1, 1))
def nested(y: fx.Tensor, n: fx.Int32, m: fx.Int32):
    layout = fx.make_layout(((2, n), (m, 4)), ((1, 2), (n * 8, n * 2)))
    at = fx.thread_idx.x
    total = fx.size(layout)
    crd = layout.get_flat_coord(fx.crd2idx(at, layout))
    if at < total:
        y[at, 0] = layout(at)
        y[at, 1] = crd[0]
        y[at, 2] = crd[1]
        y[at, 3] = fx.cosize(layout)
        y[at, 4] = fx.ceil_div(total, 3)
        y[at, 5] = fx.crd2idx(fx.idx2crd(at, layout), fx.make_ordered_layout(layout.shape, (0, 1)))


@pytest.mark.sim
@pytest.mark.parametrize(("n", "m"), [(3, 2), (1, 1), (5, 1), (2, 4)])
def test_run_time_layouts_equal_numpy(n: int, m: int) -> None:
    artifact = flyc.compile(nested, "i32[64,6]", "i32", "i32", arch="gfx942", stop_after="llvm")
    y = np.zeros((64, 6), np.int32)
    artifact.simulate(y, n, m, grid=(1, 1, 1))
    shape, stride = (2, n, m, 4), (1, 2, n * 8, n * 2)
    # The flat index runs through the first modes fastest.
    for i, (d, c, b, a) in enumerate(itertools.product(*map(range, reversed(shape)))):
        coord = (a, b, c, d)
        index = sum(x * s for x, s in zip(coord, stride))
        assert y[i, 0] == index
        assert (y[i, 1], y[i, 2]) == (a + 2 * b, c + m * d)
    assert (y[: 8 * n * m, 3] == 8 * n * m).all() and y[0, 4] == -(-8 * n * m // 3)


def test_misuse_of_layouts_is_explained() -> None:
    cases = [
        (lambda: fx.make_layout((4, 2), 1), LayoutError),
        (lambda: fx.composition(fx.make_layout((4, 6, 8), (2, 3, 5)), fx.make_layout(6, 3)), LayoutError),
        (lambda: fx.make_ordered_layout((4, 2), (0, 0)), LayoutError),
        (lambda: fx.complement(fx.make_layout((3, 2), (1, 2)), 12), LayoutError),
        (lambda: fx.composed_get_inner(fx.make_layout(4, 1)), TraceError),
        (lambda: fx.make_composed_layout(fx.Swizzle(1, 1, 1)), TraceError),
        (lambda: fx.recast_layout(fx.make_layout((3,), (5,)), 8, 16), LayoutError),
    ]
    for run, kind in cases:
        with pytest.raises(FlyError) as e:
            run()
        assert isinstance(e.value, kind) and e.value.fix, e.value


@flyc.kernel
def bad_divide(x: fx.Tensor):
    fx.composition(x, fx.make_layout(6, 3))


def test_layout_errors_name_the_line_of_the_author() -> None:
    with pytest.raises(LayoutError) as e:
        flyc.compile(bad_divide, "f32[4,6,8]:(2,3,5)", arch="gfx942", stop_after="llvm")
    assert "test_layouts.py:" in str(e.value.where)
