"""Single-element probes of matrix instructions, for any source of register maps.

A register map is a callable from coordinates to the places ``(lane, value)`` that hold the element: ``a(block, m, k)``,
``b(block, k, n)``, ``d(block, m, n)``.  Replicated operands have several places.  The instruction under test is a
function of float64 register values; `pack` and `unpack` turn those into the arrays that `flyllvm.sim.matrix` takes.

Each probe sets one element of A to one and asks which row of B comes out, where.  All of B differs, digit by digit in
the exact integers of its format, so that a swapped row, column, block or a K order that differs between A and B shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from flyllvm.sim import numerics

Place = tuple[int, int]
Map = Callable[[int, int, int], list[Place]]
Run = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

ORACLE = Path(__file__).parent.parent / "oracles" / "matrix-layouts.json"


class Fragments:
    """Register maps of one instruction.

    Shape: ``blocks`` products of M x N x K; ``counts`` values per lane of A, B and D.
    """

    def __init__(
        self, m: int, n: int, k: int, blocks: int, lanes: int, counts: tuple[int, int, int], a: Map, b: Map, d: Map
    ) -> None:
        self.m, self.n, self.k, self.blocks, self.lanes, self.counts = m, n, k, blocks, lanes, counts
        self.a, self.b, self.d = a, b, d

    def table(self, which: str) -> np.ndarray:
        """Places of every element.  Shape: ``(blocks, rows, columns, copies)``, of flat ``lane * count + value``."""
        place, (rows, columns), count = {
            "a": (self.a, (self.m, self.k), self.counts[0]),
            "b": (self.b, (self.k, self.n), self.counts[1]),
            "d": (self.d, (self.m, self.n), self.counts[2]),
        }[which]
        return np.array(
            [
                [
                    [sorted(lane * count + value for lane, value in place(x, i, j)) for j in range(columns)]
                    for i in range(rows)
                ]
                for x in range(self.blocks)
            ]
        )


def split(text: str) -> list[str]:
    """The top-level parts of a parenthesised tuple, or the text itself."""
    if not text.startswith("("):
        return [text]
    parts, depth, start = [], 0, 1
    for at, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if (sign == "," and depth == 1) or (sign == ")" and depth == 0):
            parts.append(text[start:at])
            start = at + 1
    return parts


def leaves(text: str) -> list[int]:
    """All integers of a nested tuple, left to right."""
    return [int(word) for word in text.replace("(", " ").replace(")", " ").replace(",", " ").split()]


def layout_table(text: str) -> np.ndarray:
    """Codomain of a printed ``((thr),(val)):((thr),(val))`` layout.  Shape: ``(threads, values)``."""
    shape, stride = text.split(":")
    axes = []
    for extents, steps in zip(split(shape), split(stride)):
        axis = np.zeros(1, int)
        for extent, step in zip(leaves(extents), leaves(steps)):
            axis = (axis + step * np.arange(extent)[:, None]).reshape(-1)  # leftmost mode fastest
        axes.append(axis)
    return axes[0][:, None] + axes[1][None, :]


def map_from_layout(text: str, rows: int, tile: int, *, transposed: bool = False, slots: int = 1) -> tuple[Map, int]:
    """A register map and the values per lane of a printed thread-value layout.

    Args:
        text: Codomain index ``row + rows * column + tile * block``.
        rows: Extent of the first coordinate of the codomain.
        tile: Elements of one block.
        transposed: Whether the map's coordinates are ``(block, column, row)``, as B's are.
        slots: Register slots per value (2 where a 16-bit value has 32 bits to itself).
    """
    table = layout_table(text)
    places: dict[int, list[Place]] = {}
    for lane in range(table.shape[0]):
        for value in range(table.shape[1]):
            places.setdefault(int(table[lane, value]), []).append((lane, value * slots))

    def place(block: int, i: int, j: int) -> list[Place]:
        row, column = (j, i) if transposed else (i, j)
        return places[row + rows * column + tile * block]

    return place, table.shape[1] * slots


def from_layouts(
    mnk: tuple[int, int, int], blocks: int, lanes: int, a: str, b: str, c: str, *, slots: int = 1
) -> Fragments:
    """Register maps of printed layouts with the codomains A (M,K), B (N,K), C (M,N)."""
    m, n, k = mnk
    a_map, a_count = map_from_layout(a, m, m * k)
    b_map, b_count = map_from_layout(b, n, n * k, transposed=True)
    d_map, d_count = map_from_layout(c, m, m * n, slots=slots)
    return Fragments(m, n, k, blocks, lanes, (a_count, b_count, d_count), a_map, b_map, d_map)


def oracle_rows() -> Iterator[dict[str, Any]]:
    """The rows of the published register maps."""
    yield from json.loads(ORACLE.read_text())["instructions"]


def exact_values(element: str, flavour: str | None = None) -> np.ndarray:
    """Distinct values of a format, zero first: what `check_products` tells elements of B apart by."""
    if element in ("fp8", "bf8", "fp6", "bf6", "fp4"):
        table = small_float(element, flavour).table64
        values = np.unique(table[np.isfinite(table)])
    else:
        low, high = {"i8": (-128, 128), "u8": (0, 256), "i4": (-8, 8), "u4": (0, 16), "bf16": (0, 256)}.get(
            element, (0, 2048)
        )
        values = np.arange(low, high).astype(float)
    return np.concatenate([[0.0], values[values != 0]])


def pack(values: np.ndarray, element: str, flavour: str | None = None) -> np.ndarray:
    """Register arrays for float64 values of shape ``(waves, lanes, count)``."""
    if values.strides[0] == 0 and values.shape[0] > 1:  # one wave repeated
        return np.repeat(pack(values[:1], element, flavour), values.shape[0], axis=0)
    if element in ("f16", "f32", "f64", "xf32"):
        array = values.astype({"f16": np.float16, "f64": np.float64}.get(element, np.float32))
        return array[:, :, 0].copy() if element != "f16" and array.shape[2] == 1 else array
    if element == "bf16":
        return numerics.encode_bf16(values.astype(np.float32))
    if element == "i32":
        return values.astype(np.int32)
    if element in ("i8", "u8"):
        codes = values.astype(np.int64).astype(np.uint8)
    elif element in ("i4", "u4"):
        codes = (values.astype(np.int64) & 15).astype(np.uint8)
    else:
        codes = exact_codes(values, small_float(element, flavour))
    width = {"i4": 4, "u4": 4, "fp4": 4, "fp6": 6, "bf6": 6}.get(element, 8)
    bits = (codes[..., None] >> np.arange(width)) & 1
    packed = np.packbits(bits.reshape(*codes.shape[:2], -1), axis=2, bitorder="little")
    if packed.shape[2] in (4, 8):
        return packed.view(np.uint32 if packed.shape[2] == 4 else np.uint64)[:, :, 0].copy()
    return packed.view(np.uint32)


def exact_codes(values: np.ndarray, fmt: numerics.SmallFloat) -> np.ndarray:
    """Codes of values that the format holds exactly; much faster than rounding."""
    codes = np.flatnonzero(np.isfinite(fmt.table64))
    codes = codes[np.argsort(fmt.table64[codes], kind="stable")]
    found = codes[np.searchsorted(fmt.table64[codes], values)]
    assert (fmt.table64[found] == values).all()
    return found.astype(np.uint8)


def small_float(element: str, flavour: str | None) -> numerics.SmallFloat:
    """The format of a short element name."""
    if element in ("fp8", "bf8"):
        return (numerics.fp8 if element == "fp8" else numerics.bf8)(flavour)
    return {"fp6": numerics.E2M3FN, "bf6": numerics.E3M2FN, "fp4": numerics.E2M1FN}[element]


def unpack(array: np.ndarray, element: str) -> np.ndarray:
    """float64 values ``(waves, lanes, count)`` of result registers."""
    values = numerics.decode_bf16(array) if element == "bf16" else array
    return values.astype(np.float64).reshape(array.shape[0], array.shape[1], -1)


def probe_sets(f: Fragments) -> np.ndarray:
    """Which elements ``(block, m, k)`` of A are one, probe by probe.

    Small rows: a single element each.  Rows of more than 1024 elements: one element per row of A at a time, in a
    different column for each, so that every element is still met and a misplaced one still disturbs another row.

    Shape: ``(probes, elements, 3)``.
    """
    every = np.stack([x.reshape(-1) for x in np.indices((f.blocks, f.m, f.k))], axis=1)
    if len(every) <= 1024:
        return every[:, None, :]
    block, m, shift = np.indices((f.blocks, f.m, f.k))
    return np.stack([block, m, (m + shift) % f.k], axis=-1).reshape(-1, f.k, 3).swapaxes(0, 1)


def check_products(run: Run, fragments: Fragments, values: np.ndarray, chunk: int = 256) -> None:
    """Asserts every product A[b,m,k] * B[b,k,n] lands in D[b,m,n] and nowhere else.

    Args:
        run: The instruction on float64 register values.
        fragments: Its register maps.
        values: Exact values of B's format (`exact_values`), the digits of the elements' numbers.
        chunk: Waves in one call.
    """
    f = fragments
    a, b, d = f.table("a"), f.table("b"), f.table("d")
    probes = probe_sets(f)
    codes = 1 + np.arange(f.blocks * f.k * f.n).reshape(f.blocks, f.k, f.n)
    weight = 1
    while weight <= codes.max():
        matrix_b = values[codes // weight % len(values)]
        weight *= len(values)
        registers_b = np.zeros(f.lanes * f.counts[1])
        registers_b[b] = matrix_b[..., None]
        for start in range(0, len(probes), chunk):
            some = probes[start : start + chunk]
            x, m, k = np.moveaxis(some, -1, 0)
            wave = np.arange(len(some))[:, None, None]
            registers_a = np.zeros((len(some), f.lanes * f.counts[0]))
            registers_a[wave, a[x, m, k]] = 1.0
            want = np.zeros((len(some), f.lanes * f.counts[2]))
            want[wave, d[x, m, :, 0]] = matrix_b[x, k]
            got = run(
                registers_a.reshape(len(some), f.lanes, -1),
                np.broadcast_to(registers_b, (len(some), registers_b.size)).reshape(len(some), f.lanes, -1),
                np.zeros((len(some), f.lanes, f.counts[2])),
            )
            np.testing.assert_array_equal(got.reshape(len(some), -1)[:, d], want[:, d])


def check_accumulator(run: Run, fragments: Fragments) -> None:
    """Asserts that with A = B = 0 every element of C comes out in its own place."""
    f = fragments
    d = f.table("d")[..., 0]
    c = np.zeros((2, f.lanes * f.counts[2]))
    c[0, d] = np.arange(d.size).reshape(d.shape) % 251
    c[1, d] = np.arange(d.size).reshape(d.shape) // 251
    zeros = [np.zeros((2, f.lanes, count)) for count in f.counts[:2]]
    got = run(zeros[0], zeros[1], c.reshape(2, f.lanes, -1)).reshape(2, -1)
    np.testing.assert_array_equal(got[:, d], c[:, d])


def scatter(matrix: np.ndarray, places: np.ndarray, lanes: int, count: int) -> np.ndarray:
    """Registers ``(waves, lanes, count)`` that hold matrices ``(waves, blocks, rows, columns)``."""
    registers = np.zeros((matrix.shape[0], lanes * count))
    registers[:, places] = matrix[..., None]
    return registers.reshape(-1, lanes, count)


def check_random(run: Run, fragments: Fragments, limit: int, waves: int = 3, seed: int = 7) -> None:
    """Asserts that random integer matrices give the exact product plus the accumulator."""
    f = fragments
    rng = np.random.default_rng(seed)
    a = rng.integers(-limit, limit + 1, (waves, f.blocks, f.m, f.k)).astype(float)
    b = rng.integers(-limit, limit + 1, (waves, f.blocks, f.k, f.n)).astype(float)
    c = rng.integers(-limit, limit + 1, (waves, f.blocks, f.m, f.n)).astype(float)
    places = {which: f.table(which) for which in "abd"}
    got = run(
        scatter(a, places["a"], f.lanes, f.counts[0]),
        scatter(b, places["b"], f.lanes, f.counts[1]),
        scatter(c, places["d"], f.lanes, f.counts[2]),
    )
    np.testing.assert_array_equal(got.reshape(waves, -1)[:, places["d"][..., 0]], a @ b + c)
