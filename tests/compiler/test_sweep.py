"""Sweeps and autotune: ranking, errors per configuration, going on after an interruption, inputs restored."""

from __future__ import annotations

import json
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler.sweep import Trial, grid_of
from flyllvm.errors import CodegenError, LaunchError
from tests.compiler.sweep_kernels import add_one

pytestmark = pytest.mark.llvm

SPEC = "i32[128]"


class Counting(Executor):
    """Runs at once and counts; it stands for an executor of a kind that the library does not know."""

    def __init__(self) -> None:
        self.count = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        import pickle

        self.count += 1
        future: Future[Any] = Future()
        try:
            future.set_result(pickle.loads(pickle.dumps(fn(*pickle.loads(pickle.dumps(args)), **kwargs))))
        except Exception as e:
            future.set_exception(e)
        return future


def test_trials_are_ranked_and_errors_kept() -> None:
    made = flyllvm.sweep(
        add_one, [{"repeat": 3}, {"repeat": -1}, {"repeat": 0}, {"repeat": 0, "opt_level": 7}], SPEC, arch="gfx942",
        rank="code",
    )  # fmt: skip
    assert [t.error is None for t in made.trials] == [True, True, False, False]
    assert made.best.config == {"repeat": 0}
    assert made.best.facts["code_bytes"] <= made.trials[1].facts["code_bytes"]
    errors = {str(t.config): t.error for t in made.errors}
    assert "cannot be traced" in str(errors["{'repeat': -1}"])
    assert "opt_level" in str(errors["{'repeat': 0, 'opt_level': 7}"])
    assert made.compile().code_object.kernels["add_one"].vgpr_count == made.best.facts["vgpr_count"]
    assert len(made.table().splitlines()) == 4


def test_whatever_spills_comes_last() -> None:
    def trial(spills: int, vgprs: int) -> Trial:
        facts = {"vgpr_count": vgprs, "sgpr_count": 1, "lds_bytes": 0, "code_bytes": 1, "spills": spills,
                 "scratch_bytes": 0, "waves_per_simd": 1}  # fmt: skip
        return Trial({"vgprs": vgprs}, facts, None)

    from flyllvm.compiler.sweep import Sweep
    from flyllvm.target import Target

    trials = [trial(4, 10), trial(0, 200), trial(0, 100)]
    made = Sweep(add_one, Target.parse("gfx942"), (), trials).rank("registers")
    assert [t.config["vgprs"] for t in made.trials] == [100, 200, 10]


def test_a_function_ranks_too() -> None:
    made = flyllvm.sweep(add_one, grid_of(repeat=[0, 1]), SPEC, arch="gfx942", rank=lambda t: -t.config["repeat"])
    assert made.best.config == {"repeat": 1}


def test_a_sweep_goes_on_where_it_stopped(tmp_path: Path) -> None:
    file = tmp_path / "results.jsonl"
    first = Counting()
    flyllvm.sweep(add_one, grid_of(repeat=[0, -1]), SPEC, arch="gfx942", executor=first, results=file)
    assert first.count == 2
    with open(file, "a") as f:
        f.write('{"key": "half a li')  # the process was ended here
    second, seen = Counting(), []
    made = flyllvm.sweep(
        add_one, grid_of(repeat=[0, -1, 1]), SPEC, arch="gfx942", executor=second, results=file,
        progress=lambda done, total, trial: seen.append((done, total)),
    )  # fmt: skip
    assert second.count == 1 and seen == [(1, 3), (2, 3), (3, 3)]
    assert sum(t.resumed for t in made.trials) == 2 and len(made.errors) == 1
    assert len([json.loads(line) for line in file.read_text().splitlines()]) == 3
    third = Counting()
    flyllvm.sweep(
        add_one, grid_of(repeat=[0, -1]), SPEC, arch="gfx942", executor=third, results=file, retry_errors=True
    )
    assert third.count == 1
    fourth = Counting()
    flyllvm.sweep(add_one, [{"repeat": 0}], "i32[256]", arch="gfx942", executor=fourth, results=file)
    assert fourth.count == 1  # another signature


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("a line\n")
    with pytest.raises(CodegenError, match="give another file"):
        flyllvm.sweep(add_one, [{"repeat": 0}], SPEC, arch="gfx942", results=file)
    assert file.read_text() == "a line\n"


@pytest.mark.slow
def test_other_processes_give_the_same_facts() -> None:
    configs = grid_of(repeat=[0, 2])
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there = flyllvm.sweep(add_one, configs, SPEC, arch="gfx942", executor=pool, rank="code")
    with ThreadPoolExecutor(2) as threads:
        here = flyllvm.sweep(add_one, configs, SPEC, arch="gfx942", executor=threads, rank="code")

    def plain(t: Trial) -> dict[str, Any]:
        return {k: v for k, v in t.facts.items() if k not in ("compile_ms", "from_cache")}

    assert [(t.config, t.error, plain(t)) for t in there.trials] == [(t.config, t.error, plain(t)) for t in here.trials]


def test_a_kernel_without_a_global_name_cannot_leave_the_process() -> None:
    @flyc.kernel
    def local(x: fx.Tensor) -> None:
        x[0] = 1

    with pytest.raises(CodegenError, match="sweep with threads"):
        flyllvm.sweep(local, [{}], SPEC, arch="gfx942", executor=Counting())


@pytest.mark.parametrize(
    ("call", "fix"),
    [
        (lambda: flyllvm.sweep(len, [{}], arch="gfx942"), "@flyc.kernel"),
        (lambda: flyllvm.sweep(add_one, [], arch="gfx942"), "pass dictionaries"),
        (lambda: flyllvm.sweep(add_one, [{}], arch="gfx942", rank="speed"), "registers, occupancy, code"),
        (lambda: flyllvm.sweep(add_one, [{"repeat": 0}], SPEC, arch="gfx942", rank=lambda t: "x"), "return a number"),
        (lambda: flyllvm.sweep(add_one, [{"repeat": -1}], SPEC, arch="gfx942").best, "see .trials"),
        (lambda: flyllvm.autotune(add_one, [{}], grid=1, arch="gfx942", measure="guess"), "auto, time, simulator"),
        (lambda: flyllvm.autotune(add_one, [{}], grid=1, arch="gfx942", repeats=0), "1 or more"),
        (lambda: flyllvm.autotune(add_one, [], grid=1, arch="gfx942", measure="simulator"), "pass dictionaries"),
    ],
)
def test_wrong_arguments_are_refused(call: Any, fix: str) -> None:
    with pytest.raises(CodegenError, match=fix):
        call()


def test_progress_without_rich_is_a_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "rich.progress", None)
    flyllvm.sweep(add_one, grid_of(repeat=[0, -1]), SPEC, arch="gfx942", progress=True)
    assert "2 of 2 compiled, 1 with errors" in capsys.readouterr().err


# --- autotune -----------------------------------------------------------------------------------------

CONFIGS = [{"repeat": 4}, {"repeat": 0}, {"repeat": 2}]


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_CACHE", "1")
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")


@pytest.mark.sim
def test_inputs_are_restored_between_trials(cached: None) -> None:
    x = np.arange(128, dtype=np.int32)
    tuned = flyllvm.autotune(add_one, CONFIGS, x, grid=1, arch="gfx942", measure="simulator")
    assert tuned.config == {"repeat": 0}
    assert np.array_equal(x, np.arange(128) + 1)
    assert tuned.sweep is not None
    counts = [t.facts["measured"] for t in tuned.sweep.trials]
    assert counts == sorted(counts) and len(set(counts)) == 3


@pytest.mark.sim
def test_a_choice_is_made_once(cached: None) -> None:
    x = np.zeros(128, np.int32)
    assert not flyllvm.autotune(add_one, CONFIGS, x, grid=1, arch="gfx942", measure="simulator").from_cache
    again = flyllvm.autotune(add_one, CONFIGS, x, grid=1, arch="gfx942", measure="simulator")
    assert again.from_cache and again.config == {"repeat": 0}
    assert (x == 2).all()
    other = flyllvm.autotune(add_one, CONFIGS[:1], x, grid=1, arch="gfx942", measure="simulator", run_best=False)
    assert not other.from_cache and other.config == {"repeat": 4} and (x == 2).all()


def test_time_needs_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    with pytest.raises(LaunchError, match="measure='simulator'"):
        flyllvm.autotune(add_one, CONFIGS, np.zeros(128, np.int32), grid=1, arch="gfx942", measure="time")
