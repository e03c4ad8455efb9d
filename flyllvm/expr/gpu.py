"""Ids, barriers and LDS of the authoring language."""

from __future__ import annotations

from typing import Any

from ..errors import TraceError
from ..ir.builder import Builder
from .numeric import Int8, Int32, Numeric
from .tensor import Pointer


class _Axis:
    """``.x``, ``.y``, ``.z`` of an id."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def _get(self, dimension: str) -> Any:
        v = getattr(Builder.current(), self._name)(dimension)
        return Int32(v) if isinstance(v, int) else Int32.wrap(v)

    x = property(lambda self: self._get("x"))
    y = property(lambda self: self._get("y"))
    z = property(lambda self: self._get("z"))


#: Index of the work item in its workgroup.
thread_idx = _Axis("thread_id")
#: Index of the workgroup in the grid.
block_idx = _Axis("block_id")
#: Work items per workgroup; known while tracing where the block size is.
block_dim = _Axis("block_dim")
#: Workgroups in the grid.
grid_dim = _Axis("grid_dim")


def thread_id(dimension: str = "x") -> Int32:  # type: ignore[valid-type]
    """Index of the work item along one dimension."""
    return getattr(thread_idx, dimension)  # type: ignore[no-any-return]


def block_id(dimension: str = "x") -> Int32:  # type: ignore[valid-type]
    """Index of the workgroup along one dimension."""
    return getattr(block_idx, dimension)  # type: ignore[no-any-return]


def lane_id() -> Int32:  # type: ignore[valid-type]
    """Index of the lane in its wave."""
    return Int32.wrap(Builder.current().lane_id())


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
    return tuple(size)  # type: ignore[return-value]


def readfirstlane(x: Any) -> Any:
    """The value of the first active lane: uniform over the wave."""
    if not isinstance(x, Numeric) or x.is_static:
        return x
    if x.width != 32:
        raise TraceError(f"readfirstlane of {type(x)}", Builder.current().location(), "use a 32-bit number")
    b = Builder.current()
    if x.signed is None:
        return type(x).wrap(b.bitcast(b.readfirstlane(b.bitcast(x.ir_value(), Int32.ir)), x.ir))  # type: ignore[arg-type]
    return type(x).wrap(b.readfirstlane(x.ir_value()))


def shared_memory(dtype: type[Numeric], count: int, align: int = 16) -> Pointer:
    """A new LDS allocation of ``count`` elements, aligned to ``align`` bytes."""
    size = -(-dtype.width * count // 8)
    return Pointer(Builder.current().shared(dtype.ir, size, align), dtype)


def get_dyn_shared(dtype: type[Numeric] | None = None) -> Pointer:
    """The LDS given at launch."""
    kind = dtype or Int8
    return Pointer(Builder.current().dyn_shared(kind.ir), kind)
