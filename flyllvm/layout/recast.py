"""recast_layout: the same memory seen through elements of another width."""

from __future__ import annotations

from math import gcd

from ..errors import LayoutError
from . import leaf as lf
from .core import ComposedLayout, Layout, raw_layout
from .int_tuple import leaves, normal, show, unflatten
from .leaf import Basis
from .memo import operation
from .swizzle import CoordSwizzle, Swizzle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .leaf import Leaf


@operation
def recast_layout(new_bits: int, old_bits: int, layout: Any) -> Any:
    """The layout of the same memory in elements of ``new_bits`` instead of ``old_bits``.

    Units:
        new_bits, old_bits: bits of an element.

    Raises:
        LayoutError: The wider elements do not fall on whole, contiguous runs of the narrow ones.
    """
    for bits in (new_bits, old_bits):
        if type(normal(bits)) is not int or bits < 1:
            raise LayoutError(
                f"an element of {bits} bits is not possible", fix="give both widths as positive ints, in bits"
            )
    common = gcd(new_bits, old_bits)
    up, down = new_bits // common, old_bits // common
    if up > 1:
        layout = _recast(layout, up, _upcast)
    if down > 1:
        layout = _recast(layout, down, _downcast)
    return layout


def _recast(x: Any, factor: int, fn: Callable[[Layout, int], Layout]) -> Any:
    if isinstance(x, Layout):
        return fn(x, factor)
    if isinstance(x, Swizzle):
        return _recast_swizzle(x, factor, fn is _upcast)
    if isinstance(x, ComposedLayout) and not isinstance(x.inner, (CoordSwizzle, Layout, ComposedLayout)):
        inner, outer = _recast(x.inner, factor, fn), _recast(x.outer, factor, fn)
        return ComposedLayout(inner, _scale(x.offset, factor, fn is _upcast), outer)
    raise LayoutError(f"{x} is not a map to addresses that can be scaled", fix="recast a layout or a swizzled layout")


def _scale(offset: Leaf, factor: int, up: bool) -> Leaf:
    if isinstance(offset, (tuple, Basis)):
        raise LayoutError(f"the offset {show(offset)} is a coordinate", fix="use an integer offset")
    if not up:
        return lf.mul(offset, factor)
    if type(offset) is int and offset % factor:
        raise LayoutError(
            f"the offset {offset} is not divisible by {factor}", fix="move the offset to a whole wide element"
        )
    if type(offset) is not int and lf.leaf_divisibility(offset) % factor:
        raise LayoutError(
            f"the run-time offset {offset} is not known to be a multiple of {factor}",
            fix=f"promise it: {{div={factor}}}, or fx.assume",
        )
    return lf.div(offset, factor)


def _recast_swizzle(s: Swizzle, factor: int, up: bool) -> Swizzle:
    bits = factor.bit_length() - 1
    if factor != 1 << bits:
        raise LayoutError(
            f"{s} cannot be scaled by {factor}, which is no power of two", fix="use widths a power of two apart"
        )
    if up and s.base < bits:
        raise LayoutError(
            f"{s} moves single elements inside the {factor} that become one: base {s.base} is below {bits}",
            fix=f"use a swizzle with base {bits} or more",
        )
    return Swizzle(s.mask, s.base - bits if up else s.base + bits, s.shift)


def _upcast_leaf(s: Leaf, d: Leaf, f: int, merged: list[tuple[int, int]]) -> tuple[Leaf, Leaf]:
    if isinstance(d, Basis):
        raise LayoutError(f"mode {s}:{d} has a basis stride", fix="use integer strides")
    if type(d) is not int:
        if lf.leaf_divisibility(d) % f:
            raise LayoutError(
                f"mode {s}:{d}: the run-time stride {d} is not known to be a multiple of {f}",
                fix=f"promise it: {{div={f}}}, or fx.assume",
            )
        return s, lf.div(d, f)
    if d == 0:
        return s, 0
    step = abs(d)
    if type(s) is int and s == 1:
        return 1, (-1 if d < 0 else 1) * lf.ceil_div(step, f)
    if step % f == 0:
        return s, d // f if d > 0 else -(step // f)
    if f % step or d < 0:
        raise LayoutError(f"mode {s}:{d}: stride {d} and the factor {f} do not divide", fix="use a stride that divides")
    take = f // step
    if type(s) is int and s % take:
        if take % s:
            raise LayoutError(
                f"mode {s}:{d}: extent {s} is not divisible by {take}", fix=f"use a multiple of {take} elements"
            )
        merged.append((d, s))
        return 1, 1
    if type(s) is not int and lf.leaf_divisibility(s) % take:
        raise LayoutError(
            f"mode {s}:{d}: the run-time extent {s} is not known to be a multiple of {take}",
            fix=f"promise it: {{div={take}}}, or fx.assume",
        )
    merged.append((d, take))
    return lf.div(s, take), 1


def _upcast(layout: Layout, f: int) -> Layout:
    """f elements become one; the ones that merge must be exactly a contiguous run of f."""
    merged: list[tuple[int, int]] = []
    pairs = [_upcast_leaf(s, d, f, merged) for s, d in zip(leaves(layout.shape), leaves(layout.stride), strict=True)]
    run = 1
    for d, n in sorted(merged):
        if d != run:
            raise LayoutError(
                f"{layout}: the elements at stride {d} do not continue a run of {run}", fix="make the run contiguous"
            )
        run *= n
    if merged and run != f:
        raise LayoutError(
            f"{layout}: only {run} contiguous elements, {f} are needed for one wide element",
            fix=f"use a run of {f} elements",
        )
    shape = unflatten(iter([p[0] for p in pairs]), layout.shape)
    return raw_layout(shape, unflatten(iter([p[1] for p in pairs]), layout.shape))


def _downcast(layout: Layout, f: int) -> Layout:
    """One element becomes f; the contiguous mode takes them in."""
    ss, ds = list(leaves(layout.shape)), list(leaves(layout.stride))
    if any(isinstance(d, Basis) for d in ds):
        raise LayoutError(f"{layout} has basis strides", fix="use integer strides")
    live = [i for i, d in enumerate(ds) if type(d) is int and abs(d) == 1 and not (type(ss[i]) is int and ss[i] == 1)]
    if len(live) > 1:
        raise LayoutError(
            f"{layout}: two modes have stride 1, so the narrow elements would overlap", fix="keep one mode of stride 1"
        )
    if not live:
        live = [i for i, (s, d) in enumerate(zip(ss, ds, strict=True)) if type(s) is int and s == 1 and type(d) is int][
            :1
        ]
        if live:
            ds[live[0]] = 1
    if not live:
        raise LayoutError(
            f"{layout}: no mode has stride 1, so the {f} narrow elements have no mode", fix="add a mode 1:0 for them"
        )
    if ds[live[0]] == -1:
        raise LayoutError(
            f"{layout}: the mode of stride -1 cannot take the narrow elements in order", fix="use stride 1"
        )
    shape = [lf.mul(s, f) if i == live[0] else s for i, s in enumerate(ss)]
    stride = [d if i == live[0] or (type(ss[i]) is int and ss[i] == 1) else lf.mul(d, f) for i, d in enumerate(ds)]
    return raw_layout(unflatten(iter(shape), layout.shape), unflatten(iter(stride), layout.shape))
