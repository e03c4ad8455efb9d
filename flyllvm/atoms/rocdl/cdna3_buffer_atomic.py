"""``cdna3.buffer_atomic``: read-modify-write of memory behind a buffer descriptor.

``fly_rocdl.cdna3.buffer_atomic<add, f32>``; packed pairs are ``vector<2xf16>`` and ``vector<2xbf16>``.  ``max`` and
``min`` are signed on integers, ``umax`` and ``umin`` are not.  The source is in registers, the old value is dropped.
Lanes outside the descriptor's range do nothing.

The instructions are monotonic at the scope of the device: they order no other access.

State: ``soffset``, in elements, as in ``buffer_copy``.

Source: LLVM AMDGPUUsage, intrinsics ``llvm.amdgcn.raw.ptr.buffer.atomic.*``; ISA manuals, "Buffer instructions".
"""

from __future__ import annotations

from ...errors import AtomError, TargetError
from ...ir import lltype as ll, types as t
from ...ir.protocols import register_payload
from ...state import StateStruct
from ..base import ALL_TARGETS
from ..copy_op import StatefulCopy
from ..spelling import options, split_params
from ..universal_atomic import check_element, check_word
from .cdna3_buffer_copy import SOFFSET, buffer_address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue, MemOperand
    from ...target import Target

_CDNA = ("gfx90a", "gfx942", "gfx950")
_WITH_F64 = (*_CDNA, "gfx1250")
_GFX12 = ("gfx1200", "gfx1201", "gfx1250")
# Operation on integers: the intrinsic's word; the instruction on CDNA (_x2 for 64 bits) and elsewhere (+ bits).
_INTEGERS = {
    "add": ("add", "add", "add_u"),
    "sub": ("sub", "sub", "sub_u"),
    "max": ("smax", "smax", "max_i"),
    "min": ("smin", "smin", "min_i"),
    "umax": ("umax", "umax", "max_u"),
    "umin": ("umin", "umin", "min_u"),
    "and": ("and", "and", "and_b"),
    "or": ("or", "or", "or_b"),
    "xor": ("xor", "xor", "xor_b"),
    "inc": ("inc", "inc", "inc_u"),
    "dec": ("dec", "dec", "dec_u"),
    "swap": ("swap", "swap", "swap_b"),
}
# Operation and type of floats: word, type's name in the intrinsic, and instructions by processor.
_FLOATS = {
    ("add", "f32"): ("fadd", "f32", dict.fromkeys(ALL_TARGETS, "add_f32")),
    ("add", "f64"): ("fadd", "f64", dict.fromkeys(_WITH_F64, "add_f64")),
    ("add", "vector<2xf16>"): ("fadd", "v2f16", dict.fromkeys((*_CDNA, *_GFX12), "pk_add_f16")),
    ("add", "vector<2xbf16>"): ("fadd", "v2bf16", dict.fromkeys(("gfx950", *_GFX12), "pk_add_bf16")),
    **{
        (op, "f32"): (f"f{op}", "f32", {"gfx1100": f"{op}_f32", **dict.fromkeys(_GFX12, f"{op}_num_f32")})
        for op in ("max", "min")
    },
    **{
        (op, "f64"): (f"f{op}", "f64", {**dict.fromkeys(_CDNA, f"{op}_f64"), "gfx1250": f"{op}_num_f64"})
        for op in ("max", "min")
    },
}
_ELEMENTS = {
    "i32": (t.I32, 1), "i64": (t.I64, 1), "f32": (t.F32, 1), "f64": (t.F64, 1),
    "vector<2xf16>": (t.F16, 2), "vector<2xbf16>": (t.BF16, 2),
}  # fmt: skip


class AtomicRow:
    """One operation on one type.

    Attributes:
        operation: As in the spelling.
        type_name: As in the spelling.
        name: Intrinsic after ``raw.ptr.buffer.atomic.``.
        instructions: Instruction by processor: exactly the processors that have it.
    """

    __slots__ = ("instructions", "name", "operation", "type_name")

    def __init__(self, operation: str, type_name: str, name: str, instructions: dict[str, str]) -> None:
        self.operation, self.type_name, self.name = operation, type_name, name
        self.instructions = {p: f"buffer_atomic_{instructions[p]}" for p in ALL_TARGETS if p in instructions}


def _rows() -> list[AtomicRow]:
    rows = []
    for bits, tail in ((32, ""), (64, "_x2")):
        for operation, (word, cdna, rdna) in _INTEGERS.items():
            names = {p: cdna + tail if p in _CDNA else f"{rdna}{bits}" for p in ALL_TARGETS}
            rows.append(AtomicRow(operation, f"i{bits}", f"{word}.i{bits}", names))
    for (operation, type_name), (word, short, found) in _FLOATS.items():
        rows.append(AtomicRow(operation, type_name, f"{word}.{short}", found))
    return rows


ROWS = {(row.operation, row.type_name): row for row in _rows()}


class BufferAtomic(StatefulCopy):
    """An atomic update behind a buffer descriptor.

    Args:
        operation: add, sub, max, min, umax, umin, and, or, xor, inc, dec or swap.
        type: i32, i64, f32, f64, ``vector<2xf16>`` or ``vector<2xbf16>``, as text or type.

    Raises:
        AtomError: No chip has the operation on the type.
    """

    __slots__ = ("count", "elem", "row", "targets")

    mnemonic = "fly_rocdl.cdna3.buffer_atomic"
    spaces = (("register", "buffer_desc"),)
    state = StateStruct("cdna3.buffer_atomic", SOFFSET)

    def __init__(self, operation: str, type: t.Type | str) -> None:
        check_word(self.mnemonic, "type", str(type), _ELEMENTS)
        row = ROWS.get((operation, str(type)))
        if row is None:
            legal = ", ".join(op for op, name in ROWS if name == str(type))
            raise AtomError(f"cdna3.buffer_atomic<{operation}, {type}>: no chip has it", fix=f"on {type}: {legal}")
        self.row = row
        self.elem, self.count = _ELEMENTS[row.type_name]
        self.bit_size = self.elem.bits * self.count
        self.targets = tuple(row.instructions)
        self.params = f"{operation}, {row.type_name}"

    @property
    def intrinsic(self) -> str:
        """Full name of the LLVM intrinsic."""
        return f"llvm.amdgcn.raw.ptr.buffer.atomic.{self.row.name}"

    def alternatives(self, target: Target) -> str:
        """Types with this operation, and operations on this type, on the target."""
        here = [row for row in ROWS.values() if target.processor in row.instructions]
        types = ", ".join(row.type_name for row in here if row.operation == self.row.operation) or "none"
        found = ", ".join(row.operation for row in here if row.type_name == self.row.type_name) or "none"
        operation, name = self.row.operation, self.row.type_name
        return f"on {target.processor}: types with {operation}: {types}; operations on {name}: {found}"

    def check_target(self, target: Target) -> None:
        """Checks that the target has the operation on the type.

        Raises:
            TargetError: It has not; the fix lists what it has.
        """
        if target.processor not in self.targets:
            raise TargetError(f"{self.name} is not on {target.processor}", fix=self.alternatives(target))

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """Registers to a buffer of the atom's element type.

        Raises:
            AtomError: They are not.
        """
        if src.space != "register" or dst.space != "buffer_desc":
            raise AtomError(
                f"{self.name} cannot update {dst} with {src}",
                fix="the source is in registers, the destination behind a buffer descriptor",
            )
        check_element(self.name, self.elem, dst)

    def emit_store(self, em: Emitter, state: LLValue | None, value: LLValue, dst: MemOperand) -> None:
        """One buffer atomic whose result nobody reads."""
        type = ll.vec_or_scalar(self.count, self.elem.storage)
        args = [em.bitcast(value, type), *buffer_address(em, self.state, state, dst, self.bit_size)]
        em.intrinsic(self.intrinsic.removeprefix("llvm."), type, [*args, em.const(ll.I32, 0)])

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return super().describe() | {"instruction": dict(self.row.instructions)}


def parse(params: str) -> BufferAtomic:
    """The atom of ``add, f32``."""
    words = split_params(params)
    options(BufferAtomic.mnemonic, params, words[2:], ())
    if len(words) < 2:
        raise AtomError(f"!{BufferAtomic.mnemonic}<{params}> needs operation and type", fix="write <add, f32>")
    return BufferAtomic(words[0], words[1])


def atoms() -> list[BufferAtomic]:
    """One atom for each row."""
    return [BufferAtomic(operation, name) for operation, name in ROWS]


register_payload(BufferAtomic.mnemonic, parse)
