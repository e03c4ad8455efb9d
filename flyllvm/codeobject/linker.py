"""The linker: one relocatable object in, one code object that HIP loads out.

The result is position independent (``ET_DYN``), keeps the symbol table and the debug sections, and binds nothing to
other objects: an undefined symbol is an error here, not on the GPU.

Source: LLVM AMDGPUUsage, "ELF Code Object"; layout and tables as ``ld.lld -shared`` makes them.
"""

from __future__ import annotations

from ..errors import LinkError
from . import relocation as rel
from .dynamic import (
    DT_GNU_HASH,
    DT_HASH,
    DT_NULL,
    DT_RELA,
    DT_RELACOUNT,
    DT_RELAENT,
    DT_RELASZ,
    DT_STRSZ,
    DT_STRTAB,
    DT_SYMENT,
    DT_SYMTAB,
    gnu_hash_table,
    gnu_order,
    sysv_hash_table,
)
from .elf import (
    ET_REL,
    RELA,
    SHF_ALLOC,
    SHF_WRITE,
    SHN_AMDGPU_LDS,
    SHT_DYNAMIC,
    SHT_DYNSYM,
    SHT_GNU_HASH,
    SHT_HASH,
    SHT_NOBITS,
    SHT_PROGBITS,
    SHT_RELA,
    SHT_STRTAB,
    STT_SECTION,
    SYM,
    ElfFile,
)
from .elf_reader import read_elf
from .layout import Layout
from .sections import NOT_LOADED, OutSection, gather
from .symbols import LinkSymbol, resolve
from .writer import write_image


def link(object_bytes: bytes) -> bytes:
    """Links one relocatable object into a code object.

    The same object gives the same bytes.

    Args:
        object_bytes: An ``ET_REL`` file for amdgcn-amd-amdhsa, as LLVM emits it.

    Returns:
        The ``ET_DYN`` image, ready for ``hipModuleLoadData`` or a ``.hsaco`` file.

    Raises:
        LinkError: The object is malformed, refers to an undefined symbol, or needs what the linker does not do.
    """
    elf = read_elf(object_bytes)
    if elf.type != ET_REL:
        raise LinkError(
            "the file is linked already (ET_DYN)", "byte 0x10", "use it as it is; link takes an object file"
        )
    return _Link(elf).image()


class _Fixup:
    """One relocation that is applied when the addresses are known."""

    __slots__ = ("addend", "kind", "offset", "section", "symbol", "where")

    def __init__(
        self, section: OutSection, offset: int, kind: int, symbol: LinkSymbol, addend: int, where: str
    ) -> None:
        self.section = section
        self.offset = offset
        self.kind = kind
        self.symbol = symbol
        self.addend = addend
        self.where = where


class _Link:
    """State of one link."""

    def __init__(self, elf: ElfFile) -> None:
        self.elf = elf
        gathered = gather(elf)
        self.symbols = resolve(elf, gathered)
        self.gathered = gathered
        self.fixups: list[_Fixup] = []
        self.dynamic_fixups: list[_Fixup] = []  # written by the loader
        self.got_symbols: list[LinkSymbol] = []
        ro, rw = SHF_ALLOC, SHF_ALLOC | SHF_WRITE
        self.dynsym = OutSection(".dynsym", SHT_DYNSYM, ro, 8, SYM.size)
        self.gnu_hash = OutSection(".gnu.hash", SHT_GNU_HASH, ro, 8)
        self.hash = OutSection(".hash", SHT_HASH, ro, 4, 4)
        self.dynstr = OutSection(".dynstr", SHT_STRTAB, ro, 1)
        self.rela_dyn = OutSection(".rela.dyn", SHT_RELA, ro, 8, RELA.size)
        self.dynamic = OutSection(".dynamic", SHT_DYNAMIC, rw, 8, 16)
        self.got = OutSection(".got", SHT_PROGBITS, rw, 8)
        self.padding = OutSection(".relro_padding", SHT_NOBITS, rw, 1)
        self.padding.rank = self.got.rank

    def image(self) -> bytes:
        """Runs the link."""
        self.scan()
        self.export()
        sections = self.arrange()
        layout = Layout(sections)
        self.apply()
        self.fill_tables()
        return write_image(self.elf, sections, layout, self.symbols, self.dynamic)

    # Relocations: who needs a slot in the GOT, what is left to the loader.

    def scan(self) -> None:
        """Sorts all relocations into those applied here and those of the loader."""
        for rela in self.gathered.relocations:
            section, start = self.gathered.places[rela.info]
            home = self.elf.sections[rela.info]
            for offset, kind, index, addend in self.elf.relocations(rela):
                where = f"{home.name}+{offset:#x}"
                if index >= len(self.symbols):
                    raise LinkError(f"relocation against symbol {index}, which does not exist", where, "emit it again")
                if kind not in rel.NAMES or kind == rel.RELATIVE64:
                    raise LinkError(f"relocation of kind {kind} is not one of an object file", where, "emit it again")
                if offset + rel.WIDTHS[kind] > home.size or home.type == SHT_NOBITS:
                    raise LinkError(
                        f"{rel.NAMES[kind]} at {offset:#x} of section {home.name}, which ends at {home.size:#x}",
                        where,
                        "emit the object again: it is damaged",
                    )
                if kind != rel.NONE:
                    self.classify(_Fixup(section, start + offset, kind, self.symbols[index], addend, where))

    def classify(self, fixup: _Fixup) -> None:
        """Decides what one relocation needs."""
        symbol, kind = fixup.symbol, fixup.kind
        if symbol.source.shndx == SHN_AMDGPU_LDS:
            raise LinkError(
                f"{rel.NAMES[kind]} against LDS symbol {symbol.title}, whose address no linker knows",
                fixup.where,
                "use LDS from inside the kernel, so that LLVM places it",
            )
        if symbol.source.type == STT_SECTION and symbol.section is None:
            raise self.refused(fixup, "to a section that is not linked", "emit the object again")
        if fixup.section.rank == NOT_LOADED:
            if kind not in (rel.ABS32, rel.ABS64):
                raise self.refused(
                    fixup, "in a section that is not loaded", "use R_AMDGPU_ABS32 or R_AMDGPU_ABS64 there"
                )
        elif kind in rel.GOT:
            if symbol.got < 0:
                symbol.got = 8 * len(self.got_symbols)
                self.got_symbols.append(symbol)
        elif symbol.preemptible and kind != rel.ABS64:
            raise self.refused(
                fixup,
                f"to {symbol.title}, which has default visibility and may be bound elsewhere",
                "give the global or function protected or internal visibility",
            )
        elif kind in rel.ABSOLUTE:
            if symbol.section is not None or symbol.preemptible:
                self.leave_to_loader(fixup)
                return
        elif symbol.section is None:
            raise self.refused(fixup, f"from code to the absolute symbol {symbol.title}", "load it through a pointer")
        self.fixups.append(fixup)

    def leave_to_loader(self, fixup: _Fixup) -> None:
        """An address in data: only the loader knows it."""
        if fixup.kind != rel.ABS64:
            raise self.refused(
                fixup, f"to {fixup.symbol.title}: an address has 64 bits", "store the pointer in 64 bits"
            )
        if not fixup.section.flags & SHF_WRITE:
            raise self.refused(
                fixup,
                f"to {fixup.symbol.title} in read-only section {fixup.section.name}",
                "emit with relocation model pic, so that LLVM puts constant pointers into .data.rel.ro",
            )
        self.dynamic_fixups.append(fixup)

    def refused(self, fixup: _Fixup, why: str, fix: str) -> LinkError:
        return LinkError(f"{rel.NAMES[fixup.kind]} {why}", fixup.where, fix)

    # Sections made by the linker.

    def export(self) -> None:
        """Numbers the dynamic symbols and makes their tables."""
        exported = [s for s in self.symbols[1:] if not s.local]
        names = [s.source.name.encode() for s in exported]
        offsets, strings = [], bytearray(b"\0")
        for name in names:
            offsets.append(len(strings))
            strings += name + b"\0"
        order = gnu_order(names)
        self.exported = [(exported[i], offsets[i]) for i in order]
        for number, (symbol, _) in enumerate(self.exported, 1):
            symbol.dynamic = number
        ordered = [names[i] for i in order]
        self.dynstr.fill(strings)
        self.hash.fill(sysv_hash_table([b"", *ordered]))
        self.gnu_hash.fill(gnu_hash_table(ordered, 1))
        self.dynsym.size = SYM.size * (1 + len(order))
        self.dynsym.info = 1
        self.got.fill(bytes(8 * len(self.got_symbols)))
        for symbol in self.got_symbols:
            if symbol.section is not None or symbol.preemptible:
                self.dynamic_fixups.append(_Fixup(self.got, symbol.got, rel.ABS64, symbol, 0, ""))
        self.rela_dyn.size = RELA.size * len(self.dynamic_fixups)
        relative = sum(not f.symbol.preemptible for f in self.dynamic_fixups)
        tags = 7 + (3 if self.dynamic_fixups else 0) + (1 if relative else 0)
        self.dynamic.size = 16 * tags

    def arrange(self) -> list[OutSection]:
        """All sections in the order of the file, numbered."""
        made = [self.dynsym, self.gnu_hash, self.hash, self.dynstr, self.rela_dyn, self.dynamic, self.got]
        needed = [s for s in made if s.size]
        loaded = [s for s in self.gathered.sections if s.rank != NOT_LOADED]
        sections = sorted(loaded + needed, key=lambda s: s.rank)
        last = max(i for i, s in enumerate(sections) if s.rank in (self.got.rank, self.got.rank + 1))
        sections.insert(last + 1, self.padding)
        sections += [s for s in self.gathered.sections if s.rank == NOT_LOADED]
        for i, section in enumerate(sections, 1):
            section.index = i
        self.dynsym.link = self.dynamic.link = self.dynstr
        self.gnu_hash.link = self.hash.link = self.rela_dyn.link = self.dynsym
        return sections

    def apply(self) -> None:
        """Writes all values that are known at link time."""
        for f in self.fixups:
            target = self.got.addr + f.symbol.got if f.kind in rel.GOT else f.symbol.address
            value = target + f.addend
            if f.kind not in rel.ABSOLUTE:
                value -= f.section.addr + f.offset
            raw = rel.encode(f.kind, value, f.symbol.title, f.where)
            f.section.content[f.offset : f.offset + len(raw)] = raw
        for symbol in self.got_symbols:
            if symbol.section is None and not symbol.preemptible:
                self.got.content[symbol.got : symbol.got + 8] = (symbol.offset & (1 << 64) - 1).to_bytes(8, "little")

    def fill_tables(self) -> None:
        """Fills the tables that hold addresses."""
        self.dynsym.fill(bytes(SYM.size) + b"".join(s.record(name) for s, name in self.exported))
        relative, named = [], []
        for f in self.dynamic_fixups:
            place = f.section.addr + f.offset
            if f.symbol.preemptible:
                named.append((f.symbol.dynamic, place, f.addend))
            else:
                value = f.symbol.address + f.addend
                if not -(1 << 63) <= value < 1 << 63:
                    raise self.refused(f, f"to {f.symbol.title}: {value:#x} is no address", "correct the offset")
                relative.append((place, value))
        rows = [RELA.pack(place, rel.RELATIVE64, 0, addend) for place, addend in sorted(relative)]
        rows += [RELA.pack(place, rel.ABS64, index, addend) for index, place, addend in sorted(named)]
        self.rela_dyn.fill(b"".join(rows))
        tags: list[tuple[int, int]] = []
        if rows:
            tags += [(DT_RELA, self.rela_dyn.addr), (DT_RELASZ, self.rela_dyn.size), (DT_RELAENT, RELA.size)]
        if relative:
            tags.append((DT_RELACOUNT, len(relative)))
        tags += [(DT_SYMTAB, self.dynsym.addr), (DT_SYMENT, SYM.size), (DT_STRTAB, self.dynstr.addr)]
        tags += [
            (DT_STRSZ, self.dynstr.size),
            (DT_GNU_HASH, self.gnu_hash.addr),
            (DT_HASH, self.hash.addr),
            (DT_NULL, 0),
        ]
        self.dynamic.fill(b"".join(t.to_bytes(8, "little") + v.to_bytes(8, "little") for t, v in tags))
