"""``flyllvm atoms``: selection, tables, drawings and JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.rows import RowMma
from flyllvm.cli.main import main
from flyllvm.target import CHIPS

NAME = "cdna3.mfma<16x16x16, (f16, f16) -> f32>"


def run(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["atoms", *args]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out


def fails(capsys: pytest.CaptureFixture[str], *args: str) -> str:
    assert main(["atoms", *args]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


UNITS = "cycles, flops and bytes (read and written) of one wave, of copies bytes of one thread"


def test_without_arguments_every_row_is_listed(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys).splitlines()
    names = [op.name for op in all_rows()]
    assert [line for line in lines[1:] if any(line.startswith(name + " ") for name in names)] == lines[
        1 : 1 + len(names)
    ]
    assert lines[-1] == f"{len(names)} rows, {len(names)} not checked on hardware; " + UNITS


@pytest.mark.parametrize("target", CHIPS)
def test_json_of_a_target_is_one_list_of_its_rows(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(run(capsys, target, "--json"))
    assert [row["atom"] for row in rows] == [op.name for op in all_rows() if target in op.targets]
    assert all(target in row["targets"] for row in rows)


def test_json_has_the_fields_of_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(run(capsys, "--json"))
    common = {"atom", "targets", "intrinsic", "wave", "state", "cycles", "checked_on_hardware"}
    mma = {"shape_mnk", "blocks", "replication_a", "replication_b"} | {f"thr_val_layout_{x}" for x in "abc"}
    copy = {f"thr_bit_layout_{x}" for x in ("src", "dst", "ref")}
    for row in rows:
        assert common <= set(row)
        assert mma <= set(row) or copy <= set(row)
        assert row["intrinsic"] is None or row["intrinsic"].startswith("llvm.")
        assert row["cycles"] is None or isinstance(row["cycles"], int)


@pytest.mark.parametrize("spelling", [NAME, f"fly_rocdl.{NAME}", f"!fly_rocdl.{NAME}"])
def test_one_atom_is_drawn_lane_by_lane(spelling: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, spelling)
    assert text.startswith(f"!fly_rocdl.{NAME}\n")
    assert "gfx942        v_mfma_f32_16x16x16_f16, 16 cycles" in text
    a, b, c = (part.splitlines() for part in text.split("(rows ")[1:])
    assert a[0].endswith("((16,4),4):((1,64),16)") and c[0].endswith("((16,4),4):((16,4),1)")
    # A[1][4] is value 0 of lane 17; C[5][2] is value 1 of lane 18.
    assert a[2 + 1].split()[1 + 4] == "T17V0"
    assert c[2 + 5].split()[1 + 2] == "T18V1"
    assert len(a) >= 18 and len(b) >= 18


@pytest.mark.parametrize("family", sorted({op.mnemonic for op in all_rows()}))
def test_one_atom_of_every_family_is_drawn(family: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    ops = [op for op in all_rows() if op.mnemonic == family]
    for op in (ops[0], ops[-1]):
        text = run(capsys, op.name, "--svg", str(tmp_path / "x.svg"))
        assert op.name in text and (tmp_path / "x.svg").read_text().startswith("<svg")
        if isinstance(op, RowMma) and op.row.packing == 2:
            assert "A (rows m, packed columns k)" in text


def test_a_transposing_load_shows_where_its_elements_go(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "cdna4.lds_read_trans<16, 64>")
    source, destination = text.split("destination")
    assert re.search(r"^ +1 +T0V1 +T1V1 +T2V1", source, re.MULTILINE)
    assert re.search(r"^ +1 +T1V0 +T5V0 +T9V0 +T13V0 +T1V1", destination, re.MULTILINE)


def test_blocks_are_drawn_one_after_another(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "cdna3.mfma<4x4x4, (f64, f64) -> f64>")
    assert [text.count(f"block {b}\n") for b in range(5)] == [3, 3, 3, 3, 0]


def test_a_copy_shows_its_state(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys, "cdna3.buffer_copy_lds<128>")
    assert "soffset: i32 in elements, default 0" in text
    assert "imm_offset: i32 in bytes, a compile-time constant, default 0" in text


def test_every_row_has_its_cost(capsys: pytest.CaptureFixture[str]) -> None:
    rows = {row["atom"]: row for row in json.loads(run(capsys, "--json"))}
    for row in rows.values():
        assert row["bytes"] > 0
        if "shape_mnk" in row:
            m, n, k = row["shape_mnk"]
            assert row["flops"] == 2 * m * n * k * row["blocks"]
    assert rows[NAME]["bytes"] == 64 * (8 + 8 + 16 + 16) and rows[NAME]["cycles_by_target"]["gfx942"] == 16
    assert "cost          8192 flops, 3072 bytes a wave" in run(capsys, NAME)


def test_a_mnemonic_selects_its_family(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("cdna3.buffer_copy", "fly_rocdl.cdna3.buffer_copy"):
        rows = json.loads(run(capsys, name, "--json"))
        assert [row["bit_size"] for row in rows] == [8, 16, 32, 64, 96, 128]


def test_an_svg_shows_every_cell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "atom.svg"
    run(capsys, NAME, "--svg", str(path))
    svg = path.read_text(encoding="utf-8")
    assert svg.startswith("<svg") and svg.rstrip().endswith("</svg>")
    assert svg.count(">T18V1<") == 3  # in A, B and C


def test_svg_needs_one_atom(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "name it:" in fails(capsys, "gfx942", "--svg", str(tmp_path / "x.svg"))
    assert not (tmp_path / "x.svg").exists()


@pytest.mark.parametrize(
    ("what", "fix"),
    [
        ("gfx999", "use one of: gfx90a, gfx942"),
        ("cdna9", "targets: gfx90a, .*families: .*cdna3.mfma"),
        ("cdna9.mfma<16x16x16, (f16, f16) -> f32>", "families: .*cdna3.mfma"),
        ("cdna3.mfma<16x16x16, (f16, f16)", "quote the whole name"),
        ("cdna3.mfma<16x16x17, (f16, f16) -> f32>", r"\(f16, f16\) -> f32: 32x32x8"),
        ("cdna3.buffer_copy<256>", "use one of: 8, 16, 32, 64, 96, 128 bits"),
    ],
)
def test_an_unknown_name_ends_with_status_2_and_the_legal_set(
    what: str, fix: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert re.search(fix, fails(capsys, what))


def test_errors_are_json_where_json_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    body = json.loads(fails(capsys, "gfx999", "--json"))
    assert body["error"]["type"] == "TargetError"
