"""Containers and arrays in the sum of `world`."""

from __future__ import annotations

from .parts import Unknown, bare, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .world import Walk

_MAX_ARRAY_BYTES = 1 << 20


def add_array(walk: Walk, x: Any) -> None:
    """Adds an array with its data."""
    if x.nbytes > _MAX_ARRAY_BYTES:
        raise Unknown(f"an array of {x.nbytes} bytes")
    walk.put("array", type(x).__qualname__, x.dtype, x.shape, x.strides, x.flags.num)
    if x.dtype.hasobject:
        raise Unknown("an array of Python objects")
    walk.put(x.tobytes())
    walk.value(getattr(x, "__dict__", None))


def add_container(walk: Walk, x: Any) -> bool:
    """Adds what a container, or a number of a class of its own, holds; whether it is one."""
    if isinstance(x, (tuple, list)):
        walk.put(len(x))
        for part in tuple.__iter__(x) if isinstance(x, tuple) else list.__iter__(x):
            walk.value(part)
    elif isinstance(x, dict):
        walk.put(len(x))
        for key, part in dict.items(x):
            walk.value(key)
            walk.value(part)
    elif isinstance(x, (set, frozenset)):
        if not all(plain(part, type(part)) is not None for part in x):
            raise Unknown("a set of values that have no order")
        walk.put(len(x), *sorted(f"{type(part).__name__} {plain(part, type(part))!r}" for part in x))
    elif isinstance(x, (int, float, str, bytes)):
        walk.value(bare(x))
    elif not isinstance(x, (range, slice)):
        return False
    else:
        walk.value((x.start, x.stop, x.step))
    return True
