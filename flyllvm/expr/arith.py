"""Arithmetic by MLIR's names, which kernels import as ``fx.arith``."""

from __future__ import annotations

from .math import ceildiv, cmpf, cmpi, max, maximumf, maxnumf, min, minimumf, minnumf, shrui
from .vector import where as select

__all__ = [
    "ceildiv", "cmpf", "cmpi", "max", "maximumf", "maxnumf", "min", "minimumf", "minnumf", "select", "shrui",
]  # fmt: skip


def __getattr__(name: str) -> object:
    # Older programs name the operations of MLIR: addf, mulf, trunc_f, constant.
    raise AttributeError(
        f"fx.arith has no {name!r}: write operators (a + b), plain numbers, and x.to(dtype) for conversions"
    )
