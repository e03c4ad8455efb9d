"""composition.

A composition is checked without walking its domain.  Write A, coalesced, as modes ``S_i:D_i`` whose last one takes
every index (that is how ``crd2idx`` reads an index past the end).  A mode ``s:d`` of B steps A's mixed-radix digits.
It keeps to one layout when, at each digit, the step divides the extent or is a multiple of it, or when
its few steps (or those until the digit returns to 0) never carry.  Several modes of B add up without a carry
exactly when, at each digit but the last, the sum of their largest contributions stays below the extent.  Both together
are the law R(c) == A(B(c)).
"""

from __future__ import annotations

from math import gcd

from ..errors import LayoutError
from . import leaf as lf
from .core import ComposedLayout, Layout, Tile, as_layout, join_modes, layout_modes, raw_layout
from .int_tuple import at, modes
from .leaf import Basis
from .memo import operation
from .merge import coalesced
from .swizzle import CoordSwizzle, Swizzle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .leaf import IntTuple, Leaf


class _Part:
    """A sub-mode of A, coalesced, and how much of each digit the modes of B have used so far."""

    __slots__ = ("ds", "ss", "used")

    def __init__(self, shape: IntTuple, stride: IntTuple) -> None:
        self.ss, self.ds = coalesced(shape, stride, keep_boundary=True)
        self.used = [0] * len(self.ss)

    def use(self, i: int, amount: int, what: str) -> None:
        """Notes that a mode of B moves digit i by up to ``amount``; the sum must not carry out of it."""
        self.used[i] += amount
        if self.used[i] >= self.ss[i]:
            raise LayoutError(
                f"{what}: it and the modes before it carry out of mode {i} ({self.ss[i]}:{self.ds[i]}) of A: "
                f"together they step to {self.used[i]}, the extent is {self.ss[i]}",
                fix="choose modes of B that do not overlap inside a mode of A",
            )

    def compose(self, s: Leaf, d: Leaf, what: str) -> tuple[list[Leaf], list[Leaf]]:
        """The modes of this part composed with ``s:d``; none if s is 1."""
        out_s: list[Leaf] = []
        out_d: list[Leaf] = []
        rest, step = s, d
        for i in range(len(self.ss) - 1):
            extent = self.ss[i]
            if type(rest) is int and rest == 1:
                return out_s, out_d
            if type(extent) is int and type(step) is int:
                if step % extent and extent % step:
                    n = extent // gcd(extent, step)  # after n steps digit i is 0 again
                    whole_turns = type(rest) is int and rest > n and rest % n == 0
                    count = n if whole_turns else rest
                    out_s.append(count)
                    out_d.append(self._few_steps(i, step, count, what))
                    if not whole_turns:
                        return out_s, out_d
                    rest, step = rest // n, n * step // extent
                    continue
                count, step_next = _split(extent, step, rest, f"{what}: mode {i} ({extent}:{self.ds[i]}) of A")
            else:
                # Run-time integers: divisibility is the author's promise, as for every dynamic shape.
                count, step_next = lf.ceil_div(extent, step), lf.ceil_div(step, extent)
                count = count if type(count) is int and count == 1 else lf.min_(count, rest)
            if not (type(count) is int and count == 1):
                out_s.append(count)
                out_d.append(lf.mul(step, self.ds[i]))
                if type(count) is int and type(step) is int and type(extent) is int:
                    self.use(i, (count - 1) * step, what)
                rest = lf.div(rest, count)
            step = step_next
        if not (type(rest) is int and rest == 1):
            out_s.append(rest)
            out_d.append(lf.mul(step, self.ds[-1]))
        return out_s, out_d

    def _few_steps(self, i: int, step: int, rest: Leaf, what: str) -> Leaf:
        """The stride of steps so few that no digit of ``step``, taken from mode i on, ever carries.

        Raises:
            LayoutError: They carry, so no stride says where they go.
        """
        left, strides = step, []
        for k in range(i, len(self.ss)):
            extent, last = self.ss[k], k == len(self.ss) - 1
            if left and not last and type(extent) is not int:
                break
            digit, left = (left, 0) if last else (left % extent, left // extent) if left else (0, 0)
            if digit and not last and (type(rest) is not int or (rest - 1) * digit >= extent):
                break
            if digit:
                strides.append(lf.mul(digit, self.ds[k]))
                if not last:
                    self.use(k, (rest - 1) * digit, what)
        else:
            if len(strides) == 1 or not any(isinstance(d, Basis) for d in strides):
                total: Leaf = 0
                for d in strides:
                    total = d if len(strides) == 1 else lf.add(total, d)
                return total
        raise LayoutError(
            f"{what}: stride {step} neither divides nor is a multiple of the extent {self.ss[i]} "
            f"of mode {i} ({self.ss[i]}:{self.ds[i]}) of A"
            + (f", and {rest} steps carry out of a mode" if type(rest) is int else ""),
            fix=f"use a stride that divides {self.ss[i]} or is a multiple of it",
        )


def _split(extent: int, step: int, rest: Leaf, what: str) -> tuple[Leaf, Leaf]:
    """How many of ``rest`` steps stay in a mode of A, and the step that goes on to the next mode."""
    if step % extent == 0:
        return 1, step // extent
    n = extent // step
    if type(rest) is not int:
        return lf.min_(n, rest), 1
    if rest <= n:
        return rest, 1
    if rest % n == 0:
        return n, 1
    raise LayoutError(
        f"{what} holds {n} of the {rest} steps, and {rest} is not divisible by {n}",
        fix=f"use an extent that is at most {n} or a multiple of {n}",
    )


class _Outer:
    """The left operand of one composition, with its sub-modes by path."""

    __slots__ = ("layout", "parts")

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.parts: dict[tuple[int, ...], _Part] = {}

    def part(self, path: tuple[int, ...]) -> _Part:
        """A's sub-mode at ``path``."""
        found = self.parts.get(path)
        if found is None:
            for other in self.parts:
                if other[: len(path)] == path[: len(other)]:
                    raise LayoutError(
                        f"B steps both mode {list(other)} and mode {list(path)} of A, one inside the other",
                        fix="use basis strides of one depth",
                    )
            try:
                found = _Part(at(self.layout.shape, path), at(self.layout.stride, path))
            except LayoutError as e:
                raise LayoutError(f"B steps mode {list(path)} of A: {e.what}", fix="use a path that A has") from None
            self.parts[path] = found
        return found

    def compose(self, s: Leaf, d: Leaf, mode: str) -> tuple[IntTuple, IntTuple]:
        """A composed with the leaf mode ``s:d`` of B, called ``mode`` in errors."""
        if type(d) is int and d == 0:
            return s, 0
        path: tuple[int, ...] = ()
        what = f"{mode} of B is {s}:{d}"
        if isinstance(d, Basis):
            d, path = d.value, d.path
        if type(d) is int and d < 0 and not (type(s) is int and s == 1):
            raise LayoutError(f"{what}: a negative stride leaves A's domain", fix="use strides of at least 0")
        out_s, out_d = self.part(path).compose(s, d, what)
        if not out_s:
            return 1, 0
        return (out_s[0], out_d[0]) if len(out_s) == 1 else (tuple(out_s), tuple(out_d))


def _compose_tree(outer: _Outer, shape: IntTuple, stride: IntTuple, path: str) -> tuple[IntTuple, IntTuple]:
    if not isinstance(shape, tuple):
        s, d = outer.compose(shape, stride, f"mode {path or '0'}")
        return (s, 0) if type(s) is int and s == 1 else (s, d)
    if len(shape) == 1:
        return _compose_tree(outer, shape[0], stride[0], path)
    parts = [
        _compose_tree(outer, s, d, f"{path}.{i}" if path else str(i))
        for i, (s, d) in enumerate(zip(shape, stride, strict=True))
    ]
    return tuple([p[0] for p in parts]), tuple([p[1] for p in parts])


@operation
def composition(a: Any, b: Any) -> Any:
    """The layout R with ``R(c) == A(B(c))`` for every coordinate c of B.

    Args:
        a: Layout; composed layout (the outer part is composed); or swizzle (the result is a composed layout).
        b: Layout; or Tile, which works mode by mode: n means ``n:1``, ``*`` and missing modes pass A's mode through.

    Where the image of B runs past A, A is read as ``crd2idx`` reads it: the last mode goes on.  Dynamic extents and
    strides are assumed to divide as needed.

    Raises:
        LayoutError: No layout satisfies the law (the message names mode and failed divisibility), or a tile has
            more modes than A.
    """
    if isinstance(a, ComposedLayout):
        return ComposedLayout(a.inner, a.offset, composition(a.outer, b))
    if isinstance(a, (Swizzle, CoordSwizzle)):
        if isinstance(b, (Layout, ComposedLayout)):
            from .coords import coprofile

            return ComposedLayout(a, coprofile(b) if isinstance(b, Layout) else 0, b)
        raise LayoutError(f"cannot compose {a} with {b}", fix="compose a swizzle with a layout")
    a = as_layout(a, "composition")
    if isinstance(b, tuple):
        b = Tile(*b)
    if isinstance(b, Tile):
        return by_mode(a, b, composition)
    if isinstance(b, ComposedLayout):
        return ComposedLayout(a, 0, b)
    b = as_layout(b, "composition")
    s, d = _compose_tree(_Outer(a), b.shape, b.stride, "")
    return raw_layout(s, d, True if a.is_static and b.is_static else None)


def by_mode(a: Layout, tile: Tile, fn: Any) -> Layout:
    """Applies ``fn(mode, tile entry as a layout)`` to the modes of A; ``*`` and missing entries pass the mode.

    Raises:
        LayoutError: The tile has more modes than A.
    """
    parts = layout_modes(a)
    check_tile_rank(a, tile)
    out = []
    for m, t in zip(parts, tile.modes, strict=False):
        if isinstance(t, Tile):
            out.append(by_mode(m, t, fn))
        elif t is lf.STAR:
            out.append(m)
        else:
            out.append(fn(m, t if isinstance(t, Layout) else raw_layout(t, 1)))
    rest = parts[len(tile.modes) :]
    if not isinstance(a.shape, tuple) and fn is composition:
        return out[0]
    return join_modes([*out, *rest])


def check_tile_rank(a: Layout, tile: Tile) -> None:
    """Refuses a tile with more modes than the layout."""
    have = len(modes(a.shape))
    if len(tile.modes) > have:
        raise LayoutError(
            f"tile {tile} has rank {len(tile.modes)}, the layout {a} has rank {have}",
            fix="use at most one tile mode for each mode of the layout",
        )
