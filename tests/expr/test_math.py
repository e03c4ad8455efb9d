"""Mathematical functions: every one within its stated bound, in every type; what has no code is refused by name."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import TraceError
from flyllvm.expr.math_table import TABLE

from .kernels import Tracing, elementwise

#: Reference, range of binary exponents of the arguments, and whether they may be negative.
UNARY = {
    "exp": (np.exp, (-30, 7), True),
    "exp2": (np.exp2, (-30, 8), True),
    "log": (np.log, (-149, 127), False),
    "log2": (np.log2, (-149, 127), False),
    "log10": (np.log10, (-149, 127), False),
    "sqrt": (np.sqrt, (-149, 127), False),
    "rsqrt": (lambda x: 1 / np.sqrt(x), (-149, 127), False),
    "expm1": (np.expm1, (-140, 7), True),
    "log1p": (np.log1p, (-140, 100), True),
    "cbrt": (np.cbrt, (-149, 127), True),
    "sin": (np.sin, (-140, 127), True),
    "cos": (np.cos, (-140, 127), True),
    "tan": (np.tan, (-140, 127), True),
    "asin": (np.arcsin, (-140, 0), True),
    "acos": (np.arccos, (-140, 0), True),
    "atan": (np.arctan, (-140, 127), True),
    "sinh": (np.sinh, (-140, 6.6), True),
    "cosh": (np.cosh, (-140, 6.6), True),
    "tanh": (np.tanh, (-140, 7), True),
    "erf": (np.vectorize(math.erf), (-140, 4), True),
    "absf": (np.abs, (-149, 127), True),
    "floor": (np.floor, (-10, 30), True),
    "ceil": (np.ceil, (-10, 30), True),
    "trunc": (np.trunc, (-10, 30), True),
    "roundeven": (np.rint, (-10, 30), True),
}
BINARY = {"powf": np.power, "atan2": np.arctan2, "copysign": np.copysign, "maxnumf": np.fmax, "minimumf": np.minimum}
SPECIAL = np.array(
    [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 1e-40, -1e-40, 3.4e38, -3.4e38, 2, 0.5, -0.5, 1.5, 2.5, 88.8, 89.4, -87,
     -104, 17.6, 0.6, 0.92, 4.1, 30000, 30001, 1.5707964, 3.1415927], np.float32,
)  # fmt: skip
NUMPY = {"f16": (fx.Float16, np.float16), "bf16": (fx.BFloat16, ml_dtypes.bfloat16), "f32": (fx.Float32, np.float32)}


def arguments(low: float, high: float, negative: bool, seed: int = 0) -> np.ndarray:
    """Magnitudes spread over all binary exponents, a part of them around 1, and special values."""
    rng = np.random.default_rng(seed)
    exponents = np.concatenate([rng.uniform(low, high, 2048), rng.uniform(max(low, -4), min(high, 4), 2048)])
    values = np.exp2(exponents).astype(np.float32)
    if negative:
        values *= rng.choice(np.array([-1, 1], np.float32), values.size)
    values = np.concatenate([values, SPECIAL if negative else np.abs(SPECIAL)])
    return np.concatenate([values, np.ones(-values.size % 64, np.float32)])


def ulps(got: np.ndarray, exact: np.ndarray, kind: type) -> np.ndarray:
    """Distance to the exact result in units of the last place; infinite where only one is NaN or infinite."""
    with np.errstate(all="ignore"):
        exact = np.asarray(exact, np.float64)
        rounded = exact.astype(kind)
        step = np.abs(np.spacing(np.abs(rounded), dtype=kind).astype(np.float64))
        got64 = got.astype(np.float64)
        error = np.abs(got64 - exact) / step
    equal = (got == rounded) | (np.isnan(got64) & np.isnan(exact))
    return np.where(equal, np.minimum(np.nan_to_num(error, nan=0, posinf=0), 0.5), np.nan_to_num(error, nan=np.inf))


@pytest.mark.sim
@pytest.mark.parametrize("name", UNARY)
def test_f32_function_is_within_its_bound(name: str) -> None:
    reference, (low, high), negative = UNARY[name]
    x = arguments(low, high, negative)
    got = elementwise(lambda v: getattr(fx.math, name)(v), [x], fx.Float32, np.float32)
    with np.errstate(all="ignore"):
        exact = reference(x.astype(np.float64 if name == "erf" else np.longdouble))
    worst = ulps(got, exact, np.float32)
    bound = TABLE[name]["f32"].ulp
    at = int(np.argmax(worst))
    assert worst[at] <= bound, f"{name}({x[at]!r}) = {got[at]!r}, exactly {exact[at]!r}: {worst[at]} ulp"
    signs = np.signbit(got) == np.signbit(np.asarray(exact))
    assert (signs | np.isnan(got)).all(), f"{name}: sign of {x[~signs][:4]}"


@pytest.mark.sim
@pytest.mark.parametrize("name", BINARY)
def test_f32_function_of_two_is_within_its_bound(name: str) -> None:
    x = np.concatenate([arguments(-20, 20, True, 1), np.repeat(SPECIAL, SPECIAL.size)])
    y = np.concatenate([arguments(-4, 4, True, 2), np.tile(SPECIAL, SPECIAL.size)])
    x[:2048], y[1024:3000] = np.abs(x[:2048]), np.round(y[1024:3000])
    x, y = (np.concatenate([v, np.ones(-v.size % 64, np.float32)]) for v in (x, y))
    got = elementwise(lambda a, b: getattr(fx.math, name)(a, b), [x, y], fx.Float32, np.float32)
    with np.errstate(all="ignore"):
        exact = BINARY[name](x.astype(np.longdouble), y.astype(np.longdouble)).astype(np.float64)
    worst = ulps(got, exact, np.float32)
    at = int(np.argmax(worst))
    assert worst[at] <= TABLE[name]["f32"].ulp, f"{name}({x[at]!r}, {y[at]!r}) = {got[at]!r}, exactly {exact[at]!r}"


@pytest.mark.sim
@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("name", UNARY)
def test_16_bit_function_is_the_rounded_f32_one(name: str, kind: str) -> None:
    reference, (low, high), negative = UNARY[name]
    dtype, np_type = NUMPY[kind]
    if kind == "f16":
        low, high = max(low, -14), min(high, 15)
    with np.errstate(all="ignore"):
        x = arguments(low, high, negative).astype(np_type)
        exact = reference(x.astype(np.float64))
    got = elementwise(lambda v: getattr(fx.math, name)(v), [x], dtype, np_type, types=[dtype])
    rule = TABLE[name][kind]
    worst = ulps(got, exact, np_type)
    at = int(np.argmax(worst))
    assert worst[at] <= rule.ulp, f"{name}({x[at]!r}) = {got[at]!r}, exactly {exact[at]!r}: {worst[at]} ulp"


@pytest.mark.sim
def test_vectors_compute_what_scalars_do() -> None:
    x = arguments(-4, 4, True)
    x = x[: x.size // 256 * 256]
    for name in ("tanh", "sin", "erf", "powf"):
        fn = (lambda v: fx.math.powf(v, 1.5)) if name == "powf" else getattr(fx.math, name)
        one, four = (elementwise(fn, [x], fx.Float32, np.float32, vector=n) for n in (1, 4))
        np.testing.assert_array_equal(one, four)


@pytest.mark.sim
def test_double_precision_where_there_is_code() -> None:
    x = np.abs(arguments(-100, 100, False)).astype(np.float64)
    x[~np.isfinite(x) | (x == 0)] = 2.0
    got = elementwise(lambda v: fx.math.rsqrt(v), [x], fx.Float64, np.float64)
    exact = 1 / np.sqrt(x.astype(np.longdouble))
    assert np.abs((got - exact) / np.spacing(exact.astype(np.float64))).max() <= 1.5


@pytest.mark.parametrize("name", ["exp", "log2", "sin", "tanh", "powf"])
def test_double_precision_without_code_is_refused_by_name(name: str) -> None:
    with Tracing() as k:
        x = k.arg(fx.Float64)
        fn = getattr(fx.math, name)
        with pytest.raises(TraceError, match=rf"math\.{name} of Float64") as e:
            fn(x, x) if name == "powf" else fn(x)
    assert "there is code for f32, f16, bf16" in str(e.value)


@pytest.mark.parametrize("name", ["erfc", "asinh", "acosh", "atanh"])
def test_functions_without_code_say_what_to_use(name: str) -> None:
    with Tracing() as k, pytest.raises(TraceError, match=f"{name} has no code on AMDGPU") as e:
        getattr(fx.math, name)(k.arg(fx.Float32))
    assert "use " in str(e.value)


def test_integers_are_no_argument_of_float_functions() -> None:
    with Tracing() as k, pytest.raises(TraceError, match=r"convert with \.to\(\)"):
        fx.math.exp(k.arg(fx.Int32))


@pytest.mark.sim
def test_classes_of_floats() -> None:
    x = np.resize(SPECIAL, 64)
    for name, reference in {
        "isnan": np.isnan, "isinf": np.isinf, "isfinite": np.isfinite,
        "isnormal": lambda v: np.isfinite(v) & (np.abs(v) >= np.finfo(np.float32).tiny),
    }.items():  # fmt: skip
        got = elementwise(lambda v, n=name: getattr(fx.math, n)(v).to(fx.Int32), [x], fx.Int32, np.int32)
        np.testing.assert_array_equal(got.astype(bool), reference(x), err_msg=name)


@pytest.mark.sim
def test_integer_functions() -> None:
    x = np.array([0, 1, 2, -1, -8, 2**31 - 1, -(2**31), 4096] * 8, np.int32)
    bits = x.view(np.uint32)
    want = {
        "absi": np.where(x == -(2**31), x, np.abs(x)),
        "ctpop": np.array([b.bit_count() for b in bits.tolist()]),
        "ctlz": np.array([32 - b.bit_length() for b in bits.tolist()]),
        "cttz": np.array([(b & -b).bit_length() - 1 if b else 32 for b in bits.tolist()]),
    }
    for name, expected in want.items():
        got = elementwise(lambda v, n=name: getattr(fx.math, n)(v), [x], fx.Int32, np.int32)
        np.testing.assert_array_equal(got, expected, err_msg=name)
    got = elementwise(lambda v: fx.math.shrui(v, 4), [x], fx.Int32, np.int32)
    np.testing.assert_array_equal(got, (bits >> 4).view(np.int32))
    got = elementwise(lambda v: fx.math.ceildiv(v, 8), [x[:7].repeat(64)], fx.Int32, np.int32)
    np.testing.assert_array_equal(got, -(-x[:7].astype(np.int64) // 8).repeat(64).astype(np.int32))


@pytest.mark.sim
def test_fma_rounds_once_and_powers_multiply() -> None:
    x = arguments(-3, 3, True)
    x = np.where(np.isfinite(x) & (np.abs(x) < 1e9) & (np.abs(x) > 1e-9), x, 1).astype(np.float32)
    got = elementwise(lambda v: fx.math.fma(v, v, -1.0), [x], fx.Float32, np.float32)
    np.testing.assert_array_equal(got, (x.astype(np.float64) ** 2 - 1.0).astype(np.float32))
    got = elementwise(lambda v: v**3, [x], fx.Float32, np.float32)
    np.testing.assert_array_equal(got, x * (x * x))
    got = elementwise(lambda v: fx.math.fpowi(v, -1), [x], fx.Float32, np.float32)
    np.testing.assert_array_equal(got, (np.float32(1) / x))


@pytest.mark.sim
def test_largest_and_smallest() -> None:
    a = np.array([1, -2, 3, 2**31 - 1] * 16, np.int32)
    b = np.array([-1, -3, 4, 0] * 16, np.int32)
    np.testing.assert_array_equal(elementwise(fx.max, [a, b], fx.Int32, np.int32), np.maximum(a, b))
    unsigned = [v.view(np.uint32) for v in (a, b)]
    np.testing.assert_array_equal(elementwise(fx.min, unsigned, fx.Uint32, np.uint32), np.minimum(*unsigned))
    f = np.array([1, np.nan, -3, 0] * 16, np.float32)
    np.testing.assert_array_equal(elementwise(lambda v: fx.max(v, 0.5), [f], fx.Float32, np.float32), np.fmax(f, 0.5))
    assert int(fx.max(3, 7, 5)) == 7 and int(fx.min(3, 7, 5)) == 3


@flyc.kernel(known_block_size=(64, 1, 1))
def everything(x: fx.Tensor, y: fx.Tensor):
    at = fx.thread_idx.x
    v, total = x[at], 0.0
    for name, count in (*((n, 1) for n in UNARY), *((n, 2) for n in BINARY)):
        total = total + getattr(fx.math, name)(*[v] * count)
    y[at] = total


@pytest.mark.llvm
@pytest.mark.parametrize("arch", ["gfx90a", "gfx942", "gfx950", "gfx1100", "gfx1200", "gfx1250"])
def test_llvm_has_code_for_every_function(arch: str) -> None:
    for kind in ("f32", "f16", "bf16"):
        assert flyc.compile(everything, f"{kind}[64]", f"{kind}[64]", arch=arch).code_object.kernels["everything"]
