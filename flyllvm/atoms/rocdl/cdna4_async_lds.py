"""``cdna4.buffer_load_async_lds`` and ``cdna4.global_load_async_lds``: memory to LDS past the registers, gfx950.

``fly_rocdl.cdna4.buffer_load_async_lds<128>`` has the state of ``cdna3.buffer_copy_lds``, the global form has none.
Both write LDS as that atom does: lane ``t`` at ``base + t * bits / 8``, with the base of the wave's first lane.

LLVM 22.1 has no asynchronous form of these loads, so the atoms emit the synchronous intrinsics: the same instructions,
for which LLVM waits on its own before *this wave* reads the LDS they write.  Other waves need the explicit wait that
authors place anyway: ``fx.rocdl.cdna4.wait_asyncmark`` (``s_waitcnt vmcnt``) before the barrier.  Marks cannot be
counted in the emitted code, so a wait for any mark waits for all loads.

That gfx950 hardware has the 96-bit forms rests on LLVM alone.

Source: CDNA4 ISA manual, "LDS direct loads"; LLVM AMDGPUUsage, ``llvm.amdgcn.global.load.lds``.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll, types as t
from ...ir.protocols import MemOperand, register_payload
from ...state import StateStruct
from ..copy_op import MemoryMove, StatelessCopy
from ..spelling import parse_width
from .cache_policy import CachedCopy, CachePolicy
from .cdna3_buffer_copy import SOFFSET
from .cdna3_buffer_copy_lds import IMM_OFFSET, BufferCopyLds, lds_base, refuse_swizzle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue
    from ...target import Target

_TARGETS = ("gfx950",)
# Bits and the width in the instruction's name.
_WIDTHS = ((32, "dword"), (96, "dwordx3"), (128, "dwordx4"))
_GLOBAL = {bits: f"global_load_lds_{name}" for bits, name in _WIDTHS}
INTRINSIC = "amdgcn.global.load.lds"


class BufferLoadAsyncLds(BufferCopyLds):
    """``cdna3.buffer_copy_lds`` under its asynchronous name; see the module for the waits."""

    __slots__ = ()

    mnemonic = "fly_rocdl.cdna4.buffer_load_async_lds"
    state = StateStruct("cdna4.buffer_load_async_lds", SOFFSET, IMM_OFFSET)
    rows = {bits: (f"buffer_load_{name}", _TARGETS) for bits, name in _WIDTHS}


class GlobalLoadAsyncLds(CachedCopy, MemoryMove, StatelessCopy):
    """A copy from global memory to LDS; see the module for the waits.

    Args:
        bits: Bits a lane moves: 32, 96 or 128.
        cache: Cache policy: raw bits or names, see `cache_policy`.

    Raises:
        AtomError: The instruction has no such width.
    """

    __slots__ = ("cache",)

    mnemonic = "fly_rocdl.cdna4.global_load_async_lds"
    spaces = (("global", "shared"),)
    operands = "a global and an LDS operand"
    stores = False
    targets = _TARGETS

    def __init__(self, bits: int, cache: int | str | CachePolicy = 0) -> None:
        if bits not in _GLOBAL:
            raise AtomError(
                f"cdna4.global_load_async_lds<{bits}>: a lane cannot send {bits} bits to LDS", fix="use 32, 96 or 128"
            )
        self.bit_size = bits
        self.cache = cache if isinstance(cache, CachePolicy) else CachePolicy(cache)
        self.params = f"{bits}" if self.cache.is_default else f"{bits}, cache = {self.cache.text}"

    @property
    def intrinsic(self) -> str:
        """Full name of the LLVM intrinsic."""
        return f"llvm.{INTRINSIC}"

    def alternatives(self, target: Target) -> str:
        """What moves memory to LDS on other chips."""
        return f"{target.processor}: copy through registers, or cdna3.buffer_copy_lds<32> on gfx90a and gfx942"

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """Global memory to plain LDS.

        Raises:
            AtomError: They are not, or the destination is swizzled.
        """
        if src.space != "global" or dst.space != "shared":
            raise AtomError(
                f"{self.name} cannot copy {src} to {dst}", fix="the source is in global memory, the destination in LDS"
            )
        refuse_swizzle(self.name, dst)

    def prepare(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand
    ) -> tuple[str, list[LLValue]]:
        """The load: a wave's lanes write one after the other from its first lane's place."""
        size = self.bit_size // 8
        base = lds_base(em, dst, size)
        tail = [em.const(ll.I32, n) for n in (size, 0, self.cache.bits(em.target, False))]
        return INTRINSIC, [em.address(src, size), base, *tail]

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return super().describe() | {"instruction": dict.fromkeys(self.targets, _GLOBAL[self.bit_size])}


def _read(kind: type[BufferLoadAsyncLds] | type[GlobalLoadAsyncLds], params: str) -> object:
    bits, found = parse_width(kind.mnemonic, params, ("cache",))
    return kind(bits, found.get("cache", "0"))


def atoms() -> list[BufferLoadAsyncLds | GlobalLoadAsyncLds]:
    """One atom for each width, of both kinds."""
    widths = [bits for bits, _ in _WIDTHS]
    return [*(BufferLoadAsyncLds(bits) for bits in widths), *(GlobalLoadAsyncLds(bits) for bits in widths)]


register_payload(BufferLoadAsyncLds.mnemonic, lambda params: _read(BufferLoadAsyncLds, params))
register_payload(GlobalLoadAsyncLds.mnemonic, lambda params: _read(GlobalLoadAsyncLds, params))
