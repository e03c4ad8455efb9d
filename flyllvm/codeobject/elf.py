"""The ELF files of AMD GPUs, relocatable objects and linked code objects, as headers, symbols and relocations.

Source: ELF-64 object file format (System V gABI, chapters 4 and 5); LLVM AMDGPUUsage, "ELF Code Object".
"""

from __future__ import annotations

import struct

from ..errors import LinkError

TYPE_CHECKING = False
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

# Memory of a code object, in bytes; more is a damaged file.
MAX_MEMORY = 1 << 40

# EI_ABIVERSION under the HSA OS ABI -> code object version.
ABI_VERSIONS = {0: 2, 1: 3, 2: 4, 3: 5, 4: 6}


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
