"""``gfx11.wmma``: the dense matrix instructions of gfx1100.

``fly_rocdl.gfx11.wmma<16x16x16, (f16, f16) -> f32>`` in waves of 32 lanes, with ``wave = 64`` in waves of 64.

A and B are replicated: every group of 16 lanes holds them whole (2 copies in a wave of 32 lanes, 4 in one of 64), and
all copies must be equal.  The simulator refuses copies that differ; hardware gives no defined result.

16-bit accumulators sit in every second 16-bit slot of their registers.  The atom holds them packed, one element each;
it spreads them before the instruction and gathers them after it, which costs up to a move per register on each side
where consecutive calls do not cancel out.  The other halves are zero going in and dropped coming out.

Source: RDNA3 ISA manual, 7.9 "WMMA"; AMD matrix instruction calculator 1.3.2 (layouts, replication, cycles).
"""

from __future__ import annotations

from ...ir.protocols import register_payload
from ...layout import Layout
from ..rows import MmaRow, MmaTable
from .wmma import Wmma

# Inputs, accumulator, type of A and B in LLVM, name of that type, cycles.
_TABLE = (
    ("f16", "f32", "<16 x half>", "v16f16", 32),
    ("bf16", "f32", "<16 x i16>", "v16i16", 32),
    ("f16", "f16", "<16 x half>", "v16f16", 32),
    ("bf16", "bf16", "<16 x i16>", "v16i16", 32),
    ("i8", "i32", "<4 x i32>", "v4i32", 32),
    ("i4", "i32", "<2 x i32>", "v2i32", 16),
)
_ACC = {"f32": ("float", "f32"), "i32": ("i32", "i32"), "f16": ("half", "f16"), "bf16": ("i16", "i16")}
#: Names of the integer inputs in instructions.
_KIND = {"i8": "iu8", "i4": "iu4"}


def _rows() -> list[MmaRow]:
    rows = []
    for wave in (32, 64):
        copies, count = wave // 16, 256 // wave
        inputs = Layout(((16, copies), 16), ((1, 0), 16))
        result = Layout(((16, copies), count), ((16, 1), copies))
        for element, acc, carrier, short, cycles in _TABLE:
            slots = 2 if acc in ("f16", "bf16") else 1
            held, kind = _ACC[acc]
            name = f"{acc}.16x16x16.{_KIND.get(element, element)}"
            rows.append(
                MmaRow(
                    "gfx11.wmma",
                    (16, 16, 16),
                    1,
                    (element, element, acc),
                    f"llvm.amdgcn.wmma.{name}.v{count * slots}{kind}.{short}",
                    (carrier, carrier, f"<{count * slots} x {held}>"),
                    (inputs, inputs, result),
                    {"gfx1100": "v_wmma_" + name.replace(".", "_")},
                    {"gfx1100": cycles},
                    wave=wave,
                    replication=(copies, copies),
                    slots=slots,
                    variant="wave = 64" if wave == 64 else "",
                )
            )
    return rows


TABLE = MmaTable("gfx11.wmma", _rows())


class WmmaGfx11(Wmma):
    """A WMMA of gfx1100; see the module for the spelling."""

    __slots__ = ()

    mnemonic = "fly_rocdl.gfx11.wmma"
    table = TABLE


def atoms() -> list[WmmaGfx11]:
    """One atom for each row."""
    return [WmmaGfx11(row) for row in TABLE.rows]


register_payload(WmmaGfx11.mnemonic, WmmaGfx11.parse)
