"""The smoke tests: they compile everywhere, agree with independent answers, and see a device that is wrong."""

from __future__ import annotations

import ctypes
import json
from typing import Any

import numpy as np
import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.universal import UniversalFma
from flyllvm.cli.main import main
from flyllvm.codeobject import CodeObject
from flyllvm.ir import types as t
from flyllvm.kernels.smoke import Case, cases
from flyllvm.kernels.smoke.basic import BLOCK, GROUPS, ITEMS
from flyllvm.kernels.smoke.copies import MARGIN
from flyllvm.kernels.smoke.matrix import MOST_PROBES, RANDOM_PROBES
from flyllvm.kernels.smoke.numbers import encode
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
    x, y, _ = dict(cases(GFX942))["matmul"]().fresh_args()
    assert np.array_equal(outputs("matmul")[0], x @ y.T)


MOVES = ("universal_copy", "buffer_copy", "buffer_load_async", "global_load_async")


@pytest.mark.sim
@pytest.mark.parametrize("arch", ["gfx942", "gfx950"])
def test_every_copy_moves_its_bytes_and_no_more(arch: str) -> None:
    target = Target.parse(arch)
    moves = [(n, make) for n, make in cases(target) if any(word in n for word in MOVES)]
    assert len(moves) >= 13
    for name, make in moves:
        source = make().fresh_args()[0]
        (moved,) = outputs(name, target)
        assert np.array_equal(moved[:-MARGIN], source) and (moved[-MARGIN:] == 0xEE).all(), name


@pytest.mark.sim
@pytest.mark.parametrize(
    ("name", "dtype", "update"),
    [
        ("universal_atomic<add, i32>", np.int32, np.add), ("universal_atomic<umax, i64>", np.uint64, np.maximum),
        ("universal_atomic<xor, i32>", np.int32, np.bitwise_xor), ("universal_atomic<add, f32>", np.float32, np.add),
        ("universal_atomic<min, f64>", np.float64, np.minimum),
        ("cdna3.buffer_atomic<sub, i32>", np.int32, np.subtract),
        ("cdna3.buffer_atomic<add, vector<2xf16>>", np.float16, np.add),
    ],
)  # fmt: skip
def test_atomics_update_each_place_with_its_own_value(name: str, dtype: type, update: Any) -> None:
    source, before = dict(cases(GFX942))[name]().fresh_args()
    (after,) = outputs(name)
    expected = update(before[:-MARGIN].view(dtype), source.view(dtype))
    assert np.array_equal(after[:-MARGIN].view(dtype), expected) and (after[-MARGIN:] == 0xEE).all()


@pytest.mark.sim
def test_probes_of_a_matrix_instruction_meet_every_slot() -> None:
    """All probes agree with a product in NumPy, by the register maps of the manual."""
    name = "cdna3.mfma<16x16x16, (f16, f16) -> f32>"
    a, b, c, _ = dict(cases(GFX942))[name]().fresh_args()
    (d,) = outputs(name)
    a, b = (x.view(np.float16).astype(np.float32) for x in (a, b))
    c, d = c.view(np.float32), d.view(np.float32)
    assert a.shape == (2 * MOST_PROBES + RANDOM_PROBES, 64, 4)
    lane, value = np.divmod(np.arange(256), 4)
    outer, inner = lane % 16, lane // 16 * 4 + value
    matrices = []
    for x in (a, b, c, d):
        matrix = np.zeros((len(x), 16, 16), np.float32)
        matrix[:, outer, inner] = x.reshape(len(x), 256)
        matrices.append(matrix)
    a_mk, b_nk, c_nm, d_nm = matrices  # a lane holds a column of C: four rows
    assert np.array_equal(d_nm, b_nk @ a_mk.transpose(0, 2, 1) + c_nm)
    hot = (a[:MOST_PROBES] == 1).reshape(MOST_PROBES, -1)
    assert (hot.sum(axis=0) == 1).all(), "every slot is tried once"


@pytest.mark.sim
def test_copies_of_a_replicated_operand_are_equal() -> None:
    a = dict(cases(Target.parse("gfx1100")))["gfx11.wmma<16x16x16, (f16, f16) -> f32>"]().fresh_args()[0]
    assert np.array_equal(a[:, :16], a[:, 16:]) and (a[:, 0] != a[:, 1]).any()


@pytest.mark.parametrize("arch", CHIPS)
def test_every_atom_of_a_chip_has_a_smoke_test(arch: str) -> None:
    target = Target.parse(arch)
    found = cases(target)
    names = [name for name, _ in found]
    rows = [op for op in all_rows() if arch in op.targets and not isinstance(op, UniversalFma)]
    own = [op.name for op in rows if getattr(op, "bit_size", 1)]  # no copies of whole tiles
    assert len(set(names)) == len(names) and set(own) <= set(names)
    for name, make in found:
        assert make().name == name


@pytest.mark.parametrize(
    ("elem", "values", "raw"),
    [
        (t.F16, [1.0, -2.0], "003c00c0"), (t.I8, [-1, 2], "ff02"), (t.SCALARS["i4"], [1, -1, 7, 0], "f107"),
        (t.SCALARS["f4E2M1FN"], [1.0, -6.0], "f2"), (t.SCALARS["f6E2M3FN"], [1.0, 0.0, 0.0, 7.5], "0800 7c"),
        (t.SCALARS["f8E4M3FNUZ"], [1.0], "40"),
    ],
)  # fmt: skip
def test_numbers_are_packed_as_registers_hold_them(elem: t.ScalarType, values: list[float], raw: str) -> None:
    assert encode(np.array(values), elem).tobytes() == bytes.fromhex(raw)


def test_differences_are_counted_and_placed() -> None:
    a, b = np.zeros((2, 3), np.float32), np.zeros((2, 3), np.float32)
    assert difference(a, b) == ""
    b[1, 0], b[1, 2] = 2, 5
    assert difference(a, b) == ("2 of 6 elements differ, the first at (1, 0): 2.0 on the device, 0.0 in the simulator")
    assert difference(np.array([0.0]), np.array([-0.0])).startswith("1 of 1 elements differ")


# The command.


@pytest.mark.llvm
@pytest.mark.slow
@pytest.mark.parametrize("arch", CHIPS)
def test_a_dry_run_compiles_everything(arch: str, full: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Without --full what is special to the chip: its names begin with its generation."""
    only = [] if full or arch == "gfx942" else ["--only", arch[:5]]
    status = main(["smoke", "--dry-run", "--arch", arch, "--json", *(only if arch.startswith("gfx1") else [])])
    record = json.loads(capsys.readouterr().out)
    (run,) = record["runs"]
    assert run["target"] == arch and run["device"] is None
    assert [test for test in run["tests"] if test["status"] != "compiled"] == []
    assert status == 0


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
@pytest.mark.slow
@pytest.mark.parametrize(("arch", "only"), [("gfx942", "16x16x16"), ("gfx942", "copy"), ("gfx950", "read_trans")])
def test_all_pass_on_a_gpu_that_does_what_the_simulator_says(
    double: Double,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    full: bool,
    arch: str,
    only: str,
) -> None:
    restart(double, monkeypatch, f"{arch}:sramecc+:xnack-")
    Gpu(double, monkeypatch)
    only = "" if full else only
    assert main(["smoke", "--only", only]) == 0
    out = capsys.readouterr().out
    chosen = [name for name, _ in cases(Target.parse(arch)) if only in name]
    assert out.startswith(f"flyllvm double of {arch}, {arch}:sramecc+:xnack-\n")
    assert f"all {len(chosen)} tests passed" in out and all(name in out for name in chosen) and " ms\n" in out


@needs_double
@pytest.mark.llvm
@pytest.mark.sim
@pytest.mark.parametrize(
    ("only", "output_at"), [("ids", 0), ("cdna3.buffer_copy<32>", 8), ("cdna3.mfma<16x16x16, (f16", 24)]
)
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
