"""``gfx1250.ds_load_tr``: LDS reads that transpose, gfx1250.

``fly_rocdl.gfx1250.ds_load_tr<16, 128>`` and ``<8, 64>``.

Of the 4-bit and 6-bit forms no lane map is reliable: a binary translator and a sanitizer of AMD treat them as those of
gfx950 (16 lanes, lane ``i`` gets element ``i`` of each lane's read), a test of AMD's emulator exchanges all 32 lanes.
They must be written with the first of these maps, as an assumption to be checked on the chip: ``<4, 64, map = square>``
and ``<6, 96, map = square>``.

Source: LLVM IntrinsicsAMDGPU; lane maps published by compilers, and one reported hardware measurement of the 16-bit
form.
"""

from __future__ import annotations

from ...ir.protocols import register_payload
from ...layout import Layout
from .transpose import TransposeCopy, TransposeRow, square

#: 8-bit elements, 16 lanes: lane ``i``, element ``e`` from lane ``4*(i/8) + e%4 + 8*(e/4)``, element ``i % 8``.
BYTES = Layout(((8, 2), (8, 4, 2)), ((8, 256), (1, 64, 512)))
ROWS = {
    (16, 128): TransposeRow(
        16, 128, square(16, 128, 8), "ds.load.tr16.b128.v8i16", "<8 x i16>", {"gfx1250": "ds_load_tr16_b128"}
    ),
    (8, 64): TransposeRow(8, 64, BYTES, "ds.load.tr8.b64.v2i32", "<2 x i32>", {"gfx1250": "ds_load_tr8_b64"}),
    (6, 96): TransposeRow(
        6, 96, square(6, 96, 16), "ds.load.tr6.b96.v3i32", "<3 x i32>", {"gfx1250": "ds_load_tr6_b96"}, "square"
    ),
    (4, 64): TransposeRow(
        4, 64, square(4, 64, 16), "ds.load.tr4.b64.v2i32", "<2 x i32>", {"gfx1250": "ds_load_tr4_b64"}, "square"
    ),
}


class DsLoadTr(TransposeCopy):
    """A transposing LDS read; see the module for the lane map."""

    __slots__ = ()

    mnemonic = "fly_rocdl.gfx1250.ds_load_tr"
    rows = ROWS
    spaces = (("shared", "register"),)


def atoms() -> list[DsLoadTr]:
    """One atom for each row."""
    return [DsLoadTr(g, bits, row.assumed) for (g, bits), row in ROWS.items()]


register_payload(DsLoadTr.mnemonic, DsLoadTr.parse)
