"""Constants in LLVM's exact spelling, and integer folding."""

from __future__ import annotations

import struct

from ..errors import CodegenError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from ..ir.lltype import LLType
    from ..ir.types import FloatType, ScalarType

_DOUBLE = struct.Struct("<d")
_QUAD = struct.Struct("<Q")

# Layout of each binary float: exponent bits, mantissa bits, and LLVM's prefix of the hexadecimal form.
_HEX_FORM = {"half": (5, 10, "0xH"), "bfloat": (8, 7, "0xR"), "float": (8, 23, ""), "double": (11, 52, "")}


def wrap(value: int, bits: int) -> int:
    """The signed integer of a width in bits that is congruent to ``value``; ``i1`` is 0 or 1."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def int_text(value: int, bits: int) -> str:
    """An integer constant."""
    if bits == 1:
        return "true" if value & 1 else "false"
    return str(wrap(value, bits))


def round_float(value: float, exp_bits: int, man_bits: int) -> int:
    """The bits of an IEEE binary format nearest to ``value`` (ties to even), by exponent and mantissa width in bits."""
    raw: int = _QUAD.unpack(_DOUBLE.pack(value))[0]
    sign = raw >> 63
    exp, man = (raw >> 52) & 0x7FF, raw & ((1 << 52) - 1)
    top = (1 << exp_bits) - 1
    if exp == 0x7FF:
        return (sign << (exp_bits + man_bits)) | (top << man_bits) | ((1 << (man_bits - 1)) if man else 0)
    e = exp - 1023 + (top >> 1)
    full = man | (1 << 52 if exp else 0)
    shift = 52 - man_bits + (1 - e if e < 1 else 0)
    if shift > 54:
        shift, full = 54, 0 if full == 0 else 1
    kept, rest, half = full >> shift, full & ((1 << shift) - 1), 1 << (shift - 1) if shift else 0
    if rest > half or (rest == half and shift and kept & 1):
        kept += 1
    # The implicit one carries into the exponent by plain addition; a subnormal that rounds up becomes normal.
    bits = kept if e < 1 else ((e - 1) << man_bits) + kept
    if bits >> man_bits >= top:
        bits = top << man_bits
    return (sign << (exp_bits + man_bits)) | bits


def float_text(value: float, type_name: str) -> str:
    """A float constant; LLVM wants the value exactly, so it is always written in hexadecimal."""
    exp_bits, man_bits, prefix = _HEX_FORM[type_name]
    if type_name == "double":
        return f"0x{_QUAD.unpack(_DOUBLE.pack(value))[0]:016X}"
    bits = round_float(float(value), exp_bits, man_bits)
    if prefix:
        return f"{prefix}{bits:04X}"
    # `float` is written as the double of the same value.
    (single,) = struct.unpack("<f", struct.pack("<I", bits))
    return f"0x{_QUAD.unpack(_DOUBLE.pack(single))[0]:016X}"


def const_text(type: LLType, value: int | float) -> str:
    """The operand text of a number in a scalar type, or splat in a vector type.

    Raises:
        CodegenError: The type holds no numbers, or the number is no integer where one is needed.
    """
    kind = type.kind
    if kind == "int":
        if not isinstance(value, int):
            raise CodegenError(f"{value!r} is no constant of type {type.text}", fix="give an integer")
        return int_text(value, type.bits)
    if kind == "float":
        return float_text(value, type.text)
    if kind == "vector":
        elem = f"{type.elem.text} {const_text(type.elem, value)}"
        return "zeroinitializer" if value == 0 and not _is_minus_zero(value) else _vector([elem] * type.count)
    raise CodegenError(f"{value!r} is no constant of type {type.text}", fix="use a number or a vector of numbers")


def _is_minus_zero(value: int | float) -> bool:
    return isinstance(value, float) and str(value) == "-0.0"


def vector_text(type: LLType, values: tuple[int | float, ...]) -> str:
    """The operand text of a constant vector."""
    return _vector([f"{type.elem.text} {const_text(type.elem, v)}" for v in values])


def _vector(elems: list[str]) -> str:
    return "<" + ", ".join(elems) + ">"


# --- small floats ---------------------------------------------------------------------------------

# Name -> (exponent bits, mantissa bits, bias, bits of the largest finite magnitude, bits of NaN or -1).
# Source: OCP 8-bit and MX specifications; LLVM APFloat semantics for the FNUZ forms.
_SMALL = {
    "f8E4M3FN": (4, 3, 7, 0x7E, 0x7F),
    "f8E5M2": (5, 2, 15, 0x7B, 0x7E),
    "f8E4M3FNUZ": (4, 3, 8, 0x7F, 0x80),
    "f8E5M2FNUZ": (5, 2, 16, 0x7F, 0x80),
    "f6E2M3FN": (2, 3, 1, 0x1F, -1),
    "f6E3M2FN": (3, 2, 3, 0x1F, -1),
    "f4E2M1FN": (2, 1, 1, 0x7, -1),
}


def small_float_bits(value: float, type: FloatType) -> int:
    """The bits of an 8-, 6- or 4-bit float that holds ``value`` exactly.

    Raises:
        CodegenError: The format has no such value; a constant is never rounded in silence.
    """
    if type.text == "f8E8M0FNU":
        for exp in range(255):
            if value == 2.0 ** (exp - 127):
                return exp
    else:
        exp_bits, man_bits, bias, top, nan = _SMALL[type.text]
        if value != value and nan >= 0:
            return nan
        sign = str(value).startswith("-")
        for bits in range(top + 1):
            exp, man = bits >> man_bits, bits & ((1 << man_bits) - 1)
            scale = 2.0 ** ((exp or 1) - bias - man_bits)
            if abs(value) == (man + ((1 << man_bits) if exp else 0)) * scale:
                if bits == 0 and sign and "FNUZ" in type.text:
                    break
                return bits | (int(sign) << (exp_bits + man_bits))
    raise CodegenError(f"{value!r} is no value of {type.text}", fix="round the constant to a value the format holds")


def scalar_const(type: ScalarType, value: int | float) -> int | float:
    """The number to write for a fly scalar: the bits for a small float, the value otherwise."""
    if getattr(type, "is_small", False):
        return small_float_bits(float(value), type)  # type: ignore[arg-type]
    return float(value) if type.storage.kind == "float" else value


# --- folding --------------------------------------------------------------------------------------


def _sdiv(a: int, b: int) -> int:
    q = abs(a) // abs(b)
    return q if (a < 0) == (b < 0) else -q


# Operation -> function of (unsigned a, unsigned b, signed a, signed b).
_FOLD: dict[str, Callable[[int, int, int, int], int]] = {
    "add": lambda ua, ub, sa, sb: ua + ub,
    "sub": lambda ua, ub, sa, sb: ua - ub,
    "mul": lambda ua, ub, sa, sb: ua * ub,
    "and": lambda ua, ub, sa, sb: ua & ub,
    "or": lambda ua, ub, sa, sb: ua | ub,
    "xor": lambda ua, ub, sa, sb: ua ^ ub,
    "shl": lambda ua, ub, sa, sb: ua << ub,
    "lshr": lambda ua, ub, sa, sb: ua >> ub,
    "ashr": lambda ua, ub, sa, sb: sa >> ub,
    "udiv": lambda ua, ub, sa, sb: ua // ub,
    "urem": lambda ua, ub, sa, sb: ua % ub,
    "sdiv": lambda ua, ub, sa, sb: _sdiv(sa, sb),
    "srem": lambda ua, ub, sa, sb: sa - sb * _sdiv(sa, sb),
}


def fold_int(op: str, a: int, b: int, bits: int) -> int | None:
    """The result of an integer operation on constants, ``None`` where LLVM leaves it undefined."""
    fold = _FOLD.get(op)
    mask = (1 << bits) - 1
    ua, ub = a & mask, b & mask
    if fold is None or (op in ("shl", "lshr", "ashr") and ub >= bits) or (op[1:] in ("div", "rem") and ub == 0):
        return None
    return wrap(fold(ua, ub, wrap(a, bits), wrap(b, bits)), bits)


# Predicate -> function of (signed a, signed b, mask of the width).
ICMP: dict[str, Callable[[int, int, int], bool]] = {
    "eq": lambda a, b, m: a == b,
    "ne": lambda a, b, m: a != b,
    "slt": lambda a, b, m: a < b,
    "sle": lambda a, b, m: a <= b,
    "sgt": lambda a, b, m: a > b,
    "sge": lambda a, b, m: a >= b,
    "ult": lambda a, b, m: a & m < b & m,
    "ule": lambda a, b, m: a & m <= b & m,
    "ugt": lambda a, b, m: a & m > b & m,
    "uge": lambda a, b, m: a & m >= b & m,
}
