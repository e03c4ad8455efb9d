"""``gfx120x.swmmac``: products with a 2:4 sparse A, gfx1200 and gfx1201.

``fly_rocdl.gfx120x.swmmac<16x16x32, (f16, f16) -> f32>``, with ``wave = 64`` in waves of 64 lanes.  A is packed as in
``cdna3.smfmac``: its layout is over (M, K/2), and the state ``index`` says which columns its values are.

gfx1250 has such instructions too: ``gfx1250.swmmac``.

Source: RDNA4 ISA manual, "SWMMAC"; AMD matrix instruction calculator 1.3.2 (B, C, cycles).  The integer rows follow
the rule of the 8-bit floats.
"""

from __future__ import annotations

from ...ir import lltype as ll
from ...ir.protocols import register_payload
from ...layout import Layout
from ...state import StateStruct
from ..base import Stateful
from ..flags import Flag, FlaggedRowMma
from ..rows import MmaRow, MmaTable
from .cdna3_smfmac import INDEX, index_of
from .gfx120x_wmma import ACC, INPUTS, RESULT, carrier_of
from .wmma import CLAMP, FP8, SIGN_A, SIGN_B

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue

_TARGETS = ("gfx1200", "gfx1201")
# K, bits of an input, A, B, accumulator, names of the inputs in the instruction, cycles (0: unknown).
_TABLE = (
    (32, 16, "f16", "f16", "f32", "f16", 16),
    (32, 16, "bf16", "bf16", "f32", "bf16", 16),
    (32, 16, "f16", "f16", "f16", "f16", 16),
    (32, 16, "bf16", "bf16", "bf16", "bf16", 16),
    *((32, 8, FP8[a], FP8[b], "f32", f"{a}.{b}", 8) for a in FP8 for b in FP8),
    (32, 8, "i8", "i8", "i32", "iu8", 0),
    (32, 4, "i4", "i4", "i32", "iu4", 0),
    (64, 4, "i4", "i4", "i32", "iu4", 0),
)


def _dense(k: int, bits: int, wave: int) -> Layout:
    """B: in waves of 64 lanes, narrow elements fill the lower 32 lanes' halves of K first."""
    held = 16 * k // wave
    if wave == 32:
        chunk = 8 if bits == 16 else 16
        rounds = held // chunk
        if rounds == 1:
            return Layout(((16, 2), chunk), ((1, 16 * chunk), 16))
        return Layout(((16, 2), (chunk, rounds)), ((1, 16 * chunk), (16, 32 * chunk)))
    if bits == 16:
        return Layout(((16, 4), held), ((1, 16 * held), 16))
    return Layout(((16, 2, 2), held), ((1, 32 * held, 16 * held), 16))


def _rows() -> list[MmaRow]:
    rows = []
    for wave in (32, 64):
        for k, bits, a, b, acc, kind, cycles in _TABLE:
            if (k, bits, wave) == (32, 4, 64):  # no such form
                continue
            (ta, sa), (tb, sb) = (carrier_of(16 * depth // wave * bits, a) for depth in (k // 2, k))
            held, short = ACC[acc]
            name = f"{acc}.16x16x{k}.{kind}"
            rows.append(
                MmaRow(
                    "gfx120x.swmmac",
                    (16, 16, k),
                    1,
                    (a, b, acc),
                    f"llvm.amdgcn.swmmac.{name}.v{256 // wave}{short}.{sa}.{sb}.i32",
                    (ta, tb, f"<{256 // wave} x {held}>"),
                    (INPUTS[k // 2, bits, wave], _dense(k, bits, wave), RESULT[wave]),
                    dict.fromkeys(_TARGETS, "v_swmmac_" + name.replace(".", "_")),
                    dict.fromkeys(_TARGETS, cycles) if cycles else {},
                    wave=wave,
                    packing=2,
                    variant="wave = 64" if wave == 64 else "",
                )
            )
    return rows


TABLE = MmaTable("gfx120x.swmmac", _rows())


class Swmmac(Stateful, FlaggedRowMma):
    """A sparse WMMA; see the module for the spelling and the state."""

    __slots__ = ()

    mnemonic = "fly_rocdl.gfx120x.swmmac"
    table = TABLE
    state = StateStruct("gfx120x.swmmac", INDEX)

    @classmethod
    def flags_of(cls, row: MmaRow) -> tuple[Flag, ...]:
        """Signs and clamp of integer rows."""
        return (SIGN_A, SIGN_B, CLAMP) if row.elements[2] == "i32" else ()

    @classmethod
    def usual_variant(cls) -> str:
        """Waves of 32 lanes."""
        return "wave = 32"

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """A, B, C and the index, between sign flags and clamp for integers."""
        index = index_of(em, self.state, state)
        if self.row.elements[2] != "i32":
            return [a, b, c, index]
        sign_a, sign_b, clamp = (em.const(ll.I1, self.flags.get(name, 0)) for name in ("signA", "signB", "clamp"))
        return [sign_a, a, sign_b, b, c, index, clamp]


def atoms() -> list[Swmmac]:
    """One atom for each row."""
    return [Swmmac(row) for row in TABLE.rows]


register_payload(Swmmac.mnemonic, Swmmac.parse)
