"""Per-instruction memory statistics: segments of global accesses and bank conflicts of LDS accesses.

The bank model: a pass serves as many consecutive lanes as fill all banks (32 lanes of 4 bytes over 32 banks), and lasts
as many cycles as the busiest bank has different 4-byte words.  Hardware groups the lanes of 8- and 16-byte accesses in
other orders on some chips, so the numbers of wide accesses are estimates.

Source: CDNA3 and RDNA3 ISA manuals, local data share (banks of four bytes; 32, on gfx950 and gfx1250 64 of them).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from .values import Array

if TYPE_CHECKING:
    from .cfg import Node
    from .compile import Program
    from .ir import Inst
    from .machine import Machine

SEGMENT_BYTES = (64, 128)


class Access:
    """Sums over all accesses of one instruction.

    Units: ``bytes`` asked for by lanes; ``segments`` of 64 and 128 bytes touched, per wave access; ``cycles`` of LDS
    passes, and ``ideal_cycles`` without conflicts.
    """

    __slots__ = ("bytes", "cycles", "ideal_cycles", "lanes", "segments", "space", "waves")

    def __init__(self, space: str) -> None:
        self.space = space
        self.bytes = self.lanes = self.waves = self.cycles = self.ideal_cycles = 0
        self.segments = [0, 0]


class Profile:
    """Statistics of a launch, by instruction."""

    def __init__(self, banks: int) -> None:
        self.banks = banks
        self.bank_words: dict[Inst, Array] = {}
        self.accesses: dict[Inst, Access] = {}

    def note(
        self,
        m: Machine,
        inst: Inst,
        space: str,
        offset: Array,
        byte_count: int,
        packed: bool,
        rows: Array | None = None,
    ) -> None:
        """Counts one access of the running lanes.

        Args:
            m: The machine.
            inst: The instruction.
            space: ``global`` or ``LDS``.
            offset: Byte addresses or flat offsets.
            byte_count: Bytes per lane.
            packed: ``offset`` holds running lanes only.
            rows: Lane of each packed offset where these are not the running lanes.
        """
        access = self.accesses.setdefault(inst, Access(space))
        if not packed:
            offset = np.broadcast_to(offset, m.shape)[m.mask]
        elif offset.size == 1 and m.active > 1:
            offset = np.broadcast_to(offset.ravel(), (m.active,))
        lanes = np.flatnonzero(m.mask) if rows is None else rows
        wave, lane = lanes // m.wave_size, lanes % m.wave_size
        access.lanes += len(lanes)
        access.bytes += len(lanes) * byte_count
        access.waves += len(np.unique(wave))
        address = offset.astype(np.int64)
        if space == "global":
            for i, size in enumerate(SEGMENT_BYTES):
                ends = np.concatenate((address // size, (address + byte_count - 1) // size))
                access.segments[i] += len(np.unique(np.concatenate((wave, wave)) * (1 << 44) + ends))
        elif space == "LDS":
            cycles, passes = bank_cycles(wave, lane, address, byte_count, self.banks)
            access.cycles += cycles
            access.ideal_cycles += passes
            words = (address[:, None] >> 2) + np.arange(max(1, byte_count // 4))
            counts = np.bincount(words.ravel() % self.banks, minlength=self.banks)
            self.bank_words[inst] = self.bank_words.get(inst, 0) + counts


def bank_cycles(wave: Array, lane: Array, address: Array, byte_count: int, banks: int) -> tuple[int, int]:
    """Cycles that LDS accesses take, and how many they would take without conflicts.

    Args:
        wave: Wave of each access.
        lane: Lane of each access.
        address: Byte address in LDS.
        byte_count: Bytes per access.
        banks: Number of four-byte banks.
    """
    words_per_lane = max(1, byte_count // 4)
    lanes_per_pass = max(1, banks // words_per_lane)
    turn = wave * 64 + lane // lanes_per_pass
    word = (address[:, None] >> 2) + np.arange(words_per_lane)
    key = np.stack([np.broadcast_to(turn[:, None], word.shape).ravel(), (word % banks).ravel(), word.ravel()])
    distinct = np.unique(key, axis=1)[:2]
    groups, counts = np.unique(distinct, axis=1, return_counts=True)
    first = np.flatnonzero(np.concatenate(([True], groups[0, 1:] != groups[0, :-1])))
    worst = np.maximum.reduceat(counts, first)
    return int(worst.sum()), len(first)


def rows_by_line(launch: Any, profile: Profile | None) -> list[dict[str, Any]]:
    """One row per author's line: instructions, lanes, memory traffic, conflicts, clipped lanes."""
    program = launch.program
    rows: dict[str, dict[str, Any]] = {}
    for places, (_, lanes, waves) in zip(program.places(), launch.counts, strict=True):
        for place in places:
            row = rows.get(place.where)
            if row is None:
                row = rows[place.where] = {"where": place.where, "text": place.text, **_COUNTS}
            row["instructions"] += waves * place.instructions
            row["lane_instructions"] += lanes * place.instructions
            row["matrix_flops"] += waves * place.matrix_flops
    for inst, clipped in launch.clipped.items():
        rows[program.locator.chain(inst)[0]]["clipped_lanes"] += clipped
    for inst, access in profile.accesses.items() if profile is not None else ():
        row = rows[program.locator.chain(inst)[0]]
        if access.space == "global":
            row["global_bytes"] += access.bytes
            row["segments_64"] += access.segments[0]
            row["segments_128"] += access.segments[1]
        else:
            row["lds_bytes"] += access.bytes
            row["lds_cycles"] += access.cycles
            row["lds_ideal_cycles"] += access.ideal_cycles
    return [row for row in rows.values() if row["instructions"]]


class Place:
    """An author's line in a node: its instructions there, and the FLOPs of one wave's matrix instructions.

    Attributes:
        where: The line.
        text: The first instruction, where there is no debug information.
        kinds: Number of instructions by kind.
    """

    __slots__ = ("instructions", "kinds", "matrix_flops", "text", "where")

    def __init__(self, where: str, text: str) -> None:
        self.where, self.text = where, text
        self.instructions = self.matrix_flops = 0
        self.kinds: dict[str, int] = {}


def places_of(program: Program, node: Node) -> list[Place]:
    """The author's lines in a node."""
    from . import matrix

    found: dict[str, Place] = {}
    for inst in (*node.phis, *node.insts, node.end):
        where = program.locator.chain(inst)[0]
        place = found.get(where)
        if place is None:
            place = found[where] = Place(where, program.text_of(inst) if inst.dbg is None else "")
        kind = inst.op
        if kind == "call":
            kind = (inst.callee or "").removeprefix("llvm.").removeprefix("amdgcn.")
            if matrix.supports(kind):
                place.matrix_flops += matrix.flops(kind)
        place.instructions += 1
        place.kinds[kind] = place.kinds.get(kind, 0) + 1
    return list(found.values())


_COUNTS = dict.fromkeys(
    (
        "instructions", "lane_instructions", "matrix_flops", "clipped_lanes", "global_bytes", "segments_64",
        "segments_128", "lds_bytes", "lds_cycles", "lds_ideal_cycles",
    ), 0,
)  # fmt: skip


_HEAD = ("waves", "lanes/wave", "global B", "64 B seg", "used", "LDS B", "conflict")
_WIDTHS = (9, 10, 11, 9, 5, 11, 8)


def table(rows: list[dict[str, Any]]) -> list[str]:
    """Lines with memory traffic or at least a hundredth of the instructions, as aligned text."""
    total = sum(row["instructions"] for row in rows)
    lines = [_aligned(_HEAD, "line")]
    for row in rows:
        if not (row["segments_64"] or row["lds_cycles"] or row["matrix_flops"] or row["instructions"] * 100 >= total):
            continue
        used = f"{100 * row['global_bytes'] / (64 * row['segments_64']):.0f}%" if row["segments_64"] else ""
        conflict = f"{row['lds_cycles'] / row['lds_ideal_cycles']:.2f}x" if row["lds_ideal_cycles"] else ""
        cells = (
            row["instructions"], f"{row['lane_instructions'] / row['instructions']:.1f}", row["global_bytes"] or "",
            row["segments_64"] or "", used, row["lds_bytes"] or "", conflict,
        )  # fmt: skip
        lines.append(_aligned(cells, row["where"]))
    return lines


def _aligned(cells: tuple[Any, ...], last: str) -> str:
    return "  " + " ".join(f"{cell!s:>{width}}" for cell, width in zip(cells, _WIDTHS, strict=True)) + f"  {last}"
