"""Exchange between lanes, ids, and atomic updates."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import CodegenError, TraceError, VerifyError
from flyllvm.ir.parser import parse_kernel
from flyllvm.ir.printer import print_kernel

from .kernels import Tracing, elementwise

LANE = np.arange(64)
X = (LANE * 3 + 1).astype(np.int32)


def source(mode: str, by: int, width: int) -> np.ndarray:
    """The lane that each lane reads."""
    group, place = LANE // width * width, LANE % width
    if mode == "idx":
        return group + by % width
    other = {"xor": place ^ by, "up": place - by, "down": place + by}[mode]
    return np.where((other >= 0) & (other < width), group + other, LANE)


@pytest.mark.sim
@pytest.mark.parametrize("width", [64, 16, 1])
@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
def test_shuffle_reads_the_stated_lane(mode: str, width: int) -> None:
    for by in {0, 1, 5, width - 1}:
        if mode == "xor" and by >= width:
            continue
        want = X[source(mode, by, width)]
        fn = {"xor": fx.shuffle_xor, "up": fx.shuffle_up, "down": fx.shuffle_down, "idx": fx.shuffle_idx}[mode]
        got = elementwise(lambda v, f=fn, n=by: f(v, n, width), [X], fx.Int32, np.int32)
        np.testing.assert_array_equal(got, want, err_msg=f"{mode} {by}")
        # A run-time distance gives the same.
        shift = np.full(64, by, np.int32)
        got = elementwise(lambda v, s: fx.shuffle(v, s, width, mode), [X, shift], fx.Int32, np.int32)
        np.testing.assert_array_equal(got, want, err_msg=f"{mode} {by} at run time")


@pytest.mark.sim
@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.int8, np.int64, np.uint16])
def test_shuffle_moves_every_width(kind: type) -> None:
    x = X.astype(kind)
    dtype = {"float16": fx.Float16, "float32": fx.Float32, "float64": fx.Float64, "int8": fx.Int8, "int64": fx.Int64,
             "uint16": fx.Uint16}[x.dtype.name]  # fmt: skip
    got = elementwise(lambda v: fx.shuffle_xor(v, 7), [x], dtype, kind)
    np.testing.assert_array_equal(got, x[LANE ^ 7])


@pytest.mark.sim
def test_shuffle_of_vectors() -> None:
    x = np.arange(256, dtype=np.float32)
    got = elementwise(lambda v: fx.shuffle_down(v, 2, 32), [x], fx.Float32, np.float32, vector=4)
    np.testing.assert_array_equal(got.reshape(-1, 4), x.reshape(-1, 4)[source("down", 2, 32)])


@pytest.mark.sim
@pytest.mark.parametrize("width", [64, 8])
def test_wave_reductions_reach_every_lane(width: int) -> None:
    groups = X.reshape(-1, width)
    for op, want in {
        "add": groups.sum(1), "max": groups.max(1), "min": groups.min(1), "or": np.bitwise_or.reduce(groups, 1),
        "xor": np.bitwise_xor.reduce(groups, 1), "and": np.bitwise_and.reduce(groups, 1),
    }.items():  # fmt: skip
        got = elementwise(lambda v, o=op: fx.wave_reduce(v, o, width), [X], fx.Int32, np.int32)
        np.testing.assert_array_equal(got, want.repeat(width), err_msg=op)
    got = elementwise(lambda v: fx.wave_reduce(v, "add", width), [X.astype(np.float32)], fx.Float32, np.float32)
    np.testing.assert_array_equal(got, groups.sum(1).repeat(width))


@pytest.mark.sim
@pytest.mark.parametrize(("arch", "out"), [("gfx942", fx.Uint64), ("gfx1100", fx.Uint32)])
def test_ballot_has_one_bit_for_each_lane(arch: str, out: type[fx.Numeric]) -> None:
    wave = 64 if arch == "gfx942" else 32
    np_out = np.uint64 if wave == 64 else np.uint32
    got = elementwise(lambda v: fx.ballot(v % 2 == 0), [X], out, np_out, arch=arch)
    for lane in range(64):
        first = lane // wave * wave
        want = sum(1 << i for i in range(wave) if X[first + i] % 2 == 0)
        assert int(got[lane]) == want
    got = elementwise(
        lambda v: fx.where(fx.wave_any(v > 180), 2, 0) + fx.where(fx.wave_all(v > 0), 1, 0), [X], fx.Int32, np.int32
    )
    np.testing.assert_array_equal(got, 3)


@pytest.mark.sim
def test_reading_one_lane() -> None:
    np.testing.assert_array_equal(elementwise(fx.readfirstlane, [X], fx.Int32, np.int32), X[0])
    got = elementwise(lambda v: fx.readlane(v, 9), [X.astype(np.float64)], fx.Float64, np.float64)
    np.testing.assert_array_equal(got, X[9])
    got = elementwise(lambda v: fx.gpu.ds_bpermute((fx.lane_id() ^ 1) * 4, v), [X], fx.Int32, np.int32)
    np.testing.assert_array_equal(got, X[LANE ^ 1])


@flyc.kernel(known_block_size=(32, 4, 2))
def ids(y: fx.Tensor):
    at = fx.thread_idx.x + fx.thread_idx.y * 32 + fx.thread_id("z") * 128
    y[at] = fx.wave_id() * 100 + fx.lane_id()


@pytest.mark.sim
def test_wave_and_lane_ids_count_through_the_block() -> None:
    y = np.zeros(256, np.int32)
    flyc.compile(ids, "i32[256]", arch="gfx942", stop_after="llvm").simulate(y, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, np.arange(256) // 64 * 100 + np.arange(256) % 64)


def test_misuse_of_lanes_is_explained() -> None:
    with Tracing() as k:
        x = k.arg(fx.Int32)
        cases = [
            (lambda: fx.shuffle_xor(x, 1, 24), "power of two up to the wave size 64"),
            (lambda: fx.shuffle(x, 1, 64, "left"), "use xor, up, down or idx"),
            (lambda: fx.shuffle_up(x, -1), "the other direction"),
            (lambda: fx.wave_reduce(x, "mean"), "use one of: add"),
            (lambda: fx.known_block_size(), "known_block_size=(x, y, z)"),
            (lambda: fx.thread_id("w"), "use 'x', 'y' or 'z'"),
        ]
        for run, fix in cases:
            with pytest.raises(TraceError) as e:
                run()
            assert fix in str(e.value)


# --- atomics -------------------------------------------------------------------------------------


@flyc.kernel(known_block_size=(64, 1, 1))
def counts(x: fx.Tensor, y: fx.Tensor, old: fx.Tensor):
    at = fx.thread_idx.x
    old[at] = fx.atomic_add(y.iter + x[at], 1)


@pytest.mark.sim
@pytest.mark.parametrize(
    ("name", "kind"), [("i32", np.int32), ("f32", np.float32), ("i64", np.int64), ("u32", np.uint32)]
)
def test_atomic_add_counts(name: str, kind: type) -> None:
    x = (np.arange(64) % 4).astype(np.int32)
    y, old = np.zeros(4, kind), np.zeros(64, kind)
    artifact = flyc.compile(counts, "i32[64]", f"{name}[4]", f"{name}[64]", arch="gfx942", stop_after="llvm")
    assert 'syncscope("agent") monotonic' in artifact.llvm_ir
    artifact.simulate(x, y, old, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, 16)
    np.testing.assert_array_equal(np.sort(old.reshape(16, 4), axis=0)[:, 0], np.arange(16))


REFERENCE = {
    "add": sum, "max": max, "min": min, "and": np.bitwise_and.reduce, "or": np.bitwise_or.reduce,
    "xor": np.bitwise_xor.reduce, "sub": lambda v: 2 * v[0] - sum(v),
}  # fmt: skip


def shared_update(op: str) -> object:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def update(x: fx.Tensor, y: fx.Tensor):
        at = fx.thread_idx.x
        cell = fx.shared_memory(y.dtype, 1)
        if at == 0:
            cell.store(y[0])
        fx.barrier()
        getattr(fx, f"atomic_{op}")(cell, x[at], scope="workgroup")
        fx.barrier()
        if at == 0:
            y[0] = cell.load()

    return update


@pytest.mark.sim
@pytest.mark.parametrize("op", REFERENCE)
def test_atomics_in_shared_memory_pick_the_sign_of_the_type(op: str) -> None:
    for name, kind in (("i32", np.int32), ("u32", np.uint32)):
        x = np.random.default_rng(0).integers(-(2**20), 2**20, 64).astype(np.int32).view(kind)
        y = np.array([5], kind)
        artifact = flyc.compile(shared_update(op), f"{name}[64]", f"{name}[1]", arch="gfx942", stop_after="llvm")
        artifact.simulate(x, y, grid=(1, 1, 1))
        want = int(REFERENCE[op]([5, *x.tolist()]))
        assert int(y[0]) == int(np.array([want % 2**32], np.uint32).view(kind)[0])


def test_atomics_survive_printing_and_parsing() -> None:
    kernel = counts.trace([fx.TensorSpec(fx.Int32, (64,))] * 3, "gfx942")
    text = print_kernel(kernel)
    assert "fly.atomic_rmw" in text
    assert print_kernel(parse_kernel(text)) == text


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx1100", "gfx1250"])
def test_llvm_has_code_for_atomics(arch: str) -> None:
    for name in ("i32", "f32", "f64", "u64"):
        flyc.compile(counts, "i32[64]", f"{name}[4]", f"{name}[64]", arch=arch)


def test_misuse_of_atomics_is_explained() -> None:
    with Tracing() as k:
        registers = fx.make_rmem_tensor(4, fx.Int32)
        shared = fx.shared_memory(fx.Float32, 4)
        cases = [
            (lambda: fx.atomic_add(registers, 1), "global or shared memory"),
            (lambda: fx.atomic_and(shared, 1), "32- or 64-bit integer"),
            (lambda: fx.atomic_add(fx.shared_memory(fx.Int8, 4), 1), "32 or 64 bits"),
            (lambda: fx.atomic_add(shared, 1.0, scope="grid"), "system, device, block, wave"),
        ]
        for run, fix in cases:
            with pytest.raises(TraceError) as e:
                run()
            assert fix in str(e.value)
        del k


@flyc.kernel(known_block_size=(64, 1, 1))
def wrong_kind(x: fx.Tensor):
    fx.atomic_rmw("umax", x, 1.0)


@flyc.kernel(known_block_size=(64, 1, 1))
def unaligned(x: fx.Tensor):
    fx.atomic_add(fx.recast_iter(fx.Int32, x.iter), 1)


def test_atomics_that_do_not_exist_are_refused_before_llvm() -> None:
    with pytest.raises(VerifyError, match="use one of: xchg, fadd"):
        flyc.compile(wrong_kind, "f32[1]", arch="gfx942", stop_after="llvm")
    with pytest.raises(CodegenError, match="promise 4 bytes"):
        flyc.compile(unaligned, "i8[8]", arch="gfx942", stop_after="llvm")


@pytest.mark.parametrize(
    ("threads", "exchange"),
    [
        (40, lambda v: fx.wave_reduce(v)),
        (40, lambda v: fx.wave_reduce(v, "max", 16)),
        (69, lambda v: fx.shuffle_down(v, 8)),
        (40, lambda v: fx.shuffle_idx(v, 0)),
        (40, lambda v: fx.shuffle_xor(v, 8)),
        (72, lambda v: fx.shuffle_xor(v, fx.lane_id())),
    ],
)
def test_a_group_of_lanes_that_a_block_does_not_fill_is_refused(threads: int, exchange: Any) -> None:
    @flyc.kernel(known_block_size=(threads, 1, 1))
    def k(x: fx.Tensor):
        x[fx.thread_idx.x] = exchange(x[fx.thread_idx.x])

    with pytest.raises(TraceError, match=f"in a block of {threads} threads: the last group is not whole"):
        flyc.compile(k, f"i32[{threads}]", arch="gfx942", stop_after="llvm")


@pytest.mark.sim
def test_groups_that_a_small_block_fills_are_right() -> None:
    @flyc.kernel(known_block_size=(40, 1, 1))
    def k(x: fx.Tensor, o: fx.Tensor):
        i = fx.thread_idx.x
        o[i, 0] = fx.wave_reduce(x[i], "max", 8)
        o[i, 1] = fx.shuffle_xor(x[i], 5)
        o[i, 2] = fx.shuffle_up(x[i], 3)

    x = -np.arange(1, 41, dtype=np.int32)
    out = np.zeros((40, 3), np.int32)
    flyc.compile(k, "i32[40]", "i32[40,3]", arch="gfx942", stop_after="llvm").simulate(x, out, grid=1)
    lanes = np.arange(40)
    assert np.array_equal(out[:, 0], x.reshape(5, 8).max(1).repeat(8))
    assert np.array_equal(out[:, 1], x[lanes ^ 5])
    assert np.array_equal(out[:, 2], x[np.where(lanes < 3, lanes, lanes - 3)])


@flyc.kernel(known_block_size=(64, 1, 1))
def total(x: fx.Tensor):
    x[fx.thread_idx.x] = fx.wave_reduce(x[fx.thread_idx.x])


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1250"])
def test_reductions_exchange_neighbours_without_lds(arch: str) -> None:
    text = flyc.compile(total, "f32[64]", arch=arch).assembly
    assert text.count("quad_perm") == 2 and "row_half_mirror" in text and text.count("row_mirror") == 1
    assert text.count("ds_swizzle_b32") == 1
    assert text.count("ds_bpermute_b32") == (arch in ("gfx90a", "gfx942", "gfx950"))


@pytest.mark.sim
@pytest.mark.parametrize("arch", ["gfx950", "gfx1100"])
def test_every_xor_distance_on_both_wave_sizes(arch: str) -> None:
    wave = 64 if arch == "gfx950" else 32
    for distance in range(wave):
        got = elementwise(lambda v, d=distance: fx.shuffle_xor(v, d), [X], fx.Int32, np.int32, arch=arch)
        np.testing.assert_array_equal(got, X[LANE ^ distance], err_msg=str(distance))


def test_an_id_unpacks_into_its_three_axes() -> None:
    with Tracing("gfx942") as trace:
        got = tuple(fx.block_idx)
        assert len(got) == 3 and all(isinstance(x, fx.Int32) for x in got)
        axes = [op for op in print_kernel(trace.kernel).splitlines() if "gpu.block_id" in op]
    assert [line.split()[-1] for line in axes] == ["x", "y", "z"]
