"""``flyllvm inspect`` and ``flyllvm link`` through the front door."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from flyllvm.cli.main import main
from flyllvm.codeobject import link
from tests.codeobject.images import FIXTURES, lld_bytes, object_bytes

GEMM_OBJECT = str(FIXTURES / "gemm_gfx942.o")


def test_inspect_prints_the_kernels(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", GEMM_OBJECT]) == 0
    out = capsys.readouterr().out
    assert out.startswith("object file (not linked yet) for gfx942") and "gemm" in out


def test_inspect_prints_the_same_for_our_link_and_that_of_lld(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seen = []
    for image in (link(object_bytes("three_kernels_gfx942")), lld_bytes("three_kernels_gfx942")):
        (tmp_path / "k.hsaco").write_bytes(image)
        assert main(["inspect", str(tmp_path / "k.hsaco"), "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        seen.append((data["kernels"], data["metadata"], data["target"], data["exported"]))
    assert seen[0] == seen[1]


def test_link_does_not_overwrite_its_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.o"
    path.write_bytes(object_bytes("gemm_gfx942"))
    assert main(["link", str(path), "-o", str(tmp_path / "." / "k.o")]) == 2
    assert "is the input\n  fix: give another name with -o" in capsys.readouterr().err
    assert path.read_bytes() == object_bytes("gemm_gfx942")


def test_link_writes_what_a_symbolic_link_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    real, name = tmp_path / "real.hsaco", tmp_path / "name.hsaco"
    real.write_bytes(b"old")
    name.symlink_to(real)
    assert main(["link", GEMM_OBJECT, "-o", str(name)]) == 0
    assert name.is_symlink() and real.read_bytes() == link(object_bytes("gemm_gfx942"))


def test_a_closed_standard_output_is_no_bug() -> None:
    command = f'exec "{sys.executable}" -m flyllvm inspect "{GEMM_OBJECT}" >&-'
    done = subprocess.run(["sh", "-c", command], stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode in (0, 2) and "Traceback" not in done.stderr


def test_link_writes_the_image_and_a_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gemm.hsaco"
    assert main(["link", GEMM_OBJECT, "-o", str(out)]) == 0
    assert out.read_bytes() == link(object_bytes("gemm_gfx942"))
    assert "for gfx942, code object version 5: gemm" in capsys.readouterr().out


def test_link_speaks_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "gemm.hsaco"
    assert main(["link", GEMM_OBJECT, "-o", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "output": str(out),
        "size_bytes": out.stat().st_size,
        "target": "gfx942",
        "code_object_version": 5,
        "kernels": ["gemm"],
    }


@pytest.mark.parametrize("command", ["inspect", "link"])
@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"MZ this is no ELF", "byte 0x0: not an ELF file"),
        (object_bytes("gemm_gfx942")[:3000], "cut off"),
        (object_bytes("gemm_gfx942")[:18] + b"\x3e" + object_bytes("gemm_gfx942")[19:], "machine 62 (x86-64)"),
    ],
)
def test_bad_files_end_with_status_2_and_leave_nothing(
    command: str, data: bytes, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.o"
    path.write_bytes(data)
    output = ["-o", str(tmp_path / "out.hsaco")] if command == "link" else []
    assert main([command, str(path), *output]) == 2
    captured = capsys.readouterr()
    assert words in captured.err and str(path) in captured.err and not captured.out
    assert os.listdir(tmp_path) == ["bad.o"]


def test_a_missing_file_ends_with_status_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["inspect", str(tmp_path / "none.o")]) == 2
    assert "cannot read the file: No such file" in capsys.readouterr().err


def test_an_endless_file_is_refused(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("flyllvm.codeobject.files.LARGEST_STREAM", 1 << 22)
    assert main(["inspect", "/dev/zero"]) == 2
    assert "/dev/zero: more than 4194304 bytes\n  fix: pass an object file" in capsys.readouterr().err


def test_a_file_too_large_for_an_object_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "big.o"
    with path.open("wb") as file:
        file.truncate((1 << 30) + 1)  # sparse
    assert main(["inspect", str(path)]) == 2
    assert f"{path}: more than 1073741824 bytes" in capsys.readouterr().err


def test_an_object_is_read_from_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    data = object_bytes("gemm_gfx942")
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    assert main(["inspect", str(path)]) == 0
    writer.join()
    assert "gemm" in capsys.readouterr().out
