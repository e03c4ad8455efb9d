"""Writing the function of a kernel: where parts are, loops over lanes, and masks."""

from __future__ import annotations

from collections.abc import Callable

from ..ir import Inst
from .parts import Part, bytes_of
from .steps import held_type
from .text import WIDTH, Writer


class Gen:
    """State of the writer of one kernel.

    Attributes:
        lanes: Lanes of a workgroup, a multiple of the wave size.
        block: Work items of a workgroup: lanes from there on never run.
        masked: The node that is written may run with lanes missing.
        node: Its index.
        entry: Lines for the start of the function: variables.
        functions: Lines of the functions it calls, by name.
        end: Bytes of the register file so far.
        counters: Offset in the control block of the counters of clipped lanes.
        pending: Type of the set of nodes that lanes wait for.
    """

    def __init__(self, lanes: int, block: int, wave_size: int) -> None:
        self.w = Writer()
        self.entry: list[str] = []
        self.constants: list[str] = []
        self.lanes, self.block, self.wave_size = lanes, block, wave_size
        self.masked, self.node = False, -1
        self.fault_label = "fault"
        self.end = 0
        self.mask_slot = self.room(lanes // 8)
        self.frame_bytes = 0
        self.functions: dict[str, list[str]] = {}
        self.clipped: dict[Inst, int] = {}
        self.counters = 0
        self.pending = ""

    # ---- places

    def room(self, size_bytes: int) -> int:
        """Space in the register file; returns its byte offset."""
        at = self.end
        self.end += -(-size_bytes // 64) * 64
        return at

    def slot(self, part: Part) -> str:
        """Pointer to the lanes' values of a part; those of a uniform one are spread first."""
        if part.uniform:
            return self._spread(part)
        if part.base:
            return part.base
        if part.slot < 0:
            size = self.lanes // 8 if part.type == "i1" else self.lanes * bytes_of(part.type)
            part.slot = self.room(size)
        return self.place(part.slot)

    def place(self, offset: int) -> str:
        """Pointer into the register file."""
        return self.w.emit(f"getelementptr i8, ptr %rf, i64 {offset}")

    def _spread(self, part: Part) -> str:
        """A uniform value in all lanes of a fresh place."""
        from .steps import store_lanes

        base = self.place(self.room(self.lanes // 8 if part.type == "i1" else self.lanes * bytes_of(part.type)))
        value = self.splat(part)
        self.each_vector(lambda index: store_lanes(self, part.type, base, index, value, None), skip=False)
        return base

    def variable(self, t: str, start: str = "") -> str:
        """A variable of the function."""
        name = "%" + self.w.fresh("v")
        self.entry.append(f"  {name} = alloca {t}, align 16")
        if start:
            self.entry.append(f"  store {t} {start}, ptr {name}")
        return name

    # ---- uniform values

    def scalar(self, part: Part) -> str:
        """The value of a uniform part here."""
        if part.literal is not None:
            return part.literal
        if part.node in (-1, self.node) and part.name:
            return part.name
        return self.w.emit(f"load {part.type}, ptr {self.cell(part)}")

    def cell(self, part: Part) -> str:
        """The variable of a uniform part."""
        if not part.cell:
            part.cell = self.variable(held_type(part.type) if part.type != "i1" else "i1")
        return part.cell

    def define_scalar(self, part: Part, name: str) -> None:
        """Gives a uniform part its value in the node that is written."""
        part.name = name
        if part.leaves_node:
            self.w.do(f"store {part.type} {name}, ptr {self.cell(part)}")

    def splat(self, part: Part) -> str:
        """A uniform part as a vector."""
        if part.literal is not None:
            return f"splat ({part.type} {part.literal})"
        value, vector = self.scalar(part), f"<{WIDTH} x {part.type}>"
        one = self.w.emit(f"insertelement {vector} poison, {part.type} {value}, i64 0")
        return self.w.emit(f"shufflevector {vector} {one}, {vector} poison, <{WIDTH} x i32> zeroinitializer")

    def nobody_waits(self) -> str:
        """Whether all live lanes run in this node."""
        return self.w.emit(f"icmp eq {self.pending} {self.w.emit(f'load {self.pending}, ptr %pending')}, 0")

    # ---- counters

    def count(self, offset: int | str, amount: str) -> None:
        """Adds to a counter of the control block."""
        self._add(self.w.at("%ctl", offset), amount)

    def _add(self, place: str, amount: str) -> None:
        old = self.w.emit(f"load i64, ptr {place}")
        self.w.do(f"store i64 {self.w.emit(f'add i64 {old}, {amount}')}, ptr {place}")

    def count_clipped(self, inst: Inst, all_lanes: bool) -> None:
        """Counts a lane (or all running ones) whose buffer access was out of range."""
        number = self.clipped.setdefault(inst, len(self.clipped))
        amount = "1" if not all_lanes else self.active_lanes() if self.masked else str(self.block)
        self.count(self.counters + 8 * number, amount)

    def active_lanes(self) -> str:
        """Number of running lanes."""
        total = self.variable("i64")
        self.w.do(f"store i64 0, ptr {total}")

        def body(index: str) -> None:
            bits = self.w.call(f"i{WIDTH}", f"llvm.ctpop.i{WIDTH}", (f"i{WIDTH}", self.running(index)))
            self._add(total, self.w.emit(f"zext i{WIDTH} {bits} to i64"))

        self.each_vector(body, skip=False)
        return self.w.emit(f"load i64, ptr {total}")

    # ---- lanes

    def running(self, index: str, slot: int | None = None) -> str:
        """Bits of the running lanes in a vector."""
        base = self.place(self.mask_slot if slot is None else slot)
        return self.w.emit(f"load i{WIDTH}, ptr {self.w.emit(f'getelementptr i{WIDTH}, ptr {base}, i64 {index}')}")

    def check_mask(self, index: str) -> str | None:
        """Bits of the lanes whose faults count; ``None`` for all."""
        return self.running(index) if self.masked or self.block < self.lanes else None

    def each_vector(self, body: Callable[[str], None], skip: bool = True) -> None:
        """A loop over the vectors of lanes; in a masked node vectors without a running lane are left out."""
        w = self.w

        def one(index: str, after: str) -> None:
            if skip and self.masked:
                work = w.fresh("work")
                w.branch(w.emit(f"icmp ne i{WIDTH} {self.running(index)}, 0"), work, after)
                w.start(work)
            body(index)

        self.w.counted("vec", self.lanes // WIDTH, one)

    def each_lane(self, body: Callable[[str], None]) -> None:
        """A loop over the running lanes, in their order."""
        if self.masked:
            self.each_vector(lambda index: self.each_bit(index, body))
        else:
            self.w.counted("lane", self.block, lambda lane, _: body(lane))

    def each_bit(self, index: str, body: Callable[[str], None]) -> None:
        """A loop over the running lanes of a vector that has one."""
        w, head, after, done = self.w, self.w.fresh("bit"), self.w.fresh("next"), self.w.fresh("done")
        bits, rest, before = "%" + w.fresh("m"), "%" + w.fresh("m"), w.fresh("pre")
        start = w.emit(f"zext i{WIDTH} {self.running(index)} to i64")
        base = w.emit(f"mul i64 {index}, {WIDTH}")
        w.go(before)
        w.start(before)
        w.go(head)
        w.start(head)
        w.lines.append(f"  {bits} = phi i64 [ {start}, %{before} ], [ {rest}, %{after} ]")
        place = w.call("i64", "llvm.cttz.i64", ("i64", bits), ("i1", "true"))
        body(w.emit(f"add i64 {base}, {place}"))
        w.go(after)
        w.start(after)
        w.lines.append(f"  {rest} = and i64 {bits}, {w.emit(f'sub i64 {bits}, 1')}")
        w.branch(w.emit(f"icmp ne i64 {rest}, 0"), head, done)
        w.start(done)

    def each_wave(self, body: Callable[[str], None], whole: bool = False) -> None:
        """A loop over the waves with a running lane; with ``whole`` a wave with inactive lanes is a fault."""
        w = self.w
        if whole and not self.masked and self.block < self.lanes:
            w.go(self.fault_label)
            w.start(w.fresh("dead"))

        def one(wave: str, after: str) -> None:
            if self.masked:
                some, all_of = w.fresh("some"), w.fresh("all")
                bits = self.wave_bits(wave)
                t = f"i{self.wave_size}"
                w.branch(w.emit(f"icmp ne {t} {bits}, 0"), some, after)
                w.start(some)
                if whole:
                    w.branch(w.emit(f"icmp eq {t} {bits}, -1"), all_of, self.fault_label)
                    w.start(all_of)
            body(wave)

        self.w.counted("wave", self.lanes // self.wave_size, one)

    def wave_bits(self, wave: str) -> str:
        """Bits of the running lanes of a wave."""
        place = self.w.emit(f"getelementptr i{self.wave_size}, ptr {self.place(self.mask_slot)}, i64 {wave}")
        return self.w.emit(f"load i{self.wave_size}, ptr {place}")

    def get(self, part: Part, lane: str, base: str = "") -> str:
        """The value of a part in one lane; ``base`` is its `slot`, where that is known already."""
        if part.uniform:
            return self.scalar(part)
        w, base = self.w, base or self.slot(part)
        if part.type == "i1":
            word = w.emit(f"lshr i64 {lane}, 3")
            byte = w.emit(f"load i8, ptr {w.emit(f'getelementptr i8, ptr {base}, i64 {word}')}")
            shift = w.emit(f"trunc i64 {w.emit(f'and i64 {lane}, 7')} to i8")
            return w.emit(f"trunc i8 {w.emit(f'lshr i8 {byte}, {shift}')} to i1")
        held = held_type(part.type)
        value = w.emit(f"load {held}, ptr {w.emit(f'getelementptr {held}, ptr {base}, i64 {lane}')}")
        return value if held == part.type else w.emit(f"trunc {held} {value} to {part.type}")

    def put(self, part: Part, lane: str, value: str, base: str) -> None:
        """Sets a varying part in one lane."""
        w = self.w
        if part.type == "i1":
            word = w.emit(f"lshr i64 {lane}, 3")
            place = w.emit(f"getelementptr i8, ptr {base}, i64 {word}")
            shift = w.emit(f"trunc i64 {w.emit(f'and i64 {lane}, 7')} to i8")
            keep = w.emit(f"xor i8 {w.emit(f'shl i8 1, {shift}')}, -1")
            bit = w.emit(f"shl i8 {w.emit(f'zext i1 {value} to i8')}, {shift}")
            old = w.emit(f"and i8 {w.emit(f'load i8, ptr {place}')}, {keep}")
            w.do(f"store i8 {w.emit(f'or i8 {old}, {bit}')}, ptr {place}")
            return
        held = held_type(part.type)
        if held != part.type:
            value = w.emit(f"zext {part.type} {value} to {held}")
        w.do(f"store {held} {value}, ptr {w.emit(f'getelementptr {held}, ptr {base}, i64 {lane}')}")
