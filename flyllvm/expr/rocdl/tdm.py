"""Tensor copies of gfx1250: whole tiles between global memory and LDS, one instruction for a wave."""

from __future__ import annotations

from ...errors import TraceError
from ...ir.builder import Builder
from ..atoms import located, make_copy_atom
from ..numeric import Int32, Int64, Numeric
from ..tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def TDM(
    tile: tuple[int, ...],
    dtype: type[Numeric],
    num_warps: int = 1,
    pad_interval: int = 0,
    pad_amount: int = 0,
    cache_modifier: int | str = 0,
    atomic_barrier: bool = False,
    early_timeout: bool = False,
) -> Any:
    """The tensor copy of a tile; ``make_tdm_atom`` sets its state from a tensor.

    Args:
        tile: Extents in elements, outermost first.
        dtype: Element type of 8, 16, 32 or 64 bits.
        num_warps: Waves that share the tile by its outermost dimension.
        pad_interval, pad_amount: Elements after which LDS is padded, and by how many.
        cache_modifier: Cache policy: names or raw bits.
        atomic_barrier, early_timeout: Flags of the descriptor.

    Raises:
        AtomError: The descriptor cannot hold it.
        TargetError: Not on this target.
    """
    from ...atoms.rocdl.gfx1250_tdm import Tdm

    args = (num_warps, pad_interval, pad_amount, cache_modifier, atomic_barrier, early_timeout)
    made = located(lambda: Tdm(tuple(tile), dtype.ir, *args))
    located(lambda: made.check_target(Builder.current().target))
    return made


def make_tdm_atom(tensor: Tensor, tile: tuple[int, ...], coord: tuple[Any, ...] | None = None, **options: Any) -> Any:
    """The copy atom of a tile of a tensor, with its strides and what is left of the tensor from the tile on.

    Call it once for the tile, by ``fx.copy_atom_call`` on views of the tile's first element in memory and in LDS.

    Args:
        tensor: Global tensor of the tile's rank; its last dimension is contiguous.
        tile: Extents in elements, outermost first.
        coord: Element where the tile starts, by default the tensor's first.
        options: As of ``TDM``.

    Raises:
        TraceError: Another rank, or the last dimension is not contiguous.
    """
    b = Builder.current()
    shape, stride = tuple(tensor.shape), tuple(tensor.stride)
    start = (0,) * len(tile) if coord is None else tuple(coord)
    if not len(shape) == len(tile) == len(start):
        raise TraceError(
            f"a tile of {len(tile)} dimensions at {len(start)} coordinates of a tensor of {len(shape)}",
            b.location(),
            "give tile, coordinate and tensor one rank",
        )
    if not isinstance(stride[-1], int) or stride[-1] != 1:
        raise TraceError(
            f"the last dimension of the tensor has stride {stride[-1]}", b.location(), "reorder the modes: 1 is last"
        )
    state: dict[str, Any] = {f"extent_{i}": Int32(n - at) for i, (n, at) in enumerate(zip(shape, start, strict=True))}
    state |= {f"stride_{i}": Int64(step) for i, step in enumerate(stride[:-1])}
    return make_copy_atom(TDM(tile, tensor.dtype, **options), tensor.dtype).set_value(state)


__all__ = ["TDM", "make_tdm_atom"]
