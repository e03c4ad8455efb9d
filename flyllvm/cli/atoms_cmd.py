"""``flyllvm atoms``: the rows of every atom family, and which lane holds which element of one atom.

Without an argument all rows; with a target those it has; with a mnemonic those of the family; with a name one atom,
drawn.  ``--json`` prints the same selection as one list, an object per row.
"""

from __future__ import annotations

import json

from ..atoms import all_families, all_rows
from ..atoms.contract import indices, static_size, value_layout
from ..atoms.copy_op import CopyAtomOp
from ..atoms.mma_op import MmaAtomOp
from ..atoms.rocdl.transpose import TransposeCopy
from ..atoms.rows import RowMma
from ..errors import AtomError
from ..ir.protocols import parse_payload
from ..target import CHIPS, Target

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse

    from ..atoms.base import Atom
    from ..layout import Layout


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "what",
        nargs="?",
        metavar="TARGET|NAME|MNEMONIC",
        help="a target (gfx942), a family (cdna3.mfma), or an atom ('cdna3.mfma<16x16x16, (f16, f16) -> f32>')",
    )
    parser.add_argument("--svg", metavar="FILE", help="draw the layouts of the one atom into FILE")
    parser.add_argument("--json", action="store_true", help="print one list, an object per row")


def run(ns: argparse.Namespace) -> int:
    """Prints what was asked for.

    Raises:
        AtomError: The argument names nothing, or ``--svg`` is given without a single atom.
        TargetError: Unknown target.
    """
    ops, target = select(ns.what)
    single = ops[0] if ns.what is not None and "<" in ns.what else None
    if ns.svg is not None:
        if single is None:
            raise AtomError("--svg draws one atom", fix="name it: 'cdna3.mfma<16x16x16, (f16, f16) -> f32>'")
        with open(ns.svg, "w", encoding="utf-8") as f:
            f.write(draw_svg(single))
    if ns.json:
        print(json.dumps([op.describe() for op in ops], indent=1))
    elif single is not None:
        print(show_atom(single))
    else:
        print(show_table(ops, target))
    return 0


def select(what: str | None) -> tuple[list[Atom], Target | None]:
    """The atoms an argument means, and the target if it names one.

    Raises:
        AtomError: It names no family and no atom.
        TargetError: It looks like a target, but is none.
    """
    if what is None:
        return list(all_rows()), None
    name = what.strip().removeprefix("!")
    if "<" in name:
        return [_one(name)], None
    families = [m for m in all_families() if name in (m, m.partition(".")[2])]
    if families:
        return [op for op in all_rows() if op.mnemonic == families[0]], None
    if name.partition(":")[0] in CHIPS or name.startswith("gfx"):
        target = Target.parse(name)
        return [op for op in all_rows() if target.processor in op.targets], target
    raise _unknown(f"{what!r} is no target, atom family or atom")


def _one(name: str) -> Atom:
    mnemonic, _, rest = name.partition("<")
    for known in all_families():
        if mnemonic.strip() in (known, known.partition(".")[2]):
            if not rest.rstrip().endswith(">"):
                raise AtomError(f"{name!r} does not end with '>'", fix="quote the whole name for the shell")
            found = parse_payload(known, rest.rstrip()[:-1])
            if isinstance(found, (CopyAtomOp, MmaAtomOp)):
                return found
    raise _unknown(f"there is no atom family {mnemonic!r}")


def _unknown(what: str) -> AtomError:
    families = ", ".join(m.partition(".")[2] for m in all_families())
    return AtomError(what, fix=f"targets: {', '.join(CHIPS)}; families: {families}")


# --- text -----------------------------------------------------------------------------------------


def show_table(ops: list[Atom], target: Target | None) -> str:
    """One line a row; cycles and instruction are those of the target where there is one."""
    lines = [("atom", "blocks", "cycles", "flops", "bytes", "instruction" if target else "targets", "intrinsic")]
    for op in ops:
        row = op.describe()
        blocks = str(row.get("blocks", ""))
        flops = str(row.get("flops", ""))
        where = _instruction(row, target.processor) if target else _targets(op)
        cost = (_cycles(row, target), flops, str(row["bytes"]))
        lines.append((op.name, blocks, *cost, where, str(op.intrinsic or "-")))
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths)).rstrip() for line in lines]
    on = f" on {target}" if target else ""
    unseen = sum(not op.checked_on_hardware for op in ops)
    units = "cycles, flops and bytes (read and written) of one wave, of copies bytes of one thread"
    return "\n".join([*text, "", f"{len(ops)} rows{on}, {unseen} not checked on hardware; {units}"])


def _targets(op: Atom) -> str:
    return "all" if op.targets == tuple(CHIPS) else " ".join(op.targets)


def _cycles(row: dict[str, object], target: Target | None) -> str:
    by_target = row.get("cycles_by_target")
    if not isinstance(by_target, dict) or not by_target:
        return "-"
    if target is not None:
        return str(by_target.get(target.processor, "-"))
    return "/".join(str(c) for c in dict.fromkeys(by_target.values()))


def _instruction(row: dict[str, object], processor: str) -> str:
    found = row.get("instruction")
    name = found.get(processor) if isinstance(found, dict) else None
    return " ".join(name) if isinstance(name, list) else str(name or "-")


def show_atom(op: Atom) -> str:
    """Everything about one atom, with a grid for each operand: which lane (T) and value (V) hold each element."""
    row = op.describe()
    lines = [str(op), ""]
    instructions, cycles = row.get("instruction"), row.get("cycles_by_target")
    lines += [f"  intrinsic     {op.intrinsic or 'none: plain LLVM instructions'}"]
    for processor in op.targets:
        cost = cycles.get(processor) if isinstance(cycles, dict) else None
        tail = f", {cost} cycles" if cost is not None else ""
        name = _instruction(row, processor) if isinstance(instructions, dict) else "-"
        lines.append(f"  {processor:12}  {name}{tail}")
    work = f"{row['flops']} flops, " if "flops" in row else ""
    per = "wave" if isinstance(op, RowMma) else "thread"
    lines.append(f"  cost          {work}{row['bytes']} bytes a {per}")
    lines.append(f"  on hardware   {'checked' if op.checked_on_hardware else 'not checked'}")
    state = row.get("state")
    for field in state if isinstance(state, list) else []:
        kind = ", a compile-time constant" if field["constant"] else ""
        default = "none" if field["default"] is None else field["default"]
        lines.append(f"  state         {field['name']}: {field['type']} in {field['units']}{kind}, default {default}")
    for title, layout, extents in _operands(op):
        lines += ["", f"{title}: {layout}"]
        if isinstance(op, (MmaAtomOp, TransposeCopy)):
            lines += _grid(layout, extents)
    return "\n".join(lines)


def _operands(op: Atom) -> list[tuple[str, Layout, tuple[int, int, int]]]:
    """Title, layout and (rows, columns, blocks) of each operand."""
    if isinstance(op, MmaAtomOp):
        (m, n, k), blocks = op.shape_mnk, op.blocks
        packing = op.row.packing if isinstance(op, RowMma) else 1
        kept = f"A (rows m, {'packed ' if packing > 1 else ''}columns k)"
        return [
            (kept, op.layout_a, (m, k // packing, blocks)),
            ("B (rows n, columns k)", op.layout_b, (n, k, blocks)),
            ("C and D (rows m, columns n)", op.layout_c, (m, n, blocks)),
        ]
    if isinstance(op, CopyAtomOp):
        sides = (("source", op.bit_layout_src), ("destination", op.bit_layout_dst), ("reference", op.bit_layout_ref))
        if isinstance(op, TransposeCopy):
            bits = op.row.granularity
            title = f"(lane, element of {bits} bits; columns are the runs that lanes read)"
            sizes = (op.bit_size // bits, static_size(op.thr_layout.shape, op.name), 1)
            return [(f"{name} {title}", value_layout(op.name, layout, bits), sizes) for name, layout in sides[:2]]
        return [(f"{name} (thread, bit)", layout, (1, static_size(layout.shape, op.name), 1)) for name, layout in sides]
    return []


def _grid(layout: Layout, extents: tuple[int, int, int]) -> list[str]:
    """A line a row, a cell a column with the first lane and value that hold the element, and how many more do."""
    rows, columns, blocks = extents
    threads = static_size(layout.shape[0], "thread mode")
    held: list[list[str]] = [[] for _ in range(rows * columns * blocks)]
    for i, at in enumerate(indices(layout)):
        held[at].append(f"T{i % threads}V{i // threads}")
    cells = [places[0] + (f"+{len(places) - 1}" if len(places) > 1 else "") for places in held]
    width = max(map(len, cells))
    lines = []
    for block in range(blocks):
        if blocks > 1:
            lines.append(f"  block {block}")
        lines.append("      " + " ".join(str(c).rjust(width) for c in range(columns)))
        for r in range(rows):
            line = [cells[r + rows * c + rows * columns * block].rjust(width) for c in range(columns)]
            lines.append(f"  {r:3} " + " ".join(line))
    return lines


def draw_svg(op: Atom) -> str:
    """The layouts of one atom as grids, one below the other; blocks stand side by side."""
    from ..layout.svg import draw

    items = []
    for title, layout, (rows, columns, blocks) in _operands(op):
        items.append((f"{op.name}: {title}: {layout}", ((rows, columns * blocks), layout)))
    return draw(items)
