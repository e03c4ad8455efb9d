"""LLVM types as atoms and code generation see them.

An ``LLType`` is interned: two types are equal exactly when they are the same object.  Its ``text`` is
LLVM's own spelling, so emission is string concatenation.
"""

from __future__ import annotations


class LLType:
    """One LLVM first-class type.

    Attributes:
        text: LLVM spelling, e.g. ``<4 x half>`` or ``ptr addrspace(3)``.
        kind: ``int``, ``float``, ``ptr``, ``vector``, ``struct``, ``array``, ``void`` or ``token``.
        bits: Size in bits; pointers by address space; 0 for void and token.
        elem: Element type of a vector or array, else the type itself.
        count: Elements of a vector or array, else 1.
        space: Address space of a pointer, else -1.
        fields: Field types of a struct, else ().
    """

    __slots__ = ("bits", "count", "elem", "fields", "kind", "space", "text")

    text: str
    kind: str
    bits: int
    elem: LLType
    count: int
    space: int
    fields: tuple[LLType, ...]

    def __repr__(self) -> str:
        return f"LLType({self.text!r})"

    def __str__(self) -> str:
        return self.text

    @property
    def is_float(self) -> bool:
        """True for a floating-point scalar or a vector of them."""
        return self.elem.kind == "float"

    @property
    def is_int(self) -> bool:
        """True for an integer scalar or a vector of them."""
        return self.elem.kind == "int"


_INTERNED: dict[str, LLType] = {}

# Pointer sizes in bits per AMDGPU address space (LLVM AMDGPUUsage, address spaces; data layout string).
_POINTER_BITS = {0: 64, 1: 64, 2: 32, 3: 32, 4: 64, 5: 32, 6: 32, 7: 160, 8: 128, 9: 192}


def _intern(
    text: str,
    kind: str,
    bits: int,
    elem: LLType | None = None,
    count: int = 1,
    space: int = -1,
    fields: tuple[LLType, ...] = (),
) -> LLType:
    found = _INTERNED.get(text)
    if found is not None:
        return found
    ty = LLType()
    ty.text, ty.kind, ty.bits, ty.count, ty.space, ty.fields = text, kind, bits, count, space, fields
    ty.elem = ty if elem is None else elem
    return _INTERNED.setdefault(text, ty)


def int_(bits: int) -> LLType:
    """The integer type ``i<bits>``."""
    return _intern(f"i{bits}", "int", bits)


def ptr(space: int) -> LLType:
    """A pointer into an LLVM address space."""
    return _intern(f"ptr addrspace({space})" if space else "ptr", "ptr", _POINTER_BITS[space], space=space)


_VECTORS: dict[tuple[int, LLType], LLType] = {}


def vec(count: int, elem: LLType) -> LLType:
    """A vector of ``count`` elements; count 1 gives ``<1 x T>``, see ``vec_or_scalar``."""
    found = _VECTORS.get((count, elem))
    if found is None:
        made = _intern(f"<{count} x {elem.text}>", "vector", count * elem.bits, elem, count)
        found = _VECTORS.setdefault((count, elem), made)
    return found


def vec_or_scalar(count: int, elem: LLType) -> LLType:
    """The type of ``count`` elements held in registers: the scalar itself for one element."""
    return elem if count == 1 else vec(count, elem)


def array(count: int, elem: LLType) -> LLType:
    """An array of ``count`` elements."""
    return _intern(f"[{count} x {elem.text}]", "array", count * elem.bits, elem, count)


def struct(fields: tuple[LLType, ...]) -> LLType:
    """A literal struct; its bits count the fields without padding."""
    text = "{ " + ", ".join(f.text for f in fields) + " }" if fields else "{}"
    return _intern(text, "struct", sum(f.bits for f in fields), fields=fields)


VOID = _intern("void", "void", 0)
I1, I8, I16, I32, I64, I128 = (int_(n) for n in (1, 8, 16, 32, 64, 128))
F16 = _intern("half", "float", 16)
BF16 = _intern("bfloat", "float", 16)
F32 = _intern("float", "float", 32)
F64 = _intern("double", "float", 64)
METADATA = _intern("metadata", "token", 0)

FLOATS = {t.text: t for t in (F16, BF16, F32, F64)}


def parse(text: str) -> LLType:
    """Reads LLVM's spelling of a first-class type (no named structs, no function types).

    Raises:
        ParseError: The text is not such a type.
    """
    found = _INTERNED.get(text)
    return found if found is not None else _parse(text.strip())


def _parse(text: str) -> LLType:
    from ..errors import ParseError

    if text in _INTERNED:
        return _INTERNED[text]
    if text[:1] == "i" and text[1:].isdigit():
        return int_(int(text[1:]))
    if text.startswith("ptr addrspace(") and text.endswith(")") and text[14:-1].isdigit():
        return ptr(int(text[14:-1]))
    if text == "ptr":
        return ptr(0)
    if text[:1] in "<[" and text[-1:] in ">]":
        count, sep, elem = text[1:-1].partition(" x ")
        if sep and count.strip().isdigit():
            return (vec if text[0] == "<" else array)(int(count), parse(elem.strip()))
    if text.startswith("{") and text.endswith("}"):
        return struct(tuple(parse(p.strip()) for p in _split(text[1:-1])))
    raise ParseError(f"not an LLVM type: {text!r}", fix="write e.g. i32, <4 x float>, ptr addrspace(3), { i32, i32 }")


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for i, ch in enumerate(text):
        depth += (ch in "<[{(") - (ch in ">]})")
        if ch == "," and depth == 0:
            parts.append(text[start:i])
            start = i + 1
    tail = text[start:].strip()
    return [*parts, tail] if tail else parts
