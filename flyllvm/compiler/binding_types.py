"""What arrays have in common as arguments: element types, places, alignments, strides."""

from __future__ import annotations

from ..errors import LaunchError
from ..expr.specs import NAMES
from .binding import ARRAY_DTYPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..expr.numeric import Numeric

HOST, DEVICE, NOWHERE = "host", "device", "nowhere"
#: Element types by the name that NumPy, ml_dtypes and torch give them.
TYPE_OF_NAME: dict[str, type[Numeric]] = {numpy: NAMES[short] for short, numpy in ARRAY_DTYPES.items()}
#: Alignment in bytes by the low bits of an address.
ALIGN_OF = (16, 1, 2, 1, 4, 1, 2, 1, 8, 1, 2, 1, 4, 1, 2, 1)


def element_type(name: str, what: str) -> type[Numeric]:
    """An element type by the name other libraries give it.

    Raises:
        LaunchError: A kernel has no such elements.
    """
    found = TYPE_OF_NAME.get(name.removeprefix("torch."))
    if found is None:
        bytes_ = name.removeprefix("torch.") == "bool" or name.endswith("_x2")  # torch packs two fp4 into an element
        fix = "view it as uint8" if bytes_ else f"use one of: {', '.join(TYPE_OF_NAME)}"
        raise LaunchError(f"{what} of {name}: kernels have no such element type", fix=fix)
    return found


def flat_leaves(x: Any) -> tuple[Any, ...]:
    """The leaves of a nested tuple, in order."""
    if isinstance(x, tuple):
        return tuple(leaf for part in x for leaf in flat_leaves(part))
    return (x,)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Strides in elements of a contiguous array."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))
