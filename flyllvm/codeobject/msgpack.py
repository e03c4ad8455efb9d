"""Decoder for MessagePack, the encoding of the metadata note.

Only what a note can hold is decoded; extension types are refused.  Lengths and counts are checked against the bytes
that are left, so a damaged note cannot make the decoder allocate or recurse without bound.

Source: https://github.com/msgpack/msgpack/blob/master/spec.md.
"""

from __future__ import annotations

import struct

from ..errors import LinkError

_MAX_DEPTH = 32

# Type byte -> struct format of a fixed-size scalar.
_SCALARS = {
    0xCA: ">f", 0xCB: ">d",
    0xCC: ">B", 0xCD: ">H", 0xCE: ">I", 0xCF: ">Q",
    0xD0: ">b", 0xD1: ">h", 0xD2: ">i", 0xD3: ">q",
}  # fmt: skip
# Type byte -> (kind, width of the length in bytes).
_SIZED = {
    0xC4: ("bin", 1), 0xC5: ("bin", 2), 0xC6: ("bin", 4),
    0xD9: ("str", 1), 0xDA: ("str", 2), 0xDB: ("str", 4),
    0xDC: ("list", 2), 0xDD: ("list", 4), 0xDE: ("map", 2), 0xDF: ("map", 4),
}  # fmt: skip


def decode(data: bytes, where: str = "metadata") -> object:
    """Decodes one value that fills ``data``.

    Args:
        data: The encoded bytes.
        where: What the bytes are, for error messages.

    Returns:
        None, bool, int, float, str, bytes, list or dict.

    Raises:
        LinkError: Cut off, trailing bytes, nesting too deep, or a type that metadata has not.
    """
    reader = _Reader(data, where)
    value = reader.value(0)
    if reader.pos != len(data):
        raise reader.error(f"{len(data) - reader.pos} bytes after the end of the value")
    return value


class _Reader:
    __slots__ = ("data", "pos", "where")

    def __init__(self, data: bytes, where: str) -> None:
        self.data = data
        self.pos = 0
        self.where = where

    def error(self, what: str) -> LinkError:
        return LinkError(
            f"damaged metadata: {what}", f"{self.where}, byte {self.pos:#x} of it", "emit the object again"
        )

    def take(self, count: int) -> bytes:
        start, end = self.pos, self.pos + count
        if end > len(self.data):
            raise self.error(f"{count} bytes wanted, {len(self.data) - start} left")
        self.pos = end
        return self.data[start:end]

    def value(self, depth: int) -> object:
        code = self.take(1)[0]
        if code < 0x80:
            return code
        if code < 0x90:
            return self.map(code & 15, depth)
        if code < 0xA0:
            return self.list(code & 15, depth)
        if code < 0xC0:
            return self.text(code & 31)
        if code >= 0xE0:
            return code - 256
        if code in _SIZED:
            kind, width = _SIZED[code]
            return self.sized(kind, int.from_bytes(self.take(width), "big"), depth)
        if code in _SCALARS:
            form = _SCALARS[code]
            scalar: object = struct.unpack(form, self.take(struct.calcsize(form)))[0]
            return scalar
        if code in (0xC0, 0xC2, 0xC3):
            return None if code == 0xC0 else code == 0xC3
        raise self.error(f"type byte {code:#x} does not occur in metadata")

    def sized(self, kind: str, count: int, depth: int) -> object:
        if kind == "str":
            return self.text(count)
        if kind == "bin":
            return self.take(count)
        return self.list(count, depth) if kind == "list" else self.map(count, depth)

    def text(self, count: int) -> str:
        try:
            return self.take(count).decode()
        except UnicodeDecodeError:
            raise self.error("text that is not UTF-8") from None

    def check(self, count: int, depth: int) -> None:
        if count > len(self.data) - self.pos:
            raise self.error(f"{count} elements in {len(self.data) - self.pos} bytes")
        if depth >= _MAX_DEPTH:
            raise self.error(f"nested deeper than {_MAX_DEPTH}")

    def list(self, count: int, depth: int) -> object:
        self.check(count, depth)
        return [self.value(depth + 1) for _ in range(count)]

    def map(self, count: int, depth: int) -> dict[str, object]:
        self.check(count, depth)
        found: dict[str, object] = {}
        for _ in range(count):
            key = self.value(depth + 1)
            if not isinstance(key, str):
                raise self.error(f"a key is text, got {key!r}")
            if key in found:
                raise self.error(f"key {key!r} twice")
            found[key] = self.value(depth + 1)
        return found
