"""``cdna4.mfma_scale``: products with a scale for every 32 values of K, gfx950.

``fly_rocdl.cdna4.mfma_scale<16x16x128, (f8E4M3FN, f4E2M1FN) -> f32, opselA = 1>``.  Each operand is fp8, bf8, fp6, bf6
or fp4 on its own; 32 values in a lane.

State: ``scale_a`` and ``scale_b``, four E8M0 bytes each; ``opselA`` and ``opselB`` pick the byte.  Byte ``x`` is the
factor ``2**(x - 127)``: 127 is one.  Lane ``t`` supplies the scale of row ``t % MN`` and of the K block ``t / MN``, 32
wide.  There is no default: a scale of 0 is ``2**-127``.

The K order is fixed by the scales: 8-bit elements go round the lane groups in chunks of 16, narrower ones in chunks of
32.  Compilers that give 8-bit elements chunks of 32 put the scales on the wrong block.

LLVM replaces the call by the unscaled instruction (scale one) where both scales are the constant 0, so that pair is
refused.

Source: CDNA4 ISA manual, 7.1.5 and 7.2; register tables and hardware scale dumps of AMD's libraries.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll, types as t
from ...ir.protocols import register_payload
from ...layout import Layout
from ...state import AtomStateField, StateStruct
from ..base import Stateful
from ..flags import Flag, FlaggedRowMma
from ..rows import MmaRow, MmaTable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue
    from ...ir.types import ScalarType
    from ...target import Target

#: Formats: code in the instruction, dwords of 32 values, values in a chunk of K.
FORMATS = {
    "f8E4M3FN": (0, 8, 16),
    "f8E5M2": (1, 8, 16),
    "f6E2M3FN": (2, 6, 32),
    "f6E3M2FN": (3, 6, 32),
    "f4E2M1FN": (4, 4, 32),
}
SCALE_DOC = "E8M0 bytes, 2**(byte - 127): 127 is one, 0 is 2**-127"
_OPSEL = "byte of the scale register"
FLAGS = (Flag("opselA", f"{_OPSEL} of A", 3), Flag("opselB", f"{_OPSEL} of B", 3))

_RESULT = {16: Layout(((16, 4), 4), ((16, 4), 1)), 32: Layout(((32, 2), (4, 4)), ((32, 4), (1, 8)))}
# M = N, K, accumulators of a lane, cycles with an 8-bit operand, cycles without.
_TABLE = ((16, 128, 4, 32, 16), (32, 64, 16, 64, 32))


def _input(mn: int, element: str) -> Layout:
    groups, chunk = 64 // mn, FORMATS[element][2]
    if chunk == 32:
        return Layout(((mn, groups), 32), ((1, 32 * mn), mn))
    return Layout(((mn, groups), (16, 2)), ((1, 16 * mn), (mn, 16 * mn * groups)))


def _rows() -> list[MmaRow]:
    rows = []
    for mn, k, count, slow, fast in _TABLE:
        for a, (_, dwords_a, chunk_a) in FORMATS.items():
            for b, (_, dwords_b, chunk_b) in FORMATS.items():
                rows.append(
                    MmaRow(
                        "cdna4.mfma_scale",
                        (mn, mn, k),
                        1,
                        (a, b, "f32"),
                        f"llvm.amdgcn.mfma.scale.f32.{mn}x{mn}x{k}.f8f6f4.v{dwords_a}i32.v{dwords_b}i32",
                        (f"<{dwords_a} x i32>", f"<{dwords_b} x i32>", f"<{count} x float>"),
                        (_input(mn, a), _input(mn, b), _RESULT[mn]),
                        {"gfx950": f"v_mfma_scale_f32_{mn}x{mn}x{k}_f8f6f4"},
                        {"gfx950": slow if 16 in (chunk_a, chunk_b) else fast},
                        wave=64,
                    )
                )
    return rows


TABLE = MmaTable("cdna4.mfma_scale", _rows())


class MfmaScale(Stateful, FlaggedRowMma):
    """A scaled MFMA; see the module for the spelling and the state."""

    __slots__ = ()

    mnemonic = "fly_rocdl.cdna4.mfma_scale"
    table = TABLE
    state = StateStruct(
        "cdna4.mfma_scale",
        AtomStateField("scale_a", t.I32, default=None, doc=f"scales of A: {SCALE_DOC}", units="E8M0 bytes"),
        AtomStateField("scale_b", t.I32, default=None, doc=f"scales of B: {SCALE_DOC}", units="E8M0 bytes"),
    )

    @classmethod
    def flags_of(cls, row: MmaRow) -> tuple[Flag, ...]:
        """The byte selectors."""
        return FLAGS

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """A, B, C, formats (cbsz, blgp), then selector and scale of A and of B.

        Raises:
            AtomError: Both scales are the constant 0, which LLVM takes for "no scales".
        """
        scale_a, scale_b = scales(em, self.state, state)
        if scale_a.const == 0 and scale_b.const == 0:
            raise AtomError(
                f"{self.name}: both scales are the constant 0, which LLVM takes for the unscaled instruction",
                fix="for a factor of one set both to 127; for 2**-127 on both sides scale the result",
            )
        code_a, code_b = (em.const(ll.I32, FORMATS[name][0]) for name in self.row.elements[:2])
        sel_a, sel_b = (em.const(ll.I32, self.flags.get(name, 0)) for name in ("opselA", "opselB"))
        return [a, b, c, code_a, code_b, sel_a, scale_a, sel_b, scale_b]


def scales(em: Emitter, struct: StateStruct, state: LLValue | None) -> tuple[LLValue, LLValue]:
    """The two scale fields of a scaled product's state.

    Raises:
        AtomError: The call has no state.
    """
    if state is None:
        raise AtomError(f"{struct.owner} is called without its state", fix="pass the atom's state struct")
    return em.extract_value(state, struct.index("scale_a")), em.extract_value(state, struct.index("scale_b"))


def find_mfma_scale(
    m: int,
    n: int,
    k: int,
    a: str | ScalarType,
    b: str | ScalarType | None = None,
    target: Target | None = None,
    opsel_a: int = 0,
    opsel_b: int = 0,
) -> MfmaScale:
    """The atom of a shape and types, checked against the target where one is given.

    Raises:
        AtomError: No such instruction, or a selector out of range.
        TargetError: Not on this target.
    """
    elements = (str(a), str(a if b is None else b), "f32")
    row = TABLE.find((m, n, k), elements, processor=None if target is None else target.processor)
    found = MfmaScale(row, {"opselA": opsel_a, "opselB": opsel_b})
    if target is not None:
        found.check_target(target)
    return found


def atoms() -> list[MfmaScale]:
    """One atom for each row."""
    return [MfmaScale(row) for row in TABLE.rows]


register_payload(MfmaScale.mnemonic, MfmaScale.parse)
