"""The hash tables, read as a loader reads them."""

from __future__ import annotations

import struct

from hypothesis import given, strategies as st

from flyllvm.codeobject import link
from flyllvm.codeobject.dynamic import gnu_hash, gnu_hash_table, gnu_order, sysv_hash, sysv_hash_table
from flyllvm.codeobject.elf import SHT_DYNSYM, SHT_GNU_HASH, SHT_HASH
from flyllvm.codeobject.elf_reader import read_elf
from tests.codeobject.images import NAMES, object_bytes

SYMBOL_NAMES = st.lists(st.text("abcdefgh._", min_size=1, max_size=12).map(str.encode), unique=True, max_size=60)


def look_up_gnu(table: bytes, names: list[bytes], name: bytes) -> int:
    """Index of a name in the symbol table through the GNU hash table; 0 where it is not found."""
    count, first, words, shift = struct.unpack_from("<IIII", table)
    bloom = struct.unpack_from(f"<{words}Q", table, 16)
    buckets = struct.unpack_from(f"<{count}I", table, 16 + 8 * words)
    chain_at = 16 + 8 * words + 4 * count
    h = gnu_hash(name)
    word = bloom[h // 64 % words]
    if not (word >> h % 64 & 1 and word >> (h >> shift) % 64 & 1):
        return 0
    i = buckets[h % count]
    while i:
        (entry,) = struct.unpack_from("<I", table, chain_at + 4 * (i - first))
        if entry | 1 == h | 1 and names[i] == name:
            return i
        i = 0 if entry & 1 else i + 1
    return 0


def look_up_sysv(table: bytes, names: list[bytes], name: bytes) -> int:
    count, chains, *rest = struct.unpack(f"<{len(table) // 4}I", table)
    assert chains == len(names)
    i = rest[sysv_hash(name) % count]
    while i and names[i] != name:
        i = rest[count + i]
    return i


@given(SYMBOL_NAMES, st.text("abcxyz", min_size=1).map(str.encode))
def test_every_name_is_found_in_both_tables_and_no_other(names: list[bytes], other: bytes) -> None:
    ordered = [b"", *(names[i] for i in gnu_order(names))]
    gnu, sysv = gnu_hash_table(ordered[1:], 1), sysv_hash_table(ordered)
    for i, name in enumerate(ordered[1:], 1):
        assert look_up_gnu(gnu, ordered, name) == i
        assert look_up_sysv(sysv, ordered, name) == i
    if other not in names:
        assert look_up_gnu(gnu, ordered, other) == look_up_sysv(sysv, ordered, other) == 0


def test_hashes_equal_published_values() -> None:
    # The examples of the gABI and of the GNU hash section's description.
    assert sysv_hash(b"printf") == 0x077905A6
    assert sysv_hash(b"exit") == 0x0006CF04
    assert gnu_hash(b"printf") == 0x156B2BB8
    assert gnu_hash(b"exit") == 0x7C967E3F


def test_kernels_of_linked_files_are_found() -> None:
    for name in NAMES:
        elf = read_elf(link(object_bytes(name)))
        dynsym, gnu, sysv = elf.find(SHT_DYNSYM), elf.find(SHT_GNU_HASH), elf.find(SHT_HASH)
        assert dynsym is not None and gnu is not None and sysv is not None
        names = [s.name.encode() for s in elf.symbols(dynsym)]
        for i, symbol in enumerate(names[1:], 1):
            assert look_up_gnu(elf.content(gnu), names, symbol) == i
            assert look_up_sysv(elf.content(sysv), names, symbol) == i
