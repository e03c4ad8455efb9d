"""Ids, barriers and exchange between lanes of the authoring language."""

from __future__ import annotations

from ..errors import TraceError
from ..ir import types as t
from ..ir.builder import Builder
from ..ir.core import Value
from .numeric import Boolean, Int32, Numeric, Uint32, Uint64, as_numeric, choose, count_of, integer
from .pointer import get_dyn_shared, shared_memory
from .shared import SharedAllocator
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


class _Axis:
    """``.x``, ``.y``, ``.z`` of an id; ``x, y, z = block_idx`` unpacks all three."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def _get(self, dimension: str) -> Int32:
        v = getattr(Builder.current(), self._name)(dimension)
        return Int32(v) if isinstance(v, int) else Int32.wrap(v)

    x = property(lambda self: self._get("x"))
    y = property(lambda self: self._get("y"))
    z = property(lambda self: self._get("z"))

    def __iter__(self) -> Iterator[Int32]:
        return iter((self.x, self.y, self.z))


#: Index of the work item in its workgroup.
thread_idx = _Axis("thread_id")
#: Index of the workgroup in the grid.
block_idx = _Axis("block_id")
#: Work items per workgroup; known while tracing where the block size is.
block_dim = _Axis("block_dim")
#: Workgroups in the grid.
grid_dim = _Axis("grid_dim")


def _axis(dimension: str) -> str:
    if dimension not in ("x", "y", "z"):
        raise TraceError(f"dimension {dimension!r}", Builder.current().location(), "use 'x', 'y' or 'z'")
    return dimension


def thread_id(dimension: str = "x") -> Int32:
    """Index of the work item along one dimension."""
    return getattr(thread_idx, _axis(dimension))  # type: ignore[no-any-return]


def block_id(dimension: str = "x") -> Int32:
    """Index of the workgroup along one dimension."""
    return getattr(block_idx, _axis(dimension))  # type: ignore[no-any-return]


def lane_id() -> Int32:
    """Index of the lane in its wave."""
    return Int32.wrap(Builder.current().lane_id())


def _linear_thread() -> Any:
    dims = known_block_size()
    linear = thread_idx.x
    if dims[1] > 1 or dims[2] > 1:
        linear = linear + thread_idx.y * dims[0] + thread_idx.z * (dims[0] * dims[1])
    return linear


def wave_id() -> Any:
    """Index of the wave in its workgroup, uniform over the wave.  The block size must be known."""
    b = Builder.current()
    made = _linear_thread() // b.target.wave_size
    return readfirstlane(made)


def barrier() -> None:
    """All waves of the workgroup arrive; memory written before is seen after, LDS and global."""
    Builder.current().barrier()


def num_warp_threads() -> int:
    """Lanes in a wave of the target."""
    return Builder.current().target.wave_size


def known_block_size() -> tuple[int, int, int]:
    """The block size the kernel was declared or launched with.

    Raises:
        TraceError: It is not known.
    """
    size = Builder.current().kernel.attrs.get("known_block_size")
    if size is None:
        raise TraceError(
            "the block size of this kernel is not known",
            Builder.current().location(),
            "give @flyc.kernel(known_block_size=(x, y, z)) or launch with static numbers",
        )
    return tuple(size)


# --- exchange between lanes ----------------------------------------------------------------------


def per_word(x: Any, move: Callable[[Value], Value]) -> Any:
    """Applies ``move``, which takes an i32, to all bits of a number or vector."""
    b = Builder.current()
    v = x.ir_value()
    bits = t.count_of(v.type) * t.scalar_of(v.type).bits
    if v.type == t.I32:
        made = move(v)
    elif bits == 32:
        made = b.bitcast(move(b.bitcast(v, t.I32)), v.type)
    elif bits < 32:
        narrow = t.int_type(bits)
        small = v if v.type == narrow else b.bitcast(v, narrow)
        cut = b.cast("arith.trunci", move(b.cast("arith.extui", small, t.I32)), narrow)
        made = cut if v.type == narrow else b.bitcast(cut, v.type)
    elif bits % 32:
        raise TraceError(f"{x} has {bits} bits", b.location(), "exchange whole 32-bit words, or fewer than 32 bits")
    else:
        words = b.bitcast(v, t.VectorType(bits // 32, t.I32))
        made = b.bitcast(b.concat([move(b.extract(words, i)) for i in range(bits // 32)]), v.type)
    return x.like(made) if isinstance(x, Vector) else type(x).wrap(made)


def _traced(x: Any) -> Any:
    return x if isinstance(x, Vector) else as_numeric(x)


def readfirstlane(x: Any) -> Any:
    """The value of the first active lane: uniform over the wave.  Numbers and vectors of any width."""
    made = _traced(x)
    if isinstance(made, Numeric) and made.is_static:
        return x
    b = Builder.current()
    return per_word(made, lambda v: b.value(b.readfirstlane(v)))


def readlane(x: Any, lane: Any) -> Any:
    """The value of one lane, the same for all; ``lane`` must be uniform."""
    made, b = _traced(x), Builder.current()
    number = integer(lane, "the lane of readlane")
    if number.is_static:
        count_of(number, "the lane of readlane", 0, num_warp_threads() - 1)
    at = b.readfirstlane(number.ir_value())
    source = at if isinstance(at, Value) else b.constant(at, t.I32)
    return per_word(made, lambda v: _intrinsic("llvm.amdgcn.readlane.i32", t.I32, [v, source]))


def _intrinsic(name: str, result: t.Type, args: Sequence[Value | int], imm_bits: int = 32, pure: bool = False) -> Value:
    made = Builder.current().intrinsic(name, result, args, imm_bits, pure)
    if made is None:
        raise TraceError(f"{name} gave no result", fix="report this as a defect")
    return made


def ds_bpermute(index: Any, src: Any) -> Any:
    """The value of the lane ``index / 4`` (an index in bytes), modulo the wave; inactive lanes give 0."""
    address = integer(index, "the index of ds_bpermute").ir_value()
    return per_word(_traced(src), lambda v: _intrinsic("llvm.amdgcn.ds.bpermute", t.I32, [address, v]))


#: Control of the VALU's own lane exchange for a lane distance in xor: within 4, 8 and 16 lanes.
#: Source: CDNA3 and RDNA3 ISA manuals, DPP: quad_perm, row_half_mirror, row_mirror.
_DPP = {1: 0xB1, 2: 0x4E, 3: 0x1B, 7: 0x141, 15: 0x140}


def _exchange(x: Any, distance: int) -> Any:
    """The value of lane ``k ^ distance``, for a distance below 32: by the VALU where it can, else by LDS hardware."""
    control = _DPP.get(distance)
    if control is None:
        # Bit mode of the swizzle: keep five bits of the lane, then flip those of the distance.
        pattern = distance << 10 | 0x1F
        return per_word(x, lambda v: _intrinsic("llvm.amdgcn.ds.swizzle", t.I32, [v, pattern]))
    b = Builder.current()

    def move(v: Value) -> Value:
        made = b.intrinsic("llvm.amdgcn.update.dpp.i32", t.I32, [v, v, control, 15, 15, 0], (32, 32, 32, 1))
        return b.value(made if made is not None else 0)

    return per_word(x, move)


def _width(width: Any) -> int:
    wave = num_warp_threads()
    n = wave if width is None else count_of(width, "the width of a group of lanes")
    if n < 1 or n > wave or n & (n - 1):
        raise TraceError(
            f"shuffle of width {n}", Builder.current().location(), f"use a power of two up to the wave size {wave}"
        )
    return n


def _whole_groups(n: int, what: str) -> None:
    """Refuses groups of lanes that a block of known size does not fill: a lane that does not exist gives zero.

    Raises:
        TraceError: The last group is not whole.
    """
    size = Builder.current().kernel.attrs.get("known_block_size")
    threads = size[0] * size[1] * size[2] if size is not None else n
    if threads % n:
        raise TraceError(
            f"{what} over groups of {n} lanes in a block of {threads} threads: the last group is not whole",
            Builder.current().location(),
            f"use a block size that is a multiple of {n}, or a smaller width",
        )


def shuffle(value: Any, offset: Any, width: Any = None, mode: str = "xor") -> Any:
    """The value of another lane of the same group of ``width`` lanes.

    Args:
        value: A number or vector.
        offset: Lane distance, or the lane in the group for ``idx``.
        width: Lanes of a group, a power of two; by default the wave.
        mode: ``xor`` reads lane ``k ^ offset``, ``up`` ``k - offset``, ``down`` ``k + offset``, ``idx`` lane ``offset``
            of the group.  A lane outside of the group reads itself (``idx`` wraps around).  Lanes that do not run give
            zero.

    Raises:
        TraceError: The block size is known, and the last group is not whole.
    """
    n = _width(width)
    lane = lane_id()
    by = integer(offset, "the offset of a shuffle")
    known = by.static_value()
    if known is not None and known < 0:
        where = Builder.current().location()
        raise TraceError(f"shuffle by {known} lanes", where, "use a distance of 0 or more, and the other direction")
    if mode == "xor" and known is not None and int(known) < n:
        _whole_groups(1 << int(known).bit_length(), "a shuffle")
    elif mode != "up":
        _whole_groups(n, "a shuffle")
    if mode == "idx":
        source = (lane & ~(n - 1)) | (by & (n - 1))
    elif mode == "xor":
        if known is not None and 0 < int(known) < min(n, 32):
            return _exchange(_traced(value), int(known))
        other = lane ^ by
        # A negative distance is outside of any group: compared as an unsigned number.
        source = choose(Uint32(by) < n, other, lane)
    elif mode == "up":
        source = choose((lane & (n - 1)) >= by, lane - by, lane)
    elif mode == "down":
        source = choose((lane & (n - 1)) + by < n, lane + by, lane)
    else:
        raise TraceError(f"shuffle mode {mode!r}", Builder.current().location(), "use xor, up, down or idx")
    return ds_bpermute(source * 4, value)


def shuffle_xor(value: Any, offset: Any, width: Any = None) -> Any:
    """The value of lane ``k ^ offset``."""
    return shuffle(value, offset, width, "xor")


def shuffle_up(value: Any, offset: Any, width: Any = None) -> Any:
    """The value of lane ``k - offset``; the first lanes of a group keep their own."""
    return shuffle(value, offset, width, "up")


def shuffle_down(value: Any, offset: Any, width: Any = None) -> Any:
    """The value of lane ``k + offset``; the last lanes of a group keep their own."""
    return shuffle(value, offset, width, "down")


def shuffle_idx(value: Any, lane: Any, width: Any = None) -> Any:
    """The value of one lane of the group."""
    return shuffle(value, lane, width, "idx")


def ballot(cond: Any) -> Any:
    """One bit per lane where the condition holds: ``Uint64``, or ``Uint32`` in waves of 32."""
    wide = num_warp_threads() == 64
    cls = Uint64 if wide else Uint32
    flag = Boolean(cond).ir_value()
    return cls.wrap(_intrinsic(f"llvm.amdgcn.ballot.{cls.ir.text}", cls.ir, [flag]))


def wave_any(cond: Any) -> Any:
    """Whether the condition holds in any active lane."""
    return ballot(cond) != 0


def wave_all(cond: Any) -> Any:
    """Whether the condition holds in every active lane."""
    return ballot(~Boolean(cond)) == 0


_JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b, "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}  # fmt: skip


def wave_reduce(value: Any, op: str = "add", width: Any = None) -> Any:
    """The numbers of a group of lanes joined by ``op``: add, mul, max, min, and, or, xor; every lane gets the result.

    All lanes of the group must run: one that does not counts as zero.  Floats are joined as a binary tree.

    Raises:
        TraceError: The block size is known, and the last group is not whole.
    """
    from .math import max as larger, min as smaller

    joins = {**_JOINS, "max": larger, "min": smaller}
    if op not in joins:
        raise TraceError(f"wave_reduce({op!r})", Builder.current().location(), f"use one of: {', '.join(joins)}")
    n, x = _width(width), _traced(value)
    _whole_groups(n, "wave_reduce")
    step = 1
    while step < n:
        # Lanes of a group of 4 (8) hold one value already, so the mirror image of 8 (16) lanes serves as well.
        distance = {4: 7, 8: 15}.get(step, step)
        x = joins[op](x, shuffle_xor(x, distance, max(n, distance + 1)))
        step *= 2
    return x


__all__ = [
    "SharedAllocator", "ballot", "barrier", "block_dim", "block_id", "block_idx", "ds_bpermute",
    "get_dyn_shared", "grid_dim", "known_block_size", "lane_id", "num_warp_threads", "readfirstlane", "readlane",
    "shared_memory", "shuffle", "shuffle_down", "shuffle_idx", "shuffle_up", "shuffle_xor", "thread_id", "thread_idx",
    "wave_all", "wave_any", "wave_id", "wave_reduce",
]  # fmt: skip
