"""Calls of intrinsics: the registry, and those that read ids, wait, or do nothing here."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import SimError
from . import (
    barriers,
    buffers,
    clusters,
    dma,
    hardware,
    lanes,
    mathfn,
    matrix,
    matrix_transpose,
    mbarrier,
    memcpy,
    mode,
    packed,
    poison,
    tensor,
    transpose,
    types as ty,
    vector_calls,
)
from .ir import Const, Inst
from .values import scalar

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Builder = Callable[["Compiler", Inst], "list[Op]"]
# Endings of overloaded names: i32, v4f16, bf16, p3, sl_... (literal structs).
_TYPE_SUFFIX = re.compile(r"(?:v[0-9]+)?(?:i[0-9]+|f[0-9]+|bf[0-9]+|p[0-9]+(?:i8)?)|sl_\w*|isVoid")


def _name(inst: Inst) -> str:
    return (inst.callee or "").removeprefix("llvm.")


def find(name: str) -> Builder | None:
    """The builder of an intrinsic: its name without ``llvm.``, type suffixes dropped one by one."""
    while name:
        found = TABLE.get(name)
        if found is not None:
            return found
        name, _, suffix = name.rpartition(".")
        if _TYPE_SUFFIX.fullmatch(suffix) is None:
            return None
    return None


def reason_against(inst: Inst) -> str | None:
    """Why a call cannot run, or ``None``."""
    callee = inst.callee or ""
    if callee == "inline asm":
        return "inline assembly has no meaning in the simulator"
    if callee == "indirect call":
        return "calls through pointers have no meaning in the simulator"
    if not callee.startswith("llvm."):
        return "a function without a body"
    name = _name(inst)
    if name.startswith("amdgcn.") and matrix.supports(name.removeprefix("amdgcn.")):
        return None
    if name.startswith("amdgcn.") and matrix_transpose.is_transposing(name.removeprefix("amdgcn.")):
        return None
    if callee == mode.SETREG:
        return mode.reason_against(inst)
    if find(name) is None:
        return "an intrinsic that the simulator does not know"
    return mathfn.reason_against(inst)


def build(c: Compiler, inst: Inst) -> list[Op]:
    """The closures of a call."""
    name = _name(inst)
    if name.startswith("amdgcn.") and matrix.supports(name.removeprefix("amdgcn.")):
        return _matrix(c, inst, name.removeprefix("amdgcn."))
    if name.startswith("amdgcn.") and matrix_transpose.is_transposing(name.removeprefix("amdgcn.")):
        return transpose.build(c, inst)
    builder = find(name)
    if builder is None:
        raise SimError(f"@{inst.callee} is unknown", c.program.where(inst))
    return builder(c, inst)


# ---- ids


def _from_machine(read: Callable[[Machine], Any]) -> Builder:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d = c.dest(inst)

        def run(r: list[Any], m: Machine) -> None:
            r[d] = read(m)

        return [run]

    return builder


def _workitem(axis: int) -> Builder:
    return _from_machine(lambda m: m.workitem_ids[axis])


def _workgroup(axis: int) -> Builder:
    return _from_machine(lambda m: m.workgroup_ids[axis])


def _wave_id(m: Machine) -> Any:
    return m.wave_ids.astype(np.uint32)


def _constant(value: int) -> Builder:
    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, result = c.dest(inst), scalar(inst.type, value)

        def run(r: list[Any], m: Machine) -> None:
            r[d] = result

        return [run]

    return builder


def _wavefrontsize(c: Compiler, inst: Inst) -> list[Op]:
    return _constant(c.wave_size)(c, inst)


def _nothing(c: Compiler, inst: Inst) -> list[Op]:
    return []


def _copy_first(c: Compiler, inst: Inst) -> list[Op]:
    from .ops import unary

    return [unary(c, inst, lambda a: a)]


def _assume(c: Compiler, inst: Inst) -> list[Op]:
    a = c.slot(inst.operands[0])
    guard = poison.guard(c, inst, [0], "the condition")

    def run(r: list[Any], m: Machine) -> None:
        bad = ~r[a] & m.mask
        if bad.any():
            m.fault(inst, "an assumption is false", bad, "remove the assumption or make it true")

    return [guard, run] if guard else [run]


def _trap(c: Compiler, inst: Inst) -> list[Op]:
    def run(r: list[Any], m: Machine) -> None:
        m.fault(inst, "the kernel trapped", fix="these lanes failed an assertion of the kernel: see what leads here")

    return [run]


# ---- waits


def _wait_lds(r: list[Any], m: Machine) -> None:
    m.sync.wait_lds(m)


def _wait_memory(outstanding: int) -> Op:
    def run(r: list[Any], m: Machine) -> None:
        m.sync.wait_memory(m, outstanding)

    return run


def waitcnt_fields(value: int, family: str) -> tuple[int, int]:
    """``(vmcnt, lgkmcnt)`` of an ``s.waitcnt`` immediate.

    Source: CDNA3 ISA manual, S_WAITCNT (vmcnt in bits 3:0 and 15:14, lgkmcnt in 11:8); RDNA3 ISA manual (vmcnt in
    15:10, lgkmcnt in 9:4).
    """
    if family.startswith("cdna"):
        return (value & 0xF) | (value >> 10 & 0x30), value >> 8 & 0xF
    return value >> 10 & 0x3F, value >> 4 & 0x3F


def _s_waitcnt(c: Compiler, inst: Inst) -> list[Op]:
    vmcnt, lgkmcnt = waitcnt_fields(c.immediate(inst, 0), c.target.chip.family)
    all_memory = 0x3F  # the counter saturates there: no wait
    ops: list[Op] = [_wait_memory(vmcnt)] if vmcnt != all_memory else []
    return [*ops, _wait_lds] if lgkmcnt == 0 else ops


def _wait_dscnt(c: Compiler, inst: Inst) -> list[Op]:
    return [_wait_lds] if c.immediate(inst, 0) == 0 else []


def _wait_counter(c: Compiler, inst: Inst) -> list[Op]:
    return [_wait_memory(c.immediate(inst, 0))]


def _wait_tensor(c: Compiler, inst: Inst) -> list[Op]:
    outstanding = c.immediate(inst, 0)

    def run(r: list[Any], m: Machine) -> None:
        m.sync.wait_tensor(m, outstanding)

    return [run]


def _wait_asyncmark(c: Compiler, inst: Inst) -> list[Op]:
    outstanding = c.immediate(inst, 0)

    def run(r: list[Any], m: Machine) -> None:
        m.sync.wait_marks(m, outstanding)

    return [run]


def _asyncmark(c: Compiler, inst: Inst) -> list[Op]:
    def run(r: list[Any], m: Machine) -> None:
        m.sync.mark(m)

    return [run]


def _cast_nonnull(c: Compiler, inst: Inst) -> list[Op]:
    from . import builders

    return builders.cast_space(c, inst)


# ---- matrix instructions


def add_modifiers(inst: Inst) -> None:
    """LLVM 24 leaves out the modifiers of A and B, which LLVM 22 has in front of them: puts zeros there."""
    name = _name(inst).removeprefix("amdgcn.")
    if inst.op == "call" and name.startswith(("wmma.", "swmmac.")) and matrix.supports(name):
        positions = matrix.immediate_positions(name)
        if positions[:2] == (0, 2) and len(inst.operands) > 2 and isinstance(inst.operands[0].type, ty.VecType):
            off = Const(ty.I1, "int", 0)
            inst.operands[:2] = [off, inst.operands[0], off, inst.operands[1]]


def _matrix(c: Compiler, inst: Inst, name: str) -> list[Op]:
    positions = matrix.immediate_positions(name)
    immediates = tuple(c.immediate(inst, p) for p in positions)
    try:
        compute = matrix.prepare(name, immediates, wave_size=c.wave_size, target=c.target)
    except SimError as error:
        raise error.at(c.program.where(inst)) from None
    d, literal = c.dest(inst), matrix.literal_positions(name)
    sources: list[tuple[int | None, int]] = [
        (c.literal(o) if i in literal else None, c.slot(o)) for i, o in enumerate(inst.operands) if i not in positions
    ]
    waves_of = (-1,)
    # A literal scale is the same in every lane, the inactive ones too.
    same_scale = name.startswith("cvt.scale.") and c.literal(inst.operands[1]) is not None
    whole_waves, assumed = matrix.ignores_exec(name) and not same_scale, matrix.assumption(name)

    def run(r: list[Any], m: Machine) -> None:
        if assumed:
            m.launch.warn(inst, assumed)
        if whole_waves and not m.full:
            _check_exec(m, inst)
        shape = m.shape
        args: list[Any] = []
        for value, slot in sources:
            if value is not None:
                args.append(value)
                continue
            a = r[slot]
            if a.shape[:3] != shape:
                a = np.broadcast_to(a, shape + a.shape[3:])
            args.append(a.reshape(waves_of + shape[2:] + a.shape[3:]))
        try:
            out = compute(*args)
        except SimError as error:  # replicas that differ, an index out of range
            m.fault(inst, error.what, None, error.fix)
        r[d] = out.reshape(shape + out.shape[2:])

    return [run]


def _check_exec(m: Machine, inst: Inst) -> None:
    partial = m.active_waves() & ~m.mask.all(axis=2)
    if partial.any():
        across = "cvt.scale." in (inst.callee or "")
        what = "a conversion that takes scales from other lanes" if across else "a matrix instruction"
        m.fault(
            inst, f"{what} with inactive lanes: it ignores EXEC and would use their registers",
            ~m.mask & partial[:, :, None],
            "run it with whole waves: no divergent branch around it, block size a multiple of the wave size",
        )  # fmt: skip


def _buffer_atomics(structured: bool, prefix: str) -> dict[str, Builder]:
    operations = (
        "swap add sub smin umin smax umax and or xor inc dec fadd fmin fmax cmpswap cond.sub.u32 sub.clamp.u32"
    ).split()  # fmt: skip

    def builder_of(operation: str) -> Builder:
        return lambda c, inst: buffers.atomic(c, inst, operation, structured)

    return {f"amdgcn.{prefix}.buffer.atomic.{op}": builder_of(op) for op in operations}


_NO_OPS = (
    "amdgcn.sched.barrier amdgcn.sched.group.barrier amdgcn.iglp.opt amdgcn.s.setprio amdgcn.s.sleep "
    "amdgcn.s.nop amdgcn.wave.barrier amdgcn.s.sethalt amdgcn.s.prefetch.data amdgcn.s.prefetch.inst "
    "amdgcn.s.setprio.inc.wg amdgcn.s.buffer.prefetch.data amdgcn.global.prefetch amdgcn.flat.prefetch "
    "amdgcn.s.ttracedata amdgcn.s.incperflevel amdgcn.s.decperflevel amdgcn.s.wait.event.export.ready "
    "dbg.value dbg.declare dbg.label dbg.assign lifetime.start lifetime.end "
    "donothing sideeffect stackrestore experimental.convergence.entry experimental.convergence.anchor "
    "experimental.convergence.loop experimental.noalias.scope.decl prefetch amdgcn.s.dcache.inv amdgcn.buffer.wbinvl1 "
    "amdgcn.s.wait.expcnt amdgcn.s.wait.samplecnt amdgcn.s.wait.bvhcnt amdgcn.s.wait.kmcnt "
    "amdgcn.s.sleep.var amdgcn.s.monitor.sleep amdgcn.s.wakeup.barrier amdgcn.s.dcache.inv.vol amdgcn.s.dcache.wb "
    "amdgcn.s.dcache.wb.vol amdgcn.buffer.wbinvl1.vol amdgcn.s.ttracedata.imm "
    "amdgcn.s.icache.inv invariant.end amdgcn.sched.barrier.inter.opcode"
).split()  # fmt: skip

TABLE: dict[str, Builder] = {
    **{f"amdgcn.workitem.id.{a}": _workitem(i) for i, a in enumerate("xyz")},
    **{f"amdgcn.workgroup.id.{a}": _workgroup(i) for i, a in enumerate("xyz")},
    **dict.fromkeys(_NO_OPS, _nothing),
    "amdgcn.wave.id": _from_machine(_wave_id),
    "amdgcn.wavefrontsize": _wavefrontsize,
    "amdgcn.dispatch.ptr": _from_machine(lambda m: m.launch.dispatch_pointer()),
    "amdgcn.implicitarg.ptr": _from_machine(lambda m: m.launch.implicit_pointer()),
    "amdgcn.s.waitcnt": _s_waitcnt,
    "amdgcn.s.wait.dscnt": _wait_dscnt,
    "amdgcn.s.setreg": _nothing,  # `mode` has read it
    "amdgcn.s.wait.loadcnt": _nothing,
    "amdgcn.s.wait.storecnt": _nothing,
    "amdgcn.s.wait.asynccnt": _wait_counter,
    "amdgcn.s.wait.tensorcnt": _wait_tensor,
    "amdgcn.wait.asyncmark": _wait_asyncmark,
    "amdgcn.asyncmark": _asyncmark,
    "assume": _assume,
    "trap": _trap,
    "debugtrap": _trap,
    "amdgcn.make.buffer.rsrc": buffers.make_rsrc,
    "amdgcn.global.load.lds": dma.global_load_lds,
    "amdgcn.load.to.lds": dma.global_load_lds,
    "amdgcn.load.async.to.lds": dma.global_load_lds,
    "amdgcn.global.load.async.lds": dma.global_load_lds,
    "expect": _copy_first,
    "ssa.copy": _copy_first,
    **dict.fromkeys(("amdgcn.wqm", "amdgcn.softwqm", "amdgcn.strict.wqm", "amdgcn.wwm"), _copy_first),
    "amdgcn.strict.wwm": _copy_first,
    "launder.invariant.group": _copy_first,
    "strip.invariant.group": _copy_first,
    "annotation": _copy_first,
    "ptr.annotation": _copy_first,
    "threadlocal.address": _copy_first,
    "is.constant": _constant(0),
    "stacksave": _constant(0),
    "objectsize": _constant(-1 & 0xFFFFFFFF),
    "amdgcn.kernarg.segment.ptr": _from_machine(lambda m: m.launch.kernarg_pointer()),
    "amdgcn.addrspacecast.nonnull": _cast_nonnull,
    "amdgcn.s.buffer.load": buffers.scalar_load,
    **{f"amdgcn.global.store.async.from.lds.{b}": dma.store_from_lds for b in ("b8", "b32", "b64", "b128")},
    **{f"amdgcn.global.load.async.to.lds.{b}": dma.load_async_to_lds for b in ("b8", "b32", "b64", "b128")},
    **barriers.TABLE,
    **tensor.TABLE,
    **clusters.TABLE,
    **hardware.TABLE,
    **lanes.TABLE,
    **mathfn.TABLE,
    **packed.TABLE,
    **vector_calls.TABLE,
    **memcpy.TABLE,
    **mbarrier.TABLE,
}


def _add_buffers() -> None:
    for prefix, structured in (("raw", False), ("raw.ptr", False), ("struct", True), ("struct.ptr", True)):

        def make(build: Callable[..., Any], structured: bool = structured) -> Builder:
            return lambda c, inst: build(c, inst, structured)

        TABLE[f"amdgcn.{prefix}.buffer.load"] = make(buffers.load)
        TABLE[f"amdgcn.{prefix}.atomic.buffer.load"] = make(buffers.load)
        TABLE[f"amdgcn.{prefix}.buffer.store"] = make(buffers.store)
        TABLE[f"amdgcn.{prefix}.buffer.load.lds"] = make(buffers.load_to_lds)
        TABLE[f"amdgcn.{prefix}.buffer.load.async.lds"] = make(buffers.load_to_lds)
        TABLE.update(_buffer_atomics(structured, prefix))


_add_buffers()
