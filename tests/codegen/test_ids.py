"""Ids, barriers, fences and raw intrinsics in the emitted text."""

from __future__ import annotations

import pytest

from flyllvm.errors import CodegenError
from flyllvm.ir import types as t
from flyllvm.layout import Layout
from tests.codegen.kernels import Making, build, filecheck


def test_ids_know_their_range_and_constants() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", t.I32)
        b = k.b
        ids = [b.thread_id("x"), b.block_id("z"), b.lane_id()]
        ids.append(k.op("gpu.block_dim", [], [t.I32], dimension="y"))
        ids.append(k.op("gpu.thread_id", [], [t.I32], dimension="z"))
        for i, v in enumerate(ids):
            b.ptr_store(v, b.add_offset(p, i))

    text = build(fn, known_block_size=(128, 2, 1)).text()
    filecheck(
        text,
        """
        CHECK: call range(i32 0, 128) i32 @llvm.amdgcn.workitem.id.x()
        CHECK: call i32 @llvm.amdgcn.workgroup.id.z()
        CHECK: %[[L:v[0-9]+]] = call i32 @llvm.amdgcn.mbcnt.lo(i32 -1, i32 0)
        CHECK: call i32 @llvm.amdgcn.mbcnt.hi(i32 -1, i32 %[[L]])
        CHECK: store i32 2
        CHECK: store i32 0
        """,
    )
    flat = build(fn, known_block_size=(128, 1, 1)).text()
    assert "mbcnt" not in flat and "and i32 %v0, 63" in flat


@pytest.mark.parametrize(("cov", "source"), [(500, "implicitarg.ptr"), (400, "dispatch.ptr")])
def test_an_unknown_block_size_is_read_from_where_the_version_keeps_it(cov: int, source: str) -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", t.I32)
        k.b.ptr_store(k.op("gpu.block_dim", [], [t.I32], dimension="x"), p)
        k.b.ptr_store(k.op("gpu.grid_dim", [], [t.I32], dimension="x"), k.b.add_offset(p, 1))

    text = build(fn).text(cov=cov)
    filecheck(text, f"CHECK: @llvm.amdgcn.{source}()\nCHECK: load i16, {{{{.*}}}} !invariant.load")
    attribute = "implicitarg-ptr" if cov == 500 else "dispatch-ptr"
    assert f'"amdgpu-no-{attribute}"' not in text and '"amdgpu-no-queue-ptr"' in text


def test_a_barrier_stands_between_its_fences() -> None:
    filecheck(
        build(lambda k: k.b.barrier()).text(),
        """
        CHECK: fence syncscope("workgroup") release
        CHECK-NEXT: call void @llvm.amdgcn.s.barrier()
        CHECK-NEXT: fence syncscope("workgroup") acquire
        """,
    )
    assert "fence" not in build(lambda k: k.b.barrier(fence=False)).text()


def test_a_fence_of_its_own_keeps_its_scope() -> None:
    def fn(k: Making) -> None:
        k.b.emit("llvm.fence", [], [], {"ordering": "acq_rel", "syncscope": "agent"})
        k.b.emit("llvm.fence", [], [], {"ordering": "seq_cst", "syncscope": None})

    filecheck(build(fn).text(), 'CHECK: fence syncscope("agent") acq_rel\nCHECK-NEXT: fence seq_cst')


def test_intrinsic_calls_take_values_and_immediates_in_their_places() -> None:
    def fn(k: Making) -> None:
        p = k.ptr("p", t.I32)
        x = k.b.ptr_load(p)
        y = k.b.intrinsic("llvm.amdgcn.ds.swizzle", t.I32, [x, 0x8041])
        k.b.intrinsic("llvm.amdgcn.sched.barrier", None, [0])
        assert y is not None
        k.b.ptr_store(k.b.readfirstlane(y), p)

    filecheck(
        build(fn).text(),
        """
        CHECK: call i32 @llvm.amdgcn.ds.swizzle(i32 %{{v[0-9]+}}, i32 32833)
        CHECK: call void @llvm.amdgcn.sched.barrier(i32 0)
        CHECK: call i32 @llvm.amdgcn.readfirstlane.i32
        """,
    )


def test_operations_that_passes_expand_are_refused_by_name() -> None:
    def fn(k: Making) -> None:
        m = k.b.alloca(t.F32, Layout(4, 1))
        k.b.emit("fly.memref.load_vec", [m], [t.VectorType(4, t.F32)])

    with pytest.raises(CodegenError, match=r"author.py:7: fly.memref.load_vec.*\n.*passes.expand"):
        build(fn).text()
