"""Atoms that every target has."""

from __future__ import annotations

from .atoms import located
from .numeric import Numeric
from .pointer import elem_ir

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: The whole system: the default scope of atomic atoms.
System = "system"


def UniversalCopy(bits: int) -> Any:
    """A load or store of ``bits`` bits in any address space."""
    from ..atoms.universal import UniversalCopy as Atom

    return located(lambda: Atom(bits))


def _copy(bits: int) -> Callable[[], Any]:
    def run() -> Any:
        return UniversalCopy(bits)

    run.__name__ = run.__qualname__ = f"UniversalCopy{bits}b"
    run.__doc__ = f"``UniversalCopy({bits})``."
    return run


UniversalCopy8b, UniversalCopy16b, UniversalCopy32b = _copy(8), _copy(16), _copy(32)
UniversalCopy64b, UniversalCopy128b = _copy(64), _copy(128)


def UniversalFMA(dtype: type[Numeric]) -> Any:
    """``d = a * b + c`` on one element of a float type."""
    from ..atoms.universal import UniversalFma

    return located(lambda: UniversalFma(elem_ir(dtype)))


def signed_operation(op: str, dtype: type[Numeric]) -> str:
    """``max`` and ``min`` by the sign of the type."""
    return f"u{op}" if op in ("max", "min") and dtype.signed is False else op


def UniversalAtomic(op: str, dtype: type[Numeric], syncscope: str = System) -> Any:
    """An atomic update of memory with values from registers; used like a copy atom.

    Args:
        op: add, sub, max, min, and, or, xor, inc, dec, xchg; max and min follow the sign of the type.
        dtype: Element type.
        syncscope: ``system``, ``agent``, ``workgroup``, ``wavefront``, ...

    Raises:
        AtomError: There is no such operation on the type.
    """
    from ..atoms.universal_atomic import UniversalAtomic as Atom

    return located(lambda: Atom(signed_operation(op, dtype), elem_ir(dtype), syncscope or System))


def _atomic(op: str) -> Callable[..., Any]:
    def run(dtype: type[Numeric], syncscope: str = System) -> Any:
        return UniversalAtomic(op, dtype, syncscope)

    run.__name__ = run.__qualname__ = f"UniversalAtomic{op.capitalize()}"
    run.__doc__ = f"``UniversalAtomic({op!r}, dtype)``."
    return run


UniversalAtomicAdd, UniversalAtomicMax, UniversalAtomicMin = _atomic("add"), _atomic("max"), _atomic("min")
UniversalAtomicAnd, UniversalAtomicOr = _atomic("and"), _atomic("or")
UniversalAtomicInc, UniversalAtomicDec = _atomic("inc"), _atomic("dec")

__all__ = [
    "UniversalAtomic", "UniversalAtomicAdd", "UniversalAtomicAnd", "UniversalAtomicDec", "UniversalAtomicInc",
    "UniversalAtomicMax", "UniversalAtomicMin", "UniversalAtomicOr", "UniversalCopy", "UniversalCopy8b",
    "UniversalCopy16b", "UniversalCopy32b", "UniversalCopy64b", "UniversalCopy128b", "UniversalFMA",
]  # fmt: skip
