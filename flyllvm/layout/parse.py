"""Reads the text form of int tuples, layouts, swizzles, composed layouts, tiles and calls of operations.

Grammar (blanks do not matter)::

    value   := part ("o" offset "o" part)*          composed layouts, to the left
    part    := tuple [":" tuple] | "[" value "]" | tile | swizzle | NAME "(" [value ("," value)*] ")"
    tuple   := leaf | "(" [tuple ("," tuple)*] ")"
    leaf    := INT basis* | "*" | "?" ["{" ["i32" | "i64"] ["div=" INT] "}"] basis*
    basis   := "E" INT
    tile    := "[" entry ("|" entry)* "]"           entry: leaf, layout or tile
    swizzle := "S<" INT "," INT "," INT ">" | "CS<" INT "," INT ",[" INT,... "]," INT ",[" INT,... "]>"

``(7)`` is a tuple of rank 1 and stays one.  ``[x]`` is a tile, except where a composed layout stands inside.
"""

from __future__ import annotations

from ..errors import ParseError
from .core import ComposedLayout, Layout, Tile
from .dyn import Dyn
from .leaf import STAR, Basis
from .swizzle import CoordSwizzle, Swizzle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_DIGITS = frozenset("0123456789")
_NAME_START = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_")
_NAME = _NAME_START | _DIGITS
_BLANK = frozenset(" \t\r\n")
_MOST_DIGITS = 18  # an index fits 64 bits


class Parser:
    """A recursive-descent reader over one text.

    Args:
        text: What to read.
        call: Evaluates ``name(args)``; without it calls are refused.
    """

    __slots__ = ("call", "pos", "text")

    def __init__(self, text: str, call: Callable[[str, list[Any]], Any] | None = None) -> None:
        self.text = text
        self.pos = 0
        self.call = call

    def fail(self, expected: str) -> ParseError:
        """An error at the current place."""
        rest = self.text[self.pos : self.pos + 12]
        found = f"{rest!r}" if rest else "the end"
        return ParseError(f"cannot read {self.text!r}: expected {expected} at column {self.pos + 1}, found {found}")

    def peek(self) -> str:
        """The next character that is no blank, or an empty string."""
        text, pos = self.text, self.pos
        while pos < len(text) and text[pos] in _BLANK:
            pos += 1
        self.pos = pos
        return text[pos] if pos < len(text) else ""

    def accept(self, token: str) -> bool:
        """Takes ``token`` if it comes next."""
        self.peek()
        if self.text.startswith(token, self.pos):
            self.pos += len(token)
            return True
        return False

    def expect(self, token: str) -> None:
        """Takes ``token``, which must come next."""
        if not self.accept(token):
            raise self.fail(f"{token!r}")

    def integer(self) -> int:
        """A decimal integer, with sign."""
        self.peek()
        text, start = self.text, self.pos
        pos = start + 1 if text.startswith("-", start) else start
        digits = pos
        while pos < len(text) and text[pos] in _DIGITS:
            pos += 1
        if pos == digits:
            raise self.fail("an integer")
        if pos - digits > _MOST_DIGITS:
            raise self.fail(f"an integer of at most {_MOST_DIGITS} digits")
        self.pos = pos
        return int(text[start:pos])

    def name(self) -> str:
        """An identifier, dots included (``mma.make_fragment``); empty if there is none."""
        start = pos = self.pos
        text = self.text
        if self.peek() in _NAME_START and self.peek():
            start = pos = self.pos
            while pos < len(text) and (text[pos] in _NAME or text[pos] == "."):
                pos += 1
            self.pos = pos
        return text[start:pos]

    def whole(self) -> Any:
        """One value that is the whole text."""
        result = self.value()
        if self.peek():
            raise self.fail("the end")
        return result

    def _accept_o(self) -> bool:
        """Takes the composition sign ``o``, a word of its own."""
        if self.peek() != "o":
            return False
        after = self.text[self.pos + 1 : self.pos + 2]
        if after in _NAME_START and after:
            return False
        self.pos += 1
        return True

    def value(self) -> Any:
        """A part, or a chain of parts composed to the left."""
        result = self.part()
        while self._accept_o():
            offset = self.part()
            if not self._accept_o():
                raise self.fail("'o' and the outer layout")
            result = ComposedLayout(result, offset, self.part())
        return result

    def part(self) -> Any:
        """A value that is no chain."""
        c = self.peek()
        if c == "[":
            return self._bracket()
        if c in _NAME_START and c:
            return self._named()
        if c == "(":
            self.pos += 1
            items = self._list(")")
            t: Any = tuple(items)
        else:
            t = self.leaf()
        if self.peek() == ":":
            self.pos += 1
            return Layout(t, self.part_tuple())
        return t

    def part_tuple(self) -> Any:
        """A leaf or a tuple."""
        if self.accept("("):
            return tuple(self._list(")"))
        return self.leaf()

    def _list(self, end: str) -> list[Any]:
        items: list[Any] = []
        if self.accept(end):
            return items
        while True:
            items.append(self.part_tuple())
            if self.peek() == ",":
                self.pos += 1
            elif self.accept(end):
                return items
            else:
                raise self.fail(f"',' or {end!r}")

    def leaf(self) -> Any:
        """An integer, ``*``, a dynamic leaf, or a basis leaf."""
        c = self.peek()
        if c == "*":
            self.pos += 1
            return STAR
        if c == "?":
            self.pos += 1
            result: Any = self._dynamic()
        elif c in _DIGITS or c == "-":
            result = self.integer()
        else:
            raise self.fail("an integer, '?', '*' or '('")
        path = []
        while self.text.startswith("E", self.pos):
            self.pos += 1
            path.append(self.integer())
        return Basis(result, tuple(path)) if path else result

    def _dynamic(self) -> Dyn:
        width, divisibility = 32, 1
        if self.text.startswith("{", self.pos):
            self.pos += 1
            while not self.accept("}"):
                if self.accept("i64"):
                    width = 64
                elif self.accept("i32"):
                    width = 32
                elif self.accept("div"):
                    self.expect("=")
                    divisibility = self.integer()
                else:
                    raise self.fail("'i32', 'i64', 'div=' or '}'")
                self.accept(",")
        return Dyn(width, divisibility)

    def _bracket(self) -> Any:
        self.expect("[")
        entries = [self._entry()]
        while self.accept("|"):
            entries.append(self._entry())
        self.expect("]")
        if len(entries) == 1 and isinstance(entries[0], ComposedLayout):
            return entries[0]
        return Tile(*entries)

    def _entry(self) -> Any:
        return self.value()

    def _path(self) -> tuple[int, ...]:
        self.expect("[")
        steps = [self.integer()]
        while self.accept(","):
            steps.append(self.integer())
        self.expect("]")
        return tuple(steps)

    def _numbers(self, n: int) -> list[int]:
        out = [self.integer()]
        for _ in range(n - 1):
            self.expect(",")
            out.append(self.integer())
        return out

    def _named(self) -> Any:
        start = self.pos
        name = self.name()
        if name == "S" and self.accept("<"):
            mask, base, shift = self._numbers(3)
            self.expect(">")
            return Swizzle(mask, base, shift)
        if name == "CS" and self.accept("<"):
            mask, row_base = self._numbers(2)
            self.expect(",")
            row = self._path()
            self.expect(",")
            col_base = self.integer()
            self.expect(",")
            col = self._path()
            self.expect(">")
            return CoordSwizzle(mask, row_base, row, col_base, col)
        if self.call is None or not self.accept("("):
            self.pos = start
            raise self.fail("a value" if self.call is None else "a value or a call 'name(...)'")
        args: list[Any] = []
        if not self.accept(")"):
            args.append(self.value())
            while self.accept(","):
                args.append(self.value())
            self.expect(")")
        return self.call(name, args)


def parse(text: str) -> Any:
    """Reads an int tuple, layout, swizzle, composed layout or tile.

    Raises:
        ParseError: The text is malformed; the message shows the column.
        LayoutError: The text is well formed but means no legal value.
    """
    if not isinstance(text, str):
        raise ParseError(f"parse needs text, got {text!r}")
    try:
        return Parser(text).whole()
    except RecursionError:
        raise ParseError("cannot read the text: it nests too deep") from None
