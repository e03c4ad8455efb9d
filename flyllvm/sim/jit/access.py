"""Loads and stores: every running lane finds its bytes, checked, and moves them.

Bounds are checked against the regions of the memory with a hint per instruction: the region of the last access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .. import types as ty
from ..ir import Inst, Operand
from ..values import LDS_APERTURE, PRIVATE_APERTURE
from .bits import Field, fields_of
from .parts import NotCovered, Part
from .steps import Step

if TYPE_CHECKING:
    from .gen import Gen
    from .lower import Lowering


class Memory:
    """Finds the bytes of lanes in one address space."""

    __slots__ = ("_hint", "g", "size", "space", "write")

    def __init__(self, g: Gen, space: int, size: int, write: bool) -> None:
        self.g, self.space, self.size, self.write = g, space, size, write
        self._hint: dict[str, str] = {}

    def resolve(self, address: str, lane: str) -> str:
        """Pointer to the bytes at an address of the memory; goes to the fault label where they are not all inside.

        ``address`` has the width of the address space's pointers.
        """
        if self.space == 0:
            return self._flat(address, lane)
        if self.space in (1, 4):
            return self._global(address)
        wide = self.g.w.emit(f"zext i32 {address} to i64")
        return self._local(wide) if self.space == 3 else self._private(wide, lane)

    def _global(self, address: str) -> str:
        self.check(address, "global", "%regions", "%region_count")
        w = self.g.w
        return w.emit(f"inttoptr i64 {w.emit(f'add i64 {address}, %bias')} to ptr")

    def _local(self, address: str) -> str:
        self.check(address, "lds", "@lds_regions", "%lds_count")
        return self.g.w.emit(f"getelementptr i8, ptr %lds, i64 {address}")

    def _private(self, address: str, lane: str) -> str:
        self.check(address, "private", "@private_regions", "%private_count")
        w = self.g.w
        row = w.emit(f"mul i64 {lane or '0'}, {self.g.frame_bytes}")
        return w.emit(f"getelementptr i8, ptr %private, i64 {w.emit(f'add i64 {row}, {address}')}")

    def check(self, address: str, name: str, table: str, count: str) -> None:
        """Goes to the fault label unless the bytes at an address lie in one region of a table."""
        g, w = self.g, self.g.w
        hint = self._hint.get(name)
        if hint is None:
            hint = self._hint[name] = g.variable("{ i64, i64 }", "zeroinitializer")
        good, slow = w.fresh("in"), w.fresh("look")
        start = w.emit(f"load i64, ptr {hint}")
        size = w.emit(f"load i64, ptr {w.at(hint, 8)}")
        at = w.emit(f"sub i64 {address}, {start}")
        end = w.emit(f"add i64 {at}, {self.size}")
        inside = w.emit(f"icmp ule i64 {end}, {size}")
        below = w.emit(f"icmp ult i64 {at}, {size}")
        w.branch(w.emit(f"and i1 {inside}, {below}"), good, slow)
        w.start(slow)
        write = "true" if self.write else "false"
        found = w.emit(
            f"call i1 @find_region(ptr {table}, i64 {count}, i64 {address}, i64 {self.size}, i1 {write}, ptr {hint})"
        )
        w.branch(found, good, g.fault_label)
        w.start(good)

    def _flat(self, address: str, lane: str) -> str:
        """A flat address: its high half tells the memory."""
        w = self.g.w
        high = w.emit(f"lshr i64 {address}, 32")
        low = w.emit(f"and i64 {address}, {0xFFFFFFFF}")
        lds, private, heap, done = (w.fresh(s) for s in ("flat_lds", "flat_private", "flat_global", "flat"))
        w.do(f"switch i64 {high}, label %{heap} [ i64 {LDS_APERTURE}, label %{lds}")
        w.lines[-1] += f" i64 {PRIVATE_APERTURE}, label %{private} ]"
        ways = []
        for space, label in ((1, heap), (3, lds), (5, private)):
            w.start(label)
            pointer = (
                self._global(address) if space == 1 else self._local(low) if space == 3 else self._private(low, lane)
            )
            ways.append(f"[ {pointer}, %{w.block} ]")
            w.go(done)
        w.start(done)
        return w.emit(f"phi ptr {', '.join(ways)}")


def read_field(g: Gen, base: str, field: Field) -> str:
    """The part that a field holds."""
    w, place = g.w, g.w.at(base, field.offset)
    if field.plain:
        return w.emit(f"load {field.type}, ptr {place}, align 1")
    wide = f"i{field.size * 8}"
    value = w.emit(f"load {wide}, ptr {place}, align 1")
    if field.shift:
        value = w.emit(f"lshr {wide} {value}, {field.shift}")
    return value if wide == field.type else w.emit(f"trunc {wide} {value} to {field.type}")


def write_fields(g: Gen, base: str, fields: list[Field], values: list[str]) -> None:
    """Writes parts to their fields; those that share bytes are packed together."""
    w, at = g.w, 0
    while at < len(fields):
        field = fields[at]
        if field.plain:
            w.do(f"store {field.type} {values[at]}, ptr {w.at(base, field.offset)}, align 1")
            at += 1
            continue
        wide, total = f"i{field.size * 8}", ""
        while at < len(fields) and fields[at].offset == field.offset and not fields[at].plain:
            value = values[at]
            if wide != fields[at].type:
                value = w.emit(f"zext {fields[at].type} {value} to {wide}")
            if fields[at].shift:
                value = w.emit(f"shl {wide} {value}, {fields[at].shift}")
            total = w.emit(f"or {wide} {total}, {value}") if total else value
            at += 1
        w.do(f"store {wide} {total}, ptr {w.at(base, field.offset)}, align 1")


class Load(Step):
    """``load``."""

    __slots__ = ("address", "fields", "outputs", "size", "space")

    def __init__(self, space: int, address: Part, fields: list[Field], size: int, outputs: list[Part]) -> None:
        self.space, self.address, self.fields, self.size, self.outputs = space, address, fields, size, outputs

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        memory = Memory(g, self.space, self.size, False)
        if all(p.uniform for p in self.outputs):
            pointer = memory.resolve(g.scalar(self.address), "")
            for part, field in zip(self.outputs, self.fields, strict=True):
                g.define_scalar(part, read_field(g, pointer, field))
            return
        source = "" if self.address.uniform else g.slot(self.address)
        targets = [(p, g.slot(p), f) for p, f in zip(self.outputs, self.fields, strict=True) if p.readers]

        def body(lane: str) -> None:
            pointer = memory.resolve(g.get(self.address, lane, source), lane)
            for part, base, field in targets:
                g.put(part, lane, read_field(g, pointer, field), base)

        g.each_lane(body)


class Store(Step):
    """``store``."""

    __slots__ = ("address", "fields", "size", "space", "values")

    def __init__(self, space: int, address: Part, fields: list[Field], size: int, values: list[Part]) -> None:
        self.space, self.address, self.fields, self.size, self.values = space, address, fields, size, values

    def emit(self, g: Gen) -> None:
        """Writes the step."""
        memory = Memory(g, self.space, self.size, True)
        if self.space not in (0, 5) and all(p.uniform for p in (self.address, *self.values)):
            pointer = memory.resolve(g.scalar(self.address), "")
            write_fields(g, pointer, self.fields, [g.scalar(p) for p in self.values])
            return
        parts = [self.address, *self.values]
        bases = ["" if p.uniform else g.slot(p) for p in parts]

        def body(lane: str) -> None:
            address, *values = (g.get(p, lane, b) for p, b in zip(parts, bases, strict=True))
            write_fields(g, memory.resolve(address, lane), self.fields, values)

        g.each_lane(body)


def space_of(operand: Operand) -> int:
    """The address space that a pointer points to."""
    space = getattr(operand.type, "space", 0)
    if space not in (0, 1, 3, 4, 5, 7):
        raise NotCovered(f"access to address space {space}")
    return int(space)


def outputs_of(b: Lowering, fields: list[Field], uniform: bool) -> list[Part]:
    """Fresh parts for what the step that is about to be added reads."""
    number = len(b.steps[b.node.index])
    uniform = uniform and b.inst.name not in b.divergence.forced
    return [Part(f.type, uniform, b.node.index, number) for f in fields]


def load_or_store(b: Lowering, inst: Inst) -> list[Part] | None:
    """``load``, or ``store``, which has no result."""
    if "atomic" in inst.flags and space_of(inst.operands[inst.op == "store"]) not in (3, 5):
        raise NotCovered(f"atomic {inst.op} of global memory")
    if inst.op == "load":
        return _load(b, inst)
    _store(b, inst)
    return None


def _load(b: Lowering, inst: Inst) -> list[Part]:
    from . import buffer

    space = space_of(inst.operands[0])
    if space == 7:
        return buffer.fat_load(b, inst)
    address, fields = b.part(inst.operands[0]), fields_of(inst.type)
    made = outputs_of(b, fields, address.uniform and space not in (0, 5))
    b.read([address], b.add(Load(space, address, fields, ty.store_size(inst.type), made)))
    return made


def _store(b: Lowering, inst: Inst) -> None:
    from . import buffer

    space = space_of(inst.operands[1])
    if space == 7:
        buffer.fat_store(b, inst)
        return
    values, address = b.parts(inst.operands[0]), b.part(inst.operands[1])
    fields, size = fields_of(inst.operands[0].type), ty.store_size(inst.operands[0].type)
    b.read([*values, address], b.add(Store(space, address, fields, size, values)))
