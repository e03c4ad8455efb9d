"""Families load on demand, and every spelling reads back as the atom it names."""

from __future__ import annotations

import subprocess
import sys

import pytest

from flyllvm.atoms import all_families, all_rows
from flyllvm.atoms.rocdl.cdna3_buffer_copy import BufferCopy
from flyllvm.atoms.rocdl.cdna3_buffer_copy_lds import BufferCopyLds
from flyllvm.atoms.spelling import split_params
from flyllvm.errors import AtomError, FlyError, ParseError
from flyllvm.ir.protocols import parse_payload
from flyllvm.target import CHIPS

ROWS = list(all_rows())


def read(text: str) -> object:
    mnemonic, _, rest = text[1:].partition("<")
    return parse_payload(mnemonic, rest[:-1])


@pytest.mark.parametrize("op", [*ROWS, BufferCopy(64, "nt|sc0"), BufferCopy(32, 3), BufferCopyLds(128, "nt")], ids=str)
def test_every_spelling_reads_back_as_the_same_atom(op: object) -> None:
    again = read(str(op))
    assert again == op and type(again) is type(op) and str(again) == str(op)


def test_every_family_has_rows_and_every_row_a_family() -> None:
    assert {op.mnemonic for op in ROWS} == set(all_families())


def test_names_are_unique_and_targets_known() -> None:
    assert len({op.name for op in ROWS}) == len(ROWS)
    assert all(op.targets and set(op.targets) <= set(CHIPS) for op in ROWS)


@pytest.mark.parametrize(
    "text",
    [
        "!fly.universal_copy<>", "!fly.universal_copy<x>", "!fly.universal_copy<32, cache = 1>",
        "!fly.universal_fma<1x1x2, (f32, f32) -> f32>", "!fly.universal_fma<1x1x1, (f16, f16) -> f32>",
        "!fly_rocdl.cdna3.buffer_copy<>", "!fly_rocdl.cdna3.buffer_copy<32, nt>",
        "!fly_rocdl.cdna3.buffer_copy<32, cache = nt, cache = nt>", "!fly_rocdl.cdna3.buffer_copy_lds<four>",
    ],
)  # fmt: skip
def test_a_broken_spelling_is_an_error_with_the_right_form(text: str) -> None:
    with pytest.raises(FlyError) as caught:
        read(text)
    assert isinstance(caught.value, (AtomError, ParseError)) and caught.value.fix


def test_an_unknown_mnemonic_is_an_error() -> None:
    with pytest.raises(ParseError, match=r"(?s)unknown atom operation !fly_rocdl\.cdna9\.mfma") as caught:
        parse_payload("fly_rocdl.cdna9.mfma", "")
    assert all(mnemonic in str(caught.value) for mnemonic in all_families())


@pytest.mark.parametrize(
    ("text", "parts"),
    [("", []), ("1", ["1"]), ("a, (b, c) -> d, e<f, g>", ["a", "(b, c) -> d", "e<f, g>"]), (" a ,b ", ["a", "b"])],
)
def test_parameters_are_split_outside_brackets(text: str, parts: list[str]) -> None:
    assert split_params(text) == parts


def loaded(statement: str) -> set[str]:
    code = f"import sys\n{statement}\nprint(*[m for m in sys.modules if m.startswith('flyllvm.')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_importing_the_atoms_loads_no_family() -> None:
    modules = loaded("import flyllvm.atoms.rocdl")
    assert not modules & set(all_families().values())


def test_a_mnemonic_loads_its_own_family_only() -> None:
    modules = loaded(
        "import flyllvm.atoms\nfrom flyllvm.ir.protocols import parse_payload\n"
        "parse_payload('fly_rocdl.cdna3.mfma', '16x16x16, (f16, f16) -> f32')"
    )
    assert modules & set(all_families().values()) == {"flyllvm.atoms.rocdl.cdna3_mfma"}
