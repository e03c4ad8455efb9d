"""What LLVM makes of the examples: waits before barriers, no spills, a lean loop."""

from __future__ import annotations

import functools
import re
from typing import Any

import pytest

from tests.examples.invariant import invariant
from tests.examples.programs import EXAMPLES, load

pytestmark = pytest.mark.llvm

ARCHES = ["gfx942", "gfx950"]
PROGRAMS = {
    "gemm, wide": ("gemm", "compile_gemm", (8, 4)),
    "gemm, pairs": ("gemm", "compile_gemm", (2, 2)),
    "gemm, single": ("gemm", "compile_gemm", (1, 1)),
    "vector add, f32": ("vector_add", "compile_vector_add", ("f32",)),
    "vector add, f16": ("vector_add", "compile_vector_add", ("f16",)),
    "2d vector add, any shape": ("01_vector_add_2d", "compile_vector_add_2d", ()),
    "2d vector add, 100x1000": ("01_vector_add_2d", "compile_vector_add_2d", ((100, 1000),)),
    "2d vector add, 3x8": ("01_vector_add_2d", "compile_vector_add_2d", ((3, 8),)),
    "tiled copy": ("02_tiled_copy", "compile_kernel", ("tiled_copy",)),
    "transpose": ("02_tiled_copy", "compile_kernel", ("transpose",)),
    "tiled mma": ("03_tiled_mma", "compile_tiled_mma", ()),
    "preshuffle gemm": ("04_preshuffle_gemm", "compile_preshuffle_gemm", (256, 256, 1024)),
    "pick": ("05_gather_scatter", "compile_kernel", ("pick",)),
    "put": ("05_gather_scatter", "compile_kernel", ("put",)),
    "softmax, 2048": ("06_softmax", "compile_softmax", (2048,)),
    "softmax, 12": ("06_softmax", "compile_softmax", (12,)),
    "double buffer": ("07_gemm_double_buffer", "compile_gemm_double_buffer", (256, 256, 1024)),
}
#: Barriers in the assembly, where there are any.
BARRIERS = {
    "gemm, wide": 2, "gemm, pairs": 2, "gemm, single": 2, "transpose": 1, "softmax, 2048": 2, "softmax, 12": 2,
    "preshuffle gemm": 4, "double buffer": 4,
}  # fmt: skip
EVERY = pytest.mark.parametrize(("name", "arch"), [(n, a) for n in PROGRAMS for a in ARCHES])


@functools.cache
def artifact(name: str, arch: str) -> Any:
    file, function, arguments = PROGRAMS[name]
    return getattr(load(file), function)(*arguments, arch=arch)


def instructions(assembly: str) -> list[str]:
    """Labels of blocks and instructions, in order."""
    code = assembly.partition("s_endpgm")[0]
    lines = (line.partition(";")[0].strip() for line in code.splitlines())
    return [line for line in lines if re.match(r"\.LBB\d+_\d+:|[a-z]\w+", line)]


def unwaited_barriers(lines: list[str]) -> list[int]:
    """Barriers that LDS accesses may still be under way at; every label is taken to be reached with some."""
    found, pending = [], False
    for i, line in enumerate(lines):
        if line.startswith((".LBB", "ds_")) or re.match(r"buffer_load\w* .* lds$", line):
            pending = True
        elif re.match(r"s_waitcnt\b.*\blgkmcnt\(0\)", line):
            pending = False
        elif line.startswith("s_barrier") and pending:
            found.append(i)
    return found


def loops(lines: list[str]) -> list[list[str]]:
    """Bodies of innermost loops: from a label to the last branch back to it, without labels."""
    bodies = []
    for i, line in enumerate(lines):
        if line.startswith(".LBB"):
            label = line.rstrip(":")
            back = [j for j, x in enumerate(lines) if j > i and x.startswith("s_cbranch") and x.endswith(label)]
            if back:
                bodies.append([x for x in lines[i : back[-1] + 1] if not x.startswith(".LBB")])
    return bodies


def test_every_example_is_checked_here() -> None:
    assert {file for file, _, _ in PROGRAMS.values()} == {path.stem for path in EXAMPLES.glob("*.py")}


def test_the_check_sees_a_barrier_without_a_wait() -> None:
    wait, write, barrier = "s_waitcnt lgkmcnt(0)", "ds_write_b128 v0, v[1:4]", "s_barrier"
    assert unwaited_barriers([write, wait, barrier]) == []
    assert unwaited_barriers([write, "s_waitcnt vmcnt(0) lgkmcnt(0)", barrier]) == []
    assert unwaited_barriers([write, barrier]) == [1]
    assert unwaited_barriers([wait, write, barrier]) == [2]
    assert unwaited_barriers([write, "s_waitcnt lgkmcnt(1)", barrier]) == [2]
    assert unwaited_barriers([wait, ".LBB0_1:", barrier]) == [2]
    assert unwaited_barriers(instructions("x:\n\tds_write_b32 v0, v1\n\t.loc 0 1\n\ts_barrier ; c\n\ts_endpgm")) == [1]


@EVERY
def test_the_lds_wait_stands_before_every_barrier(name: str, arch: str) -> None:
    lines = instructions(artifact(name, arch).assembly)
    assert unwaited_barriers(lines) == []
    assert lines.count("s_barrier") == BARRIERS.get(name, 0)


@EVERY
def test_nothing_is_spilt_and_no_scratch_is_used(name: str, arch: str) -> None:
    (kernel,) = artifact(name, arch).code_object.kernels.values()
    assert (kernel.vgpr_spill_count, kernel.sgpr_spill_count, kernel.scratch_bytes) == (0, 0, 0)
    assert not re.search(
        r"scratch_(load|store)|buffer_(load|store)\w* .* s\[0:3\], 0 offset", artifact(name, arch).assembly
    )


@EVERY
def test_fragments_are_values_at_stage_ssa(name: str, arch: str) -> None:
    art = artifact(name, arch)
    assert "fly.memref.alloca" not in art.ssa_ir and "alloca" not in art.llvm_ir


@EVERY
def test_a_loop_computes_nothing_that_does_not_depend_on_it(name: str, arch: str) -> None:
    for body in loops(instructions(artifact(name, arch).assembly)):
        assert invariant(body) == []


@EVERY
def test_layouts_leave_no_division_behind(name: str, arch: str) -> None:
    lines = instructions(artifact(name, arch).assembly)
    # LLVM divides with a reciprocal, or with a high product where the divisor is static.
    divisions = [x.split()[0] for x in lines if re.search(r"_rcp_|cvt_f32_u32|div_", x)]
    # The softmax divides once itself, by the sum.
    assert divisions.count("v_div_fixup_f32") == name.startswith("softmax")
    own = {"v_div_scale_f32", "v_rcp_f32_e32", "v_div_fmas_f32", "v_div_fixup_f32"}
    assert set(divisions) == (own if name.startswith("softmax") else set())
    assert [x for body in loops(lines) for x in body if re.search(r"mul_hi|_mul_|_lshr", x)] == []


@pytest.mark.parametrize("arch", ARCHES)
def test_the_gemm_loop_has_at_most_67_instructions_for_32_mfmas(arch: str) -> None:
    (body,) = loops(instructions(artifact("gemm, wide", arch).assembly))
    count = {kind: sum(x.startswith(kind) for x in body) for kind in ("v_mfma", "ds_read", "ds_write", "buffer_load")}
    assert count == {"v_mfma": 32, "ds_read": 8, "ds_write": 4, "buffer_load": 4}
    assert len(body) <= 67, "\n".join(body)


@pytest.mark.parametrize("arch", ARCHES)
def test_the_gemm_moves_128_bits_at_once_between_global_memory_and_lds(arch: str) -> None:
    lines = instructions(artifact("gemm, wide", arch).assembly)
    moves = {x.split()[0] for x in lines if x.startswith(("ds_", "buffer_load"))}
    assert moves == {"ds_write_b128", "ds_read_b128", "buffer_load_dwordx4"}


def test_the_gemm_uses_the_lds_of_its_tiles_and_leaves_room_for_two_workgroups() -> None:
    (kernel,) = artifact("gemm, wide", "gfx942").code_object.kernels.values()
    assert kernel.lds_bytes == 2 * 128 * 32 * 2
    # 512 registers per SIMD lane; two waves per SIMD need at most 256 each.
    assert kernel.vgpr_count + kernel.agpr_count <= 128


@pytest.mark.parametrize("dtype", ["f32", "f16"])
def test_the_vector_add_moves_128_bits_at_once(dtype: str) -> None:
    lines = instructions(artifact(f"vector add, {dtype}", "gfx942").assembly)
    count = {kind: sum(x.startswith(kind) for x in lines) for kind in ("global_load_dwordx4", "global_store_dwordx4")}
    assert count == {"global_load_dwordx4": 2, "global_store_dwordx4": 1}


@pytest.mark.parametrize("name", ["gemm, wide", "vector add, f32"])
def test_the_assembly_names_the_lines_of_the_author(name: str) -> None:
    art = artifact(name, "gfx942")
    assert f'"{PROGRAMS[name][0]}.py"' in art.assembly
    assert len(set(re.findall(r"\.loc\s+\d+ (\d+)", art.assembly))) > 5


@pytest.mark.parametrize("name", ["tiled copy", "transpose"])
@pytest.mark.parametrize("arch", ARCHES)
def test_static_tiles_are_copied_without_division_or_a_loop(name: str, arch: str) -> None:
    lines = instructions(artifact(name, arch).assembly)
    assert loops(lines) == [] and not any(x.startswith("s_cbranch") for x in lines)
    assert [x for x in lines if re.search(r"_rcp_|cvt_f32_u32|div_|mul_hi|mulhi", x)] == []


@pytest.mark.parametrize("arch", ARCHES)
def test_the_tiled_copy_moves_128_bits_at_once_from_a_scalar_base(arch: str) -> None:
    lines = instructions(artifact("tiled copy", arch).assembly)
    moves = [x for x in lines if re.match(r"global_|buffer_|flat_|ds_", x)]
    kinds = [x.split()[0] for x in moves]
    assert kinds.count("global_load_dwordx4") == kinds.count("global_store_dwordx4") == 4 and len(kinds) == 8
    # Every lane computes one 32-bit offset, and adds what an instruction has no room for, once for load and store.
    assert all(re.search(r"\bs\[\d+:\d+\]$", x) for x in moves)
    assert sum(x.startswith("v_") for x in lines) <= 7


@pytest.mark.parametrize("name", [n for n in PROGRAMS if n.startswith("2d vector add")])
def test_the_2d_vector_add_moves_128_bits_at_once(name: str) -> None:
    lines = instructions(artifact(name, "gfx942").assembly)
    moves = {x.split()[0] for x in lines if re.match(r"global_|buffer_|flat_|ds_", x)}
    assert moves == {"global_load_dwordx4", "global_store_dwordx4"}


def test_the_tiled_mma_makes_its_eight_products_in_every_wave() -> None:
    lines = instructions(artifact("tiled mma", "gfx942").assembly)
    assert sum(x.startswith("v_mfma_f32_16x16x4_f32") for x in lines) == 8


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # Two K steps of 64 MFMAs a wave: B by 4 loads a step, A by 4 and through LDS, where a wave reads all rows.
        ("preshuffle gemm", {"v_mfma": 128, "ds_read_b128": 32, "ds_write_b128": 8, "buffer_load_dwordx4": 16}),
        # Both operands by 4 loads a step and through LDS, where a wave reads half of the rows of each.
        ("double buffer", {"v_mfma": 128, "ds_read_b128": 32, "ds_write_b128": 16, "buffer_load_dwordx4": 16}),
    ],
)
@pytest.mark.parametrize("arch", ARCHES)
def test_the_pipelined_loops_move_what_they_must_and_wait_at_one_barrier_a_step(
    name: str, expected: dict[str, int], arch: str
) -> None:
    art = artifact(name, arch)
    (body,) = loops(instructions(art.assembly))
    assert {kind: sum(x.startswith(kind) for x in body) for kind in expected} == expected
    # Besides: waits, the counter, and one addition for every second load, as two steps share their offsets.
    rest = [x.split()[0] for x in body if not x.startswith(tuple(expected))]
    other = {"s_barrier", "s_waitcnt", "s_nop", "s_add_i32", "s_lshl_b32", "s_cmp_lt_i32", "s_cbranch_scc1"}
    assert set(rest) <= other | {"v_add_u32_e32", "v_lshl_add_u32"} and rest.count("s_barrier") == 2
    assert sum(x.startswith("v_") for x in rest) <= expected["buffer_load_dwordx4"] // 2
    # Products stand between a step's loads and the writes to LDS that wait for them.
    marks = (("v_mfma", "m"), ("buffer_load", "l"), ("ds_write", "w"))
    order = "".join(mark for x in body for start, mark in marks if x.startswith(start))
    assert [run.count("m") >= 24 for run in re.findall(r"l([^l]*?)w", order)] == [True, True]
    # The accumulators are phis of the loop, nothing is moved around.
    assert "phi <" in art.llvm_ir


def test_the_softmax_exchanges_lanes_without_lds_where_rows_of_lanes_allow_it() -> None:
    lines = instructions(artifact("softmax, 2048", "gfx942").assembly)
    assert any("row_" in x or "quad_perm" in x for x in lines)


@pytest.mark.parametrize("name", ["pick", "put"])
def test_gathers_move_128_bits_at_once(name: str) -> None:
    lines = instructions(artifact(name, "gfx942").assembly)
    moves = [x.split()[0] for x in lines if re.match(r"global_|buffer_|flat_|ds_", x)]
    wide = ["global_load_dwordx4", "global_store_dwordx4"]
    assert [moves.count(x) for x in wide] == [4, 4] and set(moves) == {*wide, "global_load_dword"}
