"""Fields of an atom's state, and the struct they form.

A stateful atom is a value that carries its fields.  ``set_value`` gives a *new* value with one field replaced; the old
one keeps what it had.  The LLVM form is a literal struct of the fields in order, ``{ i32, i32 }``.
"""

from __future__ import annotations

from ..errors import StateError
from ..ir import lltype as ll
from ..ir.types import IntType, Type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


class AtomStateField:
    """One field of an atom's state.

    Args:
        name: Name as authors write it in ``set_value`` and as keyword of ``copy`` and ``gemm``.
        type: Integer type of the field.
        default: Value of a field that nobody sets.  ``None``: there is no neutral value, so using the atom with the
            field unset is an error (the scale 0 of an MX operand is ``2**-127``, not 1).
        doc: What the field does, one sentence.
        units: What one unit of the value is: ``elements``, ``bytes``, ``mask``, ...
        constant: The instruction holds the value as an immediate, so it must be known at compile time.
        minimum, maximum: Legal values, both included, where the instruction has fewer than the type.

    Raises:
        StateError: A bound or the default does not fit the type.
    """

    __slots__ = ("constant", "default", "doc", "maximum", "minimum", "name", "type", "units")

    def __init__(
        self,
        name: str,
        type: IntType,
        *,
        default: int | None,
        doc: str,
        units: str,
        constant: bool = False,
        minimum: int | None = None,
        maximum: int | None = None,
    ) -> None:
        self.name = name
        self.type = type
        self.default = default
        self.doc = doc
        self.units = units
        self.constant = constant
        # Signless: a pattern of bits may be written as the signed or as the unsigned number.
        self.minimum = -(1 << (type.bits - 1)) if minimum is None else minimum
        self.maximum = (1 << type.bits) - 1 if maximum is None else maximum
        if default is not None and not self.minimum <= default <= self.maximum:
            raise StateError(
                f"default {default} of state field {name}: {type} is out of range",
                fix=f"a value from {self.minimum} to {self.maximum}",
            )

    def __repr__(self) -> str:
        tail = "no default" if self.default is None else f"default {self.default}"
        kind = "constant, " if self.constant else ""
        return f"{self.name}: {self.type} ({kind}in {self.units}, {tail})"


class StateStruct:
    """The state of one kind of atom: ordered fields.

    Args:
        owner: Name of the atom, for messages (``cdna3.buffer_copy``).
        fields: The fields in the order of the LLVM struct.

    Attributes:
        lltype: The literal LLVM struct, ``{ i32, i32 }``.
        defaults: A default per field, ``None`` where there is none.

    Raises:
        StateError: Two fields have the same name, or there is no field.
    """

    __slots__ = ("_index", "defaults", "fields", "lltype", "owner")

    def __init__(self, owner: str, *fields: AtomStateField) -> None:
        self.owner = owner
        self.fields = fields
        self._index = {field.name: i for i, field in enumerate(fields)}
        if not fields or len(self._index) != len(fields):
            names = ", ".join(f.name for f in fields) or "none"
            raise StateError(f"state of {owner}: fields {names}", fix="give at least one field, each name once")
        self.lltype: ll.LLType = ll.struct(tuple([field.type.storage for field in fields]))
        self.defaults: tuple[int | None, ...] = tuple([field.default for field in fields])

    def __iter__(self) -> Iterator[AtomStateField]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def __repr__(self) -> str:
        return f"{self.owner} {{{', '.join(map(repr, self.fields))}}}"

    def index(self, name: str) -> int:
        """Position of a field.

        Raises:
            StateError: The atom has no such field.
        """
        found = self._index.get(name)
        if found is None:
            raise StateError(f"{self.owner} has no state field {name!r}", fix=f"its fields: {self._listed()}")
        return found

    def field(self, name: str) -> AtomStateField:
        """A field by its name.

        Raises:
            StateError: The atom has no such field.
        """
        return self.fields[self.index(name)]

    def check_value(self, name: str, type: Type) -> AtomStateField:
        """The field, if a value of ``type`` may be set into it.

        Raises:
            StateError: The atom has no such field, or the field has another type.
        """
        field = self.field(name)
        if type != field.type:
            raise StateError(
                f"{self.owner}: state field {name} cannot hold a value of type {type}",
                fix=f"pass an {field.type}, in {field.units}; the fields of the atom: {self._listed()}",
            )
        return field

    def check_constant(self, name: str, value: int | float | None) -> int:
        """The integer of a field whose instruction takes an immediate.

        Args:
            name: The field.
            value: What is known of it at compile time; ``None`` for a run-time value.

        Raises:
            StateError: The value is not known at compile time, or the instruction cannot encode it.
        """
        field = self.field(name)
        if not isinstance(value, int):
            raise StateError(
                f"{self.owner}: state field {name} is a run-time value, but the instruction holds it as an immediate",
                fix=f"{name} must be a compile-time constant (in {field.units}); add run-time parts to the address",
            )
        if not field.minimum <= value <= field.maximum:
            raise StateError(
                f"{self.owner}: state field {name} = {value} does not fit the instruction",
                fix=f"a value from {field.minimum} to {field.maximum}, in {field.units}",
            )
        return value

    def check_set(self, values: Sequence[object | None]) -> None:
        """Checks that no field is used unset.

        Args:
            values: What each field holds, ``None`` for a field that was never set and has no default.

        Raises:
            StateError: A field is unset.
        """
        for field, value in zip(self.fields, values, strict=True):
            if value is None:
                raise StateError(
                    f"{self.owner} is used with its state field {field.name} unset; {field.doc}",
                    fix=f"set it first: atom.set_value({field.name!r}, ...) or the keyword {field.name}=...",
                )

    def _listed(self) -> str:
        return ", ".join(map(repr, self.fields))
