"""The barrier of a cluster of workgroups: who waits for whom, and what it orders."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate

pytestmark = pytest.mark.sim
WHOLE = "  call void @llvm.amdgcn.s.cluster.barrier()\n"
BARRIER = "  call void @llvm.amdgcn.s.barrier()\n"
RELEASE, ACQUIRE = '  fence syncscope("cluster") release\n', '  fence syncscope("cluster") acquire\n'
SIGNAL = "  call void @llvm.amdgcn.s.barrier.signal(i32 -3)\n"
WAIT = "  call void @llvm.amdgcn.s.barrier.wait(i16 -3)\n"
STORE = "  store i32 %id, ptr addrspace(1) %mine, align 4\n"
# One wave of each workgroup signals the cluster's barrier, behind the workgroup's own.
BY_HAND = (
    f"{BARRIER}  %first = icmp eq i32 %w, 0\n  br i1 %first, label %tell, label %go\n"
    f"tell:\n{SIGNAL}  br label %go\ngo:\n{WAIT}"
)
READ = "  %v = load i32, ptr addrspace(1) %theirs, align 4\n  store i32 %v, ptr addrspace(1) %po, align 4\n"


def kernel(body: str, dims: str = "2,1,1") -> str:
    """Workgroups of two waves; ``%g`` is the workgroup on x, ``%mine`` its memory, ``%theirs`` that of its partner."""
    attrs = f'"amdgpu-cluster-dims"="{dims}"' if dims else ""
    return f"""
define amdgpu_kernel void @k(ptr addrspace(1) %mem, ptr addrspace(1) %out, i32 %nx) {attrs} {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = lshr i32 %t, 5
  %g = call i32 @llvm.amdgcn.workgroup.id.x()
  %gy = call i32 @llvm.amdgcn.workgroup.id.y()
  %row = mul i32 %gy, %nx
  %lin = add i32 %row, %g
  %base = mul i32 %lin, 64
  %id = add i32 %base, %t
  %mine = getelementptr i32, ptr addrspace(1) %mem, i32 %id
  %other = xor i32 %id, 127
  %theirs = getelementptr i32, ptr addrspace(1) %mem, i32 %other
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %id
{body}  ret void
}}
"""


def run(body: str, grid: Any = 4, dims: str = "2,1,1", **options: Any) -> np.ndarray:
    nx, ny = grid if isinstance(grid, tuple) else (grid, 1)
    mem, out = np.zeros((2, nx * ny * 64), np.uint32)
    options.setdefault("checks", "all")
    simulate(kernel(body, dims), grid=grid, block=64, args=[mem, out, nx], target="gfx1250", source_name="k.ll",
             **options)  # fmt: skip
    return out


def fails(body: str, message: str, **options: Any) -> str:
    with pytest.raises(SimError, match=message) as caught:
        run(body, **options)
    return str(caught.value)


def mirrored(groups: int) -> np.ndarray:
    return np.arange(groups * 64) ^ 127


@pytest.mark.parametrize("barrier", [WHOLE, BY_HAND], ids=["whole", "by hand"])
def test_a_cluster_exchanges_data_through_global_memory(barrier: str) -> None:
    assert np.array_equal(run(STORE + RELEASE + barrier + ACQUIRE + READ), mirrored(4))


@pytest.mark.parametrize(
    "body",
    [STORE + RELEASE + BARRIER + ACQUIRE + READ, STORE + WHOLE + ACQUIRE + READ, STORE + RELEASE + WHOLE + READ],
    ids=["barrier of the workgroup", "no release", "no acquire"],
)
def test_without_barrier_or_fences_it_is_a_race(body: str) -> None:
    fails(body, "race on byte .* not ordered with 'store i32 %id.*' at k.ll:")


def test_workgroups_of_a_cluster_run_at_once_wherever_they_are_in_the_grid() -> None:
    """More workgroups than run together otherwise; partners in x, clusters of two in y as well."""
    out = run(STORE + RELEASE + WHOLE + ACQUIRE + READ, grid=(2, 302), dims="2,2,1", checks="none")
    assert np.array_equal(out, mirrored(604))


def test_a_loop_of_whole_cluster_barriers() -> None:
    body = (
        "  br label %loop\nloop:\n  %i = phi i32 [ 0, %entry ], [ %i1, %loop ]\n"
        "  %x = phi i32 [ %id, %entry ], [ %y1, %loop ]\n  store i32 %x, ptr addrspace(1) %mine, align 4\n"
        f"{RELEASE}{WHOLE}{ACQUIRE}  %y = load i32, ptr addrspace(1) %theirs, align 4\n"
        f"{RELEASE}{WHOLE}{ACQUIRE}  %y1 = add i32 %y, 1\n  %i1 = add i32 %i, 1\n  %more = icmp ult i32 %i1, 5\n"
        "  br i1 %more, label %loop, label %end\nend:\n  store i32 %y1, ptr addrspace(1) %po, align 4\n"
    )
    assert np.array_equal(run(body), mirrored(4) + 5)


def test_without_clusters_it_is_the_barrier_of_the_workgroup() -> None:
    for barrier in (WHOLE, BY_HAND):
        body = STORE + barrier + READ.replace("%theirs", "%mine")
        assert np.array_equal(run(body, dims=""), np.arange(256))


def test_a_workgroup_that_returned_is_not_waited_for() -> None:
    leaves = "  %odd = and i32 %g, 1\n  %l = icmp eq i32 %odd, 1\n  br i1 %l, label %end, label %stay\nstay:\n"
    body = leaves + WHOLE + "  store i32 %id, ptr addrspace(1) %po, align 4\n  br label %end\nend:\n"
    assert np.array_equal(run(body).reshape(4, 64).any(axis=1), [True, False, True, False])


def test_a_workgroup_that_waits_without_a_signal_is_a_deadlock() -> None:
    body = f"  %one = icmp eq i32 %g, 1\n  br i1 %one, label %go, label %s\ns:\n{WHOLE}  br label %end\n"
    body += f"go:\n{WAIT}  br label %end\nend:\n"
    fails(body, "(?s)deadlock: .*one wave of every workgroup of the cluster must signal its barrier")


def test_wrong_uses_are_faults() -> None:
    fails(SIGNAL + WAIT, "let one wave of each workgroup signal it, or call s.cluster.barrier")
    one = f"  %f = icmp eq i32 %w, 0\n  br i1 %f, label %s, label %e\ns:\n{SIGNAL}"
    fails(f"{one}{SIGNAL}  br label %e\ne:\n{WAIT}",
          "(?s)complete more than once .*every wave of the cluster must wait for it each time")  # fmt: skip
    only = one.replace("%w, 0", "%id, 0").replace("br i1 %f", "%first = icmp ult i32 %id, 32\n  br i1 %first")
    fails(f"{only}{SIGNAL}  br label %e\ne:\n{WAIT}", "signals the cluster's barrier again before it is complete")
    fails(WHOLE, "launch whole clusters", grid=3)
    fails(WHOLE, "the size of a cluster is not known", dims="1024,1024,1024")
