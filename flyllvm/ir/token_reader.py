"""Walks over tokens: expectations with clear errors, attributes, types and locations."""

from __future__ import annotations

from ..errors import FlyError, ParseError
from . import types as t
from .attr_text import float_of_bits, unquote
from .core import MAX_DEPTH
from .lexer import Source, Token, tokens_of
from .location import UNKNOWN, Frame, Location
from .parse_types import parse_attr_object, read_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_MAX_FRAMES = 64


class TokenReader:
    """Reads the small parts of the grammar.

    Attributes:
        source: The text.
        tok: The token that comes next.
    """

    def __init__(self, text: str, filename: str) -> None:
        self.source = Source(text, filename)
        self._tokens = tokens_of(self.source)
        self._at = 0
        self.tok = self._tokens[0]
        self._types: dict[str, t.Type] = {}
        self._depth = 0

    # --- tokens ----------------------------------------------------------------------------------

    def advance(self) -> Token:
        """Takes the next token."""
        token = self.tok
        if token.kind != "end":
            self._at += 1
            self.tok = self._tokens[self._at]
        return token

    def peek(self, ahead: int = 1) -> Token:
        """A token further on."""
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def is_(self, text: str) -> bool:
        """Whether the next token is this mark, arrow or word."""
        return self.tok.text == text and self.tok.kind in ("mark", "arrow", "word")

    def accept(self, text: str) -> bool:
        """Takes the next token if it is this mark, arrow or word."""
        if self.is_(text):
            self.advance()
            return True
        return False

    def fail(self, what: str, fix: str | None = None, token: Token | None = None) -> ParseError:
        """An error at a token, the next one by default."""
        return ParseError(what, self.source.place((token or self.tok).pos), fix)

    def expected(self, what: str, fix: str | None = None) -> ParseError:
        """An error that says what should stand here instead of the next token."""
        return self.fail(f"expected {what}, found {self.tok}", fix)

    def expect(self, text: str, fix: str | None = None) -> Token:
        """Takes this mark, arrow or word, which must come next."""
        if not self.is_(text):
            raise self.expected(repr(text), fix)
        return self.advance()

    def take(self, kind: str, what: str, fix: str | None = None) -> Token:
        """Takes a token of a kind, which must come next."""
        if self.tok.kind != kind:
            raise self.expected(what, fix)
        return self.advance()

    def deeper(self) -> None:
        """Enters one level of nesting.

        Raises:
            ParseError: The text nests too deep.
        """
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self.fail(f"the text nests deeper than {MAX_DEPTH} levels", "write it flatter")

    def up(self) -> None:
        """Leaves one level of nesting."""
        self._depth -= 1

    # --- names and numbers -----------------------------------------------------------------------

    def symbol(self) -> str:
        """``@name`` or ``@"name"``."""
        if self.tok.kind == "symbol":
            return self.advance().text[1:]
        if self.tok.kind == "at":
            self.advance()
            return self.text("a symbol name in quotes")
        raise self.expected("a symbol such as @kernel")

    def text(self, what: str) -> str:
        """A quoted text."""
        return unquote(self.take("text", what).text)

    def integer(self, what: str = "an integer") -> int:
        """A decimal or hexadecimal integer."""
        token = self.tok
        value = self.number() if token.kind == "number" else None
        if not isinstance(value, int):
            raise self.fail(f"expected {what}, found {token}", token=token)
        return value

    def number(self) -> int | float:
        """An integer or a float."""
        text = self.take("number", "a number").text
        if text.startswith("0x"):
            return int(text, 16)
        return int(text) if text.lstrip("-").isdecimal() else float(text)

    # --- types -----------------------------------------------------------------------------------

    def type(self) -> t.Type:
        """A type."""
        token = self.tok
        if token.kind not in ("type", "word"):
            raise self.expected("a type")
        self.advance()
        found = self._types.get(token.text)
        if found is None:
            found = self._types[token.text] = read_type(token.text, self.source.place(token.pos))
        return found

    def type_list(self) -> list[t.Type]:
        """``(T, T)``."""
        self.expect("(")
        types: list[t.Type] = []
        while not self.accept(")"):
            if types:
                self.expect(",")
            types.append(self.type())
        return types

    def result_types(self) -> list[t.Type]:
        """``T`` or ``(T, T)``."""
        return self.type_list() if self.is_("(") else [self.type()]

    # --- attributes ------------------------------------------------------------------------------

    def attr_dict(self) -> dict[str, Any]:
        """``{a = 1 : i32, b}``."""
        self.deeper()
        self.expect("{")
        out: dict[str, Any] = {}
        while not self.accept("}"):
            if out:
                self.expect(",")
            token = self.tok
            key = self.text("an attribute") if token.kind == "text" else self.take("word", "an attribute").text
            if key in out:
                raise self.fail(f"attribute {key!r} is given twice", "write it once", token)
            out[key] = self.attr() if self.accept("=") else True
        self.up()
        return out

    def attr(self) -> Any:
        """One attribute value."""
        token = self.tok
        if token.kind == "number":
            value = self.number()
            return self._typed_number(value, self.type(), token) if self.accept(":") else value
        if token.kind == "text":
            return unquote(self.advance().text)
        if token.kind == "attr":
            self.advance()
            try:
                return parse_attr_object(token.text)
            except FlyError as e:
                raise ParseError(e.what, self.source.place(token.pos), e.fix) from None
        if self.is_("{"):
            return self.attr_dict()
        if self.is_("["):
            return self._attr_list()
        if token.text in ("true", "false") and token.kind == "word":
            return self.advance().text == "true"
        if self.is_("array"):
            return self._int_array()
        if token.kind in ("type", "word"):
            return self.type()
        raise self.expected("an attribute value", 'write e.g. 1 : i32, "text", true, [..], {..}, array<i32: 1, 2>')

    def _typed_number(self, value: int | float, type_: t.Type, token: Token) -> int | float:
        if isinstance(type_, t.IntType) and isinstance(value, int):
            return value
        if isinstance(type_, t.FloatType):
            return self.float_value(value, type_, token)
        raise self.fail(f"{token.text} is no number of type {type_}", "use an integer or a float type that fits", token)

    def float_value(self, value: int | float, type_: t.FloatType, token: Token) -> float:
        """The float a number means; a hexadecimal one is the bits."""
        if isinstance(value, float):
            return value
        if token.text.startswith("0x"):
            found = float_of_bits(value, type_.text)
            if found is None:
                raise self.fail(f"{token.text} are no bits of an {type_}", "give f16, bf16, f32 or f64 bits", token)
            return found
        return float(value)

    def _attr_list(self) -> tuple[Any, ...]:
        self.deeper()
        self.expect("[")
        out: list[Any] = []
        while not self.accept("]"):
            if out:
                self.expect(",")
            out.append(self.attr())
        self.up()
        return tuple(out)

    def _int_array(self) -> tuple[int, ...]:
        self.expect("array")
        self.expect("<")
        self.type()
        out: list[int] = []
        if self.accept(":"):
            out.append(self.integer())
            while self.accept(","):
                out.append(self.integer())
        self.expect(">")
        return tuple(out)

    # --- locations -------------------------------------------------------------------------------

    def location(self) -> Location | None:
        """``loc(...)`` if it comes next."""
        if not (self.is_("loc") and self.peek().text == "("):
            return None
        self.advance()
        self.advance()
        if self.accept("unknown"):
            self.expect(")")
            return UNKNOWN
        frames, calls = [], 0
        while self.accept("callsite"):
            calls += 1
            if calls > _MAX_FRAMES:
                raise self.fail(f"more than {_MAX_FRAMES} call sites in one location", "keep the inner ones")
            self.expect("(")
            frames.append(self._frame())
            self.expect("at")
        frames.append(self._frame())
        for _ in range(calls + 1):
            self.expect(")")
        return Location(tuple(frames))

    def _frame(self) -> Frame:
        text = self.text('a file such as "kernel.py", or unknown')
        if not self.accept("("):
            return self._place(text, "", 0)
        func, _, first = text.rpartition(":")
        if not first.isdecimal() or len(first) > 9:
            func, first = text, "0"
        frame = self._place(self.text("a file"), func, int(first))
        self.expect(")")
        return frame

    def _place(self, file: str, func: str, func_line: int) -> Frame:
        self.expect(":")
        line = self.integer("a line")
        self.expect(":")
        return Frame(file, line, func, func_line, self.integer("a column"))
