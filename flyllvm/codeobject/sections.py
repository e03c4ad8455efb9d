"""Input sections of an object file gathered into the sections of the code object.

Sections with a common name (``.text`` and ``.text.f``) become one, in the order of the object file, and are ranked
in the order in which they lie in memory: notes and tables, read-only data, code, data that is constant after loading
(relro), data, zero-initialised data.

Source: the layout of ``ld.lld -shared``, compared byte for byte in the tests.
"""

from __future__ import annotations

from ..errors import LinkError
from .elf import (
    SHF_ALLOC,
    SHF_COMPRESSED,
    SHF_EXCLUDE,
    SHF_EXEC,
    SHF_GROUP,
    SHF_INFO_LINK,
    SHF_MERGE,
    SHF_STRINGS,
    SHF_TLS,
    SHF_WRITE,
    SHT_GROUP,
    SHT_NOBITS,
    SHT_NOTE,
    SHT_NULL,
    SHT_PROGBITS,
    SHT_REL,
    SHT_RELA,
    SHT_STRTAB,
    SHT_SYMTAB,
    ElfFile,
    Section,
)

# Prefixes that the output drops everything after; the longer name first.
_PREFIXES = (".data.rel.ro", ".bss.rel.ro", ".text", ".rodata", ".data", ".bss")
_RELRO = frozenset({".data.rel.ro", ".bss.rel.ro", ".got", ".dynamic"})

# Ranks: the order in memory.
NOTE, TABLE, READ_ONLY, CODE, RELRO, RELRO_ZERO, DATA, ZERO, NOT_LOADED = range(9)


class OutSection:
    """One section of the code object.

    Attributes:
        name: Section name.
        type: ``SHT_*``.
        flags: ``SHF_*`` bits.
        align: Alignment in bytes.
        entsize: Size of one entry in bytes, or 0.
        size: Size in bytes.
        content: The bytes; empty for zero-initialised data.
        rank: Place in the order in memory.
        addr: Address in bytes, 0 where it is not loaded.
        offset: Place in the file in bytes.
        index: Number in the section header table.
        link: Section it refers to, or ``None``.
        info: Extra number of the section header.
    """

    __slots__ = (
        "addr", "align", "content", "entsize", "flags", "index", "info", "link", "name", "offset", "rank", "size",
        "type",
    )  # fmt: skip

    def __init__(self, name: str, type: int, flags: int, align: int, entsize: int = 0) -> None:
        self.name = name
        self.type = type
        self.flags = flags
        self.align = align
        self.entsize = entsize
        self.size = 0
        self.content = bytearray()
        self.rank = _rank(name, type, flags)
        self.addr = 0
        self.offset = 0
        self.index = 0
        self.link: OutSection | None = None
        self.info = 0

    def append(self, section: Section, content: bytes) -> int:
        """Adds an input section and returns its offset in this one, in bytes."""
        start = (self.size + section.align - 1) & -section.align
        self.align = max(self.align, section.align)
        self.size = start + section.size
        if self.type != SHT_NOBITS:
            self.content += bytes(start - len(self.content)) + content
        return start

    def fill(self, content: bytes | bytearray) -> None:
        """Sets the bytes of a section made by the linker."""
        self.content = bytearray(content)
        self.size = len(content)


def _rank(name: str, type: int, flags: int) -> int:
    if not flags & SHF_ALLOC:
        return NOT_LOADED
    if type == SHT_NOTE:
        return NOTE
    if flags & SHF_EXEC:
        return CODE
    if flags & SHF_WRITE:
        zero = type == SHT_NOBITS
        if name in _RELRO:
            return RELRO_ZERO if zero else RELRO
        return ZERO if zero else DATA
    return READ_ONLY if type == SHT_PROGBITS else TABLE


class Gathered:
    """The output of `gather`.

    Attributes:
        sections: Sections of the code object that come from the object file.
        places: Input section index → (output section, offset in it in bytes).
        relocations: Relocation sections of sections that are kept.
        symtab: The symbol table, or ``None``.
    """

    __slots__ = ("places", "relocations", "sections", "symtab")

    def __init__(self) -> None:
        self.sections: list[OutSection] = []
        self.places: dict[int, tuple[OutSection, int]] = {}
        self.relocations: list[Section] = []
        self.symtab: Section | None = None


def gather(elf: ElfFile) -> Gathered:
    """Sorts an object's sections into output sections.

    Raises:
        LinkError: A kind of section that flyllvm does not link: COMDAT groups, thread-local data, compressed or
            self-modifying code, REL relocations, unknown loaded types.
    """
    out = Gathered()
    named: dict[tuple[str, int, int], OutSection] = {}
    for section in elf.sections:
        if section.type == SHT_SYMTAB:
            if out.symtab is not None:
                raise LinkError("two symbol tables", _at(section), "emit the object again")
            out.symtab = section
        elif section.type == SHT_RELA:
            out.relocations.append(section)
        elif _kept(section):
            name, keep = section.name, section.flags & (SHF_ALLOC | SHF_WRITE | SHF_EXEC)
            if keep & SHF_ALLOC:
                name = next((p for p in _PREFIXES if name == p or name.startswith(p + ".")), name)
            kind = (name, section.type, keep)
            target = named.get(kind)
            if target is None:
                # Equal constants are not merged, so loaded sections lose the flags that would promise it.
                drop = SHF_INFO_LINK | (SHF_MERGE | SHF_STRINGS if keep & SHF_ALLOC else 0)
                flags = section.flags & ~drop
                target = named[kind] = OutSection(name, section.type, flags, 1, section.entsize)
                out.sections.append(target)
            elif target.entsize != section.entsize:
                target.entsize = 0
            out.places[section.index] = (target, target.append(section, elf.content(section)))
    out.relocations = [r for r in out.relocations if _relocates_kept(elf, out, r)]
    return out


def _at(section: Section) -> str:
    return f"section {section.index} ({section.name})"


def _kept(section: Section) -> bool:
    """Whether a section goes into the code object; refuses what cannot be linked."""
    if section.type == SHT_NULL or section.type == SHT_STRTAB:
        return False
    if section.type == SHT_GROUP or section.flags & SHF_GROUP:
        raise LinkError(
            f"section {section.name} belongs to a COMDAT group, which the linker does not resolve",
            _at(section),
            "give the function or global no comdat and internal or protected linkage",
        )
    if section.flags & SHF_TLS:
        raise LinkError(
            f"section {section.name} holds thread-local data, which a GPU does not have",
            _at(section),
            "drop thread_local from the global",
        )
    if section.type == SHT_REL:
        raise LinkError(
            f"section {section.name} has REL relocations", _at(section), "emit RELA, as LLVM does for AMDGPU"
        )
    if section.flags & SHF_COMPRESSED:
        raise LinkError(f"section {section.name} is compressed", _at(section), "emit debug sections uncompressed")
    if not section.flags & SHF_ALLOC:
        return section.type in (SHT_PROGBITS, SHT_NOBITS, SHT_NOTE) and not (
            section.flags & SHF_EXCLUDE or section.name == ".note.GNU-stack"
        )
    if section.type not in (SHT_PROGBITS, SHT_NOBITS, SHT_NOTE):
        raise LinkError(
            f"section {section.name} of type {section.type:#x} is to be loaded; only code, data and notes are",
            _at(section),
            "drop it from the module (global constructors are not supported)",
        )
    if section.flags & SHF_WRITE and section.flags & SHF_EXEC:
        raise LinkError(f"section {section.name} is writable and executable", _at(section), "separate code and data")
    return True


def _relocates_kept(elf: ElfFile, out: Gathered, rela: Section) -> bool:
    if not 0 < rela.info < len(elf.sections):
        raise LinkError(
            f"relocations for section {rela.info}, which does not exist", _at(rela), "emit the object again"
        )
    return rela.info in out.places
