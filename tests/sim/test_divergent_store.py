"""A store to one address in a branch that few lanes take: their value counts, not that of a lane outside."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm import simulate

TEXT = """
@cell = internal addrspace(3) global [4 x i8] poison, align 4
define amdgpu_kernel void @k(ptr addrspace(1) %y) {
entry:
  %id = call i32 @llvm.amdgcn.workitem.id.x()
  %mine = icmp eq i32 %id, LANE
  br i1 %mine, label %a, label %b
a:
  store i32 %id, ptr addrspace(3) @cell, align 4
  %seen = load i32, ptr addrspace(3) @cell, align 4
  %more = add i32 %seen, 100
  store i32 %more, ptr addrspace(1) %y, align 4
  br label %b
b:
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""


@pytest.mark.sim
@pytest.mark.parametrize("lane", [0, 7, 63])
def test_the_running_lane_decides_what_is_stored(lane: int) -> None:
    y = np.zeros(1, np.int32)
    simulate(TEXT.replace("LANE", str(lane)), kernel="k", grid=(1, 1, 1), block=(64, 1, 1), args=[y], target="gfx942")
    assert y[0] == lane + 100
