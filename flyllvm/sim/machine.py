"""The machine: runs a compiled kernel for a chunk of workgroups, all lanes in each NumPy operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from ..errors import SimError
from . import barriers, cfg, watch
from .cluster_barrier import NUMBER as CLUSTER_NUMBER, ClusterBarrier
from .memory import Space
from .origins import TracedSpace
from .shadow import Shadow
from .sync import WORKGROUP, Sync
from .unwritten import Unwritten
from .values import Array, merge

if TYPE_CHECKING:
    from .compile import CompiledNode, Program
    from .ir import Inst
    from .launch import Launch


class Machine:
    """State of one chunk.

    Attributes:
        regs: Value of each slot, ``None`` before its definition ran.
        poison: For each slot ``None`` or a mask of poison lanes (and elements).
        origin: Origin of each slot where those are followed (`origins`).
        shape: ``(workgroups, waves, lanes)``.
        mask: Lanes that run now.
        covering: All live lanes run now, so that results need no merging with old ones.
        full: Every position of ``shape`` runs now, so that memory operations need no mask.
        live: Lanes that have not returned.
        unwritten: Values that were read from LDS before anyone wrote it.
    """

    def __init__(self, program: Program, launch: Launch, first_group: int, groups: int) -> None:
        self.program, self.launch = program, launch
        self.first_group = first_group
        self.groups, self.waves, self.wave_size = groups, launch.waves, launch.wave_size
        self.shape = (groups, launch.waves, launch.wave_size)
        self.regs: list[Any] = list(program.template)
        self.workitem_ids, self.workgroup_ids = _ids(launch, first_group, groups)
        self.poison: list[Any] = list(program.poison_template)
        lanes = np.arange(launch.waves * launch.wave_size).reshape(1, launch.waves, launch.wave_size)
        self.lane_index = lanes
        self.live = np.broadcast_to(lanes < launch.block_lanes, self.shape).copy()
        self.live_count = int(np.count_nonzero(self.live))
        self.mask, self.covering = self.live, True
        self.full = self.live_count == self.live.size
        self.active = self.live_count
        self.active_wave_count = groups * launch.waves
        self.wave_ids = np.arange(launch.waves, dtype=np.uint64).reshape(1, launch.waves, 1)
        self.pending: dict[int, Array] = {}
        self.waiting: dict[int, Array] = {}
        self.retired_from = np.full(self.shape, -1, np.int32)
        self.origin: list[Any] = []
        self.steps = 0
        self.divergences = 0
        self.turns = 0
        self.writes = 0
        self.watch = watch.Watch()
        self.unwritten = Unwritten()
        self.sync = Sync(groups, launch.waves)
        self.barriers = barriers.Barriers(groups, launch.waves)
        self.cluster = ClusterBarrier(self, program.cluster) if program.cluster != (1, 1, 1) else None
        self._set_up_memory()

    def _set_up_memory(self) -> None:
        program, launch = self.program, self.launch
        self.heap = launch.heap
        self.lds_copy_bytes = program.lds_layout(launch.dynamic_lds_bytes)[1]
        traced = program.origins
        make = Space if traced is None else TracedSpace
        self.lds = make("LDS", 0, program.lds_layout(launch.dynamic_lds_bytes)[0], self.lds_copy_bytes, self.groups)
        if traced is not None:
            self.origin = traced.template(len(self.regs))
        self.lds_base = (np.arange(self.groups, dtype=np.int64) * self.lds_copy_bytes).reshape(-1, 1, 1)
        self.shadow = Shadow(self.lds.data.size, program.lds_granule, self.sync, program.has_dma, program.has_atomics)
        self.private: Space | None = None
        if program.frame_bytes:
            lanes = self.live.size
            make = TracedSpace if traced is not None and traced.through_stack else Space
            self.private = make("private", 0, program.frame_regions, program.frame_bytes, lanes)
            self.private_base = (np.arange(lanes, dtype=np.int64) * program.frame_bytes).reshape(self.shape)
            self.private_written = np.zeros(self.private.data.size, bool)

    # ---- running

    def run(self) -> None:
        """Runs all lanes to their return.

        Raises:
            SimError: A checker found a fault.
        """
        regs = self.regs
        node: CompiledNode | None = self.program.nodes[0]
        with np.errstate(all="ignore"):
            while node is not None:
                self.begin(node)
                for op in node.ops:
                    op(regs, self)
                node = node.finish(regs, self) or self.schedule()

    def begin(self, node: CompiledNode) -> None:
        """Counts a node that is about to run.

        Raises:
            SimError: The kernel does not end, or the node uses what was read before it was written.
        """
        self.steps += 1
        if self.steps % watch.STEPS == 0:
            self.watch.look(self, node)
        if self.unwritten.values:
            self.unwritten.check(self, node)
        counts = self.launch.counts[node.node.index]
        counts[0] += 1
        counts[1] += self.active
        counts[2] += self.active_wave_count

    def schedule(self) -> CompiledNode | None:
        """The next node to run, or ``None`` when all lanes have returned."""
        if not self.pending:
            if not self.waiting:
                return None
            self._release_waiting()
            if not self.pending:
                self._stuck()
        index = self._choose()
        mask = self.pending.pop(index)
        if len(self.pending) == 0:
            self.turns = 0
        else:
            self.turns += 1
            if self.turns > watch.FAIR_TURNS:
                index, mask = self._other_waves(index, mask)
        self.enter(mask)
        return self.program.nodes[index]

    def _other_waves(self, index: int, mask: Array) -> tuple[int, Array]:
        """A wave may spin until another one writes something: gives a turn to waves without a lane in its loop."""
        free = ~mask.any(axis=2)[:, :, None]
        for other in sorted(self.pending):
            turn = self.pending[other] & free
            if turn.any():
                rest = self.pending.pop(other) & ~free
                if rest.any():
                    self.pending[other] = rest
                self.pending[index] = mask
                self.turns = watch.FAIR_TURNS - 4
                return other, turn
        return index, mask

    def _choose(self) -> int:
        pending = self.pending
        if len(pending) == 1:
            return next(iter(pending))
        nodes = self.program.nodes
        return next(
            (i for i in sorted(pending) if not any(o in nodes[i].node.header_of for o in pending if o != i)),
            min(pending),
        )

    def enter(self, mask: Array) -> None:
        """Makes ``mask`` the running lanes."""
        if mask is not self.live:
            count = int(np.count_nonzero(mask))
            if count != self.live_count:
                self.mask, self.covering, self.full, self.active = mask, False, False, count
                self.active_wave_count = int(np.count_nonzero(mask.any(axis=2)))
                return
        self.mask, self.covering, self.active = self.live, True, self.live_count
        self.full = self.live_count == self.live.size
        self.active_wave_count = self.groups * self.waves if self.full else int(np.count_nonzero(self.live.any(axis=2)))

    def arrive(self, index: int, mask: Array) -> None:
        """Adds lanes that wait to run a node."""
        old = self.pending.get(index)
        self.pending[index] = mask if old is None else old | mask

    def retire(self, mask: Array) -> None:
        """Lanes return from the kernel."""
        self.live = self.live & ~mask
        self.live_count = int(np.count_nonzero(self.live))
        if self.waiting or not self.barriers.idle or not (self.cluster is None or self.cluster.idle):
            self._release_waiting()

    def active_waves(self) -> Array:
        """Waves with a running lane.  Shape: ``(workgroups, waves)``."""
        result: Array = self.mask.any(axis=2)
        return result

    # ---- barriers

    def barrier(self, node: CompiledNode) -> CompiledNode | None:
        """The running lanes arrive at the barrier, or at the wait for one, that ends ``node``."""
        following = node.node.successors[0].index
        inst, nodes = node.node.end, self.program.nodes
        whole = inst.callee == cfg.WHOLE_BARRIER
        if whole and self.covering and not self.pending and not self.waiting and self.barriers.idle:
            if self.program.orders:
                self.sync.offer(self, WORKGROUP, self.active_waves())
                self.sync.complete(WORKGROUP, None, None)
            return nodes[following]
        number = barriers.awaited(inst)
        if number == 0 or (number == CLUSTER_NUMBER and self.cluster is None):
            return self._pass_on(following, self.mask)
        waves = self.active_waves()
        missing = self.live & ~self.mask & waves[:, :, None]
        if missing.any():
            self.check_missing(inst, missing, node)
        if number > 0:
            outside = waves & (self.barriers.joined == -1)
            if outside.any():
                self.fault(inst, "waits for a named barrier without having joined one", outside[:, :, None] & self.mask,
                           "call s.barrier.join first")  # fmt: skip
        old = self.waiting.get(node.node.index)
        self.waiting[node.node.index] = self.mask if old is None else old | self.mask
        if whole:
            self.barriers.signal(self, inst, waves)
        self._release_waiting()
        return None

    def _pass_on(self, index: int, mask: Array) -> CompiledNode | None:
        if not self.pending:
            return self.program.nodes[index]
        self.arrive(index, mask)
        return None

    def check_missing(self, inst: Inst, missing: Array, node: CompiledNode | None = None) -> None:
        """Lanes of an arriving wave are elsewhere: right only if they are about to return."""
        nodes = self.program.nodes
        for index, mask in self.pending.items():
            away = mask & missing
            target = nodes[index].node
            leaving = target.trivial_return or (
                node is not None
                and index not in node.node.reaches
                and not target.reaches & self.program.barrier_nodes
                and index not in self.program.barrier_nodes
            )
            if away.any() and not leaving:
                self.fault(
                    inst,
                    "live lanes are missing at the barrier: lanes of the same wave took another branch",
                    away,
                    "move the barrier out of the divergent branch, so that every live lane of the workgroup reaches it",
                )

    def _release_waiting(self) -> None:
        """Lets the waves go on that wait for a barrier which is complete."""
        self.barriers.update(self)
        if self.cluster is not None:
            self.cluster.update(self)
        for index, mask in list(self.waiting.items()):
            node = self.program.nodes[index].node
            waves = self._passing(node.end, mask)
            if not waves.any():
                continue
            self.arrive(node.successors[0].index, mask & waves[:, :, None])
            rest = mask & ~waves[:, :, None]
            if rest.any():
                self.waiting[index] = rest
            else:
                del self.waiting[index]

    def _passing(self, inst: Inst, mask: Array) -> Array:
        """Lets the waves pass that wait in ``mask`` for a barrier which is complete, and tells which they are."""
        number = barriers.awaited(inst)
        cluster = self.cluster if number == CLUSTER_NUMBER else None
        times = self.barriers.times(number) if cluster is None else cluster.open
        waves: Array = mask.any(axis=2) & (times > 0)
        missed = waves & (times > 1)
        if missed.any():
            what, fix = "named", "its member count is less than the waves that signal it in turn"
            if cluster is not None:
                what, fix = "cluster's", "every wave of the cluster must wait for it each time"
            self.fault(inst, f"the {what} barrier was complete more than once before this wave waited for it",
                       missed[:, :, None] & mask, fix)  # fmt: skip
        if cluster is None:
            self.barriers.passed(number, waves)
        else:
            cluster.open[waves] = 0
        return waves

    def check_skipped(self, index: int, mask: Array, ready: Array) -> None:
        """Waves that returned instead of arriving, past the place where the barrier's branch ends."""
        reaches = self.program.nodes[index].node.reaches
        groups = mask.any(axis=(1, 2)) & ready
        if not groups.any() or not reaches:
            return
        skipped = np.isin(self.retired_from, list(reaches)) & groups[:, None, None]
        gone = ~self.live.any(axis=2, keepdims=True)
        skipped = skipped & gone & ~mask
        if skipped.any():
            self.fault(
                self.program.nodes[index].node.end,
                "live lanes are missing at the barrier: waves of the workgroup ran past it and returned",
                skipped,
                "move the barrier out of the branch, so that every wave of the workgroup reaches it",
            )

    def _stuck(self) -> NoReturn:
        index, mask = next(iter(self.waiting.items()))
        inst = self.program.nodes[index].node.end
        signals = (mask.any(axis=2) & ~self.barriers.signalled).any()
        fix = "let every wave of the workgroup execute the same number of barriers"
        if inst.callee != cfg.WHOLE_BARRIER and signals:
            fix = "every wave must signal the barrier (s.barrier.signal) before it waits"
        if barriers.awaited(inst) == CLUSTER_NUMBER:
            fix = "one wave of every workgroup of the cluster must signal its barrier before the others wait for it"
        if barriers.awaited(inst) > 0:
            fix = "as many waves must signal the named barrier as its member count says"
        self.fault(inst, "deadlock: these waves wait at a barrier that never completes", mask, fix)

    # ---- faults

    def lane_flags(self, flags: Array | None) -> Array:
        """Flags of any broadcastable shape, or one per running lane, as flags of all lanes."""
        if flags is None:
            return self.mask
        if flags.ndim == 1 and self.mask.ndim == 3:
            out = np.zeros(self.shape, bool)
            out[self.mask] = flags
            return out
        if flags.ndim == 4:
            flags = flags.any(axis=-1)
        return np.broadcast_to(flags, self.shape) & self.mask if not self._elsewhere(flags) else flags

    def _elsewhere(self, flags: Array) -> bool:
        """Flags of lanes that are not running (missing at a barrier)."""
        return flags.shape == self.shape and not (flags & self.mask).any()

    def fault(self, inst: Inst, what: str, flags: Array | None = None, fix: str | None = None) -> NoReturn:
        """Raises the error of a checker.

        Args:
            inst: The instruction at fault.
            what: What is wrong with it.
            flags: The lanes concerned.
            fix: What to do instead.

        Raises:
            SimError: Always.
        """
        lanes = self.lane_flags(flags)
        places = np.argwhere(lanes)
        who = ""
        if len(places):
            group, wave = int(places[0][0]), int(places[0][1])
            same = places[(places[:, 0] == group) & (places[:, 1] == wave)][:, 2]
            who = f" (workgroup {self.launch.group_name(self.first_group + group)}, wave {wave}, {ranges(same)})"
        program = self.program
        text = f"'{program.text_of(inst)}' in @{program.kernel.name}: {what}{who}"
        raise SimError(text, program.where(inst), fix)

    def lds_name(self, index: Array, bad: Array) -> str:
        """Names the LDS variable and byte of the first bad granule."""
        granule = self.shadow.granule
        flat = int(np.broadcast_to(index, bad.shape)[bad][0]) * granule
        address = flat % max(1, self.lds_copy_bytes)
        region = self.lds.region_of(address)
        if region is None:
            return f"LDS byte {address}"
        return f"LDS byte {address - region.start} of @{region.name}"

    def keep(self, slot: int, value: Any) -> None:
        """Sets a slot for the running lanes only, where it may be read by others later."""
        if not self.covering:
            value = merge(self.mask, value, self.regs[slot])
        self.regs[slot] = value


def _ids(launch: Launch, first: int, groups: int) -> tuple[list[Array], list[Array]]:
    """Work item and workgroup ids per axis."""
    lanes = np.arange(launch.waves * launch.wave_size, dtype=np.uint32).reshape(1, launch.waves, launch.wave_size)
    x, y, _ = launch.block
    items = [lanes % np.uint32(x), lanes // np.uint32(x) % np.uint32(y), lanes // np.uint32(x * y)]
    linear = np.arange(first, first + groups, dtype=np.uint32).reshape(-1, 1, 1)
    gx, gy, _ = launch.grid
    return items, [linear % np.uint32(gx), linear // np.uint32(gx) % np.uint32(gy), linear // np.uint32(gx * gy)]


def ranges(numbers: Sequence[int]) -> str:
    """``lanes 0-3, 8``."""
    parts: list[str] = []
    values = [int(n) for n in numbers]
    start = 0
    for i in range(1, len(values) + 1):
        if i == len(values) or values[i] != values[i - 1] + 1:
            first, last = values[start], values[i - 1]
            parts.append(str(first) if first == last else f"{first}-{last}")
            start = i
    shown = ", ".join(parts[:6]) + (", ..." if len(parts) > 6 else "")
    return ("lane " if len(values) == 1 else "lanes ") + shown
