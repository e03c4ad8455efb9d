"""What atomic operations order: closures that pass clocks on through the addresses they touch, see `sync`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from . import transfer
from .ir import Inst
from .sync import reaches_workgroups, synchronises_waves
from .values import LDS_APERTURE, PRIVATE_APERTURE, Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

_RELEASES = ("release", "acq_rel", "seq_cst")


def is_atomic(inst: Inst) -> bool:
    """Whether an instruction is an atomic operation that may touch LDS."""
    if inst.op in ("atomicrmw", "cmpxchg") or (inst.op in ("load", "store") and "atomic" in inst.flags):
        return getattr(inst.operands[inst.op == "store"].type, "space", 0) in (0, 3)
    return inst.op == "call" and (inst.callee or "").startswith("llvm.amdgcn.ds.")


def is_narrow(inst: Inst) -> bool:
    """Whether an instruction is an atomic operation whose scope leaves other workgroups out."""
    return inst.op != "fence" and "order" in inst.extra and not reaches_workgroups(inst.extra.get("scope", ""))


def are_watched(insts: Sequence[Inst], uses: dict[str, list[Inst]]) -> bool:
    """Whether some wave looks at what an atomic operation read: only then do such operations order anything."""
    return any(
        inst.op in ("atomicrmw", "cmpxchg", "load")
        and "order" in inst.extra
        and synchronises_waves(inst.extra.get("scope", ""))
        and bool(uses.get(inst.name or ""))
        for inst in insts
    )


def around(c: Compiler, inst: Inst, position: int, space_name: str) -> tuple[list[Op], list[Op]]:
    """What runs before and after an atomic operation; nothing for others.

    Args:
        c: The compiler.
        inst: The instruction.
        position: Number of the pointer operand.
        space_name: Memory that it points to, ``flat`` where lanes decide.
    """
    scope = inst.extra.get("scope", "")
    if not c.program.orders or "order" not in inst.extra or not synchronises_waves(scope):
        return [], []
    order, pointer = inst.extra["order"], c.slot(inst.operands[position])
    before: list[Op] = [_release] if order in _RELEASES and inst.op != "load" else []
    if not c.program.tracks_atomics or space_name == "private":
        return before, []
    wide, d = reaches_workgroups(scope), c.dest(inst)
    exchanged: Callable[[list[Any], Machine], Array] | None = None
    if inst.op == "cmpxchg":
        exchanged = lambda r, m: transfer.running(m, r[d][1])  # noqa: E731

    def after(r: list[Any], m: Machine) -> None:
        address = transfer.running(m, r[pointer])
        rows = np.flatnonzero(m.mask)
        stored = np.full(len(rows), inst.op != "load") if exchanged is None else exchanged(r, m)
        for name, lanes in _memories(space_name, address):
            for writes in (True, False):
                these = lanes & (stored == writes)
                if these.any():
                    keys, places = _keys(m, name, address[these], rows[these])
                    m.sync.atomic(m, places, keys, rows[these], order, reads=inst.op != "store", writes=writes,
                                  wide=wide and name == "global")  # fmt: skip

    return before, [after]


def _release(r: list[Any], m: Machine) -> None:
    m.sync.release(m)


def _memories(space_name: str, address: Array) -> list[tuple[str, Array]]:
    """The memories that the addresses lie in, with the lanes of each."""
    if space_name != "flat":
        return [(space_name, np.ones(address.shape, bool))]
    high = address >> np.uint64(32)
    lds = high == LDS_APERTURE
    return [("LDS", lds), ("global", ~lds & (high != PRIVATE_APERTURE))]


def _keys(m: Machine, name: str, address: Array, rows: Array) -> tuple[Array, dict[int, dict[int, Array]]]:
    if name == "global":
        return address.astype(np.int64), m.launch.places
    group = rows // (m.waves * m.wave_size)
    return address.astype(np.uint32).astype(np.int64) + group * m.lds_copy_bytes, m.sync.places
