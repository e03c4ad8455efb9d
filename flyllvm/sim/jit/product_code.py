"""The host's function of a matrix instruction.

Where each element is, and of what format, comes from the prepared instruction of `sim.matrix`.  Inputs are widened to
double (integers to i32), products are summed over K in that order from zero, and the accumulator is added last with
one rounding to its type, as the NumPy engine does.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from .. import types as ty
from ..matrix_core import Product
from ..matrix_element import BF16, F16, F32, I8, I32, U8, XF32, Element
from ..matrix_fragment import Fetch
from . import arith
from .parts import NotCovered, bits_of, bytes_of, float_literal, literal_of
from .text import WIDTH, Values, Writer, suffix_of

_INPUTS = (F16, BF16, F32, XF32, I8, U8)
_MAX_UNROLL = 16


def _reads(element: Element) -> bool:
    """Whether elements can be widened here: the formats above, and small floats through a table."""
    return element in _INPUTS or (element.bits == 8 and not element.is_float)


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


class Kind:
    """A matrix instruction as the host computes it.

    Attributes:
        name: Of the function.
        blocks, m, n, k: Sizes.
        a, b: Rows of A by ``[block][k]`` along M, and of B by ``[block][k]`` along N.
        d: Rows of the result by ``[block][m]`` along N.
        checks: The function tells whether copies of A or of B differ, which is a fault.
    """

    def __init__(self, name: str, product: Product) -> None:
        a, b, c = product.a, product.b, product.c
        if product.negate or c.negate or c.absolute or c.clamp or c.result is not c.element:
            raise NotCovered("a matrix instruction with modifiers")
        known = (F32, I32) if b.shape[-1] != WIDTH else (F32, I32, F16, BF16)
        if not (_reads(a.element) and _reads(b.element)) or c.element not in known:
            raise NotCovered(f"a matrix instruction of {a.element.name} with {c.element.name}")
        if not c._all_used:
            raise NotCovered("a matrix instruction that leaves registers out")
        self.name, self.product = name, product
        self.blocks: int = a.shape[0] if len(a.shape) == 3 else 1
        self.m: int = a.shape[-2]
        self.k: int = a.shape[-1]
        self.n: int = b.shape[-1]
        if self.n & (self.n - 1):
            raise NotCovered("a matrix instruction of this shape")
        in_a = a._flat.reshape(self.blocks, self.m, self.k).transpose(0, 2, 1)
        in_b = b._flat.reshape(self.blocks, self.k, self.n)
        self.a = Runs(in_a.reshape(-1, self.m), a.count)
        self.b = Runs(in_b.reshape(-1, self.n), b.count)
        where = np.empty(c._flat.size, np.int64)
        where[c._flat] = np.arange(c._flat.size)
        self.d = Runs(where.reshape(-1, self.n), c.count)
        self.integer = c.element is I32
        self.checks = a.replicas > 1
        self.wide = "i32" if self.integer else "double"

    @property
    def width(self) -> int:
        """Elements of a row that one vector of the host holds."""
        return min(self.n, 16 if self.integer else 8)

    @property
    def rows(self) -> int:
        """Rows of the result whose sums are in registers together."""
        return max(1, min(self.m, 16 * self.width // self.n))


def function_text(kind: Kind, types: list[list[str]]) -> list[str]:
    """The function of a kind: pointers to the lanes of all parts of A, B, C and D, and the number of the wave."""
    w = Writer()
    names = [[f"%{letter}{i}" for i in range(len(t))] for letter, t in zip("abc", types, strict=True)]
    outputs = [f"%d{i}" for i in range(len(types[2]))]
    pointers = [n for group in names for n in group] + outputs
    w.start("entry")
    rows_a, rows_b = kind.blocks * kind.k, kind.blocks * kind.k
    w.do(f"%A = alloca [{rows_a * kind.m} x {kind.wide}], align 64")
    w.do(f"%B = alloca [{rows_b * kind.n} x {kind.wide}], align 64")
    w.do(f"%P = alloca [{kind.blocks * kind.m * kind.n} x {kind.wide}], align 64")
    w.do(f"%first = mul i64 %wave, {kind.product.a.lanes}")
    if kind.checks:
        w.do("%differ = alloca i1, align 1")
        w.do("store i1 false, ptr %differ")
    tables: list[str] = []
    for runs, fetch, group, part, target in (
        (kind.a, kind.product.a, names[0], types[0][0], "%A"),
        (kind.b, kind.product.b, names[1], types[1][0], "%B"),
    ):
        if kind.checks:
            _compare_copies(w, fetch, group, part)
        if fetch.element in _INPUTS:
            _widen_rows(w, kind, runs, fetch, group, part, target)
        else:
            tables.append(_look_up_rows(w, kind, runs, fetch, group, part, target))
    _multiply(w, kind)
    _round(w, kind, names[2], outputs, types[2][0])
    result = "i1" if kind.checks else "void"
    w.do(f"ret i1 {w.emit('load i1, ptr %differ')}" if kind.checks else "ret void")
    params = ", ".join([*(f"ptr {p}" for p in pointers), "i64 %wave"])
    return [
        *w.declared,
        *dict.fromkeys(tables),
        f"define internal {result} @{kind.name}({params}) noinline nounwind #0 {{",
        *w.lines,
        "}",
    ]


def _compare_copies(w: Writer, fetch: Fetch, bases: list[str], part: str) -> None:
    """Notes where copies of an operand, in equal shares of the lanes, differ."""
    share = fetch.lanes // fetch.replicas
    whole = f"i{share * bytes_of(part) * 8}"
    for base in bases:
        rows = [
            w.emit(f"load {whole}, ptr {_row(w, [base], part, 0, share * i)}, align {bytes_of(part)}")
            for i in range(fetch.replicas)
        ]
        for row in rows[1:]:
            wrong = w.emit(f"icmp ne {whole} {rows[0]}, {row}")
            before = w.emit("load i1, ptr %differ")
            w.do(f"store i1 {w.emit(f'or i1 {before}, {wrong}')}, ptr %differ")


def _look_up_rows(
    w: Writer, kind: Kind, runs: Runs, fetch: Fetch, bases: list[str], part: str, target: str
) -> str:  # fmt: skip
    """Widens codes of 8 bits through a table; returns its definition."""
    element, per = fetch.element, bits_of(part) // 8
    values = np.empty(256, np.float64)
    element.widen(np.arange(256, dtype=np.uint8), values)
    name = "@codes_" + hashlib.sha256(values.tobytes()).hexdigest()[:12]
    for row, (lane, value) in enumerate(zip(runs.lane, runs.value, strict=True)):
        place = _row(w, bases, part, value // per, lane)
        head, after, before = w.fresh("code"), w.fresh("coded"), w.block
        index, following = "%" + w.fresh("i"), "%" + w.fresh("i")
        w.go(head)
        w.start(head)
        w.lines.append(f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{head} ]")
        raw = w.emit(f"load {part}, ptr {w.emit(f'getelementptr {part}, ptr {place}, i64 {index}')}")
        if value % per:
            raw = w.emit(f"lshr {part} {raw}, {value % per * 8}")
        byte = raw if part == "i8" else w.emit(f"trunc {part} {raw} to i8")
        code = w.emit(f"getelementptr double, ptr {name}, i64 {w.emit(f'zext i8 {byte} to i64')}")
        start = w.emit(f"add i64 {index}, {row * runs.length}")
        wide = w.emit(f"load double, ptr {code}")
        w.do(f"store double {wide}, ptr {w.emit(f'getelementptr double, ptr {target}, i64 {start}')}")
        w.lines.append(f"  {following} = add i64 {index}, 1")
        w.branch(w.emit(f"icmp ult i64 {following}, {runs.length}"), head, after)
        w.start(after)
    items = ", ".join(f"double {literal_of('double', int(bits))}" for bits in values.view(np.uint64))
    return f"{name} = internal constant [256 x double] [ {items} ]"


def _row(w: Writer, bases: list[str], part: str, value: int, lane: int) -> str:
    """Pointer to a value of a lane of this wave."""
    start = w.emit(f"add i64 %first, {lane}") if lane else "%first"
    return w.emit(f"getelementptr i{bytes_of(part) * 8}, ptr {bases[value]}, i64 {start}")


def _widen_rows(
    w: Writer, kind: Kind, runs: Runs, fetch: Fetch, bases: list[str], part: str, target: str
) -> None:  # fmt: skip
    element = fetch.element
    per, size = bits_of(part) // element.bits, 4 if kind.integer else 8
    for row, (lane, value) in enumerate(zip(runs.lane, runs.value, strict=True)):
        place = _row(w, bases, part, value // per, lane)
        raw = w.emit(f"load <{runs.length} x {part}>, ptr {place}, align {bytes_of(part)}")
        wide = _widen(w, kind, element, part, raw, runs.length, value % per * element.bits)
        if fetch.flush:
            wide = _without_denormals(w, runs.length, "double", wide, element.min_normal)
        w.do(f"store <{runs.length} x {kind.wide}> {wide}, ptr {w.at(target, row * runs.length * size)}, align 16")


def _widen(w: Writer, kind: Kind, element: Element, part: str, raw: str, count: int, shift: int) -> str:
    """Elements of a row as the type that is multiplied."""

    def cast(op: str, source: str, value: str, to: str) -> str:
        return w.emit(f"{op} <{count} x {source}> {value} to <{count} x {to}>")

    def op(name: str, t: str, value: str, number: int) -> str:
        return w.emit(f"{name} <{count} x {t}> {value}, splat ({t} {number})")

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
    return cast("fpext", part, raw, "double")


def _without_denormals(w: Writer, count: int, t: str, value: str, least: float) -> str:
    """Zeros for what is below the smallest normal number."""
    vector = f"<{count} x {t}>"
    size = w.call(vector, f"llvm.fabs.{suffix_of(vector)}", (vector, value))
    small = w.emit(f"fcmp olt {vector} {size}, splat ({t} {float_literal(t, least)})")
    return w.emit(f"select <{count} x i1> {small}, {vector} zeroinitializer, {vector} {value}")


def _multiply(w: Writer, kind: Kind) -> None:
    """Sums of products of all blocks and rows into ``%P``: loops over row groups and K."""
    size = 4 if kind.integer else 8
    groups = kind.m // kind.rows
    total = kind.blocks * groups
    before = w.block
    w.go("rows")
    w.start("rows")
    w.lines.append(f"  %g = phi i64 [ 0, %{before} ], [ %g1, %rows_end ]")
    w.do(f"%blk = udiv i64 %g, {groups}")
    w.do(f"%grp = urem i64 %g, {groups}")
    a_at = w.emit(f"mul i64 %blk, {kind.k * kind.m * size}")
    a_at = w.emit(f"add i64 {a_at}, {w.emit(f'mul i64 %grp, {kind.rows * size}')}")
    a_start = w.emit(f"getelementptr i8, ptr %A, i64 {a_at}")
    b_start = w.emit(f"getelementptr i8, ptr %B, i64 {w.emit(f'mul i64 %blk, {kind.k * kind.n * size}')}")
    unroll = next(u for u in range(min(kind.k, _MAX_UNROLL), 0, -1) if kind.k % u == 0)
    vector = f"<{kind.width} x {kind.wide}>"
    cells = [(r, h) for r in range(kind.rows) for h in range(kind.n // kind.width)]
    w.go("depth")
    w.start("depth")
    w.lines.append("  %k = phi i64 [ 0, %rows ], [ %k1, %depth ]")
    sums: dict[tuple[int, int], str] = {}
    at = len(w.lines)
    for cell in cells:
        sums[cell] = f"%s{cell[0]}_{cell[1]}"
    a_row = w.emit(f"getelementptr i8, ptr {a_start}, i64 {w.emit(f'mul i64 %k, {kind.m * size}')}")
    b_row = w.emit(f"getelementptr i8, ptr {b_start}, i64 {w.emit(f'mul i64 %k, {kind.n * size}')}")
    for step in range(unroll):
        columns = [
            w.emit(f"load {vector}, ptr {w.at(b_row, (step * kind.n + h * kind.width) * size)}, align 16")
            for h in range(kind.n // kind.width)
        ]
        for r in range(kind.rows):
            one = w.emit(f"load {kind.wide}, ptr {w.at(a_row, (step * kind.m + r) * size)}, align {size}")
            one = w.emit(f"insertelement {vector} poison, {kind.wide} {one}, i64 0")
            many = w.emit(f"shufflevector {vector} {one}, {vector} poison, <{kind.width} x i32> zeroinitializer")
            for h, column in enumerate(columns):
                sums[r, h] = _sum(w, kind, vector, many, column, sums[r, h])
    phis = [f"  %s{r}_{h} = phi {vector} [ zeroinitializer, %rows ], [ {sums[r, h]}, %depth ]" for r, h in cells]
    w.lines[at:at] = phis
    w.do(f"%k1 = add i64 %k, {unroll}")
    w.branch(w.emit(f"icmp ult i64 %k1, {kind.k}"), "depth", "rows_end")
    w.start("rows_end")
    p_start = w.emit(f"getelementptr i8, ptr %P, i64 {w.emit(f'mul i64 %g, {kind.rows * kind.n * size}')}")
    for r, h in cells:
        w.do(f"store {vector} {sums[r, h]}, ptr {w.at(p_start, (r * kind.n + h * kind.width) * size)}, align 16")
    w.do("%g1 = add i64 %g, 1")
    w.branch(w.emit(f"icmp ult i64 %g1, {total}"), "rows", "result")
    w.start("result")


def _sum(w: Writer, kind: Kind, vector: str, x: str, y: str, total: str) -> str:
    if kind.integer:
        return w.emit(f"add {vector} {total}, {w.emit(f'mul {vector} {x}, {y}')}")
    # The product is exact in double, so whether the host fuses it makes no difference.
    return w.emit(f"fadd contract {vector} {total}, {w.emit(f'fmul contract {vector} {x}, {y}')}")


def _round(w: Writer, kind: Kind, c: list[str], d: list[str], part: str) -> None:
    """Adds the accumulator and rounds."""
    size, count = (4 if kind.integer else 8), kind.n
    for row, (lane, value) in enumerate(zip(kind.d.lane, kind.d.value, strict=True)):
        product = w.emit(f"load <{count} x {kind.wide}>, ptr {w.at('%P', row * count * size)}, align 16")
        align = bytes_of(part)
        old = w.emit(f"load <{count} x {part}>, ptr {_row(w, c, part, value, lane)}, align {align}")
        out = w.emit(f"add <{count} x i32> {product}, {old}") if kind.integer else _add(w, kind, part, product, old)
        w.do(f"store <{count} x {part}> {out}, ptr {_row(w, d, part, value, lane)}, align {align}")


def _add(w: Writer, kind: Kind, part: str, product: str, old: str) -> str:
    """The accumulator's elements plus a row of products, rounded once."""
    count, store = kind.n, kind.product.c
    if part != "float":
        v, t = Values(w, True, ""), ty.HALF if store.element is F16 else ty.BFLOAT
        return arith.from_double(v, t, v.op("fadd", "double", product, arith.to_double(v, t, old)))
    start = w.emit(f"fpext <{count} x float> {old} to <{count} x double>")
    least = store.element.min_normal
    if store.flush:
        start = _without_denormals(w, count, "double", start, least)
    total = w.emit(f"fadd <{count} x double> {product}, {start}")
    out = w.emit(f"fptrunc <{count} x double> {total} to <{count} x float>")
    return _without_denormals(w, count, "float", out, least) if store.flush else out
