"""Lowering of ids, barriers, fences and raw intrinsics: ``gpu`` and ``llvm``."""

from __future__ import annotations

from ..ir import lltype as ll, types as t
from .lower_memory import full_pointer
from .lower_vector import held

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Op, Value
    from ..ir.protocols import LLValue
    from .lower import Handler, Lowering


def _id(name: str) -> Handler:
    def handler(lw: Lowering, op: Op) -> None:
        dim = "xyz".index(op.attrs["dimension"])
        lw.values[op.results[0]] = getattr(lw.em.module.backend, name)(lw.em, lw.facts, dim)

    return handler


def _lane_id(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = lw.em.module.backend.lane_id(lw.em, lw.facts)


def _barrier(lw: Lowering, op: Op) -> None:
    lw.em.module.backend.barrier(lw.em, op.attrs.get("fence", True))


def _fence(lw: Lowering, op: Op) -> None:
    lw.em.fence(op.attrs["ordering"], op.attrs.get("syncscope") or "")


def _call_intrinsic(lw: Lowering, op: Op) -> None:
    em = lw.em
    imms = {position: (value, bits) for position, value, bits in op.attrs.get("imms") or ()}
    operands = iter(op.operands)
    args = []
    for i in range(len(imms) + len(op.operands)):
        if i in imms:
            value, bits = imms[i]
            args.append(em.const(ll.int_(bits), value))
        else:
            operand = next(operands)
            args.append(_argument(lw, operand))
    name = op.attrs["intrin"].removeprefix("llvm.")
    if not op.results:
        em.intrinsic(name, ll.VOID, args)
        return
    result = op.results[0]
    want = t.storage(result.type)
    if op.attrs.get("pure") and args:
        made = em.pure_intrinsic(name, want, args)
    else:
        made = em.intrinsic(name, want, args)
    lw.values[result] = held(lw, made, result.type)


def _argument(lw: Lowering, value: Value) -> LLValue:
    if not isinstance(value.type, (t.PtrType, t.MemRefType)):
        return lw.get(value)
    pointer = lw.pointer(value)
    space = value.type.space
    if space != "buffer_desc":
        return full_pointer(lw, value)
    if pointer.offset is not None or pointer.const:
        raise lw.em.fail(
            "a buffer pointer with an offset is passed to an intrinsic",
            "pass the descriptor itself and the byte offset as operand",
        )
    return pointer.base


TABLE: dict[str, Handler] = {
    "gpu.thread_id": _id("thread_id"),
    "gpu.block_id": _id("block_id"),
    "gpu.block_dim": _id("block_dim"),
    "gpu.grid_dim": _id("grid_dim"),
    "gpu.lane_id": _lane_id,
    "gpu.barrier": _barrier,
    "llvm.fence": _fence,
    "llvm.call_intrinsic": _call_intrinsic,
}
