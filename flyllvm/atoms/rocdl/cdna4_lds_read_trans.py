"""``cdna4.lds_read_trans``: LDS reads that transpose, gfx950.

``fly_rocdl.cdna4.lds_read_trans<16, 64>``: elements of 16, 8, 6 or 4 bits; a group of 16 lanes reads a tile of 16
columns and lane ``t`` ends with column ``t``, element ``i`` from row ``i``.

The lane map is fixed by hardware and seen by every product that reads one operand with it and the other without.

Source: CDNA4 ISA manual, DS_READ_B64_TR_B16, _B8, _B4 and DS_READ_B96_TR_B6.
"""

from __future__ import annotations

from ...ir.protocols import register_payload
from .transpose import TransposeCopy, TransposeRow, square

# Bits of an element and of a lane, intrinsic, type of its result, instruction.
_TABLE = (
    (16, 64, "ds.read.tr16.b64.v4i16", "<4 x i16>", "ds_read_b64_tr_b16"),
    (8, 64, "ds.read.tr8.b64.v2i32", "<2 x i32>", "ds_read_b64_tr_b8"),
    (6, 96, "ds.read.tr6.b96.v3i32", "<3 x i32>", "ds_read_b96_tr_b6"),
    (4, 64, "ds.read.tr4.b64.v2i32", "<2 x i32>", "ds_read_b64_tr_b4"),
)
ROWS = {
    (g, bits): TransposeRow(g, bits, square(g, bits, 16), name, carrier, {"gfx950": instruction})
    for g, bits, name, carrier, instruction in _TABLE
}


class LdsReadTrans(TransposeCopy):
    """A transposing LDS read; see the module for the lane map."""

    __slots__ = ()

    mnemonic = "fly_rocdl.cdna4.lds_read_trans"
    rows = ROWS
    spaces = (("shared", "register"),)


def atoms() -> list[LdsReadTrans]:
    """One atom for each row."""
    return [LdsReadTrans(g, bits) for g, bits in ROWS]


register_payload(LdsReadTrans.mnemonic, LdsReadTrans.parse)
