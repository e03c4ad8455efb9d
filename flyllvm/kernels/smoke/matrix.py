"""Smoke tests of the matrix instructions: which register slot meets which, found slot by slot.

A wave is one probe.  In most probes one slot of A (or of B) holds a one and the other operand random numbers, so what
comes out says what the slot was multiplied with and where the product went; where there are very many slots a few
far apart are tried at once.  The rest have random numbers everywhere.  No layout is assumed (but for which slots hold
copies of one element, on chips that want copies): the registers are compared with those of the simulator, whose lane
formulas come from the manuals.
"""

from __future__ import annotations

import numpy as np

from ...atoms import all_rows
from ...atoms.contract import indices, static_size
from ...atoms.rows import RowMma
from ...atoms.universal import UniversalCopy
from ...ir import types as t
from ...ir.protocols import StatefulOp
from ...layout import Layout
from ...target import Target
from .case import Case, kernel_text
from .numbers import encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...ir.builder import Builder
    from ...ir.core import Value

    Array = np.ndarray[Any, np.dtype[Any]]

RANDOM_PROBES = 8
# Most probes for the slots of one operand.  A prime, so that slots tried together have no pattern.
MOST_PROBES = 191
# Numbers that every format holds and whose products and sums are exact in every accumulator of 32 bits.
_SMALL = np.array([-2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 3])
_SMALL_INTEGERS = np.arange(-8, 8)
# The same for accumulators of 16 bits.
_UNITS = np.array([-1, 0, 1])
# Two different positions of four, in order: the legal values of a nibble of a sparse index.
_SPARSE = np.array([low | high << 2 for high in range(4) for low in range(high)], np.uint8)


def matrix_atoms(target: Target) -> list[RowMma]:
    """The matrix instructions that a target has, in every wave size."""
    return [op for op in all_rows() if isinstance(op, RowMma) and target.processor in op.targets]


def matrix_case(target: Target, op: RowMma) -> Case:
    """All probes of one instruction.

    The arguments are the registers of A, B and C, those of each state field, and those of D.
    """
    target, wave = Target.parse(str(target), op.row.wave), op.row.wave
    counts = _counts(op)
    words = [count * elem.bits // 32 for count, elem in zip(counts, op.types)]
    fields = list(op.state) if isinstance(op, StatefulOp) else []

    def body(b: Builder, *pointers: Value) -> None:
        lane = b.index_add(b.index_mul(b.block_id(), wave), b.thread_id())
        atom = b.make_mma_atom(t.MmaAtomType(op))
        for field, pointer in zip(fields, pointers[3:]):
            atom = b.set_value(atom, field.name, b.ptr_load(b.add_offset(pointer, lane)))
        held = []
        for pointer, size in zip((*pointers[:3], pointers[-1]), words):
            registers = b.alloca(t.I32, Layout(size, 1))
            there = b.add_offset(pointer, b.index_mul(lane, size))
            held.append((registers, there, size))
        for registers, there, size in held[:3]:
            _move(b, there, b.get_iter(registers), size)
        views = [
            b.make_view(b.recast_iter(b.get_iter(registers), elem), Layout(count, 1))
            for (registers, _, _), elem, count in zip(held, op.types, counts)
        ]
        b.mma_atom_call(atom, views[3], *views[:3])
        _move(b, b.get_iter(held[3][0]), held[3][1], words[3])

    arguments: dict[str, t.Type] = {
        name: t.PtrType(t.I32, "global", min(4 * size & -4 * size, 16)) for name, size in zip("abc", words)
    }
    arguments |= {field.name: t.PtrType(field.type, "global", field.type.bits // 8) for field in fields}
    arguments["d"] = t.PtrType(t.I32, "global", min(4 * words[3] & -4 * words[3], 16))
    text = kernel_text(target, (wave, 1, 1), body, arguments)
    probes = _probe_count(op, counts)

    def args() -> list[object]:
        rng = np.random.default_rng(0)
        state = [_field_bytes(rng, f.name, f.type.bits // 8, probes * wave) for f in fields]
        return [*_operands(rng, op, counts, probes), *state, np.zeros((probes, wave, words[3]), np.uint32)]

    grid, block, last = (probes, 1, 1), (wave, 1, 1), 3 + len(fields)
    return Case(op.name, "matrix", target, text, grid=grid, block=block, args=args, outputs=[last])


def _counts(op: RowMma) -> tuple[int, int, int, int]:
    """Elements per lane of A, B, C and D."""
    a, b, c = (static_size(layout, op.name) // op.row.wave for layout in (op.layout_a, op.layout_b, op.layout_c))
    return a, b, c, c


def _move(b: Builder, source: Value, target: Value, words: int) -> None:
    """Copies dwords in the widest pieces that a thread moves at once."""
    at = 0
    while at < words:
        step = next(n for n in (4, 2, 1) if n <= words - at)
        atom = b.make_copy_atom(t.CopyAtomType(UniversalCopy(32 * step), 32))
        b.copy_atom_call(atom, *(b.make_view(b.add_offset(p, at), Layout(step, 1)) for p in (source, target)))
        at += step


def _probe_count(op: RowMma, counts: tuple[int, int, int, int]) -> int:
    tried = [min(op.row.wave * n // copies, MOST_PROBES) for n, copies in zip(counts, op.row.replication)]
    return sum(tried) + RANDOM_PROBES


def _operands(rng: np.random.Generator, op: RowMma, counts: tuple[int, int, int, int], probes: int) -> list[Array]:
    """Registers of A, B and C in all probes.  Shape: ``(probes, lanes, bytes)`` each."""
    narrow = op.types[3].bits <= 16
    sources = [op.row.wave * n // copies for n, copies in zip(counts[:3], (*op.row.replication, 1))]
    values = []
    for elem, size in zip(op.types[:3], sources):
        pool = _UNITS if narrow else _SMALL_INTEGERS if elem.text[0] == "i" else _SMALL
        values.append(rng.choice(pool, (probes, size)).astype(np.float32))
    first = 0
    for which in (0, 1):
        tried = min(sources[which], MOST_PROBES)
        values[which][first : first + tried] = np.arange(sources[which]) % tried == np.arange(tried)[:, None]
        first += tried
    values[2][:first] = 0
    slots = [_slots(op, layout, copies) for layout, copies in zip((op.layout_a, op.layout_b), op.row.replication)]
    registers = [x if at is None else x[:, at] for x, at in zip(values, (*slots, None))]
    return [encode(x.reshape(probes, op.row.wave, count), elem) for x, elem, count in zip(registers, op.types, counts)]


def _slots(op: RowMma, layout: Layout, copies: int) -> Array | None:
    """Which value each slot holds, lane by lane, where several slots hold copies of one; ``None`` where none do."""
    if copies == 1:
        return None
    elements = np.array(indices(layout)).reshape(-1, op.row.wave)
    return np.unique(elements, return_inverse=True)[1].reshape(elements.shape).T.reshape(-1)


def _field_bytes(rng: np.random.Generator, name: str, size: int, lanes: int) -> Array:
    """Random legal values of a state field, one for each lane.

    Scales stay near one, so that results are exact; a sparse index names two of four columns in order.
    """
    if name.startswith("scale"):
        return rng.integers(125, 130, (lanes, size), np.uint8)
    nibbles = rng.choice(_SPARSE, (lanes, 2 * size))
    packed: Array = nibbles[:, ::2] | nibbles[:, 1::2] << 4
    return packed
