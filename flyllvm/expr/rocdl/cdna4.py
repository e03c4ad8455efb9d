"""Atoms and conversions of gfx950."""

from __future__ import annotations

from ...errors import TargetError, TraceError
from ...ir import types as t
from ...ir.builder import Builder
from ...ir.core import Value
from ..atoms import located
from ..numeric import BFloat16, Float32, integer
from .atoms import elem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _checked(make: Any) -> Any:
    made = located(make)
    located(lambda: made.check_target(Builder.current().target))
    return made


def LDSReadTrans(granularity: int, bits: int) -> Any:
    """A transposing read of LDS by 16 lanes: elements of ``granularity`` bits, ``bits`` bits a lane."""
    from ...atoms.rocdl.cdna4_lds_read_trans import LdsReadTrans

    return _checked(lambda: LdsReadTrans(granularity, bits))


def LDSReadTrans4_64b() -> Any:
    """``LDSReadTrans(4, 64)``."""
    return LDSReadTrans(4, 64)


def LDSReadTrans8_64b() -> Any:
    """``LDSReadTrans(8, 64)``."""
    return LDSReadTrans(8, 64)


def LDSReadTrans6_96b() -> Any:
    """``LDSReadTrans(6, 96)``."""
    return LDSReadTrans(6, 96)


def LDSReadTrans16_64b() -> Any:
    """``LDSReadTrans(16, 64)``."""
    return LDSReadTrans(16, 64)


def BufferLoadAsyncLDS(bits: int, cache_modifier: int | str = 0) -> Any:
    """A copy of 32, 96 or 128 bits a lane from a buffer to LDS."""
    from ...atoms.rocdl.cdna4_async_lds import BufferLoadAsyncLds

    return _checked(lambda: BufferLoadAsyncLds(bits, cache_modifier))


def GlobalLoadAsyncLDS(bits: int, cache_modifier: int | str = 0) -> Any:
    """A copy of 32, 96 or 128 bits a lane from global memory to LDS."""
    from ...atoms.rocdl.cdna4_async_lds import GlobalLoadAsyncLds

    return _checked(lambda: GlobalLoadAsyncLds(bits, cache_modifier))


def _sized(make: Any, bits: int) -> Any:
    def run(cache_modifier: int | str = 0) -> Any:
        return make(bits, cache_modifier)

    run.__name__ = run.__qualname__ = f"{make.__name__}{bits}b"
    run.__doc__ = f"``{make.__name__}({bits})``."
    return run


BufferLoadAsyncLDS32b, BufferLoadAsyncLDS96b = _sized(BufferLoadAsyncLDS, 32), _sized(BufferLoadAsyncLDS, 96)
BufferLoadAsyncLDS128b = _sized(BufferLoadAsyncLDS, 128)
GlobalLoadAsyncLDS32b, GlobalLoadAsyncLDS96b = _sized(GlobalLoadAsyncLDS, 32), _sized(GlobalLoadAsyncLDS, 96)
GlobalLoadAsyncLDS128b = _sized(GlobalLoadAsyncLDS, 128)


def MFMA_Scale(
    m: int, n: int, k: int, elem_ty_a: Any, elem_ty_b: Any = None, elem_ty_acc: Any = None, *,
    opsel_a: int = 0, opsel_b: int = 0,
) -> Any:  # fmt: skip
    """The block-scaled MFMA of a shape; its scales are state: ``gemm(..., scale_a=, scale_b=)``.

    Args:
        m, n, k: Shape.
        elem_ty_a: Element type of A.
        elem_ty_b: Element type of B; A's by default.
        elem_ty_acc: Float32, which is all there is.
        opsel_a, opsel_b: Byte of the scale register.
    """
    from ...atoms.rocdl.cdna4_mfma_scale import find_mfma_scale

    if elem_ty_acc is not None and elem_ty_acc is not Float32:
        raise TraceError(f"MFMA_Scale into {elem_ty_acc}", Builder.current().location(), "the accumulator is Float32")
    target, b = Builder.current().target, elem(elem_ty_b)
    return located(lambda: find_mfma_scale(m, n, k, elem(elem_ty_a), b, target, opsel_a, opsel_b))


def cvt_sr_f32_to_bf16(x: Any, rand: Any) -> BFloat16:
    """An f32 as bf16, rounded up with the probability that the random bits ``rand`` give.

    Raises:
        TargetError: Not on gfx950.
    """
    b = Builder.current()
    if b.target.processor != "gfx950":
        raise TargetError(f"{b.target.processor} has no cvt_sr_bf16_f32", b.location(), "it exists on gfx950")
    pair = t.VectorType(2, t.BF16)
    parts: list[Value | int] = [b.constant(0.0, pair), Float32(x).ir_value(), integer(rand, "rand").ir_value(), 0]
    made = b.intrinsic("llvm.amdgcn.cvt.sr.bf16.f32", pair, parts, 1, pure=True)
    if made is None:
        raise TraceError("cvt.sr.bf16.f32 gave no result", b.location(), "report this as a defect")
    return BFloat16.wrap(b.extract(made, 0))
