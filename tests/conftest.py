"""What the whole test suite shares: hypothesis profiles and the options of our own."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# No deadline: a busy machine is not a defect.  `--full` is for the slow counts; scripts/test never gives it.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
# Nothing that a test compiles comes from, or stays in, the user's cache; tests of the cache switch it on.
os.environ["FLYLLVM_CACHE"] = "0"
settings.register_profile("normal", max_examples=100, derandomize=True, print_blob=True, **_COMMON)
settings.register_profile("full", max_examples=5000, **_COMMON)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--full", action="store_true", help="full counts in slow and property tests")
    parser.addoption("--update-golden", action="store_true", help="write the golden texts instead of comparing")


def pytest_configure(config: pytest.Config) -> None:
    if not config.getoption("--hypothesis-profile", default=None):
        settings.load_profile("full" if config.getoption("--full") else "normal")


@pytest.fixture
def full(request: pytest.FixtureRequest) -> bool:
    """Whether a slow test shall run its full count."""
    return bool(request.config.getoption("--full"))


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """``golden("name.fly", text)``: text equals that file in ``golden/`` beside the test (``--update-golden``)."""
    folder = request.path.parent / "golden"

    def compare(name: str, text: str) -> None:
        path = folder / name
        if request.config.getoption("--update-golden"):
            folder.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden text {path}: run pytest with --update-golden, then read what it wrote"
        assert text == path.read_text(encoding="utf-8")

    return compare


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Repeats what scripts/test saw fail before pytest, above pytest's closing line."""
    steps = os.environ.get("FLYLLVM_FAILED_STEPS")
    if steps:
        terminalreporter.section("failed before the tests", red=True)
        terminalreporter.write_line(steps)
