"""The report as one HTML page: heat per line, traffic, and a map of LDS bank conflicts."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report import SimReport

_STYLE = """
body { font: 14px/1.4 sans-serif; margin: 2em; color: #222; }
table { border-collapse: collapse; } td, th { padding: 1px 8px; text-align: right; white-space: nowrap; }
th { border-bottom: 1px solid #888; } td.code { text-align: left; font-family: monospace; white-space: pre; }
.bad { color: #b00; font-weight: bold; } .note { color: #666; }
svg text { font: 10px sans-serif; }
"""


def page(report: SimReport) -> str:
    """A page that needs no other file."""
    total = max(1, sum(row["instructions"] for row in report.lines))
    rows = "\n".join(_row(row, total) for row in report.lines)
    warnings = "".join(f"<p class=bad>warning: {escape(text)}</p>" for text in report.warnings)
    return f"""<!doctype html>
<html lang=en><meta charset=utf-8><title>{escape(report.kernel)}</title><style>{_STYLE}</style>
<h1>@{escape(report.kernel)} on {escape(report.target)}</h1>
<p>grid {"x".join(map(str, report.grid))}, block {"x".join(map(str, report.block))}, LDS {report.lds_bytes} bytes,
{report.matrix_flops} matrix FLOPs, {report.divergences} divergent branches, {report.clipped_lanes} clipped lanes</p>
{_occupancy(report.occupancy)}
{warnings}
<table><tr><th>waves<th>lanes/wave<th>global bytes<th>64 B segments<th>used<th>LDS bytes<th>conflict<th>clipped
<th style="text-align:left">line</tr>
{rows}
</table>
{_bank_map(report.banks)}
<p class=note>{escape(report.footer)}</p></html>
"""


def _occupancy(found: dict[str, Any] | None) -> str:
    if found is None:
        return ""
    from .report import occupancy_lines

    return f"<p>{'<br>'.join(map(escape, occupancy_lines(found)))}</p>"


def _row(row: dict[str, Any], total: int) -> str:
    share = row["instructions"] / total
    heat = f"background: rgba(255, 120, 0, {min(1.0, 4 * share):.3f})"
    used = row["global_bytes"] / (64 * row["segments_64"]) if row["segments_64"] else None
    conflict = row["lds_cycles"] / row["lds_ideal_cycles"] if row["lds_ideal_cycles"] else None
    cells = [
        row["instructions"], f"{row['lane_instructions'] / max(1, row['instructions']):.1f}", row["global_bytes"] or "",
        row["segments_64"] or "", _cell(used, "{:.0%}", used is not None and used < 0.5), row["lds_bytes"] or "",
        _cell(conflict, "{:.2f}x", conflict is not None and conflict > 1.05), row["clipped_lanes"] or "",
    ]  # fmt: skip
    columns = "".join(f"<td>{cell}" for cell in cells)
    return f'<tr style="{heat}">{columns}<td class=code>{escape(row["where"])}  {escape(row.get("text", ""))}</tr>'


def _cell(value: float | None, form: str, bad: bool) -> str:
    if value is None:
        return ""
    return f"<span class=bad>{form.format(value)}</span>" if bad else form.format(value)


def _bank_map(banks: dict[str, list[int]]) -> str:
    """One strip per LDS instruction: how often each bank was asked for a different word."""
    if not banks:
        return ""
    strips = []
    for number, (where, counts) in enumerate(banks.items()):
        top = max(1, *counts)
        y = 20 + 18 * number
        cells = "".join(
            f'<rect x="{12 * i}" y="{y}" width="11" height="14" fill="rgba(180,0,0,{count / top:.3f})" stroke="#ccc">'
            f"<title>bank {i}: {count} words</title></rect>"
            for i, count in enumerate(counts)
        )
        strips.append(f'{cells}<text x="{12 * len(counts) + 8}" y="{y + 11}">{escape(where)}</text>')
    width = 12 * max(map(len, banks.values())) + 400
    height = 20 + 18 * len(banks)
    return (
        f'<h2>LDS banks</h2><svg width="{width}" height="{height}"><text x="0" y="12">banks from 0; darker: more '
        f"words asked of it</text>{''.join(strips)}</svg>"
    )
