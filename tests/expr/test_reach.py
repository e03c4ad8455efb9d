"""Offsets above 2**31 elements: in 64 bits where 32 are not proved to be enough, and in 32 where they are."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm import simulate
from flyllvm.expr.reach import fits_32_bits, narrowed

from .kernels import Tracing

PITCH = 72 << 20


@flyc.kernel(known_block_size=(64, 1, 1))
def places(x: fx.Tensor, y: fx.Tensor, e: fx.Int32):
    """Where rows of a matrix start, in bytes from its first element."""
    start = fx.ptrtoint(x.iter)
    y[0] = fx.ptrtoint(fx.get_iter(x[e, None])) - start
    y[1] = fx.ptrtoint(fx.get_iter(fx.flat_divide(x, (2, 4))[None, None, e // 2, 5])) - start
    y[2] = fx.ptrtoint(x.iter + fx.Int64(e) * PITCH) - start
    y[3] = fx.ptrtoint(x.iter + e + e) - start


@pytest.mark.sim
@pytest.mark.parametrize(
    ("spec", "leaves"),
    [(f"i8[128,{PITCH}]", ()), ("i8[?,?]:(?,1)", (128, PITCH, PITCH)), (f"i8[?,{PITCH}]", (128,))],
)
def test_rows_of_weights_above_4_gib_are_where_they_are(spec: str, leaves: tuple[int, ...]) -> None:
    artifact = flyc.compile(places, spec, "i64[4]", "i32", arch="gfx942", stop_after="llvm")
    for e in (0, 60, 127):
        # Addresses only: the matrix is eight bytes that claim to be many, and nothing is read.
        y = np.zeros(4, np.int64)
        args = [np.zeros(8, np.int8), *leaves, y, e]
        simulate(artifact.llvm_ir, kernel="places", grid=(1, 1, 1), block=(64, 1, 1), args=args, target="gfx942")
        np.testing.assert_array_equal(y, [e * PITCH, e // 2 * 2 * PITCH + 20, e * PITCH, 2 * e])


def test_small_tensors_keep_32_bit_offsets() -> None:
    with Tracing() as k:
        n = k.arg(fx.Int32)
        small = fx.TensorSpec(fx.Float32, (128, 128)).declare(k.kernel, "small", {})
        assert small[n, None].ptr.op.operands[1].width == 32
        line = fx.TensorSpec(fx.Float32, (None,)).declare(k.kernel, "line", {})
        assert fits_32_bits(line.raw_layout) and (line.iter + n).ir_value().op.operands[1].width == 32
        large = fx.TensorSpec(fx.Float32, (None, None)).declare(k.kernel, "large", {})
        assert large[n, None].ptr.op.operands[1].width == 64 and type(large.stride[0]) is fx.Int32
        buffer = fx.rocdl.make_buffer_tensor(large)
        assert buffer.raw_layout.stride[0].width == 32 and narrowed(large.raw_layout) == buffer.raw_layout
        assert buffer[n, None].ptr.op.operands[1].width == 32


@flyc.kernel(known_block_size=(64, 1, 1))
def thread_places(x: fx.Tensor, y: fx.Tensor):
    tid = fx.thread_idx.x
    atom = fx.make_copy_atom(fx.UniversalCopy(8), fx.Int8)
    thread = fx.make_tiled_copy_tv(atom, fx.make_layout((64, 1), (1, 64)), fx.make_layout((1, 4), (4, 1)))
    mine = thread.get_slice(tid).partition_S(x)
    mma = fx.make_tiled_mma(
        fx.make_mma_atom(fx.rocdl.MFMA(32, 32, 16, fx.Float8E4M3FNUZ)), fx.make_layout((1, 1, 1), (1, 1, 1))
    )
    held = mma.get_slice(tid).partition_A(fx.recast_iter(fx.Float8E4M3FNUZ, x.iter).view(x.layout))
    start = fx.ptrtoint(x.iter)
    y[tid, 0] = fx.ptrtoint(fx.get_iter(mine)) - start
    y[tid, 1] = fx.ptrtoint(fx.get_iter(held)) - start


@pytest.mark.sim
@pytest.mark.parametrize(("spec", "leaves"), [(f"i8[64,64]:({PITCH},1)", ()), ("i8[64,64]:(?,1)", (PITCH,))])
def test_a_thread_far_down_a_large_matrix_finds_its_row(spec: str, leaves: tuple[int, ...]) -> None:
    artifact = flyc.compile(thread_places, spec, "i64[64,2]", arch="gfx942", stop_after="llvm")
    y = np.zeros((64, 2), np.int64)
    args = [np.zeros(8, np.int8), *leaves, y]
    simulate(artifact.llvm_ir, kernel="thread_places", grid=(1, 1, 1), block=(64, 1, 1), args=args, target="gfx942")
    lanes = np.arange(64, dtype=np.int64)
    np.testing.assert_array_equal(y[:, 0], lanes * PITCH)
    np.testing.assert_array_equal(y[:, 1], lanes % 32 * PITCH + lanes // 32 * 8)
