"""Closures of LLVM instructions, one builder per opcode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import alu, atomics, intrinsics, mem_ops, poison, types as ty
from .ir import Const, Inst, Reg
from .parse_inst import BINARY
from .values import Array, Value, cast_address, gep_step, signed

if TYPE_CHECKING:
    from .compile import Compiler, Op
    from .machine import Machine

Builder = Callable[["Compiler", Inst], "list[Op]"]


def build(c: Compiler, inst: Inst) -> list[Op]:
    """The closures that run one instruction, checks first."""
    if inst.op == "call":
        return intrinsics.build(c, inst)
    return BUILDERS[inst.op](c, inst)


def unary(c: Compiler, inst: Inst, fn: Callable[[Array], Array]) -> Op:
    """``dest = fn(operand 0)``."""
    d, a = c.dest(inst), c.slot(inst.operands[0])

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fn(r[a])

    return run


def binary(c: Compiler, inst: Inst, fn: Callable[[Array, Array], Array]) -> Op:
    """``dest = fn(operand 0, operand 1)``."""
    d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])

    def run(r: list[Any], m: Machine) -> None:
        r[d] = fn(r[a], r[b])

    return run


def _binary(c: Compiler, inst: Inst) -> list[Op]:
    ops = [binary(c, inst, alu.binary_op(inst.op, inst.type))]
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
    return [binary(c, inst, alu.float_compare(inst.extra["pred"], inst.operands[0].type))]


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
        fn = alu.resize_int(op, source, target)
    elif op in ("fptrunc", "fpext"):
        fn = alu.convert_float(source, target)
    elif op in ("fptosi", "fptoui"):
        fn = alu.float_to_int(source, target, op == "fptosi")
    elif op in ("sitofp", "uitofp"):
        fn = alu.int_to_float(source, target, op == "sitofp")
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
    return alu.bitcast(source, target)


def _pointer_int(source: ty.Type, target: ty.Type) -> Callable[[Any], Any]:
    space = getattr(ty.scalar_of(source), "space", getattr(ty.scalar_of(target), "space", 0))
    if space == 8:
        return _rsrc_to_int(target) if isinstance(ty.scalar_of(source), ty.PtrType) else _int_to_rsrc
    width = ty.pointer_bits(space)
    pointer = ty.int_type(width)
    other = ty.scalar_of(target if isinstance(ty.scalar_of(source), ty.PtrType) else source)
    bits = ty.bit_size(other)
    if isinstance(ty.scalar_of(source), ty.PtrType):
        return alu.resize_int("trunc" if bits < width else "zext", pointer, ty.int_type(bits))
    return alu.resize_int("trunc" if bits > width else "zext", ty.int_type(bits), pointer)


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


# ---- vectors and aggregates


def _extractelement(c: Compiler, inst: Inst) -> list[Op]:
    d, a = c.dest(inst), c.slot(inst.operands[0])
    index = c.literal(inst.operands[1])
    if index is not None:

        def run(r: list[Any], m: Machine) -> None:
            r[d] = r[a][..., index]

        return [run]
    i = c.slot(inst.operands[1])

    def run_dynamic(r: list[Any], m: Machine) -> None:
        vector, at = r[a], r[i].astype(np.int64)
        at = np.minimum(at, vector.shape[-1] - 1)
        shape = np.broadcast_shapes(vector.shape[:3], at.shape)
        vector = np.broadcast_to(vector, shape + vector.shape[-1:])
        r[d] = np.take_along_axis(vector, np.broadcast_to(at, shape)[..., None], axis=-1)[..., 0]

    return [_index_check(c, inst, 1), run_dynamic]


def _index_check(c: Compiler, inst: Inst, position: int) -> Op:
    slot, count = c.slot(inst.operands[position]), getattr(inst.operands[0].type, "count", 0)

    def run(r: list[Any], m: Machine) -> None:
        bad = r[slot] >= count
        if bad.any() and (bad & m.mask).any():
            m.fault(inst, f"the index is outside a vector of {count} elements", bad & m.mask)

    return run


def _insertelement(c: Compiler, inst: Inst) -> list[Op]:
    index = c.literal(inst.operands[2])
    if index is not None:
        return _insert_chain(c, inst)
    d = c.dest(inst)
    a, v, i = (c.slot(o) for o in inst.operands)

    def run(r: list[Any], m: Machine) -> None:
        at = r[i][..., None] == np.arange(r[a].shape[-1])
        r[d] = np.where(at, r[v][..., None], r[a])

    return [_index_check(c, inst, 2), run]


def _insert_chain(c: Compiler, inst: Inst) -> list[Op]:
    """A chain of insertions, each read only by the next one, becomes one construction at its end."""
    if _extends(c, inst) is not None:
        return []
    writes: dict[int, int] = {}
    link: Inst | None = inst
    base = inst.operands[0]
    while link is not None:
        writes.setdefault(c.literal(link.operands[2]) or 0, c.slot(link.operands[1]))
        base = link.operands[0]
        before = c.defs.get(base.name) if isinstance(base, Reg) else None
        link = before if before is not None and _extends(c, before) is link else None
    d, a = c.dest(inst), c.slot(base)
    count = getattr(inst.type, "count", 0)
    dtype = ty.dtype_of(inst.type)
    items = [(i, s) for i, s in writes.items() if i < count]
    whole = len(items) == count

    def run(r: list[Any], m: Machine) -> None:
        parts = [r[s] for _, s in items]
        shapes = [p.shape for p in parts]
        if not whole:
            shapes.append(r[a].shape[:3])
        out = np.empty((*np.broadcast_shapes(*shapes), count), dtype)
        if not whole:
            out[...] = r[a]
        for (i, _), part in zip(items, parts, strict=True):
            out[..., i] = part
        r[d] = out

    return [run]


def _extends(c: Compiler, inst: Inst) -> Inst | None:
    """The insertion that alone reads this one, in the same node."""
    if inst.op != "insertelement" or c.literal(inst.operands[2]) is None:
        return None
    users = c.uses.get(inst.name or "", [])
    if len(users) != 1 or users[0].op != "insertelement" or c.literal(users[0].operands[2]) is None:
        return None
    first = users[0].operands[0]
    if not (isinstance(first, Reg) and first.name == inst.name) or c.user_node(users[0]) != c.user_node(inst):
        return None
    return users[0]


def _shufflevector(c: Compiler, inst: Inst) -> list[Op]:
    d, a, b = c.dest(inst), c.slot(inst.operands[0]), c.slot(inst.operands[1])
    count = getattr(inst.operands[0].type, "count", 1)
    wanted = [0 if i is None else i for i in poison.shuffle_indices(inst)]
    if all(i < count for i in wanted):
        lo = wanted[0]
        if wanted == list(range(lo, lo + len(wanted))):
            hi = lo + len(wanted)

            def run_slice(r: list[Any], m: Machine) -> None:
                r[d] = r[a][..., lo:hi]

            return [run_slice]
        index = np.array(wanted)

        def run_take(r: list[Any], m: Machine) -> None:
            r[d] = r[a].take(index, axis=-1)

        return [run_take]
    index = np.array(wanted)

    def run(r: list[Any], m: Machine) -> None:
        x, y = r[a], r[b]
        if x.shape != y.shape:
            shape = np.broadcast_shapes(x.shape, y.shape)
            x, y = np.broadcast_to(x, shape), np.broadcast_to(y, shape)
        r[d] = np.concatenate((x, y), axis=-1).take(index, axis=-1)

    return [run]


def _extractvalue(c: Compiler, inst: Inst) -> list[Op]:
    indices = inst.extra["indices"]

    def pick(value: Any) -> Any:
        for i in indices:
            value = value[i]
        return value

    return [unary(c, inst, pick)]


def _insertvalue(c: Compiler, inst: Inst) -> list[Op]:
    indices = inst.extra["indices"]

    def put(whole: Any, part: Any, path: tuple[int, ...]) -> Any:
        if not path:
            return part
        return tuple(put(v, part, path[1:]) if i == path[0] else v for i, v in enumerate(whole))

    return [binary(c, inst, lambda whole, part: put(whole, part, indices))]


# ---- addresses


def _gep(c: Compiler, inst: Inst) -> list[Op]:
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


def _gep_terms(c: Compiler, inst: Inst, bits: int) -> tuple[int, list[tuple[int, Any, Callable[[Array], Array]]]]:
    """Constant byte offset, and (slot, scale, index conversion) of each run-time index."""
    dtype = ty.int_dtype(bits)
    fixed, terms = 0, []
    t: ty.Type = inst.extra["base_type"]
    for position, operand in enumerate(inst.operands[1:]):
        literal = c.literal(operand) if not isinstance(operand.type, ty.VecType) else None
        if isinstance(operand, Const) and operand.kind == "agg" and isinstance(t, ty.StructType) and position:
            literal = c.literal(operand.value[0])
        if literal is not None:
            number = signed(literal, ty.bit_size(ty.scalar_of(operand.type)))
            step, t = (number * ty.alloc_size(t), t) if position == 0 else gep_step(t, number)
            fixed += step
            continue
        if position:
            _, t = gep_step(t, 0)
        scale = ty.alloc_size(t)
        index_bits = ty.bit_size(ty.scalar_of(operand.type))
        kind = "sext" if index_bits < bits else "trunc" if index_bits > bits else ""
        fn = alu.resize_int(kind, ty.int_type(index_bits), ty.int_type(bits)) if kind else (lambda a: a)
        terms.append((c.slot(operand), None if scale == 1 else dtype.type(scale), fn))
    return fixed, terms


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
    "extractelement": _extractelement,
    "insertelement": _insertelement,
    "shufflevector": _shufflevector,
    "extractvalue": _extractvalue,
    "insertvalue": _insertvalue,
    "getelementptr": _gep,
    "load": mem_ops.build_load,
    "store": mem_ops.build_store,
    "alloca": mem_ops.build_alloca,
    "fence": mem_ops.build_fence,
    "atomicrmw": atomics.build_atomicrmw,
    "cmpxchg": atomics.build_cmpxchg,
}  # fmt: skip
