"""How the parameters of a type or an atom are cut apart."""

from __future__ import annotations

# An arrow is no closing bracket, and what stands in quotes is no bracket either.
_CUT = r'->|[<>()\[\]{},]|"(?:[^"\\\n]|\\[^\n])*"'
_BRACKETS = frozenset('<>()[]{}"')


def split_params(text: str) -> list[str]:
    """The parts between commas that are outside brackets, without blanks around them; none for empty text."""
    if _BRACKETS.isdisjoint(text):
        return [part.strip() for part in text.split(",")] if text.strip() else []
    import re  # most parameters do without it

    parts, depth, start = [], 0, 0
    for m in re.finditer(_CUT, text):
        mark = m[0]
        if mark == ",":
            if depth == 0:
                parts.append(text[start : m.start()].strip())
                start = m.end()
        elif mark in "<([{":
            depth += 1
        elif mark in ">)]}":
            depth -= 1
    tail = text[start:].strip()
    return [*parts, tail] if parts or tail else []
