"""Rows of the tables of matrix instructions, and the atom that a row makes.

A family is a tuple of ``MmaRow`` in one ``MmaTable``, and a class on top of ``RowMma`` that knows the order of the
intrinsic's arguments.  Verification, emission, the command line, docs and tests all read the rows.
"""

from __future__ import annotations

from ..errors import AtomError, TargetError
from ..ir import lltype as ll
from ..ir.types import F32, SCALARS, ScalarType
from ..layout import Layout
from . import contract
from .base import Stateless
from .contract import static_size
from .mma_op import MmaAtomOp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..ir.protocols import Emitter, LLValue
    from ..target import Target

#: Element names that are no storage types: the kernel holds them as another type.
#: ``xf32`` is f32 data of which the matrix unit reads 10 bits of mantissa.
HELD_AS: dict[str, ScalarType] = {"xf32": F32}


def element_type(name: str) -> ScalarType:
    """The type that elements of this name are held in.

    Raises:
        AtomError: There is no such element.
    """
    found = HELD_AS.get(name) or SCALARS.get(name)
    if found is None:
        raise AtomError(f"unknown element type {name!r}", fix=f"one of: {', '.join([*SCALARS, *HELD_AS])}")
    return found


class MmaRow:
    """One matrix instruction with its types.  Immutable; checks itself when it is made.

    Args:
        family: Name of the family, for messages (``cdna3.mfma``).
        shape: (M, N, K) of one block.
        blocks: Independent products in one instruction.
        elements: Element names of A, B, and C with D.
        intrinsic: Full name of the LLVM intrinsic.
        carriers: LLVM types of A, B, and C with D in the intrinsic's signature.
        layouts: (thread, value) layouts of A, B, and C with D; see ``MmaAtomOp``.
        instructions: The instruction that LLVM selects, by processor: exactly the processors that have it.
        cycles: Issue cycles by processor; absent where unknown.
        wave: Lanes in a wave.
        replication: How many lanes hold each element of A and of B.
        slots: Register slots of each accumulator element; 2 where a 16-bit value has 32 bits to itself.
        packing: Elements of A in the product for each that is held: 2 where A is 2:4 sparse.
        variant: What the spelling says besides shape and types (``wave = 64``); empty for the usual row.
        result: Element name of D; that of C unless given.
        checked_on_hardware: Whether somebody has run it on the chip.

    Raises:
        AtomError: Layouts, types and carriers contradict each other.
    """

    __slots__ = (
        "blocks", "carriers", "checked_on_hardware", "cycles", "elements", "family", "instructions", "intrinsic",
        "layouts", "packing", "replication", "result", "result_carrier", "shape", "slots", "variant", "wave",
    )  # fmt: skip

    family: str
    shape: tuple[int, int, int]
    blocks: int
    elements: tuple[str, str, str]
    intrinsic: str
    carriers: tuple[ll.LLType, ll.LLType, ll.LLType]
    layouts: tuple[Layout, Layout, Layout]
    instructions: dict[str, str]
    cycles: dict[str, int]
    wave: int
    replication: tuple[int, int]
    slots: int
    packing: int
    variant: str
    result: str
    result_carrier: ll.LLType
    checked_on_hardware: bool

    def __init__(
        self,
        family: str,
        shape: tuple[int, int, int],
        blocks: int,
        elements: tuple[str, str, str],
        intrinsic: str,
        carriers: tuple[str, str, str],
        layouts: tuple[Layout, Layout, Layout],
        instructions: dict[str, str],
        cycles: dict[str, int],
        *,
        wave: int,
        replication: tuple[int, int] = (1, 1),
        slots: int = 1,
        packing: int = 1,
        variant: str = "",
        result: str = "",
        checked_on_hardware: bool = False,
    ) -> None:
        fields = dict(locals())
        fields["carriers"] = tuple([ll.parse(text) for text in carriers])
        fields["result"] = result or elements[2]
        count = static_size(layouts[2].shape[1], family)
        fields["result_carrier"] = ll.vec(count, SCALARS[result].storage) if result else fields["carriers"][2]
        for name in self.__slots__:
            object.__setattr__(self, name, fields[name])
        for what, layout, count, copies, element, carrier in self.operands():
            values = contract.check_thr_val(what, layout, wave, count * copies)
            bits = element_type(element).bits * (slots if what.endswith("C") else 1)
            contract.check_register(what, values, bits, carrier.bits)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"rows are immutable: cannot set {name}")

    def operands(self) -> Iterator[tuple[str, Layout, int, int, str, ll.LLType]]:
        """For A, B and C: description, layout, elements, copies of each, element name, carrier."""
        m, n, k = self.shape
        counts = (m * k * self.blocks // self.packing, n * k * self.blocks, m * n * self.blocks)
        parts = zip("ABC", self.layouts, counts, (*self.replication, 1), self.elements, self.carriers, strict=True)
        title = f"{self.family} {self.title}"
        for which, layout, count, copies, element, carrier in parts:
            yield f"{title}, {which}", layout, count, copies, element, carrier

    def check_coverage(self) -> None:
        """Checks that each layout holds every element of its operand equally often.

        Raises:
            AtomError: One does not.
        """
        for what, layout, count, copies, _, _ in self.operands():
            contract.check_coverage(what, layout, count, copies)

    @property
    def types_text(self) -> str:
        """``(f16, f16) -> f32``."""
        a, b, acc = self.elements
        return f"({a}, {b}) -> {acc}"

    @property
    def shape_text(self) -> str:
        """``16x16x16``."""
        return "x".join(map(str, self.shape))

    @property
    def title(self) -> str:
        """``16x16x16, (f16, f16) -> f32``, with the blocks where there are several, and the variant."""
        tail = f", blocks = {self.blocks}" if self.blocks > 1 else ""
        return f"{self.shape_text}, {self.types_text}{tail}{self.variant and ', ' + self.variant}"

    @property
    def bytes(self) -> int:
        """Bytes of A, B and C that one wave reads and of D that it writes, copies included."""
        return self.wave * (sum([carrier.bits for carrier in self.carriers]) + self.result_carrier.bits) // 8

    @property
    def flops(self) -> int:
        """Multiplications and additions of one wave."""
        m, n, k = self.shape
        return 2 * m * n * k * self.blocks


class MmaTable:
    """The rows of one family, with look-up that names what is legal.

    Args:
        family: Name of the family, for messages.
        rows: Its rows.

    Raises:
        AtomError: Two rows have the same shape, blocks, types and variant.
    """

    __slots__ = ("_by_key", "family", "rows")

    def __init__(self, family: str, rows: Iterable[MmaRow]) -> None:
        self.family = family
        self.rows = tuple(rows)
        self._by_key: dict[tuple[object, ...], dict[int, MmaRow]] = {}
        for row in self.rows:
            same = self._by_key.setdefault((row.shape, row.elements, row.variant), {})
            if row.blocks in same:
                raise AtomError(f"{family} has two rows {row.title}", fix="give each combination one row")
            same[row.blocks] = row

    def find(
        self,
        shape: tuple[int, int, int],
        elements: tuple[str, str, str],
        blocks: int | None = None,
        processor: str | None = None,
        variant: str = "",
    ) -> MmaRow:
        """The row of a shape and types.

        Args:
            shape: (M, N, K) of one block.
            elements: Names of A, B and the accumulator.
            blocks: Independent products; ``None`` takes the row with fewest.
            processor: The chip the message lists rows of; the row found may be another chip's.
            variant: The row's variant, see ``MmaRow``.

        Raises:
            AtomError: No such row; the fix lists the legal ones.
        """
        same = self._by_key.get((shape, elements, variant), {})
        row = same.get(min(same) if blocks is None and same else blocks or 0)
        if row is None:
            a, b, acc = elements
            tail = ("" if blocks is None else f", blocks = {blocks}") + (variant and f", {variant}")
            raise AtomError(
                f"{self.family} has no {'x'.join(map(str, shape))}, ({a}, {b}) -> {acc}{tail}",
                fix=self.legal(shape, elements, processor),
            )
        return row

    def is_plain(self, row: MmaRow) -> bool:
        """Whether the spelling without blocks means this row."""
        return row.blocks == min(self._by_key[row.shape, row.elements, row.variant])

    def spelling(self, row: MmaRow) -> str:
        """The parameters that mean this row."""
        if not self.is_plain(row):
            return row.title
        return f"{row.shape_text}, {row.types_text}{row.variant and ', ' + row.variant}"

    def other_wave(self, row: MmaRow, wave: int) -> MmaRow | None:
        """The same instruction in waves of another size."""
        key = (row.shape, row.elements, row.blocks, wave)
        return next((r for r in self.rows if (r.shape, r.elements, r.blocks, r.wave) == key), None)

    def legal(self, shape: tuple[int, int, int], elements: tuple[str, str, str], processor: str | None = None) -> str:
        """The nearest legal choices: same types first, then same shape, then all types.

        Args:
            shape: The (M, N, K) asked for.
            elements: The element names asked for.
            processor: Only rows of this processor, where one is given.
        """
        rows = [r for r in self.rows if processor is None or processor in r.instructions]
        on = f" on {processor}" if processor else ""
        if not rows:
            where = ", ".join(dict.fromkeys(p for r in self.rows for p in r.instructions))
            return f"{processor} has no {self.family}; targets with it: {where}"
        found = []
        if same := [r for r in rows if r.elements == elements]:
            found.append(f"{same[0].types_text}{on}: {_shapes(same)}")
        if same := [r for r in rows if r.shape == shape and r.elements != elements]:
            found.append(f"{same[0].shape_text}{on}: {', '.join(dict.fromkeys(r.types_text for r in same))}")
        return "; ".join(found or [f"legal{on}: {_by_types(rows)}"])


def _shapes(rows: list[MmaRow]) -> str:
    ordered = sorted(rows, key=lambda r: r.blocks)
    return ", ".join(f"{r.shape_text} ({r.blocks} blocks)" if r.blocks > 1 else r.shape_text for r in ordered)


def _by_types(rows: list[MmaRow]) -> str:
    """All shapes, types with the same ones together."""
    groups: dict[str, list[str]] = {}
    for kind in dict.fromkeys(r.types_text for r in rows):
        groups.setdefault(_shapes([r for r in rows if r.types_text == kind]), []).append(kind)
    return "; ".join(f"{', '.join(kinds)}: {shapes}" for shapes, kinds in groups.items())


class RowMma(MmaAtomOp):
    """The atom of a row.  A family sets ``mnemonic`` and ``table`` and says in which order arguments go."""

    __slots__ = ("_result", "_short", "checked_on_hardware", "row", "targets", "wave")

    table: MmaTable
    row: MmaRow

    def __init__(self, row: MmaRow, params: str) -> None:
        row.check_coverage()
        self.row = row
        self.params = params
        self.targets = tuple(row.instructions)
        self.wave = row.wave
        self.checked_on_hardware = row.checked_on_hardware
        self.shape_mnk = row.shape
        self.blocks = row.blocks
        a, b, acc = (element_type(name) for name in row.elements)
        self.types = (a, b, acc, element_type(row.result))
        self.layout_a, self.layout_b, self.layout_c = row.layouts
        self._short = row.intrinsic.removeprefix("llvm.")
        self._result = self.result_type()

    @property
    def thr_layout(self) -> Layout:
        """The lanes of one wave."""
        return Layout(self.row.wave, 1)

    @property
    def intrinsic(self) -> str:
        """Full name of the LLVM intrinsic."""
        return self.row.intrinsic

    def alternatives(self, target: Target) -> str:
        """The nearest legal shapes and types on the target."""
        return self.table.legal(self.row.shape, self.row.elements, target.processor)

    def check_target(self, target: Target) -> None:
        """Checks that the target has the instruction, in its wave size.

        Raises:
            TargetError: It has not; the fix names what is legal instead.
        """
        other = self.table.other_wave(self.row, target.wave_size)
        if target.processor in self.targets and self.wave != target.wave_size and other is not None:
            raise TargetError(
                f"{self.name} needs waves of {self.wave} lanes, the kernel for {target} has {target.wave_size}",
                fix=f"write {self.mnemonic}<{self.table.spelling(other)}>",
            )
        super().check_target(target)

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """The intrinsic's arguments, from operands that have its types already."""
        return [a, b, c]

    def emit_atom_call_ssa(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> LLValue:
        """Bitcasts to the intrinsic's types, the call, and back."""
        ca, cb, cc = self.row.carriers
        args = self.arguments(em, state, em.bitcast(a, ca), em.bitcast(b, cb), em.bitcast(c, cc))
        return em.bitcast(em.intrinsic(self._short, self.row.result_carrier, args), self._result)

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it.

        Units:
            ``cycles`` are issue cycles of the slowest target; ``flops`` are per wave.
        """
        row = self.row
        return super().describe() | {
            "replication_a": row.replication[0],
            "replication_b": row.replication[1],
            "types": [*row.elements],
            "result": row.result,
            "instruction": dict(row.instructions),
            "cycles": max(row.cycles.values(), default=None),
            "cycles_by_target": dict(row.cycles),
            "flops": row.flops,
            "bytes": row.bytes,
        }


class StatelessRowMma(Stateless, RowMma):
    """The atom of a row of a family without state."""

    __slots__ = ()
