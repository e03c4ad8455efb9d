"""Atomic copy atoms: updates of memory from registers, plain and behind a buffer descriptor."""

from __future__ import annotations

from typing import Any

from ...ir import types as t
from ..atoms import located
from ..numeric import Numeric
from .cdna4 import _checked

_UNSIGNED = {"max": "umax", "min": "umin"}
#: Names that others use for scopes.
_SCOPES = {"": "system", "device": "agent", "block": "workgroup", "wave": "wavefront"}


def _words(op: str, dtype: Any) -> tuple[str, str]:
    """Operation and type by their spelling: unsigned types choose unsigned max and min, a vector is a pair."""
    if isinstance(dtype, type) and issubclass(dtype, Numeric):
        word = _UNSIGNED.get(op, op) if dtype.signed is False else op
        return word, str(dtype.ir)
    if isinstance(dtype, tuple):
        elem, count = dtype
        return op, str(t.VectorType(count, elem.ir))
    return op, str(dtype)


def BufferAtomic(op: str, dtype: Any) -> Any:
    """An atomic update behind a buffer descriptor.

    Args:
        op: add, sub, max, min, and, or, xor, inc, dec or swap.
        dtype: Number type; a pair is ``(fx.Float16, 2)``.  Unsigned types choose unsigned max and min.

    Raises:
        AtomError: No chip has it.
        TargetError: The target lacks it; the fix lists what it has.
    """
    from ...atoms.rocdl.cdna3_buffer_atomic import BufferAtomic as Atom

    return _checked(lambda: Atom(*_words(op, dtype)))


def BufferAtomicAdd(dtype: Any) -> Any:
    """``BufferAtomic("add", dtype)``."""
    return BufferAtomic("add", dtype)


def BufferAtomicMax(dtype: Any) -> Any:
    """``BufferAtomic("max", dtype)``."""
    return BufferAtomic("max", dtype)


def BufferAtomicMin(dtype: Any) -> Any:
    """``BufferAtomic("min", dtype)``."""
    return BufferAtomic("min", dtype)


def BufferAtomicPkAdd(dtype: Any) -> Any:
    """Adds a pair of Float16 or BFloat16: ``BufferAtomic("add", (dtype, 2))``."""
    return BufferAtomic("add", (dtype, 2))


def UniversalAtomic(op: str, dtype: Any, syncscope: str = "system", order: str = "monotonic") -> Any:
    """An atomic update of generic, global or shared memory.

    Args:
        op: add, sub, max, min, and, or, xor, inc, dec or xchg.
        dtype: Number type; a pair is ``(fx.Float16, 2)``.  Unsigned types choose unsigned max and min.
        syncscope: Who sees the update as one: system, agent (the device), workgroup, wavefront, singlethread.
        order: monotonic, acquire, release, acq_rel or seq_cst.

    Raises:
        AtomError: There is no such operation, scope or order.
    """
    from ...atoms.universal_atomic import UniversalAtomic as Atom

    word, name = _words(op, dtype)
    return located(lambda: Atom(word, name, _SCOPES.get(syncscope, syncscope), order))


def _universal(op: str) -> Any:
    def make(dtype: Any, syncscope: str = "system", order: str = "monotonic") -> Any:
        return UniversalAtomic(op, dtype, syncscope, order)

    make.__name__ = make.__qualname__ = f"UniversalAtomic{op.capitalize()}"
    make.__doc__ = f'``UniversalAtomic("{op}", dtype, ...)``.'
    return make


UniversalAtomicAdd, UniversalAtomicMax, UniversalAtomicMin = _universal("add"), _universal("max"), _universal("min")
UniversalAtomicAnd, UniversalAtomicOr = _universal("and"), _universal("or")
UniversalAtomicInc, UniversalAtomicDec = _universal("inc"), _universal("dec")

__all__ = [
    "BufferAtomic", "BufferAtomicAdd", "BufferAtomicMax", "BufferAtomicMin", "BufferAtomicPkAdd",
    "UniversalAtomic", "UniversalAtomicAdd", "UniversalAtomicAnd", "UniversalAtomicDec", "UniversalAtomicInc",
    "UniversalAtomicMax", "UniversalAtomicMin", "UniversalAtomicOr",
]  # fmt: skip
