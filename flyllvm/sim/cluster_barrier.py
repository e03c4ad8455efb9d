"""The barrier of a cluster of workgroups, number -3, and ``s.cluster.barrier``.

Every workgroup signals it once, from one wave.  When all workgroups of the cluster have done so that have not returned,
each wave of the cluster may pass one wait.  Where the kernel has no clusters, signal and wait do nothing.

LLVM makes ``s.cluster.barrier`` of the workgroup's barrier, a signal by one wave, and a wait; `expanded` does the same.

Source: CDNA5 ISA manual, Cluster Barriers; LLVM, AMDGPULowerIntrinsics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from . import types as ty
from .ir import Const
from .sync import CLUSTER
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .ir import Inst
    from .machine import Machine

BARRIER = "llvm.amdgcn.s.cluster.barrier"
NUMBER = -3
Dims = tuple[int, int, int]


def expanded(inst: Inst, whole: str) -> tuple[Inst, Inst, Inst]:
    """The workgroup's barrier (named ``whole``), the signal by one wave of each workgroup, and the wait."""
    first, signal, wait = inst.copy(), inst.copy(), inst.copy()
    first.callee = whole
    signal.callee, signal.operands = "llvm.amdgcn.s.barrier.signal", [Const(ty.I32, "int", NUMBER & 0xFFFFFFFF)]
    signal.extra["once"] = True
    wait.callee, wait.operands = "llvm.amdgcn.s.barrier.wait", [Const(ty.int_type(16), "int", NUMBER & 0xFFFF)]
    return first, signal, wait


def cluster_groups(grid: Dims, dims: Dims) -> int:
    """Consecutive workgroups of a grid that hold whole clusters."""
    if dims[2] > 1:
        return grid[0] * grid[1] * dims[2]
    return grid[0] * dims[1] if dims[1] > 1 else dims[0]


class ClusterBarrier:
    """Who has signalled and who may pass.

    Attributes:
        cluster: Number of each workgroup's cluster.  Shape: ``(workgroups,)``, as `signalled`.
        signalled: Workgroups that signalled and wait for the completion.
        open: How often the barrier was complete since the wave's last wait.  Shape: ``(workgroups, waves)``.
        rounds: For each wave and each workgroup the whole cluster barriers that it came to.
    """

    def __init__(self, m: Machine, dims: Dims) -> None:
        grid = [-(-g // n) for g, n in zip(m.launch.grid, dims, strict=True)]
        x, y, z = (ids.reshape(-1).astype(np.int64) // n for ids, n in zip(m.workgroup_ids, dims, strict=True))
        numbers: Array = x + grid[0] * (y + grid[1] * z)
        self.cluster = np.unique(numbers, return_inverse=True)[1]
        self.dims = dims
        self.signalled = np.zeros(m.groups, bool)
        self.open = np.zeros((m.groups, m.waves), np.int64)
        self.rounds = np.zeros((m.groups, m.waves), np.int64)
        self.group_rounds = np.zeros(m.groups, np.int64)

    @property
    def idle(self) -> bool:
        """Nobody has signalled, and nobody may pass."""
        return not (self.signalled.any() or self.open.any())

    def state(self) -> tuple[object, ...]:
        """What decides who may pass next."""
        behind = self.rounds - self.group_rounds[:, None]
        return self.signalled.tobytes(), self.open.tobytes(), behind.tobytes()

    def first_of(self, waves: Array) -> Array:
        """Of the waves that come to a whole cluster barrier those that signal: the first of their workgroup."""
        self.rounds += waves
        new = waves & (self.rounds > self.group_rounds[:, None])
        first: Array = new & (np.cumsum(new, axis=1) == 1)
        self.group_rounds += first.any(axis=1)
        return first

    def signal(self, m: Machine, inst: Inst, waves: Array) -> None:
        """These waves signal for their workgroups."""
        if any(g % n for g, n in zip(m.launch.grid, self.dims, strict=True)):
            m.fault(inst, f"a grid of {m.launch.grid} workgroups is no whole number of clusters of {self.dims}",
                    None, "launch whole clusters")  # fmt: skip
        again = waves & (self.signalled | (waves.sum(axis=1) > 1))[:, None]
        if again.any():
            m.fault(inst, "a workgroup signals the cluster's barrier again before it is complete",
                    again[:, :, None] & m.mask,
                    "let one wave of each workgroup signal it, or call s.cluster.barrier")  # fmt: skip
        self.signalled |= waves.any(axis=1)
        m.sync.offer(m, CLUSTER, waves)
        self.update(m)

    def update(self, m: Machine) -> None:
        """Completes the barrier in the clusters whose live workgroups have all signalled it."""
        if not self.signalled.any():
            return
        alive: Array = m.live.any(axis=2)
        missing = np.bincount(self.cluster, alive.any(axis=1) & ~self.signalled)
        arrived = np.bincount(self.cluster, self.signalled)
        ready: Array = ((missing == 0) & (arrived > 0))[self.cluster]
        if not ready.any():
            return
        receivers = alive & ready[:, None]
        self.open += receivers
        self.signalled &= ~ready
        if m.launch.races is not None:
            for number in np.unique(self.cluster[ready]):
                m.sync.share(m, CLUSTER, np.flatnonzero(self.cluster == number).tolist())
        m.sync.complete(CLUSTER, ready, receivers)


def signal(c: Compiler, inst: Inst) -> list[Op]:
    """``s.barrier.signal`` of the cluster's barrier by every wave that comes, or (``once``) by one of a workgroup."""
    from .barriers import whole_waves
    from .clusters import dims_of

    c.program.cluster = dims_of(c, inst)
    once = inst.extra.get("once", False)

    def run(r: list[Any], m: Machine) -> None:
        waves = whole_waves(m, inst)
        if m.cluster is None:
            return
        if once:
            waves = m.cluster.first_of(waves)
        if waves.any():
            m.cluster.signal(m, inst, waves)

    return [run]
