"""Leaves of int tuples: static ints, dynamic leaves, basis leaves and the wildcard.

A leaf is one of

* a Python ``int`` (static; ``bool`` is refused, ``np.integer`` is turned into ``int``),
* a dynamic leaf: any object that fulfils ``DynLeaf`` (the IR's integer values do, ``dyn.Dyn`` without IR),
* a ``Basis`` (only in strides): a value and the path of the coordinate mode that it steps,
* ``STAR``, the wildcard ``*`` of coordinates and tiles (Python's ``None`` is read as ``STAR``).

Arithmetic on leaves goes through the functions of this module.  They fold whatever is known at compile
time (``x+0``, ``x*1``, ``x*0``, ``x/1``, ``x%1``, ``0/x``) and never compare a dynamic leaf or ask for its truth.
"""

from __future__ import annotations

from _operator import index

from ..errors import LayoutError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol, TypeAlias

    Leaf: TypeAlias = Any
    IntTuple: TypeAlias = Any
    """A leaf, or a (nested) Python tuple of leaves."""

    class DynLeaf(Protocol):
        """What an integer known only at run time must offer to stand in a layout.

        ``//`` and ``%`` are asked of non-negative values only, so rounding down and rounding to zero agree.
        ``>>`` likewise.  Every operator also exists reflected (``int`` on the left).  ``same_as`` says whether two
        leaves are the same run-time value; it must not emit code.  Results of the comparison methods are
        one-bit values of the same world, joined by ``and_``.

        Attributes:
            width: Bits of the integer: 32 or 64 (1 for the result of a comparison).
            divisibility: A positive int that is known to divide the value.
        """

        @property
        def width(self) -> int: ...
        @property
        def divisibility(self) -> int: ...
        def static_value(self) -> int | None: ...
        def same_as(self, other: object) -> bool: ...
        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def ceil_div_(self, other: Any) -> Any: ...  # ceil(self / other)
        def rceil_div_(self, other: Any) -> Any: ...  # ceil(other / self)
        def min_(self, other: Any) -> Any: ...
        def max_(self, other: Any) -> Any: ...
        def less_(self, other: Any) -> Any: ...  # self < other, signed
        def greater_(self, other: Any) -> Any: ...  # self > other, signed
        def equal_(self, other: Any) -> Any: ...
        def and_(self, other: Any) -> Any: ...  # on results of the three above


class Star:
    """The wildcard ``*``; its only instance is ``STAR``.  In arithmetic it counts as 0."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "*"

    def __reduce__(self) -> str:
        return "STAR"


STAR = Star()


#: The last mode that a basis leaf can name: a coordinate holds a zero for every mode before it.
_LAST_MODE = 1023


class Basis:
    """A step of ``value`` along the coordinate mode at ``path``: ``2E0``, ``1E0E1``.

    Args:
        value: An int or a dynamic leaf.
        path: Mode indices from the outside in; a lone int is a path of length one.
    """

    __slots__ = ("path", "value")

    value: Leaf
    path: tuple[int, ...]

    def __init__(self, value: Leaf, path: int | tuple[int, ...]) -> None:
        value = normal_leaf(value)
        steps = (path,) if type(path) is int else tuple(index(p) for p in path)  # type: ignore[union-attr]
        if isinstance(value, (Basis, Star)) or not steps or any(p < 0 for p in steps):
            raise LayoutError(
                f"Basis({value}, {path}): not an integer and a path of mode indices",
                fix="write Basis(2, (0, 1)) for 2E0E1",
            )
        if max(steps) > _LAST_MODE:
            raise LayoutError(
                f"Basis({value}, {path}): mode {max(steps)}", fix=f"a coordinate has modes 0 to {_LAST_MODE}"
            )
        object.__setattr__(self, "value", value)
        object.__setattr__(self, "path", steps)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"Basis is immutable: cannot set {name}")

    def __repr__(self) -> str:
        return f"{self.value}" + "".join(f"E{p}" for p in self.path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Basis) and self.path == other.path and same_leaf(self.value, other.value)

    def __hash__(self) -> int:
        return hash((self.path, leaf_hash(self.value)))

    def __reduce__(self) -> tuple[object, ...]:
        return (Basis, (self.value, self.path))


def leaf_width(leaf: Leaf) -> int:
    """Bits of an integer leaf; a static one needs 32 unless its value does not fit."""
    if type(leaf) is int:
        return 32 if -(1 << 31) <= leaf < 1 << 31 else 64
    width: int = leaf.width
    return width


def leaf_divisibility(leaf: Leaf) -> int:
    """A number known to divide the leaf; 0 for a static 0, which everything divides."""
    if type(leaf) is int:
        return abs(leaf)
    divisibility: int = leaf.divisibility
    return divisibility


def normal_leaf(leaf: object) -> Leaf:
    """One leaf in the form the algebra works on.

    Raises:
        LayoutError: The object is a ``bool`` or no integer at all.
    """
    if type(leaf) is int or leaf is STAR or isinstance(leaf, Basis):
        return leaf
    if leaf is None:
        return STAR
    if isinstance(leaf, bool):
        raise LayoutError(f"{leaf} is a bool, not an integer of a layout", fix=f"write {int(leaf)}")
    static_value = getattr(leaf, "static_value", None)
    if static_value is not None:
        value = static_value()
        return leaf if value is None else int(value)
    if type(leaf).__name__ == "bool_":
        raise LayoutError(f"{leaf!r} is a bool, not an integer of a layout", fix="convert it to int")
    try:
        return index(leaf)  # type: ignore[arg-type]
    except TypeError:
        raise LayoutError(
            f"{leaf!r} ({type(leaf).__name__}) is not an integer of a layout",
            fix="use ints, run-time integers, None for *, or nested tuples of them",
        ) from None


def is_dynamic(leaf: Leaf) -> bool:
    """Whether a normal leaf is known only at run time (a basis leaf: its value)."""
    if isinstance(leaf, Basis):
        return type(leaf.value) is not int
    return not (type(leaf) is int or leaf is STAR)


def same_leaf(a: Leaf, b: Leaf) -> bool:
    """Whether two leaves are certainly equal: same static value, same basis, or same run-time value."""
    if type(a) is int or type(b) is int:
        return type(a) is type(b) and bool(a == b)
    if a is b:
        return True
    if isinstance(a, Basis):
        return bool(a == b)
    if a is STAR or b is STAR or isinstance(b, Basis):
        return False
    return bool(a.same_as(b))


def leaf_hash(leaf: Leaf) -> int:
    """A hash that agrees with ``same_leaf``."""
    if is_dynamic(leaf) and not isinstance(leaf, Basis):
        return hash(("?", leaf.width))
    return hash(leaf)


def _scalar(leaf: Leaf, op: str) -> Leaf:
    if leaf is STAR:
        return 0
    if isinstance(leaf, Basis):
        raise LayoutError(f"{op}: the basis leaf {leaf} is not an integer", fix="use integer strides here")
    return leaf


def add(a: Leaf, b: Leaf) -> Leaf:
    """``a + b``."""
    if type(a) is int and type(b) is int:
        return a + b
    a, b = _scalar(a, "add"), _scalar(b, "add")
    if type(b) is int and b == 0:
        return a
    if type(a) is int and a == 0:
        return b
    return a + b


def sub(a: Leaf, b: Leaf) -> Leaf:
    """``a - b``; ``0 - b`` is the negated value."""
    if type(a) is int and type(b) is int:
        return a - b
    a, b = _scalar(a, "sub"), _scalar(b, "sub")
    if type(b) is int and b == 0:
        return a
    return a - b


def mul(a: Leaf, b: Leaf) -> Leaf:
    """``a * b``; a basis leaf keeps its path."""
    if type(a) is int and type(b) is int:
        return a * b
    if isinstance(a, Basis) or isinstance(b, Basis):
        if isinstance(a, Basis) and isinstance(b, Basis):
            raise LayoutError(f"mul: the product of two basis leaves {a} and {b} has no meaning")
        basis, factor = (a, b) if isinstance(a, Basis) else (b, a)
        return Basis(mul(basis.value, factor), basis.path)
    a, b = _scalar(a, "mul"), _scalar(b, "mul")
    for one, other in ((a, b), (b, a)):
        if type(one) is int:
            if one == 0:
                return 0
            if one == 1:
                return other
    return a * b


def div(a: Leaf, b: Leaf) -> Leaf:
    """``a / b`` rounded to zero, as the signed division of the hardware."""
    a, b = _scalar(a, "div"), _scalar(b, "div")
    if type(b) is int:
        if b == 0:
            raise LayoutError(f"div: {a} / 0", fix="divide by a number that is not zero")
        if b == 1:
            return a
        if type(a) is int:
            return a // b if (a >= 0) == (b > 0) else -(-a // b)
    if type(a) is int and a == 0:
        return 0
    return a // b


def mod(a: Leaf, b: Leaf) -> Leaf:
    """The remainder of ``div``; it has the sign of ``a``."""
    a, b = _scalar(a, "mod"), _scalar(b, "mod")
    if type(b) is int:
        if b == 0:
            raise LayoutError(f"mod: {a} % 0", fix="divide by a number that is not zero")
        if b == 1:
            return 0
        if type(a) is int:
            return a % abs(b) if a >= 0 else -(-a % abs(b))
    if type(a) is int and a == 0:
        return 0
    return a % b


def ceil_div(a: Leaf, b: Leaf) -> Leaf:
    """``a / b`` rounded up, for a positive ``b``."""
    a, b = _scalar(a, "ceil_div"), _scalar(b, "ceil_div")
    if type(b) is int:
        if b == 0:
            raise LayoutError(f"ceil_div: {a} / 0", fix="divide by a positive number")
        if b == 1:
            return a
        return -(-a // b) if type(a) is int else a.ceil_div_(b)
    if type(a) is int:
        return a if a in (0, 1) else b.rceil_div_(a)
    return a.ceil_div_(b)


def min_(a: Leaf, b: Leaf) -> Leaf:
    """The smaller one, signed."""
    if type(a) is int:
        return min(a, b) if type(b) is int else b.min_(a)
    return a.min_(b)


def max_(a: Leaf, b: Leaf) -> Leaf:
    """The larger one, signed."""
    if type(a) is int:
        return max(a, b) if type(b) is int else b.max_(a)
    return a.max_(b)


def less(a: Leaf, b: Leaf) -> Leaf:
    """``a < b``: a Python bool, or a one-bit run-time value."""
    a, b = _scalar(a, "less"), _scalar(b, "less")
    if type(a) is int:
        return a < b if type(b) is int else b.greater_(a)
    return a.less_(b)


def equals(a: Leaf, b: Leaf) -> Leaf:
    """``a == b``: a Python bool, or a one-bit run-time value; basis leaves compare their paths too."""
    if isinstance(a, Basis) or isinstance(b, Basis):
        if not (isinstance(a, Basis) and isinstance(b, Basis) and a.path == b.path):
            return False
        return equals(a.value, b.value)
    if a is STAR or b is STAR or (type(a) is int and type(b) is int):
        return same_leaf(a, b)
    if same_leaf(a, b):
        return True
    return b.equal_(a) if type(a) is int else a.equal_(b)


def both(a: Leaf, b: Leaf) -> Leaf:
    """``a and b`` of two results of ``less`` or ``equals``; static results fold."""
    if isinstance(a, bool):
        return b if a else False
    if isinstance(b, bool):
        return a if b else False
    return a.and_(b)
