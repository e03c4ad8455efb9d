"""Small kernels as LLVM IR text, with the places where tests plant bugs."""

from __future__ import annotations

import textwrap

FENCED_BARRIER = """\
  fence syncscope("workgroup") release
  call void @llvm.amdgcn.s.barrier()
  fence syncscope("workgroup") acquire
"""


def kernel(body: str, params: str = "ptr addrspace(1) %out", module: str = "", attrs: str = "") -> str:
    """A module with one kernel ``@k``; ``%t`` is the work item id, ``%w`` the wave (of 64 lanes), ``%l`` the lane."""
    return (
        f"{module}\ndefine amdgpu_kernel void @k({params}) {attrs} {{\nentry:\n"
        "  %t = call i32 @llvm.amdgcn.workitem.id.x()\n  %w = lshr i32 %t, 6\n  %l = and i32 %t, 63\n"
        f"{textwrap.dedent(body).strip()}\n}}\n"
    )


def line_of(text: str, fragment: str) -> int:
    """Number of the first line that holds ``fragment``."""
    return next(i for i, line in enumerate(text.split("\n"), 1) if fragment in line)


LDS = "@lds = internal addrspace(3) global [256 x i32] poison, align 16\n"

STORE_OUT = """\
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 {value}, ptr addrspace(1) %po, align 4
  ret void
"""


def exchange(before: str = FENCED_BARRIER, module: str = LDS) -> str:
    """Every work item writes its id to LDS and reads that of the mirrored one, in another wave."""
    return kernel(
        "%p = getelementptr i32, ptr addrspace(3) @lds, i32 %t\n"
        "store i32 %t, ptr addrspace(3) %p, align 4\n"
        f"{before}"
        "%m = sub i32 255, %t\n"
        "%q = getelementptr i32, ptr addrspace(3) @lds, i32 %m\n"
        "%v = load i32, ptr addrspace(3) %q, align 4\n" + STORE_OUT.format(value="%v"),
        module=module,
    )


def gemm(
    *, barrier1: str = FENCED_BARRIER, barrier2: str = FENCED_BARRIER, read_swizzle: bool = True, columns: int = 16,
    transpose_c: bool = False, accumulator: str = "zeroinitializer", align: int = 8, tail: str = "ult",
) -> str:  # fmt: skip
    """C[32,16] = A[32,K] * B[16,K]^T in f16 with f32 result; two waves, K steps of 16, swizzled LDS, two barriers.

    Launched with 128 work items; ``%k`` is a multiple of 16.
    """
    row_bytes = columns * 2
    swizzle = "%sw" if read_swizzle else "%quad"
    stores = "\n".join(
        f"""
  %row{i} = add i32 %row, {i}
  %c{i} = extractelement <4 x float> %d, i32 {i}
  %e{i} = mul i32 %{"l15" if transpose_c else f"row{i}"}, 16
  %f{i} = add i32 %e{i}, %{f"row{i}" if transpose_c else "l15"}
  %pc{i} = getelementptr float, ptr addrspace(1) %c, i32 %f{i}
  store float %c{i}, ptr addrspace(1) %pc{i}, align 4"""
        for i in range(4)
    )
    operands = "<4 x half> %fa, <4 x half> %fb, <4 x float> %acc"
    return f"""
@la = internal addrspace(3) global [{32 * columns} x half] poison, align 16
@lb = internal addrspace(3) global [{16 * columns} x half] poison, align 16
define amdgpu_kernel void @gemm(ptr addrspace(1) %a, ptr addrspace(1) %b, ptr addrspace(1) %c, i32 %k) {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = lshr i32 %t, 6
  %l = and i32 %t, 63
  %l15 = and i32 %l, 15
  %quad = lshr i32 %l, 4
  %bit = lshr i32 %l15, 2
  %sw = xor i32 %quad, %bit
  ; each work item copies 4 halves of A, the first 64 also of B
  %cr = lshr i32 %t, 2
  %cc = and i32 %t, 3
  %cbit0 = lshr i32 %cr, 2
  %cbit = and i32 %cbit0, 3
  %cs = xor i32 %cc, %cbit
  %lr = mul i32 %cr, {row_bytes}
  %lc = shl i32 %cs, 3
  %lo = add i32 %lr, %lc
  %wa = getelementptr i8, ptr addrspace(3) @la, i32 %lo
  %wb = getelementptr i8, ptr addrspace(3) @lb, i32 %lo
  %gr = mul i32 %cr, %k
  %gc = shl i32 %cc, 2
  %go = add i32 %gr, %gc
  %copies = icmp {tail} i32 %t, 64
  %arow0 = shl i32 %w, 4
  %arow = add i32 %arow0, %l15
  %ra0 = mul i32 %arow, {row_bytes}
  %rc = shl i32 {swizzle}, 3
  %ra = add i32 %ra0, %rc
  %rb0 = mul i32 %l15, {row_bytes}
  %rb = add i32 %rb0, %rc
  %rpa = getelementptr i8, ptr addrspace(3) @la, i32 %ra
  %rpb = getelementptr i8, ptr addrspace(3) @lb, i32 %rb
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %i1, %latch ]
  %acc = phi <4 x float> [ {accumulator}, %entry ], [ %d, %latch ]
  %ga = add i32 %go, %i
  %pa = getelementptr half, ptr addrspace(1) %a, i32 %ga
  %va = load <4 x half>, ptr addrspace(1) %pa, align 8
  store <4 x half> %va, ptr addrspace(3) %wa, align 8
  br i1 %copies, label %copy, label %ready
copy:
  %pb = getelementptr half, ptr addrspace(1) %b, i32 %ga
  %vb = load <4 x half>, ptr addrspace(1) %pb, align 8
  store <4 x half> %vb, ptr addrspace(3) %wb, align 8
  br label %ready
ready:
{barrier1}
  %fa = load <4 x half>, ptr addrspace(3) %rpa, align {align}
  %fb = load <4 x half>, ptr addrspace(3) %rpb, align 8
  %d = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x16f16({operands}, i32 0, i32 0, i32 0)
{barrier2}
  br label %latch
latch:
  %i1 = add i32 %i, 16
  %more = icmp ult i32 %i1, %k
  br i1 %more, label %loop, label %exit
exit:
  %rq = shl i32 %quad, 2
  %row = add i32 %arow0, %rq
{stores}
  ret void
}}
"""
