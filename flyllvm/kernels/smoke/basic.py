"""Smoke tests of what every kernel needs: ids, memory, LDS, barriers, bounds, atomics, a loop."""

from __future__ import annotations

import numpy as np

from ...atoms.rocdl.cdna3_buffer_copy import BufferCopy
from ...ir import types as t
from ...layout import Layout
from .case import Case, kernel_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ...ir.builder import Builder
    from ...ir.core import Value
    from ...target import Target

BLOCK = 256
GROUPS = 3
ITEMS = BLOCK * GROUPS
TILE = 16
_I32 = t.PtrType(t.I32, "global")
_F32 = t.PtrType(t.F32, "global")


def _global_id(b: Builder) -> Value:
    return b.value(b.index_add(b.index_mul(b.block_id(), BLOCK), b.thread_id()))


def _case(name: str, target: Target, text: str, args: Callable[[], list[object]], outputs: list[int]) -> Case:
    grid, block = (GROUPS, 1, 1), (BLOCK, 1, 1)
    return Case(name, "basic", target, text, grid=grid, block=block, args=args, outputs=outputs)


def ids(target: Target) -> Case:
    """Every work item stores who it is."""

    def body(b: Builder, out: Value) -> None:
        mine = b.add_offset(out, b.index_mul(_global_id(b), 2))
        b.ptr_store(_global_id(b), mine)
        b.ptr_store(b.lane_id(), b.add_offset(mine, 1))

    text = kernel_text(target, (BLOCK, 1, 1), body, {"out": _I32})
    return _case("ids", target, text, lambda: [np.full(2 * ITEMS, -1, np.int32)], [0])


def lds_exchange(target: Target) -> Case:
    """Work items hand values to others of another wave through LDS, with a barrier between."""

    def body(b: Builder, src: Value, dst: Value) -> None:
        lds, tid = b.shared(t.I32, 4 * BLOCK), b.thread_id()
        b.ptr_store(b.ptr_load(b.add_offset(src, _global_id(b))), b.add_offset(lds, tid))
        b.barrier()
        other = b.ptr_load(b.add_offset(lds, b.index_sub(BLOCK - 1, tid)))
        b.ptr_store(other, b.add_offset(dst, _global_id(b)))

    text = kernel_text(target, (BLOCK, 1, 1), body, {"src": _I32, "dst": _I32})
    return _case(
        "lds exchange", target, text, lambda: [np.arange(ITEMS, dtype=np.int32) * 7, np.full(ITEMS, -1, np.int32)], [1]
    )


def buffer_bounds(target: Target) -> Case:
    """Loads past the end of a descriptor give zero, stores there are dropped, the last element inside is kept."""
    inside = ITEMS - 101

    def body(b: Builder, src: Value, dst: Value) -> None:
        atom = b.make_copy_atom(t.CopyAtomType(BufferCopy(32), 32))
        held, one = b.alloca(t.I32, Layout(1, 1)), Layout(1, 1)
        first, second = (b.make_buffer(p, b.constant(4 * n, t.I64)) for p, n in ((src, inside), (dst, inside + 50)))
        index = _global_id(b)
        b.copy_atom_call(atom, b.make_view(b.add_offset(first, index), one), held)
        b.copy_atom_call(atom, held, b.make_view(b.add_offset(second, index), one))

    text = kernel_text(target, (BLOCK, 1, 1), body, {"src": _I32, "dst": _I32})
    return _case(
        "buffer bounds", target, text, lambda: [np.arange(ITEMS, dtype=np.int32) + 1, np.full(ITEMS, -7, np.int32)], [1]
    )


def matmul(target: Target) -> Case:
    """A tiled f32 product with integer values: a loop, LDS and barriers together."""
    m, n, k = 2 * TILE, 3 * TILE, 5 * TILE

    def body(b: Builder, x: Value, y: Value, z: Value) -> None:
        lds_x, lds_y = (b.shared(t.F32, 4 * TILE * TILE) for _ in range(2))
        row, column = b.thread_id("y"), b.thread_id("x")
        here = b.index_add(b.index_mul(row, TILE), column)
        first = b.index_add(b.index_mul(b.block_id("y"), TILE), row)
        second = b.index_mul(b.block_id("x"), TILE)

        def step(k0: Value, acc: Value) -> list[Value]:
            at_x = b.index_add(b.index_mul(first, k), b.index_add(k0, column))
            at_y = b.index_add(b.index_mul(b.index_add(second, row), k), b.index_add(k0, column))
            b.ptr_store(b.ptr_load(b.add_offset(x, at_x)), b.add_offset(lds_x, here))
            b.ptr_store(b.ptr_load(b.add_offset(y, at_y)), b.add_offset(lds_y, here))
            b.barrier()
            for i in range(TILE):
                u = b.ptr_load(b.add_offset(lds_x, b.index_add(b.index_mul(row, TILE), i)))
                v = b.ptr_load(b.add_offset(lds_y, b.index_add(b.index_mul(column, TILE), i)))
                acc = b.fma(u, v, acc)
            b.barrier()
            return [acc]

        (total,) = b.for_(0, k, TILE, [b.constant(0.0, t.F32)], step)
        b.ptr_store(total, b.add_offset(z, b.index_add(b.index_mul(first, n), b.index_add(second, column))))

    text = kernel_text(target, (TILE, TILE, 1), body, {"x": _F32, "y": _F32, "z": _F32})

    def args() -> list[object]:
        rng = np.random.default_rng(1)
        return [*(rng.integers(-8, 9, s).astype(np.float32) for s in ((m, k), (n, k))), np.zeros((m, n), np.float32)]

    grid, block = (n // TILE, m // TILE, 1), (TILE, TILE, 1)
    return Case("matmul", "basic", target, text, grid=grid, block=block, args=args, outputs=[2])


# Many work items update one place, and maxima meet sums: written in LLVM IR to be independent of the atoms.
_ATOMICS = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @smoke(ptr addrspace(1) %sums, ptr addrspace(1) %highest) #0 {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %base = mul i32 %g, 256
  %id = add i32 %base, %t
  %slot = and i32 %t, 7
  %a = getelementptr i32, ptr addrspace(1) %sums, i32 %slot
  %b = getelementptr i32, ptr addrspace(1) %highest, i32 %slot
  %x = atomicrmw add ptr addrspace(1) %a, i32 %id syncscope("agent") monotonic
  %y = atomicrmw umax ptr addrspace(1) %b, i32 %id syncscope("agent") monotonic
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
declare i32 @llvm.amdgcn.workgroup.id.x()
attributes #0 = { "amdgpu-flat-work-group-size"="256,256" }
"""


def atomics(target: Target) -> Case:
    """Sums and maxima over all work items, in any order."""
    return _case("atomics", target, _ATOMICS, lambda: [np.zeros(8, np.int32), np.zeros(8, np.int32)], [0, 1])


BASIC = {"ids": ids, "lds exchange": lds_exchange, "buffer bounds": buffer_bounds, "atomics": atomics, "matmul": matmul}
