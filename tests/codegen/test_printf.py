"""What a kernel that prints looks like in LLVM IR."""

from __future__ import annotations

import pytest

from flyllvm.codegen.x86 import host_target
from flyllvm.errors import CodegenError
from flyllvm.ir import types as t
from flyllvm.printf import formats_in
from tests.codegen.kernels import Making, build, filecheck


def printing(text: str, *types: t.Type) -> str:
    def fn(k: Making) -> None:
        loads = [k.b.ptr_load(k.ptr(f"p{i}", type)) for i, type in enumerate(types)]
        k.b.emit("gpu.printf", loads, [], {"format": text})

    return build(fn, known_block_size=(64, 2, 1)).text()


def test_a_record_is_reserved_by_one_addition_and_written_where_it_fits() -> None:
    filecheck(
        printing("x = {}", t.F32),
        """
        CHECK: ptr addrspace(1) noundef align 16 %flyllvm.printf)
        CHECK: %[[AT:v[0-9]+]] = atomicrmw add ptr addrspace(1) %flyllvm.printf, i64 24 syncscope("agent") monotonic
        CHECK: %[[ROOM:v[0-9]+]] = load i64, ptr addrspace(1)
        CHECK: %[[END:v[0-9]+]] = add i64 %[[AT]], 24
        CHECK: %[[FITS:v[0-9]+]] = icmp ule i64 %[[END]], %[[ROOM]]
        CHECK-NEXT: br i1 %[[FITS]]
        CHECK: store i32 1, ptr addrspace(1)
        CHECK-COUNT-5: store i32
        CHECK-NOT: store
        CHECK: atomicrmw add ptr addrspace(1) %{{.*}}, i64 1 syncscope("agent") monotonic
        """,
    )


def test_narrow_values_are_widened_and_wide_ones_take_two_words() -> None:
    text = printing("{} {:u} {} {} {} {}", t.I8, t.I16, t.I1, t.F16, t.BF16, t.F64)
    filecheck(
        text,
        """
        CHECK-DAG: sext i8 %{{.*}} to i32
        CHECK-DAG: zext i16 %{{.*}} to i32
        CHECK-DAG: zext i1 %{{.*}} to i32
        CHECK-DAG: fpext half %{{.*}} to float
        CHECK-DAG: fpext bfloat %{{.*}} to float
        CHECK-DAG: bitcast double %{{.*}} to i64
        CHECK-DAG: lshr i64 %{{.*}}, 32
        CHECK: atomicrmw add {{.*}}, i64 48 syncscope
        """,
    )
    assert formats_in(text) == ["{s8} {u16} {bool} {f16} {bf16} {f64}"]


def test_a_kernel_that_prints_nothing_has_no_further_argument() -> None:
    assert "flyllvm.printf" not in build(lambda k: k.b.barrier()).text()


def test_equal_formats_share_a_number() -> None:
    def fn(k: Making) -> None:
        for text in ("a", "b", "a"):
            k.b.emit("gpu.printf", [], [], {"format": text})

    text = build(fn).text()
    assert formats_in(text) == ["a", "b"]
    assert text.count("store i32 1,") == 2 and text.count("store i32 2,") == 1


@pytest.mark.parametrize("text", ["{} {}", "", "{x}", "{"])
def test_a_format_that_does_not_fit_the_operands_is_refused(text: str) -> None:
    with pytest.raises(CodegenError, match=r"write one \{\} for each operand"):
        printing(text, t.F32)


def test_a_type_that_no_record_holds_is_refused() -> None:
    with pytest.raises(CodegenError, match="convert it first"):
        printing("{}", t.F8E5M2)


def test_the_host_does_not_print() -> None:
    with pytest.raises(CodegenError, match="print in kernels for a GPU"):
        build(lambda k: k.b.emit("gpu.printf", [], [], {"format": "x"}), host_target()).text()
