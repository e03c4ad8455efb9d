"""What an import may load: the compile path starts without the heavy packages.

Counted in modules, not in milliseconds: a busy machine makes no difference.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

# dataclasses and inspect are on the list because each costs more than a whole room of ours.
HEAVY = {"numpy", "ml_dtypes", "llvmlite", "hip", "rocm", "multiprocessing", "dataclasses", "inspect"}


def modules_loaded_by(statement: str) -> dict[str, int]:
    """Modules that a fresh Python loads for `statement`, beyond its own start: name -> microseconds of its own."""

    def loaded(code: str) -> dict[str, int]:
        # -S: what an editable install does at start-up is not ours; the path is given instead.
        done = subprocess.run(
            [sys.executable, "-X", "importtime", "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n{code}"],
            capture_output=True,
            text=True,
            check=True,
        )
        table = {}
        for line in done.stderr.splitlines():
            own, _, name = line.removeprefix("import time:").split("|")
            if own.strip().isdigit():
                table[name.strip()] = int(own)
        return table

    bare = loaded("pass")
    return {name: own for name, own in loaded(statement).items() if name not in bare}


def heavy_ones(statement: str) -> list[str]:
    return sorted({name.split(".")[0] for name in modules_loaded_by(statement)} & HEAVY)


@pytest.mark.parametrize(
    "statement",
    [
        "import flyllvm",
        "import flyllvm, flyllvm.compiler, flyllvm.expr",
        "import flyllvm.layout",
        "import flyllvm.codegen",
        "import flyllvm.codeobject",
        "import flyllvm.atoms.rocdl",
        "import flyllvm.cli.main",
        "from flyllvm import Target, FlyError",
    ],
)
def test_the_compile_path_imports_no_heavy_package(statement: str) -> None:
    assert heavy_ones(statement) == []


def test_the_compiler_starts_without_what_only_annotations_texts_and_entries_need() -> None:
    loaded = modules_loaded_by("import flyllvm, flyllvm.compiler, flyllvm.expr")
    dear = {"typing", "re", "enum", "json", "ast", "copy", "threading", "functools", "collections", "contextlib"}
    assert dear & set(loaded) == set()


def test_words_that_no_signature_needs_are_loaded_when_they_are_used() -> None:
    start = "import flyllvm.compiler, flyllvm.expr as fx"
    assert not {"flyllvm.expr.rocdl", "flyllvm.expr.gpu", "flyllvm.atoms"} & set(modules_loaded_by(start))
    assert "flyllvm.expr.gpu" in modules_loaded_by(f"{start}; fx.thread_idx")
    assert "flyllvm.expr.rocdl" in modules_loaded_by(f"{start}; fx.rocdl")


def test_importing_flyllvm_loads_no_room() -> None:
    ours = {name for name in modules_loaded_by("import flyllvm") if name.startswith("flyllvm")}
    assert ours == {"flyllvm"}


def test_the_check_sees_a_heavy_import() -> None:
    assert "numpy" in heavy_ones("import flyllvm, numpy")
