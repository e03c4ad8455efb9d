"""Atom state during emission: a tuple of values that becomes an LLVM struct only where one is needed."""

from __future__ import annotations

from ..errors import CodegenError, StateError
from ..ir.protocols import LLValue

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.lltype import LLType
    from .text import TextBuilder


class StructValue(LLValue):
    """A struct whose fields are known one by one.

    Reading ``text`` builds the struct at the current place, so a consumer need not know of this class.

    Attributes:
        fields: Field values; ``None`` for a field that is not set.
        names: Field names for messages, or ().
        owner: What the struct belongs to, for messages.
    """

    __slots__ = ("em", "fields", "names", "owner")

    def __init__(
        self,
        em: TextBuilder,
        type: LLType,
        fields: Sequence[LLValue | None],
        names: tuple[str, ...] = (),
        owner: object = "the struct",
    ) -> None:
        self.em = em
        self.fields = tuple(fields)
        self.names = names
        self.owner = owner
        self.type = type
        self.const = None
        self.uniform = all(f is None or f.uniform for f in self.fields)
        self.level = max((f.level for f in self.fields if f is not None), default=0)

    @property
    def text(self) -> str:  # type: ignore[override]
        """Operand text of the struct, made of ``insertvalue`` where a field is no constant."""
        return self.em.build_struct(self)

    def field(self, index: int) -> LLValue:
        """One field.

        Raises:
            StateError: The field is not set.
        """
        if not 0 <= index < len(self.fields):
            raise CodegenError(
                f"field {index} of {self.type.text}", self.em.loc, f"use an index from 0 to {len(self.fields) - 1}"
            )
        value = self.fields[index]
        if value is None:
            name = self.names[index] if index < len(self.names) else str(index)
            raise StateError(
                f"state field {name!r} of {self.owner} is used but never set",
                self.em.loc,
                f"set it before the call: atom.set_value({name!r}, value); it has no neutral default",
            )
        return value

    def with_field(self, index: int, value: LLValue | None) -> StructValue:
        """The struct with one field replaced."""
        fields = list(self.fields)
        fields[index] = value
        return StructValue(self.em, self.type, fields, self.names, self.owner)
