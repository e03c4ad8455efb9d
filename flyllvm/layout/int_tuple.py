"""Int tuples: plain nested Python tuples of leaves, and what can be asked of them.

``flyllvm.layout`` never applies ``==``, ``<`` or truth to leaves; it asks ``is_static``, ``static_eq`` and
``divides``, which answer only what is known at compile time.
"""

from __future__ import annotations

from ..errors import LayoutError
from . import leaf as lf
from .leaf import STAR, Basis, Star, is_dynamic, normal_leaf, same_leaf

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .leaf import DynLeaf as DynLeaf, IntTuple, Leaf


def normal(value: object) -> IntTuple:
    """An int tuple in normal form: ints, dynamic leaves, basis leaves, ``STAR`` and tuples of them.

    Raises:
        LayoutError: A leaf is a ``bool`` or no integer.
    """
    if type(value) is int:
        return value
    if isinstance(value, (tuple, list)):
        return tuple([normal(v) for v in value])
    return normal_leaf(value)


def show(value: object) -> str:
    """The printed form: ``(4,(2,?))``; a rank-1 tuple prints ``(4)``."""
    if isinstance(value, tuple):
        return "(" + ",".join([show(v) for v in value]) + ")"
    return str(value)


def leaves(t: IntTuple) -> Iterator[Leaf]:
    """The leaves from left to right."""
    if isinstance(t, tuple):
        for m in t:
            if isinstance(m, tuple):
                yield from leaves(m)
            else:
                yield m
    else:
        yield t


def flatten(t: IntTuple) -> tuple[Leaf, ...]:
    """The leaves as one flat tuple; a leaf becomes a tuple of one."""
    return tuple(leaves(t))


def unflatten(flat: Iterator[Leaf], profile: IntTuple) -> IntTuple:
    """Puts leaves back into the nesting of ``profile``."""
    if isinstance(profile, tuple):
        return tuple([unflatten(flat, p) for p in profile])
    return next(flat)


def transform(fn: Callable[..., Leaf], *tuples: IntTuple) -> IntTuple:
    """Applies ``fn`` leaf by leaf to tuples of one profile."""
    if isinstance(tuples[0], tuple):
        return tuple([transform(fn, *parts) for parts in zip(*tuples, strict=True)])
    return fn(*tuples)


def modes(t: IntTuple) -> tuple[IntTuple, ...]:
    """The top-level modes; a leaf is its own only mode."""
    return t if isinstance(t, tuple) else (t,)


def tuple_rank(t: IntTuple) -> int:
    """Number of top-level modes; 1 for a leaf."""
    return len(t) if isinstance(t, tuple) else 1


def tuple_depth(t: IntTuple) -> int:
    """Nesting depth; 0 for a leaf."""
    return 1 + max((tuple_depth(m) for m in t), default=0) if isinstance(t, tuple) else 0


def product(t: IntTuple) -> Leaf:
    """Product of all leaves; 1 for an empty tuple."""
    if type(t) is int:
        return t
    result: Leaf = 1
    for x in leaves(t):
        result = lf.mul(result, x)
    return result


def is_static(t: IntTuple) -> bool:
    """Whether no leaf is dynamic; also asked of layouts, tiles and swizzles."""
    if type(t) is int:
        return True
    if isinstance(t, tuple):
        return all([is_static(m) for m in t])
    known = getattr(t, "is_static", None)
    return not is_dynamic(t) if known is None else bool(known)


def same_tree(a: IntTuple, b: IntTuple) -> bool:
    """Whether two int tuples are certainly equal, leaf by leaf, with the same nesting."""
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all([same_tree(x, y) for x, y in zip(a, b, strict=True)])
    return not isinstance(b, tuple) and same_leaf(a, b)


def tree_hash(t: IntTuple) -> int:
    """A hash that agrees with ``same_tree``."""
    if isinstance(t, tuple):
        return hash(tuple([tree_hash(m) for m in t]))
    return lf.leaf_hash(t)


def same_kind(a: IntTuple, b: IntTuple) -> bool:
    """Equality as *types*: static leaves by value, dynamic ones by width and divisibility."""
    if isinstance(a, tuple) or isinstance(b, tuple):
        if not (isinstance(a, tuple) and isinstance(b, tuple) and len(a) == len(b)):
            return False
        return all([same_kind(x, y) for x, y in zip(a, b, strict=True)])
    if isinstance(a, Basis) and isinstance(b, Basis):
        return a.path == b.path and same_kind(a.value, b.value)
    if is_dynamic(a) and is_dynamic(b) and not isinstance(a, Basis) and not isinstance(b, Basis):
        return bool(a.width == b.width and a.divisibility == b.divisibility)
    return same_leaf(a, b)


def static_eq(a: Leaf, b: Leaf) -> bool:
    """Whether two leaves are known at compile time to be equal."""
    return same_leaf(a, b)


def divides(a: Leaf, b: Leaf) -> bool:
    """Whether ``a`` is known to divide ``b``: by value, or by the divisibility of a dynamic ``b``."""
    if type(a) is not int or a == 0 or isinstance(b, (Basis, Star)):
        return False
    return bool(lf.leaf_divisibility(b) % a == 0)


def is_profile_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether two int tuples nest alike."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all([is_profile_congruent(x, y) for x, y in zip(a, b, strict=True)])
    return not isinstance(a, tuple) and not isinstance(b, tuple)


def is_profile_weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Whether ``b`` nests at least as deep as ``a`` at every place."""
    if isinstance(a, tuple):
        if not isinstance(b, tuple) or len(a) != len(b):
            return False
        return all([is_profile_weakly_congruent(x, y) for x, y in zip(a, b, strict=True)])
    return True


def at(t: IntTuple, path: tuple[int, ...]) -> IntTuple:
    """The mode at a path of indices; index 0 of a leaf is the leaf itself.

    Raises:
        LayoutError: The path leaves the tuple.
    """
    here = t
    for depth, i in enumerate(path):
        if isinstance(here, tuple):
            if not 0 <= i < len(here):
                raise LayoutError(
                    f"mode {list(path)} of {show(t)} does not exist: index {i} at depth {depth} "
                    f"is outside 0..{len(here) - 1}",
                    fix=f"it has {len(here)} modes, counted from 0",
                )
            here = here[i]
        elif i != 0 or depth > 0:
            raise LayoutError(
                f"mode {list(path)} of {show(t)} does not exist: {show(here)} has no modes", fix="end the path there"
            )
    return here


def basis_tuple(basis: Basis) -> IntTuple:
    """A basis leaf as a zero-filled coordinate: ``3E1`` is ``(0,3)``."""
    result: IntTuple = basis.value
    for p in reversed(basis.path):
        result = (0,) * p + (result,)
    return result


def add_coords(a: IntTuple, b: IntTuple) -> IntTuple:
    """Sum of two indices or coordinates; the shorter is filled with zeros, a static 0 fits anywhere.

    Raises:
        LayoutError: An integer other than 0 would be added to a coordinate.
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        n = max(len(a), len(b))
        a, b = a + (0,) * (n - len(a)), b + (0,) * (n - len(b))
        return tuple([add_coords(x, y) for x, y in zip(a, b, strict=True)])
    if isinstance(a, tuple) or isinstance(b, tuple):
        scalar, coord = (b, a) if isinstance(a, tuple) else (a, b)
        if scalar is STAR or (type(scalar) is int and scalar == 0):
            return coord
        raise LayoutError(
            f"cannot add the integer {show(scalar)} to the coordinate {show(coord)}",
            fix="use strides that are all integers or all basis leaves of one profile",
        )
    return lf.add(a, b)
