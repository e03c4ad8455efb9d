"""How the parser reads constants and control flow, which have no template."""

from __future__ import annotations

from . import types as t
from .core import Block
from .facts import UNKNOWN, loop_index
from .ops_arith import Constant
from .ops_control import Condition, For, If, While, Yield

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .core import Op, Value
    from .facts import Facts
    from .lexer import Token
    from .parser import Parser


def _constant(p: Parser, cls: type[Op], token: Token, depth: int) -> Op:
    attrs = p.attr_dict() if p.is_("{") else {}
    if "value" in attrs:
        raise p.fail("the value is given twice", "write it after the attributes only", token)
    if p.tok.text in ("true", "false"):
        return Constant((), [t.I1], {"value": int(p.advance().text == "true"), **attrs})
    numbers, is_tuple = _numbers(p)
    type_ = p.type() if p.accept(":") else None
    if type_ is None:
        raise p.expected("':' and the type of the constant", "write e.g. arith.constant 5 : i32")
    if not isinstance(type_, (t.ScalarType, t.VectorType)):
        raise p.fail(f"a constant of type {type_}", "constants are numbers and vectors of them", token)
    elem = t.scalar_of(type_)
    values = [_constant_number(p, v, tok, elem) for v, tok in numbers]
    return Constant((), [type_], {"value": tuple(values) if is_tuple else values[0], **attrs})


def _numbers(p: Parser) -> tuple[list[tuple[Any, Token]], bool]:
    """``5``, ``dense<5>`` or ``dense<[1, 2]>`` with the token of each number."""

    def one() -> tuple[Any, Token]:
        token = p.tok
        if token.text in ("true", "false", "nan", "inf"):
            word = p.advance().text
            return (float(word) if word in ("nan", "inf") else int(word == "true")), token
        return p.number(), token

    if not p.accept("dense"):
        return [one()], False
    p.expect("<")
    is_tuple = p.accept("[")
    numbers = [one()]
    while is_tuple and p.accept(","):
        numbers.append(one())
    if is_tuple:
        p.expect("]")
    p.expect(">")
    return numbers, is_tuple


def _constant_number(p: Parser, value: Any, token: Token, elem: t.ScalarType) -> int | float:
    if isinstance(elem, t.FloatType):
        return p.float_value(value, elem, token)
    if not isinstance(value, int):
        raise p.fail(f"{token.text} is no integer for {elem}", "write an integer, or use a float type", token)
    return value


def _typed_region(
    p: Parser, args: list[tuple[Token, t.Type]], depth: int, implicit: bool, first: Facts = UNKNOWN
) -> Block:
    """A region of control flow; a missing ``scf.yield`` of nothing is added."""
    end = p.tok
    block = p.region(args, depth + 1, first)
    if implicit and not (block.ops and isinstance(block.ops[-1], (Yield, Condition))):
        made = block.append(Yield())
        made.loc = p.own_location(end)
    return block


def _if(p: Parser, cls: type[Op], token: Token, depth: int) -> Op:
    cond = p.use()
    if cond.type != t.I1:
        raise p.fail(f"the condition of scf.if has type {cond.type}", "compare first: the condition is an i1", token)
    types = p.type_list() if p.accept("->") else []
    then = _typed_region(p, [], depth, not types)
    if p.accept("else"):
        other = _typed_region(p, [], depth, not types)
    elif types:
        raise p.expected("'else': the if has results", "yield the results in both branches")
    else:
        other = _empty(p, token, depth)
    attrs = p.attr_dict() if p.is_("{") else {}
    return If([cond], types, attrs, [then, other])


def _empty(p: Parser, token: Token, depth: int) -> Block:
    block = Block((), None, depth + 1)
    block.append(Yield()).loc = p.own_location(token)
    return block


def _carried(p: Parser, stop: str) -> list[tuple[Token, Value]]:
    """``%a = %x, %b = %y`` up to a mark that is taken."""
    out: list[tuple[Token, Value]] = []
    while not p.accept(stop):
        if out:
            p.expect(",")
        name = p.take("value", "a carried value such as %a")
        p.expect("=")
        out.append((name, p.use()))
    return out


def _for(p: Parser, cls: type[Op], token: Token, depth: int) -> Op:
    fix = "write scf.for %i = %low to %high step %step [iter_args(%a = %x) -> (TYPE)] : TYPE { ... }"
    index = p.take("value", "the index such as %i", fix)
    p.expect("=", fix)
    bounds = [p.use()]
    p.expect("to", fix)
    bounds.append(p.use())
    p.expect("step", fix)
    bounds.append(p.use())
    carried, types = [], []
    if p.accept("iter_args"):
        p.expect("(")
        carried = _carried(p, ")")
        p.expect("->", fix)
        types = p.type_list()
    p.expect(":", fix)
    type_ = p.type()
    inits = [v for _, v in carried]
    p.check_types(inits, types, token, "carried value")
    p.check_types(bounds, [type_] * 3, token, "bound")
    args = [(index, type_), *((name, x) for (name, _), x in zip(carried, types))]
    low, high, by = ((v.divisibility, v.range) for v in bounds)
    first = loop_index(low, high, by, type_.bits) if isinstance(type_, t.IntType) else UNKNOWN
    body = _typed_region(p, args, depth, not types, first)
    attrs = p.attr_dict() if p.is_("{") else {}
    return For([*bounds, *inits], types, attrs, [body])


def _while(p: Parser, cls: type[Op], token: Token, depth: int) -> Op:
    carried = _carried(p, ")") if p.accept("(") else []
    inits = [v for _, v in carried]
    p.expect(":", "write scf.while (%a = %x) : (TYPE) -> TYPE { ... } do { ... }")
    types = p.type_list()
    p.check_types(inits, types, token, "carried value")
    p.expect("->")
    results = p.result_types()
    before = _typed_region(p, [(name, v.type) for name, v in carried], depth, False)
    p.expect("do", "write scf.while (%a = %x) : (TYPE) -> TYPE { ... } do { ... }")
    after = _typed_region(p, [], depth, not types)
    attrs = p.attr_dict() if p.is_("{") else {}
    return While(inits, results, attrs, [before, after])


SPECIAL: dict[type[Op], Callable[[Parser, type[Op], Token, int], Op]] = {
    Constant: _constant,
    If: _if,
    For: _for,
    While: _while,
}
