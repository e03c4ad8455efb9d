"""Targets read from files, and which device runs which code."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, strategies as st

from flyllvm.codeobject import TargetId, inspect, link, matches, mismatch
from flyllvm.codeobject.target_id import GENERIC, MACHINES, target_of
from flyllvm.errors import LinkError, TargetError
from flyllvm.target import CHIPS, Target
from tests.codeobject.images import object_bytes


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("vector_add_gfx90a", "gfx90a"),
        ("vector_add_gfx942", "gfx942"),
        ("vector_add_gfx942_modes", "gfx942:sramecc+:xnack-"),
        ("vector_add_generic", "gfx9-4-generic"),
        ("vector_add_gfx1100", "gfx1100"),
        ("gemm_gfx950", "gfx950"),
    ],
)
def test_targets_of_objects_are_read(name: str, target: str) -> None:
    assert str(inspect(object_bytes(name)).target) == target
    assert str(inspect(link(object_bytes(name))).target) == target


@pytest.mark.parametrize(
    ("flags", "target"),
    [(0x54C, "gfx942"), (0xE4C, "gfx942:sramecc+:xnack-"), (0xB4C, "gfx942:sramecc-:xnack+"), (0x36, "gfx1030")],
)
def test_flags_give_processor_and_features(flags: int, target: str) -> None:
    assert str(target_of(flags, None)) == str(target_of(flags, f"amdgcn-amd-amdhsa--{target}")) == target


def test_a_generic_target_has_a_version() -> None:
    assert inspect(object_bytes("vector_add_generic")).target.generic_version == 1


def test_every_chip_we_compile_for_is_known_by_its_number() -> None:
    assert {name: number for number, name in MACHINES.items()}.items() >= {
        c.name: c.elf_mach for c in CHIPS.values()
    }.items()
    assert len(set(MACHINES.values())) == len(MACHINES)
    assert set(GENERIC) <= set(MACHINES.values())


def test_an_unknown_number_needs_a_name_in_the_metadata() -> None:
    with pytest.raises(LinkError, match=r"(?s)processor number 0xfe is unknown.*compile for one of"):
        target_of(0xFE, None)
    assert str(target_of(0xFE, "amdgcn-amd-amdhsa--gfx9999")) == "gfx9999"


def test_header_and_metadata_must_agree_on_features() -> None:
    with pytest.raises(LinkError, match=r"header says gfx942:sramecc.:xnack-, the metadata says gfx942"):
        target_of(0xE4C, "amdgcn-amd-amdhsa--gfx942")
    with pytest.raises(LinkError, match=r"(?s)bad feature 'fast.'.*emit the object again"):
        target_of(0x54C, "amdgcn-amd-amdhsa--gfx942:fast+")


# code, device, words of the reason or "" where it runs
CASES = [
    ("gfx942", "gfx942:sramecc+:xnack-", ""),
    ("gfx942:xnack-", "gfx942:sramecc+:xnack-", ""),
    ("gfx942:sramecc+:xnack-", "gfx942:sramecc+:xnack-", ""),
    ("gfx942:xnack+", "gfx942:sramecc+:xnack-", "needs xnack on, the device has it off"),
    ("gfx942:sramecc-", "gfx942:sramecc+:xnack-", "needs sramecc off, the device has it on"),
    ("gfx942:xnack-", "gfx942", "needs xnack off, the device gfx942 does not say that it has xnack"),
    ("gfx90a", "gfx942:sramecc+:xnack-", "for gfx90a, the device is gfx942"),
    ("gfx9-4-generic", "gfx942:sramecc+:xnack-", ""),
    ("gfx9-4-generic", "gfx950:sramecc+:xnack-", ""),
    ("gfx9-4-generic:xnack+", "gfx950:sramecc+:xnack-", "needs xnack on"),
    ("gfx9-4-generic", "gfx90a", "for gfx9-4-generic .gfx942, gfx950., the device is gfx90a"),
    ("gfx942", "gfx9-4-generic", "for gfx942, the device is gfx9-4-generic"),
    ("gfx11-generic", "gfx1151", ""),
    ("gfx1100", "gfx1100", ""),
    ("gfx1200", "gfx1201", "for gfx1200, the device is gfx1201"),
]


@pytest.mark.parametrize(("code", "device", "why"), CASES)
def test_what_runs_where(code: str, device: str, why: str) -> None:
    reason = mismatch(code, device)
    assert matches(code, device) == (why == "") == (reason is None)
    if reason is not None:
        assert re.search(why, reason)


def test_targets_may_be_given_as_objects() -> None:
    assert matches(Target.parse("gfx942:xnack-"), TargetId.parse("gfx942:sramecc+:xnack-"))


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("gfx942:turbo+", "(?s)bad feature 'turbo.'.*features are sramecc"),
        ("gfx942:xnack", "bad feature 'xnack'"),
        ("gfx942:xnack+:xnack-", "bad feature 'xnack-'"),
        ("sm_90", "(?s)names no processor.*as in gfx942"),
    ],
)
def test_broken_target_ids_are_refused(text: str, match: str) -> None:
    with pytest.raises(TargetError, match=match):
        mismatch(text, "gfx942")


FEATURES = st.dictionaries(st.sampled_from(["sramecc", "xnack"]), st.sampled_from("+-"))


@given(st.sampled_from(sorted(set(MACHINES.values()))), FEATURES)
def test_text_round_trip(processor: str, features: dict[str, str]) -> None:
    text = ":".join([processor, *(k + v for k, v in sorted(features.items()))])
    assert str(TargetId.parse(text)) == str(TargetId.parse(f"amdgcn-amd-amdhsa--{text}")) == text


@given(FEATURES, FEATURES)
def test_a_code_object_runs_where_all_it_names_agrees(code: dict[str, str], device: dict[str, str]) -> None:
    def spell(features: dict[str, str]) -> str:
        return ":".join(["gfx942", *(k + v for k, v in features.items())])

    assert matches(spell(code), spell(device)) == all(device.get(k) == v for k, v in code.items())
