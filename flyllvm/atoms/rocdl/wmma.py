"""What the WMMA families of gfx11, gfx120x and gfx1250 share: modifiers and the four call forms.

A, B and C are 16 wide.  An integer operand is unsigned unless ``signA`` / ``signB`` is set; ``clamp`` saturates the
result.  ``negA``, ``negB`` negate, ``modC`` is 1 to negate, 2 for the absolute value, 3 for both in that order.
``reuseA`` and ``reuseB`` promise the hardware that the operand registers are those of the call before.
"""

from __future__ import annotations

from ...errors import TargetError
from ...ir import lltype as ll
from ..base import Stateless
from ..flags import Flag, FlaggedRowMma, accumulator_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...ir.protocols import Emitter, LLValue
    from ...target import Target
    from ..rows import MmaRow

SIGN_A, SIGN_B = Flag("signA", "whether A is signed"), Flag("signB", "whether B is signed")
CLAMP = Flag("clamp", "whether the integer result saturates")
NEG_A, NEG_B = Flag("negA", "whether A is negated"), Flag("negB", "whether B is negated")
MOD_C = Flag("modC", "0 as it is, 1 negated, 2 absolute, 3 negated absolute", 3)
REUSE_A, REUSE_B = Flag("reuseA", "A is that of the call before"), Flag("reuseB", "B is that of the call before")

#: Flags of each call form; ``opsel`` forms end in a constant 0 (the lower half, or packed accumulators).
FORMS: dict[str, tuple[Flag, ...]] = {
    "plain": (),
    "opsel": (),
    "integer": (SIGN_A, SIGN_B, CLAMP),
    "modified": (NEG_A, NEG_B, MOD_C, REUSE_A, REUSE_B),
    "fp8": (MOD_C, REUSE_A, REUSE_B),
    "integer1250": (SIGN_A, SIGN_B, CLAMP, REUSE_A, REUSE_B),
    "f8f6f4": (MOD_C,),
    "f4": (MOD_C,),
}
_CODES = {"f8E4M3FN": 0, "f8E5M2": 1, "f6E2M3FN": 2, "f6E3M2FN": 3, "f4E2M1FN": 4}
FP8 = {"fp8": "f8E4M3FN", "bf8": "f8E5M2"}


def form_of(row: MmaRow) -> str:
    """The call form of a row, by its types and targets."""
    a, _, acc = row.elements
    if acc == "i32":
        return "integer1250" if "gfx1250" in row.instructions else "integer"
    if "gfx1250" not in row.instructions:
        return "opsel" if acc in ("f16", "bf16") else "plain"
    if ".f8f6f4." in row.intrinsic:
        return "f8f6f4"
    if row.shape[0] == 32:
        return "f4"
    return "fp8" if a in FP8.values() else "modified"


class Wmma(Stateless, FlaggedRowMma):
    """A dense WMMA; the families set mnemonic and table."""

    __slots__ = ()

    @classmethod
    def flags_of(cls, row: MmaRow) -> tuple[Flag, ...]:
        """The flags of the row's call form."""
        return FORMS[form_of(row)]

    @classmethod
    def usual_variant(cls) -> str:
        """Waves of 32 lanes."""
        return "wave = 32"

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """A, B and C between the immediates of the call form."""

        def bit(name: str) -> LLValue:
            return em.const(ll.I1, self.flags.get(name, 0))

        form = form_of(self.row)
        mod = em.const(ll.I16, self.flags.get("modC", 0))
        reuse = [bit("reuseA"), bit("reuseB")]
        if form == "integer":
            return [bit("signA"), a, bit("signB"), b, c, bit("clamp")]
        if form == "integer1250":
            return [bit("signA"), a, bit("signB"), b, c, *reuse, bit("clamp")]
        if form == "modified":
            return [bit("negA"), a, bit("negB"), b, mod, c, *reuse]
        if form == "fp8":
            return [a, b, mod, c, *reuse]
        if form == "f8f6f4":
            code_a, code_b = (em.const(ll.I32, _CODES[name]) for name in self.row.elements[:2])
            return [code_a, a, code_b, b, mod, c]
        if form == "f4":
            return [a, b, mod, c]
        return [a, b, c, bit("opsel")] if form == "opsel" else [a, b, c]

    def emit_atom_call_ssa(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> LLValue:
        """The call; 16-bit accumulators of gfx11 are spread over every second slot and gathered again."""
        if self.row.slots == 1:
            return super().emit_atom_call_ssa(em, state, a, b, c)
        ca, cb, cc = self.row.carriers
        held = self.register_types()[2]
        count = held.count
        zero = em.zero(held)
        spread = em.shuffle(c, zero, [i // 2 if i % 2 == 0 else count for i in range(2 * count)])
        args = self.arguments(em, state, em.bitcast(a, ca), em.bitcast(b, cb), em.bitcast(spread, cc))
        result = em.intrinsic(self.row.intrinsic.removeprefix("llvm."), cc, args)
        return em.shuffle(em.bitcast(result, spread.type), None, range(0, 2 * count, 2))


def family_of(target: Target) -> type[Wmma]:
    """The WMMA family of a target.

    Raises:
        TargetError: It has none.
    """
    family = target.chip.family
    if family == "rdna3":
        from .gfx11_wmma import WmmaGfx11

        return WmmaGfx11
    if family == "rdna4":
        from .gfx120x_wmma import WmmaGfx120x

        return WmmaGfx120x
    if family == "gfx1250":
        from .gfx1250_wmma import WmmaGfx1250

        return WmmaGfx1250
    raise TargetError(f"{target.processor} has no WMMA", fix="use fx.rocdl.MFMA")


def find_wmma(
    m: int,
    n: int,
    k: int,
    a: str,
    b: str,
    acc: str | None,
    target: Target,
    flags: Mapping[str, int] | None = None,
    result: str | None = None,
) -> Wmma:
    """The atom of a shape and types in the target's family and wave size.

    Args:
        m, n, k: Shape.
        a, b: Element names of A and B.
        acc: Element name of C, and of D; ``None``: f32 for floats, i32 for integers.
        target: The chip, with its wave size.
        flags: Modifiers by name; those that are 0 may name flags that the row lacks.
        result: Element name of D where it is another than that of C.

    Raises:
        AtomError: No such row or flag; the fix lists the legal ones.
        TargetError: The target has no WMMA.
    """
    kind = family_of(target)
    variant = "wave = 64" if target.wave_size == 64 else ""
    if result not in (None, acc):
        variant = f"result = {result}"
    acc = accumulator_of(kind.table, a, b) if acc is None else acc
    row = kind.table.find((m, n, k), (a, b, acc), None, target.processor, variant)
    found = kind(row, {name: value for name, value in (flags or {}).items() if value})
    found.check_target(target)
    return found
