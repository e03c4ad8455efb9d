"""Buffer loads and stores: the range of the descriptor first, then the bounds of memory.

What is past the end of a descriptor reads zero or is dropped, per component of at most four bytes, as in `sim.buffers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import types as ty
from ..buffers import component_of
from ..ir import Inst, Operand
from . import access
from .access import Memory, read_field, write_fields
from .bits import Field, fields_of
from .parts import NotCovered, Part
from .steps import Step
from .text import Values

if TYPE_CHECKING:
    from .gen import Gen
    from .lower import Lowering

Update = Callable[[Values, str, str], str]


class Range:
    """The operands of a buffer access.

    Attributes:
        rsrc: Base, stride, num_records and flags.
        index: Element index of the struct forms.
        offsets: Byte offsets that are added (zero-extended).
    """

    __slots__ = ("index", "offsets", "rsrc")

    def __init__(self, rsrc: list[Part], index: Part | None, offsets: list[Part]) -> None:
        self.rsrc, self.index, self.offsets = rsrc, index, offsets

    @property
    def parts(self) -> list[Part]:
        """All parts."""
        return [*self.rsrc, *([self.index] if self.index else []), *self.offsets]


class BufferStep(Step):
    """A buffer load (``values`` are its results) or store."""

    __slots__ = ("component", "fields", "inst", "size", "unchecked", "values", "where", "write")

    def __init__(
        self, inst: Inst, where: Range, fields: list[Field], t: ty.Type, values: list[Part], write: bool, rdna: bool
    ) -> None:
        self.inst, self.where, self.fields, self.values, self.write = inst, where, fields, values, write
        self.size, self.component, self.unchecked = ty.store_size(t), component_of(t), rdna

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        memory, one = Memory(g, 1, self.size, self.write), Memory(g, 1, self.component, self.write)
        room = g.variable(f"[{self.size} x i8]")
        parts = self.where.parts
        if not self.write and all(p.uniform for p in self.values):
            self._load(g, memory, one, room, [g.scalar(p) for p in parts], "", [])
            return
        bases = ["" if p.uniform else g.slot(p) for p in parts]
        places = ["" if p.uniform or not (p.readers or self.write) else g.slot(p) for p in self.values]

        def body(lane: str) -> None:
            args = [g.get(p, lane, base) for p, base in zip(parts, bases, strict=True)]
            if self.write:
                self._store(
                    g, memory, one, room, args, [g.get(p, lane, b) for p, b in zip(self.values, places, strict=True)]
                )
            else:
                self._load(g, memory, one, room, args, lane, places)

        g.each_lane(body)

    def _range(self, g: Gen, args: list[str]) -> tuple[str, str, str]:
        """Base address, byte offset and limit of an access."""
        w = g.w
        base, stride, records, flags, *rest = args
        index = rest.pop(0) if self.where.index is not None else None
        good = w.fresh("desc")
        w.branch(w.emit(f"icmp {'eq' if index else 'ne'} i16 {stride}, 0"), g.fault_label, good)
        w.start(good)
        offset = "0"
        for part, value in zip(self.where.offsets, rest, strict=True):
            if part.literal == "0":
                continue
            wide = w.emit(f"zext i32 {value} to i64")
            offset = wide if offset == "0" else w.emit(f"add i64 {offset}, {wide}")
        limit = records
        if index is not None:
            step, element = w.emit(f"zext i16 {stride} to i64"), w.emit(f"zext i32 {index} to i64")
            outside = w.emit(f"icmp sge i64 {element}, {limit}")
            inside = w.emit(f"add i64 {w.emit(f'mul i64 {element}, {step}')}, {offset}")
            offset = w.emit(f"select i1 {outside}, i64 {1 << 40}, i64 {inside}")
            limit = w.emit(f"mul i64 {limit}, {step}")
        if self.unchecked:
            mode = w.emit(f"and i32 {flags}, {3 << 28}")
            limit = w.emit(f"select i1 {w.emit(f'icmp eq i32 {mode}, {2 << 28}')}, i64 {1 << 39}, i64 {limit}")
        return base, offset, limit

    def _split(
        self, g: Gen, memory: Memory, args: list[str], whole: Callable[[str], None],
        clipped: Callable[[str, str, str], None],
    ) -> None:  # fmt: skip
        """Writes the access to a pointer where all of it is in range, and what happens where not all of it is."""
        w = g.w
        base, offset, limit = self._range(g, args)
        inside, outside, ready = w.fresh("range"), w.fresh("clip"), w.fresh("ready")
        end = w.emit(f"add i64 {offset}, {self.size}")
        w.branch(w.emit(f"icmp sle i64 {end}, {limit}"), inside, outside)
        w.start(inside)
        whole(memory.resolve(w.emit(f"add i64 {base}, {offset}"), ""))
        w.go(ready)
        w.start(outside)
        clipped(base, offset, limit)
        w.go(ready)
        w.start(ready)

    def _load(
        self, g: Gen, memory: Memory, one: Memory, room: str, args: list[str], lane: str, places: list[str]
    ) -> None:  # fmt: skip
        w = g.w
        ways: list[str] = []

        def whole(pointer: str) -> None:
            ways.append(f"[ {pointer}, %{w.block} ]")

        def clipped(base: str, offset: str, limit: str) -> None:
            w.do(f"store [{self.size} x i8] zeroinitializer, ptr {room}")
            g.count_clipped(self.inst, not places)
            self._components(g, one, base, offset, limit, room)
            ways.append(f"[ {room}, %{w.block} ]")

        self._split(g, memory, args, whole, clipped)
        source = w.emit(f"phi ptr {', '.join(ways)}")
        for i, (part, field) in enumerate(zip(self.values, self.fields, strict=True)):
            if not places:
                g.define_scalar(part, read_field(g, source, field))
            elif places[i]:
                g.put(part, lane, read_field(g, source, field), places[i])

    def _store(
        self, g: Gen, memory: Memory, one: Memory, room: str, args: list[str], values: list[str]
    ) -> None:  # fmt: skip
        def clipped(base: str, offset: str, limit: str) -> None:
            write_fields(g, room, self.fields, values)
            g.count_clipped(self.inst, False)
            self._components(g, one, base, offset, limit, room)

        self._split(g, memory, args, lambda pointer: write_fields(g, pointer, self.fields, values), clipped)

    def _components(self, g: Gen, one: Memory, base: str, offset: str, limit: str, room: str) -> None:
        """Moves the components that are in range between memory and the room on the stack."""
        w, t = g.w, f"i{self.component * 8}"
        for at in range(0, self.size, self.component):
            move, after = w.fresh("part"), w.fresh("skip")
            start = w.emit(f"add i64 {offset}, {at}")
            end = w.emit(f"add i64 {start}, {self.component}")
            w.branch(w.emit(f"icmp sle i64 {end}, {limit}"), move, after)
            w.start(move)
            pointer, place = one.resolve(w.emit(f"add i64 {base}, {start}"), ""), w.at(room, at)
            source, target = (place, pointer) if self.write else (pointer, place)
            w.do(f"store {t} {w.emit(f'load {t}, ptr {source}, align 1')}, ptr {target}, align 1")
            w.go(after)
            w.start(after)


class AtomicBufferStep(BufferStep):
    """An atomic operation of global memory whose result nobody reads; lanes that are out of range do nothing."""

    __slots__ = ("update",)

    def __init__(
        self, inst: Inst, where: Range, fields: list[Field], t: ty.Type, values: list[Part], update: Update, rdna: bool
    ) -> None:
        super().__init__(inst, where, fields, t, values, True, rdna)
        self.update = update

    def _store(
        self, g: Gen, memory: Memory, one: Memory, room: str, args: list[str], values: list[str]
    ) -> None:  # fmt: skip
        v = Values(g.w, False, g.fault_label)

        def whole(pointer: str) -> None:
            old = [read_field(g, pointer, field) for field in self.fields]
            write_fields(g, pointer, self.fields, [self.update(v, a, n) for a, n in zip(old, values, strict=True)])

        self._split(g, memory, args, whole, lambda *_: g.count_clipped(self.inst, False))


def descriptor(b: Lowering, parts: list[Part]) -> list[Part]:
    """The members of a descriptor that may be given as four words."""
    if parts[0].type == "i64":
        return parts[:4]
    types = ["i64", "i16", "i64", "i32"]

    def members(v: object, *words: str) -> list[str]:
        if not isinstance(v, Values):
            raise NotCovered("a descriptor")
        low, high = (v.cast("zext", "i32", word, "i64") for word in words[:2])
        top = v.op("shl", "i64", v.op("and", "i64", high, v.const("i64", 0xFFFF)), v.const("i64", 32))
        stride = v.op("and", "i32", v.op("lshr", "i32", words[1], v.const("i32", 16)), v.const("i32", 0x3FFF))
        return [
            v.op("or", "i64", low, top), v.cast("trunc", "i32", stride, "i16"),
            v.cast("zext", "i32", words[2], "i64"), words[3],
        ]  # fmt: skip

    return b.apply(members, parts, types)


def step(b: Lowering, inst: Inst, where: Range, t: ty.Type, values: list[Part] | None) -> list[Part]:
    """Adds a load (``values`` is ``None``) or store of a type; returns the loaded or stored parts."""
    fields = fields_of(t)
    if any(not f.plain for f in fields) or component_of(t) == 0:
        raise NotCovered(f"a buffer access of type {t}")
    rdna = b.program.target.chip.family.startswith("rdna")
    made = access.outputs_of(b, fields, all(p.uniform for p in where.parts)) if values is None else values
    number = b.add(BufferStep(inst, where, fields, t, made, values is not None, rdna))
    b.read([*where.parts, *(values or [])], number)
    return made


def load(b: Lowering, inst: Inst, structured: bool) -> list[Part]:
    """``raw/struct.(ptr.)buffer.load``."""
    return step(b, inst, _where(b, inst, 0, structured), inst.type, None)


def store(b: Lowering, inst: Inst, structured: bool) -> None:
    """``raw/struct.(ptr.)buffer.store``."""
    step(b, inst, _where(b, inst, 1, structured), inst.operands[0].type, b.parts(inst.operands[0]))


def _where(b: Lowering, inst: Inst, first: int, structured: bool) -> Range:
    rsrc = descriptor(b, b.parts(inst.operands[first]))
    index = b.part(inst.operands[first + 1]) if structured else None
    at = first + (2 if structured else 1)
    return Range(rsrc, index, [b.part(inst.operands[at]), b.part(inst.operands[at + 1])])


def atomic_step(b: Lowering, inst: Inst, where: Range, value: Operand, update: Update) -> None:
    """Adds an atomic operation, whose result nobody may read."""
    fields, parts = fields_of(value.type), b.parts(value)
    rdna = b.program.target.chip.family.startswith("rdna")
    number = b.add(AtomicBufferStep(inst, where, fields, value.type, parts, update, rdna))
    b.read([*where.parts, *parts], number)


def atomic_range(b: Lowering, inst: Inst, structured: bool) -> Range:
    """Where ``raw/struct.(ptr.)buffer.atomic.*`` acts."""
    return _where(b, inst, 1, structured)


def scalar_load(b: Lowering, inst: Inst) -> list[Part]:
    """``s.buffer.load``."""
    rsrc = descriptor(b, b.parts(inst.operands[0]))
    return step(b, inst, Range(rsrc, None, [b.part(inst.operands[1])]), inst.type, None)


def fat_load(b: Lowering, inst: Inst) -> list[Part]:
    """``load`` through a fat pointer."""
    parts = b.parts(inst.operands[0])
    return step(b, inst, Range(parts[:4], None, parts[4:]), inst.type, None)


def fat_store(b: Lowering, inst: Inst) -> None:
    """``store`` through a fat pointer."""
    parts = b.parts(inst.operands[1])
    step(b, inst, Range(parts[:4], None, parts[4:]), inst.operands[0].type, b.parts(inst.operands[0]))


def make_rsrc(b: Lowering, inst: Inst) -> list[Part]:
    """``make.buffer.rsrc``."""
    base, stride, records, flags = map(b.part, inst.operands)
    if records.type != "i64":
        records = b.apply(lambda v, a: [v.cast("zext", "i32", a, "i64")], [records], ["i64"])[0]
    offset = [Part("i32", True, -1, -1, "0")] if getattr(inst.type, "space", 8) == 7 else []
    return b.renamed([base, stride, records, flags, *offset])
