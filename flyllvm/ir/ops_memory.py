"""The ``fly`` operations that allocate and access memory: through pointers, and elements of memrefs."""

from __future__ import annotations

from . import types as t
from .core import Op, op
from .ops_fly import is_offset, memref_of, pointer_of


@op
class PtrLoad(Op):
    """``fly.ptr.load``: a scalar or vector at a pointer."""

    __slots__ = ()
    name = "fly.ptr.load"
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        _check_access(self, pointer_of(self, 0), self.results[0].type)


@op
class PtrStore(Op):
    """``fly.ptr.store``: operands (value, pointer)."""

    __slots__ = ()
    name = "fly.ptr.store"
    arity = (2, 2, 0, 0)

    def verify(self) -> None:
        _check_access(self, pointer_of(self, 1), self.operands[0].type)


def _check_access(o: Op, p: t.PtrType, value: t.Type) -> None:
    if t.scalar_of(value) != p.elem:
        raise o.fail(f"{value} at {p}", "use the pointer's element type (fly.recast_iter changes it)")
    bits = p.elem.bits * t.count_of(value)
    if bits % 8 and value != t.I1:
        raise o.fail(f"{value} is {bits} bits", "access whole bytes")
    if p.swizzle is not None and bits > 8 << p.swizzle.base:
        raise o.fail(
            f"{value} ({bits // 8} bytes) through {p.swizzle}",
            f"the swizzle keeps runs of {1 << p.swizzle.base} bytes; use narrower accesses or a larger base",
        )


# --- memrefs --------------------------------------------------------------------------------------


@op
class Alloca(Op):
    """``fly.memref.alloca``: register memory of a static layout."""

    __slots__ = ()
    name = "fly.memref.alloca"
    arity = (0, 0, 1, 0)

    def verify(self) -> None:
        from ..layout import Layout, get_leaves, is_static

        r = self.results[0].type
        if not isinstance(r, t.MemRefType) or r.space != "register":
            raise self.fail(f"result {r}", "register memory is a memref in space 'register'")
        if not is_static(r.layout):
            raise self.fail(f"layout {r.layout} has run-time leaves", "register memory has a static layout")
        plain = isinstance(r.layout, Layout) and all(type(d) is int and d >= 0 for d in get_leaves(r.layout.stride))
        if not plain:
            raise self.fail(f"layout {r.layout}", "register memory has a plain layout with strides of at least 0")


@op
class MemRefLoad(Op):
    """``fly.memref.load``: operands (memref, index); the index is an int tuple or a number."""

    __slots__ = ()
    name = "fly.memref.load"
    arity = (2, 2, 1, 0)

    def verify(self) -> None:
        if self.results[0].type != memref_of(self, 0).elem:
            raise self.fail(f"{self.results[0].type} from {self.operands[0].type}", "load the element type")
        _check_index(self, 1)


@op
class MemRefStore(Op):
    """``fly.memref.store``: operands (value, memref, index)."""

    __slots__ = ()
    name = "fly.memref.store"
    arity = (3, 3, 0, 0)

    def verify(self) -> None:
        if self.operands[0].type != memref_of(self, 1).elem:
            raise self.fail(f"{self.operands[0].type} into {self.operands[1].type}", "store the element type")
        _check_index(self, 2)


def _check_index(o: Op, at: int) -> None:
    if not is_offset(o.operands[at]):
        raise o.fail(f"index of type {o.operands[at].type}", "use an i32, an i64 or an int tuple")


@op
class MemRefLoadVec(Op):
    """``fly.memref.load_vec``: all elements as one vector, in column-major value order."""

    __slots__ = ()
    name = "fly.memref.load_vec"
    arity = (1, 1, 1, 0)

    def verify(self) -> None:
        from ..layout import size

        m, r = memref_of(self, 0), self.results[0].type
        if r != t.VectorType(_static_size(self, size(m.layout)), m.elem):
            raise self.fail(f"{m} as {r}", "the vector holds every element of the memref")


@op
class MemRefStoreVec(Op):
    """``fly.memref.store_vec``: operands (vector, memref)."""

    __slots__ = ()
    name = "fly.memref.store_vec"
    arity = (2, 2, 0, 0)

    def verify(self) -> None:
        from ..layout import size

        m, v = memref_of(self, 1), self.operands[0].type
        if v != t.VectorType(_static_size(self, size(m.layout)), m.elem):
            raise self.fail(f"{v} into {m}", "the vector holds every element of the memref")


def _static_size(o: Op, size: object) -> int:
    if not isinstance(size, int):
        raise o.fail(f"the size {size} is known at run time only", "use a memref with a static shape")
    return size
