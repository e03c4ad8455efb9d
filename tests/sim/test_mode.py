"""MODE.FP16_OVFL: what overflows becomes the largest number; other registers of the machine are refused."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import UnsupportedError, simulate
from tests.sim.kernels import STORE_OUT, kernel

pytestmark = pytest.mark.sim
SET = "call void @llvm.amdgcn.s.setreg(i32 1473, i32 1)\n"
PARAMS = "ptr addrspace(1) %in, ptr addrspace(1) %out"
LOAD = "%pi = getelementptr float, ptr addrspace(1) %in, i32 %t\n%x = load float, ptr addrspace(1) %pi, align 4\n"
VALUES = np.array([0.0, -1.5, 447.0, 449.0, 465.0, -1e9, 57344.0, 60000.0, 7e4, -1e30, 65504.0, np.nan], np.float32)


def _run(body: str, values: np.ndarray, target: str = "gfx950", **options: Any) -> tuple[np.ndarray, Any]:
    out = np.zeros(len(values), np.uint32)
    text = kernel(body + STORE_OUT.format(value="%v"), PARAMS)
    report = simulate(text, grid=1, block=len(values), args=[values, out], target=target, source_name="k.ll", **options)
    return out, report


def _convert(name: str) -> str:
    return LOAD + f"%v = call i32 @llvm.amdgcn.cvt.pk.{name}.f32(float %x, float %x, i32 0, i1 false)\n"


@pytest.mark.parametrize(
    ("name", "target", "dtype"),
    [
        ("fp8", "gfx950", ml_dtypes.float8_e4m3fn), ("bf8", "gfx1201", ml_dtypes.float8_e5m2),
        ("fp8", "gfx942", ml_dtypes.float8_e4m3fnuz), ("bf8", "gfx942", ml_dtypes.float8_e5m2fnuz),
    ],
)  # fmt: skip
def test_conversions_to_8_bits_saturate(name: str, target: str, dtype: Any) -> None:
    largest = float(ml_dtypes.finfo(dtype).max)
    got, _ = _run(SET + _convert(name), VALUES, target)
    want = np.clip(VALUES, -largest, largest).astype(dtype)
    assert np.array_equal((got & 0xFF).astype(np.uint8).view(dtype).astype(np.float32), want.astype(np.float32),
                          equal_nan=True)  # fmt: skip
    without, _ = _run(_convert(name), VALUES, target)
    assert not np.isfinite((without & 0xFF).astype(np.uint8).view(dtype).astype(np.float32)[5])
    off, _ = _run(SET.replace("i32 1)", "i32 0)") + _convert(name), VALUES, target)
    assert np.array_equal(off, without)


def test_the_scale_counts_first() -> None:
    body = LOAD + (
        "%p = call <2 x i16> @llvm.amdgcn.cvt.scalef32.pk.fp8.f32(<2 x i16> zeroinitializer, float %x, float %x, "
        "float 4.0, i1 false)\n%v = bitcast <2 x i16> %p to i32\n"
    )
    got, _ = _run(SET + body, np.array([1792.0, 1900.0, -8000.0, 8.0], np.float32))
    assert (got & 0xFF).astype(np.uint8).view(ml_dtypes.float8_e4m3fn).astype(float).tolist() == [448, 448, -448, 2]


@pytest.mark.parametrize(
    ("result", "values", "want"),
    [
        ("%h = fptrunc float %x to half", [7e4, -1e9, 65504, np.inf], [65504, -65504, 65504, np.inf]),
        ("%g = fptrunc float %x to half\n%h = fmul half %g, %g", [300, -2, 1e3], [65504, 4, 65504]),
        ("%g = fptrunc float %x to half\n%h = fdiv half 1.0, %g", [0.0, 2], [np.inf, 0.5]),
    ],
)
def test_half_results_saturate_and_keep_true_infinities(result: str, values: list[float], want: list[float]) -> None:
    body = f"{LOAD}{result}\n%b = bitcast half %h to i16\n%v = zext i16 %b to i32\n"
    for checks in ("none", "all"):
        got, _ = _run(SET + body, np.array(values, np.float32), checks=checks)
        assert got.astype(np.uint16).view(np.float16).astype(float).tolist() == want


def test_what_is_assumed_or_unknown_is_said() -> None:
    _, report = _run(SET + _convert("fp8"), np.array([np.inf], np.float32))
    assert "an infinity is converted under FP16_OVFL" in report.warnings[0]
    body = LOAD + "%g = fptrunc float %x to half\n%h = call half @llvm.exp2.f16(half %g)\n"
    body += "%b = bitcast half %h to i16\n%v = zext i16 %b to i32\n"
    with pytest.raises(SimError, match=r"an infinite result under FP16_OVFL.*\n.*not known"):
        _run(SET + body, np.array([100.0], np.float32))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (SET.replace("1473", "2049") + _convert("fp8"), "only MODE.FP16_OVFL is known"),
        (SET.replace("i32 1)", "i32 %t)") + _convert("fp8"), "with a constant"),
        (_convert("fp8") + SET, "instructions before it depend on it"),
        (SET + _convert("fp8") + SET.replace("i32 1)", "i32 0)"), "it must not change"),
        ("br label %next\nnext:\n" + SET + _convert("fp8"), "in the first block"),
    ],
)
def test_other_registers_and_orders_are_refused(body: str, reason: str) -> None:
    with pytest.raises(UnsupportedError, match=f"llvm.amdgcn.s.setreg: .*{reason}"):
        _run(body, VALUES)


@pytest.mark.llvm
def test_the_second_engine_converts_with_it() -> None:
    want, _ = _run(SET + _convert("fp8"), VALUES)
    got, report = _run(SET + _convert("fp8"), VALUES, checks="none", engine="jit")
    assert np.array_equal(got, want) and report.engine == "jit"


# ---- threads with fewer elements than a register holds


PACK = "call i32 @llvm.amdgcn.cvt.pk.fp8.f32(float {}, float {}, i32 {}, i1 {})\n"
SCALED = "call <2 x i16> @llvm.amdgcn.cvt.scalef32.pk.fp8.f32(<2 x i16> {}, float {}, float {}, float 1.0, i1 {})\n"
HALVES = "%b = {}\n%e = extractelement <2 x i16> %b, i32 {}\n%v = zext i16 %e to i32\n"


@pytest.mark.parametrize(
    "body",
    [
        "%a = " + PACK.format("%x", "%x", "undef", "false") + "%b = " + PACK.format("undef", "undef", "%a", "true")
        + "%s = trunc i32 %b to i16\n%v = zext i16 %s to i32\n",
        "%a = " + SCALED.format("undef", "%x", "%x", "false")
        + HALVES.format(SCALED.format("%a", "undef", "undef", "true"), 0),
        "%a = " + PACK.format("%x", "%x", "undef", "false") + "%c = bitcast i32 %a to <4 x i8>\n"
        "%d = shufflevector <4 x i8> %c, <4 x i8> undef, <4 x i32> <i32 0, i32 1, i32 6, i32 7>\n"
        "%e = bitcast <4 x i8> %d to i32\n%f = call <2 x float> @llvm.amdgcn.cvt.pk.f32.fp8(i32 %e, i1 false)\n"
        "%g = extractelement <2 x float> %f, i32 0\n%h = bitcast float %g to i32\n%v = and i32 %h, 255\n",
    ],
    ids=["packed", "scaled", "read back"],
)  # fmt: skip
def test_the_half_of_a_register_that_nobody_uses_may_be_undef(body: str) -> None:
    _run(LOAD + body, VALUES[:4])


@pytest.mark.parametrize(
    "body",
    [
        HALVES.format(SCALED.format("undef", "%x", "%x", "false"), 1),
        "%y = insertelement <2 x float> undef, float %x, i32 0\n%z = extractelement <2 x float> %y, i32 1\n"
        "%v = " + PACK.format("%x", "%z", "0", "false"),
        "%c = insertelement <4 x i8> undef, i8 1, i32 0\n%e = bitcast <4 x i8> %c to i32\n"
        "%f = call <2 x float> @llvm.amdgcn.cvt.pk.f32.fp8(i32 %e, i1 true)\n"
        "%g = extractelement <2 x float> %f, i32 0\n%v = bitcast float %g to i32\n",
    ],
    ids=["the other half", "an element that was never set", "bytes that were never set"],
)
def test_parts_that_are_used_may_not(body: str) -> None:
    with pytest.raises(SimError, match="stored value is poison"):
        _run(LOAD + body, VALUES[:4])
