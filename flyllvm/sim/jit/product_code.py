"""The host's function of a matrix instruction.

Where each element is, and of what format, comes from the prepared instruction of `sim.matrix`.  Inputs are widened to
double (integers to i32), products are summed over K in that order from zero, and the accumulator is added last with
one rounding to its type, as the NumPy engine does.
"""

from __future__ import annotations

import numpy as np

from .. import types as ty
from ..matrix_core import Product
from ..matrix_element import BF16, F16, F32, F64E, I32
from ..matrix_scaled import ScaledProduct
from ..matrix_sparse import SparseIndex, SparseProduct
from . import arith
from .operands import (
    CONVERTED,
    INTEGERS,
    Codes,
    Runs,
    can_read,
    compare_copies,
    look_up_rows,
    row_pointer,
    scale_rows,
    widen_rows,
    without_denormals,
)  # fmt: skip
from .parts import NotCovered, bytes_of
from .text import WIDTH, Values, Writer, suffix_of

_MAX_UNROLL = 16


class Kind:
    """A matrix instruction as the host computes it.

    Attributes:
        name: Of the function.
        blocks, m, n, k: Sizes.
        a, b: Rows of A by ``[block][k]`` along M, and of B by ``[block][k]`` along N.
        d: Rows of the result by ``[block][m]`` along N.
        held_k: Values of K that registers hold of each row of A: half of them where A is ``sparse``.
        unused: Numbers of the accumulator's registers that hold no element.
        checks: The function tells whether copies of A or of B differ, or an index is not in order: a fault.
        scales: Rows of the scales of A and of B by block of K, with their codes; none where there are no scales.
        scale_blocks: Blocks of K that have a scale.
    """

    def __init__(self, name: str, product: Product, scaled: bool = False) -> None:
        a, b, c = product.a, product.b, product.c
        known = (F32, I32, F64E) if b.shape[-1] != WIDTH else (F32, I32, F64E, F16, BF16)
        if not (can_read(a.element) and can_read(b.element)) or c.element not in known or c.result not in known:
            raise NotCovered(f"a matrix instruction of {a.element.name} with {c.element.name}")
        if (c.element is I32) != (a.element in INTEGERS and b.element in INTEGERS):
            raise NotCovered(f"a matrix instruction of {a.element.name} with {c.element.name}")
        self.name, self.product = name, product
        self.sparse = product.index if isinstance(product, SparseProduct) else None
        self.blocks: int = a.shape[0] if len(a.shape) == 3 else 1
        self.m: int = a.shape[-2]
        self.k: int = b.shape[-2]
        self.held_k: int = a.shape[-1]
        self.n: int = b.shape[-1]
        if self.n & (self.n - 1):
            raise NotCovered("a matrix instruction of this shape")
        in_a = a._flat.reshape(self.blocks, self.m, self.held_k).transpose(0, 2, 1)
        in_b = b._flat.reshape(self.blocks, self.k, self.n)
        self.a = Runs(in_a.reshape(-1, self.m), a.count)
        self.b = Runs(in_b.reshape(-1, self.n), b.count)
        where = np.empty(c._flat.size, np.int64)
        where[c._flat] = c._slots
        self.d = Runs(where.reshape(-1, self.n), c.count)
        self.unused = sorted(set(range(c.count)) - set(self.d.value))
        self.integer = c.element is I32
        self.checks = a.replicas > 1 or self.sparse is not None
        self.wide = "i32" if self.integer else "double"
        self.scales: list[tuple[Runs, Codes]] = []
        self.scale_blocks = 0
        if scaled and isinstance(product, ScaledProduct):
            self.scale_blocks = product.scale_a.index.shape[1]
            self.scales = [
                (Runs(scale.index.T, scale.lane_bytes), Codes(8, scale.decode))
                for scale in (product.scale_a, product.scale_b)
            ]

    @property
    def width(self) -> int:
        """Elements of a row that one vector of the host holds."""
        return min(self.n, 16 if self.integer else 8)

    def result_type(self, part: str) -> str:
        """Host type of the result's parts, for an accumulator's of type ``part``."""
        store = self.product.c
        if store.result is store.element:
            return part
        return {"bf16": "i16", "f16": "half", "f32": "float"}[store.result.name]

    @property
    def rows(self) -> int:
        """Rows of the result whose sums are in registers together."""
        return max(1, min(self.m, 16 * self.width // self.n))


def function_text(kind: Kind, types: list[list[str]]) -> list[str]:
    """The function of a kind: pointers to the lanes of all parts of A, B, C and D, and the number of the wave."""
    w = Writer()
    names = [[f"%{letter}{i}" for i in range(len(t))] for letter, t in zip("abcxy"[: len(types)], types, strict=True)]
    outputs = [f"%d{i}" for i in range(len(types[2]))]
    pointers = [n for group in names for n in group] + outputs
    w.start("entry")
    rows_a, rows_b = kind.blocks * kind.k, kind.blocks * kind.k
    w.do(f"%A = alloca [{rows_a * kind.m} x {kind.wide}], align 64")
    if kind.sparse is not None:
        w.do(f"%S = alloca [{kind.held_k * kind.m} x {kind.wide}], align 64")
    w.do(f"%B = alloca [{rows_b * kind.n} x {kind.wide}], align 64")
    w.do(f"%P = alloca [{kind.blocks * kind.m * kind.n} x {kind.wide}], align 64")
    w.do(f"%first = mul i64 %wave, {kind.product.a.lanes}")
    if kind.checks:
        w.do("%differ = alloca i1, align 1")
        w.do("store i1 false, ptr %differ")
    tables: list[str] = []
    for runs, fetch, group, part, target in (
        (kind.a, kind.product.a, names[0], types[0][0], "%A" if kind.sparse is None else "%S"),
        (kind.b, kind.product.b, names[1], types[1][0], "%B"),
    ):
        if fetch.replicas > 1:
            compare_copies(w, fetch, group, part)
        if fetch.element in CONVERTED:
            widen_rows(w, kind.wide, runs, fetch, group, part, target)
        else:
            tables.append(look_up_rows(w, runs, Codes.of(fetch.element), group, part, target))
    if kind.sparse is not None:
        _spread(w, kind, kind.sparse, names[3], types[3][0])
    for i, (runs, codes) in enumerate(kind.scales):
        factors = w.emit(f"alloca [{kind.scale_blocks * runs.length} x double], align 64")
        tables.append(look_up_rows(w, runs, codes, names[3 + i], types[3 + i][0], factors))
        scale_rows(w, kind.k, kind.scale_blocks, runs.length, "%A" if i == 0 else "%B", factors)
    _multiply(w, kind)
    _round(w, kind, names[2], outputs, types[2][0], kind.result_type(types[2][0]))
    returned = "i1" if kind.checks else "void"
    w.do(f"ret i1 {w.emit('load i1, ptr %differ')}" if kind.checks else "ret void")
    params = ", ".join([*(f"ptr {p}" for p in pointers), "i64 %wave"])
    return [
        *w.declared,
        *dict.fromkeys(tables),
        f"define internal {returned} @{kind.name}({params}) noinline nounwind #0 {{",
        *w.lines,
        "}",
    ]


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
    if kind.product.a.element is F64E:
        return w.emit(f"fadd {vector} {total}, {w.emit(f'fmul {vector} {x}, {y}')}")
    # The product is exact in double, so whether the host fuses it makes no difference.
    return w.emit(f"fadd contract {vector} {total}, {w.emit(f'fmul contract {vector} {x}, {y}')}")


def _round(w: Writer, kind: Kind, c: list[str], d: list[str], part: str, result: str) -> None:
    """Adds the accumulator and rounds."""
    size, count = (4 if kind.integer else 8), kind.n
    for row, (lane, value) in enumerate(zip(kind.d.lane, kind.d.value, strict=True)):
        product = w.emit(f"load <{count} x {kind.wide}>, ptr {w.at('%P', row * count * size)}, align 16")
        align = bytes_of(part)
        old = w.emit(f"load <{count} x {part}>, ptr {row_pointer(w, c, part, value, lane)}, align {align}")
        out = _add_integers(w, kind, product, old) if kind.integer else _add(w, kind, part, product, old)
        align = bytes_of(result)
        w.do(f"store <{count} x {result}> {out}, ptr {row_pointer(w, d, result, value, lane)}, align {align}")
    whole = f"<{kind.product.a.lanes} x {part}>"
    for value in kind.unused:
        kept = f"<{kind.product.a.lanes} x i{8 * bytes_of(part)}> splat (i{8 * bytes_of(part)} -1)"
        if kind.product.c.keep_unused:
            place = row_pointer(w, c, part, value, 0)
            kept = f"{whole} {w.emit(f'load {whole}, ptr {place}, align {bytes_of(part)}')}"
        w.do(f"store {kept}, ptr {row_pointer(w, d, part, value, 0)}, align {bytes_of(part)}")


def _add_integers(w: Writer, kind: Kind, product: str, old: str) -> str:
    count = kind.n
    if not kind.product.c.clamp:
        return w.emit(f"add <{count} x i32> {product}, {old}")
    return w.call(f"<{count} x i32>", f"llvm.sadd.sat.v{count}i32", *((f"<{count} x i32>", x) for x in (product, old)))


def _add(w: Writer, kind: Kind, part: str, product: str, old: str) -> str:
    """The accumulator's elements plus a row of products, rounded once."""
    count, store = kind.n, kind.product.c
    v, vector = Values(w, True, ""), f"<{count} x double>"
    if kind.product.negate:
        product = w.emit(f"fneg {vector} {product}")
    least = store.element.min_normal
    if part == "float":
        start = w.emit(f"fpext <{count} x float> {old} to {vector}")
    else:
        start = old if part == "double" else arith.to_double(v, _FLOATS[store.element.name], old)
    if store.flush:
        start = without_denormals(w, count, "double", start, least)
    if store.absolute:
        start = w.call(vector, f"llvm.fabs.{suffix_of(vector)}", (vector, start))
    total = w.emit(f"{'fsub' if store.negate else 'fadd'} {vector} {product}, {start}")
    if store.result is F64E:
        return total
    if store.result is not F32:
        return arith.from_double(v, _FLOATS[store.result.name], total)
    out = w.emit(f"fptrunc {vector} {total} to <{count} x float>")
    return without_denormals(w, count, "float", out, least) if store.flush else out


_FLOATS = {"f16": ty.HALF, "bf16": ty.BFLOAT}


def _spread(w: Writer, kind: Kind, index: SparseIndex, bases: list[str], part: str) -> None:
    """The packed rows of A (``%S``) at the places in K that the index names, among zeros."""
    size, m = (4 if kind.integer else 8), kind.m
    w.declared["declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"] = None
    w.do(f"call void @llvm.memset.p0.i64(ptr %A, i8 0, i64 {kind.k * m * size}, i1 false)")
    for pair in range(kind.held_k // 2):

        def one(i: str, _: str, pair: int = pair) -> None:
            lane, bits = index.lane_of(2 * pair), index.bits_of(2 * pair)
            place = row_pointer(w, bases, part, 0, lane)
            word = w.emit(f"load {part}, ptr {w.emit(f'getelementptr {part}, ptr {place}, i64 {i}')}")
            word = word if part == "i64" else w.emit(f"zext {part} {word} to i64")
            found = [w.emit(f"and i64 {w.emit(f'lshr i64 {word}, {bit}')}, 3") for bit in bits]
            wrong = w.emit(f"icmp uge i64 {found[0]}, {found[1]}")
            old = w.emit("load i1, ptr %differ")
            w.do(f"store i1 {w.emit(f'or i1 {old}, {wrong}')}, ptr %differ")
            for which, at in enumerate(found):
                source = w.emit(f"add i64 {i}, {(2 * pair + which) * m}")
                value = w.emit(f"load {kind.wide}, ptr {w.emit(f'getelementptr {kind.wide}, ptr %S, i64 {source}')}")
                row = w.emit(f"mul i64 {w.emit(f'add i64 {at}, {4 * pair}')}, {m}")
                target = w.emit(f"add i64 {row}, {i}")
                w.do(f"store {kind.wide} {value}, ptr {w.emit(f'getelementptr {kind.wide}, ptr %A, i64 {target}')}")

        w.counted("kept", m, one)
