"""The syntax tree of a function: parsed alone it is what the whole file gives."""

from __future__ import annotations

import ast
from pathlib import Path
from types import CodeType

import pytest

from flyllvm.compiler import rewrite_source
from flyllvm.compiler.rewrite_source import _alone

ROOT = Path(__file__).parents[2]
FILES = [*ROOT.glob("examples/*.py"), *ROOT.glob("flyllvm/expr/*.py"), *ROOT.glob("tests/sim/*.py")]

TRICKY = '''
import x
@deco
@deco(
    1,
)
def decorated(
    a, b,
):

    return a

@deco
def spread(a,
b):
    return a

def text():
    """begins
at the left
def inside(): pass
    """
    return 1
# a remark at the left
    # and one inside

def bracket():
    y = f(1,
2)
    return y

def more(
    a,
):
    s = \\
1
    return s
if True:
    def indented():
        return 3
class C:
    def method(self):
        def inner():
            return 1
        return inner
def last(): return [
1
]
x = lambda: (
    1)
'''


def codes(code: CodeType) -> list[CodeType]:
    inner = [c for c in code.co_consts if isinstance(c, CodeType)]
    return inner + [c for i in inner for c in codes(i)]


@pytest.mark.parametrize("path", FILES, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_a_function_parsed_alone_is_that_of_the_whole_file(path: Path) -> None:
    check(path.read_text(encoding="utf-8"), str(path))


def test_what_belongs_to_strings_and_brackets_does_not_end_a_function() -> None:
    alone = check(TRICKY, "tricky.py")
    assert alone == {"decorated"}


def check(text: str, name: str) -> set[str]:
    """Names of the functions that are told alone; each is compared with the tree of the whole."""
    lines = text.splitlines(keepends=True)
    whole = {
        (n.name, rewrite_source.first_line(n)): ast.dump(n, include_attributes=True)
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.FunctionDef)
    }
    alone = set()
    for code in codes(compile(text, name, "exec", dont_inherit=True)):
        found = _alone(code, lines)
        if found is not None:
            assert ast.dump(found.node, include_attributes=True) == whole[code.co_name, code.co_firstlineno]
            alone.add(code.co_name)
    return alone
