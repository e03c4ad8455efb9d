"""Transposing loads give the same on both engines."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from flyllvm.sim.matrix_transpose import LOADS
from tests.sim.engines import both
from tests.sim.kernels import FENCED_BARRIER

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
LANES = 128
TYPES = {
    8: ["<2 x i32>", "<4 x half>", "<4 x i16>", "<4 x bfloat>", "i64"],
    12: ["<3 x i32>"],
    16: ["<8 x half>", "<8 x i16>", "<8 x bfloat>", "<4 x i32>"],
}
SUFFIXES = {"<2 x i32>": "v2i32", "<4 x half>": "v4f16", "<4 x i16>": "v4i16", "<4 x bfloat>": "v4bf16", "i64": "i64",
            "<3 x i32>": "v3i32", "<8 x half>": "v8f16", "<8 x i16>": "v8i16", "<8 x bfloat>": "v8bf16",
            "<4 x i32>": "v4i32"}  # fmt: skip


def kernel(name: str, t: str, size: int, where: str = "") -> str:
    """Each lane reads the bytes of another one, in global memory or in LDS; ``where`` says which lanes."""
    in_lds = name.startswith("ds.")
    space = "addrspace(3)" if in_lds else "addrspace(1)"
    branch = f"%c = icmp ult i32 %t, {where}\n  br i1 %c, label %go, label %end\ngo:" if where else ""
    over = "br label %end\nend:" if where else ""
    return f"""
@lds = internal addrspace(3) global [{LANES * size} x i8] poison, align 16

define amdgpu_kernel void @k(ptr addrspace(1) %in, ptr addrspace(1) %out) {{
  %t = call i32 @llvm.amdgcn.workitem.id.x()
  %o = mul i32 %t, {size}
  %a = getelementptr i8, ptr addrspace(1) %in, i32 %o
  %l = getelementptr i8, ptr addrspace(3) @lds, i32 %o
  %v = load <{size // 4} x i32>, ptr addrspace(1) %a, align 4
  store <{size // 4} x i32> %v, ptr addrspace(3) %l, align 4
  {FENCED_BARRIER}
  {branch}
  %x = mul i32 %t, 37
  %y = and i32 %x, {LANES - 1}
  %z = mul i32 %y, {size}
  %p = getelementptr i8, ptr {space} {"@lds" if in_lds else "%in"}, i32 %z
  %r = call {t} @llvm.amdgcn.{name}.{SUFFIXES[t]}(ptr {space} %p)
  %q = getelementptr i8, ptr addrspace(1) %out, i32 %o
  store {t} %r, ptr addrspace(1) %q, align 4
  {over}
  ret void
}}
"""


@pytest.mark.parametrize("name", LOADS)
def test_every_transposing_load_agrees(name: str) -> None:
    load = LOADS[name]
    rng = np.random.default_rng(0)
    for t in TYPES[load.lane_bytes]:
        data = rng.integers(0, 256, LANES * load.lane_bytes).astype(np.uint8)
        out = np.zeros_like(data)
        for target in load.targets:
            reports = both(
                kernel(name, t, load.lane_bytes), grid=1, block=LANES, args=[data, out], target=target,
                wave_size=64 if target == "gfx950" else 32,
            )  # fmt: skip
            assert out.any() and bool(reports[1].warnings) == load.disputed


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_lanes_that_do_not_run_are_the_same_fault(engine: str) -> None:
    data = np.zeros(LANES * 8, np.uint8)
    text = kernel("ds.read.tr16.b64", "<4 x half>", 8, "70")
    with pytest.raises(SimError, match="a transposing load with inactive lanes"):
        simulate(text, grid=1, block=LANES, args=[data, data.copy()], target="gfx950", checks="none", engine=engine)


def test_waves_that_do_not_run_are_left_out() -> None:
    data = np.random.default_rng(1).integers(0, 256, LANES * 8).astype(np.uint8)
    out = np.zeros_like(data)
    both(kernel("ds.read.tr8.b64", "<2 x i32>", 8, "64"), grid=1, block=LANES, args=[data, out], target="gfx950")
    assert out[: 64 * 8].any() and not out[64 * 8 :].any()


@pytest.mark.parametrize("engine", ["numpy", "jit"])
def test_bytes_past_the_end_are_the_same_fault(engine: str) -> None:
    data = np.zeros(LANES * 8, np.uint8)
    text = kernel("ds.read.tr16.b64", "<4 x half>", 8).replace("mul i32 %y, 8", "mul i32 %y, 9")
    with pytest.raises(SimError, match="8 bytes out of bounds"):
        simulate(text, grid=1, block=LANES, args=[data, data.copy()], target="gfx950", checks="none", engine=engine)
