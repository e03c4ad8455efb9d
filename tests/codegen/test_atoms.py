"""Atoms in the emitted text: state, predicates, memory form and SSA form.  The atoms are doubles of this file."""

from __future__ import annotations

from typing import Any

import pytest

from flyllvm.atoms.copy_op import CopyAtomOp, StatefulCopy, StatelessCopy
from flyllvm.atoms.mma_op import StatelessMma
from flyllvm.atoms.rocdl.cdna3_buffer_copy import BufferCopy
from flyllvm.atoms.universal import UniversalCopy
from flyllvm.codegen import compile_llvm
from flyllvm.errors import CodegenError, StateError, TargetError
from flyllvm.ir import lltype as ll, types as t
from flyllvm.ir.core import Value
from flyllvm.layout import Layout
from flyllvm.state import AtomStateField, StateStruct
from tests.codegen.kernels import GFX942, Making, body_of, build, filecheck

STATE = StateStruct(
    "test.pair",
    AtomStateField("offset", t.I32, default=0, doc="added to the value", units="units"),
    AtomStateField("scale", t.I32, default=None, doc="multiplies the value", units="units"),
)


class PairCopy(StatefulCopy):
    """Loads an i32, multiplies it by one state field and adds another."""

    mnemonic = "test.pair"
    state = STATE

    def __init__(self) -> None:
        self.bit_size = 32
        self.params = "32"

    def emit_load(self, em: Any, state: Any, src: Any, type: Any) -> Any:
        scaled = em.binary("mul", em.load(src, type), em.extract_value(state, 1))
        return em.binary("add", scaled, em.extract_value(state, 0))


class MemoryOnly(StatelessCopy):
    """A copy with no SSA form."""

    mnemonic = "test.memory_only"

    def __init__(self) -> None:
        self.bit_size = 128
        self.params = "128"

    def emit_atom_call(self, em: Any, state: Any, src: Any, dst: Any, pred: Any) -> None:
        def body() -> None:
            em.store(em.load(src, ll.vec(4, ll.F32)), dst)

        if pred is None:
            body()
        else:
            em.guarded(pred, body, None)


class Nothing(CopyAtomOp):
    """A copy whose SSA form forgets its value."""

    mnemonic = "test.nothing"

    def __init__(self) -> None:
        self.bit_size = 32
        self.params = "32"

    def emit_atom_call_ssa(self, *args: Any) -> Any:
        return None


class Fma4(StatelessMma):
    """A matrix operation of the shape of one vector."""

    mnemonic = "test.fma4"
    targets = ("gfx942",)

    def __init__(self) -> None:
        self.params = "4x1x1"
        self.shape_mnk = (4, 1, 1)
        self.blocks = 1
        self.types = (t.F32, t.F32, t.F32, t.F32)
        self.layout_a = self.layout_c = Layout((1, 4), (1, 1))
        self.layout_b = Layout((1, 1), (1, 1))

    def emit_atom_call_ssa(self, em: Any, state: Any, a: Any, b: Any, c: Any) -> Any:
        return em.binary("fadd", em.binary("fmul", a, em.splat(b, 4)), c)


def copy_ssa(k: Making, atom: Value, src: Value, result: t.Type, pred: Value | None = None, old: Value | None = None):  # type: ignore[no-untyped-def]
    operands = [v for v in (atom, src, pred, old) if v is not None]
    return k.op(
        "fly.copy_atom_call_ssa", operands, [result], segments=(1, 0, int(pred is not None), int(old is not None))
    )


def atom(k: Making, op: Any, bits: int = 32) -> Value:
    return k.b.make_copy_atom(t.CopyAtomType(op, bits))


def view(k: Making, p: Value, count: int = 1) -> Value:
    return k.b.make_view(p, Layout(count, 1))


def pair(k: Making) -> tuple[Value, Value, Value]:
    """(atom with both fields set from arguments, source view, destination)."""
    p, q, x, y = k.ptr("p", t.I32), k.ptr("q", t.I32), k.arg(t.I32, "x"), k.arg(t.I32, "y")
    made = k.b.set_value(k.b.set_value(atom(k, PairCopy()), "scale", x), "offset", y)
    return made, view(k, p), q


# --- state ----------------------------------------------------------------------------------------


def test_constant_and_straight_line_state_makes_no_struct() -> None:
    def fn(k: Making) -> None:
        made, src, q = pair(k)
        k.b.ptr_store(copy_ssa(k, made, src, t.I32), q)

    text = build(fn).text()
    filecheck(text, "CHECK: %[[S:v[0-9]+]] = mul i32 %{{v[0-9]+}}, %x\nCHECK-NEXT: add i32 %[[S]], %y")
    assert "insertvalue" not in text and "extractvalue" not in text


def test_state_of_two_fields_can_be_seen_as_a_struct() -> None:
    def fn(k: Making) -> None:
        made, src, q = pair(k)
        k.b.ptr_store(copy_ssa(k, made, src, t.I32), q)

    filecheck(
        build(fn).text(materialise_state=True),
        """
        CHECK: %[[A:v[0-9]+]] = insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %x, 1
        CHECK: %[[X:v[0-9]+]] = extractvalue { i32, i32 } %[[A]], 1
        CHECK: %[[B:v[0-9]+]] = insertvalue { i32, i32 } {{.*}}, i32 %y, 0
        CHECK: extractvalue { i32, i32 }
        CHECK: load i32
        """,
    )


def test_a_stateful_buffer_copy_passes_its_soffset_in_bytes() -> None:
    def fn(k: Making) -> None:
        p, n, s, q = k.ptr("p", t.F16, 16), k.arg(t.I64, "n"), k.arg(t.I32, "s"), k.ptr("q", t.F16, 16)
        src = view(k, k.b.add_offset(k.b.make_buffer(p, n), 16), 8)
        copy = k.b.set_value(atom(k, BufferCopy(128), 16), "soffset", s)
        k.b.ptr_store(copy_ssa(k, copy, src, t.VectorType(8, t.F16)), q)

    filecheck(
        build(fn).text(materialise_state=True),
        """
        CHECK: insertvalue { i32 } { i32 poison }, i32 %s, 0
        CHECK: %[[E:v[0-9]+]] = extractvalue { i32 }
        CHECK: %[[S:v[0-9]+]] = {{shl|mul}} i32 %[[E]]
        CHECK: raw.ptr.buffer.load.v4i32(ptr addrspace(8) %{{v[0-9]+}}, i32 32, i32 %[[S]], i32 0)
        """,
    )


@pytest.mark.llvm
def test_state_crosses_a_branch_as_a_struct() -> None:
    def fn(k: Making) -> None:
        made, src, q = pair(k)
        c = k.arg(t.I1, "c")
        (joined,) = k.b.if_(c, lambda: [k.b.set_value(made, "offset", k.b.constant(9, t.I32))], lambda: [made])
        k.b.ptr_store(copy_ssa(k, joined, src, t.I32), q)

    text = build(fn).text()
    filecheck(
        text,
        """
        CHECK: %[[J:v[0-9]+]] = phi { i32, i32 } [ %{{v[0-9]+}}, %then0 ], [ %{{v[0-9]+}}, %entry ]
        CHECK: extractvalue { i32, i32 } %[[J]], 1
        """,
    )
    compile_llvm(text, GFX942)


def test_state_that_a_loop_changes_is_carried_and_state_it_keeps_is_not() -> None:
    def fn(k: Making, change: bool) -> None:
        made, src, q = pair(k)
        n = k.arg(t.I32, "n")

        def body(i: Value, a: Value, s: Value) -> list[Value]:
            got = copy_ssa(k, a, src, t.I32)
            return [k.b.set_value(a, "offset", i) if change else a, k.b.binary("arith.addi", s, got)]

        _, total = k.b.for_(0, n, 1, [made, k.b.constant(0, t.I32)], body)
        k.b.ptr_store(total, q)

    filecheck(build(lambda k: fn(k, True)).text(), "CHECK: loop0:\nCHECK: phi { i32, i32 } [ %{{v[0-9]+}}, %entry ]")
    assert "{ i32, i32 }" not in build(lambda k: fn(k, False)).text()


def test_an_unset_field_is_named_at_the_authors_line() -> None:
    def fn(k: Making) -> None:
        p, q = k.ptr("p", t.I32), k.ptr("q", t.I32)
        k.b.ptr_store(copy_ssa(k, atom(k, PairCopy()), view(k, p), t.I32), q)

    with pytest.raises(StateError, match=r"author.py:7: state field 'scale' of !test.pair.*\n.*set_value\('scale'"):
        build(fn).text()


def test_a_field_set_on_one_way_only_is_unset_after_the_branch() -> None:
    def fn(k: Making) -> None:
        p, q, c = k.ptr("p", t.I32), k.ptr("q", t.I32), k.arg(t.I1, "c")
        bare = atom(k, PairCopy())
        (joined,) = k.b.if_(c, lambda: [k.b.set_value(bare, "scale", k.b.constant(3, t.I32))], lambda: [bare])
        k.b.ptr_store(copy_ssa(k, joined, view(k, p), t.I32), q)

    with pytest.raises(StateError, match="state field 'scale'"):
        build(fn).text()


def test_a_loop_cannot_lose_a_field() -> None:
    def fn(k: Making) -> None:
        made, _, _ = pair(k)
        bare = atom(k, PairCopy())
        k.b.for_(0, k.arg(t.I32, "n"), 1, [made], lambda i, a: [k.b.set_value(bare, "offset", i)])

    with pytest.raises(StateError, match="state field 'scale'"):
        build(fn).text()


# --- predicates -----------------------------------------------------------------------------------


def predicated(k: Making, pred: Value) -> None:
    p, q = k.ptr("p", align=16), k.ptr("q", align=16)
    old = k.b.constant((1.0, 2.0, 3.0, 4.0), t.VectorType(4, t.F32))
    got = copy_ssa(k, atom(k, UniversalCopy(128)), view(k, p, 4), t.VectorType(4, t.F32), pred, old)
    k.b.ptr_store(got, q)


def test_a_predicated_load_in_ssa_form_keeps_the_old_value() -> None:
    filecheck(
        build(lambda k: predicated(k, k.arg(t.I1, "c"))).text(),
        """
        CHECK: then0:
        CHECK-NEXT: %[[N:v[0-9]+]] = load <4 x float>, ptr addrspace(1) %p, align 16
        CHECK: join0:
        CHECK-NEXT: phi <4 x float> [ %[[N]], %then0 ], [ <float 0x3FF0000000000000, {{.*}}>, %entry ]
        """,
    )


def test_a_constant_predicate_takes_one_side() -> None:
    always = body_of(build(lambda k: predicated(k, k.b.constant(1, t.I1))).text())
    never = body_of(build(lambda k: predicated(k, k.b.constant(0, t.I1))).text())
    assert "br " not in always and "load" in always
    assert "br " not in never and "load" not in never and "store <4 x float> <float" in never


def test_the_memory_form_writes_its_destination_in_true_lanes_only() -> None:
    def fn(k: Making) -> None:
        p, c = k.ptr("p", align=16), k.arg(t.I1, "c")
        dst = k.b.alloca(t.F32, Layout(4, 1))
        k.b.copy_atom_call(atom(k, UniversalCopy(128)), view(k, p, 4), dst, c)
        k.b.ptr_store(k.b.ptr_load(k.b.get_iter(dst), 4), k.ptr("q", align=16))

    filecheck(
        build(fn).text(),
        """
        CHECK: br i1 %{{v[0-9]+}}, label %then0, label %join0
        CHECK-NEXT: then0:
        CHECK-NEXT: %[[NEW:v[0-9]+]] = load <4 x float>, ptr addrspace(1) %p, align 16
        CHECK-NEXT: store <4 x float> %[[NEW]], ptr addrspace(5) %slot0, align 16
        CHECK: join0:
        """,
    )


def test_a_predicate_in_register_memory_is_loaded() -> None:
    def fn(k: Making) -> None:
        p, q = k.ptr("p", align=16), k.ptr("q", align=16)
        flags = k.b.alloca(t.I1, Layout(1, 1))
        k.b.ptr_store(k.arg(t.I1, "c"), k.b.get_iter(flags))
        k.b.copy_atom_call(atom(k, UniversalCopy(128)), view(k, p, 4), view(k, q, 4), flags)

    filecheck(build(fn).text(), "CHECK: load i8, ptr addrspace(5) %slot0\nCHECK: trunc i8\nCHECK-NEXT: br i1")


# --- forms ----------------------------------------------------------------------------------------


@pytest.mark.llvm
def test_an_atom_with_a_memory_form_alone_compiles_to_an_object() -> None:
    def fn(k: Making) -> None:
        p, q, c = k.ptr("p", align=16), k.ptr("q", align=16), k.arg(t.I1, "c")
        k.b.copy_atom_call(atom(k, MemoryOnly()), view(k, p, 4), view(k, q, 4), c)

    made = compile_llvm(build(fn).text(), GFX942, want=("obj", "asm"))
    assert made.object[:4] == b"\x7fELF" and "global_store_dwordx4" in made.assembly


def test_a_matrix_operation_in_memory_form_stores_its_result() -> None:
    def fn(k: Making) -> None:
        mma = k.b.make_mma_atom(t.MmaAtomType(Fma4()))
        d, a, b, c = (view(k, k.ptr(n, align=16), 1 if n == "b" else 4) for n in "dabc")
        k.b.mma_atom_call(mma, d, a, b, c)

    filecheck(build(fn).text(), "CHECK: fadd <4 x float>\nCHECK-NEXT: store <4 x float> {{.*}} %d, align 16")


def test_a_matrix_operation_in_ssa_form_is_its_result() -> None:
    def fn(k: Making) -> None:
        mma = k.b.make_mma_atom(t.MmaAtomType(Fma4()))
        a, q = k.b.ptr_load(k.ptr("p", align=16), 4), k.ptr("q", align=16)
        x = k.b.extract(a, 0)
        k.b.ptr_store(k.op("fly.mma_atom_call_ssa", [mma, a, x, a], [a.type]), q)

    filecheck(build(fn).text(), "CHECK: fmul <4 x float>\nCHECK: store <4 x float> {{.*}} %q")


# --- refusals -------------------------------------------------------------------------------------


def test_an_atom_of_another_target_is_refused_by_name() -> None:
    made = build(lambda k: k.b.make_mma_atom(t.MmaAtomType(Fma4())))
    made.target = type(GFX942).parse("gfx90a")
    with pytest.raises(TargetError, match=r"fma4<4x1x1> is not on gfx90a\n.*gfx942"):
        made.text()


def test_a_strided_view_is_no_run_of_an_atom() -> None:
    def fn(k: Making) -> None:
        p, q = k.ptr("p", align=16), k.ptr("q", align=16)
        src = k.b.make_view(p, Layout(4, 2))
        k.b.copy_atom_call(atom(k, UniversalCopy(128)), src, view(k, q, 4))

    with pytest.raises(CodegenError, match=r"4:2 is not contiguous\n.*stride 1"):
        build(fn).text()


def test_an_atom_that_gives_no_value_is_named() -> None:
    def fn(k: Making) -> None:
        k.b.ptr_store(copy_ssa(k, atom(k, Nothing()), view(k, k.ptr("p")), t.F32), k.ptr("q"))

    with pytest.raises(CodegenError, match=r"!test.nothing<32> gave no value.*\n.*return the value from its SSA form"):
        build(fn).text()
