"""Addresses: alignment, swizzles, immediate offsets.  The arithmetic is run, not only looked at."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from flyllvm.codegen import Options
from flyllvm.codegen.address import access_type, mangle
from flyllvm.codegen.amdgpu import Amdgpu
from flyllvm.codegen.function import FunctionBuilder
from flyllvm.codegen.module import ModuleBuilder
from flyllvm.errors import CodegenError
from flyllvm.ir import lltype as ll, types as t
from flyllvm.ir.location import UNKNOWN
from flyllvm.ir.protocols import LLValue, MemOperand
from flyllvm.layout import Swizzle
from tests.codegen.kernels import GFX942, build, filecheck

M32 = (1 << 32) - 1


def new() -> FunctionBuilder:
    return FunctionBuilder(ModuleBuilder(Amdgpu(), GFX942, Options()), GFX942)


def written(em: FunctionBuilder) -> list[str]:
    return [line for segment in em.segments for line in segment]


def run(em: FunctionBuilder, known: dict[str, int]) -> dict[str, int]:
    """Runs the integer and pointer instructions that were written; pointers are numbers."""
    env = dict(known)

    def val(text: str) -> int:
        return env[text] if text[0] in "%@" else int(text)

    ops = {"add": int.__add__, "xor": int.__xor__, "and": int.__and__, "lshr": int.__rshift__, "shl": int.__lshift__}
    for line in written(em):
        name, _, rhs = line.strip().partition(" = ")
        if gep := re.fullmatch(r"getelementptr i8, ptr(?: addrspace\(\d\))? (\S+), i\d+ (\S+)", rhs):
            env[name] = val(gep[1]) + val(gep[2])
        elif cast := re.fullmatch(r"(?:ptrtoint|inttoptr|sext|zext) .*?(\S+) to .*", rhs):
            env[name] = val(cast[1])
        else:
            op, _, a, b = rhs.replace(",", "").split()
            env[name] = ops[op](val(a) & M32, val(b) & M32) & M32
    return env


def shared(swizzle: Swizzle | None, align: int = 16) -> t.PtrType:
    return t.PtrType(t.F16, "shared", align, swizzle)


SWIZZLES = st.builds(Swizzle, st.integers(1, 3), st.integers(0, 5), st.integers(1, 4)).filter(
    lambda s: s.shift >= s.mask
)


@given(SWIZZLES, st.integers(0, 4095), st.integers(-512, 8191), st.integers(0, 9), st.integers(0, 8))
def test_a_swizzled_lds_address_is_the_swizzle_of_the_byte_address(
    swizzle: Swizzle, offset: int, const: int, align_log2: int, place: int
) -> None:
    em = new()
    base = LLValue(ll.ptr(3), em.module.add_lds("tile", 1 << 16, 16, UNKNOWN), None, True, 0)
    align = 1 << align_log2
    offset -= offset % align
    if offset + const < 0:
        const = -const
    mem = MemOperand(shared(swizzle), base, LLValue(ll.I32, "%x", None, False, 0), const, 1, align)
    pointer = em.address(mem, 1)
    # The allocation is aligned so that its own address has no part in the swizzle.
    start = place * em.module.lds[base.text].align
    assert start % (1 << (swizzle.mask + swizzle.base + swizzle.shift)) == 0
    got = run(em, {base.text: start, "%x": offset})[pointer.text]
    assert got == swizzle(start + offset + const)


@given(SWIZZLES, st.integers(0, 1 << 20), st.integers(0, 4095), st.integers(0, 4095))
def test_a_swizzled_global_address_is_the_swizzle_of_the_whole_address(
    swizzle: Swizzle, start: int, offset: int, const: int
) -> None:
    em = new()
    base = LLValue(ll.ptr(1), "%p", None, True, 0)
    mem = MemOperand(t.PtrType(t.F16, "global", 2, swizzle), base, LLValue(ll.I64, "%x"), const)
    pointer = em.address(mem, 1)
    assert run(em, {"%p": start, "%x": offset})[pointer.text] == swizzle(start + offset + const)


@given(SWIZZLES, st.integers(0, 4095), st.integers(0, 8191))
def test_a_buffer_offset_is_swizzled_in_bytes(swizzle: Swizzle, offset: int, const: int) -> None:
    em = new()
    mem = MemOperand(
        t.PtrType(t.F16, "buffer_desc", 2, swizzle), LLValue(ll.ptr(8), "%r"), LLValue(ll.I32, "%x"), const
    )
    made = em.buffer_offset(mem, 1)
    assert run(em, {"%x": offset})[made.text] == swizzle(offset + const)


def test_unrolled_swizzled_accesses_share_one_register_and_use_immediates() -> None:
    em = new()
    base = LLValue(ll.ptr(3), em.module.add_lds("tile", 8192, 16, UNKNOWN), None, True, 0)
    row = LLValue(ll.I32, "%row", None, False, 0)
    em.push_loop()
    em.start("loop0")
    for i in range(4):
        em.load(MemOperand(shared(Swizzle(2, 4, 3)), base, row, 2048 * i, 8, 16), ll.vec(8, ll.F16))
    filecheck(
        "\n".join(written(em)),
        """
        CHECK: and i32 %row, 384
        CHECK: xor i32 %row
        CHECK: %[[P:v[0-9]+]] = getelementptr i8, ptr addrspace(3) @tile
        CHECK: loop0:
        CHECK-NEXT: load <8 x half>, ptr addrspace(3) %[[P]], align 16
        CHECK-NEXT: %[[Q:v[0-9]+]] = getelementptr i8, ptr addrspace(3) %[[P]], i32 2048
        CHECK-NEXT: load <8 x half>, ptr addrspace(3) %[[Q]], align 16
        CHECK-NEXT: getelementptr i8, ptr addrspace(3) %[[P]], i32 4096
        CHECK-NOT: xor
        """,
    )


def test_a_constant_inside_the_swizzle_costs_one_xor_where_the_alignment_is_known() -> None:
    em = new()
    base = LLValue(ll.ptr(3), em.module.add_lds("tile", 8192, 1024, UNKNOWN), None, True, 0)
    row = LLValue(ll.I32, "%row", None, False, 0)
    for const in (0, 32):
        em.address(MemOperand(shared(Swizzle(2, 4, 3)), base, row, const, 8, 64), 16)
    assert sum("and i32" in line for line in written(em)) == 1
    filecheck("\n".join(written(em)), "CHECK: xor i32 %v{{[0-9]+}}, 32")


@pytest.mark.parametrize(
    ("align", "const", "swizzle", "want"),
    [
        (16, 0, None, 16),
        (16, 0, Swizzle(3, 3, 3), 8),
        (12, 0, None, 4),
        (16, 8, None, 8),
        (16, 6, None, 2),
        (16, 5, None, 1),
        (2, 0, Swizzle(3, 0, 3), 1),
        (16, 0, Swizzle(0, 2, 1), 16),
    ],
)
def test_alignment_is_what_pointer_offset_and_swizzle_leave(
    align: int, const: int, swizzle: Swizzle | None, want: int
) -> None:
    mem = MemOperand(shared(swizzle, align), LLValue(ll.ptr(3), "%p"), LLValue(ll.I32, "%x"), const)
    assert new().alignment(mem) == want


@pytest.mark.parametrize(("swizzle", "align", "want"), [(None, 16, 16), (Swizzle(3, 3, 3), 16, 8), (None, 12, 4)])
def test_loads_carry_the_derived_alignment(swizzle: Swizzle | None, align: int, want: int) -> None:
    def fn(k):  # type: ignore[no-untyped-def]
        p = k.ptr("p", t.F16, align)
        q = k.ptr("q", t.F16)
        src = p if swizzle is None else k.b.apply_swizzle(p, swizzle)
        k.b.ptr_store(k.b.ptr_load(src, 4), q)

    filecheck(build(fn).text(), f"CHECK: load <4 x half>, ptr addrspace(1) %{{{{.*}}}}, align {want}{{{{$}}}}")


def test_an_access_wider_than_its_swizzle_keeps_together_is_refused() -> None:
    mem = MemOperand(shared(Swizzle(3, 3, 3)), LLValue(ll.ptr(3), "%p"))
    with pytest.raises(CodegenError, match="keeps runs of 8 bytes together: use narrower accesses"):
        new().load(mem, ll.vec(8, ll.F16))


def test_a_64_bit_offset_into_a_buffer_is_refused() -> None:
    mem = MemOperand(t.PtrType(t.F16, "buffer_desc"), LLValue(ll.ptr(8), "%r"), LLValue(ll.I64, "%x"))
    with pytest.raises(CodegenError, match="use an i32 offset, or global memory"):
        new().buffer_offset(mem, 2)


def test_a_buffer_has_no_address() -> None:
    mem = MemOperand(t.PtrType(t.F16, "buffer_desc"), LLValue(ll.ptr(8), "%r"))
    with pytest.raises(CodegenError, match="use a buffer copy atom"):
        new().address(mem, 2)


def test_accesses_that_are_no_whole_bytes_or_too_wide_are_refused() -> None:
    em = new()
    with pytest.raises(CodegenError, match="access whole bytes"):
        em.load(MemOperand(t.PtrType(t.F4E2M1FN, "global"), LLValue(ll.ptr(1), "%p")), ll.int_(4))
    with pytest.raises(CodegenError, match="8, 16, 32, 64, 96, 128 bits at a time"):
        em.load(MemOperand(t.PtrType(t.F32, "buffer_desc"), LLValue(ll.ptr(8), "%r")), ll.vec(8, ll.F32))


@pytest.mark.parametrize(
    ("type", "want"),
    [
        (ll.vec(8, ll.F16), "<8 x half>"), (ll.I8, "i8"), (ll.vec(16, ll.I8), "<4 x i32>"), (ll.vec(2, ll.I8), "i16"),
        (ll.vec(64, ll.int_(6)), "<12 x i32>"), (ll.vec(2, ll.int_(4)), "i8"), (ll.vec(3, ll.I8), "<3 x i8>"),
    ],
)  # fmt: skip
def test_bytes_and_packed_elements_travel_as_wider_integers(type: ll.LLType, want: str) -> None:
    assert access_type(type).text == want


def test_names_of_overloads_are_mangled_as_llvm_does() -> None:
    types = (ll.vec(4, ll.F16), ll.BF16, ll.F64, ll.I1, ll.ptr(8), ll.vec(2, ll.ptr(1)))
    assert [mangle(x) for x in types] == ["v4f16", "bf16", "f64", "i1", "p8", "v2p1"]
