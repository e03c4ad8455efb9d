"""``cdna3.buffer_copy_lds``: buffer to LDS without passing through registers.

``fly_rocdl.cdna3.buffer_copy_lds<32>`` on gfx90a, gfx942 and gfx950; 96 and 128 bits on gfx950 alone.  Width 64 exists
nowhere.  8 and 16 bits are zero-extended: every lane writes a whole dword, so the places of the lanes in LDS are dwords
apart, and a destination that is not aligned to 4 bytes is refused.

Every lane reads at its own buffer offset.  The LDS address is one for the wave: lane ``t`` writes at
``base + imm_offset + t * bits / 8`` (``4 * t`` for narrower loads), where ``base`` is the destination of the wave's
first lane.  So the destination is contiguous over the lanes of a wave, and cannot be swizzled (swizzle what the lanes
read instead).

State: ``soffset`` in elements, as in ``buffer_copy``; ``imm_offset`` in bytes, a compile-time constant that is added to
the buffer address and to the LDS address.

Source: CDNA3 ISA manual, "Buffer instructions, LDS bit" (M0, address of lane t); LLVM AMDGPUUsage, intrinsic
``llvm.amdgcn.raw.ptr.buffer.load.lds``.  LLVM encodes an ``imm_offset`` above 4095 without complaint.  That gfx950
hardware has the 96-bit form rests on LLVM alone.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll, types as t
from ...ir.protocols import MemOperand, register_payload
from ...state import AtomStateField, StateStruct
from ..copy_op import MemoryMove, StatefulCopy
from ..spelling import parse_width
from .cache_policy import CachedCopy, CachePolicy
from .cdna3_buffer_copy import SOFFSET, buffer_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue
    from ...target import Target

DWORD = 4  # bytes
INTRINSIC = "amdgcn.raw.ptr.buffer.load.lds"
IMM_OFFSET = AtomStateField(
    "imm_offset",
    t.I32,
    default=0,
    doc="added to the buffer address and to the LDS address",
    units="bytes",
    constant=True,
    minimum=0,
    maximum=4095,
)
# Bits, instruction, processors.
_TABLE = (
    (8, "buffer_load_ubyte", ("gfx90a", "gfx942", "gfx950")),
    (16, "buffer_load_ushort", ("gfx90a", "gfx942", "gfx950")),
    (32, "buffer_load_dword", ("gfx90a", "gfx942", "gfx950")),
    (96, "buffer_load_dwordx3", ("gfx950",)),
    (128, "buffer_load_dwordx4", ("gfx950",)),
)
_ROWS: dict[int, tuple[str, tuple[str, ...]]] = {bits: (instruction, targets) for bits, instruction, targets in _TABLE}


class BufferCopyLds(CachedCopy, MemoryMove, StatefulCopy):
    """A copy from behind a buffer descriptor to LDS.

    Args:
        bits: Bits a lane moves: 8, 16, 32, 96 or 128.
        cache: Cache policy: raw bits or names, see `cache_policy`.

    Raises:
        AtomError: The instruction has no such width.
    """

    __slots__ = ("cache", "targets")

    mnemonic = "fly_rocdl.cdna3.buffer_copy_lds"
    spaces = (("buffer_desc", "shared"),)
    operands = "a buffer and an LDS operand"
    stores = False
    state = StateStruct("cdna3.buffer_copy_lds", SOFFSET, IMM_OFFSET)
    #: Instruction and processors by bits.
    rows = _ROWS
    targets: tuple[str, ...]

    def __init__(self, bits: int, cache: int | str | CachePolicy = 0) -> None:
        if bits not in self.rows:
            raise AtomError(
                f"{self.mnemonic.partition('.')[2]}<{bits}>: a lane cannot send {bits} bits to LDS",
                fix="use 8, 16 or 32 bits; 96 or 128 on gfx950",
            )
        self.bit_size = bits
        self.targets = self.rows[bits][1]
        self.cache = cache if isinstance(cache, CachePolicy) else CachePolicy(cache)
        self.params = f"{bits}" if self.cache.is_default else f"{bits}, cache = {self.cache.text}"

    @property
    def intrinsic(self) -> str:
        """Full name of the LLVM intrinsic."""
        return f"llvm.{INTRINSIC}"

    def alternatives(self, target: Target) -> str:
        """The widths the target has."""
        legal = [f"{self.mnemonic}<{bits}>" for bits, (_, targets) in self.rows.items() if target.processor in targets]
        if legal:
            return f"on {target.processor}: {', '.join(legal)}"
        return f"{target.processor} cannot load into LDS directly: copy through registers (buffer_copy, universal_copy)"

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """Buffer descriptor to plain LDS.

        Raises:
            AtomError: They are not, or the destination is swizzled.
        """
        if src.space != "buffer_desc" or dst.space != "shared":
            raise AtomError(
                f"{self.name} cannot copy {src} to {dst}",
                fix="the source is behind a buffer descriptor, the destination in LDS (shared)",
            )
        refuse_swizzle(self.name, dst)

    def prepare(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand
    ) -> tuple[str, list[LLValue]]:
        """The load: a wave's lanes write one after the other from its first lane's place."""
        size = self.bit_size // 8
        if size < DWORD and em.alignment(dst) < DWORD:
            raise AtomError(
                f"{self.name}: a lane writes a whole dword, its place is aligned to {em.alignment(dst)} byte(s)",
                fix="lay the lanes' places in LDS out 4 bytes apart, in memory aligned to 4 bytes",
            )
        base = lds_base(em, dst, size)
        rsrc, voffset, soffset = buffer_address(em, self.state, state, src, self.bit_size)
        imm = em.extract_value(state, self.state.index("imm_offset")) if state is not None else em.const(ll.I32, 0)
        offset = self.state.check_constant("imm_offset", imm.const)
        tail = [em.const(ll.I32, n) for n in (offset, self.cache.bits(em.target, False))]
        return INTRINSIC, [rsrc, base, em.const(ll.I32, size), voffset, soffset, *tail]

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        instruction = self.rows[self.bit_size][0]
        return super().describe() | {"instruction": dict.fromkeys(self.targets, instruction)}


def refuse_swizzle(name: str, dst: t.PtrType) -> None:
    """Checks that lanes may write a place in LDS in order.

    Raises:
        AtomError: The destination is swizzled.
    """
    if dst.swizzle is not None:
        raise AtomError(
            f"{name} cannot write through {dst.swizzle}: lanes write LDS in order",
            fix="apply the swizzle to the source coordinates of the lanes, and read LDS through it",
        )


def lds_base(em: Emitter, dst: MemOperand, size: int) -> LLValue:
    """Where the wave's first lane writes in LDS, the same value in all lanes; ``size`` in bytes a lane."""
    base = em.address(dst, size)
    return base if base.uniform else em.intrinsic("amdgcn.readfirstlane.p3", ll.ptr(3), [base])


def parse(params: str) -> BufferCopyLds:
    """The atom of ``32[, cache = nt]``."""
    bits, found = parse_width(BufferCopyLds.mnemonic, params, ("cache",), example=32)
    return BufferCopyLds(bits, found.get("cache", "0"))


def atoms() -> list[BufferCopyLds]:
    """One atom for each width."""
    return [BufferCopyLds(bits) for bits in _ROWS]


register_payload(BufferCopyLds.mnemonic, parse)
