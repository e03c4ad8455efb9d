"""Says whether two kernels are the same program."""

from __future__ import annotations

import math
from typing import Any

from flyllvm.ir.core import Block, Kernel, Value


def differences(a: Kernel, b: Kernel, *, locations: bool, facts: bool = True) -> list[str]:
    """What differs between two kernels, empty when they are the same; names of values do not count.

    ``b`` must know at least what ``a`` knows of its integers, unless ``facts`` is off.
    """
    out: list[str] = []
    if (a.name, a.arg_attrs, a.attrs) != (b.name, b.arg_attrs, b.attrs):
        out.append(f"kernel: {(a.name, a.arg_attrs, a.attrs)} / {(b.name, b.arg_attrs, b.attrs)}")
    weaker: list[str] = []
    _blocks(a.body, b.body, {}, out, weaker, locations)
    return out + weaker if facts else out


def _blocks(a: Block, b: Block, same: dict[int, Value], out: list[str], weaker: list[str], locations: bool) -> None:
    if [x.type for x in a.args] != [x.type for x in b.args] or len(a.ops) != len(b.ops) or a.depth != b.depth:
        out.append(f"blocks of {len(a.ops)} and {len(b.ops)} operations, depth {a.depth} and {b.depth}")
        return
    same.update((id(x), y) for x, y in zip(a.args, b.args, strict=True))
    weaker += _weaker(a.args, b.args)
    for x, y in zip(a.ops, b.ops, strict=True):
        attrs = {k: v for k, v in x.attrs.items() if v is not None}
        alike = type(x) is type(y) and [r.type for r in x.results] == [r.type for r in y.results]
        alike = alike and [id(same[id(v)]) for v in x.operands] == [id(v) for v in y.operands]
        if not alike or not _equal(attrs, dict(y.attrs)) or len(x.regions) != len(y.regions):
            out.append(f"{x} {attrs} / {y} {y.attrs}")
            return
        if locations and x.loc.key() != y.loc.key():
            out.append(f"{x}: at {x.loc.key()} / {y.loc.key()}")
        same.update((id(p), q) for p, q in zip(x.results, y.results, strict=True))
        weaker += _weaker(x.results, y.results)
        for r, s in zip(x.regions, y.regions, strict=True):
            _blocks(r, s, same, out, weaker, locations)


def _weaker(a: list[Value], b: list[Value]) -> list[str]:
    """Values of ``b`` that are known less well than those of ``a``."""
    out = []
    for x, y in zip(a, b, strict=True):
        narrow = x.range is None or (y.range is not None and x.range[0] <= y.range[0] and y.range[1] <= x.range[1])
        if y.divisibility % x.divisibility or not narrow:
            out.append(f"{x} of {x.owner}: {x.divisibility} {x.range} / {y.divisibility} {y.range}")
    return out


def _equal(a: Any, b: Any) -> bool:
    """Equality in which NaN equals NaN and the signs of zeros count."""
    if isinstance(a, dict):
        return isinstance(b, dict) and a.keys() == b.keys() and all(_equal(a[k], b[k]) for k in a)
    if isinstance(a, tuple):
        return isinstance(b, tuple) and len(a) == len(b) and all(map(_equal, a, b))
    if isinstance(a, float) or isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return bool(a == b)
