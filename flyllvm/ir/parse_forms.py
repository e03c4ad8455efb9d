"""How the parser reads templates, slot by slot."""

from __future__ import annotations

import re

from .forms import Form, form_of
from .types import I1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from . import types as t
    from .core import Op, Value
    from .lexer import Token
    from .parser import Parser

_MARKS = re.compile(r"->|[A-Za-z_]\w*|[0-9]+|[^\s\w]")


class _Reading:
    """What the slots of one template have given so far."""

    __slots__ = ("attrs", "operands", "result", "token", "whole")

    def __init__(self, token: Token) -> None:
        self.token = token
        self.operands: list[Value] = []
        self.attrs: dict[str, Any] = {}
        self.result: t.Type | None = None
        self.whole: list[t.Type] | None = None


def read_template(p: Parser, cls: type[Op], token: Token) -> Op:
    """Reads an operation after its name in the form its class has."""
    form = form_of(cls)
    fix = f"write {cls.name}{'' if form.hint.startswith(('(', '[')) else ' '}{form.hint}"
    r = _Reading(token)
    for piece in form.pieces:
        if isinstance(piece, str):
            for mark in _MARKS.findall(piece):
                if p.tok.text != mark:
                    raise p.expected(f"{mark!r} of {cls.name}", fix)
                p.advance()
        else:
            _SLOTS[piece[0]](p, r, piece[1], fix)
    return cls(r.operands, _results(p, cls, form, r), r.attrs)


def _results(p: Parser, cls: type[Op], form: Form, r: _Reading) -> list[t.Type]:
    if r.whole is not None:
        return r.whole
    if form.has_result:
        return [] if r.result is None else [r.result]
    if form.infer is None:
        return []
    found = form.infer(r.operands, r.attrs)
    if found is None:
        raise p.fail(f"{cls.name}: the operands give no result type", f"write {cls.name} {form.hint}", r.token)
    return [found]


# --- slots -------------------------------------------------------------------------------------------


def _slot_operand(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    r.operands.append(p.use())


def _slot_type(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    token = p.tok
    type_ = p.type()
    for i in args:
        if i == "r":
            r.result = type_
        elif r.operands[int(i)].type != type_:
            raise p.fail(
                f"operand {i} has type {r.operands[int(i)].type}, the text says {type_}", "write the type it has", token
            )


def _slot_over(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    """A type that a comma follows is the condition's; without it the condition is an ``i1``."""
    if p.peek().text == ",":
        _slot_type(p, r, args, fix)
        p.advance()
    elif r.operands[int(args[0])].type != I1:
        raise p.fail(
            f"the condition has type {r.operands[int(args[0])].type}", "write its type before the values'", r.token
        )


def _slot_attrs(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    if p.is_("{"):
        token = p.tok
        for key, value in p.attr_dict().items():
            if key in r.attrs:
                raise p.fail(f"attribute {key!r} is given twice", "write it once", token)
            r.attrs[key] = value


def _slot_flags(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    if p.is_(args[0]) and p.peek().text == "<":
        p.advance()
        p.advance()
        flags = [p.take("word", "a flag").text]
        while p.accept(","):
            flags.append(p.take("word", "a flag").text)
        p.expect(">")
        r.attrs[args[0]] = tuple(flags)


def _slot_word(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    r.attrs[args[0]] = p.take("word", f"a {args[0]}", fix).text


def _slot_str(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    r.attrs[args[0]] = p.text(f"{args[0]} in quotes")


def _slot_int(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    r.attrs[args[0]] = p.integer()


def _slot_ints(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    numbers: list[int] = []
    while p.tok.kind == "number":
        numbers.append(p.integer())
        if not p.accept(","):
            break
    r.attrs[args[0]] = tuple(numbers)


def _slot_at(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    if p.tok.kind == "value":
        r.operands.append(p.use())
    else:
        r.attrs[args[0]] = p.integer(f"{args[0]} or a value")


def _slot_scope(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    if p.accept("syncscope"):
        p.expect("(")
        r.attrs[args[0]] = p.text("a scope in quotes")
        p.expect(")")


def _typed(p: Parser, r: _Reading, values: list[Value]) -> None:
    """`` : T, T`` of values that a list slot has read."""
    token = p.expect(":")
    types = [p.type()]
    while p.accept(","):
        types.append(p.type())
    p.check_types(values, types, token, "value")
    r.operands += values


def _slot_list(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    # A value may also start the next operation: "scf.yield" alone, then "%1 = ...".
    if p.tok.kind == "value" and p.peek().text != "=" and not (p.peek().text == ":" and p.peek(2).kind == "number"):
        values = [p.use()]
        while p.accept(","):
            values.append(p.use())
        _typed(p, r, values)


def _slot_more(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    values: list[Value] = []
    while p.accept(","):
        values.append(p.use())
    if values:
        _typed(p, r, values)


def _slot_call(p: Parser, r: _Reading, args: tuple[str, ...], fix: str) -> None:
    called = p.accept("(")
    if called:
        r.operands += p.uses(")")
    _slot_attrs(p, r, args, fix)
    token = p.expect(":", fix)
    if not called:
        r.whole = [p.type()]
        return
    types = p.type_list()
    p.expect("->", fix)
    r.whole = p.result_types()
    p.check_types(r.operands, types, token)


_SLOTS: dict[str, Callable[[Parser, _Reading, tuple[str, ...], str], None]] = {
    "operand": _slot_operand, "type": _slot_type, "over": _slot_over, "attrs": _slot_attrs, "flags": _slot_flags,
    "word": _slot_word, "str": _slot_str, "int": _slot_int, "ints": _slot_ints, "at": _slot_at, "scope": _slot_scope,
    "list": _slot_list, "more": _slot_more, "call": _slot_call,
}  # fmt: skip
