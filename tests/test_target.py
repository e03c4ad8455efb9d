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


# Target, wave size, vector and scalar registers, bytes of LDS, work items, waves per SIMD.
# Source: LLVM 22.1's comment "; Occupancy" in the assembly of kernels that use so much.
OCCUPANCY = [
    ("gfx90a", 64, 5, 14, 0, 256, 8), ("gfx90a", 64, 201, 14, 0, 64, 2), ("gfx90a", 64, 21, 14, 40000, 256, 1),
    ("gfx90a", 64, 21, 14, 33000, 1024, 4), ("gfx90a", 64, 5, 14, 9000, 96, 4), ("gfx942", 64, 61, 12, 20000, 256, 3),
    ("gfx950", 64, 71, 12, 0, 256, 7), ("gfx950", 64, 21, 12, 40000, 256, 4), ("gfx1100", 32, 101, 6, 0, 256, 12),
    ("gfx1100", 32, 22, 6, 40000, 256, 6), ("gfx1100", 64, 121, 6, 0, 64, 5), ("gfx1100", 64, 22, 6, 33000, 1024, 12),
    ("gfx1200", 32, 201, 6, 0, 64, 7), ("gfx1201", 64, 101, 6, 0, 256, 7), ("gfx1201", 64, 5, 6, 9000, 96, 7),
    ("gfx1250", 32, 121, 6, 0, 64, 8), ("gfx1250", 32, 5, 6, 9000, 96, 12), ("gfx1250", 32, 41, 93, 0, 256, 16),
    ("gfx1250", 32, 21, 6, 1300, 64, 8),
]  # fmt: skip


@pytest.mark.parametrize("row", OCCUPANCY, ids=str)
def test_waves_per_simd_are_those_of_llvm(row: tuple[str, int, int, int, int, int, int]) -> None:
    name, wave, vgprs, sgprs, lds, size, waves = row
    assert Target.parse(name, wave).occupancy(vgprs, sgprs, lds, size).waves_per_simd == waves


def test_occupancy_says_what_limits_it() -> None:
    target = Target.parse("gfx942")
    for used, limit in (
        ((256, 10, 0, 256), "vgprs"), ((10, 104, 0, 256), "sgprs"), ((10, 10, 60000, 256), "lds"),
        ((10, 10, 0, 256), "waves"),
    ):  # fmt: skip
        found = target.occupancy(*used)
        assert found.limited_by == limit and found.waves_per_simd == found.limits[limit] == min(found.limits.values())
    assert target.occupancy(128, 10, 20000, 256).workgroups == 3
    assert Target.parse("gfx1250").occupancy(21, 6, 1300, 64).limited_by == "workgroups"
    # LDS is given out in whole granules.
    assert target.occupancy(8, 10, 5000, 64).workgroups == 65536 // 5120
    assert "lds" not in target.occupancy(128, 10, 20000).limits
