"""``llvm.vector.*`` calls that move elements, and math calls with two results."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import denormals, mathfn, types as ty
from .ir import Inst
from .values import Array

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Builder = Callable[["Compiler", Inst], "list[Op]"]


def _moving(move: Callable[[Inst, list[Array]], Any], count: Callable[[Inst], int]) -> Builder:
    """A builder for a function of the first ``count`` operands as whole vectors."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        d, slots = c.dest(inst), [c.slot(o) for o in inst.operands[: count(inst)]]

        def run(r: list[Any], m: Machine) -> None:
            r[d] = move(inst, _same_lanes([r[s] for s in slots]))

        return [run]

    return builder


def _same_lanes(values: list[Array]) -> list[Array]:
    lanes = np.broadcast_shapes(*(v.shape[:3] for v in values))
    return [np.broadcast_to(v, lanes + v.shape[3:]) for v in values]


def _interleave(inst: Inst, parts: list[Array]) -> Array:
    return np.stack(parts, axis=-1).reshape((*parts[0].shape[:-1], -1))


def _deinterleave(inst: Inst, parts: list[Array]) -> Any:
    count = len(inst.type.elems or ()) if isinstance(inst.type, ty.StructType) else 1
    return tuple(parts[0][..., i::count] for i in range(count))


def _reverse(inst: Inst, parts: list[Array]) -> Array:
    return parts[0][..., ::-1]


def _constant(inst: Inst, position: int) -> int:
    return int(getattr(inst.operands[position], "value", 0) or 0)


def _splice(inst: Inst, parts: list[Array]) -> Array:
    count, at = parts[0].shape[-1], _constant(inst, 2)
    at = at - (1 << 32) if at >> 31 else at
    first = at if at >= 0 else count + at
    return np.concatenate(parts, axis=-1)[..., first : first + count]


def _extract(inst: Inst, parts: list[Array]) -> Array:
    count = inst.type.count if isinstance(inst.type, ty.VecType) else 1
    return parts[0][..., _constant(inst, 1) : _constant(inst, 1) + count]


def _insert(inst: Inst, parts: list[Array]) -> Array:
    into, part = parts[0].copy(), parts[1]
    into[..., _constant(inst, 2) : _constant(inst, 2) + part.shape[-1]] = part
    return into


def _two(first: Callable[[ty.Type], Any], second: Callable[[ty.Type], Any]) -> Builder:
    """A call that returns the pair of two functions of its operand."""

    def builder(c: Compiler, inst: Inst) -> list[Op]:
        t, d, a = inst.operands[0].type, c.dest(inst), c.slot(inst.operands[0])
        one, two = (denormals.flushed(c.kernel, t, fn(t)) for fn in (first, second))

        def run(r: list[Any], m: Machine) -> None:
            r[d] = (one(r[a]), two(r[a]))

        return [run]

    return builder


def _fraction(a: Array) -> Array:
    """What is behind the point, with the sign of the number; 0 of an infinity."""
    return np.copysign(np.where(np.isinf(a), 0, a - np.trunc(a)), a).astype(a.dtype)


def _ptrmask(c: Compiler, inst: Inst) -> list[Op]:
    d, p, mask = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        # bits above the index type stay
        high = ~r[p].dtype.type((1 << inst_bits) - 1) if inst_bits < 8 * r[p].dtype.itemsize else r[p].dtype.type(0)
        r[d] = r[p] & (r[mask].astype(r[p].dtype) | high)

    inst_bits = ty.bit_size(inst.operands[1].type)
    return [run]


def _all(inst: Inst) -> int:
    return len(inst.operands)


TABLE: dict[str, Builder] = {
    **{f"vector.interleave{n}": _moving(_interleave, _all) for n in range(2, 9)},
    **{f"vector.deinterleave{n}": _moving(_deinterleave, _all) for n in range(2, 9)},
    "vector.reverse": _moving(_reverse, lambda inst: 1),
    "vector.splice": _moving(_splice, lambda inst: 2),
    "vector.extract": _moving(_extract, lambda inst: 1),
    "vector.insert": _moving(_insert, lambda inst: 2),
    "sincos": _two(mathfn.function("sin"), mathfn.function("cos")),
    "modf": _two(mathfn.native(_fraction), mathfn.native(np.trunc)),
    "ptrmask": _ptrmask,
}
