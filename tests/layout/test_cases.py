"""The recorded FlyDSL cases: each as expected, or a listed difference whose reason is checked by brute force."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from flyllvm.errors import LayoutError
from flyllvm.layout import (
    Layout,
    complement,
    crd2idx,
    fragment_layout,
    get,
    get_leaves,
    parse,
    same_tree,
    size,
    tiled_mma_partition,
    tiled_mma_slice,
    type_equal,
)
from flyllvm.layout.evaluate import compute, operations, render_value
from tests.layout.strategies import flat, image, value

CASES = json.loads((Path(__file__).parents[1] / "oracles" / "layout-cases.json").read_text())

# Cases that are no layout arithmetic: a pointer type does not change with an offset (the IR's tests own add_offset).
POINTER_CASES = [i for i, c in enumerate(CASES) if c["op"] == "add_offset"]

HOLES = "the tile has holes that no copy of it fills, so the recorded result misses elements of A"
OVERLAP = "the copies overlap the block in the recorded result"
LAW = "the recorded result is not A(B(i))"
RANK = "the tile has more modes than A; the recorded result ignores the second"
STAR = "'*' takes a mode whole; the recorded result splits its two sub-modes between tile and rest"

# op, arguments -> reason.  Each reason has its own proof below.
DIFFERENCES = {
    ("logical_divide", "(14,6,9):(19,69,1)", "(2,3,6):(7,14,1)"): HOLES,
    ("tiled_divide", "(14,6,9):(19,69,1)", "(2,3,6):(7,14,1)"): HOLES,
    ("blocked_product", "(5,15):(19,51)", "(2,4):(1,2)"): OVERLAP,
    ("logical_product", "(6,9):(19,69)", "8:1"): OVERLAP,
    ("logical_product", "(5,15):(19,51)", "(2,4):(4,1)"): OVERLAP,
    ("raked_product", "(6,9):(19,69)", "(4,2):(1,4)"): OVERLAP,
    ("tiled_product", "(5,15):(19,51)", "(4,2):(1,4)"): OVERLAP,
    ("tiled_product", "(6,9):(19,69)", "(2,4):(1,2)"): OVERLAP,
    ("logical_divide", "(6,9):(19,69)", "(2,2):(2,1)"): LAW,
    ("composition", "8:2", "[(2,2):(1,2)|4:1]"): RANK,
    ("composition", "8:2", "[2|4]"): RANK,
    ("zipped_divide", "((4,2),(3,2)):((1,4),(8,24))", "[2|*]"): STAR,
    ("flat_divide", "((2,4),8):((1,16),2)", "[*|4]"): STAR,
}


def key(case):
    return (case["op"], *(a["value"] for a in case["args"]))


def expression(case):
    return f"{case['op']}({', '.join(a['value'] for a in case['args'])})"


def through_grammar(case):
    return case["op"] in operations() and all(a["kind"] not in ("memref", "tiled_mma", "ptr") for a in case["args"])


GRAMMAR_CASES = [c for c in CASES if through_grammar(c)]
SAME = [c for c in GRAMMAR_CASES if key(c) not in DIFFERENCES and c["expected"]["kind"] != "raw"]
RAW = [c for c in GRAMMAR_CASES if c["expected"]["kind"] == "raw"]


def test_every_case_is_accounted_for():
    api = [c for c in CASES if not through_grammar(c) and c["op"] in ("get_layout", "mma.make_fragment")]
    different = [c for c in GRAMMAR_CASES if key(c) in DIFFERENCES]
    assert len(CASES) == 374
    assert len(SAME) + len(RAW) + len(different) + len(api) + len(POINTER_CASES) == len(CASES)
    assert {key(c) for c in different} == set(DIFFERENCES)


@pytest.mark.parametrize("case", SAME, ids=expression)
def test_result_is_the_recorded_one(case):
    assert type_equal(compute(expression(case)), parse(case["expected"]["value"]))


def test_results_that_are_types_only():
    # The recorded answer is a scalar's type; get_scalar and get_leaves keep width and value, equal gives a truth value.
    got = {key(c): render_value(compute(expression(c))) for c in RAW}
    assert got == {
        ("get_scalar", "?"): "?",
        ("get_scalar", "((((?))))"): "?",
        ("get_leaves", "(4,?,?{i64})"): "(4,?,?{i64})",
        ("equal", "(1E0,1E1)", "(1E0,1E1)"): "true",
        ("equal", "(1)", "(1E0)"): "false",
    }


def test_fragment_of_a_tiled_mma_with_stages():
    case = next(c for c in CASES if c["op"] == "mma.make_fragment")
    tensor = parse(case["args"][1]["value"].split(",", 2)[2])
    tv = parse("((16,4),4):((1,64),16)")
    part = tiled_mma_partition("b", tensor, tv, (16, 16, 16), parse("(1,1,1):(0,1,2)"))
    fragment, _ = tiled_mma_slice("b", part, (0, 0, 0, 0))
    assert fragment_layout(fragment, 2) == parse(case["expected"]["value"].split(",", 2)[2])


def test_layout_of_a_memref_is_the_layout_it_prints():
    case = next(c for c in CASES if c["op"] == "get_layout")
    assert parse(case["args"][0]["value"].split(",", 2)[2]) == parse(case["expected"]["value"])


@pytest.mark.parametrize("k", [k for k, why in DIFFERENCES.items() if why is HOLES], ids=str)
def test_holes_the_recorded_divide_loses_elements(k):
    a, b = parse(k[1]), parse(k[2])
    recorded = parse(next(c for c in CASES if key(c) == k)["expected"]["value"])
    assert size(recorded) < size(a)
    assert set(image(recorded)) < set(image(a))
    with pytest.raises(LayoutError, match="6:1 and 6:7 do not divide"):
        compute(f"{k[0]}({a}, {b})")


@pytest.mark.parametrize("k", [k for k, why in DIFFERENCES.items() if why is OVERLAP], ids=str)
def test_overlap_the_recorded_product_hits_an_index_twice(k):
    recorded = image(parse(next(c for c in CASES if key(c) == k)["expected"]["value"]))
    assert len(set(image(parse(k[1])))) == size(parse(k[1]))  # the block alone does not overlap
    assert len(set(recorded)) < len(recorded)
    with pytest.raises(LayoutError, match="overlap"):
        compute(f"{k[0]}({k[1]}, {k[2]})")


def test_law_the_recorded_divide_is_no_composition():
    k = next(k for k, why in DIFFERENCES.items() if why is LAW)
    a, b = parse(k[1]), parse(k[2])
    recorded = parse(next(c for c in CASES if key(c) == k)["expected"]["value"])
    both = Layout((b.shape, complement(b, size(a)).shape), (b.stride, complement(b, size(a)).stride))
    assert image(recorded) != [value(a, value(both, i)) for i in range(size(both))]
    with pytest.raises(LayoutError, match="stride 4 neither divides nor is a multiple of the extent 6"):
        compute(f"{k[0]}({a}, {b})")


@pytest.mark.parametrize("k", [k for k, why in DIFFERENCES.items() if why is RANK], ids=str)
def test_rank_a_longer_tile_is_refused_with_both_ranks(k):
    with pytest.raises(LayoutError, match="has rank 2, the layout 8:2 has rank 1"):
        compute(f"{k[0]}({k[1]}, {k[2]})")


@pytest.mark.parametrize("k", [k for k, why in DIFFERENCES.items() if why is STAR], ids=str)
def test_star_the_untouched_mode_stays_whole(k):
    a, tile = parse(k[1]), parse(k[2])
    ours = compute(f"{k[0]}({a}, {tile})")
    recorded = parse(next(c for c in CASES if key(c) == k)["expected"]["value"])
    assert sorted(image(ours)) == sorted(image(recorded)) == sorted(image(a))
    star = 0 if tile.modes[0] is not tile.modes[1] and str(tile.modes[0]) == "*" else 1
    kept = get(ours, star) if k[0] == "flat_divide" else get(ours, 0, star)
    assert kept == get(a, star)
    recorded_part = get(recorded, star) if k[0] == "flat_divide" else get(recorded, 0, star)
    assert size(recorded_part) < size(get(a, star))


def test_no_case_ends_the_process_and_none_returns_a_size_zero_mode():
    for c in GRAMMAR_CASES:
        try:
            result = compute(expression(c))
        except LayoutError:
            continue
        if isinstance(result, Layout):
            assert all(not (type(s) is int and s < 1) for s in flat(result.shape))
            assert same_tree(result.shape, result.shape)
            assert get_leaves(result)
            if result.is_static and not any(str(d).count("E") for d in flat(result.stride)):
                last = size(result) - 1
                assert crd2idx(last, result) == value(result, last)
