"""DPP controls: from which lane of its wave each lane reads.

Source: CDNA3 ISA manual and RDNA3 ISA manual, data parallel primitives.
"""

from __future__ import annotations

import numpy as np

from .values import Array


def sources(control: int, wave_size: int) -> Array | None:
    """The source lane of each lane, -1 where there is none; ``None`` for an unknown control."""
    lane = np.arange(wave_size)
    row, place = lane // 16 * 16, lane % 16
    if control <= 0xFF:  # quad_perm
        return (lane & ~3) | (control >> (2 * (lane & 3)) & 3)
    count = control & 0xF
    if 0x101 <= control <= 0x10F:  # row_shl
        return np.where(place + count < 16, lane + count, -1)
    if 0x111 <= control <= 0x11F:  # row_shr
        return np.where(place >= count, lane - count, -1)
    if 0x121 <= control <= 0x12F:  # row_ror
        return row + (place - count) % 16
    if 0x150 <= control <= 0x15F:  # row_newbcast, row_share
        return row + count
    if 0x160 <= control <= 0x16F:  # row_xmask
        return row + (place ^ count)
    table = {
        0x130: np.where(lane + 1 < wave_size, lane + 1, -1),  # wave_shl
        0x134: (lane + 1) % wave_size,  # wave_rol
        0x138: lane - 1,  # wave_shr
        0x13C: (lane - 1) % wave_size,  # wave_ror
        0x140: row + 15 - place,  # row_mirror
        0x141: (lane & ~7) + 7 - lane % 8,  # row_half_mirror
        0x142: np.where(lane >= 16, row - 1, -1),  # row_bcast15
        0x143: np.where(lane >= 32, np.full_like(lane, 31), -1),  # row_bcast31
    }
    return table.get(control)
