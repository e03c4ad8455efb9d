"""The laws of the algebra, over random layouts, against evaluation by the definition."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, strategies as st

from flyllvm.errors import LayoutError
from flyllvm.layout import (
    Layout,
    blocked_product,
    coalesce,
    complement,
    composition,
    cosize,
    covers,
    crd2idx,
    flat_divide,
    flat_product,
    get_1d_coord,
    get_flat_coord,
    idx2crd,
    left_inverse,
    logical_divide,
    logical_product,
    make_fragment_layout_like,
    make_layout_like,
    make_layout_tv,
    make_ordered_layout,
    parse,
    raked_product,
    recast_layout,
    right_inverse,
    size,
    tile_to_shape,
    tiled_divide,
    tiled_product,
    zipped_divide,
    zipped_product,
)
from tests.layout.strategies import compact_layouts, count, flat, image, layouts, nesting_layouts, tiles, value

DIVIDES = [logical_divide, zipped_divide, tiled_divide, flat_divide]
PRODUCTS = [logical_product, zipped_product, tiled_product, flat_product, blocked_product, raked_product]


def try_(fn, *args):
    try:
        return fn(*args)
    except LayoutError:
        return None


@given(layouts(), st.data())
def test_crd2idx_is_the_definition_at_every_coordinate_and_past_the_end(layout, data):
    i = data.draw(st.integers(0, 3 * size(layout)))
    assert crd2idx(i, layout) == value(layout, i)


def coordinates(shape):
    if not isinstance(shape, tuple):
        return list(range(shape))
    out = [()]
    for m in shape:
        out = [(*c, x) for x in coordinates(m) for c in out]
    return out


@given(layouts(3))
def test_nested_coordinates_run_column_major(layout):
    assert [crd2idx(c, layout) for c in coordinates(layout.shape)] == image(layout)


@given(layouts())
def test_coalesce_keeps_the_function_inside_and_is_flat(layout):
    merged = coalesce(layout)
    assert image(merged) == image(layout)
    assert all(not isinstance(m, tuple) for m in (merged.shape if isinstance(merged.shape, tuple) else ()))
    shapes, strides = flat(merged.shape), flat(merged.stride)
    assert all(s * d != e for s, d, e in zip(shapes, strides, strides[1:], strict=False))


@given(layouts())
def test_coalesce_by_pattern_keeps_rank_and_function(layout):
    assume(isinstance(layout.shape, tuple))
    merged = coalesce(layout, (1,) * len(layout.shape))
    assert len(merged.shape) == len(layout.shape)
    assert image(merged) == image(layout)


@given(layouts(), layouts(3))
def test_composition_is_a_of_b_or_is_refused(a, b):
    r = try_(composition, a, b)
    if r is not None:
        assert image(r) == [value(a, x) for x in image(b)]


def is_layout(seq):
    """Whether a sequence is the image of some layout whose extents multiply to its length."""
    if seq[0] != 0:
        return False
    n = len(seq)
    if all(x == i * seq[min(1, n - 1)] for i, x in enumerate(seq)):
        return True
    for k in range(2, n):
        if n % k == 0:
            head, heads = seq[:k], seq[::k]
            if all(x == i * head[1] for i, x in enumerate(head)) and is_layout(heads):
                return all(seq[i] == head[i % k] + heads[i // k] for i in range(n))
    return False


@given(st.lists(st.sampled_from([2, 3, 4, 6]), min_size=1, max_size=3), layouts(3))
def test_composition_refuses_only_what_no_layout_can_say(extents, b):
    # Strides so far apart that no two digits of A can stand in for each other by accident.
    a = Layout(tuple(extents), tuple(1000**i + 7 for i in range(len(extents))))
    if try_(composition, a, b) is not None:
        return
    parts = [Layout(s, d) for s, d in zip(flat(b.shape), flat(b.stride), strict=True)]
    separate = [[value(a, x) for x in image(p)] for p in parts]
    sums = [0]
    for part in separate:
        sums = [x + y for y in part for x in sums]
    assert sums != [value(a, x) for x in image(b)] or not all(is_layout(p) for p in separate)


@given(layouts(), tiles())
def test_composition_by_tile_is_mode_by_mode(a, tile):
    r = try_(composition, a, tile)
    if r is None or not isinstance(a.shape, tuple):
        return
    for i, t in enumerate(tile.modes):
        mode = Layout(a.shape[i], a.stride[i])
        got = Layout(r.shape[i], r.stride[i])
        inner = t if isinstance(t, Layout) else mode if str(t) == "*" else Layout(t, 1)
        expected = image(mode) if str(t) == "*" else [value(mode, x) for x in image(inner)]
        assert image(got) == expected


@given(layouts(3), layouts(2), layouts(2))
def test_composition_is_associative_where_it_exists(a, b, c):
    ab, bc = try_(composition, a, b), try_(composition, b, c)
    if ab is None or bc is None or cosize(c) > size(b):
        return
    left, right = try_(composition, ab, c), try_(composition, a, bc)
    if left is not None and right is not None:
        assert image(left) == image(right)


@given(layouts(), st.integers(1, 200))
def test_complement_is_disjoint_ordered_and_covers(layout, codomain):
    rest = try_(complement, layout, codomain)
    if rest is None:
        return
    strides = flat(rest.stride)
    assert strides == sorted(strides)
    reached = set(image(layout))
    pieces = [x + y for y in image(rest) for x in reached]
    assert len(set(pieces)) == len(pieces)
    assert set(range(codomain)) <= set(pieces)
    assert rest(0) == 0


@given(nesting_layouts(), st.integers(1, 4))
def test_complement_of_a_nesting_layout_exists(layout, times):
    assert size(complement(layout, cosize(layout) * times)) >= 1


@given(layouts())
def test_right_inverse_law(layout):
    inverse = right_inverse(layout)
    assert [value(layout, x) for x in image(inverse)] == list(range(size(inverse)))


@given(compact_layouts())
def test_inverses_of_a_bijection_are_whole(layout):
    assert size(right_inverse(layout)) == size(layout)
    assert [value(left_inverse(layout), x) for x in image(layout)] == list(range(size(layout)))


@given(layouts())
def test_left_inverse_law_or_refusal(layout):
    inverse = try_(left_inverse, layout)
    if inverse is not None:
        assert [value(inverse, x) for x in image(layout)] == list(range(size(layout)))
    else:
        merged = coalesce(layout)
        pairs = sorted(zip(flat(merged.stride), flat(merged.shape), strict=True))
        nests = all(e % d == 0 and e >= d * s for (d, s), (e, _) in zip(pairs, pairs[1:], strict=False) if d)
        assert pairs[0][0] == 0 or not nests


@given(nesting_layouts())
def test_left_inverse_of_a_nesting_layout_exists(layout):
    assert [value(left_inverse(layout), x) for x in image(layout)] == list(range(size(layout)))


@given(layouts(), layouts(2))
def test_logical_divide_is_the_composition_with_tile_and_complement(a, b):
    r = try_(logical_divide, a, b)
    if r is None:
        return
    rest = complement(b, size(a))
    assert image(r) == [value(a, x + y) for y in image(rest) for x in image(b)]


@given(compact_layouts(), compact_layouts(2))
def test_divides_that_fit_keep_the_elements(a, b):
    assume(size(a) % size(b) == 0)
    for fn in DIVIDES:
        r = try_(fn, a, b)
        if r is not None:
            assert size(r) == size(a)
            assert sorted(image(r)) == sorted(image(a))


@given(layouts(), tiles())
def test_divides_by_tile_agree_on_their_elements(a, tile):
    results = [try_(fn, a, tile) for fn in DIVIDES]
    assert len({r is None for r in results}) == 1
    if results[0] is not None:
        assert len({tuple(sorted(image(r))) for r in results}) == 1
        whole = [
            str(t) == "*" or (type(t) is int and count(m) % t == 0) for t, m in zip(tile.modes, modes(a), strict=False)
        ]
        if all(whole):
            assert {size(r) for r in results} == {size(a)}


def modes(layout):
    return layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)


@given(layouts(3), layouts(2))
def test_products_repeat_the_block_at_disjoint_places(a, b):
    block, copies = image(a), None
    for fn in PRODUCTS:
        r = try_(fn, a, b)
        if r is None:
            continue
        assert size(r) == size(a) * size(b)
        got = sorted(image(r))
        copies = copies or got
        assert got == copies
        if len(set(image(b))) == size(b) and len(set(block)) == size(a):
            assert len(set(got)) == len(got)


@given(layouts(3), layouts(2))
def test_logical_product_has_the_block_first(a, b):
    r = try_(logical_product, a, b)
    if r is not None:
        assert image(r)[: size(a)] == image(a)


@given(compact_layouts(3), compact_layouts(2))
def test_products_of_compact_layouts_exist(a, b):
    for fn in PRODUCTS:
        assert size(fn(a, b)) == size(a) * size(b)


@given(compact_layouts(2), st.integers(1, 3), st.integers(1, 3))
def test_tile_to_shape_covers_the_target(block, m, n):
    assume(isinstance(block.shape, tuple) and len(block.shape) == 2)
    target = (count(block.shape[0]) * m, count(block.shape[1]) * n)
    r = tile_to_shape(block, target, (0, 1))
    assert tuple(count(s) for s in r.shape) == target
    assert sorted(image(r)) == list(range(m * n * size(block)))


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.data())
def test_ordered_layouts_are_compact_in_their_order(shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    r = make_ordered_layout(tuple(shape), tuple(order))
    assert sorted(image(r)) == list(range(size(r)))
    by_order = [d for _, d in sorted(zip(order, r.stride, strict=True))]
    assert by_order == sorted(by_order)


@given(layouts())
def test_layout_like_is_compact_over_the_modes_that_step(layout):
    r = make_layout_like(layout)
    assert r.shape == layout.shape
    steps = [s for s, d in zip(flat(layout.shape), flat(layout.stride), strict=True) if d]
    assert sorted(set(image(r))) == list(range(count(tuple(steps))))
    zero = [d == 0 for d in flat(layout.stride)]
    assert [d == 0 for d in flat(r.stride)] == zero


@given(layouts())
def test_fragment_layouts_keep_the_size_and_repeat_only_nested_zero_strides(layout):
    r = make_fragment_layout_like(layout)
    assert size(r) == size(layout)
    first = modes(r)[0]
    repeated = [s for s, d in zip(flat(first), flat(r.stride), strict=False) if d == 0]
    assert len(set(image(r))) == size(r) // count(tuple(repeated))


@given(nesting_layouts())
def test_recast_to_narrow_and_back_is_the_same_map(layout):
    narrow = try_(recast_layout, 8, 32, layout)
    if narrow is None:
        return
    assert size(narrow) == 4 * size(layout)
    assert sorted(image(narrow)) == sorted(4 * x + k for x in image(layout) for k in range(4))
    assert image(recast_layout(32, 8, narrow)) == image(layout)


@given(layouts())
def test_recast_to_wide_joins_whole_runs_or_is_refused(layout):
    wide = try_(recast_layout, 16, 8, layout)
    if wide is None or len(set(image(layout))) < size(layout):
        return
    places = sorted(image(layout))
    if size(wide) == size(layout):
        assert [2 * x for x in image(wide)] == image(layout) or count(layout.shape) == 1
    else:
        assert sorted(2 * x + k for x in image(wide) for k in range(2)) == places


@given(compact_layouts())
def test_index_and_coordinate_are_inverse_on_compact_layouts(layout):
    for i in range(min(size(layout), 40)):
        c = idx2crd(i, layout)
        assert crd2idx(c, layout) == i
        assert crd2idx(get_flat_coord(i, layout), layout) == i
        assert value(layout, get_1d_coord(i, layout)) == i


@given(layouts())
def test_idx2crd_is_right_or_refused(layout):
    if try_(idx2crd, 0, layout) is None:
        return
    for i in image(layout)[:40]:
        assert crd2idx(idx2crd(i, layout), layout) == i


@given(layouts(), st.integers(1, 200))
def test_covers_is_brute_force_coverage(layout, n):
    places = image(layout)
    times = {places.count(i) for i in range(n)} if set(places) == set(range(n)) else {0}
    assert covers(layout, n) == (times.pop() if len(times) == 1 else 0)


@given(compact_layouts(2), compact_layouts(2))
def test_thread_value_layouts_cover_the_tile_once(thr, val):
    tiler, tv = make_layout_tv(thr, val)
    assert sorted(image(tv)) == list(range(count(tiler)))
    assert tuple(count(m) for m in tv.shape) == (size(thr), size(val))


@given(layouts())
def test_printed_layouts_read_back(layout):
    assert parse(str(layout)) == layout


@given(tiles())
def test_printed_tiles_read_back(tile):
    assert parse(str(tile)) == tile


@pytest.mark.parametrize("text", ["(4,8):(4,1)", "((2,2),4):((1,8),2)"])
def test_results_are_the_same_object_on_static_layouts(text):
    assert composition(parse(text), parse("2:1")) is composition(parse(text), parse("2:1"))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("(4,8):(8,1)", "2:5", "2:9"),  # 5 is one step in each digit, taken once
        ("(6,9):(19,69)", "(2,2):(1,8)", "(2,2):(19,107)"),
        ("(4,4,4):(1,8,64)", "3:5", "3:9"),
        ("(2,4,2):(8,100,1000)", "4:12", "(2,2):(1200,3000)"),  # two steps fill a turn of the middle digit
    ],
)
def test_few_steps_that_never_carry_compose_although_nothing_divides(a, b, expected):
    assert composition(parse(a), parse(b)) == parse(expected)
