"""Layout algebra on nested int tuples: what a layout is, how layouts combine, and their text form.

Every operation either returns a layout that satisfies its law on its whole domain or raises ``LayoutError``.  Static
results are kept in bounded tables, so that tracing a kernel can ask again and again.
"""

from __future__ import annotations

from .arith import (
    ceil_div,
    elem_less,
    equal,
    int_tuple_add,
    int_tuple_div,
    int_tuple_mod,
    int_tuple_mul,
    int_tuple_product,
    int_tuple_product_each,
    int_tuple_product_like,
    int_tuple_sub,
    shape_div,
)
from .compose import composition
from .construct import (
    compact_col_major,
    make_composed_layout,
    make_fragment_layout_like,
    make_identity_layout,
    make_layout,
    make_layout_like,
    make_ordered_layout,
)
from .coords import coprofile, coshape, cosize, crd2idx, depth, get_1d_coord, get_flat_coord, idx2crd, size
from .core import ComposedLayout, Layout, Tile, is_static, rank, type_equal
from .divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from .dyn import Dyn
from .int_tuple import (
    divides,
    flatten,
    is_profile_congruent,
    is_profile_weakly_congruent,
    normal as make_int_tuple,
    same_tree,
    static_eq,
)
from .inverse import complement, left_inverse, right_inverse
from .leaf import STAR, Basis, is_dynamic
from .merge import coalesce
from .parse import parse
from .product import (
    blocked_product,
    flat_product,
    logical_product,
    raked_product,
    tile_to_shape,
    tiled_product,
    zipped_product,
)
from .recast import recast_layout
from .swizzle import CoordSwizzle, Swizzle
from .tiled_copy import tiled_copy_layout, tiled_copy_partition, tiled_copy_retile
from .tiled_mma import (
    fragment_layout,
    mma_thread_coord,
    mma_thread_layout,
    mma_tile,
    tiled_mma_partition,
    tiled_mma_slice,
    tiled_mma_tv,
)
from .tuples import append, dice, get, get_leaves, get_scalar, group, prepend, select, slice_, slice_and_offset, take
from .tv import check_thread_value, covers, make_layout_tv

slice = slice_

__all__ = [
    "STAR",
    "Basis",
    "ComposedLayout",
    "CoordSwizzle",
    "Dyn",
    "Layout",
    "Swizzle",
    "Tile",
    "append",
    "blocked_product",
    "ceil_div",
    "check_thread_value",
    "coalesce",
    "compact_col_major",
    "complement",
    "composition",
    "coprofile",
    "coshape",
    "cosize",
    "covers",
    "crd2idx",
    "depth",
    "dice",
    "divides",
    "elem_less",
    "equal",
    "flat_divide",
    "flat_product",
    "flatten",
    "fragment_layout",
    "get",
    "get_1d_coord",
    "get_flat_coord",
    "get_leaves",
    "get_scalar",
    "group",
    "idx2crd",
    "int_tuple_add",
    "int_tuple_div",
    "int_tuple_mod",
    "int_tuple_mul",
    "int_tuple_product",
    "int_tuple_product_each",
    "int_tuple_product_like",
    "int_tuple_sub",
    "is_dynamic",
    "is_profile_congruent",
    "is_profile_weakly_congruent",
    "is_static",
    "left_inverse",
    "logical_divide",
    "logical_product",
    "make_composed_layout",
    "make_fragment_layout_like",
    "make_identity_layout",
    "make_int_tuple",
    "make_layout",
    "make_layout_like",
    "make_layout_tv",
    "make_ordered_layout",
    "mma_thread_coord",
    "mma_thread_layout",
    "mma_tile",
    "parse",
    "prepend",
    "raked_product",
    "rank",
    "recast_layout",
    "right_inverse",
    "same_tree",
    "select",
    "shape_div",
    "size",
    "slice",
    "slice_",
    "slice_and_offset",
    "static_eq",
    "take",
    "tile_to_shape",
    "tiled_copy_layout",
    "tiled_copy_partition",
    "tiled_copy_retile",
    "tiled_divide",
    "tiled_mma_partition",
    "tiled_mma_slice",
    "tiled_mma_tv",
    "tiled_product",
    "type_equal",
    "zipped_divide",
    "zipped_product",
]
