"""``getelementptr``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import convert, types as ty
from .ir import Const, Inst, Operand
from .values import Array, gep_step, signed

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine


def getelementptr(c: Compiler, inst: Inst) -> list[Op]:
    """The address plus constant bytes and scaled run-time indices, in the width of the address space."""
    space = getattr(ty.scalar_of(inst.operands[0].type), "space", 0)
    bits = ty.index_bits(space)
    fixed, terms = _gep_terms(c, inst, bits)
    d, a = c.dest(inst), c.slot(inst.operands[0])
    vector = isinstance(inst.type, ty.VecType)
    dtype = ty.int_dtype(32 if space == 7 else ty.pointer_bits(space))
    base_is_vector = isinstance(inst.operands[0].type, ty.VecType)
    start = dtype.type(fixed & ((1 << (dtype.itemsize * 8)) - 1))

    def advance(r: list[Any], address: Array) -> Array:
        if vector and not base_is_vector:
            address = address[..., None]
        for slot, scale, fn in terms:
            index = fn(r[slot])
            if vector and index.ndim == 3:
                index = index[..., None]
            address = address + (index if scale is None else index * scale)
        return address + start if fixed else address

    if space == 7:

        def run_fat(r: list[Any], m: Machine) -> None:
            *rsrc, offset = r[a]
            r[d] = (*rsrc, advance(r, offset))

        return [run_fat]

    def run(r: list[Any], m: Machine) -> None:
        r[d] = advance(r, r[a])

    return [run]


def gep_parts(inst: Inst, literal: Callable[[Operand], int | None]) -> tuple[int, list[tuple[Operand, int]]]:
    """Constant byte offset of a GEP, and its run-time indices with their scale in bytes.

    Args:
        inst: The instruction.
        literal: Gives the bits of an operand that is known.
    """
    fixed, terms = 0, []
    t: ty.Type = inst.extra["base_type"]
    for position, operand in enumerate(inst.operands[1:]):
        known = literal(operand) if not isinstance(operand.type, ty.VecType) else None
        if isinstance(operand, Const) and operand.kind == "agg" and isinstance(t, ty.StructType) and position:
            known = literal(operand.value[0])
        if known is not None:
            number = signed(known, ty.bit_size(ty.scalar_of(operand.type)))
            step, t = (number * ty.alloc_size(t), t) if position == 0 else gep_step(t, number)
            fixed += step
            continue
        if position:
            _, t = gep_step(t, 0)
        terms.append((operand, ty.alloc_size(t)))
    return fixed, terms


def _gep_terms(c: Compiler, inst: Inst, bits: int) -> tuple[int, list[tuple[int, Any, Callable[[Array], Array]]]]:
    """Constant byte offset, and (slot, scale, index conversion) of each run-time index."""
    dtype = ty.int_dtype(bits)
    fixed, run_time = gep_parts(inst, c.literal)
    terms = []
    for operand, scale in run_time:
        index_bits = ty.bit_size(ty.scalar_of(operand.type))
        kind = "sext" if index_bits < bits else "trunc" if index_bits > bits else ""
        fn = convert.resize_int(kind, ty.int_type(index_bits), ty.int_type(bits)) if kind else (lambda a: a)
        terms.append((c.slot(operand), None if scale == 1 else dtype.type(scale), fn))
    return fixed, terms
