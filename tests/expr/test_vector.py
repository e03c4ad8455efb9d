"""Vectors: arithmetic like NumPy's, shapes kept, and what is refused."""

from __future__ import annotations

import operator

import ml_dtypes
import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import TraceError

from .kernels import Tracing, elementwise

A = np.arange(256, dtype=np.float32) - 100
INTS = (np.arange(256) * 37 % 251 - 100).astype(np.int32)
LONG = np.arange(1024, dtype=np.int32) % 7
BACK = LONG[::-1].copy()


@pytest.mark.sim
def test_arithmetic_and_comparison_are_elementwise() -> None:
    for fn in (
        lambda v: v * 2 + 1,
        lambda v: 1.0 - v,
        lambda v: v / 3.0,
        lambda v: -abs(v),
        lambda v: fx.where(v > 3, v, 0.0) if not isinstance(v, np.ndarray) else np.where(v > 3, v, np.float32(0)),
    ):
        got = elementwise(fn, [A], fx.Float32, np.float32, vector=4)
        np.testing.assert_array_equal(got, fn(A).astype(np.float32))
    for fn in (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne):
        got = elementwise(lambda u, v, f=fn: f(u, v).to(fx.Int32), [LONG, BACK], fx.Int32, np.int32, vector=8)
        np.testing.assert_array_equal(got, fn(LONG, BACK))


@pytest.mark.sim
def test_integer_vectors_divide_as_python_does() -> None:
    for fn in (lambda v: v // 7, lambda v: v % -5, lambda v: ~v & 15, lambda v: (v << 2) ^ (v >> 1), lambda v: 3 - v):
        np.testing.assert_array_equal(elementwise(fn, [INTS], fx.Int32, np.int32, vector=4), fn(INTS))


@pytest.mark.sim
def test_a_vector_of_f16_stays_f16_with_literals() -> None:
    h = LONG.astype(np.float16)
    got = elementwise(lambda v: v * 3 + 0.5, [h], fx.Float16, np.float16, vector=8)
    np.testing.assert_array_equal(got, h * np.float16(3) + np.float16(0.5))
    with Tracing() as k:
        v = fx.Vector.filled(4, k.arg(fx.Float16))
        assert (v * 3).dtype is fx.Float16 and (v + k.arg(fx.Int32)).dtype is fx.Float32


@pytest.mark.sim
def test_reductions() -> None:
    for op, reference in {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}.items():
        x = (A % 5 + 1).astype(np.float32)
        got = elementwise(lambda v, o=op: fx.full(4, v.reduce(o)), [x], fx.Float32, np.float32, vector=4)
        np.testing.assert_array_equal(got.reshape(-1, 4)[:, 0], reference.reduce(x.reshape(-1, 4), axis=1))
    for op, reference in {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}.items():
        got = elementwise(lambda v, o=op: fx.full(4, v.reduce(o)), [INTS], fx.Int32, np.int32, vector=4)
        np.testing.assert_array_equal(got.reshape(-1, 4)[:, 0], reference.reduce(INTS.reshape(-1, 4), axis=1))
    got = elementwise(lambda v: fx.full(4, v.reduce("add", 1000)), [INTS], fx.Int32, np.int32, vector=4)
    np.testing.assert_array_equal(got.reshape(-1, 4)[:, 0], 1000 + INTS.reshape(-1, 4).sum(axis=1))


@pytest.mark.sim
def test_shuffle_slice_insert_and_runtime_index() -> None:
    four = INTS.reshape(-1, 4)
    got = elementwise(lambda v: v.shuffle(v, [3, 2, 5, 4]), [INTS], fx.Int32, np.int32, vector=4)
    np.testing.assert_array_equal(got.reshape(-1, 4), four[:, [3, 2, 1, 0]])
    got = elementwise(lambda v: v.with_element(2, 7).with_element(0, v[3]), [INTS], fx.Int32, np.int32, vector=4)
    want = four.copy()
    want[:, 2], want[:, 0] = 7, four[:, 3]
    np.testing.assert_array_equal(got.reshape(-1, 4), want)
    got = elementwise(lambda v: fx.full(4, v[fx.thread_idx.x % 4]), [INTS], fx.Int32, np.int32, vector=4)
    np.testing.assert_array_equal(got.reshape(-1, 4)[:, 0], four[np.arange(64), np.arange(64) % 4])
    got = elementwise(lambda v: fx.Vector.from_elements([*v[2:], *v[:2]]), [INTS], fx.Int32, np.int32, vector=4)
    np.testing.assert_array_equal(got.reshape(-1, 4), four[:, [2, 3, 0, 1]])


@pytest.mark.sim
def test_bitcast_keeps_bits() -> None:
    got = elementwise(lambda v: v.bitcast(fx.Float16).bitcast(fx.Int32) + 1, [INTS], fx.Int32, np.int32, vector=4)
    np.testing.assert_array_equal(got, INTS + 1)
    h = A.astype(ml_dtypes.bfloat16)
    got = elementwise(lambda v: v.bitcast(fx.Uint16) ^ 0x8000, [h], fx.Uint16, np.uint16, vector=4)
    np.testing.assert_array_equal(got, (-h).view(np.uint16))


@pytest.mark.sim
def test_broadcast_repeats_modes_of_extent_one() -> None:
    def fn(v):
        row, column = v.reshape(4, 1), v.reshape(1, 4)
        table = row * 10 + column  # 4 x 4, first mode fastest
        assert table.shape == (4, 4)
        return fx.Vector.from_elements([table[i, (i + 1) % 4] for i in range(4)])

    got = elementwise(fn, [INTS], fx.Int32, np.int32, vector=4).reshape(-1, 4)
    np.testing.assert_array_equal(got, INTS.reshape(-1, 4) * 10 + np.roll(INTS.reshape(-1, 4), -1, axis=1))


def test_shapes_are_kept() -> None:
    with Tracing() as k:
        v = fx.full((4, 1), k.arg(fx.Float32))
        for made in (v + 1, v * v, v.to(fx.Float16), v > 0, -v, fx.where(v > 0, v, 0.0), fx.math.exp2(v), abs(v)):
            assert made.shape == (4, 1)
        fragment = fx.make_rmem_tensor(((2, 2), 3), fx.Float32)
        fragment.fill(1.0)
        loaded = fragment.load()
        assert loaded.shape == ((2, 2), 3) and (loaded * 2).shape == ((2, 2), 3)
        assert fx.zeros_like(fragment).shape == ((2, 2), 3) and fx.ones_like(v, fx.Int32).dtype is fx.Int32
        assert fx.empty_like(v).shape == (4, 1) and fx.full_like(v, 3).dtype is fx.Float32
        assert len(v) == 4 and v.element_type is fx.Float32 and v.bitcast(fx.Int8).count == 16
        assert v.broadcast_to(4, 3).shape == (4, 3) and v.reshape((2, 2)).shape == (2, 2)


def test_misuse_of_vectors_is_explained() -> None:
    with Tracing() as k:
        v, w = fx.full(4, k.arg(fx.Float32)), fx.full(3, k.arg(fx.Float32))
        cases = [
            (lambda: v + w, "reshape changes them"),
            (lambda: v.reshape(3), "a shape of 4 elements"),
            (lambda: v.broadcast_to(8), "extents are equal or 1"),
            (lambda: v[4], "stay inside the vector"),
            (lambda: v.with_element(9, 0), "stay inside the vector"),
            (lambda: v[::2], "use step 1"),
            (lambda: bool(v), "reduce it first"),
            (lambda: v.reduce("and"), "use one of"),
            (lambda: v & 1, "use integers"),
            (lambda: v.shuffle(w, [0]), "two vectors of one type and size"),
            (lambda: w.bitcast(fx.Float64), "a width that divides"),
            (lambda: fx.Vector.from_elements([]), "give at least one"),
            (lambda: v.to(float), "pass a number type"),
        ]
        for run, fix in cases:
            with pytest.raises(TraceError) as e:
                run()
            assert fix in str(e.value), str(e.value)


@flyc.kernel(known_block_size=(64, 1, 1))
def runtime_index(x: fx.Tensor, y: fx.Tensor, which: fx.Int32):
    fragment = fx.make_rmem_tensor(4, fx.Float32)
    fragment.store((x.iter + fx.thread_idx.x * 4).load(count=4))
    y[fx.thread_idx.x] = fragment.load()[which]


@pytest.mark.sim
@pytest.mark.parametrize("which", range(4))
def test_a_run_time_index_selects_in_a_loaded_fragment(which: int) -> None:
    artifact = flyc.compile(runtime_index, "f32[256]{align=16}", "f32[64]", "i32", arch="gfx942", stop_after="llvm")
    assert "alloca" not in artifact.llvm_ir
    y = np.zeros(64, np.float32)
    artifact.simulate(A, y, which, grid=(1, 1, 1))
    np.testing.assert_array_equal(y, A.reshape(-1, 4)[:, which])


def test_a_run_time_index_into_registers_is_refused() -> None:
    with Tracing() as k:
        fragment = fx.make_rmem_tensor(4, fx.Float32)
        fragment.fill(0)
        for run in (lambda: fragment[k.arg(fx.Int32)], lambda: fragment.iter + k.arg(fx.Int32)):
            with pytest.raises(TraceError, match="run-time number") as e:
                run()
            assert "load() the fragment" in str(e.value)
