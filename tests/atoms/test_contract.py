"""The layout contract: each check refuses what it is for, and every row of every family passes all of them."""

from __future__ import annotations

import pytest

from flyllvm.atoms import all_rows, contract
from flyllvm.atoms.copy_op import CopyAtomOp
from flyllvm.atoms.mma_op import MmaAtomOp
from flyllvm.atoms.rows import MmaRow, MmaTable, RowMma
from flyllvm.errors import AtomError
from flyllvm.layout import Layout, covers, parse, size

ROWS = list(all_rows())
MMA = [op for op in ROWS if isinstance(op, MmaAtomOp)]
COPIES = [op for op in ROWS if isinstance(op, CopyAtomOp)]


def row(**changes: object) -> MmaRow:
    """A right row of ``16x16x16, (f16, f16) -> f32``, with changes."""
    inputs = parse("((16,4),4):((1,64),16)")
    fields: dict[str, object] = {
        "family": "test.mfma",
        "shape": (16, 16, 16),
        "blocks": 1,
        "elements": ("f16", "f16", "f32"),
        "intrinsic": "llvm.amdgcn.mfma.f32.16x16x16f16",
        "carriers": ("<4 x half>", "<4 x half>", "<4 x float>"),
        "layouts": (inputs, inputs, parse("((16,4),4):((16,4),1)")),
        "instructions": {"gfx942": "v_mfma_f32_16x16x16_f16"},
        "cycles": {"gfx942": 16},
        "wave": 64,
    }
    return MmaRow(**{**fields, **changes})  # type: ignore[arg-type]


@pytest.mark.parametrize("op", MMA, ids=lambda op: op.name)
def test_every_mma_row_places_each_element_equally_often(op: MmaAtomOp) -> None:
    m, n, k = op.shape_mnk
    copies = op.row.replication if isinstance(op, RowMma) else (1, 1)
    packing = op.row.packing if isinstance(op, RowMma) else 1
    threads = size(op.thr_layout)
    for layout, count, times in (
        (op.layout_a, m * k // packing, copies[0]),
        (op.layout_b, n * k, copies[1]),
        (op.layout_c, m * n, 1),
    ):
        elements = count * op.blocks
        assert len(layout.shape) == 2
        assert size(layout.shape[0]) == threads
        assert sorted(contract.indices(layout)) == sorted(list(range(elements)) * times)
        assert covers(layout, elements) == times


@pytest.mark.parametrize("op", COPIES, ids=lambda op: op.name)
def test_every_copy_row_places_each_bit_once_and_its_sides_agree(op: CopyAtomOp) -> None:
    for layout in (op.bit_layout_src, op.bit_layout_dst, op.bit_layout_ref):
        assert size(layout.shape[0]) == size(op.thr_layout)
        bits = op.bit_size or 1  # a whole tile counts as one
        assert sorted(contract.indices(layout)) == list(range(bits * size(op.thr_layout)))


@pytest.mark.parametrize("op", MMA, ids=lambda op: op.name)
def test_register_types_hold_one_value_per_layout_value(op: MmaAtomOp) -> None:
    for type_, layout in zip(op.register_types(), (op.layout_a, op.layout_b, op.layout_c)):
        assert type_.count == size(layout.shape[1])


def test_indices_are_those_of_the_layout() -> None:
    layout = parse("((4,2),(2,3)):((1,24),(4,8))")
    assert contract.indices(layout) == [layout(i) for i in range(size(layout))]


def test_a_right_row_is_accepted() -> None:
    row().check_coverage()


def test_a_layout_without_two_modes_is_refused() -> None:
    with pytest.raises(AtomError, match=r"write \(\(thr\.\.\.\),\(val\.\.\.\)\)"):
        row(layouts=(Layout((64, 2, 2), (1, 64, 128)), *row().layouts[1:]))


def test_a_wrong_thread_count_is_refused() -> None:
    with pytest.raises(AtomError, match="the instruction has 64 cooperating lanes"):
        row(layouts=(parse("((16,2),8):((1,128),16)"), *row().layouts[1:]))


def test_a_wrong_number_of_values_is_refused() -> None:
    with pytest.raises(AtomError, match="the operand has 256"):
        row(layouts=(parse("((16,4),8):((1,64),16)"), *row().layouts[1:]))


def test_undeclared_replication_is_refused_and_declared_is_accepted() -> None:
    twice = parse("((16,2,2),8):((1,0,128),16)")
    carriers = ("<8 x half>", "<4 x half>", "<4 x float>")
    with pytest.raises(AtomError, match="times declared replication"):
        row(layouts=(twice, *row().layouts[1:]), carriers=carriers)
    row(layouts=(twice, *row().layouts[1:]), carriers=carriers, replication=(2, 1)).check_coverage()


def test_a_register_vector_of_another_width_is_refused() -> None:
    with pytest.raises(AtomError, match="the instruction takes 128 bits"):
        row(carriers=("<8 x half>", "<4 x half>", "<4 x float>"))


@pytest.mark.parametrize("text", ["((16,4),4):((1,64),0)", "((16,4),4):((1,64),32)"])
def test_a_layout_with_a_hole_or_out_of_range_is_refused_at_first_use(text: str) -> None:
    wrong = row(layouts=(row().layouts[0], parse(text), row().layouts[2]))
    with pytest.raises(AtomError, match=r"(?s)B: .*each element is held 1 time"):
        wrong.check_coverage()


def test_an_unknown_element_is_refused() -> None:
    with pytest.raises(AtomError, match=r"unknown element type 'f99'"):
        row(elements=("f99", "f16", "f32"))


def test_rows_are_immutable() -> None:
    with pytest.raises(AttributeError, match="rows are immutable"):
        row().wave = 32


def test_two_rows_of_one_combination_are_refused() -> None:
    with pytest.raises(AtomError, match="give each combination one row"):
        MmaTable("test.mfma", [row(), row()])


@pytest.mark.parametrize("bits", [0, 48, 256])
def test_values_that_do_not_divide_a_threads_bits_are_refused(bits: int) -> None:
    with pytest.raises(AtomError, match="element widths that divide: 1, 4, 8, 16, 32, 64, 128"):
        contract.value_layout("test", Layout((1, 128), (1, 1)), bits)


def test_a_bit_layout_is_seen_in_values() -> None:
    assert contract.value_layout("test", parse("(16,64):(64,1)"), 16) == parse("(16,4):(4,1)")
