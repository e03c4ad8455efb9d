"""Every (row, target) pair: accepted, or refused with what is legal there."""

from __future__ import annotations

import pytest

from flyllvm.atoms import all_rows
from flyllvm.atoms.base import Atom
from flyllvm.atoms.rows import RowMma
from flyllvm.errors import TargetError
from flyllvm.target import CHIPS, Target

OPS = list(all_rows())
TARGETS = [Target.parse(name, wave) for name, chip in CHIPS.items() for wave in chip.waves]


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_an_atom_is_accepted_on_its_targets_and_refused_by_name_elsewhere(op: Atom) -> None:
    for target in TARGETS:
        if target.processor in op.targets and op.wave in (None, target.wave_size):
            op.check_target(target)
            continue
        with pytest.raises(TargetError) as caught:
            op.check_target(target)
        text = str(caught.value)
        assert op.name in text and target.processor in text and caught.value.fix
        if target.processor in op.targets:
            assert f"waves of {op.wave} lanes" in text


@pytest.mark.parametrize("op", [op for op in OPS if isinstance(op, RowMma)], ids=lambda op: op.name)
def test_what_the_refusal_offers_exists_there(op: RowMma) -> None:
    for target in TARGETS:
        if target.processor in op.targets:
            continue
        with pytest.raises(TargetError) as caught:
            op.check_target(target)
        legal = [row for row in op.table.rows if target.processor in row.instructions]
        if legal:
            same = [row for row in legal if row.elements == op.row.elements]
            assert all(row.shape_text in str(caught.value) for row in same)
            assert same or any(row.types_text in str(caught.value) for row in legal)
        else:
            assert f"{target.processor} has no {op.row.family}; targets with it: " in str(caught.value)


@pytest.mark.parametrize("name", ["gfx1100", "gfx1200", "gfx1201"])
def test_the_other_wave_size_is_refused_with_the_spelling_for_it(name: str) -> None:
    seen = 0
    for op in OPS:
        if isinstance(op, RowMma) and name in op.targets:
            other = 96 - op.row.wave
            with pytest.raises(TargetError, match=f"needs waves of {op.wave} lanes") as caught:
                op.check_target(Target.parse(name, other))
            if op.table.other_wave(op.row, other) is not None:
                assert ("wave = 64" in (caught.value.fix or "")) == (other == 64)
            seen += 1
    assert seen >= 12
