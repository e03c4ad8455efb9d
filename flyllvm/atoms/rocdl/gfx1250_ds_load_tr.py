"""``gfx1250.ds_load_tr``: LDS reads that transpose, gfx1250.

``fly_rocdl.gfx1250.ds_load_tr<16, 128>`` and ``<8, 64>``.  Of the 4-bit and 6-bit forms no lane map is public, so they
have no row.

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
}


class DsLoadTr(TransposeCopy):
    """A transposing LDS read; see the module for the lane map."""

    __slots__ = ()

    mnemonic = "fly_rocdl.gfx1250.ds_load_tr"
    rows = ROWS
    spaces = (("shared", "register"),)


def atoms() -> list[DsLoadTr]:
    """One atom for each row."""
    return [DsLoadTr(g, bits) for g, bits in ROWS]


register_payload(DsLoadTr.mnemonic, DsLoadTr.parse)
