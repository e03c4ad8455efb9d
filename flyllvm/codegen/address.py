"""Addresses, alignment and memory access.

An address is ``base + offset + constant``: the run-time part is shared and leaves loops, the constant
comes last and stays beside the access, so that LLVM folds it into the instruction's immediate offset.
"""

from __future__ import annotations

from ..ir import lltype as ll
from ..ir.protocols import LLValue, MemOperand
from .text import TextBuilder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..ir.lltype import LLType
    from ..layout import Swizzle
    from ..target import Target
    from .module import ModuleBuilder

#: Result type of a raw buffer access by its size in bits.
_BUFFER_TYPES = {
    8: ll.I8, 16: ll.I16, 32: ll.I32, 64: ll.vec(2, ll.I32), 96: ll.vec(3, ll.I32), 128: ll.vec(4, ll.I32)
}  # fmt: skip
#: Immediate offsets of a buffer access are below this many bytes, on every chip.
_BUFFER_IMMEDIATE = 4096
_SMALL_SPACES = ("shared", "register", "buffer_desc")


def mangle(type: LLType) -> str:
    """The suffix LLVM puts into the name of an overloaded intrinsic for a type."""
    if type.kind == "vector":
        return f"v{type.count}{mangle(type.elem)}"
    if type.kind == "ptr":
        return f"p{type.space}"
    if type.kind == "int":
        return type.text
    return {"half": "f16", "bfloat": "bf16", "float": "f32", "double": "f64"}[type.text]


def access_type(type: LLType) -> LLType:
    """The type to load or store for values of a type: bytes and packed small elements travel as wider integers."""
    elem = type.elem
    if elem.kind not in ("int", "float") or (elem.bits >= 16 and elem.bits % 8 == 0):
        return type
    if type.count == 1 and elem.bits == 8:
        return type
    for bits, unit in ((32, ll.I32), (16, ll.I16), (8, ll.I8)):
        if type.bits % bits == 0:
            return ll.vec_or_scalar(type.bits // bits, unit)
    return type


def _power_from(n: int) -> int:
    """The smallest power of two that is at least ``n``."""
    return 1 << (n - 1).bit_length()


class MemoryBuilder(TextBuilder):
    """A text builder that addresses memory.

    Attributes:
        local: Instructions of the current block that must stay in it, by right-hand side.
        bases: The first constant of the buffer accesses at an offset and the part of a constant that is no immediate.
    """

    __slots__ = ("bases", "local")

    def __init__(self, module: ModuleBuilder, target: Target) -> None:
        super().__init__(module, target)
        self.local: dict[str, LLValue] = {}
        self.bases: dict[tuple[str, int], int] = {}

    def beside(self, type: LLType, rhs: str, uniform: bool = False) -> LLValue:
        """A pure instruction in the current block, shared within it alone."""
        found = self.local.get(rhs)
        if found is None:
            found = self.local[rhs] = self.value(type, rhs, uniform)
        return found

    # --- addresses --------------------------------------------------------------------------------

    def alignment(self, mem: MemOperand) -> int:
        """Bytes an access is aligned to: a power of two, at least 1.

        The pointer's own alignment, cut by the constant offset and by the swizzle, which keeps only the
        low ``base`` bits of an address.
        """
        bits = mem.type.align | mem.const_offset
        swizzle = mem.type.swizzle
        if swizzle is not None and swizzle.mask:
            bits |= 1 << swizzle.base
        return bits & -bits

    def address(self, mem: MemOperand, access_bytes: int) -> LLValue:
        """The final pointer of an access of some bytes, swizzled.

        Raises:
            CodegenError: The operand is a buffer, or the access is not inside of what its swizzle keeps together.
        """
        if mem.type.space == "buffer_desc":
            raise self.fail(
                "a buffer descriptor has no address", "use a buffer copy atom, or buffer_offset and the descriptor"
            )
        offset, const = mem.offset, mem.const_offset
        swizzle = mem.type.swizzle
        if swizzle is not None and swizzle.mask:
            self._check_width(mem, swizzle, access_bytes)
            if not self.module.align_base(mem.base, 1 << (swizzle.mask + swizzle.base + swizzle.shift)):
                return self._swizzled_pointer(mem, swizzle)
            offset, const = self._swizzle(offset, const, mem.offset_align, swizzle)
        if offset is not None and offset.level > 0 and mem.type.space not in _SMALL_SPACES and self.in_loop:
            self.module.whole += 1
        return self.gep(mem.base, self.index(mem.type.space, offset), const)

    @property
    def in_loop(self) -> bool:
        """Whether what is written now stands in a loop."""
        return self.scope.depth > 0 and self.scope.place(0) is not None

    def note_folded(self, part: LLValue) -> None:
        """Notes an access that adds up its address itself; ``part`` is what varies in a loop, if anything does."""
        if part.level > 0 and self.in_loop:
            self.module.folded += 1

    def buffer_offset(self, mem: MemOperand, access_bytes: int) -> LLValue:
        """The byte offset (i32) of an access into a buffer, swizzled, the constant added last.

        Raises:
            CodegenError: A 64-bit offset, or the access is not inside of what its swizzle keeps together.
        """
        offset, const = self.index("buffer_desc", mem.offset), mem.const_offset
        swizzle = mem.type.swizzle
        if swizzle is not None and swizzle.mask:
            self._check_width(mem, swizzle, access_bytes)
            offset, const = self._swizzle(offset, const, mem.offset_align, swizzle)
        if offset is None or offset.const is not None:
            base = 0 if offset is None else int(offset.const or 0)
            return self.const(ll.I32, base + const)
        # Offsets that differ in their immediate only share a register, as long as nobody counts each one up.
        if self.bases.setdefault((offset.text, const // _BUFFER_IMMEDIATE), const) != const:
            self.note_folded(offset)
        if const == 0:
            return offset
        return self.beside(ll.I32, f"add i32 {offset.text}, {self.const(ll.I32, const).text}", offset.uniform)

    def _check_width(self, mem: MemOperand, swizzle: Swizzle, access_bytes: int) -> None:
        if access_bytes > 1 << swizzle.base:
            raise self.fail(
                f"an access of {access_bytes} bytes through the swizzle {swizzle}",
                f"the swizzle keeps runs of {1 << swizzle.base} bytes together: "
                "use narrower accesses or a swizzle with a larger base",
            )
        known = self.alignment(mem)
        if access_bytes > known:
            raise self.fail(
                f"an access of {access_bytes} bytes from a multiple of {known} bytes on may straddle what "
                f"the swizzle {swizzle} moves",
                f"start it at a multiple of {_power_from(access_bytes)} bytes (fx.assume says so of a run-time offset) "
                f"or access {known} bytes at a time",
            )

    def index(self, space: str, offset: LLValue | None) -> LLValue | None:
        """A byte offset in the width its address space counts in; widened with its sign, never cut."""
        if offset is None:
            return None
        if space in _SMALL_SPACES:
            if offset.type is not ll.I32:
                raise self.fail(
                    f"an offset of type {offset.type.text} in {space} memory, which counts in 32 bits",
                    "use an i32 offset, or global memory",
                )
            return offset
        return self.cast("sext", offset, ll.I64)

    def gep(self, base: LLValue, offset: LLValue | None, const: int) -> LLValue:
        """A pointer plus a run-time and a constant number of bytes, the constant last."""
        type = base.type
        if offset is not None and isinstance(offset.const, int):
            const, offset = const + offset.const, None
        if offset is not None:
            rhs = f"getelementptr i8, {type.text} {base.text}, {offset.type.text} {offset.text}"
            base = self.pure(type, rhs, max(base.level, offset.level), base.uniform and offset.uniform)
        if const == 0:
            return base
        unit = "i32" if type.bits == 32 else "i64"
        return self.beside(type, f"getelementptr i8, {type.text} {base.text}, {unit} {const}", base.uniform)

    def _swizzle(self, offset: LLValue | None, const: int, align: int, swizzle: Swizzle) -> tuple[LLValue | None, int]:
        """The swizzle of ``offset + const`` as run-time part and constant.

        Only bits below ``2^(mask+base+shift)`` take part, so multiples of that stay constants.  The map is
        linear over xor: where the offset's alignment leaves room for the constant, ``S(x + c) = S(x) ^ S(c)``.
        """
        period = 1 << (swizzle.mask + swizzle.base + swizzle.shift)
        high = const & -period
        low = const - high
        if offset is None or isinstance(offset.const, int):
            total = const if offset is None else const + int(offset.const or 0)
            high = total & -period
            return None, high + int(swizzle(total - high))
        align &= -align
        if low >= align:
            return self._swizzle_value(self.binary("add", offset, self.const(offset.type, low)), swizzle), high
        moved = int(swizzle(low))
        kept = moved & (min(1 << swizzle.base, align) - 1)
        if align < period:
            offset = self._swizzle_value(offset, swizzle)
        if moved != kept:
            offset = self.binary("xor", offset, self.const(offset.type, moved ^ kept))
        return offset, high + kept

    def _swizzle_value(self, x: LLValue, swizzle: Swizzle) -> LLValue:
        mask = ((1 << swizzle.mask) - 1) << (swizzle.base + swizzle.shift)
        row = self.binary("and", x, self.const(x.type, mask))
        return self.binary("xor", x, self.binary("lshr", row, self.const(x.type, swizzle.shift)))

    def _swizzled_pointer(self, mem: MemOperand, swizzle: Swizzle) -> LLValue:
        """The general case: the base may start anywhere, so the whole address is swizzled."""
        pointer = self.gep(mem.base, self.index(mem.type.space, mem.offset), mem.const_offset)
        number = self.cast("ptrtoint", pointer, ll.int_(pointer.type.bits))
        return self.cast("inttoptr", self._swizzle_value(number, swizzle), pointer.type)

    # --- accesses ---------------------------------------------------------------------------------

    def load(self, mem: MemOperand, type: LLType) -> LLValue:
        """Loads a value with the alignment that is known."""
        if type.elem is ll.I1:
            # One i1 takes a byte of memory.
            wide = ll.vec_or_scalar(type.count, ll.I8) if type.kind == "int" else ll.vec(type.count, ll.I8)
            return self.cast("trunc", self.load(mem, wide), type)
        if mem.type.space == "buffer_desc":
            return self._buffer_load(mem, type)
        held = access_type(type)
        pointer = self.address(mem, self._bytes(held))
        loaded = self.value(held, f"load {held.text}, {pointer.type.text} {pointer.text}, align {self.alignment(mem)}")
        return self.bitcast(loaded, type)

    def store(self, value: LLValue, mem: MemOperand) -> None:
        """Stores a value with the alignment that is known."""
        if value.type.elem is ll.I1:
            wide = ll.I8 if value.type.kind == "int" else ll.vec(value.type.count, ll.I8)
            self.store(self.cast("zext", value, wide), mem)
            return
        if mem.type.space == "buffer_desc":
            self._buffer_store(value, mem)
            return
        value = self.bitcast(value, access_type(value.type))
        pointer = self.address(mem, self._bytes(value.type))
        self.line(
            f"store {value.type.text} {value.text}, {pointer.type.text} {pointer.text}, align {self.alignment(mem)}"
        )

    def _bytes(self, type: LLType) -> int:
        if type.bits % 8:
            raise self.fail(f"an access of {type.bits} bits ({type.text})", "access whole bytes")
        return type.bits // 8

    def _buffer_type(self, type: LLType) -> LLType:
        found = _BUFFER_TYPES.get(type.bits)
        if found is None:
            raise self.fail(
                f"a buffer access of {type.bits} bits ({type.text})",
                f"access {', '.join(map(str, _BUFFER_TYPES))} bits at a time",
            )
        return found

    def _buffer_load(self, mem: MemOperand, type: LLType) -> LLValue:
        held = self._buffer_type(type)
        zero = self.const(ll.I32, 0)
        args = [mem.base, self.buffer_offset(mem, held.bits // 8), zero, zero]
        return self.bitcast(self.intrinsic(f"amdgcn.raw.ptr.buffer.load.{mangle(held)}", held, args), type)

    def _buffer_store(self, value: LLValue, mem: MemOperand) -> None:
        held = self._buffer_type(value.type)
        zero = self.const(ll.I32, 0)
        args = [self.bitcast(value, held), mem.base, self.buffer_offset(mem, held.bits // 8), zero, zero]
        self.intrinsic(f"amdgcn.raw.ptr.buffer.store.{mangle(held)}", ll.VOID, args)

    def intrinsic(self, name: str, result: LLType, args: Sequence[LLValue]) -> LLValue:
        """Calls an intrinsic, named without ``llvm.``.

        Raises:
            CodegenError: The intrinsic is unknown, has another signature, or needs a constant operand.
            TargetError: The target lacks it.
        """
        call = self.module.intrinsic_call(name, result, args, self.loc)
        rhs = f"{call.head}({', '.join([f'{a.type.text} {a.text}' for a in args])})"
        if result is ll.VOID:
            self.line(rhs)
            return LLValue(result, "", None, False, 0)
        uniform = call.uniform or (call.pure and all([a.uniform for a in args]))
        return self.value(result, rhs, uniform)

    def pure_intrinsic(self, name: str, result: LLType, args: list[LLValue]) -> LLValue:
        """Calls an intrinsic without effects; equal calls are made once."""
        call = self.module.intrinsic_call(name, result, args, self.loc)
        rhs = f"{call.head}({', '.join([f'{a.type.text} {a.text}' for a in args])})"
        return self.pure(result, rhs, max(a.level for a in args), all([a.uniform for a in args]))

    def float_intrinsic(self, name: str, result: LLType, args: list[LLValue], flags: str = "") -> LLValue:
        """Calls a float intrinsic of LLVM with fast-math flags."""
        call = self.module.intrinsic_call(name, result, args, self.loc)
        head = f"call {flags} {call.head[5:]}" if flags else call.head
        rhs = f"{head}({', '.join([f'{a.type.text} {a.text}' for a in args])})"
        return self.value(result, rhs, all([a.uniform for a in args]))
