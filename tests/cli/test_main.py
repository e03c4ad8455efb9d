"""The frame of the command: sub-commands, exit status, and where errors go."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flyllvm import LayoutError, SimError, __version__
from flyllvm.cli import main as cli

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Callable[..., int]:
    """Runs ``flyllvm link`` with a body of the test's own."""

    def run(body: Callable[[], int], *arguments: str) -> int:
        def declare(parser: argparse.ArgumentParser) -> cli.Run:
            parser.add_argument("--json", action="store_true")
            return lambda ns: body()

        monkeypatch.setitem(cli._DIRECT, "link", declare)
        return cli.main(["link", *arguments])

    return run


def raises(error: BaseException) -> Callable[[], int]:
    def body() -> int:
        raise error

    return body


def test_without_a_command_it_prints_the_usage_and_ends_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([]) == 2
    assert "usage: flyllvm COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_lists_every_command(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([flag]) == 0
    text = capsys.readouterr().out
    assert all(f"  {name} " in text for name in cli.COMMANDS)


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_every_command_explains_itself(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main([name, "--help"]) == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: flyllvm {name}")
    assert "--json" in text


def test_version_is_the_package_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"flyllvm {__version__}\n"


def test_an_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["layot"]) == 2
    assert "fix: did you mean 'layout'? the commands are: compile, sim," in capsys.readouterr().err


def test_a_missing_argument_points_to_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["link"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert "fix: see flyllvm link --help" in err


def test_an_error_is_text_on_stderr_with_status_2(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(raises(LayoutError("(4,8):(1,4) has no mode 2", "k.py:7", "modes are 0 and 1"))) == 2
    out, err = capsys.readouterr()
    assert (out, err) == ("", "error: k.py:7: (4,8):(1,4) has no mode 2\n  fix: modes are 0 and 1\n")


def test_an_error_is_an_object_on_stderr_under_json(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(raises(LayoutError("no mode 2", "k.py:7", "modes are 0 and 1")), "--json") == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert json.loads(err) == {
        "error": {"type": "LayoutError", "what": "no mode 2", "where": "k.py:7", "fix": "modes are 0 and 1"}
    }


def test_a_fault_found_by_the_simulator_is_a_failed_check(command: Callable[..., int]) -> None:
    assert command(raises(SimError("out-of-bounds load"))) == 1


def test_the_status_of_the_command_is_the_status_of_the_process(command: Callable[..., int]) -> None:
    assert command(lambda: 1) == 1


def test_a_missing_file_names_the_file_and_the_reason(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(lambda: len(open("no/such.o").read())) == 2  # noqa: SIM115
    assert "cannot use 'no/such.o': No such file or directory" in capsys.readouterr().err


def test_input_that_is_no_text_is_bad_input(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(lambda: len(b"\xff".decode())) == 2
    assert "fix: save it as UTF-8" in capsys.readouterr().err


def test_ctrl_c_is_one_word_and_status_130(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(raises(KeyboardInterrupt())) == 130
    assert capsys.readouterr().err == "interrupted\n"


def test_a_bug_keeps_its_traceback_and_has_its_own_status(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(raises(ZeroDivisionError("x"))) == 3
    err = capsys.readouterr().err
    assert "Traceback" in err
    assert err.endswith("error: this is a bug in flyllvm; please report the lines above\n")


def test_a_reader_that_goes_away_ends_it_in_silence() -> None:
    code = (
        "import sys; from flyllvm.cli import main as cli\n"
        "cli._DIRECT['link'] = lambda parser: lambda ns: print('x' * 10_000_000) or 0\n"
        "sys.exit(cli.main(['link']))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert (process.wait(), err) == (141, b"")


def test_python_dash_m_is_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flyllvm", "--version"], capture_output=True, text=True, env=ENVIRONMENT, check=True
    )
    assert done.stdout == f"flyllvm {__version__}\n"


def test_starting_the_command_loads_no_argument_parser_before_it_is_needed() -> None:
    code = "import sys, flyllvm.cli.main as m; m.main(['--version']); sys.exit('argparse' in sys.modules)"
    # -S: the start-up hooks of an editable install may load anything.
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"], capture_output=True
    )
    assert done.returncode == 0


def test_an_expression_that_begins_with_a_minus_is_told_how_to_be_written(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["layout", "4:1", "-1:1"]) == 2
    assert "write -- before the first argument that is no option but begins with '-'" in capsys.readouterr().err
    assert cli.main(["layout", "4:1", "--nonsense"]) == 2
    assert "write --" not in capsys.readouterr().err
    assert cli.main(["layout", "--", "-7", "4:1"]) == 0
    assert capsys.readouterr().out == "-7\n4:1\n"


def test_too_little_memory_is_bad_input(command: Callable[..., int], capsys: pytest.CaptureFixture[str]) -> None:
    assert command(raises(MemoryError("9 TiB"))) == 2
    assert "not enough memory: 9 TiB\n  fix: use smaller input" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["layout 4:1", "layout 4:1 --json", "atoms", "--help"])
@pytest.mark.parametrize("streams", [">&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_streams_that_the_caller_closed_are_no_bug(command: str, streams: str) -> None:
    line = f'exec "{sys.executable}" -m flyllvm {command} {streams}'
    done = subprocess.run(["sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_that_is_no_text_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ll"
    path.write_bytes(b"\xff\xfe")
    assert cli.main(["compile", str(path), "--arch", "gfx942"]) == 2
    said = capsys.readouterr().err
    assert f"{path} is not UTF-8 text" in said and "fix: pass fly IR or LLVM IR as text" in said
