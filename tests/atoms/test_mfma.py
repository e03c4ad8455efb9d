"""Dense MFMA rows: against the published register maps and costs, LLVM's table, and every target."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flyllvm.atoms.contract import indices
from flyllvm.atoms.rocdl import cdna3_mfma
from flyllvm.atoms.rocdl.cdna3_mfma import TABLE, Mfma, find_mfma
from flyllvm.codegen import intrinsics
from flyllvm.errors import AtomError, ParseError, TargetError
from flyllvm.ir import types as t
from flyllvm.ir.protocols import parse_payload
from flyllvm.layout import Layout, parse
from flyllvm.target import CHIPS, Target

OPS = cdna3_mfma.atoms()
ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "matrix-layouts.json").read_text())["instructions"]
# Rows that the published table leaves out; their layouts rest on the manual and on the probes.
NOT_PUBLISHED = {
    ("llvm.amdgcn.mfma.f32.4x4x4bf16.1k", "gfx90a"),
    ("llvm.amdgcn.mfma.f32.16x16x8.xf32", "gfx942"),
    ("llvm.amdgcn.mfma.f64.4x4x4f64", "gfx90a"),
    ("llvm.amdgcn.mfma.f64.4x4x4f64", "gfx942"),
    ("llvm.amdgcn.mfma.f64.4x4x4f64", "gfx950"),
    ("llvm.amdgcn.mfma.i32.32x32x16.i8", "gfx942"),
    ("llvm.amdgcn.mfma.i32.32x32x16.i8", "gfx950"),
    ("llvm.amdgcn.mfma.i32.16x16x64.i8", "gfx950"),
}
# The published cost of f64 on gfx950 stands in another table: half the rate of gfx942.
COST_ELSEWHERE = {("llvm.amdgcn.mfma.f64.16x16x4f64", "gfx950"): 64}
FNUZ = ("f8E4M3FNUZ", "f8E5M2FNUZ")
OCP = ("f8E4M3FN", "f8E5M2")


def published(intrinsic: str, processor: str) -> dict[str, Any] | None:
    for row in ORACLE:
        if row["intrinsic"] == intrinsic and processor in row["arch"]:
            return row
    return None


PAIRS = [(op, p) for op in OPS for p in op.targets]


@pytest.mark.parametrize(("op", "processor"), PAIRS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_rows_equal_the_published_register_map(op: Mfma, processor: str) -> None:
    row = published(op.intrinsic, processor)
    if (op.intrinsic, processor) in NOT_PUBLISHED:
        assert row is None
        return
    assert row is not None
    assert (*op.shape_mnk, op.blocks, op.wave) == (*row["mnk"], row["blocks"], row["wave"])
    for own, text in ((op.layout_a, row["A"]), (op.layout_b, row["B"]), (op.layout_c, row["C"])):
        assert indices(own) == indices(parse(text))
        assert str(own) == text
    registers = [type_.bits // 32 if type_.bits > 32 else 1 for type_ in op.row.carriers]
    assert registers == row["gprs"]
    assert op.row.instructions[processor] == row["inst"]
    cycles = COST_ELSEWHERE.get((op.intrinsic, processor), row["cycles"])
    if processor == "gfx90a" or "gfx90a" not in row["arch"]:
        assert op.row.cycles[processor] == cycles


def test_llvms_dense_mfma_are_the_rows_and_on_the_same_chips() -> None:
    ours: dict[str, set[str]] = {}
    for row in TABLE.rows:
        ours.setdefault(row.intrinsic, set()).update(row.instructions)
    table = intrinsics._table().splitlines()[1:]
    theirs = {
        found.name: set(found.archs)
        for line in table
        if line.startswith("llvm.amdgcn.mfma.") and not line.startswith("llvm.amdgcn.mfma.scale")
        for found in [intrinsics.Intrinsic(line)]
    }
    assert ours == theirs


@pytest.mark.parametrize("row", TABLE.rows, ids=lambda r: r.title)
def test_carriers_are_the_intrinsics_signature(row: cdna3_mfma.MmaRow) -> None:
    line = next(x for x in intrinsics._table().splitlines() if x.startswith(row.intrinsic + "\t"))
    a, b, c = (type_.text for type_ in row.carriers)
    assert intrinsics.Intrinsic(line).signature == f"{c} ({a}, {b}, {c}, i32, i32, i32)"


def test_f64_4x4x4_has_blocks_below_k_in_the_lanes() -> None:
    op = find_mfma(4, 4, 4, "f64", "f64")
    for lane in range(64):
        i, block, high = lane % 4, lane // 4 % 4, lane // 16
        assert op.layout_a((lane, 0)) == i + 4 * high + 16 * block  # row i, k = high
        assert op.layout_c((lane, 0)) == high + 4 * i + 16 * block  # row high, column i


def test_rates_follow_from_cycles_and_flops() -> None:
    def rate(*args: Any, on: str, **more: Any) -> int:
        row = find_mfma(*args, **more).row
        return 4 * row.flops // row.cycles[on]  # per compute unit and clock

    assert rate(32, 32, 8, "f16", "f16", on="gfx90a") == 1024
    assert rate(32, 32, 8, "f16", "f16", on="gfx942") == 2048
    assert rate(16, 16, 32, "f16", "f16", on="gfx950") == 4096
    assert rate(16, 16, 4, "f64", "f64", on="gfx942") == 256
    assert rate(16, 16, 4, "f64", "f64", on="gfx950") == 128
    assert rate(32, 32, 4, "bf16", "bf16", on="gfx90a", blocks=2) == 1024
    assert rate(16, 16, 64, "i8", "i8", on="gfx950") == 8192


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("processor", CHIPS)
def test_an_atom_is_accepted_on_its_targets_and_refused_by_name_elsewhere(op: Mfma, processor: str) -> None:
    target = Target.parse(processor)
    if processor in op.targets:
        op.check_target(target)
        return
    with pytest.raises(TargetError) as caught:
        op.check_target(target)
    text = str(caught.value)
    assert f"{op.name} is not on {processor}" in text
    if processor in ("gfx90a", "gfx942", "gfx950"):
        # What the fix offers exists there.
        legal = [r for r in TABLE.rows if processor in r.instructions]
        same_types = [r for r in legal if r.elements == op.row.elements]
        assert all(r.shape_text in text for r in same_types)
        assert same_types or any(r.types_text in text for r in legal)
    else:
        assert f"{processor} has no cdna3.mfma; targets with it: gfx90a, gfx942, gfx950" in text


@pytest.mark.parametrize("a", [*FNUZ, *OCP])
@pytest.mark.parametrize("b", [*FNUZ, *OCP])
def test_8_bit_floats_have_the_flavour_of_the_chip(a: str, b: str) -> None:
    for processor, flavour in (("gfx942", FNUZ), ("gfx950", OCP), ("gfx90a", ())):
        target = Target.parse(processor)
        if a in flavour and b in flavour:
            assert find_mfma(16, 16, 32, a, b, "f32", target).intrinsic.startswith("llvm.amdgcn.mfma.f32.16x16x32.")
        else:
            with pytest.raises((AtomError, TargetError)):
                find_mfma(16, 16, 32, a, b, "f32", target)


def test_ocp_data_on_fnuz_hardware_is_refused_with_the_fnuz_rows() -> None:
    with pytest.raises(TargetError, match=r"16x16x32 on gfx942: .*\(f8E4M3FNUZ, f8E4M3FNUZ\) -> f32"):
        find_mfma(16, 16, 32, "f8E4M3FN", "f8E4M3FN", "f32", Target.parse("gfx942"))


def test_each_fp8_pair_names_its_own_intrinsic() -> None:
    kinds = {"f8E4M3FNUZ": "fp8", "f8E5M2FNUZ": "bf8", "f8E4M3FN": "fp8", "f8E5M2": "bf8"}
    found = [op for op in OPS if op.row.elements[0] in kinds]
    assert len(found) == 16
    for op in found:
        a, b, _ = op.row.elements
        assert op.intrinsic.endswith(f".{kinds[a]}.{kinds[b]}")


def test_32x32x4_bf16_is_one_block_and_its_two_block_neighbour_says_so() -> None:
    plain = find_mfma(32, 32, 4, "bf16", "bf16")
    wide = find_mfma(32, 32, 4, "bf16", "bf16", blocks=2)
    assert (plain.targets, plain.blocks) == (("gfx90a",), 1)
    assert (wide.targets, wide.blocks) == (("gfx90a", "gfx942", "gfx950"), 2)
    assert str(wide) == "!fly_rocdl.cdna3.mfma<32x32x4, (bf16, bf16) -> f32, blocks = 2>"
    with pytest.raises(TargetError, match=r"on gfx942: 32x32x8, 16x16x16, 32x32x4 \(2 blocks\)"):
        find_mfma(32, 32, 4, "bf16", "bf16", target=Target.parse("gfx942"))


def test_the_accumulator_follows_from_the_inputs() -> None:
    assert str(find_mfma(16, 16, 32, t.I8, t.I8).types[3]) == "i32"
    assert str(find_mfma(16, 16, 4, t.F64, t.F64).types[3]) == "f64"
    assert str(find_mfma(16, 16, 16, t.F16, t.F16).types[3]) == "f32"


def test_an_unknown_shape_is_an_error_that_lists_the_legal_ones_of_the_target() -> None:
    with pytest.raises(AtomError, match=r"has no 16x16x24, \(f16, f16\) -> f32") as caught:
        find_mfma(16, 16, 24, "f16", "f16", target=Target.parse("gfx942"))
    assert "on gfx942: 32x32x8, 16x16x16, 32x32x4 (2 blocks)" in str(caught.value)
    assert "16x16x32" not in str(caught.value)


def test_unknown_types_are_an_error_that_lists_types_and_shapes() -> None:
    with pytest.raises(
        AtomError, match=r"(?s)has no 8x8x8, \(f4E2M1FN, f4E2M1FN\) -> f32.*\(f64, f64\) -> f64: 16x16x4"
    ):
        find_mfma(8, 8, 8, "f4E2M1FN", "f4E2M1FN")


def test_xf32_data_is_held_as_f32() -> None:
    op = find_mfma(16, 16, 8, "xf32", "xf32")
    assert op.types == (t.F32, t.F32, t.F32, t.F32)
    assert op.targets == ("gfx942",)
    assert op.params == "16x16x8, (xf32, xf32) -> f32"


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_spelling_reads_back_as_the_same_atom(op: Mfma) -> None:
    mnemonic, _, rest = str(op)[1:].partition("<")
    again = parse_payload(mnemonic, rest[:-1])
    assert again == op and hash(again) == hash(op) and str(again) == str(op)
    blocks = f"{op.row.shape_text}, {op.row.types_text}, blocks = {op.blocks}"
    assert parse_payload(mnemonic, blocks) == op


def test_different_rows_are_different_atoms() -> None:
    assert len(set(OPS)) == len(OPS)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ("16x16, (f16, f16) -> f32", ParseError, "write !fly_rocdl.cdna3.mfma<16x16x16"),
        ("16x16x16, (f16) -> f32", ParseError, "cannot read"),
        ("", ParseError, "cannot read"),
        ("16x16x16, (f16, f16) -> f32, cbsz = 1", ParseError, "after the first parameters: blocks = "),
        ("32x32x4, (bf16, bf16) -> f32, blocks = two", AtomError, "write a number"),
        ("16x16x16, (f16, f16) -> f32, blocks = 3", AtomError, "has no 16x16x16, .*blocks = 3"),
        ("16x16x16, (f16, bf16) -> f32", AtomError, r"16x16x16: .*\(f16, f16\) -> f32"),
    ],
)
def test_broken_spellings_are_errors(params: str, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        parse_payload("fly_rocdl.cdna3.mfma", params)


def test_a_row_describes_itself_for_tools() -> None:
    got = find_mfma(32, 32, 8, "f16", "f16").describe()
    assert got["atom"] == "cdna3.mfma<32x32x8, (f16, f16) -> f32>"
    assert got["targets"] == ["gfx90a", "gfx942", "gfx950"]
    assert got["intrinsic"] == "llvm.amdgcn.mfma.f32.32x32x8f16"
    assert (got["shape_mnk"], got["blocks"], got["wave"]) == ([32, 32, 8], 1, 64)
    assert (got["replication_a"], got["replication_b"], got["state"]) == (1, 1, [])
    assert got["thr_val_layout_c"] == "((32,2),(4,4)):((32,4),(1,8))"
    assert got["cycles"] == 64 and got["cycles_by_target"] == {"gfx90a": 64, "gfx942": 32, "gfx950": 32}
    assert got["checked_on_hardware"] is False
    assert Layout(64, 1) == find_mfma(32, 32, 8, "f16", "f16").thr_layout
