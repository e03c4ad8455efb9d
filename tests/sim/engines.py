"""Runs kernels on both engines and compares them bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np

import flyllvm.sim as sim
from flyllvm.sim import SimReport
from flyllvm.sim.run import simulate

COUNTS = ("instructions", "lane_instructions", "matrix_flops", "clipped", "lds_bytes")


def copies(args: list[Any]) -> list[Any]:
    """The arguments with arrays of their own."""
    return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in args]


def same_bits(a: np.ndarray, b: np.ndarray) -> bool:
    """Equal bytes, where one NaN is as good as another: LLVM leaves their payload open."""
    if a.tobytes() == b.tobytes():
        return True
    if a.dtype.kind != "f":
        return False
    nan = np.isnan(a)
    return bool((nan == np.isnan(b)).all() and a[~nan].tobytes() == b[~nan].tobytes())


def both(text: Any, kernel: str | None = None, *, args: list[Any], **launch: Any) -> tuple[SimReport, SimReport]:
    """The reports of both engines; ``args`` get the results."""
    mine = copies(args)
    first = simulate(text, kernel, args=args, checks="none", engine="numpy", **launch)
    second = simulate(text, kernel, args=mine, checks="none", engine="jit", **launch)
    assert second.engine == "jit", second.engine_note
    compare(args, mine, first, second)
    assert set(first.warnings) == set(second.warnings)
    return first, second


def compare(args: list[Any], mine: list[Any], first: SimReport, second: SimReport) -> None:
    """Arrays and counts are the same."""
    for i, (a, b) in enumerate(zip(args, mine, strict=True)):
        if isinstance(a, np.ndarray):
            wrong = np.flatnonzero(a.ravel() != b.ravel())[:8]
            assert same_bits(a, b), f"argument {i} differs at {wrong}: {a.ravel()[wrong]} and {b.ravel()[wrong]}"
    assert set(second.warnings) <= set(first.warnings)
    for name in COUNTS:
        assert getattr(first, name) == getattr(second, name), name


class Comparing:
    """While active, each successful `simulate` of the package runs its kernel on the second engine too.

    Attributes:
        ran: Kernels that ran on both.
        declined: Errors of those that the second does not cover.
    """

    def __init__(self, monkeypatch: Any) -> None:
        self.ran: list[str] = []
        self.declined: list[str] = []
        monkeypatch.setattr(sim, "simulate", self.simulate)

    def simulate(self, text: Any, kernel: str | None = None, *, args: Any, **launch: Any) -> SimReport:
        """As `flyllvm.simulate`."""
        mine = copies(list(args))
        first = simulate(text, kernel, args=args, **launch)
        try:
            second = simulate(text, kernel, args=mine, **{**launch, "checks": "none", "engine": "jit"})
        except sim.UnsupportedError as e:
            self.declined.append(e.what)
            return first
        assert second.engine == "jit", second.engine_note
        compare(list(args), mine, first, second)
        self.ran.append(first.kernel)
        return first
