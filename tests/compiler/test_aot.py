"""Kernels compiled ahead of time: a folder with a manifest, loaded without source and without LLVM."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm
from flyllvm.cli.main import main
from flyllvm.errors import CodegenError, FlyError, LinkError, TargetError

ROOT = Path(__file__).parents[2]

SOURCE = """
import flyllvm.compiler as flyc
import flyllvm.expr as fx

@flyc.kernel(known_block_size=(64, 1, 1))
def scale(x: fx.Tensor, n: fx.Int32, factor: int, shift: int = 0):
    i = fx.thread_idx.x
    x[i] = x[i] * factor + n + shift

@flyc.kernel
def broken(x: fx.Tensor):
    x[0] = x[0] + fx.no_such_thing
"""

CONFIG: dict[str, Any] = {
    "defaults": {"args": ["i32[64]{align=16}", "i32"], "arch": ["gfx942", "gfx1100"]},
    "kernels": [
        {"file": "mine.py:scale", "name": "scale_{factor}", "each": {"factor": [2, 3]}},
        {"file": "mine.py:scale", "name": "shifted", "constants": {"factor": 1, "shift": 5}, "arch": "gfx950"},
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the command has compiled; the source is gone."""
    base = tmp_path_factory.mktemp("aot")
    (base / "mine.py").write_text(SOURCE)
    (base / "kernels.json").write_text(json.dumps(CONFIG))
    assert main(["compile", "--config", str(base / "kernels.json"), "-o", str(base / "out")]) == 0
    (base / "mine.py").unlink()
    return base / "out"


@pytest.mark.llvm
def test_every_combination_is_in_the_manifest(folder: Path) -> None:
    rows = json.loads((folder / "manifest.json").read_text())["artifacts"]
    assert [(r["name"], r["target"]) for r in rows] == [
        ("scale_2", "gfx1100"), ("scale_2", "gfx942"), ("scale_3", "gfx1100"), ("scale_3", "gfx942"),
        ("shifted", "gfx950"),
    ]  # fmt: skip
    assert all((folder / r["file"]).read_bytes().startswith(b"\x7fELF") for r in rows)


@pytest.mark.llvm
@pytest.mark.sim
def test_a_loaded_kernel_runs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    x = np.arange(64, dtype=np.int32)
    assert flyllvm.load_artifact(folder, "scale_3", "gfx942").run(x, 7, grid=1) == "simulator"
    assert np.array_equal(x, np.arange(64) * 3 + 7)


@pytest.mark.llvm
def test_loading_needs_no_llvm_no_numpy_and_no_source(folder: Path) -> None:
    code = (
        "import sys; sys.modules['llvmlite'] = sys.modules['numpy'] = None\n"
        "import flyllvm\n"
        f"art = flyllvm.load_artifact({str(folder)!r}, 'scale_2', 'gfx942')\n"
        "k = art.code_object.kernels['scale']\n"
        "print(art.known_block_size, art.parameters, [str(s) for s in art.specs], k.vgpr_count > 0)\n"
        "print([m for m in sys.modules if m.startswith(('flyllvm.passes', 'flyllvm.codegen.emit', 'flyllvm.sim'))])\n"
    )
    done = subprocess.run(
        [sys.executable, "-B", "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines() == [
        "(64, 1, 1) ['x', 'n'] ['i32[64]:(1){align=16}', 'i32'] True",
        "[]",
    ]


@pytest.mark.llvm
def test_what_was_loaded_is_what_was_compiled(folder: Path, tmp_path: Path) -> None:
    loaded = flyllvm.load_artifact(folder, "shifted")
    flyllvm.save_artifacts(tmp_path, {"again": loaded})
    again = flyllvm.load_artifact(tmp_path, "again", "gfx950")
    assert again.code_object.image == loaded.code_object.image
    assert again.llvm_ir == loaded.llvm_ir and str(again.target) == "gfx950"
    with pytest.raises(CodegenError, match="compile the kernel to see"):
        print(again.fly_ir)


@pytest.mark.llvm
def test_the_name_and_the_target_must_be_clear(folder: Path) -> None:
    with pytest.raises(TargetError, match="choose arch"):
        flyllvm.load_artifact(folder, "scale_2")
    with pytest.raises(TargetError, match="no scale_2 for gfx950"):
        flyllvm.load_artifact(folder, "scale_2", "gfx950")
    with pytest.raises(LinkError, match="it holds: scale_2, scale_3, shifted"):
        flyllvm.load_artifact(folder, "scale_4")


@pytest.mark.llvm
@pytest.mark.parametrize("suffix", [".hsaco", ".ll"])
def test_a_changed_file_is_not_loaded(folder: Path, tmp_path: Path, suffix: str) -> None:
    for file in folder.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (victim,) = tmp_path.glob(f"shifted*{suffix}")
    victim.write_bytes(victim.read_bytes()[:-1])
    with pytest.raises(LinkError, match="compile the folder again"):
        flyllvm.load_artifact(tmp_path, "shifted")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        (None, "flyllvm compile --config"),
        ("{", "compile the folder again"),
        ('{"format": 9, "artifacts": []}', "format 1"),
    ],
)
def test_a_folder_without_a_manifest_is_refused(tmp_path: Path, text: str | None, fix: str) -> None:
    if text is not None:
        (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(LinkError, match=fix):
        flyllvm.load_artifact(tmp_path, "x")


@pytest.mark.parametrize(
    ("config", "fix"),
    [
        ({}, "write"),
        ({"kernels": []}, "write"),
        ({"kernels": [{"arch": "gfx942"}]}, "add file"),
        ({"kernels": [{"file": "mine.py"}]}, "add arch"),
        ({"kernels": [{"file": "mine.py", "arch": "gfx942", "size": 3}]}, "fields are"),
        ({"kernels": [{"file": 3, "arch": "gfx942"}]}, "--config"),
        ({"kernels": [3]}, "an object"),
        ({"kernel": [], "kernels": [{}]}, "fields are"),
        ({"kernels": [{"file": "a.py", "arch": "gfx942", "each": {"n": 1}}]}, "list of values"),
        ({"kernels": [{"file": "a.py", "arch": "gfx942", "each": {"n": [1, 2]}}]}, "into the name"),
        ({"kernels": [{"file": "a.py", "arch": "gfx942", "name": "{m}"}]}, "the values are: none"),
    ],
)
def test_a_malformed_configuration_is_refused(
    tmp_path: Path, config: Any, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "c.json").write_text(json.dumps(config))
    assert main(["compile", "--config", str(tmp_path / "c.json"), "-o", str(tmp_path / "out")]) == 2
    assert fix in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("args", "fix"),
    [
        ([], "give one of them"),
        (["x.py", "--config", "c.json"], "give one of them"),
        (["--config", "c.json"], "-o FOLDER"),
        (["--config", "c.json", "-o", "out", "--arch", "gfx942"], "says it per kernel"),
    ],
)
def test_options_that_do_not_fit_are_refused(args: list[str], fix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compile", *args]) == 2
    assert fix in capsys.readouterr().err


@pytest.mark.llvm
def test_one_broken_kernel_writes_nothing_and_all_errors_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.py").write_text(SOURCE)
    kernels = [
        {"file": "mine.py:broken", "args": ["i32[64]"], "arch": ["gfx942", "gfx950"]},
        {"file": "mine.py:scale", "args": ["i32[64]", "i32"], "arch": "gfx942", "constants": {"factor": 2}},
    ]
    (tmp_path / "c.json").write_text(json.dumps({"kernels": kernels}))
    assert main(["compile", "--config", str(tmp_path / "c.json"), "-o", str(tmp_path / "out")]) == 2
    said = capsys.readouterr().err
    assert "broken for gfx942" in said and "broken for gfx950" in said and "no_such_thing" in said
    assert not (tmp_path / "out").exists()


def test_a_name_that_is_no_file_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FlyError, match="use letters"):
        flyllvm.save_artifacts(tmp_path, {"../up": []})
