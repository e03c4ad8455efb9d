"""The costs of rows, added up over a run."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.atoms.cost import matrix_cycles


def test_cycles_are_those_of_the_chips_rows() -> None:
    counts = {"mfma.f64.16x16x4f64": 3, "load": 9}
    assert matrix_cycles(counts, "gfx942") == 3 * 32
    assert matrix_cycles(counts, "gfx950") == 3 * 64
    assert matrix_cycles({"llvm.amdgcn.mfma.f32.16x16x16f16": 2, **counts}, "gfx942") == 2 * 16 + 3 * 32


def test_an_unknown_cost_makes_no_sum() -> None:
    assert matrix_cycles({"load": 9}, "gfx942") is None
    assert matrix_cycles({"mfma.f32.16x16x16f16": 1, "smfmac.f32.16x16x64.f16": 1}, "gfx950") is None


@pytest.mark.llvm
@pytest.mark.sim
def test_a_simulated_kernel_reports_its_matrix_cycles() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def products(x: fx.Tensor):
        op = fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16))
        a, c = fx.make_rmem_tensor(4, fx.Float16), fx.make_rmem_tensor(4, fx.Float32)
        a.fill(1.0)
        c.fill(0.0)
        for _ in fx.range_constexpr(3):
            fx.mma_atom_call(op, c, a, a, c)
        x[fx.thread_idx.x] = c[0]

    x = np.zeros(64, np.float32)
    report = flyc.compile(products, x, arch="gfx942").simulate(x, grid=(2,), block=(64,))
    assert (x == 48).all()
    assert report.matrix_cycles == 2 * 3 * 16
    assert f"{2 * 3 * 8192} matrix FLOPs in 96 issue cycles" in report.render()
