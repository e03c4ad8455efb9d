"""Lowering of control flow: ``scf``."""

from __future__ import annotations

from ..ir import types as t
from ..ir.protocols import LLValue
from .carry import Form, Nothing, Number, form_of, root_of, shared_by_lanes
from .lower import Pointer

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
    forms = [form_of(lw, r.type, [x, y], _same_base(x, y)) for r, x, y in zip(op.results, first, second)]
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
    for result, form, xs, ys in zip(op.results, forms, parts_then, parts_else):
        lw.values[result] = form.join(
            [
                em.phi(x.type, [(x, from_then), (y, from_else)], cond.uniform and x.uniform and y.uniform)
                for x, y in zip(xs, ys)
            ]
        )


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


def _open_phis(lw: Lowering, carried: list[_Carried], args: list[Value], yielded: list[Value]) -> None:
    em = lw.em
    numbers = {
        arg: end
        for c, arg, end in zip(carried, args, yielded)
        if isinstance(c.form, Number) and isinstance(arg.type, t.IntType) and c.start[0].uniform
    }
    shared = shared_by_lanes(lw, numbers) if numbers else numbers
    for c, arg in zip(carried, args):
        if c.form is not None:
            c.phis = [em.reserve(p.type, arg in shared) for p in c.start]
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


def _for(lw: Lowering, op: Op) -> None:
    """A loop that tests at its end, behind a guard that tests once before it."""
    em = lw.em
    lower, upper, step = (lw.get(v) for v in op.operands[:3])
    inits = op.operands[3:]
    body = op.regions[0]
    index, *args = body.args
    carried = [_enter(lw, a, i, y) for a, i, y in zip(args, inits, body.ops[-1].operands)]
    if lower.const is not None and upper.const is not None and lower.const >= upper.const:
        for result, init in zip(op.results, inits):
            lw.values[result] = lw.values.get(init)
        return
    loop, leave = em.new_labels("loop", "exit")
    guard = _guard(lw, op, lower, upper, step)
    safe, power = _stays_in_type(op, lower, upper, step), _is_power(step)
    stop = upper if safe else _end(lw, lower, upper, step) if power else _limit(lw, op, upper, step)
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
    _open_phis(lw, carried, args, body.ops[-1].operands)
    parts = _loop_body(lw, op, carried)
    following = em.binary("add", counter, step)
    again = em.icmp("ne" if power and not safe else "slt", following if safe or power else counter, stop)
    latch = em.block
    starts = f"[ {lower.text}, %{entry} ], [ {following.text}, %{latch} ]"
    phis.append(f"  {counter.text} = phi {counter.type.text} {starts}{em.dbg}")
    _close_phis(lw, carried, phis, entry, latch, parts)
    em.branch(again, loop, leave, _loop_metadata(lw, op))
    em.pop()
    em.start(leave)
    for result, init, c, end in zip(op.results, inits, carried, parts):
        if c.form is None:
            lw.values[result] = lw.values.get(init)
        elif guard is None:
            lw.values[result] = c.form.join([em.outside(p) for p in end])
        else:
            lw.values[result] = c.form.join([em.phi(s.type, [(s, entry), (e, latch)]) for s, e in zip(c.start, end)])


def _guard(lw: Lowering, op: Op, lower: LLValue, upper: LLValue, step: LLValue) -> LLValue | None:
    """Whether there is an iteration; ``None`` where that is certain.

    A step of zero or less has none: with it the index would never reach the stop.
    """
    em = lw.em
    least = _range(step, op.operands[2])[0]
    forward = None if least is not None and least > 0 else em.icmp("sgt", step, em.const(step.type, 0))
    if _surely_runs(op, lower, upper):
        return forward
    below = em.icmp("slt", lower, upper)
    return below if forward is None else em.binary("and", below, forward)


def _surely_runs(op: Op, lower: LLValue, upper: LLValue) -> bool:
    if lower.const is not None and upper.const is not None:
        return lower.const < upper.const
    low, high = op.operands[0].range, op.operands[1].range
    return low is not None and high is not None and low[1] < high[0]


def _range(value: LLValue, operand: Value) -> tuple[int | None, int | None]:
    """The least and the largest number that a bound of a loop is known to be."""
    if isinstance(value.const, int):
        return value.const, value.const
    return operand.range if operand.range is not None else (None, None)


def _stays_in_type(op: Op, lower: LLValue, upper: LLValue, step: LLValue) -> bool:
    """Whether the index behind the last iteration is known to be a number of its type, by range or divisibility."""
    by, low, high = step.const, op.operands[0], op.operands[1]
    if isinstance(by, int) and (by == 1 or (_multiple(lower, low, by) and _multiple(upper, high, by))):
        # It is the stop itself.
        return True
    last, most = _range(upper, high)[1], _range(step, op.operands[2])[1]
    return last is not None and most is not None and last - 1 + most < 1 << (upper.type.bits - 1)


def _multiple(value: LLValue, operand: Value, of: int) -> bool:
    return value.const % of == 0 if isinstance(value.const, int) else operand.divisibility % of == 0


def _is_power(step: LLValue) -> bool:
    return isinstance(step.const, int) and step.const > 0 and step.const & (step.const - 1) == 0


def _end(lw: Lowering, lower: LLValue, upper: LLValue, step: LLValue) -> LLValue:
    """The index behind the last one, for a step that is a power of two; all of it may wrap, and is met all the same."""
    em = lw.em
    type, by = upper.type, step.const
    up = em.binary("add", em.binary("sub", upper, lower), em.const(type, by - 1))  # type: ignore[operator]
    return em.binary("add", lower, em.binary("and", up, em.const(type, -by)))  # type: ignore[operator]


def _limit(lw: Lowering, op: Op, upper: LLValue, step: LLValue) -> LLValue:
    """The index below which another iteration follows: ``upper - step``, cut to the type.

    The next index may wrap and is not looked at.
    """
    em = lw.em
    type, bits = upper.type, upper.type.bits
    least, most = _range(upper, op.operands[1])[0], _range(step, op.operands[2])[1]
    if least is None or most is None or least - most < -(1 << (bits - 1)):
        bottom = em.binary("add", step, em.const(type, -(1 << (bits - 1))))
        upper = em.select(em.icmp("sgt", upper, bottom), upper, bottom)
    return em.binary("sub", upper, step)


def _loop_body(lw: Lowering, op: Op, carried: list[_Carried]) -> list[list[LLValue]]:
    """Lowers the body, and counts the registers that are live through it; returns the parts it yields."""
    registers = sum(-(-p.type.bits // 32) for c in carried for p in c.start)
    lw.carried += registers
    lw.facts.carried_registers = max(lw.facts.carried_registers, lw.carried)
    ends = _yielded(lw, lw.block(op.regions[-1]))
    lw.carried -= registers
    lw.locate(op)
    return [c.form.split(v) if c.form is not None else [] for c, v in zip(carried, ends)]


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
    _open_phis(lw, carried, before.args, yields)
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
    parts = _loop_body(lw, op, carried)
    latch = em.block
    em.jump(test)
    em.pop()
    _close_phis(lw, carried, phis, entry, latch, parts)
    em.pop()
    em.start(leave)
    for result, value in zip(op.results, passed):
        lw.values[result] = em.outside(value) if type(value) is LLValue else value


TABLE: dict[str, Handler] = {"scf.if": _if, "scf.for": _for, "scf.while": _while}
