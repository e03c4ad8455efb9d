"""Copy and gemm operands as atoms see them: a value mode, and modes that repeat the atom."""

from __future__ import annotations

from ..errors import FlyError
from ..layout import ComposedLayout, Layout, Swizzle, coalesce, crd2idx, divides, is_static, logical_divide, size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.builder import Builder
    from ..ir.core import Op, Value
    from ..ir.static_views import StaticViews

# What is known of a static layout once and for all, by layout (and elements per atom call).
_PLANS: dict[tuple[Layout, int], tuple[Layout, tuple[int, ...]]] = {}
_GRIDS: dict[Layout, tuple[Layout, tuple[tuple[int, ...], tuple[int, ...]]]] = {}
_LIMIT = 1024


class Modes:
    """A memref as (value mode, rest modes).

    Attributes:
        steps: Atom calls; ``None`` where the extent of the rest modes is known at run time only.
    """

    __slots__ = ("_at", "_made", "_ptr", "_rest", "_value", "steps")

    def __init__(self, views: StaticViews, ptr: Value, layout: Any, per_call: int, op: Op) -> None:
        self._ptr = ptr
        self._at: Any = None
        self.steps: int | None
        plan = None
        if type(layout) is Layout and layout.is_static:
            plan = _PLANS.get((layout, per_call))
            if plan is None:
                plan = _plan(layout, per_call, op)
        if plan is not None:
            self._at, self.steps = views.of(ptr, plan[0]).at, len(plan[1])
            self._rest: Any = plan[1]
            return
        self._value, self._rest = _split(layout, per_call, op)
        self._made: dict[int, Value] = {}
        steps = 1 if self._rest is None else size(self._rest)
        self.steps = steps if isinstance(steps, int) else None

    def at(self, b: Builder, i: int, op: Op) -> Value:
        """The view of atom call ``i``."""
        if self._at is not None:
            view: Value = self._at(self._rest[i])
            return view
        found = self._made.get(i)
        if found is None:
            found = self._made[i] = self._view(b, i, op)
        return found

    def _view(self, b: Builder, i: int, op: Op) -> Value:
        offset = 0 if self._rest is None else plain_offset(crd2idx(i, self._rest), op)
        if isinstance(self._value, ComposedLayout):
            start, plain = _flattened(self._value, offset, op)
            return b.make_view(b.add_offset(self._ptr, start), plain)
        return b.make_view(b.add_offset(self._ptr, offset), self._value)


def plain_offset(index: Any, op: Op) -> Any:
    """The index of a layout for memory."""
    if isinstance(index, tuple):
        raise op.fail(f"the layout gives the coordinate {index}, not an offset", "use integer strides for memory")
    return index


def _plan(layout: Layout, per_call: int, op: Op) -> tuple[Layout, tuple[int, ...]] | None:
    """The layout of the value mode and the offset of every atom call; ``None`` where strides are coordinates."""
    value, rest = _split(layout, per_call, op)
    offsets = (0,) if rest is None else _offsets(rest)
    if offsets is None:
        return None
    if len(_PLANS) >= _LIMIT:
        _PLANS.clear()
    plan = _PLANS[layout, per_call] = value, offsets
    return plan


def _offsets(layout: Layout) -> tuple[int, ...] | None:
    """The index at every coordinate of a static layout; ``None`` where strides are coordinates."""
    at = [crd2idx(i, layout) for i in range(int(size(layout)))]
    offsets = tuple([x for x in at if type(x) is int])
    return offsets if len(offsets) == len(at) else None


def _split(layout: Any, per_call: int, op: Op) -> tuple[Any, Layout | None]:
    """(value mode, rest modes); what a value mode holds beyond ``per_call`` elements (if any) moves to the rest."""
    composed = isinstance(layout, ComposedLayout)
    outer: Any = layout.outer if composed else layout
    while isinstance(outer.shape, tuple) and len(outer.shape) == 1 and isinstance(outer.shape[0], tuple):
        outer = outer[0]
    rest: Layout | None = None
    if isinstance(outer.shape, tuple) and len(outer.shape) > 1:
        outer, rest = outer[0], Layout(outer.shape[1:], outer.stride[1:])
    if per_call:
        outer, rest = _split_atom(outer, rest, per_call, op)
    return (ComposedLayout(layout.inner, layout.offset, outer) if composed else outer), rest


def _split_atom(value: Layout, rest: Layout | None, per_call: int, op: Op) -> tuple[Layout, Layout | None]:
    count = size(value)
    if not isinstance(count, int):
        raise op.fail(f"the value mode {value} is known at run time only", "make the first mode static")
    if count == per_call:
        return value, rest
    if count % per_call:
        raise op.fail(
            f"the value mode {value} holds {count} elements, an atom call moves {per_call}",
            f"make the first mode a multiple of {per_call} elements",
        )
    try:
        parts = logical_divide(value, Layout(per_call, 1))
    except FlyError as e:
        raise e.at(op.loc) from None
    inner, more = parts[0], parts[1]
    if rest is not None:
        more = Layout((more.shape, *rest.shape), (more.stride, *rest.stride))
    return inner, more


def _flattened(layout: ComposedLayout, offset: Any, op: Op) -> tuple[Any, Layout]:
    """The first offset and a plain layout of the elements that one atom call reaches through a swizzle.

    A swizzle moves runs of ``2**base`` elements as a whole: what lies inside of one stays together.
    """
    outer = coalesce(layout.outer)
    count = size(outer)
    start = layout.offset + offset
    if not isinstance(layout.inner, Swizzle) or isinstance(layout.offset, tuple) or not isinstance(count, int):
        raise op.fail(f"an atom call through {layout}", "use a swizzle over integer offsets, with a static value mode")
    if count > 1:
        if isinstance(outer.shape, tuple) or outer.stride != 1 or count > 1 << layout.inner.base:
            raise op.fail(
                f"{count} elements of {layout.outer} through {layout.inner} are not one run",
                f"the swizzle keeps runs of {1 << layout.inner.base} elements of stride 1",
            )
        # A run of 3 from 3 on crosses a boundary of 4, though it starts at a multiple of its length.
        step = 1 << (count - 1).bit_length()
        run = 1 << layout.inner.base
        inside = start % run + count <= run if type(start) is int else divides(step, start)
        if not inside:
            raise op.fail(
                f"a run of {count} elements from offset {start} may straddle what {layout.inner} moves",
                f"start it at a multiple of {step} (fx.assume says so for a run-time offset)",
            )
    return layout.inner(start), Layout(count, 1)


class Grid:
    """A gemm operand: (V, X, Y).

    Attributes:
        name: Its letter.
        counts: Extents of X and Y, 1 where there is none.
    """

    __slots__ = ("_at", "_made", "_modes", "_offsets", "_ptr", "_value", "counts", "name")

    def __init__(self, views: StaticViews, ptr: Value, layout: Any, name: str, op: Op) -> None:
        self._ptr, self.name = ptr, name
        self._at: Any = None
        plan = None
        if type(layout) is Layout and layout.is_static:
            plan = _GRIDS.get(layout)
            if plan is None:
                plan = _grid_plan(layout, name, op)
        if plan is not None:
            self._at, self._offsets = views.of(ptr, plan[0]).at, plan[1]
            x, y = self._offsets
            self.counts = (len(x), len(y))
            return
        self._value, self._modes = _grid_modes(layout, name, op)
        self._made: dict[tuple[int, int], Value] = {}
        x_count, y_count = [*[int(size(mode)) for mode in self._modes], 1, 1][:2]
        self.counts = (x_count, y_count)

    def at(self, b: Builder, i: int, j: int) -> Value:
        """The view of the atom at (i, j)."""
        if self._at is not None:
            x, y = self._offsets
            view: Value = self._at(x[i] + y[j])
            return view
        found = self._made.get((i, j))
        if found is None:
            offset: Any = 0
            for mode, index in zip(self._modes, (i, j), strict=False):
                offset = offset + crd2idx(index, mode)
            found = self._made[i, j] = b.make_view(b.add_offset(self._ptr, offset), self._value)
        return found


def _grid_plan(layout: Layout, name: str, op: Op) -> tuple[Layout, tuple[tuple[int, ...], tuple[int, ...]]] | None:
    """The layout of the value mode and the offsets along X and Y; ``None`` where strides are coordinates."""
    value, modes = _grid_modes(layout, name, op)
    x, y, *_ = [*map(_offsets, modes), (0,), (0,)]
    if x is None or y is None:
        return None
    if len(_GRIDS) >= _LIMIT:
        _GRIDS.clear()
    plan = _GRIDS[layout] = value, (x, y)
    return plan


def _grid_modes(layout: Any, name: str, op: Op) -> tuple[Any, list[Any]]:
    if isinstance(layout, ComposedLayout):
        raise op.fail(f"operand {name} has the composed layout {layout}", "gemm operands are plain fragments")
    shape = layout.shape if isinstance(layout.shape, tuple) else (layout.shape,)
    if not is_static(layout.shape):
        raise op.fail(f"operand {name} has the run-time shape {layout.shape}", "gemm operands have static shapes")
    plain = isinstance(layout.shape, tuple) and len(shape) > 1
    if plain and len(shape) > 3:
        raise op.fail(f"operand {name} has rank {len(shape)}", "use (V,M,N), (V,M,K), (V,N,K) or rank 1")
    return (layout[0], [layout[i] for i in range(1, len(shape))]) if plain else (layout, [])
