"""A spoilt GEMM does not pass its own check: the numbers are wrong, or the simulator finds the fault.

Each mutant differs from the example in one place.  The pair of equal edits at the end shows that an edit as such does
not make the check fail.
"""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import flyllvm.expr as fx
from flyllvm.layout import Layout
from tests.examples.programs import EXAMPLES, load, verdict

pytestmark = [pytest.mark.sim, pytest.mark.llvm]

#: Two tiles of M, the edge of N inside a tile, the edge of K inside a step.
SIZE = (160, 92, 80)


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")


def check_source(*edits: tuple[str, str], size: tuple[int, int, int] = SIZE, **extra: Any) -> str:
    module = load("gemm", *edits, **extra)
    return verdict(lambda: module.check(*size))


def check_llvm(pattern: str, replacement: str, count: int, size: tuple[int, int, int] = SIZE) -> str:
    """The check with lines of the emitted LLVM IR replaced; ``count`` of them must be there."""
    module = load("gemm")
    art = module.compile_gemm()
    art.llvm_ir, found = re.subn(pattern, replacement, art.llvm_ir, flags=re.M)
    assert found == count, f"{pattern!r} stands {found} times"
    return verdict(lambda: module.check(*size, compiled=art))


def test_the_example_as_it_is_passes() -> None:
    assert check_source() == "right"
    assert check_llvm(r"^!0 = ", "!0 = ", 1) == "right"


def test_c_written_transposed_fails() -> None:
    # Square, so that every store stays inside the matrix.
    edit = ("fx.make_layout((TILE_N, TILE_M), (1, n_size))", "fx.make_layout((TILE_N, TILE_M), (n_size, 1))")
    assert check_source(edit, ("vec_out: int = 4", "vec_out: int = 1"), size=(128, 128, 64)) == "wrong"


def transposed_accumulator(op: Any) -> Any:
    """An MFMA whose layout of C has rows and columns swapped."""
    made = object.__new__(type(op))
    for cls in type(op).__mro__:
        for slot in getattr(cls, "__slots__", ()):
            if hasattr(op, slot):
                setattr(made, slot, getattr(op, slot))
    made.params += ", transposed"
    assert str(op.layout_c) == "((16,4),4):((16,4),1)"
    made.layout_c = Layout(((16, 4), 4), ((1, 64), 16))
    return made


def test_an_atom_with_rows_and_columns_of_c_swapped_fails() -> None:
    atom = "fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float32)"
    # Single stores: the swapped layout has no neighbours to store together.
    edits = [(atom, f"transposed_accumulator({atom})"), ("vec_out: int = 4", "vec_out: int = 1")]
    edits += [('"vec_out": n_multiple', '"vec_out": 1')]
    assert check_source(*edits, transposed_accumulator=transposed_accumulator) == "wrong"


AFTER_WRITE = ("        fx.barrier()\n        fetch(k + TILE_K)", "        fetch(k + TILE_K)")
AFTER_READ = ("frag_n, frag_m, acc)\n        fx.barrier()", "frag_n, frag_m, acc)")


@pytest.mark.parametrize("edits", [[AFTER_WRITE], [AFTER_READ], [AFTER_WRITE, AFTER_READ]], ids=["1st", "2nd", "both"])
def test_a_barrier_left_out_is_an_lds_race(edits: list[tuple[str, str]]) -> None:
    assert "race" in check_source(*edits)


def test_a_barrier_without_its_fences_is_an_lds_race() -> None:
    assert "race" in check_llvm(r"^  fence .*\n", "", 4)


@pytest.mark.parametrize("order", ["release", "acquire"])
def test_a_barrier_without_one_of_its_fences_is_an_lds_race(order: str) -> None:
    assert "race" in check_llvm(rf"^  fence .*{order}.*\n", "", 2)


def test_fences_without_their_barrier_are_an_lds_race() -> None:
    assert "race" in check_llvm(r"^  call void @llvm.amdgcn.s.barrier\(\).*\n", "", 2)


def test_a_k_predicate_off_by_one_fails() -> None:
    assert check_source(("k < k_size - column - i", "k <= k_size - column - i")) == "wrong"


def test_a_k_predicate_that_ends_one_piece_early_fails() -> None:
    assert check_source(("k < k_size - column - i", "k < k_size - column - i - 8")) == "wrong"


def test_an_n_predicate_off_by_one_fails() -> None:
    said = check_source(("+ place[v, j, 0][0] < n_size", "+ place[v, j, 0][0] <= n_size"))
    assert said == "wrong" or "race" in said


def test_an_n_predicate_that_ends_one_column_early_fails() -> None:
    assert check_source(("+ place[v, j, 0][0] < n_size", "+ place[v, j, 0][0] < n_size - 4")) == "wrong"


@pytest.mark.parametrize("matrix", ["A", "B", "C"])
def test_a_descriptor_that_ends_a_row_late_is_out_of_bounds(matrix: str) -> None:
    edit = ("    height, width = matrix.shape\n", "    height, width = matrix.shape\n    height += late(matrix)\n")
    said = check_source(edit, late=lambda tensor: int(tensor.ptr.name == matrix), size=(33, 44, 96))
    assert "out of bounds" in said and "of argument" in said and f"%{matrix} (" in said


def unswizzled(tensor: Any) -> Any:
    """The tensor through the pointer its swizzle was applied to."""
    op = tensor.ptr.op
    assert op.name == "fly.apply_swizzle"
    return fx.Pointer(op.operands[0]).view(tensor.layout)


def test_a_swizzle_on_the_writes_only_fails() -> None:
    edit = ("mine.partition_S(tile)", "mine.partition_S(unswizzled(tile))")
    assert check_source(edit, unswizzled=unswizzled) == "wrong"


def test_a_swizzle_on_the_reads_only_fails() -> None:
    edit = ("r2s.partition_D(tile)", "r2s.partition_D(unswizzled(tile))")
    assert check_source(edit, unswizzled=unswizzled) == "wrong"


@pytest.mark.parametrize("name", ["gemm", "07_gemm_double_buffer"])
@pytest.mark.parametrize("side", ["the writes", "the reads", "neither"])
def test_a_swizzle_on_one_side_only_is_found_at_the_line_that_reads(name: str, side: str) -> None:
    texts = {"gemm": ("r2s.partition_D(tile)", "mine.partition_S(tile)"),
             "07_gemm_double_buffer": ("thread_in.partition_D(lds)", "thread_out.partition_S(lds)")}[name]  # fmt: skip
    old = texts[side == "the writes"]
    new = old if side == "neither" else re.sub(r"\((\w+)\)", r"(unswizzled(\1))", old)
    module = load(name, (old, new), unswizzled=unswizzled)
    compiled = module.compile_gemm() if name == "gemm" else module.compile_gemm_double_buffer(128, 128, 256)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-2, 3, (128, 256)).astype(np.float16) for _ in range(2))
    warnings = compiled.simulate(a, b, np.zeros((128, 128), np.float16), grid=1, checks="all").warnings
    if side == "neither":
        assert not warnings
        return
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8").split("\n")
    reads = "fx.copy(copy, mine.partition_S(tile), mine.retile(fragment))" if name == "gemm" else (
        "fx.copy(wide, source[None, None, None, stage], fragment)")  # fmt: skip
    line = 1 + next(i for i, text in enumerate(source) if reads in text)
    assert warnings and all(w.startswith(f"{name}.py:{line}") for w in warnings)
    with_xor, without = ("store", "read") if side == "the writes" else ("read", "store")
    assert all(
        f"the address of the {with_xor} goes through an xor, that of the {without} does not" in w for w in warnings
    )


PERMUTED = "fx.make_layout((4, 4, 2), (1, 8, 4))"
OTHER = "fx.make_layout((4, (2, 2), 2), (1, (16, 8), 4))"
MOVES = "copy_n, copy_m = (make(wide, mma) for make in (fx.make_tiled_copy_A, fx.make_tiled_copy_B))"


def test_another_k_permutation_of_one_operand_fails() -> None:
    other = f"fx.make_tiled_mma(mma.mma_atom, fx.make_layout((2, 2, 1), (1, 2, 0)), fx.make_tile(None, None, {OTHER}))"
    edit = (MOVES, f"copy_n, copy_m = fx.make_tiled_copy_A(wide, {other}), fx.make_tiled_copy_B(wide, mma)")
    assert check_source(edit) == "wrong"


def test_another_k_permutation_of_both_operands_passes() -> None:
    assert check_source((PERMUTED, OTHER)) == "right"


def test_a_swizzle_in_the_layout_instead_of_the_pointer_passes() -> None:
    pointer = "fx.apply_swizzle(fx.shared_memory(fx.Float16, rows * TILE_K, align=1024), SWIZZLE)"
    layout = "fx.make_layout((rows, TILE_K), (TILE_K, 1)),\n        )"
    # Of elements of 2 bytes instead of bytes: the base is one less.
    composed = "fx.make_composed_layout(fx.Swizzle(2, 3, 3), 0, " + layout.replace(",\n", "),\n")
    edits = [(pointer, "fx.shared_memory(fx.Float16, rows * TILE_K, align=1024)"), (layout, composed)]
    assert check_source(*edits) == "right"
