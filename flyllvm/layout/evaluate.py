"""Evaluates expressions such as ``composition((4,8):(1,4), (2,4):(1,2))``; calls nest.

Operations have the fly dialect's names and argument order.
"""

from __future__ import annotations

from .. import layout as api
from ..errors import LayoutError, ParseError
from .core import ComposedLayout, Layout, Tile
from .int_tuple import show
from .parse import Parser

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def _mode_path(path: Any) -> tuple[int, ...]:
    return path if isinstance(path, tuple) else (path,)


def _get_shape(x: Any) -> Any:
    return _layout_like(x, "get_shape").shape


def _get_stride(x: Any) -> Any:
    if isinstance(x, ComposedLayout):
        raise LayoutError(f"get_stride({x}): a composed layout has no stride", fix="ask for composed_get_outer first")
    return _layout_like(x, "get_stride").stride


def _layout_like(x: Any, op: str) -> Any:
    if not isinstance(x, (Layout, ComposedLayout)):
        raise LayoutError(f"{op}({show(x)}): not a layout", fix="pass shape:stride")
    return x


def _composed(x: Any, op: str) -> ComposedLayout:
    if not isinstance(x, ComposedLayout):
        raise LayoutError(f"{op}({show(x)}): not a composed layout", fix="pass A o offset o B")
    return x


# Name -> (function, least and most number of arguments).
_OPS: dict[str, tuple[Callable[..., Any], int, int]] = {
    "append": (lambda x, e=None, n=None: api.append(x, e, n), 1, 3),
    "blocked_product": (api.blocked_product, 2, 2),
    "ceil_div": (api.ceil_div, 2, 2),
    "coalesce": (api.coalesce, 1, 2),
    "complement": (api.complement, 1, 2),
    "composed_get_inner": (lambda x: _composed(x, "composed_get_inner").inner, 1, 1),
    "composed_get_offset": (lambda x: _composed(x, "composed_get_offset").offset, 1, 1),
    "composed_get_outer": (lambda x: _composed(x, "composed_get_outer").outer, 1, 1),
    "composition": (api.composition, 2, 2),
    "coprofile": (api.coprofile, 1, 1),
    "coshape": (api.coshape, 1, 1),
    "cosize": (api.cosize, 1, 1),
    "crd2idx": (api.crd2idx, 2, 2),
    "depth": (api.depth, 1, 1),
    "dice": (api.dice, 2, 2),
    "elem_less": (api.elem_less, 2, 2),
    "equal": (api.equal, 2, 2),
    "flat_divide": (api.flat_divide, 2, 2),
    "flat_product": (api.flat_product, 2, 2),
    "get": (lambda x, *path: api.get(x, *(p for step in path for p in _mode_path(step))), 1, 9),
    "get_1d_coord": (api.get_1d_coord, 2, 2),
    "get_flat_coord": (api.get_flat_coord, 2, 2),
    "get_leaves": (api.get_leaves, 1, 1),
    "get_scalar": (api.get_scalar, 1, 1),
    "get_shape": (_get_shape, 1, 1),
    "get_stride": (_get_stride, 1, 1),
    "group": (api.group, 2, 3),
    "idx2crd": (api.idx2crd, 2, 2),
    "int_tuple_add": (api.int_tuple_add, 2, 2),
    "int_tuple_div": (api.int_tuple_div, 2, 2),
    "int_tuple_mod": (api.int_tuple_mod, 2, 2),
    "int_tuple_mul": (api.int_tuple_mul, 2, 2),
    "int_tuple_product": (api.int_tuple_product, 1, 1),
    "int_tuple_product_each": (api.int_tuple_product_each, 1, 1),
    "int_tuple_product_like": (api.int_tuple_product_like, 2, 2),
    "int_tuple_sub": (api.int_tuple_sub, 2, 2),
    "left_inverse": (api.left_inverse, 1, 1),
    "logical_divide": (api.logical_divide, 2, 2),
    "logical_product": (api.logical_product, 2, 2),
    "make_composed_layout": (api.make_composed_layout, 3, 3),
    "make_coord": (api.make_int_tuple, 1, 1),
    "make_fragment_layout_like": (api.make_fragment_layout_like, 1, 1),
    "make_identity_layout": (api.make_identity_layout, 1, 1),
    "make_int_tuple": (api.make_int_tuple, 1, 1),
    "make_layout": (api.make_layout, 2, 2),
    "make_layout_like": (api.make_layout_like, 1, 1),
    "make_layout_tv": (api.make_layout_tv, 2, 2),
    "make_ordered_layout": (api.make_ordered_layout, 2, 2),
    "make_shape": (api.make_int_tuple, 1, 1),
    "make_stride": (api.make_int_tuple, 1, 1),
    "make_tile": (Tile, 1, 9),
    "prepend": (lambda x, e=None, n=None: api.prepend(x, e, n), 1, 3),
    "raked_product": (api.raked_product, 2, 2),
    "rank": (api.rank, 1, 1),
    "recast_layout": (api.recast_layout, 3, 3),
    "right_inverse": (api.right_inverse, 1, 1),
    "select": (lambda x, i: api.select(x, _mode_path(i)), 2, 2),
    "shape_div": (api.shape_div, 2, 2),
    "size": (api.size, 1, 1),
    "slice": (api.slice_, 2, 2),
    "take": (api.take, 2, 3),
    "tile_to_shape": (api.tile_to_shape, 3, 3),
    "tiled_divide": (api.tiled_divide, 2, 2),
    "tiled_product": (api.tiled_product, 2, 2),
    "zipped_divide": (api.zipped_divide, 2, 2),
    "zipped_product": (api.zipped_product, 2, 2),
}


def operations() -> tuple[str, ...]:
    """The names that expressions may call."""
    return tuple(_OPS)


def _call(name: str, args: list[Any]) -> Any:
    entry = _OPS.get(name)
    if entry is None:
        close = [op for op in _OPS if name in op or op in name]
        raise ParseError(f"unknown operation {name!r}", fix=f"operations: {', '.join(close or _OPS)}")
    fn, least, most = entry
    if not least <= len(args) <= most:
        count = str(least) if least == most else f"{least} to {most}"
        raise ParseError(f"{name} takes {count} arguments, got {len(args)}", fix="separate arguments with ','")
    try:
        return fn(*args)
    except (TypeError, AttributeError) as e:
        # A wrong kind of argument, such as a swizzle where a layout must stand.
        shown = ", ".join(show(a) for a in args)
        raise LayoutError(
            f"{name}({shown}): an argument has the wrong kind ({e})", fix="check the order of the arguments"
        ) from e


def compute(text: str) -> Any:
    """The value of an expression.

    Raises:
        ParseError: Malformed text, unknown operation, wrong number of arguments.
        LayoutError: The operation has no answer.
    """
    try:
        return Parser(text, _call).whole()
    except RecursionError:
        raise ParseError("cannot read the expression: it nests too deep") from None


def render_value(value: Any) -> str:
    """A result as text; truth values print ``true`` and ``false``."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple) and any(isinstance(v, (Layout, Tile)) for v in value):
        return ", ".join(show(v) for v in value)
    return show(value)


def evaluate(text: str) -> str:
    """The printed value of an expression; raises as ``compute``."""
    return render_value(compute(text))
