"""Two derivations agree: the layouts of a row's atom, and the simulator's lane formulas of its intrinsic.

The call is the one the atom emits; single-element probes then go through every (block, m, n, k).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.base import Stateful
from flyllvm.atoms.contract import check_coverage
from flyllvm.atoms.flags import FlaggedRowMma
from flyllvm.atoms.rocdl.cdna3_mfma import find_mfma
from flyllvm.atoms.rows import RowMma
from flyllvm.ir.lltype import LLType
from flyllvm.ir.protocols import LLValue
from flyllvm.layout import Layout
from flyllvm.sim import matrix
from flyllvm.target import Target
from tests.atoms.emitter import Recorder, value
from tests.sim import probes

pytestmark = pytest.mark.sim

# Sparse rows have an index besides: see test_sparse.
ROWS = [op for op in all_rows() if isinstance(op, RowMma) and op.row.packing == 1]
# The short names of the simulator's formats.
SHORT = {
    "f8E4M3FN": "fp8", "f8E4M3FNUZ": "fp8", "f8E5M2": "bf8", "f8E5M2FNUZ": "bf8", "f6E2M3FN": "fp6", "f6E3M2FN": "bf6",
    "f4E2M1FN": "fp4",
}  # fmt: skip


# One E8M0 byte of 127 is a factor of one.
UNIT = 0x7F7F7F7F7F7F7F7F


class CallRecorder(Recorder):
    """Keeps intrinsic calls and shuffles; a cast value keeps the name of what it was."""

    def __init__(self, target: str, wave: int) -> None:
        super().__init__(target, wave)
        self.calls: list[tuple[str, Sequence[LLValue]]] = []
        self.moves: dict[str, tuple[str, list[int]]] = {}

    def bitcast(self, value: LLValue, type: LLType) -> LLValue:
        return LLValue(type, value.text)

    def shuffle(self, a: LLValue, b: LLValue | None, mask: Sequence[int]) -> LLValue:
        made = super().shuffle(a, b, mask)
        self.moves[made.text] = (a.text, list(mask))
        return made

    def intrinsic(self, name: str, result: LLType, args: Sequence[LLValue]) -> LLValue:
        self.calls.append((name.removeprefix("amdgcn."), args))
        return super().intrinsic(name, result, args)

    def moved(self, text: str, array: np.ndarray) -> np.ndarray:
        """A value by its name: ``array``, or a shuffle of it with zeros behind it."""
        if text not in self.moves:
            return array
        padded = np.concatenate([array, np.zeros_like(array)], axis=2)
        return padded[:, :, self.moves[text][1]]


def with_signs(op: RowMma) -> RowMma:
    """Integer rows read signed elements here."""
    if isinstance(op, FlaggedRowMma) and any(flag.name == "signA" for flag in op.flags_of(op.row)):
        return type(op)(op.row, {"signA": 1, "signB": 1})
    return op


def runner(op: RowMma, processor: str) -> probes.Run:
    """The atom's call as a function of float64 register values; scales are one."""
    op = with_signs(op)
    em = CallRecorder(processor, op.row.wave)
    a, b, c = (value(type_, name) for type_, name in zip(op.register_types(), "abc"))
    scales: dict[str, np.dtype] = {}
    state = None
    if isinstance(op, Stateful):
        state = em.struct_of(*(value(field.type.storage, field.name) for field in op.state))
        scales = {f"%{field.name}": np.dtype(f"u{field.type.bits // 8}") for field in op.state}
    result = op.emit_atom_call_ssa(em, state, a, b, c)
    ((name, args),) = em.calls
    elements = [SHORT.get(name, name) for name in op.row.elements]
    target = Target.parse(processor, op.wave)
    names = {"a": a.text, "b": b.text, "c": c.text}

    def run(*operands: np.ndarray) -> np.ndarray:
        registers = {
            names[letter]: probes.pack(x, element, target.chip.fp8)
            for letter, x, element in zip("abc", operands, elements)
        }
        for scale, dtype in scales.items():
            shape = (*operands[0].shape[:1], op.row.wave)
            registers[scale] = np.full(shape, UNIT & (1 << 8 * dtype.itemsize) - 1, dtype)
        for text, (source, _) in em.moves.items():
            if source in registers:
                registers[text] = em.moved(text, registers[source])
        values = [arg.const if arg.const is not None else registers[arg.text] for arg in args]
        got = matrix.evaluate(name, values, wave_size=op.row.wave, target=target)
        return probes.unpack(em.moved(result.text, got), SHORT.get(op.row.result, op.row.result))

    return run


def limit(op: RowMma) -> int:
    """Integers up to which products of every element and their sums are exact."""
    if op.row.result == "bf16":
        return 1
    return 8 if op.row.family == "cdna3.mfma" else 4


def fragments(op: RowMma, **layouts: Layout) -> probes.Fragments:
    """Where the atom's layouts (some of them replaced) say that the elements are."""
    a, b, c = (str(layouts.get(x, getattr(op, f"layout_{x}"))) for x in "abc")
    return probes.from_layouts(op.shape_mnk, op.blocks, op.row.wave, a, b, c)


def exact(op: RowMma, processor: str) -> object:
    element = SHORT.get(op.row.elements[1], op.row.elements[1])
    return probes.exact_values(element, Target.parse(processor).chip.fp8)


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_every_element_is_where_the_instruction_reads_and_writes_it(op: RowMma) -> None:
    processor = op.targets[-1]
    run, where = runner(op, processor), fragments(op)
    probes.check_products(run, where, exact(op, processor))
    probes.check_accumulator(run, where)


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_random_integers_are_exact_on_every_target(op: RowMma) -> None:
    for processor in op.targets:
        probes.check_random(runner(op, processor), fragments(op), limit(op))


@pytest.mark.parametrize(
    ("letter", "wrong"),
    [
        ("c", Layout(((16, 4), 4), ((1, 64), 16))),  # rows and columns exchanged
        ("a", Layout(((16, 4), 4), ((1, 16), 64))),  # another order of k than B
        ("b", Layout(((8, 2, 4), 4), ((2, 1, 64), 16))),  # columns in another order
    ],
)
def test_the_probes_see_a_wrong_layout_that_the_contract_accepts(letter: str, wrong: Layout) -> None:
    op = find_mfma(16, 16, 16, "f16", "f16")
    check_coverage(letter, wrong, 256)
    with pytest.raises(AssertionError):
        probes.check_products(runner(op, "gfx942"), fragments(op, **{letter: wrong}), exact(op, "gfx942"))
