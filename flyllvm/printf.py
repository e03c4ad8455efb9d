"""The buffer that kernels print through: who writes it, who reads it and how.

A kernel that prints has a trailing argument, the pointer ``%flyllvm.printf``.  Whoever launches it allocates the buffer
and reads it after the launch.  All numbers are little endian::

    bytes 0-7     bytes that records asked for, in sum; lanes reserve theirs by adding to it
    bytes 8-15    capacity: bytes that records may take
    bytes 16-23   records that did not fit
    bytes 24-31   zero
    bytes 32-     records, each in words of 32 bits:
                  number of the format plus 1, workgroup x, y, z, work item x | y << 10 | z << 20, values

The sum only grows, so what fits is a gapless prefix.  The formats are comments at the end of the LLVM IR, one a line,
so that every copy of the text has them.  Each value stands as its type in braces: ``n = {s32}, {{{f16}}}``.
"""

from __future__ import annotations

import os

from .errors import LaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any, TextIO

#: Name of the trailing argument.
PARAMETER = "flyllvm.printf"
#: What the comment of a format starts with.
MARK = "; printf "
HEADER_BYTES = 32
#: Words of a record in front of its values.
HEAD_WORDS = 5
#: Words that a value of each type takes.
WORDS = {
    "bool": 1, "s8": 1, "s16": 1, "s32": 1, "s64": 2, "u8": 1, "u16": 1, "u32": 1, "u64": 2,
    "f16": 1, "bf16": 1, "f32": 1, "f64": 2,
}  # fmt: skip
VARIABLE = "FLYLLVM_PRINTF_BYTES"
_DEFAULT_BYTES = 1 << 20
_LIMIT_BYTES = 1 << 31
_PIECES = r"(\{\{|\}\}|\{\w+\})"


def comments(formats: Sequence[str]) -> list[str]:
    """The lines that keep formats in LLVM IR."""
    if not formats:
        return []
    import json

    return [MARK + json.dumps(text) for text in formats]


def formats_in(llvm_ir: str) -> list[str]:
    """The formats that LLVM IR keeps.

    Raises:
        LaunchError: One of them is damaged.
    """
    if f"\n{MARK}" not in llvm_ir:
        return []
    import json

    out = []
    for line in llvm_ir.splitlines():
        if line.startswith(MARK):
            try:
                text = json.loads(line[len(MARK) :])
                _fields(text)
            except (ValueError, KeyError, TypeError):
                raise LaunchError(
                    f"the format of a printf is damaged: {line}", fix="compile the kernel again"
                ) from None
            out.append(text)
    return out


def capacity_bytes() -> int:
    """Bytes that the records of a launch may take: ``FLYLLVM_PRINTF_BYTES``, by default 1 MiB.

    Raises:
        LaunchError: It is no multiple of 4 from 64 to 2**31.
    """
    given = os.environ.get(VARIABLE, "")
    if not given:
        return _DEFAULT_BYTES
    size = int(given) if given.isascii() and given.isdigit() else 0
    if size % 4 or not 64 <= size <= _LIMIT_BYTES:
        raise LaunchError(f"{VARIABLE}={given!r}", fix="use a number of bytes: a multiple of 4, from 64 to 2**31")
    return size


def new_buffer() -> bytearray:
    """An empty buffer."""
    capacity = capacity_bytes()
    buffer = bytearray(HEADER_BYTES + capacity)
    buffer[8:16] = capacity.to_bytes(8, "little")
    return buffer


def write_lines(
    buffer: Any, formats: Sequence[str], to: TextIO | None = None, start: int = HEADER_BYTES, last: bool = True
) -> int:
    """Prints what a launch left in its buffer.

    Args:
        buffer: Its bytes.
        formats: The formats of the kernel's module.
        to: Where to; by default ``sys.stdout``.
        start: Byte of the first record to print; those in front of it were printed before.
        last: Whether the launch is done, so that what was lost is said.

    Returns:
        The byte behind the records that are printed now.
    """
    records, end = _records(buffer, formats, start)
    for line in [*records, *(_lost(buffer) if last else [])]:
        print(line, file=to)
    return end


def lines_of(buffer: Any, formats: Sequence[str]) -> list[str]:
    """The text of each record in the order of workgroups, work items and time, and of what was lost.

    Raises:
        LaunchError: The buffer holds what no kernel of these formats writes.
    """
    return _records(buffer, formats, HEADER_BYTES)[0] + _lost(buffer)


def _records(buffer: Any, formats: Sequence[str], start: int) -> tuple[list[str], int]:
    """(the text of each record from a byte on, the byte behind them)."""
    from struct import unpack_from

    reserved, capacity = unpack_from("<2Q", buffer)
    end = HEADER_BYTES + min(reserved, capacity)
    fields = [_fields(text) for text in formats]
    records = []
    at = start
    while at + 4 * HEAD_WORDS <= end:
        number, x, y, z, item = unpack_from("<5I", buffer, at)
        if number == 0:
            break  # here starts the first record that did not fit
        if number > len(fields):
            raise LaunchError(f"record of format {number - 1} in the printf buffer", fix="do not write to the buffer")
        pieces, words = fields[number - 1]
        key = (z, y, x, item >> 20, item >> 10 & 1023, item & 1023)
        records.append((key, _text(pieces, buffer, at + 4 * HEAD_WORDS)))
        at += 4 * (HEAD_WORDS + words)
    # The sort is stable, and a lane reserves its records in the order of its program.
    records.sort(key=lambda record: record[0])
    return [text for _, text in records], at


def _lost(buffer: Any) -> list[str]:
    """What to say of records that did not fit, if there are any."""
    from struct import unpack_from

    reserved, capacity, dropped = unpack_from("<3Q", buffer)
    if not dropped:
        return []
    return [
        f"printf: {dropped} records were dropped: {capacity} bytes were full; "
        f"set {VARIABLE}={reserved} or more to see them"
    ]


def _fields(text: str) -> tuple[list[str], int]:
    """(a format cut at its values and braces, words that its values take)."""
    import re

    pieces = re.split(_PIECES, text)
    return pieces, sum(WORDS[p[1:-1]] for p in pieces[1::2] if len(p) > 2)


def _text(pieces: list[str], buffer: Any, at: int) -> str:
    out = []
    for i, piece in enumerate(pieces):
        if i % 2 == 0:
            out.append(piece)
        elif len(piece) == 2:
            out.append(piece[0])
        else:
            kind = piece[1:-1]
            out.append(_value(kind, buffer, at))
            at += 4 * WORDS[kind]
    return "".join(out)


def _value(kind: str, buffer: Any, at: int) -> str:
    from struct import unpack_from

    if kind == "bool":
        return str(buffer[at] != 0)
    by_size = {"f": "fd", "b": "f", "s": "iq", "u": "IQ"}[kind[0]]
    value = unpack_from("<" + by_size[WORDS[kind] - 1], buffer, at)[0]
    return _shortest(value, kind) if isinstance(value, float) else str(value)


def _shortest(value: float, kind: str) -> str:
    """The shortest decimal that reads back as the same number of its type; bf16 is shown with the digits of f32."""
    from struct import pack

    form = {"f16": "<e", "f64": "<d"}.get(kind, "<f")
    for digits in range(1, 17):
        text = f"{value:.{digits}g}"
        try:
            if pack(form, float(text)) == pack(form, value):
                return repr(float(text))
        except OverflowError:
            continue  # rounded up past the largest
    return repr(value)
