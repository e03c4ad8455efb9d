"""From the instructions of a node to its steps.

What only takes vectors and aggregates apart or puts them together renames parts; everything that computes becomes
an operation of a `Region`, and the rest a step of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from .. import mode, types as ty
from ..cfg import WHOLE_BARRIER, Node
from ..compile import Program
from ..denormals import flushes_f32
from ..ir import Const, Inst, Operand, Reg
from ..parse_inst import BINARY
from ..values import signed
from . import arith
from .arith import Fn
from .parts import NotCovered, Part, constant_parts, is_wide, part_types, scalar_type
from .steps import Op, Region, Step
from .uniform import Divergence

#: Step number of a node's end: its condition, and the phis of its successors.
END = 1 << 30


class Lowering:
    """Builds the steps of all nodes of a kernel.

    Attributes:
        values: Parts of each value, by name.
        steps: Steps of each node.
        phis: Parts of each phi, by name.
        missing: What is not covered, as text with the line.
        flush, saturates: The kernel flushes denormal floats; runs with MODE.FP16_OVFL.
        used: Names of values that an instruction reads.
        warnings: Node, instruction and text of what the report warns of where the node runs.
        splits: A barrier is signalled in another node than it is waited for, so that the code keeps track of it.
        global_atomics: Classes of the atomic operations on global memory so far.
    """

    def __init__(
        self, program: Program, nodes: list[Node], block: tuple[int, int, int], divergence: Divergence
    ) -> None:
        self.program, self.nodes, self.block, self.divergence = program, nodes, block, divergence
        self.waves = -(-block[0] * block[1] * block[2] // program.target.wave_size)
        self.flush, self.saturates = flushes_f32(program.kernel), mode.saturates(nodes)
        self.values: dict[str, list[Part]] = {}
        self.steps: list[list[Step]] = [[] for _ in nodes]
        self.missing: list[str] = []
        self.node = nodes[0]
        self.inst = nodes[0].end
        self._constants: dict[int, list[Part]] = {}
        self.known: dict[str, Part] = {}
        self.warnings: list[tuple[int, Inst, str]] = []
        self.global_atomics: set[str] = set()
        self.splits = any(len(_signals(node)) != _waits(node) for node in nodes)
        insts = [i for n in nodes for i in (*n.phis, *n.insts, n.end)]
        self.used = {o.name for i in insts for o in i.operands if isinstance(o, Reg)}

    # ---- building

    def run(self) -> None:
        """Builds the steps; what is not covered is in ``missing`` afterwards."""
        for i, param in enumerate(self.program.kernel.params):
            try:
                types = [scalar_type(param.type)] if is_wide(param.type) else part_types(param.type)
                self.values[param.name] = [Part(t, True, -1, -1) for t in types]
            except NotCovered as e:
                self.missing.append(f"parameter {i}: {e.what}")
        for node in self.nodes:
            for phi in node.phis:
                self._guarded(phi, lambda phi=phi, node=node: self._phi(phi, node))  # type: ignore[misc]
        for node in self.nodes:
            self.node = node
            for inst in node.insts:
                self._guarded(inst, lambda inst=inst: self._instruction(inst))  # type: ignore[misc]
            self._guarded(node.end, self._end)

    def _guarded(self, inst: Inst, run: Callable[[], None]) -> None:
        self.inst = inst
        try:
            run()
        except (AttributeError, IndexError, KeyError, StopIteration, TypeError, ValueError, NotCovered) as e:
            # what no rule here can make sense of is left to the first engine, which knows all forms
            what = e.what if isinstance(e, NotCovered) else f"this form of {inst.callee or inst.op}"
            text = f"line {inst.line}: {what}"
            if what and text not in self.missing and len(self.missing) < 20:
                self.missing.append(text)
            if inst.name is not None and inst.name not in self.values:
                self.values[inst.name] = []

    def _phi(self, phi: Inst, node: Node) -> None:
        uniform = phi.name not in self.divergence.varying
        self.values[phi.name or ""] = [Part(t, uniform, node.index, -1) for t in part_types(phi.type)]

    def _end(self) -> None:
        node = self.node
        self._check_barrier(node)
        for operand in node.end.operands if node.end.op in ("br", "switch") else ():
            self.read(self.parts(operand), END)
        for successor in node.successors if node.end.op != "call" else ():
            for phi in successor.phis:
                self.read(self.parts(incoming(phi, node)), END)

    def _check_barrier(self, node: Node) -> None:
        """Only the barrier of all waves, whole or split."""
        signals, waits = _signals(node), _waits(node)
        for inst in (*signals, *([node.end] if waits else [])):
            number = self.literal(inst.operands[0])
            if number is None or signed(number, 16) != -1 or ".isfirst" in (inst.callee or ""):
                raise NotCovered(f"@{inst.callee} of another barrier than that of the workgroup")

    # ---- parts

    def parts(self, operand: Operand) -> list[Part]:
        """The parts of an operand."""
        if isinstance(operand, Reg):
            if not self.values.get(operand.name):
                raise NotCovered("")  # what defines it is not covered, and is named
            return self.values[operand.name]
        if isinstance(operand, Const) and operand.kind == "meta":
            raise NotCovered("a metadata operand")
        found = self._constants.get(id(operand))
        if found is None:
            found = self._constants[id(operand)] = constant_parts(operand, self.program.addresses)
        return found

    def part(self, operand: Operand) -> Part:
        """The only part of a scalar."""
        parts = self.parts(operand)
        if len(parts) != 1:
            raise NotCovered(f"{self.inst.callee or self.inst.op} with an operand of type {operand.type}")
        return parts[0]

    def read(self, parts: list[Part], step: int) -> None:
        """Notes that a step of this node reads parts."""
        for part in parts:
            part.readers.add((self.node.index, step))

    def literal(self, operand: Operand) -> int | None:
        """The integer that an operand always is."""
        if isinstance(operand, Const) and operand.kind in ("int", "zero"):
            return int(operand.value or 0)
        return None

    def number(self, operand: Operand, what: str) -> int:
        """An operand that must be a constant."""
        value = self.literal(operand)
        if value is None:
            raise NotCovered(f"{what} that is no constant")
        return value

    def lane_values(self, name: str) -> Part:
        """A constant of the function that differs between lanes, such as the work item id."""
        if name not in self.known:
            self.known[name] = Part("i32", False, -1, -1)
            self.known[name].base = name
        return self.known[name]

    def on_entry(self, name: str, t: str) -> Part:
        """A uniform value that the function has from its start."""
        if name not in self.known:
            self.known[name] = Part(t, True, -1, -1)
            self.known[name].name = name
        return self.known[name]

    def warn(self, inst: Inst, what: str) -> None:
        """Warns where an instruction of this node runs."""
        self.warnings.append((self.node.index, inst, what))

    # ---- steps

    def region(self) -> tuple[Region, int]:
        """The region that is being filled, and its number."""
        steps = self.steps[self.node.index]
        last = steps[-1] if steps else None
        if isinstance(last, Region):
            return last, last.number
        region = Region()
        return region, self.add(region)

    def add(self, step: Step) -> int:
        """Appends a step; returns its number."""
        steps = self.steps[self.node.index]
        step.number = len(steps)
        steps.append(step)
        return step.number

    def apply(self, fn: Fn, inputs: list[Part], outputs: list[str]) -> list[Part]:
        """An element-wise operation; its results are uniform where all operands are."""
        uniform = all(p.uniform for p in inputs) and self.inst.name not in self.divergence.forced
        region, number = self.region()
        made = [Part(t, uniform, self.node.index, number) for t in outputs]
        (region.scalars if uniform else region.ops).append(Op(fn, inputs, made))
        self.read(inputs, number)
        return made

    def each(self, fn: Fn, out: str, *operands: list[Part]) -> list[Part]:
        """``fn`` on each element of the operands; a single one goes with all."""
        count = max(map(len, operands))
        rows = [o * count if len(o) == 1 else o for o in operands]
        return [self.apply(fn, [row[i] for row in rows], [out])[0] for i in range(count)]

    def renamed(self, parts: list[Part]) -> list[Part]:
        """Parts under another name: copies only where the name leaves a loop that lanes leave at different times."""
        if self.inst.name not in self.divergence.forced:
            return parts
        return [self.apply(lambda v, a: [a], [p], [p.type])[0] if p.uniform and p.literal is None else p for p in parts]

    # ---- instructions

    def _instruction(self, inst: Inst) -> None:
        from . import access, atomic, calls, forms, wide

        op = inst.op
        result: list[Part] | None
        if self.saturates and mode.is_clamped(inst):
            raise NotCovered("f16 results under MODE.FP16_OVFL")
        if any(is_wide(t) for t in (inst.type, *(o.type for o in inst.operands))) and not wide.moves(inst):
            result = wide.lower(self, inst)
        elif op == "call":
            result = calls.lower(self, inst)
        elif op in ("load", "store"):
            result = access.load_or_store(self, inst)
        elif op in ("atomicrmw", "cmpxchg"):
            result = atomic.lower(self, inst)
        elif op == "fence":
            result = None
        elif op in BINARY:
            t = ty.scalar_of(inst.type)
            a, b = map(self.parts, inst.operands)
            result = self.each(arith.binary(op, t, self.flush), scalar_type(t), a, b)
            if op in ("udiv", "sdiv", "urem", "srem"):
                for part in result:  # its check runs whether or not the result is read
                    part.readers.add((part.node, part.step))
        else:
            fn = forms.LOWER.get(op)
            if fn is None:
                raise NotCovered(op)
            result = fn(self, inst)
        if inst.name is not None and result is not None:
            self.values[inst.name] = result


def _signals(node: Node) -> list[Inst]:
    return [i for i in node.insts if (i.callee or "").startswith("llvm.amdgcn.s.barrier.signal")]


def _waits(node: Node) -> bool:
    return node.end.op == "call" and node.end.callee != WHOLE_BARRIER


def incoming(phi: Inst, node: Node) -> Operand:
    """The operand of a phi on the edge from a node."""
    return next(o for o, label in zip(phi.operands, phi.labels, strict=True) if label == node.block_name)
