"""Atoms of every target: a copy by one thread and a scalar multiply-add.

``fly.universal_copy<128>`` moves 128 bits between any two of generic, global, shared and register memory.
``fly.universal_fma<1x1x1, (f32, f32) -> f32>`` is ``d = a * b + c``.
"""

from __future__ import annotations

from ..errors import AtomError
from ..ir import types as t
from ..ir.protocols import register_payload
from .copy_op import StatelessCopy
from .scalar_fma import ScalarFma, parse_fma
from .spelling import parse_width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.lltype import LLType
    from ..ir.protocols import Emitter, LLValue, MemOperand

MAX_COPY_BITS = 128


class UniversalCopy(StatelessCopy):
    """A copy of ``bits`` bits by one thread, with plain loads and stores of the alignment that is known.

    Memory to memory goes through registers.

    Raises:
        AtomError: The width is no whole number of bytes up to 128 bits.
    """

    __slots__ = ()

    mnemonic = "fly.universal_copy"
    spaces = tuple(
        [pair for space in ("global", "shared", "generic") for pair in ((space, "register"), ("register", space))]
        + [("global", "shared"), ("shared", "global"), ("generic", "shared"), ("global", "generic")]
    )

    def __init__(self, bits: int) -> None:
        if not isinstance(bits, int) or bits % 8 or not 8 <= bits <= MAX_COPY_BITS:
            raise AtomError(
                f"universal_copy<{bits}>: a thread moves whole bytes, 8 to {MAX_COPY_BITS} bits at once",
                fix="use 8, 16, 32, 64, 96 or 128; several atoms make a wider copy",
            )
        self.bit_size = bits
        self.params = str(bits)

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """Refuses buffer descriptors, which only buffer instructions can read.

        Raises:
            AtomError: An operand is behind a buffer descriptor.
        """
        for p in (src, dst):
            if p.space == "buffer_desc":
                raise AtomError(
                    f"{self.name} cannot access {p}",
                    fix=f"use fly_rocdl.cdna3.buffer_copy<{self.params}> on buffer descriptors",
                )

    def emit_load(self, em: Emitter, state: LLValue | None, src: MemOperand, type: LLType) -> LLValue:
        """One load."""
        return em.load(src, type)

    def emit_store(self, em: Emitter, state: LLValue | None, value: LLValue, dst: MemOperand) -> None:
        """One store."""
        em.store(value, dst)


FMA_TYPES = {str(elem): elem for elem in (t.F16, t.BF16, t.F32, t.F64)}


class UniversalFma(ScalarFma):
    """``d = a * b + c`` by one thread: a multiplication and an addition that LLVM may contract into one.

    Raises:
        AtomError: The type is no float with arithmetic of its own.
    """

    __slots__ = ()

    mnemonic = "fly.universal_fma"

    elements = FMA_TYPES
    word = "universal_fma"

    def emit_atom_call_ssa(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> LLValue:
        """``contract`` lets the target round once; it need not."""
        return em.binary("fadd", em.binary("fmul", a, b, "contract"), c, "contract")

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it; ``flops`` and ``bytes`` are per thread."""
        return super().describe() | {"flops": 2, "bytes": self.types[0].bits // 2}


def parse_copy(params: str) -> UniversalCopy:
    """The atom of ``128``."""
    bits, _ = parse_width(UniversalCopy.mnemonic, params)
    return UniversalCopy(bits)


def atoms() -> list[UniversalCopy | UniversalFma]:
    """One atom for each width with an instruction of its own, and for each type."""
    return [*(UniversalCopy(bits) for bits in (8, 16, 32, 64, 96, 128)), *(UniversalFma(e) for e in FMA_TYPES)]


register_payload(UniversalCopy.mnemonic, parse_copy)
register_payload(UniversalFma.mnemonic, lambda params: parse_fma(UniversalFma, params))
