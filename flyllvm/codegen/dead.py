"""Dropping instructions whose value nothing uses.

Lowering emits an operation when it comes to it; sometimes an address form that folds better replaces the
value later.  LLVM would drop what is left behind too, but sees its uses of other values until then.
"""

from __future__ import annotations

import re
from collections import Counter

_NAMES = re.compile(r"%v\d+").findall
_PURE = frozenset(
    """add sub mul shl lshr ashr and or xor icmp fcmp select zext sext trunc getelementptr phi bitcast extractelement
    insertelement shufflevector extractvalue insertvalue fptrunc fpext sitofp uitofp fptosi fptoui fadd fsub fmul fneg
    ptrtoint inttoptr addrspacecast""".split()
)


def drop_dead(segments: list[list[str]]) -> list[str]:
    """The lines of a function body without the pure instructions that nothing needs."""
    lines = [line for segment in segments for line in segment]
    uses = Counter(_NAMES("\n".join(lines)))
    # A value that is named once is named by its definition only.
    dead = [name for name, count in uses.items() if count == 1]
    if not dead:
        return lines
    at = {line[2 : line.find(" ", 3)]: i for i, line in enumerate(lines) if line.startswith("  %v")}
    dropped: set[int] = set()
    while dead:
        i = at.get(dead.pop())
        if i is None or not _is_pure(lines[i]):
            continue
        dropped.add(i)
        for name in _NAMES(lines[i]):
            uses[name] -= 1
            if uses[name] == 1:
                dead.append(name)
    return [line for i, line in enumerate(lines) if i not in dropped]


def _is_pure(line: str) -> bool:
    start = line.find(" = ") + 3
    return line[start : line.find(" ", start)] in _PURE
