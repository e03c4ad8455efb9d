"""Builds small AMDGPU object files by hand, so that tests can say exactly what is in them."""

from __future__ import annotations

import struct

PROGBITS, SYMTAB, STRTAB, RELA, NOTE, NOBITS = 1, 2, 3, 4, 7, 8
WRITE, ALLOC, EXEC = 1, 2, 4
UNDEF, ABS = 0, 0xFFF1


class ObjectFile:
    """An ET_REL file in the making.

    Sections are numbered from 1 in the order in which they are added; the tables follow them.
    """

    def __init__(self, flags: int = 0x54C, abi_version: int = 3) -> None:
        self.flags = flags
        self.abi_version = abi_version
        self.sections: list[list[object]] = []
        self.symbols: list[tuple[str, int, int, int, int, int, int]] = []
        self.relocations: dict[int, list[tuple[int, int, str, int]]] = {}

    def section(
        self,
        name: str,
        content: bytes = b"",
        *,
        type: int = PROGBITS,
        flags: int = ALLOC,
        align: int = 4,
        size: int | None = None,
    ) -> int:
        self.sections.append([name, type, flags, content, len(content) if size is None else size, align, 0, 0, 0])
        return len(self.sections)

    def symbol(
        self,
        name: str,
        section: int,
        value: int = 0,
        *,
        size: int = 0,
        bind: int = 1,
        type: int = 1,
        visibility: int = 0,
    ) -> str:
        self.symbols.append((name, section, value, size, bind, type, visibility))
        return name

    def relocation(self, section: int, offset: int, kind: int, symbol: str, addend: int = 0) -> None:
        self.relocations.setdefault(section, []).append((offset, kind, symbol, addend))

    def build(self) -> bytes:
        rows = [list(r) for r in self.sections]
        symbols = sorted(self.symbols, key=lambda s: s[4] != 0)
        index = {s[0]: i for i, s in enumerate(symbols, 1)}
        symtab_number = len(rows) + len(self.relocations) + 1
        for target, entries in self.relocations.items():
            body = b"".join(struct.pack("<QIIq", o, k, index.get(s, 0), a) for o, k, s, a in entries)
            rows.append([f".rela{rows[target - 1][0]}", RELA, 0x40, body, len(body), 8, symtab_number, target, 24])
        strings, body = bytearray(b"\0"), bytearray(24)
        for name, section, value, size, bind, type, visibility in symbols:
            body += struct.pack("<IBBHQQ", len(strings), bind << 4 | type, visibility, section, value, size)
            strings += name.encode() + b"\0"
        first_global = 1 + sum(s[4] == 0 for s in symbols)
        rows.append([".symtab", SYMTAB, 0, bytes(body), len(body), 8, symtab_number + 1, first_global, 24])
        rows.append([".strtab", STRTAB, 0, bytes(strings), len(strings), 1, 0, 0, 0])
        names = bytearray(b"\0")
        starts = []
        for row in [*rows, [".shstrtab"]]:
            starts.append(len(names))
            names += str(row[0]).encode() + b"\0"
        rows.append([".shstrtab", STRTAB, 0, bytes(names), len(names), 1, 0, 0, 0])
        return self._write(rows, starts)

    def _write(self, rows: list[list[object]], names: list[int]) -> bytes:
        image = bytearray(64)
        headers = [bytes(64)]
        for (_, type, flags, content, size, align, link, info, entsize), name in zip(rows, names, strict=True):
            image += bytes(-len(image) % align)
            offset = len(image)
            image += content
            headers.append(struct.pack("<IIQQQQIIQQ", name, type, flags, 0, offset, size, link, info, align, entsize))
        image += bytes(-len(image) % 8)
        ident = b"\x7fELF\2\1\1" + bytes([64, self.abi_version]) + bytes(7)
        image[:64] = struct.pack(
            "<16sHHIQQQIHHHHHH", ident, 1, 224, 1, 0, 0, len(image), self.flags, 64, 0, 0, 64, len(headers), len(rows)
        )
        return bytes(image + b"".join(headers))


def absolute_object() -> bytes:
    """Absolute symbols, distances in data, a branch: what LLVM rarely emits and lld links."""
    obj = ObjectFile()
    text = obj.section(".text", bytes.fromhex("000082bf000081bf"), flags=ALLOC | EXEC)
    other = obj.section(".text.other", bytes.fromhex("000081bf"), flags=ALLOC | EXEC)
    data = obj.section(".data", bytes(56), flags=ALLOC | WRITE, align=8)
    obj.symbol("value", ABS, 0x12345678, bind=0, type=0)
    obj.symbol("big", ABS, 0x1234567890, bind=0, type=0)
    obj.symbol("here", data, 48, bind=0, type=0)
    obj.symbol("published", ABS, 0x77, visibility=3, type=0)
    obj.symbol("open", ABS, 0x99, type=0)
    obj.symbol("target", other, bind=1, type=2, visibility=2)
    obj.relocation(text, 0, 14, "target")
    for offset, kind, symbol, addend in [
        (0, 3, "value", 0), (8, 6, "value", 0), (12, 6, "published", 0), (16, 3, "published", 1), (24, 3, "big", 4),
        (32, 5, "here", 0), (40, 4, "here", 0), (48, 3, "open", 2),
    ]:  # fmt: skip
        obj.relocation(data, offset, kind, symbol, addend)
    return obj.build()
