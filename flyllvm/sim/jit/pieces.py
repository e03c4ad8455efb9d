"""Parts of the host module that are the same, or nearly so, for all kernels."""

from __future__ import annotations

from ..memory import Region


def lane_tables(names: list[str], block: tuple[int, int, int], lanes: int, wave_size: int) -> list[str]:
    """Those of the constants that differ between lanes which are in ``names``."""
    x, y, _ = block
    numbers = range(lanes)
    rows = {
        "@item_x": [i % x for i in numbers],
        "@item_y": [i // x % y for i in numbers],
        "@item_z": [i // (x * y) for i in numbers],
        "@wave_id": [i // wave_size for i in numbers],
        "@below_lo": [(1 << min(32, i % wave_size)) - 1 for i in numbers],
        "@below_hi": [(1 << min(32, max(0, i % wave_size - 32))) - 1 for i in numbers],
    }
    out = []
    for name in names:
        if name in rows:
            items = ", ".join(f"i32 {v - (1 << 32) if v >> 31 else v}" for v in rows[name])
            out.append(f"{name} = internal constant [{lanes} x i32] [ {items} ], align 64")
    return out


def region_table(name: str, regions: list[Region]) -> str:
    """Start, size, whether read-only and whether written of each region."""
    items = [f"i64 {n}" for r in regions for n in (r.start, r.size, int(r.readonly), 0)] or ["i64 0"]
    return f"{name} = internal global [{len(items)} x i64] [ {', '.join(items)} ], align 16"


def once(lines: list[str]) -> list[str]:
    """Lines without repeated declarations and tables: functions bring those that they use."""
    seen: set[str] = set()
    out = []
    for line in lines:
        if line.startswith(("declare ", "@codes_")):
            if line in seen:
                continue
            seen.add(line)
        out.append(line)
    return out


#: Finds the region of an access; a hint is set to it.
FIND_REGION = """\
define internal i1 @find_region(ptr %table, i64 %count, i64 %at, i64 %size, i1 %write, ptr %hint) noinline nounwind {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %more = icmp ult i64 %i, %count
  br i1 %more, label %look, label %no
look:
  %row = getelementptr { i64, i64, i64, i64 }, ptr %table, i64 %i
  %start = load i64, ptr %row
  %bytes_at = getelementptr i8, ptr %row, i64 8
  %bytes = load i64, ptr %bytes_at
  %from = sub i64 %at, %start
  %to = add i64 %from, %size
  %a = icmp ult i64 %from, %bytes
  %b = icmp ule i64 %to, %bytes
  %in = and i1 %a, %b
  br i1 %in, label %found, label %next
next:
  %i1 = add i64 %i, 1
  br label %head
found:
  br i1 %write, label %mark, label %yes
mark:
  %fixed_at = getelementptr i8, ptr %row, i64 16
  %fixed = load i64, ptr %fixed_at
  %written = getelementptr i8, ptr %row, i64 24
  store i64 1, ptr %written
  %free = icmp eq i64 %fixed, 0
  br i1 %free, label %yes, label %no
yes:
  store i64 %start, ptr %hint
  %hint_size = getelementptr i8, ptr %hint, i64 8
  store i64 %bytes, ptr %hint_size
  ret i1 true
no:
  ret i1 false
}"""


def ends(done: int, fault: int, endless: int, strange: int) -> list[str]:
    """The end of a workgroup, and the ways in which a run ends, each with its status."""
    return [
        "group_done:",
        "  %linear1 = add i64 %linear, 1",
        "  %again = icmp ult i64 %linear1, %last",
        "  br i1 %again, label %group, label %all_done",
        *_status("all_done", done),
        *_status("fault", fault),
        *_status("endless", endless),
        *_status("strange", strange),
    ]


def _status(label: str, number: int) -> list[str]:
    return [f"{label}:", f"  ret i32 {number}"]
