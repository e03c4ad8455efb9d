"""The words a kernel author writes: ``import flyllvm.expr as fx``."""

from __future__ import annotations

from . import math, operators, rocdl
from .atoms import (
    CopyAtom,
    MmaAtom,
    TiledCopy,
    TiledMma,
    atom_set_value,
    copy,
    copy_atom_call,
    gemm,
    make_copy_atom,
    make_mma_atom,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_tv,
    make_tiled_mma,
    mma_atom_call,
)
from .control import const_expr, range_constexpr
from .fastmath import fastmath
from .gpu import (
    barrier,
    block_dim,
    block_id,
    block_idx,
    get_dyn_shared,
    grid_dim,
    known_block_size,
    lane_id,
    num_warp_threads,
    readfirstlane,
    shared_memory,
    thread_id,
    thread_idx,
)
from .host import Constexpr, Stream
from .layouts import *  # noqa: F403
from .math import max, min
from .numeric import (
    BFloat16,
    Boolean,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float8E4M3FN,
    Float8E4M3FNUZ,
    Float8E5M2,
    Float8E5M2FNUZ,
    Float8E8M0FNU,
    Float16,
    Float32,
    Float64,
    Index,
    Int4,
    Int8,
    Int16,
    Int32,
    Int64,
    Int128,
    Numeric,
    Uint8,
    Uint16,
    Uint32,
    Uint64,
    Uint128,
    select,
)
from .specs import PointerSpec, ScalarSpec, TensorSpec, parse_spec
from .tensor import (
    CoordTensor,
    Pointer,
    Tensor,
    add_offset,
    append,
    apply_swizzle,
    flat_divide,
    get_iter,
    get_layout,
    get_shape,
    get_stride,
    group,
    logical_divide,
    make_fragment_like,
    make_identity_tensor,
    make_rmem_tensor,
    make_view,
    prepend,
    recast_iter,
    select_modes,
    slice,
    take,
    tiled_divide,
    zipped_divide,
)
from .vector import Vector


def UniversalCopy(bits: int) -> object:
    """A load or store of ``bits`` bits in any address space."""
    from ..atoms.universal import UniversalCopy as Atom

    return Atom(bits)


def UniversalFMA(dtype: type[Numeric]) -> object:
    """``d = a * b + c`` on one element."""
    from ..atoms.universal import UniversalFma

    return UniversalFma(dtype.ir)
