"""The smoke tests: they compile everywhere, agree with independent answers, and see a device that is wrong."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import numpy as np
import pytest

from flyllvm.cli.main import main
from flyllvm.codeobject import CodeObject
from flyllvm.kernels.smoke import Case, cases
from flyllvm.kernels.smoke.basic import BLOCK, GROUPS, ITEMS
from flyllvm.kernels.smoke.runner import _simulated, difference
from flyllvm.target import CHIPS, Target
from tests.hip_double.build import Double, Launch
from tests.hip_double.execute import Executor
from tests.hip_double.fixtures import REAL, restart

GFX942 = Target.parse("gfx942")


def outputs(name: str, target: Target = GFX942) -> list[np.ndarray[Any, Any]]:
    case = dict(cases(target))[name]()
    after = _simulated(case)
    return [after[i] for i in case.outputs]


# What the simulator gives agrees with NumPy, so that a test cannot be empty.


@pytest.mark.sim
def test_the_basic_kernels_do_what_they_say() -> None:
    (ids,) = outputs("ids")
    assert np.array_equal(ids.reshape(-1, 2), np.stack([np.arange(ITEMS), np.arange(ITEMS) % 64], axis=1))
    (exchanged,) = outputs("lds exchange")
    assert np.array_equal(exchanged, (np.arange(ITEMS).reshape(GROUPS, BLOCK)[:, ::-1] * 7).reshape(-1))
    (bounded,) = outputs("buffer bounds")
    inside = ITEMS - 101
    expected = np.where(
        np.arange(ITEMS) < inside, np.arange(ITEMS) + 1, np.where(np.arange(ITEMS) < inside + 50, 0, -7)
    )
    assert np.array_equal(bounded, expected)
    sums, highest = outputs("atomics")
    ids_by_slot = [np.arange(ITEMS)[np.arange(ITEMS) % 8 == slot] for slot in range(8)]
    assert [int(x) for x in sums] == [int(x.sum()) for x in ids_by_slot]
    assert [int(x) for x in highest] == [int(x.max()) for x in ids_by_slot]
    case = dict(cases(GFX942))["matmul"]()
    assert np.array_equal(outputs("matmul")[0], case.args[0] @ case.args[1].T)


@pytest.mark.sim
@pytest.mark.parametrize("name", [n for n, _ in cases(GFX942) if "copy" in n])
def test_every_copy_moves_its_bytes_and_no_more(name: str) -> None:
    case = dict(cases(GFX942))[name]()
    (moved,) = outputs(name)
    assert np.array_equal(moved[:-16], case.args[0]) and (moved[-16:] == 0xEE).all()


@pytest.mark.sim
def test_probes_of_a_matrix_instruction_find_every_slot() -> None:
    """Each one-hot slot of A and of B lets exactly one row or column through."""
    case = dict(cases(GFX942))["cdna3.mfma<16x16x16, (f16, f16) -> f32>"]()
    (d,) = outputs("cdna3.mfma<16x16x16, (f16, f16) -> f32>")
    a, b, _, _ = case.args
    assert a.shape[0] == 64 * 4 * 2 + 8
    for probe in range(64 * 4):
        lane, value = divmod(probe, 4)
        row, k = lane % 16, lane // 16 * 4 + value
        column_values = np.array([b[probe, n + 16 * (k // 4), k % 4] for n in range(16)], np.float32)
        expected = np.zeros((16, 16), np.float32)
        expected[row] = column_values
        got = np.array([[d[probe, n + 16 * (m // 4), m % 4] for n in range(16)] for m in range(16)])
        assert np.array_equal(got, expected)


def test_differences_are_counted_and_placed() -> None:
    a, b = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    assert difference(a, b) == ""
    b[1, 0], b[1, 2] = 2, 5
    assert difference(a, b) == ("2 of 6 elements differ, the first at (1, 0): 2.0 on the device, 0.0 in the simulator")
    assert difference(np.array([0.0]), np.array([-0.0])).startswith("1 of 1 elements differ")


# The command.


@pytest.mark.llvm
@pytest.mark.parametrize("arch", CHIPS)
def test_a_dry_run_compiles_everything_for_every_chip(arch: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", "--dry-run", "--arch", arch, "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    (run,) = record["runs"]
    assert run["target"] == arch and run["device"] is None
    assert {test["status"] for test in run["tests"]} == {"compiled"} and len(run["tests"]) >= 15


class Gpu(Executor):
    """Plays a GPU that learns the IR of each image when it is compiled, and may be wrong."""

    def __init__(self, double: Double, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(double)
        compile_case, know = Case.compile, self.knows

        def compile_and_tell(case: Case) -> CodeObject:
            code = compile_case(case)
            know(code.image, case.llvm_ir)
            return code

        monkeypatch.setattr(Case, "compile", compile_and_tell)
        self.spoil: int | None = None

    def run(self, launch: Launch) -> int:
        status = super().run(launch)
        if self.spoil is not None:
            last = launch.segment()[self.spoil : self.spoil + 8]
            ctypes.c_uint8.from_address(int.from_bytes(last, "little") + 4).value ^= 1
        return status


needs_double = pytest.mark.skipif(REAL, reason="looks into the double; this run is on a real device")


@needs_double
@pytest.mark.llvm
@pytest.mark.sim
def test_all_pass_on_a_gpu_that_does_what_the_simulator_says(
    double: Double, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Gpu(double, monkeypatch)
    assert main(["smoke"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("flyllvm double of gfx942, gfx942:sramecc+:xnack-\n")
    assert f"all {len(cases(GFX942))} tests passed" in out
    assert "cdna3.mfma<16x16x16, (f16, f16) -> f32>" in out and " ms\n" in out


@needs_double
@pytest.mark.llvm
@pytest.mark.sim
@pytest.mark.parametrize(("only", "output_at"), [("ids", 0), ("cdna3.buffer_copy<32>", 8), ("16x16x16, (f16", 24)])
def test_a_gpu_with_one_wrong_bit_fails(
    double: Double, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], only: str, output_at: int
) -> None:
    Gpu(double, monkeypatch).spoil = output_at
    assert main(["smoke", "--only", only, "--json"]) == 1
    record = json.loads(capsys.readouterr().out)
    (test,) = record["runs"][0]["tests"]
    assert not record["good"] and test["status"] == "different" and "elements differ, the first at" in test["detail"]
    assert main(["smoke", "--only", only]) == 1
    assert "1 of 1 tests failed" in capsys.readouterr().out


@needs_double
@pytest.mark.llvm
def test_a_launch_that_dies_is_an_error_of_that_test(
    double: Double, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    double.on_launch(lambda launch: 719)
    assert main(["smoke", "--only", "ids", "--json"]) == 1
    (test,) = json.loads(capsys.readouterr().out)["runs"][0]["tests"]
    assert test["status"] == "error" and "hipErrorLaunchFailure" in test["detail"]


@needs_double
def test_no_gpu_is_status_2_or_0_where_allowed(
    double: Double, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    restart(double, monkeypatch, "gfx942", devices=0)
    assert main(["smoke"]) == 2
    captured = capsys.readouterr()
    assert "no GPU to test: " in captured.err and "--dry-run compiles the tests" in captured.err
    assert main(["smoke", "--allow-no-device"]) == 0
    assert main(["smoke", "--allow-no-device", "--json"]) == 0
    assert "hipErrorNoDevice" in json.loads(capsys.readouterr().out)["no_device"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--dry-run", "--only", "nonsense"], "no smoke test of gfx942 has 'nonsense' in its name"),
        (["--dry-run", "--arch", "gfx000"], "unknown target 'gfx000'"),
        (["--arch", "gfx942"], "--arch gfx942 without --dry-run"),
    ],
)
def test_bad_arguments_are_named(arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["smoke", *arguments]) == 2
    assert words in capsys.readouterr().err
