"""``cdna3.mfma``: the dense matrix instructions of gfx90a, gfx942 and gfx950.

``fly_rocdl.cdna3.mfma<16x16x16, (f16, f16) -> f32>``.  One wave of 64 lanes, M = N, D = A * B + C.

Several blocks: one instruction computes independent products; lanes and values of block ``b`` hold the elements at
``index + b * tile``.  ``blocks = N`` is part of the spelling only where it decides: ``32x32x4, (bf16, bf16) -> f32`` is
one block (gfx90a alone has it) and ``32x32x4, (bf16, bf16) -> f32, blocks = 2`` is the instruction of all three chips.

8-bit floats have the flavour of the chip: the fp8 and bf8 instructions read FNUZ data on gfx942 and OCP data on
gfx950, so each flavour is a row with its own target.  ``xf32`` data is f32 in registers.

The modifiers cbsz, abid and blgp, which broadcast blocks of A or move lanes of B, are 0.

Source: AMD CDNA2, CDNA3 and CDNA4 ISA manuals, chapter "Matrix arithmetic instructions" (layouts, instructions);
AMD matrix instruction calculator 1.3.2 and the CDNA4 tables of AMD's HIP documentation (cycles).  ``f64`` 4x4x4 and
the i8 and xf32 rows that the calculator's published maps leave out follow the rule of the family.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll
from ...ir.protocols import register_payload
from ...ir.types import ScalarType
from ...layout import Layout
from ..rows import MmaRow, MmaTable, StatelessRowMma
from ..spelling import parse_mma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue
    from ...target import Target

_WAVE = 64
_TARGETS = ("gfx90a", "gfx942", "gfx950")
_NO = 0  # the processor lacks the instruction


_INPUTS: dict[tuple[int, int], Layout] = {}


def _inputs(mn: int, values: int) -> Layout:
    """A and B: row ``t % MN``; the lane groups of 64/MN hold ``values`` consecutive k each, blocks above k."""
    found = _INPUTS.get((mn, values))
    if found is None:
        found = _INPUTS[mn, values] = _inputs_of(mn, values)
    return found


def _inputs_of(mn: int, values: int) -> Layout:
    if values == 1:
        return Layout((_WAVE, 1), (1, 0))
    return Layout(((mn, _WAVE // mn), values), ((1, mn * values), mn))


# f64 4x4x4: the only row where blocks sit below k in the lanes, t = m + 4*block + 16*k.
_INPUTS_F64_4X4X4 = Layout(((4, 4, 4), 1), ((1, 16, 4), 0))

# C and D by (M = N, blocks): column ``t % N``; groups of four rows go round the lane groups, then up the values.
_RESULT = {
    (32, 1): Layout(((32, 2), (4, 4)), ((32, 4), (1, 8))),
    (32, 2): Layout(((32, 2), (4, 4, 2)), ((32, 4), (1, 8, 1024))),
    (16, 1): Layout(((16, 4), 4), ((16, 4), 1)),
    (16, 4): Layout(((16, 4), (4, 4)), ((16, 4), (1, 256))),
    (4, 16): Layout((64, 4), (4, 1)),
}
# f64: single rows go round the lane groups.
_RESULT_F64 = {
    (16, 1): Layout(((16, 4), 4), ((16, 1), 4)),
    (4, 4): Layout(((4, 4, 4), 1), ((4, 16, 1), 0)),
}

# M=N, K, blocks, A and B, accumulator, intrinsic after "llvm.amdgcn.mfma.", its type of A and B, and the issue cycles
# on gfx90a, gfx942, gfx950.
_TABLE = (
    (32, 1, 2, "f32", "f32", "f32.32x32x1f32", "float", (64, 64, 64)),
    (16, 1, 4, "f32", "f32", "f32.16x16x1f32", "float", (32, 32, 32)),
    (4, 1, 16, "f32", "f32", "f32.4x4x1f32", "float", (8, 8, 8)),
    (32, 2, 1, "f32", "f32", "f32.32x32x2f32", "float", (64, 64, 64)),
    (16, 4, 1, "f32", "f32", "f32.16x16x4f32", "float", (32, 32, 32)),
    (32, 4, 2, "f16", "f32", "f32.32x32x4f16", "<4 x half>", (64, 64, 64)),
    (16, 4, 4, "f16", "f32", "f32.16x16x4f16", "<4 x half>", (32, 32, 32)),
    (4, 4, 16, "f16", "f32", "f32.4x4x4f16", "<4 x half>", (8, 8, 8)),
    (32, 8, 1, "f16", "f32", "f32.32x32x8f16", "<4 x half>", (64, 32, 32)),
    (16, 16, 1, "f16", "f32", "f32.16x16x16f16", "<4 x half>", (32, 16, 16)),
    (32, 16, 1, "f16", "f32", "f32.32x32x16.f16", "<8 x half>", (_NO, _NO, 32)),
    (16, 32, 1, "f16", "f32", "f32.16x16x32.f16", "<8 x half>", (_NO, _NO, 16)),
    (32, 2, 2, "bf16", "f32", "f32.32x32x2bf16", "<2 x i16>", (64, _NO, _NO)),
    (16, 2, 4, "bf16", "f32", "f32.16x16x2bf16", "<2 x i16>", (32, _NO, _NO)),
    (4, 2, 16, "bf16", "f32", "f32.4x4x2bf16", "<2 x i16>", (8, _NO, _NO)),
    (32, 4, 1, "bf16", "f32", "f32.32x32x4bf16", "<2 x i16>", (64, _NO, _NO)),
    (16, 8, 1, "bf16", "f32", "f32.16x16x8bf16", "<2 x i16>", (32, _NO, _NO)),
    (32, 4, 2, "bf16", "f32", "f32.32x32x4bf16.1k", "<4 x i16>", (64, 64, 64)),
    (16, 4, 4, "bf16", "f32", "f32.16x16x4bf16.1k", "<4 x i16>", (32, 32, 32)),
    (4, 4, 16, "bf16", "f32", "f32.4x4x4bf16.1k", "<4 x i16>", (8, 8, 8)),
    (32, 8, 1, "bf16", "f32", "f32.32x32x8bf16.1k", "<4 x i16>", (64, 32, 32)),
    (16, 16, 1, "bf16", "f32", "f32.16x16x16bf16.1k", "<4 x i16>", (32, 16, 16)),
    (32, 16, 1, "bf16", "f32", "f32.32x32x16.bf16", "<8 x bfloat>", (_NO, _NO, 32)),
    (16, 32, 1, "bf16", "f32", "f32.16x16x32.bf16", "<8 x bfloat>", (_NO, _NO, 16)),
    (32, 4, 2, "i8", "i32", "i32.32x32x4i8", "i32", (64, 64, 64)),
    (16, 4, 4, "i8", "i32", "i32.16x16x4i8", "i32", (32, 32, 32)),
    (4, 4, 16, "i8", "i32", "i32.4x4x4i8", "i32", (8, 8, 8)),
    (32, 8, 1, "i8", "i32", "i32.32x32x8i8", "i32", (64, _NO, _NO)),
    (16, 16, 1, "i8", "i32", "i32.16x16x16i8", "i32", (32, _NO, _NO)),
    (32, 16, 1, "i8", "i32", "i32.32x32x16.i8", "i64", (_NO, 32, 32)),
    (16, 32, 1, "i8", "i32", "i32.16x16x32.i8", "i64", (_NO, 16, 16)),
    (32, 32, 1, "i8", "i32", "i32.32x32x32.i8", "<4 x i32>", (_NO, _NO, 32)),
    (16, 64, 1, "i8", "i32", "i32.16x16x64.i8", "<4 x i32>", (_NO, _NO, 16)),
    (32, 4, 1, "xf32", "f32", "f32.32x32x4.xf32", "<2 x float>", (_NO, 32, _NO)),
    (16, 8, 1, "xf32", "f32", "f32.16x16x8.xf32", "<2 x float>", (_NO, 16, _NO)),
    (16, 4, 1, "f64", "f64", "f64.16x16x4f64", "double", (32, 32, 64)),
    (4, 4, 4, "f64", "f64", "f64.4x4x4f64", "double", (16, 16, 16)),
)
# M=N, K and cycles of the 8-bit float instructions, in all four pairs of their two formats.
_TABLE_FP8 = ((32, 16, 32), (16, 32, 16))
_FP8 = {
    "gfx942": {"fp8": "f8E4M3FNUZ", "bf8": "f8E5M2FNUZ"},
    "gfx950": {"fp8": "f8E4M3FN", "bf8": "f8E5M2"},
}
_SCALAR = {"f32": "float", "i32": "i32", "f64": "double"}


def _instruction(processor: str, suffix: str, mn: int, k: int, blocks: int, acc: str, kind: str) -> str:
    """The assembler's name: gfx90a runs on the old spelling, later chips show the blocks and set types apart."""
    if processor == "gfx90a":
        return "v_mfma_" + suffix.replace(".", "_")
    many = f"_{blocks}b" if blocks > 1 else ""
    return f"v_mfma_{acc}_{mn}x{mn}x{k}{many}_{kind}"


def _row(
    mn: int,
    k: int,
    blocks: int,
    a: str,
    b: str,
    acc: str,
    suffix: str,
    carrier: str,
    cycles: dict[str, int],
    kind: str,
) -> MmaRow:
    values_out = mn * mn * blocks // _WAVE
    inputs = _inputs(mn, mn * k * blocks // _WAVE)
    if acc == "f64":
        inputs = _INPUTS_F64_4X4X4 if mn == 4 else inputs
    result = (_RESULT_F64 if acc == "f64" else _RESULT)[mn, blocks]
    out = ll.vec_or_scalar(values_out, ll.parse(_SCALAR[acc])).text
    return MmaRow(
        "cdna3.mfma",
        (mn, mn, k),
        blocks,
        (a, b, acc),
        f"llvm.amdgcn.mfma.{suffix}",
        (carrier, carrier, out),
        (inputs, inputs, result),
        {p: _instruction(p, suffix, mn, k, blocks, acc, kind) for p in cycles},
        cycles,
        wave=_WAVE,
    )


def _rows() -> list[MmaRow]:
    rows = []
    for mn, k, blocks, element, acc, suffix, carrier, cost in _TABLE:
        cycles = {p: c for p, c in zip(_TARGETS, cost, strict=True) if c != _NO}
        rows.append(_row(mn, k, blocks, element, element, acc, suffix, carrier, cycles, element))
    for processor, formats in _FP8.items():
        for mn, k, cost_fp8 in _TABLE_FP8:
            for a, a_name in formats.items():
                for b, b_name in formats.items():
                    suffix = f"f32.{mn}x{mn}x{k}.{a}.{b}"
                    cycles = {processor: cost_fp8}
                    rows.append(_row(mn, k, 1, a_name, b_name, "f32", suffix, "i64", cycles, f"{a}_{b}"))
    return rows


TABLE = MmaTable("cdna3.mfma", _rows())


class Mfma(StatelessRowMma):
    """A dense MFMA; see the module for the spelling."""

    __slots__ = ()

    mnemonic = "fly_rocdl.cdna3.mfma"
    table = TABLE

    def __init__(self, row: MmaRow) -> None:
        super().__init__(row, TABLE.spelling(row))

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """A, B, C, then cbsz, abid and blgp: no broadcast, no permutation."""
        none = em.const(ll.I32, 0)
        return [a, b, c, none, none, none]


def find_mfma(
    m: int,
    n: int,
    k: int,
    a: str | ScalarType,
    b: str | ScalarType,
    acc: str | ScalarType | None = None,
    target: Target | None = None,
    blocks: int | None = None,
) -> Mfma:
    """The atom of a shape and types, checked against the target where one is given.

    Args:
        m, n, k: Shape of one block.
        a, b: Element types of A and B, as types or names (``"xf32"`` has only a name).
        acc: Element type of C and D; ``None``: the one the instructions of A and B have.
        target: The chip, or ``None`` to accept rows of any.
        blocks: Independent products; ``None`` takes the row with fewest.

    Raises:
        AtomError: No such instruction; the fix lists the legal ones.
        TargetError: Not on this target; the fix lists what it has.
    """
    a, b = str(a), str(b)
    if acc is None:
        accs = dict.fromkeys(r.elements[2] for r in TABLE.rows if r.elements[:2] == (a, b))
        acc = next(iter(accs), "f32")
    processor = None if target is None else target.processor
    found = Mfma(TABLE.find((m, n, k), (a, b, str(acc)), blocks, processor))
    if target is not None:
        found.check_target(target)
    return found


def parse(params: str) -> Mfma:
    """The atom of ``16x16x16, (f16, f16) -> f32[, blocks = 4]``."""
    shape, elements, options = parse_mma(Mfma.mnemonic, params, ("blocks",))
    blocks = options.get("blocks")
    if blocks is not None and not blocks.isdigit():
        raise AtomError(f"blocks = {blocks} in !{Mfma.mnemonic}<{params}>", fix="write a number, e.g. blocks = 2")
    return Mfma(TABLE.find(shape, elements, None if blocks is None else int(blocks)))


def atoms() -> list[Mfma]:
    """One atom for each row."""
    return [Mfma(row) for row in TABLE.rows]


register_payload(Mfma.mnemonic, parse)
