"""Every matrix row against the published register maps, and every published row against the tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.contract import indices
from flyllvm.atoms.rows import RowMma
from flyllvm.codegen import intrinsics
from flyllvm.layout import parse
from flyllvm.target import CHIPS

ORACLE = json.loads((Path(__file__).parents[1] / "oracles" / "matrix-layouts.json").read_text())["instructions"]
OPS = [op for op in all_rows() if isinstance(op, RowMma) and op.row.family != "cdna3.mfma"]
# The published table's names: of processors, and of the elements of scaled rows (both kinds of a width share a map).
PROCESSORS = {"gfx11": ("gfx1100",), "gfx1200": ("gfx1200", "gfx1201")}
WIDTHS = {"f8E4M3FN": "f8", "f8E5M2": "f8", "f6E2M3FN": "f6", "f6E3M2FN": "f6", "f4E2M1FN": "f4"}
# Rows in no published map: their layouts rest on the rule of the family and on the probes.
BY_RULE = {
    "gfx120x.wmma": {"i8", "i4"},
    "gfx120x.swmmac": {"i8", "i4"},
    "gfx1250.swmmac": {"f16", "bf16", "f8E4M3FN", "f8E5M2", "i8"},
    "gfx1250.wmma": {"f6E2M3FN", "f6E3M2FN", "f4E2M1FN"},
}


def key_of(row: dict[str, Any], processor: str) -> tuple[str, ...]:
    scaled = (row["a"], row["b"]) if ".scale." in row["intrinsic"] else ()
    return (row["intrinsic"], processor, str(row["wave"]), *scaled)


PUBLISHED = {
    key_of(row, processor): row
    for row in ORACLE
    for arch in row["arch"]
    for processor in PROCESSORS.get(arch, (arch,))
    if processor in CHIPS
}


def find(op: RowMma, processor: str) -> dict[str, Any] | None:
    """The published row of an atom: intrinsics without their type suffixes, block 16 as block 32."""
    name = op.intrinsic.replace(".scale16.", ".scale.")
    scaled = tuple(WIDTHS[e] for e in op.row.elements[:2]) if ".scale." in name else ()
    while name.count(".") > 2:
        if row := PUBLISHED.get((name, processor, str(op.row.wave), *scaled)):
            return row
        name = name.rpartition(".")[0]
    return None


def is_by_rule(op: RowMma) -> bool:
    a, _, acc = op.row.elements
    if op.row.family == "cdna3.smfmac" and op.targets == ("gfx950",):
        return op.shape_mnk[2] * op.shape_mnk[0] * element_bits(op) > 16 * 32 * 16  # twice the depth of gfx942
    if op.row.result != acc:
        return True
    return a in BY_RULE.get(op.row.family, ()) or (op.row.family, op.shape_mnk[2], acc) == ("gfx1250.wmma", 64, "f16")


def element_bits(op: RowMma) -> int:
    """Bits of an element of A."""
    return op.types[0].bits


PAIRS = [(op, p) for op in OPS for p in op.targets]


@pytest.mark.parametrize(("op", "processor"), PAIRS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_rows_equal_the_published_register_map(op: RowMma, processor: str) -> None:
    row = find(op, processor)
    if is_by_rule(op):
        assert row is None
        return
    assert row is not None
    assert (*op.shape_mnk, op.blocks, op.wave) == (*row["mnk"], row["blocks"], row["wave"])
    for own, text in ((op.layout_a, row["A"]), (op.layout_b, row["B"]), (op.layout_c, row["C"])):
        if text is not None:  # the map of a sparse A is not published
            assert indices(own) == indices(parse(text))
            assert str(own) == text
    registers = [type_.bits // 32 if type_.bits > 32 else 1 for type_ in op.row.carriers]
    assert [n for n, wanted in zip(registers, row["gprs"]) if wanted is not None] == [g for g in row["gprs"] if g]
    assert op.row.replication == (row.get("replicate_ab", 1),) * 2
    assert (op.row.slots == 2) == ("c_slots" in row)
    assert op.row.instructions[processor].replace("scale16", "scale") == row["inst"].partition("[")[0]
    assert op.row.cycles.get(processor) == row["cycles"]


@pytest.mark.parametrize("key", PUBLISHED, ids="-".join)
def test_every_published_row_is_in_a_table(key: tuple[str, ...]) -> None:
    held = {(op.intrinsic, p): op for op in all_rows() if isinstance(op, RowMma) for p in op.targets}
    name, processor, wave, *scaled = key
    found = [op for (intrinsic, p), op in held.items() if p == processor and f"{intrinsic}.".startswith(f"{name}.")]
    if scaled:
        found = [op for op in found if [WIDTHS[e] for e in op.row.elements[:2]] == scaled]
    assert any(op.wave == int(wave) for op in found)


FLAVOURED = {"f8E4M3FN", "f8E5M2", "f8E4M3FNUZ", "f8E5M2FNUZ"}


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_carriers_are_the_intrinsics_signature_on_exactly_these_targets(op: RowMma) -> None:
    known = intrinsics.lookup(op.intrinsic)
    assert known is not None
    a, b, c = (type_.text for type_ in op.row.carriers)
    arguments = known.signature.partition("(")[2].rstrip(")").split(", ")
    assert [text for i, text in enumerate(arguments) if i not in known.imms][:3] == [a, b, c]
    assert known.signature.startswith(op.row.result_carrier.text + " (")
    marks = {f"{p}:w64" if op.wave == 64 and len(CHIPS[p].waves) > 1 else p for p in op.targets}
    if set(op.row.elements) & FLAVOURED:  # one intrinsic for both flavours of 8-bit floats
        assert set(known.archs) >= marks
    else:
        assert set(known.archs) == marks


DENSE = ("llvm.amdgcn.mfma.", "llvm.amdgcn.wmma.", "llvm.amdgcn.smfmac.", "llvm.amdgcn.swmmac.")
# Forms of LLVM that are no row: `tied`, which keeps the unused halves of gfx11 accumulators; unscaled pairs of an 8-bit
# operand with a narrower one, whose K order is disputed; the sparse product whose bf16 result is in f32 registers.
LEFT_OUT = ("tied.", "wmma.f32.16x16x128.f8f6f4", "swmmac.bf16f32.")


def is_other_index(name: str) -> bool:
    """Whether a sparse WMMA has an index of another width than the instruction reads."""
    base, _, width = name.rpartition(".i")
    return ".swmmac." in name and width != ("64" if ".16x16x128." in base else "32")


def test_llvms_dense_and_scaled_instructions_are_all_rows() -> None:
    ours = {op.intrinsic for op in all_rows() if isinstance(op, RowMma)}
    lines = [line.partition("\t")[0] for line in intrinsics._table().splitlines()[1:]]
    theirs = [
        name
        for name in lines
        if name.startswith(DENSE) and not any(word in name for word in LEFT_OUT) and not is_other_index(name)
    ]
    assert sorted(set(theirs) - ours) == []
