"""The fast-math flags in force while tracing.

By default there are none: results are IEEE's, denormals are kept, and products are not contracted into ``fma``.
"""

from __future__ import annotations

from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.ops_arith import FASTMATH

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..ir.core import Value
    from ..ir.types import Type


def emit_float(name: str, *operands: Value, result: Type | None = None, **attrs: Any) -> Value:
    """A float operation with the flags in force; its result has the type of the first operand unless given."""
    b = Builder.current()
    flags = b.kernel.attrs.get("fastmath")
    if flags:
        attrs["fastmath"] = tuple(flags)
    return b.emit(name, operands, [result or operands[0].type], attrs or None).results[0]


def checked(flags: Any) -> tuple[str, ...]:
    """Flags as a tuple; one may be given alone.

    Raises:
        TraceError: An unknown flag.
    """
    given = (flags,) if isinstance(flags, str) else tuple(flags or ())
    for flag in given:
        if flag not in FASTMATH:
            raise TraceError(f"unknown fast-math flag {flag!r}", fix=f"use: {', '.join(FASTMATH)}")
    return given


class fastmath:
    """``with fx.fastmath("contract", "nnan"):`` sets the flags of the float operations inside.

    Raises:
        TraceError: An unknown flag.
    """

    def __init__(self, *flags: str) -> None:
        self._flags = checked(flags)

    def __enter__(self) -> None:
        attrs = Builder.current().kernel.attrs
        self._before = attrs.get("fastmath")
        attrs["fastmath"] = self._flags

    def __exit__(self, *exc: object) -> None:
        attrs = Builder.current().kernel.attrs
        if self._before is None:
            del attrs["fastmath"]
        else:
            attrs["fastmath"] = self._before
