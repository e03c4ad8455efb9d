"""Clusters of workgroups on both engines: ids and shared loads; barriers of clusters are left to the first."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.engines import both
from tests.sim.kernels import FENCED_BARRIER

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
IDS = [*(f"cluster.{what}.{axis}" for what in ("id", "workgroup.id", "workgroup.max.id") for axis in "xyz"),
       "cluster.workgroup.flat.id", "cluster.workgroup.max.flat.id"]  # fmt: skip
DIMS = '"amdgpu-cluster-dims"="{}"'
WAIT = "  call void @llvm.amdgcn.s.wait.asynccnt(i16 0)\n"


def module(body: str, attrs: str = "", params: str = "ptr addrspace(1) %out") -> str:
    return (
        "@lds = internal addrspace(3) global [512 x i8] poison, align 16\n"
        f"define amdgpu_kernel void @k({params}) {attrs} {{\n  %t = call i32 @llvm.amdgcn.workitem.id.x()\n"
        + body + "  ret void\n}\n"
    )  # fmt: skip


def ids_of() -> str:
    lines = [f"  %g{axis} = call i32 @llvm.amdgcn.workgroup.id.{axis}()" for axis in "xyz"]
    lines += ["  %p0 = mul i32 %gz, 3", "  %p1 = add i32 %p0, %gy", "  %p2 = mul i32 %p1, 4", "  %p = add i32 %p2, %gx"]
    for i, name in enumerate(IDS):
        lines += [
            f"  %v{i} = call i32 @llvm.amdgcn.{name}()", f"  %m{i} = mul i32 %p, {len(IDS)}",
            f"  %n{i} = add i32 %m{i}, {i}", f"  %q{i} = getelementptr i32, ptr addrspace(1) %out, i32 %n{i}",
            f"  store i32 %v{i}, ptr addrspace(1) %q{i}, align 4",
        ]  # fmt: skip
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("dims", ["2,1,2", "4,3,1", "1,1,1", ""])
def test_ids_agree(dims: str) -> None:
    out = np.full(4 * 3 * 2 * len(IDS), -1, np.int32)
    both(module(ids_of(), DIMS.format(dims) if dims else ""), grid=(4, 3, 2), block=32, args=[out], target="gfx1250")
    assert (out >= 0).all()


def test_a_grid_of_parts_of_clusters_is_the_same_fault() -> None:
    text, out = module(ids_of(), DIMS.format("2,1,2")), np.zeros(1000, np.int32)
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError, match="launch whole clusters"):
            simulate(text, grid=(3, 3, 2), block=32, args=[out], target="gfx1250", checks="none", engine=engine)


@pytest.mark.parametrize("name", ["cluster.load.{}.{}", "global.load.monitor.{}.{}"])
@pytest.mark.parametrize(("width", "t", "suffix"), [(4, "i32", "i32"), (8, "<2 x i32>", "v2i32"),
                                                    (16, "<4 x i32>", "v4i32")])  # fmt: skip
def test_shared_loads_agree(name: str, width: int, t: str, suffix: str) -> None:
    last = "i32 0, i32 3" if name.startswith("cluster") else "i32 0, metadata !0"
    body = (
        f"  %o = mul i32 %t, {width}\n  %p = getelementptr i8, ptr addrspace(1) %in, i32 %o\n"
        f"  %v = call {t} @llvm.amdgcn.{name.format(f'b{8 * width}', suffix)}(ptr addrspace(1) %p, {last})\n"
        f"  %q = getelementptr i8, ptr addrspace(1) %out, i32 %o\n  store {t} %v, ptr addrspace(1) %q, align 4\n"
    )
    text = module(body, params="ptr addrspace(1) %in, ptr addrspace(1) %out") + '\n!0 = !{!"agent"}\n'
    data = np.random.default_rng(0).integers(0, 256, 32 * width).astype(np.uint8)
    out = np.zeros_like(data)
    both(text, grid=1, block=32, args=[data, out], target="gfx1250")
    assert (out == data).all()


def test_shared_copies_to_lds_agree() -> None:
    body = (
        "  %o = mul i32 %t, 16\n  %p = getelementptr i8, ptr addrspace(1) %in, i32 %o\n"
        "  %l = getelementptr i8, ptr addrspace(3) @lds, i32 %o\n"
        "  call void @llvm.amdgcn.cluster.load.async.to.lds.b128(ptr addrspace(1) %p, ptr addrspace(3) %l, i32 0, "
        "i32 0, i32 3)\n" + WAIT + FENCED_BARRIER
        + "  %v = load <4 x i32>, ptr addrspace(3) %l, align 4\n"
        "  %q = getelementptr i8, ptr addrspace(1) %out, i32 %o\n  store <4 x i32> %v, ptr addrspace(1) %q, align 4\n"
    )  # fmt: skip
    data = np.random.default_rng(0).integers(0, 256, 512).astype(np.uint8)
    out = np.zeros_like(data)
    text = module(body, params="ptr addrspace(1) %in, ptr addrspace(1) %out")
    both(text, grid=1, block=32, args=[data, out], target="gfx1250")
    assert (out == data).all()


@pytest.mark.parametrize(
    "barrier",
    ["call void @llvm.amdgcn.s.cluster.barrier()",
     "call void @llvm.amdgcn.s.barrier.signal(i32 -3)\n  call void @llvm.amdgcn.s.barrier.wait(i16 -3)"],
)  # fmt: skip
def test_barriers_of_clusters_are_left_to_the_first_engine(barrier: str) -> None:
    text = module(f"  {barrier}\n", DIMS.format("2,1,1"))
    with pytest.raises(SimError, match=r"uses what the second engine does not cover: line .*barrier"):
        simulate(text, grid=2, block=32, args=[np.zeros(1, np.int32)], target="gfx1250", checks="none", engine="jit")
