"""Clusters of workgroups: ids, loads that a cluster shares, and other loads and atomics in the form of intrinsics.

A kernel's attribute ``amdgpu-cluster-dims`` says how many workgroups a cluster has; without it every workgroup is one.
A shared load gives each workgroup that asks the data, so its mask of workgroups changes nothing here.

Source: CDNA5 ISA manual, workgroup clusters; LLVM AMDGPUUsage.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import atomics, dma, mem_ops, poison, transfer, types as ty
from .ir import Function, Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Builder = Callable[["Compiler", Inst], "list[Op]"]
_DIMS = "amdgpu-cluster-dims"


def dims_of(c: Compiler, inst: Inst) -> tuple[int, int, int]:
    """Workgroups of a cluster per axis."""
    dims = dims_in(c.kernel)
    if dims is None:
        text = c.kernel.attrs.get(_DIMS)
        raise SimError(
            f"'{c.program.text_of(inst)}': the size of a cluster is not known ({text!r})", c.program.where(inst),
            'give the kernel the attribute "amdgpu-cluster-dims"="X,Y,Z"',
        )  # fmt: skip
    return dims


def dims_in(kernel: Function) -> tuple[int, int, int] | None:
    """Workgroups of a cluster per axis, ``None`` where the kernel's attribute does not say."""
    text = str(kernel.attrs.get(_DIMS, "1,1,1"))
    parts = [int(x) for x in text.split(",")] if text.replace(",", "").isdigit() else []
    if len(parts) != 3 or max(parts) > 16:
        return None
    x, y, z = (max(n, 1) for n in parts)
    return x, y, z


def _id(read: Callable[[Machine, tuple[int, int, int]], Any]) -> Builder:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, dims = c.dest(inst), dims_of(c, inst)

        def run(r: list[Any], m: Machine) -> None:
            if any(g % n for g, n in zip(m.launch.grid, dims, strict=True)):
                m.fault(inst, f"a grid of {m.launch.grid} workgroups is no whole number of clusters of {dims}",
                        None, "launch whole clusters")  # fmt: skip
            r[d] = np.asarray(read(m, dims), np.uint32) + np.zeros((1, 1, 1), np.uint32)

        return [run]

    return builder


def _flat(m: Machine, dims: tuple[int, int, int]) -> Array:
    x, y, z = (ids % np.uint32(n) for ids, n in zip(m.workgroup_ids, dims, strict=True))
    return x + y * np.uint32(dims[0]) + z * np.uint32(dims[0] * dims[1])


def _ids() -> dict[str, Builder]:
    def axis_ids(i: int) -> dict[str, Builder]:
        axis = "xyz"[i]
        return {
            f"amdgcn.cluster.id.{axis}": _id(lambda m, d: m.workgroup_ids[i] // np.uint32(d[i])),
            f"amdgcn.cluster.workgroup.id.{axis}": _id(lambda m, d: m.workgroup_ids[i] % np.uint32(d[i])),
            f"amdgcn.cluster.workgroup.max.id.{axis}": _id(lambda m, d: d[i] - 1),
        }

    return {
        **axis_ids(0), **axis_ids(1), **axis_ids(2),
        "amdgcn.cluster.workgroup.flat.id": _id(_flat),
        "amdgcn.cluster.workgroup.max.flat.id": _id(lambda m, d: d[0] * d[1] * d[2] - 1),
    }  # fmt: skip


def _load(c: Compiler, inst: Inst) -> list[Op]:
    """``cluster.load``, ``global.load.monitor``, ``cooperative.atomic.load``: a load by each lane from its address."""
    fn = mem_ops.loader(inst, inst.type, mem_ops.space_of(c, inst, 0), ty.store_size(inst.type))
    d, p = c.dest(inst), c.slot(inst.operands[0])
    guard = poison.guard(c, inst, [0], "the address")

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fn(m, r[p])

    return [guard, run] if guard else [run]


def _store(c: Compiler, inst: Inst) -> list[Op]:
    """``cooperative.atomic.store``."""
    t = inst.operands[1].type
    fn = mem_ops.storer(inst, t, mem_ops.space_of(c, inst, 0), ty.store_size(t))
    p, v = c.slot(inst.operands[0]), c.slot(inst.operands[1])
    guards = [poison.guard(c, inst, [0], "the address"), poison.guard(c, inst, [1], "the stored value")]

    def run(r: list[Any], m: Machine) -> None:
        fn(m, r[p], r[v])

    return [*(g for g in guards if g), run]


def _atomic(operation: str) -> Builder:
    """``global.atomic.fmin.num`` and its like: as ``atomicrmw`` of that name."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        made = inst.copy()
        made.op, made.id = "atomicrmw", inst.id
        made.extra |= {"operation": operation, "order": "monotonic", "scope": "agent"}
        return atomics.build_atomicrmw(c, made)

    return builder


def _append(sign: int) -> Builder:
    """``ds.append`` and ``ds.consume``: the number of running lanes goes on or off a counter; gives the old value."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, p = c.dest(inst), c.slot(inst.operands[0])

        def run(r: list[Any], m: Machine) -> None:
            counts = np.broadcast_to(m.mask.sum(axis=2, keepdims=True), m.shape)
            pointer = np.broadcast_to(dma.first_of_wave(m, r[p]), m.shape)
            first = m.mask & (np.cumsum(m.mask, axis=2) == 1)
            saved = m.mask
            m.enter(first)
            steps = transfer.running(m, counts)
            old = atomics.apply(
                m, inst, "LDS", pointer, ty.I32, 4,
                lambda value, lanes: (value.astype(np.int64) + sign * steps[lanes] & 0xFFFFFFFF).astype(np.uint32),
            )  # fmt: skip
            full = transfer.expanded(m, old)
            m.enter(saved)
            r[d] = dma.first_of_wave(m, full)

        return [run]

    return builder


TABLE: dict[str, Builder] = {
    **_ids(),
    **{f"amdgcn.cluster.load.{b}": _load for b in ("b32", "b64", "b128")},
    **{f"amdgcn.{s}.load.monitor.{b}": _load for s in ("global", "flat") for b in ("b32", "b64", "b128")},
    **{f"amdgcn.cooperative.atomic.load.{b}": _load for b in ("32x4B", "16x8B", "8x16B")},
    **{f"amdgcn.cooperative.atomic.store.{b}": _store for b in ("32x4B", "16x8B", "8x16B")},
    **{f"amdgcn.cluster.load.async.to.lds.{b}": dma.load_async_to_lds for b in ("b8", "b32", "b64", "b128")},
    **{f"amdgcn.{s}.atomic.f{op}.num": _atomic(f"f{op}") for s in ("global", "flat") for op in ("min", "max")},
    "amdgcn.ds.append": _append(1),
    "amdgcn.ds.consume": _append(-1),
}
