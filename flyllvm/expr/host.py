"""Words for the parameters of kernels and host functions: compile-time values and streams."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Constexpr:
    """Annotation of a compile-time parameter: ``fx.Constexpr``, or ``fx.Constexpr[int]`` to check the type too.

    Attributes:
        type: The type that values must have, or ``None``.
    """

    __slots__ = ("type",)

    def __init__(self, type: Any = None) -> None:
        self.type = type

    def __class_getitem__(cls, item: Any) -> Constexpr:
        return cls(item)

    def __repr__(self) -> str:
        if self.type is None:
            return "Constexpr"
        plain = isinstance(self.type, type) and getattr(self.type, "__origin__", None) is None
        return f"Constexpr[{self.type.__name__ if plain else self.type}]"


class Stream:
    """A queue of work on the device, as an argument and as an annotation.

    Args:
        value: ``None`` for the default stream, a ``flyllvm.runtime.Stream``, the stream of another library (with
            ``cuda_stream`` or ``handle``), or its handle as a number.
    """

    __slots__ = ("value",)

    def __init__(self, value: Any = None) -> None:
        self.value: Any = value.value if isinstance(value, Stream) else value

    def __repr__(self) -> str:
        return f"Stream({self.value!r})"
