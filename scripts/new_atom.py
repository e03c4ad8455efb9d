"""Writes the file of a new atom family and its import line.

    python scripts/new_atom.py gfx1250.my_load --intrinsic llvm.amdgcn.ds.load.tr8.b64.v2i32 --copy shared register
    python scripts/new_atom.py cdna3.my_mma --intrinsic llvm.amdgcn.mfma.f32.16x16x16f16 \\
        --mma 16x16x16 f16 f16 f32 --instruction v_mfma_f32_16x16x16_f16

The signature and the processors come from the table of LLVM's intrinsics, so the new file loads at once.  What LLVM
does not know is marked FILL: layouts, state, what the instruction does, its source.  A test refuses a file that still
has such a mark.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

from flyllvm.codegen import intrinsics
from flyllvm.errors import FlyError

ROCDL = Path(__file__).resolve().parent.parent / "flyllvm" / "atoms" / "rocdl"

COPY = '''"""``{name}``: FILL what it copies, and its chips.

``fly_rocdl.{name}<{bits}>``.  FILL which lane reads and writes which bits.

Source: FILL manual and section; LLVM IntrinsicsAMDGPU.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll, types as t
from ...ir.protocols import register_payload
from ..copy_op import StatelessCopy
from ..spelling import options, split_params

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue, MemOperand

# Bits of a lane: intrinsic, LLVM type of the value, instruction by processor.
ROWS = {{
    {bits}: ("{short}", "{carrier}", {instructions}),
}}


class {cls}(StatelessCopy):
    """FILL one sentence; see the module.

    Raises:
        AtomError: The instruction has no such width.
    """

    __slots__ = ("row", "targets")

    mnemonic = "fly_rocdl.{name}"
    spaces = (("{src}", "{dst}"),)

    def __init__(self, bits: int) -> None:
        if bits not in ROWS:
            legal = ", ".join(map(str, ROWS))
            raise AtomError(f"{name}<{{bits}}>: no such width", fix=f"use {{legal}} bits")
        self.row = ROWS[bits]
        self.bit_size = bits
        self.targets = tuple(self.row[2])
        self.params = f"{{bits}}"

    @property
    def intrinsic(self) -> str:
        """Full name of the LLVM intrinsic."""
        return f"llvm.{{self.row[0]}}"

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """Checks the address spaces.

        Raises:
            AtomError: The instruction does not move between these spaces.
        """
        if (src.space, dst.space) not in self.spaces:
            raise AtomError(f"{{self.name}} cannot copy {{src}} to {{dst}}", fix="copy from {src} to {dst} memory")

{emit}
    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return super().describe() | {{"instruction": dict(self.row[2])}}


def parse(params: str) -> {cls}:
    """The atom of ``{bits}``."""
    first, *rest = split_params(params) or [""]
    options({cls}.mnemonic, params, rest, ())
    if not first.isdigit():
        raise AtomError(f"!{{{cls}.mnemonic}}<{{params}}> names no width", fix="write the bits: <{bits}>")
    return {cls}(int(first))


def atoms() -> list[{cls}]:
    """One atom for each width."""
    return [{cls}(bits) for bits in ROWS]


register_payload({cls}.mnemonic, parse)
'''

LOAD = '''    def emit_load(self, em: Emitter, state: LLValue | None, src: MemOperand, type: ll.LLType) -> LLValue:
        """One load; FILL more arguments where the intrinsic has them."""
        where = em.address(src, self.bit_size // 8)
        return em.bitcast(em.intrinsic(self.row[0], ll.parse(self.row[1]), [where]), type)
'''
STORE = '''    def emit_store(self, em: Emitter, state: LLValue | None, value: LLValue, dst: MemOperand) -> None:
        """One store; FILL more arguments where the intrinsic has them."""
        where = em.address(dst, self.bit_size // 8)
        em.intrinsic(self.row[0], ll.VOID, [em.bitcast(value, ll.parse(self.row[1])), where])
'''
MOVE = '''    def emit_move(self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand) -> None:
        """Memory to memory; FILL the immediates {imms}."""
        size = self.bit_size // 8
        args = [em.address(src, size), em.address(dst, size), *[em.const(ll.I32, 0)] * {extra}]
        em.intrinsic(self.row[0], ll.VOID, args)
'''

MMA = '''"""``{name}``: FILL which products, and its chips.

``fly_rocdl.{name}<{shape}, ({a}, {b}) -> {acc}>``.

Source: FILL manual and section (layouts, instruction, cycles).
"""

from __future__ import annotations

from ...ir.protocols import register_payload
from ...layout import parse
from ..base import Stateless
from ..flags import FlaggedRowMma
from ..rows import MmaRow, MmaTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue

# (thread, value) layouts into A (M, K), B (N, K), C (M, N), column-major.  FILL from the manual.
_INPUT = parse("FILL ((16,4),4):((1,64),16)")
_RESULT = parse("FILL ((16,4),4):((16,4),1)")
_ROWS = (
    MmaRow(
        "{name}",
        ({mnk}),
        1,
        ("{a}", "{b}", "{acc}"),
        "{intrinsic}",
        ("{ca}", "{cb}", "{cc}"),
        (_INPUT, _INPUT, _RESULT),
        {instructions},
        {{}},
        wave={wave},
    ),
)
TABLE = MmaTable("{name}", _ROWS)


class {cls}(Stateless, FlaggedRowMma):
    """FILL one sentence; see the module."""

    __slots__ = ()

    mnemonic = "fly_rocdl.{name}"
    table = TABLE

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """FILL the intrinsic's arguments: {signature}."""
        return [a, b, c]


def atoms() -> list[{cls}]:
    """One atom for each row."""
    return [{cls}(row) for row in TABLE.rows]


register_payload({cls}.mnemonic, {cls}.parse)
'''


def signature(intrinsic: str) -> tuple[str, list[str], tuple[int, ...], list[str]]:
    """Result type, argument types, positions of immediates, and processors of an intrinsic.

    Raises:
        SystemExit: LLVM has no such intrinsic.
    """
    found = intrinsics.lookup(intrinsic)
    if found is None:
        near = [i.name for i in intrinsics.overloads(intrinsic)]
        sys.exit(f"no intrinsic {intrinsic}; " + (f"overloads: {', '.join(near)}" if near else "see its full name"))
    result, _, rest = found.signature.partition(" (")
    arguments = [text for text in re.split(r", (?![^<]*>)", rest[:-1]) if text]
    return result, arguments, found.imms, sorted({name.partition(":")[0] for name in found.archs})


def family(ns: argparse.Namespace) -> str:
    """The text of the new file."""
    result, arguments, imms, processors = signature(ns.intrinsic)
    instructions = "{" + ", ".join(f'"{p}": "{ns.instruction or "FILL"}"' for p in processors) + "}"
    cls = "".join(word.capitalize() for word in re.split(r"[._]", ns.name))
    if ns.mma:
        shape, a, b, acc = ns.mma
        values = [text for i, text in enumerate(arguments) if i not in imms]
        m, n, k = shape.split("x")
        return MMA.format(
            name=ns.name, cls=cls, shape=shape, mnk=f"{m}, {n}, {k}", a=a, b=b, acc=acc, intrinsic=ns.intrinsic,
            ca=values[0], cb=values[1], cc=result, instructions=instructions, signature=", ".join(arguments),
            wave=64 if any(p in ("gfx90a", "gfx942", "gfx950") for p in processors) else 32,
        )  # fmt: skip
    src, dst = ns.copy
    carrier = result if dst == "register" else next((x for x in arguments if not x.startswith("ptr")), "i32")
    if dst == "register":
        emit = LOAD
    elif src == "register":
        emit = STORE
    else:
        positions = ", ".join(map(str, imms))
        emit = MOVE.format(imms=f"(arguments {positions})", extra=len(arguments) - 2)
    return COPY.format(
        name=ns.name, cls=cls, bits=ns.bits or bits_of(carrier), short=ns.intrinsic.removeprefix("llvm."),
        carrier=carrier, instructions=instructions, src=src, dst=dst, emit=emit,
    )  # fmt: skip


def bits_of(type_text: str) -> int:
    """Bits of an LLVM type."""
    from flyllvm.ir import lltype as ll

    return ll.parse(type_text).bits


def add_import_line(name: str, module: str) -> None:
    """Puts the family into the table of ``rocdl/__init__.py``, in order."""
    path = ROCDL / "__init__.py"
    head, _, rest = path.read_text().partition("FAMILIES = {\n")
    lines, _, tail = rest.partition("}\n")
    made = sorted({*lines.splitlines(), f'    "fly_rocdl.{name}": "flyllvm.atoms.rocdl.{module}",'})
    path.write_text(head + "FAMILIES = {\n" + "\n".join(made) + "\n}\n" + tail)


def main(argv: list[str] | None = None) -> int:
    """Writes both and says what is left to do."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("name", help="chip generation and instruction: cdna3.my_copy")
    parser.add_argument("--intrinsic", required=True, help="full mangled name, with llvm.")
    kind = parser.add_mutually_exclusive_group(required=True)
    kind.add_argument("--copy", nargs=2, metavar=("SRC", "DST"), help="address spaces: global shared register ...")
    kind.add_argument("--mma", nargs=4, metavar=("MxNxK", "A", "B", "ACC"))
    parser.add_argument("--instruction", help="the assembler's name")
    parser.add_argument("--bits", type=int, help="bits that a lane moves, where the types do not say")
    ns = parser.parse_args(argv)
    if not re.fullmatch(r"[a-z0-9]+\.[a-z0-9_]+", ns.name):
        sys.exit(f"{ns.name!r} is no name: write chip generation, dot, instruction, e.g. cdna3.my_copy")
    module = ns.name.replace(".", "_")
    path = ROCDL / f"{module}.py"
    if path.exists():
        sys.exit(f"{path} exists already: add a row to its table")
    try:
        text = family(ns)
    except FlyError as e:
        sys.exit(str(e))
    path.write_text(text)
    add_import_line(ns.name, module)
    print(f"wrote {path} and its line in {ROCDL / '__init__.py'}")
    print("next: replace every FILL, then run: python -m pytest tests/atoms")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
