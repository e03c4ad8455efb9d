"""Tokens of LLVM IR text."""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NoReturn

from ..errors import ParseError

_TOKEN = re.compile(
    r"""
    (?P<skip>[ \t\r\n]+|;[^\n]*)
  | (?P<label>(?:"[^"]*"|[-a-zA-Z$._0-9]+):(?!:))
  | (?P<local>%(?:"[^"]*"|[-a-zA-Z$._0-9]+))
  | (?P<global>@(?:"[^"]*"|[-a-zA-Z$._0-9]+))
  | (?P<num>[-+](?:inf|s?nan\(0x[0-9a-fA-F]+\)|q?nan)|f0x[0-9a-fA-F]+
           |[-+]?[0-9]+\.[0-9]*(?:[eE][-+]?[0-9]+)?|0x[KLMHR]?[0-9a-fA-F]+|[us]0x[0-9a-fA-F]+|-?[0-9]+)
  | (?P<str>c?"[^"]*")
  | (?P<word>[a-zA-Z_$.][-a-zA-Z_$.0-9]*)
  | (?P<attr>\#[0-9]+)
  | (?P<record>\#dbg_[a-z]+)
  | (?P<meta>![-a-zA-Z$._0-9\\]*)
  | (?P<punct>\.\.\.|[=,()\[\]{}<>*|:^&])
    """,
    re.VERBOSE,
)
_META_DEF = re.compile(r"^(![-a-zA-Z$._0-9]+)\s*=\s*(.*?)\s*$", re.MULTILINE)

_ESCAPE = re.compile(rb"\\([0-9a-fA-F]{2}|\\)")

Token = tuple[str, str, int]


def _name(text: str) -> str:
    """A name without its quotes and escapes: ``"a\\22b"`` is ``a"b``."""
    text = text.strip('"')
    if "\\" not in text:
        return text
    raw = _ESCAPE.sub(lambda m: bytes([int(m[1], 16)]) if m[1] != b"\\" else m[1], text.encode("utf-8"))
    return raw.decode("utf-8", "backslashreplace")


class Stream:
    """The tokens of a module and a cursor into them.

    Attributes:
        metadata: Metadata definitions, which are taken out before scanning because few are ever looked at.
    """

    __slots__ = ("index", "line_starts", "metadata", "source_name", "tokens")

    def __init__(self, text: str, source_name: str) -> None:
        self.source_name = source_name
        self.line_starts = [0] + [m.end() for m in re.finditer("\n", text)]
        self.metadata: dict[str, str] = {}
        self.index = 0
        self.tokens: list[Token] = []
        self._scan(_META_DEF.sub(self._take_metadata, text))

    def _take_metadata(self, match: re.Match[str]) -> str:
        self.metadata[match.group(1)] = match.group(2)
        return " " * (match.end() - match.start())

    def _scan(self, text: str) -> None:
        match_at, position, tokens = _TOKEN.match, 0, self.tokens
        while position < len(text):
            match = match_at(text, position)
            if match is None:
                self.error_at(position, f"unexpected character {text[position]!r}")
            kind = match.lastgroup
            if kind == "label":
                tokens.append(("label", _name(match.group()[:-1]), position))
            elif kind in ("local", "global"):
                tokens.append((str(kind), _name(match.group()[1:]), position))
            elif kind != "skip":
                tokens.append((str(kind), match.group(), position))
            position = match.end()
        tokens.append(("eof", "end of text", max(0, len(text.rstrip()) - 1)))

    def where(self, position: int) -> str:
        """``file:line:column`` of a character position."""
        line = bisect_right(self.line_starts, position)
        return f"{self.source_name}:{line}:{position - self.line_starts[line - 1] + 1}"

    def line(self) -> int:
        """Line of the next token."""
        return bisect_right(self.line_starts, self.tokens[self.index][2])

    def error_at(self, position: int, what: str, fix: str | None = None) -> NoReturn:
        """Raises a ``ParseError`` with line and column."""
        raise ParseError(what, self.where(position), fix or "give LLVM IR text as LLVM 19 to 22 print it")

    def error(self, what: str, fix: str | None = None) -> NoReturn:
        """Raises a ``ParseError`` at the next token."""
        self.error_at(self.tokens[self.index][2], what, fix)

    def peek(self) -> str:
        """Text of the next token."""
        return self.tokens[self.index][1]

    def kind(self) -> str:
        """Kind of the next token."""
        return self.tokens[self.index][0]

    def next(self) -> str:
        """Takes the next token."""
        token = self.tokens[self.index]
        if token[0] == "eof":
            self.error("the text ends in the middle of a definition")
        self.index += 1
        return token[1]

    def at(self, text: str) -> bool:
        """Whether the next token is this punctuation or word."""
        token = self.tokens[self.index]
        return token[1] == text and token[0] in ("punct", "word", "meta")

    def accept(self, text: str) -> bool:
        """Takes the next token if it is this punctuation or word."""
        if self.at(text):
            self.index += 1
            return True
        return False

    def expect(self, text: str) -> None:
        """Takes this punctuation or word."""
        if not self.accept(text):
            self.error(f"expected {text!r}, found {self.peek()!r}")

    def expect_kind(self, kind: str, what: str) -> str:
        """Takes a token of that kind."""
        if self.kind() != kind:
            self.error(f"expected {what}, found {self.peek()!r}")
        return self.next()

    def number(self) -> int:
        """Takes an integer."""
        text = self.expect_kind("num", "an integer")
        try:
            return int(text, 0) if "x" in text else int(text)
        except ValueError:
            self.index -= 1
            self.error(f"expected an integer, found {text!r}")

    def skip_balanced(self) -> None:
        """Skips a bracketed group that starts at the next token."""
        depth = 0
        while True:
            text = self.next()
            if text in ("(", "[", "{", "<"):
                depth += 1
            elif text in (")", "]", "}", ">"):
                depth -= 1
            if depth == 0:
                return
