"""Tensor copies give the same on both engines: in the tests of the first one, and for random descriptors."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate
from tests.sim import test_tensor
from tests.sim.engines import Comparing, both
from tests.sim.test_tensor import WAIT, call, module, words

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
globals().update({name: test for name, test in vars(test_tensor).items() if name.startswith("test_")})


@pytest.fixture(autouse=True)
def on_both(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    comparing = Comparing(monkeypatch)
    monkeypatch.setattr(test_tensor, "simulate", lambda *a, profile=False, **launch: comparing.simulate(*a, **launch))
    yield
    assert all("barrier" in what or "global" in what for what in comparing.declined), comparing.declined


LDS_BYTES, MEMORY_BYTES = 1 << 14, 1 << 16


def descriptor(rng: np.random.Generator, loads: bool) -> list[list[int]]:
    """Any tile that fits."""
    size = int(rng.integers(4))
    fields: dict[str, int] = {"data_size": size}
    tile = [int(n) for n in rng.integers(0, 5, 5)]
    tile[0] = int(rng.integers(size < 2, 12)) * (4 if size == 0 else 2 if size == 1 else 1)
    for i, n in enumerate(tile):
        fields[f"tile_dim{i}"] = n
        fields[f"tensor_dim{i}"] = int(rng.integers(0, n + 3))
        if i:
            fields[f"stride{i - 1}"] = int(rng.integers(0, 60))
    rows: list[int] = []
    form = rng.integers(4)
    if form == 0:
        fields |= {"gather": 1, "index_32": int(rng.integers(2)), "tile_dim1": int(rng.integers(0, 9)),
                   "tensor_dim1": 40}  # fmt: skip
        rows = [int(n) for n in rng.integers(0, 60, 8)]
        for name in ("tensor_dim2", "tensor_dim3", "stride2", "tile_dim3", "stride3", "tensor_dim4", "tile_dim4"):
            fields[name] = 0
    elif form == 1:
        fields |= {"iterate": 1, "tile_dim3": int(rng.integers(0, 3)), "tensor_dim3": int(rng.integers(0, 99)),
                   "stride2": int(rng.integers(0, 99))}  # fmt: skip
    if loads and rng.integers(2):
        fields |= {"pad_enable": 1, "pad_interval": int(rng.integers(8)), "pad_amount": int(rng.integers(4))}
    return words(rows=rows, **fields)


@pytest.mark.parametrize("seed", range(6))
def test_random_tiles_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    body, fill = "", words(data_size=3, tensor_dim0=LDS_BYTES // 8, tile_dim0=LDS_BYTES // 8)
    for i in range(12):
        d2 = bool(rng.integers(2))
        body += call("tensor.load.to.lds", fill, "%in", f"f{i}") + WAIT
        body += call("tensor.load.to.lds", descriptor(rng, True), "%in", f"a{i}", d2=d2) + WAIT
        body += call("tensor.store.from.lds", descriptor(rng, False), "%out", f"b{i}") + WAIT
    back = words(data_size=3, tensor_dim0=LDS_BYTES // 8, tile_dim0=LDS_BYTES // 8)
    body += "  %rest = getelementptr i8, ptr addrspace(1) %out, i32 65536\n"
    body += call("tensor.store.from.lds", back, "%rest", "z") + WAIT
    data = rng.integers(0, 256, MEMORY_BYTES).astype(np.uint8)
    out = np.zeros(MEMORY_BYTES + LDS_BYTES, np.uint8)
    both(module(body, LDS_BYTES), grid=1, block=64, args=[data, out], target="gfx1250")
    assert out.any()


@pytest.mark.parametrize("masked", [False, True])
def test_each_wave_has_its_own_descriptor(masked: bool) -> None:
    load = words(data_size=2, tensor_dim0=32, tile_dim0=32)
    far, near = ("%far = getelementptr i32, ptr addrspace(1) {0}, i32 %o\n", "%near")
    body = (
        "  %first = call i32 @llvm.amdgcn.readfirstlane.i32(i32 %w)\n  %o = mul i32 %first, 32\n  "
        + far.format("%in") + "  %to = getelementptr i32, ptr addrspace(1) %out, i32 %o\n"
        + f"  {near} = getelementptr i32, ptr addrspace(3) @lds, i32 %o\n"
        + ("  %odd = and i32 %w, 1\n  %some = icmp eq i32 %odd, 1\n  br i1 %some, label %go, label %end\ngo:\n"
           if masked else "")
        + call("tensor.load.to.lds", load, "%far", "a", lds=near) + WAIT
        + call("tensor.store.from.lds", load, "%to", "b", lds=near) + WAIT
        + ("  br label %end\nend:\n" if masked else "")
    )  # fmt: skip
    data, out = np.arange(128, dtype=np.int32) + 1, np.zeros(128, np.int32)
    both(module(body), grid=1, block=128, args=[data, out], target="gfx1250")
    rows = (data * (np.arange(128) // 32 % 2 if masked else 1)).tolist()
    assert out.tolist() == rows


def test_a_descriptor_that_differs_between_lanes_is_the_same_fault() -> None:
    load = words(data_size=2, tensor_dim0=32, tile_dim0=32)
    body = "  %far = getelementptr i32, ptr addrspace(1) %in, i32 %t\n" + call("tensor.load.to.lds", load, "%far", "a")
    for engine in ("numpy", "jit"):
        with pytest.raises(SimError, match="the descriptor differs between the lanes"):
            simulate(
                module(body), grid=1, block=64, args=[np.zeros(256, np.int32), np.zeros(1, np.int32)], target="gfx1250",
                checks="none", engine=engine,
            )  # fmt: skip
