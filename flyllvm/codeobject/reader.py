"""Reads what an object file or code object says about itself: metadata, target, kernels."""

from __future__ import annotations

from ..errors import LinkError
from .elf import (
    ET_DYN,
    PT_LOAD,
    PT_NOTE,
    SHN_LORESERVE,
    SHN_UNDEF,
    SHT_DYNSYM,
    SHT_NOTE,
    SHT_SYMTAB,
    STB_LOCAL,
    ElfFile,
    Symbol,
)
from .elf_reader import read_elf
from .info import CodeObjectInfo
from .kernel import DESCRIPTOR_BYTES, Fields, KernelDescriptor, KernelInfo
from .msgpack import decode
from .target_id import target_of

_NT_AMDGPU_METADATA = 32
_ENTRY_ALIGN = 256


def inspect(image: bytes) -> CodeObjectInfo:
    """Reads an object file or a code object.

    Args:
        image: The bytes of a ``.o`` or ``.hsaco`` file.

    Raises:
        LinkError: Not such a file, damaged, or without metadata.
    """
    elf = read_elf(image)
    metadata = read_metadata(elf)
    top = Fields(metadata, "metadata")
    target = target_of(elf.flags, top.text("amdhsa.target") if "amdhsa.target" in metadata else None)
    kernels: dict[str, KernelInfo] = {}
    for entry in top.entries("amdhsa.kernels"):
        kernel = KernelInfo(entry)
        if kernel.name in kernels:
            raise top.error(f"kernel {kernel.name} twice")
        kernels[kernel.name] = kernel
    symbols = _symbols(elf)
    by_name = {s.name: s for s in symbols if s.name and s.shndx != SHN_UNDEF}
    for kernel in kernels.values():
        _describe(elf, kernel, by_name)
    return CodeObjectInfo(
        elf,
        target,
        kernels,
        metadata,
        exported=sorted(s.name for s in by_name.values() if s.bind != STB_LOCAL and s.visibility in (0, 3)),
        undefined=sorted(s.name for s in symbols if s.index and s.shndx == SHN_UNDEF),
    )


def read_metadata(elf: ElfFile) -> dict[str, object]:
    """The metadata of a code object as plain dictionaries and lists.

    Raises:
        LinkError: There is no metadata note, or it is damaged.
    """
    spans = [(s.offset, s.size) for s in elf.sections if s.type == SHT_NOTE]
    spans = spans or [(s.offset, s.filesz) for s in elf.segments if s.type == PT_NOTE]
    for start, size in spans:
        found = _find_note(elf.data, start, start + size)
        if found is not None:
            value = decode(elf.data[found[0] : found[1]], f"note at byte {found[0]:#x}")
            if not isinstance(value, dict):
                raise LinkError("damaged metadata: no map", f"note at byte {found[0]:#x}", "emit the object again")
            return value
    raise LinkError(
        "the file has no AMDGPU metadata note (name AMDGPU, type 32)",
        fix="emit it with code object version 4, 5 or 6 for amdgcn-amd-amdhsa",
    )


def _find_note(data: bytes, start: int, end: int) -> tuple[int, int] | None:
    """Byte range of the metadata in a run of notes."""
    while start + 12 <= end:
        name_size, size, kind = (int.from_bytes(data[start + i : start + i + 4], "little") for i in (0, 4, 8))
        content = start + 12 + (name_size + 3 & ~3)
        if content + size > end:
            raise LinkError(
                f"note with a name of {name_size} and a content of {size} bytes ends past byte {end:#x}",
                f"byte {start:#x}",
                "emit the object again: it is damaged",
            )
        if kind == _NT_AMDGPU_METADATA and data[start + 12 : start + 12 + name_size] == b"AMDGPU\0":
            return content, content + size
        start = content + (size + 3 & ~3)
    return None


def _symbols(elf: ElfFile) -> list[Symbol]:
    table = elf.find(SHT_SYMTAB) or elf.find(SHT_DYNSYM)
    return [] if table is None else elf.symbols(table)


def _describe(elf: ElfFile, kernel: KernelInfo, symbols: dict[str, Symbol]) -> None:
    """Adds the descriptor and the code size, and checks that descriptor and metadata agree."""
    code, home = symbols.get(kernel.name), symbols.get(kernel.symbol)
    if code is not None:
        kernel.code_bytes = code.size
    if home is None:
        return
    where = f"kernel descriptor {kernel.symbol}"
    data = _bytes_of(elf, home, where)
    descriptor = kernel.descriptor = KernelDescriptor(data)
    if descriptor.kernarg_bytes != kernel.kernarg_bytes or descriptor.wave_size != kernel.wave_size:
        raise LinkError(
            f"the descriptor of {kernel.name} has {descriptor.kernarg_bytes} bytes of kernel arguments and waves of "
            f"{descriptor.wave_size}, the metadata {kernel.kernarg_bytes} and {kernel.wave_size}",
            where,
            "compile the kernel again",
        )
    if elf.type == ET_DYN:
        entry = home.value + descriptor.entry_offset
        inside = any(s.type == PT_LOAD and s.flags & 1 and s.vaddr <= entry < s.vaddr + s.memsz for s in elf.segments)
        if not inside or entry % _ENTRY_ALIGN:
            raise LinkError(
                f"kernel {kernel.name} starts at {entry:#x}: not in a code segment at a multiple of {_ENTRY_ALIGN}",
                where,
                "link the object again",
            )


def _bytes_of(elf: ElfFile, symbol: Symbol, where: str) -> bytes:
    data: bytes | None = None
    if elf.type == ET_DYN:
        data = elf.at_address(symbol.value, DESCRIPTOR_BYTES)
    elif symbol.shndx < min(len(elf.sections), SHN_LORESERVE):
        data = elf.content(elf.sections[symbol.shndx])[symbol.value : symbol.value + DESCRIPTOR_BYTES]
    if data is None or len(data) != DESCRIPTOR_BYTES:
        raise LinkError(f"{symbol.name} does not lie in the file with its 64 bytes", where, "emit the object again")
    return data
