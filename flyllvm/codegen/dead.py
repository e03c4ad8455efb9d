"""Dropping instructions whose value nothing uses.

Lowering emits an operation when it comes to it; sometimes an address form that folds better replaces the
value later.  LLVM would drop what is left behind too, but sees its uses of other values until then.
"""

from __future__ import annotations

import re

_NAMES = re.compile(r"%v\d+").findall
_PURE = frozenset(
    """add sub mul shl lshr ashr and or xor icmp fcmp select zext sext trunc getelementptr phi bitcast extractelement
    insertelement shufflevector extractvalue insertvalue fptrunc fpext sitofp uitofp fptosi fptoui fadd fsub fmul fneg
    ptrtoint inttoptr addrspacecast""".split()
)


def drop_dead(segments: list[list[str]]) -> list[str]:
    """The lines of a function body without the pure instructions that nothing needs."""
    lines = [line for segment in segments for line in segment]
    needs: dict[str, list[str]] = {}
    defines: list[str] = []
    work: list[str] = []
    for line in lines:
        names = _NAMES(line)
        if names and _is_pure(line):
            needs[names[0]] = names
            defines.append(names[0])
        else:
            work += names
            defines.append("")
    live = set(work)
    while work:
        for name in needs.get(work.pop(), ()):
            if name not in live:
                live.add(name)
                work.append(name)
    if live.issuperset(needs):
        return lines
    return [line for line, name in zip(lines, defines, strict=True) if not name or name in live]


def _is_pure(line: str) -> bool:
    if line[2] != "%":
        return False
    start = line.find(" = ") + 3
    return line[start : line.find(" ", start)] in _PURE
