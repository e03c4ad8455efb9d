"""Atoms and instructions of gfx950: scaled MFMA, transposing LDS reads, loads to LDS with asynchronous names."""

from __future__ import annotations

from typing import Any

from ...errors import TargetError
from ...ir import types as t
from ...ir.builder import Builder
from ...ir.core import Value
from ..atoms import located
from ..numeric import BFloat16, Float32, Int32
from ..vector import Vector
from .waits import s_waitcnt
from .wmma import name_of


def MFMA_Scale(
    m: int,
    n: int,
    k: int,
    elem_ty_a: Any,
    elem_ty_b: Any = None,
    elem_ty_acc: Any = None,
    *,
    opsel_a: int = 0,
    opsel_b: int = 0,
) -> Any:
    """The scaled MFMA of a shape; ``scale_a`` and ``scale_b`` must be set before use (127 is a factor of one).

    Args:
        m, n, k: 16, 16, 128 or 32, 32, 64.
        elem_ty_a: Type of A: a small float.
        elem_ty_b: Type of B; by default that of A.
        elem_ty_acc: Type of C and D: Float32, which is also the default.
        opsel_a, opsel_b: Byte of the scale register, 0 to 3.

    Raises:
        AtomError: No such instruction; the fix lists the legal ones.
        TargetError: Not on this target.
    """
    from ...atoms.rocdl.cdna4_mfma_scale import TABLE, find_mfma_scale

    a, b = name_of(elem_ty_a), name_of(elem_ty_a if elem_ty_b is None else elem_ty_b)
    target = Builder.current().target
    if elem_ty_acc is not None and name_of(elem_ty_acc) != "f32":
        return located(lambda: TABLE.find((m, n, k), (a, b, name_of(elem_ty_acc)), processor=target.processor))
    return located(lambda: find_mfma_scale(m, n, k, a, b, target, opsel_a, opsel_b))


def LDSReadTrans(granularity: int, bits: int) -> Any:
    """An LDS read of ``bits`` bits a lane that transposes elements of ``granularity`` bits."""
    from ...atoms.rocdl.cdna4_lds_read_trans import LdsReadTrans

    return _checked(lambda: LdsReadTrans(granularity, bits))


def LDSReadTrans16_64b() -> Any:
    """``LDSReadTrans(16, 64)``."""
    return LDSReadTrans(16, 64)


def LDSReadTrans8_64b() -> Any:
    """``LDSReadTrans(8, 64)``."""
    return LDSReadTrans(8, 64)


def LDSReadTrans6_96b() -> Any:
    """``LDSReadTrans(6, 96)``."""
    return LDSReadTrans(6, 96)


def LDSReadTrans4_64b() -> Any:
    """``LDSReadTrans(4, 64)``."""
    return LDSReadTrans(4, 64)


def BufferLoadAsyncLDS(bits: int, cache_modifier: int | str = 0) -> Any:
    """A copy of ``bits`` bits a lane from a buffer to LDS: 32, 96 or 128; wait with ``wait_asyncmark``."""
    from ...atoms.rocdl.cdna4_async_lds import BufferLoadAsyncLds

    return _checked(lambda: BufferLoadAsyncLds(bits, cache_modifier))


def GlobalLoadAsyncLDS(bits: int, cache_modifier: int | str = 0) -> Any:
    """A copy of ``bits`` bits a lane from global memory to LDS: 32, 96 or 128; wait with ``wait_asyncmark``."""
    from ...atoms.rocdl.cdna4_async_lds import GlobalLoadAsyncLds

    return _checked(lambda: GlobalLoadAsyncLds(bits, cache_modifier))


def _checked(make: Any) -> Any:
    made = located(make)
    located(lambda: made.check_target(Builder.current().target))
    return made


def asyncmark() -> None:
    """Marks the loads to LDS so far as a group.  Emits nothing: LLVM 22.1 has no marks, see ``wait_asyncmark``."""


def wait_asyncmark(count: int | None = 0) -> None:
    """Waits for loads to LDS: ``s_waitcnt vmcnt(0)`` and a fence that keeps LDS accesses behind it.

    Args:
        count: Groups that may stay outstanding; ``None`` waits for nothing.  Marks cannot be counted in the emitted
            code, so any number waits for all.  ``fx.rocdl.s_waitcnt(vmcnt=...)`` counts single loads.

    Raises:
        TargetError: The target counts its loads otherwise.
    """
    if count is None:
        return
    if type(count) is not int or count < 0:
        b = Builder.current()
        raise TargetError(f"wait_asyncmark({count!r})", b.location(), "give the groups that may stay outstanding")
    s_waitcnt(vmcnt=0)
    Builder.current().emit("llvm.fence", (), (), {"ordering": "acq_rel", "syncscope": "workgroup"})


def cvt_sr_f32_to_bf16(x: Any, rand: Any) -> BFloat16:
    """An f32 as bf16, rounded up or down at random: ``rand`` is added below the bits that stay.

    Raises:
        TargetError: The target has no such instruction.
    """
    b = Builder.current()
    if b.target.processor != "gfx950":
        raise TargetError(f"{b.target.processor} has no cvt_sr_bf16_f32", b.location(), "it exists on gfx950")
    pair = t.VectorType(2, t.BF16)
    zero = b.bitcast(b.constant(0, t.I32), pair)
    args: list[Value | int] = [zero, Float32(x).ir_value(), Int32(rand).ir_value(), 0]
    made = b.intrinsic("llvm.amdgcn.cvt.sr.bf16.f32", pair, args, 1, pure=True)
    return Vector(made, BFloat16)[0]  # type: ignore[no-any-return, arg-type]


__all__ = [
    "BufferLoadAsyncLDS", "GlobalLoadAsyncLDS", "LDSReadTrans", "LDSReadTrans4_64b", "LDSReadTrans6_96b",
    "LDSReadTrans8_64b", "LDSReadTrans16_64b", "MFMA_Scale", "asyncmark", "cvt_sr_f32_to_bf16", "wait_asyncmark",
]  # fmt: skip
