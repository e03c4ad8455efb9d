"""Intrinsics through which lanes of a wave see each other, as code that runs once for each running lane.

The meaning is that of `sim.lanes`.  Where an instruction would read a register of a lane that does not run, whose
content is not defined here, the run is left to the NumPy engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..dpp import sources
from ..ir import Inst
from ..lanes import swizzle_sources
from .lower import Lowering
from .parts import NotCovered, Part, literal_of, scalar_type
from .steps import Step

if TYPE_CHECKING:
    from .gen import Gen

Lower = Callable[[Lowering, Inst], "list[Part] | None"]


class Lanes:
    """What the code of one lane asks for.

    Attributes:
        lane: Number of the lane in the workgroup.
        base: Number of the first lane of its wave.
    """

    __slots__ = ("base", "g", "inputs", "lane", "places")

    def __init__(self, g: Gen, lane: str, inputs: list[Part], places: list[str]) -> None:
        self.g, self.lane, self.inputs, self.places = g, lane, inputs, places
        self.base = g.w.emit(f"and i64 {lane}, {-g.wave_size}")

    def own(self, i: int) -> str:
        """Operand ``i`` of this lane."""
        return self.of(i, self.lane)

    def of(self, i: int, lane: str) -> str:
        """Operand ``i`` of another lane."""
        return self.g.get(self.inputs[i], lane, self.places[i])

    def first(self) -> str:
        """The first running lane of the wave."""
        if not self.g.masked:
            return self.base
        t = f"i{self.g.wave_size}"
        place = self.g.w.call(t, f"llvm.cttz.{t}", (t, self.running_bits()), ("i1", "true"))
        return self.g.w.emit(f"add i64 {self.base}, {self._wide(t, place)}")

    def running_bits(self) -> str:
        """Bits of the running lanes of the wave."""
        return self.g.wave_bits(self.g.w.emit(f"udiv i64 {self.base}, {self.g.wave_size}"))

    def place(self) -> str:
        """Number of the lane in its wave."""
        return self.g.w.emit(f"sub i64 {self.lane}, {self.base}")

    def in_wave(self, index: str) -> str:
        """The lane of the wave with an index (i64), modulo the wave size."""
        inside = self.g.w.emit(f"and i64 {index}, {self.g.wave_size - 1}")
        return self.g.w.emit(f"add i64 {self.base}, {inside}")

    def runs(self, lane: str) -> str:
        """Whether a lane of the wave runs."""
        if not self.g.masked and self.g.block == self.g.lanes:
            return "true"
        w, t = self.g.w, f"i{self.g.wave_size}"
        place = w.emit(f"sub i64 {lane}, {self.base}")
        amount = place if t == "i64" else w.emit(f"trunc i64 {place} to {t}")
        return w.emit(f"trunc {t} {w.emit(f'lshr {t} {self.running_bits()}, {amount}')} to i1")

    def must_run(self, lane: str) -> None:
        """Leaves the run to the NumPy engine where a lane does not run."""
        runs = self.runs(lane)
        if runs != "true":
            going = self.g.w.fresh("known")
            self.g.w.branch(runs, going, "strange")
            self.g.w.start(going)

    def whole_wave(self) -> None:
        """Leaves the run to the NumPy engine where a lane of the wave does not run."""
        if self.g.masked or self.g.block < self.g.lanes:
            w, going = self.g.w, self.g.w.fresh("whole")
            w.branch(w.emit(f"icmp eq i{self.g.wave_size} {self.running_bits()}, -1"), going, "strange")
            w.start(going)

    def table(self, numbers: list[int]) -> str:
        """The number of this lane's place in a constant table, as i64."""
        name = "@table_" + "_".join(str(n).replace("-", "m") for n in numbers)
        if len(name) > 40:
            import hashlib

            name = "@table_" + hashlib.sha256(name.encode()).hexdigest()[:16]
        items = ", ".join(f"i8 {n}" for n in numbers)
        self.g.functions[name] = [f"{name} = internal constant [{len(numbers)} x i8] [ {items} ]"]
        w = self.g.w
        byte = w.emit(f"load i8, ptr {w.emit(f'getelementptr i8, ptr {name}, i64 {self.place()}')}")
        return w.emit(f"sext i8 {byte} to i64")

    def _wide(self, t: str, value: str) -> str:
        return value if t == "i64" else self.g.w.emit(f"zext {t} {value} to i64")

    def wide(self, i: int, value: str) -> str:
        """A value of operand ``i``'s type as i64."""
        return self._wide(self.inputs[i].type, value)

    def select(self, condition: str, t: str, yes: str, no: str) -> str:
        """``yes`` where the condition holds."""
        return self.g.w.emit(f"select i1 {condition}, {t} {yes}, {t} {no}")


Body = Callable[[Lanes], list[str]]


class CrossStep(Step):
    """Code of each running lane that may read other lanes."""

    __slots__ = ("body", "inputs", "outputs")

    def __init__(self, inputs: list[Part], outputs: list[Part], body: Body) -> None:
        self.inputs, self.outputs, self.body = inputs, outputs, body

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        places = ["" if p.uniform else g.slot(p) for p in self.inputs]
        targets = [g.slot(p) for p in self.outputs]

        def each(lane: str) -> None:
            values = self.body(Lanes(g, lane, self.inputs, places))
            for part, value, base in zip(self.outputs, values, targets, strict=True):
                g.put(part, lane, value, base)

        g.each_lane(each)


def step(b: Lowering, inputs: list[Part], outputs: list[str], body: Body) -> list[Part]:
    """Adds a step; its results differ between lanes."""
    number = len(b.steps[b.node.index])
    made = [Part(t, False, b.node.index, number) for t in outputs]
    b.read(inputs, b.add(CrossStep(inputs, made, body)))
    return made


def zero(t: str) -> str:
    """The zero of a type."""
    return literal_of(t, 0)


def per_part(b: Lowering, inst: Inst, data: int, others: list[Part], body: Callable[[Lanes], str]) -> list[Part]:
    """The same step for each part of a value; its part is operand 0."""
    return [step(b, [p, *others], [p.type], lambda lanes: [body(lanes)])[0] for p in b.parts(inst.operands[data])]


def _readfirstlane(b: Lowering, inst: Inst) -> list[Part]:
    parts = b.parts(inst.operands[0])
    if all(p.uniform for p in parts):
        return b.renamed(parts)
    return per_part(b, inst, 0, [], lambda s: s.of(0, s.first()))


def _readlane(b: Lowering, inst: Inst) -> list[Part]:
    def body(s: Lanes) -> str:
        lane = s.in_wave(s.wide(1, s.of(1, s.first())))
        s.must_run(lane)
        return s.of(0, lane)

    return per_part(b, inst, 0, [b.part(inst.operands[1])], body)


def _writelane(b: Lowering, inst: Inst) -> list[Part]:
    value, lane, old = map(b.part, inst.operands)

    def body(s: Lanes) -> list[str]:
        first = s.first()
        here = s.g.w.emit(f"icmp eq i64 {s.lane}, {s.in_wave(s.wide(1, s.of(1, first)))}")
        return [s.select(here, value.type, s.of(0, first), s.own(2))]

    return step(b, [value, lane, old], [value.type], body)


def _bpermute(b: Lowering, inst: Inst) -> list[Part]:
    def body(s: Lanes) -> str:
        lane = s.in_wave(s.g.w.emit(f"lshr i64 {s.wide(1, s.own(1))}, 2"))
        runs = s.runs(lane)
        got = s.of(0, lane)
        return got if runs == "true" else s.select(runs, s.inputs[0].type, got, zero(s.inputs[0].type))

    return per_part(b, inst, 1, [b.part(inst.operands[0])], body)


def _swizzle(b: Lowering, inst: Inst) -> list[Part]:
    numbers = [int(x) for x in swizzle_sources(b.number(inst.operands[1], "a pattern"), b.program.target.wave_size)]

    def body(s: Lanes) -> str:
        lane = s.in_wave(s.table(numbers))
        runs = s.runs(lane)
        got = s.of(0, lane)
        return got if runs == "true" else s.select(runs, s.inputs[0].type, got, zero(s.inputs[0].type))

    return per_part(b, inst, 0, [], body)


def _dpp(update: bool) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        first = 1 if update else 0
        control, rows, banks, bound = (b.number(inst.operands[first + 1 + i], "a DPP control") for i in range(4))
        size = b.program.target.wave_size
        source = sources(control, size)
        if source is None:
            raise NotCovered(f"DPP control {control:#x}")
        places = [int(x) for x in source]
        passes = [int(rows >> (i // 16 % 4) & banks >> (i // 4 % 4) & 1) for i in range(size)]
        data = b.parts(inst.operands[first])
        old = b.parts(inst.operands[0]) if update else [None] * len(data)
        out = []
        for part, before in zip(data, old, strict=True):
            t = part.type

            def body(s: Lanes, t: str = t, before: Part | None = before) -> list[str]:
                index, keep = s.table(places), s.own(1) if before is not None else zero(t)
                valid = s.g.w.emit(f"icmp sge i64 {index}, 0")
                lane = s.in_wave(s.select(valid, "i64", index, "0"))
                reaches = s.g.w.emit(f"and i1 {valid}, {s.runs(lane)}")
                got = s.select(reaches, t, s.of(0, lane), zero(t) if bound else keep)
                if all(passes):
                    return [got]
                allowed = s.g.w.emit(f"icmp ne i64 {s.table(passes)}, 0")
                return [s.select(allowed, t, got, keep)]

            out += step(b, [part, *([before] if before is not None else [])], [t], body)
        return out

    return lower


def from_row(s: Lanes, pick: str, flip: int, inactive: int, bound: int) -> str:
    """What a lane takes of input 1 from lane ``pick`` (below 16) of its row, or of the other row of the pair.

    Args:
        s: The lanes; input 0 is what lanes keep.
        pick: Number of the lane in the row.
        flip: 1 for the other row.
        inactive: Whether lanes that do not run are read too.
        bound: Whether what cannot be read is zero instead of input 0.
    """
    w, t = s.g.w, s.inputs[1].type
    row = w.emit(f"xor i64 {w.emit(f'and i64 {s.place()}, -16')}, {16 * flip}")
    lane = s.in_wave(w.emit(f"or i64 {row}, {pick}"))
    runs = s.runs(lane)
    if inactive:
        s.must_run(lane)
    got = s.of(1, lane)
    return got if runs == "true" else s.select(runs, t, got, zero(t) if bound else s.own(0))


def _permlane(flip: int) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        old, source, low, high = map(b.part, inst.operands[:4])
        inactive, bound = (b.number(inst.operands[i], "a flag") for i in (4, 5))

        def body(s: Lanes) -> list[str]:
            w, first, place = s.g.w, s.first(), s.place()
            half = w.emit(f"icmp ult i64 {w.emit(f'and i64 {place}, 15')}, 8")
            select = s.wide(2, s.select(half, "i32", s.of(2, first), s.of(3, first)))
            shift = w.emit(f"shl i64 {w.emit(f'and i64 {place}, 7')}, 2")
            pick = w.emit(f"and i64 {w.emit(f'lshr i64 {select}, {shift}')}, 15")
            return [from_row(s, pick, flip, inactive, bound)]

        return step(b, [old, source, low, high], [source.type], body)

    return lower


def _permlane_swap(width: int) -> Lower:
    def lower(b: Lowering, inst: Inst) -> list[Part]:
        x, y = map(b.part, inst.operands[:2])

        def body(s: Lanes) -> list[str]:
            w = s.g.w
            odd = w.emit(f"icmp ne i64 {w.emit(f'and i64 {s.place()}, {width}')}, 0")
            other = w.emit(f"xor i64 {s.lane}, {width}")
            s.must_run(other)
            return [
                s.select(odd, x.type, s.of(1, other), s.own(0)), s.select(odd, x.type, s.own(1), s.of(0, other))
            ]  # fmt: skip

        return step(b, [x, y], [x.type, y.type], body)

    return lower


def _permlane64(b: Lowering, inst: Inst) -> list[Part]:
    if b.program.target.wave_size != 64:
        return b.renamed(b.parts(inst.operands[0]))

    def body(s: Lanes) -> str:
        lane = s.g.w.emit(f"xor i64 {s.lane}, 32")
        s.must_run(lane)
        return s.of(0, lane)

    return per_part(b, inst, 0, [], body)


def _ballot(b: Lowering, inst: Inst) -> list[Part]:
    flag = b.part(inst.operands[0])
    t = scalar_type(inst.type)

    def body(s: Lanes) -> list[str]:
        w, wave = s.g.w, f"i{s.g.wave_size}"
        running = s.running_bits()
        if flag.uniform:
            bits = s.select(s.g.scalar(flag), wave, running, "0")
        else:
            byte = w.emit(f"getelementptr i8, ptr {s.places[0]}, i64 {w.emit(f'lshr i64 {s.base}, 3')}")
            bits = w.emit(f"and {wave} {w.emit(f'load {wave}, ptr {byte}, align 4')}, {running}")
        if t == wave:
            return [bits]
        return [w.emit(f"{'zext' if int(t[1:]) > s.g.wave_size else 'trunc'} {wave} {bits} to {t}")]

    return step(b, [flag], [t], body)


def _inverse_ballot(b: Lowering, inst: Inst) -> list[Part]:
    word = b.part(inst.operands[0])

    def body(s: Lanes) -> list[str]:
        bits = s.wide(0, s.of(0, s.first()))
        return [s.g.w.emit(f"trunc i64 {s.g.w.emit(f'lshr i64 {bits}, {s.place()}')} to i1")]

    return step(b, [word], ["i1"], body)


TABLE: dict[str, Lower] = {
    "amdgcn.readfirstlane": _readfirstlane,
    "amdgcn.readlane": _readlane,
    "amdgcn.writelane": _writelane,
    "amdgcn.ds.bpermute": _bpermute,
    "amdgcn.ds.swizzle": _swizzle,
    "amdgcn.mov.dpp": _dpp(False),
    "amdgcn.update.dpp": _dpp(True),
    "amdgcn.permlane16": _permlane(0),
    "amdgcn.permlanex16": _permlane(1),
    "amdgcn.permlane16.swap": _permlane_swap(16),
    "amdgcn.permlane32.swap": _permlane_swap(32),
    "amdgcn.permlane64": _permlane64,
    "amdgcn.ballot": _ballot,
    "amdgcn.inverse.ballot": _inverse_ballot,
}
