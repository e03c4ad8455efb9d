"""Instructions that become renamed parts or element-wise operations: comparisons, conversions, vectors, addresses."""

from __future__ import annotations

from collections.abc import Callable

from .. import types as ty
from ..address import gep_parts
from ..alu import INT_PREDICATES
from ..ir import Inst
from ..poison import shuffle_indices
from ..values import cast_address, members, signed
from . import arith, bits
from .arith import Fn
from .lower import Lowering
from .parts import NotCovered, Part, bits_of, part_types, scalar_type
from .text import Values


def _icmp(b: Lowering, inst: Inst) -> list[Part]:
    if inst.extra["pred"] not in INT_PREDICATES:
        raise NotCovered(f"icmp {inst.extra['pred']}")
    fn = arith.integer_compare(inst.extra["pred"], ty.scalar_of(inst.operands[0].type))
    return b.each(fn, "i1", *map(b.parts, inst.operands))


def _fcmp(b: Lowering, inst: Inst) -> list[Part]:
    fn = arith.float_compare(inst.extra["pred"], ty.scalar_of(inst.operands[0].type), b.flush)
    return b.each(fn, "i1", *map(b.parts, inst.operands))


def _fneg(b: Lowering, inst: Inst) -> list[Part]:
    t = ty.scalar_of(inst.type)
    return b.each(arith.negate(t), scalar_type(t), b.parts(inst.operands[0]))


def choose(b: Lowering, condition: Part, yes: Part, no: Part) -> Part:
    """``select`` on one part."""
    if yes is no:
        return yes

    def run(v: Values, c: str, x: str, y: str) -> list[str]:
        return [v.select(c, yes.type, x, y)]

    return b.apply(run, [condition, yes, no], [yes.type])[0]


def _select(b: Lowering, inst: Inst) -> list[Part]:
    condition, yes, no = map(b.parts, inst.operands)
    if len(condition) == 1:
        condition = condition * len(yes)
    return b.renamed([choose(b, c, x, y) for c, x, y in zip(condition, yes, no, strict=True)])


def _freeze(b: Lowering, inst: Inst) -> list[Part]:
    return b.renamed(b.parts(inst.operands[0]))


def _convert(b: Lowering, inst: Inst) -> list[Part]:
    source, target = ty.scalar_of(inst.operands[0].type), ty.scalar_of(inst.type)
    return b.each(arith.convert(inst.op, source, target, b.flush), scalar_type(target), b.parts(inst.operands[0]))


def _pointer(b: Lowering, inst: Inst) -> list[Part]:
    source, target = ty.scalar_of(inst.operands[0].type), ty.scalar_of(inst.type)
    if members(source) is not None or members(target) is not None:
        raise NotCovered(f"{inst.op} of a buffer descriptor")
    a, t = scalar_type(source), scalar_type(target)
    parts = b.parts(inst.operands[0])
    return b.renamed(parts) if a == t else b.each(arith.resize_pointer(a, t), t, parts)


def address_cast(b: Lowering, inst: Inst) -> list[Part]:
    """``addrspacecast`` between memories that share addresses, to and from flat, or from a descriptor."""
    source, target = ty.scalar_of(inst.operands[0].type), ty.scalar_of(inst.type)
    s, t = getattr(source, "space", 0), getattr(target, "space", 0)
    parts = b.parts(inst.operands[0])
    if s == t or {s, t} <= {0, 1, 4}:
        return b.renamed(parts)
    if t == 0 and s in (3, 5):
        return b.each(_to_flat(cast_address(0, s, 0)), "i64", parts)
    if s == 0 and t in (3, 5):
        return b.each(_from_flat, "i32", parts)
    if (s, t) == (8, 7):
        return b.renamed([*parts, Part("i32", True, -1, -1, "0")])
    raise NotCovered(f"addrspacecast from {s} to {t}")


def _to_flat(aperture: int) -> Fn:
    """A short address as a flat one; -1 is the null of its memory."""

    def run(v: Values, a: str) -> list[str]:
        flat = v.op("or", "i64", v.cast("zext", "i32", a, "i64"), v.const("i64", aperture))
        null = v.op("icmp eq", "i32", a, v.const("i32", -1))
        return [v.select(null, "i64", v.const("i64", 0), flat)]

    return run


def _from_flat(v: Values, a: str) -> list[str]:
    null = v.op("icmp eq", "i64", a, v.const("i64", 0))
    return [v.select(null, "i32", v.const("i32", -1), v.cast("trunc", "i64", a, "i32"))]


def _bitcast(b: Lowering, inst: Inst) -> list[Part]:
    parts = b.parts(inst.operands[0])
    target = part_types(inst.type)
    if members(inst.type) is not None or members(inst.operands[0].type) is not None:
        return b.renamed(parts)
    return recast(b, parts, target)


def recast(b: Lowering, parts: list[Part], target: list[str]) -> list[Part]:
    """The bits of parts of one type as parts of another."""
    s, t = parts[0].type, target[0]
    if s == t:
        return b.renamed(parts)
    many = bits.ratio(s, t)
    if many == 1:
        return b.each(lambda v, a: [v.cast("bitcast", s, a, t)], t, parts)
    if many > 1:
        pieces = [t] * many
        return [p for part in parts for p in b.apply(lambda v, a: bits.split(v, s, a, pieces), [part], pieces)]
    if many == 0:
        return [_slice(b, parts, i * bits_of(t), t) for i in range(len(target))]
    groups = [parts[i : i - many] for i in range(0, len(parts), -many)]
    return [b.apply(lambda v, *args: [bits.combine(v, s, list(args), t)], group, [t])[0] for group in groups]


def _slice(b: Lowering, parts: list[Part], start: int, target: str) -> Part:
    source = parts[0].type
    first, last = start // bits_of(source), (start + bits_of(target) - 1) // bits_of(source)

    def run(v: Values, *args: str) -> list[str]:
        return [bits.slice_bits(v, source, first, list(args), start, target)]

    return b.apply(run, parts[first : last + 1], [target])[0]


def _extractelement(b: Lowering, inst: Inst) -> list[Part]:
    vector, index = b.parts(inst.operands[0]), b.literal(inst.operands[1])
    if index is not None and index < len(vector):
        return b.renamed([vector[index]])
    at = b.part(inst.operands[1])
    _check_index(b, at, len(vector))
    out = vector[-1]
    for i in range(len(vector) - 2, -1, -1):
        out = choose(b, _is(b, at, i), vector[i], out)
    return b.renamed([out])


def _insertelement(b: Lowering, inst: Inst) -> list[Part]:
    vector, value, index = b.parts(inst.operands[0]), b.part(inst.operands[1]), b.literal(inst.operands[2])
    if index is not None and index < len(vector):
        return b.renamed([*vector[:index], value, *vector[index + 1 :]])
    at = b.part(inst.operands[2])
    _check_index(b, at, len(vector))
    return b.renamed([choose(b, _is(b, at, i), value, old) for i, old in enumerate(vector)])


def _is(b: Lowering, at: Part, number: int) -> Part:
    return b.apply(lambda v, a: [v.op("icmp eq", at.type, a, v.const(at.type, number))], [at], ["i1"])[0]


def _check_index(b: Lowering, at: Part, count: int) -> None:
    if count >> bits_of(at.type):
        return

    def run(v: Values, a: str) -> list[str]:
        v.fault_if(v.op("icmp uge", at.type, a, v.const(at.type, count)))
        return []

    b.apply(run, [at], [])


def _shufflevector(b: Lowering, inst: Inst) -> list[Part]:
    both = [*b.parts(inst.operands[0]), *b.parts(inst.operands[1])]
    return b.renamed([both[0 if i is None else i] for i in shuffle_indices(inst)])


def _span(t: ty.Type, indices: tuple[int, ...]) -> tuple[int, int]:
    """First part and number of parts of a member of an aggregate."""
    start = 0
    for index in indices:
        inner = members(t) or []
        start += sum(len(part_types(m)) for m in inner[:index])
        t = inner[index]
    return start, len(part_types(t))


def _extractvalue(b: Lowering, inst: Inst) -> list[Part]:
    start, count = _span(inst.operands[0].type, tuple(inst.extra["indices"]))
    return b.renamed(b.parts(inst.operands[0])[start : start + count])


def _insertvalue(b: Lowering, inst: Inst) -> list[Part]:
    whole, part = b.parts(inst.operands[0]), b.parts(inst.operands[1])
    start, count = _span(inst.operands[0].type, tuple(inst.extra["indices"]))
    return b.renamed([*whole[:start], *part, *whole[start + count :]])


def _getelementptr(b: Lowering, inst: Inst) -> list[Part]:
    space = getattr(ty.scalar_of(inst.operands[0].type), "space", 0)
    width = ty.index_bits(space)
    if space in (8, 9):
        raise NotCovered(f"getelementptr in address space {space}")
    base, elem = b.parts(inst.operands[0]), f"i{width}"
    head, address = (base[:4], base[4:]) if space == 7 else ([], base)
    fixed, terms = _gep_terms(b, inst, width)
    count = inst.type.count if isinstance(inst.type, ty.VecType) else 1
    out = []
    for i in range(count):
        picked = [parts[i % len(parts)] for parts, _ in terms]

        def run(v: Values, a: str, *indices: str, picked: list[Part] = picked) -> list[str]:
            for part, (_, scale), index in zip(picked, terms, indices, strict=True):
                wide = bits_of(part.type)
                if wide != width:
                    index = v.cast("sext" if wide < width else "trunc", part.type, index, elem)
                a = v.op("add", elem, a, v.op("mul", elem, index, v.const(elem, scale)) if scale != 1 else index)
            return [v.op("add", elem, a, v.const(elem, signed(fixed, width))) if fixed else a]

        start = address[i % len(address)]
        out.append(start if not fixed and not picked else b.apply(run, [start, *picked], [elem])[0])
    return b.renamed([*head, *out])


def _gep_terms(b: Lowering, inst: Inst, width: int) -> tuple[int, list[tuple[list[Part], int]]]:
    """Constant byte offset, and the run-time indices with their scale in bytes."""
    fixed, terms = gep_parts(inst, b.literal)
    return fixed & ((1 << width) - 1), [(b.parts(operand), scale) for operand, scale in terms]


def _alloca(b: Lowering, inst: Inst) -> list[Part]:
    if getattr(inst.type, "space", 5) != 5:
        raise NotCovered("alloca outside of address space 5")
    return [Part("i32", True, -1, -1, str(inst.extra["address"]))]


LOWER: dict[str, Callable[[Lowering, Inst], list[Part]]] = {
    "icmp": _icmp,
    "fcmp": _fcmp,
    "fneg": _fneg,
    "select": _select,
    "freeze": _freeze,
    "bitcast": _bitcast,
    "addrspacecast": address_cast,
    "extractelement": _extractelement,
    "insertelement": _insertelement,
    "shufflevector": _shufflevector,
    "extractvalue": _extractvalue,
    "insertvalue": _insertvalue,
    "getelementptr": _getelementptr,
    "alloca": _alloca,
    **dict.fromkeys("trunc zext sext fptrunc fpext fptosi fptoui sitofp uitofp".split(), _convert),
    **dict.fromkeys("ptrtoint inttoptr ptrtoaddr".split(), _pointer),
}
