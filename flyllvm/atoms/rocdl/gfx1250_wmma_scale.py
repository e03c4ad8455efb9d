"""``gfx1250.wmma_scale``: products with a scale for every 32 or 16 values of K, gfx1250, waves of 32 lanes.

``fly_rocdl.gfx1250.wmma_scale<16x16x128, (f8E4M3FN, f4E2M1FN) -> f32>``; with ``blockSize = 16`` a scale serves 16
values.  The 32x16x128 shape is for f4E2M1FN alone.

State: ``scale_a`` and ``scale_b``, one byte for each K block of a row: i32 (4 blocks of 32) or i64 (8 blocks of 16).
Byte ``b`` is K block ``b``; ``opselA`` and ``opselB`` pick the half of the lanes that supplies the rows.  ``fmtScaleA``
and ``fmtScaleB`` say what a byte is: 0 E8M0, where byte ``x`` is the factor ``2**(x - 127)``; 1 unsigned E5M3 with bias
15; 2 OCP E4M3.  There is no default: a scale of 0 is ``2**-127`` in E8M0, and zero in the others.

The K order is fixed by the scales: 8-bit elements in chunks of 16, 6-bit and 4-bit ones in chunks of 32.

Single-sourced: the 6-bit maps (one library), the 32x16x128 row (one compiler), and what the scale formats other than
E8M0 mean (AMD's public emulator); that all of them go with all elements and block sizes rests on LLVM alone.

Source: LLVM IntrinsicsAMDGPU and its scheduling model (cycles); tables of AMD's libraries.
"""

from __future__ import annotations

from ...ir import lltype as ll, types as t
from ...ir.protocols import register_payload
from ...state import AtomStateField, StateStruct
from ..base import Stateful
from ..flags import Flag, FlaggedRowMma
from ..rows import MmaRow, MmaTable
from .cdna4_mfma_scale import FORMATS, SCALE_DOC, scales
from .gfx1250_wmma import DWORDS, INPUT_32, RESULT, RESULT_32, chunked
from .wmma import MOD_C, REUSE_A, REUSE_B

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue
    from ...ir.types import IntType, ScalarType
    from ...layout import Layout
    from ...target import Target

_OPSEL = "half of the lanes with the scales"
_OPSEL_A, _OPSEL_B = Flag("opselA", f"{_OPSEL} of A"), Flag("opselB", f"{_OPSEL} of B")
_FORMAT = "0 E8M0, 1 unsigned E5M3, 2 OCP E4M3: scales of"
_FORMATS = (Flag("fmtScaleA", f"{_FORMAT} A", 2), Flag("fmtScaleB", f"{_FORMAT} B", 2))
_F4 = "f4E2M1FN"


def _state(type: IntType) -> StateStruct:
    fields = (
        AtomStateField(
            f"scale_{x}",
            type,
            default=None,
            doc=f"scales of {x.upper()}; in the usual format {SCALE_DOC}",
            units="bytes",
        )
        for x in "ab"
    )
    return StateStruct("gfx1250.wmma_scale", *fields)


_STATES = {32: _state(t.I32), 16: _state(t.I64)}


def _row(
    block: int,
    shape: tuple[int, int, int],
    elements: tuple[str, str, str],
    kind: str,
    carriers: tuple[str, str, str],
    layouts: tuple[Layout, Layout, Layout],
    cycles: int,
) -> MmaRow:
    name = f"scale{'16' if block == 16 else ''}.f32.{'x'.join(map(str, shape))}.{kind}"
    suffix = ".".join(
        f"v{text[1:].split()[0]}{'f32' if 'float' in text else 'i32'}" for text in (carriers[2], *carriers[:2])
    )
    return MmaRow(
        "gfx1250.wmma_scale",
        shape,
        1,
        elements,
        f"llvm.amdgcn.wmma.{name}.{suffix}",
        carriers,
        layouts,
        {"gfx1250": "v_wmma_" + name.replace(".", "_")},
        {"gfx1250": cycles},
        wave=32,
        variant="" if block == 32 else "blockSize = 16",
    )


def _rows() -> list[MmaRow]:
    rows = []
    narrow = chunked(128, 32)
    for block in (32, 16):
        for a in FORMATS:
            for b in FORMATS:
                carriers = (f"<{DWORDS[a]} x i32>", f"<{DWORDS[b]} x i32>", "<8 x float>")
                layouts = (chunked(128, FORMATS[a][2]), chunked(128, FORMATS[b][2]), RESULT)
                cycles = 4 if a == b == _F4 else 8
                rows.append(_row(block, (16, 16, 128), (a, b, "f32"), "f8f6f4", carriers, layouts, cycles))
        carriers, layouts = ("<16 x i32>", "<8 x i32>", "<16 x float>"), (INPUT_32, narrow, RESULT_32)
        rows.append(_row(block, (32, 16, 128), (_F4, _F4, "f32"), "f4", carriers, layouts, 8))
    return rows


TABLE = MmaTable("gfx1250.wmma_scale", _rows())


class WmmaScale(Stateful, FlaggedRowMma):
    """A scaled WMMA; see the module for the spelling and the state."""

    __slots__ = ("state",)

    mnemonic = "fly_rocdl.gfx1250.wmma_scale"
    table = TABLE
    state: StateStruct

    def __init__(self, row: MmaRow, flags: dict[str, int] | None = None) -> None:
        super().__init__(row, flags)
        self.state = _STATES[self.block_size]

    @property
    def block_size(self) -> int:
        """Values of K that share a scale."""
        return 16 if self.row.variant else 32

    @classmethod
    def flags_of(cls, row: MmaRow) -> tuple[Flag, ...]:
        """Selectors, modifier of C, reuse; all lanes supply scales of the 32-row A, so it has no selector."""
        head = (_OPSEL_B,) if row.shape[0] == 32 else (_OPSEL_A, _OPSEL_B)
        return (*head, *_FORMATS, MOD_C, REUSE_A, REUSE_B)

    @classmethod
    def usual_variant(cls) -> str:
        """Blocks of 32."""
        return "blockSize = 32"

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """Formats and operands, modifier and C, then selector, format and scale of each, reuse flags."""
        scale_a, scale_b = scales(em, self.state, state)

        def flag(type: ll.LLType, name: str) -> LLValue:
            return em.const(type, self.flags.get(name, 0))

        code_a, code_b = (em.const(ll.I32, FORMATS[name][0]) for name in self.row.elements[:2])
        head = [a, b] if self.row.shape[0] == 32 else [code_a, a, code_b, b]
        tail_a = [flag(ll.I32, "opselA"), flag(ll.I32, "fmtScaleA"), scale_a]
        tail_b = [flag(ll.I32, "opselB"), flag(ll.I32, "fmtScaleB"), scale_b]
        return [*head, flag(ll.I16, "modC"), c, *tail_a, *tail_b, flag(ll.I1, "reuseA"), flag(ll.I1, "reuseB")]


def find_wmma_scale(
    m: int,
    n: int,
    k: int,
    a: str | ScalarType,
    b: str | ScalarType | None = None,
    target: Target | None = None,
    block_size: int = 32,
    **flags: int,
) -> WmmaScale:
    """The atom of a shape, types and block size, checked against the target where one is given.

    Raises:
        AtomError: No such instruction, or a flag out of range.
        TargetError: Not on this target.
    """
    elements = (str(a), str(a if b is None else b), "f32")
    variant = "" if block_size == 32 else f"blockSize = {block_size}"
    processor = None if target is None else target.processor
    found = WmmaScale(TABLE.find((m, n, k), elements, None, processor, variant), flags)
    if target is not None:
        found.check_target(target)
    return found


def atoms() -> list[WmmaScale]:
    """One atom for each row."""
    return [WmmaScale(row) for row in TABLE.rows]


register_payload(WmmaScale.mnemonic, WmmaScale.parse)
