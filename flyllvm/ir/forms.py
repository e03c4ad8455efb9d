"""The textual forms of operations: one template per class, read by the printer and by the parser.

A template is the text after the operation's name, with slots:

* ``$0`` ... ``$9``: an operand.
* ``$type(0,1,r)``: the type that these operands (and ``r``, the result) have in common.
* ``$over(0)``: the type of a condition and a comma; nothing for a plain ``i1``.
* ``$attrs``: `` {name = value, ...}`` with every attribute no other slot shows; nothing without one.
* ``$flags(NAME)``: `` NAME<a, b>``; nothing when the attribute is absent or empty.
* ``$word(NAME)``, ``$int(NAME)``, ``$ints(NAME)``, ``$str(NAME)``: the attribute as a bare word, an integer, integers
  separated by commas, a quoted text.
* ``$at(NAME,1)``: the attribute as an integer, or operand 1 when the operation has it.
* ``$scope(NAME)``: `` syncscope("...")``; nothing without the attribute.
* ``$list(N)``: operands from N on, with their types: `` %a, %b : f32, i32``; nothing without operands.
* ``$more(N)``: the same with a comma in front of each operand.
* ``$call``: every operand, attributes and types: ``(%a, %b) {...} : (T, T) -> R``; without operands `` {...} : R``.

An operation that a template cannot say (a wrong number of operands, types that differ) prints in the generic form,
``"arith.addi"(%0) : (i32) -> i32``, which the parser reads for every operation.
"""

from __future__ import annotations

import re

from . import ops_arith as a, ops_atoms as f, ops_control as c, ops_vector as v, types as t
from .core import Op

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .core import Value

    Slot = tuple[str, tuple[str, ...]]

#: Template of every operation that is not spelled by hand (constants and control flow are), by class.
TEMPLATES: dict[type[Op], str] = {
    Op: "$call",
    a.IntBinary: " $0, $1$flags(overflow)$attrs : $type(0,1,r)",
    a.FloatBinary: " $0, $1$flags(fastmath)$attrs : $type(0,1,r)",
    a.FloatUnary: " $0$flags(fastmath)$attrs : $type(0,r)",
    a.IntUnary: " $0$attrs : $type(0,r)",
    a.Fma: " $0, $1, $2$flags(fastmath)$attrs : $type(0,1,2,r)",
    a.CmpI: " $word(predicate), $0, $1$attrs : $type(0,1)",
    a.CmpF: " $word(predicate), $0, $1$flags(fastmath)$attrs : $type(0,1)",
    a.Select: " $0, $1, $2$attrs : $over(0)$type(1,2,r)",
    a.Cast: " $0$attrs : $type(0) to $type(r)",
    a.Bitcast: " $0$attrs : $type(0) to $type(r)",
    v.Broadcast: " $0$attrs : $type(0) to $type(r)",
    v.Extract: " $0[$at(position,1)]$attrs : $type(r) from $type(0)",
    v.Insert: " $0, $1[$at(position,2)]$attrs : $type(0) into $type(1,r)",
    v.Slice: " $0 {offsets = [$int(offset)], sizes = [$int(size)], strides = [1]} : $type(0) to $type(r)",
    v.InsertSlice: " $0, $1 {offsets = [$int(offset)], strides = [1]} : $type(0) into $type(1,r)",
    v.Shuffle: " $0, $1 [$ints(mask)]$attrs : $type(0), $type(1)",
    v.Reduction: " <$word(kind)>, $0$flags(fastmath)$attrs : $type(0) into $type(r)",
    c._Id: " $word(dimension)$attrs",
    c.LaneId: "$attrs",
    c.Barrier: "$attrs",
    c.Fence: "$scope(syncscope) $word(ordering)$attrs",
    c.Printf: " $str(format)$more(0)$attrs",
    c.CallIntrinsic: " $str(intrin)$call",
    c.Yield: "$list(0)$attrs",
    c.Condition: "($0)$list(1)$attrs",
    c.Return: "$attrs",
    f.AtomSetValue: "($0, $str(field), $1)$attrs : ($type(0), $type(1)) -> $type(r)",
}


def _i1_like(operands: Sequence[Value], attrs: dict[str, Any]) -> t.Type:
    return t.like(operands[0].type, t.I1)


def _shuffled(operands: Sequence[Value], attrs: dict[str, Any]) -> t.Type | None:
    mask, vector = attrs.get("mask"), operands[0].type
    if isinstance(mask, tuple) and mask and isinstance(vector, t.VectorType):
        return t.value_type(len(mask), vector.elem)
    return None


def _i32(operands: Sequence[Value], attrs: dict[str, Any]) -> t.Type:
    return t.I32


#: Result type where the template does not spell it: a function of operands and attributes.
INFER: dict[type[Op], Callable[[Sequence[Value], dict[str, Any]], t.Type | None]] = {
    a.CmpI: _i1_like,
    a.CmpF: _i1_like,
    v.Shuffle: _shuffled,
    c._Id: _i32,
    c.LaneId: _i32,
}

_SLOT = re.compile(r"\$(?:(\d)|([a-z]+)(?:\(([^)]*)\))?)")


class Form:
    """A template cut into pieces.

    Attributes:
        pieces: Literal text, or ``(slot kind, arguments)``.
        arity: Operands the slots name, -1 when a slot takes any number.
        shown: Attributes that have a slot of their own.
        has_attrs: A slot shows all other attributes.
        infer: Gives the result type when no slot spells it, else ``None``.
        has_result: A type slot spells the result.
        hint: The form in words, for messages.
    """

    __slots__ = ("arity", "has_attrs", "has_result", "hint", "infer", "pieces", "shown")

    def __init__(self, template: str, infer: Callable[[Sequence[Value], dict[str, Any]], t.Type | None] | None) -> None:
        self.pieces: list[str | Slot] = []
        self.shown: set[str] = set()
        self.infer = infer
        self.has_attrs = self.has_result = False
        count, any_number, end = 0, False, 0
        for m in _SLOT.finditer(template):
            if m.start() > end:
                self.pieces.append(template[end : m.start()])
            end = m.end()
            kind, args = ("operand", (m[1],)) if m[1] else (m[2], tuple((m[3] or "").split(",")))
            self.pieces.append((kind, args))
            if kind == "operand":
                count = max(count, int(args[0]) + 1)
            elif kind in ("list", "more", "call", "at"):
                any_number = True
            self.has_attrs |= kind in ("attrs", "call")
            self.has_result |= (kind == "type" and "r" in args) or kind == "call"
            if kind in ("flags", "word", "int", "ints", "str", "at", "scope"):
                self.shown.add(args[0])
        if end < len(template):
            self.pieces.append(template[end:])
        self.arity = -1 if any_number else count
        self.hint = _SLOT.sub(_words, template).strip()


def _words(m: re.Match[str]) -> str:
    if m[1]:
        return "%" + "abcdefghij"[int(m[1])]
    name = (m[3] or "").split(",")[0]
    return {
        "type": "TYPE", "over": "[TYPE, ]", "attrs": " [{...}]", "flags": f" [{name}<...>]", "word": name.upper(),
        "int": "N", "ints": "N, ...", "str": '"..."', "at": "N", "scope": ' [syncscope("...")]',
        "list": " [%x, ... : TYPE, ...]",
        "more": " [, %x, ... : TYPE, ...]", "call": "(%a, ...) [{...}] : (TYPE, ...) -> TYPE",
    }[m[2]]  # fmt: skip


_FORMS: dict[type[Op], Form] = {}


def form_of(cls: type[Op]) -> Form:
    """The form of an operation class: its own, or the nearest base class's."""
    found = _FORMS.get(cls)
    if found is None:
        base = next(b for b in cls.__mro__ if b in TEMPLATES)
        infer = next((INFER[b] for b in cls.__mro__ if b in INFER), None)
        found = _FORMS[cls] = Form(TEMPLATES[base], infer)
    return found
