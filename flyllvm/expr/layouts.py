"""Layout functions of the authoring language: the layout algebra, with numbers of the language as leaves.

Every function takes tensors too where a layout is asked for, and works on compile-time and run-time leaves alike.
"""

from __future__ import annotations

from .. import layout as L
from ..errors import ParseError, TraceError
from ..ir.builder import Builder
from .leaves import ComposedLayout, FarLayout, IntTuple, Layout, from_leaves, to_leaves
from .numeric import Numeric, as_numeric
from .reach import index_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

Swizzle = L.Swizzle
CoordSwizzle = L.CoordSwizzle
Tile = L.Tile
Dyn = L.Dyn


def Basis(value: Any, modes: Any) -> Any:
    """A stride leaf that steps a coordinate: ``Basis(2, (0, 1))`` is ``2E0E1``."""
    return L.Basis(to_leaves(value), modes)


def E(*modes: int) -> Any:
    """The unit step of a coordinate mode: ``E(0)`` is ``1E0``, ``E(0, 1)`` is ``1E0E1``."""
    return L.Basis(1, modes)


def raw_layout(x: Any) -> Any:
    """The layout of a tensor, a layout itself, or an int tuple, in the algebra's form."""
    inner = getattr(x, "raw_layout", None)
    return to_leaves(x) if inner is None else inner


# --- construction --------------------------------------------------------------------------------


def make_layout(shape: Any, stride: Any) -> Any:
    """A layout of a shape and strides of one profile."""
    return from_leaves(L.make_layout(to_leaves(shape), to_leaves(stride)))


def make_int_tuple(elems: Any) -> Any:
    """An int tuple; a lone number stays a number."""
    return from_leaves(L.make_int_tuple(to_leaves(elems)))


def _modes(modes: tuple[Any, ...]) -> Any:
    return make_int_tuple(modes[0] if len(modes) == 1 else modes)


def make_shape(*modes: Any) -> Any:
    """A shape of the given modes; one argument is the shape itself."""
    return _modes(modes)


def make_stride(*modes: Any) -> Any:
    """Strides of the given modes."""
    return _modes(modes)


def make_coord(*modes: Any) -> Any:
    """A coordinate; ``None`` keeps a mode."""
    return _modes(modes)


def make_tile(*modes: Any) -> Tile:
    """A tile: per mode an int, a layout, a nested tile, or ``None`` to leave the mode alone."""
    given = modes[0] if len(modes) == 1 and isinstance(modes[0], (list, tuple)) else modes
    return L.Tile(*(to_leaves(m) for m in given))


def make_composed_layout(inner: Any, *rest: Any) -> Any:
    """``make_composed_layout(inner, outer)`` or ``(inner, offset, outer)``: inner(offset + outer(c))."""
    if len(rest) not in (1, 2):
        raise TraceError("make_composed_layout takes inner, [offset,] outer", fix="leave the offset out, or give it")
    offset, outer = rest if len(rest) == 2 else (0, rest[0])
    return from_leaves(L.make_composed_layout(to_leaves(inner), to_leaves(offset), to_leaves(outer)))


def static(x: Any) -> Any:
    """A layout, tile or int tuple from its text: ``fx.static("(4,8):(1,4)")``; one that is static stays as it is.

    Raises:
        TraceError: It is known at run time only.
    """
    if isinstance(x, str):
        try:
            made = L.parse(x)
        except ParseError as e:
            raise TraceError(e.what, fix="write a layout, a tile or a tuple: '(4,8):(1,4)', '[4|*]', '(2,3)'") from None
    else:
        made = to_leaves(x)
    if not L.is_static(made):
        raise TraceError(f"static({x}): a leaf is known at run time only", fix="use compile-time numbers")
    return from_leaves(made)


def _wrapped(name: str) -> Any:
    fn = getattr(L, name)

    def run(*args: Any, **kwargs: Any) -> Any:
        return from_leaves(fn(*[raw_layout(a) for a in args], **{k: raw_layout(v) for k, v in kwargs.items()}))

    run.__name__ = run.__qualname__ = name
    run.__doc__ = fn.__doc__
    return run


make_layout_like, make_ordered_layout = _wrapped("make_layout_like"), _wrapped("make_ordered_layout")
make_identity_layout = _wrapped("make_identity_layout")


def make_fragment_layout_like(x: Any) -> Any:
    """The layout of registers for a tensor or layout: first mode innermost, the others in the order of its strides."""
    raw = raw_layout(x)
    return from_leaves(L.make_fragment_layout_like(compact_basis(plain_layout(raw))))


def plain_layout(raw: Any) -> L.Layout:
    """The layout itself, or the outer part of a composed one."""
    while isinstance(raw, L.ComposedLayout):
        raw = raw.outer
    return raw  # type: ignore[no-any-return]


def compact_basis(layout: L.Layout) -> L.Layout:
    """The layout with basis strides replaced by compact ones (a fragment of a coordinate tensor)."""
    if any(isinstance(leaf, L.Basis) for leaf in L.get_leaves(layout)):
        shape = layout.shape
        made: L.Layout = L.make_ordered_layout(shape, tuple(range(len(shape))) if isinstance(shape, tuple) else 0)
        return made
    return layout


# --- queries -------------------------------------------------------------------------------------

size, cosize, coshape, coprofile = (_wrapped(n) for n in ("size", "cosize", "coshape", "coprofile"))
rank, depth = _wrapped("rank"), _wrapped("depth")
get_scalar = _wrapped("get_scalar")
is_profile_congruent = _wrapped("is_profile_congruent")
is_profile_weakly_congruent = _wrapped("is_profile_weakly_congruent")


def get_leaves(x: Any, dynamic_only: bool = False) -> Any:
    """All leaves in order, or only those known at run time."""
    return from_leaves(L.get_leaves(raw_layout(x), dynamic_only))


def get_shape(x: Any) -> Any:
    """The shape of a tensor or layout."""
    return from_leaves(raw_layout(x).shape)


def get_stride(x: Any) -> Any:
    """The strides of a tensor or layout.

    Raises:
        TraceError: The layout is composed.
    """
    raw = raw_layout(x)
    if isinstance(raw, L.ComposedLayout):
        raise TraceError(f"{raw} has no strides", fix="use composed_get_outer first")
    return from_leaves(raw.stride)


def get_layout(x: Any) -> Any:
    """The layout of a tensor."""
    return x.layout if getattr(x, "is_far", False) else from_leaves(raw_layout(x))


def _composed(x: Any, name: str) -> L.ComposedLayout:
    raw = raw_layout(x)
    if not isinstance(raw, L.ComposedLayout):
        raise TraceError(f"{name}({raw}): not composed", fix="pass a composed layout")
    return raw


def composed_get_inner(x: Any) -> Any:
    """The inner part of a composed layout: what is applied last."""
    return from_leaves(_composed(x, "composed_get_inner").inner)


def composed_get_offset(x: Any) -> Any:
    """The offset of a composed layout."""
    return from_leaves(_composed(x, "composed_get_offset").offset)


def composed_get_outer(x: Any) -> Any:
    """The outer part of a composed layout: what is applied first."""
    return from_leaves(_composed(x, "composed_get_outer").outer)


# --- tuples --------------------------------------------------------------------------------------

int_tuple_add, int_tuple_sub, int_tuple_mul = (_wrapped(f"int_tuple_{n}") for n in ("add", "sub", "mul"))
int_tuple_div, int_tuple_mod = _wrapped("int_tuple_div"), _wrapped("int_tuple_mod")
int_tuple_product, int_tuple_product_each = _wrapped("int_tuple_product"), _wrapped("int_tuple_product_each")
int_tuple_product_like = _wrapped("int_tuple_product_like")
shape_div, equal = _wrapped("shape_div"), _wrapped("equal")


def elem_less(a: Any, b: Any) -> Any:
    """Whether every leaf of ``a`` is less than that of ``b``; false where ``a`` has more modes.

    Of a coordinate that stands for all values of an atom call it says nothing of the others: where a call may straddle
    the bound, a warning does.
    """
    first, limits = raw_layout(a), raw_layout(b)
    run = getattr(a, "run", None)
    if run is not None:
        _warn_of_straddling(run, first, limits)
    return from_leaves(L.elem_less(first, limits))


def _warn_of_straddling(run: Any, first: Any, limits: Any) -> None:
    for path, (count, at, limit) in enumerate(zip(*(L.flatten(x) for x in (run, first, limits)))):
        if type(count) is int and count > 1 and not (L.divides(count, limit) and L.divides(count, at)):
            from warnings import warn_explicit

            frame = Builder.current().location().frames[0]
            text = (
                f"a predicate covers {count} values along mode {path} of extent {limit}, which is not known to be a "
                f"multiple of {count}: a call that straddles the edge reads and writes past it. Mark the extent (div=, "
                "fx.assume), use an atom of fewer values, or fx.make_predicate, which refuses it"
            )
            warn_explicit(text, RuntimeWarning, frame.file, frame.line)


_ceil_div = _wrapped("ceil_div")


def ceil_div(a: Any, b: Any) -> Any:
    """The quotient rounded up: of any two integers, or of int tuples leaf by leaf (extents are never negative)."""
    if isinstance(a, (int, Numeric)) and isinstance(b, (int, Numeric)) and not (type(a) is type(b) is int):
        from .operators import ceil_div as of_numbers

        x = a if isinstance(a, Numeric) else as_numeric(a, type(b))  # type: ignore[arg-type]
        made = of_numbers(x, b if isinstance(b, Numeric) else as_numeric(b, type(x)))
        if made is not None:
            return made
    return _ceil_div(a, b)


# --- algebra -------------------------------------------------------------------------------------

idx2crd = _wrapped("idx2crd")


def crd2idx(coord: Any, layout: Any) -> Any:
    """The index of a coordinate, in the width of the coordinate and the strides.

    It is in 64 bits where the static extents and strides of a layout reach 2**31, and for a tensor in global memory (or
    its ``layout``) that is not known to be smaller.
    """
    far = type(layout) is FarLayout or getattr(layout, "is_far", False)
    return from_leaves(index_at(to_leaves(coord), raw_layout(layout), far))


get_flat_coord, get_1d_coord = _wrapped("get_flat_coord"), _wrapped("get_1d_coord")
coalesce, complement = _wrapped("coalesce"), _wrapped("complement")
right_inverse, left_inverse = _wrapped("right_inverse"), _wrapped("left_inverse")
logical_product, zipped_product = _wrapped("logical_product"), _wrapped("zipped_product")
tiled_product, flat_product = _wrapped("tiled_product"), _wrapped("flat_product")
blocked_product, raked_product = _wrapped("blocked_product"), _wrapped("raked_product")
tile_to_shape = _wrapped("tile_to_shape")


def recast_layout(layout: Any, old_type_bits: int, new_type_bits: int) -> Any:
    """The layout seen with elements of another width, in bits."""
    return from_leaves(L.recast_layout(new_type_bits, old_type_bits, raw_layout(layout)))


def make_layout_tv(thr: Any, val: Any) -> tuple[Any, Any]:
    """(tile extents, thread-value layout) of a thread and a value layout; layouts of one mode give a tile of one."""
    first, second = to_leaves(thr), to_leaves(val)
    extents, layout_tv = L.make_layout_tv(first, second)
    if L.rank(first) == L.rank(second) == 1:
        # The raked product nests the two into modes of their own; over one mode the tile is their size.
        extents = (L.size(first) * L.size(second),)
    return from_leaves(extents), from_leaves(layout_tv)


__all__ = [
    "Basis",
    "ComposedLayout",
    "CoordSwizzle",
    "Dyn",
    "E",
    "IntTuple",
    "Layout",
    "Swizzle",
    "Tile",
    "blocked_product",
    "ceil_div",
    "coalesce",
    "complement",
    "composed_get_inner",
    "composed_get_offset",
    "composed_get_outer",
    "coprofile",
    "coshape",
    "cosize",
    "crd2idx",
    "depth",
    "elem_less",
    "equal",
    "flat_product",
    "get_1d_coord",
    "get_flat_coord",
    "get_layout",
    "get_leaves",
    "get_scalar",
    "get_shape",
    "get_stride",
    "idx2crd",
    "int_tuple_add",
    "int_tuple_div",
    "int_tuple_mod",
    "int_tuple_mul",
    "int_tuple_product",
    "int_tuple_product_each",
    "int_tuple_product_like",
    "int_tuple_sub",
    "is_profile_congruent",
    "is_profile_weakly_congruent",
    "left_inverse",
    "logical_product",
    "make_composed_layout",
    "make_coord",
    "make_fragment_layout_like",
    "make_identity_layout",
    "make_int_tuple",
    "make_layout",
    "make_layout_like",
    "make_layout_tv",
    "make_ordered_layout",
    "make_shape",
    "make_stride",
    "make_tile",
    "raked_product",
    "rank",
    "recast_layout",
    "right_inverse",
    "shape_div",
    "size",
    "static",
    "tile_to_shape",
    "tiled_product",
    "zipped_product",
]  # fmt: skip
