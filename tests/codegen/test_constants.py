"""Constants are spelled exactly, and integers fold as LLVM computes them."""

from __future__ import annotations

import struct

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, strategies as st

from flyllvm.codegen.constants import const_text, float_text, fold_int, scalar_const, small_float_bits, vector_text
from flyllvm.errors import CodegenError
from flyllvm.ir import lltype as ll, types as t

FLOATS = st.floats(width=64)


def test_integers_are_written_in_signed_form() -> None:
    assert const_text(ll.I32, 0xFFFFFFFF) == "-1"
    assert const_text(ll.I8, 200) == "-56"
    assert const_text(ll.I64, 1 << 40) == str(1 << 40)
    assert [const_text(ll.I1, v) for v in (0, 1, -1)] == ["false", "true", "true"]


def test_floats_are_written_in_llvms_hexadecimal_form() -> None:
    assert const_text(ll.F32, 1.0) == "0x3FF0000000000000"
    assert const_text(ll.F32, 0.1) == "0x3FB99999A0000000"
    assert const_text(ll.F64, 0.1) == "0x3FB999999999999A"
    assert const_text(ll.F16, 1.0) == "0xH3C00"
    assert const_text(ll.BF16, 1.0) == "0xR3F80"
    assert const_text(ll.F32, -0.0) == "0x8000000000000000"


def test_a_splat_of_minus_zero_is_no_zeroinitializer() -> None:
    assert const_text(ll.vec(2, ll.F32), 0.0) == "zeroinitializer"
    assert const_text(ll.vec(2, ll.F16), -0.0) == "<half 0xH8000, half 0xH8000>"
    assert vector_text(ll.vec(2, ll.I32), (1, -1)) == "<i32 1, i32 -1>"


@given(FLOATS)
def test_half_is_rounded_to_nearest_even(value: float) -> None:
    with np.errstate(over="ignore"):
        want = int(np.array([value], np.float64).astype(np.float16).view(np.uint16)[0])
    got = int(float_text(value, "half")[3:], 16)
    assert got == want or (value != value and got & 0x7FFF > 0x7C00)


@given(st.floats(width=32))
def test_bfloat_is_rounded_to_nearest_even(value: float) -> None:
    want = int(np.array([value], np.float32).astype(ml_dtypes.bfloat16).view(np.uint16)[0])
    got = int(float_text(value, "bfloat")[3:], 16)
    assert got == want or (value != value and got & 0x7FFF > 0x7F80)


@given(FLOATS)
def test_float_is_rounded_to_nearest_even_and_written_as_a_double(value: float) -> None:
    with np.errstate(over="ignore"):
        want = float(np.float32(value))
    (got,) = struct.unpack("<d", struct.pack("<Q", int(float_text(value, "float")[2:], 16)))
    assert got == want or (value != value and got != got)


SMALL = {
    t.F8E4M3FN: ml_dtypes.float8_e4m3fn,
    t.F8E5M2: ml_dtypes.float8_e5m2,
    t.F8E4M3FNUZ: ml_dtypes.float8_e4m3fnuz,
    t.F8E5M2FNUZ: ml_dtypes.float8_e5m2fnuz,
    t.F8E8M0FNU: ml_dtypes.float8_e8m0fnu,
    t.F6E2M3FN: ml_dtypes.float6_e2m3fn,
    t.F6E3M2FN: ml_dtypes.float6_e3m2fn,
    t.F4E2M1FN: ml_dtypes.float4_e2m1fn,
}


@pytest.mark.parametrize("elem", SMALL, ids=str)
def test_every_finite_small_float_has_its_bits(elem: t.FloatType) -> None:
    codes = np.arange(1 << elem.bits, dtype=np.uint8)
    values = codes.view(SMALL[elem]).astype(np.float64)
    finite = np.isfinite(values)
    assert finite.sum() > 10
    assert [small_float_bits(float(v), elem) for v in values[finite]] == codes[finite].tolist()


def test_a_constant_that_a_small_float_lacks_is_refused() -> None:
    with pytest.raises(CodegenError, match="round the constant"):
        small_float_bits(0.3, t.F8E4M3FN)
    with pytest.raises(CodegenError, match="round the constant"):
        scalar_const(t.F8E4M3FNUZ, -0.0)
    with pytest.raises(CodegenError, match="round the constant"):
        scalar_const(t.F4E2M1FN, 7)


def test_a_number_of_the_wrong_kind_is_refused() -> None:
    with pytest.raises(CodegenError, match="give an integer"):
        const_text(ll.I32, 1.5)
    with pytest.raises(CodegenError, match="use a number"):
        const_text(ll.ptr(1), 5)


@given(st.sampled_from(["add", "sub", "mul", "and", "or", "xor"]), st.integers(), st.integers())
def test_folding_wraps_to_the_width(op: str, a: int, b: int) -> None:
    exact = {"add": a + b, "sub": a - b, "mul": a * b, "and": a & b, "or": a | b, "xor": a ^ b}[op]
    got = fold_int(op, a, b, 32)
    assert got is not None and (got - exact) % (1 << 32) == 0 and -(1 << 31) <= got < 1 << 31


def test_division_rounds_to_zero_and_shifts_keep_to_their_sign() -> None:
    assert (fold_int("sdiv", -7, 2, 32), fold_int("srem", -7, 2, 32)) == (-3, -1)
    assert fold_int("udiv", -1, 2, 32) == (1 << 31) - 1
    assert (fold_int("ashr", -8, 1, 32), fold_int("lshr", -8, 1, 8)) == (-4, 124)


@pytest.mark.parametrize(("op", "b"), [("sdiv", 0), ("urem", 0), ("shl", 32), ("lshr", -1), ("fadd", 1)])
def test_what_llvm_leaves_undefined_does_not_fold(op: str, b: int) -> None:
    assert fold_int(op, 5, b, 32) is None
