"""``cdna3.buffer_copy``: loads and stores through a buffer descriptor, 8 to 128 bits a lane.

``fly_rocdl.cdna3.buffer_copy<128>``, with a cache policy ``<128, cache = nt>``.  All chips have it.  Lanes outside the
descriptor's range load 0 and store nothing.

State: ``soffset``, added to the address of every lane; it should be uniform over the wave, because the instruction
takes it from a scalar register.

Source: LLVM AMDGPUUsage, intrinsics ``llvm.amdgcn.raw.ptr.buffer.load`` and ``.store``; ISA manuals, chapter "Vector
memory buffer instructions".
"""

from __future__ import annotations

from ...errors import AtomError
from ...ir import lltype as ll, types as t
from ...ir.protocols import register_payload
from ...state import AtomStateField, StateStruct
from ..copy_op import StatefulCopy
from ..spelling import parse_width
from .cache_policy import CachedCopy, CachePolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue, MemOperand

SOFFSET = AtomStateField("soffset", t.I32, default=0, doc="added to the address of every lane", units="elements")

# Bits, LLVM type of the value, its name in the intrinsic, and the instruction by ISA family (load, store).
# LLVM has no 96-bit integer access: three dwords instead.
_TABLE = (
    (8, "i8", "i8", "ubyte", "byte", "u8", "b8"),
    (16, "i16", "i16", "ushort", "short", "u16", "b16"),
    (32, "i32", "i32", "dword", "dword", "b32", "b32"),
    (64, "<2 x i32>", "v2i32", "dwordx2", "dwordx2", "b64", "b64"),
    (96, "<3 x i32>", "v3i32", "dwordx3", "dwordx3", "b96", "b96"),
    (128, "<4 x i32>", "v4i32", "dwordx4", "dwordx4", "b128", "b128"),
)


class BufferRow:
    """One width of the copy.

    Attributes:
        bits: Bits a lane moves.
        carrier: LLVM type of the value.
        suffix: Name of that type in the intrinsic.
        cdna: Instructions (load, store) on gfx90a, gfx942 and gfx950.
        rdna: Instructions (load, store) on the other chips.
    """

    __slots__ = ("bits", "carrier", "cdna", "rdna", "suffix")

    def __init__(self, bits: int, carrier: str, suffix: str, *ends: str) -> None:
        self.bits = bits
        self.carrier = ll.parse(carrier)
        self.suffix = suffix
        load, store, load_rdna, store_rdna = ends
        self.cdna = (f"buffer_load_{load}", f"buffer_store_{store}")
        self.rdna = (f"buffer_load_{load_rdna}", f"buffer_store_{store_rdna}")


ROWS = {row[0]: BufferRow(*row) for row in _TABLE}


class BufferCopy(CachedCopy, StatefulCopy):
    """A copy between a buffer descriptor and registers, one lane at a time.

    Args:
        bits: Bits a lane moves: 8, 16, 32, 64, 96 or 128.
        cache: Cache policy: raw bits or names, see `cache_policy`.

    Raises:
        AtomError: The instruction has no such width.
    """

    __slots__ = ("cache", "row")

    mnemonic = "fly_rocdl.cdna3.buffer_copy"
    spaces = (("buffer_desc", "register"), ("register", "buffer_desc"))
    state = StateStruct("cdna3.buffer_copy", SOFFSET)

    def __init__(self, bits: int, cache: int | str | CachePolicy = 0) -> None:
        row = ROWS.get(bits)
        if row is None:
            raise AtomError(
                f"cdna3.buffer_copy<{bits}>: a lane cannot move {bits} bits at once",
                fix=f"use one of: {', '.join(map(str, ROWS))} bits; several atoms make a wider copy",
            )
        self.row = row
        self.bit_size = row.bits
        self.cache = cache if isinstance(cache, CachePolicy) else CachePolicy(cache)
        self.params = f"{row.bits}" if self.cache.is_default else f"{row.bits}, cache = {self.cache.text}"

    @property
    def intrinsic(self) -> str:
        """Full name of the load; the store is the same with ``store``."""
        return f"llvm.amdgcn.raw.ptr.buffer.load.{self.row.suffix}"

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """One side is behind a buffer descriptor, the other in registers.

        Raises:
            AtomError: They are not.
        """
        if {src.space, dst.space} != {"buffer_desc", "register"}:
            raise AtomError(
                f"{self.name} cannot copy {src} to {dst}",
                fix="one side is behind a buffer descriptor (fx.rocdl.make_buffer_tensor), the other in registers",
            )

    def emit_load(self, em: Emitter, state: LLValue | None, src: MemOperand, type: ll.LLType) -> LLValue:
        """One buffer load."""
        args = [*buffer_address(em, self.state, state, src, self.bit_size), self._policy(em, False)]
        value = em.intrinsic(f"amdgcn.raw.ptr.buffer.load.{self.row.suffix}", self.row.carrier, args)
        return em.bitcast(value, type)

    def emit_store(self, em: Emitter, state: LLValue | None, value: LLValue, dst: MemOperand) -> None:
        """One buffer store."""
        args = [*buffer_address(em, self.state, state, dst, self.bit_size), self._policy(em, True)]
        em.intrinsic(
            f"amdgcn.raw.ptr.buffer.store.{self.row.suffix}", ll.VOID, [em.bitcast(value, self.row.carrier), *args]
        )

    def _policy(self, em: Emitter, is_store: bool) -> LLValue:
        return em.const(ll.I32, self.cache.bits(em.target, is_store))

    def instructions(self, processor: str) -> tuple[str, str]:
        """The load and the store that LLVM selects on a processor."""
        return self.row.cdna if processor in ("gfx90a", "gfx942", "gfx950") else self.row.rdna

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        return super().describe() | {
            "intrinsic_store": self.intrinsic.replace(".load.", ".store."),
            "instruction": {p: list(self.instructions(p)) for p in self.targets},
        }


def buffer_address(
    em: Emitter, struct: StateStruct, state: LLValue | None, mem: MemOperand, bits: int
) -> tuple[LLValue, LLValue, LLValue]:
    """Descriptor, byte offset of the lane, and scalar byte offset of a buffer access.

    Units:
        The state counts elements of ``mem``; both offsets are bytes; ``bits`` is the width of the access.
    """
    if state is None:
        raise AtomError(f"{struct.owner} is called without its state", fix="pass the atom's state struct")
    soffset = em.extract_value(state, struct.index("soffset"))
    return mem.base, em.buffer_offset(mem, bits // 8), scale_to_bytes(em, soffset, mem.type.elem.bits)


def scale_to_bytes(em: Emitter, elements: LLValue, bits: int) -> LLValue:
    """A count of elements as bytes; elements narrower than a byte are packed.

    Raises:
        AtomError: The elements are known to end inside a byte.
    """
    if bits % 8 == 0:
        return elements if bits == 8 else em.binary("mul", elements, em.const(ll.I32, bits // 8))
    if isinstance(elements.const, int) and elements.const * bits % 8:
        raise AtomError(
            f"an offset of {elements.const} elements of {bits} bits ends inside a byte",
            fix="use an offset of whole bytes",
        )
    return em.binary("lshr", em.binary("mul", elements, em.const(ll.I32, bits)), em.const(ll.I32, 3))


def parse(params: str) -> BufferCopy:
    """The atom of ``128[, cache = nt]``."""
    bits, found = parse_width(BufferCopy.mnemonic, params, ("cache",))
    return BufferCopy(bits, found.get("cache", "0"))


def atoms() -> list[BufferCopy]:
    """One atom for each width."""
    return [BufferCopy(bits) for bits in ROWS]


register_payload(BufferCopy.mnemonic, parse)
