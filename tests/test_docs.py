"""Every example in README.md, CONTRIBUTING.md, ARCHITECTURE.md and docs/*.md runs and prints what the page says.

- ``python`` blocks run in order, one namespace per page; the text they print is not compared, their asserts are.
- ``pycon`` blocks (``>>>``) run the same way, and their output is compared.
- ``console`` blocks (``$ command``) run in a shell in a scratch folder with ``examples/`` in it; their output
  (stdout, then stderr) is compared. A line ``...`` stands for any lines, ``...`` at the end of a line for its rest. A
  last line ``[status 2]`` names the exit status where it is not 0.
- ``sh`` blocks are set-up for a reader's machine and do not run.
"""

from __future__ import annotations

import doctest
import linecache
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")])
LANGUAGES = {"python", "pycon", "console", "sh", "text", "toml", "llvm", "mlir"}
BLOCK = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```", re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def environment() -> Iterator[None]:
    """Variables that a page sets are its own."""
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


class Block:
    """A fenced block: its language, text, and the line of the page it starts on."""

    __slots__ = ("language", "line", "text")

    def __init__(self, language: str, text: str, line: int) -> None:
        self.language = language
        self.text = text
        self.line = line


def blocks_of(page: str) -> list[Block]:
    return [Block(m[1], m[2], page.count("\n", 0, m.start()) + 2) for m in BLOCK.finditer(page)]


def run_page(page: str, name: str, folder: Path) -> list[str]:
    """Runs every example of a page in `folder`; returns what differs from the page."""
    failures: list[str] = []
    namespace: dict[str, object] = {"__name__": "__page__"}
    blocks = blocks_of(page)
    # A kernel is traced from the source of its file: of the page, its Python.
    lines = [""] * (page.count("\n") + 1)
    for block in blocks:
        if block.language == "python":
            text = block.text.splitlines()
            lines[block.line - 1 : block.line - 1 + len(text)] = text
    linecache.cache[name] = (len(page), None, [f"{line}\n" for line in lines], name)
    for block in blocks:
        where = f"{name}:{block.line}"
        if block.language == "python":
            # Blank lines in front keep the page's line numbers in tracebacks.
            exec(compile("\n" * (block.line - 1) + block.text, name, "exec"), namespace)
        elif block.language == "pycon":
            failures += run_pycon(block, where, namespace)
        elif block.language == "console":
            failures += run_console(block, where, folder)
    return failures


def run_pycon(block: Block, where: str, namespace: dict[str, object]) -> list[str]:
    test = doctest.DocTestParser().get_doctest(block.text, {}, where, None, 0)
    test.globs = namespace
    said: list[str] = []
    doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append, clear_globs=False)
    return ["".join(said)] if said else []


def run_console(block: Block, where: str, folder: Path) -> list[str]:
    failures = []
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        # A command goes on where its line ends with a backslash.
        command, expected = re.fullmatch(r"((?:[^\n]*\\\n)*[^\n]*)\n?(.*)", part, re.DOTALL).groups()  # type: ignore[union-attr]
        actual = run_command(command, folder)
        if not matches(expected, actual):
            failures.append(f"{where}: $ {command}\nthe page says:\n{expected}\nit printed:\n{actual}")
    return failures


def run_command(command: str, folder: Path) -> str:
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]),
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "120",
    }
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    status = f"[status {done.returncode}]\n" if done.returncode else ""
    return done.stdout + done.stderr + status


def matches(expected: str, actual: str) -> bool:
    pattern = ""
    for line in expected.rstrip("\n").splitlines():
        if line.strip() == "...":
            pattern += r"(?:[^\n]*\n)*?"
        elif line.endswith("..."):
            pattern += re.escape(line[:-3].rstrip()) + r"[^\n]*\n"
        else:
            pattern += re.escape(line.rstrip()) + r"[ ]*\n"
    return re.fullmatch(pattern, actual) is not None


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A scratch folder with the examples and, where flyllvm is not installed, a ``flyllvm`` command."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("__pycache__"))
    command = tmp_path / "bin" / "flyllvm"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m flyllvm "$@"\n')
    command.chmod(0o755)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_of_the_page_runs(page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    failures = run_page(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)), folder)
    assert not failures, "\n\n".join(failures)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_the_page_names_a_known_language(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    unknown = [f"{page.name}:{b.line}: {b.language!r}" for b in blocks_of(text) if b.language not in LANGUAGES]
    assert not unknown, f"use one of {sorted(LANGUAGES)}: {unknown}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_of_the_project_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
    dead = [link for link in links if not (page.parent / link).exists()]
    assert not dead


@pytest.mark.parametrize(
    "page",
    [
        "```pycon\n>>> 1 + 1\n3\n```\n",
        "```console\n$ echo a\nb\n```\n",
        "```console\n$ echo a\n```\n",
        "```console\n$ exit 2\n```\n",
        "```console\n$ echo a b\nb ...\n```\n",
        "```console\n$ printf 'a\\nb\\nc\\n'\na\n...\nd\n```\n",
    ],
)
def test_a_wrong_example_is_found(page: str, tmp_path: Path) -> None:
    assert run_page(page, "page.md", tmp_path)


@pytest.mark.parametrize(
    "page",
    [
        "```python\nx = 1\n```\ntext\n```pycon\n>>> x + 1\n2\n```\n",
        "```console\n$ printf 'a\\nb\\nc\\n'\na\n...\nc\n$ echo \\\n  d\nd\n```\n",
        "```console\n$ echo a b c\na b ...\n```\n",
        "```console\n$ echo bad >&2; exit 2\nbad\n[status 2]\n```\n",
        "```sh\nrm -rf examples\n```\n",
    ],
)
def test_a_right_example_passes(page: str, tmp_path: Path) -> None:
    assert run_page(page, "page.md", tmp_path) == []


def test_a_failing_python_block_fails_its_page(tmp_path: Path) -> None:
    with pytest.raises(AssertionError):
        run_page("```python\nassert 1 + 1 == 3\n```\n", "page.md", tmp_path)
