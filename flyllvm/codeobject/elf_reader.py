"""Checks an ELF file and takes it apart into headers.

A file that is not ours, is cut off or lies about its own size ends as a ``LinkError`` that names the field and its
place in the file.  Nothing here trusts a count or an offset.

Source: ELF-64 object file format (System V gABI, chapters 4 and 5); LLVM AMDGPUUsage, "ELF Code Object".
"""

from __future__ import annotations

from ..errors import LinkError
from .elf import (
    ABI_VERSIONS,
    EHDR,
    EM_AMDGPU,
    ET_DYN,
    ET_REL,
    MAX_MEMORY,
    OSABI_AMDGPU_HSA,
    PHDR,
    PT_LOAD,
    SHDR,
    SHT_NOBITS,
    SHT_NULL,
    SHT_STRTAB,
    ElfFile,
    Section,
    Segment,
    read_name,
)

# An alignment beyond this one would fill the output with padding.
_MAX_ALIGN = 1 << 20

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
        if seg.type == PT_LOAD and (seg.filesz > seg.memsz or seg.vaddr + seg.memsz > MAX_MEMORY):
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
        start = int.from_bytes(data[at : at + 4], "little")
        section.name = read_name(names, start, f"section {i}", f"byte {at:#x}") if start else ""
    _check_overlaps(elf, offset, count)


def _check_section(section: Section, length: int, at: int) -> None:
    if section.type != SHT_NOBITS and section.offset + section.size > length:
        raise LinkError(
            f"section {section.index}: {section.size} bytes at byte {section.offset:#x} end past the file's {length}",
            f"byte {at:#x}",
            "copy the file again: it is cut off or damaged",
        )
    if section.size > MAX_MEMORY:
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
