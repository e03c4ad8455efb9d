"""Atomic updates of global and shared memory; every function returns the old value.

They are monotonic: atomic by themselves, and ordering nothing else.  A barrier or fence orders the rest.
"""

from __future__ import annotations

from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.ops_atomic import SCOPES
from .numeric import Numeric
from .pointer import Pointer
from .tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_NAMES = {"system": "", "device": "agent", "block": "workgroup", "wave": "wavefront"}


def _scope(scope: str) -> str:
    found = _NAMES.get(scope, scope)
    if found not in SCOPES:
        legal = ", ".join((*_NAMES, *(s for s in SCOPES if s)))
        raise TraceError(f"scope {scope!r}", Builder.current().location(), f"use one of: {legal}")
    return found


def atomic_rmw(kind: str, ptr: Any, value: Any, *, scope: str = "agent") -> Any:
    """An atomic update by LLVM's name (``add``, ``fmax``, ``xchg``, ...); returns the old value.

    Args:
        kind: The operation, with the sign and kind of the type: ``umax``, ``fadd``.
        ptr: Pointer, or tensor of one element.
        value: Converted to the element type.
        scope: ``agent`` (the device), ``workgroup``, ``wavefront``, or ``system``.

    Raises:
        TraceError: The type or memory has no such update.
    """
    b = Builder.current()
    where = ptr.iter if isinstance(ptr, Tensor) else ptr
    if not isinstance(where, Pointer) or where.address_space not in ("global", "shared", "generic"):
        raise TraceError(f"an atomic update at {ptr!r}", b.location(), "pass a pointer to global or shared memory")
    cls = where.dtype
    if cls.width not in (32, 64):
        raise TraceError(f"an atomic update of {cls}", b.location(), "use a type of 32 or 64 bits")
    attrs: dict[str, Any] = {"kind": kind, "syncscope": _scope(scope)}
    operands = [cls(value).ir_value(), where.ir_value()]
    return cls.wrap(b.emit("fly.atomic_rmw", operands, [cls.ir], attrs).results[0])


def _dtype(ptr: Any) -> type[Numeric]:
    return ptr.dtype  # type: ignore[no-any-return]


def _function(name: str, integer: str | None, unsigned: str | None, real: str | None) -> Callable[..., Any]:
    def run(ptr: Any, value: Any, *, scope: str = "agent") -> Any:
        signed = _dtype(ptr).signed
        kind = real if signed is None else integer if signed else unsigned
        if kind is None:
            raise TraceError(
                f"atomic_{name} of {_dtype(ptr)}", Builder.current().location(), "use a 32- or 64-bit integer"
            )
        return atomic_rmw(kind, ptr, value, scope=scope)

    run.__name__ = run.__qualname__ = f"atomic_{name}"
    run.__doc__ = f"Atomic ``{name}`` at a pointer; returns the old value.  ``scope`` as in ``atomic_rmw``."
    return run


atomic_add, atomic_sub = _function("add", "add", "add", "fadd"), _function("sub", "sub", "sub", "fsub")
atomic_max, atomic_min = _function("max", "max", "umax", "fmax"), _function("min", "min", "umin", "fmin")
atomic_and, atomic_or = _function("and", "and", "and", None), _function("or", "or", "or", None)
atomic_xor, atomic_xchg = _function("xor", "xor", "xor", None), _function("xchg", "xchg", "xchg", "xchg")
atomic_inc, atomic_dec = (
    _function("inc", "uinc_wrap", "uinc_wrap", None), _function("dec", "udec_wrap", "udec_wrap", None)
)  # fmt: skip

__all__ = [
    "atomic_add", "atomic_and", "atomic_dec", "atomic_inc", "atomic_max", "atomic_min", "atomic_or", "atomic_rmw",
    "atomic_sub", "atomic_xchg", "atomic_xor",
]  # fmt: skip
