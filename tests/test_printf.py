"""The printf buffer: its form, its order, its limits."""

from __future__ import annotations

import io
import struct

import pytest

from flyllvm.errors import LaunchError
from flyllvm.printf import HEADER_BYTES, capacity_bytes, comments, formats_in, lines_of, new_buffer, write_lines


def buffer(*records: tuple[int, ...], dropped: int = 0, capacity: int = 4096) -> bytearray:
    data = b"".join(struct.pack(f"<{len(r)}I", *r) for r in records)
    made = bytearray(HEADER_BYTES + capacity)
    struct.pack_into("<3Q", made, 0, len(data), capacity, dropped)
    made[HEADER_BYTES : HEADER_BYTES + min(len(data), capacity)] = data[:capacity]
    return made


def bits(form: str, value: float) -> int:
    return int.from_bytes(struct.pack(form, value), "little")


def test_lines_come_by_workgroup_then_work_item_then_time() -> None:
    records = [
        (1, 1, 0, 0, 5, 10),
        (1, 0, 1, 0, 0, 11),
        (1, 1, 0, 0, 3 << 10, 12),
        (1, 1, 0, 0, 2, 13),
        (2, 1, 0, 0, 2),
    ]
    assert lines_of(buffer(*records), ["{u32}", "end"]) == ["13", "end", "10", "12", "11"]


@pytest.mark.parametrize(
    ("kind", "words", "shown"),
    [
        ("bool", (1,), "True"),
        ("s8", (0xFFFFFFFE,), "-2"),
        ("u8", (200,), "200"),
        ("s64", (0, 0x80000000), str(-(2**63))),
        ("u64", (0xFFFFFFFF, 0xFFFFFFFF), str(2**64 - 1)),
        ("f32", (bits("<f", 0.1),), "0.1"),
        ("f32", (bits("<f", 3.4028234663852886e38),), "3.4028235e+38"),
        ("f32", (bits("<f", float("-inf")),), "-inf"),
        ("f32", (bits("<f", float("nan")),), "nan"),
        ("f32", (bits("<f", -0.0),), "-0.0"),
        ("f16", (bits("<f", 0.0999755859375),), "0.1"),
        ("f64", (bits("<d", 0.1) & 0xFFFFFFFF, bits("<d", 0.1) >> 32), "0.1"),
        ("f64", (bits("<d", 1 / 3) & 0xFFFFFFFF, bits("<d", 1 / 3) >> 32), "0.3333333333333333"),
    ],
)
def test_each_type_is_shown_with_all_its_digits(kind: str, words: tuple[int, ...], shown: str) -> None:
    assert lines_of(buffer((1, 0, 0, 0, 0, *words)), ["<{" + kind + "}>"]) == [f"<{shown}>"]


def test_braces_of_a_format_are_shown_once() -> None:
    assert lines_of(buffer((1, 0, 0, 0, 0, 7)), ["{{{s32}}} {{s32}}"]) == ["{7} {s32}"]


def test_what_did_not_fit_is_counted_with_the_bytes_that_it_needs() -> None:
    records = [(1, 0, 0, 0, i, i) for i in range(4)]
    out = io.StringIO()
    made = buffer(*records, dropped=2, capacity=60)
    made[HEADER_BYTES + 48 :] = bytes(12)
    write_lines(made, ["{u32}"], out)
    assert out.getvalue().splitlines() == [
        "0",
        "1",
        "printf: 2 records were dropped: 60 bytes were full; set FLYLLVM_PRINTF_BYTES=96 or more to see them",
    ]


def test_a_record_of_no_format_is_an_error() -> None:
    with pytest.raises(LaunchError, match="do not write to the buffer"):
        lines_of(buffer((9, 0, 0, 0, 0)), ["x"])


def test_formats_survive_in_comments() -> None:
    formats = ['quote " and \\ {s32}', "two\nlines \u2028 ü; large tile: ", ""]
    text = "\n".join(["define void @k()", *comments(formats)]) + "\n"
    assert formats_in(text) == formats
    assert formats_in("; nothing\n") == []
    with pytest.raises(LaunchError, match="compile the kernel again"):
        formats_in('x\n; printf "{s7}"\n')


def test_the_size_of_the_buffer_is_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FLYLLVM_PRINTF_BYTES", "128")
    assert len(new_buffer()) == HEADER_BYTES + 128
    for wrong in ("63", "66", "-4", "many", "4294967296"):
        monkeypatch.setenv("FLYLLVM_PRINTF_BYTES", wrong)
        with pytest.raises(LaunchError, match=r"a multiple of 4, from 64 to 2\*\*31"):
            capacity_bytes()
