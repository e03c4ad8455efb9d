"""Relocations: every kind writes its formula, fits its field, and is refused where the result would be wrong."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st

from flyllvm.codeobject import link, relocation as rel
from flyllvm.codeobject.elf import RELA, SHT_RELA, ElfFile
from flyllvm.codeobject.elf_reader import read_elf
from flyllvm.errors import LinkError
from tests.codeobject.objects import ABS, ALLOC, EXEC, NOBITS, WRITE, ObjectFile

CODE_BYTES, DATA_BYTES = 64, 64


def module(*, default: bool = False) -> tuple[ObjectFile, int, int]:
    """Code, data and a symbol ``there`` 16 bytes into the data."""
    obj = ObjectFile()
    text = obj.section(".text", bytes(CODE_BYTES), flags=ALLOC | EXEC, align=256)
    data = obj.section(".data", bytes(DATA_BYTES), flags=ALLOC | WRITE, align=16)
    obj.symbol("there", data, 16, size=4, visibility=0 if default else 3)
    return obj, text, data


def section(elf: ElfFile, name: str) -> tuple[int, bytes]:
    found = next(s for s in elf.sections if s.name == name)
    return found.addr, elf.content(found)


def dynamic_relocations(elf: ElfFile) -> list[tuple[int, int, int, int]]:
    table = elf.find(SHT_RELA)
    return [] if table is None else list(elf.relocations(table))


@pytest.mark.parametrize(
    ("kind", "width", "shift"),
    [(rel.REL32, 4, 0), (rel.REL64, 8, 0), (rel.REL32_LO, 4, 0), (rel.REL32_HI, 4, 32)],
)
@pytest.mark.parametrize("addend", [0, 4, -5000])
def test_pc_relative_kinds_write_s_plus_a_minus_p(kind: int, width: int, shift: int, addend: int) -> None:
    obj, text, _ = module()
    obj.relocation(text, 8, kind, "there", addend)
    elf = read_elf(link(obj.build()))
    (code, body), (data, _) = section(elf, ".text"), section(elf, ".data")
    distance = data + 16 + addend - (code + 8)
    assert body[8 : 8 + width] == ((distance & (1 << 64) - 1) >> shift).to_bytes(8, "little")[:width]
    assert body[:8] == bytes(8) and body[8 + width :] == bytes(CODE_BYTES - 8 - width)


@pytest.mark.parametrize(("kind", "shift"), [(rel.GOTPCREL, 0), (rel.GOTPCREL32_LO, 0), (rel.GOTPCREL32_HI, 32)])
@pytest.mark.parametrize("default", [False, True])
def test_got_kinds_point_to_a_slot_that_the_loader_fills(kind: int, shift: int, default: bool) -> None:
    obj, text, _ = module(default=default)
    obj.relocation(text, 8, kind, "there", 4)
    elf = read_elf(link(obj.build()))
    (code, body), (data, _), (got, slots) = section(elf, ".text"), section(elf, ".data"), section(elf, ".got")
    distance = got + 4 - (code + 8)
    assert int.from_bytes(body[8:12], "little") == (distance & (1 << 64) - 1) >> shift & 0xFFFFFFFF
    assert slots == bytes(8)
    expected = (got, rel.ABS64, 1, 0) if default else (got, rel.RELATIVE64, 0, data + 16)
    assert dynamic_relocations(elf) == [expected]


def test_a_symbol_has_one_slot_however_often_it_is_used() -> None:
    obj, text, _ = module()
    for offset in (0, 8, 16):
        obj.relocation(text, offset, rel.GOTPCREL32_LO, "there")
    assert len(section(read_elf(link(obj.build())), ".got")[1]) == 8


def test_an_absolute_symbol_in_the_got_is_known_at_link_time() -> None:
    obj, text, _ = module()
    obj.symbol("value", ABS, 0x1234567890, visibility=3)
    obj.relocation(text, 0, rel.GOTPCREL32_LO, "value")
    elf = read_elf(link(obj.build()))
    assert section(elf, ".got")[1] == struct.pack("<Q", 0x1234567890)
    assert dynamic_relocations(elf) == []


@pytest.mark.parametrize("default", [False, True])
def test_pointers_in_data_are_left_to_the_loader(default: bool) -> None:
    obj, _, data = module(default=default)
    obj.relocation(data, 8, rel.ABS64, "there", 3)
    elf = read_elf(link(obj.build()))
    home, body = section(elf, ".data")
    assert body == bytes(DATA_BYTES)
    expected = (home + 8, rel.ABS64, 1, 3) if default else (home + 8, rel.RELATIVE64, 0, home + 16 + 3)
    assert dynamic_relocations(elf) == [expected]


@pytest.mark.parametrize(
    ("kind", "raw"),
    [
        (rel.ABS32, "7b000000"),
        (rel.ABS32_LO, "7b000000"),
        (rel.ABS32_HI, "00000000"),
        (rel.ABS64, "7b00000000000000"),
    ],
)
def test_absolute_kinds_write_the_value_of_an_absolute_symbol(kind: int, raw: str) -> None:
    obj, _, data = module()
    obj.symbol("value", ABS, 0x78, bind=0)
    obj.relocation(data, 0, kind, "value", 3)
    body = section(read_elf(link(obj.build())), ".data")[1]
    assert body == bytes.fromhex(raw).ljust(DATA_BYTES, b"\0")


def test_a_branch_counts_words_from_the_next_instruction() -> None:
    obj, text, _ = module()
    obj.symbol("label", text, 40, bind=0)
    obj.relocation(text, 8, rel.REL16, "label")
    assert section(read_elf(link(obj.build())), ".text")[1][8:12] == struct.pack("<hH", (40 - 8 - 4) // 4, 0)


def test_debug_sections_hold_addresses() -> None:
    obj, text, _ = module()
    debug = obj.section(".debug_addr", bytes(16), flags=0)
    obj.symbol("f", text, 16, bind=0, type=2)
    obj.relocation(debug, 0, rel.ABS64, "f", 4)
    obj.relocation(debug, 8, rel.ABS32, "f", 8)
    elf = read_elf(link(obj.build()))
    code = section(elf, ".text")[0]
    assert section(elf, ".debug_addr")[1] == struct.pack("<QII", code + 20, code + 24, 0)
    assert dynamic_relocations(elf) == []


def test_no_relocation_does_nothing() -> None:
    obj, text, _ = module()
    obj.relocation(text, 8, rel.NONE, "")
    assert section(read_elf(link(obj.build())), ".text")[1] == bytes(CODE_BYTES)


def test_dynamic_relocations_are_sorted_relative_first() -> None:
    obj, _, data = module()
    obj.symbol("open", data, 32)
    for offset, name in [(40, "open"), (24, "there"), (8, "open"), (16, "there")]:
        obj.relocation(data, offset, rel.ABS64, name)
    elf = read_elf(link(obj.build()))
    home = section(elf, ".data")[0]
    assert [(o - home, k) for o, k, _, _ in dynamic_relocations(elf)] == [
        (16, rel.RELATIVE64), (24, rel.RELATIVE64), (8, rel.ABS64), (40, rel.ABS64),
    ]  # fmt: skip


# Refusals.


def refused(obj: ObjectFile, match: str) -> None:
    with pytest.raises(LinkError, match=match):
        link(obj.build())


@pytest.mark.parametrize("kind", [12, 15, 99, rel.RELATIVE64])
def test_unknown_kinds_are_refused(kind: int) -> None:
    obj, text, _ = module()
    obj.relocation(text, 0, kind, "there")
    refused(obj, rf".text\+0x0: relocation of kind {kind} ")


@pytest.mark.parametrize("kind", [rel.ABS32, rel.ABS32_LO, rel.ABS32_HI])
def test_an_address_in_less_than_64_bits_is_refused(kind: int) -> None:
    obj, _, data = module()
    obj.relocation(data, 0, kind, "there")
    refused(obj, rf"(?s){rel.NAMES[kind]} to there.*store the pointer in 64 bits")


def test_a_pointer_in_read_only_data_is_refused() -> None:
    obj, text, _ = module()
    obj.relocation(text, 0, rel.ABS64, "there")
    refused(obj, r"(?s)to there in read-only section .text.*relocation model pic")


@pytest.mark.parametrize("kind", [rel.REL32, rel.REL64, rel.REL32_LO, rel.REL32_HI, rel.ABS32])
def test_a_direct_reference_to_a_preemptible_symbol_is_refused(kind: int) -> None:
    obj, text, _ = module(default=True)
    obj.relocation(text, 0, kind, "there")
    refused(obj, "(?s)default visibility.*protected or internal")


def test_the_distance_to_an_absolute_symbol_is_refused() -> None:
    obj, text, _ = module()
    obj.symbol("value", ABS, 4, bind=0)
    obj.relocation(text, 0, rel.REL32, "value")
    refused(obj, "(?s)absolute symbol value.*load it through a pointer")


def test_a_relative_kind_in_a_debug_section_is_refused() -> None:
    obj, _, _ = module()
    debug = obj.section(".debug_info", bytes(8), flags=0)
    obj.relocation(debug, 0, rel.REL32, "there")
    refused(obj, "(?s)not loaded.*R_AMDGPU_ABS32 or R_AMDGPU_ABS64")


@pytest.mark.parametrize("kind", [rel.REL32, rel.GOTPCREL])
def test_a_distance_beyond_32_bits_is_refused(kind: int) -> None:
    obj, text, _ = module()
    obj.relocation(text, 0, kind, "there", 1 << 31)
    refused(obj, r"(?s)\.text\+0x0: .*does not fit 32 bits.*smaller")


def test_an_absolute_value_beyond_32_bits_is_refused() -> None:
    obj, _, data = module()
    obj.symbol("value", ABS, 0xFFFFFFFF, visibility=3)
    obj.relocation(data, 0, rel.ABS32, "value")
    assert section(read_elf(link(obj.build())), ".data")[1][:4] == b"\xff" * 4
    obj.relocation(data, 4, rel.ABS32, "value", 1)
    refused(obj, "against value: 0x100000000 does not fit 32 bits")


@pytest.mark.parametrize("addend", [2, 4 * (1 << 15) + 4])
def test_a_branch_that_does_not_reach_or_is_odd_is_refused(addend: int) -> None:
    obj, text, _ = module()
    obj.symbol("label", text, 0, bind=0)
    obj.relocation(text, 0, rel.REL16, "label", addend)
    refused(obj, "does not fit a branch of 16 bits")


def test_an_address_beyond_64_bits_is_refused() -> None:
    obj, _, data = module()
    obj.relocation(data, 0, rel.ABS64, "there", (1 << 63) - 1)
    refused(obj, "(?s)is no address.*correct the offset")


def test_a_relocation_outside_its_section_is_refused() -> None:
    obj, text, _ = module()
    obj.relocation(text, CODE_BYTES - 3, rel.REL32, "there")
    refused(obj, "R_AMDGPU_REL32 at 0x3d of section .text, which ends at 0x40")


def test_a_relocation_of_zero_initialised_data_is_refused() -> None:
    obj, _, _ = module()
    bss = obj.section(".bss", type=NOBITS, flags=ALLOC | WRITE, size=64)
    obj.relocation(bss, 0, rel.ABS64, "there")
    refused(obj, "(?s)section .bss.*damaged")


def test_a_relocation_against_a_missing_symbol_is_refused() -> None:
    obj, text, _ = module()
    obj.relocation(text, 0, rel.REL32, "there")
    data = bytearray(obj.build())
    elf = read_elf(bytes(data))
    table = elf.find(SHT_RELA)
    assert table is not None
    data[table.offset : table.offset + RELA.size] = RELA.pack(0, rel.REL32, 77, 0)
    with pytest.raises(LinkError, match=r"symbol 77, which does not exist"):
        link(bytes(data))


@given(st.integers(-(1 << 63), (1 << 64) - 1))
def test_low_and_high_half_give_the_whole_value(value: int) -> None:
    low = rel.encode(rel.REL32_LO, value, "s", "")
    high = rel.encode(rel.REL32_HI, value, "s", "")
    assert low + high == rel.encode(rel.REL64, value, "s", "")


@given(st.integers(-(1 << 40), 1 << 40))
def test_a_32_bit_field_holds_the_value_or_refuses(value: int) -> None:
    try:
        raw = rel.encode(rel.REL32, value, "s", "")
    except LinkError:
        assert not -(1 << 31) <= value < 1 << 31
    else:
        assert int.from_bytes(raw, "little", signed=True) == value


def test_a_value_beyond_64_bits_is_refused() -> None:
    obj, _, data = module()
    obj.symbol("value", ABS, (1 << 64) - 1, bind=0)
    obj.relocation(data, 0, rel.ABS64, "value", 1)
    refused(obj, "against value: 0x10000000000000000 does not fit 64 bits")
