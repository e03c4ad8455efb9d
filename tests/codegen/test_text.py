"""The text builder: folding, sharing, placement."""

from __future__ import annotations

import pytest

from flyllvm.codegen import Options
from flyllvm.codegen.aggregate import StructValue
from flyllvm.codegen.amdgpu import Amdgpu
from flyllvm.codegen.function import FunctionBuilder
from flyllvm.codegen.module import ModuleBuilder
from flyllvm.errors import CodegenError, StateError
from flyllvm.ir import lltype as ll
from flyllvm.ir.protocols import LLValue
from tests.codegen.kernels import GFX942, filecheck


@pytest.fixture
def em() -> FunctionBuilder:
    return FunctionBuilder(ModuleBuilder(Amdgpu(), GFX942, Options()), GFX942)


def lines(em: FunctionBuilder) -> str:
    """Everything that was written, dead or not."""
    return "\n".join(line for segment in em.segments for line in segment)


def arg(text: str, type: ll.LLType = ll.I32) -> LLValue:
    return LLValue(type, text, None, True, 0)


@pytest.mark.parametrize(
    ("op", "a", "b", "want"),
    [
        ("add", "x", 0, "%x"), ("add", 0, "x", "%x"), ("mul", "x", 1, "%x"), ("mul", "x", 0, "0"),
        ("and", "x", -1, "%x"), ("and", 0, "x", "0"), ("shl", "x", 0, "%x"), ("xor", 0, "x", "%x"),
        ("urem", "x", 1, "0"), ("sdiv", "x", 1, "%x"), ("add", 2, 3, "5"), ("mul", 1 << 31, 2, "0"),
    ],
)  # fmt: skip
def test_trivial_arithmetic_makes_no_instruction(
    em: FunctionBuilder, op: str, a: int | str, b: int | str, want: str
) -> None:
    x, y = (arg(f"%{v}") if isinstance(v, str) else em.const(ll.I32, v) for v in (a, b))
    assert em.binary(op, x, y).text == want
    assert not em.lines


def test_equal_pure_instructions_are_made_once(em: FunctionBuilder) -> None:
    x = arg("%x")
    first = em.binary("mul", x, em.const(ll.I32, 12))
    assert em.binary("mul", x, em.const(ll.I32, 12)) is first
    assert len(em.lines) == 1


def test_float_arithmetic_is_neither_folded_nor_merged(em: FunctionBuilder) -> None:
    x = arg("%x", ll.F32)
    zero = em.const(ll.F32, 0.0)
    assert em.binary("fadd", x, zero).text != em.binary("fadd", x, zero).text
    filecheck(lines(em), "CHECK-COUNT-2: fadd float %x, 0x0000000000000000")


def test_a_division_by_an_unknown_number_stays_where_it_is(em: FunctionBuilder) -> None:
    em.push_loop()
    em.start("loop0")
    em.binary("udiv", arg("%x"), arg("%y"))
    em.binary("udiv", arg("%x"), em.const(ll.I32, 3))
    filecheck(
        lines(em),
        """
        CHECK: udiv i32 %x, 3
        CHECK: loop0:
        CHECK-NEXT: udiv i32 %x, %y
        """,
    )


def test_arithmetic_leaves_the_loops_that_do_not_change_it(em: FunctionBuilder) -> None:
    em.push_loop()
    em.start("loop0")
    outer = em.reserve(ll.I32)
    em.push_loop()
    em.start("loop1")
    inner = em.reserve(ll.I32)
    em.binary("add", arg("%x"), arg("%y"))
    em.binary("add", outer, arg("%x"))
    em.binary("add", inner, arg("%x"))
    em.pop()
    em.pop()
    em.binary("add", arg("%x"), arg("%y"))
    filecheck(
        lines(em),
        """
        CHECK: %[[A:v[0-9]+]] = add i32 %x, %y
        CHECK-NEXT: loop0:
        CHECK-NEXT: add i32 %v0, %x
        CHECK-NEXT: loop1:
        CHECK-NEXT: add i32 %v1, %x
        CHECK-NOT: add
        """,
    )


def test_what_a_branch_computes_is_not_used_after_it(em: FunctionBuilder) -> None:
    em.guarded(arg("%p", ll.I1), lambda: em.binary("add", arg("%x"), arg("%y")) and None, None)
    em.binary("add", arg("%x"), arg("%y"))
    filecheck(
        lines(em),
        """
        CHECK: then0:
        CHECK-NEXT: add i32 %x, %y
        CHECK: join0:
        CHECK-NEXT: add i32 %x, %y
        """,
    )


def test_a_guarded_value_keeps_the_old_one_in_false_lanes(em: FunctionBuilder) -> None:
    got = em.guarded(arg("%p", ll.I1), lambda: em.raw("load i32, ptr %q", ll.I32), arg("%old"))
    assert got is not None
    filecheck(
        lines(em),
        """
        CHECK: br i1 %p, label %then0, label %join0
        CHECK-NEXT: then0:
        CHECK-NEXT: %[[NEW:v[0-9]+]] = load i32
        CHECK-NEXT: br label %join0
        CHECK-NEXT: join0:
        CHECK-NEXT: phi i32 [ %[[NEW]], %then0 ], [ %old, %entry ]
        """,
    )


def test_a_constant_predicate_makes_no_branch(em: FunctionBuilder) -> None:
    new, old = arg("%new"), arg("%old")
    assert em.guarded(em.const(ll.I1, 1), lambda: new, old) is new
    assert em.guarded(em.const(ll.I1, 0), lambda: new, old) is old
    assert not em.lines


def test_a_guarded_value_without_an_old_one_is_refused(em: FunctionBuilder) -> None:
    with pytest.raises(CodegenError, match="pass the old value"):
        em.guarded(arg("%p", ll.I1), lambda: arg("%new"), None)


def test_a_struct_is_built_only_where_it_is_needed(em: FunctionBuilder) -> None:
    state = em.insert_value(em.zero(ll.struct((ll.I32, ll.I32))), arg("%x"), 1)
    assert em.extract_value(state, 1).text == "%x" and em.extract_value(state, 0).const == 0
    assert not em.lines
    assert state.text.startswith("%v")
    filecheck(lines(em), "CHECK: insertvalue { i32, i32 } { i32 0, i32 poison }, i32 %x, 1")


def test_a_constant_struct_needs_no_instruction(em: FunctionBuilder) -> None:
    state = em.insert_value(em.zero(ll.struct((ll.I32, ll.I32))), em.const(ll.I32, 7), 0)
    assert state.text == "{ i32 7, i32 0 }" and not em.lines


def test_a_struct_from_elsewhere_is_taken_apart(em: FunctionBuilder) -> None:
    other = arg("%s", ll.struct((ll.I32, ll.I64)))
    assert em.extract_value(em.insert_value(other, arg("%x"), 0), 1).type is ll.I64
    filecheck(lines(em), "CHECK: extractvalue { i32, i64 } %s, 1")


def test_an_unset_field_is_an_error_that_names_it(em: FunctionBuilder) -> None:
    state = StructValue(em, ll.struct((ll.I32,)), [None], ("scale_a",), "!x.mma_scale")
    with pytest.raises(StateError, match=r"set_value\('scale_a'"):
        em.extract_value(state, 0)
    with pytest.raises(CodegenError, match="use an index from 0 to 0"):
        em.extract_value(state, 3)


def test_shuffles_that_take_everything_or_one_element_make_no_shuffle(em: FunctionBuilder) -> None:
    v = arg("%v", ll.vec(4, ll.F16))
    assert em.shuffle(v, None, [0, 1, 2, 3]) is v
    assert em.shuffle(v, None, [2]).type is ll.F16
    filecheck(lines(em), "CHECK-NOT: shufflevector\nCHECK: extractelement <4 x half> %v, i32 2")


def test_a_splat_is_one_insert_and_one_shuffle(em: FunctionBuilder) -> None:
    assert em.splat(em.const(ll.F32, 1.0), 2).text == "<float 0x3FF0000000000000, float 0x3FF0000000000000>"
    em.splat(arg("%x", ll.F32), 4)
    filecheck(lines(em), "CHECK: insertelement <4 x float> poison\nCHECK-NEXT: shufflevector <4 x float>")


@pytest.mark.parametrize(
    ("op", "value", "bits", "to", "want"),
    [("sext", 1, 1, 32, -1), ("zext", -1, 8, 32, 255), ("trunc", 300, 32, 8, 44), ("sext", -5, 32, 64, -5)],
)
def test_conversions_of_integers_fold(em: FunctionBuilder, op: str, value: int, bits: int, to: int, want: int) -> None:
    assert em.cast(op, em.const(ll.int_(bits), value), ll.int_(to)).const == want


def test_comparisons_and_selects_of_constants_fold(em: FunctionBuilder) -> None:
    minus = em.const(ll.I32, -1)
    assert em.icmp("ult", minus, em.const(ll.I32, 1)).const == 0
    assert em.icmp("slt", minus, em.const(ll.I32, 1)).const == 1
    assert em.select(em.const(ll.I1, 0), arg("%a"), arg("%b")).text == "%b"


def test_uniformity_follows_the_operands(em: FunctionBuilder) -> None:
    lane = LLValue(ll.I32, "%lane")
    assert em.binary("add", arg("%x"), arg("%y")).uniform
    assert not em.binary("add", arg("%x"), lane).uniform
    assert em.intrinsic("amdgcn.readfirstlane.i32", ll.I32, [lane]).uniform
    assert em.intrinsic("amdgcn.sad.u8", ll.I32, [arg("%x"), arg("%y"), arg("%z")]).uniform
    assert not em.intrinsic("amdgcn.sad.u8", ll.I32, [arg("%x"), lane, arg("%z")]).uniform


def test_lanes_differ_even_where_operands_do_not(em: FunctionBuilder) -> None:
    ones, zero = em.const(ll.I32, -1), em.const(ll.I32, 0)
    low = em.intrinsic("amdgcn.mbcnt.lo", ll.I32, [ones, zero])
    assert not low.uniform and not em.intrinsic("amdgcn.mbcnt.hi", ll.I32, [ones, low]).uniform
    assert not em.intrinsic("amdgcn.workitem.id.x", ll.I32, []).uniform


@pytest.mark.parametrize(
    ("make", "fix"),
    [
        (lambda em: em.binary("add", arg("%x"), arg("%y", ll.I64)), "convert the operands to one type"),
        (lambda em: em.bitcast(arg("%x"), ll.I64), "equal size in bits"),
        (lambda em: em.shuffle(arg("%x"), None, [0, 0]), "shuffle vectors"),
        (lambda em: em.pop(), "order they were opened"),
    ],
)
def test_misuse_is_refused(em: FunctionBuilder, make: object, fix: str) -> None:
    with pytest.raises(CodegenError, match=fix):
        make(em)  # type: ignore[operator]


def test_instructions_that_nothing_needs_are_dropped(em: FunctionBuilder) -> None:
    x = arg("%x")
    dead = em.binary("mul", x, em.const(ll.I32, 3))
    em.binary("add", dead, x)
    kept = em.binary("add", x, em.const(ll.I32, 5))
    em.line(f"store i32 {kept.text}, ptr %p")
    filecheck(em.text(), "CHECK-NOT: mul\nCHECK: %[[K:v[0-9]+]] = add i32 %x, 5\nCHECK-NEXT: store i32 %[[K]]")
