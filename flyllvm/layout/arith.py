"""Int-tuple arithmetic and comparison."""

from __future__ import annotations

from ..errors import LayoutError
from . import leaf as lf
from .int_tuple import normal, product, show
from .leaf import Basis

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .leaf import IntTuple, Leaf


def _zip_arith(name: str, fn: Callable[[Leaf, Leaf], Leaf], a: IntTuple, b: IntTuple, broadcast: bool) -> IntTuple:
    if isinstance(a, tuple) and isinstance(b, tuple):
        n = min(len(a), len(b))
        if len(a) != len(b) and not broadcast:
            raise LayoutError(
                f"{name}: {show(a)} has rank {len(a)}, {show(b)} has rank {len(b)}",
                fix="give both the same rank, or ask for broadcasting",
            )
        done = tuple([_zip_arith(name, fn, x, y, broadcast) for x, y in zip(a, b, strict=False)])
        return done + a[n:] + b[n:]
    if isinstance(a, tuple) or isinstance(b, tuple):
        if not broadcast:
            raise LayoutError(
                f"{name}: {show(a)} and {show(b)} do not nest alike",
                fix="give both the same profile, or ask for broadcasting",
            )
        if isinstance(a, tuple):
            return tuple([_zip_arith(name, fn, x, b, broadcast) for x in a])
        return tuple([_zip_arith(name, fn, a, y, broadcast) for y in b])
    return fn(a, b)


def _basis_add(a: Leaf, b: Leaf) -> Leaf:
    if isinstance(a, Basis) and isinstance(b, Basis) and a.path == b.path:
        return Basis(lf.add(a.value, b.value), a.path)
    return lf.add(a, b)


def int_tuple_add(a: object, b: object, broadcast: bool = False) -> IntTuple:
    """Sum, element by element; with ``broadcast`` a leaf meets every leaf and the longer tail passes through.

    Raises:
        LayoutError: Ranks differ and broadcasting was not asked for.
    """
    return _zip_arith("int_tuple_add", _basis_add, normal(a), normal(b), broadcast)


def int_tuple_sub(a: object, b: object, broadcast: bool = False) -> IntTuple:
    """Difference, element by element; see ``int_tuple_add``."""
    return _zip_arith("int_tuple_sub", lf.sub, normal(a), normal(b), broadcast)


def int_tuple_mul(a: object, b: object, broadcast: bool = False) -> IntTuple:
    """Product, element by element; see ``int_tuple_add``."""
    return _zip_arith("int_tuple_mul", lf.mul, normal(a), normal(b), broadcast)


def int_tuple_div(a: object, b: object, broadcast: bool = False) -> IntTuple:
    """Quotient rounded to zero, element by element; see ``int_tuple_add``."""
    return _zip_arith("int_tuple_div", lf.div, normal(a), normal(b), broadcast)


def int_tuple_mod(a: object, b: object, broadcast: bool = False) -> IntTuple:
    """Remainder, element by element; see ``int_tuple_add``."""
    return _zip_arith("int_tuple_mod", lf.mod, normal(a), normal(b), broadcast)


def int_tuple_product(x: object) -> Leaf:
    """Product of all leaves."""
    return product(normal(x))


def int_tuple_product_each(x: object) -> IntTuple:
    """The product of each top-level mode."""
    t = normal(x)
    return tuple([product(m) for m in t]) if isinstance(t, tuple) else t


def int_tuple_product_like(x: object, guide: object) -> IntTuple:
    """For each leaf of the guide, the product of the sub-tree of x at its place.

    Raises:
        LayoutError: x does not nest at least as deep as the guide.
    """
    t, g = normal(x), normal(guide)
    if not isinstance(g, tuple):
        return product(t)
    if not isinstance(t, tuple) or len(t) != len(g):
        raise LayoutError(f"int_tuple_product_like: {show(t)} does not nest as deep as the guide {show(g)}")
    return tuple([int_tuple_product_like(a, b) for a, b in zip(t, g, strict=True)])


def _fold(name: str, fn: Callable[[Leaf, Leaf], Leaf], a: IntTuple, b: IntTuple) -> IntTuple:
    """``fn`` over profiles: leaf by tuple takes the product, tuple by leaf carries the remainder on from mode 0."""
    if isinstance(a, tuple):
        if isinstance(b, tuple):
            if len(a) != len(b):
                raise LayoutError(
                    f"{name}: {show(a)} has rank {len(a)}, {show(b)} has rank {len(b)}", fix="give both one rank"
                )
            return tuple([_fold(name, fn, x, y) for x, y in zip(a, b, strict=True)])
        out = []
        for m in a:
            out.append(_fold(name, fn, m, b))
            b = fn(b, product(m))
        return tuple(out)
    return fn(a, product(b))


def ceil_div(a: object, b: object) -> IntTuple:
    """Quotient rounded up; a tuple by a leaf divides mode 0 first and carries the remaining divisor on."""
    return _fold("ceil_div", lf.ceil_div, normal(a), normal(b))


def _shape_quotient(a: Leaf, b: Leaf) -> Leaf:
    if type(a) is int and type(b) is int and b != 0:
        if a % b == 0:
            return a // b
        if a != 0 and b % a == 0:
            return 1
        raise LayoutError(f"shape_div: neither of {a} and {b} divides the other", fix="use extents that divide")
    return lf.ceil_div(a, b)


def shape_div(a: object, b: object) -> IntTuple:
    """``a / b`` where b divides a, 1 where a divides b; a tuple by a leaf carries the remaining divisor on.

    Raises:
        LayoutError: Neither divides the other (static leaves).
    """
    return _fold("shape_div", _shape_quotient, normal(a), normal(b))


def elem_less(a: object, b: object) -> Any:
    """Whether every leaf of a is less than its partner in b; false if a has the larger rank.

    Returns:
        A Python bool, or a one-bit run-time value.
    """
    x, y = normal(a), normal(b)
    if isinstance(x, tuple) and isinstance(y, tuple):
        result: Any = len(x) <= len(y)
        for p, q in zip(x, y, strict=False):
            result = lf.both(result, elem_less(p, q))
        return result
    if isinstance(x, tuple) or isinstance(y, tuple):
        raise LayoutError(f"elem_less: {show(x)} and {show(y)} do not nest alike", fix="give both the same profile")
    return lf.less(x, y)


def equal(a: object, b: object) -> Any:
    """Whether two int tuples are equal leaf by leaf; basis leaves compare their paths too.

    Returns:
        A Python bool, or a one-bit run-time value.
    """
    x, y = normal(a), normal(b)
    if isinstance(x, tuple) or isinstance(y, tuple):
        if not (isinstance(x, tuple) and isinstance(y, tuple) and len(x) == len(y)):
            return False
        result: Any = True
        for p, q in zip(x, y, strict=True):
            result = lf.both(result, equal(p, q))
        return result
    return lf.equals(x, y)
