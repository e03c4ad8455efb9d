"""Sparse rows: packed A and its index against a dense product, through the call the atom emits."""

from __future__ import annotations

import numpy as np
import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.base import Stateful
from flyllvm.atoms.rocdl.cdna3_smfmac import Smfmac
from flyllvm.atoms.rocdl.gfx1250_swmmac import SwmmacGfx1250
from flyllvm.atoms.rows import RowMma
from flyllvm.atoms.wrappers import MmaAtom, TiledMma
from flyllvm.errors import AtomError, StateError
from flyllvm.ir.protocols import parse_payload
from flyllvm.layout import Layout
from flyllvm.sim import matrix
from flyllvm.target import Target
from tests.atoms.emitter import Recorder, value
from tests.atoms.test_probes import SHORT, CallRecorder, with_signs
from tests.sim import probes

ROWS = [op for op in all_rows() if isinstance(op, RowMma) and op.row.packing == 2]

SWMMAC_GFX1250 = [op for op in ROWS if isinstance(op, SwmmacGfx1250)]


def places(layout: Layout, rows: int) -> tuple[np.ndarray, int]:
    """Flat register position of each element, and the values of a lane.  Shape: ``(rows, columns)``."""
    table = probes.layout_table(str(layout))
    flat = np.empty(table.size, int)
    flat[table.reshape(-1)] = np.arange(table.size)
    return flat.reshape(-1, rows).T, table.shape[1]


class Case:
    """Random packed A with its index, B and C of small integers, and the product."""

    def __init__(self, op: RowMma, waves: int = 3) -> None:
        self.op = op
        m, n, k = op.shape_mnk
        rng = np.random.default_rng(5)
        pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
        choice = pairs[rng.integers(0, 6, (waves, m, k // 4))].reshape(waves, m, k // 2)
        limit = 1 if op.row.result == "bf16" else 4
        a, b, c = (
            rng.integers(-limit, limit + 1, (waves, *shape)).astype(float) for shape in ((m, k // 2), (n, k), (m, n))
        )
        dense = np.zeros((waves, m, k))
        np.put_along_axis(dense, choice + 4 * (np.arange(k // 2) // 2), a, axis=2)
        self.want = dense @ b.swapaxes(1, 2) + c
        self.accumulator = c
        self.operands = [
            self.spread(x, layout, rows)
            for x, layout, rows in ((a, op.layout_a, m), (b, op.layout_b, n), (c, op.layout_c, m))
        ]
        where, count = places(op.layout_a, m)
        assert isinstance(op, Stateful)
        (field,) = op.state
        self.field = field.type.storage
        self.index = np.zeros((waves, op.row.wave), f"u{field.type.bits // 8}")
        for wave in range(waves):
            bits = choice[wave].astype(self.index.dtype) << (2 * (where % count)).astype(self.index.dtype)
            np.bitwise_or.at(self.index[wave], where // count, bits)

    def spread(self, x: np.ndarray, layout: Layout, rows: int) -> np.ndarray:
        where, count = places(layout, rows)
        held = np.zeros((x.shape[0], where.size))
        held[:, where] = x
        return held.reshape(x.shape[0], -1, count)

    def run(self, processor: str) -> np.ndarray:
        op = with_signs(self.op)
        em = CallRecorder(processor, op.row.wave)
        a, b, c = (value(type_, name) for type_, name in zip(op.register_types(), "abc"))
        op.emit_atom_call_ssa(em, em.struct_of(value(self.field, "index")), a, b, c)
        ((name, args),) = em.calls
        target = Target.parse(processor, op.wave)
        registers = {"%index": self.index}
        for text, x, element in zip(("%a", "%b", "%c"), self.operands, op.row.elements):
            registers[text] = probes.pack(x, SHORT.get(element, element), target.chip.fp8)
        values = [arg.const if arg.const is not None else registers[arg.text] for arg in args]
        got = matrix.evaluate(name, values, wave_size=op.row.wave, target=target)
        got = probes.unpack(got, op.row.result).reshape(len(self.index), -1)
        return got[:, places(op.layout_c, op.shape_mnk[0])[0]]


@pytest.mark.sim
@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_a_sparse_product_equals_the_dense_one_on_every_target(op: RowMma) -> None:
    case = Case(op)
    for processor in op.targets:
        np.testing.assert_array_equal(case.run(processor), case.want)


@pytest.mark.sim
def test_another_column_in_the_index_is_another_product() -> None:
    case = Case(ROWS[0])
    case.index = np.full_like(case.index, 0b1110_1110_1110_1110)  # columns 2 and 3 everywhere
    assert (case.run("gfx942") != case.want).any()


def test_an_index_must_be_set() -> None:
    assert [repr(field) for field in Smfmac.state] == ["index: i32 (in bits, no default)"]
    with pytest.raises(StateError, match=r"set it first: atom\.set_value\('index', \.\.\.\)"):
        Smfmac.state.check_set([None])
    em = Recorder()
    op = ROWS[0]
    a, b, c = (value(type_, name) for type_, name in zip(op.register_types(), "abc"))
    with pytest.raises(AtomError, match="pass the atom's state struct"):
        op.emit_atom_call_ssa(em, None, a, b, c)


def test_a_packed_operand_has_no_place_in_a_tiled_mma() -> None:
    with pytest.raises(AtomError, match="call it with mma_atom_call, on fragments of the packed A"):
        TiledMma(MmaAtom(ROWS[0]), Layout((1, 1, 1), (1, 1, 1)))


def test_the_set_of_index_bits_has_the_range_of_the_row() -> None:
    spelling = "16x16x32, (f16, f16) -> f32, abid = "
    assert parse_payload(Smfmac.mnemonic, spelling + "3").params == spelling + "3"
    with pytest.raises(AtomError, match="abid is 0 to 3"):
        parse_payload(Smfmac.mnemonic, spelling + "4")
    with pytest.raises(AtomError, match="abid is 0 to 1"):
        parse_payload(Smfmac.mnemonic, "16x16x64, (i8, i8) -> i32, abid = 2")


def test_the_place_of_the_index_on_gfx1250_must_be_written() -> None:
    spelling = "16x16x64, (f16, f16) -> f32"
    with pytest.raises(AtomError, match="'index = lane' assumes that the bits of a value are in its lane"):
        parse_payload(SwmmacGfx1250.mnemonic, spelling)
    op = parse_payload(SwmmacGfx1250.mnemonic, f"{spelling}, index = lane, negA = 1")
    assert op.params == f"{spelling}, index = lane, negA = 1"
    with pytest.raises(AtomError, match=r"index packed(?s:.*)'index = lane' assumes"):
        parse_payload(SwmmacGfx1250.mnemonic, f"{spelling}, index = packed")


def test_8_bit_rows_of_gfx1250_have_an_index_of_64_bits() -> None:
    """LLVM takes 32 bits too, and then reads a register that nobody wrote."""
    for op in ROWS:
        if isinstance(op, SwmmacGfx1250):
            assert [str(field.type) for field in op.state] == ["i64" if op.shape_mnk[2] == 128 else "i32"]


@pytest.mark.sim
def test_the_simulator_warns_of_the_assumed_index_and_knows_the_modifiers() -> None:
    assert all(matrix.assumption(op.intrinsic.removeprefix("llvm.amdgcn.")) for op in SWMMAC_GFX1250)
    assert matrix.assumption("swmmac.f32.16x16x32.f16") is None
    negated, plain = (Case(SwmmacGfx1250(SWMMAC_GFX1250[0].row, flags)) for flags in ({"negB": 1}, {}))
    got, usual = negated.run("gfx1250"), plain.run("gfx1250")
    assert (got != usual).any()
    np.testing.assert_array_equal(got + usual, 2 * plain.accumulator)
