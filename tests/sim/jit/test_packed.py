"""Instructions on packed values, conversions, classes and sums give the same bits on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.engines import both
from tests.sim.jit.calls import LANES, Row, kernel_of

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
W = ["i32", "i32", "i32"]


def call(name: str, result: str, types: list[str], extra: str = "") -> Row:
    operands = ", ".join(f"{t} {{{i}}}" for i, t in enumerate(types))
    return f"call {result} @llvm.{name}({operands}{extra})", result, types


WORDS = [call(f"amdgcn.{n}", "i32", W) for n in ("perm", "alignbit", "alignbyte")]
WORDS += [
    call("amdgcn.mulhi.u24", "i32", W[:2]), call("amdgcn.mulhi.i24", "i32", W[:2]),
    ("call i32 @llvm.amdgcn.perm(i32 {0}, i32 {1}, i32 202182914)", "i32", W[:2]),
    call("amdgcn.cvt.pk.i16", "<2 x i16>", W[:2]), call("amdgcn.cvt.pk.u16", "<2 x i16>", W[:2]),
    *(call(f"amdgcn.cvt.f32.ubyte{i}", "float", W[:1]) for i in range(4)),
]  # fmt: skip
FLOATS = [
    call("amdgcn.cvt.pkrtz", "<2 x half>", ["float", "float"]),
    call("amdgcn.cvt.pknorm.i16", "<2 x i16>", ["float", "float"]),
    call("amdgcn.cvt.pknorm.u16", "<2 x i16>", ["float", "float"]),
    call("amdgcn.cvt.pk.u8.f32", "i32", ["float", "i32", "i32"]),
    call("amdgcn.rcp.iflag.f32", "float", ["float"]),
    *(call(f"fpto{s}i.sat.i{w}.{x}", f"i{w}", [t])
      for s in "su" for w in (8, 16, 32, 64) for x, t in (("f32", "float"), ("f16", "half"), ("f64", "double"))),
    *((f"frem {t} {{0}}, {{1}}", t, [t, t]) for t in ("half", "bfloat", "float", "double")),
]  # fmt: skip
CLASSES = [
    (f"call i1 @llvm.is.fpclass.{x}({t} {{0}}, i32 {mask})", "i1", [t])
    for x, t in (("f16", "half"), ("bf16", "bfloat"), ("f32", "float"), ("f64", "double"))
    for mask in (3, 4, 0x90, 0x1F8, 0x204)
]
CLASSES += [call(f"amdgcn.class.{x}", "i1", [t, "i32"]) for x, t in (("f16", "half"), ("f32", "float"))]
SUMS = [
    (f"call {t} @llvm.vector.reduce.{op}.v4{x}({start}<4 x {t}> {{0}})", t, [f"<4 x {t}>", t])
    for x, t in (("f32", "float"), ("f16", "half"), ("bf16", "bfloat"), ("f64", "double"))
    for op, start in (("fadd", f"{t} {{1}}, "), ("fmul", f"{t} {{1}}, "), ("fmax", ""), ("fmin", ""))
]
DOTS = {
    "gfx942": [call("amdgcn.fdot2", "float", ["<2 x half>", "<2 x half>", "float"], ", i1 false"),
               call("amdgcn.fdot2", "float", ["<2 x half>", "<2 x half>", "float"], ", i1 true"),
               *(call(f"amdgcn.{s}dot2", "i32", ["<2 x i16>", "<2 x i16>", "i32"], f", i1 {c}")
                 for s in "su" for c in (0, 1)),
               *(call(f"amdgcn.{s}dot{n}", "i32", W, f", i1 {c}") for s in "su" for n in (4, 8) for c in (0, 1))],
    "gfx1200": [call("amdgcn.fdot2.f16.f16", "half", ["<2 x half>", "<2 x half>", "half"]),
                call("amdgcn.fdot2.bf16.bf16", "bfloat", ["<2 x bfloat>", "<2 x bfloat>", "bfloat"]),
                call("amdgcn.fdot2.f32.bf16", "float", ["<2 x bfloat>", "<2 x bfloat>", "float"], ", i1 false"),
                *(call(f"amdgcn.dot4.f32.{a}.{b}", "float", ["i32", "i32", "float"])
                  for a in ("fp8", "bf8") for b in ("fp8", "bf8")),
                *((f"call i32 @llvm.amdgcn.sudot{n}(i1 {a}, i32 {{0}}, i1 {b}, i32 {{1}}, i32 {{2}}, i1 {c})", "i32", W)
                  for n in (4, 8) for a in (0, 1) for b in (0, 1) for c in (0, 1))],
}  # fmt: skip


@pytest.mark.parametrize("rows", [WORDS, FLOATS, CLASSES, SUMS], ids=["words", "floats", "classes", "sums"])
def test_instructions_agree(rows: list[Row]) -> None:
    text, args = kernel_of(rows)
    both(text, grid=1, block=LANES, args=args)


@pytest.mark.parametrize("processor", sorted(DOTS))
def test_dot_products_agree(processor: str) -> None:
    text, args = kernel_of(DOTS[processor])
    both(text, grid=1, block=LANES, args=args, target=processor)


def test_long_integers_become_bfloat_with_one_rounding() -> None:
    """Near ties of a bfloat, which a double does not hold."""
    near = [d for e in range(45, 64) for d in _near(e)]
    data = np.array([(s * d) & (2**64 - 1) for d in near for s in (1, -1)], np.uint64)
    lines = [
        "define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {",
        "  %t = call i32 @llvm.amdgcn.workitem.id.x()",
        "  %p = getelementptr i64, ptr addrspace(1) %in, i32 %t",
        "  %x = load i64, ptr addrspace(1) %p, align 8",
        "  %a = sitofp i64 %x to bfloat",
        "  %b = uitofp i64 %x to bfloat",
        "  %v = insertelement <2 x bfloat> poison, bfloat %a, i32 0",
        "  %w = insertelement <2 x bfloat> %v, bfloat %b, i32 1",
        "  %q = getelementptr i32, ptr addrspace(1) %out, i32 %t",
        "  store <2 x bfloat> %w, ptr addrspace(1) %q, align 4",
        "  ret void",
        "}",
    ]
    both("\n".join(lines), grid=1, block=len(data), args=[data, np.zeros(len(data), np.uint32)])


def _near(e: int) -> list[int]:
    tie = 1 << (e - 8)
    return [(1 << e) + at + by for at in (0, tie, 3 * tie) for by in (-2, -1, 0, 1, 2)]


def test_denormals_are_flushed_where_the_kernel_says_so() -> None:
    rows = [row for row in (*FLOATS, *SUMS) if "f32" in row[0] or "float" in row[0]]
    text, args = kernel_of(rows, '"denormal-fp-math-f32"="preserve-sign,preserve-sign"')
    both(text, grid=1, block=LANES, args=args)
