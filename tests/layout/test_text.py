"""The text form reads back, malformed text names the column, and the command answers line by line."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import pickle
import xml.etree.ElementTree as ET

import pytest
from hypothesis import given, strategies as st

from flyllvm.cli.layout_cmd import run
from flyllvm.errors import LayoutError, ParseError
from flyllvm.layout import ComposedLayout, Layout, Swizzle, parse, type_equal
from flyllvm.layout.evaluate import compute, evaluate, operations
from flyllvm.layout.svg import draw
from tests.layout.strategies import layouts

FORMS = [
    "7",
    "-3",
    "*",
    "?",
    "?{i64}",
    "?{div=8}",
    "?{i64 div=8}",
    "?E0",
    "1E0E1",
    "()",
    "(7)",
    "((4))",
    "(2,(3,4))",
    "(4,?{div=16}):(?{i64},1)",
    "(4,8):(1E0,1E1)",
    "[4|*|(2,4):(1,8)]",
    "[[4|2]|*]",
    "S<3,3,3>",
    "CS<3,0,[1],0,[2,1]>",
    "S<3,3,3> o 0 o (8,8):(8,1)",
    "CS<3,0,[1],0,[2]> o (0,0,0) o (4,8,8):(1E0,1E1,1E2) o (1,2,3) o (2,4,8):(1E0,1E1,1E2)",
    "32:2 o 0 o [32:1 o 0 o (4,8):(1,4)]",
]


@pytest.mark.parametrize("text", FORMS)
def test_printed_form_is_what_was_read(text):
    value = parse(text)
    assert evaluate(text) == text
    assert type_equal(parse(evaluate(text)), value)


@pytest.mark.parametrize("text", ["S<3,3,3>o 0 o(8,8):(8,1)", " S< 3, 3,3 > o 0 o ( 8 , 8 ) : (8,1) "])
def test_blanks_do_not_matter(text):
    assert parse(text) == ComposedLayout(Swizzle(3, 3, 3), 0, Layout((8, 8), (8, 1)))


@pytest.mark.parametrize("text", [f for f in FORMS if "?" not in f])
def test_values_copy_and_pickle(text):
    value = parse(text)
    assert copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value
    if not isinstance(value, tuple):
        assert hash(copy.deepcopy(value)) == hash(value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected an integer, '?', '*' or '(' at column 1, found the end"),
        ("(4,8", "expected ',' or ')' at column 5, found the end"),
        ("(4,8):", "at column 7"),
        ("(4,8):(1,4) x", "expected the end at column 13"),
        ("S<3,3>", "expected ',' at column 6"),
        ("CS<3,0,1,0,[2]>", "expected '[' at column 8"),
        ("?{i16}", "'i64', 'div='"),
        ("4 o 0", "expected 'o' and the outer layout"),
        ("[4|", "at column 4"),
        ("size(4)", "expected a value at column 1"),
        ("9" * 30, "at most 18 digits"),
        ("(" * 100_000, "nests too deep"),
    ],
)
def test_malformed_text_names_the_column(text, message):
    with pytest.raises(ParseError) as e:
        parse(text)
    assert message in str(e.value)


def test_only_text_is_read():
    with pytest.raises(ParseError, match="needs text"):
        parse(4)


@given(st.text("()[]:,|*?{}ESCo <>0123456789size", max_size=20))
def test_no_text_raises_anything_else(text):
    with contextlib.suppress(ParseError, LayoutError):
        compute(text)


@given(st.sampled_from(operations()), st.lists(st.sampled_from(FORMS), min_size=0, max_size=3))
def test_no_mix_of_arguments_raises_anything_else(name, args):
    with contextlib.suppress(ParseError, LayoutError):
        evaluate(f"{name}({', '.join(args)})")


def test_one_result_a_line_and_status_0(capsys):
    assert run(["composition((4,8):(1,4), (2,4):(1,2))", "size((4,8))"]) == 0
    assert capsys.readouterr().out == "(2,4):(1,2)\n32\n"


def test_a_wrong_line_prints_its_error_and_the_rest_goes_on(capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("size((4,8))\ncomposition((4,6,8):(2,3,5), 6:3)\n\nsize(7)\n"))
    assert run(["rank((1,2))", "-"]) == 2
    lines = capsys.readouterr().out.splitlines()
    assert [lines[i] for i in (0, 1, 3, 4)] == ["2", "32", "", "7"]
    assert lines[2].startswith("error: composition((4,6,8):(2,3,5), 6:3): ")
    assert lines[2].endswith("(fix: use a stride that divides 4 or is a multiple of it)")


def test_json_is_one_list(capsys):
    assert run(["size((4,8))", "size("], json=True) == 2
    first, second = json.loads(capsys.readouterr().out)
    assert first == {"expr": "size((4,8))", "result": "32"}
    assert second["expr"] == "size("
    assert "column 6" in second["error"]


def test_no_expression_is_bad_input(capsys):
    assert run([]) == 2
    assert "fix: flyllvm layout" in capsys.readouterr().err


def cells(picture):
    root = ET.fromstring(picture)
    return [t.text for t in root.iter("{http://www.w3.org/2000/svg}text") if t.get("class") == "c"]


def test_a_layout_is_drawn_as_its_grid_of_values():
    assert cells(draw([("A", parse("(2,3):(3,1)"))])) == ["0", "1", "2", "3", "4", "5"]
    assert cells(draw([("A", parse("(2,2):(1E0,1E1)"))])) == ["(0,0)", "(0,1)", "(1,0)", "(1,1)"]


def test_a_swizzle_is_drawn_over_one_period():
    assert cells(draw([("S", Swizzle(1, 0, 1))])) == ["0", "1", "3", "2"]


def test_a_thread_value_layout_is_drawn_on_its_tile(tmp_path, capsys):
    out = tmp_path / "tv.svg"
    assert run(["make_layout_tv((2,2):(2,1), (1,2):(2,1))"], svg=str(out)) == 0
    assert cells(out.read_text()) == ["T0V0", "T0V1", "T1V0", "T1V1", "T2V0", "T2V1", "T3V0", "T3V1"]


@pytest.mark.parametrize(
    ("value", "message"),
    [("7", "draw a layout"), ("?:1", "draw a static layout"), ("100000:1", "draw at most 16384 cells")],
)
def test_what_cannot_be_drawn_is_said(value, message):
    with pytest.raises(LayoutError, match=message):
        draw([("x", parse(value))])


def test_pictures_that_cannot_be_written_are_said(tmp_path, capsys):
    assert run(["4:1"], svg=str(tmp_path / "no" / "x.svg")) == 2
    assert "give a file that can be written" in capsys.readouterr().err
    assert run(["size("], svg=str(tmp_path / "x.svg")) == 2
    assert "give a layout expression" in capsys.readouterr().err
    assert run(["size(4)"], svg=str(tmp_path / "x.svg")) == 2
    assert "draw a layout" in capsys.readouterr().err


@given(layouts())
def test_any_small_layout_can_be_drawn(layout):
    assert len(cells(draw([("x", layout)]))) > 0
