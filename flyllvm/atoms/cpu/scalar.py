"""``cpu.copy`` and ``cpu.fma``: what one thread of an x86-64 CPU does.

``fly_cpu.copy<256>`` moves up to 512 bits through registers, as wide as the CPU has them.
``fly_cpu.fma<1x1x1, (f64, f64) -> f64>`` is ``d = a * b + c``, rounded once.

Source: LLVM language reference, ``llvm.fma``; System V x86-64 ABI (the C library has ``fma`` where the CPU has not).
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import types as t
from ...ir.protocols import register_payload
from ..copy_op import StatelessCopy
from ..scalar_fma import ScalarFma, parse_fma
from ..spelling import parse_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.lltype import LLType
    from ...ir.protocols import Emitter, LLValue, MemOperand

TARGETS = ("x86-64",)
WIDTHS = (8, 16, 32, 64, 128, 256, 512)
TYPES = {str(elem): elem for elem in (t.F32, t.F64)}


class CpuCopy(StatelessCopy):
    """A copy by one thread between any two kinds of memory.

    Args:
        bits: One of ``WIDTHS``.

    Raises:
        AtomError: Another width.
    """

    __slots__ = ()

    mnemonic = "fly_cpu.copy"
    targets = TARGETS

    def __init__(self, bits: int) -> None:
        if bits not in WIDTHS:
            raise AtomError(f"cpu.copy<{bits}>: no such width", fix=f"one of: {', '.join(map(str, WIDTHS))} bits")
        self.bit_size = bits
        self.params = str(bits)

    def emit_load(self, em: Emitter, state: LLValue | None, src: MemOperand, type: LLType) -> LLValue:
        """One load."""
        return em.load(src, type)

    def emit_store(self, em: Emitter, state: LLValue | None, value: LLValue, dst: MemOperand) -> None:
        """One store."""
        em.store(value, dst)


class CpuFma(ScalarFma):
    """A fused multiply-add of one thread.

    Args:
        elem: f32 or f64.

    Raises:
        AtomError: Another type.
    """

    __slots__ = ()

    mnemonic = "fly_cpu.fma"
    targets = TARGETS

    elements = TYPES
    word = "cpu.fma"

    @property
    def intrinsic(self) -> str:
        """Full name of the LLVM intrinsic."""
        return f"llvm.fma.{self.types[0]}"

    def emit_atom_call_ssa(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> LLValue:
        """One ``llvm.fma``."""
        return em.intrinsic(self.intrinsic.removeprefix("llvm."), c.type, [a, b, c])


def parse_copy(params: str) -> CpuCopy:
    """The atom of ``256``."""
    bits, _ = parse_width(CpuCopy.mnemonic, params, example=256)
    return CpuCopy(bits)


def atoms() -> list[CpuCopy | CpuFma]:
    """One atom for each width and type."""
    return [*(CpuCopy(bits) for bits in WIDTHS), *(CpuFma(elem) for elem in TYPES)]


register_payload(CpuCopy.mnemonic, parse_copy)
register_payload(CpuFma.mnemonic, lambda params: parse_fma(CpuFma, params))
