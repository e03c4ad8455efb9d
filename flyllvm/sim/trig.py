"""``amdgcn.trig.preop``: segments of 2/pi for the reduction of large arguments.

The 53 bits of 2/pi behind its binary point that begin at bit ``shift``, at their place: ``segment * 2**(-53 - shift)``,
where ``shift = 53 * (S1 % 32) + max(exponent(S0) - 1077, 0)``.  From exponent 1968 on the result is scaled by 2**128,
so that it does not become denormal.  What is below the least denormal is cut off.

How many bits of 2/pi there are is told in two ways: the manuals have 1201, LLVM's constant folder has 1184 and gives 0
from the 32-bit word of bit 1120 on.  Segments in which they differ are a fault; sine and cosine need none of them.

Source: CDNA5 ISA manual, V_TRIG_PREOP_F64; LLVM, AMDGPUInstCombineIntrinsic.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from .ir import Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

#: Segments that begin before this bit are the same for manual and LLVM; from ``_END`` on both give 0.
_AGREED, _END = 1120, 1201


def _arctan_of_inverse(n: int, one: int) -> int:
    """``one * arctan(1/n)``, rounded down by a few units."""
    power = total = one // n
    k, sign = 1, 1
    while power:
        power //= n * n
        k, sign = k + 2, -sign
        total += sign * (power // k)
    return total


def two_over_pi(bits: int) -> int:
    """The first ``bits`` bits of 2/pi behind the binary point.

    Source: J. Machin, pi = 16 arctan(1/5) - 4 arctan(1/239).
    """
    one = 1 << (bits + 64)
    pi = 16 * _arctan_of_inverse(5, one) - 4 * _arctan_of_inverse(239, one)
    return 2 * one * (1 << bits) // pi


@cache
def _segments() -> Array:
    """The segment that begins at each bit.  Shape: ``(_END + 1,)``."""
    digits = two_over_pi(_AGREED + 53)
    found = [digits >> (_AGREED - shift) & ((1 << 53) - 1) for shift in range(_AGREED)]
    return np.array(found + [0] * (_END + 1 - _AGREED), np.uint64)


def first_bit(value: Array, segment: Array) -> Array:
    """Where a segment begins, at most ``_END``."""
    exponent = (np.ascontiguousarray(value).view(np.uint64) >> np.uint64(52)).astype(np.int64) & 0x7FF
    shift = 53 * (segment.astype(np.int64) & 31) + np.maximum(exponent - 1077, 0)
    bit: Array = np.minimum(shift, _END)
    return bit


def preop(value: Array, segment: Array) -> Array:
    """The segment as a number."""
    shift = first_bit(value, segment)
    exponent = (np.ascontiguousarray(value).view(np.uint64) >> np.uint64(52)).astype(np.int64) & 0x7FF
    scale = np.where(exponent >= 1968, 128, 0) - 53 - shift
    bits = _segments()[shift]
    lost = np.clip(-1074 - scale, 0, 63).astype(np.uint64)  # below the least denormal
    kept: Array = np.ldexp((bits >> lost << lost).astype(np.float64), scale)
    return kept


def build(c: Compiler, inst: Inst) -> list[Op]:
    """``trig.preop``: the argument, and the number of the segment."""
    d, x, s = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        shift = first_bit(r[x], r[s])
        unknown = (shift >= _AGREED) & (shift < _END) & m.mask
        if unknown.any():
            m.fault(inst, f"the segment begins at bit {int(shift.max())} of 2/pi, where manual and LLVM differ",
                    unknown, f"take segments that begin before bit {_AGREED}; 0 to 2 do for every double")  # fmt: skip
        r[d] = preop(r[x], r[s])

    return [run]


TABLE = {"amdgcn.trig.preop": build}
