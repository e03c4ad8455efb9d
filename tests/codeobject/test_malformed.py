"""Broken files: always a LinkError that says what and where, never another exception, a hang or a huge allocation."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings, strategies as st

from flyllvm.codeobject import inspect, link
from flyllvm.codeobject.elf import SHT_SYMTAB
from flyllvm.codeobject.elf_reader import read_elf
from flyllvm.errors import LinkError
from tests.codeobject.images import lld_bytes, object_bytes
from tests.codeobject.objects import ALLOC, EXEC, ObjectFile

SAMPLES = [
    object_bytes("vector_add_gfx942"),
    object_bytes("three_kernels_gfx1100"),
    object_bytes("debug_lines"),
    lld_bytes("vector_add_gfx942"),
    lld_bytes("three_kernels_gfx942"),
]
OBJECT = SAMPLES[0]
LINKED = SAMPLES[3]


def patched(data: bytes, at: int, form: str, value: int) -> bytes:
    raw = struct.pack("<" + form, value)
    return data[:at] + raw + data[at + len(raw) :]


def section_field(data: bytes, name: str, field: int) -> int:
    """Place of a field of a section's header."""
    section = next(s for s in read_elf(data).sections if s.name == name)
    return int.from_bytes(data[0x28:0x30], "little") + 64 * section.index + field


def survives(data: bytes) -> None:
    """Reads and links; only a LinkError with a message may come out."""
    for work in (inspect, link):
        try:
            work(data)
        except LinkError as error:
            assert error.what and (error.where or error.fix)


# One test per message.


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (b"", "(?s)starts with nothing.*give an object emitted for amdgcn"),
        (b"hello, world, this is no ELF file", "(?s)byte 0x0: not an ELF file: it starts with 68 65 6c 6c"),
        (b"__CLANG_OFFLOAD_BUNDLE__" + bytes(64), "(?s)offload bundle.*clang-offload-bundler"),
        (OBJECT[:40], "(?s)ends after 40 bytes, inside the ELF header of 64.*cut off"),
        (OBJECT[:1000], "(?s)byte 0x28: section header table of .* does not lie in a file of 1000 bytes.*cut off"),
        (patched(OBJECT, 0x04, "B", 1), "byte 0x4: ELF class 1"),
        (patched(OBJECT, 0x05, "B", 2), "byte order 2"),
        (patched(OBJECT, 0x12, "H", 62), "byte 0x12: ELF file for machine 62 .x86-64., not for an AMD GPU"),
        (patched(OBJECT, 0x07, "B", 65), "byte 0x7: OS ABI 65 .AMD PAL"),
        (patched(OBJECT, 0x08, "B", 1), "(?s)byte 0x8: ABI version 1 .code object version 3.*use code object"),
        (patched(OBJECT, 0x08, "B", 9), "ABI version 9 .unknown"),
        (patched(OBJECT, 0x10, "H", 2), "byte 0x10: ELF type 2"),
        (patched(OBJECT, 0x34, "H", 52), "byte 0x14: ELF version 1 with a header of 52 bytes"),
        (patched(OBJECT, 0x3A, "H", 40), "byte 0x28: section header entries of 40 bytes"),
        (patched(OBJECT, 0x3C, "H", 0), "(?s)byte 0x3c: .*extended numbering.*65279"),
        (patched(OBJECT, 0x3C, "H", 0xFFFF), "table of 65535 entries"),
        (patched(OBJECT, 0x3E, "H", 2), "byte 0x3e: section names are in section 2"),
        (patched(OBJECT, 0x28, "Q", 1 << 63), "section header table of"),
        (patched(OBJECT, 0x30, "I", 0x53F), "byte 0x30: the ELF header says gfx90a, the metadata says gfx942"),
        (patched(LINKED, 0x38, "H", 0xFFFF), "byte 0x20: program header table of 65535 entries"),
        (patched(LINKED, 64 + 56 + 32, "Q", 1 << 40), "segment 1: 1099511627776 bytes at byte 0x0 end past"),
        (patched(LINKED, 64 + 56 + 40, "Q", 1), "segment 1: .* bytes of file in 1 bytes of memory"),
        (LINKED[:3000], "copy the file again: it is cut off or damaged"),
    ],
)  # fmt: skip
def test_a_broken_header_is_named(data: bytes, match: str) -> None:
    with pytest.raises(LinkError, match=match):
        inspect(data)


@pytest.mark.parametrize(
    ("name", "field", "value", "match"),
    [
        (".text", 24, 1 << 62, "bytes at byte 0x4000000000000000 end past the file's 3376"),
        (".text", 32, 1 << 63, "end past the file's 3376"),
        (".text", 48, 3, "(?s)alignment 3 bytes.*power of two"),
        (".text", 48, 1 << 40, "(?s)alignment 1099511627776 bytes.*at most 1048576"),
        (".text", 0, 0xFFFF, "name of section 2 at 65535 of a string table"),
        (".text", 24, 0x20, "(?s)the ELF header and section .text overlap.*damaged"),
        (".symtab", 56, 16, "entries of 16; an entry has 24"),
        (".symtab", 40, 2, "the symbol table's string table is section 2, which is none"),
        (".symtab", 32, 25, "symbol table of 25 bytes"),
    ],
)
def test_a_broken_section_header_is_named(name: str, field: int, value: int, match: str) -> None:
    form = "I" if field in (0, 40) else "Q"
    with pytest.raises(LinkError, match=match):
        inspect(patched(OBJECT, section_field(OBJECT, name, field), form, value))


def test_a_huge_zero_initialised_section_is_refused() -> None:
    data = object_bytes("three_kernels_gfx942")
    with pytest.raises(LinkError, match=r"implausible"):
        link(patched(data, section_field(data, ".bss", 32), "Q", 1 << 60))


def test_relocations_for_no_section_are_refused() -> None:
    data = object_bytes("three_kernels_gfx942")
    with pytest.raises(LinkError, match=r"relocations for section 99, which does not exist"):
        link(patched(data, section_field(data, ".rela.text", 44), "I", 99))
    with pytest.raises(LinkError, match=r"entries of 8; an entry has 24"):
        link(patched(data, section_field(data, ".rela.text", 56), "Q", 8))


def test_symbols_in_no_section_are_refused() -> None:
    obj = ObjectFile()
    obj.section(".text", bytes(4), flags=ALLOC | EXEC)
    obj.symbol("f", 88)
    with pytest.raises(LinkError, match=r"symbol f is in section 88, which does not exist"):
        link(obj.build())


def test_a_file_without_metadata_is_refused_by_inspect() -> None:
    obj = ObjectFile()
    obj.section(".text", bytes(4), flags=ALLOC | EXEC)
    with pytest.raises(LinkError, match=r"(?s)no AMDGPU metadata note.*code object version 4, 5 or 6"):
        inspect(obj.build())


def test_a_note_that_lies_about_its_size_is_refused() -> None:
    start = next(s.offset for s in read_elf(OBJECT).sections if s.name == ".note")
    with pytest.raises(LinkError, match=r"note with a name of 7 and a content of 65535 bytes ends past"):
        inspect(patched(OBJECT, start + 4, "I", 65535))


@pytest.mark.parametrize(
    ("old", "new", "match"),
    [
        (
            b"\xab.vgpr_count",
            b"\xab.vgpr_xxxxx",
            "metadata of kernel vector_add: damaged metadata: .vgpr_count is None",
        ),
        (b"\xaf.wavefront_size@", b"\xaf.wavefront_size\x05", "wave size 5"),
        (b"\xa7.offset\x08", b"\xa7.offset\x04", "argument b: 8 bytes at 4 overlap"),
        (b"\xa7.offset\x18", b"\xa7.offset\x19", "argument n: 4 bytes at 25 overlap or end past the segment of 28"),
        (
            b"\xb5.kernarg_segment_size\x1c",
            b"\xb5.kernarg_segment_size\x1d",
            "the descriptor of vector_add has 28 bytes",
        ),
        (b"\xaeamdhsa.kernels", b"\xaeamdhsa.kernel\xff", "text that is not UTF-8"),
        (b"gfx942", b"gfx90a", "says gfx942, the metadata says gfx90a"),
    ],
)
def test_damaged_metadata_is_named(old: bytes, new: bytes, match: str) -> None:
    assert OBJECT.count(old) >= 1
    with pytest.raises(LinkError, match=match):
        inspect(OBJECT.replace(old, new, 1))


def test_an_entry_outside_the_code_is_refused() -> None:
    elf = read_elf(LINKED)
    rodata = next(s for s in elf.sections if s.name == ".rodata")
    with pytest.raises(
        LinkError, match=r"(?s)kernel vector_add starts at .*: not in a code segment at a multiple of 256"
    ):
        inspect(patched(LINKED, rodata.offset + 16, "q", 64))


def test_anything_but_bytes_is_refused() -> None:
    with pytest.raises(LinkError, match=r"(?s)got str.*binary mode"):
        inspect("text")  # type: ignore[arg-type]


def test_a_kernel_twice_and_metadata_that_is_no_map_are_refused() -> None:
    three = object_bytes("three_kernels_gfx942")
    assert b"\xa5.name\xa6lookup" in three
    with pytest.raises(LinkError, match=r"kernel shared twice"):
        inspect(three.replace(b"\xa5.name\xa6lookup", b"\xa5.name\xa6shared"))
    start = next(s.offset for s in read_elf(OBJECT).sections if s.name == ".note") + 20
    with pytest.raises(LinkError, match=r"damaged metadata: no map"):
        inspect(patched(patched(OBJECT, start - 16, "I", 1), start, "B", 7))


def test_a_descriptor_outside_its_section_is_refused() -> None:
    elf = read_elf(OBJECT)
    table = elf.find(SHT_SYMTAB)
    assert table is not None
    (symbol,) = [s for s in elf.symbols(table) if s.name == "vector_add.kd"]
    with pytest.raises(LinkError, match=r"vector_add.kd does not lie in the file with its 64 bytes"):
        inspect(patched(OBJECT, table.offset + 24 * symbol.index + 8, "Q", 1))


# Fuzz.


@given(
    st.sampled_from(SAMPLES), st.lists(st.tuples(st.integers(0, 1 << 20), st.integers(0, 255)), min_size=1, max_size=6)
)
@settings(max_examples=400)
def test_any_changed_bytes_end_in_a_link_error_or_work(data: bytes, changes: list[tuple[int, int]]) -> None:
    raw = bytearray(data)
    for place, value in changes:
        raw[place % len(raw)] = value
    survives(bytes(raw))


@given(st.sampled_from(SAMPLES), st.data())
@settings(max_examples=300)
def test_any_changed_header_field_ends_in_a_link_error_or_works(data: bytes, draw: st.DataObject) -> None:
    table = int.from_bytes(data[0x28:0x30], "little")
    count = int.from_bytes(data[0x3C:0x3E], "little")
    base = draw.draw(st.sampled_from([0, *range(table, table + 64 * count, 64)]))
    at = base + draw.draw(st.integers(0, 60))
    edge = st.sampled_from(
        [0, 1, 7, 24, 0xFF00, 0xFFF2, 0xFFFF, (1 << 31) - 1, (1 << 32) - 1, 1 << 40, 1 << 63, (1 << 64) - 1]
    )
    value = draw.draw(st.one_of(edge, st.integers(0, (1 << 64) - 1)))
    survives((data[:at] + value.to_bytes(8, "little") + data[at + 8 :])[: len(data)])


@given(st.sampled_from(SAMPLES), st.integers(0, 1 << 20))
@settings(max_examples=200)
def test_any_truncation_ends_in_a_link_error(data: bytes, length: int) -> None:
    short = data[: length % len(data)]
    for work in (inspect, link):
        with pytest.raises(LinkError):
            work(short)


@given(st.binary(max_size=300))
def test_any_bytes_end_in_a_link_error(data: bytes) -> None:
    for work in (inspect, link):
        with pytest.raises(LinkError):
            work(data)
        with pytest.raises(LinkError):
            work(OBJECT[:64] + data)
