"""What may be written into memory of a type as it is, and what must be converted first."""

from __future__ import annotations

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from .number import in_range
from .numeric import Numeric, promote, refuse_too_large
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def stored(value: Any, dtype: type[Numeric]) -> Any:
    """A number or vector as it is written into memory of a type.

    A number of the language, or a vector, is converted where the memory's type is that of both in arithmetic, or
    where integers only change their sign; a Python number where the type can hold it.

    Raises:
        TraceError: The conversion would drop digits, a fraction or bits.
    """
    if isinstance(value, Vector):
        if not _widens(value.dtype, dtype):
            raise _narrows(f"a vector of {value.dtype}", dtype)
        return value.to(dtype)
    if isinstance(value, Numeric):
        if type(value) is not dtype and not _widens(type(value), dtype):
            v = value.static_value()
            if v is None or in_range(v, dtype) != v:
                raise _narrows(f"a {type(value)}" if v is None else f"{value!r}", dtype)
        return dtype(value)
    refuse_too_large(value, dtype)
    if dtype.signed is not None and isinstance(value, (int, float)) and in_range_or_none(value, dtype) != value:
        wraps = type(value) is int and dtype.width > 1
        if not wraps:
            raise _narrows(repr(value), dtype)
    return dtype(value)


def filling(value: Any, dtype: type[Numeric]) -> Any:
    """A number as memory is filled with it: floats are rounded, but do not become integers.

    Raises:
        TraceError: A float fills integers.
    """
    if isinstance(value, Numeric) and value.signed is None and dtype.signed is None:
        return dtype(value)
    return stored(value, dtype)


def in_range_or_none(value: int | float, dtype: type[Numeric]) -> int | float | None:
    """The number as a constant of a type; ``None`` for what is no integer, or no float that fits one."""
    try:
        return in_range(value, dtype)
    except TraceError:
        return None


def _widens(source: type[Numeric], target: type[Numeric]) -> bool:
    if source is target:
        return True
    if t.I1 in (source.ir, target.ir):
        return source.ir is t.I1
    if source.signed is not None and target.signed is not None:
        return target.width >= source.width
    if source.signed is None and source.width < 16:
        return target.signed is None and target.width >= 16
    if target.width < 16:
        return False
    return promote(source, target, arithmetic=False) is target


def _narrows(what: str, dtype: type[Numeric]) -> TraceError:
    return TraceError(
        f"{what} stored into memory of {dtype}, which cannot hold all of its values",
        Builder.current().location(),
        f"convert it first: .to(fx.{dtype})",
    )
