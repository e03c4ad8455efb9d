"""Addresses in assembly: what lanes share stays scalar, loops are left alone by what they do not move."""

from __future__ import annotations

import re

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from tests.examples.invariant import invariant, written_and_read
from tests.examples.test_assembly import instructions, loops

pytestmark = pytest.mark.llvm

ARCHES = ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200"]


@flyc.kernel(known_block_size=(256, 1, 1))
def row_sums(A: fx.Tensor, B: fx.Tensor):
    """Every lane sums what is 256 elements apart in its workgroup's row."""
    tid, row = fx.thread_idx.x, fx.block_idx.x
    total = fx.Float32(0.0)
    for k in range(fx.Int32(A.shape[1] // 1024)):
        for j in fx.range_constexpr(4):
            total = total + A[row, k * 1024 + j * 256 + tid]
    B[row, tid] = total


@flyc.kernel(known_block_size=(256, 1, 1))
def tile_sums(A: fx.Tensor, B: fx.Tensor):
    """Every workgroup sums the tiles of 16 rows."""
    tile = fx.make_tile(16, 128)
    wide = fx.make_copy_atom(fx.UniversalCopy128b(), fx.Float32)
    copy = fx.make_tiled_copy_tv(wide, fx.make_layout((8, 32), (32, 1)), fx.make_layout((1, 4), (1, 1)))
    mine = copy.get_slice(fx.thread_idx.x)
    source = mine.partition_S(fx.flat_divide(A, tile)[None, None, fx.block_idx.x, None])
    held, total = (fx.make_fragment_like(source[None, None, None, 0]) for _ in range(2))
    total.fill(0.0)
    for k in range(fx.Int32(A.shape[1] // 128)):
        fx.copy(copy, source[None, None, None, k], held)
        total.store(total.load() + held.load())
    fx.copy(copy, total, mine.partition_D(fx.flat_divide(B, tile)[None, None, fx.block_idx.x, 0]))


KERNELS = {
    "row sums": (row_sums, "f32[64,65536]", "f32[64,256]"),
    "row sums, any shape": (row_sums, "f32[?,?]", "f32[?,?]"),
    "tile sums": (tile_sums, "f32[1024,65536]{align=16}", "f32[1024,128]{align=16}"),
}
EVERY = pytest.mark.parametrize(("name", "arch"), [(n, a) for n in KERNELS for a in ARCHES])


def lines_of(name: str, arch: str) -> list[str]:
    kernel, *specs = KERNELS[name]
    return instructions(flyc.compile(kernel, *specs, arch=arch).assembly)


@EVERY
def test_a_loop_over_global_memory_moves_a_scalar_base_and_leaves_the_lanes_alone(name: str, arch: str) -> None:
    lines = lines_of(name, arch)
    (body,) = loops(lines)
    assert invariant(body) == []
    arithmetic = {x.split()[0] for x in body if x.startswith("v_")}
    assert all("add_f32" in x for x in arithmetic), "\n".join(body)
    loads = [x for x in body if x.startswith("global_")]
    # A 32-bit offset of the lane, the base from scalar registers, and perhaps an immediate.
    assert loads and all(re.search(r", v\d+, s\[\d+:\d+\]", x) for x in loads)


@pytest.mark.parametrize("arch", ARCHES)
def test_accesses_of_one_row_differ_in_their_immediate_offset(arch: str) -> None:
    (body,) = loops(lines_of("row sums", arch))
    offsets = {m[1] if (m := re.search(r"offset:(\d+)", x)) else "0" for x in body if x.startswith("global_load")}
    beyond = {str(n) for n in (0, 1024, 2048, 3072)}
    assert offsets == (beyond if arch != "gfx1100" else offsets) and len(offsets) >= 2


@flyc.kernel(known_block_size=(64, 1, 1))
def wrapped_index(x: fx.Tensor, y: fx.Tensor, a: fx.Uint32, b: fx.Uint32, n: fx.Int32):
    """The sum of the unsigned numbers wraps, and is an index all the same."""
    for k in range(n):
        y[k * 64 + fx.thread_idx.x] = x[fx.Int32(a * fx.Uint32(k) + b * fx.Uint32(k)) * 64 + fx.thread_idx.x]


def test_an_unsigned_index_wraps_in_a_loop_too() -> None:
    compiled = flyc.compile(wrapped_index, "f32[256]", "f32[192]", "u32", "u32", "i32", arch="gfx942")
    x, y = np.arange(256, dtype=np.float32), np.zeros(192, np.float32)
    compiled.simulate(x, y, 0x80000001, 0x80000000, 3, grid=1)
    assert np.array_equal(y, x[:192])


@pytest.mark.parametrize(
    ("instruction", "written", "read"),
    [
        ("v_add_u32_e32 v1, s0, v2", {"v1"}, {"s0", "v2"}),
        ("v_lshl_add_u64 v[2:3], v[4:5], 0, s[6:7]", {"v2", "v3"}, {"v4", "v5", "s6", "s7"}),
        ("v_add_co_u32_e32 v4, vcc, s4, v2", {"v4", "vcc"}, {"s4", "v2"}),
        ("v_mad_u64_u32 v[0:1], s[8:9], v16, s3, v[18:19]", {"v0", "v1", "s8", "s9"}, {"v16", "s3", "v18", "v19"}),
        ("v_fmac_f32_e32 v1, v2, v3", {"v1"}, {"v1", "v2", "v3"}),
        ("global_store_dwordx4 v1, v[4:5], s[2:3]", set(), {"v1", "v4", "v5", "s2", "s3"}),
        ("s_cmp_lt_i32 s0, 14", {"scc"}, {"s0"}),
        ("s_cbranch_scc1 .LBB0_1", set(), {"scc"}),
        ("s_and_saveexec_b64 s[2:3], vcc", {"s2", "s3", "exec"}, {"vcc", "exec"}),
    ],
)
def test_what_an_instruction_writes_and_reads_is_told_apart(
    instruction: str, written: set[str], read: set[str]
) -> None:
    got = written_and_read(instruction)
    assert (got[0] - {"scc"} | (written & got[0]), got[1]) == (written, read)


def test_the_check_sees_arithmetic_that_could_stand_before_the_loop() -> None:
    step = "v_add_u32_e32 v1, 64, v1"
    fixed = ["v_add_u32_e32 v2, s0, v3", "v_lshlrev_b32_e32 v4, 2, v2"]
    assert invariant([*fixed, step, "s_cbranch_scc1 .LBB0_1"]) == fixed
    assert invariant([step, "v_add_u32_e32 v2, v1, v3"]) == []
    assert invariant(["global_load_dword v2, v3, s[0:1]", "v_add_u32_e32 v4, v2, v3"]) == []
    # Left by the iteration before; and by this one where it is written first.
    assert invariant(["v_mov_b32_e32 v4, v5", "v_add_u32_e32 v5, v5, v6"]) == []
    assert invariant(["v_mov_b32_e32 v5, v7", "v_mov_b32_e32 v4, v5", "ds_read_b32 v5, v4"]) == [
        "v_mov_b32_e32 v5, v7",
        "v_mov_b32_e32 v4, v5",
    ]
