"""Text of attribute values, numbers and quoted strings, in MLIR's spelling.

An attribute is a Python value: ``16 : i32`` an int, ``1.5 : f64`` a float, ``true`` a bool (a bare name is a true
one), ``"text"`` a str, ``array<i32: 1, 2>`` a tuple of ints, ``[...]`` any other tuple, ``{...}`` a dict, a type
itself, ``#fly.layout<...>``, ``#fly.tile<...>``, ``#fly.swizzle<...>``, and ``#fly.target<"gfx942", 64>`` a target with
its wave size in lanes.
"""

from __future__ import annotations

import re
import struct

from ..errors import VerifyError
from .types import FloatType, LayoutType, ScalarType, Type

NAME = re.compile(r"[A-Za-z_][\w$.]*\Z", re.ASCII)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t"}
_CONTROL = re.compile(r'[\\"\x00-\x1f\x7f]')
#: struct codes (float, unsigned) of the floats whose bits are spelled for infinities and NaNs.
_BITS = {"f16": ("<e", "<H"), "f32": ("<f", "<I"), "f64": ("<d", "<Q")}


def quote(text: str) -> str:
    """The text in double quotes; control characters as ``\\XX``."""
    return '"' + _CONTROL.sub(lambda m: _ESCAPES.get(m[0]) or f"\\{ord(m[0]):02X}", text) + '"'


def unquote(text: str) -> str:
    """The text of a quoted token."""
    if "\\" not in text:
        return text[1:-1]
    plain = {"n": "\n", "t": "\t"}
    return re.sub(
        r"\\([0-9A-Fa-f]{2}|.)", lambda m: chr(int(m[1], 16)) if len(m[1]) == 2 else plain.get(m[1], m[1]), text[1:-1]
    )


def number_text(value: int | float, elem: ScalarType) -> str:
    """A constant's number: floats with six digits where these are exact, infinities and NaNs as their bits."""
    if not isinstance(elem, FloatType):
        return str(int(value))
    try:
        value = float(value)
    except OverflowError:
        return str(value)
    if value - value != 0:
        return _bits_text(value, elem)
    text = f"{value:.6e}"
    return text if float(text) == value else repr(value)


def _bits_text(value: float, elem: FloatType) -> str:
    if elem.text == "bf16":
        return f"0x{struct.unpack('<I', struct.pack('<f', value))[0] >> 16:04X}"
    if elem.text in _BITS:
        as_float, as_int = _BITS[elem.text]
        return f"0x{struct.unpack(as_int, struct.pack(as_float, value))[0]:0{elem.bits // 4}X}"
    return str(value)


def float_of_bits(bits: int, name: str) -> float | None:
    """The number whose bits are given, for f16, bf16, f32, f64; ``None`` when they do not fit the type."""
    if name == "bf16":
        name, bits = "f32", bits << 16
    if name not in _BITS:
        return None
    as_float, as_int = _BITS[name]
    if bits >> (8 * struct.calcsize(as_int)):
        return None
    value: float = struct.unpack(as_float, struct.pack(as_int, bits))[0]
    return value


def _int_bits(values: tuple[int, ...]) -> int:
    bits = 32
    while any(not -(1 << (bits - 1)) <= v < 1 << (bits - 1) for v in values):
        bits *= 2
    return bits


def attr_text(value: object) -> str:
    """Text of one attribute value.

    Raises:
        VerifyError: The value is of a kind that the grammar cannot say.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return f"{value} : i{_int_bits((value,))}"
    if isinstance(value, float):
        return f"{number_text(value, _f64())} : f64"
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, (tuple, list)):
        if value and all(type(v) is int for v in value):
            return f"array<i{_int_bits(tuple(value))}: {', '.join(map(str, value))}>"
        return "[" + ", ".join(map(attr_text, value)) + "]"
    if isinstance(value, dict):
        return dict_text(value)
    if isinstance(value, Type):
        return value.text
    return _object_text(value)


def _object_text(value: object) -> str:
    from ..target import Target

    if isinstance(value, Target):
        return f"#fly.target<{quote(str(value))}, {value.wave_size}>"
    if type(value).__name__ in ("Layout", "ComposedLayout", "Tile", "Swizzle", "CoordSwizzle"):
        return "#" + LayoutType(value).text[1:]  # type: ignore[arg-type]
    raise VerifyError(
        f"an attribute of type {type(value).__name__} has no text: {value!r}",
        fix="use numbers, text, tuples, dicts, types, layouts or a target",
    )


def _f64() -> ScalarType:
    from .types import F64

    return F64


def entry_text(name: str, value: object) -> str:
    """``name = value``, or the bare name for a true bool."""
    key = name if NAME.match(name) else quote(name)
    return key if value is True else f"{key} = {attr_text(value)}"


def dict_text(attrs: dict[str, object]) -> str:
    """``{a = 1 : i32, b}``; an attribute that is ``None`` counts as absent."""
    return "{" + ", ".join(entry_text(k, v) for k, v in attrs.items() if v is not None) + "}"
