"""2:4 sparse products: B and C against the published maps, A and its index against a dense product."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import matrix, matrix_sparse
from flyllvm.target import Target
from tests.sim import probes

TABLE = {
    (row["intrinsic"].removeprefix("llvm.amdgcn."), row["wave"]): row
    for row in probes.oracle_rows()
    if row.get("sparse") or ".swmmac." in row["intrinsic"]
}
OUTPUT = {16: "((16,4),4):((16,4),1)", 32: "((32,2),(4,4)):((32,4),(1,8))"}
OUTPUT12 = {32: "((16,2),8):((16,8),1)", 64: "((16,2,2),4):((16,8,4),1)"}
CASES = [
    (name, wave)
    for name, intrinsic in matrix_sparse.INTRINSICS.items()
    for wave in intrinsic.waves
    if not (name == "swmmac.i32.16x16x32.iu4" and wave == 64)
]


class Row:
    """Names, sizes and maps of one sparse instruction, spelled out independently of the code under test."""

    def __init__(self, name: str, wave: int) -> None:
        self.name, self.wave = name, wave
        family, self.acc, shape, *elements = name.split(".")
        self.m, self.n, self.k = map(int, shape.split("x"))
        self.a, self.b = elements[0].replace("iu", "i"), elements[-1].replace("iu", "i")
        self.cdna = family == "smfmac"
        self.halved = self.acc == "bf16f32"
        self.acc = "f32" if self.halved else self.acc
        self.gfx1250 = matrix_sparse.INTRINSICS[name].targets == ("gfx1250",)
        self.target = Target.parse(matrix_sparse.INTRINSICS[name].targets[0], wave)
        self.bits = {"f16": 16, "bf16": 16, "i4": 4}.get(self.a, 8)

    def places_a(self) -> tuple[np.ndarray, int]:
        """Lane and value of packed A, by digits of the packed position."""
        m, c = np.indices((self.m, self.k // 2))
        count = self.m * self.k // 2 // self.wave
        if self.cdna:
            return (m + self.m * (c // count)) * count + c % count, count
        if self.gfx1250:
            return (m + 16 * (c // 8 % 2)) * count + c % 8 + 8 * (c // 16), count
        half, quarter = c // 8 % 2, c // 4 % 2
        if self.wave == 32:
            group = quarter if self.bits == 16 else half
            value = c % 4 + 4 * (c // 8) if self.bits == 16 else c % 8 + 8 * (c // 16)
            return (m + 16 * group) * count + value, count
        if self.bits == 16:
            return (m + 16 * quarter + 32 * half) * count + c % 4, count
        if self.bits == 8:
            return (m + 16 * half + 32 * quarter) * count + c % 4, count
        return (m + 16 * (c // 16) + 32 * half) * count + c % 8, count

    def places_b(self) -> tuple[np.ndarray, int]:
        """B from the published layout where there is one; the doubled and integer rows by rule."""
        entry = TABLE.get((self.name, self.wave))
        if entry:
            place, count = probes.map_from_layout(entry["B"], self.n, self.n * self.k, transposed=True)
            flat = [[place(0, k, n)[0] for n in range(self.n)] for k in range(self.k)]
            return np.array([[lane * count + value for lane, value in row] for row in flat]), count
        k, n = np.indices((self.k, self.n))
        count = self.n * self.k // self.wave
        if self.cdna:
            chunk = 128 // self.bits
            groups = 64 // self.n
            return (n + self.n * (k // chunk % groups)) * count + chunk * (k // (chunk * groups)) + k % chunk, count
        if self.wave == 32:
            return (n + 16 * (k // 16 % 2)) * count + 16 * (k // 32) + k % 16, count
        return (n + 16 * (k // (2 * count)) + 32 * (k // count % 2)) * count + k % count, count

    def places_d(self) -> tuple[np.ndarray, int]:
        layout = OUTPUT[self.m] if self.cdna else OUTPUT12[self.wave]
        place, count = probes.map_from_layout(layout, self.m, self.m * self.n)
        flat = [[place(0, m, n)[0] for n in range(self.n)] for m in range(self.m)]
        return np.array([[lane * count + value for lane, value in row] for row in flat]), count

    def index_registers(self, position: np.ndarray, abid: int = 0) -> np.ndarray:
        """Index operand for dense positions ``(waves, M, K/2)``: two bits at the place of each packed value."""
        place, count = self.places_a()
        words = np.zeros((position.shape[0], self.wave), np.uint64 if count > 16 else np.uint32)
        lane, value = place // count, place % count
        for wave in range(position.shape[0]):
            bits = (position[wave] % 4).astype(np.uint64) << (2 * (value + count * abid)).astype(np.uint64)
            np.bitwise_or.at(words[wave], lane, bits.astype(words.dtype))
        return words

    def run(self, a: np.ndarray, b: np.ndarray, c: np.ndarray, index: np.ndarray, *constants: int) -> np.ndarray:
        """D for packed A, dense B and C given as matrices with a leading wave axis."""
        registers = []
        for matrix_, (place, count), element in (
            (a, self.places_a(), self.a),
            (b, self.places_b(), self.b),
            (c, self.places_d(), self.acc),
        ):
            values = np.zeros((matrix_.shape[0], self.wave * count))
            values[:, place] = matrix_
            packed = values.reshape(matrix_.shape[0], self.wave, count)
            registers.append(probes.pack(packed, element, self.target.chip.fp8))
        ra, rb, rc = registers
        if self.cdna:
            args: list[Any] = [ra, rb, rc, index, *(constants or (0, 0))]
        elif self.gfx1250:
            reuse = [0, 0]
            args = [ra, rb, rc, index, *reuse] if self.bits == 8 else [0, ra, 0, rb, rc, index, *reuse]
            args = [1, ra, 1, rb, rc, index, *reuse, 0] if self.acc == "i32" else args
        elif self.acc == "i32":
            args = [1, ra, 1, rb, rc, index, 0]
        else:
            args = [ra, rb, rc, index]
        got = matrix.evaluate(self.name, args, wave_size=self.wave, target=self.target)
        if self.halved:  # bf16 in the first four of the eight registers
            assert got.dtype == np.float32 and np.isnan(got[..., 4:]).all()
            codes = np.ascontiguousarray(got).view(np.uint16)[..., :8]
            return probes.unpack(codes, "bf16").reshape(a.shape[0], -1)[:, self.places_d()[0]]
        return probes.unpack(got, self.acc).reshape(a.shape[0], -1)[:, self.places_d()[0]]


def random_case(row: Row, waves: int = 3) -> tuple[np.ndarray, ...]:
    """Packed A, its dense positions, B and C of small integers, and the exact result."""
    rng = np.random.default_rng(5)
    pairs = np.array([(i, j) for i in range(4) for j in range(i + 1, 4)])
    choice = pairs[rng.integers(0, 6, (waves, row.m, row.k // 4))]
    position = (choice + 4 * np.arange(row.k // 4)[None, None, :, None]).reshape(waves, row.m, row.k // 2)
    limit = 1 if row.acc == "bf16" or row.halved else 4
    a, b, c = (
        rng.integers(-limit, limit + 1, (waves, *shape)).astype(float)
        for shape in ((row.m, row.k // 2), (row.k, row.n), (row.m, row.n))
    )
    dense = np.zeros((waves, row.m, row.k))
    np.put_along_axis(dense, position, a, axis=2)
    return a, position, b, c, dense @ b + c


@pytest.mark.parametrize("name, wave", CASES)
def test_a_sparse_product_equals_the_dense_one(name: str, wave: int) -> None:
    row = Row(name, wave)
    a, position, b, c, want = random_case(row)
    np.testing.assert_array_equal(row.run(a, b, c, row.index_registers(position)), want)


@pytest.mark.parametrize("name, wave", sorted(TABLE))
def test_maps_of_b_equal_the_published_ones(name: str, wave: int) -> None:
    row = Row(name, wave)
    index = (
        matrix_sparse.smfmac_b_index(row.n, row.k, row.bits)
        if row.cdna
        else matrix_sparse.swmmac_b_index(row.k, row.bits, wave)[0]
    )
    np.testing.assert_array_equal(index.T, row.places_b()[0])
    assert TABLE[name, wave]["C"] == (OUTPUT[row.m] if row.cdna else OUTPUT12[wave])


@pytest.mark.parametrize("name", ["swmmac.f32.16x16x32.f16", "swmmac.f32.16x16x32.fp8.fp8", "smfmac.f32.16x16x32.f16"])
def test_each_packed_value_meets_the_row_of_b_its_index_names(name: str) -> None:
    """Single elements: packed value c of row m, at each of the positions its index can name."""
    row = Row(name, matrix_sparse.INTRINSICS[name].waves[0])
    m, c = np.indices((row.m, row.k // 2)).reshape(2, -1)
    for pair in ((0, 1), (1, 3), (2, 3)):
        position = np.broadcast_to(
            np.tile(pair, row.k // 4) + 4 * (np.arange(row.k // 2) // 2), (len(m), row.m, row.k // 2)
        )
        a = np.zeros((len(m), row.m, row.k // 2))
        a[np.arange(len(m)), m, c] = 1.0
        b = np.broadcast_to((np.arange(row.k * row.n).reshape(row.k, row.n) * 7 + 1) % 13.0, (len(m), row.k, row.n))
        got = row.run(a, b, np.zeros((len(m), row.m, row.n)), row.index_registers(position))
        want = np.zeros_like(got)
        want[np.arange(len(m)), m] = b[0][position[0, 0, c]]
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize(
    "name, sets",
    [
        ("smfmac.f32.16x16x32.f16", 4),
        ("smfmac.f32.32x32x32.fp8.bf8", 2),
        ("smfmac.f32.16x16x64.bf16", 2),
        ("smfmac.i32.32x32x64.i8", 1),
    ],
)
def test_abid_chooses_the_set_of_index_bits_unless_cbsz_is_set(name: str, sets: int) -> None:
    row = Row(name, 64)
    a, position, b, c, want = random_case(row)
    for abid in range(sets):
        np.testing.assert_array_equal(row.run(a, b, c, row.index_registers(position, abid), 0, abid), want)
    np.testing.assert_array_equal(row.run(a, b, c, row.index_registers(position), 1, 3), want)
    with pytest.raises(SimError, match=f"abid 0 to {sets - 1}"):
        row.run(a, b, c, row.index_registers(position), 0, sets)


def test_an_index_out_of_order_is_an_error() -> None:
    row = Row("smfmac.f32.16x16x32.f16", 64)
    a, position, b, c, _ = random_case(row)
    position = position.copy()
    position[1, 2, 6:8] = position[1, 2, 7:5:-1]
    with pytest.raises(SimError, match="must be in increasing order") as caught:
        row.run(a, b, c, row.index_registers(position))
    assert "wave 1, row 2, group 3" in str(caught.value)


def test_index_operands_of_the_wrong_shape_or_width_are_refused() -> None:
    row = Row("smfmac.i32.16x16x128.i8", 64)
    a, position, b, c, _ = random_case(row)
    index = row.index_registers(position)
    with pytest.raises(SimError, match="one integer in 64 lanes"):
        row.run(a, b, c, index[:, :32])
    with pytest.raises(SimError, match="at least 32 bits"):
        row.run(a, b, c, index.astype(np.uint16))
    row = Row("swmmac.i32.16x16x128.iu8", 32)
    a, position, b, c, _ = random_case(row)
    with pytest.raises(SimError, match="at least 64 bits"):
        row.run(a, b, c, row.index_registers(position).astype(np.uint32))


@pytest.mark.parametrize(
    "name, processor, wave, fix",
    [
        ("smfmac.f32.16x16x64.f16", "gfx942", 64, "targets with it: gfx950"),
        ("swmmac.f32.16x16x32.f16", "gfx1250", 32, "targets with it: gfx1200, gfx1201"),
        ("swmmac.f32.16x16x64.f16", "gfx1201", 32, "targets with it: gfx1250"),
        ("swmmac.i32.16x16x32.iu4", "gfx1200", 64, "wave_size=32"),
    ],
)
def test_what_the_hardware_lacks_is_refused(name: str, processor: str, wave: int, fix: str) -> None:
    constants = tuple(0 for _ in matrix_sparse.INTRINSICS[name].immediates)
    with pytest.raises(SimError, match=re.escape(fix)):
        matrix.prepare(name, constants, wave_size=wave, target=Target.parse(processor))
