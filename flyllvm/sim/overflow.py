"""Integer overflow, on request: results that break ``nuw`` / ``nsw``, and addresses that wrapped.

So are the other promises of instructions: ``exact``, ``disjoint``, ``nneg``, ``samesign``, and the range of a result.

An instruction counts as address arithmetic if its result reaches the index or offset of a memory access.  It wraps
when the exact result fits the type neither as an unsigned nor as a signed number (adding a negative offset is fine).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import alu, bitfn, poison, types as ty
from .cfg import Node
from .ir import Inst, Operand, Reg
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler
    from .machine import Machine

_CHECKED = ("add", "sub", "mul", "shl")
_THROUGH = (*_CHECKED, "zext", "sext", "or", "xor", "and", "phi", "select", "freeze", "lshr", "ashr")


def address_arithmetic(graph: list[Node]) -> set[str]:
    """Names of the integer values that addresses are computed from."""
    defs = {i.name: i for n in graph for i in (*n.phis, *n.insts) if i.name is not None}
    found: set[str] = set()
    todo: list[Operand] = []
    for node in graph:
        for inst in node.insts:
            if inst.op == "getelementptr":
                todo += inst.operands[1:]
            elif inst.op == "call" and ".buffer." in (inst.callee or ""):
                todo += [o for o in inst.operands[1:] if o.type is ty.I32]
    while todo:
        operand = todo.pop()
        if not isinstance(operand, Reg) or operand.name in found:
            continue
        source = defs.get(operand.name)
        if (
            source is None
            or source.op not in _THROUGH
            or not isinstance(source.type, ty.IntType)
            or source.type.bits < 32
        ):
            continue
        found.add(operand.name)
        todo += source.operands
    return found


def checker(c: Compiler, inst: Inst, addresses: set[str]) -> Callable[[list[Any], Machine], None] | None:
    """The closure that checks one instruction before it runs, or ``None``."""
    if inst.op not in _CHECKED:
        return _promise(c, inst)
    t = ty.scalar_of(inst.type)
    bits = ty.bit_size(t)
    nuw, nsw = "nuw" in inst.flags, "nsw" in inst.flags
    wraps = inst.name in addresses
    if bits > 64 or not (nuw or nsw or wraps):
        return None
    a, b = c.slot(inst.operands[0]), c.slot(inst.operands[1])
    rules, used = [(False, nuw, "nuw"), (True, nsw, "nsw")], _used(c, inst)

    def outside(x: Array, y: Array, signed: bool) -> Array:
        low, high = bitfn.limits(bits, signed)
        if inst.op == "shl":
            wide = (alu.sign_extended(x, bits) if signed else x).astype(object) << np.minimum(y, bits).astype(object)
        else:
            wide = bitfn.exact(inst.op, t, signed)(x, y)
        return ((wide < low) | (wide > high)).astype(bool)

    def run(r: list[Any], m: Machine) -> None:
        x, y = r[a], r[b]
        over = {signed: outside(x, y, signed) for signed in (False, True)}
        for signed, promised, word in rules:
            if promised:
                _complain(m, inst, over[signed], f"the result overflows, which '{word}' promises that it never does",
                          f"drop {word}, or compute in a wider type", used)  # fmt: skip
        if wraps:
            _complain(m, inst, over[False] & over[True], f"address arithmetic overflows {bits} bits",
                      "compute the address in 64 bits", used)  # fmt: skip

    return run


def _promise(c: Compiler, inst: Inst) -> Callable[[list[Any], Machine], None] | None:
    """The same for promises that the operands alone keep or break."""
    broken = next((_BROKEN[inst.op, f] for f in inst.flags if (inst.op, f) in _BROKEN), None)
    if broken is None:
        return None
    t = ty.scalar_of(inst.operands[0].type)
    bits, kept = ty.bit_size(t), ty.bit_size(ty.scalar_of(inst.type))
    slots = [c.slot(o) for o in inst.operands]
    words, used = [f for f in inst.flags if (inst.op, f) in _BROKEN], _used(c, inst)

    def run(r: list[Any], m: Machine) -> None:
        values = [r[s] for s in slots]
        for word in words:
            bad = _BROKEN[inst.op, word](values, bits, kept)
            _complain(
                m, inst, np.asarray(bad, bool), f"the operands break what '{word}' promises", f"drop {word}", used
            )

    return run if bits <= 64 else None


def _sign(a: Array, bits: int) -> Array:
    return alu.sign_extended(a, bits) < 0


def _inexact(values: list[Array], bits: int, kept: int) -> Array:
    amount = np.minimum(values[1], values[1].dtype.type(bits - 1))
    return (values[0] >> amount) << amount != values[0]


def _remainder(signed: bool) -> Callable[[list[Array], int, int], Array]:
    def broken(values: list[Array], bits: int, kept: int) -> Array:
        a, b = ((alu.sign_extended(v, bits) if signed else v) for v in values)
        return np.where(b == 0, 0, np.fmod(a, np.where(b == 0, b.dtype.type(1), b))) != 0

    return broken


def _cut(values: list[Array], bits: int, kept: int) -> Array:
    return values[0] > values[0].dtype.type((1 << kept) - 1)


def _cut_signed(values: list[Array], bits: int, kept: int) -> Array:
    wide = alu.sign_extended(values[0], bits).astype(np.int64)
    return (wide < -(1 << kept - 1)) | (wide >= 1 << kept - 1)


# Instruction and flag to a function of the operands, their width and that of the result.
_BROKEN: dict[tuple[str, str], Callable[[list[Array], int, int], Array]] = {
    ("udiv", "exact"): _remainder(False),
    ("sdiv", "exact"): _remainder(True),
    ("lshr", "exact"): _inexact,
    ("ashr", "exact"): _inexact,
    ("or", "disjoint"): lambda v, bits, kept: (v[0] & v[1]) != 0,
    ("zext", "nneg"): lambda v, bits, kept: _sign(v[0], bits),
    ("uitofp", "nneg"): lambda v, bits, kept: _sign(v[0], bits),
    ("icmp", "samesign"): lambda v, bits, kept: _sign(v[0], bits) != _sign(v[1], bits),
    ("trunc", "nuw"): _cut,
    ("trunc", "nsw"): _cut_signed,
}


_PAIR = re.compile(r"i\d+ (-?\d+), i\d+ (-?\d+)")


def range_checker(c: Compiler, inst: Inst) -> Callable[[list[Any], Machine], None] | None:
    """The closure that checks a result against its ``range(...)`` or ``!range``, or ``None``."""
    t = ty.scalar_of(inst.type)
    pairs = inst.extra.get("attrs", {}).get("range") if inst.op == "call" else None
    node = inst.extra.get("metadata", {}).get("!range")
    if not isinstance(pairs, list) and isinstance(node, str):
        pairs = [(int(a), int(b)) for a, b in _PAIR.findall(c.module.metadata.get(node, node))]
    if not pairs or not isinstance(t, ty.IntType) or t.bits > 64 or inst.name is None:
        return None
    every, d = (1 << t.bits) - 1, c.dest(inst)
    promised = " or ".join(f"[{low}, {high})" for low, high in pairs)

    def run(r: list[Any], m: Machine) -> None:
        value = r[d].astype(np.uint64)
        inside = np.zeros(value.shape, bool)
        for low, high in pairs:
            inside |= (value - np.uint64(low & every)) & np.uint64(every) < np.uint64((high - low) & every)
        _complain(m, inst, ~inside, f"the result is outside of {promised}, the range that is promised",
                  "correct the range, or launch the kernel with the sizes that it was compiled for", None)  # fmt: skip

    return run


def _used(c: Compiler, inst: Inst) -> Array | None:
    """The elements of a vector that somebody reads; ``None`` for all.

    What a promise is broken in may be an element that is thrown away: vectorisers join instructions that way.
    """
    if not isinstance(inst.type, ty.VecType):
        return None
    count, found = inst.type.count, set()
    for user in c.uses.get(inst.name or "", ()):
        if user.op == "extractelement" and (index := c.literal(user.operands[1])) is not None:
            found.add(index)
        elif user.op == "shufflevector":
            picked = [i for i in poison.shuffle_indices(user) if i is not None]
            for position, operand in enumerate(user.operands[:2]):
                if isinstance(operand, Reg) and operand.name == inst.name:
                    found |= {i - position * count for i in picked if i // count == position}
        else:
            return None
    return np.array([i in found for i in range(count)]) if len(found) < count else None


def _complain(m: Machine, inst: Inst, over: Array, what: str, fix: str, used: Array | None = None) -> None:
    if used is not None:
        over = over & used
    if not over.any():
        return
    bad = (over.any(axis=-1) if over.ndim == 4 else over) & m.mask
    if bad.any():
        m.fault(inst, what, bad, fix)
