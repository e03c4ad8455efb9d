"""Layout algebra on nested int tuples: what a layout is, how layouts combine, and their text form.

Every operation either returns a layout that satisfies its law on its whole domain or raises ``LayoutError``.  Static
results are kept in bounded tables, so that tracing a kernel can ask again and again.
"""

from __future__ import annotations

from .compose import coalesce, composition
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
from .core import ComposedLayout, CoordSwizzle, Layout, Swizzle, Tile, rank, type_equal
from .divide import flat_divide, logical_divide, tiled_divide, zipped_divide
from .int_tuple import (
    divides,
    flatten,
    is_profile_congruent,
    is_profile_weakly_congruent,
    is_static,
    same_tree,
    static_eq,
)
from .int_tuple import normal as make_int_tuple
from .inverse import complement, left_inverse, right_inverse
from .leaf import STAR, Basis, Dyn, is_dynamic
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
from .tuples import (
    append,
    ceil_div,
    dice,
    elem_less,
    equal,
    get,
    get_leaves,
    get_scalar,
    group,
    int_tuple_add,
    int_tuple_div,
    int_tuple_mod,
    int_tuple_mul,
    int_tuple_product,
    int_tuple_product_each,
    int_tuple_product_like,
    int_tuple_sub,
    prepend,
    select,
    shape_div,
    slice_,
    slice_and_offset,
    take,
)

slice = slice_
