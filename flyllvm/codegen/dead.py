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
# What may stand behind a name.  A regular expression would be as fast, but its package is dear to import.
_BEHIND = ",)]}>"


def _names(text: str) -> list[str]:
    """The generated names in a text, ``%v`` and a number, as the numbers; and what stands before the first of them."""
    for char in _BEHIND:
        text = text.replace(char, " ")
    return [piece[: piece.find(" ")] for piece in f"{text} ".split("%v")]


def drop_dead(segments: list[list[str]]) -> list[str]:
    """The lines of a function body without the pure instructions that nothing needs."""
    lines = [line for segment in segments for line in segment]
    needs: dict[str, str] = {}
    defines: list[str] = []
    needed: list[str] = []
    for line in lines:
        if line[2:4] == "%v":
            name, _, value = line.partition(" = ")
            if value[: value.find(" ")] in _PURE:
                needs[name[4:]] = value
                defines.append(name[4:])
                continue
        needed.append(line)
        defines.append("")
    live = set(_names(" ".join(needed)))
    work = list(live)
    while work:
        for name in _names(needs.get(work.pop(), "")):
            if name not in live:
                live.add(name)
                work.append(name)
    if live.issuperset(needs):
        return lines
    return [line for line, name in zip(lines, defines, strict=True) if not name or name in live]
