"""Loads of LDS that nobody wrote: no fault while nothing uses what they gave."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import Simulator, simulate
from tests.sim.kernels import FENCED_BARRIER, LDS, STORE_OUT, kernel, line_of

pytestmark = pytest.mark.sim
PLACE = "%q = getelementptr i32, ptr addrspace(3) @lds, i32 %t\n"
AHEAD = PLACE + "%v = load i32, ptr addrspace(3) %q, align 4\n"
STORE_V = STORE_OUT.format(value="%v")
# The lanes below %n use the value that all of them loaded.
GUARDED = kernel(
    AHEAD + "%few = icmp ult i32 %t, %n\nbr i1 %few, label %use, label %end\nuse:\n" + STORE_V + "\nend:\nret void",
    params="ptr addrspace(1) %out, i32 %n",
    module=LDS,
)
# Every turn loads what the next one stores; only the first of four stages was written.
PIPELINE = kernel(
    f"""\
{PLACE}store i32 %t, ptr addrspace(3) %q, align 4
{FENCED_BARRIER}%v = load i32, ptr addrspace(3) %q, align 4
br label %loop
loop:
%i = phi i32 [ 0, %entry ], [ %i1, %turn ]
%held = phi i32 [ %v, %entry ], [ %ahead, %turn ]
%more = icmp ult i32 %i, %n
br i1 %more, label %turn, label %end
turn:
%i1 = add i32 %i, 1
%row = mul i32 %i, 256
%at = add i32 %row, %t
%p = getelementptr i32, ptr addrspace(1) %out, i32 %at
store i32 %held, ptr addrspace(1) %p, align 4
%skip = mul i32 %i1, 256
%b = getelementptr i32, ptr addrspace(3) %q, i32 %skip
%ahead = load i32, ptr addrspace(3) %b, align 4
br label %loop
end:
ret void""",
    params="ptr addrspace(1) %out, i32 %n",
    module=LDS.replace("256", "1024"),
)


def run(text: str, n: int, checks: str = "default", **options: Any) -> np.ndarray:
    out = np.full(1024, 7, np.uint32)
    simulate(text, grid=1, block=256, args=[out, n], source_name="k.ll", checks=checks, **options)
    return out


@pytest.mark.parametrize("checks", ["default", "all"])
def test_a_value_that_no_running_lane_uses_does_no_harm(checks: str) -> None:
    assert (run(GUARDED, 0, checks) == 7).all()


def test_a_use_is_found_in_the_lanes_that_use_it_and_names_the_load() -> None:
    with pytest.raises(SimError) as caught:
        run(GUARDED, 3)
    message = str(caught.value)
    assert message.startswith(f"k.ll:{line_of(GUARDED, '%v = load')}: '%v = load")
    assert "read of uninitialised LDS byte 0 of @lds, whose value is used at k.ll:" in message
    assert "lanes 0-2" in message
    assert "by 'store i32 %v" in message


def test_a_pipeline_may_load_a_stage_too_many() -> None:
    out = run(PIPELINE, 1)
    assert (out[:256] == np.arange(256)).all() and (out[256:] == 7).all()


def test_a_value_is_followed_through_a_phi_to_its_use() -> None:
    with pytest.raises(SimError, match=r"'%ahead = load .*uninitialised LDS byte 1024 of @lds, whose value is used"):
        run(PIPELINE, 2)


def test_another_load_into_the_same_value_forgets_the_first() -> None:
    """The first turn loads what nobody wrote and does not use it; the second loads what was written, and does."""
    body = f"""\
br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ 1, %next ]
  {PLACE}  %v = load i32, ptr addrspace(3) %q, align 4
  %first = icmp eq i32 %i, 0
  br i1 %first, label %next, label %use
next:
  store i32 5, ptr addrspace(3) %q, align 4
  br label %loop
use:
  {STORE_V}"""
    text = kernel(body, params="ptr addrspace(1) %out, i32 %n", module=LDS)
    assert (run(text, 0)[:256] == 5).all()


def test_a_use_in_the_same_block_and_no_use_at_all_are_faults_at_the_load() -> None:
    for rest in (STORE_V, "ret void"):
        text = kernel(AHEAD + rest, params="ptr addrspace(1) %out, i32 %n", module=LDS)
        with pytest.raises(SimError, match=r"'%v = load .*: read of uninitialised LDS byte 0 of @lds \(workgroup"):
            run(text, 0)


def test_stepping_finds_it_too() -> None:
    simulator = Simulator(GUARDED, grid=1, block=256, args=[np.zeros(1024, np.uint32), 3], source_name="k.ll")
    with pytest.raises(SimError, match="whose value is used"):
        simulator.run()


def test_transposing_loads_give_lanes_what_others_read() -> None:
    body = """\
%q = getelementptr i8, ptr addrspace(3) @lds, i32 %o
%wrong = icmp eq i32 %t, 0
%x4 = call <4 x i16> @llvm.amdgcn.ds.read.tr16.b64.v4i16(ptr addrspace(3) %q)
br i1 {condition}, label %use, label %end
use:
  %x = extractelement <4 x i16> %x4, i32 0
  %z = zext i16 %x to i32
  store i32 %z, ptr addrspace(1) %out, align 4
  ret void
end:
  ret void"""
    lds = "@lds = internal addrspace(3) global [2048 x i8] poison, align 16\n"
    lds += "declare <4 x i16> @llvm.amdgcn.ds.read.tr16.b64.v4i16(ptr addrspace(3))\n"
    for condition, fails in (("false", False), ("%wrong", True)):
        text = kernel("%o = mul i32 %t, 8\n" + body.format(condition=condition), module=lds)
        args = [np.zeros(4, np.uint32)]
        if not fails:
            simulate(text, grid=1, block=64, args=args, target="gfx950")
            continue
        with pytest.raises(SimError, match=r"'%x4 = call.*uninitialised.*whose value is used"):
            simulate(text, grid=1, block=64, args=args, target="gfx950")
