"""The denormal mode of a kernel decides what arithmetic on f32 reads and writes."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.sim import simulate

pytestmark = pytest.mark.sim
TINY = np.float32(1e-40)
KERNEL = """
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %y) MODE {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = zext i32 %t to i64
  %px = getelementptr float, ptr addrspace(1) %x, i64 %w
  %py = getelementptr float, ptr addrspace(1) %y, i64 %w
  %v = load float, ptr addrspace(1) %px, align 4
  {body}
  store float %r, ptr addrspace(1) %py, align 4
  ret void
}}
"""
FLUSH = '"denormal-fp-math-f32"="preserve-sign,preserve-sign"'


def run(body: str, value: object, mode: str = FLUSH) -> np.float32:
    x, y = np.full(64, value, np.float32), np.full(64, 9, np.float32)
    text = KERNEL.format(body=body).replace("MODE", mode)
    simulate(text, kernel="k", grid=1, block=64, args=[x, y], target="gfx942")
    return y[0]


@pytest.mark.parametrize(
    ("body", "value", "kept"),
    [
        ("%r = fadd float %v, 0.0", TINY, TINY),
        ("%r = fmul float %v, 1.0", -TINY, -TINY),
        ("%r = fmul float %v, 0x3810000000000000", 2.0**-3, np.float32(2.0**-129)),
        ("%r = call float @llvm.fma.f32(float %v, float 1.0, float 0.0)", TINY, TINY),
        ("%r = call float @llvm.exp2.f32(float %v)", -130, np.float32(2.0**-130)),
        ("%r = call float @llvm.ldexp.f32.i32(float %v, i32 -140)", 1, np.float32(2.0**-140)),
        ("%d = fpext float %v to double\n  %r = fptrunc double %d to float", TINY, TINY),
        ("%r = call float @llvm.maxnum.f32(float %v, float -1.0)", TINY, TINY),
    ],
)
def test_arithmetic_keeps_denormals_unless_the_kernel_flushes_them(body: str, value: object, kept: np.float32) -> None:
    assert run(body, value, "") == run(body, value, '"denormal-fp-math-f32"="ieee,ieee"') == kept != 0
    got = run(body, value)
    assert got == 0 and np.signbit(got) == np.signbit(kept)


def test_comparisons_read_denormals_as_zero_where_they_are_flushed() -> None:
    body = "%c = fcmp oeq float %v, 0.0\n  %r = select i1 %c, float 1.0, float 2.0"
    assert run(body, TINY) == 1 and run(body, TINY, "") == 2


@pytest.mark.parametrize(
    "body",
    ["%r = fneg float %v", "%r = call float @llvm.fabs.f32(float %v)", "%r = select i1 true, float %v, float 0.0"],
)
def test_what_only_moves_bits_keeps_denormals(body: str) -> None:
    assert abs(run(body, TINY)) == TINY


def test_other_widths_keep_denormals() -> None:
    body = "%h = fptrunc float %v to half\n  %s = fadd half %h, 0.0\n  %r = fpext half %s to float"
    assert run(body, 2.0**-20) == 2.0**-20
