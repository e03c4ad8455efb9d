"""Intrinsics are checked against the signature table before LLVM sees them."""

from __future__ import annotations

import pytest

from flyllvm.codegen import check_llvm_text, compile_llvm
from flyllvm.codegen.intrinsics import base_of, check_call, find, lookup, overloads
from flyllvm.codegen.x86 import host_target
from flyllvm.errors import CodegenError, TargetError
from flyllvm.ir import types as t
from flyllvm.target import Target
from tests.codegen.kernels import GFX942, Making, build

MFMA = "llvm.amdgcn.mfma.f32.16x16x16f16"


def test_an_overload_is_found_with_its_signature_immediates_and_targets() -> None:
    found = lookup(MFMA)
    assert found is not None
    assert found.signature == "<4 x float> (<4 x half>, <4 x half>, <4 x float>, i32, i32, i32)"
    assert found.imms == (3, 4, 5) and found.archs == ["gfx90a", "gfx942", "gfx950"]
    assert lookup("llvm.amdgcn.readfirstlane.i32").uniform  # type: ignore[union-attr]
    assert lookup("llvm.amdgcn.rcp.f32").pure and not lookup("llvm.amdgcn.ds.bpermute").pure  # type: ignore[union-attr]


def test_names_are_found_whole_only() -> None:
    assert lookup(MFMA[:-1]) is None
    assert base_of("llvm.amdgcn.raw.ptr.buffer.load.v9i99") == "llvm.amdgcn.raw.ptr.buffer.load"
    assert len(overloads("llvm.amdgcn.raw.ptr.buffer.load")) > 20
    assert base_of("llvm.amdgcn.nonsense") is None


def test_an_unknown_intrinsic_is_refused_with_similar_names() -> None:
    with pytest.raises(CodegenError, match=r"no intrinsic llvm.amdgcn.mfma.f32.99x\n.*known names: .*mfma.f32"):
        find("llvm.amdgcn.mfma.f32.99x", GFX942)
    with pytest.raises(CodegenError, match="usage guide"):
        find("llvm.amdgcn.nonsense", GFX942)


def test_an_intrinsic_of_another_target_is_refused_with_the_targets_that_have_it() -> None:
    with pytest.raises(TargetError, match=r"gfx942 has no intrinsic .*\n.*targets with it: gfx950"):
        find("llvm.amdgcn.mfma.f32.16x16x32.f16", GFX942)
    with pytest.raises(TargetError, match="gfx1100 in waves of 32 has no intrinsic"):
        find("llvm.amdgcn.wmma.f32.16x16x16.f16.v4f32.v16f16", Target.parse("gfx1100"))
    assert find("llvm.amdgcn.wmma.f32.16x16x16.f16.v4f32.v16f16", Target.parse("gfx1100", wave_size=64))
    with pytest.raises(TargetError, match="in waves of 64 has no"):
        find("llvm.amdgcn.wmma.f32.16x16x16.f16.v8f32.v16f16", Target.parse("gfx1100", wave_size=64))
    with pytest.raises(TargetError, match="x86-64 has no intrinsic"):
        find("llvm.amdgcn.s.barrier", host_target())


def test_an_overload_that_was_not_tried_is_left_to_llvm() -> None:
    assert find("llvm.amdgcn.readfirstlane.v16i32", GFX942) is None


def test_another_signature_is_refused_with_the_right_one() -> None:
    with pytest.raises(CodegenError, match=r"its signature is i32 \(i32, i32\)"):
        check_call("llvm.amdgcn.ds.bpermute", "i32", ["i32"], GFX942)


def test_llvms_own_intrinsics_pass_unless_they_need_a_library() -> None:
    assert (
        check_call("llvm.smax.v4i32", "<4 x i32>", ["<4 x i32>"] * 2, GFX942).head == "call <4 x i32> @llvm.smax.v4i32"
    )
    with pytest.raises(CodegenError, match="does not lower on AMDGPU without a library"):
        check_call("llvm.tan.f32", "float", ["float"], GFX942)


def test_a_run_time_immediate_is_refused_at_the_authors_line() -> None:
    def fn(k: Making) -> None:
        x = k.arg(t.I32, "x")
        y = k.b.intrinsic("llvm.amdgcn.ds.swizzle", t.I32, [x, x])
        assert y is not None
        k.b.ptr_store(y, k.ptr("p", t.I32))

    with pytest.raises(CodegenError, match=r"author.py:7: operand 1 .*immediate\n.*compile-time constant"):
        build(fn).text()


def test_an_intrinsic_the_target_lacks_is_refused_at_the_authors_line() -> None:
    with pytest.raises(TargetError, match=r"author.py:7: gfx1250 has no intrinsic"):
        build(lambda k: k.b.intrinsic("llvm.amdgcn.s.waitcnt", None, [0]), "gfx1250").text()


@pytest.mark.llvm
def test_ids_of_lanes_and_waves_select_on_every_target() -> None:
    def fn(k: Making) -> None:
        wave = k.b.readfirstlane(k.b.thread_id() // 32)
        k.b.ptr_store(k.b.value(wave), k.b.add_offset(k.ptr("p", t.I32), k.b.lane_id()))

    for arch in ("gfx90a", "gfx950", "gfx1100", "gfx1201", "gfx1250"):
        made = build(fn, arch, known_block_size=(64, 2, 1))
        assert "v_readfirstlane" in compile_llvm(made.text(), made.target, want=["asm"]).assembly


# --- text of others -------------------------------------------------------------------------------


def module(call: str, triple: str = "amdgcn-amd-amdhsa") -> str:
    return f'target triple = "{triple}"\n\ndefine amdgpu_kernel void @k() {{\n  {call}\n  ret void\n}}\n'


def test_foreign_text_is_scanned_for_intrinsics() -> None:
    check_llvm_text(module("call void @llvm.amdgcn.s.barrier()"), GFX942)
    with pytest.raises(CodegenError, match=r"line 4 of the LLVM IR: LLVM has no intrinsic llvm.amdgcn.s.barier"):
        check_llvm_text(module("call void @llvm.amdgcn.s.barier()"), GFX942)
    with pytest.raises(TargetError, match=r"line 4 .*gfx1250 has no intrinsic llvm.amdgcn.s.waitcnt"):
        check_llvm_text(module("call void @llvm.amdgcn.s.waitcnt(i32 0)"), Target.parse("gfx1250"))


def test_foreign_text_for_another_machine_is_refused() -> None:
    with pytest.raises(CodegenError, match=r"line 1: the module is for x86_64-pc-linux.*\n.*change its target triple"):
        check_llvm_text(module("", "x86_64-pc-linux"), GFX942)
    check_llvm_text("define void @k() { ret void }", GFX942)


def test_foreign_text_for_another_processor_is_refused() -> None:
    text = module("call void @llvm.amdgcn.s.barrier()") + '\nattributes #0 = { "target-cpu"="gfx90a" }\n'
    with pytest.raises(
        CodegenError, match=r'line 8: .* code for gfx90a, the target is gfx942\n.*remove its "target-cpu"'
    ):
        check_llvm_text(text, GFX942)
    check_llvm_text(text, Target.parse("gfx90a"))
