"""The tables by which a loader finds symbols: both hash tables and the dynamic section.

Source: System V gABI, "Dynamic Section" and "Hash Table"; the GNU hash table as ``ld.lld`` writes it.
"""

from __future__ import annotations

import struct

_MASK32 = (1 << 32) - 1
# Second Bloom filter bit of a symbol: its hash shifted by this many bits.
_BLOOM_SHIFT = 26

DT_NULL, DT_HASH, DT_STRTAB, DT_SYMTAB, DT_RELA, DT_RELASZ, DT_RELAENT, DT_STRSZ, DT_SYMENT = (
    0,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
    11,
)
DT_GNU_HASH, DT_RELACOUNT = 0x6FFFFEF5, 0x6FFFFFF9


def gnu_hash(name: bytes) -> int:
    """The GNU hash of a symbol name: ``h = h * 33 + c`` from 5381, 32 bits."""
    h = 5381
    for c in name:
        h = (h * 33 + c) & _MASK32
    return h


def sysv_hash(name: bytes) -> int:
    """The System V hash of a symbol name, 28 bits."""
    h = 0
    for c in name:
        h = (h << 4) + c
        h = (h ^ ((h >> 24) & 0xF0)) & 0x0FFFFFFF
    return h


def gnu_order(names: list[bytes]) -> list[int]:
    """Order in which a GNU hash table wants its symbols: by bucket, then as they come."""
    buckets = max(len(names) // 4, 1)
    return sorted(range(len(names)), key=lambda i: gnu_hash(names[i]) % buckets)


def gnu_hash_table(names: list[bytes], first: int) -> bytes:
    """The ``.gnu.hash`` section.

    Args:
        names: Symbol names in the order of `gnu_order`.
        first: Index of the first of them in the symbol table.
    """
    count = max(len(names) // 4, 1)
    words = 1 << (len(names) * 12 // 64).bit_length()
    bloom = [0] * words
    buckets = [0] * count
    chain = [0] * len(names)
    hashes = [gnu_hash(name) for name in names]
    for i, h in enumerate(hashes):
        bloom[h // 64 % words] |= 1 << h % 64 | 1 << (h >> _BLOOM_SHIFT) % 64
        bucket = h % count
        if not buckets[bucket]:
            buckets[bucket] = first + i
        last = i + 1 == len(hashes) or hashes[i + 1] % count != bucket
        chain[i] = h | 1 if last else h & ~1
    head = struct.pack(f"<IIII{words}Q", count, first, words, _BLOOM_SHIFT, *bloom)
    return head + struct.pack(f"<{count + len(chain)}I", *buckets, *chain)


def sysv_hash_table(names: list[bytes]) -> bytes:
    """The ``.hash`` section, with as many buckets as symbols.

    Args:
        names: All names of the dynamic symbol table, the empty one of the null symbol first.
    """
    count = len(names)
    buckets, chain = [0] * count, [0] * count
    for i in range(1, count):
        bucket = sysv_hash(names[i]) % count
        chain[i] = buckets[bucket]
        buckets[bucket] = i
    return struct.pack(f"<{2 + 2 * count}I", count, count, *buckets, *chain)
