"""docs/atoms.md is what the tables say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from flyllvm.atoms import all_families, all_rows

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_atom_docs", ROOT / "scripts" / "make_atom_docs.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_is_current(maker: ModuleType) -> None:
    assert maker.PAGE.read_text(encoding="utf-8") == maker.page(), "run python scripts/make_atom_docs.py"


def test_every_family_has_a_section_and_every_row_its_types() -> None:
    text = (ROOT / "docs" / "atoms.md").read_text(encoding="utf-8")
    assert all(f"\n## {mnemonic.partition('.')[2]}\n" in text for mnemonic in all_families())
    for op in all_rows():
        row = getattr(op, "row", None)
        assert (row.types_text if hasattr(row, "types_text") else op.params) in text


def test_a_changed_table_changes_the_page(maker: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    from flyllvm.atoms.rocdl import cdna3_mfma

    monkeypatch.setattr(cdna3_mfma, "atoms", lambda: [cdna3_mfma.Mfma(cdna3_mfma.TABLE.rows[0])])
    assert maker.page() != maker.PAGE.read_text(encoding="utf-8")
