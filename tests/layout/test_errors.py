"""Each refusal names the operation, the layouts, the mode, the broken rule, and what to write instead."""

from __future__ import annotations

import pytest

from flyllvm.errors import FlyError, LayoutError
from flyllvm.layout import (
    ComposedLayout,
    Layout,
    Swizzle,
    append,
    composition,
    get,
    get_scalar,
    int_tuple_add,
    left_inverse,
    parse,
    recast_layout,
    select,
    slice_,
    take,
)
from flyllvm.layout.evaluate import compute, evaluate
from tests.layout.strategies import image


def test_a_wrong_composition_is_refused_with_operation_layouts_mode_and_divisibility():
    with pytest.raises(LayoutError) as e:
        compute("composition((4,6,8):(2,3,5), 6:3)")
    text = str(e.value)
    assert "composition((4,6,8):(2,3,5), 6:3)" in text
    assert "stride 3 neither divides nor is a multiple of the extent 4 of mode 0 (4:2) of A" in text
    assert "fix: use a stride that divides 4 or is a multiple of it" in text


def test_an_image_that_carries_out_of_a_mode_is_refused():
    with pytest.raises(LayoutError, match=r"mode 1 of B is 2:4.*carry out of mode 0 \(6:19\)"):
        compute("composition((6,9):(19,69), (4,2):(1,4))")


# expression -> part of the message, with the part that names the fix
REFUSALS = [
    ("composition((4,3):(1,8), 6:1)", "use an extent that is at most 4 or a multiple of 4"),
    ("composition(4:1, 2:-1)", "use strides of at least 0"),
    ("composition((4,8):(1,4), [2|2|2])", "tile [2|2|2] has rank 3, the layout (4,8):(1,4) has rank 2"),
    ("composition((4,8):(1,4), 4:1E2)", "use a path that A has"),
    ("composition(((2,2),8):((1,2),4), (2,2):(1E0,1E0E1))", "use basis strides of one depth"),
    ("logical_divide((4,8):(1,4), [2|2|2])", "use at most one tile mode for each mode of the layout"),
    ("zipped_divide((4,8):(1,4), [2|2|2])", "use at most one tile mode for each mode of the layout"),
    ("coalesce((4,8):(1,4), (1,1,1))", "give the pattern at most one entry for each mode"),
    ("complement((6,9):(19,69))", "modes 6:19 and 9:69 overlap"),
    ("complement((3,2):(1,2), 12)", "modes 3:1 and 2:2 overlap"),
    ("complement((2,3,6):(7,14,1), 756)", "modes 6:1 and 6:7 do not divide"),
    ("complement((4,8):(1E0,1E1), 64)", "use integer strides"),
    ("complement(4:1, 0)", "give the number of indices to cover"),
    ("complement(4:-1)", "the stride -1 is negative"),
    ("left_inverse((4,2):(1,0))", "drop the modes of stride 0"),
    ("left_inverse((6,9):(19,69))", "use a layout whose strides nest"),
    ("left_inverse((4,2):(1,?))", "make the strides static"),
    ("right_inverse((4,8):(1E0,1E1))", "use integer strides"),
    ("make_ordered_layout((4,8), (1,1))", "give each mode its own order"),
    ("make_ordered_layout((4,8), (0,1,2))", "give one order for each mode of the shape"),
    ("make_ordered_layout((4,8), (0,?))", "write the order as integers"),
    ("make_layout((4,8), (1,2,3))", "give one stride for each leaf of the shape"),
    ("make_layout((4,0), (1,4))", "every extent is at least 1"),
    ("make_layout((4,8), (1,*))", "write an integer or a basis leaf such as 1E0"),
    ("make_layout_like((4,8):(1E0,1E1))", "use integer strides"),
    ("recast_layout(16, 8, 3:1)", "extent 3 is not divisible by 2"),
    ("recast_layout(16, 8, 4:3)", "use a stride that divides"),
    ("recast_layout(32, 8, 2:1)", "use a run of 4 elements"),
    ("recast_layout(32, 8, (2,2):(1,8))", "use a run of 4 elements"),
    ("recast_layout(32, 8, 8:2)", "make the run contiguous"),
    ("recast_layout(8, 16, 4:2)", "no mode has stride 1"),
    ("recast_layout(8, 16, (4,4):(1,1))", "keep one mode of stride 1"),
    ("recast_layout(0, 16, 4:1)", "give both widths as positive ints, in bits"),
    ("recast_layout(16, 8, S<3,0,3> o 0 o (8,8):(8,1))", "use a swizzle with base 1 or more"),
    ("recast_layout(16, 8, S<3,3,3> o 1 o (8,8):(8,1))", "move the offset to a whole wide element"),
    ("recast_layout(24, 8, S<3,3,3> o 0 o (8,9):(9,1))", "use widths a power of two apart"),
    ("recast_layout(16, 8, CS<3,0,[0],0,[1]> o (0,0) o (8,8):(1E0,1E1))", "recast a layout or a swizzled layout"),
    ("shape_div((4,6), (2,4))", "use extents that divide"),
    ("int_tuple_div((4,6), (2,0))", "6 / 0"),
    ("int_tuple_add((1,2), (1,2,3))", "give both the same rank, or ask for broadcasting"),
    ("int_tuple_mul((1,2), 3)", "give both the same profile, or ask for broadcasting"),
    ("int_tuple_product_like((4,2), ((1,1),1))", "does not nest as deep as the guide"),
    ("elem_less((1,2), 3)", "give both the same profile"),
    ("crd2idx((1,2,3), (4,8):(1,4))", "give one coordinate for each mode, or one integer for all"),
    ("crd2idx(((1,2),3), (4,8):(1,4))", "give one integer for this mode"),
    ("idx2crd(3, (4,8):(1,5))", "use a compact layout"),
    ("idx2crd(3, (4,2):(1,0))", "use positive strides"),
    ("idx2crd(3, (4,2):(1E0,1E1))", "use integer strides"),
    ("take((1,2,3), 2, 1)", "use 0 <= begin < end <= 3"),
    ("select((1,2,3), (0,3))", "use indices from 0 to 2"),
    ("get((4,(2,3)), 1, 2)", "is outside 0..1"),
    ("get((4,(2,3)), 0, 0)", "4 has no modes"),
    ("get_scalar((4,5))", "select one mode first"),
    ("slice((4,8):(1,4), (*,1,2))", "give one entry for each mode"),
    ("get_stride(S<3,3,3> o 0 o (8,8):(8,1))", "ask for composed_get_outer first"),
    ("composed_get_inner((8,8):(8,1))", "pass A o offset o B"),
    ("coshape(S<3,3,3> o 0 o (8,8):(8,1))", "ask for its outer layout"),
    ("right_inverse(S<3,3,3>)", "pass shape:stride"),
    ("composition(S<3,3,3>, 4)", "compose a swizzle with a layout"),
    ("make_tile(0)", "use n >= 1, *, a layout or a nested tile"),
    ("tile_to_shape((4,8):(1,4), 64, 0)", "give the target one extent for each mode"),
    ("size(4, 5)", "size takes 1 arguments, got 2"),
    ("compositoin((4,8):(1,4), 4:1)", "operations:"),
    ("crd2idx((1,2), S<3,3,3>)", "a swizzle takes one index"),
    ("take((4,8):(1,4), (0,1))", "count modes from 0 with integers"),
    ("append((4,8):(1,4), 3)", "pass shape:stride"),
    ("append((4,8), 3:1)", "add an integer or an int tuple"),
    ("make_layout((4,()), (1,()))", "write 1 for a mode of one element"),
    ("S<3,3,0>", "shift is at least 1"),
    ("S<-1,3,3>", "bit counts of at least 0"),
    ("CS<3,0,[1],0,[1]>", "row and column must be different modes"),
    ("S<99999999999,3,3>", "an index has 63 bits"),
    ("CS<3,61,[1],0,[0]>", "moves bits up to bit 63"),
    ("4:1E999999999", "a coordinate has modes 0 to 1023"),
    ("crd2idx((1,2), (4,8):(1,1E0))", "use strides that are all integers or all basis leaves"),
]


@pytest.mark.parametrize(("expression", "message"), REFUSALS, ids=[r[0] for r in REFUSALS])
def test_refusal(expression, message):
    with pytest.raises(FlyError) as e:
        evaluate(expression)
    assert message in str(e.value)


@pytest.mark.parametrize("text", ["4:2", "(4,2):(1,16)", "((2,2),(2,2)):((1,4),(8,32))"])
def test_left_inverse_undoes_the_layout(text):
    layout = parse(text)
    inverse = left_inverse(layout)
    assert [inverse(x) for x in image(layout)] == list(range(len(image(layout))))


def test_nested_errors_name_the_outer_call_first():
    with pytest.raises(LayoutError, match=r"^logical_divide\(\(6,9\).*composition\(\(6,9\)"):
        compute("logical_divide((6,9):(19,69), (2,2):(2,1))")


def test_values_cannot_be_changed():
    for value, name in [(parse("4:1"), "shape"), (Swizzle(3, 3, 3), "mask"), (parse("[4|2]"), "modes")]:
        with pytest.raises(AttributeError, match="immutable"):
            setattr(value, name, 1)


def test_parts_of_composed_layouts_are_checked():
    with pytest.raises(LayoutError, match="use a layout or a swizzle"):
        ComposedLayout(4, 0, parse("4:1"))
    with pytest.raises(LayoutError, match="use a layout"):
        ComposedLayout(Swizzle(3, 3, 3), 0, Swizzle(3, 3, 3))


def test_other_objects_are_no_layouts():
    with pytest.raises(LayoutError, match="pass shape:stride"):
        composition(4, Layout(4, 1))


# ---- what is accepted -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("zipped_divide((8,16):(16,1), [*|4])", "((8,4),(1,4)):((16,1),(0,4))"),
        ("zipped_divide((8,16):(16,1), [2|*])", "((2,16),(4,1)):((16,1),(32,0))"),
        ("tiled_divide((8,16):(16,1), [2|4])", "((2,4),4,4):((16,1),32,4)"),
        ("logical_divide((8,16):(16,1), 4)", "(4,(2,16)):(16,(64,1))"),
        ("slice((4,8):(1,4), (*,3))", "4:1"),
        ("slice((4,(2,3)):(6,(3,1)), (*,(1,*)))", "(4,3):(6,1)"),
        ("slice((4,8):(1,4), (1,3))", "1:0"),
        ("slice((4,8), (1,3))", "()"),
        ("slice(S<3,3,3> o 0 o (8,8):(8,1), (2,*))", "S<3,3,3> o 16 o 8:1"),
        ("dice((4,8):(1,4), (*,3))", "8:4"),
        ("take((4,8,2):(1,4,32), 1)", "(8,2):(4,32)"),
        ("take((4,8,2), 1, 2)", "8"),
        ("select((4,8,2):(1,4,32), (2,0))", "(2,4):(32,1)"),
        ("group((4,8,2):(1,4,32), 1, 3)", "(4,(8,2)):(1,(4,32))"),
        ("append((4,8):(1,4))", "(4,8,1):(1,4,0)"),
        ("append(4, 2, 3)", "(4,2,2)"),
        ("prepend((4,8):(1,4), 3:2)", "(3,4,8):(2,1,4)"),
        ("get((4,(2,8)):(16,(8,1)), 1, 0)", "2:8"),
        ("int_tuple_sub((1,2), (3,4))", "(-2,-2)"),
        ("int_tuple_div((7,-7), (2,2))", "(3,-3)"),
        ("int_tuple_mod((7,-7), (2,2))", "(1,-1)"),
        ("int_tuple_product(((2,3),4))", "24"),
        ("int_tuple_product_like(((2,3),4), (1,1))", "(6,4)"),
        ("shape_div((4,8), 8)", "(1,4)"),
        ("ceil_div(12, (2,3))", "2"),
        ("elem_less((1,2), (2,3))", "true"),
        ("elem_less((1,2,3), (2,3))", "false"),
        ("equal((1,(2,3)), (1,(2,4)))", "false"),
        ("depth((4,(2,3)))", "2"),
        ("rank((4,(2,3)))", "2"),
        ("cosize(4:-2)", "7"),
        ("coshape((4,8):(1E0,1E1))", "(4,8)"),
        ("coprofile((4,8):(1E0,1E1))", "(0,0)"),
        ("crd2idx((*,3), (4,8):(1,4))", "12"),
        ("crd2idx((3,5), CS<3,0,[1],0,[0]>)", "(6,5)"),
        ("crd2idx((2,3), (4,8):(1E0,1E1))", "(2,3)"),
        ("composition((4,8):(1,4), (2,4):(1E1,1E0))", "(2,4):(4,1)"),
        ("composition(S<3,3,3>, (8,8):(8,1))", "S<3,3,3> o 0 o (8,8):(8,1)"),
        ("composition(S<2,0,3> o 0 o (8,8):(8,1), [2|4])", "S<2,0,3> o 0 o (2,4):(8,1)"),
        ("coalesce(S<2,0,3> o 0 o (8,8):(1,8))", "S<2,0,3> o 0 o 64:1"),
        ("recast_layout(8, 16, (4,8):(1,4))", "(8,8):(1,8)"),
        ("recast_layout(16, 8, (4,8):(8,1))", "(4,4):(4,1)"),
        ("recast_layout(8, 16, 1:0)", "2:1"),
        ("recast_layout(8, 12, (4,2):(1,4))", "(6,2):(1,6)"),
        ("recast_layout(16, 8, S<3,3,3> o 8 o (8,64):(64,1))", "S<3,2,3> o 4 o (8,32):(32,1)"),
        ("recast_layout(8, 16, S<3,3,3> o 1 o (8,64):(64,1))", "S<3,4,3> o 2 o (8,128):(128,1)"),
        ("recast_layout(16, 8, (2,2):(1,-4))", "(1,2):(1,-2)"),
        ("tile_to_shape(S<3,3,3> o 0 o (8,64):(64,1), (128,128), (0,1))",
         "S<3,3,3> o 0 o ((8,16),(64,2)):((64,512),(1,8192))"),
        ("make_fragment_layout_like(((2,4),8,2):((0,1),4,64))", "((2,4),8,2):((0,1),4,32)"),
        ("make_layout_tv((4,64):(64,1), (4,8):(8,1))", "(16,512), ((64,4),(8,4)):((128,4),(16,1))"),
        ("make_tile(4, *, (2,4):(1,8))", "[4|*|(2,4):(1,8)]"),
        ("get_shape(S<3,3,3> o 0 o (8,64):(64,1))", "(8,64)"),
        ("composed_get_offset(S<3,3,3> o 5 o (8,64):(64,1))", "5"),
        ("size(composition((4,8):(1,4), (2,4):(1,2)))", "8"),
    ],
)  # fmt: skip
def test_accepted(expression, expected):
    assert evaluate(expression) == expected


def test_broadcasting_is_on_request():
    assert int_tuple_add((1, (2, 3)), 10, broadcast=True) == (11, (12, 13))
    assert int_tuple_add((1, 2), (1, 2, 3), broadcast=True) == (2, 4, 3)


def test_python_forms():
    layout = Layout((4, (2, 8)), (16, (8, 1)))
    assert layout(3, (1, 7)) == layout((3, (1, 7))) == 3 * 16 + 8 + 7
    assert [str(m) for m in layout] == ["4:16", "(2,8):(8,1)"]
    assert get(layout, (1, 1)) == layout[1][1] == parse("8:1")
    assert slice_(layout, (None, (0, None))) == parse("(4,8):(16,1)")
    assert take(parse("S<1,0,1> o 0 o (4,8):(8,1)"), 1, 2) == parse("S<1,0,1> o 0 o 8:1")
    assert append(parse("S<1,0,1> o 0 o (4,8):(8,1)")) == parse("S<1,0,1> o 0 o (4,8,1):(8,1,0)")
    assert select(parse("[4|*|2]"), (2, 0)) == parse("[2|4]")
    assert get_scalar(((7,),)) == 7
    assert recast_layout(16, 16, layout) is layout
