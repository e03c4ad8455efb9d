"""``flyllvm.sweep``: one kernel in many configurations, compiled anywhere, ranked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..errors import CodegenError
from ..target import Target
from .compile import default_arch
from .kernel import KernelFunction
from .sweep_score import RANKS, score_of
from .sweep_store import ResultsFile, trial_key
from .sweep_task import reference_to, run_task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .artifact import Artifact

Config = dict[str, Any]


class Trial:
    """One configuration and what became of it.

    Attributes:
        config: Compile-time values and options.
        facts: Registers, LDS, spills, occupancy, code size, compile time; empty after an error.
        error: The error's text, or ``None``.
        score: What it is ranked by, smaller first; ``None`` where it has none.
        resumed: Whether it came from the results file.
    """

    __slots__ = ("config", "error", "facts", "resumed", "score")

    def __init__(self, config: Config, facts: dict[str, Any], error: str | None, resumed: bool = False) -> None:
        self.config = config
        self.facts = facts
        self.error = error
        self.resumed = resumed
        self.score: tuple[float, ...] | None = None

    def __repr__(self) -> str:
        what = f"error: {self.error}" if self.error is not None else f"score {self.score}"
        return f"<{self.config}: {what}>"


class Sweep:
    """The trials of a sweep.

    Attributes:
        trials: All of them: ranked ones first, best first; then those without a score.
        kernel: The kernel.
        target: The target.
    """

    def __init__(self, kernel: KernelFunction, target: Target, specs: tuple[Any, ...], trials: list[Trial]) -> None:
        self.kernel = kernel
        self.target = target
        self._specs = specs
        self.trials = trials

    def rank(self, by: str | Callable[[Trial], Any]) -> Sweep:
        """Sorts by ``registers``, ``occupancy``, ``code``, or a function of a trial; smaller is better."""
        for trial in self.trials:
            if trial.error is None:
                trial.score = score_of(by, trial)
        self.trials.sort(key=lambda t: (t.score is None, t.score or ()))
        return self

    @property
    def best(self) -> Trial:
        """The first trial.

        Raises:
            CodegenError: No configuration compiled.
        """
        if not self.trials or self.trials[0].score is None:
            errors = "\n".join(f"{t.config}: {t.error}" for t in self.trials[:5])
            raise CodegenError(f"no configuration of {self.kernel.name} compiled\n{errors}", fix="see .trials for all")
        return self.trials[0]

    @property
    def errors(self) -> list[Trial]:
        """The trials that did not compile."""
        return [t for t in self.trials if t.error is not None]

    def compile(self, trial: Trial | None = None) -> Artifact:
        """The artifact of a trial, by default of the best; the disk cache has it already."""
        from .compile import compile

        constants, options = split_config(self.kernel, (trial or self.best).config)
        made: Artifact = compile(self.kernel, *self._specs, arch=self.target, constants=constants, **options)
        return made

    def table(self) -> str:
        """One line per trial."""
        rows = []
        for t in self.trials:
            if t.error is not None:
                rows.append(f"{t.config}: {t.error.splitlines()[0]}")
                continue
            f = t.facts
            rows.append(
                f"{t.config}: {f['vgpr_count']} VGPRs, {f['agpr_count']} AGPRs, {f['spills']} spills, "
                f"{f['lds_bytes']} bytes LDS, {f['waves_per_simd']} waves per SIMD, {f['code_bytes']} bytes of code"
                + (f", {f['time_ms']:.4f} ms" if "time_ms" in f else "")
            )
        return "\n".join(rows)


def grid_of(**values: Iterable[Any]) -> list[Config]:
    """Every combination of the given values, as configurations."""
    out: list[Config] = [{}]
    for name, options in values.items():
        given = list(options)
        out = [{**made, name: value} for made in out for value in given]
    return out


def split_config(kernel: KernelFunction, config: Mapping[str, Any]) -> tuple[Config, Config]:
    """Compile-time values of the kernel, and options and hints."""
    names = kernel.parameters()
    constants = {k: v for k, v in config.items() if k in names}
    return constants, {k: v for k, v in config.items() if k not in constants}


def sweep(
    kernel: KernelFunction,
    configs: Iterable[Mapping[str, Any]],
    *specs: Any,
    arch: str | Target | None = None,
    executor: Any = None,
    workers: int | None = None,
    rank: str | Callable[[Trial], Any] = "registers",
    results: str | os.PathLike[str] | None = None,
    retry_errors: bool = False,
    progress: bool | Callable[[int, int, Trial], None] = False,
) -> Sweep:
    """Compiles a kernel in many configurations and ranks them.

    Args:
        kernel: A function decorated with ``@flyc.kernel``.
        configs: Dictionaries of compile-time values and options (``opt_level``, ``passes``, ``waves_per_eu``, ...).
        specs: One specification per run-time argument.
        arch: The target; by default ``FLYLLVM_ARCH``.
        executor: Any ``concurrent.futures.Executor``; by default threads over the compile workers.  Executors of other
            processes (Dask's ``Client.get_executor()`` for a cluster) import the kernel by its module and name, or load
            its file where that is the main program.
        workers: Threads and compile workers where no executor is given; by default one per CPU, at most 8.
        rank: ``registers``, ``occupancy``, ``code``, or a function of a trial that gives a number. By name,
            whatever spills or uses scratch memory comes last.
        results: A file that keeps every trial as soon as it is there; a sweep that was interrupted goes on from it.
        retry_errors: Whether trials that the file has as errors are tried again.
        progress: ``True`` shows a progress bar on stderr; or a function of (done, total, trial).

    Raises:
        CodegenError: The arguments do not fit.  An error of one configuration is kept in its trial.
    """
    if not isinstance(kernel, KernelFunction):
        raise CodegenError(f"sweep({kernel!r})", fix="pass a function decorated with @flyc.kernel")
    wanted = [dict(c) for c in configs]
    if not wanted:
        raise CodegenError(f"a sweep of {kernel.name} without configurations", fix="pass dictionaries: [{'BM': 128}]")
    if isinstance(rank, str) and rank not in RANKS:
        raise CodegenError(f"rank={rank!r}", fix=f"use one of: {', '.join(RANKS)}, or a function of a trial")
    target = Target.parse(arch if arch is not None else default_arch())
    store = ResultsFile(results) if results is not None else None
    keys = [trial_key(kernel, specs, target, c) for c in wanted]
    trials: list[Trial | None] = [_known(store, key, c, retry_errors) for key, c in zip(keys, wanted, strict=True)]
    from .sweep_progress import Progress

    with Progress(progress, len(wanted)) as show:
        for done in trials:
            if done is not None:
                show.add(done)
        missing = [i for i, t in enumerate(trials) if t is None]
        for i, (facts, error) in _compiled(kernel, specs, target, [(i, wanted[i]) for i in missing], executor, workers):
            trial = trials[i] = Trial(wanted[i], facts, error)
            if store is not None:
                store.add(keys[i], trial)
            show.add(trial)
    return Sweep(kernel, target, specs, [t for t in trials if t is not None]).rank(rank)


def _known(store: ResultsFile | None, key: str | None, config: Config, retry_errors: bool) -> Trial | None:
    row = store.get(key) if store is not None and key is not None else None
    if row is None or (row["error"] is not None and retry_errors):
        return None
    return Trial(config, row["facts"], row["error"], True)


def _compiled(
    kernel: KernelFunction,
    specs: tuple[Any, ...],
    target: Target,
    missing: list[tuple[int, Config]],
    executor: Any,
    workers: int | None,
) -> Iterable[tuple[int, tuple[dict[str, Any], str | None]]]:
    """(index, (facts, error)) of every missing configuration, as they come."""
    if not missing:
        return
    from concurrent.futures import ThreadPoolExecutor

    from ..codegen.client import default_pool

    own = executor is None
    if own:
        count = min(workers or min(os.cpu_count() or 1, 8), len(missing))
        pool = default_pool()
        pool.size = max(pool.size, count)
        executor = ThreadPoolExecutor(count, "flyllvm-sweep")
    here = isinstance(executor, ThreadPoolExecutor)
    what: Any = kernel if here else reference_to(kernel)
    texts = specs if here else tuple(str(s) for s in specs)
    where: Any = target if here else (str(target), target.wave_size)
    futures = {executor.submit(run_task, what, texts, where, config): i for i, config in missing}
    try:
        yield from _gather(futures)
    finally:
        for future in futures:
            future.cancel()
        if own:
            executor.shutdown()


def _gather(futures: dict[Any, int]) -> Iterable[tuple[int, tuple[dict[str, Any], str | None]]]:
    """Results in the order in which they are there; executors of clusters bring futures of their own kind."""
    from queue import SimpleQueue

    ready: SimpleQueue[Any] = SimpleQueue()
    for future in futures:
        future.add_done_callback(ready.put)
    for _ in range(len(futures)):
        future = ready.get()
        try:
            yield futures[future], future.result()
        except Exception as e:
            # A worker of a cluster died, or has no such kernel.
            yield futures[future], ({}, f"{type(e).__name__}: {e}")
