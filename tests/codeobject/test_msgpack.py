"""The MessagePack decoder against an encoder written for the test, and on broken input."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, strategies as st

from flyllvm.codeobject.msgpack import decode
from flyllvm.errors import LinkError

# Encoded forms in the published specification's words: format name, bytes, value.
FORMS = [
    ("positive fixint", "7f", 127),
    ("negative fixint", "e0", -32),
    ("nil", "c0", None),
    ("false", "c2", False),
    ("true", "c3", True),
    ("float 32", "ca3fc00000", 1.5),
    ("float 64", "cb3ff8000000000000", 1.5),
    ("uint 8", "ccff", 255),
    ("uint 16", "cd0100", 256),
    ("uint 32", "ce00010000", 65536),
    ("uint 64", "cfffffffffffffffff", 2**64 - 1),
    ("int 8", "d080", -128),
    ("int 16", "d18000", -32768),
    ("int 32", "d280000000", -(2**31)),
    ("int 64", "d38000000000000000", -(2**63)),
    ("fixstr", "a26162", "ab"),
    ("str 8", "d9026162", "ab"),
    ("str 16", "da00026162", "ab"),
    ("str 32", "db000000026162", "ab"),
    ("bin 8", "c4026162", b"ab"),
    ("bin 16", "c500026162", b"ab"),
    ("bin 32", "c6000000026162", b"ab"),
    ("fixarray", "920102", [1, 2]),
    ("array 16", "dc00020102", [1, 2]),
    ("array 32", "dd000000020102", [1, 2]),
    ("fixmap", "81a16101", {"a": 1}),
    ("map 16", "de0001a16101", {"a": 1}),
    ("map 32", "df00000001a16101", {"a": 1}),
]


@pytest.mark.parametrize(("form", "raw", "value"), FORMS, ids=[f[0] for f in FORMS])
def test_every_form_decodes(form: str, raw: str, value: object) -> None:
    got = decode(bytes.fromhex(raw))
    assert got == value and type(got) is type(value)


def encode(value: object) -> bytes:
    """The longest form of each value, so that lengths of all widths are read."""
    if isinstance(value, bool):
        return b"\xc3" if value else b"\xc2"
    if isinstance(value, int):
        return b"\xd3" + struct.pack(">q", value)
    if isinstance(value, str):
        raw = value.encode()
        return b"\xda" + struct.pack(">H", len(raw)) + raw
    if isinstance(value, list):
        return b"\xdd" + struct.pack(">I", len(value)) + b"".join(map(encode, value))
    assert isinstance(value, dict)
    body = b"".join(encode(k) + encode(v) for k, v in value.items())
    return b"\xdf" + struct.pack(">I", len(value)) + body


VALUES = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_decoding_undoes_encoding(value: object) -> None:
    assert decode(encode(value)) == value


@pytest.mark.parametrize(
    ("raw", "match"),
    [
        ("", "1 bytes wanted, 0 left"),
        ("a5616263", "5 bytes wanted, 3 left"),
        ("ddffffffff", "4294967295 elements in 0 bytes"),
        ("dfffffffff", "4294967295 elements in 0 bytes"),
        ("0101", "1 bytes after the end"),
        ("c1", "type byte 0xc1 does not occur"),
        ("d40000", "type byte 0xd4"),
        ("a2fffe", "not UTF-8"),
        ("810101", "a key is text, got 1"),
        ("82a16101a16102", "key 'a' twice"),
        ("91" * 40 + "01", "nested deeper than 32"),
    ],
)
def test_broken_input_is_named(raw: str, match: str) -> None:
    with pytest.raises(LinkError, match=rf"(?s){match}.*emit the object again"):
        decode(bytes.fromhex(raw))


@given(st.binary(max_size=60))
def test_any_bytes_decode_or_raise_link_error(data: bytes) -> None:
    try:
        decode(data)
    except LinkError as error:
        assert "metadata" in str(error)
