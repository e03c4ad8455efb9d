"""Host functions: what is recorded, what is replayed, and what must run again."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.compiler import kernel_cache
from flyllvm.errors import LaunchError, TraceError

pytestmark = pytest.mark.sim

SCALE = 2.0
TABLE = [1, 2]


class Config:
    """Settings that a kernel reads through a helper."""

    def __init__(self, step: int) -> None:
        self.step = step


CONFIG = Config(1)


def step_of(config: Config) -> int:
    return config.step


@pytest.fixture(autouse=True)
def simulator(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("FLYLLVM_DEVICE", "sim")
    monkeypatch.setenv("FLYLLVM_ARCH", "gfx942")
    flyc.clear_caches()
    yield


@flyc.kernel
def axpy(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, a: fx.Float32):
    i = fx.block_idx.x * 64 + fx.thread_idx.x
    if i < n:
        y[i] = y[i] + x[i] * a * SCALE


@flyc.kernel
def add_table(x: fx.Tensor):
    i = fx.thread_idx.x
    x[i] = x[i] + TABLE[0] + 10 * TABLE[1] + 100 * step_of(CONFIG)


def arrays(n: int = 100) -> tuple[Any, Any]:
    return np.arange(n, dtype=np.float32), np.ones(n, np.float32)


def make_run(**options: Any) -> Any:
    @flyc.jit(**options)
    def run(x, y, n: fx.Int32, a: fx.Float32 = 1.0, stream: fx.Stream = None):
        axpy(x, y, n, a).launch(grid=(fx.ceil_div(n, 64), 1, 1), block=(64, 1, 1), stream=stream)

    return run


def test_a_signature_seen_before_replays_with_the_new_pointers() -> None:
    run = make_run()
    x, y = arrays()
    run(x, y, 100, 0.5)
    other = y + 1
    run(x, other, 100, 0.5)
    assert run.recordings == 1
    assert np.array_equal(y, 1 + x) and np.array_equal(other, 2 + 2 * x)


@pytest.mark.parametrize(
    ("what", "change"),
    [
        ("a number", lambda x, y: (x, y, 64, 0.5)),
        ("the sign of zero", lambda x, y: (x, y, 100, -0.0)),
        ("a shape", lambda x, y: (x[:80], y, 80, 0.5)),
        ("an alignment", lambda x, y: (np.concatenate([x, x])[1:101], y, 100, 0.5)),
        ("an element type", lambda x, y: (x.astype(np.float16), y, 100, 0.5)),
    ],
)
def test_a_new_signature_is_recorded(what: str, change: Any) -> None:
    run = make_run()
    x, y = arrays()
    run(x, y, 100, 0.5)
    run(x, y, 100, 0.0)
    args = change(x, y.copy())
    before = args[1].copy()
    run(*args)
    assert run.recordings == 3, what
    n, a = args[2], args[3]
    assert np.array_equal(args[1][:n], before[:n] + args[0][:n].astype(np.float32) * a * 2)


def test_replay_false_runs_the_python_code_every_time() -> None:
    run = make_run(replay=False)
    x, y = arrays()
    run(x, y, 100, 0.5)
    run(x, y, 100, 0.5)
    assert run.recordings == 2
    assert np.array_equal(y, 1 + 2 * x)


def test_a_changed_global_of_a_kernel_is_seen() -> None:
    run = make_run()
    x, y = arrays()
    run(x, y, 100, 0.5)
    globals()["SCALE"] = 4.0
    try:
        run(x, y, 100, 0.5)
    finally:
        globals()["SCALE"] = 2.0
    assert np.array_equal(y, 1 + 3 * x)
    run(x, y, 100, 0.5)
    assert run.recordings == 2, "the world of the first call is back, and so are its records"
    assert np.array_equal(y, 1 + 4 * x)


def test_contents_of_a_list_and_an_attribute_read_by_a_helper_are_seen() -> None:
    @flyc.jit
    def run(x):
        add_table(x).launch(block=64)

    x = np.zeros(64, np.float32)
    run(x)
    assert np.all(x == 121)
    TABLE[1] = 5
    CONFIG.step = 7
    try:
        run(x)
        run(x)
    finally:
        TABLE[1] = 2
        CONFIG.step = 1
    assert np.all(x == 121 + 2 * 751)
    assert run.recordings == 2


def test_a_changed_closure_value_is_seen() -> None:
    factor = 2

    @flyc.kernel
    def scale(x: fx.Tensor):
        x[fx.thread_idx.x] = x[fx.thread_idx.x] * factor

    @flyc.jit
    def run(x):
        scale(x).launch(block=64)

    x = np.ones(64, np.float32)
    run(x)
    factor = 5
    run(x)
    scale(x).launch(block=64)
    assert np.all(x == 50)


def test_a_kernel_made_anew_by_the_host_code_is_not_mixed_up() -> None:
    def make(value: int) -> Any:
        @flyc.kernel
        def fill(x: fx.Tensor):
            x[fx.thread_idx.x] = float(value)

        return fill

    @flyc.jit
    def run(x, value: fx.Constexpr[int]):
        make(value)(x).launch(block=64)

    x = np.zeros(64, np.float32)
    for value in (3, 4, 3):
        run(x, value)
        assert np.all(x == value)


def test_a_kernel_made_anew_with_the_same_closure_is_not_traced_again(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[str] = []
    trace = flyc.KernelFunction.trace

    def counted(self: Any, *args: Any, **options: Any) -> Any:
        traced.append(self.name)
        return trace(self, *args, **options)

    monkeypatch.setattr(flyc.KernelFunction, "trace", counted)

    def make(value: float, name: str = "fill") -> Any:
        @flyc.kernel(name=name)
        def fill(x: fx.Tensor, n: fx.Int32):
            x[fx.thread_idx.x] = value

        return fill

    x = np.zeros(64, np.float32)
    for value, name in ((1.0, "fill"), (1.0, "fill"), (2.0, "fill"), (1.0, "other"), (1, "fill"), (1.0, "fill")):
        make(value, name)(x, 3).launch(block=64)
        assert np.all(x == value)
    assert traced == ["fill", "fill", "other", "fill"]


def test_one_call_may_launch_several_kernels_and_compute_their_grids() -> None:
    @flyc.jit
    def run(x, y, steps: fx.Constexpr[int]):
        n = x.shape[0]
        for i in range(steps):
            axpy(x, y, n, float(i + 1)).launch(grid=(n + 63) // 64, block=64)
        if steps > 1:
            axpy(y, y, n, 0.5).launch(grid=(n + 63) // 64, block=64)

    x, y = arrays()
    run(x, y, 2)
    want = 2 * (1 + x * 2 * 3)
    assert np.array_equal(y, want)
    run(x, y, 2)
    assert np.array_equal(y, 2 * (want + 6 * x))
    assert run.recordings == 1


def test_a_host_function_may_call_another() -> None:
    inner = make_run()

    @flyc.jit
    def outer(x, y):
        inner(x, y, x.shape[0], 0.5)
        inner(x, y, x.shape[0], 1.0)

    x, y = arrays()
    outer(x, y)
    outer(x, y)
    assert np.array_equal(y, 1 + 6 * x)
    assert (outer.recordings, inner.recordings) == (1, 0)


def test_a_view_made_by_host_code_is_replayed_at_the_new_address() -> None:
    @flyc.jit
    def run(x, y):
        half = x.shape[0] // 2
        layout = fx.make_layout(half, 1)
        axpy(x.view(layout, half), y.view(layout), half, 0.5).launch(grid=1, block=64)

    for _ in range(2):
        x, y = arrays(64)
        run(x, y)
        assert np.array_equal(y[:32], 1 + x[32:]) and np.all(y[32:] == 1)
    assert run.recordings == 1


def test_atoms_and_layouts_made_by_host_code_are_compile_time_arguments() -> None:
    @flyc.kernel
    def copy(src: fx.Tensor, dst: fx.Tensor, tiled, rows: fx.Constexpr):
        thread = tiled.get_slice(fx.thread_idx.x)
        part = thread.partition_S(src)
        registers = fx.make_fragment_like(part)
        fx.copy(tiled.atom, part, registers)
        fx.copy(tiled.atom, registers, thread.partition_D(dst))
        del rows

    @flyc.jit
    def run(src, dst):
        atom = fx.make_copy_atom(fx.UniversalCopy(64), fx.Float32)
        threads, values = fx.make_layout((16, 4), (4, 1)), fx.make_layout((1, 2), (2, 1))
        copy(src, dst, fx.make_tiled_copy_tv(atom, threads, values), threads).launch(block=64)

    src, dst = np.random.default_rng(0).standard_normal((2, 16, 8)).astype(np.float32)
    run(src, dst)
    assert np.array_equal(src, dst)
    compiled = len(kernel_cache._COMPILED)
    run(src.copy(), np.zeros((16, 8), np.float32))
    run.replay = False
    run(src, dst)
    assert len(kernel_cache._COMPILED) == compiled, "equal atoms made anew compile nothing new"


def test_adding_a_parameter_changes_the_key() -> None:
    def make(extra: bool) -> Any:
        if extra:

            @flyc.kernel
            def k(x: fx.Tensor, v: fx.Float32):
                x[fx.thread_idx.x] = v

        else:

            @flyc.kernel
            def k(x: fx.Tensor):
                x[fx.thread_idx.x] = 1.0

        return k

    x = np.zeros(64, np.float32)
    make(False)(x).launch(block=64)
    make(True)(x, 7.0).launch(block=64)
    assert np.all(x == 7)


def test_equal_kernels_are_one_object_for_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    handles = [flyc.compile(make_run(), "f32[?]:(1)", "f32[?]:(1)", fx.Int32, arch="gfx942") for _ in range(2)]
    assert handles[0].code_object is handles[1].code_object


class Layer:
    """An object whose methods read a global, and trace."""

    def __init__(self) -> None:
        self.shift = 1.0

    def value(self) -> float:
        return self.shift + SCALE

    @flyc.kernel
    def body(self, x: fx.Tensor):
        x[fx.thread_idx.x] = self.value()

    @flyc.jit
    def run(self, x):
        self.body(x).launch(block=64)

    @flyc.jit
    def by_host(self, x):
        axpy(x, x, 64, self.value()).launch(block=64)


def test_what_methods_of_an_argument_read_is_seen() -> None:
    layer, x, y = Layer(), np.zeros(64, np.float32), np.ones(64, np.float32)
    for scale, want, factor in ((2.0, 3.0, 7.0), (4.0, 5.0, 21.0)):
        globals()["SCALE"] = scale
        try:
            y[:] = 1
            layer.run(x)
            layer.by_host(y)
        finally:
            globals()["SCALE"] = 2.0
        assert np.all(x == want) and np.all(y == factor)
    layer.run(x)
    layer.run(x)
    assert np.all(x == 3)


LAYOUTS = st.tuples(
    st.integers(1, 3),  # rows
    st.integers(1, 4),  # columns
    st.integers(0, 3),  # elements before the first
    st.booleans(),  # transposed
    st.sampled_from(["float32", "float16", "int32"]),
    st.sampled_from(["static", "layout", "shape", "stride"]),
)


def array_of(layout: tuple[Any, ...], seed: int) -> tuple[Any, Any]:
    """An array of a drawn layout, and as it is passed."""
    rows, columns, offset, transposed, dtype, mark = layout
    whole = np.random.default_rng(seed).integers(-8, 9, rows * columns + offset).astype(dtype)
    array = whole[offset:].reshape(rows, columns)
    array = array.T if transposed else array
    tensor = flyc.from_dlpack(array)
    if mark == "layout":
        tensor.mark_layout_dynamic()
    elif mark == "shape":
        tensor.mark_shape_dynamic()
    elif mark == "stride":
        tensor.mark_stride_dynamic()
    return array, array if mark == "static" else tensor


@flyc.kernel
def combine(x: fx.Tensor, y: fx.Tensor, n: fx.Int32, m: fx.Int32, a: fx.Int16, bias: fx.Constexpr):
    i = fx.thread_idx.x
    if i < n * m:
        y[i // m, i % m] = (y[i // m, i % m] + x[i // m, i % m] * a + bias).to(y.dtype)


def combine_all(x, y, a: fx.Int16, bias: fx.Constexpr):
    for _ in range(1 + abs(int(bias))):
        combine(x, y, x.shape[0], x.shape[1], a, bias).launch(block=16)


REPLAYED, FRESH = flyc.jit(combine_all), flyc.jit(combine_all, replay=False)


@settings(max_examples=60, deadline=None)
@given(LAYOUTS, st.sampled_from(["float32", "int32"]), st.integers(-3, 3), st.sampled_from([0, 1, 1.0, True]))
def test_a_replay_gives_what_running_gives(x: tuple[Any, ...], kind: str, a: int, bias: Any) -> None:
    results = []
    for run in (REPLAYED, REPLAYED, FRESH):
        source, passed = array_of(x, 1)
        target, out = array_of((*x[:4], kind, x[5]), 2)
        run(passed, out, a, bias)
        results.append(target.copy())
        want = array_of((*x[:4], kind, x[5]), 2)[0].astype(np.float64)
        want += (1 + int(bias)) * (source.astype(np.float64) * a + bias)
        assert np.array_equal(target, want)
    assert np.array_equal(results[0], results[1]) and np.array_equal(results[0], results[2])


@pytest.mark.llvm
def test_the_disk_cache_keeps_host_functions_unless_told_not_to(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FLYLLVM_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("FLYLLVM_CACHE", raising=False)

    def files() -> int:
        return sum(p.is_file() for p in tmp_path.rglob("*"))

    spec = "f32[?]:(1)"
    flyc.compile(make_run(), spec, spec, fx.Int32, arch="gfx942", cache=False)
    assert files() == 0
    flyc.clear_caches()
    flyc.compile(make_run(), spec, spec, fx.Int32, arch="gfx942")
    assert files() > 0


def test_threads_record_and_replay_apart() -> None:
    run = make_run()

    def work(seed: int) -> bool:
        ok = True
        for round in range(6):
            n = 32 * (seed + round % 3 + 1)
            x, y = arrays(n)
            run(x, y, n, float(seed))
            ok &= bool(np.array_equal(y, 1 + 2 * seed * x))
        return ok

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(1, 5)))


# --- misuse ------------------------------------------------------------------------------------------


def line_of(error: Any) -> str:
    return str(error.value).splitlines()[0]


def test_a_kernel_that_is_never_launched_is_an_error() -> None:
    @flyc.jit
    def run(x):
        add_table(x)

    with pytest.raises(LaunchError, match=r"test_jit.py:\d+: add_table.* never launched\n.*append .launch"):
        run(np.zeros(64, np.float32))


def test_a_returned_value_is_an_error() -> None:
    @flyc.jit
    def run(x):
        add_table(x).launch(block=64)
        return x

    with pytest.raises(LaunchError, match=r"return nothing"):
        run(np.zeros(64, np.float32))


def test_missing_and_unknown_arguments_are_named() -> None:
    run = make_run()
    x, y = arrays()
    with pytest.raises(LaunchError, match=r"argument n is missing\n.*pass n="):
        run(x, y)
    with pytest.raises(LaunchError, match=r"no parameter 'm'\n.*its parameters are: x, y, n, a, stream"):
        run(x, y, 3, m=4)
    with pytest.raises(LaunchError, match=r"argument n is given twice"):
        run(x, y, 3, n=4)
    with pytest.raises(LaunchError, match=r"takes 5 positional arguments, got 6"):
        run(x, y, 3, 1.0, None, 5)


def test_the_simulator_must_know_its_chip(monkeypatch: pytest.MonkeyPatch) -> None:
    from flyllvm.errors import TargetError

    monkeypatch.delenv("FLYLLVM_ARCH")
    x, y = arrays()
    with pytest.raises(TargetError, match=r"set FLYLLVM_ARCH=gfx942, or give @flyc.jit"):
        make_run()(x, y, 100)
    make_run(arch="gfx1100")(x, y, 100)
    assert np.array_equal(y, 1 + 2 * x)


def test_a_kernel_called_inside_a_kernel_is_an_error() -> None:
    @flyc.kernel
    def outer(x: fx.Tensor):
        add_table(x)

    with pytest.raises(TraceError, match=r"called inside a kernel\n.*launch it from host code"):
        outer(np.zeros(64, np.float32)).launch(block=64)


def test_a_host_function_called_inside_a_kernel_is_an_error() -> None:
    host = make_run()

    @flyc.kernel
    def outer(x: fx.Tensor):
        host(x, x, 3)

    with pytest.raises(TraceError, match=r"host function run is called inside a kernel\n.*from host code"):
        outer(np.zeros(64, np.float32)).launch(block=64)


def test_records_do_not_keep_arrays() -> None:
    run = make_run()
    x, y = arrays()
    run(x, y, 100)
    handle = flyc.compile(run, x, y, fx.Int32, arch="gfx942", stop_after="llvm")
    handle(x, y, 100)
    art = handle.artifacts["axpy"]
    art(x, y, 100, 1.0, grid=2)
    left = weakref.ref(x), weakref.ref(y)
    del x, y
    gc.collect()
    assert [ref() for ref in left] == [None, None]


def test_variable_argument_lists_are_refused() -> None:
    @flyc.jit
    def run(*xs):
        add_table(xs[0]).launch(block=64)

    with pytest.raises(LaunchError, match=r"name every parameter"):
        run(np.zeros(64, np.float32))


# --- compiled handles ----------------------------------------------------------------------------------


def test_a_handle_checks_what_it_was_compiled_for() -> None:
    spec = "f32[?]:(1){align=16}"
    handle = flyc.compile(make_run(), spec, spec, fx.Int32, fx.Float32, arch="gfx942")
    assert list(handle.artifacts) == ["axpy"]
    x, y = arrays()
    handle(x, y, 100, 0.5)
    handle(x, y, 100, 0.5)
    assert np.array_equal(y, 1 + 2 * x)
    with pytest.raises(
        LaunchError, match=r"test_jit.py:\d+: argument x: .*address .* for f32\[\?\].*\n.*align it to 16"
    ):
        handle(np.concatenate([x, x])[1:101], y, 100, 0.5)
    with pytest.raises(LaunchError, match=r"argument y: Float16 elements for f32.*\n.*pass an array of float32"):
        handle(x, y.astype(np.float16), 100, 0.5)
    with pytest.raises(LaunchError, match=r"argument n: 2147483648 does not fit Int32"):
        handle(x, y, 1 << 31, 0.5)


def test_a_handle_keeps_its_compile_time_values() -> None:
    @flyc.jit
    def run(x, value: fx.Constexpr[int]):
        axpy(x, x, x.shape[0], float(value)).launch(grid=1, block=64)

    handle = flyc.compile(run, np.zeros(64, np.float32), 3, arch="gfx942")
    x = np.ones(64, np.float32)
    handle(x)
    assert np.all(x == 7)
    handle(x, 3)
    assert np.all(x == 49)
    with pytest.raises(LaunchError, match=r"argument value: 4\n.*it is compiled for 3"):
        handle(x, 4)


def test_a_decision_on_a_number_that_is_not_known_is_an_error() -> None:
    @flyc.jit
    def run(x, n: fx.Int32):
        if n > 4:
            axpy(x, x, n, 1.0).launch(grid=1, block=64)

    with pytest.raises(TraceError, match=r"test_jit.py:\d+.*n decides host code.*\n.*compile with an array or number"):
        flyc.compile(run, "f32[?]", fx.Int32, arch="gfx942")
    flyc.compile(run, "f32[?]", 8, arch="gfx942", stop_after="llvm")
    with pytest.raises(LaunchError, match=r"launches nothing for these arguments"):
        flyc.compile(run, "f32[?]", 3, arch="gfx942", stop_after="llvm")


def test_a_handle_of_several_kernels_names_them() -> None:
    @flyc.jit
    def run(x, y):
        axpy(x, y, 64, 1.0).launch(block=64)
        add_table(x).launch(block=64)

    handle = flyc.compile(run, "f32[64]", "f32[64]", arch="gfx942", stop_after="llvm")
    assert list(handle.artifacts) == ["axpy", "add_table"]
    with pytest.raises(LaunchError, match=r"launches 2 kernels\n.*axpy, add_table"):
        _ = handle.code_object


def test_methods_are_host_functions_and_kernels_too() -> None:
    class Scaler:
        def __init__(self, factor: float) -> None:
            self.factor = factor

        @flyc.kernel
        def body(self, x: fx.Tensor):
            x[fx.thread_idx.x] = x[fx.thread_idx.x] * self.factor

        @flyc.jit
        def run(self, x):
            self.body(x).launch(block=64)

    x = np.ones(64, np.float32)
    scaler = Scaler(3.0)
    scaler.run(x)
    Scaler(5.0).run(x)
    scaler.factor = 2.0
    scaler.run(x)
    assert np.all(x == 30)


def test_printf_in_host_code_prints_when_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    @flyc.jit
    def told(x: fx.Tensor, n: fx.Int32) -> None:
        fx.printf("n = {} of {{{}}}, {}", n, x.shape, fx.make_layout(4, 1))
        fx.printf(n, "a {brace}")

    x = np.zeros((2, 4), np.float32)
    told(x, 3)
    assert capsys.readouterr().out == "n = 3 of {(2,4)}, 4:1\n3 a {brace}\n"
    told(x, 3)
    assert capsys.readouterr().out == ""


def test_shapes_unpack_in_host_code_as_in_kernels() -> None:
    seen = []

    @flyc.jit
    def told(x: fx.Tensor) -> None:
        rows, columns = x.shape.unpack()
        seen.append((rows, columns, x.stride.unpack(), x.shape == (2, 4)))

    told(np.zeros((2, 4), np.float32))
    assert seen == [(2, 4, (4, 1), True)]


def test_a_view_in_host_code_is_made_of_the_iterator_as_in_kernels() -> None:
    @flyc.kernel
    def first_column(x: fx.Tensor, y: fx.Tensor) -> None:
        y[fx.thread_idx.x] = x[fx.thread_idx.x, 0]

    @flyc.jit
    def run(x: fx.Tensor, y: fx.Tensor) -> None:
        turned = fx.make_view(fx.get_iter(x), fx.make_layout((4, 2), (1, 4)))
        first_column(turned, y).launch(block=4)

    x, y = np.arange(8, dtype=np.int32).reshape(2, 4), np.zeros(4, np.int32)
    run(x, y)
    np.testing.assert_array_equal(y, [0, 1, 2, 3])

    @flyc.jit
    def outside(x: fx.Tensor) -> None:
        fx.make_view(fx.get_iter(x), fx.make_layout(9, 1))

    with pytest.raises(LaunchError, match="fix: stay inside the tensor"):
        outside(x)
