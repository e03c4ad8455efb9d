"""Conversions of the small float formats that AMD matrix units read, as NumPy table look-ups.

A *code* is the bit pattern of a value, held in the low bits of an unsigned integer.  Decoding is exact; encoding
rounds to nearest with ties to even, or stochastically, and always from float64, so that a float32 source is rounded
once.

Source: OCP OFP8 1.0 (e4m3fn, e5m2), OCP MX 1.0 (e2m3, e3m2, e2m1, e8m0), CDNA3 ISA manual, data types (the FNUZ
formats of gfx942), AMD's public emulator of gfx1250 (unsigned e5m3).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SimError
from . import elementary, small_codes

F32 = NDArray[np.float32]
F64 = NDArray[np.float64]
U16 = NDArray[np.uint16]
U8 = NDArray[np.uint8]
AnyArray = NDArray[Any]

_SPECIALS = ("ieee", "fn", "fnuz", "finite", "unsigned")


class SmallFloat:
    """A binary float format of at most 8 bits: sign, exponent, mantissa.

    Attributes:
        name: Name as in ml_dtypes and LLVM, e.g. ``float8_e4m3fn``.
        bits: Width of a code in bits.
        exponent_bits: Width of the exponent field in bits.
        mantissa_bits: Width of the mantissa field in bits.
        bias: Exponent bias; subnormals have the exponent ``1 - bias``.
        specials: ``"ieee"`` infinities and NaNs in the top binade, ``"fn"`` one NaN per sign and no infinity,
            ``"fnuz"`` the code of minus zero is the only NaN, ``"finite"`` neither, ``"unsigned"`` no sign bit, no
            infinity, and the last code is NaN.
        table: Value of each code, float32.  Shape: ``(2**bits,)``.
        table64: The same values, float64.
        max: Largest finite value; ``max_code`` is its code.
        min_normal: Smallest positive normal value.
    """

    __slots__ = (
        "bias",
        "bits",
        "exponent_bits",
        "mantissa_bits",
        "max",
        "max_code",
        "min_normal",
        "name",
        "specials",
        "table",
        "table64",
    )

    def __init__(self, name: str, exponent_bits: int, mantissa_bits: int, bias: int, specials: str) -> None:
        if specials not in _SPECIALS:
            raise SimError(f"{name}: unknown kind of special values {specials!r}", fix=f"one of {', '.join(_SPECIALS)}")
        self.name = name
        self.exponent_bits = exponent_bits
        self.mantissa_bits = mantissa_bits
        self.bits = (0 if specials == "unsigned" else 1) + exponent_bits + mantissa_bits
        self.bias = bias
        self.specials = specials
        self.table64 = self._values()
        with np.errstate(invalid="ignore"):
            self.table = self.table64.astype(np.float32)
        half = self.table64[: 1 << (exponent_bits + mantissa_bits)]
        positive = half[np.isfinite(half)]
        self.max_code, self.max = len(positive) - 1, float(positive[-1])
        self.min_normal = 2.0 ** (1 - bias)

    def _values(self) -> F64:
        code = np.arange(1 << self.bits)
        mantissa = code & ((1 << self.mantissa_bits) - 1)
        exponent = (code >> self.mantissa_bits) & ((1 << self.exponent_bits) - 1)
        significand = np.where(exponent == 0, mantissa, mantissa + (1 << self.mantissa_bits)).astype(np.float64)
        value: F64 = np.ldexp(significand, np.maximum(exponent, 1) - self.bias - self.mantissa_bits)
        top = exponent == (1 << self.exponent_bits) - 1
        if self.specials == "ieee":
            value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
        elif self.specials in ("fn", "unsigned"):
            value = np.where(top & (mantissa == (1 << self.mantissa_bits) - 1), np.nan, value)
        sign = (code >> (self.exponent_bits + self.mantissa_bits)).astype(bool)
        value = np.where(sign, -value, value)
        if self.specials == "fnuz":
            value[1 << (self.bits - 1)] = np.nan
        return value

    @property
    def nan_code(self) -> int | None:
        """The code a NaN is encoded to (without its sign), or ``None`` where the format has none."""
        if self.specials == "finite":
            return None
        if self.specials == "fnuz":
            return 1 << (self.bits - 1)
        if self.specials in ("fn", "unsigned"):
            return (1 << (self.exponent_bits + self.mantissa_bits)) - 1
        return (((1 << self.exponent_bits) - 1) << self.mantissa_bits) | (1 << (self.mantissa_bits - 1))

    def decode(self, codes: AnyArray) -> F32:
        """Values of codes as float32.

        Shape: any; the result has the shape of ``codes``.
        """
        return self.table.take(codes)

    def encode(self, values: AnyArray, *, saturate: bool = False) -> U8:
        """Codes of the nearest values, ties to the even code.

        Args:
            values: Numbers of any float type; converted to float64 first.
            saturate: Whether magnitudes beyond ``max`` (infinities too) become ``max``.  Otherwise they become
                infinity, or NaN where the format has no infinity.  Formats without either always saturate.

        A NaN becomes ``nan_code`` with its sign; formats without NaN give it the code of ``+max``.
        """
        return self._codes(values, saturate, None)

    def encode_stochastic(self, values: AnyArray, random: AnyArray, *, saturate: bool = False) -> U8:
        """Codes after stochastic rounding of float32 values: the dropped mantissa bits plus random bits may carry.

        The top bits of each 32-bit ``random`` word are added below the last kept bit: as many as a float32 mantissa
        loses (20 for e4m3, 21 for e5m2).  Below the normal range more bits drop and see the same random fraction.

        Source: CDNA3 ISA manual, V_CVT_SR_FP8_F32 and V_CVT_SR_BF8_F32 (random bits 31:12 and 31:11).
        """
        return self._codes(values, saturate, np.asarray(random).astype(np.int64) & 0xFFFFFFFF)

    def _codes(self, values: AnyArray, saturate: bool, random: AnyArray | None) -> U8:
        number = np.asarray(values, np.float64)
        with np.errstate(all="ignore"):
            codes = small_codes.encode(elementary.NUMPY, self, np.atleast_1d(number), saturate, random)
        done: U8 = codes.astype(np.uint8).reshape(number.shape)
        return done


E4M3FN = SmallFloat("float8_e4m3fn", 4, 3, 7, "fn")
E4M3FNUZ = SmallFloat("float8_e4m3fnuz", 4, 3, 8, "fnuz")
E5M2 = SmallFloat("float8_e5m2", 5, 2, 15, "ieee")
E5M2FNUZ = SmallFloat("float8_e5m2fnuz", 5, 2, 16, "fnuz")
UE5M3 = SmallFloat("unsigned_float8_e5m3", 5, 3, 15, "unsigned")
E2M3FN = SmallFloat("float6_e2m3fn", 2, 3, 1, "finite")
E3M2FN = SmallFloat("float6_e3m2fn", 3, 2, 3, "finite")
E2M1FN = SmallFloat("float4_e2m1fn", 2, 1, 1, "finite")

FORMATS: dict[str, SmallFloat] = {f.name: f for f in (E4M3FN, E4M3FNUZ, E5M2, E5M2FNUZ, E2M3FN, E3M2FN, E2M1FN)}


def fp8(flavour: str | None) -> SmallFloat:
    """The format a chip calls fp8: ``fnuz`` on gfx942, ``ocp`` on gfx950 and later."""
    return _flavoured(flavour, E4M3FNUZ, E4M3FN)


def bf8(flavour: str | None) -> SmallFloat:
    """The format a chip calls bf8: ``fnuz`` on gfx942, ``ocp`` on gfx950 and later."""
    return _flavoured(flavour, E5M2FNUZ, E5M2)


def _flavoured(flavour: str | None, fnuz: SmallFloat, ocp: SmallFloat) -> SmallFloat:
    if flavour == "fnuz":
        return fnuz
    if flavour == "ocp":
        return ocp
    raise SimError(
        "this target has no 8-bit floats", fix="run on gfx942 (FNUZ formats), gfx950, gfx12 or gfx1250 (OCP)"
    )


E8M0_TABLE: F64 = np.append(np.ldexp(1.0, np.arange(255) - 127), np.nan)


def decode_e8m0(codes: AnyArray) -> F64:
    """Block scales ``2**(code - 127)`` as float64; code 255 is NaN and code 0 is ``2**-127``, not one."""
    return E8M0_TABLE.take(codes)


def encode_e8m0(values: AnyArray) -> U8:
    """Codes of the powers of two at or below the magnitudes of float32 values.

    This is the exponent field of float32 (NaN and infinity give 255, zero gives 0), which is what the scaled
    conversions read from their scale operand.
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    return ((bits >> 23) & 0xFF).astype(np.uint8)


def decode_bf16(codes: AnyArray) -> F32:
    """Values of bfloat16 codes as float32, exact."""
    return (np.asarray(codes).astype(np.uint32) << 16 & 0xFFFFFFFF).astype(np.uint32).view(np.float32)


def encode_bf16(values: AnyArray) -> U16:
    """bfloat16 codes of float32 values: nearest, ties to even; NaNs become quiet and keep their top payload bits."""
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    nan = (bits & 0x7FFFFFFF) > 0x7F800000
    return np.where(nan, (bits >> 16) | 0x40, rounded).astype(np.uint16)


def encode_bf16_from_f64(values: F64) -> U16:
    """bfloat16 codes of float64 values, rounded once (a detour through float32 would round twice)."""
    number = np.asarray(values, np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        single = number.astype(np.float32)
        bits = single.view(np.uint32)
        # Round to odd: a float32 that lost bits must not look like a tie to the second rounding.
        error = number - single.astype(np.float64)
        away = (error != 0) & np.isfinite(single) & ((bits & 1) == 0)
        toward_zero = np.signbit(error) != np.signbit(single)
        odd = np.where(away, np.where(toward_zero, bits - 1, bits | 1), bits).astype(np.uint32)
    return encode_bf16(odd.view(np.float32))


def encode_bf16_stochastic(values: AnyArray, random: AnyArray) -> U16:
    """bfloat16 codes after stochastic rounding: the top 16 random bits are added to the 16 dropped mantissa bits.

    Source: CDNA4 ISA manual, V_CVT_SR_PK_BF16_F32.
    """
    bits = np.ascontiguousarray(values, np.float32).view(np.uint32)
    special = (bits & 0x7F800000) == 0x7F800000
    top = np.asarray(random).astype(np.uint32) >> 16
    return np.where(special, encode_bf16(values), (bits.astype(np.uint64) + top) >> 16).astype(np.uint16)


def encode_f16_stochastic(values: AnyArray, random: AnyArray) -> NDArray[np.float16]:
    """float16 values after stochastic rounding: the top 13 random bits are added to the 13 dropped mantissa bits.

    Results below the normal range drop more bits and see the same random fraction.

    Source: CDNA4 ISA manual, V_CVT_SR_F16_F32.
    """
    number = np.asarray(values, np.float64)
    words = np.asarray(random).astype(np.int64) & 0xFFFFFFFF
    with np.errstate(all="ignore"):
        rounded: NDArray[np.float16] = small_codes.half_stochastic(elementary.NUMPY, number, words).astype(np.float16)
    return rounded


def truncate_to_xf32(values: F32) -> F32:
    """float32 values cut to the 10 mantissa bits that the xf32 rows of gfx942 read.

    Source: measured on MI300 by MMA-Sim (arXiv 2511.10909), which matches the hardware bit for bit with truncation.
    """
    return (np.ascontiguousarray(values).view(np.uint32) & np.uint32(0xFFFFE000)).view(np.float32)
