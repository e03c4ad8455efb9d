"""Numbers: promotion against a plain model, wrapping, conversions, comparisons, and what is refused."""

from __future__ import annotations

import itertools
import operator

import ml_dtypes
import numpy as np
import pytest

import flyllvm.compiler as flyc
import flyllvm.expr as fx
from flyllvm.errors import TargetError, TraceError
from flyllvm.expr.numeric import TYPES, as_numeric, promote

from .kernels import Tracing, elementwise

#: What NumPy has of each type, and whether it is a float.
MODEL = {
    fx.Int8: np.int8, fx.Int16: np.int16, fx.Int32: np.int32, fx.Int64: np.int64, fx.Uint8: np.uint8,
    fx.Uint16: np.uint16, fx.Uint32: np.uint32, fx.Uint64: np.uint64, fx.Float16: np.float16,
    fx.BFloat16: ml_dtypes.bfloat16, fx.Float32: np.float32, fx.Float64: np.float64,
}  # fmt: skip
INTEGERS = [c for c in MODEL if c.signed is not None]
FLOATS = [c for c in MODEL if c.signed is None]


def model(a: type, b: type) -> str | None:
    """The documented promotion, written from widths and kinds alone."""
    kind = {True: "Int", False: "Uint", None: "Float"}
    a, b = (fx.Int32 if c is fx.Boolean else c for c in (a, b))
    small = [c for c in (a, b) if c.signed is None and c.width < 16]
    if small:
        return None
    if a.signed is None and b.signed is None:
        if a is b:
            return a.__name__
        return "Float32" if a.width == b.width else max(a, b, key=lambda c: c.width).__name__
    if a.signed is None or b.signed is None:
        f, i = (a, b) if a.signed is None else (b, a)
        if i.width <= 16 or f.width >= i.width:
            return f.__name__
        return "Float32" if i.width <= 32 else "Float64"
    width = max(a.width, b.width)
    unsigned = [c for c in (a, b) if not c.signed and c.width == width]
    return f"{kind[not unsigned]}{width}"


def test_promotion_follows_the_rules_for_every_pair() -> None:
    for a, b in itertools.product(TYPES.values(), repeat=2):
        want = model(a, b)
        if want is None:
            with pytest.raises(TraceError, match=r"cast it with \.to\(fx\.Float32\)"):
                promote(a, b)
        else:
            assert promote(a, b).__name__ == want, (a, b)


@pytest.mark.parametrize("cls", [*INTEGERS, *FLOATS], ids=str)
def test_a_literal_takes_the_type_of_the_other_operand(cls: type[fx.Numeric]) -> None:
    with Tracing() as k:
        x = k.arg(cls)
        for made in (x + 1, 1 + x, x * 2, x - 1, fx.where(k.arg(fx.Boolean), x, 1)):
            assert type(made) is cls
        assert type(x + 1.5) is (cls if cls.signed is None else promote(cls, fx.Float32))
        assert type(x < 1) is fx.Boolean


def test_a_literal_that_does_not_fit_widens() -> None:
    assert type(as_numeric(300, fx.Int8)) is fx.Int32
    assert type(as_numeric(-1, fx.Uint32)) is fx.Int32
    assert type(as_numeric(1 << 40, fx.Int32)) is fx.Int64
    assert type(as_numeric(100000, fx.Float16)) is fx.Int32
    assert type(as_numeric(1e6, fx.Float16)) is fx.Float32
    assert type(as_numeric(True)) is fx.Boolean


def test_numbers_known_while_tracing_wrap_and_round_like_those_that_are_not() -> None:
    assert int(fx.Uint32(0xFFFFFFFF) + 1) == 0
    assert int(fx.Int8(100) * fx.Int8(2)) == -56
    assert int(fx.Uint8(300)) == 44 and int(fx.Int16(0x18000)) == -0x8000
    assert float(fx.Float32(0.1)) == float(np.float32(0.1))
    assert float(fx.Float16(0.1)) == float(np.float16(0.1))
    rng = np.random.default_rng(0)
    for x in [*(rng.standard_normal(200) * np.exp2(rng.integers(-150, 130, 200))).tolist(), 3.4e38, 1e-45, -0.0]:
        assert float(fx.BFloat16(x)) == float(ml_dtypes.bfloat16(x)) or abs(x) < 2**-126, x
        with np.errstate(over="ignore"):
            assert float(fx.Float32(x)) == float(np.float32(x))
    assert float(fx.Float32(1e300)) == float("inf")
    with pytest.raises(TraceError, match="saturate=True"):
        fx.Int32(float("nan"))
    for cls, x in ((fx.Int8, 300.0), (fx.Uint8, -1.0), (fx.Int32, 2.0**31), (fx.Uint64, 2.0**64)):
        with pytest.raises(TraceError, match="out of range"):
            cls(x)
    assert int(fx.Int8(-128.5)) == -128 and int(fx.Uint8(-0.5)) == 0
    assert str(float(fx.BFloat16(-0.0))) == "-0.0" and str(float(fx.BFloat16(-1e-60))) == "-0.0"


SAMPLES = {
    True: [0, 1, -1, 7, -8, 127, -128, 2**31 - 1, -(2**31), 2**62],
    False: [0, 1, 2, 200, 255, 65535, 2**31, 2**32 - 1, 2**63],
}


def samples(cls: type[fx.Numeric], seed: int = 0) -> np.ndarray:
    """64 numbers of a type, the corner cases among them."""
    rng = np.random.default_rng(seed)
    if cls.signed is None:
        values = np.concatenate([[0.0, -0.0, 1, -1.5, 2.5, 1e4, -3e4], rng.standard_normal(57) * 100])
        return values.astype(MODEL[cls])
    some = np.array([int(v) % (1 << cls.width) for v in SAMPLES[cls.signed]], np.uint64)
    more = rng.integers(0, 1 << min(cls.width, 63), 64 - some.size).astype(np.uint64)
    return np.concatenate([some, more]).astype(f"u{cls.width // 8}").view(MODEL[cls])


def shuffled(a: np.ndarray, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).permutation(a)


INT_OPS = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_, "or": operator.or_,
    "xor": operator.xor, "floordiv": operator.floordiv, "mod": operator.mod,
}  # fmt: skip


@pytest.mark.sim
@pytest.mark.parametrize("vector", [1, 4])
@pytest.mark.parametrize("cls", INTEGERS, ids=str)
def test_integer_arithmetic_wraps(cls: type[fx.Numeric], vector: int) -> None:
    np_type = MODEL[cls]
    a = np.tile(samples(cls), vector)
    b = shuffled(np.tile(samples(cls, 1), vector), 2)
    for name, fn in INT_OPS.items():
        y = np.where((b == 0) | ((b == np_type(-1 % (1 << cls.width) if not cls.signed else -1)) & bool(cls.signed)),
                     np_type(3), b) if name in ("floordiv", "mod") else b  # fmt: skip
        got = elementwise(fn, [a, y], cls, np_type, vector=vector)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(got, fn(a, y), err_msg=f"{cls} {name}")


@pytest.mark.sim
@pytest.mark.parametrize("vector", [1, 4])
def test_mixed_integers_promote_as_documented(vector: int) -> None:
    for a, b in [(fx.Int8, fx.Uint8), (fx.Int32, fx.Uint32), (fx.Uint32, fx.Int64), (fx.Int16, fx.Int32)]:
        cls = promote(a, b)
        x, y = np.tile(samples(a), vector), shuffled(np.tile(samples(b, 1), vector), 3)
        got = elementwise(operator.mul, [x, y], cls, MODEL[cls], vector=vector)
        with np.errstate(over="ignore"):
            np.testing.assert_array_equal(got, x.astype(MODEL[cls]) * y.astype(MODEL[cls]))
        less = elementwise(lambda u, v: fx.where(u < v, 1, 0), [x, y], fx.Int32, np.int32, vector=vector)
        np.testing.assert_array_equal(less, x.astype(object) < y.astype(object))


COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
MIXED = [(fx.Int8, fx.Uint8), (fx.Uint32, fx.Int32), (fx.Int16, fx.Uint32), (fx.Int64, fx.Uint64)]


@pytest.mark.sim
@pytest.mark.parametrize("vector", [1, 4])
@pytest.mark.parametrize(("a", "b"), MIXED, ids=str)
def test_mixed_signs_compare_by_value(a: type[fx.Numeric], b: type[fx.Numeric], vector: int) -> None:
    x, y = np.tile(samples(a), vector), shuffled(np.tile(samples(b, 1), vector), 3)
    # The same bits are different numbers.
    bits = np.dtype(f"i{min(a.width, b.width) // 8}")
    x[:8], y[:8] = np.array([-1], bits).astype(MODEL[a])[0], np.array([-1], bits).astype(MODEL[b])[0]
    p, q = x.astype(object), y.astype(object)
    for fn in COMPARISONS:
        got = elementwise(lambda u, v, fn=fn: fx.where(fn(u, v), 1, 0), [x, y], fx.Int32, np.int32, vector=vector)
        np.testing.assert_array_equal(got, fn(p, q).astype(int), err_msg=fn.__name__)
    cls = promote(a, b)
    for name in ("max", "min"):
        got = elementwise(getattr(fx, name), [x, y], cls, MODEL[cls], vector=vector)
        want = [u if (u > v) == (name == "max") else v for u, v in zip(p, q)]
        np.testing.assert_array_equal(got, np.array([w % (1 << cls.width) for w in want], object).astype(MODEL[cls]))


def test_known_numbers_of_mixed_signs_compare_by_value() -> None:
    assert bool(fx.Uint8(190) > fx.Int8(-1)) and not bool(fx.Uint32(0xFFFFFFFF) == fx.Int32(-1))
    assert bool(fx.Int64(-1) < fx.Uint64(0)) and bool(fx.Uint32(5) == fx.Int32(5))


def test_a_quotient_of_mixed_signs_wants_a_number_that_is_not_negative() -> None:
    with Tracing() as k:
        u, s = k.arg(fx.Uint32), k.arg(fx.Int32)
        for fn in (operator.floordiv, operator.mod):
            for x, y in ((u, s), (s, u), (fx.full(4, u), s), (fx.full(4, s), fx.full(4, u))):
                with pytest.raises(TraceError, match=r"convert both with \.to\(fx\.Int64\).*\.to\(fx\.Uint32\)"):
                    fn(x, y)
            assert type(fn(u, fx.thread_idx.x + 1)) is fx.Uint32
            assert type(fn(u, 7)) is type(fn(u, fx.Int32(7))) is fx.Uint32
            assert type(fn(k.arg(fx.Int64), u)) is fx.Int64
            assert fn(fx.full(4, u), 7).dtype is fx.Uint32


@pytest.mark.sim
@pytest.mark.parametrize("cls", [fx.Int8, fx.Int32, fx.Uint32, fx.Int64, fx.Uint16], ids=str)
def test_shifts_keep_the_type_and_the_sign(cls: type[fx.Numeric]) -> None:
    a, n = samples(cls), (np.arange(64) % cls.width).astype(np.int32)
    right = elementwise(lambda x, s: x >> s, [a, n], cls, MODEL[cls])
    np.testing.assert_array_equal(right, a >> n.astype(MODEL[cls]))
    left = elementwise(lambda x, s: x << s, [a, n], cls, MODEL[cls])
    np.testing.assert_array_equal(left, a << n.astype(MODEL[cls]))
    four = elementwise(lambda x: x >> 3, [np.tile(a, 4)], cls, MODEL[cls], vector=4)
    np.testing.assert_array_equal(four, np.tile(a, 4) >> MODEL[cls](3))


@pytest.mark.sim
@pytest.mark.parametrize("cls", FLOATS, ids=str)
def test_float_arithmetic_rounds_once(cls: type[fx.Numeric]) -> None:
    np_type = MODEL[cls]
    a, b = samples(cls), shuffled(samples(cls, 1), 4)
    b = np.where(b == 0, np_type(1), b)
    wide = np.float32 if cls.width == 16 else np_type
    for name, fn in {"add": operator.add, "sub": operator.sub, "mul": operator.mul, "div": operator.truediv}.items():
        got = elementwise(fn, [a, b], cls, np_type, types=[cls, cls])
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(got, fn(a.astype(wide), b.astype(wide)).astype(np_type), err_msg=name)


@pytest.mark.sim
def test_float_floor_division_and_remainder_are_those_of_python() -> None:
    rng = np.random.default_rng(0)
    a = (rng.standard_normal(128) * 1000).astype(np.float32)
    b = (rng.standard_normal(128) * 3).astype(np.float32)
    want_mod = np.array([float(x) % float(y) for x, y in zip(a, b)], np.float32)
    want_div = np.array([float(x) // float(y) for x, y in zip(a, b)], np.float32)
    np.testing.assert_array_equal(elementwise(operator.mod, [a, b], fx.Float32, np.float32), want_mod)
    np.testing.assert_array_equal(elementwise(operator.floordiv, [a, b], fx.Float32, np.float32), want_div)
    np.testing.assert_array_equal(elementwise(operator.mod, [a, b], fx.Float32, np.float32, vector=2), want_mod)


@pytest.mark.sim
def test_division_of_integers_gives_a_float() -> None:
    a = samples(fx.Int32)
    b = np.where(samples(fx.Int32, 1) == 0, 1, samples(fx.Int32, 1))
    got = elementwise(operator.truediv, [a, b], fx.Float32, np.float32)
    np.testing.assert_array_equal(got, a.astype(np.float32) / b.astype(np.float32))
    with Tracing() as k:
        assert type(k.arg(fx.Int64) / 2) is fx.Float64 and type(k.arg(fx.Int8) / 2) is fx.Float32


@pytest.mark.sim
def test_booleans_count_as_int32_in_arithmetic_and_stay_in_logic() -> None:
    a = np.arange(64, dtype=np.int32)
    got = elementwise(lambda x: (x > 10) + (x > 20) * 2, [a], fx.Int32, np.int32)
    np.testing.assert_array_equal(got, (a > 10).astype(int) + (a > 20) * 2)
    got = elementwise(lambda x: fx.where(((x > 10) & ~(x > 20)) ^ (x == 3), 1, 0), [a], fx.Int32, np.int32)
    np.testing.assert_array_equal(got, ((a > 10) & ~(a > 20)) ^ (a == 3))
    got = elementwise(lambda x: fx.Int32(fx.Boolean(x)), [a], fx.Int32, np.int32)
    np.testing.assert_array_equal(got, a != 0)
    with Tracing() as k:
        flag = k.arg(fx.Boolean)
        assert type(flag & True) is fx.Boolean and type(~flag) is fx.Boolean and type(-flag) is fx.Int32


@pytest.mark.sim
@pytest.mark.parametrize("source", MODEL, ids=str)
def test_conversion_to_every_type(source: type[fx.Numeric]) -> None:
    for target in MODEL:
        a = samples(source)
        if source.signed is None and target.signed is not None:
            # Out of range is undefined without saturation.
            low, high = (-100, 100) if target.signed else (0, 200)
            a = np.clip(a.astype(np.float64), low, high).astype(MODEL[source])
        with np.errstate(all="ignore"):
            want = a.astype(np.float64).astype(MODEL[target]) if source.signed is None else a.astype(MODEL[target])
        for vector in (1, 2):
            got = elementwise(
                lambda x, t=target: x.to(t), [np.tile(a, vector)], target, MODEL[target], vector=vector, types=[source]
            )
            np.testing.assert_array_equal(got, np.tile(want, vector), err_msg=f"{source} -> {target}")


@pytest.mark.sim
@pytest.mark.parametrize("target", INTEGERS, ids=str)
def test_saturating_conversion_of_floats(target: type[fx.Numeric]) -> None:
    info = np.iinfo(MODEL[target])
    edge = [float(info.max), float(info.min), float(info.max) * 2, float(info.min) * 2 - 1, 0.5, -0.5, 99.99]
    a = np.array([*edge, float("inf"), float("-inf"), float("nan"), 1e30, -1e30, -1.0] * 5)[:64].astype(np.float32)
    want = []
    for x in a.tolist():
        n = 0 if x != x else info.max if x >= info.max else info.min if x <= info.min else int(x)
        want.append(n)
    got = elementwise(lambda x: x.to(target, saturate=True), [a], target, MODEL[target])
    np.testing.assert_array_equal(got, np.array(want, MODEL[target]))
    static = [int(fx.Float32(x).to(target, saturate=True)) for x in a.tolist()]
    assert static == want


@pytest.mark.sim
def test_saturating_conversion_of_integers() -> None:
    for source, target in [(fx.Int32, fx.Int8), (fx.Int32, fx.Uint8), (fx.Uint32, fx.Int32), (fx.Int8, fx.Uint32)]:
        a, info = samples(source), np.iinfo(MODEL[target])
        got = elementwise(lambda x, t=target: x.to(t, saturate=True), [a], target, MODEL[target])
        np.testing.assert_array_equal(got, np.clip(a.astype(object), info.min, info.max).astype(MODEL[target]))


# --- small floats --------------------------------------------------------------------------------

FP8 = {
    ("gfx942", fx.Float8E4M3FNUZ): ml_dtypes.float8_e4m3fnuz, ("gfx942", fx.Float8E5M2FNUZ): ml_dtypes.float8_e5m2fnuz,
    ("gfx950", fx.Float8E4M3FN): ml_dtypes.float8_e4m3fn, ("gfx1200", fx.Float8E5M2): ml_dtypes.float8_e5m2,
}  # fmt: skip


@pytest.mark.sim
@pytest.mark.parametrize(("arch", "cls"), FP8, ids=str)
@pytest.mark.parametrize("vector", [1, 2, 4, 8])
def test_fp8_converts_both_ways_where_the_chip_can(arch: str, cls: type[fx.Numeric], vector: int) -> None:
    np_type = FP8[arch, cls]
    lanes = 64
    every = np.tile(np.arange(256, dtype=np.uint8), max(1, vector * lanes // 256))
    values = every.view(np_type)
    got = elementwise(
        lambda x: x.to(fx.Float32), [values], fx.Float32, np.float32, vector=vector, types=[cls], arch=arch,
        known_block_size=(64, 1, 1),
    )  # fmt: skip
    np.testing.assert_array_equal(got, values.astype(np.float32))
    rng = np.random.default_rng(0)
    x = (rng.standard_normal(512) * 20).astype(np.float32)
    got = elementwise(lambda v: v.to(cls), [x], cls, np_type, vector=vector, arch=arch, types=[fx.Float32])
    np.testing.assert_array_equal(got.view(np.uint8), x.astype(np_type).view(np.uint8))


@pytest.mark.sim
def test_saturating_fp8_conversion_clamps() -> None:
    x = np.array([1e9, -1e9, 240, 300, float("inf"), 1, -240, 2] * 8, np.float32)
    got = elementwise(
        lambda v: v.to(fx.Float8E4M3FNUZ, saturate=True), [x], fx.Float8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz
    )
    np.testing.assert_array_equal(got.astype(np.float32), np.clip(x, -240, 240))


@pytest.mark.parametrize(
    ("arch", "cls", "chips"),
    [
        ("gfx942", fx.Float8E4M3FN, "gfx950, gfx1200"),
        ("gfx950", fx.Float8E4M3FNUZ, "it exists on gfx942"),
        ("gfx90a", fx.Float8E5M2, "gfx950, gfx1200"),
        ("gfx942", fx.Float4E2M1FN, "it exists on gfx950 and gfx1250"),
        ("gfx1201", fx.Float6E2M3FN, "it exists on gfx950 and gfx1250"),
    ],
)  # fmt: skip
def test_conversion_that_the_chip_lacks_is_refused_by_name(arch: str, cls: type[fx.Numeric], chips: str) -> None:
    with Tracing(arch) as k, pytest.raises(TargetError, match=f"{arch} has no conversion from {cls} to BFloat16") as e:
        k.arg(cls).to(fx.BFloat16)
    assert chips in str(e.value)
    with Tracing(arch) as k, pytest.raises(TargetError, match=chips):
        k.arg(fx.Float32).to(cls)


@flyc.kernel(known_block_size=(64, 1, 1))
def fp4_round_trip(x: fx.Tensor, y: fx.Tensor):
    at = fx.thread_idx.x * 8
    (y.iter + at).store((x.iter + at).load(count=8).to(fx.Float4E2M1FN).to(fx.BFloat16))


@pytest.mark.llvm
def test_fp4_conversions_compile_on_gfx950() -> None:
    text = flyc.compile(fp4_round_trip, "f32[512]{align=16}", "bf16[512]{align=16}", arch="gfx950").assembly
    assert text.count("v_cvt_scalef32_pk_fp4_f32") == 4 and text.count("v_cvt_scalef32_pk_f32_fp4") == 4


NARROW = {
    fx.Float4E2M1FN: ml_dtypes.float4_e2m1fn, fx.Float6E2M3FN: ml_dtypes.float6_e2m3fn,
    fx.Float6E3M2FN: ml_dtypes.float6_e3m2fn,
}  # fmt: skip


@pytest.mark.llvm
@pytest.mark.sim
@pytest.mark.parametrize("arch", ["gfx950", "gfx1250"])
@pytest.mark.parametrize("cls", NARROW, ids=str)
@pytest.mark.parametrize("count", [1, 3, 32])
def test_narrow_floats_convert_both_ways_in_blocks(arch: str, cls: type[fx.Numeric], count: int) -> None:
    @flyc.kernel(known_block_size=(64, 1, 1))
    def there_and_back(x: fx.Tensor, y: fx.Tensor):
        lane = fx.thread_idx.x
        if lane < 40:  # some lanes of a wave only
            held = fx.Vector.from_elements([x[lane * count + i] for i in fx.range_constexpr(count)])
            wide = held.to(cls, saturate=True).to(fx.Float32)
            for i in fx.range_constexpr(count):
                y[lane * count + i] = wide[i]

    x = (np.random.default_rng(0).standard_normal(64 * count) * 3).astype(np.float32)
    y = np.zeros_like(x)
    art = flyc.compile(there_and_back, x, y, arch=arch)
    art.simulate(x, y, grid=(1,), block=(64,))
    limit = float(ml_dtypes.finfo(NARROW[cls]).max)
    want = np.clip(x, -limit, limit).astype(NARROW[cls]).astype(np.float32)
    np.testing.assert_array_equal(y, np.where(np.arange(64).repeat(count) < 40, want, 0))


@pytest.mark.sim
def test_scales_are_powers_of_two_on_every_chip() -> None:
    every = np.arange(256, dtype=np.uint8)
    got = elementwise(
        lambda x: x.to(fx.Float32), [every.view(ml_dtypes.float8_e8m0fnu)], fx.Float32, np.float32,
        types=[fx.Float8E8M0FNU], arch="gfx1100", vector=1,
    )  # fmt: skip
    np.testing.assert_array_equal(got[:255], np.exp2(np.arange(255.0) - 127).astype(np.float32))
    assert np.isnan(got[255])


# --- refusals ------------------------------------------------------------------------------------


def test_misuse_of_numbers_is_explained() -> None:
    with Tracing() as k:
        x, f = k.arg(fx.Int32), k.arg(fx.Float32)
        cases = [
            (lambda: f & 1, r"bitwise operator on Float32", "use integers, or .bitcast"),
            (lambda: f << 1, r"shift of Float32", "use integers"),
            (lambda: x << 32, r"shift of Int32 by 32", "shift by 0 to 31 bits"),
            (lambda: ~f, r"~ on Float32", "use an integer"),
            (lambda: x // 0, r"division by zero", "not zero"),
            (lambda: f.bitcast(fx.Int64), r"bitcast of Float32 to Int64", "32 bits"),
            (lambda: bool(x), r"decides Python control flow", "fx.where"),
            (lambda: range(10)[x], r"where Python needs an int", "compile-time"),
            (lambda: float(f), r"has no Python value", "keep it traced"),
            (lambda: fx.Float32("a"), r"not a number", "pass a Python or traced number"),
            (lambda: f.to(int), r"to\(", "pass a number type"),
            (lambda: k.arg(fx.Float8E5M2) + 1.0, r"takes part in no arithmetic", r"\.to\(fx\.Float32\)"),
        ]
        for run, what, fix in cases:
            with pytest.raises(TraceError, match=what) as e:
                run()
            assert fix.replace("\\", "") in str(e.value)


def test_a_run_time_sum_that_gathers_constants_keeps_its_width() -> None:
    with Tracing() as k:
        x = k.arg(fx.Int32)
        made = (x + (2**31 - 1)) + (2**31 - 1)
        assert made.ir_value().type == fx.Int32.ir


def test_fast_math_flags_reach_every_float_operation() -> None:
    with Tracing() as k:
        x, y, n = k.arg(fx.Float32), k.arg(fx.Float32), k.arg(fx.Int32)
        v = fx.full(4, x)
        before = len(k.ops())
        with fx.fastmath("contract", "nnan"):
            for a, b in ((x, y), (v, v)):
                a + b, a - b, a * b, a / b, a % b, a // b, -a, abs(a), fx.max(a, b), fx.math.exp2(a)
                fx.math.fma(a, b, a), fx.math.rcp(a), fx.math.sqrt(a), a**3
            v.reduce("add"), v.reduce("max"), fx.max(n, k.arg(fx.Uint32)), fx.max(fx.full(4, n), 3)
        x * y, fx.math.exp(x, fastmath="afn")
        after = list(k.kernel.walk())[before:]
        floats = [op for op in after if "fastmath" in type(op).attr_names and op.operands[0].type != fx.Int32.ir]
        reductions = [op for op in floats if op.name == "vector.reduction"]
        outside = {"arith.mulf": 1, "math.exp": 1}
        plain = [op.name for op in floats if op.attrs.get("fastmath") != ("contract", "nnan")]
        assert len(floats) > 30 and len(reductions) == 2 and sorted(plain) == sorted(outside)
        assert [op.attrs["fastmath"] for op in floats if op.name == "math.exp"] == [("afn",)]
        with pytest.raises(TraceError, match="use: nnan"):
            fx.fastmath("quick")


@pytest.mark.parametrize("cls", [fx.Uint32, fx.Uint64])
def test_a_negative_constant_beside_an_unsigned_number_is_refused_where_its_sign_counts(
    cls: type[fx.Numeric],
) -> None:
    with Tracing() as k:
        u = k.arg(cls)
        for use in (
            lambda: u > -1, lambda: u <= -1, lambda: u == -1, lambda: u // -2, lambda: -5 % u, lambda: fx.max(u, -1),
            lambda: fx.min(fx.Int32(-1), u),
        ):  # fmt: skip
            with pytest.raises(
                TraceError, match=r"beside a Uint\d+, which is never negative\n  fix: .*\.to\(fx\.Int64\)"
            ):
                use()
        assert type(u + -1) is type(u & -4) is cls  # the bits are those of the sign
        assert type(k.arg(fx.Uint8) > -1) is fx.Boolean  # compares in Int32


def test_a_format_of_a_run_time_number_is_refused() -> None:
    with Tracing() as k:
        x = k.arg(fx.Int32)
        with pytest.raises(TraceError, match=r"the format '5d' of a run-time Int32\n  fix: .*fx\.printf"):
            f"{x:5d}"
        assert f"{x}" == str(x)
    assert f"{fx.Int32(7):5d}" == "    7"
