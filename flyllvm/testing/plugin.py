"""A pytest plugin: kernels run in the simulator, and a fault fails the test with its report.

Turn it on with ``pytest_plugins = ["flyllvm.testing.plugin"]`` in the top ``conftest.py``, or with
``-p flyllvm.testing.plugin``::

    def test_add(run_kernel):
        run_kernel(compiled, x, y, out, grid=4)        # an artifact of flyllvm.compile
        run_kernel(text, x, y, out, grid=4, block=256)  # or LLVM IR text
        assert (out == x + y).all()

The option ``--sim-checks all`` runs the checkers that are off by default, too; with ``--sim-fail-on-warnings`` what
they only warn of fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ..errors import FlyError, SimError
from ..sim import SimReport, simulate


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declares ``--sim-checks``, ``--sim-fail-on-warnings`` and ``--sim-profile``."""
    group = parser.getgroup("flyllvm")
    group.addoption(
        "--sim-checks", default="default", choices=("none", "default", "all"), help="checkers of run_kernel"
    )
    group.addoption("--sim-fail-on-warnings", action="store_true", help="a warning of run_kernel fails the test")
    group.addoption("--sim-profile", action="store_true", help="run_kernel counts memory traffic per line")


@pytest.fixture
def run_kernel(request: pytest.FixtureRequest) -> Callable[..., SimReport]:
    """Runs a kernel as `flyllvm.simulate` does, with its arguments by position.

    A fault fails the test with the error's text.  Reports of clean runs are shown with a test that fails later.
    """

    def run(kernel: Any, *args: Any, grid: Any, block: Any = None, **options: Any) -> SimReport:
        __tracebackhide__ = True  # what is wrong is the caller's line
        options.setdefault("checks", request.config.getoption("--sim-checks"))
        options.setdefault("profile", request.config.getoption("--sim-profile"))
        try:
            report = _simulate(kernel, args, grid, block, options)
        except SimError as error:
            pytest.fail(str(error), pytrace=False)
        except FlyError as error:
            raise error.with_traceback(None) from None
        if report.warnings and request.config.getoption("--sim-fail-on-warnings"):
            pytest.fail("\n".join(report.warnings), pytrace=False)
        request.node.add_report_section("call", "simulator", report.render())
        return report

    return run


def _simulate(kernel: Any, args: tuple[Any, ...], grid: Any, block: Any, options: dict[str, Any]) -> SimReport:
    if hasattr(kernel, "simulate"):  # an artifact knows its block size and how its arguments are laid out
        if block is not None:
            options["block"] = block
        report: SimReport = kernel.simulate(*args, grid=grid, **options)
        return report
    return simulate(kernel, grid=grid, block=64 if block is None else block, args=list(args), **options)
