"""The disk cache: what its keys hold, and what becomes of a damaged entry."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import flyllvm.compiler as flyc
from flyllvm.compiler.cache import json_text, store
from flyllvm.compiler.cache.entry import Damaged, decode, encode
from flyllvm.compiler.cache.store import Cache, parse_size
from flyllvm.compiler.cache.world import Unknown, World
from flyllvm.errors import CodegenError

ROOT = Path(__file__).parents[2]

KERNEL = """
import flyllvm.compiler as flyc
import flyllvm.expr as fx
{before}

def helper(x):
    return x * {factor}

@flyc.kernel(known_block_size=(64, 1, 1))
def scale(x: fx.Tensor{more}):
    i = fx.thread_idx.x
    x[i] = helper(x[i]) + SHIFT
"""

COMPILE = """
import sys
{block}
sys.path.insert(0, {folder!r})
import mine
import flyllvm.compiler as flyc
art = flyc.compile(mine.scale, {specs}, arch={arch!r}, **{options!r})
heavy = [m for m in ("numpy", "llvmlite", "flyllvm.passes", "flyllvm.codegen.emit", "ast") if sys.modules.get(m)]
stages = sorted(k for k in art.timings.stages if k in ("worker", "fly"))
print(art.from_cache, stages, len(art.code_object.image), heavy)
"""


@pytest.fixture
def cached(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Switches the cache on, in a directory of its own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("FLYLLVM_CACHE", "1")
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", str(folder))
    return folder


class Author:
    """A kernel author's file, compiled in fresh processes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def write(self, *, factor: str = "2", before: str = "SHIFT = 1", more: str = "") -> None:
        (self.folder / "mine.py").write_text(KERNEL.format(factor=factor, before=before, more=more))

    def compile(
        self, specs: str = "'i32[64]'", arch: str = "gfx942", options: dict[str, Any] | None = None, **env: str
    ) -> str:
        code = COMPILE.format(
            block=env.pop("BLOCK", ""), folder=str(self.folder), specs=specs, arch=arch, options=options or {}
        )
        environment = {**os.environ, "PYTHONPATH": str(ROOT), **env}
        done = subprocess.run(
            [sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


@pytest.fixture
def author(cached: Path, tmp_path: Path) -> Author:
    made = Author(tmp_path / "author")
    made.write()
    return made


def hit(said: str) -> bool:
    return said.startswith("source []")


def image_size(said: str) -> str:
    return said.split("]")[1].split()[0]


def missed(said: str) -> bool:
    return said.startswith("None ['fly', 'worker']")


@pytest.mark.llvm
def test_a_second_process_neither_traces_nor_loads_llvm_or_numpy(author: Author) -> None:
    first = author.compile()
    assert missed(first)
    second = author.compile(BLOCK="sys.modules['llvmlite'] = None; sys.modules['numpy'] = None")
    assert hit(second) and second.endswith("[]")
    assert image_size(first) == image_size(second)


@pytest.mark.llvm
@pytest.mark.parametrize(
    "change",
    [
        {"factor": "3"},
        {"before": "SHIFT = 2"},
        {"before": "SHIFT = 1  # a comment moves no line, and the text counts all the same"},
        {"more": ", y: fx.Tensor = None"},
    ],
    ids=["helper", "global", "text", "signature"],
)
def test_what_the_source_says_is_in_the_key(author: Author, change: dict[str, str]) -> None:
    author.compile()
    author.write(**change)
    assert not hit(author.compile())


@pytest.mark.llvm
def test_the_same_llvm_ir_is_not_compiled_twice(author: Author) -> None:
    author.compile()
    author.write(before="SHIFT = 1  # nothing that reaches LLVM")
    assert author.compile().startswith("None ['fly']")


@pytest.mark.llvm
def test_specs_targets_options_and_hints_are_in_the_key(author: Author) -> None:
    author.compile()
    for other in (
        {"specs": "'i32[128]'"},
        {"specs": "'i32[?]'"},
        {"arch": "gfx950"},
        {"arch": "gfx942:xnack-"},
        {"options": {"opt_level": 2}},
        {"options": {"waves_per_eu": 2}},
        {"options": {"debug": False}},
    ):
        assert not hit(author.compile(**other)), other  # type: ignore[arg-type]
        assert hit(author.compile(**other)), other  # type: ignore[arg-type]


@pytest.mark.llvm
def test_visible_devices_are_not_in_the_key(author: Author) -> None:
    author.compile(HIP_VISIBLE_DEVICES="0")
    assert hit(author.compile(HIP_VISIBLE_DEVICES="1", ROCR_VISIBLE_DEVICES="3", FLYLLVM_DEVICE="sim"))


@pytest.mark.llvm
@pytest.mark.parametrize("where", ["option", "environment"])
def test_the_cache_can_be_left_out(author: Author, cached: Path, where: str) -> None:
    given: dict[str, Any] = {"options": {"cache": False}} if where == "option" else {"FLYLLVM_CACHE": "0"}
    assert missed(author.compile(**given))
    assert missed(author.compile(**given))
    assert not list(cached.glob("v1/image-*"))


@pytest.mark.llvm
@pytest.mark.parametrize("damage", ["cut", "flip", "empty", "other entry", "garbage"])
def test_a_damaged_entry_is_compiled_again(author: Author, cached: Path, damage: str) -> None:
    good = author.compile()
    files = sorted(cached.glob("v1/*.entry"))
    assert len(files) == 3
    before = {f: f.read_bytes() for f in files}
    for file, data in before.items():
        new = {
            "cut": data[:-7],
            "flip": data[:-9] + bytes([data[-9] ^ 1]) + data[-8:],
            "empty": b"",
            "other entry": before[files[0]] if file != files[0] else before[files[1]],
            "garbage": bytes(range(256)) * 8,
        }[damage]
        file.write_bytes(new)
    again = author.compile()
    assert missed(again)
    assert image_size(again) == image_size(good)
    assert {f: f.read_bytes() for f in files if not f.name.startswith("self")} == {
        f: d for f, d in before.items() if not f.name.startswith("self")
    }
    assert hit(author.compile())


# --- entries and the directory ------------------------------------------------------------------------


def test_an_entry_comes_back_as_it_was() -> None:
    facts, parts = decode(encode({"a": [1, None]}, {"image": b"\x7fELF\0\n", "text": "α\n" * 99}))
    assert facts == {"a": [1, None]}
    assert parts == {"image": b"\x7fELF\0\n", "text": "α\n" * 99}


@pytest.mark.parametrize(
    "value",
    [{}, {"a": [1, -2, 1.5, True, None], "b": {"c": '\u00e4\n"\\\ud83d\ude00'}}, [], [[]], "x", 10**30, 1e9],
)
def test_json_without_the_package_is_json(value: Any) -> None:
    text = json_text.dumps(value)
    assert json.loads(text) == json_text.loads(text) == json.loads(json.dumps(value))
    assert json_text.loads(json.dumps(value)) == json.loads(json.dumps(value))


@pytest.mark.parametrize("text", ["", "{", "[1,", '{"a": }', "nul", '{"a": 1} x', "NaN", '"\n"'])
def test_what_is_no_json_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        json_text.loads(text)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {"a": object()}, b"x"])
def test_what_json_cannot_hold_is_refused(value: Any) -> None:
    with pytest.raises((ValueError, TypeError), match="is no JSON"):
        json_text.dumps(value)


def test_every_shorter_or_changed_entry_is_damaged() -> None:
    data = encode({"k": "v"}, {"image": b"12345", "text": "x"})
    for n in range(len(data)):
        for bad in (data[:n], data[:n] + bytes([data[n] ^ 4]) + data[n + 1 :]):
            with pytest.raises(Damaged):
                decode(bad)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mode bits")
def test_the_directory_is_its_owners_alone(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path / "new"))
    cache.put("image", "k", {}, {"image": b"x"})
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700
    (file,) = (tmp_path / "new" / "v1").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no mode bits")
def test_a_directory_that_others_can_write_is_not_read(tmp_path: Path) -> None:
    Cache(str(tmp_path)).put("image", "k", {}, {"image": b"x"})
    os.chmod(tmp_path / "v1", 0o777)
    cache = Cache(str(tmp_path))
    assert cache.get("image", "k") is None
    assert cache.why_off is not None and "chmod 700" in cache.why_off


def test_a_directory_that_cannot_be_made_switches_the_cache_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FLYLLVM_CACHE", "1")
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", str(tmp_path / "file" / "below"))
    assert store.open_cache() is None


def test_the_entries_used_last_stay(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), 1_000_000)
    for i in range(20):
        cache.put("image", f"k{i}", {}, {"image": bytes(1000)})
        os.utime(cache.path("image", f"k{i}"), (1000 + i, 1000 + i))
    assert cache.get("image", "k0") is not None  # used now
    count, freed = cache.prune(10_000)
    assert count > 0 and freed > 0 and cache.total_bytes() <= 9_000
    assert cache.get("image", "k0") is not None and cache.get("image", "k19") is not None
    assert cache.get("image", "k1") is None


def test_the_size_is_bounded_without_being_asked(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path), 50_000)
    for i in range(3 * store._STORES_PER_CHECK):
        cache.put("image", f"k{i}", {}, {"image": bytes(1000)})
    most = 50_000 + (store._STORES_PER_CHECK + 1) * 1200
    assert 0 < cache.total_bytes() <= most < 3 * store._STORES_PER_CHECK * 1000


def test_left_over_parts_go_when_they_are_old(tmp_path: Path) -> None:
    cache = Cache(str(tmp_path))
    old, new = tmp_path / "v1" / "image-a.1.part", tmp_path / "v1" / "image-b.1.part"
    old.write_text("")
    new.write_text("")
    os.utime(old, (1, 1))
    cache.prune()
    assert not old.exists() and new.exists()


@pytest.mark.parametrize(("text", "size"), [("12", 12), ("3k", 3 << 10), ("5M", 5 << 20), ("2G", 2 << 30)])
def test_sizes_have_units(text: str, size: int) -> None:
    assert parse_size(text, "x") == size


@pytest.mark.parametrize("text", ["", "M", "-1", "1.5G", "1T"])
def test_a_size_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(CodegenError, match="512M"):
        parse_size(text, "FLYLLVM_CACHE_SIZE")


def test_many_threads_see_whole_entries_only(tmp_path: Path, full: bool) -> None:
    cache = Cache(str(tmp_path))
    contents = [bytes([i]) * 20_000 for i in range(4)]
    wrong: list[object] = []

    def work(seed: int) -> None:
        for i in range(1000 if full else 60):
            n = (seed + i) % 4
            cache.put("image", str(n), {"n": n}, {"image": contents[n]})
            found = cache.get("image", str((n + 1) % 4))
            if found is not None and found[1]["image"] != contents[(n + 1) % 4]:
                wrong.append(found[0])

    threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
    assert not list((tmp_path / "v1").glob("*.part"))


# --- what a kernel reads ------------------------------------------------------------------------------

SCALE = 3


def plain(x: Any) -> Any:
    return x * SCALE


def reads_the_clock(x: Any) -> Any:
    return x + os.getpid()


def reads_an_object(x: Any) -> Any:
    return x + LOCK.locked()


def imports_late(x: Any) -> Any:
    import colorsys

    return colorsys.rgb_to_hls(x, x, x)


def evaluates(x: Any) -> Any:
    return eval("SCALE") * x


LOCK = threading.Lock()


@pytest.mark.parametrize(
    ("fn", "why"),
    [
        (reads_the_clock, "posix.getpid|nt.getpid"),
        (reads_an_object, "lock"),
        (imports_late, "colorsys, imported while imports_late runs"),
        (evaluates, r"through eval\(\)"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_what_has_no_value_is_named(fn: Callable[..., Any], why: str) -> None:
    with pytest.raises(Unknown, match=why):
        World(fn)


def test_a_global_is_taken_by_value(monkeypatch: pytest.MonkeyPatch) -> None:
    before = World(plain).sum
    monkeypatch.setitem(plain.__globals__, "SCALE", 4)
    assert World(plain).sum != before
    monkeypatch.setitem(plain.__globals__, "SCALE", 3.0)
    assert World(plain).sum != before
    monkeypatch.setitem(plain.__globals__, "SCALE", 3)
    assert World(plain).sum == before


class Config:
    """Compile-time values of an author."""

    def __init__(self, size: int) -> None:
        self.size = size

    def half(self) -> int:
        return self.size // 2


def test_values_differ_where_a_kernel_could_tell() -> None:
    values: list[Any] = [
        0, 0.0, -0.0, False, None, "", b"", "0", (), [], {}, (0,), [0], {0: 0}, {"0": 0}, frozenset(), {1}, {"1"},
        Config(1), Config(2), 1j, range(3), range(0, 4, 2), ..., ((), ()), ((),), (1, (2, 3)), ((1, 2), 3),
        {"a": 1, "b": 2}, {"b": 2, "a": 1}, int, float, Config, lambda: 1, lambda: 2,
    ]  # fmt: skip
    sums = [World(v).sum for v in values]
    assert len(set(sums)) == len(sums)


def test_equal_values_of_two_objects_have_one_sum() -> None:
    assert World(Config(7), [1, {2: "x"}]).sum == World(Config(7), [1, {2: "x"}]).sum


def test_closures_and_defaults_count() -> None:
    def make(n: int, d: int) -> Any:
        def inner(x: int, y: int = d) -> int:
            return x + n + y

        return inner

    assert World(make(1, 2)).sum == World(make(1, 2)).sum
    assert len({World(make(a, b)).sum for a in (1, 2) for b in (1, 2)}) == 4


def test_what_contains_itself_ends() -> None:
    loop: list[Any] = [1]
    loop.append(loop)
    other: list[Any] = [1]
    other.append([1, other])
    assert World(loop).sum != World(other).sum


def test_sums_do_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    (tmp_path / "m.py").write_text("S = {'a', 'b', 'c'}\nT = 1\nU = 2\ndef f(x):\n    return x in S, T, U\n")
    code = "import m; from flyllvm.compiler.cache.world import World; print(World(m.f).sum)"
    sums = {
        subprocess.run(
            [sys.executable, "-B", "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(sums) == 1


@pytest.mark.llvm
def test_a_kernel_that_reads_the_world_is_compiled_all_the_same(cached: Path) -> None:
    import flyllvm.expr as fx

    @flyc.kernel(known_block_size=(64, 1, 1))
    def stamped(x: fx.Tensor) -> None:
        x[fx.thread_idx.x] = len(os.getcwd())

    for _ in range(2):
        art = flyc.compile(stamped, "i32[64]", arch="gfx942")
        assert art.from_cache is None and art.code_object.kernels
    assert not list(cached.glob("v1/source-*"))


@pytest.mark.llvm
@pytest.mark.sim
def test_launches_use_the_disk_cache(author: Author) -> None:
    code = (
        "import sys\n"
        f"sys.path.insert(0, {str(author.folder)!r})\n"
        "import numpy as np, mine, flyllvm.compiler as flyc\n"
        "from flyllvm.compiler import kernel_cache\n"
        "x = np.arange(64, dtype=np.int32)\n"
        "mine.scale(x).launch(grid=1, arch='gfx942')\n"
        "(((_, made),),) = kernel_cache._COMPILED.values()\n"
        "print(made.artifact.from_cache, (x == np.arange(64) * 2 + 1).all())\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "FLYLLVM_DEVICE": "sim"}
    said = [
        subprocess.run([sys.executable, "-B", "-c", code], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [s.stdout.split() for s in said] == [["None", "True"], ["source", "True"]]
