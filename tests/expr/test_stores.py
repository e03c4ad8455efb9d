"""What memory takes as it is, what must be converted first, and where a coordinate may lie."""

from __future__ import annotations

import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import TraceError

INTS = [fx.Int8, fx.Int16, fx.Int32, fx.Int64, fx.Uint8, fx.Uint16, fx.Uint32, fx.Uint64]
FLOATS = [fx.Float16, fx.BFloat16, fx.Float32, fx.Float64]


def refused(write, spec: str = "f16[64]") -> str:
    @flyc.kernel
    def k(A: fx.Tensor, x: fx.Float32, n: fx.Int32):
        write(A, x, n)

    with pytest.raises(TraceError) as caught:
        flyc.compile(k, spec, fx.Float32, fx.Int32, arch="gfx942", stop_after="llvm")
    assert str(caught.value.where).startswith(f"{__file__}:")
    return str(caught.value)


def accepted(write, spec: str = "f16[64]") -> None:
    @flyc.kernel
    def k(A: fx.Tensor, x: fx.Float32, n: fx.Int32):
        write(A, x, n)

    flyc.compile(k, spec, fx.Float32, fx.Int32, arch="gfx942", stop_after="llvm")


def test_a_wider_float_is_converted_by_the_author_before_it_is_stored() -> None:
    vector = fx.make_layout(4, 1)
    writes = [
        lambda A, x, n: fx.make_view(A.iter, vector).store(fx.full(4, x)),
        lambda A, x, n: A.__setitem__(0, x),
        lambda A, x, n: A.iter.store(x),
        lambda A, x, n: A.iter.__setitem__(1, fx.full(4, x)),
        lambda A, x, n: fx.ptr_store(x, A.iter),
        lambda A, x, n: fx.memref_store(x, A, 0),
        lambda A, x, n: fx.make_rmem_tensor(4, fx.Float16).store(fx.full(4, x)),
    ]
    for write in writes:
        message = refused(write)
        assert "Float32 stored into memory of Float16" in message and "convert it first: .to(fx.Float16)" in message
    accepted(lambda A, x, n: A.__setitem__(0, x.to(fx.Float16)))
    accepted(lambda A, x, n: fx.make_view(A.iter, vector).store(fx.full(4, x).to(fx.Float16)))
    accepted(lambda A, x, n: A.__setitem__(0, 0.1))
    accepted(lambda A, x, n: A.__setitem__(0, fx.Float32(0.5)))
    assert "Float32(0.1" in refused(lambda A, x, n: A.__setitem__(0, fx.Float32(0.1)))


@pytest.mark.parametrize("source", INTS + FLOATS, ids=str)
@pytest.mark.parametrize("target", INTS + FLOATS, ids=str)
def test_what_memory_takes_is_what_promotion_gives(source: type[fx.Numeric], target: type[fx.Numeric]) -> None:
    @flyc.kernel
    def k(A: fx.Tensor, B: fx.Tensor):
        B[0] = A[0]

    unsigned = {c: f"u{c.width}" for c in INTS if not c.signed}
    specs = [f"{unsigned.get(c, c.ir.text)}[4]" for c in (source, target)]
    both_ints = source.signed is not None and target.signed is not None
    fits = target.width >= source.width if both_ints else fx.numeric.promote(source, target) is target
    if fits:
        flyc.compile(k, *specs, arch="gfx942", stop_after="llvm")
    else:
        with pytest.raises(TraceError, match=rf"convert it first: \.to\(fx\.{target}\)"):
            flyc.compile(k, *specs, arch="gfx942", stop_after="llvm")


@pytest.mark.parametrize(
    ("value", "spec"), [(1.5, "i32[4]"), (float("nan"), "i8[4]"), (float("inf"), "i32[4]"), (1e30, "i64[4]")]
)
def test_a_python_float_that_is_no_whole_number_goes_into_no_integers(value: float, spec: str) -> None:
    assert "stored into memory of Int" in refused(lambda A, x, n: A.__setitem__(0, value), spec)
    assert "stored into memory of Int" in refused(lambda A, x, n: A.fill(value), spec)


def test_fill_rounds_floats_and_takes_no_float_for_integers() -> None:
    accepted(lambda A, x, n: A.fill(x))
    accepted(lambda A, x, n: A.fill(2.0), "i32[4]")
    assert "Float32 stored into memory of Int32" in refused(lambda A, x, n: A.fill(x), "i32[4]")


@pytest.mark.sim
def test_what_is_taken_has_its_value() -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def k(a: fx.Tensor, h: fx.Tensor, y: fx.Tensor, z: fx.Tensor, u: fx.Tensor):
        t = fx.thread_idx.x
        y[t], z[t], u[t] = a[t], h[t], a[t].to(fx.Int32)

    made = flyc.compile(k, "i8[64]", "f16[64]", "f32[64]", "f32[64]", "u32[64]", arch="gfx942", stop_after="llvm")
    a, h = np.arange(-32, 32, dtype=np.int8), (np.arange(64) / 8).astype(np.float16)
    y, z, u = np.zeros(64, np.float32), np.zeros(64, np.float32), np.zeros(64, np.uint32)
    made.simulate(a, h, y, z, u, grid=1)
    assert (y == a).all() and (z == h).all() and (u == a.astype(np.uint32)).all()


def test_a_vector_goes_into_no_single_element() -> None:
    message = refused(lambda A, x, n: A.__setitem__(3, fx.full(4, 1.0, fx.Float16)))
    assert "a vector of 4 elements into the one element at 3" in message
    assert "with None for the modes to keep" in message


# --- coordinates ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda A: A[0, 8], "coordinate 8 of a mode of extent 8"),
        (lambda A: A[-1, 0], "coordinate -1 of a mode of extent 16"),
        (lambda A: A[None, 8], "coordinate 8 of a mode of extent 8"),
        (lambda A: A[128], "coordinate 128 of a mode of extent 128"),
        (lambda A: A.__setitem__((16, 0), 1.0), "coordinate 16 of a mode of extent 16"),
        (lambda A: fx.slice(A, (None, 9)), "coordinate 9 of a mode of extent 8"),
        (lambda A: fx.make_view(A.iter, fx.make_layout(4, 1))[4], "coordinate 4 of a mode of extent 4"),
        (lambda A: fx.zipped_divide(A, fx.make_tile(4, 4))[(1, 4), None], "coordinate 4 of a mode of extent 4"),
        (lambda A: fx.zipped_divide(A, fx.make_tile(4, 4))[None, 8], "coordinate 8 of a mode of extent 8"),
        (lambda A: fx.make_identity_tensor((4, 4))[0, 4], "coordinate 4 of a mode of extent 4"),
        (lambda A: fx.make_rmem_tensor(4, fx.Float32)[5], "coordinate 5 of a mode of extent 4"),
        (lambda A: fx.memref_load(A, (0, 8)), "coordinate 8 of a mode of extent 8"),
    ],
)
def test_a_known_coordinate_outside_of_a_tensor_is_refused(use, said: str) -> None:
    message = refused(lambda A, x, n: use(A), "f32[16,8]")
    assert said in message and "fx.make_view(fx.get_iter(t), layout)" in message


def test_the_last_coordinate_and_those_known_at_run_time_are_fine() -> None:
    accepted(lambda A, x, n: A[15, 7] + A[127] + A[n, 7] + A[15, n], "f32[16,8]")
    accepted(lambda A, x, n: A[7, n], "f32[?,8]:(8,1)")


def test_the_thread_of_a_partition_is_one_of_its_threads() -> None:
    def part(thread):
        def use(A, x, n):
            atom = fx.make_copy_atom(fx.UniversalCopy32b(), fx.Float32)
            tiled = fx.make_tiled_copy_tv(atom, fx.make_layout((4, 8), (8, 1)), fx.make_layout((1, 1), (1, 1)))
            tiled.get_slice(thread).partition_S(A)

        return use

    for thread in (-1, 32):
        assert f"coordinate {thread} of a mode of extent 32" in refused(part(thread), "f32[16,8]")
    assert "the thread None" in refused(part(None), "f32[16,8]")
    accepted(part(31), "f32[16,8]")
