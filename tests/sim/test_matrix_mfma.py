"""Dense MFMA: lane formulas against the published register maps, single-element probes, modifiers, refusals."""

from __future__ import annotations

import re

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import matrix, matrix_mfma
from flyllvm.target import Target
from tests.sim import probes

TARGETS = {name: Target.parse(name) for name in ("gfx90a", "gfx942", "gfx950")}
ROWS = list(matrix_mfma.ROWS.values())
# Rows of the family that the published table leaves out: derived by the family rule, probed below, never compared.
NOT_IN_TABLE = {
    "mfma.f32.16x16x8.xf32",
    "mfma.f64.4x4x4f64",
    "mfma.i32.16x16x64.i8",
    "mfma.i32.32x32x16.i8",
}


def published() -> dict[str, dict[str, object]]:
    rows = {}
    for row in probes.oracle_rows():
        name = row["intrinsic"].removeprefix("llvm.amdgcn.")
        if name.startswith("mfma.") and not name.startswith("mfma.scale"):
            rows[f"{name} {row['key']}"] = {**row, "name": name}
    return rows


def family_rule(row: matrix_mfma.MfmaRow) -> probes.Fragments:
    """Maps spelled out by hand in another form than the code under test: digits of lane and value."""
    mn, k, blocks = row.mn, row.k, row.blocks
    per_lane = k * mn * blocks // 64
    tall = 1 if row.acc == "f64" else 4

    def source(block: int, i: int, depth: int) -> list[probes.Place]:
        group, value = divmod(depth, per_lane)
        return [(i + mn * (block + blocks * group), value)]

    def target(block: int, m: int, n: int) -> list[probes.Place]:
        if mn == 4 and tall == 4:
            return [(4 * block + n, m)]
        if mn == 4:
            return [(16 * m + 4 * block + n, 0)]
        group, row_in_group = divmod(m, tall)
        turn, lane_group = divmod(group, 64 // mn)
        return [(n + mn * lane_group, row_in_group + tall * turn + mn * mn // 64 * block)]

    counts = (per_lane, per_lane, mn * mn * blocks // 64)
    return probes.Fragments(mn, mn, k, blocks, 64, counts, source, lambda x, d, n: source(x, n, d), target)


def runner(row: matrix_mfma.MfmaRow, target: Target, immediates: tuple[int, int, int] = (0, 0, 0)) -> probes.Run:
    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        flavour = target.chip.fp8
        registers = [probes.pack(x, e, flavour) for x, e in ((a, row.a), (b, row.b), (c, row.acc))]
        return probes.unpack(matrix.evaluate(row.name, [*registers, *immediates], wave_size=64, target=target), row.acc)

    return run


@pytest.mark.parametrize("key", sorted(published()))
def test_lane_formulas_equal_the_published_register_maps(key: str) -> None:
    entry = published()[key]
    row = matrix_mfma.ROWS[entry["name"]]
    assert [row.mn, row.mn, row.k] == entry["mnk"] and row.blocks == entry["blocks"]
    assert set(entry["arch"]) - {"gfx908"} <= set(row.targets)
    f = probes.from_layouts(tuple(entry["mnk"]), row.blocks, 64, entry["A"], entry["B"], entry["C"])
    place = matrix_mfma.input_index(row.mn, row.k, row.blocks)
    np.testing.assert_array_equal(place, f.table("a")[..., 0])
    np.testing.assert_array_equal(place.swapaxes(1, 2), f.table("b")[..., 0])
    out = matrix_mfma.output_index(row.mn, row.blocks, 1 if row.acc == "f64" else 4)
    np.testing.assert_array_equal(out, f.table("d")[..., 0])


def test_only_the_named_rows_are_without_a_published_map() -> None:
    assert set(matrix_mfma.ROWS) - {entry["name"] for entry in published().values()} == NOT_IN_TABLE


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_every_product_lands_in_its_element_and_nowhere_else(row: matrix_mfma.MfmaRow) -> None:
    target = TARGETS[row.targets[-1]]
    run, f = runner(row, target), family_rule(row)
    probes.check_products(run, f, probes.exact_values(row.b, target.chip.fp8))
    probes.check_accumulator(run, f)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_random_integers_are_exact_on_every_target(row: matrix_mfma.MfmaRow) -> None:
    for name in row.targets:
        probes.check_random(runner(row, TARGETS[name]), family_rule(row), 8)


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_rows_are_refused_on_targets_without_them(row: matrix_mfma.MfmaRow) -> None:
    for name in sorted(set(TARGETS) - set(row.targets)):
        with pytest.raises(SimError, match=re.escape(f"targets with it: {', '.join(row.targets)}")):
            matrix.prepare(row.name, (0, 0, 0), wave_size=64, target=TARGETS[name])


@pytest.mark.parametrize(
    "name, cbsz, abid",
    [("4x4x4f16", 4, 9), ("4x4x4f16", 4, 0), ("16x16x4f16", 2, 3), ("32x32x4f16", 1, 1), ("32x32x1f32", 1, 0)],
)
def test_cbsz_and_abid_broadcast_one_block_of_a_to_all(name: str, cbsz: int, abid: int) -> None:
    row = matrix_mfma.ROWS[f"mfma.f32.{name}"]
    f = family_rule(row)
    plain, broadcast = runner(row, TARGETS["gfx942"]), runner(row, TARGETS["gfx942"], (cbsz, abid, 0))
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (1, f.blocks, f.m, f.k)).astype(float)
    b = rng.integers(-8, 9, (1, f.blocks, f.k, f.n)).astype(float)
    zero = np.zeros((1, 64, f.counts[2]))
    registers_b = probes.scatter(b, f.table("b"), 64, f.counts[1])
    got = broadcast(probes.scatter(a, f.table("a"), 64, f.counts[0]), registers_b, zero)
    want = plain(probes.scatter(a[:, [abid] * f.blocks], f.table("a"), 64, f.counts[0]), registers_b, zero)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("blgp", range(8))
def test_blgp_permutes_the_lanes_of_b(blgp: int) -> None:
    row = matrix_mfma.ROWS["mfma.f32.16x16x4f16"]
    f = family_rule(row)
    lanes = np.arange(64).reshape(4, 16)
    order = {0: [0, 1, 2, 3], 1: [0, 1, 0, 1], 2: [2, 3, 2, 3], 3: [1, 2, 3, 0]}.get(blgp, [blgp - 4] * 4)
    rng = np.random.default_rng(0)
    a, b = rng.integers(-8, 9, (2, 1, 4, 16, 4)).astype(float)
    registers_a = probes.scatter(a, f.table("a"), 64, 4)
    registers_b = probes.scatter(b.swapaxes(2, 3), f.table("b"), 64, 4)
    zero = np.zeros((1, 64, 16))
    got = runner(row, TARGETS["gfx942"], (0, 0, blgp))(registers_a, registers_b, zero)
    want = runner(row, TARGETS["gfx942"])(registers_a, registers_b[:, lanes[order].reshape(-1)], zero)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("blgp", range(8))
@pytest.mark.parametrize("name", ["mfma.f64.16x16x4f64", "mfma.f64.4x4x4f64"])
def test_blgp_negates_the_operands_of_f64_rows(name: str, blgp: int) -> None:
    row = matrix_mfma.ROWS[name]
    f = family_rule(row)
    rng = np.random.default_rng(0)
    a = rng.integers(-8, 9, (2, 64, f.counts[0])).astype(float)
    b = rng.integers(-8, 9, (2, 64, f.counts[1])).astype(float)
    c = rng.integers(-8, 9, (2, 64, f.counts[2])).astype(float)
    sign = [-1.0 if blgp & bit else 1.0 for bit in (1, 2, 4)]
    got = runner(row, TARGETS["gfx942"], (0, 0, blgp))(a, b, c)
    np.testing.assert_array_equal(got, runner(row, TARGETS["gfx942"])(sign[0] * a, sign[1] * b, sign[2] * c))


@pytest.mark.parametrize(
    "name, processor, immediates, fix",
    [
        ("mfma.f32.16x16x16f16", "gfx942", (1, 0, 0), "cbsz 0"),
        ("mfma.f32.4x4x4f16", "gfx942", (5, 0, 0), "cbsz 0 or 4"),
        ("mfma.f32.4x4x4f16", "gfx942", (2, 1, 0), "manual and AMD's calculator agree"),
        ("mfma.f32.4x4x4f16", "gfx942", (4, 16, 0), "abid 0 to 15"),
        ("mfma.f64.4x4x4f64", "gfx942", (1, 0, 0), "cbsz 0"),
        ("mfma.f64.16x16x4f64", "gfx90a", (0, 0, 1), "blgp 0"),
        ("mfma.f32.16x16x32.fp8.fp8", "gfx942", (0, 0, 3), "blgp 0"),
        ("mfma.f32.16x16x16f16", "gfx942", (0, 0, 8), "blgp 0 to 7"),
        ("mfma.f32.16x16x16f16", "gfx942", (0, 0), "cbsz, abid, blgp"),
    ],
)
def test_meaningless_modifiers_are_refused(name: str, processor: str, immediates: tuple[int, ...], fix: str) -> None:
    with pytest.raises(SimError, match=fix):
        matrix.prepare(name, immediates, wave_size=64, target=TARGETS[processor])


def test_wrong_operands_wave_size_and_names_are_refused() -> None:
    a, c = np.zeros((1, 64, 4), np.float16), np.zeros((1, 64, 4), np.float32)
    name, target = "mfma.f32.16x16x16f16", TARGETS["gfx942"]
    with pytest.raises(SimError, match="4 f16 values per lane in 64 lanes"):
        matrix.evaluate(name, [a.astype(np.float32), a, c, 0, 0, 0], wave_size=64, target=target)
    with pytest.raises(SimError, match="4 f16 values per lane in 64 lanes"):
        matrix.evaluate(name, [a, a[:, :32], c, 0, 0, 0], wave_size=64, target=target)
    with pytest.raises(SimError, match="4 f32 values per lane in 64 lanes"):
        matrix.evaluate(name, [a, a, c.astype(np.float64), 0, 0, 0], wave_size=64, target=target)
    with pytest.raises(SimError, match="wave_size=64"):
        matrix.prepare(name, (0, 0, 0), wave_size=32, target=target)
    with pytest.raises(SimError, match=r"matrix\.supports"):
        matrix.evaluate("mfma.f32.8x8x8f16", [], wave_size=64, target=target)
    with pytest.raises(SimError, match="pass a constant"):
        matrix.evaluate(name, [a, a, c, c, 0, 0], wave_size=64, target=target)


def test_fp8_codes_mean_what_the_chip_says() -> None:
    """Code 0x48 is 2 in the FNUZ formats of gfx942 and 4 in the OCP formats of gfx950 (e4m3)."""
    row = matrix_mfma.ROWS["mfma.f32.16x16x32.fp8.fp8"]
    a = np.full((1, 64), 0x4848484848484848, np.uint64)
    c = np.zeros((1, 64, 4), np.float32)
    for name, value in (("gfx942", 2.0), ("gfx950", 4.0)):
        got = matrix.evaluate(row.name, [a, a, c, 0, 0, 0], wave_size=64, target=TARGETS[name])
        assert (got == 32 * value * value).all()


def test_integer_accumulators_wrap() -> None:
    a = np.full((1, 64), 0x0101010101010101, np.uint64)
    c = np.full((1, 64, 4), 2**31 - 1, np.int32)
    got = matrix.evaluate("mfma.i32.16x16x32.i8", [a, a, c, 0, 0, 0], wave_size=64, target=TARGETS["gfx942"])
    assert got.dtype == np.int32 and (got == -(2**31) + 31).all()


def test_a_sum_is_rounded_once() -> None:
    """One plus 16 halves of its last place: a chain of float32 additions would drop each of them."""
    a = np.full((1, 64, 4), 1.0, np.float16)
    b = np.full((1, 64, 4), 2.0**-24, np.float16)
    c = np.ones((1, 64, 4), np.float32)
    got = matrix.evaluate("mfma.f32.16x16x16f16", [a, b, c, 0, 0, 0], wave_size=64, target=TARGETS["gfx942"])
    assert (got == 1 + 16 * 2.0**-24).all()


def test_gfx90a_flushes_denormals_of_its_16_bit_rows_and_gfx942_does_not() -> None:
    tiny = np.full((1, 64, 4), 2.0**-20, np.float16)  # below 2**-14, the smallest normal
    big = np.full((1, 64, 4), 2.0**10, np.float16)
    c = np.zeros((1, 64, 4), np.float32)
    for name, value in (("gfx90a", 0.0), ("gfx942", 16 * 2.0**-10)):
        got = matrix.evaluate("mfma.f32.16x16x16f16", [tiny, big, c, 0, 0, 0], wave_size=64, target=TARGETS[name])
        assert (got == value).all()
    sub = np.full((1, 64, 4), 2.0**-130, np.float32)
    for name, value in (("gfx90a", 0.0), ("gfx942", 2.0**-130)):
        got = matrix.evaluate("mfma.f32.16x16x16f16", [big, tiny * 0, sub, 0, 0, 0], wave_size=64, target=TARGETS[name])
        assert (got == np.float32(value)).all()


def test_infinities_and_nans_pass_through_without_a_warning() -> None:
    a, b = np.zeros((2, 1, 64, 4), np.float16)
    a[0, 0, 0], b[0, 0, 0] = np.inf, 1.0
    c = np.zeros((1, 64, 4), np.float32)
    got = matrix.evaluate("mfma.f32.16x16x16f16", [a, b, c, 0, 0, 0], wave_size=64, target=TARGETS["gfx942"])
    assert got[0, 0, 0] == np.inf and np.isnan(got[0, 1, 0]) and got[0, 1, 1] == 0


def test_inputs_are_left_alone_and_results_are_fresh() -> None:
    a = np.ones((2, 64, 4), np.float16)
    c = np.ones((2, 64, 4), np.float32)
    run = matrix.prepare("mfma.f32.16x16x16f16", (0, 0, 0), wave_size=64, target=TARGETS["gfx942"])
    first = run(a, a, c)
    second = run(a, 2 * a, first)
    assert (a == 1).all() and (c == 1).all() and (first == 17).all() and (second == 49).all()
    assert (run(a[:1], a[:1], c[:1]) == 17).all()


def test_strided_registers_give_the_same_result() -> None:
    rng = np.random.default_rng(0)
    a = rng.normal(size=(64, 3, 4)).astype(np.float16).swapaxes(0, 1)
    c = rng.normal(size=(4, 3, 64)).astype(np.float32).transpose(1, 2, 0)
    run = matrix.prepare("mfma.f32.16x16x16f16", (0, 0, 0), wave_size=64, target=TARGETS["gfx942"])
    np.testing.assert_array_equal(run(a, a, c), run(a.copy(order="C"), a.copy(order="C"), c.copy(order="C")))


@pytest.mark.parametrize("row", ROWS, ids=lambda r: r.name)
def test_flops_count_two_per_product(row: matrix_mfma.MfmaRow) -> None:
    f = family_rule(row)
    assert matrix.flops(row.name) == 2 * f.m * f.n * f.k * f.blocks
    assert matrix.supports(row.name) and matrix.immediate_positions(row.name) == (3, 4, 5)


def test_the_probes_see_swapped_rows_and_columns_and_a_lone_k_order() -> None:
    row = matrix_mfma.ROWS["mfma.f32.16x16x16f16"]
    run, good = runner(row, TARGETS["gfx942"]), family_rule(row)
    size = (16, 16, 16, 1, 64, good.counts)
    swapped = probes.Fragments(*size, good.a, good.b, lambda x, m, n: good.d(x, n, m))
    order = probes.Fragments(*size, lambda x, m, k: good.a(x, m, k ^ 4), good.b, good.d)
    for wrong in (swapped, order):
        with pytest.raises(AssertionError):
            probes.check_products(run, wrong, probes.exact_values("f16"))
        with pytest.raises(AssertionError):
            probes.check_random(run, wrong, 8)
