"""The automatic choice of LLVM's passes: by the size of a tile, and by what spills."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from flyllvm.codegen.client import compile_llvm
from flyllvm.codegen.levers import choose_passes, mark_folded, mark_large_tile, reduces_strength
from flyllvm.codegen.options import Options
from flyllvm.compiler import image
from flyllvm.compiler.image import Image, image_stage
from flyllvm.compiler.pipeline import Timings
from flyllvm.errors import CodegenError
from flyllvm.target import Target

#: Every lane adds up what is 256 bytes apart from a place of its own.
LOOP = """
target triple = "amdgcn-amd-amdhsa"
define amdgpu_kernel void @k(ptr addrspace(1) %p, i32 %n) {
entry:
  %t = call range(i32 0, 256) i32 @llvm.amdgcn.workitem.id.x()
  %b = shl nuw nsw i32 %t, 2
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %s = phi i32 [ 0, %entry ], [ %more, %loop ]
  %o = mul nuw nsw i32 %i, 256
  %w = zext i32 %o to i64
  %q = getelementptr i8, ptr addrspace(1) %p, i64 %w
  %l = zext i32 %b to i64
  %a = getelementptr i8, ptr addrspace(1) %q, i64 %l
  %x = load i32, ptr addrspace(1) %a
  %more = add i32 %s, %x
  %next = add nuw nsw i32 %i, 1
  %again = icmp slt i32 %next, %n
  br i1 %again, label %loop, label %exit
exit:
  %l2 = zext i32 %b to i64
  %r = getelementptr i8, ptr addrspace(1) %p, i64 %l2
  store i32 %more, ptr addrspace(1) %r
  ret void
}
declare i32 @llvm.amdgcn.workitem.id.x()
"""


@pytest.fixture(scope="module")
def tiles() -> ModuleType:
    path = Path(__file__).parents[2] / "benchmarks" / "gemm_big.py"
    spec = importlib.util.spec_from_file_location("gemm_big_benchmark", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_choice_is_in_the_text() -> None:
    assert choose_passes(mark_large_tile("text\n", 193), "auto")[0] == "O1"
    assert "193 registers" in choose_passes(mark_large_tile("text\n", 193), "auto")[1]
    assert mark_large_tile("text\n", 192) == "text\n"
    assert choose_passes("text\n", "auto")[0] == "none"
    assert choose_passes(mark_large_tile("text\n", 500), "O3") == ("O3", "as asked")


def test_loops_that_fold_addresses_are_not_strength_reduced_unless_their_tile_fills_the_registers() -> None:
    assert not reduces_strength(mark_folded("}\n", 3, 2, 192))
    assert reduces_strength(mark_folded("}\n", 3, 3, 0)) and reduces_strength(mark_folded("}\n", 3, 2, 193))


@pytest.mark.llvm
def test_a_loop_that_is_not_strength_reduced_leaves_the_next_module_alone() -> None:
    marked = mark_folded("", 1, 0, 0)
    first, second, third = (
        compile_llvm(LOOP + tail, Target.parse("gfx942"), want=("asm",)).assembly for tail in ("", marked, "")
    )
    assert first == third != second


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ["gfx942", "gfx950", "gfx90a"])
def test_a_tile_that_fills_the_registers_neither_spills_nor_uses_scratch(tiles: ModuleType, arch: str) -> None:
    art = tiles.compile_tile(256, 256, 64, arch, cache=False)
    kernel = art.code_object.kernels["gemm_tile"]
    assert art.passes == "O1" and any("registers of a lane" in note for note in art.timings.notes)
    assert (kernel.vgpr_spill_count, kernel.sgpr_spill_count, kernel.scratch_bytes) == (0, 0, 0)
    assert art.assembly.count("v_mfma") == 256  # the loop is not unrolled, and no product is lost


@pytest.mark.llvm
@pytest.mark.sim
@pytest.mark.parametrize("tile", [(256, 256, 64), (128, 128, 64)])
def test_the_tiles_agree_with_numpy(tiles: ModuleType, tile: tuple[int, int, int]) -> None:
    art = tiles.compile_tile(*tile, cache=False)
    rng = np.random.default_rng(0)
    m, n, k = 2 * tile[0], tile[1], 128
    a, b = (rng.integers(-2, 3, shape).astype(np.float16) for shape in ((m, k), (n, k)))
    c = np.full((m, n), np.nan, np.float16)
    art.simulate(a, b, c, grid=(2, 1, 1))
    assert np.array_equal(c.astype(np.float32), a.astype(np.float32) @ b.astype(np.float32).T)


@pytest.mark.llvm
def test_a_small_kernel_runs_no_passes(tiles: ModuleType) -> None:
    art = tiles.compile_tile(128, 128, 32, cache=False)
    assert art.passes == "none" and "llvm:passes" not in art.timings.stages
    assert "none (no loop carries more than 192" in art.timings.render()


class Kernel:
    """What the choice looks at."""

    def __init__(self, spills: int) -> None:
        self.vgpr_spill_count = spills
        self.sgpr_spill_count = 0


@pytest.mark.parametrize(
    ("first", "second", "taken"), [(4, 0, "O1"), (4, 2, "O1"), (4, 4, "none"), (4, 9, "none"), (0, 0, "none")]
)
def test_what_spills_is_compiled_the_other_way_and_the_better_one_taken(
    monkeypatch: pytest.MonkeyPatch, first: int, second: int, taken: str
) -> None:
    spills = {"none": first, "O1": second}
    asked: list[str] = []

    def make(*args: Any) -> Image:
        passes, why = args[3], args[4]
        asked.append(passes)
        code: Any = type("Code", (), {"kernels": {"k": Kernel(spills[passes])}})()
        return Image(b"", code, passes, why)

    monkeypatch.setattr(image, "_make", make)
    clock = Timings()
    made = image_stage("text", Target.parse("gfx942"), Options(), clock, cache=False)
    assert made.passes == taken and made.spills == spills[taken]
    assert asked == (["none", "O1"] if first else ["none"])
    if first:
        assert f"spills {spills[taken]} registers" in clock.notes[0]
    asked.clear()
    image_stage("text", Target.parse("gfx942"), Options(passes="none"), Timings(), cache=False)
    assert asked == ["none"]  # what was asked for is not second-guessed


@pytest.mark.llvm
def test_the_choice_survives_the_cache(tiles: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_CACHE", "1")
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", str(tmp_path))
    first, again = (tiles.compile_tile(256, 256, 32) for _ in range(2))
    assert (first.passes, again.passes) == ("O1", "O1")
    assert again.code_object.image == first.code_object.image
    assert again.timings.notes == [first.timings.notes[0] + "; from the cache"]


def test_an_unknown_pipeline_is_refused() -> None:
    with pytest.raises(CodegenError, match="auto, none, O1"):
        Options(passes="O9")
