"""Layout functions of the authoring language: the layout algebra, with numbers of the language as leaves."""

from __future__ import annotations

from typing import Any

from .. import layout as L
from .leaves import from_leaves, to_leaves

Layout = L.Layout
ComposedLayout = L.ComposedLayout
Swizzle = L.Swizzle
CoordSwizzle = L.CoordSwizzle
Tile = L.Tile
Basis = L.Basis
Dyn = L.Dyn


def _layout(x: Any) -> Any:
    """The layout of a tensor, a layout itself, or an int tuple."""
    inner = getattr(x, "layout", None)
    if isinstance(inner, (L.Layout, L.ComposedLayout)) and not isinstance(x, (L.Layout, L.ComposedLayout)):
        return inner
    return x if isinstance(x, (L.Layout, L.ComposedLayout, L.Tile, L.Swizzle, L.CoordSwizzle)) else to_leaves(x)


def make_layout(shape: Any, stride: Any) -> Layout:
    """A layout of equal profiles."""
    return L.make_layout(to_leaves(shape), to_leaves(stride))


def make_int_tuple(elems: Any) -> Any:
    """An int tuple."""
    return to_leaves(elems)


def make_shape(*modes: Any) -> Any:
    """A shape of the given modes."""
    return to_leaves(modes)


make_stride = make_shape
make_coord = make_shape


def make_tile(*modes: Any) -> Tile:
    """A tile: per mode an int, a layout, a nested tile, or ``None`` to leave the mode alone."""
    given = modes[0] if len(modes) == 1 and isinstance(modes[0], (list, tuple)) else modes
    return L.Tile(*(m if isinstance(m, (L.Layout, L.Tile)) else to_leaves(m) for m in given))


def E(*path: int) -> Basis:
    """The unit basis leaf of a mode path."""
    return L.Basis(1, path)


def _wrap1(name: str) -> Any:
    fn = getattr(L, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        return from_leaves(fn(*[_layout(a) for a in args], **kwargs))

    run.__name__ = name
    run.__doc__ = fn.__doc__
    return run


size, cosize, coshape, coprofile = (_wrap1(n) for n in ("size", "cosize", "coshape", "coprofile"))
rank, depth = _wrap1("rank"), _wrap1("depth")
crd2idx, idx2crd = _wrap1("crd2idx"), _wrap1("idx2crd")
get_flat_coord, get_1d_coord = _wrap1("get_flat_coord"), _wrap1("get_1d_coord")
make_ordered_layout, make_layout_like = _wrap1("make_ordered_layout"), _wrap1("make_layout_like")
make_fragment_layout_like = _wrap1("make_fragment_layout_like")
make_identity_layout, make_composed_layout = _wrap1("make_identity_layout"), _wrap1("make_composed_layout")
coalesce, composition, complement = _wrap1("coalesce"), _wrap1("composition"), _wrap1("complement")
right_inverse, left_inverse = _wrap1("right_inverse"), _wrap1("left_inverse")
logical_product, zipped_product, tiled_product = (
    _wrap1(n) for n in ("logical_product", "zipped_product", "tiled_product")
)
flat_product, blocked_product, raked_product = (_wrap1(n) for n in ("flat_product", "blocked_product", "raked_product"))
tile_to_shape = _wrap1("tile_to_shape")
int_tuple_add, int_tuple_sub, int_tuple_mul = (_wrap1(f"int_tuple_{n}") for n in ("add", "sub", "mul"))
int_tuple_div, int_tuple_mod = _wrap1("int_tuple_div"), _wrap1("int_tuple_mod")
int_tuple_product, int_tuple_product_each = _wrap1("int_tuple_product"), _wrap1("int_tuple_product_each")
int_tuple_product_like = _wrap1("int_tuple_product_like")
shape_div, ceil_div, elem_less, equal = (_wrap1(n) for n in ("shape_div", "ceil_div", "elem_less", "equal"))
get_scalar, get_leaves = _wrap1("get_scalar"), _wrap1("get_leaves")


def recast_layout(layout: Any, old_type_bits: int, new_type_bits: int) -> Any:
    """The layout seen with elements of another width, in bits."""
    return L.recast_layout(new_type_bits, old_type_bits, _layout(layout))


def make_layout_tv(thr: Layout, val: Layout) -> tuple[Any, Layout]:
    """(tile extents, thread-value layout) of a thread and a value layout."""
    from ..layout.tv import make_layout_tv as build

    return build(thr, val)
