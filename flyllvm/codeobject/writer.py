"""Writes a placed code object: headers, sections, the full symbol table, the section header table."""

from __future__ import annotations

from .elf import (
    EHDR,
    EM_AMDGPU,
    ET_DYN,
    PHDR,
    SHDR,
    SHT_STRTAB,
    SHT_SYMTAB,
    STT_NOTYPE,
    STT_SECTION,
    STV_HIDDEN,
    SYM,
    ElfFile,
    Symbol,
)
from .layout import Layout
from .sections import NOT_LOADED, OutSection
from .symbols import LinkSymbol


def write_image(
    elf: ElfFile, sections: list[OutSection], layout: Layout, symbols: list[LinkSymbol], dynamic: OutSection
) -> bytes:
    """The bytes of the code object.

    Args:
        elf: The object file, for what the headers take over from it.
        sections: Numbered and filled sections; those that are loaded have their places.
        layout: Program headers and the end of the loaded part.
        symbols: All symbols of the object, the null symbol first.
        dynamic: The dynamic section.
    """
    symtab, strtab = _symbol_tables(symbols, dynamic)
    shstrtab = OutSection(".shstrtab", SHT_STRTAB, 0, 1)
    sections = [*sections, symtab, shstrtab, strtab]
    names, strings = [0], bytearray(b"\0")
    for section in sections:
        names.append(len(strings))
        strings += section.name.encode() + b"\0"
    shstrtab.fill(strings)
    end = layout.end
    for i, section in enumerate(sections, 1):
        section.index = i
        if section.rank == NOT_LOADED:
            section.offset = (end + section.align - 1) & -section.align
            end = section.offset + len(section.content)
    table = (end + 7) & -8
    image = bytearray(table)
    image[: EHDR.size] = EHDR.pack(
        elf.data[:16], ET_DYN, EM_AMDGPU, 1, 0, EHDR.size, table, elf.flags, EHDR.size, PHDR.size,
        len(layout.headers) // PHDR.size, SHDR.size, len(sections) + 1, shstrtab.index,
    )  # fmt: skip
    image[EHDR.size : EHDR.size + len(layout.headers)] = layout.headers
    headers = [bytes(SHDR.size)]
    for name, s in zip(names[1:], sections, strict=True):
        image[s.offset : s.offset + len(s.content)] = s.content
        link = 0 if s.link is None else s.link.index
        headers.append(SHDR.pack(name, s.type, s.flags, s.addr, s.offset, s.size, link, s.info, s.align, s.entsize))
    return bytes(image + b"".join(headers))


def _symbol_tables(symbols: list[LinkSymbol], dynamic: OutSection) -> tuple[OutSection, OutSection]:
    """The full symbol table and its strings: loaders and debuggers look there first."""
    strings = bytearray(b"\0")
    rows = [bytes(SYM.size)]
    kept = [s for s in symbols[1:] if s.source.type != STT_SECTION]
    local = [s for s in kept if s.local]
    local.append(LinkSymbol(Symbol(0, "_DYNAMIC", STT_NOTYPE, STV_HIDDEN, 0, 0, 0), dynamic, 0))
    for symbol in local + [s for s in kept if not s.local]:
        name = symbol.source.name.encode()
        rows.append(symbol.record(len(strings) if name else 0))
        if name:
            strings += name + b"\0"
    symtab = OutSection(".symtab", SHT_SYMTAB, 0, 8, SYM.size)
    symtab.fill(b"".join(rows))
    symtab.info = 1 + len(local)
    strtab = OutSection(".strtab", SHT_STRTAB, 0, 1)
    strtab.fill(strings)
    symtab.link = strtab
    return symtab, strtab
