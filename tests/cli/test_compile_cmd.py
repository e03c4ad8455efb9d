"""``flyllvm compile``: Python, fly IR and LLVM IR in; every stage out; errors with their status."""

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
from tests.examples.programs import EXAMPLES, load

pytestmark = pytest.mark.llvm

VECTOR = ["--arg", "f32[?]:(1){align=16}"] * 3
OPERAND = ["--arg", "f16[?,?{div=8}]:(?{div=8},1){align=16}"]
GEMM = [*OPERAND, *OPERAND, "--arg", "f16[?,?{div=4}]:(?{div=4},1){align=8}"]
EXAMPLE = {"gemm": GEMM, "vector_add": VECTOR}


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Runs ``flyllvm compile``; gives status, stdout, stderr."""
    monkeypatch.delenv("FLYLLVM_ARCH", raising=False)

    def compile(*arguments: object, arch: str | None = "gfx942") -> tuple[int, str, str]:
        status = main(["compile", *map(str, arguments), *(["--arch", arch] if arch else [])])
        out, err = capsys.readouterr()
        return status, out, err

    return compile


# --- results --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EXAMPLE)
@pytest.mark.parametrize("form", ["{}", "{}:{name}"], ids=["file", "file and kernel"])
def test_an_example_compiles_to_a_code_object(run: Any, tmp_path: Path, name: str, form: str) -> None:
    target = tmp_path / "out.hsaco"
    status, out, err = run(form.format(EXAMPLES / f"{name}.py", name=name), *EXAMPLE[name], "-o", target)
    assert (status, err) == (0, "")
    assert f"{target}: {name} for gfx942: " in out and "VGPRs" in out and out.rstrip().endswith("0 spills")
    assert list(flyllvm.inspect(target.read_bytes()).kernels) == [name]


def test_it_gives_what_python_gives(run: Any, tmp_path: Path) -> None:
    target = tmp_path / "gemm.hsaco"
    run(EXAMPLES / "gemm.py", *GEMM, "-o", target)
    assert target.read_bytes() == load("gemm").compile_gemm().code_object.image


@pytest.mark.parametrize(
    ("stage", "holds"),
    [
        ("fly", "fly.gemm("),
        ("atoms", "fly.mma_atom_call("),
        ("ssa", "fly.mma_atom_call_ssa("),
        ("llvm", "define protected amdgpu_kernel void @gemm"),
        ("opt", "define protected amdgpu_kernel void @gemm"),
        ("asm", "v_mfma_f32_16x16x16_f16"),
    ],
)
def test_a_stage_is_printed_or_written(run: Any, tmp_path: Path, stage: str, holds: str) -> None:
    status, out, err = run(EXAMPLES / "gemm.py", *GEMM, "--emit", stage)
    assert (status, err) == (0, "") and holds in out
    target = tmp_path / "text"
    assert run(EXAMPLES / "gemm.py", *GEMM, "--emit", stage, "-o", target)[0] == 0
    assert target.read_text() in (out, out.removesuffix("\n"))


def test_an_object_file_is_written_and_links_to_the_code_object(run: Any, tmp_path: Path) -> None:
    run(EXAMPLES / "vector_add.py", *VECTOR, "--emit", "obj", "-o", tmp_path / "a.o")
    run(EXAMPLES / "vector_add.py", *VECTOR, "-o", tmp_path / "a.hsaco")
    assert main(["link", str(tmp_path / "a.o"), "-o", str(tmp_path / "b.hsaco")]) == 0
    assert (tmp_path / "a.hsaco").read_bytes() == (tmp_path / "b.hsaco").read_bytes()


def test_fly_ir_gives_the_llvm_ir_of_its_python(run: Any, tmp_path: Path) -> None:
    fly = tmp_path / "gemm.fly"
    run(EXAMPLES / "gemm.py", *GEMM, "--emit", "fly", "-o", fly)
    _, from_python, _ = run(EXAMPLES / "gemm.py", *GEMM, "--emit", "llvm", "--no-debug")
    status, from_text, err = run(fly, "--emit", "llvm", "--no-debug")
    assert (status, err) == (0, "")
    assert from_text == from_python


def test_fly_ir_is_read_by_a_process_that_has_seen_no_atom(tmp_path: Path) -> None:
    fly = tmp_path / "gemm.fly"
    fly.write_text(load("gemm").compile_gemm(stop_after="fly").fly_ir)
    command = [sys.executable, "-m", "flyllvm", "compile", str(fly), "--arch", "gfx942", "--emit", "llvm"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    assert "llvm.amdgcn.mfma.f32.16x16x16f16" in done.stdout


def test_llvm_ir_gives_the_code_object_of_its_python(run: Any, tmp_path: Path) -> None:
    ll, target = tmp_path / "gemm.ll", tmp_path / "gemm.hsaco"
    run(EXAMPLES / "gemm.py", *GEMM, "--emit", "llvm", "-o", ll)
    status, out, err = run(ll, "-o", target)
    assert (status, err) == (0, "") and "gemm for gfx942" in out
    assert target.read_bytes() == load("gemm").compile_gemm().code_object.image
    assert "s_endpgm" in run(ll, "--emit", "asm")[1]


@pytest.mark.sim
def test_the_llvm_ir_of_an_example_runs_under_the_sim_command(
    run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = np.arange(1030, dtype=np.float32), np.full(1030, 0.5, np.float32)
    for name, array in (("a", a), ("b", b), ("want", a + b), ("wrong", a - b)):
        np.save(tmp_path / f"{name}.npy", array)
    run(EXAMPLES / "vector_add.py", *VECTOR, "--emit", "llvm", "-o", tmp_path / "add.ll")
    tensors = [f"--arg={tmp_path}/a.npy", "--arg=i32:1030", f"--arg={tmp_path}/b.npy", "--arg=i32:1030"]
    arguments = [str(tmp_path / "add.ll"), "--grid=2", "--block=256", *tensors, "--arg=f32[1030]", "--arg=i32:1030"]
    assert main(["sim", *arguments, f"--expect={tmp_path}/want.npy"]) == 0
    assert main(["sim", *arguments, f"--expect={tmp_path}/wrong.npy"]) == 1
    assert "argument 4 differs" in capsys.readouterr().err


def test_constants_reach_the_kernel(run: Any) -> None:
    operand = ["--arg", "f16[?,?]:(?,1)"] * 3
    constants = ["--const", "vec_in=1", "--const", "vec_out=1"]
    _, out, _ = run(EXAMPLES / "gemm.py", *operand, *constants, "--emit", "asm")
    assert "buffer_load_ushort" in out and "buffer_load_dwordx4" not in out


def test_the_variable_gives_the_arch(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx950")
    assert "for gfx950" in run(EXAMPLES / "vector_add.py", *VECTOR, arch=None)[1]


def test_time_prints_every_stage(run: Any) -> None:
    _, out, _ = run(EXAMPLES / "vector_add.py", *VECTOR, "--time")
    for stage in ("fly", "atoms", "ssa", "llvm", "llvm:codegen", "link", "total"):
        assert any(line.startswith(stage) and line.endswith(" ms") for line in out.splitlines()), stage


def test_json_is_one_object_with_the_kernels(run: Any) -> None:
    _, out, _ = run(EXAMPLES / "vector_add.py", *VECTOR, "--json", "--time")
    body = json.loads(out)
    assert body["kernel"] == "vector_add" and body["emit"] == "hsaco" and body["output"] is None
    assert body["code_object"]["kernels"][0]["name"] == "vector_add" and body["timings_ms"]["link"] >= 0


@pytest.mark.parametrize("cov", [4, 5, 6])
def test_the_code_object_version_is_the_one_asked_for(run: Any, tmp_path: Path, cov: int) -> None:
    target = tmp_path / "out.hsaco"
    run(EXAMPLES / "vector_add.py", *VECTOR, "--cov", cov, "-o", target)
    assert flyllvm.inspect(target.read_bytes()).code_object_version == cov


def test_llvm_ir_that_names_no_code_object_version_gets_the_one_asked_for(run: Any, tmp_path: Path) -> None:
    ll, target = tmp_path / "k.ll", tmp_path / "k.hsaco"
    ll.write_text('target triple = "amdgcn-amd-amdhsa"\ndefine amdgpu_kernel void @k() {\n  ret void\n}\n')
    for cov in (4, 5, 6):
        assert run(ll, "--cov", cov, "-o", target)[0] == 0
        assert flyllvm.inspect(target.read_bytes()).code_object_version == cov
        assert f".amdhsa_code_object_version {cov}" in run(ll, "--cov", cov, "--emit", "asm")[1]


def test_register_memory_can_be_left_in_memory(run: Any) -> None:
    assert "alloca" in run(EXAMPLES / "vector_add.py", *VECTOR, "--emit", "llvm", "--no-ssa")[1]
    assert "alloca" not in run(EXAMPLES / "vector_add.py", *VECTOR, "--emit", "llvm")[1]


def test_line_tables_can_be_left_out(run: Any) -> None:
    assert "!dbg" in run(EXAMPLES / "vector_add.py", *VECTOR, "--emit", "llvm")[1]
    assert "!dbg" not in run(EXAMPLES / "vector_add.py", *VECTOR, "--emit", "llvm", "--no-debug")[1]


# --- bad input ------------------------------------------------------------------------------------

HEAD = "import flyllvm.compiler as flyc\nimport flyllvm.expr as fx\n\n"
ONE_KERNEL = HEAD + "@flyc.kernel(known_block_size=64)\ndef k(C: fx.Tensor):\n    "


def python(tmp_path: Path, body: str, head: str = ONE_KERNEL) -> Path:
    path = tmp_path / "kernels.py"
    path.write_text(head + body + "\n")
    return path


SPEC = ["--arg", "f32[64]"]
#: Body of a kernel (its line is 6), options, what stderr holds.
WRONG_KERNELS = {
    "copy width": ("fx.rocdl.BufferCopy(256)", "use one of: 8, 16, 32, 64, 96, 128 bits"),
    "other chip": ("fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 32, fx.Float16, fx.Float32))", "16x16x16"),
    "too much LDS": ("fx.shared_memory(fx.Float32, 16385)[0] = 1.0", "gfx942 has 65536 bytes for a workgroup"),
    "composition": ("fx.composition(fx.make_layout((6, 4), (1, 8)), fx.make_layout(5, 3))", "not divisible by"),
    "outside": ("fx.make_rmem_tensor(4, fx.Float32).at(2, fx.make_layout(4, 1)).fill(0.0)", "stay inside the fragment"),
}


@pytest.mark.parametrize("name", WRONG_KERNELS)
def test_a_wrong_kernel_is_bad_input_with_its_line(run: Any, tmp_path: Path, name: str) -> None:
    body, fix = WRONG_KERNELS[name]
    path = python(tmp_path, body)
    status, out, err = run(path, *SPEC, "-o", tmp_path / "out.hsaco")
    assert (status, out) == (2, "")
    assert err.startswith(f"error: {path}:6") and fix in err
    assert not (tmp_path / "out.hsaco").exists()


def test_an_mfma_in_63_threads_is_bad_input(run: Any, tmp_path: Path) -> None:
    body = "fx.make_mma_atom(fx.rocdl.MFMA(16, 16, 16, fx.Float16, fx.Float32))"
    path = python(tmp_path, body, ONE_KERNEL.replace("64", "63"))
    status, _, err = run(path, *SPEC)
    assert status == 2 and "fix: use a block size that is a multiple of 64" in err


@pytest.mark.parametrize(
    ("head", "body", "said"),
    [
        (HEAD, "x = 1", "has 0 kernels: none"),
        (HEAD, "@flyc.kernel\ndef a():\n    pass\n\n\n@flyc.kernel\ndef b():\n    pass", "2 kernels: a, b"),
        (HEAD, "def broken(:", "kernels.py:4: not valid Python"),
        (HEAD, "x = 1 / 0", "kernels.py:4: ZeroDivisionError while the file runs"),
        (HEAD, "import no_such_module", "kernels.py:4: ModuleNotFoundError while the file runs"),
    ],
    ids=["none", "two", "syntax", "error", "import"],
)
def test_a_file_without_one_kernel_that_loads_is_bad_input(
    run: Any, tmp_path: Path, head: str, body: str, said: str
) -> None:
    status, _, err = run(python(tmp_path, body, head))
    assert status == 2 and said in err and "fix:" in err


def test_an_error_of_the_kernels_own_python_is_bad_input_with_its_line(run: Any, tmp_path: Path) -> None:
    path = python(tmp_path, "C[0] = undefined_name")
    status, _, err = run(path, *SPEC)
    assert status == 2
    assert f"{path}:6" in err and "NameError" in err and "undefined_name" in err and "bug in flyllvm" not in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--arg", "f32[?"], "write e.g. f16"),
        (["--arg", "f32[?]{align=0}"], "mark 'align=0'\n  fix: give a number from 1 on"),
        (["--arg", "g32[?]"], "unknown element type 'g32'"),
        ([], "0 --arg for its parameters A, B, C\n  fix: give one --arg for each"),
        ([*VECTOR, *VECTOR], "give one specification per parameter"),
        ([*VECTOR, "--const", "BM"], "write NAME=VALUE"),
        ([*VECTOR, "--const", "BM=3"], "parameters: A, B, C"),
        ([*VECTOR, "--emit", "nonsense"], "see flyllvm compile --help"),
    ],
)
def test_wrong_arguments_are_bad_input(run: Any, arguments: list[str], said: str) -> None:
    status, out, err = run(EXAMPLES / "vector_add.py", *arguments)
    assert (status, out) == (2, "") and said in err


HOST = """import flyllvm.compiler as flyc
import flyllvm.expr as fx

@flyc.kernel
def fill(x: fx.Tensor, v: fx.Float32):
    x[fx.thread_idx.x] = v

@flyc.jit
def run(x, v: fx.Float32, block: fx.Constexpr[int], stream: fx.Stream):
    fill(x, v).launch(grid=1, block=block, stream=stream)
"""


def test_a_host_function_is_compiled_by_its_name(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "host.py"
    path.write_text(HOST, encoding="utf-8")
    arguments = ["--arg", "f32[?]", "--arg", "f32", "--const", "block=128"]
    status, out, err = run(f"{path}:run", *arguments, "--emit", "llvm")
    assert status == 0, err
    assert "@fill(" in out and '"amdgpu-flat-work-group-size"="128,128"' in out
    status, _, err = run(f"{path}:run", *arguments, "-o", tmp_path / "out.hsaco")
    assert status == 0 and (tmp_path / "out.hsaco").read_bytes()[:4] == b"\x7fELF", err
    status, _, err = run(f"{path}:rum", *arguments)
    assert status == 2 and "fix: its kernels: fill, run" in err


def test_an_unknown_kernel_names_those_of_the_file(run: Any) -> None:
    status, _, err = run(f"{EXAMPLES / 'gemm.py'}:gem", *GEMM)
    assert status == 2 and "fix: its kernels: gemm" in err


@pytest.mark.parametrize(("arch", "said"), [("gfx906", "use one of: gfx90a"), (None, "or set FLYLLVM_ARCH")])
def test_an_unknown_or_missing_arch_is_bad_input(run: Any, arch: str | None, said: str) -> None:
    status, _, err = run(EXAMPLES / "gemm.py", *GEMM, arch=arch)
    assert status == 2 and said in err


def test_a_missing_file_is_bad_input(run: Any, tmp_path: Path) -> None:
    for name in ("no.py", "no.fly", "no.ll"):
        status, _, err = run(tmp_path / name)
        assert status == 2 and "No such file" in err


WRONG_CHIP = """target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p, <8 x half> %a, <4 x float> %c) {
  %r = call <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.f16(
      <8 x half> %a, <8 x half> %a, <4 x float> %c, i32 0, i32 0, i32 0)
  store <4 x float> %r, ptr addrspace(1) %p
  ret void
}
declare <4 x float> @llvm.amdgcn.mfma.f32.16x16x32.f16(<8 x half>, <8 x half>, <4 x float>, i32, i32, i32)
"""


@pytest.mark.parametrize("emit", ["asm", "obj", "hsaco"])
@pytest.mark.parametrize(
    ("text", "said"),
    [("define void @x() { ret i32 %y }", "LLVM refuses the module"), (WRONG_CHIP, "mfma.f32.16x16x32.f16")],
    ids=["broken", "an intrinsic LLVM would abort on"],
)
def test_wrong_llvm_ir_is_bad_input(run: Any, tmp_path: Path, text: str, said: str, emit: str) -> None:
    path = tmp_path / "x.ll"
    path.write_text(text)
    status, out, err = run(path, "--emit", emit)
    assert (status, out) == (2, "") and said in err and "fix:" in err


def test_wrong_fly_ir_is_bad_input_with_its_line(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.fly"
    path.write_text("func.func @k() {\n  nonsense\n}\n")
    status, _, err = run(path)
    assert status == 2 and "x.fly:" in err and "fix:" in err


@pytest.mark.parametrize("text", ["", "// nothing\n", "gpu.module @k {\n}\n"])
def test_fly_ir_without_a_kernel_is_bad_input(run: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.fly"
    path.write_text(text)
    status, _, err = run(path)
    assert status == 2 and "fix:" in err and "Traceback" not in err


@pytest.mark.parametrize("suffix", ["ll", "fly"])
def test_arguments_for_a_file_that_names_its_own_are_bad_input(run: Any, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"x.{suffix}"
    path.write_text("")
    status, _, err = run(path, *SPEC)
    assert status == 2 and f"--arg and --const with a .{suffix} file" in err


@pytest.mark.parametrize("command", ["inspect", "link"])
@pytest.mark.parametrize("kind", ["truncated", "foreign", "text"])
def test_a_truncated_or_foreign_file_is_bad_input(
    command: str, kind: str, run: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(EXAMPLES / "vector_add.py", *VECTOR, "--emit", "obj", "-o", tmp_path / "whole.o")
    path = tmp_path / "x.o"
    whole = (tmp_path / "whole.o").read_bytes()
    foreign = Path(sys.executable).resolve().read_bytes()
    path.write_bytes({"truncated": whole[:-100], "foreign": foreign, "text": b"hello"}[kind])
    arguments = [command, str(path)] + (["-o", str(tmp_path / "out")] if command == "link" else [])
    capsys.readouterr()
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == "" and "x.o" in err and "fix:" in err


def test_errors_are_one_json_object_where_asked(run: Any, tmp_path: Path) -> None:
    path = python(tmp_path, "fx.rocdl.BufferCopy(256)")
    status, out, err = run(path, *SPEC, "--json")
    body = json.loads(err)["error"]
    assert (status, out) == (2, "") and body["type"] == "AtomError" and body["where"].startswith(f"{path}:6")
    assert "128 bits" in body["fix"]


def test_a_result_that_cannot_be_written_is_bad_input(run: Any, tmp_path: Path) -> None:
    status, _, err = run(EXAMPLES / "vector_add.py", *VECTOR, "-o", tmp_path / "no" / "such" / "folder" / "x.hsaco")
    assert status == 2 and "error:" in err


def test_llvm_ir_without_a_kernel_is_bad_input(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_text("define void @helper() {\n  ret void\n}\n")
    status, out, err = run(path, "-o", tmp_path / "x.hsaco")
    assert (status, out) == (2, "") and "no kernel" in err and "calling convention amdgpu_kernel" in err
    assert not (tmp_path / "x.hsaco").exists()
    assert run(path, "--emit", "obj", "-o", tmp_path / "x.o")[0] == 0


def test_a_kernel_name_behind_llvm_or_fly_ir_is_bad_input(run: Any, tmp_path: Path) -> None:
    for suffix in (".ll", ".fly"):
        status, _, err = run(f"{tmp_path}/x{suffix}:k")
        assert status == 2 and "a kernel is named in a Python file only" in err and "fix: give " in err


def test_a_file_that_ends_its_process_is_bad_input(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.py"
    path.write_text("import sys\n\nsys.exit(5)\n")
    status, _, err = run(path)
    assert status == 2 and f"{path}:3: SystemExit while the file runs: 5" in err


def test_a_dash_is_standard_output(tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_text("define amdgpu_kernel void @k() {\n  ret void\n}\n")
    command = [sys.executable, "-m", "flyllvm", "compile", str(path), "--arch", "gfx942", "-o"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run([*command, "-"], env=environment, cwd=tmp_path, capture_output=True, check=True)
    subprocess.run([*command, "x.hsaco"], env=environment, cwd=tmp_path, capture_output=True, check=True)
    assert done.stdout == (tmp_path / "x.hsaco").read_bytes() and not (tmp_path / "-").exists()


def test_a_missing_architecture_or_argument_is_asked_for_as_an_option(run: Any) -> None:
    status, _, err = run(EXAMPLES / "vector_add.py", *VECTOR, arch=None)
    assert status == 2 and "no architecture given\n  fix: give --arch gfx942" in err
    status, _, err = run(EXAMPLES / "vector_add.py", *VECTOR[:2])
    assert (
        status == 2
        and "no value for B, C: 1 --arg for its parameters A, B, C" in err
        and "fix: give one --arg for each" in err
    )


def test_errors_of_llvm_name_the_file(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.ll"
    path.write_text("define x(")
    for emit in ("hsaco", "asm"):
        status, _, err = run(path, "--emit", emit)
        assert status == 2 and f"{path}:1:8: error: expected type" in err and "<string>" not in err


def test_fly_ir_is_not_printed_at_a_stage_it_is_past(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "x.fly"
    path.write_text(run(EXAMPLES / "vector_add.py", *VECTOR, "--emit", "ssa")[1])
    for emit in ("fly", "atoms"):
        status, out, err = run(path, "--emit", emit)
        assert (status, out) == (2, "")
        assert f"vector_add is at stage ssa: its text of stage {emit}" in err and "fix: ask for stage ssa" in err
    assert run(path, "--emit", "ssa")[0] == 0


@pytest.mark.parametrize(
    ("name", "fix"),
    [
        ("zero.ll", "pass fly IR or LLVM IR as text"),
        ("zero.fly", "pass fly IR or LLVM IR as text"),
        ("zero.py", "pass a Python source file"),
        ("zero.py:kernel", "pass a Python source file"),
    ],
)
def test_a_file_without_end_is_refused_before_it_fills_the_memory(
    name: str, fix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flyllvm.codeobject.files.LARGEST_TEXT", 1 << 22)
    monkeypatch.chdir(tmp_path)
    Path(name.partition(":")[0]).symlink_to("/dev/zero")
    assert main(["compile", name, "--arch", "gfx942"]) == 2
    said = capsys.readouterr().err
    assert "more than 4194304 bytes" in said and f"fix: {fix}" in said


def test_a_configuration_without_end_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flyllvm.codeobject.files.LARGEST_TEXT", 1 << 22)
    assert main(["compile", "--config", "/dev/zero", "-o", str(tmp_path / "out")]) == 2
    assert "/dev/zero: more than 4194304 bytes\n  fix: pass a JSON configuration" in capsys.readouterr().err
