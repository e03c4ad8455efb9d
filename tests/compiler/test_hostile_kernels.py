"""Kernels in Python that ask for what cannot be: a clear error each, and the next kernel compiles."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import CodegenError, FlyError, LaunchError, ParseError, TraceError

pytestmark = pytest.mark.llvm
I32 = ("i32[64]",)


def compiled(fn: Any, *specs: str, block: Any = (64, 1, 1), **options: Any) -> Any:
    return flyc.compile(flyc.kernel(fn, known_block_size=block), *specs, arch="gfx942", **options)


@pytest.fixture(scope="module", autouse=True)
def alive() -> Iterator[None]:
    """After all of them a kernel compiles to code."""
    yield

    def good(A: fx.Tensor) -> None:
        A[fx.thread_idx.x] = 1

    assert compiled(good, *I32).code_object.kernels["good"].code_bytes


# --- kernels: what they do, the error, and what it says ----------------------------------------------


def endless(x: Any) -> Any:
    return endless(x + 1)


def countdown(x: Any, n: int) -> Any:
    return x if n == 0 else countdown(x + 1, n - 1)


def recursion(A: fx.Tensor) -> None:
    A[0] = endless(A[1])


def deep_recursion(A: fx.Tensor) -> None:
    A[0] = countdown(A[1], 100_000)


def nest_of_loops(A: fx.Tensor) -> None:
    def nest(n: int) -> None:
        if n == 0:
            A[0] = A[1] + 1
        else:
            for _ in range(A[2]):
                nest(n - 1)

    nest(120)


def itself(A: fx.Tensor) -> None:
    ITSELF(A)


ITSELF = flyc.kernel(itself)


def registers_at_run_time(A: fx.Tensor) -> None:
    r = fx.make_rmem_tensor(10**5, fx.Int32)
    r.fill(A[1])
    A[0] = r[A[0]]


def lds_of_a_terabyte(A: fx.Tensor) -> None:
    fx.shared_memory(fx.Int8, 10**12)[0] = 1


def lds_of_less_than_nothing(A: fx.Tensor) -> None:
    fx.shared_memory(fx.Int8, -4)[0] = 1


def lds_of_nothing(A: fx.Tensor) -> None:
    fx.shared_memory(fx.Int8, 0)[0] = 1


def lds_of_run_time_size(A: fx.Tensor) -> None:
    fx.shared_memory(fx.Int8, A[0])[0] = 1


def lds_in_a_thousand_pieces(A: fx.Tensor) -> None:
    for _ in fx.range_constexpr(1000):
        fx.shared_memory(fx.Int8, 1024)[0] = 1


def number_of_41_bits(A: fx.Tensor) -> None:
    A[0] = 2**40


def number_of_hundred_digits(A: fx.Tensor) -> None:
    A[0] = 10**100


def nothing_stored(A: fx.Tensor) -> None:
    A[0] = None


def text_stored(A: fx.Tensor) -> None:
    A[0] = "x"


def list_stored(A: fx.Tensor) -> None:
    A[0] = [1, 2]


def generator(A: fx.Tensor) -> Any:
    yield A[0]


async def coroutine(A: fx.Tensor) -> None:
    A[0] = 1


def stars(*A: fx.Tensor) -> None:
    A[0][0] = 1


def keywords(A: fx.Tensor, **more: Any) -> None:
    A[0] = 1


def tensor_as_condition(A: fx.Tensor) -> None:
    A[0] = 1 if A else 2


def elements_by_python(A: fx.Tensor) -> None:
    A[0] = sum(x for x in A)


def result_of_a_kernel(A: fx.Tensor) -> Any:
    return A[0]


def wide_copy(A: fx.Tensor) -> None:
    fx.make_copy_atom(fx.rocdl.BufferCopy(4096), fx.Int32)


def copy_of_a_bit(A: fx.Tensor) -> None:
    fx.make_copy_atom(fx.rocdl.BufferCopy(1), fx.Int32)


def product_of_no_shape(A: fx.Tensor) -> None:
    fx.make_mma_atom(fx.rocdl.MFMA(0, 0, 0, fx.Float16))


def product_of_huge_shape(A: fx.Tensor) -> None:
    fx.make_mma_atom(fx.rocdl.MFMA(2**31, 2**31, 2**31, fx.Float16))


def sine_of_doubles(A: fx.Tensor) -> None:
    A[0] = fx.math.sin(fx.Float64(1.0) + fx.Float64(A[0]))


KERNELS: list[tuple[Callable[..., Any], type[FlyError], str]] = [
    (recursion, TraceError, "so write a loop instead"),
    (deep_recursion, TraceError, "end the recursion earlier"),
    (nest_of_loops, TraceError, "end the recursion earlier"),
    (itself, FlyError, "fix:"),
    (registers_at_run_time, TraceError, "or keep it in LDS"),
    (lds_of_a_terabyte, TraceError, "gfx942 has 65536 bytes for a workgroup"),
    (lds_of_less_than_nothing, TraceError, "use a "),
    (lds_of_nothing, TraceError, "use a "),
    (lds_of_run_time_size, TraceError, "use a "),
    (lds_in_a_thousand_pieces, TraceError, "gfx942 has 65536 bytes for a workgroup"),
    (number_of_41_bits, TraceError, "use a number that fits"),
    (number_of_hundred_digits, TraceError, "use a number that fits"),
    (nothing_stored, TraceError, "pass a Python or traced number"),
    (text_stored, TraceError, "pass a Python or traced number"),
    (list_stored, FlyError, "fix:"),
    (generator, TraceError, "yield belongs to the end of a range"),
    (coroutine, TraceError, "yield belongs to the end of a range"),
    (stars, LaunchError, "name every parameter"),
    (keywords, LaunchError, "name every parameter"),
    (tensor_as_condition, TraceError, "reduce it to one Boolean"),
    (elements_by_python, TraceError, "loop over indices"),
    (result_of_a_kernel, TraceError, "write results into a tensor argument"),
    (wide_copy, FlyError, "use one of: 8, 16, 32, 64, 96, 128 bits"),
    (copy_of_a_bit, FlyError, "use one of: 8, 16, 32, 64, 96, 128 bits"),
    (product_of_no_shape, FlyError, "fix:"),
    (product_of_huge_shape, FlyError, "fix:"),
    (sine_of_doubles, TraceError, "convert with .to()"),
]


@pytest.mark.parametrize(("fn", "kind", "says"), KERNELS, ids=[k[0].__name__ for k in KERNELS])
def test_what_a_kernel_cannot_do_is_an_error_with_its_line(fn: Any, kind: type[FlyError], says: str) -> None:
    with pytest.raises(kind) as caught:
        compiled(fn, *I32)
    assert says in str(caught.value) and f"{Path(__file__).name}:" in str(caught.value)


# --- loops without an end ------------------------------------------------------------------------------


def unrolled_for_ever(A: fx.Tensor) -> None:
    for i in fx.range_constexpr(10**12):
        A[i % 64] = A[0]


def test_a_loop_that_is_unrolled_for_ever_is_refused_at_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_TRACE_LIMIT", "3000")
    lines, first = inspect.getsourcelines(unrolled_for_ever)
    with pytest.raises(TraceError, match=r"is unrolled while tracing, .*\n.*write a loop of the GPU") as e:
        compiled(unrolled_for_ever, *I32)
    assert str(e.value.where).endswith(f"{Path(__file__).name}:{first + len(lines) - 2}")


def test_code_that_keeps_llvm_busy_is_cut_by_the_time_that_the_caller_allows() -> None:
    def busy(A: fx.Tensor) -> None:
        for i in fx.range_constexpr(6000):
            A[i % 63] = A[i % 64] / (A[(i + 1) % 64] + 1)

    with pytest.raises(CodegenError, match=r"did not finish within 0.2 s.*\n.*limits={...}"):
        compiled(busy, "f32[64]", limits={"timeout": 0.2})


# --- arguments, blocks and options ------------------------------------------------------------------------


def one(A: fx.Tensor) -> None:
    A[0] = 1


@pytest.mark.parametrize(
    ("spec", "kind", "says"),
    [
        ("i7[64]", ParseError, "use one of: i1, i4, i8"),
        ("i32[99999999999999999999]", TraceError, "use a smaller number"),
        ("i32[64]:(99999999999999999999)", TraceError, "use a smaller number"),
        ("i32[" * 500, ParseError, "fix:"),
        ("", FlyError, "fix:"),
        ("i32[64]{align=99999999999999999999}", FlyError, "fix:"),
        ("ptr<i32", FlyError, "fix:"),
    ],
)
def test_argument_specifications_past_all_limits_are_refused(spec: str, kind: type[FlyError], says: str) -> None:
    with pytest.raises(kind) as caught:
        compiled(one, spec)
    assert says in str(caught.value)


def test_a_tensor_of_forty_dimensions_compiles() -> None:
    def corner(A: fx.Tensor) -> None:
        A[(0,) * 40] = 1

    made = compiled(corner, f"i32[{','.join('?' * 40)}]")
    assert len(made.code_object.kernels["corner"].args) == 1 + 40 + 39


@pytest.mark.parametrize("block", [(0, 1, 1), (-64, 1, 1), (1.5, 1, 1), "64", (1,) * 4, (2**40, 1, 1), (64, 64, 9)])
def test_blocks_that_no_gpu_runs_are_refused(block: Any) -> None:
    with pytest.raises(TraceError, match=r"fix: (use one to three positive ints|gfx942 runs at most 1024)"):
        compiled(one, *I32, block=block)


@pytest.mark.parametrize(
    "options",
    [
        {"waves_per_eu": 99},
        {"waves_per_eu": (4, 2)},
        {"maxnreg": -4},
        {"maxnreg": 10**9},
        {"preload_kernargs": 10**9},
        {"fast_math": ("potato",)},
        {"agpr": "potato"},
        {"denormals": "potato"},
        {"opt_level": 10**9},
    ],
)
def test_options_past_all_limits_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(FlyError, match="fix:"):
        compiled(one, *I32, **options)


@pytest.mark.parametrize("error", [ValueError("mine"), ZeroDivisionError(), KeyboardInterrupt(), SystemExit(3)])
def test_the_authors_own_exception_comes_through_as_it_is(error: BaseException) -> None:
    def raises(A: fx.Tensor) -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        compiled(raises, *I32)
    assert caught.value is error
