"""Pointers, views and register memory in the emitted text."""

from __future__ import annotations

import pytest

from flyllvm.errors import CodegenError, TargetError
from flyllvm.ir import types as t
from flyllvm.ir.core import Value
from flyllvm.layout import Layout
from tests.codegen.kernels import Making, build, filecheck


def test_a_chain_of_offsets_is_one_address_and_one_immediate() -> None:
    def fn(k: Making) -> None:
        p, i, q = k.ptr("p"), k.arg(t.I32, "i"), k.ptr("q")
        at = k.op("fly.add_offset", [p, i], [p.type])
        for n in (3, 4):
            at = k.op("fly.add_offset", [at, k.b.constant(n, t.I32)], [p.type])
        k.b.ptr_store(k.b.ptr_load(at), q)

    filecheck(
        build(fn).text(),
        """
        CHECK: %[[W:v[0-9]+]] = sext i32 %i to i64
        CHECK-NEXT: %[[B:v[0-9]+]] = shl i64 %[[W]], 2
        CHECK-NEXT: %[[P:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %p, i64 %[[B]]
        CHECK-NEXT: %[[Q:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %[[P]], i64 28
        CHECK-NEXT: load float, ptr addrspace(1) %[[Q]], align 4
        """,
    )


def test_an_offset_known_to_be_small_is_scaled_in_32_bits_and_zero_extended() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p")
        at = k.b.add_offset(p, k.b.thread_id())
        k.b.ptr_store(k.b.ptr_load(at), at)

    filecheck(
        build(fn, known_block_size=(64, 1, 1)).text(),
        """
        CHECK: %[[T:v[0-9]+]] = call range(i32 0, 64) i32 @llvm.amdgcn.workitem.id.x()
        CHECK-NEXT: %[[B:v[0-9]+]] = shl nuw nsw i32 %[[T]], 2
        CHECK-NEXT: %[[W:v[0-9]+]] = zext i32 %[[B]] to i64
        CHECK-NEXT: getelementptr i8, ptr addrspace(1) %p, i64 %[[W]]
        """,
    )


def test_a_recast_pointer_keeps_its_byte_offset() -> None:
    def fn(k: Making) -> None:
        p, q = k.ptr("p", t.F16, 16), k.ptr("q", t.I32)
        at = k.b.recast_iter(k.b.add_offset(p, 6), t.I32)
        k.b.ptr_store(k.b.ptr_load(k.b.add_offset(at, 2)), q)

    filecheck(build(fn).text(), "CHECK: getelementptr i8, ptr addrspace(1) %p, i64 20\nCHECK-NEXT: load i32")


def test_packed_elements_are_addressed_by_whole_bytes() -> None:
    def fn(k: Making) -> None:
        p, i, q = k.ptr("p", t.F6E2M3FN, 16), k.arg(t.I32, "i", divisibility=8), k.ptr("q", t.F6E2M3FN, 16)
        k.b.ptr_store(k.b.ptr_load(k.b.add_offset(k.b.add_offset(p, i), 4), 16), q)

    # 8 * 6 bits are 6 bytes: index >> 2 groups of 3 bytes.
    filecheck(
        build(fn).text(),
        """
        CHECK: %[[W:v[0-9]+]] = sext i32 %i to i64
        CHECK-NEXT: %[[G:v[0-9]+]] = ashr exact i64 %[[W]], 2
        CHECK-NEXT: %[[B:v[0-9]+]] = mul i64 %[[G]], 3
        CHECK-NEXT: getelementptr i8, ptr addrspace(1) %p, i64 %[[B]]
        CHECK-NEXT: getelementptr i8, {{.*}}, i64 3
        CHECK-NEXT: load <3 x i32>
        """,
    )


def test_a_packed_element_inside_a_byte_is_refused() -> None:
    def run_time(k: Making) -> None:
        p, i = k.ptr("p", t.F4E2M1FN), k.arg(t.I32, "i")
        k.b.ptr_store(k.b.ptr_load(k.b.add_offset(p, i), 2), p)

    def constant(k: Making) -> None:
        p = k.ptr("p", t.F4E2M1FN)
        k.b.ptr_store(k.b.ptr_load(k.b.add_offset(p, 3), 2), p)

    with pytest.raises(CodegenError, match=r"author.py:7.*\n.*a multiple of 2 \(fx.assume"):
        build(run_time).text()
    with pytest.raises(CodegenError, match="start at an element whose index times 4 is a multiple of 8"):
        build(constant).text()


def test_a_bool_takes_a_byte_of_memory() -> None:
    def fn(k: Making) -> None:
        k.b.ptr_store(k.b.ptr_load(k.b.add_offset(k.ptr("p", t.I1), 3)), k.ptr("q", t.I1))

    filecheck(
        build(fn).text(),
        """
        CHECK: getelementptr i8, ptr addrspace(1) %p, i64 3
        CHECK: load i8
        CHECK: trunc i8
        CHECK: zext i1
        CHECK: store i8
        """,
    )


def test_register_memory_is_a_private_slot_at_function_entry() -> None:
    def fn(k: Making) -> None:
        i = k.arg(t.I32, "i")
        p = k.ptr("p", t.F16)

        def body(index: object, *_: object) -> None:
            slot = k.b.get_iter(k.b.alloca(t.F16, Layout((4, 2), (1, 4))))
            k.b.ptr_store(k.b.ptr_load(p, 4), k.b.add_offset(slot, 4))
            k.b.ptr_store(k.b.ptr_load(k.b.add_offset(slot, 4), 4), p)

        k.b.for_(0, i, 1, [], body)

    filecheck(
        build(fn).text(),
        """
        CHECK: entry:
        CHECK-NEXT: %slot0 = alloca [8 x half], align 16, addrspace(5)
        CHECK: loop0:
        CHECK: %[[S:v[0-9]+]] = getelementptr i8, ptr addrspace(5) %slot0, i32 8
        CHECK: store <4 x half> {{.*}}, ptr addrspace(5) %[[S]], align 8
        """,
    )


def test_a_buffer_descriptor_is_made_from_the_whole_pointer() -> None:
    def fn(k: Making) -> None:
        p, n = k.ptr("p"), k.arg(t.I64, "n")
        buffer = k.b.make_buffer(k.b.add_offset(p, 16), n)
        k.b.ptr_store(k.b.ptr_load(k.b.add_offset(buffer, 2), 4), k.b.add_offset(buffer, k.b.thread_id()))

    filecheck(
        build(fn).text(),
        """
        CHECK: %[[P:v[0-9]+]] = getelementptr i8, ptr addrspace(1) %p, i64 64
        CHECK: %[[R:v[0-9]+]] = call ptr addrspace(8) @llvm.amdgcn.make.buffer.rsrc.p8.p1(
        CHECK-SAME: ptr addrspace(1) %[[P]], i16 0, i64 %n, i32 159744)
        CHECK: call <4 x i32> @llvm.amdgcn.raw.ptr.buffer.load.v4i32(ptr addrspace(8) %[[R]], i32 8, i32 0, i32 0)
        CHECK: call void @llvm.amdgcn.raw.ptr.buffer.store.v4i32(
        CHECK-SAME: ptr addrspace(8) %[[R]], i32 %{{.*}}, i32 0, i32 0)
        """,
    )


def test_pointers_and_numbers_convert() -> None:
    def fn(k: Making) -> None:
        n = k.op("fly.ptrtoint", [k.ptr("p")], [t.I64])
        q = k.op("fly.inttoptr", [n], [t.PtrType(t.F32, "global")])
        k.b.ptr_store(k.b.constant(1.0, t.F32), q)

    filecheck(build(fn).text(), "CHECK: ptrtoint ptr addrspace(1) %p to i64\nCHECK-NEXT: inttoptr i64")


def test_dynamic_lds_is_one_external_symbol() -> None:
    def fn(k: Making) -> None:
        p = k.b.dyn_shared(t.F32)
        k.b.ptr_store(k.b.constant(1.0, t.F32), k.b.add_offset(p, 4))

    filecheck(
        build(fn).text(),
        """
        CHECK: @flyllvm.dynamic_lds = external addrspace(3) global [0 x i8], align 1024
        CHECK: getelementptr i8, ptr addrspace(3) @flyllvm.dynamic_lds, i32 16
        """,
    )


def test_lds_that_nothing_touches_is_dropped() -> None:
    def fn(k: Making) -> None:
        k.b.shared(t.F32, 1 << 20, symbol="huge")
        used = k.b.shared(t.F32, 64, symbol="used")
        k.b.ptr_store(k.b.constant(1.0, t.F32), used)

    text = build(fn).text()
    filecheck(text, "CHECK: @used = internal addrspace(3) global [64 x i8] poison, align 16")
    assert "huge" not in text


@pytest.mark.parametrize(("arch", "limit"), [("gfx942", 65536), ("gfx950", 163840)])
def test_lds_over_the_targets_limit_is_refused(arch: str, limit: int) -> None:
    def fn(k: Making, size: int) -> None:
        one = k.b.constant(1.0, t.F32)
        for n, bytes in enumerate((size // 2, size - size // 2)):
            k.b.ptr_store(one, k.b.shared(t.F32, bytes, 4, f"part{n}"))

    assert build(lambda k: fn(k, limit), arch).text()
    with pytest.raises(TargetError, match=rf"{limit + 8} bytes of LDS .*has {limit} bytes.*\n.*smaller tiles"):
        build(lambda k: fn(k, limit + 8), arch).text()


def test_a_value_of_a_branch_that_is_never_taken_does_not_exist_after_it() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p")
        inner: list[Value] = []
        k.b.if_(k.b.constant(0, t.I1), lambda: inner.append(k.b.ptr_load(p)))
        k.b.ptr_store(inner[0], p)

    with pytest.raises(CodegenError, match="define values before their use"):
        build(fn).text()
