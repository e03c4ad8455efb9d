"""``scripts/demo`` and ``scripts/test`` make, reuse and renew their environment, and say what went wrong.

A stand-in for Python answers in a copy of the scripts, so that nothing is downloaded.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

# Answers the version check and the stamp, makes an environment out of itself, and logs what it is asked to run.
STAND_IN = """#!/bin/sh
echo "$*" >> "$FAKE_LOG"
case "$*" in
*"-c import sys, venv"*) exit 0 ;;
*hashlib*) cat "$3" | cksum ;;
*"-m venv"*) mkdir -p "$4/bin"; cp "$0" "$4/bin/python" ;;
*"-m pip"*) if [ -n "$FAKE_PIP_FAILS" ]; then echo "pip says: no such wheel"; exit 1; fi; echo "pip chatter" ;;
*"-m pytest"*) echo "3 passed in 0.1s"; exit "${FAKE_PYTEST:-0}" ;;
*"-m mypy"*) exit "${FAKE_MYPY:-0}" ;;
esac
"""


class Clone:
    """A clone with stand-ins for Python, and what they were asked."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a clone"
        self.log = folder / "log"
        (self.root / ".ci").mkdir(parents=True)
        shutil.copytree(ROOT / "scripts", self.root / "scripts")
        shutil.copy(ROOT / ".ci/run", self.root / ".ci/run")
        shutil.copy(ROOT / "pyproject.toml", self.root)
        self.python = folder / "python3"
        self.python.write_text(STAND_IN)
        self.python.chmod(0o755)

    def run(self, script: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Runs a script from another folder; forgets what was asked before."""
        self.log.write_text("")
        env = {**os.environ, "PYTHON": str(self.python), "FAKE_LOG": str(self.log), **environment}
        command = [str(self.root / script), *arguments]
        return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True)

    @property
    def installs(self) -> list[str]:
        return [line for line in self.log.read_text().splitlines() if "-m pip" in line]


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def test_the_first_run_installs_and_the_second_reuses(clone: Clone) -> None:
    assert clone.run("scripts/demo").returncode == 0
    assert len(clone.installs) == 1
    assert clone.run("scripts/demo").returncode == 0
    assert clone.installs == []


def test_a_changed_pyproject_installs_again(clone: Clone) -> None:
    clone.run("scripts/test")
    (clone.root / "pyproject.toml").write_text("[project]\n")
    clone.run("scripts/test")
    assert len(clone.installs) == 1


def test_the_test_environment_serves_the_demo_but_not_the_reverse(clone: Clone) -> None:
    clone.run("scripts/demo")
    clone.run("scripts/test")
    assert clone.installs[0].endswith("a clone[dev]")
    clone.run("scripts/demo")
    assert clone.installs == []


def test_pip_is_silent_where_it_succeeds(clone: Clone) -> None:
    done = clone.run("scripts/demo")
    assert "chatter" not in done.stdout + done.stderr


def test_pip_is_heard_where_it_fails_and_the_next_run_tries_again(clone: Clone) -> None:
    done = clone.run("scripts/demo", FAKE_PIP_FAILS="1")
    assert done.returncode == 2
    assert "pip says: no such wheel" in done.stderr
    assert "error: this command failed: " in done.stderr
    assert clone.run("scripts/demo").returncode == 0
    assert len(clone.installs) == 1


def test_the_demo_runs_the_gemm_with_the_arguments_given(clone: Clone) -> None:
    clone.run("scripts/demo", "--flag")
    assert clone.log.read_text().splitlines()[-1] == f"{clone.root}/examples/gemm.py --flag"


def test_the_demo_writes_into_the_folder_out_of_the_clone_by_default(clone: Clone) -> None:
    clone.run("scripts/demo")
    assert clone.log.read_text().splitlines()[-1] == f"{clone.root}/examples/gemm.py {clone.root}/out/gemm.hsaco"
    assert (clone.root / "out").is_dir()


def test_the_last_line_is_pytests_own_also_where_lint_fails(clone: Clone) -> None:
    done = clone.run("scripts/test", FAKE_MYPY="1")
    assert done.returncode == 1
    assert done.stdout.splitlines()[-1] == "3 passed in 0.1s"


@pytest.mark.parametrize("status", ["0", "1", "5"])
def test_the_status_of_pytest_is_the_status_of_the_script(clone: Clone, status: str) -> None:
    assert clone.run(".ci/run", FAKE_PYTEST=status).returncode == int(status)


def test_all_tests_run_in_two_processes_launches_on_the_double_too(clone: Clone) -> None:
    clone.run("scripts/test", "tests/layout")
    assert clone.log.read_text().splitlines()[-1] == "-m pytest -n 2 tests/layout"


def test_without_a_usable_python_it_says_what_to_install(clone: Clone, tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in ("sh", "dirname", "cat"):
        (tools / tool).symlink_to(str(shutil.which(tool)))
    too_old = tools / "python3"
    too_old.write_text("#!/bin/sh\nexit 1\n")
    too_old.chmod(0o755)
    done = clone.run("scripts/demo", PYTHON="", PATH=str(tools))
    assert done.returncode == 2
    assert "flyllvm needs Python 3.11 or newer with its venv module, and none is on PATH" in done.stderr
    assert "set PYTHON=/path/to/python3.11" in done.stderr


def test_a_python_given_by_name_must_be_usable(clone: Clone) -> None:
    done = clone.run("scripts/demo", PYTHON="/no/such/python")
    assert done.returncode == 2
    assert "PYTHON=/no/such/python is not a Python 3.11 or newer" in done.stderr


def test_a_folder_that_cannot_be_written_is_named(clone: Clone) -> None:
    # Root may write everywhere, so the check itself is replaced.
    helper = clone.root / "scripts/_venv.sh"
    text = helper.read_text()
    assert '[ -w "$root" ]' in text
    helper.write_text(text.replace('[ -w "$root" ]', "false"))
    done = clone.run("scripts/demo")
    assert done.returncode == 2
    assert f"{clone.root} is not writable, and .venv must be made there" in done.stderr
