"""Barriers that lie in LDS: counts and phases by the manual's expression, and what arrivals order."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import mbarrier, simulate
from tests.sim.kernels import FENCED_BARRIER
from tests.sim.test_tensor import call, words

pytestmark = pytest.mark.sim
RELEASE, ACQUIRE = '  fence syncscope("workgroup") release\n', '  fence syncscope("workgroup") acquire\n'
ARRIVE = "  %old = call i64 @llvm.amdgcn.ds.atomic.barrier.arrive.rtn.b64(ptr addrspace(3) @bar, i64 1)\n"
ASYNC_ARRIVE = "  call void @llvm.amdgcn.ds.atomic.async.barrier.arrive.b64(ptr addrspace(3) @bar)\n"
STORE = "  store i32 %t, ptr addrspace(3) %mine, align 4\n"
READ = "  %v = load i32, ptr addrspace(3) %theirs, align 4\n  store i32 %v, ptr addrspace(1) %po, align 4\n"
ASYNC_LOAD = (
    "  %pi = getelementptr i32, ptr addrspace(1) %in, i32 %t\n"
    "  call void @llvm.amdgcn.global.load.async.to.lds.b32(ptr addrspace(1) %pi, ptr addrspace(3) %mine, "
    "i32 0, i32 0)\n"
)
WAIT = (
    "  br label %poll\npoll:\n  %state = load i64, ptr addrspace(3) @bar, align 8\n"
    "  call void @llvm.amdgcn.s.sleep(i32 1)\n  %sh = lshr i64 %state, 29\n  %ph = and i64 %sh, 1\n"
    "  %same = icmp eq i64 %ph, 0\n  br i1 %same, label %poll, label %through\nthrough:\n"
)


def kernel(body: str, missing: int) -> str:
    """Two waves of 32; the barrier wants ``missing`` arrivals more.  ``%mine`` and ``%theirs`` are words of LDS."""
    return f"""
@bar = internal addrspace(3) global i64 poison, align 8
@lds = internal addrspace(3) global [4096 x i8] poison, align 16
define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
entry:
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %w = lshr i32 %t, 5
  %mine = getelementptr i32, ptr addrspace(3) @lds, i32 %t
  %other = xor i32 %t, 63
  %theirs = getelementptr i32, ptr addrspace(3) @lds, i32 %other
  %po = getelementptr i32, ptr addrspace(1) %out, i32 %t
  %zero = icmp eq i32 %t, 0
  br i1 %zero, label %init, label %go
init:
  store i64 {missing - 1 << 32 | missing - 1}, ptr addrspace(3) @bar, align 8
  br label %go
go:
{FENCED_BARRIER}{body}  ret void
}}
"""


def run(body: str, missing: int, checks: str = "all") -> Any:
    source, out = np.arange(64, dtype=np.uint32) * 3 + 1, np.zeros(64, np.uint32)
    report = simulate(kernel(body, missing), grid=2, block=64, args=[source, out], target="gfx1250",
                      source_name="k.ll", checks=checks)  # fmt: skip
    assert any("29 bits, which is a setting of the chip" in w for w in report.warnings)
    return out


def handed(produce: str, consume: str = ACQUIRE) -> str:
    """Wave 0 produces; wave 1 waits for the phase and reads what wave 0 wrote."""
    return (
        "  %p = icmp eq i32 %w, 0\n  br i1 %p, label %produce, label %consume\n"
        f"produce:\n{produce}  br label %end\nconsume:\n{WAIT}{consume}{READ}  br label %end\nend:\n"
    )


def test_arrivals_follow_the_expression_of_the_manual() -> None:
    def expected(state: int, value: int) -> int:
        low = (state - value) % 2**32
        phase, pending = low >> 29, low % 2**29
        if pending >> 28:
            low = phase << 29 | state >> 32 & 0xFFFF
        return state >> 32 << 32 | low

    rng = np.random.default_rng(2)
    for _ in range(300):
        start, phase, left = (int(rng.integers(0, n)) for n in (2**16, 8, 6))
        state, value = start << 32 | phase << 29 | left, int(rng.integers(0, 8))
        got = mbarrier.arrived(np.array([state], np.uint64), np.array([value], np.uint64))
        assert int(got[0]) == expected(state, value)
    one = mbarrier.arrived(np.array([0], np.uint64), np.uint64(1))  # one arrival completes a phase
    assert int(one[0]) >> 29 & 1 == 1 and int(one[0]) & (2**29 - 1) == 0


def test_an_arrival_gives_the_state_before_it() -> None:
    body = ARRIVE + "  %c = trunc i64 %old to i32\n  store i32 %c, ptr addrspace(1) %po, align 4\n"
    out = run(body, 32)
    left = out & (2**29 - 1)
    # 64 lanes arrive in two phases of 32, each counting down to zero.
    assert sorted(left) == sorted([*range(32)] * 2) and set(out >> 29) == {0, 7}


@pytest.mark.parametrize("checks", ["none", "all"])
def test_a_wave_waits_for_the_phase_and_reads_what_was_released(checks: str) -> None:
    out = run(handed(STORE + RELEASE + ARRIVE), 32, checks)
    assert np.array_equal(out[32:], 63 - np.arange(32, 64))


@pytest.mark.parametrize("body", [handed(STORE + ARRIVE), handed(STORE + RELEASE + ARRIVE, "")])
def test_without_fences_it_is_a_race(body: str) -> None:
    with pytest.raises(SimError, match=r"LDS race on LDS byte .* of @lds: wave 1 and wave 0 are not ordered"):
        run(body, 32)


def test_the_asynchronous_arrival_comes_after_the_loads_before_it() -> None:
    out = run(handed(ASYNC_LOAD + ASYNC_ARRIVE), 32)
    assert np.array_equal(out[32:], 3 * (63 - np.arange(32, 64)) + 1)
    with pytest.raises(SimError, match="LDS race"):
        run(handed(ASYNC_LOAD + RELEASE + ARRIVE), 32)
    with pytest.raises(SimError, match="LDS race"):
        run(handed(ASYNC_ARRIVE + ASYNC_LOAD), 32)


def test_a_tensor_copy_arrives_when_it_is_complete() -> None:
    fields = {"data_size": 2, "tensor_dim0": 64, "tile_dim0": 64}
    groups = words(**fields, barrier=1)  # at address 0, where @bar is
    body = handed(call("tensor.load.to.lds", groups, "%in", "a"))
    assert np.array_equal(run(body, 1)[32:], 3 * (63 - np.arange(32, 64)) + 1)
    with pytest.raises(SimError, match="LDS race"):
        run(handed(call("tensor.load.to.lds", words(**fields), "%in", "a") + RELEASE + ARRIVE), 32)
    groups[1][1] |= 0x4000
    with pytest.raises(SimError, match="check the descriptor's barrier address"):
        run(handed(call("tensor.load.to.lds", groups, "%in", "a")), 1)


def test_a_wait_for_arrivals_that_never_come_is_an_endless_loop() -> None:
    with pytest.raises(SimError, match="an endless loop: nothing changes any more"):
        run(handed(STORE + RELEASE + ARRIVE), 33)
