"""LLVM IR text: what is read, and that broken text is refused with line and column."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import ParseError
from flyllvm.sim import parse_module, simulate, types as ty
from flyllvm.sim.ir import strip_trailing


def _function(body: str, head: str = "define void @f(i32 %a)") -> str:
    return f"{head} {{\n{body}\n}}\n"


def _type_of(text: str) -> ty.Type:
    return parse_module(f"@g = external global {text}").globals["g"].type


@pytest.mark.parametrize(
    ("text", "size", "align"),
    [
        ("i1", 1, 1), ("i8", 1, 1), ("i24", 4, 4), ("i64", 8, 8), ("i128", 16, 8), ("half", 2, 2), ("bfloat", 2, 2),
        ("double", 8, 8), ("ptr", 8, 8), ("ptr addrspace(3)", 4, 4), ("ptr addrspace(8)", 16, 16),
        ("<3 x i32>", 16, 16), ("<2 x i16>", 4, 4), ("<16 x float>", 64, 64), ("[3 x i16]", 6, 2),
        ("{ i8, i32 }", 8, 4), ("<{ i8, i32 }>", 5, 1), ("{ i32, [2 x { i8, i64 }], <4 x float> }", 64, 16),
        ("{}", 0, 1),
    ],
)  # fmt: skip
def test_types_have_the_size_of_the_amdgpu_data_layout(text: str, size: int, align: int) -> None:
    t = _type_of(text)
    assert (ty.alloc_size(t), ty.abi_align(t)) == (size, align)


def test_equal_types_are_the_same_object() -> None:
    assert _type_of("{ <4 x float>, [2 x ptr addrspace(1)] }") is _type_of("{<4 x float>,[2 x ptr addrspace(1)]}")


@pytest.mark.parametrize(
    ("literal", "t", "bits"),
    [
        ("1.0", "float", 0x3F800000), ("-1.5e3", "double", 0xC097700000000000), ("0xH3C00", "half", 0x3C00),
        ("0xR3F80", "bfloat", 0x3F80), ("0x3FF0000000000000", "float", 0x3F800000),
        ("0x7FF8000000000000", "float", 0x7FC00000), ("0xFFF0000000000000", "float", 0xFF800000),
        ("0x36A0000000000000", "float", 1), ("0.1", "half", 0x2E66), ("0.1", "bfloat", 0x3DCD),
        ("+nan(0x3F)", "bfloat", 0x7FFF), ("-nan(0x2)", "half", 0xFE02), ("+snan(0x1)", "float", 0x7F800001),
        ("-qnan", "double", 0xFFF8000000000000), ("+inf", "float", 0x7F800000), ("f0x3F800000", "float", 0x3F800000),
    ],
)  # fmt: skip
def test_float_literals_keep_their_bits(literal: str, t: str, bits: int) -> None:
    init = parse_module(f"@g = internal addrspace(4) constant {t} {literal}").globals["g"].init
    assert init is not None and init.value == bits  # type: ignore[attr-defined]


def test_names_are_read_without_their_escapes() -> None:
    text = 'define amdgpu_kernel void @"k<\\22\\C3\\A4\\\\\\FF>"(ptr addrspace(1) %"a b") {\n  ret void\n}\n'
    module = parse_module(text)
    assert module.kernels() == ['k<"\xe4\\\\xff>'] and module.functions[module.kernels()[0]].params[0].name == "a b"


def test_modules_as_llvm_prints_them_are_read() -> None:
    module = parse_module(
        """
; ModuleID = 'x'
source_filename = "a \\22name\\22"
target datalayout = "e-p:64:64"
target triple = "amdgcn-amd-amdhsa"
%pair = type { i32, %"other name" }
%"other name" = type { float, ptr }
$"odd name" = comdat any
@"odd name" = linkonce_odr hidden unnamed_addr addrspace(3) global [4 x %pair] undef, comdat, align 8, !dbg !3
@text = private unnamed_addr addrspace(4) constant [4 x i8] c"a\\00\\\\b"
@shared = external local_unnamed_addr addrspace(3) global [0 x i8], align 16

declare !dbg !4 noundef range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.x() #1

; Function Attrs: nounwind
define weak_odr protected amdgpu_kernel void @"k 1"(ptr addrspace(1) noalias noundef align 16 dereferenceable(64) %p, i32 inreg %0, ptr addrspace(4) byref(%pair) align 8 %q) local_unnamed_addr #0 !dbg !5 !kernel_arg_type !6 {
  %2 = tail call noundef range(i32 0, 1024) i32 @llvm.amdgcn.workitem.id.x() #2, !dbg !7, !noundef !8
    #dbg_value(i32 %2, !9, !DIExpression(), !10)
  call void @llvm.dbg.value(metadata i32 %2, metadata !9, metadata !DIExpression(DW_OP_plus)), !dbg !7
  call void (i32, ...) @variadic(i32 1, ptr null)
  br i1 true, label %3, label %"odd block"
3:                                                ; preds = %1
  %4 = getelementptr inbounds nuw %pair, ptr addrspace(1) %p, i64 1, i32 1, i32 0
  %5 = load atomic volatile i32, ptr addrspace(1) %4 syncscope("agent-one-as") acquire, align 4, !tbaa !11
  %6 = call nnan ninf <2 x float> @llvm.fma.v2f32(<2 x float> splat (float 1.0), <2 x float> <float 2.0, float poison>, <2 x float> zeroinitializer)
  %7 = cmpxchg weak ptr addrspace(1) %p, i32 0, i32 1 syncscope("workgroup") acq_rel monotonic, align 4
  store i32 ptrtoint (ptr addrspace(3) getelementptr inbounds (i8, ptr addrspace(3) @shared, i32 16) to i32), ptr addrspace(1) %p, align 4
  br label %"odd block"
"odd block":
  %r = phi i32 [ %5, %3 ], [ 7, %1 ]
  ret void
}
attributes #0 = { nounwind memory(readwrite, inaccessiblemem: none) "amdgpu-flat-work-group-size"="1,64" }
attributes #1 = { nocallback }
attributes #2 = { convergent }
!llvm.module.flags = !{!0}
!0 = !{i32 1, !"x", i32 500}
!3 = distinct !DIGlobalVariable(name: "a{b")
"""  # noqa: E501
    )
    assert module.kernels() == ["k 1"]
    kernel = module.functions["k 1"]
    assert [b.name for b in kernel.blocks] == ["1", "3", "odd block"]
    assert kernel.attrs["amdgpu-flat-work-group-size"] == "1,64"
    assert kernel.params[2].attrs["byref"] is module.named_types["pair"]
    assert str(module.globals["odd name"].type) == "[4 x %pair]"
    assert ty.alloc_size(module.globals["odd name"].type) == 96


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("defin void @f() {", "1:1", "expected a definition, found 'defin'"),
        (_function("  %x = frobnicate i32 %a, 1\n  ret void"), "2:8", "unknown instruction 'frobnicate'"),
        (_function("  %x = add i32 %a, %b\n  ret void"), "2:3", "use of undefined value %b"),
        (_function("  %x = add i64 %a, 1\n  ret void"), "2:3", "%a is of type i32, used as i64"),
        (_function("  %x = add i32 %a, 1"), "3:1", "block %0 has no terminator"),
        (_function("  br label %no"), "2:1", "branch to undefined block %no"),
        (_function("  ret void\n  ret void"), "3:3", "an instruction after the terminator"),
        (_function("  %a = add i32 1, 1\n  ret void"), "2:3", "%a is defined twice"),
        (_function("  br label %b\nb:\n  ret void\nb:\n  ret void"), "6:", "block %b is defined twice"),
        (_function("  br label %b\nb:\n  %p = phi i32 [ 0, %b ]\n  ret void"), "4:1", "is entered from %0"),
        (_function("  %c = icmp eq i32 %a, 1\n  br i32 %a, label %x, label %x\nx:\n  ret void"), "3:",
         "a branch condition is i1"),
        (_function("  %x = add i8 300, 1\n  ret void"), "2:15", "the constant 300 does not fit i8"),
        (_function("  %x = fadd i32 %a, 1\n  ret void"), "3:3", "fadd of type i32"),
        (_function("  fence syncscope(\"workgroup\")\n  ret void"), "3:3", "fence needs an ordering"),
        (_function("  %x = load i32, i32 %a\n  ret void"), "3:3", "expected a pointer"),
        (_function("  %x = insertvalue {i32} poison, i32 1, 2\n  ret void"), "3:3", "has no member 2"),
        ("@g = internal global <2 x i32> <i32 1>", "1:", "needs 2 elements, found 1"),
        ("define void @f(i32 %a) {\n  ret void", "2:", "the text ends in the middle of a definition"),
        ("define void @f() {\n  ret void\n}\ndefine void @f() {\n  ret void\n}", "4:", "@f is defined twice"),
        (_function("  ret void\n§"), "3:1", "unexpected character"),
        (_function("  %b = add i32 %c, 1\n  %c = add i32 %b, 1\n  ret void"), "2:",
         "the definition of %c does not dominate this use"),
    ],
)  # fmt: skip
def test_broken_text_is_refused_with_line_and_column(text: str, place: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_module(text, "k.ll")
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"k.ll:{place}")


def test_trailing_metadata_and_comments_are_dropped_from_shown_text() -> None:
    assert strip_trailing('call void @f("a;b"), !dbg !7 ; x') == 'call void @f("a;b")'


_DEBUG = """
define amdgpu_kernel void @k(ptr addrspace(1) %out) !dbg !4 {
  %p = getelementptr i32, ptr addrspace(1) %out, i32 64
  store i32 1, ptr addrspace(1) %p, align 4, !dbg !7
  ret void
}
!1 = !DIFile(filename: "kernel.py", directory: "")
!2 = !DIFile(filename: "lib.py", directory: "")
!3 = distinct !DICompileUnit(language: DW_LANG_C, file: !1)
!4 = distinct !DISubprogram(name: "k", file: !1, line: 3, unit: !3)
!5 = distinct !DISubprogram(name: "helper", file: !2, line: 9, unit: !3)
!6 = distinct !DILocation(line: 20, column: 3, scope: !4)
!7 = !DILocation(line: 11, column: 5, scope: !8, inlinedAt: !6)
!8 = distinct !DILexicalBlock(scope: !5, file: !2, line: 10)
"""


@pytest.mark.sim
def test_faults_name_the_author_line_and_the_inlining_chain() -> None:
    from flyllvm.errors import SimError

    with pytest.raises(SimError) as caught:
        simulate(_DEBUG, grid=1, block=1, args=[np.zeros(64, np.uint32)])
    assert str(caught.value).startswith("lib.py:11, inlined at kernel.py:20: ")


@pytest.mark.sim
def test_calls_are_inlined_and_named_in_faults() -> None:
    from flyllvm.errors import SimError

    text = """
define i32 @pick(ptr addrspace(1) %p, i32 %i) {
  %small = icmp ult i32 %i, 3
  br i1 %small, label %load, label %no
load:
  %q = getelementptr i32, ptr addrspace(1) %p, i32 %i
  %v = load i32, ptr addrspace(1) %q, align 4
  ret i32 %v
no:
  ret i32 7
}
define amdgpu_kernel void @k(ptr addrspace(1) %x, ptr addrspace(1) %out) {
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %a = call i32 @pick(ptr addrspace(1) %x, i32 %t)
  %b = call i32 @pick(ptr addrspace(1) %x, i32 %a)
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  store i32 %b, ptr addrspace(1) %po, align 4
  ret void
}
"""
    out = np.zeros(4, np.uint32)
    simulate(text, grid=1, block=4, args=[np.array([2, 9, 1], np.uint32), out])
    assert list(out) == [1, 7, 9, 7]
    with pytest.raises(SimError) as caught:
        simulate(text, grid=1, block=4, args=[np.array([2, 1], np.uint32), out], source_name="k.ll")
    assert str(caught.value).startswith("k.ll:7, inlined at k.ll:14: ")


@pytest.mark.sim
def test_recursion_is_refused() -> None:
    from flyllvm.errors import SimError

    text = """
define void @f() {
  call void @f()
  ret void
}
define amdgpu_kernel void @k() {
  call void @f()
  ret void
}
"""
    with pytest.raises(SimError, match="calls itself"):
        simulate(text, grid=1, block=1, args=[])
