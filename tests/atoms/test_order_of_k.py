"""The order of K: the atoms' layouts against the simulator's lane formulas, place by place.

An unscaled product gives the same result for every order that A and B share, so probes of products cannot see it.
"""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.rocdl.cdna4_mfma_scale import find_mfma_scale
from flyllvm.atoms.rows import RowMma
from flyllvm.layout import Layout, parse
from flyllvm.sim import matrix_mfma, matrix_scaled, matrix_sparse, matrix_wmma
from flyllvm.target import Target
from tests.atoms import test_fragments
from tests.atoms.test_probes import SHORT, fragments, runner
from tests.sim import probes

pytestmark = pytest.mark.sim

ROWS = [op for op in all_rows() if isinstance(op, RowMma)]
# The one row whose blocks lie below k in the lanes.
ODD = "cdna3.mfma<4x4x4, (f64, f64) -> f64>"


def places(layout: Layout, rows: int) -> np.ndarray:
    """First flat register position of each element.  Shape: ``(columns, rows)`` flattened to ``(rows, columns)``."""
    table = probes.layout_table(str(layout)).reshape(-1)
    first = np.full(table.max() + 1, -1)
    for position in range(len(table) - 1, -1, -1):
        first[table[position]] = position
    return first.reshape(-1, rows).T


def formulas(op: RowMma) -> tuple[np.ndarray, np.ndarray]:
    """Places of A ``(M, K)`` and of B ``(N, K)`` by the simulator; blocks follow each other in K."""
    m, n, k = op.shape_mnk
    a, b = (SHORT.get(x, x) for x in op.row.elements[:2])
    family, bits = op.row.family, op.types[0].bits
    if family == "cdna3.mfma":
        index = matrix_mfma.input_index(m, k, op.blocks)
        flat = np.concatenate(list(index), axis=1)
        return flat, flat
    if family == "cdna3.smfmac":
        return matrix_mfma.input_index(m, k // 2, 1)[0], matrix_sparse.smfmac_b_index(n, k, bits)
    if family == "gfx120x.swmmac":
        packed = matrix_wmma.gfx12_input(k // 2, bits, op.row.wave)[0]
        return packed, matrix_sparse.swmmac_b_index(k, bits, op.row.wave)[0]
    if family == "gfx1250.swmmac":
        return matrix_sparse.gfx1250_places(k)
    if ".scale" in op.intrinsic or "f8f6f4" in op.intrinsic or m != n:
        groups = 2 if op.row.wave == 32 else 64 // m
        wide = m == 32 and n == 16
        left = matrix_scaled.input_index_32_rows() if wide else matrix_scaled.input_index(a, m, k, groups)
        return left, matrix_scaled.input_index(b, n, k, groups)
    index = matrix_wmma.input_index(k, bits, op.targets[0], op.row.wave)[0]
    return index, index


@pytest.mark.parametrize("op", [op for op in ROWS if op.name != ODD], ids=lambda op: op.name)
def test_both_derivations_have_one_order_of_k(op: RowMma) -> None:
    m, n, _ = op.shape_mnk
    for layout, rows, formula in zip((op.layout_a, op.layout_b), (m, n), formulas(op)):
        np.testing.assert_array_equal(places(layout, rows), formula)


def test_another_order_of_k_in_both_operands_hides_from_products() -> None:
    op = next(op for op in ROWS if op.name == "gfx120x.wmma<16x16x16, (f16, f16) -> f32>")
    other = parse("((16,2),8):((1,128),16)")  # k = 8*(t/16) + v, as often published
    assert (places(other, 16) != places(op.layout_a, 16)).any()
    probes.check_random(runner(op, "gfx1201"), fragments(op, a=other, b=other), 4)
    with pytest.raises(AssertionError):
        probes.check_random(runner(op, "gfx1201"), fragments(op, a=other), 4)


@pytest.mark.parametrize("b", ["f8E4M3FN", "f4E2M1FN"])
def test_scales_and_mixed_formats_see_a_wrong_order_of_k(b: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """8-bit elements in chunks of 32: right for equal scales of two 8-bit operands, wrong for all else."""
    op = find_mfma_scale(16, 16, 128, "f8E4M3FN", b, Target.parse("gfx950"))
    wrong = parse("((16,4),32):((1,512),16)")
    claimed = {"a": wrong, "b": wrong}
    run, where = runner(op, "gfx950"), fragments(op, **claimed)
    if b == "f8E4M3FN":
        probes.check_random(run, where, 2)
    else:
        with pytest.raises(AssertionError):
            probes.check_random(run, where, 2)
    monkeypatch.setattr(test_fragments, "fragments", lambda _: where)
    with pytest.raises(AssertionError):
        test_fragments.test_a_kernel_on_raw_fragments_gives_the_exact_product(op)
