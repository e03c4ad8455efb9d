"""Targets: the text form, the modes, and what is refused."""

from __future__ import annotations

import pytest

from flyllvm import Target, TargetError
from flyllvm.target import CHIPS


@pytest.mark.parametrize("name", CHIPS)
def test_every_chip_parses_and_prints_as_its_name(name: str) -> None:
    target = Target.parse(name)
    assert str(target) == target.processor == name
    assert target.wave_size == CHIPS[name].waves[0]


def test_features_print_in_one_order_whatever_was_written() -> None:
    one, other = Target.parse("gfx942:xnack-:sramecc+"), Target.parse("gfx942:sramecc+:xnack-")
    assert str(one) == "gfx942:sramecc+:xnack-"
    assert (one == other, hash(one) == hash(other)) == (True, True)


def test_a_feature_that_is_not_written_is_any() -> None:
    assert Target.parse("gfx942").features == {}
    assert Target.parse("gfx942") != Target.parse("gfx942:xnack-")


def test_the_feature_string_is_llvms() -> None:
    assert Target.parse("gfx942:sramecc+:xnack-").llvm_features == "+sramecc,-xnack"
    assert Target.parse("gfx1100", wave_size=64).llvm_features == "+wavefrontsize64"


def test_a_target_parses_to_itself() -> None:
    target = Target.parse("gfx1100")
    assert Target.parse(target) is target
    assert Target.parse(target, wave_size=64).wave_size == 64


@pytest.mark.parametrize(("name", "kib"), [("gfx90a", 64), ("gfx942", 64), ("gfx950", 160), ("gfx1250", 320)])
def test_lds_is_that_of_the_chip(name: str, kib: int) -> None:
    assert Target.parse(name).lds_bytes == kib * 1024


def test_no_two_chips_share_an_elf_number() -> None:
    assert len({chip.elf_mach for chip in CHIPS.values()}) == len(CHIPS)


@pytest.mark.parametrize(
    ("text", "wave_size", "fix"),
    [
        ("gfx000", None, "fix: use one of: gfx90a, gfx942,"),
        ("", None, "fix: use one of: gfx90a"),
        ("gfx942:xnack", None, r"fix: legal features: sramecc\+ / sramecc-, xnack\+ / xnack-"),
        ("gfx1100:xnack+", None, "fix: legal features: none"),
        ("gfx942:xnack+:xnack-", None, "fix: write each feature once"),
        ("gfx942", 32, "fix: wave size on gfx942: 64"),
        ("gfx1250", 64, "fix: wave size on gfx1250: 32"),
    ],
)
def test_what_a_chip_lacks_is_refused_with_the_legal_values(text: str, wave_size: int | None, fix: str) -> None:
    with pytest.raises(TargetError, match=fix):
        Target.parse(text, wave_size)


def test_a_target_is_text() -> None:
    with pytest.raises(TargetError, match="a target is text such as 'gfx942', got 942"):
        Target.parse(942)  # type: ignore[arg-type]
