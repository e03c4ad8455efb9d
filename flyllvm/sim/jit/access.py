"""Loads and stores: every running lane finds its bytes, checked, and moves them.

Bounds are checked against the regions of the memory with a hint per instruction: the region of the last access.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .. import types as ty
from ..ir import Inst, Operand
from ..values import LDS_APERTURE, PRIVATE_APERTURE
from .bits import Field, fields_of
from .parts import NotCovered, Part
from .steps import Step, load_lanes, store_lanes
from .text import WIDTH

if TYPE_CHECKING:
    from .gen import Gen
    from .lower import Lowering


class Memory:
    """Finds the bytes of lanes in one address space."""

    __slots__ = ("_hint", "g", "size", "space", "write")

    def __init__(self, g: Gen, space: int, size: int | str, write: bool) -> None:
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
        return self.pointer(address)

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
        hint = self._hint_of(name)
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

    def near(self, address: str, byte_count: int) -> str:
        """Whether bytes from an address (i64) on lie in the region of the last access."""
        name = "global" if self.space in (1, 4) else "lds"
        w, hint = self.g.w, self._hint_of(name)
        at = w.emit(f"sub i64 {address}, {w.emit(f'load i64, ptr {hint}')}")
        size = w.emit(f"load i64, ptr {w.at(hint, 8)}")
        inside = w.emit(f"icmp ule i64 {w.emit(f'add i64 {at}, {byte_count}')}, {size}")
        return w.emit(f"and i1 {inside}, {w.emit(f'icmp ult i64 {at}, {size}')}")

    def pointer(self, address: str) -> str:
        """Pointer to an address (i64) that is known to be good."""
        w = self.g.w
        if self.space == 3:
            return w.emit(f"getelementptr i8, ptr %lds, i64 {address}")
        return w.emit(f"inttoptr i64 {w.emit(f'add i64 {address}, %bias')} to ptr")

    def _hint_of(self, name: str) -> str:
        if name not in self._hint:
            self._hint[name] = self.g.variable("{ i64, i64 }", "zeroinitializer")
        return self._hint[name]

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
        if _in_vectors(self.space, self.address, self.fields) and targets:
            part, base, field = targets[0]

            def vector(pointer: str, index: str) -> None:
                value = g.w.emit(f"load <{WIDTH} x {field.type}>, ptr {pointer}, align 1")
                store_lanes(g, part.type, base, index, value, None)

            def one(lane: str) -> None:
                pointer = memory.resolve(g.get(self.address, lane, source), lane)
                g.put(part, lane, read_field(g, pointer, field), base)

            neighbours(g, memory, self.address, source, field.size, vector, one)
            return

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
        if _in_vectors(self.space, self.address, self.fields):
            part, field = self.values[0], self.fields[0]
            known = g.splat(part) if part.uniform else ""

            def vector(pointer: str, index: str) -> None:
                value = known or load_lanes(g, part.type, bases[1], index)
                g.w.do(f"store <{WIDTH} x {field.type}> {value}, ptr {pointer}, align 1")

            def one(lane: str) -> None:
                value = g.get(part, lane, bases[1])
                pointer = memory.resolve(g.get(self.address, lane, bases[0]), lane)
                write_fields(g, pointer, self.fields, [value])

            neighbours(g, memory, self.address, bases[0], field.size, vector, one)
            return

        def body(lane: str) -> None:
            address, *values = (g.get(p, lane, b) for p, b in zip(parts, bases, strict=True))
            write_fields(g, memory.resolve(address, lane), self.fields, values)

        g.each_lane(body)


def _in_vectors(space: int, address: Part, fields: list[Field]) -> bool:
    """Whether lanes may access a vector's worth of neighbouring values at once."""
    return space in (1, 3, 4) and not address.uniform and len(fields) == 1 and fields[0].plain


def neighbours(
    g: Gen, memory: Memory, address: Part, base: str, size: int,
    vector: Callable[[str, str], None], one: Callable[[str], None],
) -> None:  # fmt: skip
    """Accesses of all running lanes: at once where a vector of lanes has neighbouring addresses, else one by one."""
    w, t = g.w, address.type
    steps = ", ".join(f"{t} {i * size}" for i in range(WIDTH))

    def body(index: str) -> None:
        at_once, single, work, done = (w.fresh(s) for s in ("at_once", "single", "work", "moved"))
        bits = g.running(index)
        places = load_lanes(g, t, base, index)
        first = w.emit(f"extractelement <{WIDTH} x {t}> {places}, i64 0")
        row = w.emit(f"insertelement <{WIDTH} x {t}> poison, {t} {first}, i64 0")
        row = w.emit(f"shufflevector <{WIDTH} x {t}> {row}, <{WIDTH} x {t}> poison, <{WIDTH} x i32> zeroinitializer")
        row = w.emit(f"add <{WIDTH} x {t}> {row}, <{steps}>")
        same = w.emit(f"icmp eq <{WIDTH} x {t}> {row}, {places}")
        good = w.emit(f"and i{WIDTH} {bits}, {w.emit(f'bitcast <{WIDTH} x i1> {same} to i{WIDTH}')}")
        whole = w.emit(f"icmp eq i{WIDTH} {good}, -1")
        wide = first if t == "i64" else w.emit(f"zext i32 {first} to i64")
        w.branch(w.emit(f"and i1 {whole}, {memory.near(wide, size * WIDTH)}"), at_once, single)
        w.start(at_once)
        vector(memory.pointer(wide), index)
        w.go(done)
        w.start(single)
        w.branch(w.emit(f"icmp eq i{WIDTH} {bits}, 0"), done, work)
        w.start(work)
        g.each_bit(index, one)
        w.go(done)
        w.start(done)

    g.each_vector(body)


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
