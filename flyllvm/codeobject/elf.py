"""Reader for the ELF files of AMD GPUs: relocatable objects and linked code objects.

Everything is checked while it is read: a file that is not ours, is cut off or lies about its own size ends as a
``LinkError`` that names the field and its place in the file.  Nothing here trusts a count or an offset.

Source: ELF-64 object file format (System V gABI, chapters 4 and 5); LLVM AMDGPUUsage, "ELF Code Object".
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ..errors import LinkError

if TYPE_CHECKING:
    from collections.abc import Iterator

ET_REL, ET_DYN = 1, 3
EM_AMDGPU = 224
OSABI_AMDGPU_HSA = 64

SHT_NULL, SHT_PROGBITS, SHT_SYMTAB, SHT_STRTAB, SHT_RELA, SHT_HASH = 0, 1, 2, 3, 4, 5
SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_REL, SHT_DYNSYM = 6, 7, 8, 9, 11
SHT_GROUP, SHT_SYMTAB_SHNDX, SHT_GNU_HASH = 17, 18, 0x6FFFFFF6
SHF_WRITE, SHF_ALLOC, SHF_EXEC, SHF_MERGE, SHF_STRINGS, SHF_INFO_LINK = 1, 2, 4, 0x10, 0x20, 0x40
SHF_GROUP, SHF_TLS, SHF_COMPRESSED, SHF_EXCLUDE = 0x200, 0x400, 0x800, 0x80000000
SHN_UNDEF, SHN_LORESERVE, SHN_AMDGPU_LDS, SHN_ABS, SHN_COMMON, SHN_XINDEX = 0, 0xFF00, 0xFF00, 0xFFF1, 0xFFF2, 0xFFFF
STB_LOCAL, STB_GLOBAL, STB_WEAK = 0, 1, 2
STT_NOTYPE, STT_OBJECT, STT_FUNC, STT_SECTION, STT_FILE, STT_COMMON, STT_TLS = 0, 1, 2, 3, 4, 5, 6
STV_DEFAULT, STV_INTERNAL, STV_HIDDEN, STV_PROTECTED = 0, 1, 2, 3
PT_LOAD, PT_DYNAMIC, PT_NOTE, PT_PHDR = 1, 2, 4, 6
PT_GNU_STACK, PT_GNU_RELRO = 0x6474E551, 0x6474E552

EHDR = struct.Struct("<16sHHIQQQIHHHHHH")
SHDR = struct.Struct("<IIQQQQIIQQ")
PHDR = struct.Struct("<IIQQQQQQ")
SYM = struct.Struct("<IBBHQQ")
RELA = struct.Struct("<QIIq")

# Alignments that no code object has; the output would be padding.
_MAX_ALIGN = 1 << 20
_MAX_MEMORY = 1 << 40

# EI_ABIVERSION under the HSA OS ABI -> code object version.
ABI_VERSIONS = {0: 2, 1: 3, 2: 4, 3: 5, 4: 6}

_MACHINES = {
    3: "x86 (32 bit)",
    40: "ARM (32 bit)",
    62: "x86-64",
    183: "AArch64",
    190: "NVIDIA CUDA",
    243: "RISC-V",
    247: "BPF",
}
_OSABI = {0: "System V", 3: "Linux", 65: "AMD PAL (graphics)", 66: "AMD Mesa 3D (graphics)"}
_FIX_INPUT = "give an object emitted for amdgcn-amd-amdhsa, or a .hsaco linked from one"


class Section:
    """One section header.

    Attributes:
        index: Number in the section header table.
        name: Section name.
        type: ``SHT_*``.
        flags: ``SHF_*`` bits.
        addr: Address in memory, in bytes; 0 in a relocatable object.
        offset: Place in the file, in bytes.
        size: Size in bytes; a ``SHT_NOBITS`` section takes no room in the file.
        link: Index of a related section (string table, symbol table).
        info: Extra index whose meaning depends on the type.
        align: Alignment in bytes, at least 1.
        entsize: Size of one entry in bytes, or 0.
    """

    __slots__ = ("addr", "align", "entsize", "flags", "index", "info", "link", "name", "offset", "size", "type")

    def __init__(self, index: int, fields: tuple[int, ...]) -> None:
        self.index = index
        self.name = ""
        _, self.type, self.flags, self.addr, self.offset, self.size, self.link, self.info, self.align, self.entsize = (
            fields
        )


class Segment:
    """One program header: what the loader maps.

    Attributes:
        type: ``PT_*``.
        flags: Access, 1 execute, 2 write, 4 read.
        offset: Place in the file, in bytes.
        vaddr: Address in memory, in bytes.
        filesz: Bytes taken from the file.
        memsz: Bytes in memory; those after ``filesz`` are zero.
        align: Alignment in bytes.
    """

    __slots__ = ("align", "filesz", "flags", "memsz", "offset", "type", "vaddr")

    def __init__(self, fields: tuple[int, ...]) -> None:
        self.type, self.flags, self.offset, self.vaddr, _, self.filesz, self.memsz, self.align = fields


class Symbol:
    """One symbol.

    Attributes:
        index: Number in its symbol table.
        name: Symbol name; empty for section symbols.
        bind: ``STB_*``.
        type: ``STT_*``.
        visibility: ``STV_*``.
        shndx: Section that defines it, or a reserved ``SHN_*``.
        value: Offset in its section (relocatable object), address (linked), or an absolute value.
        size: Size in bytes.
    """

    __slots__ = ("bind", "index", "name", "shndx", "size", "type", "value", "visibility")

    def __init__(self, index: int, name: str, info: int, other: int, shndx: int, value: int, size: int) -> None:
        self.index = index
        self.name = name
        self.bind = info >> 4
        self.type = info & 15
        self.visibility = other & 3
        self.shndx = shndx
        self.value = value
        self.size = size


class ElfFile:
    """A checked AMD GPU ELF file.

    Attributes:
        data: The bytes of the file.
        type: ``ET_REL`` or ``ET_DYN``.
        abi_version: ``EI_ABIVERSION``.
        flags: ``e_flags``: processor and target features.
        sections: All section headers, the null section first; empty if the file has none.
        segments: All program headers.
    """

    __slots__ = ("abi_version", "data", "flags", "sections", "segments", "type")

    def __init__(self, data: bytes, type: int, abi_version: int, flags: int) -> None:
        self.data = data
        self.type = type
        self.abi_version = abi_version
        self.flags = flags
        self.sections: list[Section] = []
        self.segments: list[Segment] = []

    @property
    def code_object_version(self) -> int:
        """Code object version, 4, 5 or 6."""
        return ABI_VERSIONS[self.abi_version]

    def content(self, section: Section) -> bytes:
        """Bytes of a section in the file; empty for ``SHT_NOBITS``."""
        if section.type == SHT_NOBITS:
            return b""
        return self.data[section.offset : section.offset + section.size]

    def find(self, type: int) -> Section | None:
        """First section of a type."""
        for section in self.sections:
            if section.type == type:
                return section
        return None

    def symbols(self, table: Section) -> list[Symbol]:
        """Reads a symbol table, the null symbol included.

        Raises:
            LinkError: Broken table size, string table or name.
        """
        at = f"byte {table.offset:#x} (section {table.name})"
        if table.entsize != SYM.size or table.size % SYM.size:
            raise LinkError(
                f"symbol table of {table.size} bytes with entries of {table.entsize}; an entry has {SYM.size}",
                at,
                "emit the object again",
            )
        if not 0 < table.link < len(self.sections) or self.sections[table.link].type != SHT_STRTAB:
            raise LinkError(
                f"the symbol table's string table is section {table.link}, which is none", at, "emit the object again"
            )
        strings = self.content(self.sections[table.link])
        found = []
        for i, (name, info, other, shndx, value, size) in enumerate(SYM.iter_unpack(self.content(table))):
            text = read_name(strings, name, f"symbol {i}", at) if name else ""
            found.append(Symbol(i, text, info, other, shndx, value, size))
        return found

    def relocations(self, section: Section) -> Iterator[tuple[int, int, int, int]]:
        """Yields ``(offset, type, symbol index, addend)`` of a RELA section.

        Raises:
            LinkError: The size does not fit the entry size.
        """
        if section.entsize != RELA.size or section.size % RELA.size:
            raise LinkError(
                f"relocations of {section.size} bytes with entries of {section.entsize}; an entry has {RELA.size}",
                f"byte {section.offset:#x} (section {section.name})",
                "emit the object again",
            )
        return RELA.iter_unpack(self.content(section))

    def at_address(self, address: int, size: int) -> bytes | None:
        """Bytes at a memory address that come from the file, or ``None`` where no segment holds all of them."""
        for seg in self.segments:
            if seg.type == PT_LOAD and seg.vaddr <= address and address + size <= seg.vaddr + seg.filesz:
                start = seg.offset + address - seg.vaddr
                return self.data[start : start + size]
        return None


def read_name(strings: bytes, offset: int, owner: str, where: str) -> str:
    """Reads a zero-terminated name out of a string table.

    Raises:
        LinkError: The offset is past the end, the name has no end or is not UTF-8.
    """
    end = strings.find(b"\0", offset) if offset < len(strings) else -1
    if end < 0:
        raise LinkError(
            f"name of {owner} at {offset} of a string table of {len(strings)} bytes", where, "emit the object again"
        )
    try:
        return strings[offset:end].decode()
    except UnicodeDecodeError:
        raise LinkError(f"name of {owner} is not UTF-8", where, "emit the object again") from None


def read_elf(data: bytes) -> ElfFile:
    """Reads and checks a relocatable object or a linked code object.

    Args:
        data: The file's bytes.

    Raises:
        LinkError: Not an ELF file, not for an AMD GPU under HSA, cut off, or inconsistent.
    """
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise LinkError(f"a code object is bytes, got {type(data).__name__}", fix="read the file in binary mode")
    data = bytes(data)
    _check_identity(data)
    fields = EHDR.unpack_from(data)
    ident, e_type, machine, version, _, phoff, shoff, flags, ehsize, phentsize, phnum, shentsize, shnum, shstrndx = (
        fields
    )
    if machine != EM_AMDGPU:
        name = _MACHINES.get(machine, "unknown")
        raise LinkError(f"ELF file for machine {machine} ({name}), not for an AMD GPU (224)", "byte 0x12", _FIX_INPUT)
    if ident[7] != OSABI_AMDGPU_HSA:
        name = _OSABI.get(ident[7], "unknown")
        raise LinkError(f"OS ABI {ident[7]} ({name}), expected 64 (AMDGPU HSA)", "byte 0x7", _FIX_INPUT)
    cov = ABI_VERSIONS.get(ident[8])
    if cov is None or cov < 4:
        known = "unknown" if cov is None else f"code object version {cov}"
        raise LinkError(f"ABI version {ident[8]} ({known})", "byte 0x8", "use code object version 4, 5 or 6")
    if e_type not in (ET_REL, ET_DYN):
        raise LinkError(f"ELF type {e_type}, expected 1 (object) or 3 (code object)", "byte 0x10", _FIX_INPUT)
    if version != 1 or ehsize != EHDR.size:
        raise LinkError(
            f"ELF version {version} with a header of {ehsize} bytes, expected 1 and 64", "byte 0x14", _FIX_INPUT
        )
    elf = ElfFile(data, e_type, ident[8], flags)
    _read_segments(elf, phoff, phentsize, phnum)
    _read_sections(elf, shoff, shentsize, shnum, shstrndx)
    return elf


def _check_identity(data: bytes) -> None:
    """Checks the first bytes, with a helpful word for the usual mix-ups."""
    if data[:4] != b"\x7fELF":
        if data.startswith((b"__CLANG_OFFLOAD_BUNDLE__", b"CCOB")):
            raise LinkError(
                "the file is a Clang offload bundle, not a code object",
                "byte 0x0",
                "extract the code object first: clang-offload-bundler --unbundle --type=o",
            )
        start = data[:4].hex(" ") or "nothing"
        raise LinkError(f"not an ELF file: it starts with {start}, expected 7f 45 4c 46", "byte 0x0", _FIX_INPUT)
    if len(data) < EHDR.size:
        raise LinkError(
            f"the file ends after {len(data)} bytes, inside the ELF header of {EHDR.size}",
            f"byte {len(data):#x}",
            "copy the file again: it is cut off",
        )
    if data[4] != 2 or data[5] != 1 or data[6] != 1:
        raise LinkError(
            f"ELF class {data[4]}, byte order {data[5]}, version {data[6]}; expected 2 (64 bit), 1 (little endian), 1",
            "byte 0x4",
            _FIX_INPUT,
        )


def _table(data: bytes, what: str, offset: int, entsize: int, count: int, want: int, field: int) -> None:
    """Checks that a table of headers lies inside the file."""
    if entsize != want:
        raise LinkError(f"{what} entries of {entsize} bytes, expected {want}", f"byte {field:#x}", _FIX_INPUT)
    if offset + count * entsize > len(data) or offset < EHDR.size:
        raise LinkError(
            f"{what} table of {count} entries at byte {offset:#x} does not lie in a file of {len(data)} bytes",
            f"byte {field:#x}",
            "copy the file again: it is cut off or damaged",
        )


def _read_segments(elf: ElfFile, offset: int, entsize: int, count: int) -> None:
    if not count:
        return
    _table(elf.data, "program header", offset, entsize, count, PHDR.size, 0x20)
    for i in range(count):
        at = offset + i * PHDR.size
        seg = Segment(PHDR.unpack_from(elf.data, at))
        if seg.offset + seg.filesz > len(elf.data):
            raise LinkError(
                f"segment {i}: {seg.filesz} bytes at byte {seg.offset:#x} end past the file's {len(elf.data)}",
                f"byte {at:#x}",
                "copy the file again: it is cut off or damaged",
            )
        if seg.type == PT_LOAD and (seg.filesz > seg.memsz or seg.vaddr + seg.memsz > _MAX_MEMORY):
            raise LinkError(
                f"segment {i}: {seg.filesz} bytes of file in {seg.memsz} bytes of memory at {seg.vaddr:#x}",
                f"byte {at:#x}",
                "link the code object again",
            )
        elf.segments.append(seg)


def _read_sections(elf: ElfFile, offset: int, entsize: int, count: int, strings: int) -> None:
    if not count:
        if offset:
            raise LinkError(
                "the section header table has no count (extended numbering)",
                "byte 0x3c",
                "split the module: more than 65279 sections are not supported",
            )
        return
    data = elf.data
    _table(data, "section header", offset, entsize, count, SHDR.size, 0x28)
    for i, fields in enumerate(SHDR.iter_unpack(data[offset : offset + count * SHDR.size])):
        section = Section(i, fields)
        if section.type != SHT_NULL:
            _check_section(section, len(data), offset + i * SHDR.size)
        elf.sections.append(section)
    if not 0 < strings < count or elf.sections[strings].type != SHT_STRTAB:
        raise LinkError(f"section names are in section {strings}, which is no string table", "byte 0x3e", _FIX_INPUT)
    names = elf.content(elf.sections[strings])
    for i, section in enumerate(elf.sections):
        at = offset + i * SHDR.size
        (start,) = struct.unpack_from("<I", data, at)
        section.name = read_name(names, start, f"section {i}", f"byte {at:#x}") if start else ""
    _check_overlaps(elf, offset, count)


def _check_section(section: Section, length: int, at: int) -> None:
    if section.type != SHT_NOBITS and section.offset + section.size > length:
        raise LinkError(
            f"section {section.index}: {section.size} bytes at byte {section.offset:#x} end past the file's {length}",
            f"byte {at:#x}",
            "copy the file again: it is cut off or damaged",
        )
    if section.size > _MAX_MEMORY:
        raise LinkError(f"section {section.index}: {section.size} bytes is implausible", f"byte {at:#x}", _FIX_INPUT)
    section.align = section.align or 1
    if section.align & (section.align - 1) or section.align > _MAX_ALIGN:
        raise LinkError(
            f"section {section.index}: alignment {section.align} bytes",
            f"byte {at:#x}",
            f"use an alignment that is a power of two, at most {_MAX_ALIGN} bytes",
        )


def _check_overlaps(elf: ElfFile, table: int, count: int) -> None:
    """Refuses sections that share bytes of the file with each other or with the headers."""
    spans = [(0, EHDR.size, "the ELF header"), (table, table + count * SHDR.size, "the section header table")]
    spans += [
        (s.offset, s.offset + s.size, f"section {s.name}")
        for s in elf.sections
        if s.size and s.type not in (SHT_NULL, SHT_NOBITS)
    ]
    spans.sort()
    for (_, end, first), (start, _, second) in zip(spans, spans[1:], strict=False):
        if start < end:
            raise LinkError(
                f"{first} and {second} overlap in the file",
                f"byte {start:#x}",
                "emit the object again: the file is damaged",
            )
