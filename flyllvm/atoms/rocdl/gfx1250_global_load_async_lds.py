"""``gfx1250.global_load_async_lds``: global memory to LDS past the registers, gfx1250.

``fly_rocdl.gfx1250.global_load_async_lds<128>``: 8, 32, 64 or 128 bits.  Every lane reads at its own global address
and writes at its own LDS address, so the destination may be swizzled, unlike that of ``cdna4.global_load_async_lds``.

Nothing waits for the data, not even in this wave: ``fx.rocdl.s_wait_asynccnt`` before the barrier that shows it.

Source: LLVM IntrinsicsAMDGPU, ``global_load_async_to_lds``.  None of it is from an ISA manual.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll, types as t
from ...ir.protocols import register_payload
from ..copy_op import StatelessCopy
from ..spelling import parse_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue, MemOperand

# Bits of a lane: intrinsic, LLVM type of as many bits, instruction by processor.
ROWS = {
    bits: (
        f"amdgcn.global.load.async.to.lds.b{bits}", carrier, {"gfx1250": f"global_load_async_to_lds_b{bits}"},
    )
    for bits, carrier in ((8, "i8"), (32, "i32"), (64, "<2 x i32>"), (128, "<4 x i32>"))
}  # fmt: skip


class Gfx1250GlobalLoadAsyncLds(StatelessCopy):
    """A copy from global memory to LDS; see the module.

    Raises:
        AtomError: The instruction has no such width.
    """

    __slots__ = ("row", "targets")

    mnemonic = "fly_rocdl.gfx1250.global_load_async_lds"
    spaces = (("global", "shared"),)

    def __init__(self, bits: int) -> None:
        if bits not in ROWS:
            raise AtomError(
                f"gfx1250.global_load_async_lds<{bits}>: no such width", fix=f"use {', '.join(map(str, ROWS))} bits"
            )
        self.row = ROWS[bits]
        self.bit_size = bits
        self.targets = tuple(self.row[2])
        self.params = f"{bits}"

    @property
    def intrinsic(self) -> str:
        """Full name of the LLVM intrinsic."""
        return f"llvm.{self.row[0]}"

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """Checks the address spaces.

        Raises:
            AtomError: The instruction does not move between these spaces.
        """
        if (src.space, dst.space) not in self.spaces:
            raise AtomError(f"{self.name} cannot copy {src} to {dst}", fix="copy from global to shared memory")

    def emit_move(self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand) -> None:
        """One load; offset and cache policy are 0."""
        size = self.bit_size // 8
        args = [em.address(src, size), em.address(dst, size), *[em.const(ll.I32, 0)] * 2]
        em.intrinsic(self.row[0], ll.VOID, args)

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return super().describe() | {"instruction": dict(self.row[2])}


def parse(params: str) -> Gfx1250GlobalLoadAsyncLds:
    """The atom of ``128``."""
    bits, _ = parse_width(Gfx1250GlobalLoadAsyncLds.mnemonic, params)
    return Gfx1250GlobalLoadAsyncLds(bits)


def atoms() -> list[Gfx1250GlobalLoadAsyncLds]:
    """One atom for each width."""
    return [Gfx1250GlobalLoadAsyncLds(bits) for bits in ROWS]


register_payload(Gfx1250GlobalLoadAsyncLds.mnemonic, parse)
