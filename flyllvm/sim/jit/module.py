"""The host module of a kernel: one function that runs workgroups one after the other.

Its arguments are the *control block* (shared with the caller: sizes, arguments, counters, the regions of global
memory), the bytes of global memory, the *register file* (the lanes' values, LDS, private memory) and a range of
workgroups.  It returns a `STATUS`.
"""

from __future__ import annotations

from .. import matrix, matrix_transpose
from ..cfg import Node
from ..compile import Program
from ..ir import Inst
from ..memory import HEAP_BASE
from ..support import UnsupportedError
from .control import Control
from .gen import Gen
from .lower import Lowering
from .parts import NotCovered, Part
from .pieces import FIND_REGION, ends, lane_tables, once, region_table
from .text import Writer
from .uniform import Divergence

#: What the function returns: done; a fault; too many blocks; lanes at a barrier that others miss.
DONE, FAULT, ENDLESS, STRANGE = range(4)
#: Offsets in the control block, in bytes.
GRID, FUEL, DIVERGENCES, REGIONS, POINTERS, PARAMS = 0, 24, 32, 40, 48, 128
REGION_BYTES = 32


class HostCode:
    """A kernel as host code, for one block size.

    Attributes:
        alone: Its workgroups must run one after the other.
        length: Steps of a workgroup without a loop; 0 where it has one.
        text: LLVM IR of the host.
        state_bytes: Size of the register file.
        counters: Offset in the control block of the runs, lanes and waves of each node.
        clipped: Instructions with a counter of clipped lanes, in the order of the counters that follow.
        control_bytes: Size of the control block without the table of regions, which follows it.
        full: Nodes that always run with all live lanes, whose lanes and waves are not counted.
        pointers: Which of the addresses ``dispatch``, ``implicit``, ``kernarg`` it uses.
        key: Names the text.
        warnings: Node, instruction and text of what the report warns of where the node runs.
    """

    __slots__ = (
        "alone",
        "clipped",
        "clipped_at",
        "control_bytes",
        "counters",
        "full",
        "key",
        "length",
        "pointers",
        "state_bytes",
        "text",
        "warnings",
    )

    def __init__(self) -> None:
        self.text, self.key, self.alone = "", "", False
        self.state_bytes = self.control_bytes = self.counters = self.clipped_at = self.length = 0
        self.clipped: list[Inst] = []
        self.warnings: list[tuple[int, Inst, str]] = []
        self.full: list[bool] = []
        self.pointers: frozenset[str] = frozenset()


def build(program: Program, block: tuple[int, int, int], dynamic_lds_bytes: int) -> HostCode:
    """The host code of a kernel.

    Raises:
        UnsupportedError: Something is not covered; all of it is listed.
    """
    return _Builder(program, block, dynamic_lds_bytes).build()


_VARYING = (
    "readlane writelane ds.bpermute ds.swizzle mov.dpp update.dpp permlane16 permlanex16 permlane32 permlane64 ballot "
    "inverse.ballot mbcnt.lo mbcnt.hi wave.id mov.dpp8 ds.permute permlane wave.reduce wave.shuffle"
).split()


class _Builder:
    def __init__(self, program: Program, block: tuple[int, int, int], dynamic_lds_bytes: int) -> None:
        self.program, self.block = program, block
        self.nodes: list[Node] = [n.node for n in program.nodes]
        self.wave_size = program.target.wave_size
        self.block_lanes = block[0] * block[1] * block[2]
        self.waves = -(-self.block_lanes // self.wave_size)
        self.g = Gen(self.waves * self.wave_size, self.block_lanes, self.wave_size)
        self.lds_regions, self.lds_bytes = program.lds_layout(dynamic_lds_bytes)

    def build(self) -> HostCode:
        endless = [n for n in self.nodes if not any(not self.nodes[i].successors for i in n.reaches | {n.index})]
        divergence = Divergence(self.nodes, self._is_seed, lambda inst: False)
        self.divergence = divergence
        self.b = Lowering(self.program, self.nodes, self.block, divergence)
        self.b.run()
        missing = [*self.b.missing, *(f"line {n.end.line}: a loop without an end" for n in endless[:1])]
        if missing:
            raise self._refusal(missing)
        try:
            return self._write()
        except NotCovered as e:
            raise self._refusal([e.what]) from None

    def _refusal(self, missing: list[str]) -> UnsupportedError:
        return UnsupportedError(
            f"@{self.program.kernel.name} uses what the second engine does not cover: {'; '.join(missing)}",
            self.program.where(self.nodes[0].end), "use engine='auto' or engine='numpy'",
        )  # fmt: skip

    def _is_seed(self, inst: Inst) -> bool:
        """Whether the result of an instruction differs between lanes whatever its operands are."""
        if inst.op == "load":
            return getattr(inst.operands[0].type, "space", 0) in (0, 5)
        if inst.op != "call" or not inst.callee:
            return inst.op in ("atomicrmw", "cmpxchg")
        name = inst.callee.removeprefix("llvm.amdgcn.")
        for axis, letter in enumerate("xyz"):
            if name == f"workitem.id.{letter}":
                return self.block[axis] != 1
        if matrix.supports(name) or matrix_transpose.is_transposing(name) or "atomic" in name:
            return True
        return any(name == word or name.startswith(word + ".") for word in _VARYING)

    # ---- writing

    def _write(self) -> HostCode:
        g, code, program = self.g, HostCode(), self.program
        g.frame_bytes = program.frame_bytes
        params = [p for param in program.kernel.params for p in self.b.values[param.name]]
        code.counters = PARAMS + 8 * len(params)
        code.clipped_at = g.counters = code.counters + 24 * len(self.nodes)
        self._name_params(params)
        control = Control(g, self.b, self.nodes, self.divergence)
        body = g.w
        for node in self.nodes:
            self._node(node, control, code)
        if control.pending:
            control.dispatch()
        code.alone = bool(self.b.global_atomics)
        if not any(node.header_of for node in self.nodes):
            code.length = sum(len(steps) for steps in self.b.steps)
        code.clipped, code.warnings = list(g.clipped), self.b.warnings
        code.pointers = frozenset(name[1:-4] for name in self.b.known if name.endswith("_ptr"))
        code.control_bytes = -(-(code.clipped_at + 8 * len(code.clipped)) // 64) * 64
        code.full = [n.index not in self.divergence.masked for n in self.nodes]
        self.lds_at = g.room(self.lds_bytes)
        self.private_at = g.room(program.frame_bytes * g.lanes)
        start = self._start(params, control, code.control_bytes)
        code.state_bytes = g.end
        lines = [
            *([control.loops_table()] if control.pending else []),
            *lane_tables(list(self.b.known), self.block, self.g.lanes, self.wave_size),
            region_table("@lds_regions", self.lds_regions),
            region_table("@private_regions", self.program.frame_regions),
            *[line for function in g.functions.values() for line in function],
            FIND_REGION,
            "define i32 @run(ptr noalias %ctl, ptr noalias %heap, ptr noalias %rf, i64 %first, i64 %count) #0 {",
            *start, *body.lines, *ends(DONE, FAULT, ENDLESS, STRANGE), "}",
            'attributes #0 = { nounwind "prefer-vector-width"="512" "min-legal-vector-width"="512" }',
        ]  # fmt: skip
        declared = dict.fromkeys([*body.declared, *self.declared])
        code.text = "\n".join([*(d for d in declared), *once(lines)])
        return code

    def _node(self, node: Node, control: Control, code: HostCode) -> None:
        g = self.g
        g.node, g.masked = node.index, node.index in self.divergence.masked
        g.w.start(f"node{node.index}")
        at = code.counters + 24 * node.index
        g.count(at, "1")
        if g.masked:
            self._count_lanes(at)
        if node.header_of:
            fuel = g.w.emit(f"sub i64 {g.w.emit('load i64, ptr %fuel')}, 1")
            g.w.do(f"store i64 {fuel}, ptr %fuel")
            going = g.w.fresh("going")
            g.w.branch(g.w.emit(f"icmp slt i64 {fuel}, 0"), "endless", going)
            g.w.start(going)
        for phi in node.phis:
            for part in self.b.values[phi.name or ""]:
                if part.uniform and part.readers:
                    part.name = g.w.emit(f"load {part.type}, ptr {g.cell(part)}")
        for step in self.b.steps[node.index]:
            step.emit(g)
        control.end(node)

    def _count_lanes(self, at: int) -> None:
        g, t = self.g, f"i{self.wave_size}"

        def body(wave: str) -> None:
            bits = g.w.call(t, f"llvm.ctpop.{t}", (t, g.wave_bits(wave)))
            g.count(at + 8, bits if t == "i64" else g.w.emit(f"zext {t} {bits} to i64"))
            g.count(at + 16, "1")

        g.each_wave(body)

    def _name_params(self, params: list[Part]) -> None:
        for i, part in enumerate(params):
            part.name = f"%p{i}"

    def _start(self, params: list[Part], control: Control, regions_at: int) -> list[str]:
        """The entry of the function, and the start of a workgroup."""
        w, g = Writer(), self.g
        w._count = 1 << 20  # names apart from those of the body
        w.start("entry")
        w.lines += g.entry
        for axis, letter in enumerate("xyz"):
            w.do(f"%grid_{letter} = load i64, ptr {w.at('%ctl', GRID + 8 * axis)}")
        w.do(f"%max_steps = load i64, ptr {w.at('%ctl', FUEL)}")
        w.do(f"%region_count = load i64, ptr {w.at('%ctl', REGIONS)}")
        for i, name in enumerate(("dispatch", "implicit", "kernarg")):
            w.do(f"%{name}_ptr = load i64, ptr {w.at('%ctl', POINTERS + 8 * i)}")
        w.do(f"%regions = getelementptr i8, ptr %ctl, i64 {regions_at}")
        w.do("%heap_start = ptrtoint ptr %heap to i64")
        w.do(f"%bias = sub i64 %heap_start, {HEAP_BASE}")
        w.do(f"%lds = getelementptr i8, ptr %rf, i64 {self.lds_at}")
        w.do(f"%private = getelementptr i8, ptr %rf, i64 {self.private_at}")
        w.do(f"%lds_count = add i64 0, {len(self.lds_regions)}")
        w.do(f"%private_count = add i64 0, {len(self.program.frame_regions)}")
        w.do("%fuel = alloca i64, align 8")
        w.do("%last = add i64 %first, %count")
        for i, part in enumerate(params):
            w.do(f"%p{i} = load {part.type}, ptr {w.at('%ctl', PARAMS + 8 * i)}")
        w.go("group")
        w.start("group")
        w.lines.append("  %linear = phi i64 [ %first, %entry ], [ %linear1, %group_done ]")
        w.do("store i64 %max_steps, ptr %fuel")
        self._group_ids(w)
        self._clear(w, control)
        w.go("node0")
        self.declared = list(w.declared)
        return w.lines

    def _group_ids(self, w: Writer) -> None:
        row = w.emit("udiv i64 %linear, %grid_x")
        plane = w.emit(f"udiv i64 {row}, %grid_y")
        for letter, value in (
            ("x", w.emit("urem i64 %linear, %grid_x")),
            ("y", w.emit(f"urem i64 {row}, %grid_y")),
            ("z", plane),
        ):
            w.do(f"%group_{letter} = trunc i64 {value} to i32")

    def _clear(self, w: Writer, control: Control) -> None:
        """Fresh LDS and private memory, no pending lanes, all lanes running."""
        g = self.g
        for offset, size in (
            (self.lds_at, self.lds_bytes), (self.private_at, g.frame_bytes * g.lanes),
            (control.slots, control.mask_bytes * len(control.pending)),
        ):  # fmt: skip
            if size:
                w.declared["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
                w.do(f"call void @llvm.memset.p0.i64(ptr {w.at('%rf', offset)}, i8 0, i64 {size}, i1 false)")
        w.do(f"store {control.bits} 0, ptr %pending")
        if self.b.splits:
            w.do("store i1 false, ptr %signalled")
        whole = f"i{g.lanes}"
        w.do(f"store {whole} {(1 << self.block_lanes) - 1}, ptr {w.at('%rf', g.mask_slot)}, align 8")
