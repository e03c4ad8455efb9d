"""``flyllvm cache``: look at the disk cache, and make it smaller."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Any

from ..errors import CodegenError

if TYPE_CHECKING:
    import argparse

    from ..compiler.cache import Cache

ACTIONS = ("list", "prune", "clear")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument("action", nargs="?", choices=ACTIONS, default="list", help="what to do (default: list)")
    parser.add_argument("--size", metavar="BYTES", help="prune: what may stay, e.g. 100M (default: the cache's limit)")
    parser.add_argument("--days", type=float, metavar="N", help="prune: also what was not used for N days")
    parser.add_argument("--json", action="store_true", help="print JSON, and errors as a JSON object on stderr")


def run(ns: argparse.Namespace) -> int:
    """Lists, prunes or clears.

    Raises:
        CodegenError: The options do not fit the action, or the directory cannot be used.
    """
    from ..compiler.cache import Cache, default_directory, parse_size, size_limit

    if ns.action != "prune" and (ns.size is not None or ns.days is not None):
        raise CodegenError(f"flyllvm cache {ns.action} with --size or --days", fix="they belong to prune")
    if ns.days is not None and ns.days < 0:
        raise CodegenError(f"--days {ns.days:g}", fix="use 0 or more")
    cache = Cache(default_directory(), size_limit())
    if cache.why_off is not None:
        raise CodegenError(f"the cache cannot be used: {cache.why_off}", fix="set FLYLLVM_CACHE_DIR to your own")
    if ns.action == "list":
        return _list(cache, ns.json)
    if ns.action == "clear":
        count, freed = cache.clear()
    else:
        days = None if ns.days is None else ns.days * 86400
        count, freed = cache.prune(None if ns.size is None else parse_size(ns.size, "--size"), days)
    if ns.json:
        _json({"directory": cache.root, "removed": count, "removed_bytes": freed, "bytes": cache.total_bytes()})
    else:
        print(f"{cache.root}: removed {count} entries, {freed} bytes; {cache.total_bytes()} bytes left")
    return 0


def _list(cache: Cache, json: bool) -> int:
    rows = sorted(_rows(cache), key=lambda r: (-r["used_seconds_ago"], r["file"]))
    total = sum(r["bytes"] for r in rows)
    if json:
        switched_off = os.environ.get("FLYLLVM_CACHE", "").strip().lower() in ("0", "off", "no", "false")
        _json(
            {
                "directory": cache.root,
                "limit_bytes": cache.size_limit_bytes,
                "bytes": total,
                "switched_off": switched_off,
                "entries": rows,
            }
        )
        return 0
    for r in rows:
        name = r["name"] or ("not readable" if r["damaged"] else "")
        print(f"{r['kind']:<7}{r['bytes']:>9} B {_ago(r['used_seconds_ago']):>8}  {r['target'] or '':<22} {name}")
    print(f"{cache.root}: {len(rows)} entries, {total} of {cache.size_limit_bytes} bytes")
    return 0


def _rows(cache: Cache) -> list[dict[str, Any]]:
    from ..compiler.cache.entry import Damaged, decode

    rows = []
    for kind, path, info in cache.files():
        facts: dict[str, Any] = {}
        damaged = False
        try:
            with open(path, "rb") as f:
                facts, _ = decode(f.read())
        except OSError:
            continue  # another process has removed it
        except Damaged:
            damaged = True
        rows.append(
            {
                "kind": kind,
                "file": os.path.basename(path),
                "bytes": info.st_size,
                "used_seconds_ago": max(0.0, round(time.time() - info.st_mtime, 1)),
                "name": facts.get("name"),
                "target": facts.get("target"),
                "damaged": damaged,
            }
        )
    return rows


def _ago(seconds: float) -> str:
    for unit, size in (("d", 86400), ("h", 3600), ("min", 60)):
        if seconds >= size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _json(body: dict[str, Any]) -> None:
    import json

    json.dump(body, sys.stdout)
    sys.stdout.write("\n")
