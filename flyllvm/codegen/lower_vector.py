"""Lowering of vectors: the ``vector`` dialect."""

from __future__ import annotations

from ..ir import lltype as ll, types as t
from .lower_arith import flags_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..ir.core import Op
    from ..ir.protocols import LLValue
    from .lower import Handler, Lowering


def as_vector(lw: Lowering, value: LLValue) -> LLValue:
    """A scalar as a vector of one element; a vector as it is."""
    return value if value.type.kind == "vector" else lw.em.splat(value, 1)


def held(lw: Lowering, value: LLValue, type_: t.Type) -> LLValue:
    """A value in the exact LLVM type of a fly type: ``<1 x T>`` and ``T`` are told apart."""
    want = t.storage(type_)
    if value.type is want:
        return value
    if want.kind == "vector" and value.type is want.elem:
        return lw.em.splat(value, 1)
    return lw.em.extract_element(value, 0)


def _bitcast(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = lw.em.bitcast(lw.get(op.operands[0]), t.storage(op.results[0].type))


def _broadcast(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = lw.em.splat(lw.get(op.operands[0]), t.count_of(op.results[0].type))


def _extract(lw: Lowering, op: Op) -> None:
    index = lw.get(op.operands[1]) if len(op.operands) > 1 else op.attrs["position"]
    lw.values[op.results[0]] = lw.em.extract_element(lw.get(op.operands[0]), index)


def _insert(lw: Lowering, op: Op) -> None:
    index = lw.get(op.operands[2]) if len(op.operands) > 2 else op.attrs["position"]
    lw.values[op.results[0]] = lw.em.insert_element(lw.get(op.operands[1]), lw.get(op.operands[0]), index)


def _slice(lw: Lowering, op: Op) -> None:
    offset, size = op.attrs["offset"], op.attrs["size"]
    made = lw.em.shuffle(lw.get(op.operands[0]), None, range(offset, offset + size))
    lw.values[op.results[0]] = held(lw, made, op.results[0].type)


def _insert_slice(lw: Lowering, op: Op) -> None:
    part, whole = lw.get(op.operands[0]), lw.get(op.operands[1])
    lw.values[op.results[0]] = blend(lw, part, whole, op.attrs["offset"])


def blend(lw: Lowering, part: LLValue, whole: LLValue, offset: int) -> LLValue:
    """The vector ``whole`` with ``part`` at an offset in elements."""
    em = lw.em
    n, m = whole.type.count, part.type.count
    if n == m:
        return part
    if m == 1:
        return em.insert_element(whole, em.extract_element(part, 0), offset)
    # Shuffles take two vectors of one length: the part is widened first.
    wide = em.shuffle(part, None, [min(i, m - 1) for i in range(n)])
    mask = [n + i - offset if offset <= i < offset + m else i for i in range(n)]
    return em.shuffle(whole, wide, mask)


def _concat(lw: Lowering, op: Op) -> None:
    lw.values[op.results[0]] = held(lw, join(lw, [lw.get(o) for o in op.operands]), op.results[0].type)


def join(lw: Lowering, parts: list[LLValue]) -> LLValue:
    """Scalars and vectors of one element type, joined in order."""
    em = lw.em
    if len(parts) == 1:
        return parts[0]
    counts = [p.type.count for p in parts]
    if all(c == 1 for c in counts):
        made = em.poison(ll.vec(len(parts), parts[0].type.elem))
        for i, p in enumerate(parts):
            made = em.insert_element(made, em.extract_element(p, 0), i)
        return made
    # Pairs of equal length make one shuffle each.
    if len(set(counts)) == 1:
        joined = [em.shuffle(a, b, range(2 * counts[0])) for a, b in zip(parts[0::2], parts[1::2])] + (
            parts[-1:] if len(parts) % 2 else []
        )
        return join(lw, joined)
    total = em.poison(ll.vec(sum(counts), parts[0].type.elem))
    at = 0
    for p in parts:
        total = blend(lw, as_vector(lw, p), total, at)
        at += p.type.count
    return total


def _shuffle(lw: Lowering, op: Op) -> None:
    a, b = lw.get(op.operands[0]), lw.get(op.operands[1])
    mask = op.attrs["mask"]
    other = None if all(i < a.type.count for i in mask) else b
    lw.values[op.results[0]] = held(lw, lw.em.shuffle(a, other, mask), op.results[0].type)


_KINDS = {
    "minsi": "smin", "maxsi": "smax", "minui": "umin", "maxui": "umax", "minnumf": "minnum", "maxnumf": "maxnum",
    "minimumf": "minimum", "maximumf": "maximum",
}  # fmt: skip


def _reduction(lw: Lowering, op: Op) -> None:
    """Element by element, in order; with ``reassoc`` as a tree, which takes log2(n) dependent steps."""
    from .address import mangle

    em = lw.em
    v = lw.get(op.operands[0])
    kind, flags, elem = op.attrs["kind"], flags_of(lw, op), v.type.elem

    def step(a: LLValue, b: LLValue) -> LLValue:
        name = _KINDS.get(kind)
        if name is None:
            return em.binary(f"f{kind}" if elem.kind == "float" else kind, a, b, flags if elem.kind == "float" else "")
        if elem.kind == "float":
            return em.float_intrinsic(f"{name}.{mangle(elem)}", elem, [a, b], flags)
        return em.pure_intrinsic(f"{name}.{mangle(elem)}", elem, [a, b])

    parts = [em.extract_element(v, i) for i in range(v.type.count)]
    ordered = elem.kind == "float" and kind in ("add", "mul") and not {"fast", "reassoc"} & set(flags.split())
    if ordered:
        made = parts[0]
        for p in parts[1:]:
            made = step(made, p)
    else:
        while len(parts) > 1:
            parts = [step(a, b) for a, b in zip(parts[0::2], parts[1::2])] + (parts[-1:] if len(parts) % 2 else [])
        made = parts[0]
    lw.values[op.results[0]] = made


TABLE: dict[str, Handler] = {
    "vector.bitcast": _bitcast,
    "vector.broadcast": _broadcast,
    "vector.extract": _extract,
    "vector.insert": _insert,
    "vector.extract_strided_slice": _slice,
    "vector.insert_strided_slice": _insert_slice,
    "vector.concat": _concat,
    "vector.shuffle": _shuffle,
    "vector.reduction": _reduction,
}
