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
    # Generated names are %v and a number.  Of each pure instruction: the pieces of its line that begin with a number.
    needs: dict[str, list[str]] = {}
    defines: list[str] = []
    live: set[str] = set()
    for line in plain.split("\n"):
        pieces = line.split("%v")
        del pieces[0]
        name = ""
        if line[2:4] == "%v":
            name, _, value = pieces.pop(0).partition(" = ")
            if value[: value.find(" ")] in _PURE:
                needs[name] = pieces
                defines.append(name)
                continue
        live.update([piece.partition(" ")[0] for piece in pieces])
        defines.append("")
    work = list(live)
    while work:
        for piece in needs.get(work.pop(), ()):
            name = piece.partition(" ")[0]
            if name not in live:
                live.add(name)
                work.append(name)
    if live.issuperset(needs):
        return lines
    return [line for line, name in zip(lines, defines, strict=True) if not name or name in live]
