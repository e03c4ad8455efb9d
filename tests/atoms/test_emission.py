"""What atoms emit: memory form = load, SSA form, store; predicates keep the old destination."""

from __future__ import annotations

import pytest

from flyllvm.atoms.base import Stateful
from flyllvm.atoms.copy_op import CopyAtomOp, StatelessCopy
from flyllvm.atoms.mma_op import StatelessMma
from flyllvm.atoms.rocdl.cdna3_buffer_copy import BufferCopy
from flyllvm.atoms.rocdl.cdna3_buffer_copy_lds import BufferCopyLds
from flyllvm.atoms.rocdl.cdna3_mfma import find_mfma
from flyllvm.atoms.universal import UniversalCopy, UniversalFma
from flyllvm.errors import AtomError, StateError
from flyllvm.ir import lltype as ll, types as t
from flyllvm.ir.protocols import LLValue, MayStatic, StatefulOp
from flyllvm.layout import Layout
from tests.atoms.emitter import Recorder, operand, value

V4F16 = ll.vec(4, ll.F16)
PRED = value(ll.I1, "p")


def in_order(text: str, *parts: str) -> None:
    """Asserts that the parts stand in the text in this order."""
    at = 0
    for part in parts:
        found = text.find(part, at)
        assert found >= 0, f"{part!r} is not after position {at} of:\n{text}"
        at = found + len(part)


# --- mma ------------------------------------------------------------------------------------------


def test_the_memory_form_of_an_mma_loads_computes_and_stores() -> None:
    em = Recorder()
    a, b = (operand(t.F32, "register", name) for name in "ab")
    c, d = (operand(t.F32, "register", name, 4, align=16) for name in "cd")
    find_mfma(16, 16, 4, "f32", "f32").emit_atom_call(em, None, d, a, b, c)
    in_order(
        em.text(),
        "load float, ptr addrspace(5) %a",
        "load float, ptr addrspace(5) %b",
        "load <4 x float>, ptr addrspace(5) %c, align 16",
        "call <4 x float> @llvm.amdgcn.mfma.f32.16x16x4f32(float %v0, float %v1, <4 x float> %v2, i32 0, i32 0, i32 0)",
        "store <4 x float> %v3, ptr addrspace(5) %d, align 16",
    )


def test_bf16_is_cast_to_the_integers_of_the_older_intrinsics() -> None:
    em = Recorder()
    v = ll.vec(4, ll.BF16)
    got = find_mfma(32, 32, 8, "bf16", "bf16").emit_atom_call_ssa(
        em, None, value(v, "a"), value(v, "b"), value(ll.vec(16, ll.F32), "c")
    )
    in_order(em.text(), "bitcast <4 x bfloat> %a to <4 x i16>", "@llvm.amdgcn.mfma.f32.32x32x8bf16.1k(<4 x i16> %v0")
    assert got.type.text == "<16 x float>"


def test_the_wide_bf16_rows_take_bfloat_as_it_is() -> None:
    em = Recorder("gfx950")
    v = ll.vec(8, ll.BF16)
    op = find_mfma(16, 16, 32, "bf16", "bf16")
    op.emit_atom_call_ssa(em, None, value(v, "a"), value(v, "b"), value(ll.vec(4, ll.F32), "c"))
    assert "bitcast" not in em.text()


def test_fp8_bytes_are_cast_to_one_i64() -> None:
    em = Recorder()
    v = ll.vec(8, ll.I8)
    op = find_mfma(16, 16, 32, "f8E4M3FNUZ", "f8E5M2FNUZ")
    op.emit_atom_call_ssa(em, None, value(v, "a"), value(v, "b"), value(ll.vec(4, ll.F32), "c"))
    in_order(em.text(), "bitcast <8 x i8> %a to i64", "bitcast <8 x i8> %b to i64", "16x16x32.fp8.bf8(i64 %v0, i64 %v1")


def test_the_fma_leaves_the_rounding_between_to_the_target() -> None:
    em = Recorder()
    UniversalFma(t.F32).emit_atom_call_ssa(em, None, *(value(ll.F32, name) for name in "abc"))
    in_order(em.text(), "fmul contract float %a, %b", "fadd contract float %v0, %c")


class NoSsaMma(StatelessMma):
    """Defines the memory form only."""

    __slots__ = ()
    mnemonic = "test.no_ssa"
    params = ""


class NoSsaCopy(StatelessCopy):
    """Defines nothing but its name."""

    __slots__ = ()
    mnemonic = "test.no_ssa_copy"


def test_an_atom_without_ssa_form_says_so() -> None:
    zero = value(ll.F32, "x")
    with pytest.raises(AtomError, match="leave out the SSA stage"):
        NoSsaMma().emit_atom_call_ssa(Recorder(), None, zero, zero, zero)


def test_a_copy_without_loads_or_stores_says_so() -> None:
    op = NoSsaCopy()
    op.params, op.bit_size = "32", 32
    with pytest.raises(AtomError, match="pass a destination in memory"):
        op.emit_load(Recorder(), None, operand(t.F32, "global", "s"), ll.F32)
    with pytest.raises(AtomError, match="pass a source in memory"):
        op.emit_store(Recorder(), None, value(ll.F32, "x"), operand(t.F32, "global", "d"))


# --- universal copy -------------------------------------------------------------------------------


def test_a_copy_into_registers_loads_with_the_known_alignment() -> None:
    em = Recorder()
    src, dst = operand(t.F16, "global", "s", 4, align=4), operand(t.F16, "register", "d", 4)
    UniversalCopy(64).emit_atom_call(em, None, src, dst, None)
    in_order(
        em.text(),
        "load <4 x half>, ptr addrspace(1) %s, align 4",
        "store <4 x half> %v0, ptr addrspace(5) %d",
    )
    assert "br" not in em.text()


def test_a_copy_out_of_registers_stores() -> None:
    em = Recorder()
    UniversalCopy(64).emit_atom_call(
        em, None, operand(t.F16, "register", "s", 4), operand(t.F16, "shared", "d", 4, align=8), None
    )
    in_order(em.text(), "load <4 x half>, ptr addrspace(5) %s", "store <4 x half> %v0, ptr addrspace(3) %d, align 8")


def test_memory_to_memory_goes_through_registers() -> None:
    em = Recorder()
    UniversalCopy(64).emit_atom_call(em, None, operand(t.F16, "global", "s", 4), operand(t.F16, "shared", "d", 4), None)
    in_order(em.text(), "load <4 x half>, ptr addrspace(1) %s", "store <4 x half> %v0, ptr addrspace(3) %d")


def test_one_element_is_a_scalar() -> None:
    em = Recorder()
    UniversalCopy(32).emit_atom_call(em, None, operand(t.F32, "global", "s"), operand(t.F32, "register", "d"), None)
    assert "load float, ptr addrspace(1) %s" in em.text()


def test_a_predicated_load_leaves_the_destination_alone_in_false_lanes() -> None:
    em = Recorder()
    src, dst = operand(t.F16, "global", "s", 4), operand(t.F16, "register", "d", 4)
    UniversalCopy(64).emit_atom_call(em, None, src, dst, PRED)
    in_order(
        em.text(),
        "br i1 %p",
        "%v0 = load <4 x half>, ptr addrspace(1) %s",
        "store <4 x half> %v0, ptr addrspace(5) %d",
        "join.",
    )
    # The destination may not have been written yet: nothing reads it.
    assert "load <4 x half>, ptr addrspace(5) %d" not in em.text()


def test_a_predicated_store_reads_its_registers_behind_the_branch() -> None:
    em = Recorder()
    src, dst = operand(t.F16, "register", "s", 4), operand(t.F16, "global", "d", 4)
    UniversalCopy(64).emit_atom_call(em, None, src, dst, PRED)
    in_order(em.text(), "br i1 %p", "load <4 x half>, ptr addrspace(5) %s", "store <4 x half> %v0", "join.")


def test_a_predicated_load_in_ssa_form_gives_old_in_false_lanes() -> None:
    em = Recorder()
    got = UniversalCopy(64).emit_atom_call_ssa(
        em, None, operand(t.F16, "global", "s", 4), V4F16, PRED, value(V4F16, "old")
    )
    assert got is not None and got.type is V4F16
    assert "phi <4 x half> [ %v0, %then.b0 ], [ %old, %entry ]" in em.text()


def test_a_predicated_load_in_ssa_form_needs_an_old_value() -> None:
    with pytest.raises(AtomError, match="pass old"):
        UniversalCopy(64).emit_atom_call_ssa(Recorder(), None, operand(t.F16, "global", "s", 4), V4F16, PRED, None)


def test_a_predicated_store_does_nothing_in_false_lanes() -> None:
    em = Recorder()
    UniversalCopy(64).emit_atom_call_ssa(em, None, value(V4F16, "x"), operand(t.F16, "global", "d", 4), PRED, None)
    in_order(em.text(), "br i1 %p", "then.", "store <4 x half> %x, ptr addrspace(1) %d", "join.")
    assert "phi" not in em.text()


def test_a_predicated_copy_between_memories_reads_and_writes_behind_the_branch() -> None:
    em = Recorder()
    src, dst = operand(t.F16, "global", "s", 4), operand(t.F16, "shared", "d", 4)
    UniversalCopy(64).emit_atom_call_ssa(em, None, src, dst, PRED, None)
    in_order(em.text(), "br i1 %p", "load", "store", "br label")


def test_a_predicated_move_between_registers_is_a_select() -> None:
    em = Recorder()
    UniversalCopy(64).emit_atom_call_ssa(em, None, value(V4F16, "x"), V4F16, PRED, value(V4F16, "old"))
    assert em.lines == ["  %v0 = select i1 %p, <4 x half> %x, <4 x half> %old"]


@pytest.mark.parametrize("truth", [True, False])
def test_a_predicate_known_at_compile_time_needs_no_branch(truth: bool) -> None:
    em = Recorder()
    known = em.const(ll.I1, truth)
    old = value(V4F16, "old")
    got = UniversalCopy(64).emit_atom_call_ssa(em, None, operand(t.F16, "global", "s", 4), V4F16, known, old)
    assert "br" not in em.text()
    assert (got is old) is not truth
    UniversalCopy(64).emit_atom_call_ssa(em, None, old, operand(t.F16, "global", "d", 4), known, None)
    assert ("store" in em.text()) is truth


# --- buffer copies --------------------------------------------------------------------------------


def buffer(em: Recorder, soffset: LLValue | None = None) -> LLValue:
    return em.struct_of(soffset or em.const(ll.I32, 0))


def test_a_buffer_load_scales_soffset_from_elements_to_bytes() -> None:
    em = Recorder()
    src = operand(t.F16, "buffer_desc", "rsrc", 8, offset="voff")
    got = BufferCopy(128).emit_atom_call_ssa(em, buffer(em, value(ll.I32, "so")), src, ll.vec(8, ll.F16), None, None)
    in_order(
        em.text(),
        "mul i32 %so, 2",
        "call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %rsrc, i32 %v0, i32 %v1, i32 0)",
        "bitcast <4 x i32> %v2 to <8 x half>",
    )
    assert got is not None and got.type.text == "<8 x half>"


def test_a_constant_soffset_is_folded() -> None:
    em = Recorder()
    src = operand(t.F32, "buffer_desc", "rsrc")
    BufferCopy(32).emit_atom_call_ssa(em, buffer(em, em.const(ll.I32, 7)), src, ll.F32, None, None)
    assert "load.i32(ptr addrspace(8) %rsrc, i32 0, i32 28, i32 0)" in em.text()


def test_96_bits_go_through_three_dwords() -> None:
    em = Recorder()
    v = ll.vec(3, ll.F32)
    BufferCopy(96).emit_atom_call_ssa(em, buffer(em), value(v, "x"), operand(t.F32, "buffer_desc", "r", 3), None, None)
    in_order(em.text(), "bitcast <3 x float> %x to <3 x i32>", "raw.ptr.buffer.store.v3i32(<3 x i32> %v0")


def test_packed_half_bytes_are_scaled_by_bits() -> None:
    em = Recorder()
    src = operand(t.F4E2M1FN, "buffer_desc", "r", 8)
    BufferCopy(32).emit_atom_call_ssa(em, buffer(em, value(ll.I32, "so")), src, ll.vec(8, ll.int_(4)), None, None)
    in_order(em.text(), "mul i32 %so, 4", "lshr i32 %v0, 3", "bitcast i32 %v2 to <8 x i4>")
    with pytest.raises(AtomError, match="ends inside a byte"):
        BufferCopy(32).emit_atom_call_ssa(em, buffer(em, em.const(ll.I32, 3)), src, ll.vec(8, ll.int_(4)), None, None)


def test_the_predicated_buffer_forms_keep_the_old_destination() -> None:
    em = Recorder()
    src, dst = operand(t.F32, "buffer_desc", "r", 4), operand(t.F32, "register", "d", 4)
    BufferCopy(128).emit_atom_call(em, buffer(em), src, dst, PRED)
    in_order(em.text(), "br i1 %p", "buffer.load.v4i32", "store <4 x float>", "join.")
    em = Recorder()
    BufferCopy(128).emit_atom_call(em, buffer(em), dst, src, PRED)
    in_order(em.text(), "br i1 %p", "load <4 x float>, ptr addrspace(5) %d", "buffer.store.v4i32", "join.")


def test_a_call_without_state_is_an_error() -> None:
    with pytest.raises(AtomError, match="pass the atom's state struct"):
        BufferCopy(32).emit_atom_call_ssa(Recorder(), None, operand(t.F32, "buffer_desc", "r"), ll.F32, None, None)


def lds(em: Recorder, imm: LLValue | None = None) -> LLValue:
    return em.struct_of(em.const(ll.I32, 0), imm or em.const(ll.I32, 0))


def test_a_copy_to_lds_takes_one_base_for_the_wave() -> None:
    em = Recorder("gfx950")
    src = operand(t.F32, "buffer_desc", "r", 4, offset="voff")
    dst = operand(t.F32, "shared", "l", 4, offset="lane")
    BufferCopyLds(128, cache="nt").emit_atom_call(em, lds(em, em.const(ll.I32, 64)), src, dst, None)
    in_order(
        em.text(),
        "getelementptr i8, ptr addrspace(3) %l, i32 %lane",
        "call ptr addrspace(3) @llvm.amdgcn.readfirstlane.p3(ptr addrspace(3) %v0)",
        "load.lds(ptr addrspace(8) %r, ptr addrspace(3) %v1, i32 16, i32 %v2, i32 0, i32 64, i32 2)",
    )


def test_a_predicated_copy_to_lds_takes_the_base_before_the_branch() -> None:
    em = Recorder()
    src, dst = operand(t.F32, "buffer_desc", "r"), operand(t.F32, "shared", "l", offset="lane")
    BufferCopyLds(32).emit_atom_call(em, lds(em), src, dst, PRED)
    in_order(em.text(), "readfirstlane", "br i1 %p", "load.lds", "join.")
    em = Recorder()
    BufferCopyLds(32).emit_atom_call(em, lds(em), src, dst, em.const(ll.I1, False))
    assert em.lines == []


def test_a_uniform_lds_address_is_taken_as_it_is() -> None:
    em = Recorder()
    src, dst = operand(t.F32, "buffer_desc", "r"), operand(t.F32, "shared", "l")
    dst.base.uniform = True
    BufferCopyLds(32).emit_atom_call(em, lds(em), src, dst, None)
    assert "readfirstlane" not in em.text()


def test_imm_offset_must_be_a_constant_that_the_instruction_encodes() -> None:
    src, dst = operand(t.F32, "buffer_desc", "r"), operand(t.F32, "shared", "l")
    em = Recorder()
    with pytest.raises(StateError, match="imm_offset must be a compile-time constant"):
        BufferCopyLds(32).emit_atom_call(em, lds(em, value(ll.I32, "imm")), src, dst, None)
    with pytest.raises(StateError, match="from 0 to 4095, in bytes"):
        BufferCopyLds(32).emit_atom_call(em, lds(em, em.const(ll.I32, 4096)), src, dst, None)


def test_a_copy_to_lds_has_no_register_operands() -> None:
    with pytest.raises(AtomError, match="pass a buffer and an LDS operand"):
        BufferCopyLds(32).emit_atom_call_ssa(Recorder(), None, operand(t.F32, "buffer_desc", "r"), ll.F32, None, None)


# --- kinds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", [UniversalCopy(32), UniversalFma("f32"), find_mfma(16, 16, 16, "f16", "f16")])
def test_a_stateless_atom_is_static_and_rebuilds_itself(op: MayStatic) -> None:
    assert isinstance(op, MayStatic) and not isinstance(op, (StatefulOp, Stateful))
    assert op.is_static()
    assert op.rebuild() == op


@pytest.mark.parametrize(("op", "struct"), [(BufferCopy(32), "{ i32 }"), (BufferCopyLds(32), "{ i32, i32 }")])
def test_a_stateful_atom_is_never_static(op: CopyAtomOp, struct: str) -> None:
    assert isinstance(op, StatefulOp) and not isinstance(op, MayStatic)
    assert op.state.lltype.text == struct


def test_copies_partition_one_lane_at_a_time() -> None:
    op = UniversalCopy(64)
    assert op.thr_layout == Layout(1, 1)
    assert op.bit_layout_src == op.bit_layout_dst == op.bit_layout_ref == Layout((1, 64), (1, 1))
