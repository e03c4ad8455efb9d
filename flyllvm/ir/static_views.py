"""Views at offsets that are known, for passes that unroll: hundreds of them are made from a few pointers."""

from __future__ import annotations

from . import types as t
from .build_fly import offset_align, ptr_parts, view_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..layout import Layout
    from .builder import Builder
    from .core import Block, Value


class StaticViews:
    """Makes views; equal ones are made once.

    It gives what ``make_view(add_offset(ptr, offset), layout)`` gives, and asks once what is the same for all of them:
    where they stand, what their types are, how the pointer is made.
    """

    __slots__ = ("_b", "_pointers", "_views")

    def __init__(self, b: Builder) -> None:
        self._b = b
        self._pointers: dict[tuple[int, Value], _Pointers] = {}
        self._views: dict[tuple[int, Value, Layout], _Views] = {}

    def of(self, ptr: Value, layout: Layout) -> _Views:
        """The views of a static layout from a pointer, as seen from the builder's block."""
        home = self._b.home([ptr])
        key = (id(home), ptr, layout)
        found = self._views.get(key)
        if found is None:
            base, known = ptr_parts(ptr)
            pointers = self._pointers.get((id(home), base))
            if pointers is None:
                pointers = self._pointers[id(home), base] = _Pointers(self._b, base, home)
            pointers.made.setdefault(known, ptr)
            found = self._views[key] = _Views(pointers, known, layout)
        return found


class _Pointers:
    """Pointers at known offsets from one that has none."""

    __slots__ = ("_types", "b", "base", "home", "made", "type")

    def __init__(self, b: Builder, base: Value, home: Block) -> None:
        self.b, self.base, self.home = b, base, home
        self.type: t.PtrType = base.type  # type: ignore[assignment]
        self.made = {0: base}
        self._types = {self.type.align: self.type}

    def at(self, offset: int) -> Value:
        """The pointer at an offset in elements."""
        found = self.made.get(offset)
        if found is None:
            align = offset_align(self.type, abs(offset))
            type_ = self._types.get(align)
            if type_ is None:
                type_ = self._types[align] = self.type.with_(align=align)
            operands = [self.base, self.b.value(offset)]
            found = self.made[offset] = self.b.append_checked(self.home, "fly.add_offset", operands, type_)
        return found


class _Views:
    """Views of one layout at known offsets from one pointer."""

    __slots__ = ("_known", "_layout", "_made", "_pointers", "_value")

    def __init__(self, pointers: _Pointers, known: int, layout: Layout) -> None:
        self._pointers, self._known, self._layout = pointers, known, layout
        self._value = pointers.b.static_layout(layout)
        self._made: dict[int, Value] = {}

    def at(self, offset: int) -> Value:
        """The view at an offset in elements from the pointer."""
        found = self._made.get(offset)
        if found is None:
            pointers = self._pointers
            ptr = pointers.at(self._known + offset)
            type_ = view_type(ptr.type, self._layout)  # type: ignore[arg-type]
            found = pointers.b.append_checked(pointers.home, "fly.make_view", [ptr, self._value], type_)
            self._made[offset] = found
        return found
