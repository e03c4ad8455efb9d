"""Moves of vectors and rare functions of words and floats give the same on both engines."""

from __future__ import annotations

import pytest

from tests.sim.engines import both
from tests.sim.jit.calls import LANES, Row, kernel_of

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
V2, V4, V8 = "<2 x i32>", "<4 x i32>", "<8 x i32>"


def call(name: str, result: str, types: list[str], last: str = "") -> Row:
    operands = ", ".join(f"{t} {{{i}}}" for i, t in enumerate(types))
    return f"call {result} @llvm.{name}({operands}{last})", result, types


MOVES = [
    call("vector.interleave2.v4i32", V4, [V2, V2]),
    call("vector.interleave4.v8i32", V8, [V2] * 4),
    call("vector.reverse.v4i32", V4, [V4]),
    *(call("vector.splice.v4i32", V4, [V4, V4], f", i32 {at}") for at in (0, 1, 3, -1, -4)),
    *(call("vector.extract.v2i32.v4i32", V2, [V4], f", i64 {at}") for at in (0, 2)),
    *(call("vector.insert.v4i32.v2i32", V4, [V4, V2], f", i64 {at}") for at in (0, 2)),
]
WORDS = [
    *(call(f"{s}cmp.{out}.{t}", out, [t, t]) for s in "su" for out in ("i8", "i32") for t in ("i8", "i32", "i64")),
    *(call("amdgcn.bitop3.i32", "i32", ["i32"] * 3, f", i32 {table}") for table in (0, 1, 0x96, 0xE8, 0xCA, 0xFF)),
    call("amdgcn.bitop3.i16", "i16", ["i16"] * 3, ", i32 178"),
    *(call(f"amdgcn.{name}", "i32", ["i32"] * 3) for name in ("sad.u8", "sad.hi.u8", "msad.u8", "sad.u16", "lerp")),
    call("amdgcn.sffbh.i32", "i32", ["i32"]),
    call("amdgcn.set.inactive.i32", "i32", ["i32", "i32"]),
    *(call(f"amdgcn.{name}.i32", "i32", ["i32"]) for name in ("softwqm", "strict.wqm", "wwm")),
]
PARTS = [
    *(call(f"amdgcn.frexp.mant.{s}", t, [t]) for t, s in (("half", "f16"), ("float", "f32"), ("double", "f64"))),
    call("amdgcn.frexp.exp.i16.f16", "i16", ["half"]),
    call("amdgcn.frexp.exp.i32.f32", "i32", ["float"]),
    call("amdgcn.frexp.exp.i32.f64", "i32", ["double"]),
]


@pytest.mark.parametrize("rows", [MOVES, WORDS, PARTS], ids=["moves", "words", "parts"])
def test_instructions_agree(rows: list[Row]) -> None:
    text, args = kernel_of(rows)
    both(text, grid=1, block=LANES, args=args)


@pytest.mark.parametrize("t", ["half", "float", "double", "<2 x float>"])
def test_mantissa_and_exponent_agree(t: str) -> None:
    suffix, e = {"half": ("f16", "i32"), "float": ("f32", "i32"), "double": ("f64", "i32"),
                 "<2 x float>": ("v2f32", "<2 x i32>")}[t]  # fmt: skip
    kind = "v2i32" if t.startswith("<") else "i32"
    text, args = kernel_of([(f"fadd {t} {{0}}, {{1}}", t, [t, t]), (f"bitcast {e} {{0}} to {e}", e, [e])])
    pair = f"%pair = call {{ {t}, {e} }} @llvm.frexp.{suffix}.{kind}({t} %xi0_{''.join(c for c in t if c.isalnum())})\n"
    text = text.replace(
        "  %r0 =", f"  {pair}  %m = extractvalue {{ {t}, {e} }} %pair, 0\n  %e = extractvalue {{ {t}, {e} }} %pair, 1\n"
        "  %r0 =", 1,
    ).replace(f"store {t} %r0", f"store {t} %m").replace(f"store {e} %r1", f"store {e} %e")  # fmt: skip
    both(text, grid=1, block=LANES, args=args)
    assert args[-1].any()


def test_parts_of_interleaved_vectors_agree() -> None:
    text, args = kernel_of([call("vector.reverse.v4i32", V4, [V4])])
    made = f"{{ {V2}, {V2} }}"
    text = text.replace(
        "call <4 x i32> @llvm.vector.reverse.v4i32(<4 x i32> %xi0_4xi32)",
        f"shufflevector {V2} %a, {V2} %b, <4 x i32> <i32 0, i32 1, i32 2, i32 3>",
    ).replace(
        "  %r0 =", f"  %d = call {made} @llvm.vector.deinterleave2.v4i32({V4} %xi0_4xi32)\n"
        f"  %a = extractvalue {made} %d, 0\n  %b = extractvalue {made} %d, 1\n  %r0 =", 1,
    )  # fmt: skip
    both(text, grid=1, block=LANES, args=args)
    assert (args[-1] == args[0][:, [0, 2, 1, 3]]).all()


def test_pointers_are_masked_and_their_memory_is_told() -> None:
    text, args = kernel_of([("add i64 {0}, 0", "i64", ["i64"])])
    text = text.replace(
        "  %r0 = add i64 %xi0_i64, 0",
        "  %p = inttoptr i64 %xi0_i64 to ptr\n  %q = call ptr @llvm.ptrmask.p0.i64(ptr %p, i64 -64)\n"
        "  %l = addrspacecast ptr addrspace(3) @lds to ptr\n  %in = call i1 @llvm.amdgcn.is.shared(ptr %l)\n"
        "  %no = call i1 @llvm.amdgcn.is.private(ptr %q)\n  %i = zext i1 %in to i64\n  %n = zext i1 %no to i64\n"
        "  %a = ptrtoint ptr %q to i64\n  %b = or i64 %a, %i\n  %s = shl i64 %n, 1\n  %r0 = or i64 %b, %s",
    )
    both("@lds = internal addrspace(3) global [4 x i32] poison, align 16\n" + text, grid=1, block=LANES, args=args)
