"""``gfx1250.swmmac``: products with a 2:4 sparse A, gfx1250.

``fly_rocdl.gfx1250.swmmac<16x16x64, (f16, f16) -> f32, index = lane>``.  A is packed as in ``cdna3.smfmac``: its layout
is over (M, K/2), and the state ``index`` says which columns its values are: 32 bits, or 64 for 8-bit elements.

``index = lane`` must be written.  It says that the two bits of a value are in the lane that holds the value, as on
gfx12 and as the text of the ISA is reported to say.  AMD's public emulator of the chip takes those of the lower half of
K from lanes 0 to 15 and those of the upper half from lanes 16 to 31, whichever lane holds the value, because kernels of
AMD's libraries need it.  Check it on the chip before you rely on it.  How A meets B is the same in both: each half of
the lanes multiplies what it holds, so the K order of A and B is common and no product shows it.

A 32-bit index compiles for K = 128 too, but the instruction reads 64 bits of registers: the state is i64.  The bf16
result of an f32 accumulator has no row: LLVM's intrinsic returns it in the registers of the accumulator.

Source: LLVM IntrinsicsAMDGPU; the rule of ``gfx120x.swmmac`` for the layouts: A as a dense operand of depth K/2, B in
chunks of twice as many.  None of it is from an ISA manual; cycles are unknown.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll, types as t
from ...ir.protocols import register_payload
from ...state import AtomStateField, StateStruct
from ..base import Stateful
from ..flags import Flag, FlaggedRowMma
from ..rows import MmaRow, MmaTable
from .cdna3_smfmac import INDEX, index_of
from .gfx1250_wmma import RESULT, chunked
from .wmma import CLAMP, FP8, NEG_A, NEG_B, REUSE_A, REUSE_B, SIGN_A, SIGN_B

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...ir.protocols import Emitter, LLValue

_VARIANT = "index = lane"
_STATES = {
    64: StateStruct("gfx1250.swmmac", INDEX),
    128: StateStruct("gfx1250.swmmac", AtomStateField("index", t.I64, default=None, doc=INDEX.doc, units="bits")),
}
# K, A, B, accumulator, inputs in the instruction; LLVM type and its name of A, B, and C.
_TABLE = (
    *((64, x, x, acc, x) for x in ("f16", "bf16") for acc in ("f32", x)),
    *((128, FP8[a], FP8[b], acc, f"{a}.{b}") for acc in ("f32", "f16") for a in FP8 for b in FP8),
    (128, "i8", "i8", "i32", "iu8"),
)
_HELD = {"f16": "half", "bf16": "bfloat", "f32": "float", "i32": "i32"}


def _rows() -> list[MmaRow]:
    rows = []
    for k, a, b, acc, kind in _TABLE:
        held = _HELD[a] if k == 64 else "i32"
        short = a if k == 64 else "i32"
        count = 16 if k == 64 else 8
        name = f"{acc}.16x16x{k}.{kind}"
        rows.append(
            MmaRow(
                "gfx1250.swmmac",
                (16, 16, k),
                1,
                (a, b, acc),
                f"llvm.amdgcn.swmmac.{name}.v8{acc}.v{count}{short}.v{2 * count}{short}.i{k // 2}",
                (f"<{count} x {held}>", f"<{2 * count} x {held}>", f"<8 x {_HELD[acc]}>"),
                (chunked(k // 2, 8), chunked(k, 16), RESULT),
                {"gfx1250": "v_swmmac_" + name.replace(".", "_")},
                {},
                wave=32,
                packing=2,
                variant=_VARIANT,
            )
        )
    return rows


TABLE = MmaTable("gfx1250.swmmac", _rows())


def check_index(said: str) -> None:
    """Checks that the place of the index is said.

    Raises:
        AtomError: It is not, or another one is.
    """
    if said != "lane":
        raise AtomError(
            f"gfx1250.swmmac, index {said or 'not said'}: public sources contradict each other on where it is",
            fix=f"'{_VARIANT}' assumes that the bits of a value are in its lane; check it on hardware",
        )


class SwmmacGfx1250(Stateful, FlaggedRowMma):
    """A sparse WMMA of gfx1250; see the module for the spelling, the state, and what is assumed."""

    __slots__ = ("state",)

    mnemonic = "fly_rocdl.gfx1250.swmmac"
    table = TABLE
    state: StateStruct

    def __init__(self, row: MmaRow, flags: Mapping[str, int] | None = None) -> None:
        super().__init__(row, flags)
        self.state = _STATES[row.shape[2]]

    @classmethod
    def flags_of(cls, row: MmaRow) -> tuple[Flag, ...]:
        """Signs and clamp of integers, negation of 16-bit floats, reuse."""
        if row.elements[2] == "i32":
            return (SIGN_A, SIGN_B, CLAMP, REUSE_A, REUSE_B)
        return (NEG_A, NEG_B, REUSE_A, REUSE_B) if row.shape[2] == 64 else (REUSE_A, REUSE_B)

    @classmethod
    def _variant(cls, params: str, found: dict[str, str], variants: Mapping[str, None], keys: list[str]) -> str:
        check_index(found.get("index", ""))
        return super()._variant(params, found, variants, keys)

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """A, B, C and the index between the immediates of the call form."""

        def bit(name: str) -> LLValue:
            return em.const(ll.I1, self.flags.get(name, 0))

        index = index_of(em, self.state, state)
        reuse = [bit("reuseA"), bit("reuseB")]
        if self.row.elements[2] == "i32":
            return [bit("signA"), a, bit("signB"), b, c, index, *reuse, bit("clamp")]
        if self.row.shape[2] == 64:
            return [bit("negA"), a, bit("negB"), b, c, index, *reuse]
        return [a, b, c, index, *reuse]


def atoms() -> list[SwmmacGfx1250]:
    """One atom for each row."""
    return [SwmmacGfx1250(row) for row in TABLE.rows]


register_payload(SwmmacGfx1250.mnemonic, SwmmacGfx1250.parse)
