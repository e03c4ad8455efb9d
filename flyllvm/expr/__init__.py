"""The words a kernel author writes: ``import flyllvm.expr as fx``."""

from __future__ import annotations

from . import arith, atomics, gpu, math, operators, rocdl, vector_ops
from .atomics import *  # noqa: F403
from .atoms import CopyAtom, MmaAtom, atom_set_value, make_copy_atom, make_mma_atom
from .calls import copy, copy_atom_call, gather, gemm, make_predicate, mma_atom_call, scatter
from .composite import Align, Array, struct, union
from .control import const_expr, range_constexpr
from .fastmath import fastmath
from .gpu import (
    ballot,
    barrier,
    block_dim,
    block_id,
    block_idx,
    grid_dim,
    known_block_size,
    lane_id,
    num_warp_threads,
    readfirstlane,
    readlane,
    shuffle,
    shuffle_down,
    shuffle_idx,
    shuffle_up,
    shuffle_xor,
    thread_id,
    thread_idx,
    wave_all,
    wave_any,
    wave_id,
    wave_reduce,
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
)
from .pointer import (
    Pointer,
    PointerType,
    add_offset,
    apply_swizzle,
    assume,
    get_dyn_shared,
    inttoptr,
    make_ptr,
    ptr_load,
    ptr_store,
    ptrtoint,
    recast_iter,
    shared_memory,
    to_llvm_ptr,
)
from .printing import printf
from .shared import Arena, SharedAllocator, Storage
from .specs import PointerSpec, ScalarSpec, TensorSpec, parse_spec
from .tensor import (
    CoordTensor,
    Tensor,
    get_iter,
    make_fragment_like,
    make_identity_tensor,
    make_rmem_tensor,
    make_view,
    memref_alloca,
    memref_load,
    memref_load_vec,
    memref_store,
    memref_store_vec,
)
from .tiled import (
    ThrCopy,
    ThrMma,
    TiledCopy,
    TiledMma,
    make_tiled_copy,
    make_tiled_copy_A,
    make_tiled_copy_B,
    make_tiled_copy_C,
    make_tiled_copy_tv,
    make_tiled_mma,
    mma_make_fragment,
    tiled_copy_partition_dst,
    tiled_copy_partition_src,
    tiled_copy_retile,
    tiled_mma_partition,
    tiled_mma_partition_shape,
)
from .universal import *  # noqa: F403
from .vector import Vector, empty_like, full, full_like, ones_like, where, zeros_like
from .views import (
    append,
    coalesce,
    composition,
    dice,
    flat_divide,
    get,
    get_,
    group,
    logical_divide,
    prepend,
    select,
    slice,
    take,
    tiled_divide,
    zipped_divide,
)

#: Names of FlyDSL that are not here, and what to do.
_ABSENT = {
    "Float8E4M3": "no AMD chip has it; use Float8E4M3FN or Float8E4M3FNUZ",
    "Float8E4M3B11FNUZ": "no AMD chip has it; use Float8E4M3FNUZ",
    # Types of MLIR, which older programs build.
    "AddressSpace": "name the space: 'global', 'shared', 'register'",
    "LayoutType": "pass a layout: fx.make_layout(shape, stride)",
    "MemRefType": "pass the number type: fx.memref_alloca(fx.Float32, layout)",
    "SwizzleType": "use fx.Swizzle(mask, base, shift)",
    "T": "pass number types: fx.Float32, fx.Int32, ...",
}


def __getattr__(name: str) -> object:
    why = _ABSENT.get(name)
    raise AttributeError(f"flyllvm.expr has no {name!r}" + (f": {why}" if why else ""))
