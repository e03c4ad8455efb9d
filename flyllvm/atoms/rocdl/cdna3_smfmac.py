"""``cdna3.smfmac``: products with a 2:4 sparse A, gfx942 and gfx950.

``fly_rocdl.cdna3.smfmac<16x16x32, (f16, f16) -> f32>``.  Of every four values of K, A holds two, packed: its layout is
over (M, K/2), where column ``c`` is one of the dense columns ``4*(c/2)`` to ``4*(c/2) + 3``.  B and C are dense.

State: ``index``, two bits for each packed value of the lane, which of the four columns it is; value ``v`` has the bits
``2*v`` and up of set ``abid``.  The two positions of a group must be in increasing order, so 0 is no legal index and
there is no default.  Where a lane needs fewer than 32 bits, ``abid`` picks the set, unless ``cbsz`` is 1 (set 0).

A tiled mma has no place for a packed A: call the atom with ``mma_atom_call``.

Source: CDNA3 and CDNA4 ISA manuals, "Sparse matrices" (A, index); AMD matrix instruction calculator 1.3.2 (B, C,
cycles of the gfx942 rows).  The maps of the rows of gfx950 alone follow the rule of the family and pair A with B as
AMD's public emulator does; their cost is unknown.
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll, types as t
from ...ir.protocols import register_payload
from ...layout import Layout
from ...state import AtomStateField, StateStruct
from ..base import Stateful
from ..flags import Flag, FlaggedRowMma
from ..rows import MmaRow, MmaTable, element_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue

_BOTH, _950 = ("gfx942", "gfx950"), ("gfx950",)
_FNUZ = {"fp8": "f8E4M3FNUZ", "bf8": "f8E5M2FNUZ"}
_OCP = {"fp8": "f8E4M3FN", "bf8": "f8E5M2"}
_RESULT = {16: Layout(((16, 4), 4), ((16, 4), 1)), 32: Layout(((32, 2), (4, 4)), ((32, 4), (1, 8)))}
_CYCLES = {16: 16, 32: 32}
#: The state of every sparse product.
INDEX = AtomStateField(
    "index",
    t.I32,
    default=None,
    doc="two bits for each packed value of A: which of its four columns it is, in increasing order",
    units="bits",
)


def _carrier(values: int, element: str, doubled: bool) -> str:
    if element == "f16":
        return f"<{values} x half>"
    if element == "bf16":  # integers in the older intrinsics
        return f"<{values} x bfloat>" if doubled else f"<{values} x i16>"
    return f"<{values // 4} x i32>"


def _row(mn: int, k: int, a: str, b: str, acc: str, kind: str, targets: tuple[str, ...]) -> MmaRow:
    groups, held = 64 // mn, k * mn // 128
    chunk = 128 // element_type(b).bits
    rounds = 2 * held // chunk
    b_layout = Layout(((mn, groups), chunk), ((1, mn * chunk), mn))
    if rounds > 1:
        b_layout = Layout(((mn, groups), (chunk, rounds)), ((1, mn * chunk), (mn, mn * chunk * groups)))
    doubled = rounds > 1  # twice the depth of the instructions of gfx942
    carrier_a, carrier_b = _carrier(held, a, doubled), _carrier(2 * held, b, doubled)
    count, out = mn * mn // 64, "i32" if acc == "i32" else "float"
    name = f"{acc}.{mn}x{mn}x{k}.{kind}"
    return MmaRow(
        "cdna3.smfmac",
        (mn, mn, k),
        1,
        (a, b, acc),
        f"llvm.amdgcn.smfmac.{name}",
        (carrier_a, carrier_b, f"<{count} x {out}>"),
        (Layout(((mn, groups), held), ((1, mn * held), mn)), b_layout, _RESULT[mn]),
        dict.fromkeys(targets, "v_smfmac_" + name.replace(".", "_")),
        {} if doubled else dict.fromkeys(targets, _CYCLES[mn]),
        wave=64,
        packing=2,
    )


def _rows() -> list[MmaRow]:
    rows = []
    for mn, k in ((16, 32), (32, 16)):
        for depth, targets in ((k, _BOTH), (2 * k, _950)):
            for element in ("f16", "bf16"):
                rows.append(_row(mn, depth, element, element, "f32", element, targets))
            rows.append(_row(mn, 2 * depth, "i8", "i8", "i32", "i8", targets))
            for target in targets:
                names = _OCP if target == "gfx950" else _FNUZ
                for a in names:
                    for b in names:
                        rows.append(_row(mn, 2 * depth, names[a], names[b], "f32", f"{a}.{b}", (target,)))
    return rows


TABLE = MmaTable("cdna3.smfmac", _rows())


def index_of(em: Emitter, struct: StateStruct, state: LLValue | None) -> LLValue:
    """The index field of a sparse product's state.

    Raises:
        AtomError: The call has no state.
    """
    if state is None:
        raise AtomError(f"{struct.owner} is called without its state", fix="pass the atom's state struct")
    return em.extract_value(state, struct.index("index"))


class Smfmac(Stateful, FlaggedRowMma):
    """A sparse MFMA; see the module for the spelling and the state."""

    __slots__ = ()

    mnemonic = "fly_rocdl.cdna3.smfmac"
    table = TABLE
    state = StateStruct("cdna3.smfmac", INDEX)

    @classmethod
    def flags_of(cls, row: MmaRow) -> tuple[Flag, ...]:
        """The set of index bits."""
        sets = 32 // (2 * row.shape[2] * row.shape[0] // 128)
        return (Flag("cbsz", "1: set 0, whatever abid says"), Flag("abid", "set of index bits", sets - 1))

    def arguments(self, em: Emitter, state: LLValue | None, a: LLValue, b: LLValue, c: LLValue) -> list[LLValue]:
        """A, B, C, the index, then cbsz and abid."""
        immediates = [em.const(ll.I32, self.flags.get(name, 0)) for name in ("cbsz", "abid")]
        return [a, b, c, index_of(em, self.state, state), *immediates]


def atoms() -> list[Smfmac]:
    """One atom for each row."""
    return [Smfmac(row) for row in TABLE.rows]


register_payload(Smfmac.mnemonic, Smfmac.parse)
