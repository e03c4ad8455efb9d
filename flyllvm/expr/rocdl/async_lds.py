"""Marks and waits of the loads to LDS with asynchronous names."""

from __future__ import annotations

from ...errors import TraceError
from ...ir.builder import Builder
from .waits import s_waitcnt


def asyncmark() -> None:
    """Marks the loads to LDS so far as a group.  Emits nothing: LLVM 22.1 has no marks, see ``wait_asyncmark``."""


def wait_asyncmark(count: int | None = 0) -> None:
    """Waits for loads to LDS: ``s_waitcnt vmcnt(0)`` and a fence that keeps LDS accesses behind it.

    Args:
        count: Groups that may stay outstanding; ``None`` waits for nothing.  Marks cannot be counted in the emitted
            code, so any number waits for all.  ``fx.rocdl.s_waitcnt(vmcnt=...)`` counts single loads.

    Raises:
        TraceError: The count is negative or no number.
        TargetError: The target counts its loads otherwise.
    """
    if count is None:
        return
    b = Builder.current()
    if type(count) is not int or count < 0:
        raise TraceError(f"wait_asyncmark({count!r})", b.location(), "give the groups that may stay outstanding")
    s_waitcnt(vmcnt=0)
    b.emit("llvm.fence", (), (), {"ordering": "acq_rel", "syncscope": "workgroup"})


__all__ = ["asyncmark", "wait_asyncmark"]
