"""Which engine runs the workgroups of a launch."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..errors import CodegenError, SimError

if TYPE_CHECKING:
    from .jit import Runner
    from .run import Setup

ENGINES = ("auto", "numpy", "jit")
#: Environment variable with the number of threads of the second engine.
THREADS = "FLYLLVM_SIM_THREADS"
_MOST_THREADS = 256
# A kernel gets the second engine after it ran that long on the first, over all launches: about what compiling costs.
_SLOW_SECONDS = 0.3


def thread_count(threads: int | None = None) -> int:
    """Threads that the second engine may use: what is asked for, or `THREADS`, or 1.

    Raises:
        SimError: It is not a number from 1 to 256.
    """
    name, asked = ("threads", str(threads)) if threads is not None else (THREADS, os.environ.get(THREADS, "1"))
    try:
        count = int(asked)
    except ValueError:
        count = 0
    if not 1 <= count <= _MOST_THREADS:
        raise SimError(f"{name} = {asked!r} is no number of threads", fix=f"use 1 to {_MOST_THREADS}")
    return count


class Choice:
    """The second engine for a launch, where it may be used.

    Raises:
        SimError: ``engine`` is unknown, ``threads`` is not a number from 1 to 256, or the engine is ``jit`` and
            checkers or the profile need the first one, or the kernel uses what the second does not cover.
    """

    def __init__(self, engine: str, setup: Setup, checks: str, profile: bool, threads: int | None) -> None:
        self.setup, self.strict = setup, engine == "jit"
        count = thread_count(threads)
        self.runner: Runner | None = None
        self.start = time.perf_counter()
        if engine not in ENGINES:
            raise SimError(f"unknown engine {engine!r}", fix=f"use one of: {', '.join(ENGINES)}")
        setup.report.engine = "numpy"
        if engine == "numpy" or (engine == "auto" and (checks != "none" or profile)):
            return
        if checks != "none" or profile:
            need = "profile=True" if profile else f"checks={checks!r}"
            raise SimError(f"engine='jit' runs without checkers and profile, but {need}", fix="pass checks='none'")
        from .jit import Runner

        self.runner = Runner(setup, count)

    def run(self, first: int, total: int, progress: Callable[[int, int], None] | None) -> bool:
        """Runs the workgroups from ``first`` on the second engine, if that is the one to use; whether it did.

        Raises:
            SimError, CodegenError: With ``engine='jit'``: what is not covered, or why the worker cannot run.
        """
        setup, report = self.setup, self.setup.report
        if self.runner is None or not self._pays():
            return False
        runner, self.runner = self.runner, None
        done, note = False, ""
        try:
            done = runner.run(first, total, progress)
        except (SimError, CodegenError) as e:
            if self.strict:
                raise
            note = f"the second engine cannot run it: {e.what}"
        finally:
            report.compile_seconds += runner.compile_seconds
            setup.start += runner.compile_seconds
        if done:
            report.engine = "numpy, then jit" if first else "jit"
            return True
        report.engine_note = note or f"the second engine gave up: {runner.reason}"
        if not runner.found_fault:  # which may be one of this launch
            setup.launch.program.gave_up = report.engine_note
        return False

    def _pays(self) -> bool:
        """Whether the second engine is worth its compile time."""
        launch = self.setup.launch
        known = launch.program.host_code.get((launch.block, launch.dynamic_lds_bytes))
        if launch.program.gave_up and not self.strict:
            self.setup.report.engine_note = launch.program.gave_up
            return False
        if self.strict or (known is not None and not isinstance(known, SimError)):
            return True
        return launch.program.numpy_seconds + time.perf_counter() - self.start > _SLOW_SECONDS

    def close(self) -> None:
        """Notes the time of the first engine."""
        if self.setup.report.engine == "numpy":
            self.setup.launch.program.numpy_seconds += time.perf_counter() - self.start
