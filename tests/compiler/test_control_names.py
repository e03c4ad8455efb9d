"""What statements do with names: the facts that the rewriting of loops and branches stands on."""

from __future__ import annotations

import ast
import textwrap

import pytest

from flyllvm.compiler.rewrite_names import assigned, declared, leaves_by, read_in_functions, set_first


def body(text):
    return ast.parse(textwrap.dedent(text)).body


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("a = b.c = d[0] = 1", ["a"]),
        ("(a, [b, *c]) = x\nd: int = 3\ne += 1", ["a", "b", "c", "d", "e"]),
        ("for i, j in x:\n    k = 1\nelse:\n    m = 2", ["i", "j", "k", "m"]),
        ("with f() as (a, b):\n    pass", ["a", "b"]),
        ("import os.path, sys as s\nfrom m import x as y", ["os", "s", "y"]),
        ("def f(a):\n    b = 1\nclass C:\n    d = 2", ["f", "C"]),
        ("try:\n    a = 1\nexcept E as e:\n    b = 2", ["a", "b", "e"]),
        ("x = [(q := i) for i in y if (r := i)]", ["q", "r", "x"]),
        ("g = lambda v: (w := v)", ["g"]),
        ("del a", ["a"]),
        ("match x:\n    case [a, *b]: pass\n    case {'k': c, **d}: pass\n    case P(z=e) as f: pass", list("abcdef")),
    ],
)
def test_assigned_names(text, names):
    assert sorted(assigned(body(text))) == sorted(names)


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("x = 1", None), ("if a:\n    return 1", "return"), ("break", "break"), ("if a:\n    continue", "continue"),
        ("for i in x:\n    break", None), ("for i in x:\n    pass\nelse:\n    break", "break"),
        ("while a:\n    if b:\n        return 1", "return"), ("x = yield 1", "yield"), ("f((yield))", "yield"),
        ("def f():\n    return 1", None), ("g = lambda: (yield)", None), ("with a:\n    break", "break"),
        ("try:\n    pass\nfinally:\n    return 1", "return"),
    ],
)  # fmt: skip
def test_statements_that_leave_a_body(text, way):
    assert leaves_by(body(text)) == way


@pytest.mark.parametrize(
    ("text", "late"),
    [
        ("a = 1\nb = a", "ab"),
        ("b = a\na = 1", "b"),
        ("a += 1", ""),
        ("if c:\n    a = 1", ""),
        ("if c:\n    a = 1\nelse:\n    a = 2", "a"),
        ("for i in range(x):\n    a = i", ""),
        ("for i in x:\n    a = i", "ai"),
        ("for i in x:\n    if c:\n        break\n    a = i", "i"),
        ("while c:\n    a = 1", ""),
        ("a = [i for i in x]\nb = {i: a for i in a}", "ab"),
        ("a = b\nif a:\n    b = 1\nelse:\n    b = 2", "ab"[:1]),
        ("with f() as a:\n    b = a", "ab"),
        ("try:\n    a = 1\nexcept E:\n    pass", ""),
        ("a = 1\ndel a", ""),
        ("a.x = 1\nb[a] = 2", ""),
        ("a, b = b, a", ""),
        ("def a():\n    return b\nb = 1", "ab"),
        ("x = (y := 1)\nz = y", "xz"),
        ("match c:\n    case 1:\n        a = 1\n    case _:\n        a = 2", ""),
    ],
)
def test_names_that_each_iteration_sets_first(text, late):
    assert sorted(set_first(body(text))) == sorted(late)


def test_the_condition_and_the_target_of_a_loop_count():
    (loop,) = body("while a < 3:\n    a = 1\n    b = 2")
    assert set_first(loop.body, loop.test) == {"b"}
    (loop,) = body("for i in x:\n    b = i")
    assert set_first(loop.body, None, loop.target) == {"i", "b"}


def test_declarations_of_the_scope_itself():
    text = "global a\nif x:\n    nonlocal b\ndef f():\n    global c"
    assert declared(body(text)) == ({"a"}, {"b"})


def test_names_that_nested_functions_mention():
    assert read_in_functions(body("a = b\nf = lambda: c\ndef g(d):\n    nonlocal e\n    return h")) == {"c", "e", "h"}
