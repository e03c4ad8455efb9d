"""The fast-math flags in force while tracing."""

from __future__ import annotations

from ..errors import TraceError
from ..ir.builder import Builder
from ..ir.ops_arith import FASTMATH


def current_flags() -> tuple[str, ...]:
    """Flags that float operations get: the kernel's, or those of the innermost ``fx.fastmath`` block."""
    b = Builder.active()
    return () if b is None else tuple(b.kernel.attrs.get("fastmath", ()))


class fastmath:
    """``with fx.fastmath("contract", "nnan"):`` sets the flags of the float operations inside.

    Raises:
        TraceError: An unknown flag.
    """

    def __init__(self, *flags: str) -> None:
        for flag in flags:
            if flag not in FASTMATH:
                raise TraceError(f"unknown fast-math flag {flag!r}", fix=f"use: {', '.join(FASTMATH)}")
        self._flags = flags

    def __enter__(self) -> None:
        attrs = Builder.current().kernel.attrs
        self._before = attrs.get("fastmath", ())
        attrs["fastmath"] = self._flags

    def __exit__(self, *exc: object) -> None:
        Builder.current().kernel.attrs["fastmath"] = self._before
