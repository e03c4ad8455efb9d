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
    work: list[str] = []
    for line in lines:
        names = _NAMES(line)
        if _is_pure(line):
            needs[names[0]] = names
        else:
            work += names
    live = set(work)
    while work:
        for name in needs.get(work.pop(), ()):
            if name not in live:
                live.add(name)
                work.append(name)
    if all(name in live for name in needs):
        return lines
    return [line for line in lines if not _is_pure(line) or _NAMES(line)[0] in live]


def _is_pure(line: str) -> bool:
    if not line.startswith("  %v"):
        return False
    start = line.find(" = ") + 3
    return line[start : line.find(" ", start)] in _PURE
