"""The automatic choice between LLVM's IR passes and none.

Emitted IR carries what the passes would infer, so small kernels do without: 10 to 15 ms of 40.  Large tiles get them:
code generation saves what they cost, and the hot loop of a tile that fills the registers comes out shorter on gfx90a
(345 instead of 412 instructions for 256 x 256 x 64) and never longer by more than a hundredth.
Measured with ``benchmarks/bench_levers.py``; see docs/performance.md.
"""

from __future__ import annotations

#: Registers of a lane that loops carry, above which a tile is large.
LARGE_TILE_REGISTERS = 192
_MARK = "; large tile: "


def mark_large_tile(text: str, carried_registers: int) -> str:
    """The module, with a comment that says so where a kernel's tile is large.

    The choice is read off the text, so that a text from the cache or from a file gets the same treatment.
    """
    if carried_registers <= LARGE_TILE_REGISTERS:
        return text
    return f"{text}{_MARK}{carried_registers} registers of a lane are carried through the loop\n"


def choose_passes(ir_text: str, passes: str) -> tuple[str, str]:
    """(pipeline, why) for a module; ``auto`` is decided here."""
    if passes != "auto":
        return passes, "as asked"
    start = ir_text.rfind(_MARK)
    if start < 0:
        return "none", f"no loop carries more than {LARGE_TILE_REGISTERS} registers of a lane"
    return "O1", f"{ir_text[start + len(_MARK) :].splitlines()[0]}"
