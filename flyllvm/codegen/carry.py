"""How fly values cross a branch or a loop: as LLVM values that a phi can join.

A number is itself; an atom is its state struct; a pointer is a run-time offset from a base that does not change, or a
whole pointer where the base does.
"""

from __future__ import annotations

from ..ir import lltype as ll, types as t
from ..ir.protocols import LLValue
from .aggregate import StructValue
from .global_offset import whole_offset, wide_offset
from .lower import Pointer, pointer_type
from .lower_memory import SMALL_SPACES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Value
    from .lower import Lowering


class Form:
    """The form in which one fly value crosses.

    Attributes:
        type: Its fly type.
        types: LLVM types of the parts.
    """

    __slots__ = ("lw", "type", "types")

    def __init__(self, lw: Lowering, type: t.Type, types: list[ll.LLType]) -> None:
        self.lw = lw
        self.type = type
        self.types = types

    def split(self, value: Any) -> list[LLValue]:
        """The parts of a value, emitted at the current place."""
        raise self.lw.em.fail(f"a value of type {self.type} cannot cross a branch", "carry numbers, pointers and atoms")

    def join(self, parts: list[LLValue]) -> Any:
        """The value of parts."""
        raise self.lw.em.fail(f"a value of type {self.type} cannot cross a branch", "carry numbers, pointers and atoms")


class Number(Form):
    """A number or vector, whole."""

    __slots__ = ()

    def split(self, value: Any) -> list[LLValue]:
        """The value itself."""
        return [value]

    def join(self, parts: list[LLValue]) -> Any:
        """The value itself."""
        return parts[0]


class Leaves(Form):
    """An int tuple: its run-time leaves."""

    __slots__ = ()

    def split(self, value: Any) -> list[LLValue]:
        """The leaves."""
        return list(value)

    def join(self, parts: list[LLValue]) -> Any:
        """The leaves as a tuple."""
        return tuple(parts)


class Nothing(Form):
    """A value that its type describes wholly: a static layout, a stateless atom."""

    __slots__ = ()

    def split(self, value: Any) -> list[LLValue]:
        """No parts."""
        return []

    def join(self, parts: list[LLValue]) -> Any:
        """No value."""
        return None


class State(Form):
    """An atom with state: one LLVM struct.

    Attributes:
        like: A state with the same fields; a field is set afterwards if it is set there.
    """

    __slots__ = ("like",)

    def __init__(self, lw: Lowering, type: t.Type, like: StructValue) -> None:
        super().__init__(lw, type, [like.type])
        self.like = like

    def split(self, value: Any) -> list[LLValue]:
        """The struct."""
        for i, (want, got) in enumerate(zip(self.like.fields, value.fields)):
            if want is not None and got is None:
                # Names the field and how to set it.
                value.field(i)
        return [LLValue(value.type, value.text, None, value.uniform, value.level)]

    def join(self, parts: list[LLValue]) -> Any:
        """The state; fields that were not set on every way in stay unset."""
        em, like = self.lw.em, self.like
        fields = [None if f is None else em.extract_value(parts[0], i) for i, f in enumerate(like.fields)]
        return StructValue(em, like.type, fields, like.names, like.owner)


class Offset(Form):
    """A pointer whose base is the same on every way in: its byte offset."""

    __slots__ = ("base", "const")

    def __init__(self, lw: Lowering, type: t.Type, start: Pointer, space: str) -> None:
        wide = ll.I32 if space in SMALL_SPACES else ll.I64
        super().__init__(lw, type, [wide])
        self.base = start.base
        self.const = start.const

    def split(self, value: Any) -> list[LLValue]:
        """The byte offset from the base, beyond the constant that all have in common."""
        em, wide = self.lw.em, self.types[0]
        beyond = value.const - self.const
        if beyond % 8:
            raise em.fail(f"a pointer of type {self.type} moves by a part of a byte", "move it by whole bytes")
        offset = whole_offset(self.lw, value) if wide is ll.I64 else value.offset
        if offset is None:
            return [em.const(wide, beyond // 8)]
        return [em.binary("add", offset, em.const(wide, beyond // 8))]

    def join(self, parts: list[LLValue]) -> Any:
        """The symbolic pointer."""
        return Pointer(self.base, parts[0], self.const)


class Whole(Form):
    """A pointer whose base changes: a full pointer; for a buffer the descriptor and the byte offset."""

    __slots__ = ("space",)

    def __init__(self, lw: Lowering, type: t.Type, pointer: t.PtrType) -> None:
        parts = [pointer_type(lw, pointer)]
        super().__init__(lw, type, [*parts, ll.I32] if pointer.space == "buffer_desc" else parts)
        self.space = pointer.space

    def split(self, value: Any) -> list[LLValue]:
        """The parts."""
        em = self.lw.em
        if value.const % 8:
            raise em.fail(f"a pointer of type {self.type} lies inside a byte", "carry pointers to whole bytes")
        base = self.lw.shared_base(value)
        offset = value.offset if self.space in SMALL_SPACES else wide_offset(self.lw, value)
        if self.space != "buffer_desc":
            return [em.gep(base, offset, value.const // 8)]
        start = em.const(ll.I32, 0) if offset is None else offset
        return [base, em.binary("add", start, em.const(ll.I32, value.const // 8))]

    def join(self, parts: list[LLValue]) -> Any:
        """The symbolic pointer."""
        return Pointer(parts[0], parts[1] if len(parts) > 1 else None)


def form_of(lw: Lowering, type: t.Type, values: list[Any], same_base: bool) -> Form:
    """The form in which values of one type join.

    Args:
        lw: The lowering.
        type: Their fly type.
        values: The values that are known already.
        same_base: All pointers that will join have the base of the first one.
    """
    if isinstance(type, (t.ScalarType, t.VectorType)):
        return Number(lw, type, [t.storage(type)])
    pointer = type.ptr if isinstance(type, t.MemRefType) else type
    if isinstance(pointer, t.PtrType):
        if same_base:
            return Offset(lw, type, values[0], pointer.space)
        return Whole(lw, type, pointer)
    first = values[0] if values else None
    if isinstance(first, StructValue):
        # Unset on one way in is unset afterwards.
        fields = list(first.fields)
        for other in values[1:]:
            fields = [f if g is not None else None for f, g in zip(fields, other.fields)]
        return State(lw, type, StructValue(lw.em, first.type, fields, first.names, first.owner))
    if isinstance(first, tuple) and first:
        return Leaves(lw, type, [v.type for v in first])
    return Nothing(lw, type, [])


#: Operations in a row that are looked through; a longer chain is taken to differ between lanes.
_MAX_DEPTH = 100
#: Operations that keep the base of their first operand.
_KEEPS_BASE = frozenset(("fly.add_offset", "fly.make_view", "fly.get_iter", "fly.apply_swizzle", "fly.recast_iter"))


def root_of(value: Value) -> Value:
    """The value whose base a pointer has."""
    op = value.op
    while op is not None and op.name in _KEEPS_BASE:
        value = op.operands[0]
        op = value.op
    return value


def shared_by_lanes(lw: Lowering, numbers: dict[Value, Value]) -> dict[Value, Value]:
    """Carried numbers that all running lanes of a wave have in common in every iteration.

    Args:
        lw: The lowering.
        numbers: What the body yields for each number that is common at the start.
    """
    shared = dict(numbers)
    while True:
        known: dict[Value, bool] = dict.fromkeys(shared, True)
        lost = [arg for arg, end in shared.items() if not _is_common(lw, end, known)]
        if not lost:
            return shared
        for arg in lost:
            del shared[arg]


def _is_common(lw: Lowering, value: Value, known: dict[Value, bool], depth: int = 0) -> bool:
    """Whether a value of the body, which is not emitted yet, is computed from numbers that lanes share."""
    found = known.get(value)
    if found is None:
        made, op = lw.values.get(value), value.op
        if isinstance(made, LLValue):
            found = made.uniform
        elif op is None or not op.name.startswith("arith.") or depth > _MAX_DEPTH:
            found = False
        else:
            found = all([_is_common(lw, v, known, depth + 1) for v in op.operands])
        known[value] = found
    return found
