"""More intrinsics through which lanes of a wave see each other: groups of lanes, pushes, and sums over a wave.

The meaning is that of `sim.lanes`; what reads a lane that does not run is left to the NumPy engine, as in `cross`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..ir import Inst
from . import atomic
from .buffer import Update
from .cross import Lanes, Lower, from_row, per_part, step, zero
from .lower import Lowering
from .parts import NotCovered, Part
from .steps import Step
from .text import Values

if TYPE_CHECKING:
    from .gen import Gen


def _dpp8(b: Lowering, inst: Inst) -> list[Part]:
    control = b.number(inst.operands[1], "a DPP control")
    numbers = [(i & ~7) | (control >> (3 * (i & 7)) & 7) for i in range(b.program.target.wave_size)]

    def body(s: Lanes) -> str:
        lane = s.in_wave(s.table(numbers))
        runs, got = s.runs(lane), s.of(0, lane)
        return got if runs == "true" else s.select(runs, s.inputs[0].type, got, zero(s.inputs[0].type))

    return per_part(b, inst, 0, [], body)


def _shuffle(data: int, index: int, shift: int) -> Lower:
    """A lane that each lane names, whether or not it runs."""

    def lower(b: Lowering, inst: Inst) -> list[Part]:
        def body(s: Lanes) -> str:
            number = s.wide(1, s.own(1))
            lane = s.in_wave(s.g.w.emit(f"lshr i64 {number}, {shift}") if shift else number)
            s.must_run(lane)
            return s.of(0, lane)

        return per_part(b, inst, data, [b.part(inst.operands[index])], body)

    return lower


def _group(kind: str) -> Lower:
    """``permlane.bcast``, ``.up``, ``.down``, ``.xor``: a lane of the same group, past its end the own one."""

    step_of = {"up": "sub", "down": "add", "xor": "xor"}

    def lower(b: Lowering, inst: Inst) -> list[Part]:
        size = b.program.target.wave_size

        def body(s: Lanes) -> str:
            w, first = s.g.w, s.first()
            amount, given = s.wide(1, s.of(1, first)), s.wide(2, s.of(2, first))
            below = w.emit(f"sub i64 {given}, 1")
            odd = w.emit(f"icmp ne i64 {w.emit(f'and i64 {given}, {below}')}, 0")
            none = w.emit(f"icmp eq i64 {given}, 0")
            large = w.emit(f"icmp ugt i64 {given}, {size}")
            whole = w.emit(f"or i1 {w.emit(f'or i1 {odd}, {none}')}, {large}")
            width = s.select(whole, "i64", str(size), given)
            inside = w.emit(f"sub i64 {width}, 1")
            place = w.emit(f"and i64 {s.place()}, {inside}")
            if kind == "bcast":
                picked = w.emit(f"and i64 {amount}, {inside}")
            else:
                picked = w.emit(f"{step_of[kind]} i64 {place}, {amount}")
            fits = w.emit(f"icmp ult i64 {picked}, {width}")  # one below zero is large
            start = w.emit(f"sub i64 {s.lane}, {place}")
            lane = s.select(fits, "i64", w.emit(f"add i64 {start}, {picked}"), s.lane)
            s.must_run(lane)
            return s.of(0, lane)

        return per_part(b, inst, 0, [b.part(inst.operands[1]), b.part(inst.operands[2])], body)

    return lower


def _index(b: Lowering, inst: Inst) -> list[Part]:
    """``permlane.idx.gen``."""
    place, width = map(b.part, inst.operands[:2])

    def body(s: Lanes) -> list[str]:
        w = s.g.w
        group = s.wide(1, s.of(1, s.first()))
        inside = w.emit(f"sub i64 {group}, 1")
        v = Values(w, False, s.g.fault_label)
        some = w.emit(f"icmp ne i64 {w.emit(f'and i64 {group}, {inside}')}, 0")
        v.fault_if(w.emit(f"or i1 {some}, {w.emit(f'icmp eq i64 {group}, 0')}"))
        own = w.emit(f"and i64 {w.emit(f'and i64 {s.wide(0, s.own(0))}, 63')}, {inside}")
        start = w.emit(f"and i64 {s.place()}, {w.emit(f'xor i64 {inside}, -1')}")
        lane = w.emit(f"add i64 {own}, {start}")
        return [w.emit(f"trunc i64 {w.emit(f'shl i64 {lane}, 2')} to i32")]

    return step(b, [place, width], ["i32"], body)


def _var(flip: int) -> Lower:
    """``permlane16.var`` and ``permlanex16.var``: each lane with its own selector."""

    def lower(b: Lowering, inst: Inst) -> list[Part]:
        old, source, select = map(b.part, inst.operands[:3])
        inactive, bound = (b.number(inst.operands[i], "a flag") for i in (3, 4))

        def body(s: Lanes) -> list[str]:
            pick = s.g.w.emit(f"and i64 {s.wide(2, s.own(2))}, 15")
            return [from_row(s, pick, flip, inactive, bound)]

        return step(b, [old, source, select], [source.type], body)

    return lower


class PushStep(Step):
    """``ds.permute``: every lane writes to the one it names; the highest wins, and lanes nobody writes get zero."""

    __slots__ = ("address", "output", "value")

    def __init__(self, address: Part, value: Part, output: Part) -> None:
        self.address, self.value, self.output = address, value, output

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        inputs = [self.address, self.value]
        places, target = ["" if p.uniform else g.slot(p) for p in inputs], g.slot(self.output)
        g.each_lane(lambda lane: g.put(self.output, lane, zero(self.output.type), target))

        def push(lane: str) -> None:
            s, w = Lanes(g, lane, inputs, places), g.w
            other = s.in_wave(w.emit(f"lshr i64 {s.wide(0, s.own(0))}, 2"))
            there, after = w.fresh("push"), w.fresh("pushed")
            w.branch(s.runs(other), there, after)
            w.start(there)
            g.put(self.output, other, s.own(1), target)
            w.go(after)
            w.start(after)

        g.each_lane(push)


def _push(b: Lowering, inst: Inst) -> list[Part]:
    address, value = map(b.part, inst.operands[:2])
    number = len(b.steps[b.node.index])
    made = Part(value.type, False, b.node.index, number)
    b.read([address, value], b.add(PushStep(address, value, made)))
    return [made]


class ReduceStep(Step):
    """``wave.reduce``: running lanes in their order; all of them get the total."""

    __slots__ = ("from_zero", "output", "update", "value")

    def __init__(self, value: Part, output: Part, update: Update, from_zero: bool) -> None:
        self.value, self.output, self.update, self.from_zero = value, output, update, from_zero

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        t = self.value.type
        places, target = ["" if self.value.uniform else g.slot(self.value)], g.slot(self.output)
        total = g.variable(t)

        def add(lane: str) -> None:
            s, w = Lanes(g, lane, [self.value], places), g.w
            own, begins = s.own(0), w.emit(f"icmp eq i64 {lane}, {s.first()}")
            v = Values(w, False, g.fault_label)
            before = w.emit(f"load {t}, ptr {total}")
            if self.from_zero:
                after = self.update(v, s.select(begins, t, zero(t), before), own)
            else:
                after = s.select(begins, t, own, self.update(v, before, own))
            w.do(f"store {t} {after}, ptr {total}")
            g.put(self.output, lane, after, target)

        def spread(lane: str) -> None:
            s, w, bits = Lanes(g, lane, [self.output], [target]), g.w, f"i{g.wave_size}"
            above = w.call(bits, f"llvm.ctlz.{bits}", (bits, s.running_bits()), ("i1", "true"))
            wide = above if bits == "i64" else w.emit(f"zext {bits} {above} to i64")
            last = w.emit(f"sub i64 {w.emit(f'add i64 {s.base}, {g.wave_size - 1}')}, {wide}")
            g.put(self.output, lane, s.of(0, last), target)

        g.each_lane(add)
        g.each_lane(spread)


def _reduce(operation: str) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        value, t = b.part(inst.operands[0]), inst.type
        if str(t) not in ("i32", "i64", "float", "double"):
            raise NotCovered(f"@{inst.callee}")
        name = f"f{operation}" if str(t) in ("float", "double") and not operation.startswith("f") else operation
        number = len(b.steps[b.node.index])
        made = Part(value.type, False, b.node.index, number)
        added = b.add(ReduceStep(value, made, atomic.update_of(name, t), operation in ("sub", "fsub")))
        b.read([value], added)
        return [made]

    return lower


_REDUCERS = "add fadd sub fsub and or xor umin umax min max fmin fmax".split()

TABLE: dict[str, Lower] = {
    "amdgcn.mov.dpp8": _dpp8,
    "amdgcn.ds.bpermute.fi.b32": _shuffle(1, 0, 2),
    "amdgcn.wave.shuffle": _shuffle(0, 1, 0),
    **{f"amdgcn.permlane.{kind}": _group(kind) for kind in ("bcast", "up", "down", "xor")},
    "amdgcn.permlane.idx.gen": _index,
    "amdgcn.permlane16.var": _var(0),
    "amdgcn.permlanex16.var": _var(1),
    "amdgcn.ds.permute": _push,
    **{f"amdgcn.wave.reduce.{operation}": _reduce(operation) for operation in _REDUCERS},
}
