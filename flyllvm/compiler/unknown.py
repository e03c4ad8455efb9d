"""A number that a compilation without data does not know, as host code sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import TraceError
from ..ir.location import capture

if TYPE_CHECKING:
    from collections.abc import Callable


class Unknown:
    """Stands for a run-time extent, stride or scalar while a host function is compiled from specifications.

    Arithmetic gives another unknown number, so that a grid may be computed.  A decision on one is an error.
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

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
            capture(skip=3),
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
Unknown.__hash__ = object.__hash__  # type: ignore[method-assign]


def known(x: Any) -> bool:
    """Whether a number or tree of numbers holds no unknown one."""
    return all(map(known, x)) if isinstance(x, (tuple, list)) else not isinstance(x, Unknown)
