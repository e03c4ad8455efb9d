"""Symbols of the object that is linked: what each one stands for and which ones the loader sees."""

from __future__ import annotations

from ..errors import LinkError
from .elf import (
    SHN_ABS,
    SHN_AMDGPU_LDS,
    SHN_COMMON,
    SHN_LORESERVE,
    SHN_UNDEF,
    STB_GLOBAL,
    STB_LOCAL,
    STB_WEAK,
    STT_FILE,
    STT_SECTION,
    STT_TLS,
    STV_DEFAULT,
    STV_PROTECTED,
    SYM,
    ElfFile,
    Symbol,
)
from .sections import Gathered, OutSection


class LinkSymbol:
    """A symbol of the object and its place in the code object.

    Attributes:
        source: The symbol as read.
        section: Output section that holds it, or ``None`` for an absolute or undefined one.
        offset: Offset in the section, or the absolute value.
        got: Slot in the global offset table, or -1.
        dynamic: Index in the dynamic symbol table, or 0.
    """

    __slots__ = ("dynamic", "got", "offset", "section", "source")

    def __init__(self, source: Symbol, section: OutSection | None, offset: int) -> None:
        self.source = source
        self.section = section
        self.offset = offset
        self.got = -1
        self.dynamic = 0

    @property
    def address(self) -> int:
        """Address in memory, valid once sections are placed; an absolute symbol's value."""
        return self.offset if self.section is None else self.section.addr + self.offset

    @property
    def local(self) -> bool:
        """Whether no other object can see it; hidden symbols become local when linked."""
        s = self.source
        return s.bind == STB_LOCAL or s.visibility not in (STV_DEFAULT, STV_PROTECTED)

    @property
    def preemptible(self) -> bool:
        """Whether the loader may bind the name to another definition."""
        return not self.local and self.source.visibility == STV_DEFAULT

    @property
    def title(self) -> str:
        """Name for messages."""
        if self.source.name or self.section is None:
            return self.source.name
        return f"section {self.section.name}"

    def record(self, name: int) -> bytes:
        """The entry in a symbol table of the code object."""
        s = self.source
        bind = STB_LOCAL if self.local else s.bind
        shndx = SHN_ABS if self.section is None else self.section.index
        return SYM.pack(name, bind << 4 | s.type, s.visibility, shndx, self.address, s.size)


def resolve(elf: ElfFile, gathered: Gathered) -> list[LinkSymbol]:
    """Reads the symbols of an object and finds their places.

    Raises:
        LinkError: Undefined, common or thread-local symbols, or a symbol outside its section.
    """
    table = gathered.symtab
    if table is None:
        raise LinkError("the object has no symbol table", fix="emit the object again; do not strip it before linking")
    found, undefined = [], []
    for s in elf.symbols(table):
        at = f"symbol {s.index} ({s.name or 'no name'})"
        if s.type > STT_FILE or s.shndx == SHN_COMMON or s.bind > STB_WEAK:
            what = "is thread-local" if s.type == STT_TLS else "is a common, unique or target-specific symbol"
            raise LinkError(f"symbol {s.name} {what}", at, "define it as an ordinary global or function")
        section, offset = None, s.value
        if s.shndx == SHN_UNDEF:
            if s.index:
                undefined.append(s.name)
        elif s.shndx < SHN_LORESERVE:
            section, offset = _place(elf, gathered, s, at)
        elif s.shndx not in (SHN_ABS, SHN_AMDGPU_LDS):
            raise LinkError(f"symbol {s.name} has section index {s.shndx:#x}", at, "emit the object again")
        found.append(LinkSymbol(s, section, offset))
    if undefined:
        raise _undefined(undefined)
    _check_order(found, table.info)
    return found


def _place(elf: ElfFile, gathered: Gathered, s: Symbol, at: str) -> tuple[OutSection | None, int]:
    if s.shndx >= len(elf.sections):
        raise LinkError(f"symbol {s.name} is in section {s.shndx}, which does not exist", at, "emit the object again")
    home = elf.sections[s.shndx]
    if s.value > home.size or s.value + s.size > home.size:
        raise LinkError(
            f"symbol {s.name}: {s.size} bytes at {s.value:#x} end past section {home.name} of {home.size}",
            at,
            "emit the object again: it is damaged",
        )
    place = gathered.places.get(s.shndx)
    if place is None:
        if s.type == STT_SECTION:
            return None, 0
        raise LinkError(f"symbol {s.name} is in {home.name}, which is not linked", at, "emit the object again")
    return place[0], place[1] + s.value


def _check_order(symbols: list[LinkSymbol], first_global: int) -> None:
    """Checks what the format promises: local symbols first, global names once."""
    names: set[str] = set()
    for i, symbol in enumerate(symbols):
        s = symbol.source
        if (s.bind == STB_LOCAL) != (i < first_global):
            raise LinkError(f"symbol {i} ({s.name}) breaks the order local, then global", fix="emit the object again")
        if s.bind in (STB_GLOBAL, STB_WEAK):
            if s.name in names or not s.name:
                raise LinkError(f"global symbol {s.name!r} twice or without name", fix="give each global its own name")
            names.add(s.name)


def _undefined(names: list[str]) -> LinkError:
    shown = ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
    intrinsics = [n for n in names if n.startswith("llvm.")]
    if intrinsics:
        fix = (
            f"LLVM has no intrinsic {intrinsics[0]!r} and took the name for an external function: "
            "check its spelling and type suffix"
        )
    elif any(n.startswith("__init_array") for n in names):
        fix = "drop llvm.global_ctors from the module: global constructors are not supported"
    else:
        fix = "define it in the module; a code object is linked against no library"
    return LinkError(f"undefined symbol{'s' if len(names) > 1 else ''}: {shown}", fix=fix)
