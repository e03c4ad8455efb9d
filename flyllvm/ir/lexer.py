"""Tokens of the textual fly IR, with their places."""

from __future__ import annotations

import bisect
import re

from ..errors import ParseError

#: Brackets nest at most this deep inside one type.
MAX_TYPE_DEPTH = 64
_MAX_DIGITS = 60

_TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t\r\n]|//[^\n]*)+)
      | (?P<value>%[\w$.]+(?:\#[0-9]+)?)
      | (?P<word>[A-Za-z_][\w$.]*)
      | (?P<arrow>->)
      | (?P<number>0x[0-9A-Fa-f]+|-?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?)
      | (?P<text>"(?:[^"\\\n]|\\[^\n])*")
      | (?P<type>![A-Za-z_][\w$.]*)
      | (?P<attr>\#[A-Za-z_][\w$.]*)
      | (?P<symbol>@[A-Za-z_][\w$.]*)
      | (?P<at>@)
      | (?P<label>\^[A-Za-z_][\w$.]*)
      | (?P<mark>[:,=(){}\[\]<>?*|])""",
    re.VERBOSE | re.ASCII,
)
_BRACKET = re.compile(r'->|[<>()\[\]{}]|"(?:[^"\\\n]|\\[^\n])*"|\n')
_CLOSER = {"<": ">", "(": ")", "[": "]", "{": "}"}
_LONG_NUMBER = re.compile(rf"\d{{{_MAX_DIGITS + 1}}}", re.ASCII)


class Token:
    """One token.

    Attributes:
        kind: ``value``, ``word``, ``number``, ``text``, ``type`` (``!name`` with its parameters, or a vector),
            ``attr`` (``#name`` with its parameters), ``symbol``, ``at``, ``label``, ``arrow``, ``mark`` or ``end``.
        text: The token as written.
        pos: Offset of its first character.
    """

    __slots__ = ("kind", "pos", "text")

    def __init__(self, kind: str, text: str, pos: int) -> None:
        self.kind, self.text, self.pos = kind, text, pos

    def __str__(self) -> str:
        if self.kind == "end":
            return "the end of the text"
        return repr(self.text if len(self.text) <= 60 else self.text[:57] + "...")


class Source:
    """A text with its name and the places of its lines."""

    __slots__ = ("filename", "starts", "text")

    def __init__(self, text: str, filename: str) -> None:
        self.text, self.filename = text, filename
        self.starts = [0, *(m.end() for m in re.finditer("\n", text))]

    def line_col(self, pos: int) -> tuple[int, int]:
        """1-based line and column of an offset."""
        line = bisect.bisect_right(self.starts, pos)
        return line, pos - self.starts[line - 1] + 1

    def place(self, pos: int) -> str:
        """``file:line:col``."""
        line, col = self.line_col(pos)
        return f"{self.filename}:{line}:{col}"


def tokens_of(source: Source) -> list[Token]:
    """Cuts a text into tokens, an ``end`` token last.

    Raises:
        ParseError: A character no token starts with, an unclosed bracket of a type, or a number that is too long.
    """
    text, out, pos = source.text, [], 0
    match, end = _TOKEN.match, len(text)
    while pos < end:
        m = match(text, pos)
        if m is None:
            raise _bad_character(source, pos)
        kind, stop = m.lastgroup or "", m.end()
        if kind == "blank":
            pos = stop
            continue
        if kind in ("type", "attr") or (kind == "word" and m[0] == "vector"):
            if stop < end and text[stop] == "<":
                stop = _closing(source, stop)
                kind = "type" if kind == "word" else kind
        elif kind == "number" and stop - pos > _MAX_DIGITS:
            raise ParseError(
                "a number of more digits than any type holds", source.place(pos), f"use at most {_MAX_DIGITS}"
            )
        out.append(Token(kind, text[pos:stop], pos))
        pos = stop
    out.append(Token("end", "", end))
    return out


def _bad_character(source: Source, pos: int) -> ParseError:
    char = source.text[pos]
    if char == '"':
        return ParseError("a quoted text does not end on its line", source.place(pos), 'close it with "')
    return ParseError(f"no token starts with {char!r}", source.place(pos), "see the grammar in docs/ir.md")


def _closing(source: Source, pos: int) -> int:
    """The offset after the bracket that closes the one at ``pos``."""
    stack: list[str] = []
    for m in _BRACKET.finditer(source.text, pos):
        mark = m[0]
        if mark in _CLOSER:
            stack.append(_CLOSER[mark])
            if len(stack) > MAX_TYPE_DEPTH:
                raise ParseError(
                    f"brackets nest deeper than {MAX_TYPE_DEPTH} in a type",
                    source.place(m.start()),
                    "write a flatter layout",
                )
        elif mark == "\n":
            break
        elif mark != "->" and mark[0] != '"':
            if mark != stack.pop():
                raise ParseError(
                    f"{mark!r} closes no bracket of this type", source.place(m.start()), "balance the brackets"
                )
            if not stack:
                if _LONG_NUMBER.search(source.text, pos, m.end()):
                    raise ParseError(
                        "a number of more digits than any type holds", source.place(pos), f"use at most {_MAX_DIGITS}"
                    )
                return m.end()
    raise ParseError("a bracket of this type is not closed on its line", source.place(pos), "close it with '>'")
