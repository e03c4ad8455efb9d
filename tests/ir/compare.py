"""Says whether two kernels are the same program."""

from __future__ import annotations

import math
from typing import Any

from flyllvm.ir.core import Block, Kernel, Value


def differences(a: Kernel, b: Kernel, *, locations: bool) -> list[str]:
    """What differs between two kernels, empty when they are the same; names of values do not count."""
    out: list[str] = []
    if (a.name, a.arg_attrs, a.attrs) != (b.name, b.arg_attrs, b.attrs):
        out.append(f"kernel: {(a.name, a.arg_attrs, a.attrs)} / {(b.name, b.arg_attrs, b.attrs)}")
    _blocks(a.body, b.body, {}, out, locations)
    return out


def _blocks(a: Block, b: Block, same: dict[int, Value], out: list[str], locations: bool) -> None:
    if [x.type for x in a.args] != [x.type for x in b.args] or len(a.ops) != len(b.ops) or a.depth != b.depth:
        out.append(f"blocks of {len(a.ops)} and {len(b.ops)} operations, depth {a.depth} and {b.depth}")
        return
    same.update((id(x), y) for x, y in zip(a.args, b.args, strict=True))
    out += [f"argument {x}: divisibility" for x, y in zip(a.args, b.args) if x.divisibility != y.divisibility]
    for x, y in zip(a.ops, b.ops, strict=True):
        attrs = {k: v for k, v in x.attrs.items() if v is not None}
        alike = type(x) is type(y) and [r.type for r in x.results] == [r.type for r in y.results]
        alike = alike and [id(same[id(v)]) for v in x.operands] == [id(v) for v in y.operands]
        if not alike or not _equal(attrs, y.attrs) or len(x.regions) != len(y.regions):
            out.append(f"{x} {attrs} / {y} {y.attrs}")
            return
        if locations and x.loc.key() != y.loc.key():
            out.append(f"{x}: at {x.loc.key()} / {y.loc.key()}")
        same.update((id(p), q) for p, q in zip(x.results, y.results, strict=True))
        for r, s in zip(x.regions, y.regions, strict=True):
            _blocks(r, s, same, out, locations)


def _equal(a: Any, b: Any) -> bool:
    """Equality in which NaN equals NaN and the signs of zeros count."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b)
