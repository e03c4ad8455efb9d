"""Lowering of control flow, ids, barriers and raw intrinsics: ``scf``, ``gpu``, ``llvm``."""

from __future__ import annotations

from ..ir import lltype as ll, types as t
from ..ir.protocols import LLValue
from .carry import Form, Nothing, form_of, root_of
from .lower import Pointer
from .lower_vector import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Op, Value
    from .lower import Handler, Lowering


# --- if -------------------------------------------------------------------------------------------


def _if(lw: Lowering, op: Op) -> None:
    em = lw.em
    cond = lw.get(op.operands[0])
    if cond.const is not None:
        end = lw.block(op.regions[0 if cond.const else 1])
        for result, value in zip(op.results, end.operands if end is not None else ()):
            lw.values[result] = lw.values.get(value)
        return
    then, other, join = em.new_labels("then", "else", "join")
    short = len(op.regions[1].ops) == 1
    before = em.hole()
    em.push()
    em.start(then)
    first = _yielded(lw, lw.block(op.regions[0]))
    after_then = em.hole()
    em.pop()
    if short:
        second, after_else = _yielded(lw, op.regions[1].ops[0]), before
    else:
        em.push()
        em.start(other)
        second = _yielded(lw, lw.block(op.regions[1]))
        after_else = em.hole()
        em.pop()
    forms = [form_of(lw, r.type, [a, b], _same_base(a, b)) for r, a, b in zip(op.results, first, second)]
    with after_then:
        parts_then = [f.split(v) for f, v in zip(forms, first)]
        em.jump(join)
        from_then = em.block
    with after_else:
        parts_else = [f.split(v) for f, v in zip(forms, second)]
        if not short:
            em.jump(join)
        from_else = em.block
    with before:
        em.branch(cond, then, join if short else other)
    em.start(join)
    for result, form, a, b in zip(op.results, forms, parts_then, parts_else):
        uniform = cond.uniform
        joined = [
            em.phi(x.type, [(x, from_then), (y, from_else)], uniform and x.uniform and y.uniform) for x, y in zip(a, b)
        ]
        lw.values[result] = form.join(joined)


def _yielded(lw: Lowering, end: Op | None) -> list[Any]:
    if end is None:
        raise lw.em.fail("a region ends without scf.yield", "yield the carried values at its end")
    return [lw.values.get(v) for v in end.operands]


def _same_base(a: Any, b: Any) -> bool:
    return (
        isinstance(a, Pointer)
        and isinstance(b, Pointer)
        and a.base.text == b.base.text
        and (a.const - b.const) % 8 == 0
    )


# --- for ------------------------------------------------------------------------------------------


class _Carried:
    """One carried value of a loop.

    Attributes:
        form: How it crosses; ``None`` if the body yields it unchanged.
        start: Its parts on entry.
        phis: Its parts in the loop.
    """

    __slots__ = ("form", "phis", "start")

    def __init__(self, form: Form | None, start: list[LLValue], phis: list[LLValue]) -> None:
        self.form = form
        self.start = start
        self.phis = phis


def _enter(lw: Lowering, arg: Value, init: Value, yielded: Value) -> _Carried:
    """Decides how a carried value crosses, and makes its phis' names."""
    em = lw.em
    value = lw.values.get(init)
    if yielded is arg or yielded is init:
        # Unchanged by every iteration: the value itself is known in the loop and after it.
        lw.values[arg] = value
        return _Carried(None, [], [])
    root = root_of(yielded)
    same = isinstance(value, Pointer) and (root is arg or root is root_of(init))
    form = form_of(lw, arg.type, [value], same)
    if isinstance(form, Nothing) and value is not None and not isinstance(value, tuple):
        raise em.fail(f"a value of type {arg.type} cannot be carried by a loop", "carry numbers, pointers and atoms")
    start = form.split(value)
    return _Carried(form, start, [])


def _open_phis(lw: Lowering, carried: list[_Carried], args: list[Value]) -> None:
    em = lw.em
    for c, arg in zip(carried, args):
        if c.form is not None:
            c.phis = [em.reserve(p.type) for p in c.start]
            lw.values[arg] = c.form.join(c.phis)


def _close_phis(
    lw: Lowering, carried: list[_Carried], lines: list[str], entry: str, latch: str, next_: list[list[LLValue]]
) -> None:
    for c, parts in zip(carried, next_):
        for phi, start, end in zip(c.phis, c.start, parts):
            if start.type is not end.type or phi.type is not end.type:
                raise lw.em.fail(
                    f"a loop carries {start.type.text} but its body yields {end.type.text}",
                    "keep the type of every carried value",
                )
            lines.append(
                f"  {phi.text} = phi {phi.type.text} [ {start.text}, %{entry} ], [ {end.text}, %{latch} ]{lw.em.dbg}"
            )


def _registers(carried: list[_Carried]) -> int:
    return sum(-(-p.type.bits // 32) for c in carried for p in c.start)


def _for(lw: Lowering, op: Op) -> None:
    em = lw.em
    lower, upper, step = (lw.get(v) for v in op.operands[:3])
    body = op.regions[0]
    index, *args = body.args
    yields = body.ops[-1].operands
    carried = [_enter(lw, a, i, y) for a, i, y in zip(args, op.operands[3:], yields)]
    known = lower.const is not None and upper.const is not None
    if known and int(lower.const or 0) >= int(upper.const or 0):
        for result, init in zip(op.results, op.operands[3:]):
            lw.values[result] = lw.values.get(init)
        return
    loop, leave = em.new_labels("loop", "exit")
    low, high = op.operands[0].range, op.operands[1].range
    runs = known or (low is not None and high is not None and low[1] < high[0])
    guard = None if runs else em.icmp("slt", lower, upper)
    entry = em.block
    em.push_loop()
    if guard is None:
        em.jump(loop)
    else:
        em.branch(guard, loop, leave)
    em.start(loop)
    phis = em.gap()
    counter = em.reserve(lower.type, lower.uniform and step.uniform)
    lw.values[index] = counter
    _open_phis(lw, carried, args)
    lw.carried += _registers(carried)
    lw.facts.carried_registers = max(lw.facts.carried_registers, lw.carried)
    ends = _yielded(lw, lw.block(body))
    lw.carried -= _registers(carried)
    lw.locate(op)
    parts = [c.form.split(v) if c.form is not None else [] for c, v in zip(carried, ends)]
    following = em.binary("add", counter, step)
    again = em.icmp("slt", following, upper)
    latch = em.block
    phis.append(
        f"  {counter.text} = phi {counter.type.text} [ {lower.text}, %{entry} ], [ {following.text}, %{latch} ]{em.dbg}"
    )
    _close_phis(lw, carried, phis, entry, latch, parts)
    em.branch(again, loop, leave, _loop_metadata(lw, op))
    em.pop()
    em.start(leave)
    for result, init, c, end in zip(op.results, op.operands[3:], carried, parts):
        if c.form is None:
            lw.values[result] = lw.values.get(init)
        elif guard is None:
            lw.values[result] = c.form.join([em.outside(p) for p in end])
        else:
            lw.values[result] = c.form.join([em.phi(s.type, [(s, entry), (e, latch)]) for s, e in zip(c.start, end)])


def _loop_metadata(lw: Lowering, op: Op) -> str:
    """Hints for LLVM's loop passes; a loop without hints carries no node."""
    unroll = op.attrs.get("unroll")
    if unroll is None:
        return ""
    module = lw.em.module
    if unroll is False:
        hint = module.node('!"llvm.loop.unroll.disable"')
    elif unroll is True:
        hint = module.node('!"llvm.loop.unroll.enable"')
    else:
        hint = module.node(f'!"llvm.loop.unroll.count", i32 {int(unroll)}')
    # LLVM dies on a loop id that does not refer to itself.
    return f", !llvm.loop !{module.new_node(f'distinct !{{!{{self}}, !{hint}}}')}"


# --- while ----------------------------------------------------------------------------------------


def _while(lw: Lowering, op: Op) -> None:
    em = lw.em
    before, after = op.regions
    yields = after.ops[-1].operands
    carried = [_enter(lw, a, i, y) for a, i, y in zip(before.args, op.operands, yields)]
    test, body, leave = em.new_labels("test", "body", "exit")
    entry = em.block
    em.push_loop()
    em.jump(test)
    em.start(test)
    phis = em.gap()
    _open_phis(lw, carried, before.args)
    end = lw.block(before)
    if end is None:
        raise em.fail("the condition region of a while ends without scf.condition", "end it with the i1 and the values")
    cond = lw.get(end.operands[0])
    passed = [lw.values.get(v) for v in end.operands[1:]]
    em.branch(cond, body, leave)
    em.push()
    em.start(body)
    for arg, value in zip(after.args, passed):
        lw.values[arg] = value
    ends = _yielded(lw, lw.block(after))
    lw.locate(op)
    parts = [c.form.split(v) if c.form is not None else [] for c, v in zip(carried, ends)]
    latch = em.block
    em.jump(test)
    em.pop()
    _close_phis(lw, carried, phis, entry, latch, parts)
    em.pop()
    em.start(leave)
    for result, value in zip(op.results, passed):
        lw.values[result] = em.outside(value) if type(value) is LLValue else value


# --- ids and barriers -----------------------------------------------------------------------------


def _id(name: str) -> Handler:
    def handler(lw: Lowering, op: Op) -> None:
        dim = "xyz".index(op.attrs["dimension"])
        lw.values[op.results[0]] = getattr(lw.em.module.backend, name)(lw.em, lw.facts, dim)

    return handler


def _lane_id(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = lw.em.module.backend.lane_id(lw.em, lw.facts)


def _barrier(lw: Lowering, op: Op) -> None:
    lw.em.module.backend.barrier(lw.em, op.attrs.get("fence", True))


def _fence(lw: Lowering, op: Op) -> None:
    lw.em.fence(op.attrs["ordering"], op.attrs.get("syncscope") or "")


def _printf(lw: Lowering, op: Op) -> None:
    raise lw.em.fail(
        "gpu.printf has no code: printing needs the host-call service of a device library",
        "store what you want to see into a buffer, or leave the print out of compiled kernels",
    )


def _call_intrinsic(lw: Lowering, op: Op) -> None:
    em = lw.em
    imms = {position: (value, bits) for position, value, bits in op.attrs.get("imms") or ()}
    operands = iter(op.operands)
    args = []
    for i in range(len(imms) + len(op.operands)):
        if i in imms:
            value, bits = imms[i]
            args.append(em.const(ll.int_(bits), value))
        else:
            operand = next(operands)
            args.append(_argument(lw, operand))
    name = op.attrs["intrin"].removeprefix("llvm.")
    if not op.results:
        em.intrinsic(name, ll.VOID, args)
        return
    result = op.results[0]
    want = t.storage(result.type)
    if op.attrs.get("pure") and args:
        made = em.pure_intrinsic(name, want, args)
    else:
        made = em.intrinsic(name, want, args)
    lw.values[result] = held(lw, made, result.type)


def _argument(lw: Lowering, value: Value) -> LLValue:
    from .lower_memory import full_pointer

    if not isinstance(value.type, (t.PtrType, t.MemRefType)):
        return lw.get(value)
    pointer = lw.pointer(value)
    space = value.type.space
    if space != "buffer_desc":
        return full_pointer(lw, value)
    if pointer.offset is not None or pointer.const:
        raise lw.em.fail(
            "a buffer pointer with an offset is passed to an intrinsic",
            "pass the descriptor itself and the byte offset as operand",
        )
    return pointer.base


TABLE: dict[str, Handler] = {
    "scf.if": _if,
    "scf.for": _for,
    "scf.while": _while,
    "gpu.thread_id": _id("thread_id"),
    "gpu.block_id": _id("block_id"),
    "gpu.block_dim": _id("block_dim"),
    "gpu.grid_dim": _id("grid_dim"),
    "gpu.lane_id": _lane_id,
    "gpu.barrier": _barrier,
    "llvm.fence": _fence,
    "gpu.printf": _printf,
    "llvm.call_intrinsic": _call_intrinsic,
}
