"""What an integer operation tells of its result: a divisor and bounds.

The builder keeps these facts on values (``Value.divisibility``, ``Value.range``) and code generation relies on them.
The text shows only those that do not follow from the operation: the parser derives the others again.  Every rule holds
for wrapping arithmetic too; without ``nsw`` only powers of two divide a result that may have wrapped.
"""

from __future__ import annotations

from math import gcd

from .types import I1, IntType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .core import Op

    Range = tuple[int, int] | None
    #: (divisor, inclusive bounds of the signed value or ``None``)
    Facts = tuple[int, Range]

UNKNOWN: Facts = (1, None)
#: Attributes of an operation in the text for what does not follow.
DIVISIBILITY, RANGE = "fly.divisibility", "fly.range"
#: Divisor of a zero, which everything divides.
ZERO_DIVISOR = 1 << 30


def _div(f: Facts) -> int:
    return 0 if f[1] == (0, 0) else f[0]


def _low_bit(n: int) -> int:
    return n & -n


def _number(f: Facts) -> int | None:
    return f[1][0] if f[1] is not None and f[1][0] == f[1][1] else None


def _is_negative(f: Facts) -> bool:
    """Whether the value may be negative."""
    return f[1] is None or f[1][0] < 0


def _wrapped(div: int, rng: Range, bits: int, no_wrap: bool) -> Facts:
    """Facts of a result that wraps to ``bits`` bits unless it is known not to."""
    if rng is not None and not (-(1 << (bits - 1)) <= rng[0] and rng[1] < 1 << (bits - 1)):
        rng = None
    div = div if rng is not None or no_wrap else _low_bit(div)
    return div or ZERO_DIVISOR, rng


def _product(a: Range, b: Range) -> Range:
    if a is None or b is None:
        return None
    ends = [x * y for x in a for y in b]
    return min(ends), max(ends)


def _add(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    rng = (a[1][0] + b[1][0], a[1][1] + b[1][1]) if a[1] and b[1] else None
    return _wrapped(gcd(_div(a), _div(b)), rng, bits, nsw)


def _sub(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    rng = (a[1][0] - b[1][1], a[1][1] - b[1][0]) if a[1] and b[1] else None
    return _wrapped(gcd(_div(a), _div(b)), rng, bits, nsw)


def _mul(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    return _wrapped(_div(a) * _div(b), _product(a[1], b[1]), bits, nsw)


def _power(b: Facts, bits: int) -> Facts | None:
    """``1 << b`` for a known shift that stays inside the type."""
    n = _number(b)
    return (1 << n, (1 << n, 1 << n)) if n is not None and 0 <= n < bits else None


def _shl(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    factor = _power(b, bits)
    return _mul(a, factor, bits, nsw) if factor else (max(1, _low_bit(a[0])), None)


def _divide(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    n = _number(b)
    if _is_negative(a) or a[1] is None:
        return UNKNOWN
    if n is None or n <= 0:
        return (1, (0, a[1][1])) if not _is_negative(b) else UNKNOWN
    return (a[0] // n if a[0] % n == 0 else 1), (a[1][0] // n, a[1][1] // n)


def _divide_signed(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    n = _number(b)
    if _is_negative(a) and n is not None and n > 0 and a[0] % n == 0:
        return a[0] // n, None
    return _divide(a, b, bits, nsw)


def _shr(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    factor = _power(b, bits)
    if factor:
        return _divide(a, factor, bits, nsw)
    return (1, (0, a[1][1])) if a[1] is not None and not _is_negative(a) else UNKNOWN


def _remainder(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    div = gcd(_div(a), _div(b)) or ZERO_DIVISOR
    if a[1] is None or b[1] is None or _is_negative(a) or b[1][0] < 0:
        # Of a signed or an unsigned value alike only a common power of two is sure.
        return max(1, _low_bit(div)), None
    return div, (0, max(0, min(a[1][1], b[1][1] - 1)))


def _and(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    tops = [f[1][1] for f in (a, b) if f[1] is not None and f[1][0] >= 0]
    div = max(_low_bit(_div(a)) or ZERO_DIVISOR, _low_bit(_div(b)) or ZERO_DIVISOR)
    return div, (0, min(tops)) if tops else None


def _or(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
    rng = None
    if a[1] is not None and b[1] is not None and not _is_negative(a) and not _is_negative(b):
        rng = (0, (1 << max(a[1][1].bit_length(), b[1][1].bit_length())) - 1)
    return _low_bit(gcd(_div(a), _div(b))) or ZERO_DIVISOR, rng


def _extreme(pick: Callable[[int, int], int]) -> Callable[[Facts, Facts, int, bool], Facts]:
    def rule(a: Facts, b: Facts, bits: int, nsw: bool) -> Facts:
        rng = (pick(a[1][0], b[1][0]), pick(a[1][1], b[1][1])) if a[1] and b[1] else None
        return gcd(_div(a), _div(b)) or ZERO_DIVISOR, rng

    return rule


_BINARY: dict[str, Callable[[Facts, Facts, int, bool], Facts]] = {
    "arith.addi": _add, "arith.subi": _sub, "arith.muli": _mul, "arith.shli": _shl, "arith.divui": _divide,
    "arith.divsi": _divide_signed, "arith.shrui": _shr, "arith.shrsi": _shr, "arith.remui": _remainder,
    "arith.remsi": _remainder, "arith.andi": _and, "arith.ori": _or, "arith.xori": _or, "arith.minsi": _extreme(min),
    "arith.maxsi": _extreme(max),
}  # fmt: skip
_MAX_INT = (1 << 31) - 1


def derive(op: Op, known: Sequence[Facts], attrs: Mapping[str, Any]) -> Facts:
    """What follows for the only result of an operation.

    Args:
        op: The operation; a result that is no integer has no facts.
        known: Facts of its operands.
        attrs: Attributes of the kernel (the known block size bounds thread ids).
    """
    type_ = op.results[0].type if len(op.results) == 1 else None
    if not isinstance(type_, IntType):
        return UNKNOWN
    name, bits = op.name, type_.bits
    rule = _BINARY.get(name)
    if rule is not None and len(known) == 2:
        flags = op.attrs.get("overflow")
        return rule(known[0], known[1], bits, isinstance(flags, tuple) and "nsw" in flags)
    if name == "arith.constant":
        return _constant(op.attrs.get("value"), bits)
    if name.startswith("gpu."):
        return _id(name, op.attrs.get("dimension"), attrs)
    if name == "arith.select" and len(known) == 3:
        a, b = known[1:]
        rng = (min(a[1][0], b[1][0]), max(a[1][1], b[1][1])) if a[1] and b[1] else None
        return gcd(_div(a), _div(b)) or ZERO_DIVISOR, rng
    return _unary(op, known[0], bits) if known else UNKNOWN


def _constant(value: object, bits: int) -> Facts:
    if type(value) is not int:
        return UNKNOWN
    if bits > 1 and value >= 1 << (bits - 1):
        value -= 1 << bits  # a pattern of bits; facts are about the signed value
    return abs(value) or ZERO_DIVISOR, (value, value)


def _unary(op: Op, a: Facts, bits: int) -> Facts:
    if op.name in ("arith.extsi", "arith.extui") and op.operands[0].type == I1:
        return (1, (0, 1)) if op.name == "arith.extui" else UNKNOWN
    if op.name == "arith.extsi":
        return a
    if op.name == "arith.extui":
        return (max(1, _low_bit(a[0])), None) if _is_negative(a) else a
    if op.name == "arith.trunci":
        return _wrapped(a[0], a[1], bits, False)
    if op.name == "fly.assume":
        extra = op.attrs.get("divisibility")
        extra = extra if type(extra) is int and extra > 0 else 1
        return a[0] * extra // gcd(a[0], extra), a[1]
    if op.name == "llvm.call_intrinsic" and str(op.attrs.get("intrin")).startswith("llvm.amdgcn.readfirstlane."):
        return a
    return UNKNOWN


def _id(name: str, dimension: object, attrs: Mapping[str, Any]) -> Facts:
    if name == "gpu.lane_id":
        return 1, (0, 63)
    if name == "gpu.thread_id":
        size = attrs.get("known_block_size")
        good = isinstance(size, tuple) and len(size) == 3 and dimension in ("x", "y", "z")
        n = size["xyz".index(str(dimension))] if good and isinstance(size, tuple) else 1024
        return 1, (0, max(0, n - 1) if type(n) is int else 1023)
    return 1, (0, {"gpu.block_dim": 1024, "gpu.block_id": _MAX_INT, "gpu.grid_dim": _MAX_INT}.get(name, _MAX_INT))


def loop_index(lower: Facts, upper: Facts, step: Facts, bits: int) -> Facts:
    """What follows for the index of ``scf.for``."""
    div = gcd(_div(lower), _div(step)) or ZERO_DIVISOR
    if lower[1] is None:
        return div, None
    end = upper[1][1] if upper[1] is not None else (1 << (bits - 1)) - 1
    return div, (lower[1][0], max(lower[1][0], end - 1))


def missing(have: Facts, want: Facts) -> dict[str, object]:
    """The facts that do not follow, as the attributes that say them in the text."""
    out: dict[str, object] = {}
    if have[0] % want[0]:
        out[DIVISIBILITY] = want[0]
    if want[1] is not None and (have[1] is None or have[1][0] < want[1][0] or have[1][1] > want[1][1]):
        out[RANGE] = want[1]
    return out


def merged(have: Facts, attrs: Mapping[str, Any]) -> Facts:
    """The facts that follow, replaced by those that the text says."""
    return attrs.get(DIVISIBILITY, have[0]), attrs.get(RANGE, have[1])
