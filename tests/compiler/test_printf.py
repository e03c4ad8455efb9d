"""``fx.printf`` in kernels, from the author's line to the lines that are printed."""

from __future__ import annotations

import io
import itertools
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.cli.main import main
from flyllvm.errors import SimError, TraceError
from flyllvm.sim import Simulator

pytestmark = [pytest.mark.sim]


@flyc.kernel(known_block_size=(4, 2, 1))
def places(n: fx.Int32):
    if fx.thread_idx.x > 2:
        for i in range(n):
            fx.printf("wg {} item {},{} turn {}", fx.block_idx.x, fx.thread_idx.x, fx.thread_idx.y, i)
    fx.printf("end {}", fx.thread_idx.x)


@flyc.kernel(known_block_size=(2, 1, 1))
def types(x: fx.Tensor):
    t = fx.thread_idx.x
    v = x[t]
    fx.printf(v, v.to(fx.Float16), v.to(fx.BFloat16), v.to(fx.Float64), v < 0.25)
    fx.printf("{} {} {}", t.to(fx.Int8) - 2, t.to(fx.Uint8) - fx.Uint8(1), t.to(fx.Uint16) - fx.Uint16(1))
    fx.printf("{}, {}", t.to(fx.Int64) * 10000000000 - 1, t.to(fx.Uint64) - fx.Uint64(1))
    fx.printf("{{{}}} {} of {}", fx.full(2, t), (t, 3), fx.make_layout(4, 1))


@flyc.kernel(known_block_size=(8, 1, 1))
def overrun(x: fx.Tensor):
    fx.printf("at {}", fx.thread_idx.x)
    fx.barrier()
    x[fx.thread_idx.x] = 1


def text_of(kernel: Any, *specs: Any) -> Any:
    return flyc.compile(kernel, *specs, arch="gfx942", stop_after="llvm")


def test_lines_come_in_the_order_of_workgroups_and_work_items() -> None:
    out = io.StringIO()
    text_of(places, "i32").simulate(2, grid=2, printf_to=out, checks="all")
    want = []
    for wg in range(2):
        for y in range(2):
            want += ["end 0", "end 1", "end 2"]
            want += [f"wg {wg} item 3,{y} turn {i}" for i in range(2)] + ["end 3"]
    assert out.getvalue().splitlines() == want


def test_lines_come_while_the_simulator_runs() -> None:
    @flyc.kernel(known_block_size=(256, 1, 1))
    def first_items():
        if fx.thread_idx.x == 0:
            fx.printf("group {}", fx.block_idx.x)

    out = io.StringIO()
    seen: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        seen.append((done, len(out.getvalue().splitlines())))

    art = text_of(first_items)
    flyllvm.simulate(art, grid=200, block=256, args=[], printf_to=out, progress=progress)
    assert len(seen) > 1
    assert all(done == lines for done, lines in seen)
    assert out.getvalue().splitlines() == [f"group {i}" for i in range(200)]


def test_three_dimensions_and_a_block_size_of_the_launch() -> None:
    @flyc.kernel
    def corner():
        b, t = fx.block_idx, fx.thread_idx
        n = t.z
        while n > 0:
            fx.printf("{} {} {}: {} {} {}", b.x, b.y, b.z, t.x, t.y, t.z)
            n = n - 1

    out = io.StringIO()
    text_of(corner).simulate(grid=(2, 2, 2), block=(2, 3, 2), printf_to=out)
    axes = [range(2), range(2), range(2), range(1, 2), range(3), range(2)]
    want = [f"{x} {y} {z}: {i} {j} {k}" for z, y, x, k, j, i in itertools.product(*axes)]
    assert out.getvalue().splitlines() == want


def test_every_type_prints_its_value(capsys: pytest.CaptureFixture[str]) -> None:
    text_of(types, "f32[2]").simulate(np.array([0.1, -2.5], np.float32), grid=1)
    assert capsys.readouterr().out.splitlines() == [
        "0.1 0.1 0.100097656 0.10000000149011612 True",
        "-2 255 65535",
        "-1, 18446744073709551615",
        "{[0, 0]} (0,3) of 4:1",
        "-2.5 -2.5 -2.5 -2.5 True",
        "-1 0 0",
        "9999999999, 0",
        "{[1, 1]} (1,3) of 4:1",
    ]


def test_records_that_do_not_fit_are_counted(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FLYLLVM_PRINTF_BYTES", "100")
    text_of(places, "i32").simulate(0, grid=1)
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 4 and all(line.startswith("end ") for line in lines)
    assert last.startswith("printf: 4 records were dropped: 100 bytes were full; set FLYLLVM_PRINTF_BYTES=192 ")
    monkeypatch.setenv("FLYLLVM_PRINTF_BYTES", "192")
    text_of(places, "i32").simulate(0, grid=1)
    assert len(capsys.readouterr().out.splitlines()) == 8


def test_what_was_printed_before_a_fault_is_seen(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SimError):
        text_of(overrun, "f32[?]").simulate(np.zeros(4, np.float32), grid=1)
    assert capsys.readouterr().out.splitlines() == [f"at {i}" for i in range(8)]


def test_launches_of_every_kind_print(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")

    @flyc.jit
    def host(n: fx.Int32):
        places(n).launch(grid=1, block=(4, 2, 1))

    want = ["end 0", "end 1", "end 2", "end 3"] * 2
    handle = flyc.compile(host, "i32", arch="gfx942", stop_after="llvm")
    artifact = text_of(places, "i32")
    for launch in (
        lambda: places(0).launch(grid=1),
        lambda: host(0),
        lambda: host(0),
        lambda: handle(0),
        lambda: artifact(0, grid=1),
        lambda: artifact.run(0, grid=1),
        lambda: flyllvm.simulate(artifact, grid=1, block=(4, 2), args=[0]),
    ):
        launch()
        assert capsys.readouterr().out.splitlines() == want


def test_the_command_prints_and_keeps_its_json_clean(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "k.ll"
    file.write_text(text_of(places, "i32").llvm_ir)
    command = ["sim", os.fspath(file), "--arch", "gfx942", "--grid", "1", "--block", "4,2", "--arg", "i32:0"]
    want = ["end 0", "end 1", "end 2", "end 3"] * 2
    assert main(command) == 0
    assert capsys.readouterr().out.splitlines()[:8] == want
    assert main([*command, "--json"]) == 0
    out, err = capsys.readouterr()
    assert json.loads(out)["ok"] and err.splitlines()[:8] == want


def test_a_kernel_prints_where_stepping_ends(capsys: pytest.CaptureFixture[str]) -> None:
    run = Simulator(text_of(places, "i32").llvm_ir, grid=1, block=(4, 2), args=[0])
    assert capsys.readouterr().out == ""
    while run.current is not None:
        run.step()
    assert capsys.readouterr().out.splitlines() == ["end 0", "end 1", "end 2", "end 3"] * 2


@pytest.mark.llvm
def test_a_loaded_kernel_knows_its_formats(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = flyc.compile(places, "i32", arch="gfx942")
    assert [a.name for a in artifact.code_object.kernels["places"].args] == ["n", "flyllvm.printf"]
    flyllvm.save_artifacts(tmp_path, {"places": artifact}, llvm_ir=False)
    loaded = flyllvm.load_artifact(tmp_path, "places")
    assert loaded.printf_formats == artifact.printf_formats == ["wg {s32} item {s32},{s32} turn {s32}", "end {s32}"]


@pytest.mark.llvm
def test_a_kernel_from_the_disk_cache_prints_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_CACHE", "1")
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", os.fspath(tmp_path))
    first = flyc.compile(places, "i32", arch="gfx942")
    again = flyc.compile(places, "i32", arch="gfx942")
    assert (first.from_cache, again.from_cache) == (None, "source")
    out = io.StringIO()
    again.simulate(0, grid=1, printf_to=out)
    assert out.getvalue().splitlines() == ["end 0", "end 1", "end 2", "end 3"] * 2


def test_what_cannot_be_printed_is_refused_at_its_line() -> None:
    @flyc.kernel
    def small(x: fx.Tensor):
        fx.printf("{}", x[0])

    with pytest.raises(TraceError, match=r"test_printf.py:\d+(.|\n)*\.to\(fx\.Float32\)"):
        text_of(small, "f8E4M3FN[4]")

    @flyc.kernel
    def percent(n: fx.Int32):
        fx.printf("n = %d", n)

    with pytest.raises(TraceError, match=r"test_printf.py:\d+(.|\n)*write \{\} for each argument"):
        text_of(percent, "i32")

    @flyc.kernel
    def both(n: fx.Int32):
        fx.printf("{} %d", n)

    with pytest.raises(TraceError, match=r"test_printf.py:\d+(.|\n)*write \{\} for each argument"):
        text_of(both, "i32")
