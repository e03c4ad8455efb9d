"""``flyllvm.autotune``: the fastest configuration for given arrays, measured with the inputs restored between runs."""

from __future__ import annotations

from ..errors import CodegenError, FlyError, LaunchError
from ..target import Target
from .autotune_memory import OnDevice, Saved
from .sweep import Config, Sweep, Trial, split_config, sweep

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from .artifact import Artifact
    from .kernel import KernelFunction

MEASURES = ("auto", "time", "simulator")
_REPEATS = 5


class Tuned:
    """The outcome.

    Attributes:
        config: The best configuration.
        artifact: It, compiled.
        sweep: All trials, best first; ``None`` where an earlier outcome was found.
        from_cache: Whether the choice was made before, for the same kernel, configurations, arguments and device.
    """

    __slots__ = ("artifact", "config", "from_cache", "sweep")

    def __init__(self, config: Config, artifact: Artifact, made: Sweep | None) -> None:
        self.config = config
        self.artifact = artifact
        self.sweep = made
        self.from_cache = made is None


def autotune(
    kernel: KernelFunction,
    configs: Iterable[Mapping[str, Any]],
    *args: Any,
    grid: Any | Callable[[Config], Any],
    block: Any = None,
    arch: str | Target | None = None,
    measure: str = "auto",
    repeats: int = _REPEATS,
    specs: Sequence[Any] | None = None,
    cache: bool = True,
    results: str | os.PathLike[str] | None = None,
    run_best: bool = True,
) -> Tuned:
    """Measures a kernel in many configurations on its own arguments, and runs the best once.

    The arguments are saved first and restored before every run, so a kernel that changes its input sees the same input
    in every trial; afterwards they hold what one run of the best gives.

    Args:
        kernel: A function decorated with ``@flyc.kernel``.
        configs: Dictionaries of compile-time values and options.
        args: One array or number per run-time argument: NumPy arrays, device arrays, and tensors of any library that
            launches take (torch, DLPack, the array interfaces), in host or device memory.
        grid: Workgroups, or a function of a configuration.
        block: Work items per workgroup; by default what the kernel is compiled for.
        arch: The target; by default the device's, else ``FLYLLVM_ARCH``.
        measure: ``time`` on a device; ``simulator``: instructions of all waves; ``auto``: a device where there is one.
        repeats: Timed runs per configuration; the middle one counts.
        specs: Specifications of the run-time arguments; by default the exact shapes and strides of the arrays.
        cache: Whether a choice made before is used, and this one kept, in the disk cache.
        results: Results file of the compilations, see `sweep`.
        run_best: Whether the best is run once at the end; otherwise the arguments are as they were.

    Raises:
        CodegenError: No configuration compiled and ran.
        LaunchError: There is no device to measure on.
    """
    if measure not in MEASURES:
        raise CodegenError(f"measure={measure!r}", fix=f"use one of: {', '.join(MEASURES)}")
    if repeats < 1:
        raise CodegenError(f"repeats={repeats}", fix="use 1 or more")
    wanted = [dict(c) for c in configs]
    if not wanted:
        raise CodegenError(f"autotune of {kernel.name} without configurations", fix="pass dictionaries: [{'BM': 128}]")
    target, device = _place(arch, measure)
    given = list(specs) if specs is not None else _specs(kernel, wanted[0], args)
    key = _key(kernel, wanted, given, target, device) if cache else None
    saved = Saved(args)
    if device is None:
        saved.check_simulator()
    found = _choice(key, wanted)
    made = None
    if found is None:
        made = sweep(kernel, wanted, *given, arch=target, results=results)
        for trial in made.trials:
            if trial.error is None:
                _measure(made, trial, saved, grid, block, device, repeats)
        made.rank(lambda t: t.facts["measured"])
        found = made.best.config
        _keep(key, wanted, found)
    artifact = _compiled(kernel, found, given, target)
    saved.restore()
    if run_best:
        groups = grid(found) if callable(grid) else grid
        _run_best(artifact, saved, groups, block, device)
    return Tuned(found, artifact, made)


def _place(arch: str | Target | None, measure: str) -> tuple[Target, Any]:
    """(target, device); no device where the simulator measures.

    Raises:
        LaunchError: A device is asked for and there is none.
    """
    from .place import current_place

    place = current_place(arch)
    device = None if measure == "simulator" else getattr(place, "device", None)
    if measure == "time" and device is None:
        raise LaunchError(
            "autotune(measure='time') without a GPU", fix="use measure='simulator', or a machine with one"
        )
    return place.target, device


def _specs(kernel: KernelFunction, config: Config, args: Sequence[Any]) -> list[Any]:
    """The specifications of the arguments, where a configuration takes the parameters that it names.

    Raises:
        CodegenError: An argument is a compile-time value.
    """
    from .compile import _sort

    constants, _ = split_config(kernel, config)
    specs, given = _sort(kernel, args, constants)
    extra = sorted(set(given) - set(constants))
    if extra:
        raise CodegenError(f"argument {extra[0]} is a compile-time value", fix="put it into the configurations")
    return specs


def _measure(made: Sweep, trial: Trial, saved: Saved, grid: Any, block: Any, device: Any, repeats: int) -> None:
    """Runs a trial and puts its measure into its facts; an error of the run is the trial's."""
    try:
        artifact = made.compile(trial)
        groups = grid(trial.config) if callable(grid) else grid
        saved.restore()
        if device is None:
            lds = artifact.dynamic_lds_bytes or 0
            report = artifact.simulate(*saved.args, grid=groups, block=block, dynamic_lds_bytes=lds)
            trial.facts["measured"] = sum(report.instructions.values())
        else:
            trial.facts["measured"] = trial.facts["time_ms"] = _time(artifact, saved, groups, block, device, repeats)
    except FlyError as e:
        trial.error = str(e)
        trial.score = None


def _time(artifact: Artifact, saved: Saved, grid: Any, block: Any, device: Any, repeats: int) -> float:
    """Middle of the times of several runs, in milliseconds; copies are not in it."""
    from ..runtime import Event, Stream

    if artifact.printf_formats:
        raise LaunchError(f"{artifact.name} prints, which takes longer than it runs", fix="take fx.printf out of it")
    device.use()
    on_device = OnDevice(artifact, saved)
    times = []
    with Stream() as stream, Event() as start, Event() as end:
        for turn in range(repeats + 1):
            on_device.restore()
            start.record(stream)
            _launch(artifact, on_device, grid, block, stream)
            end.record(stream)
            end.synchronize()
            if turn:  # the first one loads the code
                times.append(end.elapsed_ms(start))
    return sorted(times)[len(times) // 2]


def _launch(artifact: Artifact, on_device: OnDevice, grid: Any, block: Any, stream: Any) -> None:
    from ..runtime import load_module
    from .artifact import _three
    from .binding import launch_types

    load_module(artifact.code_object).function(artifact.name).launch(
        _three(grid, "grid"),
        artifact.block_size(block),
        on_device.flat,
        stream=stream,
        types=launch_types(artifact.specs),
        dynamic_lds_bytes=artifact.dynamic_lds_bytes or 0,
    )


def _run_best(artifact: Artifact, saved: Saved, grid: Any, block: Any, device: Any) -> None:
    """Runs it once on the arguments themselves."""
    if not saved.on_device:
        artifact.run(*saved.args, grid=grid, block=block, dynamic_lds_bytes=artifact.dynamic_lds_bytes or 0)
        return
    from ..runtime import Stream

    device.use()
    on_device = OnDevice(artifact, saved)
    on_device.restore()
    with Stream() as stream:
        _launch(artifact, on_device, grid, block, stream)
        stream.synchronize()
    on_device.bring_back()


def _compiled(kernel: KernelFunction, config: Config, specs: Sequence[Any], target: Target) -> Artifact:
    from .compile import compile

    constants, options = split_config(kernel, config)
    made: Artifact = compile(kernel, *specs, arch=target, constants=constants, **options)
    return made


def _key(kernel: KernelFunction, wanted: list[Config], specs: Sequence[Any], target: Target, device: Any) -> str | None:
    """What the choice depends on: shapes are in the specifications where these are exact."""
    from .sweep_store import trial_key

    where = "simulator" if device is None else getattr(device, "name", "")
    return trial_key(kernel, tuple(specs), target, {"configs": wanted, "measured on": where})


def _choice(key: str | None, wanted: list[Config]) -> Config | None:
    from .cache import open_cache

    cache = open_cache()
    found = cache.get("tuned", key) if cache is not None and key is not None else None
    return None if found is None else wanted[found[0]["index"]]


def _keep(key: str | None, wanted: list[Config], best: Config) -> None:
    from .cache import open_cache

    cache = open_cache()
    if cache is not None and key is not None:
        cache.put("tuned", key, {"index": wanted.index(best), "name": repr(best)}, {})
