"""The pytest plugin: a clean kernel passes, a fault fails the test with its report."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.sim.kernels import FENCED_BARRIER, exchange, gemm

pytest_plugins = ["pytester"]
pytestmark = pytest.mark.sim

TEST = """
import numpy as np
from pathlib import Path

def test_kernel(run_kernel):
    out = np.zeros(256, np.int32)
    report = run_kernel(Path("k.ll").read_text(), out, grid=1, block=256, source_name="k.ll")
    assert report.instructions["store"] == 8
    assert (out == 255 - np.arange(256)).all()
    assert {passes}
"""


WARNS = """
import numpy as np
from pathlib import Path

def test_kernel(run_kernel):
    a = np.arange(512, dtype=np.float16).reshape(32, 16)
    b = a[:16].copy()
    c = np.zeros((32, 16), np.float32)
    run_kernel(Path("k.ll").read_text(), a, b, c, 16, grid=1, block=128, source_name="k.ll")
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty project that uses the plugin."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    pytester.makeconftest('pytest_plugins = ["flyllvm.testing.plugin"]')
    return pytester


def _run(project: pytest.Pytester, barrier: str, passes: str = "True", *options: str) -> pytest.RunResult:
    project.path.joinpath("k.ll").write_text(exchange(before=barrier))
    project.makepyfile(TEST.replace("{passes}", passes))
    return _pytest(project, *options)


def _pytest(project: pytest.Pytester, *options: str) -> pytest.RunResult:
    return project.runpytest_subprocess("-p", "no:cacheprovider", *options)


def test_clean_kernel_passes(project: pytest.Pytester) -> None:
    _run(project, FENCED_BARRIER, "True", "--sim-checks", "all").assert_outcomes(passed=1)


def test_fault_fails_the_test_with_its_text(project: pytest.Pytester) -> None:
    result = _run(project, "")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["k.ll:*LDS race on LDS byte*", "  fix: put a barrier between the two*"])


def test_a_warning_fails_the_test_where_it_shall(project: pytest.Pytester) -> None:
    project.path.joinpath("k.ll").write_text(gemm(read_swizzle=False))
    project.makepyfile(WARNS)
    _pytest(project, "--sim-fail-on-warnings").assert_outcomes(passed=1)
    _pytest(project, "--sim-checks", "all").assert_outcomes(passed=1)
    result = _pytest(project, "--sim-checks", "all", "--sim-fail-on-warnings")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["k.ll:*LDS is read in another order than it was written*"])


def test_report_of_a_clean_run_is_shown_with_a_later_failure(project: pytest.Pytester) -> None:
    result = _run(project, FENCED_BARRIER, "False", "--sim-profile")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*simulator*", "@k on gfx942: grid 1x1x1, block 256x1x1*", "*conflict*line"])


def test_wrong_arguments_are_an_error_at_the_line_of_the_test(project: pytest.Pytester) -> None:
    project.path.joinpath("k.ll").write_text(exchange())
    project.makepyfile(TEST.replace("{passes}", "True").replace("out, grid", "grid"))
    result = _pytest(project)
    result.stdout.fnmatch_lines(["*@k takes 1 arguments, got 0", "*fix: pass: ptr addrspace(1) %out"])
    assert "plugin.py" not in result.stdout.str()
