"""The committed fixtures: objects that LLVM emitted, and what a stock ld.lld made of each."""

from __future__ import annotations

from pathlib import Path

FIXTURES = Path(__file__).parents[1] / "fixtures" / "codeobject"
NAMES = sorted(path.stem for path in FIXTURES.glob("*.o"))


def object_bytes(name: str) -> bytes:
    return (FIXTURES / f"{name}.o").read_bytes()


def lld_bytes(name: str) -> bytes:
    return (FIXTURES / f"{name}.hsaco").read_bytes()
