"""Reads types: scalars, vectors, and the ``!fly`` types whose parameters are layouts and atoms."""

from __future__ import annotations

import difflib
import re

from ..errors import FlyError, ParseError
from . import types as t
from .params import split_params
from .protocols import parse_payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

#: Wider integers and longer vectors are refused: LLVM's own limits are far above what a kernel can hold.
MAX_BITS = 1 << 12
MAX_COUNT = 1 << 16

_INT = re.compile(r"i([1-9][0-9]{0,5})\Z", re.ASCII)
_VECTOR = re.compile(r"vector<([0-9]{1,9})x([A-Za-z]\w*)>\Z", re.ASCII)
_NAMED = re.compile(r"!([A-Za-z_][\w$.]*)(?:<(.*)>)?\Z", re.ASCII | re.DOTALL)
_ALIGN = re.compile(r"align<([0-9]{1,9})>\Z", re.ASCII)
_SPACES = {**{name: name for name in t.SPACES}, "#fly_rocdl.buffer_desc": "buffer_desc"}


def close_names(name: str, known: Any) -> str:
    """Names like ``name`` out of ``known``, or all of them when none is close, as text."""
    names = sorted(known)
    close = difflib.get_close_matches(name, names, 3)
    return ", ".join(close or names)


def parse_type(text: str) -> t.Type:
    """Reads one type.

    Raises:
        ParseError: The text is no type.
        FlyError: A layout or an atom inside it is not legal.
    """
    text = text.strip()
    scalar = _scalar(text)
    if scalar is not None:
        return scalar
    m = _VECTOR.match(text)
    if m is not None:
        elem = _elem(m[2])
        count = int(m[1])
        if not 1 <= count <= MAX_COUNT:
            raise ParseError(f"{text} has {count} elements", fix=f"use 1 to {MAX_COUNT}")
        return t.VectorType(count, elem)
    m = _NAMED.match(text)
    if m is None:
        raise ParseError(f"{text!r} is no type", fix="write e.g. i32, vector<4xf32>, !fly.ptr<f16, global>")
    build = _TYPES.get(m[1])
    if build is None:
        raise ParseError(f"unknown type !{m[1]}", fix=f"known types: {close_names(m[1], _TYPES)}")
    return build(split_params(m[2] or "") or [""], text)


def _scalar(text: str) -> t.ScalarType | None:
    found = t.SCALARS.get(text)
    if found is not None:
        return found
    m = _INT.match(text)
    if m is None:
        return None
    if int(m[1]) > MAX_BITS:
        raise ParseError(f"{text} is wider than {MAX_BITS} bits", fix="use a narrower integer")
    return t.int_type(int(m[1]))


def _elem(text: str) -> t.ScalarType:
    found = _scalar(text)
    if found is None:
        raise ParseError(f"unknown element type {text!r}", fix=f"known types: {close_names(text, t.SCALARS)}")
    return found


def _need(params: list[str], low: int, high: int, text: str, form: str) -> None:
    if not low <= len(params) <= high:
        raise ParseError(f"{text} has {len(params)} parameters", fix=f"write {form}")


def _layout_value(text: str) -> Any:
    from ..layout import parse

    return parse(text)


def _layout_of(text: str, *kinds: str) -> Any:
    value = _layout_value(text)
    if type(value).__name__ not in kinds:
        raise ParseError(f"{text!r} is no {' or '.join(kinds)}", fix="write e.g. (4,8):(1,4)")
    return value


def _ptr_of(params: list[str], text: str) -> t.PtrType:
    """The pointer that the element, the space, the alignment and the swizzle say."""
    elem, space = _elem(params[0]), _SPACES.get(params[1])
    if space is None:
        raise ParseError(f"unknown address space {params[1]!r}", fix=f"use one of: {', '.join(_SPACES)}")
    align, swizzle = None, None
    for part in params[2:]:
        m = _ALIGN.match(part)
        if m is not None and align is None and swizzle is None:
            align = int(m[1])
            if align < 1 or align & (align - 1):
                raise ParseError(f"alignment of {align} bytes in {text}", fix="use a power of two, in bytes")
        elif swizzle is None and part.startswith("S<"):
            swizzle = _layout_of(part, "Swizzle")
        else:
            raise ParseError(f"cannot read {part!r} in {text}", fix="write element, space, align<BYTES>, S<m,b,s>")
    return t.PtrType(elem, space, align, swizzle)


def _ptr(params: list[str], text: str) -> t.Type:
    _need(params, 2, 4, text, "!fly.ptr<f16, global>, with align<BYTES> and S<m,b,s> where they matter")
    return _ptr_of(params, text)


def _memref(params: list[str], text: str) -> t.Type:
    _need(params, 3, 5, text, "!fly.memref<f16, shared, (4,8):(1,4)>, with align<BYTES> and S<m,b,s> before the layout")
    return t.MemRefType(_ptr_of(params[:-1], text), _layout_of(params[-1], "Layout", "ComposedLayout"))


def _coord_tensor(params: list[str], text: str) -> t.Type:
    _need(params, 2, 2, text, "!fly.coord_tensor<(0,0), (4,8):(1E0,1E1)>")
    return t.CoordTensorType(_tuple(params[0]), _layout_of(params[1], "Layout", "ComposedLayout"))


def _tuple(text: str) -> Any:
    value = _layout_value(text)
    if type(value).__name__ in ("Layout", "ComposedLayout", "Tile", "Swizzle", "CoordSwizzle"):
        raise ParseError(f"{text!r} is no int tuple", fix="write e.g. (2,(3,?))")
    return value


def _int_tuple(params: list[str], text: str) -> t.Type:
    _need(params, 1, 1, text, "!fly.int_tuple<(128,?)>")
    return t.IntTupleType(_tuple(params[0]))


def _layout_type(*kinds: str) -> Callable[[list[str], str], t.Type]:
    def build(params: list[str], text: str) -> t.Type:
        _need(params, 1, 1, text, "!fly.layout<(4,8):(1,4)>")
        return t.LayoutType(_layout_of(params[0], *kinds))

    return build


def _payload(text: str) -> Any:
    m = _NAMED.match(text)
    if m is None:
        raise ParseError(f"{text!r} is no atom operation", fix="write e.g. !fly.universal_copy<32>")
    return parse_payload(m[1], m[2] or "")


def _copy_atom(params: list[str], text: str) -> t.CopyAtomType:
    _need(params, 2, 2, text, "!fly.copy_atom<!fly.universal_copy<32>, 32>")
    if not params[1].isdecimal() or len(params[1]) > 9:
        raise ParseError(f"{params[1]!r} is no width in bits in {text}", fix="write the width of one value, in bits")
    return t.CopyAtomType(_payload(params[0]), int(params[1]))


def _mma_atom(params: list[str], text: str) -> t.MmaAtomType:
    return t.MmaAtomType(_payload(_inner(text, "!fly.mma_atom<OPERATION>")))


def _inner(text: str, form: str) -> str:
    m = _NAMED.match(text)
    if m is None or not m[2]:
        raise ParseError(f"{text!r} has no parameter", fix=f"write {form}")
    return m[2].strip()


def _tiled_copy(params: list[str], text: str) -> t.Type:
    _need(params, 3, 3, text, "!fly.tiled_copy<ATOM, THREAD_VALUE_LAYOUT, TILE>")
    atom = parse_type(params[0])
    if not isinstance(atom, t.CopyAtomType):
        raise ParseError(f"{params[0]!r} is no copy atom", fix="write !fly.copy_atom<OPERATION, BITS>")
    return t.TiledCopyType(atom, _layout_of(params[1], "Layout"), _layout_of(params[2], "Tile"))


def _tiled_mma(params: list[str], text: str) -> t.Type:
    _need(params, 3, 3, text, "!fly.tiled_mma<ATOM, ATOM_LAYOUT, PERMUTATION>")
    atom = parse_type(params[0])
    if not isinstance(atom, t.MmaAtomType):
        raise ParseError(f"{params[0]!r} is no mma atom", fix="write !fly.mma_atom<OPERATION>")
    return t.TiledMmaType(atom, _layout_of(params[1], "Layout"), _layout_of(params[2], "Tile"))


_TYPES: dict[str, Callable[[list[str], str], t.Type]] = {
    "fly.ptr": _ptr,
    "fly.memref": _memref,
    "fly.coord_tensor": _coord_tensor,
    "fly.int_tuple": _int_tuple,
    "fly.layout": _layout_type("Layout"),
    "fly.composed_layout": _layout_type("ComposedLayout"),
    "fly.tile": _layout_type("Tile"),
    "fly.swizzle": _layout_type("Swizzle", "CoordSwizzle"),
    "fly.copy_atom": _copy_atom,
    "fly.mma_atom": _mma_atom,
    "fly.tiled_copy": _tiled_copy,
    "fly.tiled_mma": _tiled_mma,
}


def parse_attr_object(text: str) -> object:
    """Reads ``#fly.layout<...>``, ``#fly.tile<...>``, ``#fly.target<"gfx942", 64>`` and their like.

    Raises:
        ParseError: The text is no such attribute.
    """
    name, _, rest = text[1:].partition("<")
    if name == "fly.target":
        return _target(split_params(rest[:-1]), text)
    if name in ("fly.layout", "fly.composed_layout", "fly.tile", "fly.swizzle"):
        type_ = parse_type("!" + text[1:])
        if isinstance(type_, t.LayoutType):
            return type_.value
    known = ("#fly.layout", "#fly.composed_layout", "#fly.tile", "#fly.swizzle", "#fly.target")
    raise ParseError(f"unknown attribute #{name}", fix=f"known: {close_names('#' + name, known)}")


def _target(params: list[str], text: str) -> object:
    from ..target import Target
    from .attr_text import unquote

    form = 'write #fly.target<"gfx942", 64>'
    if len(params) != 2 or params[0][:1] != '"' or not params[1].isdecimal() or len(params[1]) > 3:
        raise ParseError(f"cannot read {text}", fix=form)
    return Target.parse(unquote(params[0]), int(params[1]))


def read_type(text: str, where: str) -> t.Type:
    """``parse_type`` with a place: whatever is wrong inside is a ``ParseError`` there."""
    try:
        return parse_type(text)
    except FlyError as e:
        raise ParseError(e.what, where, e.fix) from None
