"""The number formats that matrix and conversion instructions read, as they are packed in registers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import SimError
from . import numerics

AnyArray = NDArray[Any]
F64 = NDArray[np.float64]


class Element:
    """One number format as it is packed in registers.

    Attributes:
        name: Short name: ``f16``, ``bf16``, ``i8``, ``fp8``, ...
        bits: Width of an element in bits.
        dtype: NumPy type the register bytes are viewed as; ``uint8`` for formats narrower than a byte.
        is_float: Whether the LLVM argument has this very float type (otherwise it is an integer carrier).
        widen: ``widen(picked, out)`` writes picked elements (of ``dtype``, or codes of narrow formats) as float64.
        min_normal: Smallest normal magnitude, for the rows that flush denormals.
        fmt: The format of a small float.
    """

    __slots__ = ("bits", "dtype", "fmt", "is_float", "min_normal", "name", "widen")

    def __init__(
        self,
        name: str,
        bits: int,
        dtype: Any,
        widen: Callable[[AnyArray, F64], Any],
        *,
        is_float: bool = False,
        min_normal: float = 0.0,
        fmt: numerics.SmallFloat | None = None,
    ) -> None:
        self.name = name
        self.bits = bits
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.widen = widen
        self.is_float = is_float
        self.min_normal = min_normal
        self.fmt = fmt


def _cast(picked: AnyArray, out: F64) -> None:
    out[...] = picked


def _from_bf16(picked: AnyArray, out: F64) -> None:
    out[...] = numerics.decode_bf16(picked)


def _from_xf32(picked: AnyArray, out: F64) -> None:
    out[...] = numerics.truncate_to_xf32(picked)


def _from_table(table: F64) -> Callable[[AnyArray, F64], Any]:
    def look_up(picked: AnyArray, out: F64) -> None:
        table.take(picked, out=out, mode="clip")  # codes are in range; "raise" would go through a copy

    return look_up


def _table_element(fmt: numerics.SmallFloat, name: str) -> Element:
    return Element(name, fmt.bits, np.uint8, _from_table(fmt.table64), fmt=fmt)


_NIBBLES = np.arange(16, dtype=np.float64)

F16 = Element("f16", 16, np.float16, _cast, is_float=True, min_normal=2.0**-14)
BF16 = Element("bf16", 16, np.uint16, _from_bf16, min_normal=2.0**-126)
F32 = Element("f32", 32, np.float32, _cast, is_float=True, min_normal=2.0**-126)
F64E = Element("f64", 64, np.float64, _cast, is_float=True)
XF32 = Element("xf32", 32, np.float32, _from_xf32, is_float=True)
I32 = Element("i32", 32, np.int32, _cast)
I8 = Element("i8", 8, np.int8, _cast)
U8 = Element("u8", 8, np.uint8, _cast)
I4 = Element("i4", 4, np.uint8, _from_table(np.where(_NIBBLES > 7, _NIBBLES - 16, _NIBBLES)))
U4 = Element("u4", 4, np.uint8, _from_table(_NIBBLES))
FP6 = _table_element(numerics.E2M3FN, "fp6")
BF6 = _table_element(numerics.E3M2FN, "bf6")
FP4 = _table_element(numerics.E2M1FN, "fp4")
ELEMENTS: dict[str, Element] = {e.name: e for e in (F16, BF16, F32, F64E, XF32, I32, I8, U8, I4, U4, FP6, BF6, FP4)}
_FP8 = {
    (name, flavour): _table_element(pick(flavour), name)
    for name, pick in (("fp8", numerics.fp8), ("bf8", numerics.bf8))
    for flavour in ("fnuz", "ocp")
}


def fp8_element(name: str, flavour: str | None) -> Element:
    """The element ``fp8`` or ``bf8`` in the flavour of a chip (`Chip.fp8`)."""
    element = _FP8.get((name, flavour or ""))
    if element is None:
        numerics.fp8(flavour)  # raises: the chip has no 8-bit floats
        raise SimError(f"unknown 8-bit float {name!r}", fix="one of: fp8, bf8")
    return element


def element_for(name: str, flavour: str | None) -> Element:
    """The element of a short name; ``flavour`` (`Chip.fp8`) picks the meaning of fp8 and bf8."""
    if name in ("fp8", "bf8"):
        return fp8_element(name, flavour)
    return ELEMENTS[name]
