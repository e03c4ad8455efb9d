"""A progress bar on stderr: rich's where it is installed, else a line that is written over."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .sweep import Trial


class Progress:
    """Counts trials.

    Args:
        show: ``False``, ``True``, or a function of (done, total, trial).
        total: How many there will be.
    """

    def __init__(self, show: bool | Callable[[int, int, Trial], None], total: int) -> None:
        self._call = show if callable(show) else None
        self._bar: Any = None
        self._task: Any = None
        self._line = show is True
        self._total = total
        self._done = self._failed = 0

    def __enter__(self) -> Progress:
        if self._line:
            try:
                from rich.console import Console
                from rich.progress import Progress as Bar
            except ImportError:
                return self
            self._bar = Bar(console=Console(stderr=True))
            self._task = self._bar.add_task("compiling", total=self._total)
            self._bar.start()
        return self

    def add(self, trial: Trial) -> None:
        """One more trial is there."""
        self._done += 1
        self._failed += trial.error is not None
        if self._call is not None:
            self._call(self._done, self._total, trial)
        elif self._bar is not None:
            failed = f", {self._failed} with errors" if self._failed else ""
            self._bar.update(self._task, advance=1, description=f"compiling{failed}")
        elif self._line:
            sys.stderr.write(f"\r{self._done} of {self._total} compiled, {self._failed} with errors")
            sys.stderr.flush()

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._line:
            sys.stderr.write("\n")
