"""Atomic updates of memory."""

from __future__ import annotations

from . import types as t
from .core import Op, op

#: LLVM's ``atomicrmw`` operations by what they work on.
INT_KINDS = ("xchg", "add", "sub", "and", "or", "xor", "max", "min", "umax", "umin", "uinc_wrap", "udec_wrap")
FLOAT_KINDS = ("xchg", "fadd", "fsub", "fmax", "fmin")
#: Scopes of AMDGPU; the empty one is the whole system.
SCOPES = ("", "agent", "workgroup", "wavefront", "singlethread")


@op
class AtomicRmw(Op):
    """``fly.atomic_rmw``: operands (value, pointer); the result is the old value in memory.

    Attributes of the operation: ``kind`` (LLVM's name), ``syncscope``.  The order is monotonic: fences order the rest.
    """

    __slots__ = ()
    name = "fly.atomic_rmw"
    arity = (2, 2, 1, 0)
    attr_names = ("kind", "syncscope")

    def verify(self) -> None:
        value, p = self.operands[0].type, self.operands[1].type
        if not isinstance(p, t.PtrType) or p.space not in ("global", "shared", "generic"):
            raise self.fail(f"an atomic update at {p}", "use a pointer to global or shared memory")
        if value != p.elem or self.results[0].type != value or not isinstance(value, t.ScalarType):
            raise self.fail(
                f"{value} at {p} giving {self.results[0].type}", "use the pointer's element type throughout"
            )
        legal = INT_KINDS if isinstance(value, t.IntType) else FLOAT_KINDS
        if self.attrs.get("kind") not in legal:
            raise self.fail(f"kind {self.attrs.get('kind')!r} on {value}", f"use one of: {', '.join(legal)}")
        widths = (32, 64) if isinstance(value, t.IntType) else (16, 32, 64)
        if value.bits not in widths or (isinstance(value, t.FloatType) and value.is_small):
            raise self.fail(f"an atomic update of {value}", f"use {' or '.join(map(str, widths))} bits")
        if self.attrs.get("syncscope", "") not in SCOPES:
            raise self.fail(f"syncscope {self.attrs['syncscope']!r}", f"use one of: {', '.join(map(repr, SCOPES))}")
        if p.swizzle is not None and value.bits > 8 << p.swizzle.base:
            raise self.fail(f"{value} through {p.swizzle}", "use a larger swizzle base")
