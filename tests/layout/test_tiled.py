"""Thread-value layouts, tiled copies and tiled MMAs against brute force over threads and values."""

from __future__ import annotations

import itertools
from collections import Counter

import pytest

from flyllvm.errors import LayoutError
from flyllvm.layout import (
    ComposedLayout,
    Layout,
    Tile,
    check_thread_value,
    crd2idx,
    fragment_layout,
    make_layout_tv,
    mma_thread_coord,
    mma_thread_layout,
    parse,
    size,
    tiled_copy_partition,
    tiled_copy_retile,
    tiled_mma_partition,
    tiled_mma_slice,
    tiled_mma_tv,
)
from tests.layout.strategies import image

# 16x16x16 f16: lanes hold four consecutive k of one row; the accumulator four rows of one column.
ATOM = (16, 16, 16)
ATOM_A = ATOM_B = parse("((16,4),4):((1,64),16)")
ATOM_C = parse("((16,4),4):((16,4),1)")
WAVE = Layout(64, 1)
WAVES = parse("(2,2,1):(1,2,0)")


def test_thread_value_layout_of_256_threads_with_32_values_covers_each_element_once():
    tiler, tv = make_layout_tv(parse("(4,64):(64,1)"), parse("(4,8):(8,1)"))
    assert tiler == (16, 512)
    assert [size(Layout(s, d)) for s, d in zip(tv.shape, tv.stride, strict=True)] == [256, 32]
    assert sorted(image(tv)) == list(range(16 * 512))
    # Thread t, value v sit at row 4*(v//8)... of the definition: the raked product maps the element back.
    for t, v in itertools.product((0, 1, 63, 64, 255), range(32)):
        row, col = t // 64 * 4 + v // 8, t % 64 * 8 + v % 8
        assert crd2idx((t, v), tv) == row + 16 * col


def test_threads_that_skip_places_are_refused():
    with pytest.raises(LayoutError, match="use compact layouts"):
        make_layout_tv(parse("(4,8):(1,16)"), parse("2:1"))


def test_dynamic_thread_layouts_are_refused():
    with pytest.raises(LayoutError, match="use compile-time extents"):
        make_layout_tv(parse("?:1"), parse("4:1"))


UNIVERSAL_8 = parse("(1,8):(0,1)")


def copy_of(rows, cols, threads, vector):
    """A row-major tile spread over threads, ``vector`` consecutive elements each, value blocks down the rows."""
    across = cols // vector
    down = threads // across
    rest = rows // down
    return Layout(((across, down), (vector, rest)), ((rows * vector, 1), (rows, down)))


def test_tile_of_128x64_with_256_threads_and_16_byte_loads_is_covered():
    tv = copy_of(128, 64, 256, 8)
    part = tiled_copy_partition(parse("(128,64):(64,1)"), tv, (128, 64), UNIVERSAL_8, UNIVERSAL_8)
    assert sorted(image(part)) == list(range(128 * 64))
    assert size(Layout(part.shape[1], part.stride[1])) == 32


def test_tile_of_112x64_with_256_threads_and_16_byte_loads_is_refused():
    # 112 rows over 32 rows of threads leave half a step, which truncating division would drop.
    with pytest.raises(LayoutError, match="do not cover the 7168 elements"):
        tiled_copy_partition(parse("(112,64):(64,1)"), copy_of(112, 64, 256, 8), (112, 64), UNIVERSAL_8, UNIVERSAL_8)
    # The same with 28 values for each thread: 56 bytes, in loads of 16.
    tv = Layout((256, 28), (28, 1))
    with pytest.raises(LayoutError, match="has 28 values, which its atom of 8 values does not divide"):
        tiled_copy_partition(parse("(112,64):(64,1)"), tv, (112, 64), UNIVERSAL_8, UNIVERSAL_8)


def test_a_tile_that_does_not_divide_the_tensor_is_refused():
    with pytest.raises(LayoutError, match="mode 0 has 100 elements, the tile 128"):
        tiled_copy_partition(parse("(100,64):(64,1)"), copy_of(128, 64, 256, 8), (128, 64), UNIVERSAL_8, UNIVERSAL_8)


def test_rest_modes_step_over_the_tiles():
    tv = copy_of(32, 64, 256, 8)
    part = tiled_copy_partition(parse("(128,128):(128,1)"), tv, (32, 64), UNIVERSAL_8, UNIVERSAL_8)
    assert [size(Layout(s, d)) for s, d in zip(part.shape, part.stride, strict=True)] == [256, 8, 4, 2]
    assert sorted(image(part)) == list(range(128 * 128))


def test_a_swizzled_tensor_is_partitioned_in_its_outer_part():
    tensor = parse("S<3,3,3> o 0 o (32,64):(64,1)")
    part = tiled_copy_partition(tensor, copy_of(32, 64, 256, 8), (32, 64), UNIVERSAL_8, UNIVERSAL_8)
    assert isinstance(part, ComposedLayout)
    assert sorted(crd2idx(i, part) for i in range(32 * 64)) == list(range(32 * 64))


def test_an_atom_whose_sides_differ_permutes_only_the_other_side():
    ref, dst = parse("(4,2):(2,1)"), parse("(4,2):(1,4)")
    tv, tensor = parse("(4,2):(2,1)"), parse("8:1")
    as_ref = tiled_copy_partition(tensor, tv, 8, ref, ref)
    as_dst = tiled_copy_partition(tensor, tv, 8, ref, dst)
    # Element e of the atom sits with the reference thread of e on one side, with the other thread on the other.
    assert image(as_ref) == image(ref)
    assert image(as_dst) == image(dst)


def test_the_thread_count_is_checked():
    assert check_thread_value(parse("(64,4):(4,1)"), 256, 64) == 1
    assert check_thread_value(parse("((32,2),8):((8,0),1)"), 256) == 2
    with pytest.raises(LayoutError, match="launch 64 threads"):
        check_thread_value(parse("(64,4):(4,1)"), 256, 63)
    with pytest.raises(LayoutError, match="equally often"):
        check_thread_value(parse("(64,4):(3,1)"), 256)
    with pytest.raises(LayoutError, match=r"use \(threads,values\)"):
        check_thread_value(parse("256:1"), 256)


@pytest.mark.parametrize(
    ("operand", "tensor", "atom_tv", "shared"),
    [("a", "(64,32):(32,1)", ATOM_A, 2), ("b", "(64,32):(1,64)", ATOM_B, 2), ("c", "(64,64):(64,1)", ATOM_C, 1)],
)
def test_mma_partitions_cover_the_tensor_equally_often(operand, tensor, atom_tv, shared):
    layout = parse(tensor)
    part = tiled_mma_partition(operand, layout, atom_tv, ATOM, WAVES)
    threads = mma_thread_layout(WAVE, WAVES)
    seen = Counter()
    for t in range(256):
        fragment, offset = tiled_mma_slice(operand, part, mma_thread_coord(threads, t))
        assert len(fragment.shape) == 3
        seen.update(offset + x for x in image(fragment))
    assert set(seen) == set(range(size(layout)))
    assert set(seen.values()) == {shared}


def test_mma_fragments_hold_the_elements_of_the_lane():
    part = tiled_mma_partition("a", parse("(64,32):(32,1)"), ATOM_A, ATOM, WAVES)
    threads = mma_thread_layout(WAVE, WAVES)
    for t in (0, 1, 17, 63, 64, 128, 255):
        lane, wave = t % 64, t // 64
        fragment, offset = tiled_mma_slice("a", part, mma_thread_coord(threads, t))
        for v, m, k in itertools.product(range(4), range(2), range(2)):
            row = lane % 16 + 16 * (wave % 2) + 32 * m
            col = lane // 16 * 4 + v + 16 * k
            assert offset + crd2idx((v, m, k), fragment) == 32 * row + col


@pytest.mark.parametrize(("operand", "atom_tv", "extents"), [("a", ATOM_A, (32, 16)), ("c", ATOM_C, (32, 32))])
def test_mma_thread_value_layouts_agree_with_the_partition(operand, atom_tv, extents):
    got, tv = tiled_mma_tv(operand, atom_tv, ATOM, WAVES, WAVE)
    assert got == extents
    tile = Layout(extents, (1, extents[0]))
    part = tiled_mma_partition(operand, tile, atom_tv, ATOM, WAVES)
    threads = mma_thread_layout(WAVE, WAVES)
    for t in range(0, 256, 7):
        fragment, offset = tiled_mma_slice(operand, part, mma_thread_coord(threads, t))
        values = size(Layout(tv.shape[1], tv.stride[1]))
        assert [crd2idx((t, v), tv) for v in range(values)] == [offset + x for x in image(fragment)]


def test_permutations_move_whole_atoms():
    perm = Tile(parse("(16,2,2):(1,32,16)"), None, None)
    part = tiled_mma_partition("a", parse("(64,16):(1,64)"), ATOM_A, ATOM, WAVES, perm)
    fragment, offset = tiled_mma_slice("a", part, (0, 1, 0, 0))
    assert offset == 32  # the second wave's first atom sits two atoms on
    assert crd2idx((0, 1, 0), fragment) == 16


def test_a_tensor_that_the_mma_tile_does_not_divide_is_refused():
    with pytest.raises(LayoutError, match="mode 0 has 48 elements, the tile 32"):
        tiled_mma_partition("a", parse("(48,32):(32,1)"), ATOM_A, ATOM, WAVES)
    with pytest.raises(LayoutError, match="use one of a, b, c, d"):
        tiled_mma_partition("x", parse("(64,32):(32,1)"), ATOM_A, ATOM, WAVES)


def test_retile_walks_the_same_registers_in_the_copy_order():
    extents, tv = tiled_mma_tv("c", ATOM_C, ATOM, WAVES, WAVE)
    tensor = parse("(64,64):(64,1)")
    part = tiled_mma_partition("c", tensor, ATOM_C, ATOM, WAVES)
    threads = mma_thread_layout(WAVE, WAVES)
    for atom_values in (1, 2, 4):
        atom = Layout((1, atom_values), (0, 1))
        copy = tiled_copy_partition(tensor, tv, extents, atom, atom)
        for t in (0, 5, 77, 255):
            fragment, offset = tiled_mma_slice("c", part, mma_thread_coord(threads, t))
            registers = fragment_layout(fragment)
            walk = tiled_copy_retile(registers, tv, extents, atom_values)
            mine = [crd2idx((t, i), Layout((copy.shape[0], copy.shape[1:]), (copy.stride[0], copy.stride[1:])))
                    for i in range(size(fragment))]  # fmt: skip
            where = {crd2idx(i, registers): offset + crd2idx(i, fragment) for i in range(size(fragment))}
            assert [where[x] for x in image(walk)] == mine


def test_retile_refuses_an_atom_that_does_not_divide():
    extents, tv = tiled_mma_tv("c", ATOM_C, ATOM, WAVES, WAVE)
    with pytest.raises(LayoutError, match="use a smaller atom"):
        tiled_copy_retile(parse("(4,1,1):(1,0,0)"), tv, extents, 3)


def test_fragments_with_stages_hold_one_copy_for_each():
    assert fragment_layout(parse("(4,2,2):(1,64,256)"), 3) == parse("(4,2,2,3):(1,4,8,16)")
    with pytest.raises(LayoutError, match="use a positive int"):
        fragment_layout(parse("(4,2):(1,4)"), 0)
