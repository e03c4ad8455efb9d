"""Argument kinds: what is taken, what a kernel is compiled for, and what is refused."""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Iterator
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler.binding_arrays import as_tensor
from flyllvm.errors import FlyError, LaunchError

pytestmark = pytest.mark.sim


@pytest.fixture
def traced(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the kernels that were traced."""
    names: list[str] = []
    trace = flyc.KernelFunction.trace

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        names.append(self.name)
        return trace(self, *args, **options)

    monkeypatch.setattr(flyc.KernelFunction, "trace", counted)
    return names


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")
    yield


@flyc.kernel
def double(x: fx.Tensor):
    i = fx.thread_idx.x
    x[i] = x[i] + x[i]


def check_doubled(argument: Any, memory: Any) -> None:
    """Doubles 64 elements through ``argument``, which stands for ``memory``."""
    memory[...] = np.arange(64).astype(memory.dtype)
    double(argument).launch(block=64)
    assert np.array_equal(memory.astype(np.float32), 2 * np.arange(64, dtype=np.float32))


def spec_text(value: Any) -> str:
    return str(as_tensor(value).spec())


# --- where tensors come from ------------------------------------------------------------------------------


class FakeTorch:
    """As much of a torch tensor as a launch looks at."""

    def __init__(self, data: Any, dtype: str, device: str = "cpu", is_cuda: bool = False) -> None:
        self.data, self.dtype, self.is_cuda = data, dtype, is_cuda
        self.shape, self.device = data.shape, type("device", (), {"type": device, "index": 0})()

    def data_ptr(self) -> int:
        return int(self.data.ctypes.data)

    def stride(self) -> tuple[int, ...]:
        return tuple(s // self.data.itemsize for s in self.data.strides)


class Interface:
    """An object with an array interface."""

    def __init__(self, data: Any, name: str = "__array_interface__", /, **changes: Any) -> None:
        setattr(type(self), name, property(lambda s: s.given))
        self.data = data
        self.given = {**data.__array_interface__, **changes}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16", "int32", "int64",
                                   "uint8", "uint16", "uint32", "uint64"])  # fmt: skip
def test_arrays_of_every_element_type(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype) if dtype == "bfloat16" else dtype)
    array = np.zeros(64, kind)
    check_doubled(array, array)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda a: a, id="numpy"),
        pytest.param(lambda a: flyc.from_dlpack(a), id="from_dlpack"),
        pytest.param(lambda a: flyc.from_dlpack(a.__dlpack__()), id="capsule"),
        pytest.param(lambda a: type("P", (), {"__dlpack__": lambda s: a.__dlpack__()})(), id="__dlpack__"),
        pytest.param(lambda a: type("I", (Interface,), {})(a), id="__array_interface__"),
        pytest.param(lambda a: FakeTorch(a, "torch.float32"), id="torch"),
        pytest.param(lambda a: flyc.from_torch_tensor(FakeTorch(a, "torch.float32")), id="from_torch_tensor"),
        pytest.param(
            lambda a: flyc.from_c_void_p(ctypes.c_void_p(a.ctypes.data), fx.Float32, fx.make_layout(64, 1)),
            id="from_c_void_p",
        ),
    ],
)
def test_sources_of_tensors(make: Any) -> None:
    array = np.zeros(64, np.float32)
    check_doubled(make(array), array)


def test_a_class_of_ones_own_is_registered() -> None:
    class Weights:
        def __init__(self, data: Any) -> None:
            self.data = data

    class Nothing:
        data = None

    flyc.register_argument(Weights, lambda w: w.data)
    flyc.register_argument(Nothing, lambda w: w.data)

    @flyc.jit
    def run(x: fx.Tensor):
        double(x).launch(block=64)

    weights = Weights(np.ones(64, np.float32))
    for _ in range(2):
        run(weights)
    assert np.all(weights.data == 4) and run.recordings == 1
    weights.data = np.ones(64, np.float16)
    run(weights)
    assert np.all(weights.data == 2) and run.recordings == 2
    with pytest.raises(LaunchError, match=r"Nothing unwraps to a NoneType\n.*what gives an array"):
        run(Nothing())
    for cls in (Weights, np.ndarray):
        with pytest.raises(LaunchError, match=r"is an argument already\n.*as they are"):
            flyc.register_argument(cls, lambda w: w)


def test_a_strided_array_is_used_in_place() -> None:
    whole = np.ones((64, 3), np.float32)
    check_doubled(whole[:, 1], whole[:, 1])
    assert np.all(whole[:, (0, 2)] == 1)


def test_dlpack_memory_is_given_back_once() -> None:
    freed: list[int] = []

    class Owner(np.ndarray):
        def __del__(self) -> None:
            freed.append(1)

    def run() -> None:
        array = np.zeros(64, np.float32).view(Owner)
        flyc.from_dlpack(array.__dlpack__())

    run()
    assert freed == [1]


def test_a_capsule_is_used_once() -> None:
    capsule = np.zeros(4, np.float32).__dlpack__()
    flyc.from_dlpack(capsule)
    with pytest.raises(LaunchError, match=r"no fresh DLPack capsule\n.*export the array again"):
        flyc.from_dlpack(capsule)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: np.zeros(()), r"argument x: an array without dimensions\n.*a.reshape\(1\)"),
        (lambda: np.zeros((4, 0)), r"argument x: an array of shape \(4, 0\) has no elements\n.*mark_shape_dynamic"),
        (lambda: np.zeros(4, bool), r"array of bool: .*\n.*view it as uint8"),
        (lambda: np.zeros(4, np.complex64), r"array of complex64: .*\n.*use one of: float16"),
        (lambda: np.zeros(4, ">f4"), r"array of >f4"),
        (lambda: np.zeros(8, np.float32)[::-1], r"strides of \(-4,\) bytes.*\n.*non-negative strides"),
        (lambda: np.zeros(8, "f4,i2")["f0"], r"strides of \(6,\) bytes with elements of 4"),
        (lambda: type("M", (Interface,), {})(np.zeros(4, np.float32), mask=1), r"masked array\n.*two arrays"),
        (lambda: np.ma.array(np.zeros(4, np.float32), mask=[1, 0, 0, 0]), r"masked array\n.*two arrays"),
        (lambda: np.ndarray, r"argument x: .* is no array\n.*pass an array"),
        (lambda: type("D", (Interface,), {})(np.zeros(4, np.float32), data=None), r"has no address\n"),
        (lambda: type("V", (Interface,), {})(np.zeros(4, np.float32), typestr="|V2"), r"type string '\|V2'"),
        (lambda: FakeTorch(np.zeros(4, np.float32), "torch.float32", "meta"), r"tensor on device .*\n.*move it"),
        (lambda: FakeTorch(np.zeros(4, np.float32), "torch.qint8"), r"tensor of torch.qint8"),
        (lambda: [1, 2, 3], r"argument x: list \[1, 2, 3\] is no array\n.*pass an array"),
    ],
)
def test_arrays_that_are_refused(make: Any, text: str) -> None:
    with pytest.raises(LaunchError, match=text) as error:
        double(make()).launch(block=4)
    assert "test_launch_arguments.py" in str(error.value)


def test_device_memory_is_refused_in_the_simulator() -> None:
    data = np.zeros(4, np.float32)
    for value in (
        FakeTorch(data, "torch.float32", "cuda", is_cuda=True),
        type("C", (Interface,), {})(data, "__cuda_array_interface__"),
        flyc.from_c_void_p(data.ctypes.data, fx.Float32, fx.make_layout(4, 1), where="device"),
    ):
        with pytest.raises(LaunchError, match=r"argument x: .* is in device memory.*simulator\n.*FLYLLVM_DEVICE=hip"):
            double(value).launch(block=4)


def test_a_read_only_array_must_not_be_written() -> None:
    from flyllvm.errors import SimError

    array = np.zeros(64, np.float32)
    array.flags.writeable = False
    with pytest.raises(SimError):
        double(array).launch(block=64)


# --- layouts and marks ------------------------------------------------------------------------------------


def test_an_array_is_static_unless_marked() -> None:
    a = np.zeros((16, 32), np.float16)
    assert spec_text(a) == "f16[16,32]:(32,1){align=16}"
    assert spec_text(a.T) == "f16[32,16]:(1,32){align=16}"
    t = flyc.from_dlpack
    assert spec_text(t(a).mark_layout_dynamic()) == "f16[?,?]:(?,1){align=16}"
    assert spec_text(t(a).mark_layout_dynamic(divisibility=8)) == "f16[?,?{div=8}]:(?{div=8},1){align=16}"
    assert spec_text(t(a).mark_shape_dynamic(0)) == "f16[?,32]:(32,1){align=16}"
    assert spec_text(t(a).mark_shape_dynamic([0, 1], divisibility=4)) == "f16[?{div=4},?{div=4}]:(32,1){align=16}"
    assert spec_text(t(a).mark_stride_dynamic(0, divisibility=2)) == "f16[16,32]:(?{div=2},1){align=16}"
    assert spec_text(a[:, 1:]) == "f16[16,31]:(32,1)"


@pytest.mark.parametrize(
    ("mark", "text"),
    [
        (lambda t: t.mark_layout_dynamic(0), r"no stride 1 in dimension 0\n.*name the leading dimension"),
        (lambda t: t.mark_layout_dynamic(2), r"has no dimension 2\n.*use 0 to 1"),
        (lambda t: t.mark_layout_dynamic(divisibility=5), r"stride 0 is 32, no multiple of 5\n.*pad the array"),
        (lambda t: t.mark_shape_dynamic(0, divisibility=0), r"divisibility=0\n.*positive int"),
        (lambda t: t.assume_aligned(12), r"alignment of 12 bytes\n.*power of two"),
        (lambda t: t.assume_aligned(1 << 40), r"is not aligned to 1099511627776 bytes\n.*allocate it aligned"),
    ],
)
def test_marks_that_are_wrong(mark: Any, text: str) -> None:
    with pytest.raises(LaunchError, match=text):
        mark(flyc.from_dlpack(np.zeros((16, 32), np.float16)))


def test_one_compilation_serves_all_sizes_of_a_dynamic_layout(traced: list[str]) -> None:
    @flyc.kernel
    def last(x: fx.Tensor, out: fx.Tensor):
        m, n = x.shape
        out[0] = x[m - 1, n - 1]

    out = np.zeros(1, np.float32)
    for m, n in ((3, 5), (7, 4), (1, 1)):
        x = np.arange(m * n, dtype=np.float32).reshape(m, n)
        last(flyc.from_dlpack(x).mark_layout_dynamic(leading_dim=1), out).launch()
        assert out[0] == m * n - 1
    assert traced == ["last"]


def test_a_dynamic_extent_may_be_zero() -> None:
    @flyc.kernel
    def count(x: fx.Tensor, out: fx.Tensor):
        out[0] = x.shape[0]

    out = np.ones(1, np.int32)
    count(flyc.from_dlpack(np.zeros((0, 4), np.float32)).mark_shape_dynamic(0), out).launch()
    assert out[0] == 0


def test_a_mark_is_part_of_the_signature() -> None:
    @flyc.jit
    def run(x):
        double(x).launch(block=x.shape[0])

    a = np.ones(64, np.float32)
    run(a)
    run(flyc.from_dlpack(a).mark_layout_dynamic())
    run(flyc.from_dlpack(a).mark_layout_dynamic(divisibility=4))
    run(flyc.from_dlpack(a).mark_layout_dynamic(divisibility=4))
    assert run.recordings == 3
    assert np.all(a == 16)


def test_views_stay_inside_their_tensor() -> None:
    t = flyc.from_dlpack(np.zeros(64, np.float32))
    with pytest.raises(LaunchError, match=r"ends at byte 260 of 256\n.*stay inside"):
        t.view(fx.make_layout(64, 1), 1)


# --- pointers -----------------------------------------------------------------------------------------------


@flyc.kernel
def double_ptr(p: fx.Pointer):
    i = fx.thread_idx.x
    p[i] = p[i] + p[i]


def test_pointers_from_arrays_and_addresses() -> None:
    a = np.ones(64, np.float32)
    double_ptr(a).launch(block=64)
    double_ptr(flyc.from_c_void_p(a.ctypes.data, fx.Float32, nbytes=a.nbytes)).launch(block=64)
    assert np.all(a == 4)


def test_a_pointer_without_a_size_is_refused_in_the_simulator() -> None:
    a = np.ones(64, np.float32)
    with pytest.raises(
        LaunchError, match=r"argument p: the simulator must know how many bytes.*\n.*a layout or nbytes="
    ):
        double_ptr(flyc.from_c_void_p(a.ctypes.data, fx.Float32)).launch(block=64)
    with pytest.raises(LaunchError, match=r"argument p: int 7 for fx.Pointer\n.*from_c_void_p"):
        double_ptr(7).launch(block=64)
    with pytest.raises(LaunchError, match=r"argument x: a pointer for fx.Tensor\n.*a layout, or use fx.Pointer"):
        double(flyc.from_c_void_p(a.ctypes.data, fx.Float32, nbytes=4)).launch()
    with pytest.raises(LaunchError, match=r"address -1\n.*non-negative int"):
        flyc.from_c_void_p(-1, fx.Float32)
    with pytest.raises(LaunchError, match=r"is not aligned to 8 bytes"):
        flyc.from_c_void_p(4, fx.Float32, align=8)


# --- numbers ------------------------------------------------------------------------------------------------

RANGES = {
    fx.Int8: (-128, 127), fx.Int16: (-(2**15), 2**15 - 1), fx.Int32: (-(2**31), 2**31 - 1),
    fx.Int64: (-(2**63), 2**63 - 1), fx.Uint8: (0, 255), fx.Uint16: (0, 2**16 - 1), fx.Uint32: (0, 2**32 - 1),
    fx.Uint64: (0, 2**64 - 1),
}  # fmt: skip


@pytest.mark.parametrize("kind", RANGES, ids=str)
def test_integers_of_every_width_and_their_range(kind: Any) -> None:
    @flyc.kernel
    def put(out: fx.Tensor, v: kind):
        out[0] = v

    out = np.zeros(1, str(kind).lower())
    low, high = RANGES[kind]
    for value in (low, high, 1, np.int64(5)):
        put(out, value).launch()
        assert int(out[0]) == int(value)
    for value in (low - 1, high + 1):
        with pytest.raises(LaunchError, match=f"argument v: {value} does not fit {kind}\n.*from {low} to {high}"):
            put(out, value).launch()
    with pytest.raises(LaunchError, match=f"argument v: 1.5 for {kind}\n.*pass an int"):
        put(out, 1.5).launch()
    with pytest.raises(LaunchError, match=r"argument v: True is no number"):
        put(out, True).launch()


@pytest.mark.parametrize(
    ("kind", "name", "large"),
    [(fx.Float16, "float16", 65520.0), (fx.BFloat16, "bfloat16", 3.4e38), (fx.Float32, "float32", 3.5e38)],
)
def test_floats_of_every_width_and_their_range(kind: Any, name: str, large: float) -> None:
    @flyc.kernel
    def put(out: fx.Tensor, v: kind):
        out[0] = v

    out = np.zeros(1, getattr(ml_dtypes, name) if name == "bfloat16" else name)
    for value in (1.5, -0.0, float("inf"), 3, np.float32(0.25)):
        put(out, value).launch()
        assert float(out[0]) == float(value)
    with pytest.raises(LaunchError, match=r"argument v: .* is too large for"):
        put(out, large).launch()


def test_a_double_keeps_its_digits() -> None:
    @flyc.kernel
    def put(out: fx.Tensor, v: fx.Float64):
        out[0] = v

    out = np.zeros(1, np.float64)
    put(out, 1 / 3).launch()
    assert out[0] == 1 / 3


def test_numbers_without_annotation_are_int32_and_float32_or_typed() -> None:
    kinds: list[Any] = []

    @flyc.kernel
    def look(out: fx.Tensor, v):
        kinds.append(getattr(v, "dtype", type(v)))
        out[0] = 1.0

    out = np.zeros(1, np.float32)
    for value in (3, 2.5, fx.Int64(1 << 40), np.float16(1.5), np.uint8(3), True, "text", None, (1, 2)):
        look(out, value).launch()
    assert kinds == [fx.Int32, fx.Float32, fx.Int64, fx.Float16, fx.Uint8, bool, str, type(None), tuple]
    with pytest.raises(LaunchError, match=r"2147483648 does not fit Int32\n.*v: fx.Int64\), or pass fx.Int64"):
        look(out, 1 << 31).launch()


def test_types_that_cannot_be_passed_at_run_time() -> None:
    @flyc.kernel
    def wide(v: fx.Int128):
        pass

    @flyc.kernel
    def narrow(v: fx.Float8E4M3FN):
        pass

    with pytest.raises(LaunchError, match=r"Int128 cannot be passed at run time\n.*two Int64"):
        wide(1).launch()
    with pytest.raises(LaunchError, match=r"Float8E4M3FN cannot be passed at run time\n.*its bits as Uint8"):
        narrow(1.0).launch()


# --- structs -------------------------------------------------------------------------------------------------


@fx.struct
class Scale:
    factor: fx.Float32
    shift: fx.Int64


@fx.struct
class Params:
    n: fx.Int16
    scale: Scale


@flyc.kernel
def apply(out: fx.Tensor, p: Params, q: Scale):
    out[0] = fx.Float64(p.n) * fx.Float64(p.scale.factor) + fx.Float64(p.scale.shift + q.shift)


def test_structs_are_passed_field_by_field() -> None:
    @flyc.jit
    def run(out, p: Params, q: Scale):
        assert int(p.n) in (3, 4)
        apply(out, p, q.replace(shift=1)).launch()

    out = np.zeros(1, np.float64)
    q = Scale(0.0, 100)
    apply(out, Params(3, Scale(0.5, 1 << 40)), q).launch()
    assert out[0] == 1.5 + (1 << 40) + 100
    for n in (3, 4, 4):
        run(out, Params(n, Scale(0.5, 2)), q)
        assert out[0] == n / 2 + 3
    assert run.recordings == 2
    art = flyc.compile(apply, out, Params, Scale(0.0, 0), arch="gfx942", stop_after="llvm")
    assert str(art.specs[1]) == "Params{n: i16, scale: Scale{factor: f32, shift: i64}}"
    art(out, Params(2, Scale(2.0, 1)), q, grid=1, block=1)
    assert out[0] == 105
    art.simulate(out, Params(2, Scale(2.0, 2)), q, grid=1, block=1)
    assert out[0] == 106
    with pytest.raises(LaunchError, match=r"argument q: Params for Scale.*\n.*pass a Scale"):
        art(out, Params(2, Scale(2.0, 1)), Params(2, q), grid=1, block=1)
    with pytest.raises(LaunchError, match=r"argument p: int for Params.*\n.*pass a Params"):
        apply(out, 3, q).launch()
    with pytest.raises(LaunchError, match=r"argument p: Params.* without a value\n.*pass an example: Params"):
        flyc.compile(run, out, Params, q, arch="gfx942")


def test_a_struct_with_an_array_is_no_argument() -> None:
    kind = fx.struct["a" : fx.Array[fx.Int8, 4]]

    @flyc.kernel
    def k(p: kind):
        pass

    with pytest.raises(FlyError, match=r"a is a Array.*: no kernel argument\n.*arrays as tensors"):
        k(3).launch()


# --- compile-time values ------------------------------------------------------------------------------------


def test_compile_time_values_are_checked_by_their_annotation() -> None:
    @flyc.kernel
    def put(out: fx.Tensor, n: fx.Constexpr[int], scale: fx.Constexpr = 2.0):
        for i in fx.range_constexpr(n):
            out[i] = scale

    out = np.zeros(4, np.float32)
    put(out, 3).launch()
    assert list(out) == [2, 2, 2, 0]
    put(out, np.int64(2), scale=7.0).launch()
    assert list(out) == [7, 7, 2, 0]
    with pytest.raises(LaunchError, match=r"argument n: 1.5 for Constexpr\[int\]\n.*pass a Python int"):
        put(out, 1.5).launch()
    with pytest.raises(LaunchError, match=r"argument n: an array for Constexpr\[int\]\n.*pass it as a tensor"):
        put(out, out).launch()


def test_parameters_with_defaults_are_compile_time_values() -> None:
    @flyc.kernel
    def put(out: fx.Tensor, n: int = 2, *, value: fx.Float32 = 1.0):
        for i in fx.range_constexpr(n):
            out[i] = value

    out = np.zeros(4, np.float32)
    put(out).launch()
    put(out, 1, value=3.0).launch()
    assert list(out) == [3, 1, 0, 0]


def test_values_of_equal_hash_are_told_apart(traced: list[str]) -> None:
    @flyc.kernel
    def look(out: fx.Tensor, v: fx.Constexpr):
        out[0] = 1.0

    out = np.zeros(1, np.float32)
    for value in (1, 1.0, True, (1, 2), (1.0, 2), (True, 2), 0.0, -0.0, {"a": 1}, {"a": True}, [1], (1,), fx.Float16):
        look(out, value).launch()
        look(out, value).launch()
    assert len(traced) == 13


def test_a_mutable_object_is_read_by_its_contents() -> None:
    class Config:
        def __init__(self) -> None:
            self.value = 1.0

    @flyc.kernel
    def put(out: fx.Tensor, c: fx.Constexpr):
        out[0] = c.value

    out, config = np.zeros(1, np.float32), Config()
    put(out, config).launch()
    config.value = 5.0
    put(out, config).launch()
    assert out[0] == 5


def test_a_stream_is_no_kernel_argument() -> None:
    with pytest.raises(LaunchError, match=r"argument x: a stream for tensor\n.*launch\(stream="):
        double(fx.Stream(None)).launch()

    @flyc.kernel
    def free(x, s):
        x[0] = 1.0

    with pytest.raises(LaunchError, match=r"argument s of a kernel is a stream\n.*launch\(stream="):
        free(np.zeros(1, np.float32), fx.Stream(None)).launch()


class Shade(enum.Enum):
    DARK = 1


@pytest.mark.parametrize(
    ("kind", "good", "bad"),
    [
        (tuple[int, ...], [(1, 2), ()], [(1, 2.5), [1], 7, None]),
        (tuple[int, str], [(1, "a")], [(1,), (1, 2), ("a", 1)]),
        (list[int], [[1], []], [["a"], (1,)]),
        (dict[str, int], [{"a": 1}], [{"a": "b"}, {1: 1}, []]),
        (int | None, [3, None], ["a", 2.0, True]),
        (Literal["fast", "slow"], ["fast"], ["other", 1]),
        (Shade, [Shade.DARK], [1, "DARK"]),
        (fx.Layout, [fx.make_layout(4, 1)], [(4, 1), "4:1"]),
    ],
)
def test_a_compile_time_value_of_any_annotated_type_is_checked(kind, good, bad) -> None:
    def k(A: fx.Tensor, v) -> None:
        A[0] = 1.0

    k.__annotations__ = {"A": fx.Tensor, "v": fx.Constexpr[kind]}
    made = flyc.kernel(k)
    for value in good:
        made.trace(["f32[4]"], "gfx942", {"v": value})
    for value in bad:
        with pytest.raises(LaunchError, match=r"argument v: .* for Constexpr\[.*\n  fix: pass what Constexpr\["):
            made.trace(["f32[4]"], "gfx942", {"v": value})
