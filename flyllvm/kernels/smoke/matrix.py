"""Smoke tests of the matrix instructions: which register slot meets which, found one slot at a time.

A wave is one probe.  In most probes one slot of A (or of B) holds a one and the other operand random numbers, so
what comes out says what the slot was multiplied with and where the product went.  The rest have random numbers
everywhere.  No layout is assumed: the registers are compared with those of the simulator, whose lane formulas come
from the manuals.
"""

from __future__ import annotations

import numpy as np

from ...atoms import all_rows
from ...atoms.contract import static_size
from ...atoms.rows import RowMma
from ...ir import types as t
from ...layout import Layout
from .case import Case, kernel_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...ir.builder import Builder
    from ...ir.core import Value
    from ...target import Target

    Array = np.ndarray[Any, np.dtype[Any]]

RANDOM_PROBES = 8
# Numbers that every format holds and whose products and sums are exact in every accumulator.
_SMALL = np.array([-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3])
_SMALL_INTEGERS = np.arange(-8, 8)
_NUMPY = {
    "f16": "float16", "bf16": "bfloat16", "f32": "float32", "f64": "float64", "i8": "int8", "i32": "int32",
    "f8E4M3FN": "float8_e4m3fn", "f8E5M2": "float8_e5m2", "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
}  # fmt: skip


def matrix_atoms(target: Target) -> list[RowMma]:
    """The matrix instructions that a target has, in the wave size of the target."""
    rows = [op for op in all_rows() if isinstance(op, RowMma) and target.processor in op.targets]
    return [op for op in rows if op.row.wave == target.wave_size]


def matrix_case(target: Target, op: RowMma) -> Case:
    """All probes of one instruction."""
    types, wave = op.types, op.row.wave
    counts = _counts(op)

    def body(b: Builder, *pointers: Value) -> None:
        lane = b.index_add(b.index_mul(b.block_id(), wave), b.thread_id())
        atom = b.make_mma_atom(t.MmaAtomType(op))
        held = []
        for pointer, elem, count in zip(pointers, (*types[:3], types[3]), counts):
            fragment = b.alloca(elem, Layout(count, 1))
            view = b.make_view(b.add_offset(pointer, b.index_mul(lane, count)), Layout(count, 1))
            held.append((fragment, view, elem, count))
        for fragment, view, elem, count in held[:3]:
            _move(b, view, fragment, elem, count)
        b.mma_atom_call(atom, *(held[i][0] for i in (3, 0, 1, 2)))
        _move(b, held[3][0], held[3][1], elem=types[3], count=counts[3])

    arguments: dict[str, t.Type] = {
        name: t.PtrType(elem, "global", _align(elem, count)) for name, elem, count in zip("abcd", types, counts)
    }
    text = kernel_text(target, (wave, 1, 1), body, arguments)
    inputs = _probes(op, counts)
    probes = inputs[0].shape[0]
    output = np.zeros((probes, wave, counts[3]), _dtype(types[3]))
    args = [*inputs, output]
    return Case(op.name, "matrix", target, text, grid=(probes, 1, 1), block=(wave, 1, 1), args=args, outputs=[3])


def _counts(op: RowMma) -> tuple[int, int, int, int]:
    """Elements per lane of A, B, C and D."""
    a, b, c = (static_size(layout, op.name) // op.row.wave for layout in (op.layout_a, op.layout_b, op.layout_c))
    return a, b, c, c


def _align(elem: t.ScalarType, count: int) -> int:
    total = max(elem.bits * count // 8, 1)
    return min(total & -total, 16)


def _move(b: Builder, source: Value, target: Value, elem: t.ScalarType, count: int) -> None:
    """Copies a fragment in the widest pieces that a thread moves at once."""
    from ...atoms.universal import MAX_COPY_BITS, UniversalCopy

    step = min(count, MAX_COPY_BITS // elem.bits)
    atom = b.make_copy_atom(t.CopyAtomType(UniversalCopy(step * elem.bits), elem.bits))
    piece = Layout(step, 1)
    for i in range(0, count, step):
        parts = [b.make_view(b.add_offset(b.get_iter(view), i), piece) for view in (source, target)]
        b.copy_atom_call(atom, *parts)


def _dtype(elem: t.ScalarType) -> Any:
    import ml_dtypes

    name = _NUMPY[elem.text]
    return np.dtype(getattr(ml_dtypes, name)) if hasattr(ml_dtypes, name) else np.dtype(name)


def _probes(op: RowMma, counts: tuple[int, int, int, int]) -> list[Array]:
    """A, B and C of all probes.  Shape: ``(probes, lanes, values)`` each."""
    rng = np.random.default_rng(0)
    slots = [op.row.wave * count for count in counts[:2]]
    total = sum(slots) + RANDOM_PROBES
    operands = []
    for elem, count in zip(op.types[:3], counts):
        pool = _SMALL_INTEGERS if elem.text[0] == "i" else _SMALL
        operands.append(rng.choice(pool, (total, op.row.wave * count)))
    a, b, c = operands
    a[: slots[0]] = np.eye(slots[0])
    b[slots[0] : slots[0] + slots[1]] = np.eye(slots[1])
    c[: sum(slots)] = 0
    return [
        x.reshape(total, op.row.wave, count).astype(_dtype(elem)) for x, elem, count in zip(operands, op.types, counts)
    ]
