"""Dropping instructions whose value nothing uses.

Lowering emits an operation when it comes to it; sometimes an address form that folds better replaces the
value later.  LLVM would drop what is left behind too, but sees its uses of other values until then.
"""

from __future__ import annotations

_PURE = frozenset(
    "add sub mul shl lshr ashr and or xor icmp fcmp select zext sext trunc getelementptr phi bitcast "
    "extractelement insertelement shufflevector extractvalue insertvalue fptrunc fpext sitofp uitofp fptosi fptoui "
    "fadd fsub fmul fneg ptrtoint inttoptr addrspacecast".split()
)
# What may stand behind a name becomes a blank.  A regular expression would be as fast; its package is dear to import.
_BLANKS = bytes(32 if char in b",)]}>" else char for char in range(256))


def drop_dead(segments: list[list[str]]) -> list[str]:
    """The lines of a function body without the pure instructions that nothing needs."""
    lines = [line for segment in segments for line in segment]
    plain = "\n".join(lines).encode().translate(_BLANKS).decode()
    # Generated names are %v and a number.  Of each pure instruction: its line, cut where names begin.
    needs: dict[str, list[str]] = {}
    defines: list[str] = []
    live: set[str] = set()
    for line in plain.split("\n"):
        pieces = line.split("%v")
        first = 1
        if pieces[0] == "  ":
            words = pieces[1].split(" ", 3)  # name = instruction ...
            if words[2] in _PURE:
                needs[words[0]] = pieces
                defines.append(words[0])
                continue
            first = 2
        defines.append("")
        for piece in pieces[first:]:
            live.add(piece.partition(" ")[0])
    work = list(live)
    for name in work:
        for piece in needs.get(name, ())[2:]:
            other = piece.partition(" ")[0]
            if other not in live:
                live.add(other)
                work.append(other)
    if live.issuperset(needs):
        return lines
    return [line for line, name in zip(lines, defines, strict=True) if not name or name in live]
