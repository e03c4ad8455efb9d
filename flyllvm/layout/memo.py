"""How every operation of the algebra is wrapped: errors name the call, results on static input are kept."""

from __future__ import annotations

from ..errors import LayoutError
from .core import ComposedLayout, Layout, Tile
from .int_tuple import show
from .leaf import STAR, Star
from .swizzle import CoordSwizzle, Swizzle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    F = TypeVar("F", bound=Callable[..., Any])

_CACHE_SIZE = 4096
_VALUES = (ComposedLayout, CoordSwizzle, Layout, Swizzle, Tile)


def call_text(name: str, args: tuple[Any, ...]) -> str:
    """The call as ``flyllvm layout`` would read it."""
    return f"{name}({', '.join(show(a) if isinstance(a, tuple) else '*' if a is None else str(a) for a in args)})"


def _key(arg: Any) -> Any:
    """A hashable stand-in that differs for different arguments; ``None`` if there is something dynamic in it."""
    kind = type(arg)
    if kind is int or kind is str or kind is Star:
        return arg
    if arg is None:
        return STAR
    if kind is Layout:
        return arg if arg._static else None
    if kind is tuple:
        parts = tuple([_key(a) for a in arg])
        return None if None in parts else parts
    if isinstance(arg, _VALUES):
        return (kind, arg) if arg.is_static else None
    # A leaf such as a basis; bools, numpy integers and foreign objects are normalised inside and not kept.
    return None


def operation(fn: F) -> F:
    """Marks a function as an operation of the algebra.

    Its errors begin with the call itself, so that they name the operation and every layout.  Results for static
    arguments are kept in a bounded table (dynamic leaves are values of one trace and must not outlive it).
    """
    table: dict[Any, Any] = {}
    name = fn.__name__.rstrip("_")

    def wrapper(*args: Any, **kwargs: Any) -> Any:
        key = None if kwargs else _key(args)
        if key is not None:
            found = table.get(key)
            if found is not None:
                return found
        try:
            result = fn(*args, **kwargs)
        except LayoutError as e:
            raise LayoutError(f"{call_text(name, args)}: {e.what}", e.where, e.fix) from None
        if key is not None:
            if len(table) >= _CACHE_SIZE:
                table.clear()
            table[key] = result
        return result

    wrapper.__name__ = wrapper.__qualname__ = fn.__name__
    wrapper.__doc__ = fn.__doc__
    wrapper.__module__ = fn.__module__
    wrapper.__wrapped__ = fn  # type: ignore[attr-defined]
    return wrapper  # type: ignore[return-value]
