"""What transposing loads share: every lane reads its own address, then a group of lanes exchanges elements.

The source of lane ``i`` of a group is the ``i``-th run of bits of the group's tile; the destination layout says which
bits of the tile the lane holds afterwards.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll
from ...layout import Layout, size
from ..copy_op import StatelessCopy
from ..spelling import options, split_params

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue, MemOperand
    from ...ir.types import PtrType
    from ...target import Target


class TransposeRow:
    """One transposing load.

    Attributes:
        granularity: Bits of an element.
        bits: Bits that a lane reads and gets.
        dst: (lane of the group, bit) of the result to the bit of the group's tile.
        intrinsic: Full name of the LLVM intrinsic.
        carrier: LLVM type of its result.
        instructions: Instruction by processor: exactly the processors whose lane map is known.
        assumed: Name of the lane map where public sources contradict each other: the author must say it.
    """

    __slots__ = ("assumed", "bits", "carrier", "dst", "granularity", "instructions", "intrinsic")

    def __init__(
        self,
        granularity: int,
        bits: int,
        dst: Layout,
        intrinsic: str,
        carrier: str,
        instructions: dict[str, str],
        assumed: str = "",
    ) -> None:
        self.granularity, self.bits, self.dst = granularity, bits, dst
        self.intrinsic = f"llvm.amdgcn.{intrinsic}"
        self.carrier = ll.parse(carrier)
        self.instructions = instructions
        self.assumed = assumed

    @property
    def spelling(self) -> str:
        """What stands between ``<`` and ``>``."""
        return f"{self.granularity}, {self.bits}" + (f", map = {self.assumed}" if self.assumed else "")


class TransposeCopy(StatelessCopy):
    """A transposing load to registers; the families set mnemonic, rows and the spaces.

    Args:
        granularity: Bits of an element.
        bits: Bits that a lane reads.
        map: Name of an assumed lane map, for the loads whose map is in dispute.

    Raises:
        AtomError: The family has no such load, or its lane map is in dispute and none is named.
    """

    __slots__ = ("row", "targets", "wave")

    rows: dict[tuple[int, int], TransposeRow]

    def __init__(self, granularity: int, bits: int, map: str = "") -> None:
        row = self.rows.get((granularity, bits))
        name = f"{self.mnemonic.partition('.')[2]}<{granularity}, {bits}>"
        if row is None or (map and map != row.assumed):
            legal = ", ".join(f"<{row.spelling}>" for row in self.rows.values())
            tail = f" and map {map!r}" if map else ""
            raise AtomError(
                f"{name}: no such load with a known lane map{tail}",
                fix=f"<bits of an element, bits of a lane>: {legal}",
            )
        if row.assumed and not map:
            raise AtomError(
                f"{name}: public sources contradict each other on its lane map",
                fix=f"write <{row.spelling}> to assume that one, and check it on hardware",
            )
        self.row = row
        self.bit_size = bits
        self.targets = tuple(row.instructions)
        self.wave = 64 if "gfx950" in row.instructions else 32
        self.params = row.spelling

    @property
    def space(self) -> str:
        """The address space that is read."""
        return self.spaces[0][0]

    @property
    def thr_layout(self) -> Layout:
        """The group of lanes that exchanges elements."""
        return Layout(size(self.row.dst.shape[0]), 1)

    @property
    def bit_layout_src(self) -> Layout:
        """Lane ``i`` reads the ``i``-th run of bits of the tile."""
        lanes = size(self.row.dst.shape[0])
        return Layout((lanes, self.bit_size), (self.bit_size, 1))

    @property
    def bit_layout_dst(self) -> Layout:
        """What the lane holds after the exchange."""
        return self.row.dst

    @property
    def intrinsic(self) -> str:
        """Full name of the LLVM intrinsic."""
        return self.row.intrinsic

    def alternatives(self, target: Target) -> str:
        """The loads that the target has."""
        legal = [f"<{row.spelling}>" for row in self.rows.values() if target.processor in row.instructions]
        if legal:
            return f"on {target.processor}: {', '.join(legal)}"
        return super().alternatives(target) + "; elsewhere load plainly and exchange with lane moves"

    def check_operands(self, src: PtrType, dst: PtrType) -> None:
        """Memory of the family's space to registers.

        Raises:
            AtomError: They are not.
        """
        if src.space != self.space or dst.space != "register":
            raise AtomError(
                f"{self.name} cannot copy {src} to {dst}",
                fix=f"the source is in {self.space} memory, the destination in registers",
            )

    def emit_load(self, em: Emitter, state: LLValue | None, src: MemOperand, type: ll.LLType) -> LLValue:
        """One transposing load."""
        where = em.address(src, self.bit_size // 8)
        return em.bitcast(em.intrinsic(self.intrinsic.removeprefix("llvm."), self.row.carrier, [where]), type)

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return super().describe() | {"instruction": dict(self.row.instructions)}

    @classmethod
    def parse(cls, params: str) -> TransposeCopy:
        """The atom of ``16, 64`` or ``4, 64, map = square`` (``16-bit, 64`` is read too)."""
        words = [word.removesuffix("-bit") for word in split_params(params)]
        found = options(cls.mnemonic, params, words[2:], ("map",) if any(r.assumed for r in cls.rows.values()) else ())
        if len(words) < 2 or not (words[0].isdigit() and words[1].isdigit()):
            raise AtomError(f"!{cls.mnemonic}<{params}> names no widths", fix="write <16, 64>")
        return cls(int(words[0]), int(words[1]), found.get("map", ""))


def square(granularity: int, bits: int, lanes: int) -> Layout:
    """Element ``e`` of lane ``i`` comes from element ``i`` of row ``e``, where a row is ``lanes`` elements."""
    return Layout((lanes, (granularity, bits // granularity)), (granularity, (1, granularity * lanes)))
