"""Atoms from Python to LLVM IR: their state as structs, predicates in both forms, a memory form alone.

``CHECK`` lines over the emitted text; the simulator says that the text does what it should.  The same at the level of
the IR builder is in tests/atoms/test_end_to_end.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.atoms.copy_op import StatelessCopy
from flyllvm.atoms.rocdl.cdna3_buffer_copy_lds import BufferCopyLds
from flyllvm.errors import StateError
from flyllvm.ir.builder import Builder
from flyllvm.ir.core import Value
from flyllvm.ir.protocols import Emitter, LLValue, MemOperand
from tests.codegen.kernels import filecheck

pytestmark = [pytest.mark.llvm, pytest.mark.sim]

SSA = pytest.mark.parametrize("ssa", [True, False], ids=["ssa", "memory"])
ONE = fx.make_layout(1, 1)
WAVE = {"known_block_size": (64, 1, 1)}


def compiled(fn: Any, *specs: str, **options: Any) -> Any:
    """Linked for gfx942: what is checked as text has passed LLVM too."""
    return flyc.compile(flyc.kernel(fn, **WAVE), *specs, arch="gfx942", debug=False, **options)


def plain() -> Any:
    return fx.make_copy_atom(fx.UniversalCopy(32), fx.Float32)


def buffered() -> Any:
    return fx.make_copy_atom(fx.rocdl.BufferCopy(32), fx.Float32)


# --- state ----------------------------------------------------------------------------------------


def moved(A: fx.Tensor, C: fx.Tensor, n: fx.Int32) -> None:
    """Lanes below 10 load A[n + lane]; the others keep -1 - lane."""
    tid = fx.thread_idx.x
    held = fx.make_rmem_tensor(1, fx.Float32)
    held[0] = fx.Float32(-1 - tid)
    fx.copy(buffered(), fx.rocdl.make_buffer_tensor(A).at(tid, ONE), held, pred=tid < 10, soffset=n)
    fx.copy(plain(), held, C.at(tid, ONE))


MOVED = ("f32[128]", "f32[64]", "i32")


def check_moved(art: Any) -> None:
    c, lanes = np.zeros(64, np.float32), np.arange(64)
    art.simulate(np.arange(128, dtype=np.float32), c, 5, grid=1)
    np.testing.assert_array_equal(c, np.where(lanes < 10, lanes + 5, -1 - lanes))


@SSA
def test_a_buffer_copy_with_soffset_scales_the_state_from_elements_to_bytes(ssa: bool) -> None:
    art = compiled(moved, *MOVED, ssa=ssa)
    filecheck(
        art.llvm_ir,
        """
        CHECK: [[RSRC:%v[0-9]+]] = call {{.*}} @llvm.amdgcn.make.buffer.rsrc.p8.p1(ptr addrspace(1) %A, i16 0, i64 512,
        CHECK: [[BYTES:%v[0-9]+]] = mul i32 %n, 4
        CHECK: @llvm.amdgcn.raw.ptr.buffer.load.i32(ptr addrspace(8) [[RSRC]], i32 %v{{[0-9]+}}, i32 [[BYTES]], i32 0)
        """,
    )
    check_moved(art)


@SSA
def test_the_state_of_a_buffer_copy_is_a_literal_struct_of_one_field(ssa: bool) -> None:
    art = compiled(moved, *MOVED, ssa=ssa, materialise_state=True)
    filecheck(
        art.llvm_ir,
        """
        CHECK: [[STATE:%v[0-9]+]] = insertvalue { i32 } { i32 poison }, i32 %n, 0
        CHECK: [[FIELD:%v[0-9]+]] = extractvalue { i32 } [[STATE]], 0
        CHECK: mul i32 [[FIELD]], 4
        """,
    )
    check_moved(art)


def carried(A: fx.Tensor, C: fx.Tensor, n: fx.Int32) -> None:
    """Sums A[lane + n * step] over 3 steps; the atom with its offset is what the loop carries."""
    tid, b = fx.thread_idx.x, Builder.current()
    acc, held = fx.make_rmem_tensor(1, fx.Float32), fx.make_rmem_tensor(1, fx.Float32)
    acc[0] = 0.0
    source = fx.rocdl.make_buffer_tensor(A).at(tid, ONE)

    def step(index: Value, atom: Value) -> list[Value]:
        copy = fx.CopyAtom(atom)
        fx.copy(copy, source, held)
        acc[0] = acc[0] + held[0]
        return [copy.set_value("soffset", (fx.Int32.wrap(index) + 1) * n).ir_value()]

    b.for_(0, 3, 1, [buffered().set_value("soffset", 0).ir_value()], step)
    C[tid] = acc[0]


@SSA
def test_a_loop_carries_the_state_of_an_atom(ssa: bool) -> None:
    art = compiled(carried, *MOVED, ssa=ssa)
    filecheck(
        art.llvm_ir,
        """
        CHECK: [[STATE:%v[0-9]+]] = phi { i32 } [ {{.*}}, %entry ], [ [[NEXT:%v[0-9]+]], %{{.*}} ]
        CHECK: extractvalue { i32 } [[STATE]], 0
        CHECK: [[NEXT]] = insertvalue { i32 } {{.*}}, 0
        """,
    )
    c = np.zeros(64, np.float32)
    art.simulate(np.arange(128, dtype=np.float32), c, 20, grid=1)
    np.testing.assert_array_equal(c, 3 * np.arange(64) + 60)


def to_lds(A: fx.Tensor, C: fx.Tensor, n: fx.Int32) -> None:
    """LDS holds -1 - lane; lanes below 10 send A[n + 4 + lane] to the place 4 elements up."""
    tid = fx.thread_idx.x
    atom = fx.make_copy_atom(BufferCopyLds(32), fx.Float32)
    lds = fx.shared_memory(fx.Float32, 128).view(fx.make_layout(128, 1))
    lds[tid + 4] = fx.Float32(-1 - tid)
    source = fx.rocdl.make_buffer_tensor(A).at(tid, ONE)
    fx.copy(atom, source, lds.at(tid, ONE), pred=tid < 10, soffset=n, imm_offset=16)
    C[tid] = lds[tid + 4]


@SSA
def test_the_state_of_a_copy_to_lds_is_a_literal_struct_of_two_fields(ssa: bool) -> None:
    art = compiled(to_lds, *MOVED, ssa=ssa, materialise_state=True)
    filecheck(
        art.llvm_ir,
        """
        CHECK: insertvalue { i32, i32 } { i32 poison, i32 0 }, i32 %n, 0
        CHECK: [[STATE:%v[0-9]+]] = insertvalue { i32, i32 } { i32 poison, i32 16 }, i32 %v{{[0-9]+}}, 0
        CHECK-NEXT: [[OFFSET:%v[0-9]+]] = extractvalue { i32, i32 } [[STATE]], 0
        CHECK: [[BYTES:%v[0-9]+]] = mul i32 [[OFFSET]], 4
        CHECK: raw.ptr.buffer.load.lds({{.*}}, ptr addrspace(3) {{.*}}, i32 4, i32 {{.*}}, i32 [[BYTES]], i32 16, i32 0)
        """,
    )
    c, lanes = np.zeros(64, np.float32), np.arange(64)
    art.simulate(np.arange(128, dtype=np.float32), c, 5, grid=1)
    np.testing.assert_array_equal(c, np.where(lanes < 10, lanes + 9, -1 - lanes))


def test_an_unknown_field_names_the_fields_and_the_line() -> None:
    def kernel(A: fx.Tensor) -> None:
        fx.copy(buffered(), A.at(0, ONE), fx.make_rmem_tensor(1, fx.Float32), voffset=3)

    with pytest.raises(StateError, match=r"(?s)test_atom_text\.py:\d+.*voffset.*soffset: i32"):
        compiled(kernel, "f32[4]")


# --- predicates -----------------------------------------------------------------------------------


def test_a_predicated_load_in_ssa_form_is_a_phi_of_the_old_registers() -> None:
    filecheck(
        compiled(moved, *MOVED).llvm_ir,
        """
        CHECK: [[OLD:%v[0-9]+]] = sitofp i32 %v{{[0-9]+}} to float
        CHECK: [[INSIDE:%v[0-9]+]] = icmp slt i32 %v{{[0-9]+}}, 10
        CHECK: br i1 [[INSIDE]], label %[[THEN:.*]], label %[[JOIN:.*]]
        CHECK: [[THEN]]:
        CHECK: [[LOADED:%v[0-9]+]] = bitcast i32 %v{{[0-9]+}} to float
        CHECK: [[JOIN]]:
        CHECK-NEXT: phi float [ [[LOADED]], %[[THEN]] ], [ [[OLD]], %entry ]
        CHECK-NOT: alloca
        """,
    )


def test_a_predicated_load_in_memory_form_touches_the_registers_behind_the_branch_only() -> None:
    filecheck(
        compiled(moved, *MOVED, ssa=False).llvm_ir,
        """
        CHECK: [[SLOT:%slot[0-9]+]] = alloca
        CHECK: store float %v{{[0-9]+}}, ptr addrspace(5) [[SLOT]]
        CHECK: br i1 %v{{[0-9]+}}, label %[[THEN:.*]], label %[[JOIN:.*]]
        CHECK: [[THEN]]:
        CHECK-NOT: {{^}}join
        CHECK: call i32 @llvm.amdgcn.raw.ptr.buffer.load
        CHECK: store float %v{{[0-9]+}}, ptr addrspace(5) [[SLOT]]
        CHECK: [[JOIN]]:
        CHECK-NOT: phi
        """,
    )


@SSA
def test_a_predicated_store_leaves_memory_as_it_was(ssa: bool) -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        tid = fx.thread_idx.x
        held = fx.make_rmem_tensor(1, fx.Float32)
        fx.copy(plain(), A.at(tid, ONE), held)
        fx.copy(buffered(), held, fx.rocdl.make_buffer_tensor(C).at(tid, ONE), pred=tid % 3 == 1)

    art = compiled(kernel, "f32[64]", "f32[64]", ssa=ssa)
    a, c = np.arange(64, dtype=np.float32), np.full(64, -9, np.float32)
    art.simulate(a, c, grid=1)
    np.testing.assert_array_equal(c, np.where(np.arange(64) % 3 == 1, a, -9))


@SSA
def test_a_predicated_copy_of_registers_to_registers_keeps_the_old_ones(ssa: bool) -> None:
    def kernel(C: fx.Tensor) -> None:
        tid = fx.thread_idx.x
        new, old = fx.make_rmem_tensor(4, fx.Float32), fx.make_rmem_tensor(4, fx.Float32)
        new.fill(2.0)
        old.fill(5.0)
        wide = fx.make_copy_atom(fx.UniversalCopy(128), fx.Float32)
        fx.copy(wide, new, old, pred=tid < 7)
        fx.copy(wide, old, C.at(tid * 4, fx.make_layout(4, 1)))

    c = np.zeros(256, np.float32)
    compiled(kernel, "f32[256]", ssa=ssa).simulate(c, grid=1)
    assert (c[:28] == 2).all() and (c[28:] == 5).all()


# --- a memory form alone --------------------------------------------------------------------------


class Negate(StatelessCopy):
    """An atom that says how it works on memory and nothing else: dst = -src."""

    __slots__ = ()
    mnemonic = "test.negate_text"
    params = "32"
    bit_size = 32

    def emit_atom_call(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand, pred: LLValue | None
    ) -> None:
        value = em.load(src, src.type.elem.storage)
        em.store(em.binary("fsub", em.const(value.type, -0.0), value), dst)


def test_an_atom_with_a_memory_form_alone_compiles_end_to_end_without_the_ssa_stage() -> None:
    def kernel(A: fx.Tensor, C: fx.Tensor) -> None:
        tid = fx.thread_idx.x
        held = fx.make_rmem_tensor(1, fx.Float32)
        fx.copy(fx.make_copy_atom(Negate(), fx.Float32), A.at(tid, ONE), held)
        fx.copy(plain(), held, C.at(tid, ONE))

    art = compiled(kernel, "f32[64]", "f32[64]", ssa=False)
    filecheck(
        art.llvm_ir,
        """
        CHECK: [[SLOT:%slot[0-9]+]] = alloca [1 x float]
        CHECK: [[SOURCE:%v[0-9]+]] = load float, ptr addrspace(1)
        CHECK: [[RESULT:%v[0-9]+]] = fsub float 0x8000000000000000, [[SOURCE]]
        CHECK: store float [[RESULT]], ptr addrspace(5) [[SLOT]]
        """,
    )
    assert art.code_object.kernels["kernel"].kernarg_bytes > 0
    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    art.simulate(a, c, grid=1)
    np.testing.assert_array_equal(c, -a)
