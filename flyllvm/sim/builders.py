"""Closures of LLVM instructions, one builder per opcode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import address, alu, atomics, convert, denormals, intrinsics, mem_ops, poison, types as ty, vectors
from .ir import Inst
from .ops import binary, unary
from .parse_inst import BINARY
from .values import Array, Value, cast_address

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Builder = Callable[["Compiler", Inst], "list[Op]"]


def build(c: Compiler, inst: Inst) -> list[Op]:
    """The closures that run one instruction, checks first."""
    if inst.op == "call":
        return intrinsics.build(c, inst)
    return BUILDERS[inst.op](c, inst)


def _binary(c: Compiler, inst: Inst) -> list[Op]:
    ops = [binary(c, inst, denormals.flushed(c.kernel, inst.type, alu.binary_op(inst.op, inst.type)))]
    if inst.op in ("udiv", "sdiv", "urem", "srem"):
        ops.insert(0, _division_check(c, inst))
    return ops


def _division_check(c: Compiler, inst: Inst) -> Op:
    divisor, dividend = c.slot(inst.operands[1]), c.slot(inst.operands[0])
    literal = c.literal(inst.operands[1])
    guard = poison.guard(c, inst, [1], "the divisor")
    scalar = ty.scalar_of(inst.type)
    bits = scalar.bits if isinstance(scalar, ty.IntType) else 32
    overflow = inst.op in ("sdiv", "srem") and literal in (None, (1 << bits) - 1)

    def running(m: Machine, bad: Array) -> Array:
        return (bad.any(axis=-1) if bad.ndim == 4 else bad) & m.mask

    def run(r: list[Any], m: Machine) -> None:
        if guard is not None:
            guard(r, m)
        if literal is None or literal == 0:
            zero = r[divisor] == 0
            if zero.any() and running(m, zero).any():
                m.fault(inst, "division by zero", running(m, zero), "guard the division with a branch or a select")
        if overflow:
            ones = r[divisor] == (1 << bits) - 1
            if ones.any():
                bad = running(m, ones & (r[dividend] == 1 << (bits - 1)))
                if bad.any():
                    m.fault(inst, "the quotient does not fit its type (minimum divided by -1)", bad)

    return run


def _fneg(c: Compiler, inst: Inst) -> list[Op]:
    return [unary(c, inst, alu.negate(inst.type))]


def _icmp(c: Compiler, inst: Inst) -> list[Op]:
    return [binary(c, inst, alu.integer_compare(inst.extra["pred"], inst.operands[0].type))]


def _fcmp(c: Compiler, inst: Inst) -> list[Op]:
    operand = inst.operands[0].type
    compare = alu.float_compare(inst.extra["pred"], operand)
    return [binary(c, inst, denormals.flushed(c.kernel, operand, compare, result=False))]


def choose(cond: Array, yes: Value, no: Value) -> Value:
    """``select``: a uniform condition picks without copying."""
    if cond.size == 1:
        return yes if cond.flat[0] else no
    if isinstance(yes, tuple):
        return tuple(choose(cond, y, n) for y, n in zip(yes, no, strict=True))
    return np.where(cond[..., None] if yes.ndim == 4 and cond.ndim == 3 else cond, yes, no)


def _select(c: Compiler, inst: Inst) -> list[Op]:
    d = c.dest(inst)
    cond, yes, no = (c.slot(o) for o in inst.operands)

    def run(r: list[Any], m: Machine) -> None:
        r[d] = choose(r[cond], r[yes], r[no])

    return [run]


def _freeze(c: Compiler, inst: Inst) -> list[Op]:
    return [unary(c, inst, lambda a: a)]


# ---- conversions


def _cast(c: Compiler, inst: Inst) -> list[Op]:
    source, target, op = inst.operands[0].type, inst.type, inst.op
    fn: Callable[[Any], Any]
    if op in ("trunc", "zext", "sext"):
        fn = convert.resize_int(op, source, target)
    elif op in ("fptrunc", "fpext"):
        fn = convert.convert_float(source, target)
        if ty.BFLOAT not in (ty.scalar_of(source), ty.scalar_of(target)):
            fn = denormals.flushed(c.kernel, target, denormals.flushed(c.kernel, source, fn))
    elif op in ("fptosi", "fptoui"):
        fn = convert.float_to_int(source, target, op == "fptosi")
    elif op in ("sitofp", "uitofp"):
        fn = convert.int_to_float(source, target, op == "sitofp")
    elif op == "addrspacecast":
        fn = _addrspacecast(source, target)
    elif op in ("ptrtoint", "inttoptr", "ptrtoaddr"):
        fn = _pointer_int(source, target)
    else:
        fn = _bitcast(source, target)
    return [unary(c, inst, fn)]


def _bitcast(source: ty.Type, target: ty.Type) -> Callable[[Any], Any]:
    if source is target:
        return lambda a: a
    return convert.bitcast(source, target)


def _pointer_int(source: ty.Type, target: ty.Type) -> Callable[[Any], Any]:
    space = getattr(ty.scalar_of(source), "space", getattr(ty.scalar_of(target), "space", 0))
    if space == 8:
        return _rsrc_to_int(target) if isinstance(ty.scalar_of(source), ty.PtrType) else _int_to_rsrc
    width = ty.pointer_bits(space)
    pointer = ty.int_type(width)
    other = ty.scalar_of(target if isinstance(ty.scalar_of(source), ty.PtrType) else source)
    bits = ty.bit_size(other)
    if isinstance(ty.scalar_of(source), ty.PtrType):
        return convert.resize_int("trunc" if bits < width else "zext", pointer, ty.int_type(bits))
    return convert.resize_int("trunc" if bits > width else "zext", ty.int_type(bits), pointer)


def _rsrc_to_int(target: ty.Type) -> Callable[[Any], Any]:
    bits = ty.bit_size(target)

    def convert(rsrc: Any) -> Any:
        base, stride, records, flags = (p.astype(object) for p in rsrc)
        word = base | (stride << 48) | (records << 64) | (flags << 96)
        return (word & ((1 << bits) - 1)).astype(ty.int_dtype(bits))

    return convert


def _int_to_rsrc(word: Any) -> Any:
    wide = word.astype(object)
    parts = (wide & ((1 << 48) - 1), (wide >> 48) & 0x3FFF, (wide >> 64) & 0xFFFFFFFF, (wide >> 96) & 0xFFFFFFFF)
    dtypes = (np.uint64, np.uint16, np.uint64, np.uint32)
    return tuple(np.asarray(p, object).astype(d) for p, d in zip(parts, dtypes, strict=True))


def _addrspacecast(source: ty.Type, target: ty.Type) -> Callable[[Any], Any]:
    s, t = getattr(ty.scalar_of(source), "space", 0), getattr(ty.scalar_of(target), "space", 0)
    if s == t or {s, t} <= {0, 1, 4}:
        return lambda a: a
    if s == 8 and t == 7:
        return lambda rsrc: (*rsrc, np.zeros((1, 1, 1), np.uint32))
    cast_address(0, s, t)  # refuses pairs without a meaning
    dtype = ty.int_dtype(ty.pointer_bits(t))
    if t == 0 and s in (3, 5):
        high = np.uint64(cast_address(0, s, 0))
        return lambda a: np.where(a == 0xFFFFFFFF, np.uint64(0), a.astype(np.uint64) | high)
    if s == 0 and t in (3, 5):
        return lambda a: np.where(a == 0, np.uint32(0xFFFFFFFF), a.astype(np.uint32))
    return lambda a: a.astype(dtype)


def cast_space(c: Compiler, inst: Inst) -> list[Op]:
    """``addrspacecast`` written as an intrinsic."""
    return [unary(c, inst, _addrspacecast(inst.operands[0].type, inst.type))]


BUILDERS: dict[str, Builder] = {
    **dict.fromkeys(BINARY, _binary),
    **dict.fromkeys(
        "trunc zext sext fptrunc fpext fptoui fptosi uitofp sitofp ptrtoint inttoptr bitcast addrspacecast "
        "ptrtoaddr".split(),
        _cast,
    ),
    "fneg": _fneg,
    "icmp": _icmp,
    "fcmp": _fcmp,
    "select": _select,
    "freeze": _freeze,
    "extractelement": vectors.extractelement,
    "insertelement": vectors.insertelement,
    "shufflevector": vectors.shufflevector,
    "extractvalue": vectors.extractvalue,
    "insertvalue": vectors.insertvalue,
    "getelementptr": address.getelementptr,
    "load": mem_ops.build_load,
    "store": mem_ops.build_store,
    "alloca": mem_ops.build_alloca,
    "fence": mem_ops.build_fence,
    "atomicrmw": atomics.build_atomicrmw,
    "cmpxchg": atomics.build_cmpxchg,
}  # fmt: skip
