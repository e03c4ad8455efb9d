"""One cache entry as bytes: a line of JSON, then the parts, under one checksum."""

from __future__ import annotations

from _blake2 import blake2b

from .json_text import dumps, loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_MAGIC = b"flyllvm-cache 1 "
_SUM_BYTES = 20
_HEAD_BYTES = len(_MAGIC) + 2 * _SUM_BYTES + 1


class Damaged(Exception):
    """The bytes are no complete entry."""


def checksum(data: bytes) -> bytes:
    """The checksum of an entry's body, as hexadecimal digits."""
    return blake2b(data, digest_size=_SUM_BYTES).hexdigest().encode()


def _text(blob: bytes) -> str:
    import zlib

    try:
        return zlib.decompress(blob).decode()
    except zlib.error as e:
        raise ValueError(str(e)) from None


def encode(facts: Mapping[str, Any], parts: Mapping[str, bytes | str]) -> bytes:
    """An entry.

    Args:
        facts: What JSON can hold.
        parts: Byte strings, kept as they are, and texts, kept compressed.
    """
    import zlib

    blobs, table = [], {}
    for name, part in parts.items():
        blob = zlib.compress(part.encode(), 1) if isinstance(part, str) else part
        table[name] = [len(blob), isinstance(part, str)]
        blobs.append(blob)
    body = dumps({"facts": dict(facts), "parts": table}).encode() + b"\n" + b"".join(blobs)
    return _MAGIC + checksum(body) + b"\n" + body


def decode(data: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    """(facts, parts) of an entry.

    Raises:
        Damaged: A byte is missing, or is not what was written.
    """
    body = data[_HEAD_BYTES:]
    if data[:_HEAD_BYTES] != _MAGIC + checksum(body) + b"\n":
        raise Damaged
    head, _, rest = body.partition(b"\n")
    try:
        header = loads(head.decode())
        parts, start = {}, 0
        for name, (size, is_text) in header["parts"].items():
            blob = rest[start : start + size]
            parts[name] = _text(blob) if is_text else blob
            start += size
        return header["facts"], parts
    except (ValueError, KeyError, TypeError):
        # Right sum, wrong form: written by something else.
        raise Damaged from None
