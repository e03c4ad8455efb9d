"""Numbers as the bits that registers hold, for every element type, packed ones included."""

from __future__ import annotations

import ml_dtypes
import numpy as np

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...ir.types import ScalarType

_NAMES = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i4": "int4", "i8": "int8",
    "i16": "int16", "i32": "int32", "i64": "int64", "f4E2M1FN": "float4_e2m1fn", "f6E2M3FN": "float6_e2m3fn",
    "f6E3M2FN": "float6_e3m2fn", "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2",
    "f8E4M3FNUZ": "float8_e4m3fnuz", "f8E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


def dtype_of(elem: ScalarType) -> np.dtype[Any]:
    """NumPy type of an element; the packed ones take a byte each there."""
    name = _NAMES[elem.text]
    return np.dtype(getattr(ml_dtypes, name) if hasattr(ml_dtypes, name) else name)


def encode(values: Any, elem: ScalarType) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """Numbers as packed bytes, the first element in the lowest bits.

    Shape: ``(..., count)`` to ``(..., count * bits / 8)``.
    """
    raw = np.ascontiguousarray(values.astype(dtype_of(elem)))
    codes = raw.view(np.uint8).reshape(*raw.shape, raw.dtype.itemsize)
    if elem.bits % 8 == 0:
        return codes.reshape(*raw.shape[:-1], -1)
    bits = np.unpackbits(codes, axis=-1, bitorder="little")[..., : elem.bits]
    return np.packbits(bits.reshape(*raw.shape[:-1], -1), axis=-1, bitorder="little")
