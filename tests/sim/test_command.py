"""``flyllvm sim``: arguments, comparison, outputs, exit status."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flyllvm.cli.main import main
from tests.sim.kernels import STORE_OUT, exchange, gemm, kernel

pytestmark = pytest.mark.sim


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the GEMM and its data, as the working directory."""
    rng = np.random.default_rng(0)
    a, b = rng.integers(-4, 5, (32, 32)).astype(np.float16), rng.integers(-4, 5, (16, 32)).astype(np.float16)
    c = a.astype(np.float32) @ b.astype(np.float32).T
    for name, array in {"a": a, "b": b, "c": c, "wrong": c + 1}.items():
        np.save(tmp_path / f"{name}.npy", array)
    (tmp_path / "k.ll").write_text(gemm())
    (tmp_path / "race.ll").write_text(exchange(before=""))
    monkeypatch.chdir(tmp_path)
    return tmp_path


GEMM = "sim k.ll --block 128 --arg a.npy --arg b.npy --arg f32[32,16] --arg i32:32".split()


def _run(capsys: pytest.CaptureFixture[str], args: list[str]) -> tuple[int, str, str]:
    status = main(args)
    out, err = capsys.readouterr()
    return status, out, err


def test_right_result_gives_status_0_and_the_report(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, [*GEMM, "--expect", "c.npy", "--out", "results"])
    assert status == 0
    assert "argument 2 agrees" in out and "no fault found" in out and "mfma.f32.16x16x16f16" in out
    assert np.array_equal(np.load("results/arg2.npy"), np.load("c.npy"))
    assert np.array_equal(np.load("results/a.npy"), np.load("a.npy"))


def test_wrong_result_gives_status_1_and_the_place(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = _run(capsys, [*GEMM, "--expect", "2=wrong.npy"])
    assert status == 1
    assert "differs in 512 of 512 elements, largest error 1" in out and "first at [0, 0]: it has " in err
    got, want = err.split("it has ")[1].split("\n")[0].split(", the file ")
    assert float(want) == float(got) + 1
    line = gemm().split("\n").index(next(x for x in gemm().split("\n") if "store float %c0" in x)) + 1
    assert (
        f"stored by 'store float %c0, ptr addrspace(1) %pc0, align 4' at k.ll:{line}, workgroup (0, 0, 0), wave 0"
        in err
    )
    assert _run(capsys, [*GEMM, "--expect", "2=wrong.npy", "--atol", "1"])[0] == 0


def test_fault_gives_status_1_and_the_instruction(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, _, err = _run(capsys, "sim race.ll --block 256 --arg i32[256]".split())
    assert status == 1
    assert err.startswith("error: race.ll:") and "LDS race" in err and "fix: put a barrier" in err


def test_json_output_holds_report_and_comparison(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, [*GEMM, "--expect", "c.npy", "--json"])
    data: dict[str, Any] = json.loads(out)
    assert status == 0 and data["ok"] and data["comparisons"][0]["different"] == 0
    assert data["report"]["matrix_flops"] == 2 * 32 * 16 * 32
    status, out, _ = _run(capsys, [*GEMM, "--check-all", "--json"])
    assert status == 0 and json.loads(out)["report"]["wave_size"] == 64


def test_the_file_says_which_chip_it_is_for(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = 'target triple = "amdgpu12.01-amd-amdhsa"\n' + exchange()
    (folder / "rdna.ll").write_text(text)
    status, out, _ = _run(capsys, "sim rdna.ll --block 256 --arg i32[256] --profile".split())
    assert status == 0 and out.startswith("@k on gfx1201: ") and "occupancy: " in out
    status, _, err = _run(capsys, "sim rdna.ll --block 256 --arg i32[256] --arch gfx942".split())
    assert status == 2 and "fix: simulate it on gfx1201" in err


def test_html_report_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, [*GEMM, "--html", "report.html"])
    assert status == 0 and "conflict" in out
    assert "<h2>LDS banks</h2>" in (folder / "report.html").read_text()


def test_check_lists_unknown_names_without_running(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "odd.ll").write_text(kernel("%x = call i32 @llvm.amdgcn.no.such()\nret void"))
    status, out, _ = _run(capsys, ["sim", "odd.ll", "--check"])
    assert status == 1 and "odd.ll:line 7: @llvm.amdgcn.no.such: an intrinsic that the simulator does not know" in out
    assert _run(capsys, ["sim", "k.ll", "--check"])[:2] == (0, "@gemm: can be simulated\n")
    status, _, err = _run(capsys, "sim odd.ll --arg i32[4]".split())
    assert status == 2 and "no.such" in err


def test_check_says_that_there_is_no_kernel(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "empty.ll").write_text("")
    assert _run(capsys, "sim empty.ll --check".split()) == (0, "empty.ll has no kernel\n", "")


def test_bfloat_arguments_are_converted_and_written_back(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = """
    %p = getelementptr bfloat, ptr addrspace(1) %x, i32 %t
    %v = load bfloat, ptr addrspace(1) %p
    %w = fadd bfloat %v, 1.0
    store bfloat %w, ptr addrspace(1) %p
    ret void""".replace("%w =", "%s =").replace("bfloat %w", "bfloat %s")
    (folder / "bf.ll").write_text(kernel(body, "ptr addrspace(1) %x"))
    values = np.linspace(-3, 3, 64).astype(np.float32)
    np.save("x.npy", values)
    assert _run(capsys, "sim bf.ll --arg bf16:x.npy --out results".split())[0] == 0
    want = (values.astype(ml_dtypes.bfloat16) + ml_dtypes.bfloat16(1)).astype(np.float32)
    assert np.array_equal(np.load("results/x.npy"), want)
    np.save("bits.npy", values.astype(ml_dtypes.bfloat16).view(np.uint16))
    assert _run(capsys, "sim bf.ll --arg bf16:bits.npy --out results".split())[0] == 0
    assert np.array_equal(np.load("results/bits.npy").view(ml_dtypes.bfloat16).astype(np.float32), want)


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ("sim none.ll", "cannot read none.ll"),
        ("sim k.ll --arch gfx9", "unknown target 'gfx9'"),
        ("sim k.ll --grid 1,x", "write --grid X, X,Y or X,Y,Z"),
        ("sim k.ll --arg what", "write FILE.npy, TYPE:FILE.npy"),
        ("sim k.ll --arg q7:3", "unknown type 'q7'"),
        ("sim k.ll --arg i32:x", "'x' is no number of type i32"),
        ("sim k.ll --arg missing.npy", "cannot read missing.npy"),
        ("sim k.ll --kernel no", "has no kernel @no"),
        ("sim k.ll --arg null", "takes 4 arguments, got 1"),
        ("sim broken.ll", "broken.ll:1:1: expected a definition"),
        ("sim k.ll --lds-bytes -5", "--lds-bytes -5\n  fix: give a number from 0 on"),
        ("sim k.ll --max-steps 0", "--max-steps 0\n  fix: give a number from 1 on"),
        ("sim k.ll --rtol nan", "--rtol nan\n  fix: give a number that is not negative"),
        ("sim k.ll --atol -1", "--atol -1.0\n  fix: give a number that is not negative"),
    ],
)  # fmt: skip
def test_bad_input_is_one_clear_error(
    folder: Path, capsys: pytest.CaptureFixture[str], args: str, message: str
) -> None:
    (folder / "broken.ll").write_text("oops")
    status, out, err = _run(capsys, args.split())
    assert status == 2 and not out and message in err


def test_an_array_with_swapped_bytes_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.save("a.npy", np.load("a.npy").astype(">f2"))
    status, _, err = _run(capsys, GEMM)
    assert status == 2 and "its bytes are swapped" in err and "newbyteorder" in err


@pytest.mark.parametrize("size", ["64,64,1", "a,b", "64,", "64", ""])
def test_a_malformed_group_size_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str], size: str) -> None:
    text = f'define amdgpu_kernel void @k() "amdgpu-flat-work-group-size"="{size}" {{\n  ret void\n}}\n'
    (folder / "s.ll").write_text(text)
    status, _, err = _run(capsys, ["sim", "s.ll"])
    assert status == 2 and f'"amdgpu-flat-work-group-size"="{size}"' in err and "write two numbers" in err


@pytest.mark.parametrize("literal", ["0x7FEFFFFFFFFFFFFF", "0x10000000000000000"])
def test_a_float_constant_out_of_range_is_an_error(
    folder: Path, capsys: pytest.CaptureFixture[str], literal: str
) -> None:
    body = f"  store float {literal}, ptr addrspace(1) %out\n  ret void"
    (folder / "f.ll").write_text(f"define amdgpu_kernel void @k(ptr addrspace(1) %out) {{\n{body}\n}}\n")
    status, _, err = _run(capsys, ["sim", "f.ll", "--arg", "f32[1]"])
    assert status == 2 and f"{literal!r} is not a value of type float" in err


def test_a_wrong_result_brings_the_warnings_of_all_checkers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "k.ll").write_text(gemm(read_swizzle=False))
    status, out, err = _run(capsys, [*GEMM, "--expect", "2=c.npy"])
    assert status == 1 and "stored by 'store float %c" in err
    assert out.count("warning: k.ll:") == 2 and "LDS is read in another order than it was written" in out


def test_warnings_give_status_1_where_they_shall(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(capsys, [*GEMM, "--check-all", "--fail-on-warnings"])[0] == 0
    (folder / "k.ll").write_text(gemm(read_swizzle=False))
    assert _run(capsys, [*GEMM, "--check-all"])[0] == 0
    assert _run(capsys, [*GEMM, "--fail-on-warnings"])[0] == 0
    status, out, _ = _run(capsys, [*GEMM, "--check-all", "--fail-on-warnings"])
    assert status == 1 and "warning: k.ll:" in out


def test_expect_needs_a_number_where_several_arrays_change(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    body = "store i32 1, ptr addrspace(1) %a\nstore i32 1, ptr addrspace(1) %b\nret void"
    (folder / "two.ll").write_text(kernel(body, "ptr addrspace(1) %a, ptr addrspace(1) %b"))
    np.save("one.npy", np.array([1], np.int32))
    args = "sim two.ll --arg i32[1] --arg i32[1] --expect".split()
    status, _, err = _run(capsys, [*args, "one.npy"])
    assert status == 2 and "say which argument: --expect N=FILE.npy" in err
    assert _run(capsys, [*args, "1=one.npy"])[0] == 0


def test_grid_and_dynamic_lds_are_passed_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = "@dyn = external addrspace(3) global [0 x i32], align 16\n"
    body = """
    %p = getelementptr i32, ptr addrspace(3) @dyn, i32 %t
    store i32 %t, ptr addrspace(3) %p, align 4
    %v = load i32, ptr addrspace(3) %p, align 4
    """ + STORE_OUT.format(value="%v")
    (folder / "dyn.ll").write_text(kernel(body, module=module))
    assert _run(capsys, "sim dyn.ll --grid 2,1,1 --lds-bytes 256 --arg i32[64]".split())[0] == 0
    status, _, err = _run(capsys, "sim dyn.ll --lds-bytes 252 --arg i32[64]".split())
    assert status == 1 and "byte 252 of @dyn (252 bytes)" in err


def test_json_of_a_wrong_result_leaves_stderr_empty(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, err = _run(capsys, [*GEMM, "--expect", "wrong.npy", "--json"])
    assert status == 1 and err == ""
    assert json.loads(out)["comparisons"][0]["different"] == 512


@pytest.mark.parametrize("shape", ["99999999999999", "9" * 30, ",".join(["1"] * 99)])
def test_a_buffer_past_the_memory_is_an_error(folder: Path, capsys: pytest.CaptureFixture[str], shape: str) -> None:
    status, _, err = _run(capsys, [*GEMM[:-2], "--arg", f"f32[{shape}]"])
    assert status == 2 and "does not fit in memory" in err and "fix: use a smaller shape" in err


def test_the_limit_of_an_endless_loop_can_be_set(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "loop.ll").write_text(
        "define amdgpu_kernel void @loop() {\nentry:\n  br label %again\nagain:\n  br label %again\n}\n"
    )
    status, _, err = _run(capsys, ["sim", "loop.ll", "--max-steps", "50"])
    assert status == 1 and "endless loop" in err


@pytest.mark.llvm
def test_the_engine_can_be_chosen(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, [*GEMM, "--expect", "c.npy", "--engine", "jit", "--checks", "none"])
    assert status == 0 and "engine: jit, host code made in" in out
    status, _, err = _run(capsys, [*GEMM, "--engine", "jit"])
    assert status == 1 and "fix: pass checks='none'" in err


@pytest.mark.llvm
def test_profile_tells_the_occupancy_of_what_llvm_makes(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = _run(capsys, [*GEMM, "--profile"])
    assert status == 0 and "occupancy: 8 waves per SIMD, limited by wave slots" in out
    found = json.loads(_run(capsys, [*GEMM, "--profile", "--json"])[1])["report"]["occupancy"]
    assert found["limits"]["lds"] >= 8 if "lds" in found["limits"] else found["lds_bytes"] == 1536
    assert found["vgpr_count"] > 0 and found["waves_per_simd"] == 8
    assert "occupancy" not in _run(capsys, GEMM)[1]


@pytest.mark.llvm
def test_no_occupancy_where_llvm_refuses_the_module(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = kernel("call void @llvm.amdgcn.asyncmark()\n" + STORE_OUT.format(value="%t"))
    (folder / "new.ll").write_text(text)
    status, out, _ = _run(capsys, "sim new.ll --block 64 --arg i32[64] --profile".split())
    assert status == 0 and "warning: no occupancy: LLVM cannot compile this module" in out


def test_names_with_signs_and_kernels_that_llvm_leaves_out_have_a_report(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = exchange().replace("@k(", '@"k<int>\\22x\\22"(')
    (folder / "odd.ll").write_text(text)
    options = ["--block", "256", "--arg", "i32[256]", "--html", "odd.html"]
    status, out, _ = _run(capsys, ["sim", "odd.ll", "--kernel", 'k<int>"x"', *options])
    assert status == 0 and "occupancy: " in out and "k&lt;int&gt;" in (folder / "odd.html").read_text()
    (folder / "odd.ll").write_text(text.replace("define amdgpu", "define internal amdgpu"))
    status, out, _ = _run(capsys, ["sim", "odd.ll", *options])
    assert status == 0 and "warning: no occupancy" in out
