"""Values as trees: what can differ at run time, and that rebuilding gives an equal value."""

from __future__ import annotations

from collections import namedtuple
from types import SimpleNamespace

import pytest

import flyllvm.expr as fx
from flyllvm.expr.control_join import Joined
from flyllvm.expr.control_slot import Mismatch, number_type
from flyllvm.expr.control_state import UNSET, State
from flyllvm.expr.control_tree import describe, flatten, same
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Value
from flyllvm.ir.location import UNKNOWN
from flyllvm.target import Target

WAYS = ("in one branch", "in the other")
Point = namedtuple("Point", "x y")


@pytest.fixture
def builder():
    with Builder(Kernel("k", UNKNOWN), Target.parse("gfx942")) as b:
        yield b


def parts(b):
    t = fx.thread_idx.x
    tensor = fx.make_view(fx.make_rmem_tensor(4, fx.Float32).iter, fx.make_layout((2, 2), (1, 2)))
    atom = fx.make_copy_atom(fx.rocdl.BufferCopy(32), fx.Float32)
    mma = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
    tiled = fx.make_tiled_copy_tv(atom, fx.make_layout(64, 1), fx.make_layout(1, 1))
    layout = fx.make_layout((4, t), (1, 4))
    coords = fx.make_view((t, 0), fx.make_identity_layout((8, 8)))
    matrix = fx.make_tiled_mma(mma, fx.make_layout((1, 1, 1), (0, 0, 0)))
    return [
        t, 3, 2.5, True, None, "text", tensor, tensor.load(), tensor.iter, atom, mma, tiled, tiled.get_slice(t), matrix,
        matrix.get_slice(t), layout, coords, Point(t, 1), SimpleNamespace(a=t, b=2), {"k": [t, (1, t)]}, [],
    ]  # fmt: skip


def test_rebuilding_from_the_same_leaves_gives_an_equal_tree(builder):
    for x in parts(builder):
        tree = flatten(x)
        again = flatten(tree.rebuild(tree.leaves))
        assert type(tree.rebuild(tree.leaves)) is type(x)
        assert again.key == tree.key
        assert all(a is b or same(a, b) for a, b in zip(again.leaves, tree.leaves, strict=True))


def test_run_time_parts_are_leaves_and_static_ones_are_the_key(builder):
    t = fx.thread_idx.x
    counts = {
        "number": (t, 1), "layout": (fx.make_layout((4, t), (1, t)), 2), "static": (fx.make_layout(4, 1), 0),
        "list": ([t, [t, 1]], 3),
    }  # fmt: skip
    for x, leaves in counts.values():
        assert len(flatten(x).leaves) == leaves


def test_dicts_of_another_order_have_one_key_and_keep_their_order(builder):
    a, b = {"x": 1, "y": 2}, {"y": 2, "x": 1}
    assert flatten(a).key == flatten(b).key and flatten(a).leaves == flatten(b).leaves
    assert list(flatten(b).rebuild([5, 6])) == ["y", "x"]


@pytest.mark.parametrize(
    ("a", "b", "equal"),
    [(1, 1, True), (1, True, False), (1, 1.0, False), (0.0, -0.0, False), ("a", "a", True), (None, None, True)],
)
def test_two_leaves_are_the_same_only_with_their_type(a, b, equal):
    assert same(a, b) is equal


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        (1, 2, fx.Int32), (True, False, fx.Boolean), (True, 2, fx.Int32), (1, 2.0, fx.Float32), (1, 1 << 40, fx.Int64),
        (fx.Int64(1), 2, fx.Int64), (2, fx.Float16(1), fx.Float16), (fx.Int32(1), 2.5, None),
        (fx.Int32(1), fx.Float32(1), None), (fx.Uint8(3), 300, None),
    ],
)  # fmt: skip
def test_the_type_two_numbers_have_in_common(a, b, kind):
    assert number_type(a, b) is kind


def test_numbers_of_two_types_meet_where_promotion_is_wanted():
    assert number_type(fx.Int32(1), fx.Float32(1), promoting=True) is fx.Float32
    assert number_type(fx.Boolean(1), fx.Int32(1), promoting=True) is fx.Int32


def test_only_differing_leaves_get_a_slot(builder):
    t = fx.thread_idx.x
    joined = Joined("x", flatten([t, 1, 2, "a"]), flatten([t, 1, 3, "a"]), WAYS)
    assert list(joined.slots) == [2]


@pytest.mark.parametrize(
    ("a", "b", "says", "fix"),
    [
        ([1], [1, 2], "a list of 1 in one branch and a list of 2 in the other", "keep its type"),
        ({"a": 1}, {"b": 1}, "a dict with keys ['a']", "keep its type"),
        ("a", "b", "'a' in one branch", "fx.const_expr"),
        (None, fx.Float32(1), "None in one branch", "fx.Float32(0)"),
        (fx.Int32(1), fx.Float32(1), "Int32(1) in one branch and Float32(1.0) in the other", "fx.Float32(...)"),
    ],
)
def test_a_mismatch_names_both_values_and_what_to_write(a, b, says, fix):
    with pytest.raises(Mismatch) as caught:
        Joined("x", flatten(a), flatten(b), WAYS)
    assert says in str(caught.value) and fix in caught.value.fix


def test_pointers_of_another_alignment_meet_at_the_weaker_one(builder):
    p = builder.shared(fx.Float32.ir, 64, 16)
    q = builder.add_offset(p, 1)
    (slot,) = Joined("p", flatten(fx.Pointer(p)), flatten(fx.Pointer(q)), WAYS).slots.values()
    assert slot.type.align == 4
    assert isinstance(slot.value(0), Value) and slot.value(0).type == slot.type and slot.value(1) is q


def test_an_author_class_that_refuses_to_compare_is_not_the_same(builder):
    class Odd:
        def __eq__(self, other):
            raise ValueError

        __hash__ = None

    assert same(Odd(), Odd()) is False


def test_describe_names_each_kind(builder):
    t = fx.thread_idx.x
    assert describe(t) == "a run-time Int32"
    assert describe(fx.Float32(2)) == "Float32(2.0)"
    assert describe((1, 2)) == "a tuple of 2" and describe(object()) == "a object"


# --- state ----------------------------------------------------------------------------------------


class Held:
    def __init__(self):
        self.items = {1, 2}


def make():
    value, unset, xs, d, held = 1, 2, [1, [2]], {"a": 3}, Held()
    del unset

    def helper():
        xs[1].append(9)

    def body():
        nonlocal value, unset
        value, unset = 5, 6
        xs.append(4)
        d["b"] = 1
        held.items.add(3)
        held.new = 1
        helper()

    return body, lambda: (value, xs, d, held.__dict__)


def test_a_state_puts_back_variables_containers_and_attributes_in_place():
    body, read = make()
    state = State([body], ["value", "unset"])
    before = state.snapshot()
    kept = read()
    body()
    assert read() == (5, [1, [2, 9], 4], {"a": 3, "b": 1}, {"items": {1, 2, 3}, "new": 1})
    state.restore(before)
    assert read() == (1, [1, [2]], {"a": 3}, {"items": {1, 2}})
    assert read()[1] is kept[1] and state.cells["unset"] is not None
    assert before.cells["unset"] is UNSET


TABLE = [1, 2]


def test_a_state_reaches_module_globals_that_functions_use():
    def body():
        TABLE.append(3)

    state = State([body], [])
    before = state.snapshot()
    body()
    state.restore(before)
    assert TABLE == [1, 2]
