"""What a compilation gives: the text of every stage, the code object, times; the same input gives the same bytes."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import flyllvm
import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import CodegenError
from flyllvm.ir.parser import parse_module
from flyllvm.ir.printer import print_module
from tests.examples.programs import EXAMPLES, load

pytestmark = pytest.mark.llvm

ROOT = Path(__file__).parents[2]


@functools.cache
def gemm() -> Any:
    return load("gemm").compile_gemm()


# --- stages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stage", "holds", "lacks"),
    [
        (
            "fly_ir",
            ["fly.copy(", "fly.gemm(", "fly.make_tiled_mma", "fly.memref.alloca"],
            ["copy_atom_call", "define "],
        ),
        ("atoms_ir", ["fly.copy_atom_call(", "fly.mma_atom_call("], ["fly.copy(", "fly.gemm(", "_ssa"]),
        ("ssa_ir", ["fly.copy_atom_call_ssa", "fly.mma_atom_call_ssa", "iter_args"], ["fly.memref.alloca", "_call("]),
        (
            "llvm_ir",
            ["define protected amdgpu_kernel void @gemm", "llvm.amdgcn.mfma.f32.16x16x16f16"],
            ["fly.", "alloca"],
        ),
        ("assembly", ["v_mfma_f32_16x16x16_f16", "s_endpgm"], ["define "]),
    ],
)
def test_the_text_of_a_stage_holds_that_stage(stage: str, holds: list[str], lacks: list[str]) -> None:
    text = getattr(gemm(), stage)
    for part in holds:
        assert part in text
    for part in lacks:
        assert part not in text


@pytest.mark.parametrize("stage", ["fly_ir", "atoms_ir", "ssa_ir"])
def test_the_text_of_a_fly_stage_reads_back_as_itself(stage: str) -> None:
    text = getattr(gemm(), stage)
    assert print_module(parse_module(text)) == text


def test_the_code_object_is_the_linked_object() -> None:
    art = gemm()
    assert art.object_bytes[:4] == b"\x7fELF" and flyllvm.link(art.object_bytes) == art.code_object.image
    assert list(art.code_object.kernels) == ["gemm"] == [art.name]
    kernel = art.code_object.kernels["gemm"]
    assert (kernel.max_workgroup_size, kernel.wave_size) == (256, 64)
    # Three tensors of a pointer, two extents and the run-time stride.
    assert [a.size for a in kernel.args][:4] == [8, 4, 4, 4] and len(kernel.args) == 12


def test_every_stage_is_timed_and_the_workers_with_it() -> None:
    stages = gemm().timings.stages
    assert {"fly", "atoms", "ssa", "llvm", "llvm:parse", "llvm:codegen", "link"} <= set(stages)
    assert all(ms >= 0 for ms in stages.values()) and stages["llvm:codegen"] > 1
    assert "total" in gemm().timings.render()


@pytest.mark.parametrize(("stop", "has_object"), [("fly", False), ("llvm", False), ("object", True)])
def test_stopping_early_leaves_out_the_rest(stop: str, has_object: bool) -> None:
    art = load("vector_add").compile_vector_add(stop_after=stop)
    assert bool(art.object_bytes) is has_object
    with pytest.raises(CodegenError, match="compile without stop_after"):
        _ = art.code_object


@pytest.mark.parametrize("cov", [400, 500, 600])
def test_the_code_object_version_is_the_one_asked_for(cov: int) -> None:
    art = load("vector_add").compile_vector_add(cov=cov)
    assert flyllvm.inspect(art.code_object.image).code_object_version == cov // 100


# --- the same input gives the same bytes ----------------------------------------------------------


def test_the_same_kernel_compiled_twice_gives_the_same_bytes() -> None:
    again = load("gemm").compile_gemm()
    for stage in ("fly_ir", "atoms_ir", "ssa_ir", "llvm_ir", "assembly", "object_bytes"):
        assert getattr(again, stage) == getattr(gemm(), stage), stage
    assert again.code_object.image == gemm().code_object.image


def test_another_process_with_other_hashes_and_another_folder_gives_the_same_bytes(tmp_path: Path) -> None:
    shutil.copy(EXAMPLES / "gemm.py", tmp_path / "gemm.py")
    program = "import sys, gemm; sys.stdout.buffer.write(gemm.compile_gemm().code_object.image)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), str(ROOT)]), "PYTHONHASHSEED": "77"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, env=environment, check=True, cwd=tmp_path
    )
    assert done.stdout == gemm().code_object.image


def test_neither_text_nor_object_holds_an_absolute_path() -> None:
    art = gemm()
    for folder in {str(ROOT), str(Path.home()), str(Path(sys.executable).parent)} - {"/"}:
        assert folder not in art.llvm_ir and folder.encode() not in art.object_bytes
    assert '"gemm.py"' in art.llvm_ir and 'directory: ""' in art.llvm_ir


def test_other_inputs_give_other_bytes() -> None:
    other = load("gemm").compile_gemm(2, 2)
    assert other.code_object.image != gemm().code_object.image


# --- what decides the kernel ----------------------------------------------------------------------


def test_a_name_for_the_kernel_is_its_symbol() -> None:
    def body(A: fx.Tensor) -> None:
        A[0] = 1.0

    art = flyc.compile(flyc.kernel(body, name="other_name"), "f32[4]", arch="gfx942")
    assert list(art.code_object.kernels) == ["other_name"]


def test_constants_and_defaults_are_compile_time_values() -> None:
    def body(A: fx.Tensor, n: int, m: int = 3) -> None:
        A[0] = float(n * m)

    kernel = flyc.kernel(body)
    texts = [
        flyc.compile(kernel, "f32[1]", arch="gfx942", stop_after="llvm", debug=False, constants=c).llvm_ir
        for c in ({"n": 4}, {"n": 4, "m": 5})
    ]
    assert "0x4028000000000000" in texts[0] and "0x4034000000000000" in texts[1]


@pytest.mark.sim
def test_an_array_is_its_own_specification() -> None:
    def body(A: fx.Tensor, n: fx.Int32) -> None:
        assert A.shape == (3, 5) and A.stride == (5, 1)
        A[1, 2] = n

    a = np.zeros((3, 5), np.int32)
    art = flyc.compile(flyc.kernel(body, known_block_size=(1, 1, 1)), a, fx.Int32, arch="gfx942", stop_after="llvm")
    art.simulate(a, 9, grid=1)
    assert a[1, 2] == 9 and np.count_nonzero(a) == 1


@pytest.mark.sim
def test_extents_and_strides_of_an_array_reach_the_kernel() -> None:
    def body(A: fx.Tensor, out: fx.Tensor) -> None:
        for i, leaf in enumerate((*A.shape, *A.stride)):
            out[i] = leaf

    kernel = flyc.kernel(body, known_block_size=(1, 1, 1))
    art = flyc.compile(kernel, "f16[?,?]:(?,?)", "i32[4]", arch="gfx942", stop_after="llvm")
    out = np.zeros(4, np.int32)
    art.simulate(np.zeros((6, 7), np.float16), out, grid=1)
    np.testing.assert_array_equal(out, [6, 7, 7, 1])


def test_optimised_ir_is_llvms() -> None:
    art = load("vector_add").compile_vector_add(passes="O1", stop_after="llvm")
    assert "define protected amdgpu_kernel void @vector_add" in art.optimised_ir
    assert art.optimised_ir != art.llvm_ir


def test_a_module_is_loaded_once_per_name() -> None:
    # The helper that loads examples must give independent modules, or mutants would leak into each other.
    first, second = load("vector_add"), load("vector_add")
    assert isinstance(first, types.ModuleType) and first is not second
