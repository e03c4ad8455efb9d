"""``gfx1250.tdm``: whole tiles of a tensor between global memory and LDS, by the tensor data mover of gfx1250.

``fly_rocdl.gfx1250.tdm<64x32, f16, warps = 4, padInterval = 32, padAmount = 8>``.  One call moves the whole tile: its
extents stand outermost first, up to five of them, and the innermost dimension is contiguous in memory.  The tile lies
in LDS row by row.  The operands are views of the tile's first element in either memory.  Global to shared memory
loads, shared to global memory stores; wait with ``fx.rocdl.s_wait_tensorcnt``.

``warps`` waves share the tile by its outermost dimension; every wave of the workgroup must make the call.
``padInterval`` and ``padAmount``, in elements, insert space after so many elements; whole dwords, the interval a power
of two of 2 to 256 dwords, the amount 1 to 128.  A store has no such space to skip: there the interval must be a row of
the tile, which the descriptor then widens past the tensor's extent.  ``barrier`` and ``timeout`` set the descriptor's
flags; a call with ``barrier`` is refused, since the barrier it would arrive at is the one at LDS address 0.

State: ``extent_i``, how much of the tensor is left from the tile's first element on in dimension ``i`` (what lies past
it reads as zero and is not written); ``stride_i`` of all dimensions but the innermost, in elements, without default;
``workgroup_mask`` of the cluster; ``imm_offset``, added to the global address.

No lane map is involved: the instruction works for the wave.  The simulator reads the descriptor's bits.

Source: CDNA5 ISA manual, 10.11 and tables 62 to 65 (descriptor; stores ignore padding); LLVM 22.1 IntrinsicsAMDGPU
(signature: four groups).
"""

from __future__ import annotations

from ...errors import AtomError, ParseError
from ...ir import lltype as ll, types as t
from ...ir.protocols import MemOperand, register_payload
from ...layout import Layout
from ...state import AtomStateField, StateStruct
from ..copy_op import MemoryMove, StatefulCopy
from ..spelling import options, split_params
from .cache_policy import CachedCopy, CachePolicy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ...ir.protocols import Emitter, LLValue
    from ...target import Target

MAX_RANK = 5
WHOLE = Layout((1, 1), (1, 1))
_ELEMENTS = {x.text: x for x in t.SCALARS.values() if x.bits in (8, 16, 32, 64)}
_KEYS = ("warps", "padInterval", "padAmount", "cache", "barrier", "timeout")
_V4, _V8 = ll.parse("<4 x i32>"), ll.parse("<8 x i32>")
_LOAD, _STORE = "amdgcn.tensor.load.to.lds", "amdgcn.tensor.store.from.lds"


def _power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def _state(rank: int) -> StateStruct:
    fields = [
        AtomStateField(
            "workgroup_mask", t.I32, default=0, doc="workgroups of the cluster that get the tile", units="mask"
        )
    ]
    fields += [
        AtomStateField(
            f"extent_{i}", t.I32, default=(1 << 31) - 1, doc="extent left from the tile's start on", units="elements"
        )
        for i in range(rank)
    ]
    fields += [
        AtomStateField(f"stride_{i}", t.I64, default=None, doc="distance of neighbours in memory", units="elements")
        for i in range(rank - 1)
    ]
    fields.append(AtomStateField("imm_offset", t.I64, default=0, doc="added to the global address", units="bytes"))
    return StateStruct("gfx1250.tdm", *fields)


_STATES = {rank: _state(rank) for rank in range(1, MAX_RANK + 1)}


class Tdm(CachedCopy, MemoryMove, StatefulCopy):
    """A tensor copy; see the module for the spelling and the state.

    Args:
        tile: Extents in elements, outermost first.
        elem: Element type of 8, 16, 32 or 64 bits.
        warps: Waves that share the tile, a power of two that divides the outermost extent.
        pad_interval, pad_amount: Padding of LDS in elements; both or none.
        cache: Cache policy: raw bits or names, see `cache_policy`.
        barrier: The descriptor's atomic-barrier flag; for its word only, a call with it is refused.
        timeout: The descriptor's early-timeout flag.

    Raises:
        AtomError: The descriptor cannot hold the tile, the split or the padding.
    """

    __slots__ = ("barrier", "cache", "elem", "pad_amount", "pad_interval", "state", "tile", "timeout", "warps")

    mnemonic = "fly_rocdl.gfx1250.tdm"
    targets = ("gfx1250",)
    wave = 32
    spaces = (("global", "shared"), ("shared", "global"))
    operands = "a global and an LDS operand"
    state: StateStruct

    def __init__(
        self,
        tile: tuple[int, ...],
        elem: t.ScalarType | str,
        warps: int = 1,
        pad_interval: int = 0,
        pad_amount: int = 0,
        cache: int | str | CachePolicy = 0,
        barrier: bool = False,
        timeout: bool = False,
    ) -> None:
        found = _ELEMENTS.get(str(elem))
        if found is None:
            raise AtomError(f"gfx1250.tdm of {elem}", fix=f"elements of 1, 2, 4 or 8 bytes: {', '.join(_ELEMENTS)}")
        if not 1 <= len(tile) <= MAX_RANK or not all(0 < n < 1 << 16 for n in tile):
            raise AtomError(f"gfx1250.tdm of a tile {tile}", fix=f"1 to {MAX_RANK} extents of 1 to 65535 elements")
        if not _power_of_two(warps) or tile[0] % warps:
            raise AtomError(
                f"gfx1250.tdm: {warps} warps share a tile of {tile[0]} rows",
                fix="a power of two that divides the outermost extent",
            )
        self.tile, self.elem, self.warps = tile, found, warps
        self.pad_interval, self.pad_amount = pad_interval, pad_amount
        self.cache = cache if isinstance(cache, CachePolicy) else CachePolicy(cache)
        self.barrier, self.timeout = bool(barrier), bool(timeout)
        self.bit_size = 0
        self.state = _STATES[len(tile)]
        self._check_padding()
        given = {
            "warps": (warps, 1), "padInterval": (pad_interval, 0), "padAmount": (pad_amount, 0),
            "cache": (self.cache.text, "0"), "barrier": (int(self.barrier), 0), "timeout": (int(self.timeout), 0),
        }  # fmt: skip
        tail = "".join(f", {key} = {value}" for key, (value, usual) in given.items() if value != usual)
        self.params = f"{'x'.join(map(str, tile))}, {found}{tail}"

    @property
    def wave_elements(self) -> int:
        """Elements that one wave moves."""
        count = 1
        for n in self.tile:
            count *= n
        return count // self.warps

    def _check_padding(self) -> None:
        interval, amount = self.pad_interval, self.pad_amount
        if not interval and not amount:
            return
        bits = self.elem.bits
        if interval <= 0 or amount <= 0:
            raise AtomError(
                f"gfx1250.tdm: padInterval = {interval}, padAmount = {amount}", fix="give both, in elements, or none"
            )
        if interval * bits % 32 or amount * bits % 32 or not _power_of_two(interval * bits // 32):
            raise AtomError(
                f"gfx1250.tdm: padding of {amount} after {interval} elements of {bits} bits",
                fix="whole dwords, the interval a power of two of them",
            )
        if not 2 <= interval * bits // 32 <= 256 or amount * bits // 32 > 128:
            raise AtomError(
                f"gfx1250.tdm: padding of {amount * bits // 32} dwords after {interval * bits // 32}",
                fix="an interval of 2 to 256 dwords, an amount of 1 to 128",
            )
        if self.wave_elements % interval:
            raise AtomError(
                f"gfx1250.tdm: a wave moves {self.wave_elements} elements, padded after every {interval}",
                fix="a whole number of intervals for each wave",
            )

    @property
    def intrinsic(self) -> str:
        """Full name of the load; the store is ``tensor.store.from.lds``."""
        return f"llvm.{_LOAD}{self._suffix}"

    @property
    def _suffix(self) -> str:
        return ".d2" if len(self.tile) <= 2 else ""

    @property
    def bit_layout_src(self) -> Layout:
        """The tile counts as one: nothing is spread over lanes."""
        return WHOLE

    @property
    def bit_layout_dst(self) -> Layout:
        """The tile counts as one."""
        return WHOLE

    def alternatives(self, target: Target) -> str:
        """What moves tiles elsewhere."""
        return f"{target.processor} has no tensor data mover: copy with a tiled copy"

    def check_operands(self, src: t.PtrType, dst: t.PtrType) -> None:
        """Global to shared memory or back, plain, of the atom's element type.

        Raises:
            AtomError: They are not.
        """
        if (src.space, dst.space) not in self.spaces:
            raise AtomError(f"{self.name} cannot copy {src} to {dst}", fix="one side is global, the other shared")
        for p in (src, dst):
            if p.swizzle is not None or p.elem != self.elem:
                raise AtomError(f"{self.name} cannot access {p}", fix=f"plain memory of {self.elem}: use padding")
        if self.barrier:
            raise AtomError(
                f"{self.name} with barrier = 1 would arrive at the LDS barrier at address 0, the only one it can name",
                fix="leave barrier out, and wait with s_wait_tensorcnt before a workgroup barrier",
            )
        if src.space == "shared" and self.pad_interval not in (0, self.row):
            raise AtomError(
                f"{self.name} stores rows of {self.row} elements that are padded after every {self.pad_interval}",
                fix=f"padInterval = {self.row}: a store cannot skip space inside a row or between several",
            )

    @property
    def row(self) -> int:
        """Extent of a wave's part in the innermost dimension."""
        return self.tile[0] // self.warps if len(self.tile) == 1 else self.tile[-1]

    def config_word(self, loads: bool = True) -> int:
        """Word 0 of group 1 without the workgroup mask."""
        word = (self.elem.bits // 8).bit_length() - 1 << 16 | self.barrier << 18 | self.timeout << 21
        if self.pad_interval and loads:
            interval, amount = (n * self.elem.bits // 32 for n in (self.pad_interval, self.pad_amount))
            word |= 1 << 20 | interval.bit_length() - 2 << 22 | amount - 1 << 25
        return word

    def prepare(
        self, em: Emitter, state: LLValue | None, src: MemOperand, dst: MemOperand
    ) -> tuple[str, list[LLValue]]:
        """The descriptor in scalar registers; one instruction serves the wave."""
        if state is None:
            raise AtomError(f"{self.name} has state", fix="pass the atom's state")
        loads = dst.type.space == "shared"
        far, near = (src, dst) if loads else (dst, src)
        groups = Descriptor(em, self, state, loads).groups(em.address(far, 1), em.address(near, 1))
        cache = em.const(ll.I32, self.cache.bits(em.target, not loads))
        return (_LOAD if loads else _STORE) + self._suffix, [*groups, cache]

    def describe(self) -> dict[str, object]:
        """The row as ``flyllvm atoms --json`` prints it."""
        bits = self.wave_elements * self.warps * self.elem.bits
        names = ["tensor_load_to_lds", "tensor_store_from_lds"]
        return super().describe() | {"bytes": bits // 8, "instruction": dict.fromkeys(self.targets, names)}


class Descriptor:
    """Builds the descriptor of one call."""

    __slots__ = ("em", "loads", "op", "state")

    def __init__(self, em: Emitter, op: Tdm, state: LLValue, loads: bool) -> None:
        self.em, self.op, self.state, self.loads = em, op, state, loads

    def field(self, name: str) -> LLValue:
        """A state field, the same in all lanes."""
        return self.uniform(self.em.extract_value(self.state, self.op.state.index(name)))

    def uniform(self, value: LLValue) -> LLValue:
        """The value of the first lane where lanes may differ: the descriptor is one for the wave."""
        if value.uniform:
            return value
        return self.em.intrinsic(f"amdgcn.readfirstlane.i{value.type.bits}", value.type, [value])

    def op2(self, name: str, a: LLValue, b: int | LLValue) -> LLValue:
        """A binary instruction, the second operand a number or a value."""
        return self.em.binary(name, a, b if not isinstance(b, int) else self.em.const(a.type, b))

    def limited(self, name: str, value: LLValue, limit: int) -> LLValue:
        """The maximum or minimum of a value and a number."""
        if value.const is not None:
            number = (int(value.const) + (1 << 31)) % (1 << 32) - (1 << 31)
            return self.em.const(ll.I32, max(number, limit) if name.startswith("smax") else min(number, limit))
        return self.em.intrinsic(name, ll.I32, [value, self.em.const(ll.I32, limit)])

    def word(self, value: LLValue, shift: int = 0) -> LLValue:
        """Bits ``shift`` and up of a wide value, as i32."""
        return self.em.cast("trunc", self.op2("lshr", value, shift) if shift else value, ll.I32)

    def joined(self, low: LLValue, high: LLValue) -> LLValue:
        """The low halves of two words: the second goes above the first."""
        return self.op2("or", self.op2("and", low, 0xFFFF), self.op2("shl", high, 16))

    def groups(self, far: LLValue, near: LLValue) -> list[LLValue]:
        """Two groups for ranks up to 2, else four."""
        em, op = self.em, self.op
        rank = len(op.tile)
        zero = em.const(ll.I32, 0)
        rows = op.tile[0] // op.warps
        start = zero if op.warps == 1 else self.op2("mul", self.share(), rows)
        extents = [self.field(f"extent_{i}") for i in range(rank)]
        if op.warps > 1:
            extents[0] = self.op2("sub", extents[0], start)
        # The hardware reads extents without a sign.
        extents = [self.limited("smax.i32", extent, 0) for extent in extents]
        inner = op.tile[-1] if rank > 1 else rows
        if op.pad_interval and not self.loads:
            extents[-1] = self.limited("smin.i32", extents[-1], inner)
            inner += op.pad_amount
        # The hardware counts dimensions from the innermost.
        dims = [*reversed(extents), *[zero] * (MAX_RANK - rank)]
        tiles = [em.const(ll.I32, n) for n in (inner, *reversed(op.tile[1:-1]), rows)[:rank]]
        tiles += [zero] * (MAX_RANK - rank)
        wide_zero = em.const(ll.I64, 0)
        strides = [self.field(f"stride_{i}") for i in reversed(range(rank - 1))]
        strides += [wide_zero] * (MAX_RANK - rank)
        mask = self.op2("and", self.field("workgroup_mask"), 0xFFFF)
        first = [
            self.op2("or", mask, op.config_word(self.loads)),
            self.op2("shl", dims[0], 16),
            self.joined(self.op2("lshr", dims[0], 16), dims[1]),
            self.joined(self.op2("lshr", dims[1], 16), tiles[0]),
            self.joined(tiles[1], tiles[2]),
            self.word(strides[0]),
            self.joined(self.word(strides[0], 32), self.word(strides[1])),
            self.word(strides[1], 16),
        ]
        made = [self.vector(_V4, self.addresses(far, near, start)), self.vector(_V8, first)]
        if rank <= 2:
            return made
        second = [dims[2], dims[3], self.word(strides[2]), self.joined(self.word(strides[2], 32), tiles[3])]
        third = [
            self.word(strides[3]),
            self.joined(self.word(strides[3], 32), dims[4]),
            self.joined(self.op2("lshr", dims[4], 16), tiles[4]),
            zero,
        ]
        return [*made, self.vector(_V4, second), self.vector(_V4, third)]

    def share(self) -> LLValue:
        """Which part of the tile this wave moves."""
        return self.op2("and", self.em.intrinsic("amdgcn.wave.id", ll.I32, []), self.op.warps - 1)

    def addresses(self, far: LLValue, near: LLValue, start: LLValue) -> list[LLValue]:
        """Group 0: one descriptor, LDS address, global address, type 2."""
        em, op = self.em, self.op
        size = op.elem.bits // 8
        lds = self.uniform(em.cast("ptrtoint", near, ll.I32))
        address = self.op2("add", self.uniform(em.cast("ptrtoint", far, ll.I64)), self.field("imm_offset"))
        if op.warps > 1:
            count = op.wave_elements
            if op.pad_interval:
                count += count // op.pad_interval * op.pad_amount
            lds = self.op2("add", lds, self.op2("mul", self.share(), count * size))
            row = self.field("stride_0") if len(op.tile) > 1 else em.const(ll.I64, 1)
            moved = self.op2("mul", em.cast("zext", start, ll.I64), row)
            address = self.op2("add", address, self.op2("mul", moved, size))
        high = self.op2("or", self.op2("and", self.word(address, 32), 0x1FFFFFF), 1 << 31)
        return [em.const(ll.I32, 1), lds, self.word(address), high]

    def vector(self, type: ll.LLType, words: list[LLValue]) -> LLValue:
        """The words of a group."""
        made = self.em.poison(type)
        for i, word in enumerate(words):
            made = self.em.insert_element(made, word, i)
        return made


def parse(params: str) -> Tdm:
    """The atom of ``64x32, f16[, warps = 4][, padInterval = 32, padAmount = 8]...``."""
    words = split_params(params)
    extents = words[0].split("x") if words else []
    if len(words) < 2 or not all(x.isdigit() for x in extents):
        raise ParseError(f"cannot read !{Tdm.mnemonic}<{params}>", fix=f"write !{Tdm.mnemonic}<64x32, f16>")
    found = options(Tdm.mnemonic, params, words[2:], _KEYS)
    cache = found.pop("cache", "0")
    numbers = {"true": 1, "false": 0}
    for key, text in found.items():
        if text not in numbers and not text.isdigit():
            raise ParseError(f"{key} = {text} in !{Tdm.mnemonic}<{params}>", fix=f"write a number, e.g. {key} = 1")
    warps, interval, amount, barrier, timeout = (
        numbers.get(found.get(key, ""), int(found.get(key, usual)) if found.get(key, usual).isdigit() else 0)
        for key, usual in (("warps", "1"), ("padInterval", "0"), ("padAmount", "0"), ("barrier", "0"), ("timeout", "0"))
    )
    return Tdm(tuple(map(int, extents)), words[1], warps, interval, amount, cache, bool(barrier), bool(timeout))


def atoms() -> list[Tdm]:
    """One tile of each rank: tiles, types and padding are parameters."""
    return [Tdm(tile, "f16") for tile in ((256,), (64, 32), (4, 16, 32), (2, 4, 8, 32), (2, 2, 4, 8, 32))]


register_payload(Tdm.mnemonic, parse)
