"""Modifiers of matrix instructions: immediates that are part of an atom's spelling.

``fly_rocdl.gfx11.wmma<16x16x16, (i8, i8) -> i32, signA = 1, signB = 1>``.  A flag that is not written is 0.  Flags are
no rows of a table: one row serves all their values.
"""

from __future__ import annotations

from ..errors import AtomError, ParseError
from .rows import MmaTable, RowMma
from .spelling import parse_mma

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from .rows import MmaRow

_WORDS = {"false": 0, "true": 1}


class Flag:
    """One modifier: its name in the spelling, the largest value (the smallest is 0), and what it does."""

    __slots__ = ("doc", "maximum", "name")

    def __init__(self, name: str, doc: str, maximum: int = 1) -> None:
        self.name = name
        self.doc = doc
        self.maximum = maximum


class FlaggedRowMma(RowMma):
    """The atom of a row with modifiers.

    Args:
        row: The row.
        flags: Values by name; what is absent is 0.

    Attributes:
        flags: The values that are not 0.

    Raises:
        AtomError: The row has no such flag, or the value is out of range.
    """

    __slots__ = ("flags",)

    def __init__(self, row: MmaRow, flags: Mapping[str, int] | None = None) -> None:
        known = {flag.name: flag for flag in self.flags_of(row)}
        self.flags: dict[str, int] = {}
        for name, value in (flags or {}).items():
            flag = known.get(name)
            if flag is None:
                legal = ", ".join(f"{f.name} (0 to {f.maximum})" for f in known.values()) or "none"
                raise AtomError(f"{row.family}<{row.title}> has no flag {name!r}", fix=f"its flags: {legal}")
            if not isinstance(value, int) or not 0 <= value <= flag.maximum:
                raise AtomError(
                    f"{row.family}<{row.title}>: {name} = {value!r}", fix=f"{name} is 0 to {flag.maximum}: {flag.doc}"
                )
            if value:
                self.flags[name] = int(value)
        tail = "".join([f", {name} = {self.flags[name]}" for name in known if name in self.flags])
        super().__init__(row, self.table.spelling(row) + tail)

    @classmethod
    def flags_of(cls, row: MmaRow) -> tuple[Flag, ...]:
        """The flags that the instruction of a row has."""
        return ()

    @classmethod
    def parse(cls, params: str) -> Self:
        """The atom of ``16x16x16, (f16, f16) -> f32[, wave = 64][, flag = value ...]``.

        Raises:
            ParseError: The text is not of this form.
            AtomError: No such row or flag.
        """
        names = dict.fromkeys([f.name for row in cls.table.rows for f in cls.flags_of(row)])
        variants = dict.fromkeys([row.variant for row in cls.table.rows if row.variant])
        keys = dict.fromkeys([variant.partition(" ")[0] for variant in variants])
        shape, elements, found = parse_mma(cls.mnemonic, params, (*keys, *names))
        variant = cls._variant(params, found, variants, list(keys))
        row = cls.table.find(shape, elements, None, None, variant)
        flags = {name: _number(cls.mnemonic, params, name, text) for name, text in found.items() if name in names}
        return cls(row, flags)

    @classmethod
    def _variant(cls, params: str, found: dict[str, str], variants: Mapping[str, None], keys: list[str]) -> str:
        said = [f"{key} = {found[key]}" for key in keys if key in found]
        usual = cls.usual_variant()
        if not said or said == [usual]:
            return ""
        if said[0] not in variants or len(said) > 1:
            legal = ", ".join([*([usual] if usual else []), *variants])
            raise ParseError(f"{', '.join(said)} in !{cls.mnemonic}<{params}>", fix=f"use one of: {legal}")
        return said[0]

    @classmethod
    def usual_variant(cls) -> str:
        """The variant that is meant where none is written."""
        return ""

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        legal = [{"name": f.name, "maximum": f.maximum, "doc": f.doc} for f in self.flags_of(self.row)]
        return super().describe() | {"flags": legal}


def _number(mnemonic: str, params: str, name: str, text: str) -> int:
    if text in _WORDS:
        return _WORDS[text]
    if not text.isdigit():
        raise ParseError(f"{name} = {text} in !{mnemonic}<{params}>", fix=f"write a number, e.g. {name} = 1")
    return int(text)


def accumulator_of(table: MmaTable, a: str, b: str) -> str:
    """The accumulator of a pair of inputs: f32 where the instruction has a choice, else the only one."""
    accs = [row.elements[2] for row in table.rows if row.elements[:2] == (a, b)]
    return "f32" if "f32" in accs or not accs else accs[0]
