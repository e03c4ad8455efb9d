"""``trig.preop`` against LLVM's constant folder, and in the reduction of large arguments against exact arithmetic."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import simulate, trig
from tests.sim.kernels import kernel
from tests.sim.optimise import optimised

pytestmark = pytest.mark.sim
CALL = "call double @llvm.amdgcn.trig.preop.f64(double %x, i32 {})"


def _pi(bits: int) -> Fraction:
    """pi by the arithmetic-geometric mean, within ``2**-bits``."""
    one = 1 << (bits + 64)

    def root(a: int) -> int:
        low = 1 << ((a.bit_length() + 1) // 2)
        while (better := (low + a // low) // 2) < low:
            low = better
        return low

    a, b, t, p = one, root(one * one // 2), one // 4, 1
    while abs(a - b) > 2:
        mean = (a + b) // 2
        a, b, t, p = mean, root(a * b), t - p * (a - mean) ** 2 // one, 2 * p
    return Fraction((a + b) ** 2, 4 * t * one)


def segments(values: np.ndarray, count: int = 3) -> np.ndarray:
    """Segments 0, 1, ... of each value, from a kernel.  Shape: ``(count, values)``."""
    body = (
        "%p = getelementptr double, ptr addrspace(1) %in, i32 %t\n"
        "%x = load double, ptr addrspace(1) %p, align 8\n"
        "%i0 = mul i32 %n, %t\n"
    )
    for i in range(count):
        body += (
            f"%r{i} = {CALL.format(i)}\n%i{i + 1} = add i32 %i0, {i}\n"
            f"%q{i} = getelementptr double, ptr addrspace(1) %out, i32 %i{i + 1}\n"
            f"store double %r{i}, ptr addrspace(1) %q{i}, align 8\n"
        )
    out = np.zeros((len(values), count))
    simulate(kernel(body + "ret void", "ptr addrspace(1) %in, ptr addrspace(1) %out, i32 %n"), grid=1,
             block=len(values), args=[values, out, count])  # fmt: skip
    return out.T


def arguments() -> np.ndarray:
    rng = np.random.default_rng(3)
    any_size = np.ldexp(rng.uniform(1, 2, 240), rng.integers(20, 1023, 240))
    # the double nearest to a multiple of pi/2, the largest, and both sides of where the results are scaled
    hard = [float.fromhex("0x1.6ac5b262ca1ffp+849"), np.finfo(float).max, 2.0**944, 2.0**945, 2.0**54, 2.0**55]
    return np.array([*any_size, *hard, *(-x for x in hard)])[:256]


def test_the_reduction_of_large_arguments_is_exact_to_a_hundred_bits() -> None:
    """x * 2/pi mod 4 from segments 0 to 2, as the device library takes it, in exact arithmetic."""
    values = arguments()
    got = segments(values)
    factor = 2 / _pi(2200)
    for x, parts in zip(values, got.T, strict=True):
        scale = Fraction(1, 2**128) if abs(x) >= 2.0**945 else Fraction(1)
        turns = sum(Fraction(float(p)) for p in parts) * Fraction(float(x)) * scale
        error = (turns - Fraction(float(x)) * factor) % 4
        assert min(error, 4 - error) < Fraction(1, 2**100), x


def test_segments_equal_those_of_llvms_constant_folder() -> None:
    values = [0.0, 5e-324, 1.0, -1e300, 1e22, 2.0**54, 2.0**55, 2.0**944, 2.0**945, np.finfo(float).max, np.inf]
    cases = [(np.float64(v).view(np.uint64), s) for v in values for s in (0, 1, 2, 3, 20, 21, 23, 31, 63)]
    text = 'target triple = "amdgcn-amd-amdhsa"\ndeclare double @llvm.amdgcn.trig.preop.f64(double, i32)\n'
    for i, (bits, segment) in enumerate(cases):
        call = CALL.format(segment).replace("%x", f"0x{int(bits):016X}")
        text += f"define double @f{i}() {{\n  %r = {call}\n  ret double %r\n}}\n"
    folded = re.findall(r"ret double (\S+)", optimised(text))
    want = [np.uint64(int(f, 16)).view(np.float64) if f.startswith("0x") else float(f) for f in folded]
    value = np.array([b for b, _ in cases], np.uint64).view(np.float64)
    segment = np.array([s for _, s in cases], np.uint32)
    shift = trig.first_bit(value, segment)
    told = (shift < 1120) | (shift >= 1201)
    assert 50 < told.sum() < len(cases)
    np.testing.assert_array_equal(trig.preop(value, segment)[told], np.array(want)[told])


@pytest.mark.parametrize("x, segment", [(1.0, 22), (np.finfo(float).max, 3)])
def test_a_segment_that_manual_and_llvm_tell_apart_is_a_fault(x: float, segment: int) -> None:
    out: Any = np.zeros(1)
    body = f"%r = {CALL.format(segment)}\nstore double %r, ptr addrspace(1) %out, align 8\nret void"
    with pytest.raises(SimError, match="take segments that begin before bit 1120"):
        simulate(kernel(body, "ptr addrspace(1) %out, double %x"), grid=1, block=1, args=[out, x])
