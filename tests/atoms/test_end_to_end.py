"""Atoms through the whole pipeline: fly IR built here, LLVM IR out, and run in the simulator.

The two pipelines, with and without the SSA stage, must agree: one emits SSA forms, the other memory forms.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

from flyllvm.atoms.copy_op import StatelessCopy
from flyllvm.atoms.rocdl.cdna3_buffer_copy import BufferCopy
from flyllvm.atoms.rocdl.cdna3_buffer_copy_lds import BufferCopyLds
from flyllvm.atoms.rocdl.cdna3_mfma import find_mfma
from flyllvm.atoms.universal import UniversalCopy
from flyllvm.codegen.options import Options
from flyllvm.compiler.pipeline import lower
from flyllvm.errors import StateError, TargetError, VerifyError
from flyllvm.ir import types as t
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Kernel, Module, Value
from flyllvm.ir.protocols import Emitter, LLValue, MemOperand
from flyllvm.layout import Layout
from flyllvm.sim import simulate
from flyllvm.target import Target

TARGET = Target.parse("gfx942")
ONE = Layout(1, 1)
SSA = pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])


def kernel(body: Callable[..., None], **arguments: t.Type) -> Module:
    """A module of one kernel ``k`` of 64 threads; ``body`` gets the builder and the arguments."""
    made = Kernel("k")
    made.attrs["known_block_size"] = (64, 1, 1)
    values = [made.add_arg(type_, name) for name, type_ in arguments.items()]
    with Builder(made, TARGET) as builder:
        body(builder, *values)
    module = Module()
    module.kernels.append(made)
    return module


def llvm(module: Module, *, ssa: bool = True, materialise_state: bool = False) -> str:
    return lower(module, TARGET, Options(debug=False, materialise_state=materialise_state), ssa=ssa)


def copy_atom(b: Builder, op: BufferCopy | BufferCopyLds | UniversalCopy | StatelessCopy, bits: int = 32) -> Value:
    return b.make_copy_atom(t.CopyAtomType(op, bits))


def at(b: Builder, ptr: Value, index: object, layout: Layout = ONE) -> Value:
    return b.make_view(b.add_offset(ptr, index), layout)


def below(b: Builder, value: object, limit: Value) -> Value:
    return b.emit("arith.cmpi", [b.value(value), limit], [t.I1], {"predicate": "slt"}).results[0]


GLOBAL = t.PtrType(t.F32, "global")
INPUT = np.arange(256, dtype=np.float32) + 1


def predicated_copies(b: Builder, src: Value, dst: Value, n: Value, soffset: Value) -> None:
    """Registers first hold dst; lanes below n load src there through a buffer; all lanes store back doubled."""
    tid = b.thread_id()
    plain = copy_atom(b, UniversalCopy(32))
    buffered = b.set_value(copy_atom(b, BufferCopy(32)), "soffset", soffset)
    held = b.alloca(t.F32, ONE)
    b.copy_atom_call(plain, at(b, dst, tid), held)
    buffer = b.make_buffer(src, b.constant(1024, t.I64))
    b.copy_atom_call(buffered, at(b, buffer, tid), held, below(b, tid, n))
    b.copy_atom_call(plain, held, at(b, dst, tid))


@SSA
@pytest.mark.sim
def test_a_predicated_load_keeps_the_old_value_in_false_lanes(ssa: bool) -> None:
    text = llvm(kernel(predicated_copies, src=GLOBAL, dst=GLOBAL, n=t.I32, soffset=t.I32), ssa=ssa)
    dst = -np.arange(64, dtype=np.float32) - 7  # never zero
    want = np.where(np.arange(64) < 10, INPUT[5 : 5 + 64], dst)
    simulate(text, kernel="k", grid=(1, 1, 1), block=(64, 1, 1), args=[INPUT, dst, 10, 5], target="gfx942")
    np.testing.assert_array_equal(dst, want)


def test_the_predicated_ssa_form_is_a_phi_of_the_old_value_and_the_memory_form_a_branch() -> None:
    def body(ssa: bool) -> str:
        return llvm(kernel(predicated_copies, src=GLOBAL, dst=GLOBAL, n=t.I32, soffset=t.I32), ssa=ssa)

    assert re.search(r"phi float \[ %v\d+, %then\d+ \], \[ %v\d+, %entry \]", body(True))
    assert "alloca" not in body(True)
    memory = body(False)
    assert "phi" not in memory
    (behind,) = re.findall(r"then\d+:\n((?:  (?!br).*\n)*)", memory)
    assert "raw.ptr.buffer.load" in behind and "store float" in behind


def to_lds(b: Builder, src: Value, dst: Value, n: Value, soffset: Value) -> None:
    """LDS holds dst; lanes below n send src there by DMA, 64 bytes up; all lanes store LDS to dst."""
    tid = b.thread_id()
    plain, atom = copy_atom(b, UniversalCopy(32)), copy_atom(b, BufferCopyLds(32))
    atom = b.set_value(b.set_value(atom, "soffset", soffset), "imm_offset", b.constant(64, t.I32))
    lds = b.shared(t.F32, 512)
    b.copy_atom_call(plain, at(b, dst, tid), at(b, b.add_offset(lds, 16), tid))
    buffer = b.make_buffer(src, b.constant(1024, t.I64))
    b.copy_atom_call(atom, at(b, buffer, tid), at(b, lds, tid), below(b, tid, n))
    b.copy_atom_call(plain, at(b, b.add_offset(lds, 16), tid), at(b, dst, tid))


@SSA
@pytest.mark.sim
def test_a_copy_to_lds_adds_imm_offset_to_both_addresses_and_spares_false_lanes(ssa: bool) -> None:
    text = llvm(kernel(to_lds, src=GLOBAL, dst=GLOBAL, n=t.I32, soffset=t.I32), ssa=ssa)
    dst = -np.arange(64, dtype=np.float32) - 7
    lanes = np.arange(64)
    want = np.where(lanes < 10, INPUT[(lanes + 5 + 16)], dst)
    simulate(text, kernel="k", grid=(1, 1, 1), block=(64, 1, 1), args=[INPUT, dst, 10, 5], target="gfx942")
    np.testing.assert_array_equal(dst, want)


@SSA
@pytest.mark.sim
@pytest.mark.parametrize(("elem", "dtype"), [(t.I8, np.uint8), (t.F16, np.float16)], ids=["8", "16"])
def test_a_narrow_copy_to_lds_fills_a_dword_for_each_lane(elem: t.ScalarType, dtype: type, ssa: bool) -> None:
    per_dword = 32 // elem.bits

    def body(b: Builder, src: Value, dst: Value) -> None:
        tid = b.thread_id()
        lds = b.shared(elem, 256, 16)
        place = at(b, lds, b.index_mul(tid, per_dword))
        buffer = b.make_buffer(src, b.constant(64 * elem.bits // 8, t.I64))
        b.copy_atom_call(copy_atom(b, BufferCopyLds(elem.bits), elem.bits), at(b, buffer, tid), place)
        b.barrier()
        whole = at(b, lds, b.index_mul(tid, per_dword), Layout(per_dword, 1))
        held = b.alloca(elem, Layout(per_dword, 1))
        plain = copy_atom(b, UniversalCopy(32), elem.bits)
        b.copy_atom_call(plain, whole, held)
        b.copy_atom_call(plain, held, at(b, dst, b.index_mul(tid, per_dword), Layout(per_dword, 1)))

    pointer = t.PtrType(elem, "global", 16)
    text = llvm(kernel(body, src=pointer, dst=pointer), ssa=ssa)
    src, dst = np.arange(1, 65).astype(dtype), np.full(64 * per_dword, 9).astype(dtype)
    simulate(text, kernel="k", grid=(1, 1, 1), block=(64, 1, 1), args=[src, dst], target="gfx942")
    np.testing.assert_array_equal(dst.reshape(64, per_dword)[:, 0], src)
    assert not dst.reshape(64, per_dword)[:, 1:].any()


def test_states_of_one_and_two_fields_are_literal_structs_in_the_emitted_ir() -> None:
    arguments = {"src": GLOBAL, "dst": GLOBAL, "n": t.I32, "soffset": t.I32}
    two = llvm(kernel(to_lds, **arguments), materialise_state=True)
    assert re.search(r"insertvalue \{ i32, i32 \} .*i32 %soffset, 0", two)
    assert re.search(r"extractvalue \{ i32, i32 \} %v\d+, 0", two)
    assert re.search(r"load\.lds\(ptr addrspace\(8\) %v\d+, ptr addrspace\(3\) %v\d+, i32 4, .*, i32 64, i32 0\)", two)
    one = llvm(kernel(predicated_copies, **arguments), materialise_state=True)
    assert re.search(r"insertvalue \{ i32 \} .*i32 %soffset, 0", one)


def test_soffset_counts_elements_in_the_state_and_bytes_in_the_instruction() -> None:
    text = llvm(kernel(predicated_copies, src=GLOBAL, dst=GLOBAL, n=t.I32, soffset=t.I32))
    scaled = re.search(r"(%v\d+) = (mul i32 %soffset, 4|shl i32 %soffset, 2)", text)
    assert scaled is not None
    assert re.search(
        rf"raw\.ptr\.buffer\.load\.i32\(ptr addrspace\(8\) %v\d+, i32 %v\d+, i32 {scaled[1]}, i32 0\)", text
    )


def test_a_run_time_imm_offset_is_refused_with_the_reason() -> None:
    def body(b: Builder, src: Value, n: Value) -> None:
        atom = b.set_value(copy_atom(b, BufferCopyLds(32)), "imm_offset", n)
        buffer = b.make_buffer(src, b.constant(1024, t.I64))
        b.copy_atom_call(atom, at(b, buffer, b.thread_id()), at(b, b.shared(t.F32, 256), b.thread_id()))

    with pytest.raises(StateError, match="imm_offset must be a compile-time constant"):
        llvm(kernel(body, src=GLOBAL, n=t.I32))


@pytest.mark.parametrize(("field", "type_"), [("voffset", t.I32), ("soffset", t.I64)])
def test_an_unknown_field_and_a_wrong_type_are_refused_with_the_fields(field: str, type_: t.Type) -> None:
    with pytest.raises(StateError, match=r"(?s)(voffset|soffset).*soffset: i32 \(in elements, default 0\)"):
        llvm(kernel(lambda b, v: b.set_value(copy_atom(b, BufferCopy(32)), field, v), v=type_))


def test_an_atom_of_another_target_is_refused_before_emission() -> None:
    with pytest.raises(TargetError, match=r"(?s)buffer_copy_lds<128> is not on gfx942.*buffer_copy_lds<32>"):
        llvm(kernel(lambda b: copy_atom(b, BufferCopyLds(128))))


class Negate(StatelessCopy):
    """An atom that defines its memory form and nothing else: dst = -src."""

    __slots__ = ()
    mnemonic = "test.negate"
    params = "32"
    bit_size = 32

    def emit_atom_call(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand, pred: LLValue | None
    ) -> None:
        value = em.load(src, src.type.elem.storage)
        em.store(em.binary("fsub", em.const(value.type, -0.0), value), dst)


def negated(b: Builder, src: Value, dst: Value) -> None:
    tid, atom, held = b.thread_id(), copy_atom(b, Negate()), b.alloca(t.F32, ONE)
    b.copy_atom_call(atom, at(b, src, tid), held)
    b.copy_atom_call(copy_atom(b, UniversalCopy(32)), held, at(b, dst, tid))


@pytest.mark.sim
def test_an_atom_with_a_memory_form_only_runs_without_the_ssa_stage() -> None:
    text = llvm(kernel(negated, src=GLOBAL, dst=GLOBAL), ssa=False)
    dst = np.zeros(64, np.float32)
    simulate(text, kernel="k", grid=(1, 1, 1), block=(64, 1, 1), args=[INPUT, dst], target="gfx942")
    np.testing.assert_array_equal(dst, -INPUT[:64])


def test_a_block_that_is_no_whole_number_of_waves_is_refused_for_a_matrix_atom() -> None:
    module = kernel(lambda b: b.make_mma_atom(t.MmaAtomType(find_mfma(16, 16, 16, "f16", "f16"))))
    module.kernels[0].attrs["known_block_size"] = (63, 1, 1)
    with pytest.raises(VerifyError, match="use a block size that is a multiple of 64"):
        llvm(module)
