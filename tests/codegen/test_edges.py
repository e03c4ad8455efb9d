"""Forms that are rare but legal, and refusals that a verified kernel does not reach."""

from __future__ import annotations

from pathlib import Path

import pytest

from flyllvm.atoms.rocdl.cdna3_buffer_copy import BufferCopy
from flyllvm.atoms.universal import UniversalCopy
from flyllvm.codegen import Options, compile_llvm, emit_module
from flyllvm.codegen.client import WorkerPool, save_ir
from flyllvm.errors import CodegenError
from flyllvm.ir import types as t
from flyllvm.ir.core import Block, Module, Op, Value
from flyllvm.ir.ops_arith import Constant
from flyllvm.layout import Dyn, Layout, Swizzle, Tile
from tests.codegen.kernels import GFX942, HERE, Making, build, filecheck, long_module

# --- offsets --------------------------------------------------------------------------------------


def offsets(k: Making, p: Value, *by: Value) -> Value:
    for v in by:
        p = k.op("fly.add_offset", [p, v], [p.type])
    return p


def test_run_time_offsets_add_up_in_64_bits_in_global_memory() -> None:
    def fn(k: Making) -> None:
        p, i, j = k.ptr("p"), k.arg(t.I32, "i"), k.arg(t.I64, "j")
        k.b.ptr_store(k.b.constant(1.0, t.F32), offsets(k, p, i, j))

    filecheck(
        build(fn).text(),
        """
        CHECK: %[[A:v[0-9]+]] = shl i64 %{{v[0-9]+}}, 2
        CHECK: %[[B:v[0-9]+]] = shl i64 %j, 2
        CHECK: add i64 %[[A]], %[[B]]
        """,
    )


def test_the_constant_of_a_sum_becomes_an_immediate_in_lds() -> None:
    def fn(k: Making) -> None:
        tile, i = k.b.shared(t.F16, 4096), k.arg(t.I32, "i")
        at = offsets(k, tile, k.b.binary("arith.addi", i, k.b.value(5)))
        k.b.ptr_store(k.b.constant(1.0, t.F16), at)

    filecheck(
        build(fn).text(),
        """
        CHECK: %[[B:v[0-9]+]] = shl i32 %i, 1
        CHECK: %[[P:v[0-9]+]] = getelementptr i8, ptr addrspace(3) @lds0, i32 %[[B]]
        CHECK: getelementptr i8, ptr addrspace(3) %[[P]], i32 10
        """,
    )


def test_a_choice_between_an_offset_and_a_constant_is_made_in_bytes() -> None:
    def fn(k: Making) -> None:
        p, i, c = k.ptr("p"), k.arg(t.I32, "i"), k.arg(t.I1, "c")
        buffer = k.b.make_buffer(p, k.b.constant(4096, t.I64))
        at = k.op("arith.select", [c, k.b.binary("arith.addi", i, k.arg(t.I32, "j")), k.b.value(1 << 30)], [t.I32])
        k.b.ptr_store(k.b.constant(1.0, t.F32), offsets(k, buffer, at))

    # 2**30 elements are 2**32 bytes, which is 0 in the 32 bits of an offset: the same as the product wraps to.
    filecheck(
        build(fn).text(),
        """
        CHECK: %[[S:v[0-9]+]] = add i32
        CHECK: %[[O:v[0-9]+]] = select i1 %{{v[0-9]+}}, i32 %[[S]], i32 0
        CHECK: raw.ptr.buffer.store.i32(i32 {{.*}}, i32 %[[O]], i32 0, i32 0)
        """,
    )


def test_an_int_tuple_of_one_leaf_is_an_offset() -> None:
    def fn(k: Making, leaf: object) -> None:
        p = k.ptr("p")
        operands = [] if isinstance(leaf, int) else [k.arg(t.I32, "i")]
        by = k.op("fly.make_int_tuple", operands, [t.IntTupleType((leaf,))])
        k.b.ptr_store(k.b.constant(1.0, t.F32), offsets(k, p, by))

    filecheck(build(lambda k: fn(k, 3)).text(), "CHECK: getelementptr i8, ptr addrspace(1) %p, i64 12")
    filecheck(build(lambda k: fn(k, Dyn(32, 4))).text(), "CHECK: sext i32 %i to i64\nCHECK: shl i64")


def test_an_int_tuple_of_several_leaves_is_no_offset() -> None:
    def fn(k: Making) -> None:
        by = k.op("fly.make_int_tuple", [], [t.IntTupleType((1, 2))])
        k.b.ptr_store(k.b.constant(1.0, t.F32), offsets(k, k.ptr("p"), by))

    with pytest.raises(CodegenError, match="use one number, or an int tuple of one leaf"):
        build(fn).text()


def test_a_swizzle_over_more_than_lds_can_be_aligned_to_works_on_the_address() -> None:
    def fn(k: Making, swizzle: Swizzle) -> None:
        p = k.b.apply_swizzle(k.b.dyn_shared(t.F32), swizzle)
        k.b.ptr_store(k.b.constant(1.0, t.F32), offsets(k, p, k.arg(t.I32, "i")))

    filecheck(build(lambda k: fn(k, Swizzle(3, 4, 5))).text(), "CHECK: [0 x i8], align 4096\nCHECK-NOT: ptrtoint")
    filecheck(build(lambda k: fn(k, Swizzle(3, 8, 8))).text(), "CHECK: [0 x i8], align 1024\nCHECK: ptrtoint")


# --- values that cross branches -------------------------------------------------------------------


def test_buffers_of_two_bases_meet_as_descriptor_and_offset() -> None:
    def fn(k: Making) -> None:
        n = k.b.constant(4096, t.I64)
        a, b = (k.b.make_buffer(k.ptr(x), n) for x in "ab")
        (r,) = k.b.if_(k.arg(t.I1, "c"), lambda: [k.b.add_offset(a, 4)], lambda: [b])
        k.b.ptr_store(k.b.constant(1.0, t.F32), r)

    text = build(fn).text()
    filecheck(
        text,
        """
        CHECK: phi ptr addrspace(8)
        CHECK-NEXT: %[[O:v[0-9]+]] = phi i32 [ 16, %then0 ], [ 0, %{{.*}} ]
        CHECK: i32 %[[O]], i32 0, i32 0)
        """,
    )


def test_int_tuples_and_stateless_atoms_cross_a_loop() -> None:
    def fn(k: Making) -> None:
        p, q, n = k.ptr("p", align=16), k.ptr("q", align=16), k.arg(t.I32, "n")
        one = k.op("fly.make_int_tuple", [n], [t.IntTupleType(Dyn(32, 1))])
        other = k.op("fly.make_int_tuple", [k.arg(t.I32, "m")], [t.IntTupleType(Dyn(32, 1))])
        atom = k.b.make_copy_atom(t.CopyAtomType(UniversalCopy(32), 32))
        again = k.b.make_copy_atom(t.CopyAtomType(UniversalCopy(64), 32))

        def body(i: Value, by: Value, *_: Value) -> list[Value]:
            k.b.copy_atom_call(atom, k.b.make_view(offsets(k, p, by), Layout(1, 1)), k.b.make_view(q, Layout(1, 1)))
            return [other, again]

        k.b.for_(0, n, 1, [one, again], body)

    filecheck(build(fn).text(), "CHECK: phi i32 [ %n, %entry ], [ %m, %loop0 ]")


def test_a_tiled_copy_has_the_state_of_its_atom() -> None:
    def fn(k: Making) -> None:
        p, s, q = k.ptr("p", align=16), k.arg(t.I32, "s"), k.ptr("q", align=16)
        buffer = k.b.make_buffer(p, k.b.constant(4096, t.I64))
        atom = k.b.set_value(k.b.make_copy_atom(t.CopyAtomType(BufferCopy(32), 32)), "soffset", s)
        tiled = k.b.make_tiled_copy(atom, Layout((1, 1), (1, 1)), Tile(1, 1))
        src = k.b.make_view(buffer, Layout(1, 1))
        k.b.ptr_store(k.op("fly.copy_atom_call_ssa", [tiled, src], [t.F32], segments=(1, 0, 0, 0)), q)

    filecheck(build(fn).text(), "CHECK: %[[S:v[0-9]+]] = {{shl|mul}} i32 %s\nCHECK: raw.ptr.buffer.load")


# --- values ---------------------------------------------------------------------------------------


def test_poison_and_assumptions_make_no_instruction() -> None:
    def fn(k: Making) -> None:
        p, i = k.ptr("p", t.I32), k.arg(t.I32, "i")
        k.b.ptr_store(k.op("ub.poison", [], [t.I32]), p)
        k.b.ptr_store(k.op("fly.assume", [i], [t.I32], divisibility=8), p)

    filecheck(build(fn).text(), "CHECK: store i32 poison\nCHECK-NEXT: store i32 %i")


def test_vectors_of_one_element_are_told_from_scalars() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p")
        one = k.op("vector.broadcast", [k.b.ptr_load(p)], [t.VectorType(1, t.F32)])
        part = k.op("vector.extract_strided_slice", [one], [t.VectorType(1, t.F32)], offset=0, size=1)
        k.op("vector.concat", [part, part], [t.VectorType(2, t.F32)])
        k.b.ptr_store(part, p)

    filecheck(build(fn).text(), "CHECK: store <1 x float>")


def test_a_scalar_approximation_of_bf16_goes_through_f32() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", t.BF16)
        k.b.ptr_store(k.op("math.rsqrt", [k.b.ptr_load(p)], [t.BF16]), p)

    filecheck(build(fn).text(), "CHECK: fpext bfloat\nCHECK: rsq.f32\nCHECK: fptrunc float")


def test_intrinsics_take_pointers_and_descriptors() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", t.I32)
        buffer = k.b.make_buffer(p, k.b.constant(64, t.I64))
        call = {"intrin": "llvm.amdgcn.raw.ptr.buffer.load.i32", "imms": ((1, 0, 32), (2, 0, 32), (3, 0, 32))}
        k.b.emit("llvm.call_intrinsic", [buffer], [t.I32], call)
        tile = k.b.add_offset(k.b.shared(t.I32, 64), 3)
        append = {"intrin": "llvm.amdgcn.ds.append.p3", "imms": ((1, 0, 1),)}
        k.b.emit("llvm.call_intrinsic", [tile], [t.I32], append)

    filecheck(
        build(fn).text(),
        """
        CHECK: raw.ptr.buffer.load.i32(ptr addrspace(8) %{{v[0-9]+}}, i32 0, i32 0, i32 0)
        CHECK: %[[P:v[0-9]+]] = getelementptr i8, ptr addrspace(3) @lds0, i32 12
        CHECK: ds.append.p3(ptr addrspace(3) %[[P]], i1 false)
        """,
    )

    def moved(k: Making) -> None:
        buffer = k.b.add_offset(k.b.make_buffer(k.ptr("p", t.I32), k.b.constant(64, t.I64)), 1)
        call = {"intrin": "llvm.amdgcn.raw.ptr.buffer.load.i32", "imms": ((1, 0, 32), (2, 0, 32), (3, 0, 32))}
        k.b.emit("llvm.call_intrinsic", [buffer], [t.I32], call)

    with pytest.raises(CodegenError, match="pass the descriptor itself and the byte offset"):
        build(moved).text()


def test_equal_pure_intrinsics_are_called_once() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p")
        x = k.b.ptr_load(p)
        for i in range(2):
            got = k.b.emit(
                "llvm.call_intrinsic", [x], [t.F32], {"intrin": "llvm.amdgcn.rcp.f32", "imms": (), "pure": True}
            )
            k.b.ptr_store(got.results[0], k.b.add_offset(p, i))

    assert build(fn).text().count("call float @llvm.amdgcn.rcp.f32") == 1


# --- refusals -------------------------------------------------------------------------------------


class Unknown(Op):
    """An operation that code generation does not know."""

    __slots__ = ()
    name = "test.unknown"


def test_an_operation_without_lowering_is_refused_by_name() -> None:
    def fn(k: Making) -> None:
        k.b.block.append(Unknown(loc=HERE))

    with pytest.raises(CodegenError, match=r"author.py:7: test.unknown has no lowering to LLVM\n.*remove"):
        build(fn).text()


def test_values_and_pointers_from_nowhere_are_refused() -> None:
    def lost(type_: t.Type) -> Value:
        return Constant([], [type_], {"value": 1}).results[0]

    with pytest.raises(CodegenError, match="define values before their use"):
        build(lambda k: k.b.ptr_store(lost(t.F32), k.ptr("p"))).text()
    with pytest.raises(CodegenError, match="define it before its use"):
        build(lambda k: k.b.ptr_load(lost(t.PtrType(t.F32, "global")))).text()
    atom = lost(t.CopyAtomType(BufferCopy(32), 32))
    with pytest.raises(CodegenError, match="make the atom first"):
        build(lambda k: k.b.set_value(atom, "soffset", k.b.value(1))).text()


def test_a_region_without_its_terminator_is_refused() -> None:
    def fn(k: Making) -> None:
        k.b.if_(k.arg(t.I1, "c"), lambda: k.b.ptr_store(k.b.constant(1.0, t.F32), k.ptr("p")))
        k.kernel.body.ops[-1].regions[0].ops.pop()

    with pytest.raises(CodegenError, match="yield the carried values at its end"):
        build(fn).text()

    def loop(k: Making) -> None:
        k.b.while_([], lambda: (k.b.constant(1, t.I1), []), list)
        before: Block = k.kernel.body.ops[-1].regions[0]
        before.ops = [o for o in before.ops if o.name != "scf.condition"]

    with pytest.raises(CodegenError, match="end it with the i1 and the values"):
        build(loop).text()


def test_an_address_inside_a_byte_is_no_pointer() -> None:
    def fn(k: Making) -> None:
        p = k.b.add_offset(k.ptr("p", t.F4E2M1FN), 1)
        k.b.ptr_store(k.op("fly.ptrtoint", [p], [t.I64]), k.ptr("q", t.I64))

    with pytest.raises(CodegenError, match="use an element that starts at a whole byte"):
        build(fn).text()


def test_a_module_that_cannot_be_saved_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocker = tmp_path / "file"
    blocker.write_text("")
    monkeypatch.setenv("FLYLLVM_DUMP_DIR", str(blocker))
    assert "set FLYLLVM_DUMP_DIR to a directory that can be written" in save_ir("text")


def test_a_broken_installation_names_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    from flyllvm.codegen import intrinsics

    monkeypatch.setattr(intrinsics, "_TABLE", [])
    monkeypatch.setattr(intrinsics, "__file__", "/nonexistent/intrinsics.py")
    with pytest.raises(CodegenError, match=r"intrinsics.txt cannot be read.*\n.*reinstall flyllvm"):
        intrinsics.lookup("llvm.amdgcn.s.barrier")


# --- platforms without posix_spawn ----------------------------------------------------------------


@pytest.mark.llvm
def test_the_worker_starts_without_posix_spawn_and_memfd(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for name in ("posix_spawn", "memfd_create", "pread"):
        monkeypatch.delattr(os, name)
    pool = WorkerPool()
    pool.start()
    try:
        text = emit_module(Module([build(lambda k: k.b.barrier()).kernel]), GFX942, Options())
        assert compile_llvm(text, GFX942, pool=pool).object
        with pytest.raises(CodegenError, match=r"SIGABRT.*\nLLVM ERROR: Inline asm"):
            compile_llvm('define void @k() {\n  call void asm sideeffect "x", ""()\n  ret void\n}', GFX942, pool=pool)
        with pytest.raises(CodegenError, match=r"did not finish within 0.2 s"):
            compile_llvm(long_module(20000), GFX942, pool=pool, timeout=0.2)
    finally:
        pool.close()
