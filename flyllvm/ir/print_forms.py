"""How the printer fills the slots of templates, and the operations that it spells by hand."""

from __future__ import annotations

from .attr_text import NAME, number_text, quote
from .facts import loop_index
from .ops_arith import Constant
from .ops_control import Condition, For, If, While, Yield
from .types import I1, IntType, ScalarType, VectorType, scalar_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from .core import Block, Op, Value
    from .printer import Printer
    from .types import Type


def _slot_operand(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    i = int(args[0])
    return p.use(op.operands[i]) if i < len(op.operands) else None


def _slot_type(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    if "r" in args and len(op.results) != 1:
        return None
    types = {(op.results[0] if i == "r" else op.operands[int(i)]).type for i in args}
    return types.pop().text if len(types) == 1 else None


def _slot_over(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    type_ = op.operands[int(args[0])].type
    return "" if type_ == I1 else f"{type_}, "


def _slot_attrs(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    return p.attrs(rest)


def _slot_flags(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    flags = op.attrs.get(args[0])
    if not flags:
        return "" if flags in (None, ()) else None
    if not isinstance(flags, tuple) or not all(isinstance(f, str) and NAME.match(f) for f in flags):
        return None
    return f" {args[0]}<{', '.join(flags)}>"


def _slot_word(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    word = op.attrs.get(args[0])
    return word if isinstance(word, str) and NAME.match(word) else None


def _slot_str(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    text = op.attrs.get(args[0])
    return quote(text) if isinstance(text, str) else None


def _slot_int(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    number = op.attrs.get(args[0])
    return str(number) if type(number) is int else None


def _slot_ints(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    numbers = op.attrs.get(args[0])
    if not isinstance(numbers, tuple) or not all(type(n) is int for n in numbers):
        return None
    return ", ".join(map(str, numbers))


def _slot_at(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    n = int(args[1])
    if len(op.operands) == n:
        return _slot_int(p, op, args, rest)
    if len(op.operands) != n + 1 or op.attrs.get(args[0]) is not None or op.operands[n].type.text != "i32":
        return None
    return p.use(op.operands[n])


def _slot_scope(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    scope = op.attrs.get(args[0])
    if scope is None:
        return ""
    return f" syncscope({quote(scope)})" if isinstance(scope, str) else None


def _typed(p: Printer, values: Sequence[Value], lead: str) -> str:
    return lead + p.uses(values) + " : " + ", ".join(v.type.text for v in values) if values else ""


def _slot_list(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    return _typed(p, op.operands[int(args[0]) :], " ")


def _slot_more(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    return _typed(p, op.operands[int(args[0]) :], ", ")


def _slot_call(p: Printer, op: Op, args: tuple[str, ...], rest: dict[str, Any]) -> str | None:
    if not op.operands and len(op.results) == 1:
        return f"{p.attrs(rest)} : {op.results[0].type}"
    return f"({p.uses(op.operands)}){p.attrs(rest)} : {function_type(op)}"


def function_type(op: Op) -> str:
    return f"({', '.join(o.type.text for o in op.operands)}) -> {result_types([r.type for r in op.results])}"


def result_types(types: Sequence[Type]) -> str:
    return types[0].text if len(types) == 1 else f"({', '.join(x.text for x in types)})"


SLOTS: dict[str, Callable[[Printer, Op, tuple[str, ...], dict[str, Any]], str | None]] = {
    "operand": _slot_operand, "type": _slot_type, "over": _slot_over, "attrs": _slot_attrs, "flags": _slot_flags,
    "word": _slot_word, "str": _slot_str, "int": _slot_int, "ints": _slot_ints, "at": _slot_at, "scope": _slot_scope,
    "list": _slot_list, "more": _slot_more, "call": _slot_call,
}  # fmt: skip


# --- operations spelled by hand; each returns False for one that needs the generic form ----------------


def _constant(p: Printer, op: Op, left: str, pad: str) -> bool:
    value, type_ = op.attrs.get("value"), op.results[0].type if len(op.results) == 1 else None
    if op.operands or op.regions or not isinstance(type_, (ScalarType, VectorType)):
        return False
    values = value if isinstance(value, tuple) else (value,)
    elem = scalar_of(type_)
    if not values or any(type(v) not in (int, float) for v in values):
        return False
    if isinstance(elem, IntType) and any(type(v) is float for v in values):
        return False
    texts = [number_text(v, elem) for v in values]
    body = "[" + ", ".join(texts) + "]" if isinstance(value, tuple) else texts[0]
    extra = p.attrs({k: v for k, v in op.attrs.items() if k != "value"})
    if isinstance(type_, VectorType):
        text = f"dense<{body}> : {type_}"
    elif isinstance(value, tuple):
        return False
    else:
        text = ("true" if value else "false") if type_ == I1 else f"{body} : {type_}"
    p.lines.append(f"{left}arith.constant{extra} {text}")
    return True


def _empty_else(block: Block) -> bool:
    return len(block.ops) == 1 and type(block.ops[0]) is Yield and not block.ops[0].operands and not block.ops[0].attrs


def _if(p: Printer, op: Op, left: str, pad: str) -> bool:
    if len(op.operands) != 1 or op.operands[0].type != I1 or len(op.regions) != 2 or any(r.args for r in op.regions):
        return False
    if not all(_ends(r, Yield) for r in op.regions):
        return False
    types = [r.type for r in op.results]
    p.lines.append(f"{left}scf.if {p.use(op.operands[0])}" + (f" -> ({_types(types)})" if types else "") + " {")
    p.body(op.regions[0], pad, elide=not types)
    if types or p.locations or not _empty_else(op.regions[1]):
        p.lines.append(pad + "} else {")
        p.body(op.regions[1], pad, elide=not types)
    p.lines.append(pad + "}" + p.attrs(op.attrs))
    return True


def _for(p: Printer, op: Op, left: str, pad: str) -> bool:
    types = [r.type for r in op.results]
    if len(op.operands) != 3 + len(types) or len(op.regions) != 1 or not _ends(op.regions[0], Yield):
        return False
    index, body = op.operands[0].type, op.regions[0]
    if [v.type for v in op.operands] != [index] * 3 + types or [a.type for a in body.args] != [index, *types]:
        return False
    low, high, step, *inits = map(p.use, op.operands)
    head = f"{left}scf.for {p.use(body.args[0])} = {low} to {high} step {step}"
    if types:
        carried = ", ".join(f"{p.use(a)} = {i}" for a, i in zip(body.args[1:], inits))
        head += f" iter_args({carried}) -> ({_types(types)})"
    if isinstance(index, IntType):
        facts = p.known(op)
        p.facts[id(body.args[0])] = loop_index(facts[0], facts[1], facts[2], index.bits)
    p.lines.append(f"{head} : {index} {{")
    p.body(body, pad, elide=not types)
    p.lines.append(pad + "}" + p.attrs(op.attrs))
    return True


def _while(p: Printer, op: Op, left: str, pad: str) -> bool:
    types = [r.type for r in op.results]
    if len(op.regions) != 2 or not _ends(op.regions[0], Condition) or not _ends(op.regions[1], Yield):
        return False
    before, after = op.regions
    inits = [v.type for v in op.operands]
    if [a.type for a in before.args] != inits:
        return False
    operands = [p.use(v) for v in op.operands]
    carried = ", ".join(f"{p.use(a)} = {i}" for a, i in zip(before.args, operands))
    head = f"{left}scf.while" + (f" ({carried})" if inits else "")
    p.lines.append(f"{head} : ({_types(inits)}) -> {result_types(types)} {{")
    p.body(before, pad)
    p.lines.append(pad + "} do {")
    p.header(after, pad)
    p.body(after, pad, elide=not inits)
    p.lines.append(pad + "}" + p.attrs(op.attrs))
    return True


def _types(types: Sequence[Type]) -> str:
    return ", ".join(t.text for t in types)


def _ends(block: Block, cls: type[Op]) -> bool:
    return bool(block.ops) and type(block.ops[-1]) is cls


SPECIAL: dict[type[Op], Callable[[Printer, Op, str, str], bool]] = {
    Constant: _constant,
    If: _if,
    For: _for,
    While: _while,
}
