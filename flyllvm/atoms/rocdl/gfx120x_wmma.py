"""``gfx120x.wmma``: the dense matrix instructions of gfx1200 and gfx1201.

``fly_rocdl.gfx120x.wmma<16x16x16, (f16, f16) -> f32>`` in waves of 32 lanes, with ``wave = 64`` in waves of 64.

The K order of 16-bit elements is ``k = 8*(v/4) + 4*(t/16) + v%4``.  Publications that say ``8*(t/16) + v`` give the
same products, but not the same fragments.

The rows of 8-bit and 4-bit integers are in no published register map: their layouts follow the rule of the 8-bit
floats.  The 4-bit row with K = 16 fills only 32 lanes; in waves of 64 the upper lanes hold copies that nobody reads.

Source: RDNA4 ISA manual, 7.12 "WMMA"; AMD matrix instruction calculator 1.3.2 (layouts, cycles; it names gfx1200).
"""

from __future__ import annotations

from ...ir.protocols import register_payload
from ...layout import Layout
from ..rows import MmaRow, MmaTable
from .wmma import FP8, Wmma

_TARGETS = ("gfx1200", "gfx1201")
RESULT = {32: Layout(((16, 2), 8), ((16, 8), 1)), 64: Layout(((16, 2, 2), 4), ((16, 8, 4), 1))}
#: A and B by (K, bits, wave).
INPUTS = {
    (16, 16, 32): Layout(((16, 2), (4, 2)), ((1, 64), (16, 128))),
    (16, 16, 64): Layout(((16, 4), 4), ((1, 64), 16)),
    (16, 8, 32): Layout(((16, 2), 8), ((1, 128), 16)),
    (16, 8, 64): Layout(((16, 2, 2), 4), ((1, 128, 64), 16)),
    (16, 4, 32): Layout(((16, 2), 8), ((1, 128), 16)),
    (16, 4, 64): Layout(((16, 2, 2), 8), ((1, 128, 0), 16)),
    (32, 4, 32): Layout(((16, 2), (8, 2)), ((1, 128), (16, 256))),
    (32, 4, 64): Layout(((16, 2, 2), 8), ((1, 256, 128), 16)),
}
# K, bits of an input, A, B, accumulator, names of the inputs in the instruction, cycles (0: unknown).
_TABLE = (
    (16, 16, "f16", "f16", "f32", "f16", 16),
    (16, 16, "bf16", "bf16", "f32", "bf16", 16),
    (16, 16, "f16", "f16", "f16", "f16", 16),
    (16, 16, "bf16", "bf16", "bf16", "bf16", 16),
    *((16, 8, FP8[a], FP8[b], "f32", f"{a}.{b}", 8) for a in FP8 for b in FP8),
    (16, 8, "i8", "i8", "i32", "iu8", 0),
    (16, 4, "i4", "i4", "i32", "iu4", 0),
    (32, 4, "i4", "i4", "i32", "iu4", 0),
)
ACC = {"f32": ("float", "f32"), "i32": ("i32", "i32"), "f16": ("half", "f16"), "bf16": ("i16", "i16")}


def carrier_of(bits: int, element: str) -> tuple[str, str]:
    """LLVM type of the bits of one lane, and its name in the intrinsic."""
    if element in ("f16", "bf16"):
        held, short = ACC[element]
        return f"<{bits // 16} x {held}>", f"v{bits // 16}{short}"
    return ("i32", "i32") if bits == 32 else (f"<{bits // 32} x i32>", f"v{bits // 32}i32")


def _rows() -> list[MmaRow]:
    rows = []
    for wave in (32, 64):
        for k, bits, a, b, acc, kind, cycles in _TABLE:
            inputs = INPUTS[k, bits, wave]
            copies = 2 if (k, bits, wave) == (16, 4, 64) else 1
            carrier, short = carrier_of(16 * k * copies // wave * bits, a)
            held, acc_short = ACC[acc]
            name = f"{acc}.16x16x{k}.{kind}"
            rows.append(
                MmaRow(
                    "gfx120x.wmma",
                    (16, 16, k),
                    1,
                    (a, b, acc),
                    f"llvm.amdgcn.wmma.{name}.v{256 // wave}{acc_short}.{short}",
                    (carrier, carrier, f"<{256 // wave} x {held}>"),
                    (inputs, inputs, RESULT[wave]),
                    dict.fromkeys(_TARGETS, "v_wmma_" + name.replace(".", "_")),
                    dict.fromkeys(_TARGETS, cycles) if cycles else {},
                    wave=wave,
                    replication=(copies, copies),
                    variant="wave = 64" if wave == 64 else "",
                )
            )
    return rows


TABLE = MmaTable("gfx120x.wmma", _rows())


class WmmaGfx120x(Wmma):
    """A WMMA of gfx1200 and gfx1201; see the module for the spelling."""

    __slots__ = ()

    mnemonic = "fly_rocdl.gfx120x.wmma"
    table = TABLE


def atoms() -> list[WmmaGfx120x]:
    """One atom for each row."""
    return [WmmaGfx120x(row) for row in TABLE.rows]


register_payload(WmmaGfx120x.mnemonic, WmmaGfx120x.parse)
