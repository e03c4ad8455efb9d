"""Dot products of the vector unit: two, four or eight packed values per lane, added to a 32-bit or 16-bit number.

Integer forms are exact; they wrap, or saturate with clamp.  Float forms are taken in float64 and rounded once to the
result (hardware may round after each step; that is not published for all chips), and clamp limits them to 0..1.

Source: CDNA3 and RDNA3 ISA manuals, V_DOT2 / V_DOT4 / V_DOT8.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from ..errors import SimError
from ..target import Target
from . import matrix_core as core, numerics
from .matrix_element import F64, AnyArray, Element, element_for

_CDNA: tuple[str, ...] = ("gfx90a", "gfx942", "gfx950")
_GFX11 = ("gfx1100",)
_GFX12 = ("gfx1200", "gfx1201")
_ALL: tuple[str, ...] = (*_CDNA, *_GFX11, *_GFX12, "gfx1250")


def unpack(element: Element, count: int, raw: AnyArray, name: str) -> F64:
    """The packed values of every lane.  Shape: ``(waves, lanes, count)``."""
    waves, lanes = raw.shape[:2]
    if raw.nbytes * 8 != waves * lanes * count * element.bits:
        raise SimError(
            f"{name}: operand is {raw.dtype} of shape {raw.shape}", fix=f"{count} {element.name} values per lane"
        )
    flat = np.ascontiguousarray(raw).reshape(waves, -1).view(element.dtype)
    if element.bits == 4:
        flat = np.stack([flat & 15, flat >> 4], axis=-1).reshape(waves, -1)
    out = np.empty(flat.shape)
    element.widen(flat, out)
    return out.reshape(waves, lanes, count)


class IntegerDot:
    """``c + sum(a * b)`` over packed integers; a call takes the registers of a, b and c."""

    __slots__ = ("a", "b", "clamp", "count", "name", "unsigned")

    def __init__(self, name: str, a: Element, b: Element, count: int, clamp: bool, unsigned: bool) -> None:
        self.name = name
        self.a = a
        self.b = b
        self.count = count
        self.clamp = clamp
        self.unsigned = unsigned

    def __call__(self, a: AnyArray, b: AnyArray, c: AnyArray) -> AnyArray:
        products = unpack(self.a, self.count, a, self.name) * unpack(self.b, self.count, b, self.name)
        start = np.ascontiguousarray(c).view(np.uint32 if self.unsigned else np.int32).astype(np.int64)
        total = products.sum(axis=2).astype(np.int64) + start
        if self.clamp:
            low, high = (0, 2**32 - 1) if self.unsigned else (-(2**31), 2**31 - 1)
            total = np.clip(total, low, high)
        wrapped: AnyArray = (total & 0xFFFFFFFF).astype(np.uint32)
        return wrapped.view(c.dtype)


class FloatDot:
    """``c + sum(a * b)`` over packed floats; a call takes the registers of a, b and c."""

    __slots__ = ("a", "b", "clamp", "count", "name", "result")

    def __init__(self, name: str, a: Element, b: Element, count: int, result: Element, clamp: bool) -> None:
        self.name = name
        self.a = a
        self.b = b
        self.count = count
        self.result = result
        self.clamp = clamp

    def __call__(self, a: AnyArray, b: AnyArray, c: AnyArray) -> AnyArray:
        with np.errstate(all="ignore"):
            products = unpack(self.a, self.count, a, self.name) * unpack(self.b, self.count, b, self.name)
            total = products.sum(axis=2) + unpack(self.result, 1, c, self.name)[:, :, 0]
            if self.clamp:
                total = np.clip(np.nan_to_num(total, nan=0.0), 0.0, 1.0)
            if self.result.name == "bf16":
                return numerics.encode_bf16_from_f64(total).view(c.dtype)
            rounded: AnyArray = total.astype(self.result.dtype)
            return rounded


def _build_integer(name: str, element: str, immediates: tuple[int, ...], wave: int, target: Target) -> core.Prepared:
    (clamp,) = immediates
    core.check_flag(name, "clamp", clamp)
    count = 32 // int(element[1:])
    sign = element_for(element, None) if element not in ("i16", "u16") else _HALVES[element]
    return IntegerDot(name, sign, sign, count, bool(clamp), element.startswith("u"))


def _build_mixed(name: str, bits: int, immediates: tuple[int, ...], wave: int, target: Target) -> core.Prepared:
    sign_a, sign_b, clamp = immediates
    for what, value in (("signed A", sign_a), ("signed B", sign_b), ("clamp", clamp)):
        core.check_flag(name, what, value)
    a, b = (element_for(("i" if sign else "u") + str(bits), None) for sign in (sign_a, sign_b))
    return IntegerDot(name, a, b, 32 // bits, bool(clamp), False)


def _build_float(
    name: str, a: str, b: str, result: str, immediates: tuple[int, ...], wave: int, target: Target
) -> core.Prepared:
    (clamp,) = immediates or (0,)
    core.check_flag(name, "clamp", clamp)
    flavour = target.chip.fp8
    left, right = element_for(a, flavour), element_for(b, flavour)
    return FloatDot(name, left, right, 4 if left.bits == 8 else 2, element_for(result, flavour), bool(clamp))


def _cast(picked: AnyArray, out: F64) -> None:
    out[...] = picked


_HALVES = {"i16": Element("i16", 16, np.int16, _cast), "u16": Element("u16", 16, np.uint16, _cast)}


def _intrinsics() -> dict[str, core.Intrinsic]:
    found: list[core.Intrinsic] = []
    waves = (32, 64)
    for bits, count, targets in ((16, 2, _CDNA), (8, 4, _ALL), (4, 8, _ALL)):
        for sign, letter in (("s", "i"), ("u", "u")):
            name = f"{sign}dot{count}"
            build = partial(_build_integer, name, f"{letter}{bits}")
            found.append(core.Intrinsic(name, targets, waves, {3: "clamp"}, 0, build))
        if bits < 16:
            name = f"sudot{count}"
            constants = {0: "signed A", 2: "signed B", 5: "clamp"}
            later = (*_GFX11, *_GFX12, "gfx1250")
            found.append(core.Intrinsic(name, later, waves, constants, 0, partial(_build_mixed, name, bits)))
    before_1250 = (*_CDNA, *_GFX11, *_GFX12)
    floats = [
        ("fdot2", "f16", "f16", "f32", before_1250, {3: "clamp"}),
        ("fdot2.f32.bf16", "bf16", "bf16", "f32", ("gfx950", *_GFX11, *_GFX12), {3: "clamp"}),
        ("fdot2.f16.f16", "f16", "f16", "f16", (*_GFX11, *_GFX12), {}),
        ("fdot2.bf16.bf16", "bf16", "bf16", "bf16", (*_GFX11, *_GFX12), {}),
        *((f"dot4.f32.{a}.{b}", a, b, "f32", _GFX12, {}) for a in ("fp8", "bf8") for b in ("fp8", "bf8")),
    ]
    for name, a, b, result, targets, constants in floats:
        found.append(core.Intrinsic(name, targets, waves, constants, 0, partial(_build_float, name, a, b, result)))
    return {i.name: i for i in found}


INTRINSICS: dict[str, core.Intrinsic] = _intrinsics()
