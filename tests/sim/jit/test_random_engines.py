"""Random programs give the same bits on both engines, whichever of their inputs are the same for all lanes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.sim.both import LANES, interesting
from tests.sim.engines import both
from tests.sim.programs import DECLARATIONS, Program

pytestmark = [pytest.mark.llvm, pytest.mark.sim]
TYPES = ("i64", "i64", "float")


def kernel_of(seed: int, uniform: int) -> str:
    """A random function, called by every lane; the bits of ``uniform`` say which inputs are kernel arguments."""
    body = Program(seed, blocks=4 + seed % 4, length=6 + seed % 5).text()
    args, loads = [], []
    for i, t in enumerate(TYPES):
        if uniform >> i & 1:
            args.append(f"{t} %u{i}")
            continue
        loads.append(f"  %p{i} = getelementptr {t}, ptr addrspace(1) %in{i}, i64 %i")
        loads.append(f"  %v{i} = load {t}, ptr addrspace(1) %p{i}, align 1")
        args.append(f"{t} %v{i}")
    params = ", ".join(
        [*(f"ptr addrspace(1) %in{i}" for i in range(3)), *(f"{t} %u{i}" for i, t in enumerate(TYPES))]
    )  # fmt: skip
    lines = "\n".join(loads)
    return (
        f"{DECLARATIONS}define i64 @p(i64 %a0, i64 %a1, float %a2) {{\n{body}\n}}\n"
        f"define amdgpu_kernel void @k({params}, ptr addrspace(1) %out) {{\n"
        f"  %t = call i32 @llvm.amdgcn.workitem.id.x()\n  %i = zext i32 %t to i64\n{lines}\n"
        f"  %r = call i64 @p({', '.join(args)})\n  %po = getelementptr i64, ptr addrspace(1) %out, i64 %i\n"
        "  store i64 %r, ptr addrspace(1) %po, align 1\n  ret void\n}\n"
    )


def _agree(seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        inputs = [interesting(d, rng, (LANES,)) for d in (np.uint64, np.uint64, np.float32)]
        inputs[0][: LANES // 2] &= np.uint64(0xFF)
        numbers = [int(inputs[0][3]), int(inputs[1][200]), float(inputs[2][7])]
        both(
            kernel_of(seed, seed % 7), "k", grid=1, block=LANES if seed % 3 else 201,
            args=[*inputs, *numbers, np.zeros(LANES, np.uint64)],
        )  # fmt: skip


def test_random_programs_agree() -> None:
    _agree(range(2000, 2021))


@pytest.mark.slow
def test_random_programs_agree_in_numbers(full: bool) -> None:
    _agree(range(3000, 6000 if full else 3021))
