"""WMMA of gfx11, gfx12 and gfx1250: published register maps, probes, modifiers, replicas, 16-bit accumulators."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from flyllvm.errors import SimError
from flyllvm.sim import matrix, matrix_wmma
from flyllvm.target import Target
from tests.sim import probes

PROCESSORS = ("gfx1100", "gfx1200", "gfx1201", "gfx1250")
ARCH = {"gfx1100": "gfx11", "gfx1200": "gfx1200", "gfx1201": "gfx1200", "gfx1250": "gfx1250"}
# A, B of rows that the published table leaves out, by (processor family, K, bits, wave); C is that of the family.
FAMILY_RULE = {
    ("gfx1200", 16, 8, 32): "((16,2),8):((1,128),16)",
    ("gfx1200", 16, 8, 64): "((16,2,2),4):((1,128,64),16)",
    ("gfx1200", 16, 4, 32): "((16,2),8):((1,128),16)",
    ("gfx1200", 32, 4, 32): "((16,2),(8,2)):((1,128),(16,256))",
    ("gfx1200", 32, 4, 64): "((16,2,2),8):((1,256,128),16)",
    ("gfx1250", 64, 8, 32): "((16,2),(8,4)):((1,128),(16,256))",
    ("gfx1250", 32, 16, 32): "((16,2),(8,2)):((1,128),(16,256))",
}
OUTPUT = {
    ("gfx1200", 32): "((16,2),8):((16,8),1)",
    ("gfx1200", 64): "((16,2,2),4):((16,8,4),1)",
    ("gfx1250", 32): "((16,2),8):((16,8),1)",
}
BITS = {"f32": 32, "f16": 16, "bf16": 16, "fp8": 8, "bf8": 8, "iu8": 8, "iu4": 4}


def published() -> dict[tuple[str, str, int], dict[str, Any]]:
    rows = {}
    for row in probes.oracle_rows():
        name = row["intrinsic"].removeprefix("llvm.amdgcn.")
        if name.startswith("wmma.") and not name.startswith("wmma.scale"):
            for arch in row["arch"]:
                rows[arch, name, row["wave"]] = row
    return rows


TABLE = published()
CASES = [
    (row, processor, wave)
    for row in matrix_wmma.ROWS.values()
    for processor in row.targets
    if processor != "gfx1201"  # built by the same code as gfx1200
    for wave in ((32,) if processor == "gfx1250" else (32, 64))
]
IDS = [f"{row.name}-{processor}-w{wave}" for row, processor, wave in CASES]


def lower_half(count: int) -> tuple[probes.Map, int]:
    """The 4-bit K = 16 rows of gfx12 in wave64: the lower 32 lanes hold everything."""
    return lambda block, r, k: [(r + 16 * (k // 8), k % 8)], count


def fragments(row: matrix_wmma.WmmaRow, processor: str, wave: int) -> probes.Fragments:
    arch, bits = ARCH[processor], BITS[row.a]
    entry = TABLE.get((arch, row.name.removesuffix(".tied"), wave))
    slots = 2 if arch == "gfx11" and row.form == "opsel" else 1
    mnk = (16, 16, row.k)
    if entry:
        return probes.from_layouts(mnk, 1, wave, entry["A"], entry["B"], entry["C"], slots=slots)
    if arch == "gfx1200" and bits == 4 and row.k == 16 and wave == 64:
        d, d_count = probes.map_from_layout(OUTPUT[arch, wave], 16, 256)
        a, count = lower_half(8)
        return probes.Fragments(16, 16, 16, 1, wave, (count, count, d_count), a, lambda x, k, n: a(x, n, k), d)
    layout = FAMILY_RULE[arch, row.k, bits, wave]
    return probes.from_layouts(mnk, 1, wave, layout, layout, OUTPUT[arch, wave])


def arguments(row: matrix_wmma.WmmaRow, a: Any, b: Any, c: Any, **constants: int) -> list[Any]:
    """LLVM's argument list; integer inputs are signed unless told otherwise."""
    form = matrix_wmma._FORMS[row.form]
    values = {
        what: constants.pop(what.replace(" ", "_"), 1 if what.startswith("signed") else 0) for what in form.values()
    }
    assert not constants
    arrays = iter((a, b, c))
    return [values[form[i]] if i in form else next(arrays) for i in range(len(form) + 3)]


def runner(row: matrix_wmma.WmmaRow, processor: str, wave: int, **constants: int) -> probes.Run:
    target = Target.parse(processor, wave)

    def run(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
        element_a, element_b = (matrix_wmma.element_name(e, 1) for e in (row.a, row.b))
        registers = [probes.pack(x, e, target.chip.fp8) for x, e in ((a, element_a), (b, element_b), (c, row.acc))]
        got = matrix.evaluate(row.name, arguments(row, *registers, **constants), wave_size=wave, target=target)
        return probes.unpack(got, row.result)

    return run


@pytest.mark.parametrize("key", sorted(TABLE), ids=lambda k: "-".join(map(str, k)))
def test_lane_formulas_equal_the_published_register_maps(key: tuple[str, str, int]) -> None:
    arch, name, wave = key
    row, entry = matrix_wmma.ROWS[name], TABLE[key]
    for processor in row.targets:
        if ARCH[processor] != arch:
            continue
        f = fragments(row, processor, wave)
        index, count, copies = matrix_wmma.input_index(row.k, BITS[row.a], processor, wave)
        a, b = f.table("a")[0], f.table("b")[0]
        assert count == f.counts[0] and copies == a.shape[-1] == entry.get("replicate_ab", 1)
        for copy in range(copies):
            np.testing.assert_array_equal(index + 16 * copy * count, a[..., copy])
            np.testing.assert_array_equal(index.T + 16 * copy * count, b[..., copy])
        place, _ = matrix_wmma.output_index(processor, wave)
        slots = 2 if entry.get("c_slots") else 1
        np.testing.assert_array_equal(slots * place, f.table("d")[0, ..., 0])


@pytest.mark.parametrize("row, processor, wave", CASES, ids=IDS)
def test_every_product_lands_in_its_element_and_nowhere_else(
    row: matrix_wmma.WmmaRow, processor: str, wave: int
) -> None:
    values = probes.exact_values(matrix_wmma.element_name(row.b, 1), "ocp")
    f = fragments(row, processor, wave)
    probes.check_products(runner(row, processor, wave), f, values)
    probes.check_accumulator(runner(row, processor, wave), f)


@pytest.mark.parametrize("row, processor, wave", CASES, ids=IDS)
def test_random_integers_are_exact(row: matrix_wmma.WmmaRow, processor: str, wave: int) -> None:
    limit = 1 if row.result == "bf16" else 4
    probes.check_random(runner(row, processor, wave), fragments(row, processor, wave), limit)


@pytest.mark.parametrize("name", ["wmma.f16.16x16x16.f16", "wmma.bf16.16x16x16.bf16"])
@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("opsel", [0, 1])
@pytest.mark.parametrize("tied", [False, True])
def test_gfx11_16_bit_accumulators_use_one_half_of_each_register(name: str, wave: int, opsel: int, tied: bool) -> None:
    row = matrix_wmma.ROWS[name + (".tied" if tied else "")]
    f = fragments(row, "gfx1100", wave)
    target = Target.parse("gfx1100", wave)
    rng = np.random.default_rng(0)
    a, b, c = (rng.integers(-2, 3, (2, 1, 16, 16)).astype(float) for _ in range(3))
    registers = probes.scatter(c, f.table("d"), wave, f.counts[2])
    if opsel:
        registers = np.roll(registers, 1, axis=2)
    other = slice(1 - opsel, None, 2)
    registers[:, :, other] = 7.0
    arrays = [
        probes.pack(probes.scatter(x, f.table(w), wave, f.counts[i]), row.a)
        for i, (x, w) in enumerate(((a, "a"), (b, "b")))
    ]
    c_array = probes.pack(registers, row.acc)
    got = matrix.evaluate(row.name, [*arrays, c_array, opsel], wave_size=wave, target=target)
    values = np.roll(probes.unpack(got, row.acc), -opsel, axis=2).reshape(2, -1)
    np.testing.assert_array_equal(values[:, f.table("d")[0, ..., 0]], (a @ b + c)[:, 0])
    if tied:
        np.testing.assert_array_equal(got[:, :, other], c_array[:, :, other])
    else:  # undefined on hardware: a NaN shows a use
        assert np.isnan(probes.unpack(got, row.acc)[:, :, other]).all()


@pytest.mark.parametrize("wave", [32, 64])
@pytest.mark.parametrize("operand", [0, 1])
def test_differing_copies_of_a_replicated_operand_are_an_error(wave: int, operand: int) -> None:
    target = Target.parse("gfx1100", wave)
    arrays = [np.ones((2, wave, 16), np.float16), np.ones((2, wave, 16), np.float16)]
    c = np.zeros((2, wave, 256 // wave), np.float32)
    arrays[operand][1, 19, 3] = 2.0
    with pytest.raises(SimError, match=re.escape("give lane l and lane l + 16 the same A (and B) values")) as caught:
        matrix.evaluate("wmma.f32.16x16x16.f16", [*arrays, c], wave_size=wave, target=target)
    assert "wave 1: lanes 3 and 19" in str(caught.value)


def test_sign_flags_choose_the_meaning_of_integers() -> None:
    target = Target.parse("gfx1201", 32)
    a = np.full((1, 32, 2), 0xFFFFFFFF, np.uint32)
    c = np.zeros((1, 32, 8), np.int32)
    for sign_a, sign_b, product in ((1, 1, 1), (1, 0, -255), (0, 1, -255), (0, 0, 255 * 255)):
        got = matrix.evaluate("wmma.i32.16x16x16.iu8", [sign_a, a, sign_b, a, c, 0], wave_size=32, target=target)
        assert (got == 16 * product).all()
    for sign_a, sign_b, product in ((1, 1, 1), (0, 0, 15 * 15)):
        four = a[:, :, 0].copy()
        got = matrix.evaluate("wmma.i32.16x16x16.iu4", [sign_a, four, sign_b, four, c, 0], wave_size=32, target=target)
        assert (got == 16 * product).all()


def test_clamp_saturates_and_its_absence_wraps() -> None:
    target = Target.parse("gfx1201", 32)
    a = np.full((1, 32, 2), 0x7F7F7F7F, np.uint32)
    c = np.full((1, 32, 8), 2**31 - 10, np.int32)
    for clamp, value in ((1, 2**31 - 1), (0, 2**31 - 10 + 16 * 127 * 127 - 2**32)):
        got = matrix.evaluate("wmma.i32.16x16x16.iu8", [1, a, 1, a, c, clamp], wave_size=32, target=target)
        assert (got == value).all()


@pytest.mark.parametrize("neg_a", [0, 1])
@pytest.mark.parametrize("neg_b", [0, 1])
@pytest.mark.parametrize("modifier", range(4))
def test_gfx1250_modifiers_negate_and_take_absolutes(neg_a: int, neg_b: int, modifier: int) -> None:
    row = matrix_wmma.ROWS["wmma.f32.16x16x32.f16"]
    f = fragments(row, "gfx1250", 32)
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, (1, 32, 16)).astype(float) for _ in range(2))
    c = rng.integers(-4, 5, (1, 32, 8)).astype(float)
    got = runner(row, "gfx1250", 32, neg_A=neg_a, neg_B=neg_b, modifier_of_C=modifier)(a, b, c)
    read = np.abs(c) if modifier & 2 else c
    want = runner(row, "gfx1250", 32)((-1) ** neg_a * a, (-1) ** neg_b * b, -read if modifier & 1 else read)
    np.testing.assert_array_equal(got, want)
    assert f.counts == (16, 16, 8)


@pytest.mark.parametrize(
    "name, processor, wave, immediates, fix",
    [
        ("wmma.f32.16x16x16.f16", "gfx1250", 32, (), "targets with it: gfx1100, gfx1200, gfx1201"),
        ("wmma.f32.16x16x32.f16", "gfx1201", 32, (0, 0, 0, 0, 0), "targets with it: gfx1250"),
        ("wmma.f32.16x16x32.f16", "gfx1250", 64, (0, 0, 0, 0, 0), "wave_size=32"),
        ("wmma.f32.16x16x32.f16", "gfx1250", 32, (0, 0, 4, 0, 0), "modifier of C is 0 to 3"),
        ("wmma.f16.16x16x16.f16", "gfx1201", 32, (1,), "opsel 0"),
        ("wmma.f16.16x16x16.f16", "gfx1100", 32, (2,), "opsel is 0 to 1"),
        ("wmma.i32.16x16x16.iu8", "gfx1100", 32, (1, 1), "pass signed A, signed B, clamp"),
    ],
)
def test_what_means_nothing_is_refused(
    name: str, processor: str, wave: int, immediates: tuple[int, ...], fix: str
) -> None:
    target = Target.parse(processor)
    with pytest.raises(SimError, match=re.escape(fix)):
        matrix.prepare(name, immediates, wave_size=wave, target=target)


def test_type_suffixes_of_overloaded_names_may_stay_on() -> None:
    assert matrix.find("wmma.f32.16x16x16.f16.v8f32.v16f16") is matrix.find("wmma.f32.16x16x16.f16")
    assert matrix.find("wmma.bf16.16x16x16.bf16.tied.v16i16.v16i16") is matrix.find("wmma.bf16.16x16x16.bf16.tied")
    assert matrix.find("wmma.f32.16x16x16.fp8.bf8.v4f32.i32") is matrix.find("wmma.f32.16x16x16.fp8.bf8")
    assert not matrix.supports("wmma.f32.16x16x17.f16.v8f32.v16f16")
    assert matrix.flops("wmma.f32.16x16x16.f16.v8f32.v16f16") == 2 * 16**3
    assert matrix.ignores_exec("wmma.f32.16x16x16.f16") and not matrix.ignores_exec("sdot4")
