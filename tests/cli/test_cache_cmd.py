"""``flyllvm cache``."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from flyllvm.cli.main import main
from flyllvm.compiler.cache.store import Cache


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cache:
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", str(tmp_path))
    made = Cache(str(tmp_path))
    for i in range(3):
        made.put("image", f"k{i}", {"name": f"kernel{i}", "target": "gfx942"}, {"image": bytes(1000)})
        age = 1_000_000 * (3 - i)
        info = os.stat(made.path("image", f"k{i}"))
        os.utime(made.path("image", f"k{i}"), (info.st_mtime - age, info.st_mtime - age))
    return made


def test_list_names_every_entry_the_oldest_first(cache: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[:3]] == ["kernel0", "kernel1", "kernel2"]
    assert all("gfx942" in line for line in lines[:3])
    assert lines[3].startswith(f"{cache.root}: 3 entries, {cache.total_bytes()} of ")


def test_json_tells_damaged_entries(cache: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    os.truncate(cache.path("image", "k1"), 50)
    assert main(["cache", "list", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["directory"] == cache.root and body["bytes"] == cache.total_bytes()
    assert {r["file"]: r["damaged"] for r in body["entries"]} == {
        "image-k0.entry": False,
        "image-k1.entry": True,
        "image-k2.entry": False,
    }


def test_prune_keeps_the_size_or_the_age(cache: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "prune", "--days", "30", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["removed"] == 1
    assert main(["cache", "prune", "--size", "2K", "--json"]) == 0
    body = json.loads(capsys.readouterr().out)
    assert body["removed"] == 1 and body["bytes"] <= 2048
    assert cache.get("image", "k2") is not None


def test_clear_leaves_nothing(cache: Cache, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", "clear"]) == 0
    assert "removed 3 entries" in capsys.readouterr().out
    assert cache.total_bytes() == 0


@pytest.mark.parametrize(
    ("args", "fix"),
    [
        (["clear", "--size", "1M"], "belong to prune"),
        (["prune", "--days", "-1"], "0 or more"),
        (["prune", "--size", "huge"], "512M"),
    ],
)
def test_wrong_options_are_refused(cache: Cache, args: list[str], fix: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cache", *args]) == 2
    assert fix in capsys.readouterr().err
    assert cache.total_bytes() > 3000


def test_a_directory_that_cannot_be_used_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", str(tmp_path / "file"))
    assert main(["cache"]) == 2
    assert "set FLYLLVM_CACHE_DIR" in capsys.readouterr().err
