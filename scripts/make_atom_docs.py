"""Writes docs/atoms.md from the tables of the atoms.

Run it with ``python scripts/make_atom_docs.py`` after a change of a table; a test compares the page with the tables.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path

from flyllvm.atoms import all_families
from flyllvm.atoms.base import Atom, describe_state
from flyllvm.atoms.copy_op import CopyAtomOp
from flyllvm.atoms.flags import FlaggedRowMma
from flyllvm.atoms.rows import RowMma

PAGE = Path(__file__).resolve().parent.parent / "docs" / "atoms.md"
HEAD = """# Atoms

Every copy and matrix atom, from its table. This page is generated: `python scripts/make_atom_docs.py`.

`flyllvm atoms gfx942` lists what a chip has, `flyllvm atoms 'cdna3.mfma<16x16x16, (f16, f16) -> f32>'` draws which lane
holds which element, and `flyllvm atoms --json` prints all rows for machines.

**Layouts** are `((thread),(value)):((strides),(strides))`, leftmost mode fastest, into the column-major index of the
operand: A is (M, K), B is (N, K), C and D are (M, N); block `b` of several adds `b * tile`. Values are numbered in the
packed order of the registers. Layouts of copies go to the bit of the tile.

**What hardware fixes.** C and D are seen by every product. A K order that is common to A and B is not: an unscaled
product gives the same result with any. It is fixed where something else depends on it: scales, a sparse index,
transposing loads, fragments that are written by hand, and two instructions that share one fragment.

**Hardware.** No row has met silicon yet: layouts rest on the sources named, on published register maps (compared in the
tests) and on the simulator's own lane formulas, which are a second derivation.

**Cycles** are issue cycles of one wave, blank where no source gives them; where chips differ they are named.
**Replication** is how many lanes hold each element of A and B; all copies must be equal.
"""


def cell(text: object) -> str:
    """Text of a table cell."""
    return str(text).replace("|", "\\|")


def code(text: object) -> str:
    """Code in a table cell."""
    return f"`{cell(text)}`"


def by_processor(found: dict[str, object]) -> str:
    """Values by processor: one value where all are equal."""
    if not found:
        return ""
    if len(set(found.values())) == 1:
        return str(next(iter(found.values())))
    return ", ".join(f"{value} ({processor})" for processor, value in found.items())


def instructions(op: Atom) -> str:
    """The instruction of an atom; of two directions both."""
    found = op.describe().get("instruction")
    if not isinstance(found, dict):
        return ""
    return by_processor({p: " / ".join(x) if isinstance(x, list) else x for p, x in found.items()})


def matrix_rows(ops: list[RowMma]) -> Iterator[str]:
    """One line for all types that share everything else."""
    yield "| MxNxK | types | targets | wave | instruction | A | B | C, D | cycles |"
    yield "|---|---|---|---|---|---|---|---|---|"
    groups: dict[tuple[str, ...], list[str]] = {}
    for op in ops:
        row = op.row
        shape = row.shape_text + (f" ({row.blocks} blocks)" if row.blocks > 1 else "")
        variant = f", {row.variant}" if row.variant and "wave" not in row.variant else ""
        copies = f" x{row.replication[0]}" if row.replication[0] > 1 else ""
        slots = ", every second 16-bit slot" if row.slots == 2 else ""
        a, b = code(op.layout_a) + copies, "=A" if op.layout_a == op.layout_b else code(op.layout_b) + copies
        tail = (", ".join(op.targets), str(row.wave), instructions(op), a, b, code(op.layout_c) + slots)
        key = (shape + variant, *tail, by_processor(dict(row.cycles)))
        groups.setdefault(key, []).append(row.types_text)
    for (shape, targets, *rest), types in groups.items():
        yield "| " + " | ".join([shape, "<br>".join(map(code, types)), targets, *rest]) + " |"


def copy_rows(ops: list[CopyAtomOp]) -> Iterator[str]:
    """One line for all atoms that share everything else."""
    yield "| atom | targets | bits | source | destination | instruction |"
    yield "|---|---|---|---|---|---|"
    groups: dict[tuple[str, ...], list[str]] = {}
    for op in ops:
        src, dst = code(op.bit_layout_src), code(op.bit_layout_dst)
        key = (targets(op), str(op.bit_size), src, dst if dst != src else "=source", instructions(op) or "plain LLVM")
        groups.setdefault(key, []).append(op.params)
    for cells, params in groups.items():
        yield "| " + " | ".join(["<br>".join(map(code, params)), *cells]) + " |"


def targets(op: Atom) -> str:
    """Processors, or *all*."""
    return "all" if op.targets == Atom.targets else ", ".join(op.targets)


def state_and_flags(ops: list[Atom]) -> Iterator[str]:
    """The fields and flags of a family, those of single rows with what they are for."""
    fields: dict[tuple[object, object], dict[str, object]] = {}
    flags: dict[str, tuple[int, str]] = {}
    for op in ops:
        for field in describe_state(op):
            fields.setdefault((field["name"], field["type"]), field)
        for flag in op.flags_of(op.row) if isinstance(op, FlaggedRowMma) else ():
            most, _ = flags.get(flag.name, (0, ""))
            flags[flag.name] = (max(most, flag.maximum), flag.doc)
    if fields:
        yield "\nState:\n"
        for field in fields.values():
            default = "no default" if field["default"] is None else f"default {field['default']}"
            constant = ", a compile-time constant" if field["constant"] else ""
            yield f"- `{field['name']}`: {field['type']} in {field['units']}, {default}{constant}. {field['doc']}"
    if flags:
        yield "\nFlags (0 unless written):\n"
        yield from (f"- `{name}`, 0 to {most}: {doc}" for name, (most, doc) in flags.items())


def conversions() -> Iterator[str]:
    """The conversions of small floats, which are no atoms."""
    from flyllvm.atoms.rocdl import conversions as module

    yield from ("## Conversions of small floats", "", (module.__doc__ or "").strip().replace("``", "`"), "")
    yield "They are no atoms: `flyllvm.expr.rocdl.cvt.convert(name, ...)` calls one."
    yield from ("", "| name | result | operands | targets |", "|---|---|---|---|")
    for row in module.ROWS.values():
        yield f"| `{row.python_name}` | `{row.result}` | `{', '.join(row.args)}` | {', '.join(row.chips)} |"
    yield ""


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    seen: set[str] = set()
    for mnemonic, name in all_families().items():
        module = importlib.import_module(name)
        ops = [op for op in module.atoms() if op.mnemonic == mnemonic]
        lines += [f"## {mnemonic.partition('.')[2]}", ""]
        if name not in seen:
            lines += [(module.__doc__ or "").strip().replace("``", "`"), ""]
            seen.add(name)
        matrix = [op for op in ops if isinstance(op, RowMma)]
        copies = [op for op in ops if isinstance(op, CopyAtomOp)]
        lines += [*state_and_flags(ops), ""]
        lines += matrix_rows(matrix) if matrix else copy_rows(copies) if copies else _plain(ops)
        lines.append("")
    lines += conversions()
    return "\n".join(lines).replace("\n\n\n\n", "\n\n").replace("\n\n\n", "\n\n")


def _plain(ops: list[Atom]) -> Iterator[str]:
    yield from (f"- `{op.params}`" for op in ops)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
