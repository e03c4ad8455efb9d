"""The linker against a stock ld.lld, and what it refuses."""

from __future__ import annotations

import pytest

from flyllvm.codeobject import CodeObject, inspect, link
from flyllvm.codeobject.elf import PT_LOAD, SHF_ALLOC, SHT_NOBITS, SHT_SYMTAB, STB_LOCAL, ElfFile
from flyllvm.codeobject.elf_reader import read_elf
from flyllvm.errors import LinkError
from tests.codeobject.images import NAMES, lld_bytes, object_bytes
from tests.codeobject.objects import ABS, ALLOC, EXEC, NOBITS, NOTE, UNDEF, WRITE, ObjectFile

# e_shoff (8 bytes), e_shnum and e_shstrndx: our file has no .comment of a linker.
SECTION_HEADER_FIELDS = {*range(0x28, 0x30), 0x3C, 0x3D, 0x3E, 0x3F}


def headers(elf: ElfFile) -> list[tuple[int, ...]]:
    return [(s.type, s.flags, s.offset, s.vaddr, s.filesz, s.memsz, s.align) for s in elf.segments]


def test_the_fixtures_are_there() -> None:
    assert len(NAMES) == 19


@pytest.mark.parametrize("name", NAMES)
def test_program_headers_equal_those_of_lld(name: str) -> None:
    assert headers(read_elf(link(object_bytes(name)))) == headers(read_elf(lld_bytes(name)))


@pytest.mark.parametrize("name", NAMES)
def test_loaded_bytes_equal_those_of_lld(name: str) -> None:
    ours, theirs = link(object_bytes(name)), lld_bytes(name)
    different = set()
    for s in read_elf(theirs).segments:
        if s.type == PT_LOAD:
            a, b = ours[s.offset : s.offset + s.filesz], theirs[s.offset : s.offset + s.filesz]
            assert len(a) == len(b)
            different |= {s.offset + i for i in range(len(b)) if a[i] != b[i]}
    assert different <= SECTION_HEADER_FIELDS


@pytest.mark.parametrize("name", [n for n in NAMES if n != "absolute"])
def test_kernels_and_metadata_equal_those_of_lld(name: str) -> None:
    ours, theirs = inspect(link(object_bytes(name))), inspect(lld_bytes(name))
    assert ours.metadata == theirs.metadata
    assert ours.exported == theirs.exported
    assert [k.to_dict() for k in ours.kernels.values()] == [k.to_dict() for k in theirs.kernels.values()]


@pytest.mark.parametrize("name", NAMES)
def test_full_symbol_table_equals_that_of_lld(name: str) -> None:
    def symbols(image: bytes) -> list[tuple[object, ...]]:
        elf = read_elf(image)
        table = elf.find(SHT_SYMTAB)
        assert table is not None
        found = elf.symbols(table)
        local = sum(s.bind == STB_LOCAL for s in found)
        assert table.info == local and all(s.bind == STB_LOCAL for s in found[:local])
        rows = [(s.name, s.value, s.size, s.bind, s.type, s.visibility) for s in found]
        return sorted(rows[:local], key=str) + rows[local:]

    assert symbols(link(object_bytes(name))) == symbols(lld_bytes(name))


def test_debug_sections_equal_those_of_lld() -> None:
    ours, theirs = read_elf(link(object_bytes("debug_lines"))), read_elf(lld_bytes("debug_lines"))
    kept = {s.name: ours.content(s) for s in ours.sections if s.name.startswith(".debug")}
    # lld merges equal strings, so .debug_str and what points into it may differ.
    strings = {".debug_str", ".debug_line_str", ".debug_str_offsets", ".debug_names"}
    assert {".debug_line", ".debug_info", ".debug_addr", ".debug_frame"} <= set(kept)
    for section in theirs.sections:
        if section.name.startswith(".debug") and section.name not in strings:
            assert kept[section.name] == theirs.content(section), section.name


def test_kernels_are_protected_so_that_nothing_rebinds_them() -> None:
    elf = read_elf(link(object_bytes("gemm_gfx942")))
    table = elf.find(SHT_SYMTAB)
    assert table is not None
    assert {s.name: s.visibility for s in elf.symbols(table) if s.name in ("gemm", "gemm.kd")} == {
        "gemm": 3,
        "gemm.kd": 3,
    }


def test_the_same_object_gives_the_same_bytes() -> None:
    data = object_bytes("three_kernels_gfx942")
    assert link(data) == link(bytearray(data)) == link(memoryview(data))


def test_sections_do_not_overlap_in_memory() -> None:
    for name in NAMES:
        elf = read_elf(link(object_bytes(name)))
        spans = sorted(
            (s.addr, s.addr + s.size, s.name)
            for s in elf.sections
            if s.flags & SHF_ALLOC and s.name != ".relro_padding"
        )
        for (_, end, first), (start, _, second) in zip(spans, spans[1:]):
            assert end <= start, (name, first, second)
        for s in elf.sections:
            assert s.type == SHT_NOBITS or s.addr % 4096 == s.offset % 4096 or not s.flags & SHF_ALLOC


# What the linker refuses.


def refused(obj: ObjectFile, match: str) -> None:
    with pytest.raises(LinkError, match=match):
        link(obj.build())


def code() -> tuple[ObjectFile, int]:
    obj = ObjectFile()
    return obj, obj.section(".text", bytes(64), flags=ALLOC | EXEC, align=256)


def test_an_undefined_symbol_is_refused_by_name() -> None:
    obj, text = code()
    obj.symbol("sinf", UNDEF)
    obj.symbol("cosf", UNDEF)
    obj.relocation(text, 0, 10, "sinf")
    refused(obj, r"undefined symbols: sinf, cosf\n.*define it in the module")


def test_an_unknown_intrinsic_is_named_as_one() -> None:
    obj, text = code()
    obj.symbol("llvm.amdgcn.mfma.f99", UNDEF)
    obj.relocation(text, 0, 10, "llvm.amdgcn.mfma.f99")
    refused(obj, r"(?s)undefined symbol: llvm.amdgcn.mfma.f99.*no intrinsic 'llvm.amdgcn.mfma.f99'.*check its spelling")


def test_a_long_list_of_undefined_symbols_is_cut() -> None:
    obj, _ = code()
    for i in range(11):
        obj.symbol(f"f{i}", UNDEF)
    refused(obj, "f7 and 3 more")


def test_comdat_groups_are_refused() -> None:
    obj, _ = code()
    obj.section(".text.f", bytes(4), flags=ALLOC | EXEC | 0x200)
    refused(obj, "(?s)COMDAT group.*give the function or global no comdat")


def test_thread_local_data_is_refused() -> None:
    obj, _ = code()
    obj.section(".tdata", bytes(4), flags=ALLOC | WRITE | 0x400)
    refused(obj, "(?s)thread-local data.*drop thread_local")


def test_a_thread_local_symbol_is_refused() -> None:
    obj, text = code()
    obj.symbol("t", text, type=6)
    refused(obj, "(?s)symbol t is thread-local.*ordinary global")


def test_a_common_symbol_is_refused() -> None:
    obj, _ = code()
    obj.symbol("c", 0xFFF2, 8, size=4)
    refused(obj, "(?s)symbol c is a common.*ordinary global")


def test_constructors_are_refused() -> None:
    obj, _ = code()
    obj.section(".init_array", bytes(8), type=14, flags=ALLOC | WRITE)
    refused(obj, "(?s)section .init_array.*global constructors are not supported")


def test_compressed_and_self_modifying_sections_are_refused() -> None:
    obj, _ = code()
    obj.section(".debug_info", bytes(8), flags=0x800)
    refused(obj, "(?s)compressed.*uncompressed")
    obj, _ = code()
    obj.section(".both", bytes(8), flags=ALLOC | WRITE | EXEC)
    refused(obj, "(?s)writable and executable.*separate code and data")


def test_rel_relocations_are_refused() -> None:
    obj, _ = code()
    obj.section(".rel.text", bytes(16), type=9, flags=0)
    refused(obj, "(?s)REL relocations.*emit RELA")


def test_a_linked_file_is_refused() -> None:
    with pytest.raises(LinkError, match=r"(?s)linked already.*use it as it is"):
        link(lld_bytes("gemm_gfx942"))


def test_several_inputs_in_one_file_are_refused() -> None:
    with pytest.raises(LinkError, match=r"(?s)starts with 21 3c 61 72.*give an object"):
        link(b"!<arch>\n" + object_bytes("gemm_gfx942"))


def test_an_object_without_symbols_is_refused() -> None:
    obj, _ = code()
    data = obj.build()
    elf = read_elf(data)
    table = elf.find(SHT_SYMTAB)
    assert table is not None
    at = int.from_bytes(data[0x28:0x30], "little") + 64 * table.index + 4
    with pytest.raises(LinkError, match=r"(?s)no symbol table.*do not strip"):
        link(data[:at] + (3).to_bytes(4, "little") + data[at + 4 :])


def test_a_global_name_twice_is_refused() -> None:
    obj, text = code()
    obj.symbol("f", text)
    obj.symbol("f", text, 4)
    refused(obj, "(?s)'f' twice.*its own name")


def test_a_symbol_outside_its_section_is_refused() -> None:
    obj, text = code()
    obj.symbol("f", text, 60, size=8)
    refused(obj, "symbol f: 8 bytes at 0x3c end past section .text of 64")


def test_an_unreferenced_lds_symbol_is_absolute_as_in_lld_and_a_used_one_is_refused() -> None:
    obj, text = code()
    obj.symbol("tile", 0xFF00, 16, size=64)
    elf = read_elf(link(obj.build()))
    table = elf.find(SHT_SYMTAB)
    assert table is not None
    assert [(s.shndx, s.value) for s in elf.symbols(table) if s.name == "tile"] == [(ABS, 16)]
    obj.relocation(text, 0, 1, "tile")
    refused(obj, "(?s)ABS32_LO against LDS symbol tile.*use LDS from inside the kernel")


def test_too_much_memory_is_refused() -> None:
    obj, _ = code()
    for i in range(3):
        obj.section(f".bss.{i}", type=NOBITS, flags=ALLOC | WRITE, size=(1 << 39) + 4)
    refused(obj, "(?s)bytes of memory.*use at most")


def test_notes_of_two_alignments_get_a_segment_each() -> None:
    obj, _ = code()
    obj.section(".note", bytes(12), type=NOTE, align=4)
    obj.section(".note.b", bytes(16), type=NOTE, align=8)
    assert sum(s.type == 4 for s in read_elf(link(obj.build())).segments) == 2


def test_a_linked_kernel_can_be_loaded_again() -> None:
    code_object = CodeObject.from_image(link(object_bytes("three_kernels_gfx1100")))
    assert list(code_object.kernels) == ["lookup", "state", "shared"]
    assert code_object.kernels["shared"].wave_size == 32


def test_two_symbol_tables_are_refused() -> None:
    obj, _ = code()
    obj.section(".symtab.2", bytes(24), type=2, flags=0)
    refused(obj, r"(?s)two symbol tables.*emit the object again")


def test_a_symbol_with_a_reserved_section_is_refused() -> None:
    obj, _ = code()
    obj.symbol("odd", 0xFFF7)
    refused(obj, r"symbol odd has section index 0xfff7")


def test_symbols_out_of_order_are_refused() -> None:
    obj, text = code()
    obj.symbol("f", text)
    data = obj.build()
    table = read_elf(data).find(SHT_SYMTAB)
    assert table is not None
    at = int.from_bytes(data[0x28:0x30], "little") + 64 * table.index + 44  # sh_info: the first global symbol
    with pytest.raises(LinkError, match=r"symbol 1 \(f\) breaks the order local, then global"):
        link(data[:at] + (2).to_bytes(4, "little") + data[at + 4 :])


def test_a_reference_to_a_section_that_is_dropped_is_refused() -> None:
    obj, _ = code()
    dropped = obj.section(".note.GNU-stack", flags=0)
    debug = obj.section(".debug_info", bytes(8), flags=0)
    obj.symbol("", dropped, bind=0, type=3)
    obj.relocations[debug] = [(0, 3, "", 0)]
    refused(obj, r"R_AMDGPU_ABS64 to a section that is not linked")
