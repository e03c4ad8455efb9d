"""The words a kernel author writes: ``import flyllvm.expr as fx``.

What a signature needs is loaded at once, the rest at first use: a kernel out of the disk cache is not traced.
"""

from __future__ import annotations

from . import math, operators, vector_ops
from .composite import Align, Array, struct, union
from .coord_tensor import CoordTensor
from .fastmath import fastmath
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
from .specs import PointerSpec, ScalarSpec, TensorSpec, parse_spec
from .tensor import (
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import (
        arith as arith,
        atomics as atomics,
        gpu as gpu,
        rocdl as rocdl,
    )
    from .atomics import *  # noqa: F403
    from .atoms import (
        CopyAtom as CopyAtom,
        MmaAtom as MmaAtom,
        atom_set_value as atom_set_value,
        make_copy_atom as make_copy_atom,
        make_mma_atom as make_mma_atom,
    )
    from .calls import (
        copy as copy,
        copy_atom_call as copy_atom_call,
        gather as gather,
        gemm as gemm,
        make_predicate as make_predicate,
        mma_atom_call as mma_atom_call,
        scatter as scatter,
    )
    from .control import (
        const_expr as const_expr,
        range_constexpr as range_constexpr,
    )
    from .gpu import (
        ballot as ballot,
        barrier as barrier,
        block_dim as block_dim,
        block_id as block_id,
        block_idx as block_idx,
        grid_dim as grid_dim,
        known_block_size as known_block_size,
        lane_id as lane_id,
        num_warp_threads as num_warp_threads,
        readfirstlane as readfirstlane,
        readlane as readlane,
        shuffle as shuffle,
        shuffle_down as shuffle_down,
        shuffle_idx as shuffle_idx,
        shuffle_up as shuffle_up,
        shuffle_xor as shuffle_xor,
        thread_id as thread_id,
        thread_idx as thread_idx,
        wave_all as wave_all,
        wave_any as wave_any,
        wave_id as wave_id,
        wave_reduce as wave_reduce,
    )
    from .printing import (
        printf as printf,
    )
    from .shared import (
        Arena as Arena,
        SharedAllocator as SharedAllocator,
        Storage as Storage,
    )
    from .tiled import (
        ThrCopy as ThrCopy,
        ThrMma as ThrMma,
        TiledCopy as TiledCopy,
        TiledMma as TiledMma,
        make_tiled_copy as make_tiled_copy,
        make_tiled_copy_A as make_tiled_copy_A,
        make_tiled_copy_B as make_tiled_copy_B,
        make_tiled_copy_C as make_tiled_copy_C,
        make_tiled_copy_tv as make_tiled_copy_tv,
        make_tiled_mma as make_tiled_mma,
        mma_make_fragment as mma_make_fragment,
        tiled_copy_partition_dst as tiled_copy_partition_dst,
        tiled_copy_partition_src as tiled_copy_partition_src,
        tiled_copy_retile as tiled_copy_retile,
        tiled_mma_partition as tiled_mma_partition,
        tiled_mma_partition_shape as tiled_mma_partition_shape,
    )
    from .universal import *  # noqa: F403

# Module -> its names that are loaded at first use.  The imports above say the same to type checkers.
_LATER = {
    "atomics": (
        "atomic_add atomic_and atomic_dec atomic_inc atomic_max atomic_min atomic_or atomic_rmw atomic_sub "
        "atomic_xchg atomic_xor"
    ),
    "atoms": "CopyAtom MmaAtom atom_set_value make_copy_atom make_mma_atom",
    "calls": "copy copy_atom_call gather gemm make_predicate mma_atom_call scatter",
    "control": "const_expr range_constexpr",
    "gpu": (
        "ballot barrier block_dim block_id block_idx grid_dim known_block_size lane_id num_warp_threads "
        "readfirstlane readlane shuffle shuffle_down shuffle_idx shuffle_up shuffle_xor thread_id thread_idx "
        "wave_all wave_any wave_id wave_reduce"
    ),
    "printing": "printf",
    "shared": "Arena SharedAllocator Storage",
    "tiled": (
        "ThrCopy ThrMma TiledCopy TiledMma make_tiled_copy make_tiled_copy_A make_tiled_copy_B "
        "make_tiled_copy_C make_tiled_copy_tv make_tiled_mma mma_make_fragment tiled_copy_partition_dst "
        "tiled_copy_partition_src tiled_copy_retile tiled_mma_partition tiled_mma_partition_shape"
    ),
    "universal": (
        "UniversalAtomic UniversalAtomicAdd UniversalAtomicAnd UniversalAtomicDec UniversalAtomicInc "
        "UniversalAtomicMax UniversalAtomicMin UniversalAtomicOr UniversalCopy UniversalCopy8b "
        "UniversalCopy16b UniversalCopy32b UniversalCopy64b UniversalCopy128b UniversalFMA"
    ),
}
_HOMES = {name: home for home, names in _LATER.items() for name in names.split()}
_MODULES = ("arith", "atomics", "gpu", "rocdl")

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
    home = _HOMES.get(name)
    if home is not None or name in _MODULES:
        # The package `importlib` itself takes a millisecond.
        found: object = __import__(f"flyllvm.expr.{home or name}", fromlist=[name])
        if home is not None:
            found = globals()[name] = getattr(found, name)
        return found
    if name == "__all__":
        return [n for n in __dir__() if n[0] != "_" and n not in ("TYPE_CHECKING", "annotations")]
    why = _ABSENT.get(name)
    raise AttributeError(f"flyllvm.expr has no {name!r}" + (f": {why}" if why else ""))


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES, *_MODULES})
