"""Integers above 64 bits: rows of words that are moved, cut and put together, as compilers do to load 16 bytes."""

from __future__ import annotations

import re

from .. import types as ty
from ..ir import Inst
from .lower import Lowering
from .parts import NotCovered, Part, bits_of, is_wide, part_types
from .text import Values

_MOVES = frozenset("load store select freeze bitcast extractvalue insertvalue".split())
_BUFFER = re.compile(r"llvm\.amdgcn\.(?:raw|struct)\.(?:ptr\.)?buffer\.(?:load|store)\.")


def moves(inst: Inst) -> bool:
    """Whether an instruction only moves its operands' parts, so that it takes any number of them."""
    return inst.op in _MOVES or bool(_BUFFER.match(inst.callee or ""))


def lower(b: Lowering, inst: Inst) -> list[Part]:
    """The parts of what an instruction with a wide operand or result computes.

    Raises:
        NotCovered: It is none of those here.
    """
    op, t = inst.op, inst.type
    if op in ("and", "or", "xor"):
        word = part_types(t)[0]
        x, y = map(b.parts, inst.operands)
        return b.each(lambda v, p, q: [v.op(op, word, p, q)], word, x, y)
    if op in ("shl", "lshr"):
        amount = b.number(inst.operands[1], "a shift of a wide integer")
        if amount < getattr(t, "bits", 0):
            return _shifted(b, b.parts(inst.operands[0]), amount if op == "lshr" else -amount)
    if op == "trunc" and not isinstance(t, ty.VecType):
        return _cut(b, b.parts(inst.operands[0]), t)
    if op == "zext":
        return _extended(b, inst.operands[0].type, b.parts(inst.operands[0]), part_types(t))
    if op == "icmp" and inst.extra["pred"] in ("eq", "ne"):
        return _compared(b, inst.extra["pred"], *map(b.parts, inst.operands))
    wide = next(x for x in (t, *(o.type for o in inst.operands)) if is_wide(x))
    raise NotCovered(f"{inst.callee or op} of {wide}")


def _zero(t: str) -> Part:
    return Part(t, True, -1, -1, "0")


def _shifted(b: Lowering, parts: list[Part], right: int) -> list[Part]:
    """The words moved by a constant number of bits, to lower ones for positive numbers."""
    t, width = parts[0].type, bits_of(parts[0].type)
    words, by = divmod(right, width)

    def at(i: int) -> Part:
        return parts[i] if 0 <= i < len(parts) else _zero(t)

    if by == 0:
        return b.renamed([at(i + words) for i in range(len(parts))])

    def run(v: Values, low: str, high: str) -> list[str]:
        below = v.op("lshr", t, low, v.const(t, by))
        return [v.op("or", t, below, v.op("shl", t, high, v.const(t, width - by)))]

    return [b.apply(run, [at(i + words), at(i + words + 1)], [t])[0] for i in range(len(parts))]


def _cut(b: Lowering, parts: list[Part], target: ty.Type) -> list[Part]:
    """The lowest bits."""
    t = parts[0].type
    types = part_types(target)
    if types[0] == t:
        return b.renamed(parts[: len(types)])
    if is_wide(target):
        raise NotCovered(f"trunc to {target}")
    if bits_of(types[0]) < bits_of(t):
        return b.apply(lambda v, a: [v.cast("trunc", t, a, types[0])], parts[:1], types)

    def run(v: Values, *args: str) -> list[str]:
        total = v.cast("zext", t, args[0], types[0])
        high = v.op("shl", types[0], v.cast("zext", t, args[1], types[0]), v.const(types[0], bits_of(t)))
        return [v.op("or", types[0], total, high)]

    return b.apply(run, parts[:2], types)


def _extended(b: Lowering, source: ty.Type, parts: list[Part], types: list[str]) -> list[Part]:
    """Words of a narrower integer, and zeros above."""
    s, t = parts[0].type, types[0]
    if s != t:
        if len(parts) > 1 or bits_of(s) > bits_of(t):
            raise NotCovered(f"zext of {source}")
        parts = b.apply(lambda v, a: [v.cast("zext", s, a, t)], parts, [t])
    return b.renamed([*parts, *(_zero(t) for _ in range(len(types) - len(parts)))])


def _compared(b: Lowering, pred: str, x: list[Part], y: list[Part]) -> list[Part]:
    t = x[0].type

    def run(v: Values, *args: str) -> list[str]:
        total = ""
        for p, q in zip(args[: len(x)], args[len(x) :], strict=True):
            differs = v.op("xor", t, p, q)
            total = v.op("or", t, total, differs) if total else differs
        return [v.op(f"icmp {pred}", t, total, v.const(t, 0))]

    return b.apply(run, [*x, *y], ["i1"])
