"""Places the sections of a code object in memory and in the file.

Source: the layout of ``ld.lld -shared`` without a linker script, compared byte for byte in the tests.
"""

from __future__ import annotations

from ..errors import LinkError
from .elf import (
    EHDR,
    MAX_MEMORY,
    PHDR,
    PT_DYNAMIC,
    PT_GNU_RELRO,
    PT_GNU_STACK,
    PT_LOAD,
    PT_NOTE,
    PT_PHDR,
    SHF_EXEC,
    SHF_WRITE,
    SHT_DYNAMIC,
    SHT_NOBITS,
)
from .sections import CODE, DATA, NOT_LOADED, NOTE, RELRO, RELRO_ZERO, OutSection

PAGE = 4096
_R, _W, _X = 4, 2, 1


def _up(value: int, align: int) -> int:
    return (value + align - 1) & -align


class Layout:
    """Placed sections and program headers.

    Attributes:
        loads: Loaded sections, grouped by segment, in order of address.
        headers: Program header table.  Room is kept for a segment that turns out empty, as ld.lld does.
        end: First byte of the file after the loaded sections.
    """

    __slots__ = ("end", "headers", "loads")

    def __init__(self, sections: list[OutSection]) -> None:
        self.loads = _group([s for s in sections if s.rank != NOT_LOADED])
        notes = _notes(self.loads)
        count = len(self.loads) + len(notes) + 4
        self.end = _place(self.loads, EHDR.size + count * PHDR.size)
        self.headers = b"".join(self._headers(notes, count))

    def _headers(self, notes: list[list[OutSection]], count: int) -> list[bytes]:
        size = count * PHDR.size
        rows = [_header(PT_PHDR, _R, EHDR.size, EHDR.size, size, size, 8)]
        for i, load in enumerate(self.loads):
            offset, addr, filesz, memsz = _extent(load)
            if i == 0:
                offset, addr, filesz, memsz = 0, 0, filesz + offset, memsz + addr
            if memsz:
                rows.append(_header(PT_LOAD, _access(load[0]), offset, addr, filesz, memsz, _load_align(load)))
        relro = next(load for load in self.loads if load[0].rank in (RELRO, RELRO_ZERO))
        dynamic = [s for s in relro if s.type == SHT_DYNAMIC]
        rows.append(_header(PT_DYNAMIC, _access(dynamic[0]), *_extent(dynamic), dynamic[0].align))
        rows.append(_header(PT_GNU_RELRO, _R, *_extent(relro), 1))
        rows.append(_header(PT_GNU_STACK, _R | _W, 0, 0, 0, 0, 0))
        rows += [_header(PT_NOTE, _R, *_extent(group), group[0].align) for group in notes]
        return rows


def _header(type: int, flags: int, offset: int, addr: int, filesz: int, memsz: int, align: int) -> bytes:
    return PHDR.pack(type, flags, offset, addr, addr, filesz, memsz, align)


def _access(section: OutSection) -> int:
    return _R | (_W if section.flags & SHF_WRITE else 0) | (_X if section.flags & SHF_EXEC else 0)


def _group(sections: list[OutSection]) -> list[list[OutSection]]:
    """Splits loaded sections into segments: read-only, code, relro, data."""
    loads: list[list[OutSection]] = []
    last = -1
    for section in sections:
        kind = 0 if section.rank < CODE else 1 if section.rank == CODE else 2 if section.rank < DATA else 3
        if kind != last:
            loads.append([])
            last = kind
        loads[-1].append(section)
    return loads


def _notes(loads: list[list[OutSection]]) -> list[list[OutSection]]:
    """Groups neighbouring notes of one alignment."""
    groups: list[list[OutSection]] = []
    for section in loads[0]:
        if section.rank == NOTE:
            if not groups or groups[-1][0].align != section.align:
                groups.append([])
            groups[-1].append(section)
    return groups


def _load_align(load: list[OutSection]) -> int:
    return max(PAGE, *(s.align for s in load))


def _place(loads: list[list[OutSection]], start: int) -> int:
    """Gives each section an address and a file offset; returns the end of the file so far."""
    dot = end = start
    for i, load in enumerate(loads):
        align = _load_align(load)
        first = load[0]
        if i:
            # A new page in memory without a hole in the file: the address keeps the offset's place in the page.
            dot = _up(dot, PAGE) + dot % PAGE
        for section in load:
            section.addr = _up(dot, section.align)
            if section.name == ".relro_padding":
                # Covers the rest of the page in memory; takes no part in placing what follows.
                section.size = _up(section.addr, PAGE) - section.addr
            else:
                dot = section.addr + section.size
            if section is first:
                section.offset = end + (section.addr - end) % align if i else section.addr
            elif section.type == SHT_NOBITS:
                section.offset = end
            else:
                section.offset = first.offset + section.addr - first.addr
            end = section.offset + (0 if section.type == SHT_NOBITS else section.size)
    if dot > MAX_MEMORY:
        raise LinkError(
            f"the code object takes {dot} bytes of memory", fix=f"use at most {MAX_MEMORY} bytes of globals"
        )
    return end


def _extent(sections: list[OutSection]) -> tuple[int, int, int, int]:
    """File offset, address, bytes in the file and bytes in memory of neighbouring sections."""
    first, last = sections[0], sections[-1]
    filesz = last.offset - first.offset + (0 if last.type == SHT_NOBITS else last.size)
    return first.offset, first.addr, filesz, last.addr + last.size - first.addr
