"""The automatic choices: between LLVM's IR passes and none, and whether loops are strength-reduced.

Emitted IR carries what the passes would infer, so small kernels do without: 10 to 15 ms of 40.  Large tiles get them:
code generation saves what they cost, and the hot loop of a tile that fills the registers comes out shorter on gfx90a
(345 instead of 412 instructions for 256 x 256 x 64) and never longer by more than a hundredth.
Measured with ``benchmarks/bench_levers.py``; see docs/performance.md.

LLVM's loop strength reduction does not know what a memory instruction adds for free: it turns a scalar base that moves
with the loop, plus the same 32-bit offset of each lane in every iteration, into pointers that each lane counts up, and
gives neighbouring accesses of a buffer a register each instead of an immediate offset.  So it is left out where
accesses in loops are of such a form.  It stays where they are not, as it then saves an addition here and there; and for
large tiles, where offsets that wait in registers through the loop cost more than additions (345 instead of 391
instructions on gfx90a).
"""

from __future__ import annotations

#: Registers of a lane that loops carry, above which a tile is large.
LARGE_TILE_REGISTERS = 192
_MARK = "; large tile: "
_FOLDED = "; no strength reduction: "


def mark_large_tile(text: str, carried_registers: int) -> str:
    """The module, with a comment that says so where a kernel's tile is large.

    The choice is read off the text, so that a text from the cache or from a file gets the same treatment.
    """
    if carried_registers <= LARGE_TILE_REGISTERS:
        return text
    return f"{text}{_MARK}{carried_registers} registers of a lane are carried through the loop\n"


def mark_folded(text: str, folded: int, whole: int, carried_registers: int) -> str:
    """The module, with a comment that says so where loops are better left as they are.

    Args:
        text: The module.
        folded: Accesses in loops whose address the instruction itself adds up from parts.
        whole: Accesses in loops whose address is computed for each lane.
        carried_registers: Registers of a lane that loops carry.
    """
    if folded <= whole or carried_registers > LARGE_TILE_REGISTERS:
        return text
    return f"{text}{_FOLDED}{folded} addresses in loops fold into their accesses\n"


def reduces_strength(ir_text: str) -> bool:
    """Whether LLVM's loop strength reduction runs on a module."""
    return _FOLDED not in ir_text


def choose_passes(ir_text: str, passes: str) -> tuple[str, str]:
    """(pipeline, why) for a module; ``auto`` is decided here."""
    if passes != "auto":
        return passes, "as asked"
    start = ir_text.rfind(_MARK)
    if start < 0:
        return "none", f"no loop carries more than {LARGE_TILE_REGISTERS} registers of a lane"
    return "O1", f"{ir_text[start + len(_MARK) :].splitlines()[0]}"
