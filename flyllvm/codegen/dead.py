"""Dropping instructions whose value nothing uses.

Lowering emits an operation when it comes to it; sometimes an address form that folds better replaces the
value later.  LLVM would drop what is left behind too, but sees its uses of other values until then.
"""

from __future__ import annotations

import re

_NAMES = re.compile(r"%v\d+").findall
_PURE = re.compile(
    r"  (%v\d+) = (?:add|sub|mul|shl|lshr|ashr|and|or|xor|icmp|fcmp|select|zext|sext|trunc|getelementptr|phi|bitcast"
    r"|extractelement|insertelement|shufflevector|extractvalue|insertvalue|fptrunc|fpext|sitofp|uitofp|fptosi|fptoui"
    r"|fadd|fsub|fmul|fneg|ptrtoint|inttoptr|addrspacecast) "
).match


def drop_dead(segments: list[list[str]]) -> list[str]:
    """The lines of a function body without the pure instructions that nothing needs."""
    lines = [line for segment in segments for line in segment]
    needs: dict[str, list[str]] = {}
    defines: list[str] = []
    live: set[str] = set()
    for line in lines:
        found = _PURE(line)
        if found is None:
            live.update(_NAMES(line))
            defines.append("")
        else:
            name = found[1]
            needs[name] = _NAMES(line, found.end())
            defines.append(name)
    work = list(live)
    while work:
        for name in needs.get(work.pop(), ()):
            if name not in live:
                live.add(name)
                work.append(name)
    if live.issuperset(needs):
        return lines
    return [line for line, name in zip(lines, defines, strict=True) if not name or name in live]
