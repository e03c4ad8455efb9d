"""Copies: widths, address spaces, targets and cache policies that are refused, and why."""

from __future__ import annotations

import pytest

from flyllvm.atoms.rocdl import cache_policy
from flyllvm.atoms.rocdl.cache_policy import CachePolicy
from flyllvm.atoms.rocdl.cdna3_buffer_copy import BufferCopy
from flyllvm.atoms.rocdl.cdna3_buffer_copy_lds import BufferCopyLds
from flyllvm.atoms.universal import UniversalCopy, UniversalFma
from flyllvm.errors import AtomError, ParseError, StateError, TargetError
from flyllvm.ir import lltype as ll, types as t
from flyllvm.layout import Swizzle
from flyllvm.target import CHIPS, Target
from tests.atoms.emitter import Recorder, operand

GFX942, GFX950, GFX1200 = (Target.parse(name) for name in ("gfx942", "gfx950", "gfx1200"))


def ptr(space: str, swizzle: Swizzle | None = None) -> t.PtrType:
    return t.PtrType(t.F16, space, None, swizzle)


@pytest.mark.parametrize("bits", [0, 4, 12, 136, 256])
def test_a_universal_copy_moves_whole_bytes_up_to_128_bits(bits: int) -> None:
    with pytest.raises(AtomError, match="several atoms make a wider copy"):
        UniversalCopy(bits)


def test_a_universal_copy_has_no_buffer_operand() -> None:
    UniversalCopy(32).check_operands(ptr("global"), ptr("shared"))
    with pytest.raises(AtomError, match=r"use fly_rocdl\.cdna3\.buffer_copy<32>"):
        UniversalCopy(32).check_operands(ptr("buffer_desc"), ptr("register"))


@pytest.mark.parametrize("elem", ["i32", "f8E5M2", "xf32"])
def test_a_universal_fma_is_for_floats_with_arithmetic(elem: str) -> None:
    with pytest.raises(AtomError, match="use one of: f16, bf16, f32, f64"):
        UniversalFma(elem)


def test_universal_atoms_are_on_every_target() -> None:
    for name in CHIPS:
        UniversalCopy(128).check_target(Target.parse(name))
        BufferCopy(128).check_target(Target.parse(name))


@pytest.mark.parametrize("bits", [24, 48, 256])
def test_a_buffer_copy_of_another_width_is_refused_with_the_widths(bits: int) -> None:
    with pytest.raises(AtomError, match="use one of: 8, 16, 32, 64, 96, 128 bits"):
        BufferCopy(bits)


@pytest.mark.parametrize(
    ("src", "dst"),
    [("global", "register"), ("buffer_desc", "shared"), ("register", "register"), ("buffer_desc", "buffer_desc")],
)
def test_a_buffer_copy_has_one_buffer_and_one_register_side(src: str, dst: str) -> None:
    BufferCopy(32).check_operands(ptr("buffer_desc"), ptr("register"))
    BufferCopy(32).check_operands(ptr("register"), ptr("buffer_desc"))
    with pytest.raises(AtomError, match="one side is behind a buffer descriptor"):
        BufferCopy(32).check_operands(ptr(src), ptr(dst))


@pytest.mark.parametrize("bits", [24, 64, 256])
def test_a_copy_to_lds_of_another_width_is_refused(bits: int) -> None:
    with pytest.raises(AtomError, match="use 8, 16 or 32 bits; 96 or 128 on gfx950"):
        BufferCopyLds(bits)


@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("bits", [8, 16, 32, 96, 128])
def test_copies_to_lds_are_on_the_chips_that_have_them(bits: int, name: str) -> None:
    op, target = BufferCopyLds(bits), Target.parse(name)
    if name in {"gfx950"} or (bits <= 32 and name in {"gfx90a", "gfx942"}):
        op.check_target(target)
        return
    offer = r"buffer_copy_lds<32>" if name in {"gfx90a", "gfx942"} else "copy through registers"
    with pytest.raises(TargetError, match=offer) as caught:
        op.check_target(target)
    assert f"cdna3.buffer_copy_lds<{bits}> is not on {name}" in str(caught.value)


@pytest.mark.parametrize("bits", [8, 16])
def test_narrow_copies_to_lds_need_dword_places(bits: int) -> None:
    elem = t.I8 if bits == 8 else t.F16
    far = operand(elem, "buffer_desc", "r", offset="o")
    em = Recorder()
    state = em.struct_of(em.const(ll.I32, 0), em.const(ll.I32, 0))
    BufferCopyLds(bits).emit_atom_call(em, state, far, operand(elem, "shared", "lds", align=4), None)
    assert f"i32 {bits // 8}, i32 %v1, i32 0, i32 0, i32 0)" in em.text()
    with pytest.raises(AtomError, match="lay the lanes' places in LDS out 4 bytes apart"):
        BufferCopyLds(bits).emit_atom_call(em, state, far, operand(elem, "shared", "lds", align=bits // 8), None)


def test_a_copy_to_lds_goes_from_a_buffer_to_unswizzled_lds() -> None:
    op = BufferCopyLds(32)
    op.check_operands(ptr("buffer_desc"), ptr("shared"))
    with pytest.raises(AtomError, match="the destination in LDS"):
        op.check_operands(ptr("global"), ptr("shared"))
    with pytest.raises(AtomError, match="apply the swizzle to the source coordinates"):
        op.check_operands(ptr("buffer_desc"), ptr("shared", Swizzle(3, 3, 3)))


def test_the_state_of_copies_is_named_with_units() -> None:
    assert [repr(f) for f in BufferCopyLds.state] == [
        "soffset: i32 (in elements, default 0)",
        "imm_offset: i32 (constant, in bytes, default 0)",
    ]
    with pytest.raises(StateError, match=r"(?s)no state field 'imm_offset'.*soffset: i32"):
        BufferCopy.state.check_value("imm_offset", t.I32)


# --- cache policy ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("policy", "target", "bits"),
    [
        ("nt", "gfx942", 2), ("sc0|sc1", "gfx950", 17), ("glc|scc", "gfx90a", 17), ("glc | dlc", "gfx1100", 5),
        ("nt|scope_sys", "gfx1200", 25), ("nv", "gfx1250", 32), (0, "gfx942", 0), (2, "gfx942", 2),
        ("19", "gfx950", 19),
    ],
)  # fmt: skip
def test_a_cache_policy_is_bits_of_the_chip(policy: str | int, target: str, bits: int) -> None:
    assert CachePolicy(policy).bits(Target.parse(target), None) == bits


@pytest.mark.parametrize(
    ("policy", "target", "message"),
    [
        ("glc", "gfx942", r"(?s)glc has no meaning on gfx942.*sc0 \(1\) \| nt \(2\) \| sc1 \(16\)"),
        ("nv", "gfx1200", "nv has no meaning on gfx1200"),
        ("nt|ht", "gfx1200", "ht sets one field twice"),
        ("sc0|sc0", "gfx942", "sc0 sets one field twice"),
        (8, "gfx942", r"bits 8 have no meaning on gfx942"),
        (4, "gfx90a", r"bits 4 have no meaning on gfx90a"),
        (64, "gfx1250", r"bits 64 have no meaning on gfx1250"),
    ],
)
def test_a_policy_without_meaning_on_the_chip_is_refused(policy: str | int, target: str, message: str) -> None:
    with pytest.raises(AtomError, match=message):
        CachePolicy(policy).bits(Target.parse(target), None)
    with pytest.raises(AtomError, match=message):
        BufferCopy(32, policy).check_target(Target.parse(target))


def test_a_policy_of_one_direction_is_refused_in_the_other() -> None:
    for policy in ("wb", "nt_wb", "7"):
        CachePolicy(policy).bits(GFX1200, True)
        if policy != "wb":
            assert CachePolicy(policy).bits(GFX1200, None) == 7
    with pytest.raises(AtomError, match="wb is not for a load"):
        CachePolicy("wb").bits(GFX1200, False)
    with pytest.raises(AtomError, match="lu is not for a store"):
        CachePolicy("lu").bits(GFX1200, True)
    with pytest.raises(AtomError, match="hint 7 is for stores only"):
        CachePolicy(7).bits(GFX1200, False)


@pytest.mark.parametrize("policy", ["", "nt|", "-1", "nt,sc0"])
def test_a_broken_policy_is_refused(policy: str) -> None:
    with pytest.raises(ParseError, match="write a number, or names such as nt"):
        CachePolicy(policy)


def test_policies_are_part_of_the_spelling_unless_default() -> None:
    assert str(BufferCopy(128)) == "!fly_rocdl.cdna3.buffer_copy<128>"
    assert str(BufferCopy(128, 0)) == str(BufferCopy(128))
    assert str(BufferCopy(128, 2)) == "!fly_rocdl.cdna3.buffer_copy<128, cache = 2>"
    assert str(BufferCopyLds(32, "sc0 | nt")) == "!fly_rocdl.cdna3.buffer_copy_lds<32, cache = sc0|nt>"


def test_the_names_of_a_chip_are_listed() -> None:
    assert cache_policy.names(GFX942) == cache_policy.names(GFX950) == {"sc0": 1, "nt": 2, "sc1": 16}
