"""Operands of a matrix instruction on the host: rows of lanes, widened to the type that is multiplied."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Any

import numpy as np

from ..matrix_element import BF16, F16, F32, F64E, I4, I8, U4, U8, XF32, Element
from ..matrix_fragment import Fetch
from .parts import NotCovered, bits_of, bytes_of, float_literal, literal_of
from .text import Writer, suffix_of

#: Formats that are widened by conversions; smaller floats go through a table.
CONVERTED = (F16, BF16, F32, F64E, XF32, I8, U8, I4, U4)
INTEGERS = (I8, U8, I4, U4)


def can_read(element: Element) -> bool:
    """Whether elements can be widened here: the formats above, and small floats through a table."""
    return element in CONVERTED or (element.bits <= 8 and not element.is_float)


class Codes:
    """Numbers of a format of up to 8 bits, by their code."""

    __slots__ = ("bits", "values")

    def __init__(self, bits: int, widen: Callable[[Any], Any]) -> None:
        self.bits = bits
        self.values = np.array(widen(np.arange(1 << bits, dtype=np.uint8)), np.float64)

    @classmethod
    def of(cls, element: Element) -> Codes:
        """Those of an element."""

        def widen(codes: Any) -> Any:
            out = np.empty(len(codes), np.float64)
            element.widen(codes, out)
            return out

        return cls(element.bits, widen)


class Runs:
    """Rows of a matrix as runs of lanes: element ``[row][i]`` is value ``value[row]`` of lane ``lane[row] + i``."""

    __slots__ = ("lane", "length", "value")

    def __init__(self, places: Any, count: int) -> None:
        lanes, values = places // count, places % count
        self.length = places.shape[1]
        steps = lanes - lanes[:, :1] == np.arange(self.length)
        if not steps.all() or not (values == values[:, :1]).all():
            raise NotCovered("a matrix instruction whose rows are no runs of lanes")
        self.lane, self.value = [int(x) for x in lanes[:, 0]], [int(x) for x in values[:, 0]]


def row_pointer(w: Writer, bases: list[str], part: str, value: int, lane: int) -> str:
    """Pointer to a value of a lane of this wave."""
    start = w.emit(f"add i64 %first, {lane}") if lane else "%first"
    return w.emit(f"getelementptr i{bytes_of(part) * 8}, ptr {bases[value]}, i64 {start}")


def compare_copies(w: Writer, fetch: Fetch, bases: list[str], part: str) -> None:
    """Notes where copies of an operand, in equal shares of the lanes, differ."""
    share = fetch.lanes // fetch.replicas
    whole = f"i{share * bytes_of(part) * 8}"
    for base in bases:
        rows = [
            w.emit(f"load {whole}, ptr {row_pointer(w, [base], part, 0, share * i)}, align {bytes_of(part)}")
            for i in range(fetch.replicas)
        ]
        for row in rows[1:]:
            wrong = w.emit(f"icmp ne {whole} {rows[0]}, {row}")
            before = w.emit("load i1, ptr %differ")
            w.do(f"store i1 {w.emit(f'or i1 {before}, {wrong}')}, ptr %differ")


def widen_rows(
    w: Writer, wide_type: str, runs: Runs, fetch: Fetch, bases: list[str], part: str, target: str
) -> None:  # fmt: skip
    element = fetch.element
    per, size = bits_of(part) // element.bits, 4 if wide_type == "i32" else 8
    for row, (lane, value) in enumerate(zip(runs.lane, runs.value, strict=True)):
        place = row_pointer(w, bases, part, value // per, lane)
        raw = w.emit(f"load <{runs.length} x {part}>, ptr {place}, align {bytes_of(part)}")
        wide = _widen(w, element, part, raw, runs.length, value % per * element.bits)
        if fetch.flush:
            wide = without_denormals(w, runs.length, "double", wide, element.min_normal)
        w.do(f"store <{runs.length} x {wide_type}> {wide}, ptr {w.at(target, row * runs.length * size)}, align 16")


def _widen(w: Writer, element: Element, part: str, raw: str, count: int, shift: int) -> str:
    """Elements of a row as the type that is multiplied."""

    def cast(op: str, source: str, value: str, to: str) -> str:
        return w.emit(f"{op} <{count} x {source}> {value} to <{count} x {to}>")

    def op(name: str, t: str, value: str, number: int) -> str:
        return w.emit(f"{name} <{count} x {t}> {value}, splat ({t} {number})")

    if element in (I4, U4):
        low = op("lshr", part, raw, shift) if shift else raw
        word = low if part == "i32" else cast("trunc", part, low, "i32")
        return op("ashr" if element is I4 else "lshr", "i32", op("shl", "i32", word, 28), 28)
    if element in (I8, U8):
        low = op("lshr", part, raw, shift) if shift else raw
        byte = low if part == "i8" else cast("trunc", part, low, "i8")
        return cast("sext" if element is I8 else "zext", "i8", byte, "i32")
    if element is BF16:
        if part != "i16":
            raw = cast("trunc", part, op("lshr", part, raw, shift) if shift else raw, "i16")
        raw = cast("bitcast", "i32", op("shl", "i32", cast("zext", "i16", raw, "i32"), 16), "float")
        return cast("fpext", "float", raw, "double")
    if element is XF32:
        bits = op("and", "i32", cast("bitcast", "float", raw, "i32"), -0x2000)
        raw = cast("bitcast", "i32", bits, "float")
    return raw if part == "double" else cast("fpext", part, raw, "double")


def without_denormals(w: Writer, count: int, t: str, value: str, least: float) -> str:
    """Zeros for what is below the smallest normal number."""
    vector = f"<{count} x {t}>"
    size = w.call(vector, f"llvm.fabs.{suffix_of(vector)}", (vector, value))
    small = w.emit(f"fcmp olt {vector} {size}, splat ({t} {float_literal(t, least)})")
    return w.emit(f"select <{count} x i1> {small}, {vector} zeroinitializer, {vector} {value}")


def look_up_rows(w: Writer, runs: Runs, codes: Codes, bases: list[str], part: str, target: str) -> str:
    """Widens codes of up to 8 bits through a table, into rows of doubles; returns the table's definition."""
    width = bits_of(part)
    name = "@codes_" + hashlib.sha256(codes.values.tobytes()).hexdigest()[:12]
    for row, (lane, value) in enumerate(zip(runs.lane, runs.value, strict=True)):
        word, shift = divmod(value * codes.bits, width)
        places = [row_pointer(w, bases, part, word, lane)]
        if shift + codes.bits > width:
            places.append(row_pointer(w, bases, part, word + 1, lane))
        start = row * runs.length

        def one(index: str, _: str, places: list[str] = places, shift: int = shift, start: int = start) -> None:
            whole = "0"
            for i, place in enumerate(places):
                raw = w.emit(f"load {part}, ptr {w.emit(f'getelementptr {part}, ptr {place}, i64 {index}')}")
                wide = raw if width == 64 else w.emit(f"zext {part} {raw} to i64")
                whole = wide if not i else w.emit(f"or i64 {whole}, {w.emit(f'shl i64 {wide}, {width}')}")
            code = w.emit(f"and i64 {w.emit(f'lshr i64 {whole}, {shift}')}, {(1 << codes.bits) - 1}")
            number = w.emit(f"load double, ptr {w.emit(f'getelementptr double, ptr {name}, i64 {code}')}")
            at = w.emit(f"add i64 {index}, {start}")
            w.do(f"store double {number}, ptr {w.emit(f'getelementptr double, ptr {target}, i64 {at}')}")

        w.counted("code", runs.length, one)
    items = ", ".join(f"double {literal_of('double', int(bits))}" for bits in codes.values.view(np.uint64))
    return f"{name} = internal constant [{len(codes.values)} x double] [ {items} ]"


def scale_rows(w: Writer, depth: int, blocks: int, length: int, target: str, factors: str) -> None:
    """Multiplies each row of an operand by the factors of its block of K."""
    vector = f"<{length} x double>"
    for k in range(depth):
        place = w.at(target, k * length * 8)
        row = w.emit(f"load {vector}, ptr {place}, align 16")
        block = k * blocks // depth
        factor = w.emit(f"load {vector}, ptr {w.at(factors, block * length * 8)}, align 16")
        w.do(f"store {vector} {w.emit(f'fmul {vector} {row}, {factor}')}, ptr {place}, align 16")
