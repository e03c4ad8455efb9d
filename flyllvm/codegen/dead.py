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
# What may stand beside a name; a regular expression would be as fast, but its package is dear to import.
_BESIDE = str.maketrans("(),[]{}<>", " " * 9)


def _names(text: str) -> list[str]:
    """The generated names in a text: ``%v`` and a number."""
    return [w for w in text.translate(_BESIDE).split() if w[:2] == "%v" and w[2:].isdecimal()]


def drop_dead(segments: list[list[str]]) -> list[str]:
    """The lines of a function body without the pure instructions that nothing needs."""
    lines = [line for segment in segments for line in segment]
    needs: dict[str, list[str]] = {}
    defines: list[str] = []
    live: set[str] = set()
    for line in lines:
        name, _, value = line.partition(" = ")
        if name[:4] == "  %v" and value.partition(" ")[0] in _PURE:
            needs[name[2:]] = _names(value)
            defines.append(name[2:])
        else:
            live.update(_names(line))
            defines.append("")
    work = list(live)
    while work:
        for name in needs.get(work.pop(), ()):
            if name not in live:
                live.add(name)
                work.append(name)
    if live.issuperset(needs):
        return lines
    return [line for line, name in zip(lines, defines, strict=True) if not name or name in live]
