"""``flyllvm doctor``: each thing that can be missing is named with its fix, and only the compile path fails it."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flyllvm.cli import doctor_cmd, main as cli

Pretend = Callable[[str, str | None], None]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Pretend:
    """Makes one distribution look absent, or of another version."""
    real = doctor_cmd.installed_version

    def pretend(name: str, version: str | None) -> None:
        monkeypatch.setattr(doctor_cmd, "installed_version", lambda asked: version if asked == name else real(asked))

    return pretend


@pytest.mark.llvm
def test_a_working_installation_compiles(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    state = {check["name"]: check["ok"] for check in report["checks"] if check["required"]}
    assert report["compiles"] is True
    assert set(state) == {"python", "llvmlite", "LLVM", "amdgcn target", "compile"}
    assert all(state.values())


def test_the_table_says_what_was_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert "amdgcn target  ok      amdgcn-amd-amdhsa" in text
    assert text.endswith("compiling and linking work here\n")


@pytest.mark.llvm
def test_the_compile_check_makes_a_code_object() -> None:
    check = doctor_cmd.check_compile()
    assert check.ok
    assert "kernel probe for gfx942, code object of" in check.detail


def test_a_compile_that_fails_is_told_in_the_words_of_the_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor_cmd, "_KERNEL", "define void @f( {")
    check = doctor_cmd.check_compile()
    assert (check.ok, check.required) == (False, True)
    assert check.fix


def test_a_missing_llvmlite_fails_with_the_command_to_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # The Python of the worker is another one than this, and has no llvmlite.
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
    python.chmod(0o755)
    monkeypatch.setenv("FLYLLVM_WORKER_PYTHON", str(python))
    monkeypatch.setattr(doctor_cmd, "check_compile", lambda: doctor_cmd.Check("compile", True, "not asked here"))
    assert cli.main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert f"does not load in {python}: ModuleNotFoundError: No module named 'llvmlite'" in text
    assert "python -m pip install 'llvmlite>=0.50,<0.51'" in text
    assert text.splitlines()[-1].startswith("cannot compile here: llvmlite")


def test_a_worker_python_that_does_not_exist_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_WORKER_PYTHON", "/no/such/python")
    (check,) = doctor_cmd.check_llvm()
    assert not check.ok
    assert "/no/such/python" in check.detail


def test_another_llvmlite_version_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    probe = 'print(\'{"llvmlite": "0.43.0", "llvm": "14.0.6", "amdgcn": false}\')'
    monkeypatch.setattr(doctor_cmd, "_LLVM_PROBE", probe)
    assert cli.main(["doctor"]) == 1
    text = capsys.readouterr().out
    assert "0.43.0 (flyllvm needs 0.50)" in text
    assert "fix: install llvmlite's wheel from PyPI" in text
    assert text.endswith("cannot compile here: llvmlite, amdgcn target\n")


def test_an_llvm_that_ends_its_process_is_reported_not_fatal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(doctor_cmd, "_LLVM_PROBE", "import os; os.abort()")
    assert cli.main(["doctor"]) == 1
    assert "it ended with status -6" in capsys.readouterr().out


def test_a_missing_simulator_package_fails_nothing(installed: Pretend, capsys: pytest.CaptureFixture[str]) -> None:
    installed("numpy", None)
    assert cli.main(["doctor"]) == 0
    assert "fix: run: python -m pip install numpy" in capsys.readouterr().out


def test_a_missing_hip_library_names_where_it_was_looked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.setattr(doctor_cmd, "_LOAD_PROBE", "raise SystemExit(1)")  # as if no loader path had it
    check = doctor_cmd.check_hip_library()
    assert not check.ok
    assert f"{tmp_path}/lib/libamdhip64.so ($ROCM_PATH)" in check.detail
    assert "set ROCM_PATH to the folder above lib/" in str(check.fix)


def test_a_versioned_hip_library_alone_asks_for_a_symlink(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libamdhip64.so.7").touch()
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    monkeypatch.setattr(doctor_cmd, "_LOAD_PROBE", "raise SystemExit(1)")
    assert "libamdhip64.so.7 is there, but hip-python opens libamdhip64.so only" in str(
        doctor_cmd.check_hip_library().fix
    )


def test_a_hip_library_that_does_not_load_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib/libamdhip64.so").write_bytes(b"not an ELF file")
    monkeypatch.setenv("ROCM_PATH", str(tmp_path))
    check = doctor_cmd.check_hip_library()
    assert not check.ok
    assert "does not load" in check.detail


def test_a_hip_library_that_loads_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    # Any library that loads will do.
    (folder,) = importlib.util.find_spec("llvmlite").submodule_search_locations  # type: ignore[union-attr, misc]
    (library,) = Path(folder, "binding").glob("libllvmlite.*")
    (tmp_path / "lib/libamdhip64.so").symlink_to(library)
    monkeypatch.delenv("ROCM_PATH", raising=False)
    monkeypatch.setenv("ROCM_HOME", str(tmp_path))
    check = doctor_cmd.check_hip_library()
    assert (check.ok, check.detail) == (True, f"{tmp_path}/lib/libamdhip64.so")
