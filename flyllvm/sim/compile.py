"""From a kernel to closures: every node becomes a list of functions ``op(regs, machine)``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from ..target import Target
from . import dma, layout_lds, ordering, poison, types as ty, unwritten, watch
from .cfg import Node, build_graph, inline_calls
from .checks import DEFAULT_CHECKS, Checks
from .ir import Const, Function, Inst, Module, Operand, Reg
from .locate import Locator
from .memory import Region
from .profile import Place, places_of
from .terminators import Finish, build_finish
from .values import constant

if TYPE_CHECKING:
    from .machine import Machine
    from .origins import Plan

Op = Callable[[list[Any], "Machine"], None]
_CODE = 0x7B00_0000_0000


class CompiledNode:
    """A node with its closures; ``marks`` tells where in ``ops`` each instruction begins."""

    __slots__ = ("finish", "marks", "node", "ops")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.ops: list[Op] = []
        self.finish: Finish
        self.marks: list[tuple[int, Inst]] = []


class Program:
    """A kernel ready to run.

    Attributes:
        template: Initial registers: constants, and ``None`` for the rest.
        poison_template: Poison masks of constants.
        insts: All instructions, by their ``id``.
        lds_granule: Bytes that divide size and alignment of every LDS access.
        unwritten_waits: Loads (by ``id``) whose value is used elsewhere only, see `unwritten`.
        frame_bytes: Bytes of private memory of a lane.
        host_code: Code of the second engine by block and dynamic LDS, or the error that says why there is none.
        numpy_seconds: Time that this kernel ran on the NumPy engine.
        origins: Which values' origins in global memory are followed; ``None`` for none.
        gave_up: Why the second engine failed on this kernel, so that it is not tried at every launch.
    """

    def __init__(self, module: Module, kernel: Function, target: Target) -> None:
        self.module, self.kernel, self.target = module, kernel, target
        self.locator = Locator(module)
        self.template: list[Any] = []
        self.poison_template: list[Any] = []
        self.nodes: list[CompiledNode] = []
        self.insts: list[Inst] = []
        self.lds = layout_lds.LdsLayout(module, kernel, target)
        self.lds_granule = 16
        self.heap_granule = 16
        self.has_dma = False
        self.checks = DEFAULT_CHECKS
        self.dma_kind: Any = np.zeros(0, np.int8)
        self.narrow = np.zeros(0, bool)
        self.has_atomics = self.tracks_atomics = False
        self.orders = True
        self.cluster = (1, 1, 1)
        self.origins: Plan | None = None
        self.unwritten_waits: frozenset[int] = frozenset()
        self.frame_bytes = 0
        self.frame_regions: list[Region] = []
        self.barrier_nodes: frozenset[int] = frozenset()
        self.param_slots: list[int] = []
        self.phi_slots: list[int] = []
        self.has_clock = False
        self.loops: list[watch.Loop] = []
        self.endless: frozenset[int] = frozenset()
        self.slots: dict[str, int] = {}
        self.host_code: dict[Any, Any] = {}
        self.numpy_seconds = 0.0
        self.gave_up = ""
        self._places: list[list[Place]] = []
        self.constants = layout_lds.ConstantData(module)
        # Functions have an address that nothing can be read from.
        code = {name: _CODE + 256 * i for i, name in enumerate(module.functions)}
        self.addresses = {**code, **self.lds.addresses, **self.constants.addresses}
        self.addresses |= {name: self.addresses[to] for name, to in module.aliases.items() if to in self.addresses}

    def text_of(self, inst: Inst) -> str:
        """The instruction as the ``.ll`` file has it."""
        return self.module.text_of(inst)

    def places(self) -> list[list[Place]]:
        """For each node the author's lines in it; made once."""
        if not self._places:
            self._places = [places_of(self, node.node) for node in self.nodes]
        return self._places

    def where(self, inst: Inst) -> str:
        """Author's location of an instruction."""
        return self.locator.where(inst)

    def lds_layout(self, dynamic_bytes: int) -> tuple[list[Region], int]:
        """LDS variables as regions, and the bytes of one workgroup's copy."""
        return self.lds.regions(dynamic_bytes)


class Compiler:
    """Builds the closures of one kernel."""

    def __init__(
        self, module: Module, kernel: Function, target: Target, wave_size: int, checks: Checks = DEFAULT_CHECKS,
        fusing: bool = True,
    ) -> None:  # fmt: skip
        self.module, self.kernel, self.target, self.wave_size = module, kernel, target, wave_size
        self.checks, self.fusing = checks, fusing
        self.program = Program(module, kernel, target)
        self.program.checks = checks
        self.slots: dict[str, int] = {}
        self.const_slots: dict[Any, int] = {}
        self.saturates = False
        self.uses: dict[str, list[Inst]] = {}
        self.defs: dict[str, Inst] = {}
        self.node_of: dict[str, int] = {}
        self.maybe_poison: dict[str, int] = {}
        self.addresses = self.program.addresses
        self.node: Node

    # ---- slots

    def new_slot(self, value: Any = None, poison_mask: Any = None) -> int:
        """A fresh register."""
        self.program.template.append(value)
        self.program.poison_template.append(poison_mask)
        return len(self.program.template) - 1

    def slot(self, operand: Operand) -> int:
        """The register that holds an operand."""
        if isinstance(operand, Reg):
            return self.slots[operand.name]
        if not isinstance(operand, Const):
            raise SimError(f"operand {operand!r} has no value")
        key = (operand.type, operand.kind, operand.value if operand.kind in ("int", "fp", "global") else id(operand))
        if key not in self.const_slots:
            self.const_slots[key] = self.new_slot(constant(operand, self.addresses), poison.constant_mask(operand))
        return self.const_slots[key]

    def dest(self, inst: Inst) -> int:
        """The register that an instruction defines."""
        if inst.name is None:
            return -1
        return self.slots[inst.name]

    def literal(self, operand: Operand) -> int | None:
        """The integer an operand always is, or ``None``."""
        if isinstance(operand, Const) and operand.kind in ("int", "zero"):
            return int(operand.value or 0)
        return None

    def immediate(self, inst: Inst, position: int) -> int:
        """An operand that LLVM requires to be a constant."""
        value = self.literal(inst.operands[position])
        if value is None:
            raise SimError(
                f"'{self.program.text_of(inst)}': operand {position} must be a constant", self.program.where(inst)
            )
        return value

    def used_elsewhere(self, inst: Inst) -> bool:
        """Whether another node (or a phi) reads the result, so that lanes that do not run now must keep theirs."""
        if inst.name is None:
            return False
        here = self.node.index
        return any(user.op == "phi" or self.user_node(user) != here for user in self.uses.get(inst.name, ()))

    def user_node(self, user: Inst) -> int:
        """Index of the node that an instruction is in."""
        return self.node_ids[id(user)]

    node_ids: dict[int, int]

    def is_poison(self, operand: Operand) -> bool:
        """Whether an operand may be poison as far as is known before running."""
        if isinstance(operand, Reg):
            return self.maybe_poison.get(operand.name, 0) != 0
        return self.checks.poison and poison.constant_bits(operand) != 0

    # ---- building

    def build(self) -> Program:
        """Compiles the kernel.

        Raises:
            SimError: The kernel uses something that the simulator does not know; all such names are listed.
        """
        from . import fusion, hardware, intrinsics, mbarrier, mode, operand_order, origins, overflow, support

        program = self.program
        graph = build_graph(inline_calls(self.module, self.kernel))
        for node in graph:
            for inst in node.insts:
                intrinsics.add_modifiers(inst)
        mbarrier.mark_waits(graph)
        support.check(program, graph)
        self._index(graph)
        self.saturates = mode.saturates(graph)
        program.slots = self.slots
        self.maybe_poison = poison.analyse(graph) if self.checks.poison else {}
        for param in self.kernel.params:
            program.param_slots.append(self.slots[param.name])
        program.barrier_nodes = frozenset(n.index for n in graph if n.end.op == "call")
        layout_lds.lay_out_frame(self, graph)
        program.lds_granule = layout_lds.granule(graph, (0, 3))
        program.heap_granule = layout_lds.granule(graph, (0, 1, 4))
        program.phi_slots = [self.dest(phi) for node in graph for phi in node.phis]
        program.loops = watch.find_loops(self, graph)
        program.endless = watch.cannot_return(graph)
        program.has_clock = any(i.callee in hardware.CLOCKS for i in program.insts)
        program.has_dma = any(dma.is_dma(i) for i in program.insts)
        program.dma_kind = np.array([dma.kind_of(i) for i in program.insts], np.int8)
        program.unwritten_waits = frozenset(i.id for i in program.insts if unwritten.waits_for_use(self, i))
        program.narrow = np.array([ordering.is_narrow(i) for i in program.insts], bool)
        program.has_atomics = any(ordering.is_atomic(i) for i in program.insts)
        program.orders = self.checks.lds or self.checks.global_races
        program.tracks_atomics = program.orders and ordering.are_watched(program.insts, self.uses)
        program.origins = origins.plan(self, graph) if self.checks.operands else None
        addresses = overflow.address_arithmetic(graph) if self.checks.overflow else set()
        for node in graph:
            self.node = node
            compiled = CompiledNode(node)
            program.nodes.append(compiled)
            for inst in node.insts:
                compiled.marks.append((len(compiled.ops), inst))
                counter = dma.counter_of(inst, self.target.chip.family) if program.has_dma and program.orders else None
                if counter is not None:
                    compiled.ops.append(counter)
                if self.checks.overflow:
                    overflowing = overflow.checker(self, inst, addresses)
                    if overflowing is not None:
                        compiled.ops.append(overflowing)
                compiled.ops += self._ops_of(inst)
                outside = overflow.range_checker(self, inst) if self.checks.overflow else None
                if outside is not None:
                    compiled.ops.append(outside)
            if not self.saturates:
                fusion.fuse(self, compiled)
            if program.origins is not None:
                compiled.ops += operand_order.build(self, program.origins, node)
        for compiled in program.nodes:
            self.node = compiled.node
            compiled.finish = build_finish(self, compiled.node)
            if compiled.node.index in program.endless:
                compiled.ops.append(_cannot_return(compiled.node.end))
        return program

    def _ops_of(self, inst: Inst) -> list[Op]:
        """The closures of one instruction, those that track poison last."""
        from . import builders, mode

        try:
            built = builders.build(self, inst)
            ops = [self._kept(inst, op) for op in (mode.wrapped(self, inst, built) if self.saturates else built)]
        except (AttributeError, IndexError, KeyError, StopIteration, TypeError):
            # the text was well-formed, but no builder can make sense of the operands
            raise SimError(
                f"'{self.program.text_of(inst)}' has not the number or types of operands that it needs",
                self.program.where(inst), "check it against LLVM's definition",
            ) from None  # fmt: skip
        if self.maybe_poison.get(inst.name or "", 0):
            ops.append(self._kept_mask(inst, poison.tracker(self, inst)))
        if self.program.origins is not None:
            ops += self.program.origins.ops(self, inst)
        return ops

    def _index(self, graph: list[Node]) -> None:
        self.node_ids = {}
        for param in self.kernel.params:
            self.slots[param.name] = self.new_slot()
        for node in graph:
            for inst in (*node.phis, *node.insts, node.end):
                inst.id = len(self.program.insts)
                self.program.insts.append(inst)
                self.node_ids[id(inst)] = node.index
                if inst.name is not None:
                    self.slots[inst.name] = self.new_slot()
                    self.defs[inst.name] = inst
                for operand in inst.operands:
                    if isinstance(operand, Reg):
                        self.uses.setdefault(operand.name, []).append(inst)

    def _kept_mask(self, inst: Inst, track: Op) -> Op:
        """The same as `_kept` for poison masks."""
        if not self.used_elsewhere(inst):
            return track
        d = self.dest(inst)

        def run(r: list[Any], m: Machine) -> None:
            old = m.poison[d]
            track(r, m)
            if not m.covering:
                m.poison[d] = poison.merge_masks(m.mask, m.poison[d], old)

        return run

    def _kept(self, inst: Inst, op: Op) -> Op:
        """Keeps the results of lanes that do not run, where someone may read them later."""
        if not self.used_elsewhere(inst):
            return op
        d = self.dest(inst)

        def run(r: list[Any], m: Machine) -> None:
            if m.covering:
                op(r, m)
                return
            old = r[d]
            op(r, m)
            if r[d] is not old:
                new, r[d] = r[d], old
                m.keep(d, new)

        return run


def _cannot_return(end: Inst) -> Op:
    def run(r: list[Any], m: Machine) -> None:
        m.fault(end, "an endless loop: no path leads from here to the end of the kernel", m.mask,
                "give the loop an exit")  # fmt: skip

    return run


def scalar_bits(t: ty.Type) -> int:
    """Width of an integer type or of the elements of a vector of them, in bits."""
    return ty.bit_size(ty.scalar_of(t))


def all_lanes(m: Machine, a: Any) -> Any:
    """An array with the full lane axes."""
    return np.broadcast_to(a, m.shape + a.shape[3:])
