"""A number that a compilation without data does not know, as host code sees it."""

from __future__ import annotations

from ..errors import TraceError
from ..ir.location import Location, capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn


class Unknown:
    """Stands for a run-time extent, stride or scalar while a host function is compiled from specifications.

    Arithmetic gives another unknown number, so that a grid may be computed; in layouts it is a run-time leaf
    (`layout.leaf.DynLeaf`).  A decision on one is an error.

    Attributes:
        name: What it stands for.
    """

    __slots__ = ("name",)

    width = 32
    divisibility = 1

    def __init__(self, name: str) -> None:
        self.name = name

    def static_value(self) -> None:
        """Never known."""
        return None

    def same_as(self, other: object) -> bool:
        """Whether both stand for the same number."""
        return self is other

    def __bool__(self) -> bool:
        self._refuse("decides host code")

    def __index__(self) -> int:
        self._refuse("is used where a number must be known")

    __int__ = __index__

    def __float__(self) -> float:
        self._refuse("is used where a number must be known")

    def _refuse(self, how: str) -> NoReturn:
        raise TraceError(
            f"{self.name} {how}, but this compilation has no data",
            Location(capture(skip=3).frames[:1]),
            "compile with an array or number as the argument, or make the extent static in its specification",
        )

    def __repr__(self) -> str:
        return f"<run-time {self.name}>"


def _operator(name: str) -> Callable[..., Unknown]:
    def apply(self: Unknown, *others: Any) -> Unknown:
        del others
        return self

    apply.__name__ = name
    return apply


for _name in ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and", "or", "xor"):
    setattr(Unknown, f"__{_name}__", _operator(_name))
    setattr(Unknown, f"__r{_name}__", _operator(_name))
for _name in ("neg", "pos", "abs", "lt", "le", "gt", "ge", "eq", "ne", "round", "ceil", "floor"):
    setattr(Unknown, f"__{_name}__", _operator(_name))
for _name in ("ceil_div", "rceil_div", "min", "max", "less", "greater", "equal", "and"):
    setattr(Unknown, f"{_name}_", _operator(_name))
Unknown.__hash__ = object.__hash__  # type: ignore[method-assign]


def known(x: Any) -> bool:
    """Whether a number or tree of numbers holds no unknown one."""
    return all(map(known, x)) if isinstance(x, (tuple, list)) else not isinstance(x, Unknown)
