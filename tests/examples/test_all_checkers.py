"""Every example runs under every checker of the simulator without a report or a warning."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

import flyllvm.sim.run as running

pytestmark = [pytest.mark.sim, pytest.mark.llvm]
EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_checker_reports_an_example(path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    plain, runs = running.prepare, []

    def prepare(*args: Any, **options: Any) -> Any:
        runs.append(plain(*args, **{**options, "checks": "all"}))
        return runs[-1]

    monkeypatch.setattr(running, "prepare", prepare)
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")
    monkeypatch.setattr("sys.argv", [str(path)])
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(path), run_name="__main__")
    assert not caught.value.code and runs, capsys.readouterr().out
    assert not any(setup.report.warnings for setup in runs)
