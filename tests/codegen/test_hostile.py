"""Hostile modules: each is a clear error, the process lives, and no worker is left behind."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from flyllvm.cli.main import main
from flyllvm.codegen import Options
from flyllvm.codegen.client import WorkerPool, default_pool
from flyllvm.compiler.pipeline import Timings, code_of_text
from flyllvm.errors import FlyError
from flyllvm.target import Target
from tests.codegen.hostile import BUSY, CASES
from tests.codegen.kernels import GFX942

pytestmark = pytest.mark.llvm

GOOD = "define amdgpu_kernel void @k(ptr addrspace(1) %p) {\n  store i32 1, ptr addrspace(1) %p\n  ret void\n}\n"
QUICK = [name for name in CASES if name not in BUSY]
SAVED = re.compile(r"; (it|the module) is saved as \S+?\.ll(, and a new worker takes the next one)?")


def children() -> dict[int, str]:
    """Child processes of this one, with their states; ended ones that nobody has waited for are among them."""
    out = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid():
                out[int(entry.name)] = fields[0]
    return out


def _since(before: dict[int, str]) -> dict[int, str]:
    """The children that were not there before; what other tests left behind is theirs."""
    return {pid: state for pid, state in children().items() if pid not in before}


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    """One worker for all modules; at the end it compiles, and then no process is there that was not before."""
    before = children()
    made = WorkerPool()
    yield made
    code, said = code_of_text(GOOD, GFX942, Options(), Timings(), pool=made)
    assert list(code.kernels) == ["k"] and not said
    # The command, below, uses the common pool.
    common = {worker.pid for worker in default_pool()._idle}
    (last,) = {worker.pid for worker in made._idle}
    assert _since(before).keys() <= common | {last} and "Z" not in _since(before).values()
    made.close()
    assert _since(before).keys() <= common


def refused(name: str, pool: WorkerPool, timeout: float) -> FlyError:
    text, arch = CASES[name]
    with pytest.raises(FlyError) as caught:
        code_of_text(
            text, Target.parse(arch), Options(), Timings(), pool=pool, timeout=timeout, memory_limit_bytes=2 << 30
        )
    return caught.value


def test_there_are_two_hundred_of_them() -> None:
    assert len(CASES) >= 200 and len(set(CASES.values())) == len(CASES)


@pytest.fixture
def said(golden: Callable[[str, str], None], request: pytest.FixtureRequest) -> Iterator[dict[str, str]]:
    messages: dict[str, str] = {}
    yield messages
    golden("hostile.txt", "".join(f"{name}\n{text}\n\n" for name, text in messages.items()))


def test_each_is_a_clear_error_and_the_process_lives(
    pool: WorkerPool, said: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYLLVM_DUMP_DIR", str(tmp_path))
    for name in QUICK:
        error = refused(name, pool, 60)
        assert error.what and error.fix, name
        assert len(str(error)) < 2500, name
        text = re.sub(r"0x[0-9a-f]{6,}", "0x...", SAVED.sub("", str(error)))
        said[name] = "\n".join(f"    {type(error).__name__}: {line}" if not i else f"    {line}"
                               for i, line in enumerate(text.splitlines()))  # fmt: skip


@pytest.mark.parametrize("name", sorted(BUSY))
def test_what_keeps_llvm_busy_is_ended(
    name: str, pool: WorkerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYLLVM_DUMP_DIR", str(tmp_path))
    error = refused(name, pool, 0.3)
    assert error.fix is not None
    assert ("did not finish within 0.3 s" in error.what and "allow more time with timeout=" in error.fix) or (
        "allow more memory with memory_limit_bytes=" in error.fix
    )


@pytest.mark.parametrize(
    "name", ["prose", "recursion", "LDS over 64 KiB", "LDS of 2**40", "big endian", "call of printf", "private kernel"]
)
def test_the_command_says_so_and_ends_with_status_2(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYLLVM_DUMP_DIR", str(tmp_path / "dump"))
    path = tmp_path / "k.ll"
    path.write_text(CASES[name][0])
    assert main(["compile", str(path), "--arch", CASES[name][1], "-o", str(tmp_path / "out")]) == 2
    out, err = capsys.readouterr()
    assert not out and err.startswith("error: ") and "\n  fix: " in err
    assert not (tmp_path / "out").exists()


def test_the_command_prints_llvms_warnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ll"
    path.write_text(GOOD.replace(") {", ') "amdgpu-waves-per-eu"="99" {'))
    assert main(["compile", str(path), "--arch", "gfx942"]) == 0
    assert "warning: LLVM: " in (err := capsys.readouterr().err) and "desired occupancy was 99" in err


def test_the_command_is_given_its_time(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYLLVM_DUMP_DIR", str(tmp_path / "dump"))
    path = tmp_path / "k.ll"
    path.write_text(CASES["20000 products"][0])
    assert main(["compile", str(path), "--arch", "gfx942", "--timeout", "0.3"]) == 2
    assert "did not finish within 0.3 s" in (err := capsys.readouterr().err) and "the command: --timeout" in err
    assert main(["compile", str(path), "--arch", "gfx942", "--timeout", "-1"]) == 2
    assert "invalid" in capsys.readouterr().err
