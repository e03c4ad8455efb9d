"""Intrinsics between the lanes of a wave give the same on both engines, where all lanes run and where some do."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim.engines import both
from tests.sim.kernels import STORE_OUT, kernel

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
PARAMS = "ptr addrspace(1) %in, ptr addrspace(1) %out"
LOAD = (
    "%pi = getelementptr i32, ptr addrspace(1) %in, i32 %t\n%x = load i32, ptr addrspace(1) %pi, align 4\n"
    "%y = xor i32 %x, %t\n%z = lshr i32 %y, 7\n"
)
SOME = "%bit = and i32 %x, 3\n%c = icmp ne i32 %bit, 0\nbr i1 %c, label %go, label %end\ngo:\n"
END = "br label %end\nend:\n%r = phi i32 [ -1, %entry ], [ %v, %go ]\n"

#: Target, instructions that give ``%v``, and whether they may read lanes that do not run.
ROWS = {
    "dpp8": ("gfx1100", "%v = call i32 @llvm.amdgcn.mov.dpp8.i32(i32 %x, i32 5349157)", False),
    "permute": ("gfx942", "%v = call i32 @llvm.amdgcn.ds.permute(i32 %z, i32 %x)", False),
    "bpermute_fi": ("gfx1250", "%v = call i32 @llvm.amdgcn.ds.bpermute.fi.b32(i32 %z, i32 %x)", True),
    "shuffle": ("gfx942", "%v = call i32 @llvm.amdgcn.wave.shuffle.i32(i32 %x, i32 %z)", True),
    "index": ("gfx1250", "%v = call i32 @llvm.amdgcn.permlane.idx.gen(i32 %z, i32 8)", False),
    **{
        f"{kind}_{width}_{amount}": (
            "gfx1250", f"%v = call i32 @llvm.amdgcn.permlane.{kind}(i32 %x, i32 {amount}, i32 {width})", True,
        )
        for kind in ("bcast", "up", "down", "xor") for width in (0, 4, 16, 32, 7, 64) for amount in (0, 3, 17, -1)
    },
    **{
        f"{name}_{inactive}_{bound}": (
            "gfx1200", f"%v = call i32 @llvm.amdgcn.{name}(i32 %t, i32 %x, i32 %z, i1 {inactive}, i1 {bound})",
            inactive == "true",
        )
        for name in ("permlane16.var", "permlanex16.var") for inactive in ("false", "true")
        for bound in ("false", "true")
    },
    **{
        f"reduce_{name}": ("gfx942", f"%v = call i32 @llvm.amdgcn.wave.reduce.{name}.i32(i32 %x, i32 0)", False)
        for name in ("add", "sub", "and", "or", "xor", "umin", "umax", "min", "max")
    },
    **{
        f"reduce_{name}": (
            "gfx942", f"%f = sitofp i32 %y to float\n%s = call float @llvm.amdgcn.wave.reduce.{name}.f32(float %f, "
            "i32 0)\n%v = bitcast float %s to i32", False,
        )
        for name in ("fadd", "fsub", "fmin", "fmax")
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_all_lanes_agree(name: str) -> None:
    target, body, _ = ROWS[name]
    data = np.random.default_rng(0).integers(0, 1 << 32, 128, dtype=np.uint32)
    out = np.full(128, -7, np.int32)
    text = kernel(LOAD + body + "\n" + STORE_OUT.format(value="%v"), PARAMS)
    both(text, grid=1, block=128, args=[data, out], target=target, wave_size=64 if target == "gfx942" else 32)
    assert (out != -7).any()


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if not row[2]])
def test_some_lanes_agree(name: str) -> None:
    target, body, _ = ROWS[name]
    data = np.random.default_rng(1).integers(0, 1 << 32, 128, dtype=np.uint32)
    data[32:64] &= 0xFFFFFFFC  # a wave of 32 in which none runs
    text = kernel(LOAD + SOME + body + "\n" + END + STORE_OUT.format(value="%r"), PARAMS)
    out = np.full(128, -7, np.int32)
    both(text, grid=1, block=100, args=[data, out], target=target, wave_size=64 if target == "gfx942" else 32)
    assert (out != -7).any()


@pytest.mark.parametrize("name", ["shuffle", "bpermute_fi", "xor_0_17"])
def test_lanes_that_do_not_run_are_left_to_the_first_engine(name: str) -> None:
    target, body, _ = ROWS[name]
    data = np.random.default_rng(1).integers(0, 1 << 32, 128, dtype=np.uint32)
    text = kernel(LOAD + SOME + body + "\n" + END + STORE_OUT.format(value="%r"), PARAMS)
    report = simulate(
        text, grid=1, block=128, args=[data, np.zeros(128, np.int32)], target=target, checks="none", engine="jit"
    )
    assert report.engine == "numpy" and "read registers of inactive lanes" in report.engine_note


def test_groups_that_are_no_power_of_two_are_the_same_fault() -> None:
    body = LOAD + ROWS["index"][1].replace("i32 8", "i32 6") + "\n" + STORE_OUT.format(value="%v")
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError, match=r"groups of 6 lanes[^\n]*\n.*give a power of two"):
            simulate(
                kernel(body, PARAMS), grid=1, block=32, args=[np.zeros(32, np.uint32), np.zeros(32, np.uint32)],
                target="gfx1250", checks="none", engine=engine,
            )  # fmt: skip
