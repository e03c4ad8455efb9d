"""Dense MFMA of gfx90a, gfx942 and gfx950: which lane and value holds each element, and what the modifiers do.

Lane formulas (64 lanes, block ``b`` of ``B``, tile MxNxK with M = N):

- A: ``lane = m + M*b + M*B*(k // V)``, ``value = k % V`` with ``V = K*M*B/64`` values per lane; B the same with n for
m.
- C and D, 32-bit: rows go in groups of 4 to consecutive values.  ``lane = n + N*(b % P) + N*P*((m // 4) % G)``,
  ``value = m % 4 + 4*(m // (4*G)) + (M*N/64)*(b // P)``.  P blocks share a register and G row groups fit in one:
  ``P = max(1, 256/(M*N))``, ``G = 64/(N*P)``.
- C and D, 64-bit: the same with groups of one row.

Without a published register map, so derived by the family rule above and proved by probes only: f32.16x16x8.xf32,
f64.4x4x4f64, i32.32x32x16.i8, i32.16x16x64.i8, and f32.4x4x4bf16.1k on gfx90a (its map is published for gfx942).

Source: CDNA2, CDNA3 and CDNA4 ISA manuals, chapter "Matrix arithmetic instructions".
"""

from __future__ import annotations

import numpy as np

from ..errors import SimError
from ..target import Target
from . import matrix_core as core
from .matrix_element import element_for
from .matrix_fragment import Fetch, Index, Store

_ALL = ("gfx90a", "gfx942", "gfx950")
_90A = ("gfx90a",)
_CDNA3 = ("gfx942", "gfx950")
_942 = ("gfx942",)
_950 = ("gfx950",)


class MfmaRow:
    """One dense MFMA instruction.

    Attributes:
        name: Intrinsic name without ``llvm.amdgcn.``.
        mn: Rows and columns of the tile.
        k: Depth of the tile.
        blocks: Independent products in one instruction.
        a, b: Element names of the inputs.
        acc: Element name of accumulator and result.
        targets: Processors that have the instruction.
        permutes_b: Whether BLGP permutes the lanes of B (the rows that CDNA1 and CDNA2 introduced).
    """

    __slots__ = ("a", "acc", "b", "blocks", "k", "mn", "name", "permutes_b", "targets")

    def __init__(
        self,
        name: str,
        mn: int,
        k: int,
        blocks: int,
        element: str,
        targets: tuple[str, ...],
        *,
        b: str | None = None,
        permutes_b: bool = False,
    ) -> None:
        self.name = f"mfma.{name}"
        self.mn = mn
        self.k = k
        self.blocks = blocks
        self.a = element
        self.b = b or element
        self.acc = name.split(".")[0]
        self.targets = targets
        self.permutes_b = permutes_b

    @property
    def values_in(self) -> int:
        """Values of A (and of B) per lane."""
        return self.k * self.mn * self.blocks // 64

    @property
    def values_out(self) -> int:
        """Values of C and D per lane."""
        return self.mn * self.mn * self.blocks // 64

    @property
    def flops(self) -> int:
        """Multiplications and additions of one wave."""
        return 2 * self.mn * self.mn * self.k * self.blocks


def _rows() -> dict[str, MfmaRow]:
    old = [
        # name, M = N, K, blocks, element, targets: the rows whose BLGP permutes B
        ("f32.32x32x1f32", 32, 1, 2, "f32", _ALL),
        ("f32.16x16x1f32", 16, 1, 4, "f32", _ALL),
        ("f32.4x4x1f32", 4, 1, 16, "f32", _ALL),
        ("f32.32x32x2f32", 32, 2, 1, "f32", _ALL),
        ("f32.16x16x4f32", 16, 4, 1, "f32", _ALL),
        ("f32.32x32x4f16", 32, 4, 2, "f16", _ALL),
        ("f32.16x16x4f16", 16, 4, 4, "f16", _ALL),
        ("f32.4x4x4f16", 4, 4, 16, "f16", _ALL),
        ("f32.32x32x8f16", 32, 8, 1, "f16", _ALL),
        ("f32.16x16x16f16", 16, 16, 1, "f16", _ALL),
        ("f32.32x32x4bf16.1k", 32, 4, 2, "bf16", _ALL),
        ("f32.16x16x4bf16.1k", 16, 4, 4, "bf16", _ALL),
        ("f32.4x4x4bf16.1k", 4, 4, 16, "bf16", _ALL),
        ("f32.32x32x8bf16.1k", 32, 8, 1, "bf16", _ALL),
        ("f32.16x16x16bf16.1k", 16, 16, 1, "bf16", _ALL),
        ("f32.32x32x2bf16", 32, 2, 2, "bf16", _90A),
        ("f32.16x16x2bf16", 16, 2, 4, "bf16", _90A),
        ("f32.4x4x2bf16", 4, 2, 16, "bf16", _90A),
        ("f32.32x32x4bf16", 32, 4, 1, "bf16", _90A),
        ("f32.16x16x8bf16", 16, 8, 1, "bf16", _90A),
        ("i32.32x32x4i8", 32, 4, 2, "i8", _ALL),
        ("i32.16x16x4i8", 16, 4, 4, "i8", _ALL),
        ("i32.4x4x4i8", 4, 4, 16, "i8", _ALL),
        ("i32.32x32x8i8", 32, 8, 1, "i8", _90A),
        ("i32.16x16x16i8", 16, 16, 1, "i8", _90A),
    ]
    new = [
        ("f32.32x32x4.xf32", 32, 4, 1, "xf32", _942),
        ("f32.16x16x8.xf32", 16, 8, 1, "xf32", _942),
        ("i32.32x32x16.i8", 32, 16, 1, "i8", _CDNA3),
        ("i32.16x16x32.i8", 16, 32, 1, "i8", _CDNA3),
        ("i32.32x32x32.i8", 32, 32, 1, "i8", _950),
        ("i32.16x16x64.i8", 16, 64, 1, "i8", _950),
        ("f32.32x32x16.f16", 32, 16, 1, "f16", _950),
        ("f32.16x16x32.f16", 16, 32, 1, "f16", _950),
        ("f32.32x32x16.bf16", 32, 16, 1, "bf16", _950),
        ("f32.16x16x32.bf16", 16, 32, 1, "bf16", _950),
        ("f64.16x16x4f64", 16, 4, 1, "f64", _ALL),
        ("f64.4x4x4f64", 4, 4, 4, "f64", _ALL),
    ]
    rows = [MfmaRow(*row, permutes_b=True) for row in old] + [MfmaRow(*row) for row in new]
    for a in ("fp8", "bf8"):
        for b in ("fp8", "bf8"):
            rows.append(MfmaRow(f"f32.32x32x16.{a}.{b}", 32, 16, 1, a, _CDNA3, b=b))
            rows.append(MfmaRow(f"f32.16x16x32.{a}.{b}", 16, 32, 1, a, _CDNA3, b=b))
    return {row.name: row for row in rows}


ROWS: dict[str, MfmaRow] = _rows()


def input_index(mn: int, k: int, blocks: int) -> Index:
    """Flat position ``lane * V + value`` of A[block][m][k] (and of B[block][k][n] as ``[block][n][k]``).

    Shape: ``(blocks, MN, K)``.
    """
    values = k * mn * blocks // 64
    block, m, depth = core.grid(blocks, mn, k)
    lane = m + mn * block + mn * blocks * (depth // values)
    return lane * values + depth % values


def output_index(mn: int, blocks: int, rows_per_group: int) -> Index:
    """Flat position ``lane * V + value`` of D[block][m][n].

    Shape: ``(blocks, MN, MN)``.
    """
    values = mn * mn * blocks // 64
    block, m, n = core.grid(blocks, mn, mn)
    sharing = max(1, 64 * rows_per_group // (mn * mn))
    groups = 64 // (mn * sharing)
    lane = n + mn * (block % sharing) + mn * sharing * ((m // rows_per_group) % groups)
    per_block = max(1, mn * mn // 64)
    value = m % rows_per_group + rows_per_group * (m // (rows_per_group * groups)) + per_block * (block // sharing)
    return lane * values + value


def lane_of_b(blgp: int) -> Index:
    """The lane that B values of each lane are read from.

    BLGP 1 and 2 give the first and second half of the wave to both halves, 3 rotates by a quarter, 4 to 7 give one
    quarter to all.

    Source: CDNA3 ISA manual, VOP3P-MAI field BLGP.
    """
    lane = np.arange(64)
    if blgp in (1, 2):
        return lane % 32 + 32 * (blgp - 1)
    if blgp == 3:
        return (lane + 16) % 64
    if blgp >= 4:
        return lane % 16 + 16 * (blgp - 4)
    return lane


def _check_modifiers(row: MfmaRow, cbsz: int, abid: int, blgp: int, processor: str) -> None:
    limit = 0 if row.acc == "f64" else row.blocks.bit_length() - 1
    if cbsz not in (0, limit):
        # The ISA manual broadcasts lanes (l % S + S * abid, S = 64 >> cbsz), AMD's calculator broadcasts one block to
        # its 2**cbsz neighbours.  They agree at the ends only.
        legal = "cbsz 0" if limit == 0 else f"cbsz 0 or {limit}, where AMD's manual and AMD's calculator agree"
        raise SimError(f"{row.name}: cbsz {cbsz} on {row.blocks} block(s)", fix=legal)
    if not 0 <= abid < 1 << cbsz:
        raise SimError(f"{row.name}: abid {abid} with cbsz {cbsz}", fix=f"abid 0 to {(1 << cbsz) - 1} (below 2**cbsz)")
    negates = row.acc == "f64" and processor != "gfx90a"
    legal_blgp = 7 if row.permutes_b or negates else 0
    if not 0 <= blgp <= legal_blgp:
        raise SimError(f"{row.name}: blgp {blgp} on {processor}", fix="blgp 0" if legal_blgp == 0 else "blgp 0 to 7")


def build(row: MfmaRow, immediates: tuple[int, ...], target: Target) -> core.Product:
    """The instruction as a function of the three register arrays A, B and C.

    CBSZ and ABID broadcast A: with ``2**cbsz`` blocks, all of them read block ``abid``.  BLGP permutes the lanes of B,
    or negates A, B, C (bits 0, 1, 2) in the f64 rows of gfx942 and gfx950.

    Raises:
        SimError: A modifier means nothing for this row.
    """
    cbsz, abid, blgp = immediates
    _check_modifiers(row, cbsz, abid, blgp, target.processor)
    flush = target.processor == "gfx90a" and row.a in ("f16", "bf16")
    place = input_index(row.mn, row.k, row.blocks)
    a_index = np.broadcast_to(place[abid], place.shape) if cbsz else place
    b_index = place.swapaxes(1, 2)
    negative = blgp if row.acc == "f64" else 0
    if row.permutes_b and blgp:
        b_index = lane_of_b(blgp)[b_index // row.values_in] * row.values_in + b_index % row.values_in
    if row.blocks == 1:
        a_index, b_index = a_index[0], b_index[0]
    out = core.inverse(output_index(row.mn, row.blocks, 1 if row.acc == "f64" else 4), 64 * row.values_out)
    flavour = target.chip.fp8
    return core.Product(
        Fetch(element_for(row.a, flavour), 64, row.values_in, a_index, flush=flush),
        Fetch(element_for(row.b, flavour), 64, row.values_in, b_index, flush=flush),
        Store(element_for(row.acc, flavour), 64, row.values_out, out, flush=flush, negate=bool(negative & 4)),
        negate=bool((negative ^ (negative >> 1)) & 1),
    )


def _intrinsic(row: MfmaRow) -> core.Intrinsic:
    return core.Intrinsic(
        row.name,
        row.targets,
        (64,),
        {3: "cbsz", 4: "abid", 5: "blgp"},
        row.flops,
        lambda immediates, wave_size, target: build(row, immediates, target),
    )


INTRINSICS: dict[str, core.Intrinsic] = {row.name: _intrinsic(row) for row in ROWS.values()}
