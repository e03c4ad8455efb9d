"""Python values as trees whose leaves can differ at run time: what a branch or a loop hands on.

A leaf is a number, an IR value, or any other object, which then must be the same on every way.  An object of another
class takes part by two methods: ``__fly_flatten__()`` returns the list of its parts, and ``__fly_unflatten__(parts)``
makes an equal object of other parts.
"""

from __future__ import annotations

from types import SimpleNamespace

from .. import layout as L
from ..ir.core import Value
from .atoms import CopyAtom, MmaAtom
from .composite import Struct
from .coord_tensor import CoordTensor
from .leaves import ComposedLayout, IntTuple, Layout
from .numeric import Numeric
from .pointer import Pointer
from .tensor import Tensor
from .tiled import ThrCopy, ThrMma, TiledCopy, TiledMma
from .vector import Vector

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any


class Tree:
    """A value taken apart.

    Attributes:
        key: Everything about it but its leaves; equal for values that can replace each other.
        leaves: Its leaves in order.
        build: Makes a value of other leaves.
        whole: The value.
    """

    __slots__ = ("build", "key", "leaves", "whole")

    whole: Any

    def __init__(self, key: Any, leaves: list[Any], build: Callable[[Iterator[Any]], Any]) -> None:
        self.key = key
        self.leaves = leaves
        self.build = build

    def rebuild(self, leaves: list[Any]) -> Any:
        """The value with these leaves."""
        return self.build(iter(leaves))


def _leaf(x: Any) -> Tree:
    return Tree("leaf", [x], next)


def _node(key: Any, parts: list[Tree], make: Callable[[list[Any]], Any]) -> Tree:
    def build(leaves: Iterator[Any]) -> Any:
        return make([p.build(leaves) for p in parts])

    return Tree((key, *(p.key for p in parts)), [x for p in parts for x in p.leaves], build)


def flatten(x: Any) -> Tree:
    """Takes a value apart."""
    form = _FORMS.get(type(x))
    made = form(x) if form is not None else _other(x)
    made.whole = x
    return made


def _other(x: Any) -> Tree:
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return _node(type(x), [flatten(v) for v in x], lambda parts: type(x)(*parts))
    if isinstance(x, Struct):
        names = list(x.fields)
        parts = [flatten(getattr(x, n)) for n in names]
        return _node(type(x), parts, lambda values: type(x)(**dict(zip(names, values))))
    if hasattr(x, "__fly_flatten__") and not isinstance(x, type):
        return _node(type(x), [flatten(v) for v in x.__fly_flatten__()], x.__fly_unflatten__)
    return _leaf(x)


def _sequence(make: type) -> Callable[[Any], Tree]:
    return lambda x: _node(make, [flatten(v) for v in x], make)


def _dict(x: dict[Any, Any]) -> Tree:
    # Two ways may insert in different order; each keeps its own.
    keys, order = list(x), sorted(x, key=repr)

    def make(parts: list[Any]) -> dict[Any, Any]:
        new = dict(zip(order, parts))
        return {k: new[k] for k in keys}

    return _node((dict, tuple(order)), [flatten(x[k]) for k in order], make)


def _namespace(x: SimpleNamespace) -> Tree:
    inner = _dict(vars(x))
    return _node(SimpleNamespace, [inner], lambda parts: SimpleNamespace(**parts[0]))


def _layout_part(x: Any) -> Tree:
    """Run-time leaves of an int tuple or layout; all else is part of the key."""
    if isinstance(x, Value):
        return _leaf(x)
    if isinstance(x, tuple):
        return _node(tuple, [_layout_part(v) for v in x], tuple)
    if isinstance(x, L.Basis) and isinstance(x.value, Value):
        return _node(("basis", x.path), [_leaf(x.value)], lambda parts: L.Basis(parts[0], x.path))
    if isinstance(x, L.Layout) and not x.is_static:
        return _node("layout", [_layout_part(x.shape), _layout_part(x.stride)], lambda parts: L.Layout(*parts))
    if isinstance(x, L.ComposedLayout) and not x.is_static:
        parts = [_layout_part(p) for p in (x.inner, x.offset, x.outer)]
        return _node("composed", parts, lambda parts: L.ComposedLayout(*parts))
    return Tree(("static", x), [], lambda leaves: x)


def _vector(x: Vector) -> Tree:
    return _node((Vector, x.dtype, x.shape), [_leaf(x._v)], lambda parts: x.like(parts[0]))


def _pointer(x: Pointer) -> Tree:
    return _node((Pointer, x.dtype), [_leaf(x._v)], lambda parts: Pointer(parts[0], x.dtype))


def _tensor(x: Tensor) -> Tree:
    return _node(
        (Tensor, x.dtype), [_leaf(x.ptr), _layout_part(x.raw_layout)], lambda parts: Tensor(parts[0], parts[1], x.dtype)
    )


def _coord_tensor(x: CoordTensor) -> Tree:
    return _node(CoordTensor, [_layout_part(x.base), _layout_part(x.raw_layout)], lambda parts: CoordTensor(*parts))


def _layout(x: Any) -> Tree:
    return _node(type(x), [_layout_part(x.raw)], lambda parts: type(x).of(parts[0]))


def _atom(x: Any) -> Tree:
    return _node(type(x), [_leaf(x._v)], lambda parts: type(x)(parts[0]))


def _tiled_copy(x: TiledCopy) -> Tree:
    return _node(TiledCopy, [_leaf(x._v), flatten(x.atom)], lambda parts: TiledCopy(*parts))


def _tiled_mma(x: TiledMma) -> Tree:
    return _node(TiledMma, [_leaf(x._v), flatten(x.mma_atom)], lambda parts: TiledMma(*parts))


def _thr_copy(x: ThrCopy) -> Tree:
    return _node(ThrCopy, [flatten(x.copy), flatten(x.tid)], lambda parts: ThrCopy(*parts))


def _thr_mma(x: ThrMma) -> Tree:
    return _node(ThrMma, [flatten(x.mma), flatten(x.tid)], lambda parts: ThrMma(*parts))


_FORMS: dict[type, Callable[[Any], Tree]] = {
    list: _sequence(list), tuple: _sequence(tuple), dict: _dict, SimpleNamespace: _namespace, Vector: _vector,
    Pointer: _pointer, Tensor: _tensor, CoordTensor: _coord_tensor, CopyAtom: _atom, MmaAtom: _atom,
    TiledCopy: _tiled_copy, TiledMma: _tiled_mma, ThrCopy: _thr_copy, ThrMma: _thr_mma, L.Layout: _layout_part,
    L.ComposedLayout: _layout_part, Layout: _layout, ComposedLayout: _layout, IntTuple: _sequence(IntTuple),
}  # fmt: skip


def same(a: Any, b: Any) -> bool:
    """Whether two leaves are the same value for certain."""
    if a is b:
        return True
    if type(a) is not type(b) or isinstance(a, Value):
        return False
    if isinstance(a, Numeric):
        return a._v is b._v or (a.is_static and b.is_static and repr(a._v) == repr(b._v))
    if isinstance(a, (bool, int, float, complex)):
        return repr(a) == repr(b)
    try:
        return bool(a == b)
    except Exception:  # an author's class may compare as it likes; then the two are not the same for certain
        return False


def describe(x: Any) -> str:
    """A value in an error message."""
    if isinstance(x, Numeric):
        return f"{type(x)}({x._v})" if x.is_static else f"a run-time {type(x)}"
    if isinstance(x, Value):
        return f"a value of type {x.type}"
    if isinstance(x, Vector):
        return f"a vector of {x.count} {x.dtype}"
    if isinstance(x, (list, tuple)):
        return f"a {type(x).__name__} of {len(x)}"
    if isinstance(x, dict):
        return f"a dict with keys {sorted(map(str, x))}"
    if x is None or isinstance(x, (bool, int, float, str)):
        return repr(x)
    if isinstance(x, Tensor):
        return f"a tensor of {x.dtype} in {x.address_space} memory with layout {x.layout}"
    return f"a {type(x).__name__}"
