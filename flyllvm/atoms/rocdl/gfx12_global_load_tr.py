"""``gfx12.global_load_tr``: global loads that transpose, gfx1200, gfx1201 and gfx1250, waves of 32 lanes.

``fly_rocdl.gfx12.global_load_tr<16, 128>`` and ``<8, 64>``.  No lane map is public for waves of 64 lanes, which have no
row.  ``<4, 64, map = square>`` and ``<6, 96, map = square>`` of gfx1250 are assumptions: see ``gfx1250.ds_load_tr``.

Source: RDNA4 ISA manual, GLOBAL_LOAD_TR; LLVM IntrinsicsAMDGPU; lane maps published by compilers; a third-party
measurement of the 8-bit form on gfx1201 (byte by byte), which gfx1200 and gfx1250 are taken to share.
"""

from __future__ import annotations

from ...ir.protocols import register_payload
from .gfx1250_ds_load_tr import BYTES
from .transpose import TransposeCopy, TransposeRow, square

ROWS = {
    (16, 128): TransposeRow(
        16, 128, square(16, 128, 8), "global.load.tr.b128.v8i16", "<8 x i16>",
        {
            "gfx1200": "global_load_tr_b128", "gfx1201": "global_load_tr_b128", "gfx1250": "global_load_tr16_b128",
        },
    ),
    (8, 64): TransposeRow(
        8, 64, BYTES, "global.load.tr.b64.v2i32", "<2 x i32>",
        {"gfx1200": "global_load_tr_b64", "gfx1201": "global_load_tr_b64", "gfx1250": "global_load_tr8_b64"},
    ),
    (6, 96): TransposeRow(
        6, 96, square(6, 96, 16), "global.load.tr6.b96.v3i32", "<3 x i32>", {"gfx1250": "global_load_tr6_b96"}, "square"
    ),
    (4, 64): TransposeRow(
        4, 64, square(4, 64, 16), "global.load.tr4.b64.v2i32", "<2 x i32>", {"gfx1250": "global_load_tr4_b64"}, "square"
    ),
}  # fmt: skip


class GlobalLoadTr(TransposeCopy):
    """A transposing global load; see the module for the lane map."""

    __slots__ = ()

    mnemonic = "fly_rocdl.gfx12.global_load_tr"
    rows = ROWS
    spaces = (("global", "register"),)


def atoms() -> list[GlobalLoadTr]:
    """One atom for each row."""
    return [GlobalLoadTr(g, bits, row.assumed) for (g, bits), row in ROWS.items()]


register_payload(GlobalLoadTr.mnemonic, GlobalLoadTr.parse)
