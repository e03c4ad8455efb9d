"""Conversions and bit operations by the name of the instruction."""

from __future__ import annotations

from ...errors import TargetError, TraceError
from ...ir import types as t
from ...ir.builder import Builder
from ...ir.core import Value
from ..math import rcp
from ..numeric import BFloat16, Float32, Int32, Numeric, integer
from ..vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: Chips with the scaled conversions of MX formats.
_SCALED = ("gfx950",)


def _call(name: str, result: t.Type, args: list[Value | int], imm_bits: int = 32) -> Value:
    made = Builder.current().intrinsic(f"llvm.amdgcn.{name}", result, args, imm_bits, pure=True)
    if made is None:
        raise TraceError(f"{name} gave no result", fix="report this as a defect")
    return made


def _needs(name: str, chips: tuple[str, ...]) -> None:
    b = Builder.current()
    if b.target.processor not in chips:
        raise TargetError(f"{b.target.processor} has no {name}", b.location(), f"it exists on {', '.join(chips)}")


_FP8_CHIPS = ("gfx942", "gfx950", "gfx1200", "gfx1201", "gfx1250")


def _word(x: Any) -> Value:
    """Bits of a register: an integer, never a float whose value would be meant otherwise."""
    made: Value = integer(x, "a word of packed bits").ir_value()
    return made


def _half(word: Any) -> int:
    if word not in (0, 1) or not isinstance(word, int):
        raise TraceError(
            f"word={word!r}", Builder.current().location(), "use False for the low half, True for the high"
        )
    return int(word)


def _pack(kind: str) -> Any:
    def run(a: Any, b: Any, old: Any = 0, word: bool = False) -> Int32:
        _needs(f"cvt_pk_{kind}_f32", _FP8_CHIPS)
        parts: list[Value | int] = [Float32(a).ir_value(), Float32(b).ir_value(), _word(old), _half(word)]
        return Int32.wrap(_call(f"cvt.pk.{kind}.f32", t.I32, parts, 1))

    run.__name__ = run.__qualname__ = f"cvt_pk_{kind}_f32"
    run.__doc__ = f"Two f32 as {kind}, in the low (or with ``word`` the high) half of ``old``; the chip's own flavour."
    return run


def _unpack(kind: str) -> Any:
    def run(src: Any, word: bool = False) -> Vector:
        _needs(f"cvt_pk_f32_{kind}", _FP8_CHIPS)
        made = _call(f"cvt.pk.f32.{kind}", t.VectorType(2, t.F32), [_word(src), _half(word)], 1)
        return Vector(made, Float32)

    run.__name__ = run.__qualname__ = f"cvt_pk_f32_{kind}"
    run.__doc__ = f"Two {kind} of the low (or with ``word`` the high) half of an i32 as f32; the chip's own flavour."
    return run


cvt_pk_fp8_f32, cvt_pk_bf8_f32 = _pack("fp8"), _pack("bf8")
cvt_pk_f32_fp8, cvt_pk_f32_bf8 = _unpack("fp8"), _unpack("bf8")


def _scaled_fp4(kind: str, dtype: type[Numeric]) -> Any:
    def run(src: Any, scale: Any, select: int = 0) -> Vector:
        _needs(f"cvt_scalef32_pk_{kind}_fp4", _SCALED)
        _check_select(select)
        parts: list[Value | int] = [_word(src), Float32(scale).ir_value(), select]
        return Vector(_call(f"cvt.scalef32.pk.{kind}.fp4", t.VectorType(2, dtype.ir), parts), dtype)

    run.__name__ = run.__qualname__ = f"cvt_scalef32_pk_{kind}_fp4"
    run.__doc__ = f"Two fp4 of byte ``select`` of an i32, times ``scale``, as {kind}."
    return run


cvt_scalef32_pk_f32_fp4 = _scaled_fp4("f32", Float32)
cvt_scalef32_pk_bf16_fp4 = _scaled_fp4("bf16", BFloat16)


def _check_select(select: int) -> None:
    if type(select) is not int or not 0 <= select <= 3:
        raise TraceError(f"byte {select!r} of a word", Builder.current().location(), "use 0 to 3")


def cvt_scalef32_pk_bf16_fp8(src: Any, scale: Any, word: bool = False) -> Vector:
    """Two fp8 of half of an i32, times ``scale``, as bf16."""
    _needs("cvt_scalef32_pk_bf16_fp8", _SCALED)
    parts: list[Value | int] = [_word(src), Float32(scale).ir_value(), _half(word)]
    return Vector(_call("cvt.scalef32.pk.bf16.fp8", t.VectorType(2, t.BF16), parts, 1), BFloat16)


def cvt_scalef32_pk_fp4_f32(old: Any, a: Any, b: Any, scale: Any, select: int = 0) -> Int32:
    """Two f32, divided by ``scale``, as fp4 in byte ``select`` of ``old``."""
    _needs("cvt_scalef32_pk_fp4_f32", _SCALED)
    _check_select(select)
    parts: list[Value | int] = [_word(old), *(Float32(x).ir_value() for x in (a, b, scale)), select]
    return Int32.wrap(_call("cvt.scalef32.pk.fp4.f32", t.I32, parts))


def perm_b32(hi: Any, lo: Any, sel: Any) -> Int32:
    """Four bytes picked from eight: selector byte 0 to 3 is a byte of ``lo``, 4 to 7 one of ``hi``, 12 is zero."""
    parts: list[Value | int] = [_word(x) for x in (hi, lo, sel)]
    return Int32.wrap(_call("perm", t.I32, parts))


__all__ = [
    "cvt_pk_bf8_f32", "cvt_pk_f32_bf8", "cvt_pk_f32_fp8", "cvt_pk_fp8_f32", "cvt_scalef32_pk_bf16_fp4",
    "cvt_scalef32_pk_bf16_fp8", "cvt_scalef32_pk_f32_fp4", "cvt_scalef32_pk_fp4_f32", "perm_b32", "rcp",
]  # fmt: skip
